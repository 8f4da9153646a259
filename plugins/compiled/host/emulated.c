/* What libc offers and the emulator answers: time, identity, names, signals, chance, programs. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/utsname.h>
#include <sys/select.h>
#include <poll.h>
#include <execinfo.h>
#include <time.h>
#include <unistd.h>

#include "host.h"
#include "library.h"

#define SECOND 1000000

/* ---- time ---- */

EXPORT time_t time(time_t *where)
{
	time_t now = (time_t) (me.now_us / SECOND);
	if (where)
		*where = now;
	return now;
}

EXPORT int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
	(void) zone;
	now->tv_sec = (time_t) (me.now_us / SECOND);
	now->tv_usec = (suseconds_t) (me.now_us % SECOND);
	return 0;
}

EXPORT int clock_gettime(clockid_t clock, struct timespec *now)
{
	if (clock == CLOCK_PROCESS_CPUTIME_ID || clock == CLOCK_THREAD_CPUTIME_ID) {
		/* Real work has no place in virtual time. */
		*now = (struct timespec) {0};
		return 0;
	}
	now->tv_sec = (time_t) (me.now_us / SECOND);
	now->tv_nsec = (long) (me.now_us % SECOND * 1000);
	return 0;
}

EXPORT clock_t clock(void) { return 0; }

static void pass_time(uint64_t length_us)
{
	if (my_socket() < 0) {
		me.now_us += length_us;
		return;
	}
	struct frame *f = ask_begin('S');
	put_u64(f, length_us);
	ask();
}

EXPORT unsigned sleep(unsigned seconds)
{
	pass_time((uint64_t) seconds * SECOND);
	return 0;
}

EXPORT int usleep(useconds_t microseconds)
{
	pass_time(microseconds);
	return 0;
}

static uint64_t in_us(const struct timespec *t)
{
	return (uint64_t) t->tv_sec * SECOND + (uint64_t) (t->tv_nsec + 999) / 1000;
}

EXPORT int nanosleep(const struct timespec *length, struct timespec *left)
{
	if (length->tv_sec < 0 || length->tv_nsec < 0 || length->tv_nsec >= 1000000000) {
		errno = EINVAL;
		return -1;
	}
	pass_time(in_us(length));
	if (left)
		*left = (struct timespec) {0};
	return 0;
}

EXPORT int clock_nanosleep(clockid_t clock, int flags, const struct timespec *t, struct timespec *left)
{
	(void) clock;
	if (flags & TIMER_ABSTIME) {
		uint64_t due = in_us(t);
		if (due > me.now_us)
			pass_time(due - me.now_us);
		return 0;
	}
	return nanosleep(t, left) ? errno : 0;
}

/* Nothing that a plugin could wait for becomes ready but by time. */
EXPORT int poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	struct timespec now = {0};
	int ready = (int) syscall(SYS_ppoll, fds, count, &now, NULL, 0);
	if (ready || !timeout_ms)
		return ready;
	pass_time(timeout_ms < 0 ? UINT64_MAX / 4 : (uint64_t) timeout_ms * 1000);
	return (int) syscall(SYS_ppoll, fds, count, &now, NULL, 0);
}

EXPORT int select(int count, fd_set *restrict in, fd_set *restrict out, fd_set *restrict odd,
		  struct timeval *restrict timeout)
{
	if (count)
		return (int) syscall(SYS_pselect6, count, in, out, odd, &(struct timespec) {0}, NULL);
	pass_time(timeout ? (uint64_t) timeout->tv_sec * SECOND + (uint64_t) timeout->tv_usec
			  : UINT64_MAX / 4);
	return 0;
}

/* ---- who and where ---- */

static struct frame *ask_pids(void) { ask_begin('G'); return ask(); }

EXPORT pid_t getpid(void)
{
	if (my_socket() < 0)
		return 1;
	return (pid_t) get_u64(ask_pids());
}

EXPORT pid_t getppid(void)
{
	if (my_socket() < 0)
		return 1;
	struct frame *f = ask_pids();
	get_u64(f);
	return (pid_t) get_u64(f);
}

EXPORT pid_t getpgrp(void) { return getpid(); }
EXPORT pid_t gettid(void) { return getpid(); }
EXPORT uid_t getuid(void) { return me.uid; }
EXPORT uid_t geteuid(void) { return me.euid; }
EXPORT gid_t getgid(void) { return me.uid; }
EXPORT gid_t getegid(void) { return me.euid; }

EXPORT int gethostname(char *name, size_t length)
{
	if (strlen(me.hostname) >= length) {
		errno = ENAMETOOLONG;
		return -1;
	}
	strcpy(name, me.hostname);
	return 0;
}

EXPORT int uname(struct utsname *name)
{
	memset(name, 0, sizeof *name);
	strcpy(name->sysname, "Linux");
	memcpy(name->nodename, me.hostname, strnlen(me.hostname, sizeof name->nodename - 1));
	strcpy(name->release, "0");
	strcpy(name->version, "simctl");
	strcpy(name->machine, "x86_64");
	return 0;
}

