"""Nothing that a compiled plugin does reaches the real machine."""

import os
import shutil
import subprocess
from pathlib import Path

from tests.compiled_plugins import changed, needs_compiler
from tests.test_compiled import SCENARIO, events, run

pytestmark = needs_compiler

TOP = """
#include <dirent.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <pwd.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#define TRY(number, what) info("%d gave %ld", number, (long) (what))
"""

REFUSED = [
    'system("touch {there}/made")',
    'popen("touch {there}/made", "r")',
    "fork()",
    "vfork()",
    "syscall(SYS_fork)" if os.uname().machine == "x86_64" else "fork()",
    "syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)",
    "syscall(SYS_clone3, 0, 0)",
    'execl("/bin/touch", "touch", "{there}/made", NULL)',
    'syscall(SYS_execve, "/bin/touch", NULL, NULL)',
    'open("{there}/secret", O_RDONLY)',
    'open("/etc/passwd", O_RDONLY)',
    'fopen("/etc/passwd", "r")',
    'syscall(SYS_openat, AT_FDCWD, "/etc/passwd", O_RDONLY)',
    'syscall(SYS_openat, AT_FDCWD, "{there}/x.so", O_WRONLY | O_CREAT, 0600)',
    'syscall(SYS_unlink, "{there}/secret")'
    if os.uname().machine == "x86_64"
    else 'unlink("{there}/secret")',
    'unlink("{there}/secret")',
    'rename("{there}/secret", "{there}/other")',
    'mkdir("{there}/made", 0700)',
    'syscall(SYS_mkdirat, AT_FDCWD, "{there}/made", 0700)',
    'chmod("{there}/secret", 0)',
    'opendir("{there}")',
    "kill({victim}, SIGKILL)",
    "kill(-{victim}, SIGKILL)",
    "syscall(SYS_kill, {victim}, SIGKILL)",
    "syscall(SYS_kill, -1, SIGKILL)",
    "syscall(SYS_tgkill, {victim}, {victim}, SIGKILL)",
    "syscall(SYS_pidfd_open, {victim}, 0)",
    "ptrace(PTRACE_ATTACH, {victim}, 0, 0)",
    "socket(AF_INET, SOCK_STREAM, 0)",
    "syscall(SYS_setsid)",
    "setpgid(0, 0)",
    "syscall(SYS_unshare, 0x10000000)",
    "setrlimit(RLIMIT_AS, &(struct rlimit) {{1, 1}})",
    "setuid(1)",
    "syscall(SYS_prctl, 1, 0, 0, 0, 0)",
    'chdir("/")',
    "socket(AF_UNIX, SOCK_STREAM, 0)",
    'syscall(SYS_memfd_create, "more", 0)',
    "syscall(SYS_perf_event_open, 0, 0, 0, 0, 0)",
    "syscall(SYS_process_vm_writev, {victim}, 0, 0, 0, 0, 0)",
    "syscall(SYS_io_uring_setup, 1, 0)",
    "syscall(SYS_timer_create, 0, 0, 0)",
    "syscall(SYS_bpf, 0, 0, 0)",
    'syscall(SYS_mount, "/", "/", "none", 0, 0)',
    'syscall(SYS_chroot, "/")',
    "ptrace(PTRACE_TRACEME, 0, 0, 0)",
    "mlockall(3)",
    'execl("/bin/sh", "sh", "-c", "touch {there}/made", NULL)',
]


