/* Messages and records of the plugin host, tried by a program of its own: it prints nothing and
 * ends with 0. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host.h"
#include "library.h"

#define HOLD(claim) \
	do { \
		if (!(claim)) { \
			fprintf(stderr, "line %d: %s\n", __LINE__, #claim); \
			exit(1); \
		} \
	} while (0)

/* What frames and records need of the rest of the host. */

static void *allocate(size_t size) { return calloc(1, size); }
static char *duplicate(const char *text) { return strdup(text); }
struct library library = {.allocate = allocate, .duplicate = duplicate, .release = free};

static struct frame out, in;
static int ends[2];

static void carry(void)
{
	frame_send(ends[0], &out);
	HOLD(frame_receive(ends[1], &in));
}

static void messages(void)
{
	enum { LARGE = 50000 };
	char *large = malloc(LARGE);
	uint32_t length;
	memset(large, 'x', LARGE);
	frame_clear(&out);
	put_u8(&out, 7);
	put_u32(&out, UINT32_MAX);
	put_u64(&out, UINT64_MAX - 1);
	put_text(&out, NULL);
	put_bytes(&out, large, LARGE);
	put_u8(&out, 0);	/* the emulator ends each run of bytes so */
	put_bytes(&out, "", 0);
	put_u8(&out, 0);
	frame_send_with(ends[0], &out, ends[0]);
	HOLD(frame_receive(ends[1], &in));
	HOLD(in.fd >= 0 && in.fd != ends[0]);
	close(in.fd);
	HOLD(get_u8(&in) == 7);
	HOLD(get_u32(&in) == UINT32_MAX);
	HOLD(get_u64(&in) == UINT64_MAX - 1);
	HOLD(!get_text(&in));
	const unsigned char *bytes = get_bytes(&in, &length);
	HOLD(length == LARGE && bytes[0] == 'x' && bytes[LARGE - 1] == 'x' && !bytes[LARGE]);
	const char *text = get_text(&in);
	HOLD(text && !*text);
	free(large);
}

struct inner {
	char *word;
};

struct outer {
	uint32_t number;
	char **env;
	struct inner *inner;
	char *taken;
};

static void block(const void *data, size_t length)
{
	put_bytes(&out, data, length);
	put_u8(&out, 0);
}

static void reference(uint32_t from, size_t offset, uint32_t to)
{
	put_u32(&out, from);
	put_u32(&out, (uint32_t) offset);
	put_u32(&out, to);
}

/* A record with an environment of one text, an inner one, and a text that the plugin takes. */
static struct image *new_image(void)
{
	struct outer outer = {.number = 42};
	struct inner inner = {0};
	char *env[2] = {0};
	frame_clear(&out);
	put_u32(&out, 6);
	block(&outer, sizeof outer);
	block(env, sizeof env);
	block("A=1", 4);
	block(&inner, sizeof inner);
	block("word", 5);
	block("taken", 6);
	put_u32(&out, 5);
	reference(0, offsetof(struct outer, env), 1);
	reference(1, 0, 2);
	reference(0, offsetof(struct outer, inner), 3);
	reference(3, offsetof(struct inner, word), 4);
	reference(0, offsetof(struct outer, taken), 5);
	put_u32(&out, 1);
	put_u32(&out, 0);
	put_u32(&out, offsetof(struct outer, env));
	carry();
	return take_image(&in);
}

static void records(void)
{
	/* Left as it was. */
	struct image *image = new_image();
	struct outer *record = image_start(image);
	HOLD(record->number == 42 && !strcmp(record->env[0], "A=1") && !record->env[1]);
	HOLD(!strcmp(record->inner->word, "word"));
	free_image(image);

	/* The environment has grown elsewhere, and a text was released. */
	image = new_image();
	record = image_start(image);
	char **grown = allocate(3 * sizeof *grown);
	grown[0] = record->env[0];
	grown[1] = duplicate("B=2");
	free(record->env);
	record->env = grown;
	free(record->taken);
	record->taken = NULL;
	frame_clear(&out);
	give_image(&out, image);
	carry();
	HOLD(get_u32(&in) == 1 && get_u32(&in) == 2);
	free_image(image);

	/* There is none. */
	frame_clear(&out);
	for (int k = 0; k < 3; k++)
		put_u32(&out, 0);
	carry();
	image = take_image(&in);
	HOLD(!image_start(image));
	free_image(image);

	HOLD(is_in_unknown_record((char *) unknown_record() + 8));
	HOLD(!is_in_unknown_record(&image));
}

int main(void)
{
	HOLD(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	int room = 1 << 20;
	setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
	messages();
	records();
	return 0;
}
