"""What there is for scripts of each kind: functions, fields of records and names in `slurm`."""

from typing import Final

from simctl.plugins.burst_buffer.lua.calls import FUNCTIONS, POLLS
from simctl.plugins.job_submit.desc_fields import KNOWN
from simctl.plugins.lua.constants import slurm_table

VERSIONS: Final = ("22.05", "23.02", "24.05", "25.05")
"""The versions of Slurm that a script is tried under."""

_LOGS: Final = "log_error log_info log_verbose log_debug log_debug2 log_debug3 log_debug4"
_EVERY: Final = frozenset(f"log error time_str2mins {_LOGS}".split())
_OWN: Final = {
    "job_submit": frozenset("log_user user_msg jobs reservations".split()),
    "burst_buffer": frozenset(),
    "cli_filter": frozenset("json_cli_options json_env cli_store cli_retrieve".split()),
}

PARTITION: Final = frozenset(
    """
    allow_accounts allow_alloc_nodes allow_groups allow_qos alternate billing_weights_str
    deny_accounts deny_qos name nodes qos default_time def_mem_per_cpu def_mem_per_node flag_default
    flags max_cpus_per_node max_cpus_per_socket max_mem_per_cpu max_mem_per_node max_nodes
    max_nodes_orig max_share max_oversubscribe max_time min_nodes min_nodes_orig
    priority_job_factor priority_tier state_up total_cpus total_nodes
    """.split()
)
JOB_RECORD: Final = frozenset(
    """
    account admin_comment alloc_node argv array_job_id array_task_cnt array_task_id batch_features
    batch_host best_switch burst_buffer comment container cpus_per_tres curr_dependency
    orig_dependency extra mcs_label delay_boot derived_ec direct_set_prio end_time exit_code
    features gres gres_req gres_used group_id job_id job_state licenses max_cpus max_nodes
    mem_per_tres min_cpus min_mem_per_node min_mem_per_cpu min_nodes name nice nodes origin_cluster
    het_job_id het_job_id_set het_job_offset pack_job_id pack_job_id_set pack_job_offset partition
    pn_min_cpus pn_min_memory priority qos reboot req_switch resizing restart_cnt resv_name script
    selinux_context site_factor spank_job_env spank_job_env_size start_time std_err std_in std_out
    submit_time time_limit time_min total_cpus total_nodes tres_alloc_str tres_bind
    tres_fmt_alloc_str tres_fmt_req_str tres_freq tres_per_job tres_per_node tres_per_socket
    tres_per_task tres_req_str
    user_id user_name wait4switch wait4switch_start wckey work_dir requeue shared
    """.split()
)
JOB_INFO: Final = frozenset(
    """
    account admin_comment alloc_node array_task_str batch_features batch_host burst_buffer
    burst_buffer_state cluster cluster_features command comment container container_id cpus_per_tres
    cronspec dependency exc_nodes features fed_origin_str fed_siblings_active_str
    fed_siblings_viable_str gres_total het_job_id_set licenses mail_user mcs_label mem_per_tres name
    network nodes partition prefer qos req_nodes resv_name sched_nodes selinux_context state_desc
    std_err std_in std_out system_comment tres_bind tres_freq tres_per_job tres_per_node
    tres_per_socket tres_per_task tres_req_str tres_alloc_str user_name wckey work_dir accrue_time
    alloc_sid array_job_id array_task_id array_max_tasks assoc_id batch_flag boards_per_node
    contiguous core_spec cores_per_socket billable_tres cpus_per_task cpu_freq_min cpu_freq_max
    cpu_freq_gov deadline delay_boot derived_ec eligible_time end_time exit_code gres_detail_cnt
    gres_detail_str group_id het_job_id het_job_offset job_id job_state last_sched_eval mail_type
    max_cpus max_nodes min_mem_per_node min_mem_per_cpu nice ntasks_per_core ntasks_per_tres
    ntasks_per_node ntasks_per_socket ntasks_per_board num_cpus num_nodes num_tasks pn_min_cpus
    pn_min_tmp_disk preempt_time preemptable_time pre_sus_time priority profile reboot req_switch
    requeue resize_time restart_cnt shared show_flags site_factor sockets_per_board sockets_per_node
    start_time start_protocol_ver state_reason submit_time suspend_time time_limit time_min
    threads_per_core user_id wait4switch
    """.split()
)
JOB_DESC: Final = KNOWN

