/* Slurm's functions that plugins call, as plugins see them. */
#ifndef SIMCTL_SLURM_H
#define SIMCTL_SLURM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))

/* A function under both its names: plugins of slurmctld's own say `name`, others `slurm_name`. */
#define ALSO(type, name, ...) \
	EXPORT __attribute__((alias("slurm_" #name))) type name(__VA_ARGS__)

#define HERE __FILE__, __LINE__, __func__

void *slurm_xcalloc(size_t count, size_t size, bool clear, bool try_it, const char *file, int line,
		    const char *function);
void *slurm_xrecalloc(void **item, size_t count, size_t size, bool clear, bool try_it,
		      const char *file, int line, const char *function);
void slurm_xfree(void **item);
char *slurm_xstrdup(const char *text);
void slurm_xstrcat(char **text, const char *more);

/* Memory that is zero, of which there is enough or the process ends. */
#define new_memory(size) slurm_xcalloc(1, size, true, false, HERE)

#endif
