/* The main loop of a host: forks, loads and calls as the emulator says. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "host.h"
#include "library.h"

static __thread int calls = -1;		/* where a thread's calls come from that is not the main one */
static void *plugin;

/* ---- one call ---- */

#define ARGUMENTS 10
#define DATA_BYTES 4096
#define UNWRITTEN 0xA7

/* An argument as the function gets it, and what of it goes back. */
struct argument {
	char kind;
	uint64_t value;		/* what is passed */
	uint64_t slot;		/* what the function may write to, where a pointer to it is passed */
	char *memory;
	size_t size;
	FILE *file;
	struct image *image;
};

static void take_environment(struct argument *a)
{
	uint32_t count = get_u32(&request);
	char **env = library.allocate(((size_t) count + 1) * sizeof *env);
	for (uint32_t k = 0; k < count; k++)
		env[k] = library.duplicate(get_text(&request));
	a->slot = (uint64_t) env;
	a->value = (uint64_t) &a->slot;
}

static void take_argument(struct argument *a)
{
	uint32_t length;
	const unsigned char *bytes;
	a->kind = (char) get_u8(&request);
	switch (a->kind) {
	case 'i':		/* a number, or a pointer the plugin made */
		a->value = get_u64(&request);
		break;
	case 's':		/* a text */
		bytes = get_bytes(&request, &length);
		a->memory = bytes ? memcpy(malloc(length + 1), bytes, length + 1) : NULL;
		a->value = (uint64_t) a->memory;
		break;
	case 'o':		/* where a number or pointer is to be written */
	case 't':		/* where a pointer to a text is to be written */
		a->slot = get_u64(&request);
		a->value = (uint64_t) &a->slot;
		break;
	case 'b':		/* a buffer to read */
		bytes = get_bytes(&request, &length);
		a->value = (uint64_t) library.buffer_of(bytes, length);
		break;
	case 'B':		/* a buffer to pack into */
		a->value = (uint64_t) library.new_buffer();
		break;
	case 'z':		/* room for a text of so many bytes */
		a->size = get_u64(&request);
		a->memory = calloc(1, a->size + 1);
		a->value = (uint64_t) a->memory;
		break;
	case 'd':		/* room for data whose form only the plugin knows */
		a->memory = malloc(DATA_BYTES);
		memset(a->memory, UNWRITTEN, DATA_BYTES);
		a->value = (uint64_t) a->memory;
		break;
	case 'f':		/* a FILE whose text goes back */
		a->file = open_memstream(&a->memory, &a->size);
		a->value = (uint64_t) a->file;
		break;
	case 'e':		/* an environment */
		take_environment(a);
		break;
	case 'm':		/* a record of Slurm's own */
		a->image = take_image(&request);
		a->value = (uint64_t) image_start(a->image);
		break;
	case 'g':		/* a record of which nobody knows the layout */
		a->value = (uint64_t) unknown_record();
		break;
	default:
		leave_now(96);
	}
}

/* Give back what a function wrote into room of unknown form: bytes, and the text they point to. */
static void give_data(struct frame *f, const struct argument *a)
{
	size_t used = DATA_BYTES;
	while (used && (unsigned char) a->memory[used - 1] == UNWRITTEN)
		used--;
	put_bytes(f, a->memory, used);
	char *text = NULL;
	if (used > 4 && used <= 8) {
		memcpy(&text, a->memory, used);
		if ((uint64_t) text < 4096 || !is_readable(text))
			text = NULL;
	}
	put_text(f, text);
}

static void give_argument(struct frame *f, struct argument *a)
{
	switch (a->kind) {
	case 'o':
		put_u64(f, a->slot);
		break;
	case 't':
		put_text(f, (const char *) a->slot);
		break;
	case 'b':
		put_u64(f, library.position(a->value));
		library.free_buffer(a->value);
		break;
	case 'B':
		put_bytes(f, library.bytes(a->value), library.position(a->value));
		library.free_buffer(a->value);
		break;
	case 'z':
		put_bytes(f, a->memory, strnlen(a->memory, a->size + 1));
		break;
	case 'd':
		give_data(f, a);
		break;
	case 'f':
		fclose(a->file);
		put_bytes(f, a->memory, a->size);
		break;
	case 'e':
		put_texts(f, (char **) a->slot);
		break;
	case 'm':
		give_image(f, a->image);
		break;
	case 'g':
		put_u32(f, 0);
		break;
	default:
		return;
	}
}

