/* Texts that grow. */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "slurm.h"

EXPORT char *slurm_xstrdup(const char *text)
{
	if (!text)
		return NULL;
	char *copy = new_memory(strlen(text) + 1);
	return strcpy(copy, text);
}

EXPORT char *slurm_xstrndup(const char *text, size_t most)
{
	if (!text)
		return NULL;
	size_t length = strnlen(text, most);
	char *copy = new_memory(length + 1);
	return memcpy(copy, text, length);
}

/* Add bytes to the end of a text, which is made if it is none. */
static void add(char **text, const char *more, size_t length)
{
	size_t before = *text ? strlen(*text) : 0;
	slurm_xrecalloc((void **) text, 1, before + length + 1, true, false, HERE);
	memcpy(*text + before, more, length);
	(*text)[before + length] = 0;
}

EXPORT void slurm_xstrcat(char **text, const char *more)
{
	/* As Slurm's: no text at all is told as such. */
	add(text, more ? more : "(null)", strlen(more ? more : "(null)"));
}

EXPORT void slurm_xstrncat(char **text, const char *more, size_t most)
{
	add(text, more ? more : "(null)", strnlen(more ? more : "(null)", most));
}

EXPORT void slurm_xstrcatchar(char **text, char c) { add(text, &c, 1); }

EXPORT void slurm_xmemcat(char **text, char *start, char *end)
{
	if (end > start)
		add(text, start, (size_t) (end - start));
}

static char *formatted(const char *format, va_list values)
{
	va_list again;
	va_copy(again, values);
	int length = vsnprintf(NULL, 0, format, again);
	va_end(again);
	char *text = new_memory((size_t) (length < 0 ? 0 : length) + 1);
	vsnprintf(text, (size_t) (length < 0 ? 0 : length) + 1, format, values);
	return text;
}

EXPORT __attribute__((format(printf, 1, 2))) char *slurm_xstrdup_printf(const char *format, ...)
{
	va_list values;
	va_start(values, format);
	char *text = formatted(format, values);
	va_end(values);
	return text;
}

EXPORT __attribute__((format(printf, 2, 3))) void slurm_xstrfmtcat(char **text, const char *format, ...)
{
	va_list values;
	va_start(values, format);
	char *more = formatted(format, values);
	va_end(values);
	slurm_xstrcat(text, more);
	slurm_xfree((void **) &more);
}

EXPORT void slurm_xstrftimecat(char **text, const char *format)
{
	char more[256] = "";
	time_t now = time(NULL);
	struct tm parts;
	gmtime_r(&now, &parts);
	strftime(more, sizeof more, format && *format ? format : "%m/%d/%Y %H:%M:%S %Z", &parts);
	slurm_xstrcat(text, more);
}

/* Which of two texts comes first, where one may be none: that comes first. */
static int of_none(const char *one, const char *other) { return (one != NULL) - (other != NULL); }

EXPORT int slurm_xstrcmp(const char *one, const char *other)
{
	return one && other ? strcmp(one, other) : of_none(one, other);
}

EXPORT int slurm_xstrncmp(const char *one, const char *other, size_t most)
{
	return one && other ? strncmp(one, other, most) : of_none(one, other);
}

EXPORT int slurm_xstrcasecmp(const char *one, const char *other)
{
	return one && other ? strcasecmp(one, other) : of_none(one, other);
}

EXPORT int slurm_xstrncasecmp(const char *one, const char *other, size_t most)
{
	return one && other ? strncasecmp(one, other, most) : of_none(one, other);
}

EXPORT char *slurm_xstrchr(const char *text, int c) { return text ? strchr(text, c) : NULL; }
EXPORT char *slurm_xstrstr(const char *text, const char *part)
{
	return text && part ? strstr(text, part) : NULL;
}

EXPORT char *slurm_xstrcasestr(const char *text, const char *part)
{
	return text && part ? strcasestr(text, part) : NULL;
}

EXPORT char *slurm_xbasename(char *path)
{
	char *last = strrchr(path, '/');
	return last ? last + 1 : path;
}

EXPORT void slurm_xstrtrim(char *text)
{
	if (!text)
		return;
	char *start = text + strspn(text, " \t\n\r\v\f");
	size_t length = strlen(start);
	while (length && strchr(" \t\n\r\v\f", start[length - 1]))
		length--;
	memmove(text, start, length);
	text[length] = 0;
}

EXPORT void slurm_xstrtolower(char *text)
{
	for (; text && *text; text++)
		if (*text >= 'A' && *text <= 'Z')
			*text = (char) (*text - 'A' + 'a');
}

EXPORT size_t slurm_strlcpy(char *to, const char *from, size_t size)
{
	size_t length = strlen(from);
	if (size) {
		size_t copied = length < size ? length : size - 1;
		memcpy(to, from, copied);
		to[copied] = 0;
	}
	return length;
}

EXPORT size_t slurm_strlcat(char *to, const char *from, size_t size)
{
	size_t before = strnlen(to, size);
	return before == size ? size + strlen(from)
			      : before + slurm_strlcpy(to + before, from, size - before);
}

ALSO(char *, xstrdup, const char *);
ALSO(char *, xstrndup, const char *, size_t);
ALSO(void, xstrcat, char **, const char *);
ALSO(void, xstrncat, char **, const char *, size_t);
ALSO(void, xstrcatchar, char **, char);
ALSO(void, xmemcat, char **, char *, char *);
ALSO(char *, xstrdup_printf, const char *, ...);
ALSO(void, xstrfmtcat, char **, const char *, ...);
ALSO(void, xstrftimecat, char **, const char *);
ALSO(int, xstrcmp, const char *, const char *);
ALSO(int, xstrncmp, const char *, const char *, size_t);
ALSO(int, xstrcasecmp, const char *, const char *);
ALSO(int, xstrncasecmp, const char *, const char *, size_t);
ALSO(char *, xstrchr, const char *, int);
ALSO(char *, xstrstr, const char *, const char *);
ALSO(char *, xstrcasestr, const char *, const char *);
ALSO(char *, xbasename, char *);
ALSO(void, xstrtrim, char *);
ALSO(void, xstrtolower, char *);
ALSO(size_t, strlcpy, char *, const char *, size_t);
ALSO(size_t, strlcat, char *, const char *, size_t);
/* Under these names the functions of Slurm 19.05 and later append to a text as well. */
EXPORT __attribute__((alias("slurm_xstrcat"))) void _xstrcat(char **, const char *);
EXPORT __attribute__((alias("slurm_xstrfmtcat"))) void _xstrfmtcat(char **, const char *, ...);
EXPORT __attribute__((alias("slurm_xstrcatchar"))) void _xstrcatchar(char **, char);
EXPORT __attribute__((alias("slurm_xstrncat"))) void _xstrncat(char **, const char *, size_t);
EXPORT __attribute__((alias("slurm_xmemcat"))) void _xmemcat(char **, char *, char *);
