"""The tables of `simctl run --db`: their columns, and the rows of what a cluster keeps."""

import json
from typing import Any, Final

from simctl.ctld.state.records import NodeRecord
from simctl.kernel.procs import exit_code_of, signal_of
from simctl.wire.accounts import NOBODY, JobAccount, StepAccount, step_label
from simctl.wire.ids import INFINITE, NO_VAL
from simctl.world import CommandResult

APPLICATION_ID: Final = 0x53494D43
"""What marks a file as ours: SIMC."""

FORMAT: Final = 1
"""The version of the tables, SQLite's `user_version`; 0 in files of simctl before 0.2.0."""

_WHO: Final = (
    "daemon TEXT, node TEXT, role TEXT, pid INTEGER, uid INTEGER, euid INTEGER, "
    "job_id INTEGER, step TEXT, task INTEGER"
)

SCHEMA: Final = f"""
CREATE TABLE run (key TEXT PRIMARY KEY, value);
CREATE TABLE jobs (
    record INTEGER, job_id INTEGER, array_job_id INTEGER, array_task_id INTEGER,
    array_tasks TEXT, name TEXT, user TEXT, uid INTEGER, gid INTEGER, account TEXT,
    partition TEXT, state TEXT, cancelled_by INTEGER, waited_for TEXT, priority INTEGER,
    exit_code INTEGER, exit_signal INTEGER, derived_exit_code INTEGER, derived_signal INTEGER,
    submit_us INTEGER, eligible_us INTEGER, start_us INTEGER, end_us INTEGER,
    suspended_us INTEGER, restarts INTEGER, time_limit_min INTEGER,
    nodes TEXT, num_nodes INTEGER, req_nodes INTEGER, cpus INTEGER, req_cpus INTEGER,
    memory_mb INTEGER, req_memory_mb INTEGER, reservation TEXT, comment TEXT, work_dir TEXT,
    submit_line TEXT, script TEXT, batch INTEGER);
CREATE TABLE steps (
    record INTEGER, job_id INTEGER, step TEXT, name TEXT, state TEXT, cancelled_by INTEGER,
    exit_code INTEGER, exit_signal INTEGER, start_us INTEGER, end_us INTEGER,
    suspended_us INTEGER, nodes TEXT, num_nodes INTEGER, cpus INTEGER, tasks INTEGER,
    memory_mb INTEGER, layout TEXT, submit_line TEXT);
CREATE TABLE nodes (
    name TEXT PRIMARY KEY, cpus INTEGER, memory_mb INTEGER, gres TEXT, state TEXT, flags TEXT,
    reason TEXT);
CREATE TABLE node_states (
    seq INTEGER PRIMARY KEY, time_us INTEGER, node TEXT, before TEXT, after TEXT, reason TEXT,
    cause INTEGER);
CREATE TABLE job_states (
    seq INTEGER PRIMARY KEY, time_us INTEGER, job_id INTEGER, array_job_id INTEGER,
    array_task_id INTEGER, step TEXT, before TEXT, after TEXT, reason TEXT, cause INTEGER);
CREATE TABLE plugin_calls (
    seq INTEGER PRIMARY KEY, start_us INTEGER, end_us INTEGER, name TEXT, {_WHO},
    plugin TEXT, args TEXT, rc, errno TEXT, cause INTEGER);
CREATE TABLE scripts (
    seq INTEGER PRIMARY KEY, start_us INTEGER, end_us INTEGER, name TEXT, {_WHO},
    args TEXT, rc INTEGER, cause INTEGER);
CREATE TABLE messages (
    seq INTEGER PRIMARY KEY, time_us INTEGER, phase TEXT, name TEXT, {_WHO},
    peer TEXT, args TEXT, cause INTEGER);
CREATE TABLE other_events (
    seq INTEGER PRIMARY KEY, time_us INTEGER, kind TEXT, phase TEXT, name TEXT, {_WHO},
    args TEXT, cause INTEGER);
CREATE VIEW events AS
    SELECT seq, time_us, 'state' AS kind, after AS name, NULL AS phase, NULL AS daemon, node,
        NULL AS job_id, NULL AS step, cause FROM node_states
    UNION ALL SELECT seq, time_us, 'state', after, NULL, NULL, NULL, job_id, step, cause
        FROM job_states
    UNION ALL SELECT seq, end_us, 'plugin', name, NULL, daemon, node, job_id, step, cause
        FROM plugin_calls
    UNION ALL SELECT seq, end_us, 'script', name, NULL, daemon, node, job_id, step, cause
        FROM scripts
    UNION ALL SELECT seq, time_us, 'message', name, phase, daemon, node, job_id, step, cause
        FROM messages
    UNION ALL SELECT seq, time_us, kind, name, phase, daemon, node, job_id, step, cause
        FROM other_events;
CREATE TABLE commands (
    at_us INTEGER, label TEXT, line INTEGER, user TEXT, command TEXT, exit INTEGER, errno TEXT,
    stdout TEXT, stderr TEXT);
"""


