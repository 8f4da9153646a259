"""Jobs that differ in one thing, and more of them made of what a script compares fields with."""

import itertools
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Final

import attrs

from simctl.testing.plugin_check.lua.source import Source

_DAY_MIN: Final = 1440
_MOST_VALUES: Final = 24
_NAME: Final = re.compile(r"[A-Za-z][\w.-]{0,30}", re.ASCII)
_PATTERN: Final = re.compile(r"[%^$]|\(\.?[-+*]?\)")
_HUGE: Final = 0xFFFFFFF0
_MOST_GPUS: Final = 64
_MOST_WISHES: Final = 300


@attrs.frozen(kw_only=True)
class Job:
    """A submission, or a change of the first job: who does it, with which options."""

    name: str
    """What it is called in reports."""

    user: str = "alice"
    command: str = "sbatch"
    options: tuple[tuple[str, str], ...] = ()
    """Options in their order; an empty value is an option without one."""

    change: str = ""
    """What `scontrol` is told instead of a submission."""

    def with_option(self, name: str, value: str) -> "Job":
        """Return the job with one option more, or another value of it."""
        options = dict(self.options)
        options[name] = value
        tasks = options.get("-n", value)
        if name == "-N" and value.isdigit() and tasks.isdigit() and int(tasks) < int(value):
            # So many nodes are asked for where there are tasks for them alone.
            options["-n"] = value
        shown = f"{name}={value}" if name.startswith("--") and value else f"{name} {value}".strip()
        return attrs.evolve(self, name=f"{self.name}, {shown}", options=tuple(options.items()))

    def without(self, name: str) -> "Job":
        """Return the job without an option."""
        options = tuple(each for each in self.options if each[0] != name)
        return attrs.evolve(self, name=f"{self.name}, no {name}", options=options)

    @property
    def line(self) -> str:
        """Return the command line."""
        if self.change:
            return f"scontrol {self.change}"
        words = [self.command]
        for name, value in self.options:
            if name.startswith("--"):
                words.append(f"{name}={value}" if value else name)
            else:
                words += [name, value] if value else [name]
        quoted = [shlex.quote(each) for each in words]
        end = {"sbatch": "job.sh", "srun": "true", "salloc": "true"}[self.command]
        return " ".join([*quoted, end])


def _job(name: str, *options: str, command: str = "sbatch", user: str = "alice") -> Job:
    pairs = []
    for option in options:
        first, _, second = option.partition("=" if option.startswith("--") else " ")
        pairs.append((first, second))
    return Job(name=name, command=command, user=user, options=tuple(dict(pairs).items()))


_USUAL: Final = ("-N 1", "-n 2", "-t 10", "-A physics", "-p debug", "-J usual")
HELD: Final = (
    _job("a usual job, held", *_USUAL, "-H"),
    _job("a bare job, held", "-H"),
    _job("a job of root, held", "-H", user="root"),
)
"""What the zoo begins with: changes are tried on the first of them that is taken in."""

LET_PASS: Final = _job("held for changes", f"-J {Source.LET_PASS}", "-H")
"""A job that no script is shown: changes are tried on it where all of HELD are refused."""

