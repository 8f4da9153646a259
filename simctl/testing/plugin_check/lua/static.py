"""Mistakes that show in a script as it is written, reached or not."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

import attrs

from simctl.testing.plugin_check.lua import named, rules
from simctl.testing.plugin_check.lua.lines import asks_slurmctld
from simctl.testing.plugin_check.lua.scopes import out_of_block, undefined
from simctl.testing.plugin_check.lua.source import Comparison, Function, Source, Use
from simctl.testing.plugin_check.lua.tokens import Token

_NO_VALS: Final = {
    "slurm.NO_VAL16": 16,
    "slurm.NO_VAL": 32,
    "slurm.NO_VAL64": 64,
    "slurm.NO_VAL8": 8,
}
_NUMBERS: Final = {65534.0: 16, 4294967294.0: 32, 18446744073709551614.0: 64}
_NIL_NUMBERS: Final = frozenset({"min_mem_per_node", "min_mem_per_cpu"})
_TRES: Final = frozenset(
    {"gres", "tres_per_job", "tres_per_node", "tres_per_socket", "tres_per_task"}
)
_RUNS: Final = frozenset({"execute", "popen"})


@attrs.frozen(kw_only=True)
class Finding:
    """A mistake: of which rule, on which line, what; `function` is the one that it is in."""

    rule: str
    line: int
    what: str
    function: str


@attrs.frozen(kw_only=True)
class Names:
    """What the script's own names stand for: records of jobs, partitions, numbers of users."""

    desc: frozenset[str]
    job: frozenset[str]
    parts: frozenset[str]
    part: frozenset[str]
    """Each with the function that it is so in, behind a blank."""

    info: frozenset[str]
    uid: frozenset[str]


_SUBMIT: Final = (
    ("slurm_job_submit", ("desc", "parts", "uid")),
    ("slurm_job_modify", ("desc", "job", "parts", "uid")),
)


def names_of(source: Source, kind: str) -> Names:
    """Return what names of a script stand for, by the parameters of its functions."""
    found: dict[str, set[str]] = {
        each: set() for each in ("desc", "job", "part", "parts", "info", "uid")
    }
    if kind == "job_submit":
        for name, roles in _SUBMIT:
            function = source.function(name)
            for parameter, role in zip(
                function.parameters if function else (), roles, strict=False
            ):
                found[role].add(parameter)
        found["part"] |= {" ".join(each) for each in _walked(source, found["parts"])}
        found["desc"] |= set(_aliases(source, found["desc"]))
    if kind == "burst_buffer":
        for function in source.functions:
            if function.name.startswith("slurm_bb_"):
                found["info"] |= {each for each in function.parameters if "info" in each.lower()}
    return Names(**{name: frozenset(each) for name, each in found.items()})


