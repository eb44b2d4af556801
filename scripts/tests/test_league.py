"""The league table says first where we lose, takes up where it was stopped, and never counts what did not come as early.

Method: figures of our own in place of measured ones; nothing is started.
"""

import importlib.machinery
import importlib.util
import pathlib
import sys
import tempfile
import types
import unittest
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))


def script(name):
    loader = importlib.machinery.SourceFileLoader(name, str(ROOT / "scripts" / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


def row(job, link, contestant, value, run=1, complete=True):
    return {"job": job, "link": link, "contestant": contestant, "run": str(run), "value": value, "unit": "", "octets_for_one": "", "complete": str(complete),
            "version": "1", "commit": "abc1234", "date": "2026-01-01", "load": "0.1", "priority": "usual", "seconds": "9"}


class League(unittest.TestCase):
    def setUp(self):
        self.league = script("league")

    def test_where_another_is_ahead_comes_first(self):
        rows = [row("file", "1 %", "tcp-bbr", "0.99"), row("file", "1 %", "fulmar", "0.95"), row("file", "30 %", "tcp-bbr", "0.10"),
                row("file", "30 %", "fulmar", "0.95"), row("messages", "1 %", "kcptun", "60.0"), row("messages", "1 %", "fulmar", "70.0")]
        lines = self.league.page(rows)
        head = lines[2:lines.index("## A file")]
        self.assertEqual(head[0], "## Where we lose")
        self.assertIn("In 2 of 3 comparisons another is ahead", " ".join(head))
        told = [line for line in head if line.startswith("| file") or line.startswith("| messages")]
        self.assertEqual(len(told), 2)
        self.assertIn("| 1 % | tcp-bbr | 0.99 | 0.95 |", told[0])
        self.assertIn("| 1 % | kcptun | 60 | 70 |", told[1])

    def test_a_lead_within_the_noise_is_none(self):
        rows = [row("file", "1 %", "quinn", "0.951"), row("file", "1 %", "fulmar", "0.95")]
        self.assertEqual(self.league.losses(self.league.medians(rows)), [])

    def test_messages_that_never_came_are_later_than_all_others(self):
        never = [row("messages", "30 %", "fulmar", "", run, complete=False) for run in (1, 2, 3)]
        middle = self.league.medians([*never, row("messages", "30 %", "srt", "200.0")])
        self.assertEqual([cell[2] for cell in self.league.losses(middle)], ["srt"])
        self.assertEqual(self.league.shown(middle["messages", "30 %", "fulmar"]), "*never*")

    def test_each_contestant_of_a_job_has_its_commands_on_the_page(self):
        for _, contestants, _, _ in self.league.JOBS.values():
            self.assertLessEqual(set(contestants), set(self.league.COMMANDS))
        self.assertEqual(len(set(self.league.cells())), len(self.league.cells()))

    def test_figures_are_kept_as_they_come_and_sorted(self):
        with tempfile.TemporaryDirectory() as folder:
            self.league.TABLE = pathlib.Path(folder, "league.csv")
            tasks = [(("messages", "1 %", "fulmar"), 1), (("file", "1 %", "fulmar"), 1), (("file", "1 %", "srt"), 1)]

            def figures(cell, run, priority):
                return (None, "it broke") if cell[2] == "srt" else ({"value": 0.5, "unit": "share", "complete": True, "octets_for_one": "", "load": 0, "priority": "usual", "seconds": 1}, "")

            quiet = [unittest.mock.patch.object(self.league, "versions", lambda: {"fulmar": "1", "srt": "2"}),
                     unittest.mock.patch.object(self.league, "in_its_process", figures),
                     unittest.mock.patch.object(self.league.real_links, "commit", lambda: "abc1234"), unittest.mock.patch("builtins.print")]
            for one in quiet:
                self.enterContext(one)
            self.assertEqual(self.league.measure(tasks, types.SimpleNamespace(jobs=1, realtime=False)), ["file/1 %/srt"])
            self.assertEqual([(kept["job"], kept["contestant"]) for kept in self.league.read()], [("file", "fulmar"), ("messages", "fulmar")])
            # Measured again, a run replaces itself.
            self.league.measure(tasks[:1], types.SimpleNamespace(jobs=1, realtime=False))
            self.assertEqual(len(self.league.read()), 2)

    def test_a_run_that_was_killed_has_no_figures_whatever_it_had_said(self):
        says = """echo '{"value": 0.5}'"""
        for ends, expected in (("exit 0", 0.5), ("kill -KILL $$", None), ("exit 1", None)):
            # In place of the cell, by the command that would give it its priority.
            figures, _ = self.league.in_its_process(("file", "1 %", "srt"), 1, ["sh", "-c", f"{says}; {ends}"])
            self.assertEqual(figures and figures["value"], expected, ends)


class Pictures(unittest.TestCase):
    def test_a_terminal_shows_every_line_from_its_second_on_and_nothing_as_markup(self):
        svg = script("pictures").terminal([(0.5, "a <b> & c"), (2.0, "last")])
        self.assertIn("a &lt;b&gt; &amp; c", svg)
        self.assertEqual(svg.count("<text "), 3)
        self.assertEqual(script("pictures").terminal([(0.5, "x" * 105)]).count("<text "), 3, "a long line breaks")
        self.assertIn("@keyframes l1{0%,5.00%{opacity:0}", svg)
        self.assertIn("prefers-reduced-motion:no-preference", svg)


if __name__ == "__main__":
    unittest.main()
