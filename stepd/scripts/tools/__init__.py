"""The tools that scripts lean on, as stand-ins over simulated files: texts in, texts out.

`TOOLS` has them by name. Each does exactly what its program does with the options it knows, and
refuses all others; `refusal` tells so of a command line that is written out, for checks.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from functools import cache
from typing import Any

import attrs

from simctl.stepd.scripts.script import UNKNOWN
from simctl.stepd.scripts.tools.tool import (
    Options,
    Spec,
    Tool,
    ToolMain,
    ToolMistake,
    read_options,
)

__all__ = ["TOOLS", "Tool", "ToolMain", "ToolMistake", "is_tool", "refusal"]


@cache
def _found(place: str) -> Any:
    """Return a function of this room by `MODULE.FUNCTION`."""
    module, _, name = place.rpartition(".")
    return getattr(importlib.import_module(f"{__name__}.{module}"), name)


@attrs.frozen(kw_only=True)
class _Known:
    """A tool: its options, what it does, and what else of a command line can be checked."""

    spec: Spec
    main: str
    """`MODULE.FUNCTION` of this room, imported when a script first runs the tool."""

    check: str = ""


def _long(**names: str) -> dict[str, str]:
    return {name.replace("_", "-"): letter for name, letter in names.items()}


_KNOWN: dict[str, _Known] = {
    "cat": _Known(spec=Spec(flags="nbsu", long=_long(number="n")), main="text.cat"),
    "head": _Known(
        spec=Spec(
            flags="qv", valued="nc", numeric="n", long=_long(lines="n", bytes="c", quiet="q")
        ),
        main="text.head",
    ),
    "tail": _Known(
        spec=Spec(flags="q", valued="nc", numeric="n", long=_long(lines="n", bytes="c", quiet="q")),
        main="text.tail",
    ),
    "wc": _Known(
        spec=Spec(flags="lwcm", long=_long(lines="l", words="w", bytes="c", chars="m")),
        main="text.wc",
    ),
    "cut": _Known(
        spec=Spec(
            only_long="CO",
            flags="sC",
            valued="bcfdO",
            long=_long(
                delimiter="d",
                fields="f",
                characters="c",
                bytes="b",
                only_delimited="s",
                output_delimiter="O",
                complement="C",
            ),
        ),
        main="text.cut",
    ),
    "tr": _Known(
        spec=Spec(flags="cCdst", long=_long(delete="d", squeeze_repeats="s")), main="text.tr"
    ),
    "sort": _Known(
        spec=Spec(
            flags="nrufbghVcs",
            valued="ktoS",
            status=2,
            long=_long(
                numeric_sort="n",
                general_numeric_sort="g",
                reverse="r",
                unique="u",
                key="k",
                field_separator="t",
                output="o",
                ignore_case="f",
                human_numeric_sort="h",
                version_sort="V",
                stable="s",
            ),
        ),
        main="text.sort",
    ),
    "uniq": _Known(
        spec=Spec(flags="cdui", valued="f", long=_long(count="c", repeated="d", unique="u")),
        main="text.uniq",
    ),
    "tee": _Known(spec=Spec(flags="ai", long=_long(append="a")), main="text.tee"),
    "paste": _Known(
        spec=Spec(flags="s", valued="d", long=_long(delimiters="d")), main="text.paste"
    ),
    "tac": _Known(spec=Spec(), main="text.tac"),
    "rev": _Known(spec=Spec(), main="text.rev"),
    "nl": _Known(spec=Spec(valued="b"), main="text.nl"),
    "sed": _Known(
        spec=Spec(
            flags="nErsui",
            valued="ef",
            long=_long(quiet="n", silent="n", regexp_extended="E", expression="e", in_place="i"),
        ),
        main="sed.sed",
        check="sed.check",
    ),
    "awk": _Known(
        spec=Spec(valued="Fvf", stops=True, status=2), main="awk.awk.awk", check="awk.awk.check"
    ),
    "seq": _Known(
        spec=Spec(flags="w", valued="sf", negatives=True, long=_long(separator="s")),
        main="system.seq",
    ),
    "date": _Known(
        spec=Spec(flags="uRI", valued="d", long=_long(date="d", utc="u", iso_8601="I")),
        main="system.date",
    ),
    "hostname": _Known(
        spec=Spec(flags="sfiI", long=_long(short="s", ip_address="i", all_ip_addresses="I")),
        main="system.hostname",
    ),
    "nproc": _Known(
        spec=Spec(flags="a", valued="i", long=_long(all="a", ignore="i")), main="system.nproc"
    ),
    "whoami": _Known(spec=Spec(), main="system.whoami"),
    "id": _Known(spec=Spec(flags="ugn"), main="system.identity"),
    "getent": _Known(spec=Spec(), main="system.getent"),
    "uname": _Known(spec=Spec(flags="snmo"), main="system.uname"),
    "which": _Known(spec=Spec(flags="s"), main="system.which"),
    "printenv": _Known(spec=Spec(), main="system.printenv"),
    "env": _Known(
        spec=Spec(flags="i", valued="u", stops=True, status=125, long=_long(unset="u")),
        main="system.env",
    ),
    "nohup": _Known(spec=Spec(stops=True, status=125), main="system.nohup"),
    "nice": _Known(
        spec=Spec(valued="n", numeric="n", stops=True, status=125), main="system.plainly"
    ),
    "stdbuf": _Known(spec=Spec(valued="ioe", stops=True, status=125), main="system.plainly"),
    "setsid": _Known(spec=Spec(flags="w", stops=True), main="system.plainly"),
    "timeout": _Known(
        spec=Spec(
            flags="pfv",
            valued="sk",
            stops=True,
            status=125,
            long=_long(signal="s", kill_after="k", preserve_status="p", foreground="f"),
        ),
        main="system.timeout",
    ),
    "xargs": _Known(
        spec=Spec(
            flags="r0t",
            valued="nILPd",
            stops=True,
            long=_long(
                no_run_if_empty="r",
                null="0",
                max_args="n",
                max_procs="P",
                delimiter="d",
            ),
        ),
        main="system.xargs",
    ),
    "yes": _Known(spec=Spec(), main="system.yes"),
    "basename": _Known(
        spec=Spec(flags="a", valued="s", long=_long(suffix="s")), main="files.basename"
    ),
    "dirname": _Known(spec=Spec(), main="files.dirname"),
    "realpath": _Known(spec=Spec(flags="emqs"), main="files.realpath"),
    "readlink": _Known(spec=Spec(flags="fem"), main="files.realpath"),
    "mkdir": _Known(
        spec=Spec(flags="pv", valued="m", long=_long(parents="p", mode="m", verbose="v")),
        main="files.mkdir",
    ),
    "rmdir": _Known(spec=Spec(), main="files.rmdir"),
    "rm": _Known(
        spec=Spec(flags="rRfdv", long=_long(recursive="r", force="f", verbose="v")), main="files.rm"
    ),
    "cp": _Known(
        spec=Spec(
            # Simulated disks have no links, which -L, -P, -H and -d are about.
            flags="rRafnpuvTLPHd",
            valued="t",
            long=_long(recursive="r", archive="a", force="f", no_clobber="n", preserve="p")
            | _long(dereference="L", no_dereference="P"),
        ),
        main="files.cp",
    ),
    "mv": _Known(
        spec=Spec(flags="fnvT", valued="t", long=_long(force="f", no_clobber="n")), main="files.mv"
    ),
    "ln": _Known(spec=Spec(flags="sfnrvT"), main="files.ln", check="files.check_ln"),
    "touch": _Known(spec=Spec(flags="c", long=_long(no_create="c")), main="files.touch"),
    "ls": _Known(
        spec=Spec(flags="1aAdrRpF", long=_long(all="a", almost_all="A", reverse="r")),
        main="files.ls",
    ),
    "mktemp": _Known(
        spec=Spec(
            only_long="S",
            flags="dqut",
            valued="pS",
            long=_long(directory="d", suffix="S", tmpdir="p", dry_run="u"),
        ),
        main="files.mktemp",
    ),
    "chmod": _Known(spec=Spec(flags="Rf"), main="files.chmod"),
    "cmp": _Known(spec=Spec(flags="s", long=_long(quiet="s", silent="s")), main="files.cmp"),
    "diff": _Known(spec=Spec(flags="q", long=_long(brief="q"), status=2), main="files.diff"),
}
_GREP = Spec(
    flags="EFGivcqlLnohHxwsrR",
    valued="efmABC",
    status=2,
    long=_long(
        extended_regexp="E",
        fixed_strings="F",
        ignore_case="i",
        invert_match="v",
        count="c",
        quiet="q",
        silent="q",
        files_with_matches="l",
        line_number="n",
        only_matching="o",
        no_filename="h",
        with_filename="H",
        line_regexp="x",
        word_regexp="w",
        recursive="r",
        regexp="e",
        file="f",
        max_count="m",
        after_context="A",
        before_context="B",
        context="C",
        no_messages="s",
    ),
)
for _name in ("grep", "egrep", "fgrep"):
    _KNOWN[_name] = _Known(spec=_GREP, main="grep.grep", check="grep.check")


def _options(name: str, words: Sequence[str]) -> Options:
    """Read the options of a tool."""
    if name in ("expr", "yes", "find"):
        return Options(given=(), operands=tuple(words))
    if name == "sed":
        words = [_in_place(word) for word in words]
    if name == "chmod":
        # A mode such as -x is no option.
        words = [
            f"a{word}" if word[:1] == "-" and word[1:].strip("rwxX") == "" else word
            for word in words
        ]
    given = read_options(_KNOWN[name].spec, name, words)
    implied = {"egrep": "E", "fgrep": "F"}.get(name)
    return attrs.evolve(given, given=((implied, ""), *given.given)) if implied else given


def _in_place(word: str) -> str:
    """Tell of a suffix behind sed's -i, which is refused, as an option of its own would be."""
    return word if not word.startswith("-i") or len(word) == len("-i") else f"-{word[2:]}"


