/* Environments of tasks: arrays of NAME=value, NULL at the end, all of it from xmalloc. */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "slurm.h"

#define LONGEST_VALUE 65536

/* Return the place of a name in an environment, or that of its end. */
static size_t place_of(char **env, const char *name)
{
	size_t length = strlen(name);
	size_t k = 0;
	for (; env && env[k]; k++)
		if (!strncmp(env[k], name, length) && env[k][length] == '=')
			break;
	return k;
}

static int set(char ***env, const char *name, const char *value)
{
	char *pair = new_memory(strlen(name) + strlen(value) + 2);
	sprintf(pair, "%s=%s", name, value);
	size_t place = place_of(*env, name);
	if (*env && (*env)[place]) {
		slurm_xfree((void **) &(*env)[place]);
	} else {
		slurm_xrecalloc((void **) env, place + 2, sizeof **env, true, false, HERE);
		(*env)[place + 1] = NULL;
	}
	(*env)[place] = pair;
	return 1;
}

static int set_formatted(char ***env, const char *name, const char *format, va_list values)
{
	char value[LONGEST_VALUE];
	if (vsnprintf(value, sizeof value, format, values) >= LONGEST_VALUE)
		return 0;
	return set(env, name, value);
}

EXPORT int slurm_env_array_overwrite(char ***env, const char *name, const char *value)
{
	return set(env, name, value ? value : "");
}

EXPORT int slurm_env_array_append(char ***env, const char *name, const char *value)
{
	size_t place = place_of(*env, name);
	return *env && (*env)[place] ? 0 : set(env, name, value ? value : "");
}

EXPORT __attribute__((format(printf, 3, 4))) int slurm_env_array_overwrite_fmt(
	char ***env, const char *name, const char *format, ...)
{
	va_list values;
	va_start(values, format);
	int result = set_formatted(env, name, format, values);
	va_end(values);
	return result;
}

/* Set a variable; 0 for success, as setenv. */
EXPORT __attribute__((format(printf, 3, 4))) int slurm_setenvpf(char ***env, const char *name,
								 const char *format, ...)
{
	va_list values;
	va_start(values, format);
	int result = set_formatted(env, name, format, values) ? 0 : -1;
	va_end(values);
	return result;
}

EXPORT __attribute__((format(printf, 3, 4))) int slurm_setenvf(char ***env, const char *name,
								const char *format, ...)
{
	va_list values;
	va_start(values, format);
	int result = set_formatted(env, name, format, values) ? 0 : -1;
	va_end(values);
	return result;
}

EXPORT int slurm_setenvp(char ***env, const char *pair)
{
	const char *sign = strchr(pair, '=');
	if (!sign)
		return -1;
	char name[256];
	if ((size_t) (sign - pair) >= sizeof name)
		return -1;
	memcpy(name, pair, (size_t) (sign - pair));
	name[sign - pair] = 0;
	return set(env, name, sign + 1) ? 0 : -1;
}

EXPORT char *slurm_getenvp(char **env, const char *name)
{
	size_t place = place_of(env, name);
	return env && env[place] ? env[place] + strlen(name) + 1 : NULL;
}

EXPORT void slurm_unsetenvp(char **env, const char *name)
{
	size_t place = place_of(env, name);
	if (!env || !env[place])
		return;
	slurm_xfree((void **) &env[place]);
	for (; env[place + 1]; place++)
		env[place] = env[place + 1];
	env[place] = NULL;
}

ALSO(int, env_array_overwrite, char ***, const char *, const char *);
ALSO(int, env_array_append, char ***, const char *, const char *);
ALSO(int, env_array_overwrite_fmt, char ***, const char *, const char *, ...);
ALSO(int, setenvpf, char ***, const char *, const char *, ...);
ALSO(int, setenvf, char ***, const char *, const char *, ...);
ALSO(int, setenvp, char ***, const char *);
ALSO(char *, getenvp, char **, const char *);
ALSO(void, unsetenvp, char **, const char *);
