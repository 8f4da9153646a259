"""Tools that make, copy, list and remove files."""

from __future__ import annotations

import posixpath
import re

from simctl.stepd.scripts.patterns import fits
from simctl.stepd.scripts.tools.tool import Options, Tool, ToolMistake, joined

_DIRECTORY = "755"


async def mkdir(tool: Tool, options: Options) -> int:
    """Make directories."""
    if not options.operands:
        raise ToolMistake("mkdir: missing operand")
    status = 0
    for path in options.operands:
        wanted = [path]
        if "p" in options:
            pieces = path.rstrip("/").split("/")
            wanted = ["/".join(pieces[: end + 1]) for end in range(len(pieces)) if pieces[end]]
        for each in wanted:
            info = tool.host.info(each)
            if info is not None and info.is_dir and "p" in options:
                continue
            mode = options.get("m", _DIRECTORY)
            if not re.fullmatch("[0-7]{1,4}", mode):
                raise ToolMistake(f"mkdir: invalid mode '{mode}'")
            if wrong := tool.host.change("mkdir", each, mode):
                await tool.err(f"mkdir: cannot create directory '{each}': {wrong}")
                status = 1
                break
            if "v" in options:
                await tool.out(f"mkdir: created directory '{each}'\n")
    return status


async def rmdir(tool: Tool, options: Options) -> int:
    """Remove directories with nothing in them."""
    status = 0
    for path in options.operands:
        info = tool.host.info(path)
        wrong = "Not a directory" if info is not None and not info.is_dir else ""
        if wrong := wrong or tool.host.change("remove", path):
            await tool.err(f"rmdir: failed to remove '{path}': {wrong}")
            status = 1
    return status


async def rm(tool: Tool, options: Options) -> int:
    """Remove files, and with -r what is below directories."""
    recursive = "r" in options or "R" in options
    status = 0
    if not options.operands and "f" not in options:
        raise ToolMistake("rm: missing operand")
    for path in options.operands:
        if posixpath.basename(path.rstrip("/")) in (".", ".."):
            await tool.err(f"rm: refusing to remove '.' or '..' directory: skipping '{path}'")
            status = 1
        elif tool.host.absolute(path) == "/":
            await tool.err("rm: it is dangerous to operate recursively on '/'")
            status = 1
        elif wrong := await _remove(tool, path, options, recursive=recursive):
            await tool.err(f"rm: cannot remove '{path}': {wrong}")
            status = 1
    return status


async def _remove(tool: Tool, path: str, options: Options, *, recursive: bool) -> str:
    """Remove what is at a path; return what stood in the way."""
    info = tool.host.info(path)
    if info is None:
        return "" if "f" in options else "No such file or directory"
    if info.is_dir and not recursive and not ("d" in options and not tool.host.names(path)):
        return "Is a directory"
    if info.is_dir:
        for name in tool.host.names(path):
            if wrong := await _remove(tool, f"{path.rstrip('/')}/{name}", options, recursive=True):
                return wrong
    wrong = tool.host.change("remove", path)
    if not wrong and "v" in options:
        await tool.out(f"removed {'directory ' * info.is_dir}'{path}'\n")
    return wrong


async def _copy(tool: Tool, source: str, target: str, options: Options, *, recursive: bool) -> str:
    """Copy a file or a directory; return what stood in the way."""
    info = tool.host.info(source)
    if info is None:
        return f"cannot stat '{source}': No such file or directory"
    if not info.is_dir:
        return await _copy_file(tool, source, target, options)
    if not recursive:
        return f"-r not specified; omitting directory '{source}'"
    there = tool.host.info(target)
    if there is not None and not there.is_dir:
        return f"cannot overwrite non-directory '{target}' with directory '{source}'"
    if there is None and (wrong := tool.host.change("mkdir", target, f"{info.mode & 0o777:o}")):
        return f"cannot create directory '{target}': {wrong}"
    for name in tool.host.names(source):
        below = (f"{source.rstrip('/')}/{name}", f"{target.rstrip('/')}/{name}")
        if wrong := await _copy(tool, *below, options, recursive=True):
            return wrong
    return ""


