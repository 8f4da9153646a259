"""The lines of a batch script that ask for burst buffers, and the text of ``--bb``.

Nothing here looks at a cluster: text comes in, what is asked for goes out, and a wrong line is
refused by its number and its text. What a site allows is checked in `allowed`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NoReturn

import attrs

from simctl.plugin import SlurmError, errno
from simctl.plugins.burst_buffer.sizes import GIB, MOST, parse_size

_DIRECTIVE: Final = re.compile(r"#(DW|BB)(?:\s+(.*))?", re.DOTALL)
_MOST_SHOWN: Final = 400
_SPACE: Final = " \t\r\f\v"
_INTERACTIVE: Final = ("capacity", "access", "access_mode", "pool", "swap", "type")
_JOBDW: Final = {"access": "access_mode"}
"""Words of ``--bb`` that ``#DW jobdw`` spells otherwise."""


def _short(text: str) -> str:
    """Return what a message shows of a text, which may be as long as a script."""
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."


@attrs.frozen(kw_only=True)
class Directive:
    """A line such as ``#DW jobdw capacity=10GiB``; `where` says which one it is, for errors."""

    where: str
    text: str
    prefix: str
    operation: str
    words: tuple[str, ...]

    @property
    def options(self) -> Mapping[str, str]:
        """Return what stands as ``key=value``; the last of a key counts."""
        pairs = (word.partition("=") for word in self.words)
        return {key.casefold(): value for key, equals, value in pairs if equals}

    def refuse(
        self, problem: str, number: int = errno.ESLURM_INVALID_BURST_BUFFER_REQUEST
    ) -> NoReturn:
        """Refuse the line.

        Raises:
            SlurmError: Always; its text names the line.
        """
        raise SlurmError(number, f"{self.where}: {_short(self.text.strip())}: {_short(problem)}")


@attrs.frozen(kw_only=True)
class Persistent:
    """A buffer that outlives its job, to be made."""

    name: str
    size: int
    pool: str
    access: str
    kind: str
    line: Directive


@attrs.frozen(kw_only=True)
class Destroyed:
    """A buffer that outlives its job, to be destroyed."""

    name: str
    hurry: bool
    line: Directive


@attrs.frozen(kw_only=True)
class Request:
    """What a job asks for of burst buffers; sizes are in bytes, not rounded yet.

    Its own buffer and its swap space are in one pool; without a name, in the default one.
    """

    text: str = ""
    size: int = 0
    pool: str = ""
    swap_gib: int = 0
    """For each node of the job."""

    uses: tuple[str, ...] = ()
    creates: tuple[Persistent, ...] = ()
    destroys: tuple[Destroyed, ...] = ()
    lines: tuple[Directive, ...] = ()

    @property
    def session(self) -> bool:
        """Return whether the appliance has anything to do for the job itself."""
        return bool(self.size or self.swap_gib or self.uses)

    def of(self, operation: str) -> Iterator[Directive]:
        """Return the lines of an operation."""
        return (line for line in self.lines if line.operation == operation)


# Lines.


def script_lines(script: str) -> list[Directive]:
    """Return the directives at the head of a script: before the first line that is no comment.

    A line that ends with a backslash goes on in the next, which begins with the same prefix.

    Raises:
        SlurmError: A continued line has no continuation.
    """
    return _directives(_head(script), "line ")


def _head(script: str) -> list[tuple[int, str]]:
    found = []
    for number, line in enumerate(script.split("\n"), 1):
        if line.strip(_SPACE) and not line.startswith("#"):
            break
        found.append((number, line.rstrip(_SPACE)))
    return found


def _directives(lines: list[tuple[int, str]], label: str) -> list[Directive]:
    found: list[Directive] = []
    open_line: Directive | None = None
    for number, line in lines:
        match = _DIRECTIVE.fullmatch(line)
        if open_line is not None:
            if match is None or match[1] != open_line.prefix:
                break
            joined = open_line.text + (match[2] or "").lstrip(_SPACE)
            made = _directive(open_line.where, joined)
        elif match is None:
            continue
        else:
            made = _directive(f"{label}{number}", line)
        open_line = None
        if made.text.endswith("\\"):
            open_line = attrs.evolve(made, text=made.text[:-1])
        elif _is_ours(made):
            found.append(made)
    if open_line is not None:
        open_line.refuse(f"the next line does not go on with #{open_line.prefix}")
    return found


