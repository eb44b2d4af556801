"""The Python package: built as users get it, type-checked, and tested by its own tests (crates/python/tests)."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import zipfile

from program import ROOT, lacks

PACKAGE = ROOT / "crates/python"
installed = subprocess.run([ROOT / "scripts/python-packages", ROOT / "scripts/tests/lab/requirements.txt"], capture_output=True, text=True)
if installed.returncode:
    raise lacks(f"the packages of the lab are not to be had: {installed.stderr[-300:]}")
PACKAGES = pathlib.Path(installed.stdout.strip())
PYTHON = PACKAGES.parents[2] / "bin/python"


class Lab(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # As users build it: the core is built for the program already.
        built = subprocess.run([ROOT / "scripts/wheel"], capture_output=True, text=True)
        if built.returncode:
            raise RuntimeError(f"the wheel was not built: {built.stderr[-2000:]}")
        cls.folder = tempfile.TemporaryDirectory()
        with zipfile.ZipFile(built.stdout.strip()) as wheel:
            cls.names = wheel.namelist()
            wheel.extractall(cls.folder.name)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def run_in_room(self, *arguments):
        environment = os.environ | {"PYTHONPATH": self.folder.name, "FULMAR_ROOT": str(ROOT)}
        return subprocess.run([PYTHON, *arguments], cwd=self.folder.name, env=environment, capture_output=True, text=True)

    def test_its_own_tests_pass(self):
        ended = self.run_in_room("-m", "unittest", "discover", "-v", "-s", PACKAGE / "tests")
        print(ended.stderr)
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)

    def test_types_are_complete_and_right(self):
        ended = self.run_in_room("-m", "mypy", "--strict", "--config-file", PACKAGE / "pyproject.toml", PACKAGE / "python/fulmar_lab")
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)

    def test_its_docstrings_make_a_reference(self):
        installed = subprocess.run([ROOT / "scripts/python-packages", ROOT / "scripts/tests/lab/pages.txt"], capture_output=True, text=True)
        self.assertEqual(installed.returncode, 0, installed.stderr)
        pages = pathlib.Path(self.folder.name, "pages")
        environment = os.environ | {"PYTHONPATH": f"{self.folder.name}:{installed.stdout.strip()}"}
        made = [PYTHON, "-W", "error", "-m", "pdoc", "--docformat", "google", "--output-directory", pages, "fulmar_lab"]
        ended = subprocess.run(made, cwd=self.folder.name, env=environment, capture_output=True, text=True)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""), ended.stdout)
        text = pathlib.Path(pages, "fulmar_lab.html").read_text()
        for shown in ("One scenario, one seed", "Raises", "View Source"):
            self.assertIn(shown, text)

    def test_the_wheel_is_for_every_python_from_3_11_and_says_that_it_is_typed(self):
        self.assertIn("fulmar_lab/py.typed", self.names)
        self.assertIn("fulmar_lab/_native.pyi", self.names)
        self.assertIn("fulmar_lab/_native.abi3.so", self.names)


if __name__ == "__main__":
    sys.exit(unittest.main())
