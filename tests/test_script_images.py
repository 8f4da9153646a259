"""Scripts in images: wherever one is cut off, its image goes on to the same end.

A script runs in a process of its own on a node. At some moments its state is taken, the whole tree
is killed, and another process goes on from what went through a file. All it writes must be what it
would have written, at the times it would have written it.
"""

import random
import re
from collections.abc import Sequence

import attrs
import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from simctl.kernel.procs import SIGKILL, Process, RunsAs, exit_code_of, signal_of
from simctl.scenario.load import read_scenario
from simctl.site import User
from simctl.stepd.hosts.script_host import ScriptHost
from simctl.stepd.image_file import Image, ScriptState, decode
from simctl.stepd.programs import ScriptRun, read_script
from simctl.world import World

WORLD = """\
nodes: [{name: n1}]
partitions: [{name: debug, nodes: n1, default: true}]
users: {alice: 1001}
plugins: ["tests.savers:Saver"]
slurm_conf: {CheckpointType: checkpoint/saver}
programs:
  ./work: {runs: 7103ms, output: "worked\\n"}
  ./fails: {runs: 3061ms, exit: 3, output: "failed\\n"}
  ./deaf: {runs: 6037ms, on_signal: {TERM: ignore, USR1: 9}, output: "deaf\\n"}
  ./crash: {runs: 2s, signal: SEGV}
files:
  inner.sh: |
    #!/bin/sh
    trap 'echo inner $1 got USR2' USR2
    for i in 1 2; do
        echo inner $1 $i
        sleep 0.011
        ./work > inner.log &
        sleep 2.909
        wait
    done
    exit 5
"""

Told = tuple[float, int, str]
"""When something was written, to which descriptor, and what."""


def without_pids(text: str) -> str:
    """Return a text without pids: a run and the same one cut off count processes differently."""
    return re.sub(r"((?:last|one)=|wait |pid |kill (?:-\w+ )?|\()\d+", r"\1PID", text)


@attrs.define
class Life:
    """A script from its start to its end, in one process after another."""

    world: World
    wrote: list[Told] = attrs.field(factory=list)
    status: int | None = None
    ended_s: float = -1
    host: ScriptHost | None = None
    cuts: int = 0

    def process(self) -> Process:
        """Return a new process on the node."""
        site = self.world.site
        node = next(iter(self.world.hosts.values()))
        return site.procs.add(
            node, ppid=1, daemon="task", role="task", uid=1001, runs_as=RunsAs.USER, task=0
        )

    def new_host(self) -> ScriptHost:
        """Return what a script runs in."""
        generation = self.cuts

        def output(descriptor: int, text: str) -> None:
            self.wrote.append((self.now_s, descriptor, without_pids(text)))

        def ended(status: int) -> None:
            if generation == self.cuts:
                self.status, self.ended_s, self.host = status, self.now_s, None

        user = User(name="alice", uid=1001, gid=1001)
        self.host = ScriptHost(
            self.world.site,
            self.process(),
            user=user,
            work_dir="/home/alice",
            output=output,
            ended=ended,
        )
        return self.host

    @property
    def now_s(self) -> float:
        """Virtual time in seconds."""
        return self.world.kernel.now_us / 1_000_000

    def start(self, script: str) -> None:
        """Start the script."""
        run = read_script(script, ("slurm_script", "one", "two"))
        assert isinstance(run, ScriptRun)
        self.new_host().start_script(run, {"HOME": "/home/alice", "PWD": "/home/alice"})

    def signal(self, number: int) -> None:
        """Signal the script, with a negative number what it has started as well."""
        host = self.host
        if host is not None:
            for child in host.live_children() if number < 0 else ():
                host.signal_child(child, -number)
            host.deliver(abs(number))

    def cut(self) -> None:
        """Take the image, kill everything, and go on from the image."""
        if self.host is None:
            return
        state = self.host.state({})
        data = Image(uid=1001, program="slurm_script", state=state).encode()
        self.cuts += 1
        self.signal(-SIGKILL)
        read = decode(data).state
        assert read == state
        assert isinstance(read, ScriptState)
        self.new_host().restore(read, "/shared/image")

    def files(self) -> dict[str, str | None]:
        """Return the files that scripts here write."""
        names = ("inner.log", "a.log", "b.log", "sub/a.log")
        texts = {name: self.world.disk.read(name, "/home/alice", host="n1") for name in names}
        return {name: text and without_pids(text) for name, text in texts.items()}


