/* Host lists: names in order, such as those of n[1-4,7],login. */
#define _GNU_SOURCE
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "slurm.h"

#define MOST_HOSTS 65536
#define LONGEST_NAME 256

struct hostlist {
	char **names;
	int count;
};

struct hostlist_iterator {
	struct hostlist *of;
	int at;
};

static void add(struct hostlist *list, const char *name)
{
	if (list->count >= MOST_HOSTS)
		return;
	slurm_xrecalloc((void **) &list->names, (size_t) list->count + 1, sizeof *list->names, true,
			false, HERE);
	list->names[list->count++] = slurm_xstrdup(name);
}

static void add_ranges(struct hostlist *list, const char *prefix, const char *ranges, const char *rest);

/* Add what a word stands for: it may have several brackets, which are taken from the left. */
static void add_word(struct hostlist *list, const char *word)
{
	const char *opens = strchr(word, '[');
	const char *closes = opens ? strchr(opens, ']') : NULL;
	if (!closes) {
		if (*word)
			add(list, word);
		return;
	}
	char *prefix = slurm_xstrdup(word);
	prefix[opens - word] = 0;
	char *ranges = slurm_xstrdup(opens + 1);
	ranges[closes - opens - 1] = 0;
	add_ranges(list, prefix, ranges, closes + 1);
	slurm_xfree((void **) &prefix);
	slurm_xfree((void **) &ranges);
}

static void add_ranges(struct hostlist *list, const char *prefix, const char *ranges, const char *rest)
{
	for (const char *at = ranges; *at;) {
		char *end;
		int width = (int) strspn(at, "0123456789");
		unsigned long first = strtoul(at, &end, 10), last = first;
		if (end == at)
			return;
		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		for (unsigned long k = first; k <= last && list->count < MOST_HOSTS; k++) {
			char name[LONGEST_NAME];
			snprintf(name, sizeof name, "%s%0*lu%s", prefix, width, k, rest);
			add_word(list, name);
		}
		at = *end == ',' ? end + 1 : end;
		if (at == ranges || (*end && *end != ','))
			return;
	}
}

EXPORT int slurm_hostlist_push(struct hostlist *list, const char *hosts)
{
	int before = list->count, depth = 0;
	const char *start = hosts;
	for (const char *at = hosts ? hosts : "";; at++) {
		depth += (*at == '[') - (*at == ']');
		if (*at && (*at != ',' || depth))
			continue;
		if (at > start) {
			char *word = slurm_xstrdup(start);
			word[at - start] = 0;
			add_word(list, word);
			slurm_xfree((void **) &word);
		}
		if (!*at)
			break;
		start = at + 1;
	}
	return list->count - before;
}

EXPORT struct hostlist *slurm_hostlist_create(const char *hosts)
{
	struct hostlist *made = new_memory(sizeof *made);
	slurm_hostlist_push(made, hosts);
	return made;
}

EXPORT struct hostlist *slurm_hostlist_copy(struct hostlist *list)
{
	struct hostlist *made = new_memory(sizeof *made);
	for (int k = 0; k < list->count; k++)
		add(made, list->names[k]);
	return made;
}

EXPORT void slurm_hostlist_destroy(struct hostlist *list)
{
	if (!list)
		return;
	for (int k = 0; k < list->count; k++)
		slurm_xfree((void **) &list->names[k]);
	slurm_xfree((void **) &list->names);
	slurm_xfree((void **) &list);
}

EXPORT int slurm_hostlist_count(struct hostlist *list) { return list ? list->count : -1; }

EXPORT int slurm_hostlist_find(struct hostlist *list, const char *name)
{
	for (int k = 0; list && k < list->count; k++)
		if (!strcmp(list->names[k], name))
			return k;
	return -1;
}

/* What names are handed out with is freed with free(), as in Slurm. */
EXPORT char *slurm_hostlist_nth(struct hostlist *list, int place)
{
	return place >= 0 && place < list->count ? strdup(list->names[place]) : NULL;
}

static char *take_out(struct hostlist *list, int place)
{
	if (place < 0 || place >= list->count)
		return NULL;
	char *name = strdup(list->names[place]);
	slurm_xfree((void **) &list->names[place]);
	list->count--;
	memmove(list->names + place, list->names + place + 1,
		(size_t) (list->count - place) * sizeof *list->names);
	return name;
}

