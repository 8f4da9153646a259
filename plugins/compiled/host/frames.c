/* Messages between host and emulator.
 *
 * Their memory is mapped, not allocated: a plugin that has broken the heap can still be told of,
 * and what it allocates can be counted. */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "host.h"

#define OUT_OF_MEMORY 97
#define BROKEN_OFF 96
#define LARGEST (64u << 20)

void leave_now(int status)
{
	for (;;)
		syscall(SYS_exit_group, status);
}

static void grow(struct frame *f, size_t needed)
{
	size_t room = f->room ? f->room : 4096;
	while (room < needed)
		room *= 2;
	if (room == f->room)
		return;
	void *anew = f->data ? mremap(f->data, f->room, room, MREMAP_MAYMOVE)
			     : mmap(NULL, room, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (anew == MAP_FAILED)
		leave_now(OUT_OF_MEMORY);
	f->data = anew;
	f->room = room;
}

static void put(struct frame *f, const void *data, size_t length)
{
	if (f->used + length > f->room)
		grow(f, f->used + length);
	if (length)
		memcpy(f->data + f->used, data, length);
	f->used += length;
}

void put_u8(struct frame *f, uint8_t value) { put(f, &value, sizeof value); }
void put_u32(struct frame *f, uint32_t value) { put(f, &value, sizeof value); }
void put_u64(struct frame *f, uint64_t value) { put(f, &value, sizeof value); }

void put_bytes(struct frame *f, const void *data, size_t length)
{
	put_u32(f, (uint32_t) length);
	put(f, data, length);
}

void put_text(struct frame *f, const char *text)
{
	if (text)
		put_bytes(f, text, strlen(text));
	else
		put_u32(f, NO_TEXT);
}

/* Return the next bytes of a frame; one that ends before them is none of the emulator's. */
static const unsigned char *take(struct frame *f, size_t length)
{
	if (length > f->used - f->at)
		leave_now(BROKEN_OFF);
	const unsigned char *found = f->data + f->at;
	f->at += length;
	return found;
}

#define GET(name, type) \
	type name(struct frame *f) \
	{ \
		type value; \
		memcpy(&value, take(f, sizeof value), sizeof value); \
		return value; \
	}

GET(get_u8, uint8_t)
GET(get_u32, uint32_t)
GET(get_u64, uint64_t)

const unsigned char *get_bytes(struct frame *f, uint32_t *length)
{
	*length = get_u32(f);
	if (*length == NO_TEXT) {
		*length = 0;
		return NULL;
	}
	/* The emulator has every run of bytes end with a NUL, so that it may serve as a text. */
	const unsigned char *found = take(f, (size_t) *length + 1);
	return found;
}

const char *get_text(struct frame *f)
{
	uint32_t length;
	return (const char *) get_bytes(f, &length);
}

/* Leave room for the length in front. */
void frame_clear(struct frame *f)
{
	f->used = 0;
	f->at = 0;
	put_u32(f, 0);
}

void frame_send_with(int socket, struct frame *f, int fd)
{
	uint32_t length = (uint32_t) (f->used - sizeof length);
	memcpy(f->data, &length, sizeof length);
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control_data;
	size_t sent = 0;
	while (sent < f->used) {
		struct iovec part = {f->data + sent, f->used - sent};
		struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
		if (fd >= 0) {
			message.msg_control = control_data.room;
			message.msg_controllen = sizeof control_data.room;
			struct cmsghdr *header = CMSG_FIRSTHDR(&message);
			header->cmsg_level = SOL_SOCKET;
			header->cmsg_type = SCM_RIGHTS;
			header->cmsg_len = CMSG_LEN(sizeof fd);
			memcpy(CMSG_DATA(header), &fd, sizeof fd);
		}
		ssize_t count = sendmsg(socket, &message, MSG_NOSIGNAL);
		if (count < 0 && errno == EINTR)
			continue;
		if (count <= 0)
			leave_now(BROKEN_OFF);
		sent += (size_t) count;
		fd = -1;
	}
}

void frame_send(int socket, struct frame *f) { frame_send_with(socket, f, -1); }

static bool receive(int socket, struct frame *f, size_t length)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control_data;
	if (f->used + length > f->room)
		grow(f, f->used + length);
	while (length) {
		struct iovec part = {f->data + f->used, length};
		struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1,
					 .msg_control = control_data.room,
					 .msg_controllen = sizeof control_data.room};
		ssize_t count = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
		if (count < 0 && errno == EINTR)
			continue;
		if (count <= 0)
			return false;
		struct cmsghdr *header = CMSG_FIRSTHDR(&message);
		if (header && header->cmsg_type == SCM_RIGHTS)
			memcpy(&f->fd, CMSG_DATA(header), sizeof f->fd);
		f->used += (size_t) count;
		length -= (size_t) count;
	}
	return true;
}

bool frame_receive(int socket, struct frame *f)
{
	uint32_t length;
	f->used = 0;
	f->at = 0;
	f->fd = -1;
	if (!receive(socket, f, sizeof length))
		return false;
	length = get_u32(f);
	if (length > LARGEST)
		leave_now(BROKEN_OFF);
	return receive(socket, f, length);
}
