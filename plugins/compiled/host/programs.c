/* Programs that a plugin starts: simulated ones, which the emulator runs.
 *
 * A fork of the plugin's is a real one, so that its code runs as written up to exec or exit. The
 * child asks nothing of the emulator: it leaves word of what it wants to become in memory that both
 * share, and ends; its parent, which has waited for that, asks for the program to be run. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <grp.h>
#include <linux/futex.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "host.h"

#define MOST_WORDS 64
#define WORD_BYTES (60 * 1024)
#define CHILD_SECONDS 2

/* What a child leaves for its parent. */
struct word {
	uint32_t done;
	int status;		/* of its exit, where it becomes nothing */
	bool becomes, has_env, as_user;
	uint32_t words, variables;
	size_t used;
	char texts[WORD_BYTES];	/* where it stands, the path, its words, its variables */
};

static struct word *child;	/* in a child: what it leaves */
static bool as_user;
static char folder[1024];

static int refused(const char *what)
{
	if (my_socket() >= 0)
		tell_text('N', UINT32_MAX, what);
	errno = EPERM;
	return -1;
}

static long wait_on(uint32_t *word)
{
	struct timespec most = {.tv_nsec = 100000000};
	return syscall(SYS_futex, word, FUTEX_WAIT, 0, &most, NULL, 0);
}

/* ---- in a child ---- */

static void __attribute__((noreturn)) done(void)
{
	__atomic_store_n(&child->done, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &child->done, FUTEX_WAKE, 1, NULL, NULL, 0);
	child = NULL;
	leave_now(0);
}

void leave_child(int status)
{
	if (!child)
		return;
	child->status = status;
	done();
}

static void leave_text(const char *text)
{
	size_t length = strlen(text) + 1;
	if (child->used + length > WORD_BYTES)
		leave_child(127);
	memcpy(child->texts + child->used, text, length);
	child->used += length;
}

static uint32_t leave_texts(char *const texts[])
{
	uint32_t count = 0;
	for (; texts && texts[count]; count++)
		leave_text(texts[count]);
	return count;
}

static void become(const char *path, char *const argv[], char *const env[])
{
	leave_text(folder);
	leave_text(path);
	child->words = leave_texts(argv);
	child->has_env = env && env != environ;
	child->variables = child->has_env ? leave_texts(env) : 0;
	child->as_user = as_user;
	child->becomes = true;
	done();
}

/* As whom and where: in a child alone, whose program starts so. */
#define IN_CHILD(name, note, real, ...) \
	EXPORT int name(__VA_ARGS__) \
	{ \
		if (child) { \
			note; \
			return 0; \
		} \
		return (int) real; \
	}

IN_CHILD(setuid, as_user = uid != 0, syscall(SYS_setuid, uid), uid_t uid)
IN_CHILD(seteuid, as_user = uid != 0, syscall(SYS_setresuid, -1, uid, -1), uid_t uid)
IN_CHILD(setreuid, as_user = uid != 0, syscall(SYS_setreuid, uid, other), uid_t uid, uid_t other)
IN_CHILD(setresuid, as_user = uid != 0, syscall(SYS_setresuid, uid, e, s), uid_t uid, uid_t e, uid_t s)
IN_CHILD(setgid, , syscall(SYS_setgid, gid), gid_t gid)
IN_CHILD(setegid, , syscall(SYS_setresgid, -1, gid, -1), gid_t gid)
IN_CHILD(setgroups, , syscall(SYS_setgroups, count, groups), size_t count, const gid_t *groups)
IN_CHILD(setpgid, , syscall(SYS_setpgid, pid, group), pid_t pid, pid_t group)
IN_CHILD(setsid, , syscall(SYS_setsid), void)
IN_CHILD(chdir, snprintf(folder, sizeof folder, "%s", path), (errno = ENOSYS, -1), const char *path)

/* ---- in the process of the plugin ---- */

/* Ask whether this process may start programs at all. */
static bool may_start(const char *what)
{
	if (child || my_socket() < 0) {
		errno = EAGAIN;
		return false;
	}
	struct frame *f = ask_begin('Y');
	put_u8(f, '?');
	put_text(f, what);
	errno = (int) get_u32(ask());
	return !errno;
}

