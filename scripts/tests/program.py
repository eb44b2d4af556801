"""The release binary that the tests run, and where it lies."""

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


def lacks(what):
    """What to raise where `what` is missing: a test is skipped with the reason, or fails where none may be (`CI=true`)."""
    return AssertionError(f"{what}; CI=true forbids to skip") if CI else unittest.SkipTest(what)