def _walked(source: Source, tables: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield names of values in ``for name, part in pairs(part_list)``, with their functions."""
    words = source.tokens
    for at in range(5, len(words) - 1):
        shape = [each.text for each in words[at - 5 : at]]
        if words[at].text in tables and shape[0::2] == [",", "in", "("] and shape[3] == "pairs":
            around = source.around(at)
            yield shape[1], around.name if around is not None else ""


def _aliases(source: Source, tables: Collection[str]) -> Iterator[str]:
    """Yield names that are set to a record: ``local job = job_desc``."""
    words = source.tokens
    for at in range(2, len(words) - 1):
        alone = words[at].text in tables and words[at + 1].text not in (".", "[", ":")
        if alone and words[at - 1].text == "=" and words[at - 2].kind == "name":
            yield words[at - 2].text


def findings(source: Source, kind: str, versions: Collection[str]) -> Iterator[Finding]:
    """Yield what is wrong for a script of a kind under some versions of Slurm."""
    names = names_of(source, kind)
    yield from _unknown_names(source, kind, versions)
    yield from _unknown_fields(source, names)
    yield from _undefined(source)
    if kind == "job_submit":
        for use in source.uses:
            if use.owner in names.desc:
                yield from _compared(source, source.comparisons(use))
        yield from _compared(
            source, (each for each in source.alias_comparisons if each.use.owner in names.desc)
        )
        yield from _uids(source, names)
        yield from _last_alone(source)
        yield from _empty_walks(source, names)
        yield from _truths_compared(source)
    if kind == "burst_buffer":
        yield from _text_arguments(source)
        yield from _lost_globals(source)
    yield from _commands(source, kind)
    yield from _bare_unpack(source)
    yield from _statuses(source)
    yield from _closings(source)


def _unknown_names(source: Source, kind: str, versions: Collection[str]) -> Iterator[Finding]:
    set_here = {use.field for use in source.uses if use.owner == "slurm" and use.set}
    for use in source.uses:
        if use.owner != "slurm" or use.guarded or use.field in set_here:
            continue
        lacking = [each for each in versions if use.field not in named.offered(kind, each)]
        if lacking:
            where = "" if len(lacking) == len(versions) else f" in Slurm {', '.join(lacking)}"
            close = "" if where else _close(use.field, named.offered(kind, max(versions)))
            yield Finding(
                rule=rules.UNKNOWN_CONSTANT,
                line=use.line,
                what=f"there is no slurm.{use.field}{where}{close}",
                function=use.function,
            )


def _meant(field: str, known: Collection[str]) -> str:
    if known is named.JOB_DESC and field == "job_id":
        return ": a submission has no number yet"
    meant = named.MEANT.get(field, "") if known is named.JOB_DESC else ""
    return f"; did you mean {meant}?" if meant else _close(field, known)


def _close(name: str, known: Collection[str]) -> str:
    import difflib  # noqa: PLC0415 - only where something is wrong

    found = difflib.get_close_matches(name, sorted({*known} - {name}), n=1, cutoff=0.8)
    return f"; did you mean {found[0]}?" if found else ""


def _unknown_fields(source: Source, names: Names) -> Iterator[Finding]:
    groups = (
        ("job_desc", names.desc, named.JOB_DESC),
        ("the job's record", names.job - names.desc, named.JOB_RECORD),
        ("a partition", names.part, named.PARTITION),
        ("job_info", names.info, named.JOB_INFO),
    )
    for what, owners, known in groups:
        told: set[str] = set()
        for use in source.uses:
            is_one = use.owner in owners or f"{use.owner} {use.function}" in owners
            if (
                is_one
                and use.field not in known | told
                and not (use.call or has_other(source, use, known))
            ):
                told.add(use.field)
                yield Finding(
                    rule=rules.UNKNOWN_FIELD,
                    line=use.line,
                    what=f"{what} has no field {use.field}{_meant(use.field, known)}",
                    function=use.function,
                )


def has_other(source: Source, use: Use, known: Collection[str]) -> bool:
    """Return whether ``or`` joins a field with a known one of the record: of some other version."""
    words = [each.text for each in source.tokens]
    after, before = words[use.at + 1 : use.at + 5], words[max(0, use.at - 6) : use.at - 2]
    return (after[:3] == ["or", use.owner, "."] and after[3:] != [] and after[3] in known) or (
        before[:2] == [use.owner, "."] and before[3:] == ["or"] and before[2] in known
    )


_OLD: Final = frozenset(
    "_get_job_field _set_job_field _get_job_rec_field _get_job_req_field _set_job_req_field "
    "_get_part_rec_field".split()
)
"""What scripts had to fetch fields with, before records became tables of their own."""


def _undefined(source: Source) -> Iterator[Finding]:
    """Yield names that are nil, and once that a script is of an old Slurm."""
    defined = {each.name for each in source.functions}
    old = [each for each in source.tokens if each.text in _OLD - defined]
    if old:
        what = f"calls {old[0].text}, as scripts of an old Slurm had to; there is no such function"
        yield Finding(
            rule=rules.OLD_INTERFACE,
            line=old[0].line,
            what=what,
            function=source.function_at(old[0].line),
        )
    for name, line, function in undefined(source):
        if name not in _OLD:
            what = f"{name} is set nowhere that {function or 'the main chunk'} sees"
            yield Finding(rule=rules.UNDEFINED, line=line, what=what, function=function)
    for name, line, function, ended in out_of_block(source):
        what = f"{name} is local to a block that has ended (line {ended}): here it is nil"
        yield Finding(rule=rules.UNDEFINED, line=line, what=what, function=function)


def arguments(words: Sequence[Token]) -> int:
    """Return how many arguments a call has, whose bracket comes first; 1 for none."""
    depth = commas = 0
    for word in words:
        depth += (word.text in ("(", "{", "[")) - (word.text in (")", "}", "]"))
        commas += depth == 1 and word.text == "," and word.kind == "sign"
        if depth <= 0:
            break
    return commas + 1


def formats_a_text(source: Source, line: int) -> bool:
    """Return whether slurm.log_X on a line has one argument, and that is no literal."""
    words = source.tokens
    return any(
        use.owner == "slurm"
        and use.field.startswith("log_")
        and use.line == line
        and words[use.at + 1].text == "("
        and arguments(words[use.at + 1 :]) == 1
        and not (words[use.at + 2].kind == "text" and words[use.at + 3].text == ")")
        for use in source.uses
    )


def _last_alone(source: Source) -> Iterator[Finding]:
    """Yield calls with several arguments of what takes the last of them for its text."""
    words = source.tokens
    for use in source.uses:
        if use.owner != "slurm" or use.field not in ("user_msg", "error"):
            continue
        if arguments(words[use.at + 1 :]) > 1:
            yield Finding(
                rule=rules.LOST_ARGUMENT,
                line=use.line,
                what=f"slurm.{use.field} tells the last of its arguments alone",
                function=use.function,
            )


def _compared(source: Source, comparisons: Iterable[Comparison]) -> Iterator[Finding]:
    for each in comparisons:
        field, rule, what = each.use.field, "", ""
        bits = next((size for size, fields in named.BITS.items() if field in fields), 0)
        sized = _NO_VALS.get(each.other) or _NUMBERS.get(_number(each))
        if field == "environment" and _asks_nil(each):
            rule, what = rules.NEVER_NIL, "environment is a table for every command, never nil"
        elif field in named.TEXTS:
            if sized:
                rule, what = rules.WRONG_NO_VAL, f"{field} is a text or nil, never {each.other}"
            elif isinstance(each.value, float):
                rule, what = rules.NEVER_EQUAL, f"{field} is a text, compared with {each.other}"
            elif field in _TRES and _lacks_sign(each.value):
                rule = rules.NEVER_EQUAL
                what = f"{field} begins with gres: (gres/ from Slurm 24.05 on), never {each.other}"
        elif field in named.ZEROS and (sized or each.other == "nil"):
            rule, what = rules.WRONG_NO_VAL, f"{field} is 0 if nobody asked, never {each.other}"
        elif field in _NIL_NUMBERS and sized and not _knows_nil(source, field):
            rule, what = rules.WRONG_NO_VAL, f"{field} is nil if nobody asked, never {each.other}"
        elif bits and sized and sized != bits and not _is_compared_with(source, field, bits):
            want = {16: "slurm.NO_VAL16", 32: "slurm.NO_VAL", 64: "slurm.NO_VAL64"}[bits]
            rule = rules.WRONG_NO_VAL
            what = f"{field} has {bits} bits: it is {want} if nobody asked, never {each.other}"
        elif field in named.NUMBERS and isinstance(each.value, str):
            rule, what = rules.NEVER_EQUAL, f"{field} is a number, compared with {each.other}"
        elif (
            bits
            and _asks_nil(each)
            and not _knows_no_val(source, field)
            and not _or_larger(source, each)
        ):
            asked = "taken as a truth" if not each.sign else "compared with nil"
            rule, what = rules.NEVER_NIL, f"{field} is never nil, and is {asked}"
        if rule:
            yield Finding(rule=rule, line=each.use.line, what=what, function=each.use.function)


def _lacks_sign(value: str | float | None) -> bool:
    return isinstance(value, str) and value != "" and not value.startswith("gres")


def _number(comparison: Comparison) -> float:
    return comparison.value if isinstance(comparison.value, float) else -1.0


def _asks_nil(comparison: Comparison) -> bool:
    return not comparison.sign or comparison.other == "nil"


def _or_larger(source: Source, comparison: Comparison) -> bool:
    """Return whether a condition goes on as ``== nil or FIELD >``, which NO_VAL fulfils as well."""
    if comparison.sign != "==":
        return False
    use, name = comparison.use, source.tokens[comparison.use.at].text
    words = [each.text for each in source.tokens[use.at + 3 : use.at + 12] if each.text not in "()"]
    again = ["or", use.owner, ".", use.field] if name == use.field else ["or", name]
    return words[: len(again)] == again and words[len(again) : len(again) + 1] in ([">"], [">="])


def _all_of(source: Source, field: str) -> Iterator[Comparison]:
    for use in source.uses:
        if use.field == field:
            yield from source.comparisons(use)
    yield from (each for each in source.loose_comparisons if each.use.field == field)


def _is_compared_with(source: Source, field: str, bits: int) -> bool:
    return any(
        (_NO_VALS.get(each.other) or _NUMBERS.get(_number(each))) == bits
        for each in _all_of(source, field)
    )


def _knows_no_val(source: Source, field: str) -> bool:
    """Return whether a script compares a field with a NO_VAL, or with a number as large, at all."""
    return any(
        each.other in _NO_VALS or _number(each) >= min(_NUMBERS) for each in _all_of(source, field)
    )


def _knows_nil(source: Source, field: str) -> bool:
    """Return whether a script asks anywhere if a field is nil."""
    return any(_asks_nil(each) for each in _all_of(source, field))


def _empty_walks(source: Source, names: Names) -> Iterator[Finding]:
    """Yield loops over records, which are empty tables, and over tables by name with ipairs."""
    words = source.tokens
    for at in range(len(words) - 3):
        walk, owner, after = words[at].text, words[at + 2].text, words[at + 3].text
        if walk not in ("pairs", "ipairs", "next") or words[at + 1].text != "(":
            continue
        field = words[at + 4].text if after == "." and at + 4 < len(words) else ""
        around = source.around(at)
        is_part = f"{owner} {around.name if around is not None else ''}" in names.part
        if after in (")", ",") and (owner in names.desc | names.job or is_part):
            yield _at(source, at, rules.EMPTY_WALK, f"{walk}({owner}) goes through nothing")
        elif walk == "ipairs" and after == ")" and owner in names.parts:
            yield _at(
                source, at, rules.EMPTY_WALK, f"ipairs({owner}) goes through nothing: it is by name"
            )
        elif (owner in names.desc and field == "environment") or (
            walk == "ipairs" and owner == "slurm" and field in ("jobs", "reservations")
        ):
            yield _at(source, at, rules.EMPTY_WALK, f"{walk}({owner}.{field}) goes through nothing")


def _truths_compared(source: Source) -> Iterator[Finding]:
    """Yield ``not a == "x"``: `not` binds first, and a truth is no text, number or nil."""
    words = source.tokens
    for at in range(len(words) - 3):
        if words[at].text != "not" or words[at + 1].kind != "name":
            continue
        end = at + 1
        while end + 2 < len(words) and words[end + 1].text == "." and words[end + 2].kind == "name":
            end += 2
        if end + 2 >= len(words) or words[end + 1].text not in ("==", "~="):
            continue
        other = words[end + 2]
        if other.value is not None or other.text == "nil":
            name = "".join(each.text for each in words[at + 1 : end + 1])
            what = f"not {name} is a truth, compared with {other.text}"
            yield _at(source, at, rules.NEVER_EQUAL, what)


def _statuses(source: Source) -> Iterator[Finding]:
    """Yield where what os.execute returns first is compared with a number: true from 5.2 on."""
    words = source.tokens
    of: dict[tuple[str, Function | None], bool] = {}
    for at in range(3, len(words) - 3):
        word, key = words[at], (words[at].text, source.around(at))
        runs = [each.text for each in words[at + 2 : at + 5]] == ["os", ".", "execute"]
        if word.kind != "name":
            continue
        is_compared = words[at + 1].text in ("==", "~=") and words[at + 2].kind == "number"
        if words[at + 1].text == "=":
            of[key] = runs and words[at - 1].text != ","
        elif is_compared and of.get(key) and "true" not in source.line_text(word.line):
            what = f"{word.text} of os.execute is a number in Lua 5.1 alone, then true or nil"
            yield _at(source, at, rules.LUA_VERSION, what)


def _closings(source: Source) -> Iterator[Finding]:
    """Yield where the exit status that closing a pipe returns is used: there is none in Lua 5.1."""
    words = source.tokens
    kept: set[tuple[str, Function | None]] = set()
    for at in range(4, len(words) - 4):
        word = words[at]
        if word.text == "close" and words[at - 1].text == ":" and words[at + 1].text == "(":
            before, name = words[at - 3].text, words[at - 4]
            if before == "{" and name.text == "=":
                kept.add((words[at - 5].text, source.around(at)))
            elif before == "=" and [words[at - 5].text, words[at - 7].text] == [",", ","]:
                yield _at(source, at, rules.LUA_VERSION, _NO_STATUS.format(name.text))
        elif word.kind == "name" and (word.text, source.around(at)) in kept:
            index = [each.text for each in words[at + 1 : at + 4]]
            if index in (["[", "2", "]"], ["[", "3", "]"]):
                what = _NO_STATUS.format(f"{word.text}[{index[1]}]")
                yield _at(source, at, rules.LUA_VERSION, what)


_NO_STATUS: Final = "{} is nil in Lua 5.1, where closing a pipe returns no exit status"


def _at(source: Source, at: int, rule: str, what: str) -> Finding:
    around = source.around(at)
    return Finding(
        rule=rule,
        line=source.tokens[at].line,
        what=what,
        function=around.name if around is not None else "",
    )


def _uids(source: Source, names: Names) -> Iterator[Finding]:
    words = source.tokens
    for at in range(1, len(words) - 2):
        word = words[at]
        if word.kind != "name" or word.text not in names.uid or words[at - 1].text in (".", ":"):
            continue
        if words[at + 1].text in ("==", "~=") and words[at + 2].kind == "text":
            around = source.around(at)
            yield Finding(
                rule=rules.NEVER_EQUAL,
                line=word.line,
                what=f"{word.text} is a number, compared with {words[at + 2].text}",
                function=around.name if around else "",
            )


def _text_arguments(source: Source) -> Iterator[Finding]:
    """Yield where arguments of burst buffer functions are taken for numbers or truths."""
    words = source.tokens
    for function in source.functions:
        if not function.name.startswith("slurm_bb_"):
            continue
        texts = {each for each in function.parameters if "info" not in each.lower()}
        for at in range(function.first, function.last - 1):
            word, before, after = words[at], words[at - 1].text, words[at + 1].text
            if word.text not in texts or word.kind != "name" or before in (".", ":"):
                continue
            other = words[at + 2]
            if after == "=" and before not in ("==", "~="):
                # It has become something else.
                texts.discard(word.text)
                continue
            what = ""
            if after in ("==", "~=") and (
                other.kind == "number" or other.text in ("true", "false")
            ):
                what = f"{word.text} is a text, compared with {other.text}"
            elif (
                _is_truth(word.text, function)
                and before in ("if", "elseif", "not", "and", "or")
                and after in ("then", "and", "or")
            ):
                what = f"{word.text} is a text, “true” or “false”, and so always a truth"
            if what:
                yield Finding(
                    rule=rules.NEVER_EQUAL, line=word.line, what=what, function=function.name
                )


def _is_truth(name: str, function: Function) -> bool:
    """Return whether a parameter is `hurry`: the third of job_teardown."""
    return function.name == "slurm_bb_job_teardown" and function.parameters[2:3] == (name,)


def _lost_globals(source: Source) -> Iterator[Finding]:
    """Yield globals that one function called by Slurm sets and another reads."""
    words = source.tokens
    locals_ = _locals(source)
    main: set[str] = set()
    sets: dict[str, dict[str, int]] = {}
    reads: dict[str, dict[str, int]] = {}
    for at in range(1, len(words) - 1):
        word, before, after = words[at], words[at - 1].text, words[at + 1].text
        if word.kind != "name" or before in (".", ":", "function", "local", "goto", "::"):
            continue
        if word.text in locals_ or (before in ("{", ",") and after == "="):
            continue
        around = _entry(source, at)
        if around is None:
            if after in ("=", ","):
                main.add(word.text)
        elif after == "=":
            sets.setdefault(word.text, {}).setdefault(around, word.line)
        else:
            reads.setdefault(word.text, {}).setdefault(around, word.line)
    known = {each.name for each in source.functions}
    for name, setters in sets.items():
        if name in main or name in known:
            continue
        for reader, line in reads.get(name, {}).items():
            if reader not in setters:
                setter = next(iter(setters))
                yield Finding(
                    rule=rules.LOST_GLOBAL,
                    line=line,
                    what=f"{name} is set by {setter}, in a state that is gone",
                    function=reader,
                )


def _locals(source: Source) -> set[str]:
    words, found = source.tokens, {"slurm", "self"}
    for function in source.functions:
        found |= set(function.parameters)
    for at, word in enumerate(words[:-1]):
        if word.text in ("local", "for"):
            each = at + 1
            while words[each].kind == "name":
                found.add(words[each].text)
                if each + 2 < len(words) and words[each + 1].text == ",":
                    each += 2
                else:
                    break
    return found


def _entry(source: Source, at: int) -> str | None:
    for each in source.functions:
        if each.name.startswith("slurm_bb_") and each.first <= at <= each.last:
            return each.name
    return None


def _commands(source: Source, kind: str) -> Iterator[Finding]:
    if kind == "cli_filter":
        return
    inside = (
        None
        if kind == "job_submit"
        else ("slurm_bb_pools", "slurm_bb_job_process", "slurm_bb_paths")
    )
    words = source.tokens
    for at in range(len(words) - 2):
        if words[at].text not in _RUNS or words[at + 1].text != "(":
            continue
        around = source.around(at)
        name = around.name if around else ""
        if inside is not None and name not in inside:
            continue
        text = _first_text(words, at + 2, source)
        command = asks_slurmctld(text)
        if command:
            yield Finding(
                rule=rules.SELF_WAITING,
                line=words[at].line,
                what=f"runs {command} inside slurmctld: {text.strip()}",
                function=name,
            )


def _first_text(words: tuple[Token, ...], at: int, source: Source) -> str:
    word = words[at]
    if word.kind == "text":
        return str(word.value)
    return str(source.constants.get(word.text, "")) if word.kind == "name" else ""


def _bare_unpack(source: Source) -> Iterator[Finding]:
    """Yield calls of what only some versions of Lua have, unless the script asks first."""
    old = {"unpack", "setfenv", "getfenv", "loadstring"}
    words = source.tokens
    made = {words[at].text for at in range(len(words) - 1) if words[at + 1].text == "="} | {
        each.name for each in source.functions
    }
    for at in range(1, len(words) - 1):
        word = words[at]
        if word.kind != "name" or words[at + 1].text != "(":
            continue
        if word.text in old - made and words[at - 1].text not in (".", ":", "and", "or"):
            yield _of_lua(source, at, f"{word.text} is there in Lua 5.1 alone")
    for use in source.uses:
        if not use.call or use.guarded or use.set:
            continue
        if (use.owner, use.field) in _NEWER and f"{use.owner}.{use.field}" not in made:
            yield _of_lua(source, use.at, f"{use.owner}.{use.field} is not there in Lua 5.1")
        elif (use.owner, use.field) in _OLDER:
            yield _of_lua(source, use.at, f"{use.owner}.{use.field} is there in Lua 5.1 alone")


_NEWER: Final = frozenset(
    {
        *(("table", "unpack"), ("table", "pack"), ("table", "move"), ("string", "pack")),
        *(("string", "unpack"), ("utf8", "char"), ("math", "type"), ("math", "tointeger")),
    }
)
_OLDER: Final = frozenset(
    {("table", "getn"), ("table", "foreach"), ("string", "gfind"), ("math", "mod")}
)


def _of_lua(source: Source, at: int, what: str) -> Finding:
    return _at(source, at, rules.LUA_VERSION, what)
