/* What slurmctld itself has for checkpoint plugins. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "host.h"

/* Send what was begun; return 0, or -1 with the error that the emulator answers. */
static int asked(void)
{
	errno = (int) get_u32(ask());
	return errno ? -1 : 0;
}

/* Have the srun of the step that the call is about run a program. */
EXPORT int srun_exec(const void *step, char **argv)
{
	if (my_socket() < 0 || !step)
		return -1;
	put_texts(ask_begin('R'), argv);
	return asked();
}

/* Have the nodes save the tasks of a step, and wait until they have. */
EXPORT int checkpoint_tasks(uint32_t job_id, uint32_t step_id, time_t begin_time, char *image_dir,
			    uint16_t max_wait, char *nodelist)
{
	if (my_socket() < 0)
		return -1;
	struct frame *f = ask_begin('k');
	put_u32(f, job_id);
	put_u32(f, step_id);
	put_u64(f, (uint64_t) begin_time);
	put_text(f, image_dir);
	put_u32(f, max_wait);
	put_text(f, nodelist);
	return asked();
}

EXPORT int slurm_checkpoint_tasks(uint32_t job_id, uint32_t step_id, time_t begin_time, char *image_dir,
				  uint16_t max_wait, char *nodelist)
{
	return checkpoint_tasks(job_id, step_id, begin_time, image_dir, max_wait, nodelist);
}

/* Signal the tasks of a step on all its nodes; versions of Slurm pass more after these. */
EXPORT int job_step_signal(uint32_t job_id, uint32_t step_id, uint16_t number)
{
	if (my_socket() < 0)
		return -1;
	struct frame *f = ask_begin('s');
	put_u32(f, job_id);
	put_u32(f, step_id);
	put_u32(f, number);
	return asked();
}

/* slurmctld's locks: simctl has one for all. What a plugin passes by value, which locks it wants, lies on
 * the stack, where it may stay. */
EXPORT void lock_slurmctld(void)
{
	if (my_socket() < 0)
		return;
	put_u8(ask_begin('l'), 1);
	ask();
}

EXPORT void unlock_slurmctld(void)
{
	if (my_socket() < 0)
		return;
	put_u8(ask_begin('l'), 0);
	ask();
}

/* Return slurmctld's record of a job as it is now, or NULL. A plugin may hold on to some hundred of
 * them; one that it asks for again is a new one. */
#define KEPT 256

EXPORT void *find_job_record(uint32_t job_id)
{
	static struct image *kept[KEPT];
	static int next;
	if (my_socket() < 0)
		return NULL;
	put_u32(ask_begin('f'), job_id);
	struct image *image = take_image(ask());
	if (!image_start(image)) {
		free_image(image);
		return NULL;
	}
	if (kept[next])
		free_image(kept[next]);
	kept[next] = image;
	next = (next + 1) % KEPT;
	return image_start(image);
}
