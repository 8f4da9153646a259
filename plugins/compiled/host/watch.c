/* What a call changes in the plugin's variables: its writable segments before and after. */
#define _GNU_SOURCE
#include <link.h>
#include <malloc.h>
#include <string.h>
#include <sys/mman.h>

#include "host.h"

#define MOST_CHANGES 256

static unsigned char *before;
static size_t room;
static size_t heap_before;

struct segment {
	unsigned char *start;
	size_t length;
};

static struct segment segments[8];
static int count;

static int find_segments(struct dl_phdr_info *info, size_t size, void *unused)
{
	(void) size;
	(void) unused;
	if (info->dlpi_addr != plugin_base)
		return 0;
	for (int k = 0; k < info->dlpi_phnum && count < 8; k++) {
		const ElfW(Phdr) *each = &info->dlpi_phdr[k];
		if (each->p_type == PT_LOAD && each->p_flags & PF_W)
			segments[count++] = (struct segment) {
				(unsigned char *) info->dlpi_addr + each->p_vaddr, each->p_memsz};
	}
	return 1;
}

void watch_begin(void)
{
	if (!count)
		dl_iterate_phdr(find_segments, NULL);
	size_t needed = 1;
	for (int k = 0; k < count; k++)
		needed += segments[k].length;
	if (needed > room) {
		before = mmap(NULL, needed, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (before == MAP_FAILED)
			leave_now(97);
		room = needed;
	}
	unsigned char *at = before;
	for (int k = 0; k < count; k++) {
		memcpy(at, segments[k].start, segments[k].length);
		at += segments[k].length;
	}
	heap_before = mallinfo2().uordblks + mallinfo2().hblkhd;
}

/* Put how far the heap has grown, and each run of bytes that changed: where, and how long. */
void watch_end(struct frame *f)
{
	put_u64(f, mallinfo2().uordblks + mallinfo2().hblkhd - heap_before);
	size_t place = f->used;
	uint32_t changes = 0;
	put_u32(f, 0);
	const unsigned char *at = before;
	for (int k = 0; k < count; k++) {
		for (size_t n = 0; n < segments[k].length && changes < MOST_CHANGES; n++) {
			if (at[n] == segments[k].start[n])
				continue;
			size_t end = n + 1;
			while (end < segments[k].length && at[end] != segments[k].start[end])
				end++;
			put_u64(f, (uint64_t) (segments[k].start + n) - plugin_base);
			put_u32(f, (uint32_t) (end - n));
			changes++;
			n = end;
		}
		at += segments[k].length;
	}
	memcpy(f->data + place, &changes, sizeof changes);
}