def _directive(where: str, text: str) -> Directive:
    words = text[3:].split()
    return Directive(
        where=where,
        text=text,
        prefix=text[1:3],
        operation=words[0] if words else "",
        words=tuple(words[1:]),
    )


def _is_ours(line: Directive) -> bool:
    """Return whether a line is DataWarp's: ``#BB size=10GiB`` speaks to another plugin."""
    return line.prefix == "DW" or "=" not in line.operation


def text_lines(text: str) -> list[Directive]:
    """Return the directives of a job's `burst_buffer`, which may hold other plugins' lines too.

    Raises:
        SlurmError: A continued line has no continuation.
    """
    return _directives(list(enumerate(text.split("\n"), 1)), "--bb line ")


def translate(spec: str) -> str:
    """Return the directives that a text such as ``capacity=10GiB swap=2GiB`` of --bb stands for.

    Raises:
        SlurmError: ESLURM_INVALID_BURST_BUFFER_REQUEST: something else is in it, or too little.
    """
    values: dict[str, str] = {}
    for word in spec.replace(",", " ").split():
        key, equals, value = word.partition("=")
        if not equals or not value or key.casefold() not in _INTERACTIVE:
            known = ", ".join(f"{each}=" for each in _INTERACTIVE if each != "access_mode")
            _refuse_text(spec, f'"{word}" is none of {known}')
        values[key.casefold()] = value
    lines = []
    if "capacity" in values:
        words = [
            f"{_JOBDW.get(key, key)}={values[key]}"
            for key in ("capacity", "access", "access_mode", "pool", "type")
            if key in values
        ]
        lines.append(" ".join(["#DW jobdw", *words]))
    if "swap" in values:
        pool = f" pool={values['pool']}" if "pool" in values else ""
        lines.append(f"#DW swap {values['swap']}{pool}")
    if not lines:
        _refuse_text(spec, "it has neither capacity= nor swap=")
    return "\n".join(lines)


def _refuse_text(spec: str, problem: str) -> NoReturn:
    raise SlurmError(errno.ESLURM_INVALID_BURST_BUFFER_REQUEST, f"--bb={spec}: {problem}")


# What the lines ask for.


def read_request(lines: Iterable[Directive]) -> Request:
    """Return what directives ask for together; nothing is asked for if there are none.

    Raises:
        SlurmError: A line is wrong, or none of them asks for a buffer.
    """
    request = Request()
    for line in lines:
        read = _OPERATIONS.get((line.prefix, line.operation))
        if read is None:
            known = [
                name
                for (prefix, name), reads in _OPERATIONS.items()
                if prefix == line.prefix and reads is not _not_here
            ]
            line.refuse(f"expected one of {', '.join(known)}")
        request = read(attrs.evolve(request, lines=(*request.lines, line)), line)
    first = next(iter(request.lines), None)
    if first is not None and not (request.session or request.creates or request.destroys):
        first.refuse("no line asks for a burst buffer: #DW jobdw, swap or persistentdw")
    return attrs.evolve(request, text="\n".join(line.text for line in request.lines))


def _jobdw(request: Request, line: Directive) -> Request:
    size = request.size + _capacity(line)
    if size > MOST:
        line.refuse("that is more than there can be", errno.ESLURM_BURST_BUFFER_LIMIT)
    return attrs.evolve(request, size=size, pool=_pool(request, line))


def _pool(request: Request, line: Directive) -> str:
    pool = line.options.get("pool", "")
    if pool and request.pool and pool != request.pool:
        line.refuse(f"the job's space is in pool {request.pool}; it is all in one")
    return pool or request.pool