/* Have the emulator run what a child wants to become; return the pid it has. */
static pid_t start(const struct word *word)
{
	const char *text = word->texts;
	struct frame *f = ask_begin('Y');
	put_u8(f, word->becomes ? 'e' : 'x');
	put_u32(f, (uint32_t) word->status);
	put_u8(f, word->as_user);
	put_u8(f, word->has_env);
	put_u32(f, word->words);
	put_u32(f, word->variables);
	for (uint32_t k = 0; word->becomes && k < 2 + word->words + word->variables; k++) {
		put_text(f, text);
		text += strlen(text) + 1;
	}
	f = ask();
	errno = (int) get_u32(f);
	return errno ? -1 : (pid_t) get_u32(f);
}

static struct word *new_word(void)
{
	void *room = mmap(NULL, sizeof(struct word), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return room == MAP_FAILED ? NULL : room;
}

typedef pid_t (*forker)(void);

EXPORT pid_t fork(void)
{
	static forker real;
	if (!real)
		real = (forker) dlsym(RTLD_NEXT, "fork");
	if (host_forks)
		return real();
	if (!may_start("fork"))
		return -1;
	struct word *word = new_word();
	if (!word)
		return -1;
	host_forks = true;
	pid_t made = real();
	host_forks = false;
	if (made == 0) {
		/* It has to become something soon: its parent waits for that. */
		struct itimerval most = {.it_value.tv_sec = CHILD_SECONDS};
		setitimer(ITIMER_VIRTUAL, &most, NULL);
		child = word;
		forget_socket();
		return 0;
	}
	pid_t given = -1;
	if (made > 0) {
		while (!__atomic_load_n(&word->done, __ATOMIC_SEQ_CST))
			wait_on(&word->done);
		given = start(word);
	}
	munmap(word, sizeof *word);
	return given;
}

/* What a child may do before exec is all that it does: the rest is as with fork. */
EXPORT pid_t vfork(void) { return refused("vfork"); }
EXPORT int daemon(int nochdir, int noclose) { (void) nochdir; (void) noclose; return refused("daemon"); }

/* Return the pid of a program that has ended, with its wait status and what it wrote. */
static pid_t wait_for_program(pid_t pid, int options, int *status, char **output)
{
	if (my_socket() < 0) {
		errno = ECHILD;
		return -1;
	}
	struct frame *f = ask_begin('y');
	put_u32(f, (uint32_t) pid);
	put_u8(f, (options & WNOHANG) != 0);
	f = ask();
	errno = (int) get_u32(f);
	pid_t ended = (pid_t) get_u32(f);
	int how = (int) get_u32(f);
	const char *text = get_text(f);
	if (status)
		*status = how;
	if (output)
		*output = strdup(text ? text : "");
	return errno ? -1 : ended;
}

EXPORT pid_t waitpid(pid_t pid, int *status, int options)
{
	return wait_for_program(pid, options, status, NULL);
}

EXPORT pid_t wait(int *status) { return waitpid(-1, status, 0); }

EXPORT pid_t wait4(pid_t pid, int *status, int options, struct rusage *usage)
{
	(void) usage;
	return waitpid(pid, status, options);
}

/* Start a program as a child would that does nothing else. */
static pid_t spawn(const char *path, char *const argv[], char *const env[])
{
	struct word *word = new_word();
	if (!word)
		return -1;
	child = word;
	leave_text("");
	leave_text(path);
	word->words = leave_texts(argv);
	word->has_env = env && env != environ;
	word->variables = word->has_env ? leave_texts(env) : 0;
	word->becomes = true;
	child = NULL;
	pid_t given = start(word);
	munmap(word, sizeof *word);
	return given;
}

static pid_t spawn_shell(const char *command)
{
	char *argv[] = {(char *) "sh", (char *) "-c", (char *) command, NULL};
	return spawn("/bin/sh", argv, NULL);
}

EXPORT int posix_spawn(pid_t *restrict pid, const char *restrict path,
		       const posix_spawn_file_actions_t *actions,
		       const posix_spawnattr_t *restrict how, char *const argv[restrict],
		       char *const env[restrict])
{
	(void) actions;
	(void) how;
	if (!may_start("posix_spawn"))
		return errno;
	*pid = spawn(path, argv, env);
	return *pid < 0 ? errno : 0;
}

EXPORT int posix_spawnp(pid_t *restrict pid, const char *restrict file,
			const posix_spawn_file_actions_t *actions,
			const posix_spawnattr_t *restrict how, char *const argv[restrict],
			char *const env[restrict])
{
	return posix_spawn(pid, file, actions, how, argv, env);
}

EXPORT int system(const char *command)
{
	int status = -1;
	if (!command)
		return 1;
	if (!may_start("system"))
		return -1;
	pid_t pid = spawn_shell(command);
	return pid < 0 || waitpid(pid, &status, 0) < 0 ? -1 : status;
}

/* A program that a FILE stands for has ended already: the file holds all that it wrote. */
#define MOST_PIPES 16
static struct pipe_of {
	FILE *file;
	char *text;
	int status;
} pipes[MOST_PIPES];

EXPORT FILE *popen(const char *command, const char *mode)
{
	struct pipe_of *free_one = NULL;
	for (int k = 0; k < MOST_PIPES && !free_one; k++)
		free_one = pipes[k].file ? NULL : &pipes[k];
	if (!may_start("popen"))
		return NULL;
	if (*mode != 'r' || !free_one) {
		errno = free_one ? EINVAL : EMFILE;
		return NULL;
	}
	pid_t pid = spawn_shell(command);
	if (pid < 0 || wait_for_program(pid, 0, &free_one->status, &free_one->text) < 0)
		return NULL;
	size_t length = strlen(free_one->text);
	/* fmemopen refuses an empty one; what is empty reads as its end at once. */
	free_one->file = fmemopen(length ? free_one->text : (char *) "\n", length ? length : 1, "r");
	if (!length && free_one->file)
		fgetc(free_one->file);
	return free_one->file;
}

EXPORT int pclose(FILE *file)
{
	for (int k = 0; k < MOST_PIPES; k++)
		if (file && pipes[k].file == file) {
			fclose(file);
			free(pipes[k].text);
			pipes[k].file = NULL;
			return pipes[k].status;
		}
	errno = ECHILD;
	return -1;
}

/* ---- exec ---- */

/* Become another program: a child may, and a simulated task, which then never comes back. */
static int execute(const char *what, const char *path, char *const argv[], char *const env[])
{
	if (child)
		become(path, argv, env);
	if (my_socket() < 0)
		return refused(what);
	struct frame *f = ask_begin('Z');
	put_text(f, what);
	put_text(f, path);
	put_texts(f, (char **) argv);
	put_u8(f, env != NULL);
	if (env)
		put_texts(f, (char **) env);
	errno = (int) get_u32(ask());
	return -1;
}

EXPORT int execve(const char *path, char *const argv[], char *const env[])
{
	return execute("execve", path, argv, env);
}

EXPORT int execvpe(const char *path, char *const argv[], char *const env[])
{
	return execute("execvpe", path, argv, env);
}

EXPORT int execv(const char *path, char *const argv[]) { return execute("execv", path, argv, NULL); }
EXPORT int execvp(const char *path, char *const argv[]) { return execute("execvp", path, argv, NULL); }

static int execute_words(const char *what, const char *path, const char *first, va_list words, bool with_env)
{
	char *argv[MOST_WORDS + 1] = {(char *) first};
	int count = first != NULL;
	for (char *each; first && (each = va_arg(words, char *));)
		if (count < MOST_WORDS)
			argv[count++] = each;
	return execute(what, path, argv, with_env ? va_arg(words, char **) : NULL);
}

#define EXECUTE_WORDS(name, with_env) \
	EXPORT int name(const char *path, const char *first, ...) \
	{ \
		va_list words; \
		va_start(words, first); \
		int result = execute_words(#name, path, first, words, with_env); \
		va_end(words); \
		return result; \
	}

EXECUTE_WORDS(execl, false)
EXECUTE_WORDS(execlp, false)
EXECUTE_WORDS(execle, true)
