"""Scenarios and single runs."""

import doctest
import typing
import unittest

import fulmar_lab as lab
import fulmar_lab.scenario
import numpy
from fulmar_lab import _native
from links import LOSSES, link


def load_tests(loader, tests, pattern):
    options = doctest.NORMALIZE_WHITESPACE
    tests.addTests(doctest.DocTestSuite(lab, optionflags=options))
    tests.addTests(doctest.DocTestSuite(fulmar_lab.scenario, globs={"Scenario": lab.Scenario}, optionflags=options))
    return tests


class Scenarios(unittest.TestCase):
    def test_one_seed_gives_one_result(self):
        lossy = link().with_({"hop.loss": "10%"})
        self.assertEqual(dict(lossy.run(7)), dict(lossy.run(7)))
        self.assertNotEqual(lossy.run(7)["goodput_bps"], lossy.run(8)["goodput_bps"])

    def test_a_run_has_its_measures_by_name(self):
        run = link().run(3)
        self.assertEqual((run["seed"], run["completed"], run["delivered_bytes"]), (3, True, 50_000))
        self.assertIsNone(run["in_time"])
        self.assertIn("seed=3", repr(run))

    def test_a_changed_scenario_leaves_the_first_as_it_was(self):
        first = link()
        second = first.with_({"hop.loss": 0.5}).with_({"hop.loss": "2%"})
        self.assertEqual(second.parameters["hop.loss"], "2%")
        self.assertNotIn("hop.loss", first.parameters)

    def test_a_graph_is_drawn_and_its_flows_and_hops_have_columns(self):
        ways = [{"name": name, "from": "air", "to": "ground", "rate": rate} for name, rate in (("lte", "4mbit"), ("satellite", "1mbit"))]
        flow = {"from": "air", "to": "ground", "via": ["satellite"], "transport": "udp", "bytes": "10kB"}
        two = lab.Scenario.build(hop=ways, flow=flow)
        picture = two.draw()
        self.assertTrue(picture.svg.startswith("<svg"))
        self.assertIn("air → ground, udp, by satellite", picture._repr_svg_())
        run = two.run(1)
        self.assertEqual(run["by_flow.0.delivered_bytes"], 10_000)
        self.assertEqual((run["by_way.lte/forward.packets"], run["by_way.satellite/forward.packets"]), (0, 7))

    def test_the_packets_of_a_flow_are_a_figure(self):
        lossy = link().with_({"hop.loss": "10%"})
        figure = lossy.flow_figure(packets=30, seed=3)
        self.assertEqual(figure.svg.count("<g><title>"), 30)
        self.assertIn(">data 2 <tspan", figure.svg)
        self.assertLess(lossy.flow_figure(start=0.0, span=0.01).svg.count("<g><title>"), 30)
        with self.assertRaisesRegex(lab.ScenarioError, "there is no flow 7; the last is 0"):
            lossy.flow_figure(7)

    def test_a_wrong_key_is_named_with_the_cure(self):
        for wrong in (lambda: link().with_({"hop.los": "5%"}), lambda: lab.sweep(link(), {"hop.los": ["5%", "6%"]})):
            with self.assertRaisesRegex(lab.ScenarioError, "did you mean `loss`"):
                wrong()
        with self.assertRaisesRegex(lab.ScenarioError, "has no unit"):
            link().with_({"hop.delay": 20})
        with self.assertRaisesRegex(lab.ScenarioError, r"has 3 points; use sweep\(\)"):
            lab.Scenario("[sweep]\n'hop.loss' = ['0%', '5%', '20%']\n" + link()._text).run()

    def test_each_key_of_each_table_has_a_type_and_no_other_has_one(self):
        def compare(path, table):
            hints = typing.get_type_hints(table)
            self.assertEqual(set(hints), set(known.pop(path)), path or "the root")
            for key, hint in hints.items():
                below = f"{path}.{key}" if path else key
                if below in known:
                    (one,) = {each for each in (hint, *typing.get_args(hint)) if typing.is_typeddict(each)}
                    compare(below, one)

        known = _native.table_keys()
        compare("", lab.keys.Tables)
        self.assertEqual(known, {})

    def test_values_that_no_scenario_has_are_named(self):
        parts = {"run": {"duration": "9s", "seed": numpy.int64(7)}, "flow": {"transport": "udp", "bytes": "9kB"}}
        built = lab.Scenario.build(hop={"rate": "8mbit", "loss": numpy.float64(0.5)}, **parts)
        self.assertEqual((built.parameters["hop.loss"], built.parameters["run.seed"]), ("0.5", "7"))
        self.assertEqual(len(lab.sweep(link(), {"hop.loss": numpy.array([0.0, 0.5])}, runs=1).points), 2)
        for value in (None, b"5%", object()):
            with self.assertRaisesRegex(lab.ScenarioError, r"`hop.0.loss`: .* is no value of a scenario"):
                lab.Scenario.build(hop=[{"rate": "8mbit", "loss": value}], **parts)
        with self.assertRaisesRegex(lab.ScenarioError, r"`sweep.hop.loss.1`: None is no value"):
            lab.sweep(link(), {"hop.loss": ["5%", None]})
        for values in ("5%", 0.05, {"5%": 1}):
            with self.assertRaisesRegex(lab.ScenarioError, "`sweep.hop.loss`: .* is no list of values"):
                lab.sweep(link(), {"hop.loss": values})

    def test_numbers_beyond_their_bounds_are_named(self):
        asked = [
            ("jobs=-1", lambda: lab.sweep(link(), LOSSES, jobs=-1)),
            ("jobs=1025", lambda: link().run(jobs=1025)),
            ("part_runs=0", lambda: lab.sweep(link(), LOSSES, part_runs=0)),
            ("flow=-1", lambda: link().flow_figure(-1)),
            ("packets=-1", lambda: link().flow_figure(packets=-1)),
            ("packets=2001", lambda: link().flow_figure(packets=2001)),
            ("hop=-1", lambda: lab.LinkRecording.open("none.pcap", hop=-1)),
            ("port=70000", lambda: lab.fit("none.csv", port=70_000)),
            ("ssrc=-1", lambda: lab.fit("none.csv", port=7, ssrc=-1)),
            ("wrap=3", lambda: lab.fit("none.csv", wrap=3)),
            ("window=-1", lambda: lab.fit("none.csv", window=-1)),
            ("window=16385", lambda: lab.fit("none.csv", window=16_385)),
        ]
        for said, ask in asked:
            with self.subTest(said=said), self.assertRaisesRegex(ValueError, f"^{said}: give "):
                ask()
        # At the bounds it is the file that is missing.
        with self.assertRaises(FileNotFoundError):
            lab.fit("none.csv", port=65_535, ssrc=2**32 - 1, wrap=63, window=16_384)
        with self.assertRaisesRegex(TypeError, "jobs='2': give a whole number"):
            link().run(jobs="2")

    def test_a_file_is_read_and_named_in_errors(self):
        with self.assertRaises(FileNotFoundError):
            lab.Scenario.read("no such file.toml")

    def test_values_that_go_together_are_one_axis(self):
        grid = {("flow.mode", "flow.fec_words"): [("reliable", 0), ("nack-mack", 16)], **LOSSES}
        results = lab.sweep(link(), grid, runs=1)
        self.assertEqual(results.points.column("flow.mode"), ["reliable"] * 3 + ["nack-mack"] * 3)
        self.assertEqual(results.points.column("flow.fec_words"), [0.0] * 3 + [16.0] * 3)


if __name__ == "__main__":
    unittest.main()
