"""What sbatch, salloc, srun and scancel do alike before they do anything: options of three kinds.

The command line counts for most, then the environment, then a batch script's own lines.
"""

from collections.abc import Container, Iterable, Mapping
from typing import Any, Final

from simctl.commands.arguments.help_texts import HELP
from simctl.commands.arguments.job_values import AskedGres, Export, WarningSpec, gpus_text
from simctl.commands.arguments.options import BAD_OPTION, Grammar, Option, UsageError
from simctl.site import CommandCall
from simctl.stepd.signals import signal_name
from simctl.wire.conf.slurm_conf import SlurmConf
from simctl.wire.hostlist import compress
from simctl.wire.time_limits import format_time_limit_min

VERSION: Final = "slurm-wlm 22.05.8"

_MOST_COUNTED: Final = 100
"""How often a flag that counts, such as --verbose, is given by a variable at most."""

Given = list[tuple[Option, str]]


def from_environment(
    grammar: Grammar, env: Mapping[str, str], variables: Mapping[str, str]
) -> Given:
    """Return the options that input variables stand for; *variables* gives their long names."""
    given: Given = []
    for variable, long in variables.items():
        if variable not in env:
            continue
        option = grammar.named(long)
        value = env[variable]
        if option.counts:
            given += [(option, "")] * (min(int(value), _MOST_COUNTED) if value.isdecimal() else 0)
        elif option.read is None:
            given += [(option, "")] if not value or _is_yes(value) else []
        elif value:
            given.append((option, value))
        elif option.optional:
            given.append((option, option.optional))
    return given


def _is_yes(value: str) -> bool:
    """Return whether the value of a variable sets a flag: yes, true, or a number other than 0."""
    if value.lower() in ("yes", "true", "y", "t"):
        return True
    return value.lstrip("-+").isdecimal() and int(value) != 0


def answered(call: CommandCall, grammar: Grammar, given: Iterable[tuple[Option, str]]) -> bool:
    """Answer what only asks, such as ``--version`` or ``--gres=help``; false if nothing does."""
    asked = next((option.long for option, text in given if _is_question(option, text)), "")
    if asked == "gres":
        call.out("Valid gres options are:")
        for name in call.site.conf.gres_types:
            call.out(f"{name}[[:type]:count]")
    elif asked == "version":
        call.out(VERSION)
    elif asked:
        tell_usage(call, grammar, asked)
    return bool(asked)


def tell_usage(call: CommandCall, grammar: Grammar, given: Container[str]) -> None:
    """Print how a command is used, and with ``help`` among what is *given* its options."""
    call.out(f"Usage: {grammar.command} {grammar.usage}")
    for option in grammar.options if "help" in given else ():
        call.out(_help_line(option, explained=grammar.command in _EXPLAINED))


def _is_question(option: Option, text: str) -> bool:
    """Return whether an option asks for words alone."""
    return option.long in _ANSWERS or (option.long == "gres" and text in ("help", "list"))


_ANSWERS: Final = ("version", "help", "usage")
_EXPLAINED: Final = ("sbatch", "salloc", "srun")
_HELP_AT: Final = 34
"""In which column the explanations stand."""


def _help_line(option: Option, *, explained: bool) -> str:
    letter = f"-{option.short}, " if option.short else "    "
    value = "" if option.read is None else "[=VALUE]" if option.optional else "=VALUE"
    shown = f"  {letter}--{option.long}{value}"
    return f"{shown:<{_HELP_AT}}  {HELP.get(option.long, '')}".rstrip() if explained else shown


def check_cluster(call: CommandCall, options: Mapping[str, Any]) -> None:
    """Refuse a cluster other than this one.

    Raises:
        UsageError: There is no such cluster.
    """
    mine = call.site.conf.cluster_name
    for name in options.get("clusters", ()):
        if name not in (mine, "all"):
            command = call.argv[0]
            raise UsageError(
                1,
                f"{command}: error: No cluster '{name}' known by database.",
                f"{command}: error: '{name}' can't be reached now, or it is an invalid entry for "
                "--cluster.  Use 'sacctmgr list clusters' to see available clusters.",
            )