static void release(struct argument *a)
{
	if (strchr("szfd", a->kind))
		free(a->memory);
	if (a->kind == 'm')
		free_image(a->image);
}

typedef uint64_t (*function)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
			     uint64_t, uint64_t, uint64_t);

static int caller(void) { return calls >= 0 ? calls : control; }

static void refuse(const char *why)
{
	static struct frame answer;
	frame_clear(&answer);
	put_u8(&answer, 'E');
	put_text(&answer, why);
	frame_send(caller(), &answer);
}

/* Take what holds for all that follows: the time, and as whom the process runs. */
static void take_surroundings(void)
{
	me.now_us = get_u64(&request);
	me.uid = get_u32(&request);
	me.euid = get_u32(&request);
}

static uint64_t run(function f, const struct argument *a, int *failure)
{
	errno = 0;
	bool is_main = calls < 0;
	if (is_main)
		in_call = true;
	/* All that is passed is a number or a pointer, and both ABIs pass those alike. */
	uint64_t result = f(a[0].value, a[1].value, a[2].value, a[3].value, a[4].value, a[5].value,
			    a[6].value, a[7].value, a[8].value, a[9].value);
	*failure = errno;
	/* A child that came back instead of calling exec or exit is over. */
	leave_child(0);
	if (is_main)
		in_call = false;
	return result;
}

static void call(void)
{
	static struct frame answer;
	struct argument arguments[ARGUMENTS] = {{0}};
	take_surroundings();
	const char *name = get_text(&request);
	snprintf(calling, sizeof calling, "%s", name);
	enum { UNWATCHED, GROWTH, ACCESSES } watched = get_u8(&request);
	char returns = (char) get_u8(&request);
	int count = get_u8(&request);
	for (int k = 0; k < count && k < ARGUMENTS; k++)
		take_argument(&arguments[k]);
	function f = (function) dlsym(plugin, name);
	if (!f) {
		refuse("the plugin has no such function");
		return;
	}
	if (watched)
		watch_begin(watched == ACCESSES);
	int failure;
	uint64_t result = run(f, arguments, &failure);
	fflush(NULL);
	frame_clear(&answer);
	put_u8(&answer, 'R');
	put_u64(&answer, result);
	put_u32(&answer, (uint32_t) failure);
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	put_u64(&answer, (uint64_t) usage.ru_maxrss);
	if (watched)
		watch_end(&answer);
	if (returns == 't')
		put_text(&answer, (const char *) result);
	for (int k = 0; k < count; k++)
		give_argument(&answer, &arguments[k]);
	frame_send(caller(), &answer);
	for (int k = 0; k < count; k++)
		release(&arguments[k]);
	calling[0] = 0;
}

/* ---- forks and loading ---- */

static void serve(void) __attribute__((noreturn));

static void fork_off(void)
{
	static struct frame answer;
	int own = request.fd;
	fflush(NULL);
	host_forks = true;
	pid_t child = fork();
	host_forks = false;
	if (child == 0) {
		close(control);
		control = own;
		this_is_the_main_thread();
		if (in_call) {
			/* It was forked while a call waited, of which nothing is in the child. */
			in_call = false;
			serve();
		}
		return;
	}
	close(own);
	frame_clear(&answer);
	put_u8(&answer, 'F');
	put_u64(&answer, (uint64_t) child);
	frame_send(control, &answer);
}

