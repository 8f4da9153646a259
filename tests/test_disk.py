"""Simulated disks: what is shared, whose files are whose, and what is refused."""

import errno

import pytest

from simctl.kernel.disk import Disk, DiskView
from tests.cluster import run

ROOT, ALICE, BOB = 0, 1001, 1002


@pytest.fixture
def disk() -> Disk:
    """A disk with alice's home."""
    made = Disk()
    made.own("/home/alice", ALICE)
    return made


@pytest.fixture
def alice(disk: Disk) -> DiskView:
    """What alice sees on n1."""
    return disk.view("n1", ALICE)


# Whose is what.


@pytest.mark.parametrize("path", ["/home/alice/x", "/shared/x", "/scratch/x", "/root/x"])
def test_some_folders_are_shared_by_all_hosts(disk: Disk, path: str) -> None:
    """Homes, and what sites share."""
    disk.view("n1", ROOT).write(path, "text")
    assert disk.view("n2", ROOT).read_text(path) == "text"


@pytest.mark.parametrize("path", ["/tmp/x", "/var/spool/x", "/etc/x", "/run/x", "/dev/shm/x", "/x"])
def test_everything_else_is_a_hosts_own(disk: Disk, path: str) -> None:
    """Another host has no such file."""
    disk.view("n1", ROOT).write(path, "text")
    assert not disk.view("n2", ROOT).exists(path)


def test_a_crash_loses_what_was_in_memory(disk: Disk) -> None:
    """/dev/shm and /run are empty after it, on that host alone."""
    for host in ("n1", "n2"):
        for path in ("/dev/shm/x", "/run/x", "/tmp/x"):
            disk.view(host, ROOT).write(path, host)
    disk.crash("n1")
    n1, n2 = disk.view("n1", ROOT), disk.view("n2", ROOT)
    assert [n1.exists(path) for path in ("/dev/shm/x", "/run/x", "/tmp/x")] == [False, False, True]
    assert n2.exists("/run/x")


# Reading and writing.


def test_bytes_come_back_as_they_were_written(alice: DiskView) -> None:
    """Texts are UTF-8; append adds, write replaces."""
    alice.write("/tmp/x", b"\x00\xff")
    alice.append("/tmp/x", "ü")
    assert alice.read("/tmp/x") == b"\x00\xff\xc3\xbc"
    alice.write("/tmp/x", "new")
    assert alice.read_text("/tmp/x") == "new"
    assert alice.stat("/tmp/x").size == 3


def test_a_new_file_belongs_to_its_maker(alice: DiskView) -> None:
    """With the mode it was made with; writing again keeps both."""
    alice.write("/tmp/x", "1", mode=0o600)
    alice.write("/tmp/x", "2", mode=0o644)
    assert (alice.stat("/tmp/x").uid, alice.stat("/tmp/x").mode) == (ALICE, 0o600)


def test_the_null_device_swallows(alice: DiskView) -> None:
    """And holds nothing."""
    alice.write("/dev/null", "x")
    assert not alice.exists("/dev/null")


def test_directories_list_their_names_in_order(alice: DiskView) -> None:
    """Each name once, whatever lies below it."""
    alice.mkdir("/home/alice/b")
    alice.write("/home/alice/b/deep", "")
    alice.write("/home/alice/a", "")
    assert alice.listdir("/home/alice") == ["a", "b"]
    assert alice.is_dir("/home/alice/b")
    assert not alice.is_dir("/home/alice/a")
    assert "alice" in alice.listdir("/home")


def test_rename_puts_a_file_in_the_place_of_another(alice: DiskView) -> None:
    """As plugins save their state: write beside it, then rename."""
    alice.write("/home/alice/state", "old")
    alice.write("/home/alice/state.new", "new")
    alice.rename("/home/alice/state.new", "/home/alice/state")
    assert alice.listdir("/home/alice") == ["state"]
    assert alice.read_text("/home/alice/state") == "new"


def test_a_path_goes_through_dots(alice: DiskView) -> None:
    """`.` and `..` are followed; a relative path needs a directory to start from."""
    alice.write("/home/alice/../alice/./x", "1")
    assert alice.read("/home/alice/x") == b"1"
    with pytest.raises(OSError, match="absolute") as caught:
        alice.read("x")
    assert caught.value.errno == errno.EINVAL


# What is refused.


@pytest.mark.parametrize(
    ("act", "error"),
    [
        (lambda view: view.read("/tmp/none"), FileNotFoundError),
        (lambda view: view.read("/tmp"), IsADirectoryError),
        (lambda view: view.write("/home/alice", "x"), IsADirectoryError),
        (lambda view: view.write("/tmp/none/x", "x"), FileNotFoundError),
        (lambda view: view.read("/tmp/file/x"), NotADirectoryError),
        (lambda view: view.listdir("/tmp/file"), NotADirectoryError),
        (lambda view: view.mkdir("/tmp"), FileExistsError),
        (lambda view: view.mkdir("/etc/fabric"), PermissionError),
        (lambda view: view.write("/etc/x", "x"), PermissionError),
        (lambda view: view.write("/home/bob/x", "x"), PermissionError),
        (lambda view: view.read("/home/bob/secret"), PermissionError),
        (lambda view: view.write("/home/bob/open", "x"), PermissionError),
        (lambda view: view.remove("/home/bob/open"), PermissionError),
        (lambda view: view.remove("/tmp/roots"), PermissionError),
        (lambda view: view.rename("/tmp/roots", "/tmp/mine"), PermissionError),
        (lambda view: view.read("/root/x"), PermissionError),
        (lambda view: view.remove("/home/alice/full"), OSError),
        (lambda view: view.rename("/tmp/file", "/home/alice"), IsADirectoryError),
    ],
)
def test_what_an_operating_system_refuses_is_refused(disk: Disk, act, error) -> None:  # type: ignore[no-untyped-def]
    """With Python's own errors, which name the path."""
    disk.own("/home/bob", BOB)
    disk.view("n1", BOB).write("/home/bob/secret", "x", mode=0o600)
    disk.view("n1", BOB).write("/home/bob/open", "x")
    disk.view("n1", ROOT).write("/tmp/roots", "x")
    disk.view("n1", ROOT).write("/root/x", "x")
    alice = disk.view("n1", ALICE)
    alice.write("/tmp/file", "x")
    alice.mkdir("/home/alice/full")
    alice.write("/home/alice/full/x", "x")
    with pytest.raises(error) as caught:
        act(alice)
    assert caught.value.filename


