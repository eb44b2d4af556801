"""The crate with parts of one's own (examples/own-parts) stands outside of the workspace, as a user's does, and does what it says."""

import os
import subprocess
import unittest

from program import ROOT

CRATE = ROOT / "examples/own-parts/Cargo.toml"


class OwnParts(unittest.TestCase):
    def cargo(self, *arguments):
        environment = os.environ | {"CARGO_TARGET_DIR": os.environ.get("CARGO_TARGET_DIR", str(ROOT / "target"))}
        ended = subprocess.run(["cargo", *arguments, "--locked", "--manifest-path", CRATE], env=environment, capture_output=True, text=True)
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        return ended.stdout

    def test_its_own_tests_pass(self):
        self.assertIn("4 passed", self.cargo("test"))

    def test_it_runs(self):
        self.assertIn("camera: ", self.cargo("run", "--quiet"))


if __name__ == "__main__":
    unittest.main()
