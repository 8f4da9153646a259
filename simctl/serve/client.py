# mypy: ignore-errors
"""One of Slurm's commands, as it lies on PATH: the server runs it, this hands all on.

It is copied beside the socket and started with `python -IS`, so it imports nothing of ours and
little of Python's: a command has to start in a few milliseconds.

Frames have a letter, four bytes with the length of what follows, and that. To the server:
R run (directory, number of words, words, variables, with zero bytes between); S a signal;
I a piece of standard input, the last one empty, one for each i; X the wait status of the command
in the foreground. From the server: o and e output; i a piece of standard input is wanted; x run
this in the foreground, as R; k signal it; q the exit status.
"""

import _signal
import _socket
import os
import select
import sys

FORWARDED = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGCONT")
CATCHES = ("srun", "salloc")
NOBODY = "Unable to contact slurm controller (connect failure)"
GONE = {
    "sacct": "sacct: error: slurm_persist_conn_open_without_init: failed to open persistent "
    "connection to host:localhost:6819: Connection refused\n"
    "sacct: error: Problem talking to the database: Connection refused",
    "salloc": "salloc: error: Job submit/allocate failed: " + NOBODY,
    "sbatch": "sbatch: error: Batch job submission failed: " + NOBODY,
    "scancel": "scancel: error: slurm_load_jobs error: " + NOBODY,
    "sinfo": "slurm_load_partitions: " + NOBODY,
    "squeue": "slurm_load_jobs error: " + NOBODY,
    "srun": "srun: error: Unable to allocate resources: " + NOBODY,
}


def main(path, name, words):
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            # What is opened next would else be taken for it.
            os.open(os.devnull, os.O_RDWR)
    server = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        server.connect(path)
    except OSError:
        gone(name)
    try:
        cwd = os.getcwdb()
    except OSError:
        cwd = b"/"
    variables = [key + b"=" + value for key, value in os.environb.items()]
    fields = [cwd, b"%d" % (1 + len(words)), *map(os.fsencode, [name, *words]), *variables]
    follow(server, name, b"\0".join(fields))


def send(server, kind, what):
    try:
        server.sendall(kind + len(what).to_bytes(4, "big") + what, _socket.MSG_NOSIGNAL)
    except OSError:
        return  # that it is gone is told where its next word is waited for


def gone(name):
    lost = GONE.get(name, name + ": error: " + NOBODY)
    os.write(2, lost.encode() + b"\n")
    os._exit(1)


def follow(server, name, asked):
    noticed, notice = os.pipe()
    for end in (noticed, notice):
        os.set_blocking(end, False)
    _signal.signal(_signal.SIGPIPE, _signal.SIG_DFL)
    numbers = [getattr(_signal, each) for each in FORWARDED]
    dying = 0
    _signal.set_wakeup_fd(notice, warn_on_full_buffer=False)
    for number in (*numbers, _signal.SIGCHLD):
        if _signal.getsignal(number) is not _signal.SIG_IGN:
            _signal.signal(number, lambda *_: None)
    poll = select.poll()
    for end in (server.fileno(), noticed):
        poll.register(end, select.POLLIN)
    send(server, b"R", asked)
    buffer = b""
    child = 0
    while True:
        ready = dict(poll.poll(0 if dying else None))
        if dying and server.fileno() not in ready:
            _signal.signal(dying, _signal.SIG_DFL)
            os.kill(os.getpid(), dying)
        if noticed in ready:
            for number in os.read(noticed, 512):
                if number not in numbers:
                    continue
                if name not in CATCHES:
                    # What ended before the signal came has ended by itself: that is read first.
                    dying = 0 if number == _signal.SIGCONT else number
                elif not (child and number in (2, 3)):
                    send(server, b"S", b"%d" % number)
            if child:
                pid, status = os.waitpid(child, os.WNOHANG)
                if pid:
                    child = 0
                    send(server, b"X", b"%d" % status)
        if 0 in ready:
            try:
                data = os.read(0, 65536)
            except OSError:
                data = b""
            send(server, b"I", data)
            poll.unregister(0)
        if server.fileno() not in ready:
            continue
        try:
            data = server.recv(65536)
        except OSError:
            data = b""
        if not data:
            if child:
                os.kill(child, _signal.SIGHUP)
            gone(name)
        buffer += data
        while len(buffer) >= 5:
            end = 5 + int.from_bytes(buffer[1:5], "big")
            if len(buffer) < end:
                break
            kind, what, buffer = buffer[:1], buffer[5:end], buffer[end:]
            if kind in b"oe":
                show(1 if kind == b"o" else 2, what)
            elif kind == b"i":
                try:
                    poll.register(0, select.POLLIN)
                    poll.poll(0)
                except (OSError, ValueError):
                    send(server, b"I", b"")
            elif kind == b"x":
                child = start(what.split(b"\0"), numbers, name)
            elif kind == b"k" and child:
                os.kill(child, int(what))
            elif kind == b"q":
                os._exit(int(what))


def show(descriptor, what):
    while what:
        try:
            what = what[os.write(descriptor, what) :]
        except BlockingIOError:
            select.select([], [descriptor], [])
        except OSError:
            return


def start(fields, numbers, name):
    cwd, count = fields[0], int(fields[1])
    words, variables = fields[2 : 2 + count], fields[2 + count :]
    pid = os.fork()
    if pid:
        return pid
    try:
        for number in (*numbers, _signal.SIGCHLD):
            _signal.signal(number, _signal.SIG_DFL)
        env = dict(each.split(b"=", 1) for each in variables)
        try:
            os.chdir(cwd)
        except OSError:
            os.chdir("/tmp")
        os.execvpe(words[0], words, env)
    except OSError as error:
        text = f"{name}: error: {os.fsdecode(words[0])}: {error.strerror}\n"
        os.write(2, text.encode())
    finally:
        os._exit(2)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
