/* The fence: what a plugin may ask of the real machine's kernel.
 *
 * What no plugin needs to be refused passes. All else is trapped: a call that the host itself makes
 * (a fork, a thread, opening a shared library) is made again with a secret in its sixth argument,
 * which none of these calls has, and then passes; the rest fails with EPERM and is told. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "host.h"

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#error "compiled plugins run on x86-64 and aarch64"
#endif

static uint64_t secret;

static const int passes[] = {
	SYS_read, SYS_write, SYS_readv, SYS_writev, SYS_pread64, SYS_pwrite64, SYS_lseek, SYS_close,
	SYS_fstat, SYS_ftruncate, SYS_fsync, SYS_fdatasync, SYS_fcntl, SYS_dup, SYS_dup3, SYS_pipe2,
	SYS_mmap, SYS_munmap, SYS_mremap, SYS_mprotect, SYS_madvise, SYS_brk,
	SYS_rt_sigaction, SYS_rt_sigreturn, SYS_sigaltstack, SYS_futex,
	SYS_set_robust_list, SYS_sched_yield, SYS_sched_getaffinity, SYS_exit, SYS_exit_group,
	SYS_socketpair, SYS_sendmsg, SYS_recvmsg, SYS_sendto, SYS_recvfrom, SYS_ppoll, SYS_pselect6,
	SYS_getpid, SYS_gettid, SYS_getppid, SYS_getuid, SYS_geteuid, SYS_getgid, SYS_getegid,
	SYS_getrusage, SYS_clock_gettime, SYS_gettimeofday, SYS_nanosleep, SYS_clock_nanosleep,
	SYS_getrandom, SYS_restart_syscall, SYS_uname, SYS_times, SYS_sysinfo, SYS_set_tid_address,
	SYS_getcwd, SYS_umask, SYS_setitimer, SYS_getitimer,
#ifdef SYS_poll
	SYS_poll, SYS_select, SYS_dup2, SYS_pipe, SYS_arch_prctl, SYS_time,
#endif
#ifdef SYS_rseq
	SYS_rseq,
#endif
};

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t) offsetof(struct seccomp_data, field))
#define RETURN(what) BPF_STMT(BPF_RET | BPF_K, what)
#define IF_EQUAL(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t) (value), yes, no)

void raise_fence(void)
{
	struct sock_filter program[2 * COUNT(passes) + 32];
	struct sock_filter head[] = {
		LOAD(arch), IF_EQUAL(ARCHITECTURE, 1, 0), RETURN(SECCOMP_RET_KILL_PROCESS), LOAD(nr),
		/* Its arguments lie in memory, where no filter sees them; libc then uses clone. */
		IF_EQUAL(SYS_clone3, 0, 1), RETURN(SECCOMP_RET_ERRNO | ENOSYS),
	};
	struct sock_filter tail[] = {
		/* Of a descriptor; a path is looked up by the emulator. */
		IF_EQUAL(SYS_newfstatat, 0, 3), LOAD(args[3]),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0x1000, 0, 1), RETURN(SECCOMP_RET_ALLOW),
		LOAD(args[5]), IF_EQUAL(secret, 0, 3), LOAD(args[5]) , IF_EQUAL(secret >> 32, 0, 1),
		RETURN(SECCOMP_RET_ALLOW), RETURN(SECCOMP_RET_TRAP),
	};
	tail[6].k += 4;
	size_t n = 0;
	memcpy(program, head, sizeof head);
	n = COUNT(head);
	for (size_t k = 0; k < COUNT(passes); k++) {
		program[n++] = (struct sock_filter) IF_EQUAL(passes[k], 0, 1);
		program[n++] = (struct sock_filter) RETURN(SECCOMP_RET_ALLOW);
	}
	memcpy(program + n, tail, sizeof tail);
	n += COUNT(tail);
	struct sock_fprog filter = {(unsigned short) n, program};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)) {
		perror("simctl plugin host: seccomp");
		leave_now(95);
	}
}

/* ---- what is trapped ---- */

#if defined(__x86_64__)
#define REGISTER(context, name) ((context)->uc_mcontext.gregs[REG_##name])
static uint64_t argument(ucontext_t *c, int which)
{
	static const int of[] = {REG_RDI, REG_RSI, REG_RDX, REG_R10, REG_R8};
	return (uint64_t) c->uc_mcontext.gregs[of[which]];
}

