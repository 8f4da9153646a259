/* Slurm's log functions; they stand in the host itself, so that a library's of its own are not used. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host.h"

enum { QUIET, FATAL, ERROR, INFO, VERBOSE, DEBUG, DEBUG2, DEBUG3, DEBUG4, DEBUG5 };

/* Write a line: printf's conversions, and Slurm's %m. */
static void write_line(int level, const char *format, va_list values)
{
	char line[4096];
	int kept = errno;
	vsnprintf(line, sizeof line, format, values);
	if (my_socket() >= 0)
		tell_text('L', (uint32_t) level, line);
	errno = kept;
}

#define LOGGER(name, level, type, result) \
	EXPORT __attribute__((format(printf, 1, 2))) type slurm_##name(const char *format, ...) \
	{ \
		va_list values; \
		va_start(values, format); \
		write_line(level, format, values); \
		va_end(values); \
		result; \
	} \
	EXPORT __attribute__((format(printf, 1, 2))) type name(const char *format, ...) \
	{ \
		va_list values; \
		va_start(values, format); \
		write_line(level, format, values); \
		va_end(values); \
		result; \
	}

#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wbuiltin-declaration-mismatch"
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#endif

LOGGER(info, INFO, void, return)
LOGGER(verbose, VERBOSE, void, return)
LOGGER(debug, DEBUG, void, return)
LOGGER(debug2, DEBUG2, void, return)
LOGGER(debug3, DEBUG3, void, return)
LOGGER(debug4, DEBUG4, void, return)
LOGGER(debug5, DEBUG5, void, return)
/* Slurm's sources call it as a statement, and newer ones return what it returns. */
int slurm_error(const char *format, ...);
EXPORT __attribute__((format(printf, 1, 2))) int slurm_error(const char *format, ...)
{
	va_list values;
	va_start(values, format);
	write_line(ERROR, format, values);
	va_end(values);
	return -1;
}

int error(const char *format, ...);
EXPORT __attribute__((format(printf, 1, 2))) int error(const char *format, ...)
{
	va_list values;
	va_start(values, format);
	write_line(ERROR, format, values);
	va_end(values);
	return -1;
}

EXPORT __attribute__((format(printf, 2, 3))) void slurm_log_var(int level, const char *format, ...)
{
	va_list values;
	va_start(values, format);
	write_line(level, format, values);
	va_end(values);
}

EXPORT int slurm_get_log_level(void) { return DEBUG5; }
EXPORT int get_log_level(void) { return DEBUG5; }

#define FATAL_ONE(name) \
	EXPORT __attribute__((format(printf, 1, 2), noreturn)) void name(const char *format, ...) \
	{ \
		va_list values; \
		va_start(values, format); \
		write_line(FATAL, format, values); \
		va_end(values); \
		exit(1); \
	}

FATAL_ONE(slurm_fatal)
FATAL_ONE(fatal)
FATAL_ONE(slurm_fatal_abort)