def live(
    script: str, cuts: Sequence[float] = (), signals: Sequence[tuple[float, int]] = ()
) -> Life:
    """Run a script, cut off at some moments, in seconds, with signals at others."""
    world = World(read_scenario(WORLD, file="s.yaml"))
    life = Life(world)
    acts = sorted(
        [(at, 0, 0) for at in cuts] + [(at, 1, number) for at, number in signals],
        key=lambda act: act[:2],
    )

    async def body() -> None:
        world.disk.own("/home/alice/sub", 1001)
        life.start(script)
        for at, kind, number in acts:
            wait_us = round(at * 1_000_000) - world.kernel.now_us
            await world.kernel.sleep_us(max(0, wait_us))
            if kind:
                life.signal(number)
            else:
                life.cut()

    world.background.append(lambda: void(world.ctld.process.start(body, "test")))
    world.run()
    return life


def void(_: object) -> None:
    """Drop a result."""


def same(script: str, cuts: Sequence[float], signals: Sequence[tuple[float, int]] = ()) -> Life:
    """Check that a script that is cut off does all that one does that is not; return the latter."""
    whole = live(script, (), signals)
    cut = live(script, cuts, signals)
    assert cut.wrote == whole.wrote
    assert (cut.status, cut.ended_s) == (whole.status, whole.ended_s)
    assert cut.files() == whole.files()
    assert whole.status is not None
    return whole


