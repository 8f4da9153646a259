/* What a call does with the plugin's variables, and what its objects hold: for `plugins check`.
 *
 * The pages of .data and .bss are taken away while a call runs. Each access faults, is noted, and
 * is made again in a single step. */
#define _GNU_SOURCE
#include <link.h>
#include <malloc.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "host.h"

#define MOST_ACCESSES 4096
#define MOST_SEGMENTS 8
#define XMALLOC_MAGIC 0x42
#define LONGEST_TEXT 4096
#define LARGEST_BLOCK 65536

struct range {
	uintptr_t start, end;
};

uintptr_t plugin_base, plugin_end;
static struct range segments[MOST_SEGMENTS];
static int count;
static bool watching;
static bool stepping;
static uint64_t accesses[MOST_ACCESSES];	/* twice the offset, and 1 for a write */
static int noted;

static int note_range(struct dl_phdr_info *info, size_t size, void *inside)
{
	(void) size;
	uintptr_t end = 0;
	for (int k = 0; k < info->dlpi_phnum; k++)
		if (info->dlpi_phdr[k].p_type == PT_LOAD) {
			uintptr_t last = info->dlpi_phdr[k].p_vaddr + info->dlpi_phdr[k].p_memsz;
			end = last > end ? last : end;
		}
	if ((uintptr_t) inside < info->dlpi_addr || (uintptr_t) inside >= info->dlpi_addr + end)
		return 0;
	plugin_base = info->dlpi_addr;
	plugin_end = info->dlpi_addr + end;
	return 1;
}

void note_plugin_range(const void *inside)
{
	if (inside)
		dl_iterate_phdr(note_range, (void *) inside);
}

bool is_readable(const void *address)
{
	int ends[2];
	if (pipe(ends))
		return false;
	bool found = write(ends[1], address, 1) == 1;
	close(ends[0]);
	close(ends[1]);
	return found;
}

/* Note the writable pages of the plugin; what the loader has made read-only again is left alone. */
static int find_segments(struct dl_phdr_info *info, size_t size, void *unused)
{
	uintptr_t page = (uintptr_t) getpagesize(), fixed = 0;
	(void) size;
	(void) unused;
	if (info->dlpi_addr != plugin_base)
		return 0;
	for (int k = 0; k < info->dlpi_phnum; k++)
		if (info->dlpi_phdr[k].p_type == PT_GNU_RELRO)
			fixed = (plugin_base + info->dlpi_phdr[k].p_vaddr + info->dlpi_phdr[k].p_memsz) &
				~(page - 1);
	for (int k = 0; k < info->dlpi_phnum && count < MOST_SEGMENTS; k++) {
		const ElfW(Phdr) *each = &info->dlpi_phdr[k];
		if (each->p_type != PT_LOAD || !(each->p_flags & PF_W))
			continue;
		uintptr_t start = (plugin_base + each->p_vaddr) & ~(page - 1);
		uintptr_t end = (plugin_base + each->p_vaddr + each->p_memsz + page - 1) & ~(page - 1);
		if (start < fixed && fixed <= end)
			start = fixed;
		if (start < end)
			segments[count++] = (struct range) {start, end};
	}
	return 1;
}

static void find_once(void)
{
	if (!count)
		dl_iterate_phdr(find_segments, NULL);
}

static void protect(int how)
{
	for (int k = 0; k < count; k++)
		mprotect((void *) segments[k].start, segments[k].end - segments[k].start, how);
}

static size_t heap_in_use(void)
{
	struct mallinfo2 info = mallinfo2();
	return info.uordblks + info.hblkhd;
}

void watch_begin(bool accesses_too)
{
	find_once();
	noted = 0;
	watching = accesses_too && count > 0;
	if (watching)
		protect(PROT_NONE);
}

/* Put how much of the heap is in use, and what was read and written. */
void watch_end(struct frame *f)
{
	if (watching)
		protect(PROT_READ | PROT_WRITE);
	watching = false;
	put_u64(f, heap_in_use());
	put_u32(f, (uint32_t) noted);
	for (int k = 0; k < noted; k++)
		put_u64(f, accesses[k]);
}

#if defined(__x86_64__)
#define TRAP_FLAG 0x100
#define WRITES(context) ((context)->uc_mcontext.gregs[REG_ERR] & 2)

bool watch_fault(int signal, const void *address, void *context)
{
	ucontext_t *c = context;
	if (signal == SIGTRAP && stepping) {
		stepping = false;
		c->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
		if (watching)
			protect(PROT_NONE);
		return true;
	}
	uintptr_t at = (uintptr_t) address;
	if (signal != SIGSEGV || !watching)
		return false;
	for (int k = 0; k < count; k++) {
		if (at < segments[k].start || at >= segments[k].end)
			continue;
		uint64_t access = (at - plugin_base) * 2 + (WRITES(c) ? 1 : 0);
		if (noted < MOST_ACCESSES && (!noted || accesses[noted - 1] != access))
			accesses[noted++] = access;
		protect(PROT_READ | PROT_WRITE);
		stepping = true;
		c->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
		return true;
	}
	return false;
}
#else
bool watch_fault(int signal, const void *address, void *context)
{
	(void) signal;
	(void) address;
	(void) context;
	return false;
}
#endif

/* ---- looking ---- */

/* Put what lies in the plugin's writable pages: where each run begins, and its bytes. */
void put_variables(struct frame *f)
{
	find_once();
	put_u32(f, (uint32_t) count);
	for (int k = 0; k < count; k++) {
		put_u64(f, segments[k].start - plugin_base);
		put_bytes(f, (void *) segments[k].start, segments[k].end - segments[k].start);
	}
}

static bool on_heap(const size_t *block, size_t *length)
{
	uintptr_t at = (uintptr_t) block, top = (uintptr_t) sbrk(0);
	if (at % 16 || at > top || top - at > (1u << 30))
		return false;
	size_t size = block[-1] & ~(size_t) 7;
	if (size < 32 || size % 16 || at - 16 + size > top)
		return false;
	*length = size - 8;
	return true;
}

static bool is_text(const char *at, size_t most, size_t *length)
{
	for (size_t k = 0; k < most; k++) {
		unsigned char c = (unsigned char) at[k];
		if (!c) {
			*length = k;
			return true;
		}
		if ((c < ' ' && !strchr("\t\n\r", c)) || c == 127)
			return false;
	}
	return false;
}

/* Put what an address points to: a block of known size, a text, or nothing that is known. */
void put_block(struct frame *f, uint64_t address)
{
	const size_t *block = (const size_t *) address;
	const char *bytes = (const char *) address;
	size_t length = 0, text = 0;
	char kind = '?';
	if (address >= LARGEST_BLOCK && is_readable(bytes)) {
		if (address % 8 == 0 && is_readable(block - 2) && block[-2] == XMALLOC_MAGIC) {
			kind = 'x';
			length = block[-1];
		} else if (is_readable(block - 2) && on_heap(block, &length)) {
			kind = 'm';
		} else if (is_text(bytes, LONGEST_TEXT, &text)) {
			kind = 't';
			length = text;
		}
	}
	if (kind == 'x' && length && is_text(bytes, length, &text) && text + 1 == length)
		kind = 's', length = text;
	put_u8(f, (uint8_t) kind);
	put_bytes(f, bytes, kind == '?' ? 0 : length < LARGEST_BLOCK ? length : LARGEST_BLOCK);
}