/* Fill an entry in from an answer: found or not, the name, the numbers, the home directory. */
static int take_entry(struct frame *f, struct passwd *entry, char *room, size_t length,
		      struct passwd **result)
{
	*result = NULL;
	if (!get_u8(f))
		return 0;
	const char *name = get_text(f);
	memset(entry, 0, sizeof *entry);
	entry->pw_uid = get_u32(f);
	entry->pw_gid = get_u32(f);
	const char *home = get_text(f);
	size_t needed = strlen(name) + strlen(home) + 2;
	if (needed > length)
		return ERANGE;
	entry->pw_name = strcpy(room, name);
	entry->pw_dir = strcpy(room + strlen(name) + 1, home);
	entry->pw_passwd = entry->pw_gecos = (char *) "";
	entry->pw_shell = (char *) "/bin/sh";
	*result = entry;
	return 0;
}

EXPORT int getpwuid_r(uid_t uid, struct passwd *entry, char *room, size_t length, struct passwd **result)
{
	*result = NULL;
	if (my_socket() < 0)
		return 0;
	struct frame *f = ask_begin('A');
	put_u32(f, uid);
	put_text(f, NULL);
	return take_entry(ask(), entry, room, length, result);
}

EXPORT int getpwnam_r(const char *name, struct passwd *entry, char *room, size_t length,
		      struct passwd **result)
{
	*result = NULL;
	if (my_socket() < 0)
		return 0;
	struct frame *f = ask_begin('A');
	put_u32(f, 0);
	put_text(f, name);
	return take_entry(ask(), entry, room, length, result);
}

static struct passwd one_entry;
static char one_room[1024];

EXPORT struct passwd *getpwuid(uid_t uid)
{
	struct passwd *found;
	return getpwuid_r(uid, &one_entry, one_room, sizeof one_room, &found) ? NULL : found;
}

EXPORT struct passwd *getpwnam(const char *name)
{
	struct passwd *found;
	return getpwnam_r(name, &one_entry, one_room, sizeof one_room, &found) ? NULL : found;
}

/* ---- chance: the same in every run ---- */

EXPORT ssize_t getrandom(void *room, size_t length, unsigned flags)
{
	(void) flags;
	static uint64_t state = 0x9e3779b97f4a7c15;
	unsigned char *at = room;
	for (size_t k = 0; k < length; k++) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		at[k] = (unsigned char) (state >> 32);
	}
	return (ssize_t) length;
}

EXPORT int getentropy(void *room, size_t length)
{
	getrandom(room, length, 0);
	return 0;
}

EXPORT uint32_t arc4random(void)
{
	uint32_t value;
	getrandom(&value, sizeof value, 0);
	return value;
}

/* ---- signals: the pids that a plugin knows are the emulator's ---- */

EXPORT int kill(pid_t pid, int number)
{
	if (my_socket() < 0) {
		errno = EPERM;
		return -1;
	}
	struct frame *f = ask_begin('K');
	put_u32(f, (uint32_t) pid);
	put_u32(f, (uint32_t) number);
	int failure = (int) get_u32(ask());
	if (failure) {
		errno = failure;
		return -1;
	}
	return 0;
}

EXPORT int killpg(pid_t group, int number) { return kill(-group, number); }

/* ---- the end of the process ---- */

static void end(const char *how, int status)
{
	char text[64];
	void *frames[32];
	leave_child(status);
	snprintf(text, sizeof text, "called %s(%d)", how, status);
	last_words(text, -(status & 0xff), NULL, frames, backtrace(frames, 32));
	fflush(NULL);
	leave_now(status);
}

EXPORT __attribute__((noreturn)) void exit(int status) { end("exit", status); leave_now(status); }
EXPORT __attribute__((noreturn)) void _exit(int status) { end("_exit", status); leave_now(status); }
EXPORT __attribute__((noreturn)) void _Exit(int status) { end("_Exit", status); leave_now(status); }
EXPORT __attribute__((noreturn)) void quick_exit(int status) { end("quick_exit", status); leave_now(status); }

/* ---- what the stand-in for Slurm's library asks ---- */

/* Return a text that the emulator has by a name, in memory of the library's. */
static char *asked_text(char what, uint32_t number, const char *name)
{
	if (my_socket() < 0)
		return NULL;
	struct frame *f = ask_begin(what);
	put_u32(f, number);
	put_text(f, name);
	const char *found = get_text(ask());
	return found ? library.duplicate(found) : NULL;
}

EXPORT char *host_conf(const char *key) { return asked_text('C', 0, key); }

EXPORT char *host_strerror(int number)
{
	static char text[256];
	char *found = asked_text('E', (uint32_t) number, NULL);
	snprintf(text, sizeof text, "%s", found ? found : "Unspecified error");
	return text;
}