_KNOWN["find"] = _Known(spec=Spec(), main="files.find", check="files.check_find")
_KNOWN["expr"] = _Known(spec=Spec(), main="system.expr")


def _main(name: str) -> ToolMain:
    known = _KNOWN[name]

    async def main(tool: Tool) -> int:
        try:
            return int(await _found(known.main)(tool, _options(name, tool.argv[1:])))
        except ToolMistake as mistake:
            await tool.err(str(mistake))
            return mistake.status

    return main


def _lazy(place: str) -> ToolMain:
    async def main(tool: Tool) -> int:
        return int(await _found(place)(tool))

    return main


TOOLS: dict[str, ToolMain] = {
    **{name: _main(name) for name in _KNOWN},
    "bash": _lazy("shells.bash"),
    "[": _lazy("shells.bracket"),
    "test": _lazy("shells.bracket"),
    "printf": _lazy("shells.printf"),
    "pwd": _lazy("shells.pwd"),
}
"""What does the work of each tool, by its name."""

_BINARIES = ("/bin/", "/usr/bin/", "/usr/local/bin/", "/sbin/", "/usr/sbin/")


def is_tool(name: str) -> bool:
    """Return whether a program is called by the name of a tool, or by the path of one."""
    base = name.rsplit("/", 1)[-1]
    return base in TOOLS and (base == name or name.startswith(_BINARIES))


def refusal(argv: Sequence[str]) -> str:
    """Return why a tool will not do what a command line asks, or "".

    Of words that are not written out (`UNKNOWN`) nothing is said.
    """
    name = argv[0].rsplit("/", 1)[-1]
    known = _KNOWN.get(name)
    if known is None:
        return ""
    if name == "find":
        argv = [_ANY if word == UNKNOWN else word for word in argv]
    try:
        options = _options(name, argv[1:])
        program = (*options.all("e"), *options.operands[:1])
        if known.check and UNKNOWN not in program:
            _found(known.check)(options)
    except ToolMistake as mistake:
        told = str(mistake)
        return f"{told}{_ADVICE.format(name)}" if "is not simulated" in told else told
    return ""


_ADVICE = "; a program `{}` that `programs:` describes takes the tool's place"


_ANY = "0"
"""A word that is right at any place of find's."""
