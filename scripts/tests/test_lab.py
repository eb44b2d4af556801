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
        cls.wheel = built.stdout.strip()
        with zipfile.ZipFile(cls.wheel) as wheel:
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

    def test_no_file_beside_the_library_names_the_folder_of_the_build(self):
        texts = [name for name in self.names if not name.endswith(".so")]
        self.assertGreater(len(texts), 10)
        with zipfile.ZipFile(self.wheel) as wheel:
            naming = [name for name in texts if str(ROOT).encode() in wheel.read(name)]
        self.assertEqual(naming, [])

    def test_types_are_complete_and_right(self):
        ended = self.run_in_room("-m", "mypy", "--strict", "--config-file", ROOT / "pyproject.toml", PACKAGE / "python/fulmar_lab")
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)

    def test_a_type_checker_sees_a_wrong_key_of_a_scenario_and_a_quantity_without_its_unit(self):
        def checked(hop):
            program = f"import fulmar_lab as lab\nlab.Scenario.build(hop={hop}, flow={{'transport': 'udp', 'bytes': '9kB'}})\n"
            return self.run_in_room("-m", "mypy", "--strict", "-c", program).stdout

        self.assertIn("Success", checked("{'rate': '8mbit', 'loss': 0.05, 'from': 'air'}"))
        self.assertIn('Extra key "los"', checked("[{'rate': '8mbit', 'los': '5%'}]"))
        for wrong in ("{'rate': '8mbit', 'los': '5%'}", "{'rate': 8}"):
            self.assertIn('Argument "hop"', checked(wrong))

    def test_pip_installs_it_with_what_its_extras_need(self):
        with tempfile.TemporaryDirectory() as folder:
            room = pathlib.Path(folder, "room")
            subprocess.run([PYTHON, "-m", "venv", room], check=True)
            # What the extras need is there already, so nothing is fetched, and what is too old or missing is refused.
            (packages,) = room.glob("lib/python3*/site-packages")
            (packages / "there.pth").write_text(f"{PACKAGES}\n", encoding="utf-8")
            wanted = f"{self.wheel}[tables,polars,plot,dask,ray,gym,grids,progress]"
            ended = subprocess.run([room / "bin/pip", "install", "--no-index", "--quiet", wanted], capture_output=True, text=True)
            self.assertEqual(ended.returncode, 0, ended.stderr)
            program = "import fulmar_lab, fulmar_lab._native as native; print(native.__file__)"
            ended = subprocess.run([room / "bin/python", "-c", program], cwd=folder, capture_output=True, text=True)
            self.assertTrue(ended.stdout.startswith(str(packages)), ended.stdout + ended.stderr)

    def test_pip_builds_the_package_from_the_folder_of_the_sources(self):
        with tempfile.TemporaryDirectory() as folder:
            # Nothing is fetched: the tool that builds it is there.
            environment = os.environ | {"PATH": f"{PYTHON.parent}:{os.environ['PATH']}", "MATURIN_PEP517_ARGS": "--locked"}
            command = [PYTHON, "-m", "pip", "wheel", "--quiet", "--no-index", "--no-build-isolation", "--no-deps", "--wheel-dir", folder, ROOT]
            ended = subprocess.run(command, env=environment, capture_output=True, text=True)
            self.assertEqual(ended.returncode, 0, ended.stdout[-2000:] + ended.stderr[-2000:])
            (made,) = pathlib.Path(folder).glob("*.whl")
            with zipfile.ZipFile(made) as wheel:
                self.assertEqual([name for name in sorted(wheel.namelist()) if name.endswith(".py")], [name for name in sorted(self.names) if name.endswith(".py")])

    def test_a_script_that_runs_with_the_package_finds_its_wheel(self):
        program = ("import importlib.machinery as machinery, importlib.util as util; loader = machinery.SourceFileLoader('costs', 'scripts/lab-costs');"
                   " costs = util.module_from_spec(util.spec_from_loader('costs', loader)); loader.exec_module(costs); print(costs.wheel())")
        environment = os.environ | {"PYTHONPATH": str(ROOT / "scripts")}
        ended = subprocess.run([ROOT / "scripts/with-lab", "-c", program], env=environment, capture_output=True, text=True)
        self.assertEqual(ended.stdout.strip(), self.wheel, ended.stderr[-2000:])

    def test_stubs_say_what_the_native_half_has(self):
        ended = self.run_in_room("-m", "mypy.stubtest", "fulmar_lab._native", "--ignore-disjoint-bases", "--mypy-config-file", ROOT / "pyproject.toml")
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)

    def test_the_wheel_is_for_every_python_from_3_11_and_says_that_it_is_typed(self):
        self.assertIn("fulmar_lab/py.typed", self.names)
        self.assertIn("fulmar_lab/_native.pyi", self.names)
        self.assertIn("fulmar_lab/_native.abi3.so", self.names)


if __name__ == "__main__":
    sys.exit(unittest.main())
