"""Scripts drawn by chance from a grammar, for the machine's bash and for ours.

`python -m tests.script_corpus 0 1000` runs the scripts of these seeds in both, and shows where they
differ: in output, exit status or files; with `short` behind it, the short scripts of these seeds.
`python -m tests.script_corpus record` writes the digests of what bash 5.2 makes of a thousand short
ones, to which tests/test_script_corpus.py holds ours.
"""

from __future__ import annotations

import difflib
import hashlib
import random
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.bash_runs import Came, in_bash, in_ours

GRAMMAR = Path(__file__).with_suffix(".txt")
RECORDED = GRAMMAR.with_suffix(".sums")
_DEEPEST = 4
_SEEDS = 1000
_LINE = 10
_BATCH = 100
_SHOWN = 3
_TIMED_OUT = 124
_BOUND = "it ends here\n"
"""How a script ends in the simulated shell that ends in bash by no bound but the test's."""


def _read(text: str) -> dict[str, list[str]]:
    """Return the forms of each kind."""
    body = text[text.index("[script]") :].replace("\n\n[", "\n[")
    found = re.split(r"^\[(\w+)\]\n", body, flags=re.MULTILINE)[1:]
    kinds = zip(found[::2], found[1::2], strict=True)
    return {kind: forms.removesuffix("\n").split("\n") for kind, forms in kinds}


KINDS = _read(GRAMMAR.read_text(encoding="utf-8"))


def script(seed: int, kind: str = "script") -> str:
    """Return the script of a seed."""
    chance = random.Random(seed)

    def form_of(kind: str, depth: int) -> str:
        if kind == "depth":
            return str(depth)
        if kind == "chosen":
            return str(chance.randrange(1000))
        forms = KINDS["flat" if kind == "command" and depth >= _DEEPEST else kind]
        within = depth + (kind in ("command", "compound", "arithmetic", "quick"))
        pieces = re.split("«([a-z_]+)»", chance.choice(forms))
        return "".join(
            form_of(piece, within) if place % 2 else piece for place, piece in enumerate(pieces)
        )

    return form_of(kind, 0).replace("␤", "\n") + "\n"


def difference(text: str, theirs: Came, ours: Came) -> str:
    """Tell how the two runs of a script differ."""
    told = [text]
    if theirs.status != ours.status:
        told.append(f"status: {theirs.status} in bash, {ours.status} in ours\n")
    pairs = {"output": (theirs.output, ours.output)}
    for name in sorted({*theirs.files, *ours.files}):
        pairs[name] = (theirs.files.get(name, "(not there)"), ours.files.get(name, "(not there)"))
    for name, (one, other) in pairs.items():
        lines = one.split("\n"), other.split("\n")
        told += [f"{line}\n" for line in difflib.unified_diff(*lines, name, name, lineterm="", n=1)]
    return "".join([*told, "errors in bash:\n", theirs.errors, "errors in ours:\n", ours.errors])


def differences(seeds: Sequence[int], kind: str = "script") -> dict[int, str]:
    """Run the scripts of these seeds in both, and tell the differences by seed."""
    texts = [script(seed, kind) for seed in seeds]
    runs = zip(seeds, texts, in_bash(texts), in_ours(texts), strict=True)
    return {
        seed: difference(text, one, other)
        for seed, text, one, other in runs
        if one != other and not (one.status == _TIMED_OUT and other.errors.endswith(_BOUND))
    }


def digest(came: Came) -> str:
    """Return what tells what came of a script from what else could have."""
    told = repr((came.output, came.status, sorted(came.files.items())))
    return hashlib.sha256(told.encode()).hexdigest()[:8]


def short_scripts() -> list[str]:
    """Return the scripts whose digests are recorded."""
    return [script(seed, "short") for seed in range(_SEEDS)]


def recorded() -> list[str]:
    """Return the digests of what bash made of the short scripts."""
    return RECORDED.read_text(encoding="utf-8").split()


def record() -> int:
    """Write the digests of what the machine's bash makes of the short scripts."""
    digests = [digest(came) for came in in_bash(short_scripts())]
    lines = [digests[at : at + _LINE] for at in range(0, len(digests), _LINE)]
    RECORDED.write_text("".join(" ".join(line) + "\n" for line in lines), encoding="utf-8")
    return 0


def main(first: int, end: int, kind: str) -> int:
    """Run the scripts of seeds, and print what differs."""
    found: list[int] = []
    for start in range(first, end, _BATCH):
        for seed, told in differences(range(start, min(end, start + _BATCH)), kind).items():
            found.append(seed)
            if len(found) <= _SHOWN:
                sys.stdout.write(f"=== seed {seed}\n{told}\n")
    seeds = " ".join(map(str, found))
    sys.stdout.write(f"{end - first} scripts, {len(found)} differ: {seeds}\n")
    return 1 if found else 0


if __name__ == "__main__":
    if sys.argv[1:] == ["record"]:
        sys.exit(record())
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), *(sys.argv[3:] or ["script"])))
