"""The release binary that the tests run, its place, and the pages that take minutes to make."""

import functools
import os
import pathlib
import subprocess
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


@functools.cache
def pages():
    """The pages of every paper, of few and short runs, as a Rust test writes them; made again if a source is newer. Not to be written to."""
    made = TARGET / "tmp/pages"
    sources = [*(ROOT / "crates").rglob("*.rs"), *(ROOT / "scenarios").iterdir()]
    newest = max(source.stat().st_mtime for source in sources)
    if not made.exists() or made.stat().st_mtime < newest:
        # As `make test` has built it.
        command = ["cargo", "test", "--locked", "--workspace", "--features", "fulmar/tokio", "--test", "outcome", "pages"]
        run = subprocess.run(command, cwd=ROOT, timeout=1800, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if run.returncode:
            raise AssertionError(run.stdout + run.stderr)
    return made


def lacks(what):
    """The exception where `what` is missing: a test is skipped with the reason, or fails where none may be (`CI=true`)."""
    return AssertionError(f"{what}; CI=true forbids to skip") if CI else unittest.SkipTest(what)

