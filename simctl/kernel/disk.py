"""The simulated file system that all hosts share: texts by path."""

import posixpath


class Disk:
    """Files by absolute path; relative ones are meant from a working directory."""

    def __init__(self) -> None:
        self.files: dict[str, str] = {}

    def read(self, path: str, work_dir: str = "/") -> str | None:
        """Return a file's text; None when there is no such file."""
        return self.files.get(self.resolve(path, work_dir))

    def write(self, path: str, text: str, work_dir: str = "/", *, append: bool = False) -> None:
        """Write or append to a file, making it."""
        where = self.resolve(path, work_dir)
        if where == "/dev/null":
            return
        self.files[where] = self.files.get(where, "") + text if append else text

    @staticmethod
    def resolve(path: str, work_dir: str = "/") -> str:
        """Return *path* as an absolute one without ``.`` and ``..``."""
        return posixpath.normpath(posixpath.join(work_dir, path))

    def is_directory(self, path: str) -> bool:
        """Tell whether *path* (absolute) is a directory: a usual one, or one that holds a file."""
        if path in _DIRECTORIES or posixpath.dirname(path) in ("/home", "/"):
            return path not in self.files
        return any(name.startswith(path + "/") for name in self.files)


_DIRECTORIES = frozenset({"/", "/tmp", "/home", "/etc", "/var", "/var/spool", "/var/tmp", "/usr"})
