/* Lists of pointers, with iterators. */
#include <stdlib.h>
#include <string.h>

#include "slurm.h"

typedef void (*delete_function)(void *item);
typedef int (*compare_function)(void *one, void *other);
typedef int (*find_function)(void *item, void *key);
typedef int (*each_function)(void *item, void *argument);

struct list {
	void **items;
	int count;
	delete_function release;
};

struct list_iterator {
	struct list *of;
	int at;		/* the place of the item that comes next */
};

EXPORT struct list *slurm_list_create(delete_function release)
{
	struct list *made = new_memory(sizeof *made);
	made->release = release;
	return made;
}

static void *insert(struct list *list, int place, void *item)
{
	slurm_xrecalloc((void **) &list->items, (size_t) list->count + 1, sizeof *list->items, true,
			false, HERE);
	memmove(list->items + place + 1, list->items + place,
		(size_t) (list->count - place) * sizeof *list->items);
	list->items[place] = item;
	list->count++;
	return item;
}

static void *take_out(struct list *list, int place)
{
	if (place < 0 || place >= list->count)
		return NULL;
	void *item = list->items[place];
	list->count--;
	memmove(list->items + place, list->items + place + 1,
		(size_t) (list->count - place) * sizeof *list->items);
	return item;
}

EXPORT void *slurm_list_append(struct list *list, void *item) { return insert(list, list->count, item); }
EXPORT void *slurm_list_push(struct list *list, void *item) { return insert(list, 0, item); }
EXPORT void *slurm_list_prepend(struct list *list, void *item) { return insert(list, 0, item); }
EXPORT void *slurm_list_enqueue(struct list *list, void *item) { return insert(list, list->count, item); }
EXPORT void *slurm_list_pop(struct list *list) { return take_out(list, 0); }
EXPORT void *slurm_list_dequeue(struct list *list) { return take_out(list, 0); }
EXPORT void *slurm_list_peek(struct list *list) { return list->count ? list->items[0] : NULL; }
EXPORT int slurm_list_count(struct list *list) { return list ? list->count : 0; }
EXPORT int slurm_list_is_empty(struct list *list) { return !list || !list->count; }

EXPORT int slurm_list_flush(struct list *list)
{
	int count = list->count;
	while (list->count) {
		void *item = take_out(list, list->count - 1);
		if (list->release)
			list->release(item);
	}
	return count;
}

EXPORT void slurm_list_destroy(struct list *list)
{
	if (!list)
		return;
	slurm_list_flush(list);
	slurm_xfree((void **) &list->items);
	slurm_xfree((void **) &list);
}

EXPORT void *slurm_list_find_first(struct list *list, find_function is_it, void *key)
{
	for (int k = 0; k < list->count; k++)
		if (is_it(list->items[k], key))
			return list->items[k];
	return NULL;
}

EXPORT int slurm_list_delete_all(struct list *list, find_function is_it, void *key)
{
	int count = 0;
	for (int k = 0; k < list->count;) {
		if (!is_it(list->items[k], key)) {
			k++;
			continue;
		}
		void *item = take_out(list, k);
		if (list->release)
			list->release(item);
		count++;
	}
	return count;
}

/* Call a function for each; the result is negative where one has stopped it. */
EXPORT int slurm_list_for_each(struct list *list, each_function visit, void *argument)
{
	for (int k = 0; k < list->count; k++)
		if (visit(list->items[k], argument) < 0)
			return -(k + 1);
	return list->count;
}

/* By insertion, so that what is equal stays in order. */
EXPORT void slurm_list_sort(struct list *list, compare_function compare)
{
	/* Slurm's comparisons are given where the items stand. */
	for (int k = 1; k < list->count; k++)
		for (int j = k; j && compare(&list->items[j - 1], &list->items[j]) > 0; j--) {
			void *item = list->items[j];
			list->items[j] = list->items[j - 1];
			list->items[j - 1] = item;
		}
}

EXPORT struct list_iterator *slurm_list_iterator_create(struct list *list)
{
	struct list_iterator *made = new_memory(sizeof *made);
	made->of = list;
	return made;
}

EXPORT void slurm_list_iterator_reset(struct list_iterator *iterator) { iterator->at = 0; }
EXPORT void slurm_list_iterator_destroy(struct list_iterator *iterator) { slurm_xfree((void **) &iterator); }

EXPORT void *slurm_list_next(struct list_iterator *iterator)
{
	return iterator->at < iterator->of->count ? iterator->of->items[iterator->at++] : NULL;
}

EXPORT void *slurm_list_find(struct list_iterator *iterator, find_function is_it, void *key)
{
	for (void *item; (item = slurm_list_next(iterator));)
		if (is_it(item, key))
			return item;
	return NULL;
}

/* Take out the item that came last. */
EXPORT void *slurm_list_remove(struct list_iterator *iterator)
{
	return iterator->at ? take_out(iterator->of, --iterator->at) : NULL;
}

EXPORT int slurm_list_delete_item(struct list_iterator *iterator)
{
	void *item = slurm_list_remove(iterator);
	if (item && iterator->of->release)
		iterator->of->release(item);
	return item != NULL;
}

ALSO(struct list *, list_create, delete_function);
ALSO(void, list_destroy, struct list *);
ALSO(void *, list_append, struct list *, void *);
ALSO(void *, list_prepend, struct list *, void *);
ALSO(void *, list_push, struct list *, void *);
ALSO(void *, list_enqueue, struct list *, void *);
ALSO(void *, list_pop, struct list *);
ALSO(void *, list_dequeue, struct list *);
ALSO(void *, list_peek, struct list *);
ALSO(int, list_count, struct list *);
ALSO(int, list_is_empty, struct list *);
ALSO(int, list_flush, struct list *);
ALSO(void *, list_find_first, struct list *, find_function, void *);
ALSO(int, list_delete_all, struct list *, find_function, void *);
ALSO(int, list_for_each, struct list *, each_function, void *);
ALSO(void, list_sort, struct list *, compare_function);
ALSO(struct list_iterator *, list_iterator_create, struct list *);
ALSO(void, list_iterator_reset, struct list_iterator *);
ALSO(void, list_iterator_destroy, struct list_iterator *);
ALSO(void *, list_next, struct list_iterator *);
ALSO(void *, list_find, struct list_iterator *, find_function, void *);
ALSO(void *, list_remove, struct list_iterator *);
ALSO(int, list_delete_item, struct list_iterator *);
