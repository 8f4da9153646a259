/* Records of Slurm's own, such as slurmctld's of a step: blocks of memory that point to each other.
 *
 * The emulator lays them out, from the plugin's debug information; here they only come to lie
 * somewhere. All blocks are the library's, so that a plugin may let the texts and the environment
 * in them grow as it would Slurm's own. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "host.h"
#include "library.h"

#define UNKNOWN_BYTES (64 * 1024)

static char *unknown;

void *unknown_record(void)
{
	if (!unknown) {
		void *room = mmap(NULL, UNKNOWN_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		unknown = room == MAP_FAILED ? NULL : room;
	}
	return unknown;
}

bool is_in_unknown_record(const void *address)
{
	return unknown && (const char *) address >= unknown &&
	       (const char *) address < unknown + UNKNOWN_BYTES;
}

struct reference {
	uint32_t block, offset, target;
};

/* Where the pointer to an environment lies, of which the emulator wants to know after the call. */
struct watch {
	uint32_t block, offset;
};

struct image {
	uint32_t blocks, references, watches;
	char **block;
	bool *released;
	struct reference *reference;
	struct watch *watch;
};

static void *new_array(size_t count, size_t size)
{
	void *made = calloc(count ? count : 1, size);
	if (!made)
		leave_now(97);
	return made;
}

struct image *take_image(struct frame *f)
{
	struct image *image = new_array(1, sizeof *image);
	image->blocks = get_u32(f);
	image->block = new_array(image->blocks, sizeof *image->block);
	image->released = new_array(image->blocks, sizeof *image->released);
	for (uint32_t k = 0; k < image->blocks; k++) {
		uint32_t length;
		const unsigned char *bytes = get_bytes(f, &length);
		image->block[k] = library.allocate(length ? length : 1);
		if (length)
			memcpy(image->block[k], bytes, length);
	}
	image->references = get_u32(f);
	image->reference = new_array(image->references, sizeof *image->reference);
	for (uint32_t k = 0; k < image->references; k++) {
		struct reference *each = &image->reference[k];
		each->block = get_u32(f);
		each->offset = get_u32(f);
		each->target = get_u32(f);
		memcpy(image->block[each->block] + each->offset, &image->block[each->target],
		       sizeof(char *));
	}
	image->watches = get_u32(f);
	image->watch = new_array(image->watches, sizeof *image->watch);
	for (uint32_t k = 0; k < image->watches; k++) {
		image->watch[k].block = get_u32(f);
		image->watch[k].offset = get_u32(f);
	}
	return image;
}

/* Return where the record begins; NULL for a record there is none of. */
void *image_start(const struct image *image) { return image->blocks ? image->block[0] : NULL; }

static void *watched(const struct image *image, const struct watch *watch)
{
	void *value;
	memcpy(&value, image->block[watch->block] + watch->offset, sizeof value);
	return value;
}

void put_texts(struct frame *f, char **texts)
{
	uint32_t count = 0;
	while (texts && texts[count])
		count++;
	put_u32(f, count);
	for (uint32_t k = 0; k < count; k++)
		put_text(f, texts[k]);
}

/* Give back what the emulator wants to know of the record after the call. */
void give_image(struct frame *f, const struct image *image)
{
	put_u32(f, image->watches);
	for (uint32_t k = 0; k < image->watches; k++) {
		void *value = watched(image, &image->watch[k]);
		put_texts(f, value);
	}
}

/* Mark what lies below a block as no longer the image's to release. */
static void let_go_of(struct image *image, uint32_t block)
{
	image->released[block] = true;
	for (uint32_t k = 0; k < image->references; k++)
		if (image->reference[k].block == block)
			image->released[image->reference[k].target] = true;
}

/* Release an environment as the plugin has left it: it may have grown, and lie elsewhere now. */
static void free_environment(struct image *image, const struct watch *watch)
{
	char **env = watched(image, watch);
	for (uint32_t k = 0; k < image->references; k++)
		if (image->reference[k].block == watch->block &&
		    image->reference[k].offset == watch->offset)
			let_go_of(image, image->reference[k].target);
	for (char **each = env; each && *each; each++)
		library.release(*each);
	library.release(env);
}

void free_image(struct image *image)
{
	for (uint32_t k = 0; k < image->watches; k++)
		free_environment(image, &image->watch[k]);
	/* What a reference no longer points to the plugin has released or taken. */
	for (uint32_t k = 0; k < image->references; k++) {
		const struct reference *each = &image->reference[k];
		char *now;
		if (image->released[each->target])
			continue;
		memcpy(&now, image->block[each->block] + each->offset, sizeof now);
		if (now != image->block[each->target])
			image->released[each->target] = true;
	}
	for (uint32_t k = 0; k < image->blocks; k++)
		if (!image->released[k])
			library.release(image->block[k]);
	free(image->block);
	free(image->released);
	free(image->reference);
	free(image->watch);
	free(image);
}
