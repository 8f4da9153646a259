"""The kinds of mistakes of a site's script, with what a cluster suffers and what to do."""

from typing import Final

from simctl.testing.plugin_check.mistakes import rule

LETS_IN: Final = (
    "up to Slurm 25.11 a Lua error takes the job in, with what was set before the line; from "
    "26.05 on it refuses every such job"
)

_RAISES: Final = (
    "the Lua error lets a submission or a command go on (from Slurm 26.05 on it refuses every such "
    "job in job_submit.lua), and fails a call of burst_buffer.lua"
)

MISSING: Final = rule(
    "missing-function",
    rank=0,
    cost="the script does not load: slurmctld does not start, or the plugin fails at each call",
    remedy="define it as a global function, if only to return slurm.SUCCESS",
)
LOADS_NOT: Final = rule(
    "does-not-load",
    rank=0,
    cost="the script is not used: slurmctld does not start with it, and keeps the one before",
    remedy="mend the line; the main chunk returns nothing or slurm.SUCCESS",
)
LUA_VERSION: Final = rule(
    "lua-version",
    rank=1,
    cost="the script breaks, or does another thing, when Slurm is built with another Lua",
    remedy="use what all versions have, such as `local unpack = table.unpack or unpack`, or check "
    "with --lua VERSION what your Slurm was built with",
)
LUA_ERROR: Final = rule(
    "lua-error",
    rank=0,
    cost=LETS_IN,
    remedy='ask for nil before a field is used; assign "" instead of nil',
)
FILTER_ERROR: Final = rule(
    "filter-error",
    rank=0,
    cost="the command goes on as if the script had said nothing; its user sees the error",
    remedy="ask for nil before an option is used; what is set is a text",
)
STAGE_ERROR: Final = rule(
    "stage-error",
    rank=0,
    cost="the call fails without a text: the job is refused, held or stays in STAGE_OUT for ever",
    remedy="ask for nil before a value is used; all arguments but job_info are texts",
)
NIL_IN_LOG: Final = rule(
    "nil-in-log",
    rank=0,
    cost="a nil as last argument of slurm.log_X is lost and string.format raises; in Lua 5.1 any "
    f"nil does: {_RAISES}",
    remedy="pass tostring(value)",
)
TEXT_AS_FORMAT: Final = rule(
    "text-as-format",
    rank=0,
    cost=f"a % in the text is taken for a directive, whose value is not there: {_RAISES}",
    remedy='slurm.log_info("%s", text), and so with log_user: what a user typed may have a %',
)
UNKNOWN_FIELD: Final = rule(
    "unknown-field",
    rank=1,
    cost="it reads as nil, and what is written to it is lost with a line in the log",
    remedy="use the name that Slurm has for it",
)
UNKNOWN_CONSTANT: Final = rule(
    "unknown-name",
    rank=1,
    cost="it is nil: as a return value it counts as 0, as a function it raises",
    remedy="use a name that is in the table `slurm` of your version",
)
UNDEFINED: Final = rule(
    "undefined-name",
    rank=0,
    cost="it is nil: nothing but nil equals it, and calling, joining or adding it is a Lua error",
    remedy="mend its name, pass it as a parameter, or set it first",
)
OLD_INTERFACE: Final = rule(
    "old-interface",
    rank=0,
    cost=f"every look at a job is a Lua error: {LETS_IN}",
    remedy="delete the calls of setmetatable with such functions: job_desc, job_rec and the "
    "partitions in part_list, a table by name, are read and written as they are",
)
SHELL_HOLE: Final = rule(
    "shell-hole",
    rank=0,
    cost="every user of the cluster can run commands as SlurmUser, who rules it",
    remedy="let no text of a job into a line of shell before it has been held against a list, or "
    "against a pattern such as ^[%w_.-]+$",
)
LOST_ARGUMENT: Final = rule(
    "lost-argument",
    rank=1,
    cost="the text is told without its arguments, or an argument instead of the text",
    remedy="slurm.log_user(format, ...) and slurm.log_error(format, ...) put arguments into a text",
)
READ_ONLY: Final = rule(
    "read-only-field",
    rank=1,
    cost="what is written is lost, with a line in the log",
    remedy="it cannot be changed here",
)
EMPTY_WALK: Final = rule(
    "empty-walk",
    rank=1,
    cost="the body of the loop never runs",
    remedy="name the fields: a record is an empty table that looks each up; part_list and "
    "slurm.jobs are by name, for pairs",
)
NO_NUMBER: Final = rule(
    "no-number",
    rank=1,
    cost="slurmctld takes it for 0 and lets the job in, with a line in the log",
    remedy="return slurm.SUCCESS, slurm.ERROR or an error number on every way out",
)
NO_STATUS: Final = rule(
    "no-status",
    rank=1,
    cost="what is no number is a failure of the call",
    remedy="return slurm.SUCCESS or slurm.ERROR first, a text second",
)
TABLE_TEXT: Final = rule(
    "second-value",
    rank=0,
    cost="the call fails",
    remedy="return a text as second value, such as table.concat(lines, '\\n')",
)
NO_POOLS: Final = rule(
    "no-pools",
    rank=0,
    cost="burst buffers stay down: jobs that ask for space wait for ever",
    remedy="return slurm.SUCCESS and a text in JSON: "
    '{"pools": [{"id": "NAME", "quantity": N, "granularity": BYTES}]}',
)
LOST_STATUS: Final = rule(
    "lost-status",
    rank=1,
    cost="only the low 8 bits of a child's return reach slurmctld: this failure is a success",
    remedy="return slurm.ERROR, or a number from 1 to 255",
)
NEVER_NIL: Final = rule(
    "never-nil",
    rank=1,
    cost="the branch is always or never taken: a number that was not given is no nil",
    remedy="compare with slurm.NO_VAL (NO_VAL16, NO_VAL64), as the field has it",
)
WRONG_NO_VAL: Final = rule(
    "wrong-no-val",
    rank=1,
    cost="the two are never equal, whatever was asked for",
    remedy="16 bits: slurm.NO_VAL16; 32: slurm.NO_VAL; 64: slurm.NO_VAL64; texts and "
    "min_mem_per_X: nil; begin_time and end_time: 0",
)
NEVER_EQUAL: Final = rule(
    "never-equal",
    rank=1,
    cost="a text and a number are never equal, and comparing them by size raises an error",
    remedy="compare numbers with numbers and texts with texts",
)
PAIRS: Final = rule(
    "order-of-pairs",
    rank=1,
    cost="the same job is treated in different ways, as Lua goes through a table in any order",
    remedy="sort the names first, or go through a list with ipairs",
)
SELF_WAITING: Final = rule(
    "self-waiting",
    rank=1,
    cost="slurmctld waits for a command that waits for slurmctld: what changes anything never "
    "comes back, what asks holds every other request up",
    remedy="read slurm.jobs, part_list or a file that cron writes; never ask slurmctld from inside",
)
SLOW: Final = rule(
    "slow",
    rank=1,
    cost="slurmctld answers nobody meanwhile; clients give up after MessageTimeout (10 s)",
    remedy="keep waiting and long commands out of slurmctld's own calls",
)
ENDLESS: Final = rule(
    "endless",
    rank=0,
    cost="slurmctld hangs, and so does every command",
    remedy="bound the loop",
)
ENDS_SLURMCTLD: Final = rule(
    "os-exit",
    rank=0,
    cost="slurmctld ends",
    remedy="return a number",
)
LOST_GLOBAL: Final = rule(
    "lost-global",
    rank=1,
    cost="each call has a Lua state of its own: what one call sets no other ever sees",
    remedy="keep it in a file beside the job's, or find it out anew",
)