def test_what_would_reach_the_machine_fails(tmp_path: Path) -> None:
    """Each gives -1 (or NULL), and the plugin goes on; nothing has changed outside."""
    there = tmp_path / "there"
    there.mkdir()
    (there / "secret").write_text("kept", encoding="utf-8")
    sleep = shutil.which("sleep")
    assert sleep is not None
    victim = subprocess.Popen([sleep, "600"], start_new_session=True)
    try:
        calls = [
            each.replace("{{", "{")
            .replace("}}", "}")
            .replace("{there}", str(there))
            .replace("{victim}", str(victim.pid))
            for each in REFUSED
        ]
        body = "\n".join(f"TRY({number}, ({call}));" for number, call in enumerate(calls))
        plugin = changed(tmp_path, "switch_p_node_init", body, top=TOP)
        trace = run(tmp_path, plugin)
        assert victim.poll() is None
    finally:
        victim.kill()
        victim.wait()
    assert sorted(each.name for each in there.iterdir()) == ["secret"]
    assert (there / "secret").read_text(encoding="utf-8") == "kept"
    told = [each["args"]["text"] for each in events(trace, name="plugin_log", node="n1")]
    gave = [text.partition(" gave ")[::2] for text in told if " gave " in text]
    assert [number for number, _ in gave[: len(REFUSED)]] == list(map(str, range(len(REFUSED))))
    null = ("popen", "fopen", "opendir")
    passed = [
        REFUSED[int(number)]
        for number, rc in gave
        if rc != ("0" if REFUSED[int(number)].startswith(null) else "-1")
    ]
    assert passed == []
    assert events(trace, name="switch_p_job_attach")


def test_a_plugin_sees_the_simulated_disk_alone(tmp_path: Path) -> None:
    """What it writes in slurmd is on that node's disk, and is found there by the next call."""
    body = """
    struct stat found;
    char line[64] = "";
    FILE *file = fopen("/var/spool/mine", "w");
    fprintf(file, "one\\n");
    fclose(file);
    file = fopen("/var/spool/mine", "a");
    fputs("two\\n", file);
    fclose(file);
    file = fopen("/var/spool/mine", "r");
    fgets(line, sizeof line, file);
    fgets(line, sizeof line, file);
    fclose(file);
    int fd = open("/var/spool/mine", O_RDWR);
    pwrite(fd, "TWO", 3, 4);
    close(fd);
    stat("/var/spool/mine", &found);
    info("%s size %ld access %d", strtok(line, "\\n"), (long) found.st_size,
         access("/var/spool/other", F_OK));
    mkdir("/var/spool/folder", 0700);
    rename("/var/spool/mine", "/var/spool/folder/it");
    DIR *names = opendir("/var/spool/folder");
    for (struct dirent *each; (each = readdir(names));)
        info("name %s", each->d_name);
    closedir(names);
    file = fopen("/var/spool/folder/it", "r");
    size_t length = fread(line, 1, sizeof line - 1, file);
    line[length] = 0;
    fclose(file);
    info("holds %s", line);
    """
    trace = run(tmp_path, changed(tmp_path, "switch_p_node_init", body, top=TOP))
    told = [each["args"]["text"] for each in events(trace, name="plugin_log", node="n1")]
    assert told[:5] == ["two size 8 access -1", "name .", "name ..", "name it", "holds one\nTWO\n"]
    assert not Path("/var/spool/folder").exists()


def test_memory_descriptors_and_threads_are_bounded(tmp_path: Path) -> None:
    """Malloc gives NULL, and open fails, long before the machine is in trouble."""
    body = """
    long taken = 0, opened = 0, begun = 0;
    pthread_t thread;
    while (begun < 10000 && !pthread_create(&thread, NULL, rest, NULL))
        begun++;
    while (malloc(16 << 20) && taken < 10000)
        taken += 16;
    while (open("/dev/null", O_RDONLY) >= 0 && opened < 10000)
        opened++;
    info("took %d opened %d began %d", taken < 2000, opened > 10 && opened < 1000,
         begun > 10 && begun < 1000);
    """
    top = TOP + "static void *rest(void *unused) { sleep(1); return unused; }"
    trace = run(tmp_path, changed(tmp_path, "switch_p_node_init", body, top=top))
    assert events(trace, name="plugin_log")[0]["args"]["text"] == "took 1 opened 1 began 1"


