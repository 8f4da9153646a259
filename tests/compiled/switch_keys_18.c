/* switch_keys.c with the prototypes of Slurm 18.08, which looks at what it is given besides. */
#define switch_p_libstate_restore guide_libstate_restore
#define switch_p_alloc_jobinfo guide_alloc_jobinfo
#define switch_p_build_jobinfo guide_build_jobinfo
#define switch_p_copy_jobinfo guide_copy_jobinfo
#define switch_p_pack_jobinfo guide_pack_jobinfo
#define switch_p_unpack_jobinfo guide_unpack_jobinfo
#define switch_p_job_init guide_job_init
#define switch_p_job_attach guide_job_attach
#define switch_p_job_postfini guide_job_postfini
#define switch_p_pack_node_info guide_pack_node_info
#define switch_p_unpack_node_info guide_unpack_node_info
#define switch_p_free_node_info guide_free_node_info
#define switch_p_no_frag guide_no_frag
#define switch_p_get_data_jobinfo guide_get_data_jobinfo
#define plugin_version number_of_the_interface
#include "switch_keys.c"
#undef switch_p_libstate_restore
#undef switch_p_alloc_jobinfo
#undef switch_p_build_jobinfo
#undef switch_p_copy_jobinfo
#undef switch_p_pack_jobinfo
#undef switch_p_unpack_jobinfo
#undef switch_p_job_init
#undef switch_p_job_attach
#undef switch_p_job_postfini
#undef switch_p_pack_node_info
#undef switch_p_unpack_node_info
#undef switch_p_free_node_info
#undef plugin_version

#ifndef VERSION
#define VERSION (18 << 16 | 8 << 8 | 9)
#endif
#define PROTOCOL (33 << 8)

const uint32_t plugin_version = VERSION;

/* What a call was given besides is as it has to be, or the process ends. */
#define HOLD(claim) do { if (!(claim)) fatal("%s: not so: %s", __func__, #claim); } while (0)

int switch_p_libstate_restore(char *dir_name, bool recover)
{
	HOLD(recover == 0 || recover == 1);
	return guide_libstate_restore(dir_name);
}

int switch_p_alloc_jobinfo(switch_jobinfo_t *switch_job, uint32_t job_id, uint32_t step_id)
{
	HOLD(job_id < 100 && step_id < 100);
	return guide_alloc_jobinfo(switch_job);
}

int switch_p_build_jobinfo(switch_jobinfo_t switch_job, slurm_step_layout_t *step_layout, char *network)
{
	uint32_t tasks = 0;
	HOLD(!network);
	for (uint32_t k = 0; k < step_layout->node_cnt; k++)
		for (uint32_t t = 0; t < step_layout->tasks[k]; t++, tasks++)
			HOLD(step_layout->tids[k][t] < step_layout->task_cnt);
	HOLD(tasks == step_layout->task_cnt);
	return guide_build_jobinfo(switch_job, step_layout->node_list, (int) tasks, 0);
}

int switch_p_duplicate_jobinfo(switch_jobinfo_t switch_job, switch_jobinfo_t *copy)
{
	*copy = guide_copy_jobinfo(switch_job);
	return *copy ? SLURM_SUCCESS : SLURM_ERROR;
}

int switch_p_pack_jobinfo(switch_jobinfo_t switch_job, Buf buffer, uint16_t protocol_version)
{
	HOLD(protocol_version == PROTOCOL);
	return guide_pack_jobinfo(switch_job, buffer) < 0 ? SLURM_ERROR : SLURM_SUCCESS;
}

int switch_p_unpack_jobinfo(switch_jobinfo_t *switch_job, Buf buffer, uint16_t protocol_version)
{
	HOLD(protocol_version == PROTOCOL && !*switch_job);
	guide_alloc_jobinfo(switch_job);
	return guide_unpack_jobinfo(*switch_job, buffer);
}

int switch_p_job_init(stepd_step_rec_t *job)
{
	HOLD(known(job->switch_job) && job->jobid && job->node_tasks <= job->ntasks);
	HOLD(job->nodeid < job->nnodes && job->uid >= 1000 && getenvp(job->env, "SLURM_JOB_ID"));
	setenvf(&job->env, "KEYS_INIT", "%s", job->cwd);
	return guide_job_init(job->switch_job, job->uid);
}

int switch_p_job_attach(switch_jobinfo_t switch_job, char ***env, uint32_t nodeid, uint32_t procid,
			uint32_t nnodes, uint32_t nprocs, uint32_t rank)
{
	HOLD(!xstrncmp(getenvp(*env, "KEYS_INIT"), "/home/", 6));
	return guide_job_attach(switch_job, env, nodeid, procid, nnodes, nprocs, rank);
}

int switch_p_job_postfini(stepd_step_rec_t *job)
{
	HOLD(job->jmgr_pid == getpid());
	for (uint32_t k = 0; job->task && k < job->node_tasks; k++)
		HOLD(job->task[k]->id == (int) k && (!job->task[k]->pid || job->task[k]->pid > job->jmgr_pid));
	return guide_job_postfini(job->switch_job, (uid_t) job->jmgr_pid, job->jobid, job->stepid);
}

int switch_p_pack_node_info(switch_node_info_t switch_node, Buf buffer, uint16_t protocol_version)
{
	HOLD(protocol_version == PROTOCOL);
	return guide_pack_node_info(switch_node, buffer) < 0 ? SLURM_ERROR : SLURM_SUCCESS;
}

int switch_p_unpack_node_info(switch_node_info_t *switch_node, Buf buffer, uint16_t protocol_version)
{
	HOLD(protocol_version == PROTOCOL && !*switch_node);
	switch_p_alloc_node_info(switch_node);
	return guide_unpack_node_info(*switch_node, buffer);
}

int switch_p_free_node_info(switch_node_info_t *switch_node)
{
	guide_free_node_info(*switch_node);
	*switch_node = NULL;
	return SLURM_SUCCESS;
}
