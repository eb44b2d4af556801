"""The figures that the documentation shows are those that the commands in their captions make."""

import pathlib
import re
import shlex
import subprocess
import tempfile
import unittest

from program import FULMAR, ROOT, build

SHOWN = ROOT / "docs/figures"


class Figures(unittest.TestCase):
    def test_each_figure_is_made_again_by_its_caption(self):
        build()
        texts = [ROOT / "README.md", *ROOT.glob("docs/guide/*.md")]
        captions = re.findall(r"`fulmar (reproduce \S+ --figure \S+ --out) docs/figures/`", "".join(t.read_text() for t in texts))
        with tempfile.TemporaryDirectory() as folder:
            for caption in sorted(set(captions)):
                subprocess.run([FULMAR, *shlex.split(caption), folder], check=True, timeout=300, capture_output=True)
            made = {path.name: path.read_bytes() for path in pathlib.Path(folder).iterdir()}
        self.assertEqual(set(made), {path.name for path in SHOWN.iterdir()})
        for name, octets in made.items():
            self.assertEqual(octets, (SHOWN / name).read_bytes(), f"{name} is another now: run its caption's command in {ROOT}")


if __name__ == "__main__":
    unittest.main()
