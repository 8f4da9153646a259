/* Buf: bytes that records travel in. Numbers are big endian, texts count the NUL that ends them. */
#define _GNU_SOURCE
#include <endian.h>
#include <string.h>

#include "slurm.h"

#define MAGIC 0x42554545
#define SLURM_SUCCESS 0
#define SLURM_ERROR -1
#define LONGEST (256u << 20)

/* Slurm's own layout, which its macros read (get_buf_data, get_buf_offset, remaining_buf). */
struct buf {
	uint32_t magic;
	char *head;
	uint32_t size;
	uint32_t processed;
	bool mmaped;
};

EXPORT struct buf *slurm_init_buf(uint32_t size)
{
	struct buf *made = new_memory(sizeof *made);
	made->magic = MAGIC;
	made->size = size ? size : 1;
	made->head = new_memory(made->size);
	return made;
}

/* The buffer takes over *data*, which xmalloc gave. */
EXPORT struct buf *slurm_create_buf(char *data, uint32_t size)
{
	struct buf *made = new_memory(sizeof *made);
	*made = (struct buf) {.magic = MAGIC, .head = data, .size = size};
	return made;
}

EXPORT void slurm_free_buf(struct buf *buffer)
{
	if (!buffer)
		return;
	slurm_xfree((void **) &buffer->head);
	buffer->magic = 0;
	slurm_xfree((void **) &buffer);
}

EXPORT void slurm_grow_buf(struct buf *buffer, uint32_t more)
{
	buffer->size += more;
	slurm_xrecalloc((void **) &buffer->head, 1, buffer->size, true, false, HERE);
}

EXPORT void *slurm_xfer_buf_data(struct buf *buffer)
{
	void *data = buffer->head;
	slurm_xfree((void **) &buffer);
	return data;
}

static void append(struct buf *buffer, const void *bytes, uint32_t length)
{
	if (buffer->size - buffer->processed < length)
		slurm_grow_buf(buffer, length > 16384 ? length : 16384);
	if (length)
		memcpy(buffer->head + buffer->processed, bytes, length);
	buffer->processed += length;
}

/* Read the next bytes, or none if there are not so many. */
static int next(struct buf *buffer, void *bytes, uint32_t length)
{
	if (buffer->processed > buffer->size || buffer->size - buffer->processed < length)
		return SLURM_ERROR;
	memcpy(bytes, buffer->head + buffer->processed, length);
	buffer->processed += length;
	return SLURM_SUCCESS;
}

