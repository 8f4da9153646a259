/* Slurm's own functions that the host needs: this project's, or those of a library of the user's. */
#ifndef SIMCTL_LIBRARY_H
#define SIMCTL_LIBRARY_H

#include <stddef.h>
#include <stdint.h>

struct library {
	void *(*allocate)(size_t size);
	char *(*duplicate)(const char *text);
	void (*release)(void *memory);
	void *(*new_buffer)(void);
	void *(*buffer_of)(const unsigned char *data, uint32_t length);
	void (*free_buffer)(uint64_t buffer);
	const char *(*bytes)(uint64_t buffer);
	uint32_t (*position)(uint64_t buffer);
};

extern struct library library;

/* Find them among what was opened for all; return what is missing, or NULL. */
const char *find_library(void);

#endif
