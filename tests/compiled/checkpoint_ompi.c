/* A checkpoint plugin after the guide that has srun run a program: as simctl's own checkpoint/ompi. */
#include "simctl_plugin.h"

#define OUR_ID 3

const char plugin_name[] = "has srun save the step";
const char plugin_type[] = "checkpoint/twin";
const uint32_t plugin_version = 100;

struct record {
	uint16_t disabled, node_cnt, reply_cnt, wait_time;
	uint32_t error_code;
	char *error_msg;
	time_t time_stamp;
};

int init(void) { return SLURM_SUCCESS; }
void fini(void) { }

/* ---- records ---- */

int slurm_ckpt_alloc_job(check_jobinfo_t *jobinfo)
{
	struct record *made = xmalloc(sizeof *made);
	made->error_msg = xstrdup("");
	*jobinfo = made;
	return SLURM_SUCCESS;
}

int slurm_ckpt_free_job(check_jobinfo_t jobinfo)
{
	struct record *record = jobinfo;
	if (record)
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
		pack16(record->node_cnt, body);
		pack16(record->reply_cnt, body);
		pack16(record->wait_time, body);
		pack32(record->error_code, body);
		packstr(record->error_msg, body);
		pack_time(record->time_stamp, body);
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
	safe_unpack16(&record->node_cnt, body);
	safe_unpack16(&record->reply_cnt, body);
	safe_unpack16(&record->wait_time, body);
	safe_unpack32(&record->error_code, body);
	xfree(record->error_msg);
	safe_unpackstr_xmalloc(&record->error_msg, &length, body);
	if (slurm_unpack_time(&record->time_stamp, body))
		goto unpack_error;
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
	struct record *copy = xmalloc(sizeof *copy);
	*copy = *record;
	copy->error_msg = xstrdup(record->error_msg);
	return copy;
}

/* ---- in slurmctld ---- */

static int begin(struct step_record *step, struct record *record, uint16_t op, uint16_t data)
{
	char *argv[] = {(char *) "ompi-checkpoint", op == CHECK_VACATE ? (char *) "--term" : NULL, NULL};
	if (record->disabled)
		return ESLURM_DISABLED;
	record->time_stamp = time(NULL);
	record->error_code = 0;
	xfree(record->error_msg);
	record->error_msg = xstrdup("");
	record->reply_cnt = 0;
	record->wait_time = data;
	if (srun_exec(step, argv)) {
		record->time_stamp = 0;
		return ESLURM_NOT_SUPPORTED;
	}
	return SLURM_SUCCESS;
}

int slurm_ckpt_op(uint32_t job_id, uint32_t step_id, struct step_record *step_ptr, uint16_t op,
		  uint16_t data, char *image_dir, time_t *event_time, uint32_t *error_code,
		  char **error_msg)
{
	(void) image_dir;
	if (!step_ptr)
		return ESLURM_NOT_SUPPORTED;
	struct record *record = step_ptr->check_job;
	if (!record || step_ptr->job_ptr->job_id != job_id || step_ptr->step_id != step_id)
		return ESLURM_INVALID_JOB_ID;
	switch (op) {
	case CHECK_ABLE:
		*event_time = record->reply_cnt ? 0 : record->time_stamp;
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
		return begin(step_ptr, record, op, data);
	default:
		errno = ESLURM_NOT_SUPPORTED;
		return SLURM_ERROR;
	}
}

int slurm_ckpt_comp(struct step_record *step_ptr, time_t event_time, uint32_t error_code, char *error_msg)
{
	struct record *record = step_ptr ? step_ptr->check_job : NULL;
	(void) event_time;
	if (!record)
		return ESLURM_INVALID_JOB_ID;
	if (record->reply_cnt)
		return ESLURM_ALREADY_DONE;
	if (error_code > record->error_code) {
		record->error_code = error_code;
		xfree(record->error_msg);
		record->error_msg = xstrdup(error_msg);
	}
	record->reply_cnt = 1;
	record->time_stamp = time(NULL);
	return SLURM_SUCCESS;
}

/* ---- in slurmstepd and its tasks: srun and Open MPI do it all ---- */

int slurm_ckpt_stepd_prefork(void *slurmd_job)
{
	(void) slurmd_job;
	return SLURM_SUCCESS;
}

int slurm_ckpt_signal_tasks(void *slurmd_job, char *image_dir)
{
	(void) slurmd_job;
	(void) image_dir;
	return ESLURM_NOT_SUPPORTED;
}

int slurm_ckpt_restart_task(void *slurmd_job, char *image_dir, int gtid)
{
	(void) slurmd_job;
	(void) image_dir;
	(void) gtid;
	return ESLURM_NOT_SUPPORTED;
}