def test_root_may_do_everything(disk: Disk, alice: DiskView) -> None:
    """Whatever the owner and the mode."""
    alice.write("/home/alice/x", "1", mode=0o400)
    root = disk.view("n2", ROOT)
    root.write("/home/alice/x", "2")
    root.remove("/home/alice/x")
    root.write("/etc/x", "x")
    assert not alice.exists("/home/alice/x")


def test_anybody_may_read_what_its_mode_allows(disk: Disk, alice: DiskView) -> None:
    """Others' bits count for others."""
    alice.write("/home/alice/x", "1")
    assert disk.view("n1", BOB).read("/home/alice/x") == b"1"


# In a cluster.


def test_a_script_writes_to_its_nodes_own_disk() -> None:
    """What the first job left in /tmp of n1 is not on n2."""
    text = (
        "files:\n"
        "  write.sh: |\n    #!/bin/sh\n    echo here > /tmp/mark\n"
        "  look.sh: |\n    #!/bin/sh\n    if [ -f /tmp/mark ]; then echo yes; else echo no; fi\n"
        "timeline:\n"
        "  - {at: 0s, as: alice, run: sbatch -w n1 write.sh}\n"
        "  - {at: 30s, as: alice, run: sbatch -w n1 -o n1.out look.sh}\n"
        "  - {at: 60s, as: alice, run: sbatch -w n2 -o n2.out look.sh}\n"
    )
    disk = run(text).world.disk
    assert disk.read("/home/alice/n1.out") == "yes\n"
    assert disk.read("/home/alice/n2.out") == "no\n"
    assert disk.view("n1", ROOT).stat("/tmp/mark").uid == ALICE


@pytest.mark.parametrize(("user", "status"), [("alice", "1:0"), ("root", "0:0")])
def test_a_script_may_do_what_its_user_may(user: str, status: str) -> None:
    """A redirection into /etc is refused to a user, as sh says it."""
    text = (
        "files:\n  etc.sh: |\n    #!/bin/sh\n    echo x > /etc/fabric\n"
        f"timeline: [{{at: 0s, as: {user}, run: sbatch -o out etc.sh}}]\n"
    )
    ran = run(text)
    assert ran.job()[1] == status
    out = str(ran.world.disk.read("/home/alice/out" if user == "alice" else "/root/out"))
    assert ("/etc/fabric: Permission denied" in out) is (user == "alice")


@pytest.mark.parametrize(
    ("mode", "change", "new"),
    [
        *((0o777, "=rw", 0o644), (0o777, "a=rw", 0o666), (0o000, "+rwx", 0o755)),
        *((0o000, "a+w", 0o222), (0o777, "a-w", 0o555)),
        *((0o777, "-x", 0o666), (0o644, "-w", 0o444), (0o777, "g-w,o=", 0o750)),
    ],
)
def test_chmod_spares_what_the_umask_has_where_nobody_is_named(
    mode: int, change: str, new: int
) -> None:
    """Writing by the group and others is not set then, with + or =."""
    ran = run(
        "timeline: [{at: 0s, as: alice, run: "
        f"\"sbatch --wrap 'touch f; chmod {mode:03o} f; chmod {change} f'\"}}]\n"
    )
    assert ran.world.disk.view("n1", ROOT).stat("/home/alice/f").mode & 0o777 == new


def test_whether_a_directory_may_be_entered_is_asked_anew_when_directories_change() -> None:
    """It may be made, closed to others, taken away, and lost in a crash."""
    disk = Disk()
    assert not disk.may_enter("/shared/work", "n1", 1001)
    owner = disk.view("n2", 1001)
    owner.mkdir("/shared/work", mode=0o700)
    assert disk.may_enter("/shared/work", "n1", 1001)
    assert disk.may_enter("/shared/work", "n1", 1001)
    disk.own("/shared/work", 1002)
    owner.mkdir("/tmp/mine")
    assert disk.may_enter("/tmp/mine", "n2", 1001)
    assert not disk.may_enter("/tmp/mine", "n1", 1001)
    owner.remove("/tmp/mine")
    assert not disk.may_enter("/tmp/mine", "n2", 1001)
    owner.mkdir("/dev/shm/fast")
    assert disk.may_enter("/dev/shm/fast", "n2", 1001)
    disk.crash("n2")
    assert not disk.may_enter("/dev/shm/fast", "n2", 1001)


def test_notes_of_what_is_changed_are_each_ones_own(disk: Disk, alice: DiskView) -> None:
    """Two that note at once, as calls that overlap do; the second leaves off before any change."""
    first, second = disk.begin_notes(), disk.begin_notes()
    disk.end_notes(second)
    alice.write("/home/alice/x", "text")
    disk.end_notes(first)
    alice.write("/home/alice/y", "text")
    assert first == [("", "/home/alice/x")]
    assert second == []
