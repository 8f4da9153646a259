/* A checkpoint plugin after the guide whose tasks are saved and restarted by helper scripts, as those
 * of simctl's own checkpoint/blcr. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "simctl_plugin.h"

#define OUR_ID 2
#define SAVER "/usr/sbin/cr_checkpoint.sh"
#define RESTARTER "/usr/sbin/cr_restart.sh"
#define INTERRUPTED "slurmctld was restarted during the checkpoint"

const char plugin_name[] = "saves tasks by helper scripts";
const char plugin_type[] = "checkpoint/twin";
const uint32_t plugin_version = 100;

struct record {
	uint16_t disabled;
	time_t time_stamp;
	uint32_t error_code;
	char *error_msg;
};

int init(void) { return SLURM_SUCCESS; }
void fini(void) { }

/* The records that slurmctld has, each with a number: another may lie where one was released. */
static struct live {
	uint64_t serial;
	struct record *record;
	struct live *next;
} *records;

static struct record *new_record(void)
{
	static uint64_t serial;
	struct live *made = xmalloc(sizeof *made);
	made->serial = ++serial;
	made->record = xmalloc(sizeof *made->record);
	made->record->error_msg = xstrdup("");
	made->next = records;
	records = made;
	return made->record;
}

/* Return where the entry of a record is linked, by the record or by its number. */
static struct live **find(const struct record *record, uint64_t serial)
{
	struct live **at = &records;
	while (*at && (*at)->record != record && (*at)->serial != serial)
		at = &(*at)->next;
	return at;
}

static void note(struct record *record, uint32_t code, const char *text)
{
	if (code <= record->error_code)
		return;
	record->error_code = code;
	xfree(record->error_msg);
	record->error_msg = xstrdup(text);
}

/* ---- records ---- */

int slurm_ckpt_alloc_job(check_jobinfo_t *jobinfo)
{
	*jobinfo = new_record();
	return SLURM_SUCCESS;
}

int slurm_ckpt_free_job(check_jobinfo_t jobinfo)
{
	struct record *record = jobinfo;
	if (!record)
		return SLURM_SUCCESS;
	struct live **at = find(record, 0), *gone = *at;
	*at = gone->next;
	xfree(gone);
	xfree(record->error_msg);
	xfree(record);
	return SLURM_SUCCESS;
}

int slurm_ckpt_pack_job(check_jobinfo_t jobinfo, Buf buffer, uint16_t protocol_version)
{
	struct record *record = jobinfo;
	(void) protocol_version;
	Buf body = init_buf(64);
	if (record) {
		pack16(record->disabled, body);
		pack_time(record->time_stamp, body);
		pack32(record->error_code, body);
		packstr(record->error_msg, body);
	}
	pack16(record ? OUR_ID : 0, buffer);
	packmem(get_buf_data(body), get_buf_offset(body), buffer);
	free_buf(body);
	return SLURM_SUCCESS;
}

static int read_body(struct record *record, Buf body)
{
	uint32_t length;
	safe_unpack16(&record->disabled, body);
	if (slurm_unpack_time(&record->time_stamp, body))
		goto unpack_error;
	safe_unpack32(&record->error_code, body);
	xfree(record->error_msg);
	safe_unpackstr_xmalloc(&record->error_msg, &length, body);
	if (record->time_stamp) {
		/* Nobody waits for it any more. */
		record->time_stamp = 0;
		note(record, EINTR, INTERRUPTED);
	}
	return SLURM_SUCCESS;
unpack_error:
	errno = EINVAL;
	return SLURM_ERROR;
}

int slurm_ckpt_unpack_job(check_jobinfo_t jobinfo, Buf buffer, uint16_t protocol_version)
{
	uint16_t id;
	uint32_t length;
	char *bytes;
	(void) protocol_version;
	safe_unpack16(&id, buffer);
	safe_unpackmem_xmalloc(&bytes, &length, buffer);
	Buf body = create_buf(bytes, length);
	int rc = id == OUR_ID ? read_body(jobinfo, body) : SLURM_SUCCESS;
	free_buf(body);
	return rc;
unpack_error:
	errno = EINVAL;
	return SLURM_ERROR;
}

check_jobinfo_t slurm_ckpt_copy_job(check_jobinfo_t jobinfo)
{
	struct record *record = jobinfo;
	if (!record)
		return NULL;
	struct record *copy = new_record();
	copy->disabled = record->disabled;
	copy->time_stamp = record->time_stamp;
	note(copy, record->error_code, record->error_msg);
	return copy;
}

/* ---- operations, in slurmctld ---- */

struct order {
	uint32_t job_id, step_id, run;
	uint16_t op, max_wait;
	time_t begin_time;
	char *nodes, *image_dir;
	uint64_t serial;	/* the record of the job or step, which may be gone by the end */
};

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

/* Have the nodes save the tasks, note how that went, and end what is to end. */
static void *carry_out(void *given)
{
	static const slurmctld_lock_t locks = {NO_LOCK, WRITE_LOCK, READ_LOCK, NO_LOCK, NO_LOCK};
	struct order *order = given;
	pthread_mutex_lock(&turn);
	uint32_t failure = 0;
	if (checkpoint_tasks(order->job_id, order->step_id, order->begin_time, order->image_dir,
			     order->max_wait, order->nodes))
		failure = (uint32_t) errno;
	lock_slurmctld(locks);
	struct live *live = *find(NULL, order->serial);
	struct record *record = live ? live->record : NULL;
	struct job_record *job = find_job_record(order->job_id);
	if (record) {
		record->time_stamp = 0;
		note(record, failure, failure ? slurm_strerror((int) failure) : "");
	}
	unlock_slurmctld(locks);
	/* A later run of its job is not to be ended for it. */
	if (record && job && job->restart_cnt == order->run && order->op == CHECK_VACATE)
		job_step_signal(order->job_id, order->step_id, SIGTERM, 0, 0);
	pthread_mutex_unlock(&turn);
	xfree(order->nodes);
	xfree(order->image_dir);
	xfree(order);
	return NULL;
}

