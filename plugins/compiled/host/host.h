/* What the parts of the plugin host share.
 *
 * A host is one real process that stands for one simulated process. It holds one compiled plugin
 * and does what the emulator asks over a socket; what the plugin asks of the machine is asked of
 * the emulator ("upcalls").
 */
#ifndef SIMCTL_HOST_H
#define SIMCTL_HOST_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* What plugins and the library of Slurm's functions may use of the host. */
#define EXPORT __attribute__((visibility("default")))

/* ---- frames.c: messages, a length of 32 bits and that many bytes ---- */

#define NO_TEXT UINT32_MAX

struct frame {
	unsigned char *data;
	size_t used, room;
	size_t at;		/* where the next value is read */
	int fd;			/* a descriptor that came along; -1 for none */
};

void put_u8(struct frame *f, uint8_t value);
void put_u32(struct frame *f, uint32_t value);
void put_u64(struct frame *f, uint64_t value);
void put_bytes(struct frame *f, const void *data, size_t length);
void put_text(struct frame *f, const char *text);

uint8_t get_u8(struct frame *f);
uint32_t get_u32(struct frame *f);
uint64_t get_u64(struct frame *f);
/* Return bytes inside the frame and their number; NULL where the emulator sent none. */
const unsigned char *get_bytes(struct frame *f, uint32_t *length);
/* Return a text inside the frame, which ends with a NUL; NULL where the emulator sent none. */
const char *get_text(struct frame *f);

void frame_clear(struct frame *f);
void frame_send(int socket, struct frame *f);
void frame_send_with(int socket, struct frame *f, int fd);
bool frame_receive(int socket, struct frame *f);
/* End the process, whatever the plugin has put in the way. */
void leave_now(int status) __attribute__((noreturn));

/* ---- asking.c ---- */

struct identity {
	uint32_t uid, euid;
	uint64_t now_us;	/* since the epoch, as the cluster's clocks show it */
	char hostname[256];
};

extern struct identity me;
extern int control;		/* the emulator's socket of the main thread */
extern bool in_call;		/* whether the plugin's code runs in the main thread */
extern bool host_forks;		/* whether it is the host itself that forks */
extern char calling[128];	/* name of the function that runs */
extern __thread int thread_socket;	/* of a thread that is not the main one; else -1 */
extern struct frame request;	/* what the emulator wants of the process */
/* While the main thread's call waits, the emulator may want something else: this serves it. */
extern void (*serve_meanwhile)(char what);

void this_is_the_main_thread(void);
/* The socket on which the calling thread may ask; -1 where it may not. */
int my_socket(void);
/* Begin a question to the emulator, ask it, and return its answer (valid until the next one). */
struct frame *ask_begin(char what);
struct frame *ask(void);
/* Tell the emulator without waiting for an answer. */
void tell(void);
void tell_text(char what, uint32_t number, const char *text);
/* In a child of the plugin's: the socket is its parent's. */
void forget_socket(void);

/* ---- record.c: records of Slurm's own, which the emulator has laid out ---- */

struct image;
struct image *take_image(struct frame *f);
void *image_start(const struct image *image);
void give_image(struct frame *f, const struct image *image);
void free_image(struct image *image);
/* Return a record of unknown layout: whoever reads or writes it is told of. */
void *unknown_record(void);
bool is_in_unknown_record(const void *address);
/* Put an array of texts with NULL at its end: how many, and each. */
void put_texts(struct frame *f, char **texts);

/* ---- programs.c ---- */

/* In a child that the plugin has forked: end it with a status. Elsewhere nothing happens. */
void leave_child(int status);

/* ---- threads.c ---- */

extern __thread bool making_thread;
/* Begin a thread of the host's own. */
int begin_thread(pthread_t *thread, void *(*body)(void *), void *argument);

/* ---- fence.c ---- */

void bound_resources(uint64_t memory_bytes);
void raise_fence(void);

/* ---- crash.c ---- */

extern bool under_sanitizer;	/* whose report makes system calls of its own */
void catch_crashes(void);
void listen_to_sanitizer(void);
void last_words(const char *what, int number, const void *address, void *const *frames, int count);

/* ---- watch.c: what a call does with the plugin's .data and .bss, and what objects hold ---- */

extern uintptr_t plugin_base, plugin_end;	/* where the plugin was loaded */
void note_plugin_range(const void *inside);
void watch_begin(bool accesses_too);
void watch_end(struct frame *f);
/* Handle a fault that watching has caused; return whether it was one. */
bool watch_fault(int signal, const void *address, void *context);
void put_variables(struct frame *f);
void put_block(struct frame *f, uint64_t address);
/* Tell whether memory can be read, without reading it. */
bool is_readable(const void *address);

#endif
