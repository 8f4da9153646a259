"""Who may ask what, and the errno for everybody else, stated apart from the product's table.

The letters: R root, S SlurmUser, A administrators, O operators (A is written as well), W the owner
of the job, * everybody. Sources: Slurm's manual pages of scontrol, scancel and sacctmgr for what
operators and administrators may, recordings of 18.08 and printed texts of 22.05 for errnos.
"""

from typing import Final

OF_SLURMCTLD: Final = """
MESSAGE_NODE_REGISTRATION_STATUS  RS     ESLURM_USER_ID_MISSING
MESSAGE_EPILOG_COMPLETE           RS     ESLURM_USER_ID_MISSING
REQUEST_COMPLETE_PROLOG           RS     ESLURM_USER_ID_MISSING
REQUEST_COMPLETE_BATCH_SCRIPT     RS     ESLURM_USER_ID_MISSING
REQUEST_STEP_COMPLETE             RSW    ESLURM_USER_ID_MISSING
REQUEST_COMPLETE_JOB_ALLOCATION   RSW    ESLURM_USER_ID_MISSING
REQUEST_SUBMIT_BATCH_JOB          RSW    ESLURM_USER_ID_MISSING
REQUEST_RESOURCE_ALLOCATION       RSW    ESLURM_USER_ID_MISSING
REQUEST_JOB_WILL_RUN              RSW    ESLURM_USER_ID_MISSING
REQUEST_JOB_PACK_ALLOC_INFO       RSW    ESLURM_ACCESS_DENIED
REQUEST_JOB_STEP_CREATE           W      ESLURM_ACCESS_DENIED
REQUEST_KILL_JOB                  RSAOW  ESLURM_ACCESS_DENIED
REQUEST_CANCEL_JOB_STEP           RSW    ESLURM_USER_ID_MISSING
REQUEST_UPDATE_JOB                RSAOW  ESLURM_USER_ID_MISSING
REQUEST_UPDATE_JOB_STEP           RSAOW  ESLURM_ACCESS_DENIED
REQUEST_JOB_REQUEUE               RSAOW  ESLURM_ACCESS_DENIED
REQUEST_SUSPEND                   RSAO   ESLURM_ACCESS_DENIED
REQUEST_CHECKPOINT                RSW    ESLURM_ACCESS_DENIED
REQUEST_CHECKPOINT_COMP           RW     ESLURM_ACCESS_DENIED
REQUEST_CHECKPOINT_TASK_COMP      RW     ESLURM_ACCESS_DENIED
REQUEST_BATCH_SCRIPT              RSAOW  ESLURM_USER_ID_MISSING
REQUEST_JOB_NOTIFY                RSAOW  ESLURM_USER_ID_MISSING
REQUEST_UPDATE_NODE               RSA    ESLURM_USER_ID_MISSING
REQUEST_UPDATE_PARTITION          RSA    ESLURM_USER_ID_MISSING
REQUEST_CREATE_PARTITION          RSA    ESLURM_USER_ID_MISSING
REQUEST_DELETE_PARTITION          RSA    ESLURM_USER_ID_MISSING
REQUEST_CREATE_RESERVATION        RSAO   ESLURM_USER_ID_MISSING
REQUEST_UPDATE_RESERVATION        RSAO   ESLURM_USER_ID_MISSING
REQUEST_DELETE_RESERVATION        RSAO   ESLURM_USER_ID_MISSING
REQUEST_RECONFIGURE               RSA    ESLURM_USER_ID_MISSING
REQUEST_SHUTDOWN                  RSA    ESLURM_USER_ID_MISSING
RESPONSE_SLURM_RC                 RS     ESLURM_USER_ID_MISSING
REQUEST_PING                      *      -
REQUEST_JOB_READY                 *      -
REQUEST_JOB_INFO                  *      -
REQUEST_JOB_STEP_INFO             *      -
REQUEST_NODE_INFO                 *      -
REQUEST_PARTITION_INFO            *      -
REQUEST_RESERVATION_INFO          *      -
REQUEST_BURST_BUFFER_INFO         *      -
REQUEST_BURST_BUFFER_STATUS       *      -
REQUEST_SWITCH_INFO               *      -
REQUEST_BUILD_INFO                *      -
DBD_GET_JOBS_COND                 *      -
"""

OF_SLURMD: Final = """
REQUEST_LAUNCH_TASKS              RSW    ESLURMD_INVALID_JOB_CREDENTIAL
REQUEST_BATCH_JOB_LAUNCH          RS     ESLURM_USER_ID_MISSING
REQUEST_LAUNCH_PROLOG             RS     ESLURM_USER_ID_MISSING
REQUEST_TERMINATE_JOB             RS     ESLURM_USER_ID_MISSING
REQUEST_KILL_TIMELIMIT            RS     ESLURM_USER_ID_MISSING
REQUEST_KILL_PREEMPTED            RS     ESLURM_USER_ID_MISSING
REQUEST_ABORT_JOB                 RS     ESLURM_USER_ID_MISSING
REQUEST_SUSPEND_INT               RS     ESLURM_USER_ID_MISSING
REQUEST_SIGNAL_TASKS              RSW    ESLURM_USER_ID_MISSING
REQUEST_CHECKPOINT_TASKS          RSW    ESLURM_USER_ID_MISSING
REQUEST_JOB_NOTIFY                RS     ESLURM_USER_ID_MISSING
REQUEST_STEP_COMPLETE             RS     ESLURM_USER_ID_MISSING
REQUEST_PING                      RS     ESLURM_USER_ID_MISSING
REQUEST_NODE_REGISTRATION_STATUS  RS     ESLURM_USER_ID_MISSING
REQUEST_RECONFIGURE               RS     ESLURM_USER_ID_MISSING
REQUEST_SHUTDOWN                  RS     ESLURM_USER_ID_MISSING
RESPONSE_SLURM_RC                 RS     ESLURM_USER_ID_MISSING
REQUEST_SWITCH_INFO               *      -
"""

OF_UPDATES: Final = """
priority=9              pending  RSAOw  -
priority=4294901770     pending  RSAO   ESLURM_ACCESS_DENIED
priority=9              running  RSAOw  -
priority=9              held     -      ESLURM_JOB_HELD
nice=5                  pending  RSAOW  -
nice=-5                 pending  RSAO   ESLURM_ACCESS_DENIED
timelimit=1             running  RSAOW  -
timelimit=9             running  RSAO   ESLURM_ACCESS_DENIED
deadline=now+1hour      pending  RSAO   ESLURM_ACCESS_DENIED
oversubscribe=yes       pending  RSAO   ESLURM_ACCESS_DENIED
partition=secret        pending  RS     ESLURM_ACCESS_DENIED
partition=secret,debug  pending  RS     ESLURM_ACCESS_DENIED
partition=physics       pending  -      ESLURM_INVALID_ACCOUNT
partition=nobio         pending  -      ESLURM_INVALID_ACCOUNT
partition=drained       pending  -      ESLURM_PARTITION_NOT_AVAIL
partition=inactive      pending  -      ESLURM_PARTITION_NOT_AVAIL
partition=down          pending  RSAOW  -
partition=open          pending  RSAOW  -
partition=open          held     RSAOW  -
account=physics         pending  RSAOW  -
name=x                  running  RSAOW  -
comment=x               held     RSAOW  -
"""
"""What scontrol update of a job says, the job's state, who may of those that may change the job at
all, and what the others of them get. A small w: the change is made, and the user is told
ESLURM_PRIO_RESET_FAIL."""