ZOO: Final = (
    _job("a usual batch job", *_USUAL),
    _job("a job without any option"),
    _job("no time limit", "-N 1", "-n 2", "-A physics", "-p debug"),
    _job("no account", "-N 1", "-n 2", "-t 10", "-p debug"),
    _job("no partition", "-N 1", "-n 2", "-t 10", "-A physics"),
    _job("a job array", *_USUAL, "-a 0-3"),
    _job("srun", "-n 1", command="srun"),
    _job("srun with all", *_USUAL, command="srun"),
    _job("salloc", "-n 1", command="salloc"),
    _job("salloc with all", *_USUAL, command="salloc"),
    _job("a long job", *_USUAL, "-t 365-0"),
    _job("a wrong account", *_USUAL, "-A nosuch"),
    _job("a wrong partition", *_USUAL, "-p nosuch"),
    _job("two partitions", *_USUAL, "-p debug,batch"),
    _job("huge memory", *_USUAL, "--mem=4000000"),
    _job("memory for each cpu", *_USUAL, "-c 2", "--mem-per-cpu=2000"),
    _job("no memory limit", *_USUAL, "--mem=0"),
    _job("gpus", *_USUAL, "--gres=gpu:2"),
    _job("gpus of a type", *_USUAL, "--gres=gpu:tesla:2"),
    _job("gpus without a count", *_USUAL, "--gres=gpu"),
    _job("no gpus by count", *_USUAL, "--gres=gpu:0"),
    _job("gpus by --gpus", *_USUAL, "--gpus=2"),
    _job("gpus by --gpus-per-node", *_USUAL, "--gpus-per-node=1"),
    _job("many nodes", *_USUAL, "-N 500", "-n 500"),
    _job("few to many nodes", *_USUAL, "-N 1-4"),
    _job("many tasks", *_USUAL, "-n 100000"),
    _job("tasks for each node", *_USUAL, "--ntasks-per-node=4"),
    _job("a quality of service", *_USUAL, "-q high"),
    _job("a reservation", *_USUAL, "--reservation=maint"),
    _job("a feature", *_USUAL, "-C fast"),
    _job("exclusive nodes", *_USUAL, "--exclusive"),
    _job("shared nodes", *_USUAL, "--oversubscribe"),
    _job("nodes by name", *_USUAL, "-w n1"),
    _job("nodes left out", *_USUAL, "-x n1"),
    _job("begins later", *_USUAL, "--begin=now+1hour"),
    _job("a dependency", *_USUAL, "--dependency=afterany:1"),
    _job("a nice job", *_USUAL, "--nice=100"),
    _job("a comment", *_USUAL, "--comment=x y"),
    _job("not to be requeued", *_USUAL, "--no-requeue"),
    _job("a name with odd characters", *_USUAL, "-J %d %s '\""),
    _job("mail", *_USUAL, "--mail-type=END", "--mail-user=alice@example.org"),
    _job("no environment", *_USUAL, "--export=NONE"),
    _job("a job of root", *_USUAL, user="root"),
    _job("a job of another user", *_USUAL, user="bob"),
    _job("will it run", *_USUAL, "--test-only"),
    _job("a working directory elsewhere", *_USUAL, "-D /tmp"),
    _job("output elsewhere", *_USUAL, "-o /tmp/out.txt", "-e /tmp/err.txt"),
)

_CHANGES: Final = (
    ("its time limit", "timelimit=20"),
    ("a long time limit", "timelimit=365-0"),
    ("its partition", "partition=batch"),
    ("a wrong partition", "partition=nosuch"),
    ("its account", "account=other"),
    ("its name", "name=new"),
    ("its comment", "comment=new"),
    ("its priority", "priority=7"),
    ("its number of nodes", "numnodes=2"),
)


def changes(job_id: int) -> tuple[Job, ...]:
    """Return changes of a job by its owner and by root, and a release of it."""
    found = [
        Job(
            name=f"scontrol update {pair} by {user}",
            user=user,
            change=f"update jobid={job_id} {pair}",
        )
        for user in ("alice", "root")
        for _, pair in _CHANGES
    ]
    found.append(Job(name="scontrol hold by root", user="root", change=f"hold {job_id}"))
    found.append(Job(name="scontrol release by root", user="root", change=f"release {job_id}"))
    return tuple(found)


_OF_FIELD: Final = {
    "partition": "-p",
    "account": "-A",
    "qos": "-q",
    "features": "-C",
    "name": "-J",
    "reservation": "--reservation",
    "licenses": "-L",
    "comment": "--comment",
    "wckey": "--wckey",
    "gres": "--gres",
    "tres_per_node": "--gres",
    "tres_per_job": "--gpus",
    "tres_per_task": "--gpus-per-task",
    "work_dir": "-D",
    "std_out": "-o",
    "std_err": "-e",
    "array_inx": "-a",
    "dependency": "--dependency",
    "mail_user": "--mail-user",
    "time_limit": "-t",
    "min_nodes": "-N",
    "max_nodes": "-N",
    "num_tasks": "-n",
    "min_cpus": "-n",
    "max_cpus": "-n",
    "cpus_per_task": "-c",
    "ntasks_per_node": "--ntasks-per-node",
    "pn_min_memory": "--mem",
    "min_mem_per_node": "--mem",
    "min_mem_per_cpu": "--mem-per-cpu",
    "pn_min_cpus": "--mincpus",
    "time_min": "--time-min",
    "constraint": "-C",
    "cpus-per-task": "-c",
    "gpus": "--gpus",
    "job-name": "-J",
    "mem": "--mem",
    "nodes": "-N",
    "ntasks": "-n",
    "time": "-t",
    "nice": "--nice",
}
_USUALLY: Final = {
    "array_inx": ("-a", "0-3"),
    "dependency": ("--dependency", "afterany:1"),
    "features": ("-C", "fast"),
    "gres": ("--gres", "gpu:2"),
    "qos": ("-q", "high"),
    "reservation": ("--reservation", "maint"),
    "tres_per_job": ("--gpus", "2"),
    "tres_per_node": ("--gres", "gpu:2"),
    "tres_per_task": ("--gpus-per-task", "1"),
}
"""What is asked for where a script looks whether a field is there."""