def check_identity(call: CommandCall, options: Mapping[str, Any]) -> None:
    """Let only root act for others.

    Raises:
        UsageError: A user who is not root tries to, or there is no such user.
    """
    command = call.argv[0]
    for long in ("uid", "gid"):
        if long in options and call.user.uid:
            raise UsageError(BAD_OPTION, f"{command}: error: --{long} only permitted by root user")
    if "uid" in options and _user(call, options["uid"]) is None:
        raise UsageError(BAD_OPTION, f"{command}: error: Invalid --uid specification")
    if "gid" in options and not options["gid"].isdecimal():
        raise UsageError(BAD_OPTION, f"{command}: error: Invalid --gid specification")


def acting_user(call: CommandCall, options: Mapping[str, Any]) -> Any:
    """Return for whom a job is submitted: the user who runs the command, or whom root names."""
    return _user(call, options["uid"]) if "uid" in options else call.user


def _user(call: CommandCall, name: str) -> Any:
    users = call.site.users
    if name in users:
        return users[name]
    return next((user for user in users.values() if str(user.uid) == name), None)


def tell_options(call: CommandCall, options: Mapping[str, Any]) -> None:
    """Print which options are set, for -v."""
    if not options.get("verbose"):
        return
    command = call.argv[0]
    rule = f"{command}: {'-' * 20} {'-' * 20}"
    call.err(f"{command}: defined options")
    call.err(rule)
    for name in sorted(options):
        call.err(f"{command}: {name:<20}: {_shown(name, options[name])}")
    call.err(rule)
    call.err(f"{command}: end of defined options")


def _shown(name: str, value: Any) -> str:
    """Return an option's value as it is told."""
    if value is True:
        return "set"
    if name in ("time", "time-min"):
        return format_time_limit_min(value, padded=True)
    if name == "nodes":
        least, most = value
        return str(least) if least == most else f"{least}-{most}"
    if name in ("mem", "mem-per-cpu", "tmp"):
        return _memory(value)
    return _shown_record(name, value)


def _memory(size_mb: int) -> str:
    """Return megabytes in the greatest unit that leaves a whole number; megabytes bear none."""
    units = "MGTP"
    place = 0
    while size_mb and size_mb % 1024 == 0 and place < len(units) - 1:
        size_mb, place = size_mb // 1024, place + 1
    return f"{size_mb}{units[place]}" if place else str(size_mb)


def _shown_record(name: str, value: Any) -> str:
    if isinstance(value, WarningSpec):
        who = "B:" if value.batch else ""
        return f"{who}{signal_name(value.signal)}@{value.time_s}"
    if isinstance(value, Export):
        return value.text
    if isinstance(value, AskedGres):
        return ",".join(f"gres:{each}" for each in value.text.split(",") if each)
    if name == "distribution":
        how, plane = value
        return f"plane={plane}" if plane else str(how.name.lower())
    if name in ("gpus", "gpus-per-node", "gpus-per-task"):
        return gpus_text(value)
    if isinstance(value, tuple):
        return compress(value) if name in ("nodelist", "exclude") else ",".join(value)
    return str(value)


def tell_select_plugins(call: CommandCall, options: Mapping[str, Any]) -> None:
    """Print the node selection plugins that a command loads to talk of jobs, as -v does."""
    if not options.get("verbose"):
        return
    command = call.argv[0]
    flags = select_flags(call.site.conf)
    for line in (
        "select/cons_tres: common_init: select/cons_tres loaded",
        "select/cray_aries: init: Cray/Aries node selection plugin loaded",
        f"select/linear: init: Linear node selection plugin loaded with argument {flags}",
        "select/cons_res: common_init: select/cons_res loaded",
    ):
        call.err(f"{command}: {line}")


def select_flags(conf: SlurmConf) -> int:
    """Return SelectTypeParameters as Slurm's flag word."""
    words = str(conf.select_type_parameters).upper().replace(",", "_").split("_")
    return sum(number for word, number in _SELECT_FLAGS.items() if word in words)


_SELECT_FLAGS: Final = {"CPU": 1, "SOCKET": 2, "CORE": 4, "BOARD": 8, "MEMORY": 16}