SCRIPTS = {
    "function": """
        count() {
            local n=$1
            while [ $n -gt 0 ]; do sleep 2; echo $2 $n; n=$((n - 1)); done
            return 3
        }
        count 2 a; echo $? ${n:-unset}
        x=$(count 1 b); echo "$x $?"
        trap 'count 1 trap' EXIT
    """,
    "pipeline": """
        { sleep 1; echo one; ./work; echo two; } |
            while read -r l; do sleep 2; echo "<$l>"; done | tr a-z A-Z > a.log
        echo ${PIPESTATUS[@]}; cat a.log
        ./fails | (sleep 4; cat) & sleep 2; wait $!; echo $?
    """,
    "new pipes": """
        { echo early; sleep 5; echo late; } | {
            read -r l; sleep 2; x=$(echo sub; sleep 1); echo "$l $x"; echo a | cat; cat
        }
    """,
    "loop": """
        n=0
        while [ $n -lt 3 ]; do
            echo turn $n; n=$((n + 1)); sleep 4
        done
        echo done $n; exit $n
    """,
    "background": """
        sleep 8 & first=$!
        ./work > a.log 2>&1 &
        ./fails &
        wait $!; echo last $?
        wait $first; echo first $?
        wait; cat a.log; echo all $?
    """,
    "trap": """
        trap 'echo caught; n=$((n + 1))' USR1
        trap 'echo leaving $n' EXIT
        n=0
        sleep 9 &
        while ! wait $!; do echo interrupted $n; done
        echo after $n
    """,
    "dying": """
        trap 'sleep 3; echo bye $?' EXIT
        ./deaf & { sleep 20; echo no; } > a.log
    """,
    "kills": """
        trap 'echo self' USR2
        ./deaf & deaf=$!
        sleep 2
        kill $deaf; echo $?
        kill -USR2 $$
        sleep 2
        kill -KILL $deaf
        wait $deaf; echo $?
        kill -0 $deaf || echo gone
    """,
    "files": """
        cd sub
        for f in a b; do { echo $f $1; sleep 3; ./work; } >> $f.log; done
        [ -f a.log ] && cat a.log; pwd; cd ..; echo x > a.log 2>/dev/full
        if [ -d sub ]; then echo is; fi
        shift; echo $1 $#
        set -- p q r; echo "$@" ${UNSET:-none}
    """,
    "inner": """
        ./inner.sh A & inner=$!
        sleep 4; ./inner.sh B; echo B $?
        wait $inner; echo A $?; cat inner.log
    """,
    "exec": """
        set -ex
        ./crash || echo crashed $?
        sleep 2
        exec ./fails
    """,
    "stops": """
        ./work & w=$!
        sleep 2; kill -STOP $w; sleep 9; kill -CONT $w; wait $w; echo $?
    """,
    "nested loops": """
        for i in 1 2 3; do
            until false; do
                sleep 1; j=$((j + 1))
                [ $j -ge 4 ] && break 2
                [ $((j % 2)) -eq 0 ] && continue 2
            done
        done
        echo $i $j
    """,
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_goes_on_from_wherever_it_was_cut_off(name: str) -> None:
    """Before its first turn, in the middle, at moments when something happens, and again."""
    signals = {"trap": [(2.5, 10), (5.5, 10)], "dying": [(2.5, 15)]}.get(name, [])
    whole = same(SCRIPTS[name], (1, 4.2), signals)
    for moment in (0, 0.5, 2, 3, 4, 6.25, 7, 8.999, 11):
        if moment <= whole.ended_s:
            same(SCRIPTS[name], (moment,), signals)


def test_a_script_that_was_started_a_moment_ago_has_written_nothing_yet() -> None:
    """Its image holds a shell that has not begun, and all its output is still to come."""
    assert [text for _, _, text in same("echo hello\n", (0, 0, 0)).wrote] == ["hello\n"]


def test_pids_stay_what_the_script_knows() -> None:
    """``$$`` and ``$!`` are the numbers of before, and signals to them reach what runs now."""
    script = """
        trap 'echo me' USR1
        one=$$; ./deaf & child=$!; sleep 3
        [ $$ -eq $one ] && [ $! -eq $child ] && echo same
        kill -USR1 $$; kill -USR1 $child; wait $child; echo $?
        sleep 1 & [ $! -ne $child ] && echo another
    """
    whole = same(script, (1, 2))
    assert [text for _, _, text in whole.wrote] == ["same\n", "me\n", "9\n", "another\n"]
    before, after = (text for _, _, text in live("echo $$\nsleep 2\necho $$\n", (1,)).wrote)
    assert before == after


def test_a_plain_srun_has_lost_its_connections() -> None:
    """Its step is gone: it says so and exits with 1, and the script goes on."""
    life = live("srun sleep 60\necho $?\n", (5,))
    assert [text for _, _, text in life.wrote][-2:] == [
        "srun: error: restarted from a checkpoint image, with its connections lost\n",
        "1\n",
    ]


def test_a_journal_of_another_script_ends_the_script() -> None:
    """The shell asks for something that the image has no answer to."""
    world = World(read_scenario(WORLD, file="s.yaml"))
    life = Life(world)

    async def body() -> None:
        life.start("sleep 1\n[ -f x ]\nsleep 9\n")
        await world.kernel.sleep_us(5_000_000)
        assert life.host is not None
        state = life.host.state({})
        life.cuts += 1
        life.signal(-SIGKILL)
        journal = tuple(entry for entry in state.journal if entry[0] != "info")
        assert len(journal) < len(state.journal)
        changed = msgspec.structs.replace(state, journal=journal)
        life.new_host().restore(changed, "/shared/image")

    world.background.append(lambda: void(world.ctld.process.start(body, "test")))
    world.run()
    assert life.status is not None
    assert exit_code_of(life.status) == 1
    assert "does not fit its script" in life.wrote[-1][2]


# Any script.

SIMPLE = st.sampled_from(
    [
        "echo n=$n i=$i s=$?",
        "n=$((n + 1))",
        "sleep 1",
        "sleep 3",
        "./work",
        "./fails",
        "./crash",
        "sleep 2 &",
        "./work > a.log &",
        "./deaf &",
        "./inner.sh X &",
        "./inner.sh Y",
        "wait",
        "wait $!",
        "kill -TERM $!",
        "kill -USR1 $!",
        "kill -STOP $!; kill -CONT $!",
        "kill -USR1 $$",
        "trap 'echo usr1 $n; n=$((n + 2))' USR1",
        "trap 'sleep 1; echo slow' USR2",
        "trap '' USR1",
        "trap - USR2",
        "trap 'echo bye $?' EXIT",
        "cd sub",
        "cd ..",
        "pwd",
        "echo x >> a.log",
        "cat a.log",
        "[ -f a.log ] && echo there",
        "[ -d sub ] || echo nowhere",
        "echo gone > /nowhere/file",
        "set -x",
        "set +x",
        "shift",
        'set -- "a b" c; echo "$1" $#',
        "export n",
        "false || echo else",
        "! ./fails",
        "exec > b.log",
    ]
)
LEAVING = st.sampled_from(["exit 4", "exec ./fails", "break", "continue", "set -e"])


def blocks(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Return compound commands around *inner*."""
    body = st.lists(inner, min_size=1, max_size=4).map("\n".join)
    return st.one_of(
        body.map(lambda text: f"for i in 1 2 3; do\n{text}\ndone"),
        body.map(lambda text: f"k=0\nwhile [ $k -lt 2 ]; do k=$((k + 1))\n{text}\ndone"),
        st.tuples(body, body).map(lambda two: f"if ./fails; then\n{two[0]}\nelse\n{two[1]}\nfi"),
        body.map(lambda text: f"{{\n{text}\n}} > b.log 2>&1"),
    )


COMMAND = st.recursive(st.one_of(SIMPLE, SIMPLE, SIMPLE, LEAVING), blocks, max_leaves=8)
SCRIPT = st.tuples(
    st.sampled_from(["trap 'echo one $n' USR1; trap 'sleep 1; echo slow' USR2", "n=0"]),
    st.lists(COMMAND, min_size=2, max_size=8).map("\n".join),
).map("\n".join)
MOMENTS = st.lists(
    st.one_of(st.integers(0, 20), st.integers(0, 80).map(lambda n: n / 4 + 0.125)),
    min_size=1,
    max_size=3,
)
SIGNALS = st.lists(
    st.tuples(
        st.integers(0, 20).map(lambda n: n + 0.5), st.sampled_from([10, 10, 12, 12, 15, -10, -15])
    ),
    max_size=3,
)


@settings(max_examples=80)
@given(SCRIPT, MOMENTS, SIGNALS)
@example("trap 'sleep 1; echo slow' USR2\n./work", [0, 3, 7], [(2.5, 12)])
@example("./fails\n", [0, 0], [(0.5, 10)])
@example("./work > a.log &\ncd sub\n", [0], [])
def test_any_script_cut_off_at_any_moments_does_what_it_would_have_done(
    script: str, cuts: list[float], signals: list[tuple[float, int]]
) -> None:
    """Output, files, times and the end are those of a run that nobody cut off."""
    # Each turn of a loop of signals to itself takes no time: what ends is what is compared.
    same(script, cuts, signals)


SETUP = """
trap 'echo one $n; n=$((n + 1))' USR1
trap 'echo two; sleep 1; echo slow' USR2
n=0; i=0
./work & one=$!
sleep 1
"""
LASTING = (
    *(
        "sleep 1.013",
        "sleep 3.029",
        "sleep 0.517",
        "./work",
        "./fails",
        "wait",
        "wait $!",
        "wait $one",
    ),
    *(
        "sleep 4.051 & last=$!",
        "./work >> a.log & last=$!",
        "./inner.sh X & last=$!",
        "./inner.sh Y",
    ),
    *(
        "kill -USR1 $$; sleep 2.087",
        "kill -STOP $last; sleep 2.039; kill -CONT $last",
        "kill $last",
    ),
    *(
        "./deaf & sleep 1.117; kill -USR1 $!; wait $!; echo $?",
        "{ ./work; pwd; } > b.log; cat b.log",
    ),
    *(
        'f() { local n=9; sleep 1.019; echo $n $1; ./work > b.log; return 4; }; f "$i"; echo $? $n',
        "./work | while read -r l; do echo got $l; sleep 0.313; done",
        "{ sleep 0.503; echo p q; ./work; } | { read a b; sleep 1.1; echo $b; cat; } | tr a-z A-Z",
        "x=$(sleep 0.701; ./work; echo sub); echo $x",
        "(n=7; sleep 1.037; echo $n; exit 3); echo $?",
        'a=(x y); for e in "${a[@]}"; do sleep 0.907; a+=($e $RANDOM); done; echo ${#a[@]} ${a[*]}',
        "cat <<E | (sleep 0.601; cat; sleep 0.107)\nn is $n\nE",
        "timeout 1.303 ./work; echo $?",
        "printf '%s\\n' 0.207 0.401 | xargs -n1 sleep",
        "g() { [ $1 -gt 0 ] && sleep 0.109 && g $(($1 - 1)); echo $1; }; g 3 | sort",
        "case $(sleep 0.811; echo $n) in *[02468]) echo even;; *) echo odd;; esac",
        "read -r l < <(sleep 0.613; echo from); echo $l",
        "eval 'sleep 0.419; echo evaluated'; [[ $n =~ [0-9] ]] && ((n += 2))",
    ),
)
QUICK = (
    *("echo n=$n i=$i s=$?", "n=$((n * 3 + 1))", "cd sub; pwd; cd ..", "echo x >> a.log"),
    *("[ -f a.log ] && cat a.log", "shift; echo $# $1", "set -- $n $i", "set -x", "set +x"),
    *("trap 'echo bye $?' EXIT", "trap '' USR2", "trap 'echo again' USR2", "echo ${v:=$n} $v"),
)


def script_of(chance: random.Random, depth: int = 0) -> str:
    """Return a script that takes its time, of commands drawn by chance."""
    lines: list[str] = []
    turns = f"j{depth}"
    for _ in range(chance.randint(3, 6) if depth else 9):
        kind = chance.random()
        if kind < 0.25 and depth < 2:
            body = script_of(chance, depth + 1)
            lines.append(
                chance.choice(
                    (
                        f"for i in a b c; do\n{body}\ndone",
                        f"if [ $n -gt 2 ]; then\n{body}\nelse\necho less\nfi",
                        f"{turns}=0\nuntil [ ${turns} -ge 2 ]; do {turns}=$(({turns} + 1))\n"
                        f"{body}\ndone",
                        f"{{\n{body}\n}} > b.log 2>&1\ncat b.log",
                        f"for i in 1 2; do\n{body}\n[ $n -gt 9 ] && break\ncontinue\ndone",
                    )
                )
            )
        else:
            lines.append(chance.choice(LASTING if kind < 0.65 else QUICK))
    return "\n".join(lines)


@pytest.mark.parametrize("seed", range(24))
def test_a_long_script_goes_on_from_any_moment_of_its_life(seed: int) -> None:
    """Loops, traps, children and files of all kinds at once, with signals on the way.

    No two things are due at one moment here, whose order nothing settles.
    """
    chance = random.Random(seed)
    script = SETUP + script_of(chance)
    signals = [(chance.randrange(80) + 0.3, chance.choice((10, 12))) for _ in range(4)]
    whole = live(script, (), signals)
    assert whole.status is not None
    for _ in range(2):
        cuts = [round(chance.random() * whole.ended_s, 4) for _ in range(chance.randint(1, 3))]
        cut = live(script, cuts, signals)
        assert cut.cuts == len(cuts)
        assert (cut.wrote, cut.status, cut.ended_s, cut.files()) == (
            whole.wrote,
            whole.status,
            whole.ended_s,
            whole.files(),
        ), (script, cuts, signals)


def test_a_signal_that_ends_the_script_ends_the_restarted_one() -> None:
    """The status tells the signal, as it would have."""
    whole = same("sleep 9\necho no\n", (2,), [(4.5, 15)])
    assert whole.status is not None
    assert signal_of(whole.status) == 15
    assert whole.wrote == []
