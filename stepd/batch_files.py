"""The files of a batch script: where its output goes, and the directory that it starts in."""

import posixpath
from typing import TYPE_CHECKING, Final

from simctl.kernel.disk import DiskView
from simctl.kernel.procs import Process
from simctl.site import Site

if TYPE_CHECKING:
    from simctl.stepd.work import StepWork

NO_OUTPUT_STATUS: Final = 53
"""Wait status of a script whose output cannot be opened: the low bits of ESLURMD_IO_ERROR."""

_STDERR: Final = 2
_FALLBACK: Final = "/tmp"


class BatchFiles:
    """The output files of one batch script, opened and written as its user."""

    def __init__(self, site: Site, process: Process, work: "StepWork") -> None:
        self._site = site
        self._process = process
        self._work = work
        self.opened = True
        self.input = ""
        """What the script can read."""

        self._lost = False
        self.work_dir = work.work_dir
        """Where the script starts: the job's directory, or /tmp where that is not there."""

    @property
    def of_user(self) -> DiskView:
        """The files of this node, as the job's user sees them from where the script starts."""
        return self._site.disk.view(self._process.host.name, self._work.job.uid, self.work_dir)

    def path(self, stream: int) -> str:
        """Return the absolute path of the file of a stream; "" where there is none."""
        work = self._work
        path = work.std_err if stream == _STDERR else work.std_out
        return self._site.disk.resolve(path, work.work_dir) if path else ""

    def open(self) -> bool:
        """Open the files, then go to the directory; false if a file cannot be opened."""
        work = self._work
        files = self._site.disk.view(self._process.host.name, work.job.uid, work.work_dir)
        path = work.std_in
        try:
            if path:
                self.input = files.read(path).decode(errors="replace")
            for path in dict.fromkeys((work.std_out, work.std_err)):
                if files.is_fifo(path):
                    continue
                if work.appends:
                    files.append(path, "")
                else:
                    files.write(path, "")
        except OSError as error:
            self.opened = False
            args = {"path": path, "problem": error.strerror}
            name = "input_not_opened" if path == work.std_in else "output_not_opened"
            self._site.trace.note("log", name, self._process, args=args)
            return False
        problem = self.enter()
        if problem:
            self.write(_STDERR, problem)
        return True

    def enter(self) -> str:
        """Go to the directory, or to /tmp where it is not there; return what is said then."""
        work, host = self._work, self._process.host.name
        where = self._site.disk.resolve(work.work_dir)
        if self._site.disk.may_enter(where, host, work.job.uid):
            return ""
        self.work_dir = _FALLBACK
        # Slurm tries twice: before it forks, and in what it has forked.
        return 2 * (
            f"slurmstepd-{host}: error: couldn't chdir to `{work.work_dir}': "
            f"No such file or directory: going to {_FALLBACK} instead\n"
        )

    def remove_script(self) -> None:
        """Remove the script from where slurmd spooled it, with the directory it is in."""
        disk, host, script = self._site.disk, self._process.host.name, self._work.argv[0]
        disk.drop(host, script)
        disk.drop(host, posixpath.dirname(script))

    def write(self, stream: int, text: str) -> None:
        """Add to the file of a stream; what a script takes away is made anew."""
        work = self._work
        path = work.std_err if stream == _STDERR else work.std_out
        try:
            self._site.disk.write(
                path,
                text,
                work.work_dir,
                append=True,
                host=self._process.host.name,
                uid=work.job.uid,
            )
        except OSError as error:
            self._tell_lost(path, error)

    def _tell_lost(self, path: str, error: OSError) -> None:
        """Tell once that what the script writes is lost; the script goes on."""
        if not self._lost:
            self._lost = True
            args = {"path": path, "problem": error.strerror}
            self._site.trace.note("log", "output_lost", self._process, args=args)
