"""A bare Debian in a folder, to install our packages where nothing of ours or of a developer's is.

Made by mmdebstrap out of this machine's mirror: the essential packages and what a package names in `Depends`. Needs root. Commands run in a
chroot with namespaces of their own, so that nothing that they start outlives them.
"""

import os
import pathlib
import shutil
import subprocess
import tempfile

import program

# What the Debian package depends on, and the emulator of another machine is brought in by its tests.
DEPENDS = "passwd,procps"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def run(*command, check=True):
    ended = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=900, stdin=subprocess.DEVNULL)
    if check and ended.returncode:
        raise AssertionError(f"{' '.join(map(str, command))}: {ended.stdout}{ended.stderr}")
    return ended


def lacking(*tools):
    """The exception if there is no root, or a tool is missing; else None."""
    missing = [tool for tool in tools if not shutil.which(tool)]
    if os.geteuid() != 0 or missing:
        return program.lacks(f"needs root and {', '.join(missing or tools)}")
    return None


class BareRoot:
    """A root directory; with a Debian in it unless `is_empty`."""

    def __init__(self, is_empty=False):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="fulmar-root-"))
        self.folder.chmod(0o755)
        if not is_empty:
            run("mmdebstrap", "--mode=root", "--variant=essential", f"--include={DEPENDS}", "--quiet", "bookworm", self.folder)

    def run(self, *command, check=True):
        inside = ["chroot", self.folder, *(["/usr/bin/env", "-i", f"PATH={PATH}", "LC_ALL=C.UTF-8"] if (self.folder / "usr/bin/env").exists() else []), *command]
        return run("unshare", "--mount", "--pid", "--fork", "--net", "--kill-child", *inside, check=check)

    def put(self, source, place):
        target = self.folder / place.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
        return place

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)
