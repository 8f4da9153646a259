/* A switch plugin after the guide: keys that count up, credentials and records with magic numbers. */
#include <stdlib.h>

#include "simctl_plugin.h"

#define MAGIC 0xc0ffee
#define BAD_CREDENTIAL 3001

const char plugin_name[] = "hands out keys";
const char plugin_type[] = "switch/keys";
const uint32_t plugin_version = 1;

struct credential {
	uint32_t magic, key, tasks;
	char *nodes;
};

struct node {
	uint32_t magic;
	char host[64];
	uint32_t seen;
};

static int last_error;		/* what switch_p_get_errno tells */
static uint32_t keys;		/* how many keys slurmctld has given */
static int context = -1;	/* what job_init has opened, in its own process */

static int fails(int number)
{
	last_error = number;
	return SLURM_ERROR;
}

static struct credential *known(switch_jobinfo_t job)
{
	struct credential *found = job;
	return found && found->magic == MAGIC ? found : NULL;
}

int init(void) { return SLURM_SUCCESS; }
void fini(void) { context = -1; }

/* ---- state of the whole switch ---- */

static char *state_file(char *folder) { return xstrdup_printf("%s/keys", folder); }

int switch_p_libstate_save(char *dir_name)
{
	char *path = state_file(dir_name);
	FILE *file = fopen(path, "w");
	xfree(path);
	if (!file)
		return fails(errno);
	fprintf(file, "%u\n", keys);
	fclose(file);
	return SLURM_SUCCESS;
}

int switch_p_libstate_restore(char *dir_name)
{
	char *path = state_file(dir_name);
	FILE *file = fopen(path, "r");
	xfree(path);
	if (!file)
		return SLURM_SUCCESS;
	int count = fscanf(file, "%u", &keys);
	fclose(file);
	return count == 1 ? SLURM_SUCCESS : fails(EINVAL);
}

bool switch_p_no_frag(void) { return false; }
int switch_p_clear_node_state(void) { return SLURM_SUCCESS; }

/* ---- nodes ---- */

int switch_p_alloc_node_info(switch_node_info_t *switch_node)
{
	struct node *made = xmalloc(sizeof *made);
	made->magic = MAGIC;
	*switch_node = made;
	return SLURM_SUCCESS;
}

int switch_p_build_node_info(switch_node_info_t switch_node)
{
	struct node *node = switch_node;
	gethostname(node->host, sizeof node->host);
	node->seen = (uint32_t) time(NULL);
	return SLURM_SUCCESS;
}

int switch_p_pack_node_info(switch_node_info_t switch_node, Buf buffer)
{
	struct node *node = switch_node;
	uint32_t start = get_buf_offset(buffer);
	packstr(node->host, buffer);
	pack32(node->seen, buffer);
	return (int) (get_buf_offset(buffer) - start);
}

int switch_p_unpack_node_info(switch_node_info_t switch_node, Buf buffer)
{
	struct node *node = switch_node;
	char *host;
	uint32_t length;
	safe_unpackstr_xmalloc(&host, &length, buffer);
	snprintf(node->host, sizeof node->host, "%s", host ? host : "");
	xfree(host);
	safe_unpack32(&node->seen, buffer);
	return SLURM_SUCCESS;
unpack_error:
	return fails(EINVAL);
}

void switch_p_free_node_info(switch_node_info_t switch_node) { xfree(switch_node); }

char *switch_p_sprintf_node_info(switch_node_info_t switch_node, char *buf, size_t size)
{
	struct node *node = switch_node;
	snprintf(buf, size, "%s seen at %u", node->host, node->seen);
	return buf;
}

/* ---- credentials ---- */

int switch_p_alloc_jobinfo(switch_jobinfo_t *switch_job)
{
	struct credential *made = xmalloc(sizeof *made);
	made->magic = MAGIC;
	*switch_job = made;
	return SLURM_SUCCESS;
}

int switch_p_build_jobinfo(switch_jobinfo_t switch_job, char *nodelist, int nprocs, int cyclic_alloc)
{
	struct credential *job = known(switch_job);
	(void) cyclic_alloc;
	if (!job)
		return fails(BAD_CREDENTIAL);
	job->key = ++keys;
	job->tasks = (uint32_t) nprocs;
	xfree(job->nodes);
	job->nodes = xstrdup(nodelist);
	return SLURM_SUCCESS;
}

switch_jobinfo_t switch_p_copy_jobinfo(switch_jobinfo_t switch_job)
{
	struct credential *job = known(switch_job);
	if (!job)
		return NULL;
	struct credential *copy = xmalloc(sizeof *copy);
	*copy = *job;
	copy->nodes = xstrdup(job->nodes);
	return copy;
}