static int begin(struct order order, struct record *record, char *nodes, char *image_dir)
{
	struct job_record *job = find_job_record(order.job_id);
	pthread_t thread;
	if (record->disabled)
		return ESLURM_DISABLED;
	if (record->time_stamp)
		return EALREADY;
	struct order *made = xmalloc(sizeof *made);
	*made = order;
	made->run = job->restart_cnt;
	made->begin_time = time(NULL);
	/* The batch script is on the first node of its job. */
	hostlist_t hosts = hostlist_create(nodes ? nodes : job->nodes);
	char *first = hostlist_shift(hosts);
	made->nodes = xstrdup(nodes ? nodes : first);
	free(first);
	hostlist_destroy(hosts);
	made->image_dir = xstrdup(image_dir);
	record->time_stamp = made->begin_time;
	record->error_code = 0;
	xfree(record->error_msg);
	record->error_msg = xstrdup("");
	return pthread_create(&thread, NULL, carry_out, made);
}

int slurm_ckpt_op(uint32_t job_id, uint32_t step_id, struct step_record *step_ptr, uint16_t op,
		  uint16_t data, char *image_dir, time_t *event_time, uint32_t *error_code,
		  char **error_msg)
{
	struct job_record *job = step_ptr ? step_ptr->job_ptr : find_job_record(job_id);
	struct record *record = step_ptr ? step_ptr->check_job : job ? job->check_job : NULL;
	if (!record)
		return ESLURM_INVALID_JOB_ID;
	switch (op) {
	case CHECK_ABLE:
		*event_time = record->time_stamp;
		return record->disabled ? ESLURM_DISABLED : SLURM_SUCCESS;
	case CHECK_DISABLE:
		record->disabled++;
		return SLURM_SUCCESS;
	case CHECK_ENABLE:
		record->disabled -= record->disabled > 0;
		return SLURM_SUCCESS;
	case CHECK_ERROR:
		*error_code = record->error_code;
		*error_msg = xstrdup(record->error_msg);
		return SLURM_SUCCESS;
	case CHECK_CREATE:
	case CHECK_VACATE:
		return begin((struct order) {.job_id = job_id, .step_id = step_id, .op = op,
					     .max_wait = data, .serial = (*find(record, 0))->serial},
			     record, step_ptr ? step_ptr->step_layout->node_list : NULL, image_dir);
	default:
		return ESLURM_NOT_SUPPORTED;
	}
}

int slurm_ckpt_comp(struct step_record *step_ptr, time_t event_time, uint32_t error_code, char *error_msg)
{
	(void) step_ptr;
	(void) event_time;
	(void) error_code;
	(void) error_msg;
	return ESLURM_NOT_SUPPORTED;
}

/* ---- tasks, in the step daemon ---- */

int slurm_ckpt_stepd_prefork(void *slurmd_job)
{
	stepd_step_rec_t *job = slurmd_job;
	const char *before = getenvp(job->env, "LD_PRELOAD");
	return setenvf(&job->env, "LD_PRELOAD", "%s%s%s", "libcr_run.so", before ? ":" : "",
		       before ? before : "");
}

static char *image_of(const stepd_step_rec_t *job, const char *image_dir, int gtid)
{
	return job->batch ? xstrdup_printf("%s/script.ckpt", image_dir)
			  : xstrdup_printf("%s/task.%d.ckpt", image_dir, gtid);
}

/* Save a task: the helper runs as the user, where the step runs. */
static pid_t save(const stepd_step_rec_t *job, const char *image_dir, const stepd_step_task_info_t *task)
{
	char pid[16], *image = image_of(job, image_dir, task->gtid);
	snprintf(pid, sizeof pid, "%d", (int) task->pid);
	pid_t child = fork();
	if (child == 0) {
		if (setgid(job->gid) || setuid(job->uid) || chdir(job->cwd))
			_exit(errno);
		execl(SAVER, SAVER, pid, image, NULL);
		_exit(errno);
	}
	xfree(image);
	return child;
}

int slurm_ckpt_signal_tasks(void *slurmd_job, char *image_dir)
{
	stepd_step_rec_t *job = slurmd_job;
	pid_t *savers = xcalloc(job->node_tasks, sizeof *savers);
	int rc = SLURM_SUCCESS;
	for (uint32_t k = 0; k < job->node_tasks; k++)
		savers[k] = save(job, image_dir, job->task[k]);
	for (uint32_t k = 0; k < job->node_tasks; k++) {
		int status = 1;
		if (savers[k] < 0 || waitpid(savers[k], &status, 0) < 0 || status)
			rc = SLURM_ERROR;
	}
	xfree(savers);
	return rc;
}

/* Become what was saved; come back only if that cannot be. */
int slurm_ckpt_restart_task(void *slurmd_job, char *image_dir, int gtid)
{
	char *image = image_of(slurmd_job, image_dir, gtid);
	execl(RESTARTER, RESTARTER, image, NULL);
	xfree(image);
	return SLURM_ERROR;
}