_NUMERIC: Final = frozenset(
    """
    time_limit min_nodes max_nodes num_tasks min_cpus max_cpus cpus_per_task ntasks_per_node
    pn_min_memory min_mem_per_node min_mem_per_cpu pn_min_cpus time_min nice
    """.split()
)
_NAMES: Final = ("partition", "account", "qos", "features", "reservation", "name", "comment")


@attrs.frozen
class Wish:
    """An option's value that a script seems to look for; `weight` is less the surer it is."""

    option: str
    value: str
    weight: int
    line: int = 0
    """The line of the script that it is from."""


@cache
def wishes(source: Source) -> tuple[Wish, ...]:
    """Return the options' values that a script's branches seem to be about, the surest first."""
    found: dict[tuple[str, str], Wish] = {}
    for wish in (*_compared(source), *_near(source), *_of_zoo(), *_anywhere(source)):
        key = (wish.option, wish.value)
        if key not in found or found[key].weight > wish.weight:
            found[key] = wish
    return tuple(sorted(found.values(), key=lambda each: each.weight))[:_MOST_WISHES]


def together(source: Source) -> tuple[tuple[tuple[str, str], ...], ...]:
    """Return the options that the conditions on one line of a script seem to look for at once."""
    by_line: dict[int, dict[str, list[str]]] = {}
    for wish in _near(source):
        by_line.setdefault(wish.line, {}).setdefault(wish.option, []).append(wish.value)
    found = {
        tuple((option, values[at % len(values)]) for option, values in options.items()): None
        for options in by_line.values()
        for at in range(max(map(len, options.values())))
    }
    return tuple(each for each in found if len(each) > 1)


HOLE: Final = "simctl-hole"
"""A program that runs inside slurmctld where a script makes a line of shell of a job's texts."""

_QUOTED: Final = (f"x$({HOLE})", f"x';{HOLE};'")
"""Texts that run it where they are not quoted or between double quotes, and between single ones."""


def shell_texts(source: Source) -> tuple[Job, ...]:
    """Return jobs whose texts hold a command, if the script runs lines of shell and reads these."""
    if not any(each.text in ("popen", "execute") for each in source.tokens):
        return ()
    fields = {use.field for use in source.uses}
    return tuple(
        ZOO[0].with_option(_OF_FIELD[field], f"/tmp/{text}" if field in _PATHS else text)
        for field in (*_NAMES, "licenses", "wckey", "mail_user", *_PATHS)
        if field in fields
        for text in _QUOTED
    )


_PATHS: Final = ("work_dir", "std_out", "std_err")


def _of_zoo() -> Iterator[Wish]:
    """Yield the options in which jobs of the zoo differ from the usual one."""
    usual = dict(ZOO[0].options)
    for job in ZOO:
        for option, value in job.options:
            if usual.get(option) != value:
                yield Wish(option, value, 2)


def _compared(source: Source) -> Iterator[Wish]:
    for use in source.uses:
        if use.field in _OF_FIELD:
            for comparison in source.comparisons(use):
                if comparison.value is not None:
                    yield from _for(use.field, comparison.value, 0, use.line)

    for field, value, line in source.of_aliases():
        if field in _OF_FIELD:
            yield from _for(field, value, 0, line)


def _near(source: Source) -> Iterator[Wish]:
    """Yield what is written on the line of a field, such as the pattern that it is matched with."""
    by_line: dict[int, list[str | float]] = {}
    for before, token in itertools.pairwise(source.tokens):
        if token.value is not None and before.text != "[":
            by_line.setdefault(token.line, []).append(token.value)
        elif token.kind == "name" and token.text in source.constants:
            by_line.setdefault(token.line, []).append(source.constants[token.text])
    for use in source.uses:
        if use.field in ("shared", "oversubscribe"):
            yield Wish("--exclusive", "", 1, use.line)
        if use.field in _USUALLY:
            yield Wish(*_USUALLY[use.field], 1, use.line)
        if use.field in _OF_FIELD:
            for value in by_line.get(use.line, ()):
                yield from _for(use.field, value, 1, use.line)
    for field, text, line in source.searched():
        if field in _OF_FIELD:
            yield from _for(field, text, 1, line)


