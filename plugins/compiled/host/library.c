#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

#include "host.h"
#include "library.h"

struct library library;

/* The beginning of Slurm's buffers, the same from version 1.0 to 19.05. */
struct buffer {
	uint32_t magic;
	char *head;
	uint32_t size;
	uint32_t processed;
};

typedef void *(*xcalloc_function)(size_t, size_t, bool, bool, const char *, int, const char *);
typedef void *(*xmalloc_function)(size_t, bool, const char *, int, const char *);

static xcalloc_function xcalloc_found;
static xmalloc_function xmalloc_found;
static void (*xfree_found)(void **, const char *, int, const char *);
static char *(*xstrdup_found)(const char *);
static void *(*init_buf_found)(uint32_t);
static void *(*create_buf_found)(char *, uint32_t);
static void (*free_buf_found)(void *);

static void *allocate(size_t size)
{
	if (xcalloc_found)
		return xcalloc_found(1, size, true, false, __FILE__, __LINE__, __func__);
	return xmalloc_found(size, true, __FILE__, __LINE__, __func__);
}

static char *duplicate(const char *text) { return xstrdup_found(text); }
/* Older versions want the place of the call; newer ones look at the first argument alone. */
static void release(void *memory) { xfree_found(&memory, __FILE__, __LINE__, __func__); }
static void *new_buffer(void) { return init_buf_found(16384); }

static void *buffer_of(const unsigned char *data, uint32_t length)
{
	char *copy = allocate((size_t) length + 1);
	if (length)
		memcpy(copy, data, length);
	return create_buf_found(copy, length);
}

static void free_buffer(uint64_t buffer) { free_buf_found((void *) buffer); }
static const char *bytes(uint64_t buffer) { return ((struct buffer *) buffer)->head; }
static uint32_t position(uint64_t buffer) { return ((struct buffer *) buffer)->processed; }

/* Slurm's names begin with slurm_ or not, by function and version. */
static void *find(const char *name)
{
	void *found = dlsym(RTLD_DEFAULT, name);
	return found ? found : dlsym(RTLD_DEFAULT, name + strlen("slurm_"));
}

const char *find_library(void)
{
	xcalloc_found = (xcalloc_function) find("slurm_xcalloc");
	xmalloc_found = (xmalloc_function) find("slurm_xmalloc");
	xstrdup_found = (char *(*)(const char *)) find("slurm_xstrdup");
	xfree_found = (void (*)(void **, const char *, int, const char *)) find("slurm_xfree");
	init_buf_found = (void *(*)(uint32_t)) find("slurm_init_buf");
	create_buf_found = (void *(*)(char *, uint32_t)) find("slurm_create_buf");
	free_buf_found = (void (*)(void *)) find("slurm_free_buf");
	if (!xcalloc_found && !xmalloc_found)
		return "it has neither slurm_xcalloc nor slurm_xmalloc";
	if (!xstrdup_found || !xfree_found || !init_buf_found || !create_buf_found || !free_buf_found)
		return "it lacks xstrdup, xfree, init_buf, create_buf or free_buf";
	library = (struct library) {allocate, duplicate, release, new_buffer, buffer_of,
				    free_buffer, bytes, position};
	return NULL;
}
