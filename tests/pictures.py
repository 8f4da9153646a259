"""The pictures of docs/viewing.md, taken in a headless Chromium: `make pictures` writes them.

They are looked at before they are committed. Each has a palette of its own, so that all of them
together are small.
"""

import struct
import sys
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final

from simctl import cli
from tests.browser import Browser, Tab, browser
from tests.test_view_live import live

FOLDER: Final = Path(__file__).parent.parent / "docs" / "pictures"

_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
_COLOURS: Final = 256
_BROKEN: Final = """\
nodes: [{name: "n[1-2]", cpus: 4}]
partitions: [{name: debug, nodes: "n[1-2]", default: true}]
users: {alice: 1001}
files: {hello.sh: "#!/bin/sh\\n#SBATCH -N2 -n2\\nsrun ./app"}
programs: {./app: {runs: 30s}}
timeline: [{at: 0s, as: alice, run: sbatch hello.sh}]
expect:
- order: [switch_p_job_attach, switch_p_job_init]
  within: step=1.0
  each: node
"""


def smaller(png: bytes) -> bytes:
    """Return a picture with a palette: of more colours than one holds the rarest become others."""
    width, height, pixels = _pixels(png)
    counted = Counter(pixels)
    palette = _palette(counted)
    numbers = {colour: number for number, colour in enumerate(palette)}
    for colour in counted:
        if colour not in numbers:
            numbers[colour] = numbers[min(palette, key=lambda one: _distance(one, colour))]
    rows = (pixels[start : start + width] for start in range(0, len(pixels), width))
    data = b"".join(b"\0" + bytes(numbers[each] for each in row) for row in rows)
    chunks = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
        (b"PLTE", b"".join(palette)),
        (b"IDAT", zlib.compress(data, 9)),
        (b"IEND", b""),
    ]
    return _SIGNATURE + b"".join(
        struct.pack(">I", len(told)) + kind + told + struct.pack(">I", zlib.crc32(kind + told))
        for kind, told in chunks
    )