def _anywhere(source: Source) -> Iterator[Wish]:
    """Yield names and numbers from anywhere in a script, for the fields that it reads."""
    fields = {use.field for use in source.uses}
    texts = [
        str(token.value)
        for token in source.tokens
        if token.kind == "text" and _NAME.fullmatch(str(token.value))
    ]
    words = source.tokens
    texts += [
        words[at].text
        for at in range(1, len(words) - 1)
        if words[at].kind == "name"
        and words[at + 1].text == "="
        and words[at - 1].text in ("{", ",")
    ]
    numbers = [token.value for token in source.tokens if token.kind == "number"]
    for field in _NAMES:
        if field in fields:
            for text in dict.fromkeys(texts):
                yield from _for(field, text, 3)
    if "licenses" in fields:
        for text in dict.fromkeys(texts):
            yield Wish("-L", f"{text}:2", 3)
    if fields & {"gres", "tres_per_node", "tres_per_job", "tres_per_task"}:
        for number in dict.fromkeys(numbers):
            for count in (int(number or 0), int(number or 0) + 1):
                if 0 < count <= _MOST_GPUS:
                    yield Wish("--gres", f"gpu:{count}", 3)
    for field in sorted(_NUMERIC & fields):
        for number in dict.fromkeys(numbers):
            yield from _for(field, number or 0, 4)


def _for(field: str, value: str | float, weight: int, line: int = 0) -> Iterator[Wish]:
    option = _OF_FIELD[field]
    if field in _NUMERIC:
        if isinstance(value, str):
            return
        for number in (int(value) - 1, int(value), int(value) + 1):
            if 0 < number < _HUGE:
                yield Wish(option, str(number), weight, line)
        return
    text = _plain(value if isinstance(value, str) else f"{value:.14g}")
    if not text or len(text) > 200 or "\n" in text:  # noqa: PLR2004 - no option
        return
    if field.startswith(("gres", "tres_per_")) and not text.startswith("gpu"):
        text = text.removeprefix("gres:").removeprefix("gres/")
        if not text.startswith("gpu"):
            return
    if option.startswith("--gpus"):
        text = text.removeprefix("gpu").removeprefix(":")
    if option in ("-D", "-o", "-e") and not text.startswith("/"):
        return
    yield Wish(option, text, weight, line)


def _plain(text: str) -> str:
    """Return a text that a simple pattern of Lua's matches."""
    text = text.removeprefix("^").removesuffix("$")
    text = re.sub(r"\[\^[^\]]*\][-+*]?|%[aswlu][-+*]?|\.[-+*]", "x", text)
    text = re.sub(r"%d[-+*]?", "1", text)
    text = re.sub(r"%([^\w\s])", r"\1", text)
    return re.sub(r"[()\[\]]", "", text)


_NO_PARTITION: Final = "default"
"""What slurm.conf takes for the defaults of partitions."""


def partitions(source: Source) -> tuple[str, ...]:
    """Return the partitions that a trial cluster has to have for a script."""
    named = [
        part
        for wish in wishes(source)
        if wish.option == "-p"
        for part in wish.value.split(",")
        if _NAME.fullmatch(part) and part.casefold() != _NO_PARTITION
    ]
    return tuple(dict.fromkeys(("debug", "batch", *named)))[:_MOST_VALUES]


def features(source: Source) -> tuple[str, ...]:
    """Return the features that a trial cluster's nodes have to have for a script."""
    named = [
        part
        for wish in wishes(source)
        if wish.option == "-C"
        for part in re.split(r"[,&|]", wish.value)
        if _NAME.fullmatch(part)
    ]
    return tuple(dict.fromkeys(("fast", *named)))[:_MOST_VALUES]


def users(source: Source) -> dict[str, int]:
    """Return the users of a trial cluster: two, and those whose numbers or names a script has."""
    found = {"alice": 1001, "bob": 1002}
    numbers = [
        int(value)
        for value in (token.value for token in source.tokens if token.kind == "number")
        if isinstance(value, float) and 500 <= value < 100_000 and value == int(value)  # noqa: PLR2004
    ]
    if any(use.field == "user_id" for use in source.uses) or "submit_uid" in source.text:
        for number in list(dict.fromkeys(numbers))[:6]:
            if number not in found.values():
                found[f"user{number}"] = number
    return found


def mutants(
    bases: Sequence[Job],
    wished: Iterable[Wish],
    sets: Iterable[tuple[tuple[str, str], ...]] = (),
) -> list[Job]:
    """Return jobs that differ from some in options that a script seems to look for, or lack one.

    One option of *wished*, or all of one of *sets*. The later of *bases*, with the surest options,
    come first.
    """
    found: list[tuple[int, Job]] = []
    wished, sets = tuple(wished), tuple(sets)
    for age, base in enumerate(reversed(bases)):
        found += [
            (age, base.without(option))
            for option, _ in base.options
            if option in ("-t", "-A", "-p", "-N")
        ]
        found += [
            (age + 4 * wish.weight, base.with_option(wish.option, wish.value))
            for wish in wished
            if (wish.option, wish.value) not in base.options
        ]
        for options in sets:
            job = base
            for option, value in options:
                job = job.with_option(option, value)
            found.append((age + 4, job))
    return [job for _, job in sorted(found, key=lambda each: each[0])]