def _swap(request: Request, line: Directive) -> Request:
    given = [word for word in line.words if "=" not in word]
    if len(given) != 1:
        line.refuse("expected one size, such as 2GiB")
    size = _size(line, given[0])
    if not size or size % GIB:
        line.refuse("expected a size in whole GiB")
    return attrs.evolve(request, swap_gib=request.swap_gib + size // GIB, pool=_pool(request, line))


def _persistentdw(request: Request, line: Directive) -> Request:
    return attrs.evolve(request, uses=(*request.uses, _name(line)))


def _create(request: Request, line: Directive) -> Request:
    options = line.options
    made = Persistent(
        name=_name(line),
        size=_capacity(line),
        pool=options.get("pool", ""),
        access=options.get("access_mode", options.get("access", "")),
        kind=options.get("type", ""),
        line=line,
    )
    if any(each.name == made.name for each in request.creates):
        line.refuse("this job makes it already")
    return attrs.evolve(request, creates=(*request.creates, made))


def _destroy(request: Request, line: Directive) -> Request:
    gone = Destroyed(name=_name(line), hurry="hurry" in line.words, line=line)
    return attrs.evolve(request, destroys=(*request.destroys, gone))


def _only_the_script_sees(request: Request, _: Directive) -> Request:
    return request


def _not_here(_: Request, line: Directive) -> Request:
    line.refuse(
        f"persistent buffers are for #BB {line.operation}", errno.ESLURM_BURST_BUFFER_PERMISSION
    )


_OPAQUE: Final = ("stage_in", "stage_out")
"""What only the appliance understands, which reads the script itself."""

_OPERATIONS: Final = {
    ("DW", "jobdw"): _jobdw,
    ("DW", "stage_in"): _only_the_script_sees,
    ("DW", "stage_out"): _only_the_script_sees,
    ("DW", "swap"): _swap,
    ("DW", "persistentdw"): _persistentdw,
    ("DW", "create_persistent"): _not_here,
    ("DW", "destroy_persistent"): _not_here,
    ("BB", "create_persistent"): _create,
    ("BB", "destroy_persistent"): _destroy,
}


def _capacity(line: Directive) -> int:
    text = line.options.get("capacity")
    if not text:
        line.refuse("it lacks capacity=SIZE")
    size = _size(line, text)
    if not size:
        line.refuse("capacity is 0")
    return size


def _size(line: Directive, text: str) -> int:
    try:
        return parse_size(text)
    except ValueError as error:
        line.refuse(str(error))
    except OverflowError as error:
        line.refuse(str(error), errno.ESLURM_BURST_BUFFER_LIMIT)


def _name(line: Directive) -> str:
    name = line.options.get("name", "")
    if not name:
        line.refuse("it lacks name=NAME")
    if name[0].isdigit():
        line.refuse("a persistent buffer's name does not begin with a digit")
    return name


# What a site allows.


@attrs.frozen(kw_only=True)
class Site:
    """What a request is held against: who submits, what the job is, which pools there are."""

    root: bool = False
    welcome: bool = True
    """The user may use burst buffers: AllowUsers and DenyUsers."""

    persistent: bool = True
    """The user may make and destroy persistent buffers."""

    max_nodes: int | None = None
    """How many nodes the job has at most; None if the user did not say."""

    zero_nodes: bool = False
    pools: tuple[str, ...] | None = None
    """None while they are not known: then any is allowed."""


def allowed(request: Request, site: Site) -> None:
    """Check that a site lets a job have what it asks for.

    Raises:
        SlurmError: ESLURM_BURST_BUFFER_PERMISSION, or ESLURM_INVALID_BURST_BUFFER_REQUEST.
    """
    for line in request.lines[:1]:
        if site.root:
            line.refuse("root has no burst buffers", errno.ESLURM_BURST_BUFFER_PERMISSION)
        if not site.welcome:
            line.refuse(
                "burst_buffer.conf lets this user have none", errno.ESLURM_BURST_BUFFER_PERMISSION
            )
    for line in (*request.of("create_persistent"), *request.of("destroy_persistent")):
        if not site.persistent:
            line.refuse(
                "only operators may, without EnablePersistent among burst_buffer.conf's Flags",
                errno.ESLURM_BURST_BUFFER_PERMISSION,
            )
    for line in (*request.of("jobdw"), *request.of("swap")):
        if site.zero_nodes:
            line.refuse("a job of 0 nodes has no buffer of its own")
    for line in request.of("swap"):
        if not site.max_nodes:
            line.refuse("swap is for each node, and how many there are is not said; give -N")
    for line in request.lines:
        pool = "" if line.operation in _OPAQUE else line.options.get("pool", "")
        if pool and site.pools is not None and pool not in site.pools:
            line.refuse(f"there is no pool {pool}; known: {', '.join(site.pools) or 'none'}")
