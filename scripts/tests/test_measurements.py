"""Scripts that measure replace the part of their page that they made, and nothing that was written by hand."""

import contextlib
import importlib.machinery
import importlib.util
import io
import pathlib
import re
import sys
import tempfile
import unittest
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
PARTS = {"strangers": ["scripts/strangers"], "side-by-side": ["scripts/side-by-side"], "speed": ["scripts/speed", "scripts/speed soak", "scripts/speed flows"]}
NOISE = ("noise", "noise, 1,400 octets", "noise, from 12,000 ports", "noise, from 4,000 hosts")
DEAR = "the same, from 4,000 hosts"


def loaded(name):
    loader = importlib.machinery.SourceFileLoader(name.replace("-", "_"), str(ROOT / "scripts" / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    with unittest.mock.patch.object(sys, "dont_write_bytecode", True):
        loader.exec_module(module)
    return module


class Strangers(unittest.TestCase):
    """`scripts/strangers` with made-up figures."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.page = pathlib.Path(folder.name) / "strangers.md"
        self.script = loaded("strangers")

    def run_with(self, cost, left, *words):
        """The exit status, and what was printed, if `DEAR` takes `cost` us beside a noise of 2 us, and `left` of the echo."""
        costs = {name: [(2.0, 30_000)] for name in NOISE} | {DEAR: [(cost - 1, 1), (cost, 1), (cost + 1, 1)]}
        shares = {"noise": [(100.0, 100.0 * left, 30_000)]}
        with (unittest.mock.patch.object(self.script, "PAGE", self.page),
              unittest.mock.patch.object(self.script, "measured", lambda given: (costs, shares)),
              unittest.mock.patch.object(sys, "argv", ["strangers", *words]),
              contextlib.redirect_stdout(io.StringIO()) as printed):
            try:
                self.script.main()
            except SystemExit as end:
                return end.code, printed.getvalue()
        return 0, printed.getvalue()

    def test_the_page_has_the_new_figures_and_the_old_notes(self):
        before, after = "# A title\n\nBy hand.\n\n", "\n\n## Before\n\n| by hand | 1 |\n"
        self.page.write_text(f"{before}<!-- made by scripts/strangers -->\nold figures\n<!-- end of scripts/strangers -->{after}")
        for cost in (2.5, 2.9):
            self.assertEqual(self.run_with(cost, 1)[0], 0)
            text = self.page.read_text()
            self.assertTrue(text.startswith(before) and text.endswith(after), text)
            self.assertNotIn("old figures", text)
            self.assertEqual(text.count(f"| {DEAR} |"), 1)
            self.assertIn(f"| {DEAR} | {cost:.2f} | {cost / 2:.2f} |", text)
            self.assertIn("Over them: nothing.", text)

    def test_figures_over_their_limits_are_on_the_page_and_fail_the_verb_but_not_the_benchmarks(self):
        self.page.write_text("<!-- made by scripts/strangers -->\n<!-- end of scripts/strangers -->\n")
        for cost, left, said in ((3.1, 1, f"{DEAR} (1.55 times noise)"), (2, 0.79, "the echo beside noise (0.79 left)")):
            code, _ = self.run_with(cost, left)
            self.assertEqual(code, f"strangers: over the limits: {said}")
            self.assertIn(f"Over them: {said}.", self.page.read_text())
            self.assertEqual(self.run_with(cost, left, "--no-verdict")[0], 0)
            self.assertIn(f"Over them: {said}.", self.page.read_text())
        self.assertIn('"--no-verdict"', (ROOT / "scripts/bench").read_text())

    def test_what_was_measured_in_part_or_dry_is_printed_and_not_written(self):
        text = "<!-- made by scripts/strangers -->\nfigures\n<!-- end of scripts/strangers -->\n"
        self.page.write_text(text)
        for words in (["--dry"], ["--kinds", "hosts"]):
            code, printed = self.run_with(2, 1, *words)
            self.assertEqual((code, self.page.read_text()), (0, text))
            self.assertIn(f"| {DEAR} | 2.00 |", printed)

    def test_a_page_without_a_place_is_refused_before_anything_is_measured(self):
        begin, end = "<!-- made by scripts/strangers -->\n", "<!-- end of scripts/strangers -->\n"
        for text in ("by hand\n", begin, end, end + begin, begin + end + end, begin + begin + end):
            self.page.write_text(text)
            with (unittest.mock.patch.object(self.script, "PAGE", self.page),
                  unittest.mock.patch.object(self.script, "measured", side_effect=AssertionError("it measured")),
                  unittest.mock.patch.object(sys, "argv", ["strangers"]),
                  self.assertRaisesRegex(SystemExit, "there must be one <!-- made by scripts/strangers -->")):
                self.script.main()
            self.assertEqual(self.page.read_text(), text)


class Pages(unittest.TestCase):
    def test_each_page_has_a_place_for_what_its_script_makes(self):
        for name, makers in PARTS.items():
            script = loaded(name)
            self.assertEqual(script.PAGE, ROOT / f"docs/measurements/{name}.md")
            text = script.PAGE.read_text()
            for maker in makers:
                part = script.MeasuredPart(script.PAGE, maker)
                self.assertIn(f"{part.begin}\n", text)
            self.assertEqual(text.count("<!-- made by scripts/"), len(makers), name)


def table(text, first):
    """The table whose heading begins with `first`: a row's first cell, and its other cells by their column's heading."""
    lines = text[text.index(first):].partition("\n\n")[0].splitlines()
    head, _, *rows = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines]
    return {row[0]: dict(zip(head[1:], row[1:], strict=True)) for row in rows}


class Readme(unittest.TestCase):
    COLUMNS = {"kernel TCP, CUBIC": "cubic", "kernel TCP, BBR": "bbr", "QUIC (quinn)": "quinn", "Fulmar": "reliable"}

    def test_it_quotes_the_page_that_was_measured(self):
        page = table((ROOT / "docs/measurements/side-by-side.md").read_text(), "| loss | reno")
        # The README leaves out the octets of a transfer that did not finish.
        wanted = {loss: {ours: re.sub(r", [0-9.]+ MB\*$", "*", row[theirs]) for ours, theirs in self.COLUMNS.items()} for loss, row in page.items()}
        self.assertEqual(table((ROOT / "README.md").read_text(), "| loss | kernel TCP"), wanted)


if __name__ == "__main__":
    unittest.main()