EXPORT char *slurm_hostlist_shift(struct hostlist *list) { return take_out(list, 0); }
EXPORT char *slurm_hostlist_pop(struct hostlist *list) { return take_out(list, list->count - 1); }

EXPORT int slurm_hostlist_delete_host(struct hostlist *list, const char *name)
{
	char *gone = take_out(list, slurm_hostlist_find(list, name));
	int found = gone != NULL;
	free(gone);
	return found;
}

EXPORT int slurm_hostlist_push_host(struct hostlist *list, const char *name)
{
	add(list, name);
	return 1;
}

/* Order names as people do: by prefix, then by the number at the end. */
static int compare(const void *one, const void *other)
{
	return strverscmp(*(char *const *) one, *(char *const *) other);
}

EXPORT void slurm_hostlist_sort(struct hostlist *list)
{
	if (list->count)
		qsort(list->names, (size_t) list->count, sizeof *list->names, compare);
}

EXPORT void slurm_hostlist_uniq(struct hostlist *list)
{
	slurm_hostlist_sort(list);
	int kept = 0;
	for (int k = 0; k < list->count; k++) {
		if (kept && !strcmp(list->names[kept - 1], list->names[k]))
			slurm_xfree((void **) &list->names[k]);
		else
			list->names[kept++] = list->names[k];
	}
	list->count = kept;
}

/* Split a name into what stands before its last number, and that number. */
static bool split(const char *name, int *prefix, int *width, unsigned long *number)
{
	int end = (int) strlen(name), start = end;
	while (start && isdigit((unsigned char) name[start - 1]))
		start--;
	*prefix = start;
	*width = end - start;
	*number = strtoul(name + start, NULL, 10);
	return *width > 0 && *width < 10;
}

/* Return how many names from *first* on follow each other by number. */
static int run_length(struct hostlist *list, int first)
{
	int prefix, width, p, w, k = first + 1;
	unsigned long number, n;
	if (!split(list->names[first], &prefix, &width, &number))
		return 1;
	for (; k < list->count && split(list->names[k], &p, &w, &n); k++)
		if (p != prefix || n != number + (unsigned long) (k - first) ||
		    strncmp(list->names[k], list->names[first], (size_t) p) ||
		    (w != width && list->names[k][p] == '0'))
			break;
	return k - first;
}

static bool same_prefix(struct hostlist *list, int one, int other)
{
	int p, q, width;
	unsigned long number;
	return split(list->names[one], &p, &width, &number) &&
	       split(list->names[other], &q, &width, &number) && p == q &&
	       !strncmp(list->names[one], list->names[other], (size_t) p);
}

EXPORT char *slurm_hostlist_ranged_string_xmalloc(struct hostlist *list)
{
	char *text = slurm_xstrdup("");
	for (int k = 0; k < list->count;) {
		int end = k + run_length(list, k);
		while (end < list->count && same_prefix(list, k, end))
			end += run_length(list, end);
		if (k)
			slurm_xstrcat(&text, ",");
		if (end == k + 1) {
			slurm_xstrcat(&text, list->names[k++]);
			continue;
		}
		int prefix, width;
		unsigned long number;
		split(list->names[k], &prefix, &width, &number);
		char *head = slurm_xstrdup(list->names[k]);
		head[prefix] = 0;
		slurm_xstrcat(&text, head);
		slurm_xfree((void **) &head);
		slurm_xstrcat(&text, "[");
		for (bool first = true; k < end; first = false) {
			int length = run_length(list, k);
			length = length < end - k ? length : end - k;
			if (!first)
				slurm_xstrcat(&text, ",");
			slurm_xstrcat(&text, list->names[k] + prefix);
			if (length > 1) {
				slurm_xstrcat(&text, "-");
				slurm_xstrcat(&text, list->names[k + length - 1] + prefix);
			}
			k += length;
		}
		slurm_xstrcat(&text, "]");
	}
	return text;
}

