"""`.ci/chromium`: CI has a Chromium for pages, installs one, or says why it has none."""

import subprocess
from pathlib import Path

import pytest

STARTS = "#!/bin/sh\necho Chromium 1\n"
LACKS = "#!/bin/sh\nexit 1\n"
INSTALLS = """#!/bin/sh
echo "$@" >>"$LOG"
case "$*" in *chromium*) cp "$LOG.chromium" "$BIN/chromium" ;; esac
"""


@pytest.mark.parametrize(
    ("programs", "uid", "told", "status", "asked"),
    [
        ({"chromium-browser": STARTS}, "1", "Chromium: chromium-browser", 0, 0),
        ({}, "1", "no Chromium: only root may install one", 1, 0),
        ({}, "0", "no Chromium: this machine has none of apt-get, dnf", 1, 0),
        ({"apt-get": INSTALLS}, "0", "Chromium: chromium, just installed", 0, 2),
        ({"dnf": INSTALLS, "chromium": LACKS}, "0", "Chromium: chromium, just installed", 0, 1),
        ({"apk": LACKS}, "0", "no Chromium: `apk add --quiet chromium` failed", 1, 0),
    ],
)
def test_a_chromium_is_found_installed_or_told_to_be_missing(
    programs: dict[str, str], uid: str, told: str, status: int, asked: int, tmp_path: Path
) -> None:
    """As root alone, by the package manager that is there; one that does not start is none."""
    bin_, log = tmp_path / "bin", tmp_path / "log"
    bin_.mkdir()
    (tmp_path / "log.chromium").write_text(STARTS)
    (tmp_path / "log.chromium").chmod(0o755)
    for name in ("timeout", "cp", "sh"):
        found = subprocess.run(["which", name], capture_output=True, text=True, check=True)
        (bin_ / name).symlink_to(found.stdout.strip())
    for name, text in {**programs, "id": f"#!/bin/sh\necho {uid}\n"}.items():
        (bin_ / name).write_text(text)
        (bin_ / name).chmod(0o755)
    script = Path(__file__).parent.parent / ".ci" / "chromium"
    env = {"PATH": str(bin_), "BIN": str(bin_), "LOG": str(log)}
    words = [str(bin_ / "sh"), str(script)]
    done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=30, check=False)
    assert done.stdout.startswith(told), done.stderr
    assert done.returncode == status
    assert len(log.read_text().splitlines() if log.exists() else []) == asked