def _moment(when_us: int) -> int | None:
    return when_us if when_us >= 0 else None


def _limit(limit_min: int) -> int | None:
    return None if limit_min in (NO_VAL, INFINITE) else limit_min


def _who(uid: int) -> int | None:
    return None if uid == NOBODY else uid


def job_row(job: JobAccount) -> tuple[Any, ...]:
    """Return the row of a run of a job; what there is not is null."""
    return (
        job.db_index or None,
        job.job_id,
        job.array_job_id or None,
        None if job.array_task_id == NO_VAL else job.array_task_id,
        job.array_tasks or None,
        job.name,
        job.user,
        job.user_id,
        job.group_id,
        job.account,
        job.partition,
        job.state,
        _who(job.cancel_uid),
        job.reason,
        job.priority,
        exit_code_of(job.exit_code),
        signal_of(job.exit_code),
        exit_code_of(job.derived_exit_code),
        signal_of(job.derived_exit_code),
        job.submit_us,
        _moment(job.eligible_us),
        _moment(job.start_us),
        _moment(job.end_us),
        job.suspended_us,
        job.restarts,
        _limit(job.time_limit_min),
        job.node_list or None,
        job.alloc_nodes,
        job.req_nodes,
        job.alloc_cpus,
        job.req_cpus,
        job.alloc_memory_mb,
        job.req_memory_mb,
        job.reservation or None,
        job.comment or None,
        job.work_dir,
        job.submit_line,
        job.script or None,
        int(job.batch),
    )


def step_row(step: StepAccount) -> tuple[Any, ...]:
    """Return the row of a step."""
    return (
        step.db_index,
        step.job_id,
        step_label(step.step_id),
        step.name,
        step.state,
        _who(step.cancel_uid),
        exit_code_of(step.exit_code),
        signal_of(step.exit_code),
        _moment(step.start_us),
        _moment(step.end_us),
        step.suspended_us,
        step.node_list or None,
        step.num_nodes,
        step.num_cpus,
        step.num_tasks,
        step.memory_mb,
        step.layout,
        step.submit_line or None,
    )


def node_row(node: NodeRecord) -> tuple[Any, ...]:
    """Return the row of a node as it is at the end."""
    return (
        node.name,
        node.total.cpus,
        node.total.memory_mb,
        json.dumps(node.total.gres) if node.total.gres else None,
        node.base.name,
        "|".join(str(flag.name) for flag in type(node.flags) if flag & node.flags) or None,
        node.reason or None,
    )


def command_row(command: CommandResult) -> tuple[Any, ...]:
    """Return the row of a command of the timeline."""
    return (
        command.at_us,
        command.label,
        command.line,
        command.user,
        command.command,
        command.exit if command.exit >= 0 else None,
        command.errno or None,
        command.stdout,
        command.stderr,
    )