async def _copy_file(tool: Tool, source: str, target: str, options: Options) -> str:
    """Copy one file; return what stood in the way."""
    info = tool.host.info(source)
    if info is None or ("n" in options and tool.host.info(target) is not None):
        return ""
    if tool.host.absolute(source) == tool.host.absolute(target):
        return f"'{source}' and '{target}' are the same file"
    opened = tool.host.open(source, "read")
    if isinstance(opened, str):
        return f"cannot open '{source}' for reading: {opened}"
    written = (
        "Not a directory"
        if target.endswith("/")
        else tool.host.open(target, "write", info.mode & 0o777)
    )
    if isinstance(written, str):
        return f"cannot create regular file '{target}': {written}"
    while chunk := await tool.host.read(opened):
        if wrong := await tool.host.write(written, chunk):
            return f"error writing '{target}': {wrong}"
    if "v" in options:
        await tool.out(f"'{source}' -> '{target}'\n")
    return ""


def _places(tool: Tool, options: Options) -> tuple[tuple[str, str], ...]:
    """Return each source with where it goes."""
    operands = list(options.operands)
    if "t" in options:
        folder = options.get("t")
        return tuple((each, f"{folder.rstrip('/')}/{_base(each)}") for each in operands)
    if len(operands) < 2:  # noqa: PLR2004 - from and to
        if not operands:
            raise ToolMistake(f"{tool.name}: missing file operand")
        raise ToolMistake(f"{tool.name}: missing destination file operand after '{operands[0]}'")
    target = operands.pop()
    info = tool.host.info(target)
    if info is not None and info.is_dir and "T" not in options:
        return tuple((each, f"{target.rstrip('/') or ''}/{_base(each)}") for each in operands)
    if len(operands) > 1:
        raise ToolMistake(f"{tool.name}: target '{target}': No such file or directory")
    return ((operands[0], target),)


def _base(path: str) -> str:
    return posixpath.basename(path.rstrip("/")) or "/"


async def cp(tool: Tool, options: Options) -> int:
    """Copy files, and with -r directories."""
    recursive = any(letter in options for letter in "rRa")
    status = 0
    for source, target in _places(tool, options):
        if recursive and _lies_within(tool, source, target):
            await tool.err(f"cp: cannot copy a directory, '{source}', into itself, '{target}'")
            status = 1
            continue
        if wrong := await _copy(tool, source, target, options, recursive=recursive):
            await tool.err(f"cp: {wrong}")
            status = 1
    return status


def _lies_within(tool: Tool, source: str, target: str) -> bool:
    """Return whether a target is below what would be copied or moved there."""
    info, there = tool.host.info(source), tool.host.absolute(source).rstrip("/") + "/"
    return info is not None and info.is_dir and tool.host.absolute(target).startswith(there)


async def mv(tool: Tool, options: Options) -> int:
    """Give files another place or name."""
    status = 0
    for source, target in _places(tool, options):
        wrong = await _move(tool, source, target, options)
        if wrong:
            await tool.err(f"mv: {wrong}")
            status = 1
    return status


async def _move(tool: Tool, source: str, target: str, options: Options) -> str:
    info, there = tool.host.info(source), tool.host.info(target)
    if info is None:
        return f"cannot stat '{source}': No such file or directory"
    if there is not None and "n" in options:
        return ""
    if tool.host.absolute(source) == tool.host.absolute(target):
        return f"'{source}' and '{target}' are the same file"
    if not info.is_dir:
        if there is not None and there.is_dir:
            return f"cannot overwrite directory '{target}' with non-directory"
        wrong = "Not a directory" if target.endswith("/") else ""
        if wrong := wrong or tool.host.change("rename", source, target):
            return f"cannot move '{source}' to '{target}': {wrong}"
        return ""
    if _lies_within(tool, source, target):
        return f"cannot move '{source}' to a subdirectory of itself, '{target}'"
    if there is not None and (not there.is_dir or tool.host.names(target)):
        return f"cannot move '{source}' to '{target}': Directory not empty"
    wrong = await _copy(tool, source, target, Options(given=(), operands=()), recursive=True)
    return wrong or await _remove(tool, source, Options(given=(), operands=()), recursive=True)


def check_ln(options: Options) -> None:
    """Refuse all links: simulated disks have none."""
    raise ToolMistake("ln: links are not simulated; cp, or cp -r, makes a copy")


async def ln(tool: Tool, options: Options) -> int:
    """Make no link, and say so."""
    check_ln(options)
    return 1


async def touch(tool: Tool, options: Options) -> int:
    """Make files that are not there; of others nothing changes, as files know no times."""
    status = 0
    for path in options.operands:
        if "c" in options or tool.host.info(path) is not None:
            continue
        if wrong := tool.host.change("touch", path):
            await tool.err(f"touch: cannot touch '{path}': {wrong}")
            status = 1
    return status