static void make_again(ucontext_t *c, int number)
{
	REGISTER(c, R9) = (greg_t) secret;
	REGISTER(c, RAX) = number;
	REGISTER(c, RIP) -= 2;
}

static void give_back(ucontext_t *c, long result) { REGISTER(c, RAX) = result; }
#else
static uint64_t argument(ucontext_t *c, int which) { return c->uc_mcontext.regs[which]; }

static void make_again(ucontext_t *c, int number)
{
	c->uc_mcontext.regs[5] = secret;
	c->uc_mcontext.regs[8] = (uint64_t) number;
	c->uc_mcontext.pc -= 4;
}

static void give_back(ucontext_t *c, long result) { c->uc_mcontext.regs[0] = (uint64_t) result; }
#endif

static bool is_library(const char *path)
{
	const char *name = strrchr(path, '/');
	name = name ? name + 1 : path;
	return strstr(name, ".so") || !strcmp(path, "/etc/ld.so.cache");
}

static bool is_ours(int number, ucontext_t *c)
{
	switch (number) {
	case SYS_clone:
		if (argument(c, 0) & CLONE_THREAD)
			return making_thread;
		return host_forks && !(argument(c, 0) & CLONE_VM);
	case SYS_openat:
		return (argument(c, 2) & (O_ACCMODE | O_CREAT | O_TRUNC)) == O_RDONLY &&
		       is_library((const char *) argument(c, 1));
	case SYS_tgkill:
		return (pid_t) argument(c, 0) == (pid_t) syscall(SYS_getpid);
	case SYS_prctl:
		return argument(c, 0) == PR_SET_NAME;
	default:
		return false;
	}
}

/* Change the signal mask, but never block SIGSYS: libc blocks all signals where it forks or begins
 * a thread, and what is trapped while SIGSYS is blocked ends the process. */
static long set_mask(ucontext_t *c)
{
	const uint64_t *given = (const uint64_t *) argument(c, 1);
	uint64_t *mask = (uint64_t *) &c->uc_sigmask;
	uint64_t before = *mask;
	if (given && argument(c, 0) == SIG_BLOCK)
		*mask |= *given;
	else if (given && argument(c, 0) == SIG_UNBLOCK)
		*mask &= ~*given;
	else if (given)
		*mask = *given;
	*mask &= ~(UINT64_C(1) << (SIGSYS - 1));
	if (argument(c, 2))
		*(uint64_t *) argument(c, 2) = before;
	return 0;
}

static void trapped(int signal, siginfo_t *info, void *context)
{
	(void) signal;
	int number = info->si_syscall;
	if (number == SYS_rt_sigprocmask) {
		give_back(context, set_mask(context));
		return;
	}
	if (is_ours(number, context)) {
		make_again(context, number);
		return;
	}
	int kept = errno;
	if (my_socket() >= 0 && !under_sanitizer)
		tell_text('N', (uint32_t) number, calling);
	errno = kept;
	give_back(context, -EPERM);
}

/* ---- how much of the machine a host may take ---- */

static void bound(int resource, rlim_t most)
{
	struct rlimit limit;
	if (!getrlimit(resource, &limit) && limit.rlim_max != RLIM_INFINITY && limit.rlim_max < most)
		most = limit.rlim_max;
	limit.rlim_cur = limit.rlim_max = most;
	setrlimit(resource, &limit);
}

void bound_resources(uint64_t memory_bytes)
{
	if (getrandom(&secret, sizeof secret, 0) != sizeof secret)
		leave_now(95);
	if (memory_bytes)
		bound(RLIMIT_AS, memory_bytes);
	bound(RLIMIT_CORE, 0);
	bound(RLIMIT_CPU, 1800);
	bound(RLIMIT_FSIZE, 16u << 20);
	bound(RLIMIT_NOFILE, 256);
	bound(RLIMIT_STACK, 8u << 20);
	bound(RLIMIT_MEMLOCK, 0);
	bound(RLIMIT_MSGQUEUE, 0);
	struct sigaction action = {.sa_sigaction = trapped,
				   .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
	sigaction(SIGSYS, &action, NULL);
}