MEANT: Final = {
    **dict.fromkeys(("nodes", "nodelist", "node_list"), "req_nodes"),
    **dict.fromkeys(("exclude", "excluded_nodes"), "exc_nodes"),
    **dict.fromkeys(("num_nodes", "node_count", "nnodes"), "min_nodes"),
    **dict.fromkeys(("ntasks", "tasks"), "num_tasks"),
    **dict.fromkeys(("cpus", "num_cpus", "ncpus", "min_cpu"), "min_cpus"),
    **dict.fromkeys(("gpus", "num_gpus"), "tres_per_job"),
    **dict.fromkeys(("mem_per_gpu", "min_mem_per_gpu"), "mem_per_tres"),
    **dict.fromkeys(("mem", "memory"), "min_mem_per_node"),
    **dict.fromkeys(("time", "timelimit", "walltime"), "time_limit"),
    **dict.fromkeys(("constraint", "constraints"), "features"),
    **dict.fromkeys(("job_name", "jobname"), "name"),
    **dict.fromkeys(("uid", "submit_uid"), "user_id"),
    **dict.fromkeys(("user", "username"), "user_name"),
    **dict.fromkeys(("array", "array_job"), "array_inx"),
    **dict.fromkeys(("resv_name", "reservation_name"), "reservation"),
    **dict.fromkeys(("stdout", "output"), "std_out"),
    **dict.fromkeys(("command", "args"), "argv"),
}
"""Names that scripts have for fields of job_desc, as commands and other records have them."""

TEXTS: Final = frozenset(
    """
    account acctg_freq admin_comment alloc_node array_inx assoc_comment batch_features burst_buffer
    clusters comment container cpus_per_tres default_account default_qos dependency exc_nodes extra
    features gres licenses mail_user mcs_label mem_per_tres name network partition prefer qos
    req_context req_nodes reservation script selinux_context std_err std_in std_out tres_bind
    tres_freq tres_per_job tres_per_node tres_per_socket tres_per_task user_name wckey work_dir
    """.split()
)
"""Fields of job_desc that are texts, or nil."""

BITS: Final = {
    16: frozenset(
        """
        boards_per_node cores_per_socket cpus_per_task ntasks_per_board ntasks_per_core
        ntasks_per_gpu ntasks_per_node ntasks_per_socket ntasks_per_tres pn_min_cpus reboot
        requeue shared oversubscribe sockets_per_board sockets_per_node threads_per_core
        """.split()
    ),
    32: frozenset(
        """
        cpu_freq_gov cpu_freq_max cpu_freq_min delay_boot het_job_offset max_cpus max_nodes
        min_nodes nice num_tasks pack_job_offset pn_min_tmp_disk priority req_switch site_factor
        time_limit time_min wait4switch
        """.split()
    ),
    64: frozenset({"pn_min_memory"}),
}
"""Fields of job_desc that are numbers and never nil, by the NO_VAL that stands for none."""

ZEROS: Final = frozenset({"begin_time", "end_time"})
"""Fields of job_desc that are 0 if the user did not ask."""

NUMBERS: Final = frozenset().union(*BITS.values()) | frozenset(
    "argc begin_time bitflags contiguous end_time group_id immediate mail_type min_cpus "
    "spank_job_env_size user_id".split()
)

LATER_OPTIONS: Final = frozenset(
    "consolidate-segments external oom-kill-step prefer resv-ports segment spread-segments stepmgr "
    "tres-per-task".split()
)
"""Options of sbatch, salloc and srun that are younger than Slurm 22.05."""

SLURM_COMMANDS: Final = frozenset(
    "sacct sacctmgr salloc sbatch scancel scontrol sdiag sinfo sprio squeue srun sshare sstat "
    "strigger".split()
)
"""Commands that ask slurmctld, or the database that it writes to."""


def required(kind: str, slurm: str) -> tuple[str, ...]:
    """Return the functions that a script must have."""
    if kind == "job_submit":
        return ("slurm_job_submit", "slurm_job_modify")
    if kind == "cli_filter":
        return ("slurm_cli_setup_defaults", "slurm_cli_pre_submit", "slurm_cli_post_submit")
    names = (*FUNCTIONS, *POLLS) if slurm >= "24.05" else FUNCTIONS
    return tuple(f"slurm_bb_{name}" for name in names)


def offered(kind: str, slurm: str) -> frozenset[str]:
    """Return the names in the table `slurm`."""
    names = _EVERY | _OWN[kind] | frozenset(slurm_table(slurm, ""))
    if kind == "burst_buffer":
        if slurm >= "24.05":
            names |= {"SLURM_BB_BUSY"}
        if "23.02" <= slurm < "25.05":
            names |= {"job_info_to_string"}
    if slurm >= "25.05":
        names |= {"get_qos_priority"}
    return names