async def ls(tool: Tool, options: Options) -> int:
    """Write the names in directories, a line each."""
    status = 0
    files: list[str] = []
    folders: list[str] = []
    for path in options.operands or (".",):
        info = tool.host.info(path)
        if info is None:
            await tool.err(f"ls: cannot access '{path}': No such file or directory")
            status = 2
        elif info.is_dir and "d" not in options:
            folders.append(path)
        else:
            files.append(path)
    turned = "r" in options
    files.sort(reverse=turned)
    await tool.out(joined([_marked(tool, each, each, options) for each in files]))
    titled = len(options.operands) > 1 or "R" in options
    for place, path in enumerate(sorted(folders, reverse=turned)):
        await tool.out("\n" * bool(files or place) if titled else "")
        await _list(tool, path, options, titled=titled)
    return status


async def _list(tool: Tool, path: str, options: Options, *, titled: bool) -> None:
    shows = "a" in options or "A" in options
    names = [name for name in tool.host.names(path) if shows or not name.startswith(".")]
    if "a" in options:
        names = [".", "..", *names]
    names.sort(reverse="r" in options)
    base = path.rstrip("/")
    head = [f"{path}:"] if titled else []
    await tool.out(
        joined([*head, *(_marked(tool, f"{base}/{name}", name, options) for name in names)])
    )
    if "R" not in options:
        return
    for name in names:
        info = tool.host.info(f"{base}/{name}")
        if info is not None and info.is_dir and name not in (".", ".."):
            await tool.out("\n")
            await _list(tool, f"{base}/{name}", options, titled=True)


def _marked(tool: Tool, path: str, shown: str, options: Options) -> str:
    if "p" not in options and "F" not in options:
        return shown
    info = tool.host.info(path)
    if info is not None and info.is_dir:
        return shown + "/"
    return shown + "*" * ("F" in options and info is not None and bool(info.mode & 0o111))


async def basename(tool: Tool, options: Options) -> int:
    """Write the last name of paths."""
    operands = list(options.operands)
    if not operands:
        raise ToolMistake("basename: missing operand")
    suffix = options.get("s")
    if "a" not in options and "s" not in options:
        if len(operands) > 2:  # noqa: PLR2004 - a name and a suffix
            raise ToolMistake(f"basename: extra operand '{operands[2]}'")
        suffix = operands[1] if operands[1:] else ""
        operands = operands[:1]
    for path in operands:
        name = _base(path)
        if suffix and name.endswith(suffix) and name != suffix:
            name = name.removesuffix(suffix)
        await tool.out(name + "\n")
    return 0


async def dirname(tool: Tool, options: Options) -> int:
    """Write paths without their last name."""
    if not options.operands:
        raise ToolMistake("dirname: missing operand")
    for path in options.operands:
        bare = path.rstrip("/")
        if not bare:
            folder = "/" if path.startswith("/") else "."
        else:
            before = bare.rpartition("/")
            folder = (before[0].rstrip("/") or "/") if before[1] else "."
        await tool.out(folder + "\n")
    return 0


async def realpath(tool: Tool, options: Options) -> int:
    """Write paths from the root on; there are no links."""
    status = 0
    for path in options.operands:
        where = tool.host.absolute(path)
        parent = tool.host.info(posixpath.dirname(where))
        strict = "e" in options and tool.host.info(where) is None
        if strict or (parent is None and "m" not in options):
            if tool.name == "realpath" and "q" not in options:
                await tool.err(f"realpath: {path}: No such file or directory")
            status = 1
        else:
            await tool.out(where + "\n")
    return status


_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