def _palette(counted: Counter[bytes]) -> list[bytes]:
    """Return the colours to keep: of those that look alike the most frequent, the bright before."""
    alike: dict[tuple[int, ...], bytes] = {}
    weights: Counter[bytes] = Counter()
    for colour, count in counted.most_common():
        first = alike.setdefault(tuple(part // 12 for part in colour), colour)
        weights[first] += count * (1 + (max(colour) - min(colour)) ** 2 // 64)
    return [colour for colour, _ in weights.most_common(_COLOURS)]


def _distance(one: bytes, other: bytes) -> int:
    return sum((a - b) ** 2 for a, b in zip(one, other, strict=True))


def _pixels(png: bytes) -> tuple[int, int, list[bytes]]:
    """Return width, height and the colours of a picture as Chromium writes them: RGB or RGBA."""
    place, packed, head = len(_SIGNATURE), b"", b""
    while place < len(png):
        (length,) = struct.unpack_from(">I", png, place)
        kind, told = png[place + 4 : place + 8], png[place + 8 : place + 8 + length]
        head = told if kind == b"IHDR" else head
        packed += told if kind == b"IDAT" else b""
        place += length + 12
    width, height, depth, colours, *_, interlaced = struct.unpack(">IIBBBBB", head)
    assert (depth, interlaced) == (8, 0)
    size = {2: 3, 6: 4}[colours]
    lines, stride, data = zlib.decompress(packed), width * size, bytearray()
    before = bytearray(stride)
    for y in range(height):
        start = y * (stride + 1)
        before = _unfiltered(lines[start], lines[start + 1 : start + 1 + stride], before, size)
        data += before
    return width, height, [bytes(data[at : at + 3]) for at in range(0, len(data), size)]


def _unfiltered(kind: int, line: bytes, above: bytearray, size: int) -> bytearray:
    """Undo a filter of PNG: a byte is told by what it differs from its neighbours in."""
    made = bytearray(line)
    for at in range(len(made)):
        left = made[at - size] if at >= size else 0
        corner = above[at - size] if at >= size else 0
        if kind == 1:
            by = left
        elif kind == 2:
            by = above[at]
        elif kind == 3:
            by = (left + above[at]) // 2
        elif kind == 4:
            guess = left + above[at] - corner
            near = ((abs(guess - each), each) for each in (left, above[at], corner))
            by = min(near, key=lambda one: one[0])[1]
        else:
            break
        made[at] = made[at] + by & 255
    return made


def _page(chromium: Browser, page: Path, *acts: str) -> Tab:
    tab = chromium.tab()
    tab.size(1200, 640)
    tab.theme("light")
    tab.open(page.as_uri())
    for act in acts:
        tab.run(act)
    return tab


def _make(*words: str) -> None:
    if cli.main([*words, "--force"]) not in (cli.OK, cli.NOT_HELD):
        raise SystemExit(f"simctl {' '.join(words)} failed")


def _call(chromium: Browser, folder: Path) -> Tab:
    _make("view", "two_nodes", "-o", str(folder / "page.html"))
    pick = "simctl.model.events.find((e) => e.name === 'switch_p_job_attach').seq"
    return _page(chromium, folder / "page.html", f"simctl.select({pick}, true)")


def _broken(chromium: Browser, folder: Path) -> Tab:
    (folder / "mine.yaml").write_text(_BROKEN)
    _make("view", str(folder / "mine.yaml"), "-o", str(folder / "broken.html"))
    return _page(chromium, folder / "broken.html", "simctl.showMark(0)")


def _nodes(chromium: Browser, folder: Path) -> Tab:
    log = folder / "log.swf"
    log.write_text("".join(_jobs()))
    for kind in ("builtin", "backfill"):
        words = ("run", "--swf", str(log), "--nodes", "32", "--scheduler", kind)
        _make(*words, "--db", str(folder / f"{kind}.db"))
    runs = [str(folder / f"{kind}.db") for kind in ("builtin", "backfill")]
    _make("view", "--gantt", *runs, "-o", str(folder / "both.html"))
    tab = _page(chromium, folder / "both.html")
    tab.size(1200, 900)
    return tab


def _jobs() -> list[str]:
    """Return a log in which wide jobs make narrow ones wait, unless those are filled in."""
    found, chance = [], 7
    for number in range(1, 161):
        chance = (chance * 1103515245 + 12345) % (1 << 31)
        nodes, ran = (1, 2, 4, 8, 16, 32)[chance // 7 % 6], 300 + chance // 11 % 5400
        words = (number, number * 240, -1, ran, nodes, -1, -1, nodes, ran * 2, -1, 1)
        found.append(" ".join(map(str, (*words, number % 7 + 1, 1, 1, 1, 1, -1, -1))) + "\n")
    return found


def _session(chromium: Browser, folder: Path) -> Tab:
    with live(folder, "two_nodes") as session:
        tab = chromium.tab()
        tab.size(1200, 760)
        tab.theme("light")
        tab.open(session.url)
        tab.until("live.now && live.waits")
        for line in ("run 1s", "squeue", "until switch_p_job_fini"):
            tab.run(f"live.do('{line}')")
            said = f"document.getElementById('said').textContent.includes('> {line}')"
            tab.until(f"live.waits && {said}")
        _keep(tab, "session")
        return tab


PICTURES: Final[dict[str, Callable[[Browser, Path], Tab]]] = {
    "call": _call,
    "broken": _broken,
    "nodes": _nodes,
    "session": _session,
}


def _keep(tab: Tab, name: str) -> None:
    tab.run("new Promise((done) => setTimeout(done, 300))")
    path = FOLDER / f"{name}.png"
    tab.picture(path)
    path.write_bytes(smaller(path.read_bytes()))


def main() -> int:
    """Write all pictures, or those that are named."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, browser(Path(folder) / "profile") as chromium:
        for name in sys.argv[1:] or PICTURES:
            tab = PICTURES[name](chromium, Path(folder))
            if name != "session":
                _keep(tab, name)
            size = (FOLDER / f"{name}.png").stat().st_size
            sys.stdout.write(f"docs/pictures/{name}.png: {size} bytes\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
