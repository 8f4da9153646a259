/* Bit strings. Numbers are 64 bits wide, as in Slurm from 15.08 on. */
#include <string.h>

#include "slurm.h"

struct bits {
	int64_t count;
	uint8_t set[];	/* a byte for each: they are small here, and easy to look at */
};

EXPORT struct bits *slurm_bit_alloc(int64_t count)
{
	struct bits *made = new_memory(sizeof *made + (size_t) count);
	made->count = count;
	return made;
}

EXPORT void slurm_bit_free(struct bits *bits) { slurm_xfree((void **) &bits); }
EXPORT int64_t slurm_bit_size(struct bits *bits) { return bits->count; }

EXPORT int slurm_bit_test(struct bits *bits, int64_t place)
{
	return place >= 0 && place < bits->count && bits->set[place];
}

static void fill(struct bits *bits, int64_t first, int64_t last, uint8_t value)
{
	for (int64_t k = first < 0 ? 0 : first; k <= last && k < bits->count; k++)
		bits->set[k] = value;
}

EXPORT void slurm_bit_set(struct bits *bits, int64_t place) { fill(bits, place, place, 1); }
EXPORT void slurm_bit_clear(struct bits *bits, int64_t place) { fill(bits, place, place, 0); }
EXPORT void slurm_bit_nset(struct bits *bits, int64_t first, int64_t last) { fill(bits, first, last, 1); }
EXPORT void slurm_bit_nclear(struct bits *bits, int64_t first, int64_t last) { fill(bits, first, last, 0); }
EXPORT void slurm_bit_set_all(struct bits *bits) { fill(bits, 0, bits->count - 1, 1); }
EXPORT void slurm_bit_clear_all(struct bits *bits) { fill(bits, 0, bits->count - 1, 0); }

/* Return the first bit of a value, or -1. */
static int64_t first(struct bits *bits, uint8_t value)
{
	for (int64_t k = 0; k < bits->count; k++)
		if (bits->set[k] == value)
			return k;
	return -1;
}

EXPORT int64_t slurm_bit_ffs(struct bits *bits) { return first(bits, 1); }
EXPORT int64_t slurm_bit_ffc(struct bits *bits) { return first(bits, 0); }

EXPORT int64_t slurm_bit_fls(struct bits *bits)
{
	for (int64_t k = bits->count; k-- > 0;)
		if (bits->set[k])
			return k;
	return -1;
}

/* Return where so many clear bits begin in a row, from a place on and then from the start; or -1. */
EXPORT int64_t slurm_bit_noc(struct bits *bits, int64_t many, int64_t from)
{
	for (int64_t tried = 0; tried < bits->count; tried++) {
		int64_t start = (from + tried) % bits->count, run = 0;
		while (run < many && start + run < bits->count && !bits->set[start + run])
			run++;
		if (run == many)
			return start;
	}
	return -1;
}

EXPORT int64_t slurm_bit_set_count(struct bits *bits)
{
	int64_t count = 0;
	for (int64_t k = 0; k < bits->count; k++)
		count += bits->set[k];
	return count;
}

EXPORT int64_t slurm_bit_clear_count(struct bits *bits)
{
	return bits->count - slurm_bit_set_count(bits);
}

EXPORT struct bits *slurm_bit_copy(struct bits *bits)
{
	struct bits *made = slurm_bit_alloc(bits->count);
	memcpy(made->set, bits->set, (size_t) bits->count);
	return made;
}

ALSO(struct bits *, bit_alloc, int64_t);
ALSO(void, bit_free, struct bits *);
ALSO(int64_t, bit_size, struct bits *);
ALSO(int, bit_test, struct bits *, int64_t);
ALSO(void, bit_set, struct bits *, int64_t);
ALSO(void, bit_clear, struct bits *, int64_t);
ALSO(void, bit_nset, struct bits *, int64_t, int64_t);
ALSO(void, bit_nclear, struct bits *, int64_t, int64_t);
ALSO(void, bit_set_all, struct bits *);
ALSO(void, bit_clear_all, struct bits *);
ALSO(int64_t, bit_ffs, struct bits *);
ALSO(int64_t, bit_ffc, struct bits *);
ALSO(int64_t, bit_fls, struct bits *);
ALSO(int64_t, bit_noc, struct bits *, int64_t, int64_t);
ALSO(int64_t, bit_set_count, struct bits *);
ALSO(int64_t, bit_clear_count, struct bits *);
ALSO(struct bits *, bit_copy, struct bits *);