async def mktemp(tool: Tool, options: Options) -> int:
    """Make a file, or a directory, whose name was not there before."""
    template = options.operands[0] if options.operands else "tmp.XXXXXXXXXX"
    found = re.search(r"X{3,}(?=[^X]*$)", template)
    if not found:
        raise ToolMistake(f"mktemp: too few X's in template '{template}'")
    folder = options.get("p") if "p" in options else ""
    if not folder and ("t" in options or "p" in options or not options.operands):
        folder = tool.env.get("TMPDIR", "") or "/tmp"
    seed = int(tool.host.facts()["SEED"])
    for _ in range(100):
        seed = (seed * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        value, letters = seed >> 16, ""
        for _ in found[0]:
            value, place = divmod(value, len(_LETTERS))
            letters += _LETTERS[place]
        name = template[: found.start()] + letters + template[found.end() :] + options.get("S")
        path = f"{folder.rstrip('/')}/{name}" if folder else name
        if tool.host.info(path) is not None:
            continue
        if "u" not in options:
            what, mode = ("mkdir", "700") if "d" in options else ("touch", "600")
            if wrong := tool.host.change(what, path, mode):
                kind = "directory" if "d" in options else "file"
                if "q" not in options:
                    await tool.err(
                        f"mktemp: failed to create {kind} via template '{template}': {wrong}"
                    )
                return 1
        await tool.out(path + "\n")
        return 0
    raise ToolMistake("mktemp: no name is left")


async def chmod(tool: Tool, options: Options) -> int:
    """Change who may do what with files."""
    if len(options.operands) < 2:  # noqa: PLR2004 - a mode and a file
        raise ToolMistake("chmod: missing operand")
    mode, *paths = options.operands
    status = 0
    for path in paths:
        status = max(status, await _chmod(tool, mode, path, options))
    return status


async def _chmod(tool: Tool, mode: str, path: str, options: Options) -> int:
    info = tool.host.info(path)
    if info is None:
        await tool.err(f"chmod: cannot access '{path}': No such file or directory")
        return 1
    changed = _mode(mode, info.mode, is_dir=info.is_dir)
    if wrong := tool.host.change("chmod", path, f"{changed:o}"):
        await tool.err(f"chmod: changing permissions of '{path}': {wrong}")
        return 1
    if "R" in options and info.is_dir:
        for name in tool.host.names(path):
            await _chmod(tool, mode, f"{path.rstrip('/')}/{name}", options)
    return 0


_CLAUSE = re.compile(r"([ugoa]*)([-+=])([rwxX]*)")
_SHIFTS = {"u": 6, "g": 3, "o": 0}
_RIGHTS = {"r": 4, "w": 2, "x": 1}


def _mode(text: str, old: int, *, is_dir: bool) -> int:
    """Return a mode after a change that is written as 755 or as u+x."""
    if re.fullmatch("[0-7]{1,4}", text):
        return int(text, 8)
    mode = old
    for piece in text.split(","):
        found = _CLAUSE.fullmatch(piece)
        if not found:
            raise ToolMistake(f"chmod: invalid mode: '{text}'")
        who = "ugo" if not found[1] or "a" in found[1] else found[1]
        bits = sum(_RIGHTS[letter] for letter in set(found[3]) - {"X"})
        if "X" in found[3] and (is_dir or old & 0o111):
            bits |= 1
        for letter in who:
            own = bits if found[1] else bits & ~(0o022 >> _SHIFTS[letter] & 7)
            if found[2] == "=":
                mode &= ~(7 << _SHIFTS[letter])
            if found[2] == "-":
                mode &= ~(own << _SHIFTS[letter])
            else:
                mode |= own << _SHIFTS[letter]
    return mode


async def find(tool: Tool, options: Options) -> int:
    """Write the paths below directories that fit."""
    words = list(options.operands)
    starts: list[str] = []
    while words and not words[0].startswith(("-", "(", "!")):
        starts.append(words.pop(0))
    wanted = _Wanted(words)
    status = 0
    for start in starts or ["."]:
        if tool.host.info(start) is None:
            await tool.err(f"find: '{start}': No such file or directory")
            status = 1
        else:
            await _find(tool, start, 0, wanted)
    if wanted.found:
        ended = await _execute(tool, [*wanted.command[:-1], *wanted.found])
        status = 1 if ended else status
    return status


async def _execute(tool: Tool, words: list[str]) -> int:
    """Run a command of -exec, and return its status."""
    return await tool.host.run(tuple(words), tool.env, tool.redirects)


class _Wanted:
    """What find looks for."""

    def __init__(self, words: list[str]) -> None:
        self.tests: list[tuple[str, str, bool]] = []
        self.most, self.least = 1 << 30, 0
        self.end = "\n"
        self.prints = self.deletes = self.gathers = False
        self.command: list[str] = []
        self.found: list[str] = []  # what a command that ends with + is to have together
        negated = False
        rest = list(reversed(words))
        while rest:
            word = rest.pop()
            if word in ("-name", "-type", "-iname", "-path", "-maxdepth", "-mindepth"):
                if not rest:
                    raise ToolMistake(f"find: missing argument to '{word}'")
                value = rest.pop()
                if word == "-type" and value not in ("f", "d"):
                    raise ToolMistake(f"find: -type {value} is not simulated; f and d are")
                if word.endswith("depth"):
                    self._depth(word, value)
                else:
                    self._test(word, value, negated=negated)
                    negated = False
            elif word in ("!", "-not"):
                negated = not negated
            elif word == "-empty":
                self._test(word, "", negated=negated)
                negated = False
            elif word in ("-print", "-print0"):
                self.prints = True
                self.end = "\0" if word == "-print0" else "\n"
            elif word == "-delete":
                self.deletes = True
            elif word == "-exec":
                self._take_command(rest)
            elif word not in ("-a", "-and"):
                raise ToolMistake(f"find: {word} is not simulated")

    def _take_command(self, rest: list[str]) -> None:
        while rest and not (rest[-1] == ";" or (rest[-1] == "+" and self.command[-1:] == ["{}"])):
            self.command.append(rest.pop())
        if not rest or not self.command:
            raise ToolMistake("find: missing argument to `-exec'")
        self.gathers = rest.pop() == "+"
        if self.gathers and any("{}" in word for word in self.command[:-1]):
            raise ToolMistake("find: Only one instance of {} is supported with -exec ... +")
        if rest:
            raise ToolMistake("find: an expression behind -exec is not simulated")

    def _test(self, word: str, value: str, *, negated: bool) -> None:
        if self.prints or self.deletes:
            raise ToolMistake(f"find: {word} behind -print or -delete is not simulated")
        self.tests.append((word, value, negated))

    def _depth(self, word: str, value: str) -> None:
        if not value.isdecimal():
            raise ToolMistake(f"find: {word}: {value}: a number was expected")
        if word == "-maxdepth":
            self.most = int(value)
        else:
            self.least = int(value)

    def fits(self, tool: Tool, path: str, *, is_dir: bool) -> bool:
        """Return whether what is at a path fits."""
        return all(_holds(tool, path, test, value, is_dir) != no for test, value, no in self.tests)


def check_find(options: Options) -> None:
    """Refuse what find cannot look for here."""
    words = list(options.operands)
    while words and not words[0].startswith(("-", "(", "!")):
        words.pop(0)
    _Wanted(words)


def _holds(tool: Tool, path: str, test: str, value: str, is_dir: bool) -> bool:
    match test:
        case "-type":
            return is_dir == (value == "d")
        case "-name":
            return fits(_base(path), value, extended=False)
        case "-iname":
            return fits(_base(path).lower(), value.lower(), extended=False)
        case "-path":
            return fits(path, value, extended=False)
    info = tool.host.info(path)
    return info is not None and (not tool.host.names(path) if is_dir else info.size == 0)


async def _find(tool: Tool, path: str, depth: int, wanted: _Wanted) -> None:
    info = tool.host.info(path)
    if info is None:
        return
    shows = depth >= wanted.least and wanted.fits(tool, path, is_dir=info.is_dir)
    if shows and (wanted.prints or not (wanted.deletes or wanted.command)):
        await tool.out(path + wanted.end)
    if shows and wanted.gathers:
        wanted.found.append(path)
    elif shows and wanted.command:
        await _execute(tool, [word.replace("{}", path) for word in wanted.command])
    if info.is_dir and depth < wanted.most:
        for name in tool.host.names(path):
            await _find(tool, f"{path.rstrip('/')}/{name}", depth + 1, wanted)
    if shows and wanted.deletes and path != ".":
        tool.host.change("remove", path)


async def cmp(tool: Tool, options: Options) -> int:
    """Return whether two files are alike."""
    if len(options.operands) != 2:  # noqa: PLR2004 - two files
        raise ToolMistake("cmp: two files are needed", 2)
    one, other = options.operands
    left, right = await tool.text(one, status=2), await tool.text(other, status=2)
    if left == right:
        return 0
    if "s" in options:
        return 1
    same = next(
        (place for place, pair in enumerate(zip(left, right, strict=False)) if pair[0] != pair[1]),
        -1,
    )
    if same < 0:
        shorter = one if len(left) < len(right) else other
        await tool.err(f"cmp: EOF on {shorter} after byte {min(len(left), len(right))}")
        return 1
    line = left.count("\n", 0, same) + 1
    await tool.out(f"{one} {other} differ: byte {same + 1}, line {line}\n")
    return 1


async def diff(tool: Tool, options: Options) -> int:
    """Tell, with -q or by the status alone, whether two files differ."""
    if len(options.operands) != 2:  # noqa: PLR2004 - two files
        raise ToolMistake("diff: two files are needed", 2)
    one, other = options.operands
    left, right = await tool.text(one, status=2), await tool.text(other, status=2)
    if left == right:
        return 0
    if "q" not in options:
        raise ToolMistake("diff: what differs is not told by the simulation; use -q or cmp", 2)
    await tool.out(f"Files {one} and {other} differ\n")
    return 1