/* Open a shared library: one of Slurm's functions for all, or the plugin, behind the fence. */
static void load(void)
{
	static struct frame answer;
	take_surroundings();
	snprintf(me.hostname, sizeof me.hostname, "%s", get_text(&request));
	bool for_all = get_u8(&request);
	const char *path = get_text(&request);
	if (!for_all)
		raise_fence();
	snprintf(calling, sizeof calling, "%s", for_all ? "" : "a constructor of the plugin");
	in_call = !for_all;
	void *opened = dlopen(path, RTLD_NOW | (for_all ? RTLD_GLOBAL : RTLD_LOCAL));
	in_call = false;
	if (!opened) {
		refuse(dlerror());
		return;
	}
	if (for_all) {
		const char *missing = find_library();
		if (missing) {
			refuse(missing);
			return;
		}
	} else {
		plugin = opened;
		const void *type = dlsym(opened, "plugin_type");
		note_plugin_range(type ? type : dlsym(opened, "plugin_name"));
	}
	frame_clear(&answer);
	put_u8(&answer, 'L');
	frame_send(control, &answer);
}

/* Answer what the emulator wants to see: the plugin's variables, or what an address points to. */
static void look(void)
{
	static struct frame answer;
	uint64_t address = get_u64(&request);
	frame_clear(&answer);
	put_u8(&answer, 'D');
	if (address)
		put_block(&answer, address);
	else
		put_variables(&answer);
	frame_send(control, &answer);
}

/* Serve calls in a thread of its own: another thread of the daemon makes them while a call waits. */
static void *serve_calls(void *given)
{
	static __thread struct frame received;
	calls = thread_socket = (int) (intptr_t) given;
	while (frame_receive(calls, &received)) {
		struct frame other = request;
		request = received;
		received = other;
		if (get_u8(&request) == 'C')
			call();
	}
	close(calls);
	return NULL;
}

static void begin_calls(void)
{
	pthread_t thread;
	int own = request.fd;
	if (begin_thread(&thread, serve_calls, (void *) (intptr_t) own))
		close(own);
	else
		pthread_detach(thread);
}

static void serve_one(char what)
{
	switch (what) {
	case 'C':
		call();
		break;
	case 'D':
		look();
		break;
	case 'F':
		fork_off();
		break;
	case 'H':
		begin_calls();
		break;
	case 'L':
		load();
		break;
	default:
		leave_now(96);
	}
}

static void serve(void)
{
	for (;;) {
		if (!frame_receive(control, &request))
			leave_now(0);
		serve_one((char) get_u8(&request));
	}
}

/* Have the kernel kill this process and all its forks when the emulator ends. */
static void hang_on(int lifeline)
{
	pid_t group = (pid_t) syscall(SYS_getpid);
	char byte;
	setsid();
	if (fcntl(lifeline, F_SETOWN, -group) || fcntl(lifeline, F_SETSIG, SIGKILL) ||
	    fcntl(lifeline, F_SETFL, O_ASYNC | O_NONBLOCK))
		leave_now(95);
	/* It may be gone already. */
	if (read(lifeline, &byte, 1) == 0)
		leave_now(0);
}

/* usage: host CONTROL LIFELINE MEMORY_BYTES
 *
 * The emulator holds the other end of the lifeline: as it ends, however it ends, the kernel kills
 * this process and all its forks, whatever they do. */
int main(int argc, char **argv)
{
	if (argc < 4)
		return 2;
	int persona = personality(0xffffffff);
	if (persona >= 0 && !(persona & ADDR_NO_RANDOMIZE) &&
	    personality((unsigned long) persona | ADDR_NO_RANDOMIZE) >= 0 && !getenv("SIMCTL_HOST_AGAIN")) {
		setenv("SIMCTL_HOST_AGAIN", "1", 1);
		execv("/proc/self/exe", argv);
	}
	unsetenv("SIMCTL_HOST_AGAIN");
	control = atoi(argv[1]);
	hang_on(atoi(argv[2]));
	this_is_the_main_thread();
	serve_meanwhile = serve_one;
	signal(SIGCHLD, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	bound_resources(strtoull(argv[3], NULL, 10));
	catch_crashes();
	listen_to_sanitizer();
	serve();
}