def test_who_and_when_are_the_emulators(tmp_path: Path) -> None:
    """The pid, the user, the host, the time, chance: nothing of the real machine's."""
    body = """
    char name[64];
    gethostname(name, sizeof name);
    struct passwd *user = getpwuid(1001);
    time_t before = time(NULL);
    sleep(3);
    info("%s uid %d time %ld later %ld user %s %s chance %d", name, (int) getuid(), (long) before,
         (long) (time(NULL) - before), user->pw_name, user->pw_dir, rand() == rand());
    """
    trace = run(tmp_path, changed(tmp_path, "switch_p_node_init", body, top=TOP))
    log = events(trace, name="plugin_log", node="n2")[0]
    wanted = "n2 uid 0 time 1767225600 later 3 user alice /home/alice chance 0"
    assert log["args"]["text"] == wanted
    enter = events(trace, name="switch_p_node_init", node="n2")
    assert enter[-1]["time_us"] - enter[0]["time_us"] >= 3_000_000


def test_a_thread_of_a_plugin_lives_in_virtual_time(tmp_path: Path) -> None:
    """It sleeps, locks, waits for conditions and is joined, as pthreads do."""
    top = (
        TOP
        + """
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn = PTHREAD_COND_INITIALIZER;
static int ready;
static void *work(void *unused)
{
    (void) unused;
    pthread_mutex_lock(&lock);
    sleep(5);
    ready = 1;
    pthread_cond_signal(&turn);
    pthread_mutex_unlock(&lock);
    sleep(60);
    info("worker at %ld", (long) time(NULL) - 1767225600);
    return (void *) 7;
}
"""
    )
    body = """
    pthread_t thread;
    void *result;
    pthread_create(&thread, NULL, work, NULL);
    sleep(1);
    pthread_mutex_lock(&lock);
    while (!ready)
        pthread_cond_wait(&turn, &lock);
    pthread_mutex_unlock(&lock);
    info("ready at %ld", (long) time(NULL) - 1767225600);
    pthread_join(thread, &result);
    info("joined at %ld, %ld", (long) time(NULL) - 1767225600, (long) result);
    """
    trace = run(tmp_path, changed(tmp_path, "switch_p_node_init", body, top=top))
    told = [each["args"]["text"] for each in events(trace, name="plugin_log", node="n1")]
    assert told[:3] == ["ready at 5", "worker at 65", "joined at 65, 7"]


def test_programs_that_a_plugin_starts_are_simulated_ones(tmp_path: Path) -> None:
    """In slurmstepd: forked, spawned, and lines of shell; nothing runs on the machine."""
    body = """
    char line[64] = "";
    int status = -1, rest = -1;
    pid_t child = fork();
    if (child == 0) {
        if (setuid(1001) || chdir("/home"))
            _exit(9);
        execl("/usr/bin/hello", "hello", "there", NULL);
        _exit(errno);
    }
    pid_t other = fork();
    if (other == 0)
        exit(5);
    pid_t ended = waitpid(child, &status, 0);
    pid_t last = wait(&rest);
    info("%d and %d, %d and %d, %d", ended == child, last == other, status >> 8, rest >> 8,
         wait(NULL));
    info("system %d", system("exit 3") >> 8);
    FILE *pipe = popen("echo one; echo two", "r");
    fgets(line, sizeof line, pipe);
    fgets(line, sizeof line, pipe);
    info("read %s, closed %d", strtok(line, "\\n"), pclose(pipe));
    """
    text = SCENARIO + "programs: {{/usr/bin/hello: {{runs: 3s, exit: 4}}}}\n"
    plugin = changed(tmp_path, "switch_p_job_preinit", body, top=TOP)
    trace = run(tmp_path, plugin, text=text)
    told = [
        each["args"]["text"] for each in events(trace, name="plugin_log", node="n1", step="1.0")
    ]
    assert told[:3] == ["1 and 1, 4 and 5, -1", "system 3", "read two, closed 0"]
    hello = events(trace, name="hello", node="n1", step="1.0")
    assert hello[-1]["time_us"] - hello[0]["time_us"] == 3_000_000
    assert hello[0]["uid"] == 1001
