"""The Makefile's verbs work wherever cargo builds to."""

import os
import pathlib
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Makefile(unittest.TestCase):
    def test_no_verb_expects_the_binary_under_target(self):
        environment = {**os.environ, "CARGO_TARGET_DIR": "/elsewhere"}
        for verb in ("demo", "swarm", "test", "bench", "parity"):
            with self.subTest(verb):
                run = subprocess.run(["make", "--dry-run", verb], cwd=ROOT, env=environment, check=True,
                                     capture_output=True, text=True)
                self.assertNotIn("target/release", run.stdout)

    def test_a_failing_command_fails_its_verb(self):
        for verb in ("demo", "swarm", "test", "test-quick", "lint"):
            with self.subTest(verb):
                # Behind the checks of setup and wasm, which are scripts of their own.
                run = subprocess.run(["make", verb, "CARGO=false"], cwd=ROOT, capture_output=True, text=True)
                self.assertNotEqual(run.returncode, 0)


if __name__ == "__main__":
    unittest.main()
