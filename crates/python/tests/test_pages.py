"""What the guide and the examples show works as it is shown."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = os.environ.get("FULMAR_ROOT")


@unittest.skipUnless(ROOT, "the pages are not at hand: run scripts/tests/test_lab.py")
class Pages(unittest.TestCase):
    def run_program(self, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "losses.csv").write_text("lost\n" + "0\n0\n1\n0\n0\n0\n1\n1\n0\n0\n" * 50)
            ended = subprocess.run([sys.executable, *arguments], cwd=folder, capture_output=True, text=True)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        return ended.stdout

    def test_the_guide_runs_from_top_to_bottom(self):
        page = pathlib.Path(ROOT, "docs/guide/python.md").read_text()
        blocks = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
        self.assertEqual(len(blocks), 15)
        # A cluster of the test's own, and fewer runs than anybody would wait for.
        own = "n_workers=1, threads_per_worker=1, dashboard_address=None"
        program = "\n".join(blocks).replace('"scheduler:8786"', own).replace("runs=1000", "runs=4")
        indented = "".join(f"    {line}\n" for line in program.splitlines())
        self.run_program("-c", f"def main():\n{indented}\nif __name__ == '__main__':\n    main()\n")

    def test_each_example_runs(self):
        examples = sorted(pathlib.Path(ROOT, "examples/python").glob("*.py"))
        self.assertGreaterEqual(len(examples), 2)
        for example in examples:
            with self.subTest(example.name):
                said = {"dask_sweep.py": "0.2", "send_and_receive.py": "20 readings came"}.get(example.name, "20%")
                self.assertIn(said, self.run_program(example))

    def test_each_notebook_runs_from_its_first_cell_to_its_last(self):
        notebooks = sorted(pathlib.Path(ROOT, "examples/python").glob("*.ipynb"))
        self.assertGreaterEqual(len(notebooks), 2)
        for notebook in notebooks:
            with self.subTest(notebook.name):
                cells = [cell for cell in json.loads(notebook.read_text())["cells"] if cell["cell_type"] == "code"]
                self.assertTrue(all(not cell["outputs"] for cell in cells), "a notebook is kept without what it printed")
                self.assertIn("%" if "fit" in notebook.name else "Mbit/s", self.run_program("-c", "\n".join("".join(cell["source"]) for cell in cells)))


if __name__ == "__main__":
    unittest.main()
