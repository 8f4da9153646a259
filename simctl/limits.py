"""What input may cost at most, each bound once; docs/limits.md tells them to users.

They lie far above what people write, and low enough that a run within them fits a small machine.
"""

from typing import Final

MIB: Final = 1 << 20

TEXT_BYTES: Final = 16 * MIB
"""A text that people or sites write: a scenario, a slurm.conf, a plugin, a session's script."""

LOG_BYTES: Final = 256 * MIB
"""A log in the Standard Workload Format, unpacked: some four million jobs."""

LOG_MISTAKES: Final = 100_000
"""How many lines of a log may be none of jobs."""

SACCT_BYTES: Final = 64 * MIB
"""What sacct printed."""

TRACE_BYTES: Final = 512 * MIB
"""A trace, unpacked: some two million events."""

RECORDING_BYTES: Final = 32 * MIB
"""A recording of real Slurm, unpacked."""

STATE_BYTES: Final = 64 * MIB
"""A file of slurmctld's state."""

STATE_FILES: Final = 100
"""How many files a folder of slurmctld's state may have."""

LINE_BYTES: Final = 16 * MIB
"""A line of a trace."""

SILENCE_S: Final = 10.0
"""How long a pipe that is read as a file may keep silent, in seconds of real time."""

LOAD_S: Final = 10.0
"""How long a plugin's module may take to be imported and looked at, in seconds of real time."""

PLUGIN_BYTES: Final = 4_096 * MIB
"""By how much the process may grow while plugins' code is loaded or runs."""

NESTING: Final = 64
"""How deep lists and mappings may be nested in YAML and JSON."""

VALUES: Final = 500_000
"""How many values a YAML file may have, those that aliases repeat counted each time."""

MISTAKES: Final = 200
"""How many mistakes of a scenario are told."""

HOSTS: Final = 65_536
"""How many hosts a host list may name, and how many nodes a cluster may have."""

MEMBERS: Final = 1_000_000
"""How many nodes all partitions of a cluster may have together."""

DIGITS: Final = 1_000
"""How many digits a number may have in a word of a command line."""

WIDTH: Final = 4_096
"""How wide a column of a table may be."""

LOOP_TURNS: Final = 100_000
"""How many turns all the loops and traps of one batch script may take together."""

SCRIPT_TURNS: Final = 1_000_000
"""How many turns the loops and traps of a batch script and of all it has started may take."""

WRITTEN_CHARACTERS: Final = 1_024 * MIB
"""How much a batch script and all it has started may write together."""

SCRIPT_NESTING: Final = 40
"""How deep commands and expansions may be nested in a batch script."""

EXPRESSION_NESTING: Final = 25
"""How deep an arithmetic expression or a test may be nested in a batch script."""

VALUE_CHARACTERS: Final = 1 * MIB
"""How long a word or a variable of a batch script may become."""

ASSIGNED_CHARACTERS: Final = 4_096 * MIB
"""How long all values together may be that a batch script assigns to variables."""

FILES_BYTES: Final = 256 * MIB
"""What all files of the simulated disks may hold together."""

PATH_NESTING: Final = 128
"""How many directories a path of the simulated disks may go through."""

OUTPUT_CHARACTERS: Final = 16 * MIB
"""How much of what a command prints is kept."""

RUN_TURNS: Final = 500_000
"""How many turns a run of a scenario may take, unless --max-turns says otherwise."""

PICTURE_EVENTS: Final = 100_000
"""How many events a page of `simctl view` may hold."""

PICTURE_BYTES: Final = 16_384 * MIB
"""A trace of which a part is looked at, unpacked: it is read line by line."""

BRACES: Final = 100
"""How many braces one word of a batch script may open."""

BRACE_WORDS: Final = 100_000
"""How many words the braces of one word of a batch script may stand for."""

CALL_NESTING: Final = 200
"""How many commands, functions and sourced files of a batch script may be under way in another."""

SCRIPT_PROCESSES: Final = 1_000
"""How many processes a batch script may have started that have not ended."""

SCRIPT_FORKS: Final = 20_000
"""How many processes a batch script may start in all, tools and subshells included."""

TOOL_CHARACTERS: Final = 64 * MIB
"""How much one run of a tool, such as `yes`, may write."""

SUBSHELL_NESTING: Final = 100
"""How many shells of a batch script may be under way in one another."""

PIPE_CHARACTERS: Final = 64 * 1024
"""How much a pipe holds before its writer has to wait."""
