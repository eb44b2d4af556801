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
PARTS = {"strangers": ["scripts/strangers"], "side-by-side": ["scripts/side-by-side"], "found-rate": ["scripts/found-rate"], "damage": ["scripts/damage", "scripts/damage --dropped"], "loss-causes": ["scripts/loss-causes"], "several-paths": ["scripts/several-paths", "scripts/several-paths --deaths", "scripts/several-paths --messages", "scripts/several-paths --uneven"], "tunnel": ["scripts/tunnel"], "speed": ["scripts/speed", "scripts/speed soak", "scripts/speed flows"]}
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


class FoundRate(unittest.TestCase):
    """`scripts/found-rate` with made-up figures."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.script = loaded("found-rate")

    def run_with(self, *words, share=0.9, fails=(), wrong=()):
        """Runs it where `fails` cells fail, a file of `wrong` ones arrives wrong and the others have made-up figures; the names of the cells that were measured."""
        measured = []

        def transfer(line, contestant, directory):
            measured.append(f"{line.name} / {contestant}")
            if measured[-1] in fails:
                raise SystemExit("of the test")
            if measured[-1] in wrong:
                raise self.script.real_links.WrongFile("of the test")
            return {"seconds": 1.0, "octets": 1, "complete": line.loss < 50, "share": share + len(measured) / 1e4, "lateness_s": 1e-4}

        def play(scene, directory):
            measured.append(scene.name)
            shares = [1 / (place + 1) for place, _ in enumerate(scene.flows)]
            return {"shares": shares, "late_shares": shares, "queue_ms": 2.5, "own_loss": 0.0125, "lateness_s": 1e-4}

        page = self.folder / "found-rate.md"
        if not page.exists():
            page.write_text("By hand.\n<!-- made by scripts/found-rate -->\n<!-- end of scripts/found-rate -->\n")
        links = self.script.real_links
        with (unittest.mock.patch.multiple(self.script, PAGE=page, transfer=transfer, play=play, prepare=lambda root: None),
              unittest.mock.patch.multiple(links, TARGET=self.folder, build=lambda: None, commit=lambda: "c0ffee", available=lambda controls: controls),
              unittest.mock.patch.object(self.script.os, "geteuid", lambda: 0),
              unittest.mock.patch.object(sys, "argv", ["found-rate", "--jobs", "1", *words]),
              contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()) as printed):
            self.script.main()
        self.page, self.printed = page.read_text(), printed.getvalue()
        return measured

    def test_an_interrupted_run_goes_on_and_the_page_says_what_is_missing(self):
        only = ("--only", "10 mbit, 5 ms, 0 % / *", "--only", "3 packets, 0 %", "--runs", "2")
        failed = "10 mbit, 5 ms, 0 % / bbr"
        first = self.run_with(*only, fails=(failed,))
        self.assertEqual(len(first), 2 * (len(self.script.CONTESTANTS) + 1))
        self.assertEqual(first[:8], first[8:], "all cells once before any twice")
        self.assertTrue(self.page.startswith("By hand.\n"))
        row = table(self.page, "| link | cubic")["10 mbit, 5 ms, 0 %"]
        self.assertEqual((row["cubic"], row["bbr"]), ("0.901", "–"))
        self.assertIn(f"Medians of 2 to 2 runs; {len(self.script.cells(self.script.CONTESTANTS)) - 7} cells were not measured.", self.page)
        self.assertIn(f" 2 measurements failed and are in no figure: {failed} (2).", self.page)
        self.assertEqual(self.run_with(*only), [failed] * 2)
        self.assertIn(" 2 measurements failed", self.page, "what failed once stays on the page")
        self.assertEqual(self.run_with(*only), [])
        self.assertEqual(len(self.run_with(*only, "--fresh")), 16)

    def test_a_wrong_file_ends_the_run_and_no_page_is_written(self):
        with self.assertRaises(self.script.real_links.WrongFile):
            self.run_with("--runs", "1", wrong=("10 mbit, 5 ms, 0 % / bbr",))
        self.assertNotIn("##", (self.folder / "found-rate.md").read_text())

    def test_all_of_it_is_on_the_page_and_what_did_not_finish_is_in_italics(self):
        cells = self.script.cells(self.script.CONTESTANTS)
        self.assertEqual(self.run_with("--runs", "1"), [cell.name for cell in cells])
        self.assertNotIn("–", self.page)
        self.assertNotIn("not measured", self.page)
        rows = table(self.page, "| link | cubic")
        self.assertEqual(set(rows), {line.name for line in self.script.LINES})
        self.assertRegex(rows["10 mbit, 5 ms, 50 %"]["found"], r"^\*0\.9\d\d\*$")
        self.assertRegex(rows["10 mbit, 5 ms, 30 %"]["found"], r"^0\.9\d\d$")
        alone = table(self.page, "| link | share")["policer of 10 packets, 10 %"]
        self.assertEqual(list(alone.values()), ["1.000", "2.5", "1.25"])
        shared = table(self.page, "| buffer and flows")
        self.assertEqual(shared["1 BDP: fair bbr"]["shares, in fair shares, in the order of the flows"], "1.00 0.50")
        self.assertEqual((shared["1 BDP: fair fair"]["Jain's index"], shared["1 BDP: fair bbr"]["Jain's index"]), ("0.900", ""))

    def test_figures_come_from_what_programs_say(self):
        ping = "64 bytes from 10.77.0.1: icmp_seq=1 ttl=64 time=10.2 ms\n64 bytes from 10.77.0.1: icmp_seq=3 ttl=64 time=14.6 ms\n"
        self.assertAlmostEqual(self.script.mean_queue(ping), 2.2)
        self.assertIsNone(self.script.mean_queue("100% packet loss"))
        counted = [[10.0, 0], [10.5, 500], [11.0, 1_500], [11.4, 1_900]]
        self.assertEqual(self.script.octets_between(counted, 10.6, 11.2), 1_000)
        self.assertEqual(self.script.octets_between(counted, 9, 12), 1_900)
        self.assertEqual(self.script.packets(20, 20, 1), ("--queue", "67 packets"))
        self.assertAlmostEqual(self.script.jain([1, 1, 1, 1]), 1)
        self.assertAlmostEqual(self.script.jain([1, 0]), 0.5)
        self.assertEqual(self.script.jain([0, 0]), 0)

    def test_the_rate_is_told_as_the_column_says(self):
        told = {one: self.script.rate_lines(one, 10) for one in self.script.OURS}
        self.assertEqual(told, {"told": 'rate = "10mbit"\n', "tenfold": 'rate = "100mbit"\n', "found": "", "again": ""})


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
    COLUMNS = {"kernel TCP, CUBIC": "cubic", "kernel TCP, BBR": "bbr", "QUIC (quinn, BBR)": "quinn-bbr", "Fulmar": "found"}

    def test_it_quotes_the_page_that_was_measured(self):
        page = table((ROOT / "docs/measurements/found-rate.md").read_text(), "| link | cubic")
        quoted = table((ROOT / "README.md").read_text(), "| link, loss | kernel TCP")
        wanted = {link: {ours: page[link][theirs] for ours, theirs in self.COLUMNS.items()} for link in quoted}
        self.assertEqual(quoted, wanted)
        self.assertGreaterEqual(len(quoted), 7)


    def test_it_fits_eighty_lines_and_its_pictures_are_there(self):
        text = (ROOT / "README.md").read_text()
        self.assertLessEqual(text.count("\n"), 80)
        pictures = re.findall(r"!\[[^]]+\]\(([^)]+)\)", text)
        self.assertEqual(len(pictures), 2)
        for picture in pictures:
            self.assertTrue((ROOT / picture).is_file(), picture)


class Commits(unittest.TestCase):
    """A measured page names the commit at which it was measured."""

    def test_every_page_that_names_a_commit_names_one_that_can_be_looked_up(self):
        for page in sorted((ROOT / "docs/measurements").glob("*.md")):
            for commit in re.findall(r"at commit ([^ ,:;.()]+)", page.read_text()):
                self.assertRegex(commit, r"^`?[0-9a-f]{7,40}`?$", page.name)

    def test_what_was_built_before_is_told_by_its_commit(self):
        real_links = importlib.import_module("real_links")
        with unittest.mock.patch.dict("os.environ", {"BUILT": "HEAD (profile test)"}):
            self.assertRegex(real_links.commit(), r"^[0-9a-f]{7,40} \(profile test\)$")
        with unittest.mock.patch.dict("os.environ", {"BUILT": "of the change itself"}), self.assertRaises(SystemExit) as refused:
            real_links.build()
        self.assertIn("no commit", str(refused.exception))


if __name__ == "__main__":
    unittest.main()
