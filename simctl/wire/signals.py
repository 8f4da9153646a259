"""Numbers beyond the real signals, with which Slurm tells a step daemon why its step ends."""

from typing import Final

SIG_TERM_KILL: Final = 991
"""SIGCONT and SIGTERM now, SIGKILL after KillWait."""

SIG_TIME_LIMIT: Final = 996
"""As SIG_TERM_KILL, because the step has reached its time limit."""

SIG_NODE_FAIL: Final = 998
"""SIGKILL, because another node of the step has failed."""