void switch_p_free_jobinfo(switch_jobinfo_t switch_job)
{
	struct credential *job = known(switch_job);
	if (!job)
		return;
	job->magic = 0;
	xfree(job->nodes);
	xfree(job);
}

int switch_p_pack_jobinfo(switch_jobinfo_t switch_job, Buf buffer)
{
	struct credential *job = known(switch_job);
	if (!job)
		return fails(BAD_CREDENTIAL);
	uint32_t start = get_buf_offset(buffer);
	pack32(job->magic, buffer);
	pack32(job->key, buffer);
	pack32(job->tasks, buffer);
	packstr(job->nodes, buffer);
	return (int) (get_buf_offset(buffer) - start);
}

int switch_p_unpack_jobinfo(switch_jobinfo_t switch_job, Buf buffer)
{
	struct credential *job = known(switch_job);
	uint32_t magic, length;
	if (!job)
		return fails(BAD_CREDENTIAL);
	safe_unpack32(&magic, buffer);
	if (magic != MAGIC)
		goto unpack_error;
	safe_unpack32(&job->key, buffer);
	safe_unpack32(&job->tasks, buffer);
	xfree(job->nodes);
	safe_unpackstr_xmalloc(&job->nodes, &length, buffer);
	return SLURM_SUCCESS;
unpack_error:
	return fails(BAD_CREDENTIAL);
}

int switch_p_get_jobinfo(switch_jobinfo_t switch_job, int data_type, void *data)
{
	struct credential *job = known(switch_job);
	if (!job || data_type)
		return fails(EINVAL);
	*(uint32_t *) data = job->key;
	return SLURM_SUCCESS;
}

int switch_p_get_data_jobinfo(switch_jobinfo_t switch_job, int key, void *resulting_data)
{
	return switch_p_get_jobinfo(switch_job, key, resulting_data);
}

int switch_p_job_step_complete(switch_jobinfo_t switch_job, char *nodelist)
{
	(void) nodelist;
	return known(switch_job) ? SLURM_SUCCESS : fails(BAD_CREDENTIAL);
}

void switch_p_print_jobinfo(FILE *fp, switch_jobinfo_t switch_job)
{
	struct credential *job = known(switch_job);
	if (job)
		fprintf(fp, "key %u for %u tasks on %s\n", job->key, job->tasks, job->nodes);
}

char *switch_p_sprint_jobinfo(switch_jobinfo_t switch_job, char *buf, size_t size)
{
	struct credential *job = known(switch_job);
	snprintf(buf, size, "key=%u", job ? job->key : 0);
	return buf;
}

/* ---- on nodes ---- */

int switch_p_node_init(void) { return SLURM_SUCCESS; }
int switch_p_node_fini(void) { return SLURM_SUCCESS; }

int switch_p_job_preinit(switch_jobinfo_t switch_job)
{
	return known(switch_job) ? SLURM_SUCCESS : fails(BAD_CREDENTIAL);
}

int switch_p_job_init(switch_jobinfo_t switch_job, uid_t uid)
{
	struct credential *job = known(switch_job);
	(void) uid;
	if (!job)
		return fails(BAD_CREDENTIAL);
	context = (int) (7000 + job->key);
	return SLURM_SUCCESS;
}

int switch_p_job_attach(switch_jobinfo_t switch_job, char ***env, uint32_t nodeid, uint32_t procid,
			uint32_t nnodes, uint32_t nprocs, uint32_t rank)
{
	struct credential *job = known(switch_job);
	(void) nodeid;
	(void) procid;
	(void) nnodes;
	(void) nprocs;
	if (!job)
		return fails(BAD_CREDENTIAL);
	setenvpf(env, "KEYS_KEY", "%u", job->key);
	setenvpf(env, "KEYS_CONTEXT", "%d.%u.%d", context, rank, getuid());
	return SLURM_SUCCESS;
}

int switch_p_job_fini(switch_jobinfo_t switch_job)
{
	context = -1;
	return known(switch_job) ? SLURM_SUCCESS : fails(BAD_CREDENTIAL);
}

int switch_p_job_postfini(switch_jobinfo_t switch_job, uid_t pgid, uint32_t job_id, uint32_t step_id)
{
	(void) pgid;
	info("step %u.%u is over, context %d", job_id, step_id, context);
	return known(switch_job) ? SLURM_SUCCESS : fails(BAD_CREDENTIAL);
}

int switch_p_get_errno(void) { return last_error; }

char *switch_p_strerror(int errnum)
{
	return errnum == BAD_CREDENTIAL ? (char *) "no credential of switch/keys" : NULL;
}