#define SAME(value) (value)
#define NUMBER(bits, to_wire, from_wire) \
	EXPORT void slurm_pack##bits(uint##bits##_t value, struct buf *buffer) \
	{ \
		value = to_wire(value); \
		append(buffer, &value, sizeof value); \
	} \
	EXPORT int slurm_unpack##bits(uint##bits##_t *value, struct buf *buffer) \
	{ \
		if (next(buffer, value, sizeof *value)) \
			return SLURM_ERROR; \
		*value = from_wire(*value); \
		return SLURM_SUCCESS; \
	} \
	ALSO(void, pack##bits, uint##bits##_t, struct buf *); \
	ALSO(int, unpack##bits, uint##bits##_t *, struct buf *);

NUMBER(8, SAME, SAME)
NUMBER(16, htobe16, be16toh)
NUMBER(32, htobe32, be32toh)
NUMBER(64, htobe64, be64toh)

EXPORT void slurm_packbool(bool value, struct buf *buffer) { slurm_pack8(value, buffer); }

EXPORT int slurm_unpackbool(bool *value, struct buf *buffer)
{
	uint8_t byte;
	if (slurm_unpack8(&byte, buffer))
		return SLURM_ERROR;
	*value = byte != 0;
	return SLURM_SUCCESS;
}

EXPORT void slurm_pack_time(time_t value, struct buf *buffer)
{
	slurm_pack64((uint64_t) value, buffer);
}

EXPORT int slurm_unpack_time(time_t *value, struct buf *buffer)
{
	uint64_t number;
	if (slurm_unpack64(&number, buffer))
		return SLURM_ERROR;
	*value = (time_t) number;
	return SLURM_SUCCESS;
}

EXPORT void slurm_packdouble(double value, struct buf *buffer)
{
	uint64_t number;
	memcpy(&number, &value, sizeof number);
	slurm_pack64(number, buffer);
}

EXPORT int slurm_unpackdouble(double *value, struct buf *buffer)
{
	uint64_t number;
	if (slurm_unpack64(&number, buffer))
		return SLURM_ERROR;
	memcpy(value, &number, sizeof number);
	return SLURM_SUCCESS;
}

EXPORT void slurm_packmem(const char *bytes, uint32_t length, struct buf *buffer)
{
	slurm_pack32(length, buffer);
	append(buffer, bytes, length);
}

EXPORT void slurm_packmem_array(const char *bytes, uint32_t length, struct buf *buffer)
{
	append(buffer, bytes, length);
}

EXPORT int slurm_unpackmem_array(char *bytes, uint32_t length, struct buf *buffer)
{
	return next(buffer, bytes, length);
}

EXPORT void slurm_packstr(const char *text, struct buf *buffer)
{
	slurm_packmem(text, text ? (uint32_t) strlen(text) + 1 : 0, buffer);
}

/* Point to bytes inside the buffer; no bytes are NULL. */
EXPORT int slurm_unpackmem_ptr(char **bytes, uint32_t *length, struct buf *buffer)
{
	uint32_t start = buffer->processed;
	*bytes = NULL;
	if (slurm_unpack32(length, buffer))
		return SLURM_ERROR;
	if (!*length)
		return SLURM_SUCCESS;
	if (*length > LONGEST || buffer->size - buffer->processed < *length) {
		buffer->processed = start;
		return SLURM_ERROR;
	}
	*bytes = buffer->head + buffer->processed;
	buffer->processed += *length;
	return SLURM_SUCCESS;
}

EXPORT int slurm_unpackmem(char *bytes, uint32_t *length, struct buf *buffer)
{
	char *found;
	if (slurm_unpackmem_ptr(&found, length, buffer))
		return SLURM_ERROR;
	if (*length)
		memcpy(bytes, found, *length);
	return SLURM_SUCCESS;
}

EXPORT int slurm_unpackmem_xmalloc(char **bytes, uint32_t *length, struct buf *buffer)
{
	char *found;
	*bytes = NULL;
	if (slurm_unpackmem_ptr(&found, length, buffer))
		return SLURM_ERROR;
	if (*length)
		*bytes = memcpy(new_memory(*length), found, *length);
	return SLURM_SUCCESS;
}

/* A text has its NUL; what has none is no text. */
EXPORT int slurm_unpackstr_xmalloc(char **text, uint32_t *length, struct buf *buffer)
{
	uint32_t start = buffer->processed;
	char *found;
	*text = NULL;
	if (slurm_unpackmem_ptr(&found, length, buffer))
		return SLURM_ERROR;
	if (*length && found[*length - 1]) {
		buffer->processed = start;
		return SLURM_ERROR;
	}
	if (*length)
		*text = memcpy(new_memory(*length), found, *length);
	return SLURM_SUCCESS;
}

#define ARRAY(bits) \
	EXPORT void slurm_pack##bits##_array(uint##bits##_t *values, uint32_t count, struct buf *buffer) \
	{ \
		slurm_pack32(count, buffer); \
		for (uint32_t k = 0; k < count; k++) \
			slurm_pack##bits(values[k], buffer); \
	} \
	EXPORT int slurm_unpack##bits##_array(uint##bits##_t **values, uint32_t *count, struct buf *buffer) \
	{ \
		*values = NULL; \
		if (slurm_unpack32(count, buffer)) \
			return SLURM_ERROR; \
		if (*count > (buffer->size - buffer->processed) / sizeof **values) \
			return SLURM_ERROR; \
		if (*count) \
			*values = new_memory(*count * sizeof **values); \
		for (uint32_t k = 0; k < *count; k++) \
			if (slurm_unpack##bits(*values + k, buffer)) \
				return SLURM_ERROR; \
		return SLURM_SUCCESS; \
	} \
	ALSO(void, pack##bits##_array, uint##bits##_t *, uint32_t, struct buf *); \
	ALSO(int, unpack##bits##_array, uint##bits##_t **, uint32_t *, struct buf *);

ARRAY(16)
ARRAY(32)
ARRAY(64)

EXPORT void slurm_packstr_array(char **texts, uint32_t count, struct buf *buffer)
{
	slurm_pack32(count, buffer);
	for (uint32_t k = 0; k < count; k++)
		slurm_packstr(texts[k], buffer);
}

EXPORT int slurm_unpackstr_array(char ***texts, uint32_t *count, struct buf *buffer)
{
	uint32_t length;
	*texts = NULL;
	if (slurm_unpack32(count, buffer))
		return SLURM_ERROR;
	if (*count > (buffer->size - buffer->processed) / sizeof length)
		return SLURM_ERROR;
	*texts = new_memory(((size_t) *count + 1) * sizeof **texts);
	for (uint32_t k = 0; k < *count; k++)
		if (slurm_unpackstr_xmalloc(*texts + k, &length, buffer))
			return SLURM_ERROR;
	return SLURM_SUCCESS;
}

ALSO(struct buf *, init_buf, uint32_t);
ALSO(struct buf *, create_buf, char *, uint32_t);
ALSO(void, free_buf, struct buf *);
ALSO(void, grow_buf, struct buf *, uint32_t);
ALSO(void *, xfer_buf_data, struct buf *);
ALSO(void, packbool, bool, struct buf *);
ALSO(int, unpackbool, bool *, struct buf *);
ALSO(void, pack_time, time_t, struct buf *);
ALSO(int, unpack_time, time_t *, struct buf *);
ALSO(void, packdouble, double, struct buf *);
ALSO(int, unpackdouble, double *, struct buf *);
ALSO(void, packmem, const char *, uint32_t, struct buf *);
ALSO(void, packmem_array, const char *, uint32_t, struct buf *);
ALSO(int, unpackmem_array, char *, uint32_t, struct buf *);
ALSO(void, packstr, const char *, struct buf *);
ALSO(int, unpackmem, char *, uint32_t *, struct buf *);
ALSO(int, unpackmem_ptr, char **, uint32_t *, struct buf *);
ALSO(int, unpackmem_xmalloc, char **, uint32_t *, struct buf *);
ALSO(int, unpackstr_xmalloc, char **, uint32_t *, struct buf *);
ALSO(void, packstr_array, char **, uint32_t, struct buf *);
ALSO(int, unpackstr_array, char ***, uint32_t *, struct buf *);
