/* Memory: what xmalloc gives has a head of two words, as Slurm's has. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "slurm.h"

#define MAGIC 0x42

void slurm_fatal(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

EXPORT void *slurm_xcalloc(size_t count, size_t size, bool clear, bool try_it, const char *file,
			   int line, const char *function)
{
	size_t total;
	size_t *head = NULL;
	if (!count || !size)
		return NULL;
	if (!__builtin_mul_overflow(count, size, &total) && total < SIZE_MAX - 2 * sizeof *head)
		head = clear ? calloc(1, total + 2 * sizeof *head) : malloc(total + 2 * sizeof *head);
	if (!head) {
		if (try_it)
			return NULL;
		slurm_fatal("%s:%d: %s: cannot allocate %zu bytes", file, line, function, count * size);
	}
	head[0] = MAGIC;
	head[1] = total;
	return head + 2;
}

EXPORT void *slurm_xmalloc(size_t size, bool clear, const char *file, int line, const char *function)
{
	return slurm_xcalloc(1, size, clear, false, file, line, function);
}

EXPORT void *slurm_try_xmalloc(size_t size, const char *file, int line, const char *function)
{
	return slurm_xcalloc(1, size, true, true, file, line, function);
}

/* Return the head of an item; a pointer that xmalloc never gave ends the process. */
static size_t *head_of(void *item, const char *what)
{
	size_t *head = (size_t *) item - 2;
	if (head[0] != MAGIC)
		slurm_fatal("%s of a pointer that xmalloc did not give, or that was freed", what);
	return head;
}

EXPORT void *slurm_xrecalloc(void **item, size_t count, size_t size, bool clear, bool try_it,
			     const char *file, int line, const char *function)
{
	if (!*item)
		return *item = slurm_xcalloc(count, size, clear, try_it, file, line, function);
	size_t *head = head_of(*item, "xrealloc");
	size_t before = head[1], total;
	size_t *anew = NULL;
	if (!__builtin_mul_overflow(count, size, &total) && total < SIZE_MAX - 2 * sizeof *head)
		anew = realloc(head, total + 2 * sizeof *head);
	if (!anew) {
		if (try_it)
			return NULL;
		slurm_fatal("%s:%d: %s: cannot allocate %zu bytes", file, line, function, count * size);
	}
	if (clear && total > before)
		memset((char *) (anew + 2) + before, 0, total - before);
	anew[1] = total;
	return *item = anew + 2;
}

EXPORT void *slurm_xrealloc(void **item, size_t size, bool clear, const char *file, int line,
			    const char *function)
{
	return slurm_xrecalloc(item, 1, size, clear, false, file, line, function);
}

EXPORT size_t slurm_xsize(void *item) { return item ? head_of(item, "xsize")[1] : 0; }

EXPORT void slurm_xfree(void **item)
{
	if (!*item)
		return;
	size_t *head = head_of(*item, "xfree");
	head[0] = 0;
	free(head);
	*item = NULL;
}

EXPORT void slurm_xfree_ptr(void *item) { slurm_xfree(&item); }

EXPORT void slurm_xfree_array(char ***array)
{
	for (char **each = *array; each && *each; each++)
		slurm_xfree((void **) each);
	slurm_xfree((void **) array);
}

ALSO(void *, xmalloc, size_t, bool, const char *, int, const char *);
ALSO(void *, xcalloc, size_t, size_t, bool, bool, const char *, int, const char *);
ALSO(void *, xrealloc, void **, size_t, bool, const char *, int, const char *);
ALSO(void *, xrecalloc, void **, size_t, size_t, bool, bool, const char *, int, const char *);
ALSO(size_t, xsize, void *);
ALSO(void, xfree, void **);
ALSO(void, xfree_ptr, void *);
ALSO(void, xfree_array, char ***);
