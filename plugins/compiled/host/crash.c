/* Last words: a plugin that ends its process is told of with the functions it was in. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "host.h"

#define FRAMES 64
#define SHOWN 8

static char other_stack[64 * 1024];

/* The instruction that a signal has interrupted; other frames are places behind a call. */
static const void *interrupted;

/* A frame is told by its place in the plugin: where that was loaded differs between machines. */
void last_words(const char *what, int number, const void *address, void *const *frames, int count)
{
	if (my_socket() < 0)
		return;
	struct frame *f = ask_begin('X');
	put_u32(f, (uint32_t) number);
	put_text(f, what);
	put_text(f, calling);
	put_u64(f, (uint64_t) address);
	int shown = 0;
	for (int k = 0; k < count && shown < SHOWN; k++)
		shown += (uintptr_t) frames[k] >= plugin_base && (uintptr_t) frames[k] < plugin_end;
	put_u32(f, (uint32_t) shown);
	for (int k = 0; k < count && shown; k++)
		if ((uintptr_t) frames[k] >= plugin_base && (uintptr_t) frames[k] < plugin_end) {
			put_u64(f, (uintptr_t) frames[k] - plugin_base - (frames[k] != interrupted));
			shown--;
		}
	tell();
}

/* What AddressSanitizer has found: the first line of its report that says so. */
static char found_by_sanitizer[128];

bool under_sanitizer;

static void take_report(const char *report)
{
	const char *line = strstr(report, "AddressSanitizer: ");
	size_t length = line ? strcspn(line, "\n") : 0;
	const char *on = line ? strstr(line, " on ") : NULL;
	if (on && on < line + length)
		length = (size_t) (on - line);
	if (length >= sizeof found_by_sanitizer)
		length = sizeof found_by_sanitizer - 1;
	memcpy(found_by_sanitizer, line ? line : "", length);
}

/* Have AddressSanitizer say what it finds, where the plugin was built with it. */
void listen_to_sanitizer(void)
{
	typedef void (*setter)(void (*)(const char *));
	setter set = (setter) dlsym(RTLD_DEFAULT, "__asan_set_error_report_callback");
	under_sanitizer = set != NULL;
	if (set)
		set(take_report);
}

static void crashed(int signal, siginfo_t *info, void *context)
{
	void *frames[FRAMES];
	static bool crashing;
	if (watch_fault(signal, info->si_addr, context))
		return;
	leave_child(128 + signal);
	if (crashing)
		leave_now(128 + signal);
	crashing = true;
#if defined(__x86_64__)
	interrupted = (void *) ((ucontext_t *) context)->uc_mcontext.gregs[REG_RIP];
#else
	interrupted = (void *) ((ucontext_t *) context)->uc_mcontext.pc;
#endif
	const char *what = strsignal(signal);
	if (is_in_unknown_record(info->si_addr))
		what = "Segmentation fault, as it reached into a record of Slurm's whose fields are where "
		       "nobody knows (build the plugin with -g),";
	if (*found_by_sanitizer)
		what = found_by_sanitizer;
	/* First without frames: finding them may crash again. */
	last_words(what, signal, info->si_addr, frames, 0);
	last_words(what, signal, info->si_addr, frames, backtrace(frames, FRAMES));
	leave_now(128 + signal);
}

void catch_crashes(void)
{
	static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGXFSZ, SIGQUIT, SIGTRAP};
	void *one[1];
	backtrace(one, 1);	/* which loads a library the first time */
	stack_t stack = {.ss_sp = other_stack, .ss_size = sizeof other_stack};
	sigaltstack(&stack, NULL);
	struct sigaction action = {.sa_sigaction = crashed,
				   .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
	for (size_t k = 0; k < sizeof signals / sizeof *signals; k++)
		sigaction(signals[k], &action, NULL);
}
