"""Read what a scenario says of Lua: the scripts of the site, and under what they run."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from simctl.files import read_script
from simctl.plugins.lua.constants import SLURM_VERSIONS
from simctl.plugins.lua.defects import DEFECTS
from simctl.plugins.lua.state import VERSIONS, LuaMissingError, require_lua
from simctl.scenario.model import LuaSpec
from simctl.scenario.positions import Reading, Value
from simctl.scenario.scalars import choice
from simctl.scenario.shapes import Field, Items, Record, Values
from simctl.scenario.site.site import read_named

SCRIPTS: Final = ("burst_buffer", "job_submit", "cli_filter")


def _build(values: Mapping[str, Any], value: Value, reading: Reading) -> LuaSpec:
    spec = LuaSpec(**values)
    for name in spec.defects:
        if not DEFECTS[name].is_in(spec.slurm):
            what = f"{name} is a defect of Slurm {DEFECTS[name].versions}, not of {spec.slurm}"
            reading.mistake(value, what)
    for name in [name for name in spec.defects if name in spec.mended]:
        reading.mistake(value, f"{name} stands among `defects` and among `mended`")
    return spec


LUA: Final[Record[LuaSpec]] = Record(
    what="the options of Lua",
    fields=(
        Field(
            name="version",
            shape=choice(*VERSIONS),
            default="5.4",
            shown="5.4",
            doc="The Lua that Slurm was built with.",
        ),
        Field(
            name="slurm",
            shape=choice(*SLURM_VERSIONS),
            default="22.05",
            shown="22.05",
            doc="The Slurm whose interface to scripts there is.",
        ),
        Field(
            name="defects",
            shape=Items(expected="a list of defects", item=choice(*DEFECTS)),
            default=(),
            doc="Defects of real Slurm that there are besides the usual ones: "
            + ", ".join(name for name, each in DEFECTS.items() if not each.usual)
            + ".",
        ),
        Field(
            name="mended",
            shape=Items(expected="a list of defects", item=choice(*DEFECTS)),
            default=(),
            doc="Usual defects of real Slurm that there are not: "
            + ", ".join(name for name, each in DEFECTS.items() if each.usual)
            + ".",
        ),
    ),
    build=_build,
)


_WANTS: Final = re.compile(
    r"""\brequire\s*\(?\s*["']([\w.-]+)["']|\b(?:dofile|loadfile)\s*\(?\s*["']/etc/slurm/([^"']+)["']"""
)
_MOST_MODULES: Final = 50


def modules_beside(script: Path, text: str) -> dict[str, str]:
    """Return the modules of a site's script that lie in its folder, by their place in /etc/slurm.

    They are those that it, or one of them, names in a `require` or a `dofile` of /etc/slurm.
    """
    found: dict[str, str] = {}
    texts = [text]
    while texts and len(found) < _MOST_MODULES:
        for module, place in _WANTS.findall(texts.pop()):
            name = place or f"{module.replace('.', '/')}.lua"
            path = script.parent / name
            own = path.name == script.name or name in found
            beside = not name.startswith("/") and ".." not in Path(name).parts
            if not own and beside and path.is_file():
                try:
                    found[name] = read_script(str(path))
                except OSError:
                    # The script says itself what it misses.
                    continue
                texts.append(found[name])
    return found


class ScriptShape:
    """The path of a Lua script on the real disk, from the folder of the scenario on."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def read(self, value: Value, reading: Reading) -> dict[str, str]:
        """Return the text of the script, and of the modules beside it, by name."""
        path, text = read_named(value, reading, f"{self._kind}.lua", read_script)
        return {**modules_beside(Path(path), text), f"{self._kind}.lua": text}

    def schema(self) -> dict[str, Any]:
        """Return a text."""
        return {"type": "string", "minLength": 1}


def check_lua(values: Values, reading: Reading) -> None:
    """Note where Lua is wanted and is not there, and scripts that no plugin would read."""
    conf = values["slurm_conf"]
    wanted = {
        "burst_buffer": ("BurstBufferType", "burst_buffer/lua" in conf.burst_buffer_types),
        "job_submit": ("JobSubmitPlugins", "job_submit/lua" in conf.job_submit_types),
        "cli_filter": ("CliFilterPlugins", "cli_filter/lua" in conf.cli_filter_types),
    }
    for kind, (key, used) in wanted.items():
        place = values.place(f"{kind}_lua") if f"{kind}_lua" in values.places else None
        if used:
            try:
                require_lua()
            except LuaMissingError as error:
                reading.mistake(place or values.place("slurm_conf"), str(error))
                return
        elif place is not None:
            name = f"{kind}/lua" if kind == "burst_buffer" else "lua"
            reading.warn(place, f"nobody reads it: {key} does not name {name}")
