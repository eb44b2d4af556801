"""The release binary that the tests run, its place, and the files that it takes minutes to make.

`python3 scripts/tests/program.py` makes all of it: `make test` has this done while it waits for other tests.
"""

import functools
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGET = ROOT / os.environ.get("CARGO_TARGET_DIR", "target")
FULMAR = TARGET / "release/fulmar"
CI = os.environ.get("CI") == "true"


@functools.cache
def build():
    """Builds it, if a source is newer."""
    command = ["cargo", "build", "--release", "--locked", "-p", "fulmar-cli"]
    built = subprocess.run(command, cwd=ROOT, timeout=1800, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if built.returncode:
        raise AssertionError(built.stderr)


def put(pages_of_ours, made):
    """Puts them where they are looked for, unless somebody else was first: then those are as good."""
    try:
        pages_of_ours.rename(made)
    except OSError:
        if not made.exists():
            raise


@functools.cache
def pages():
    """The pages of every paper, of one run of each point: made once for each binary, not to be written to."""
    build()
    is_of = FULMAR.stat()
    made = TARGET / "test-pages" / f"{is_of.st_size}-{is_of.st_mtime_ns}"
    if not made.exists():
        shutil.rmtree(made.parent, ignore_errors=True)
        # Whole or not at all, also where somebody else makes them at the same time.
        with tempfile.TemporaryDirectory(dir=TARGET, prefix="test-pages-") as place:
            command = [FULMAR, "reproduce", "all", "--runs", "1", "--out", place + "/pages"]
            # Longer than every paper takes beside other tests, by far.
            subprocess.run(command, check=True, timeout=1800, stdin=subprocess.DEVNULL, capture_output=True)
            made.parent.mkdir(exist_ok=True)
            put(pathlib.Path(place, "pages"), made)
    return made


def lacks(what):
    """The exception where `what` is missing: a test is skipped with the reason, or fails where none may be (`CI=true`)."""
    return AssertionError(f"{what}; CI=true forbids to skip") if CI else unittest.SkipTest(what)


if __name__ == "__main__":
    pages()