EXPORT ssize_t slurm_hostlist_ranged_string(struct hostlist *list, size_t size, char *room)
{
	char *text = slurm_hostlist_ranged_string_xmalloc(list);
	ssize_t length = (ssize_t) strlen(text);
	if ((size_t) length >= size)
		length = -1;
	else
		strcpy(room, text);
	slurm_xfree((void **) &text);
	return length;
}

EXPORT struct hostlist_iterator *slurm_hostlist_iterator_create(struct hostlist *list)
{
	struct hostlist_iterator *made = new_memory(sizeof *made);
	made->of = list;
	return made;
}

EXPORT char *slurm_hostlist_next(struct hostlist_iterator *iterator)
{
	return slurm_hostlist_nth(iterator->of, iterator->at++);
}

EXPORT void slurm_hostlist_iterator_reset(struct hostlist_iterator *iterator) { iterator->at = 0; }

EXPORT void slurm_hostlist_iterator_destroy(struct hostlist_iterator *iterator)
{
	slurm_xfree((void **) &iterator);
}

/* A set is a list in which no name stands twice. */
EXPORT struct hostlist *slurm_hostset_create(const char *hosts)
{
	struct hostlist *made = slurm_hostlist_create(hosts);
	slurm_hostlist_uniq(made);
	return made;
}

EXPORT int slurm_hostset_insert(struct hostlist *set, const char *hosts)
{
	int before = set->count;
	slurm_hostlist_push(set, hosts);
	slurm_hostlist_uniq(set);
	return set->count - before;
}

EXPORT int slurm_hostset_within(struct hostlist *set, const char *hosts)
{
	struct hostlist *asked = slurm_hostlist_create(hosts);
	int within = asked->count > 0;
	for (int k = 0; k < asked->count; k++)
		within = within && slurm_hostlist_find(set, asked->names[k]) >= 0;
	slurm_hostlist_destroy(asked);
	return within;
}

ALSO(int, hostlist_push, struct hostlist *, const char *);
ALSO(int, hostlist_push_host, struct hostlist *, const char *);
ALSO(struct hostlist *, hostlist_create, const char *);
ALSO(struct hostlist *, hostlist_copy, struct hostlist *);
ALSO(void, hostlist_destroy, struct hostlist *);
ALSO(int, hostlist_count, struct hostlist *);
ALSO(int, hostlist_find, struct hostlist *, const char *);
ALSO(char *, hostlist_nth, struct hostlist *, int);
ALSO(char *, hostlist_shift, struct hostlist *);
ALSO(char *, hostlist_pop, struct hostlist *);
ALSO(int, hostlist_delete_host, struct hostlist *, const char *);
ALSO(void, hostlist_sort, struct hostlist *);
ALSO(void, hostlist_uniq, struct hostlist *);
ALSO(char *, hostlist_ranged_string_xmalloc, struct hostlist *);
ALSO(ssize_t, hostlist_ranged_string, struct hostlist *, size_t, char *);
ALSO(struct hostlist_iterator *, hostlist_iterator_create, struct hostlist *);
ALSO(char *, hostlist_next, struct hostlist_iterator *);
ALSO(void, hostlist_iterator_reset, struct hostlist_iterator *);
ALSO(void, hostlist_iterator_destroy, struct hostlist_iterator *);
ALSO(struct hostlist *, hostset_create, const char *);
ALSO(int, hostset_insert, struct hostlist *, const char *);
ALSO(int, hostset_within, struct hostlist *, const char *);
#define SET_ALIAS(type, name, of, ...) \
	EXPORT __attribute__((alias(#of))) type name(__VA_ARGS__); \
	EXPORT __attribute__((alias(#of))) type slurm_##name(__VA_ARGS__);
SET_ALIAS(struct hostlist *, hostset_copy, slurm_hostlist_copy, struct hostlist *)
SET_ALIAS(void, hostset_destroy, slurm_hostlist_destroy, struct hostlist *)
SET_ALIAS(int, hostset_count, slurm_hostlist_count, struct hostlist *)
SET_ALIAS(char *, hostset_shift, slurm_hostlist_shift, struct hostlist *)
SET_ALIAS(int, hostset_find, slurm_hostlist_find, struct hostlist *, const char *)
SET_ALIAS(ssize_t, hostset_ranged_string, slurm_hostlist_ranged_string, struct hostlist *, size_t, char *)
