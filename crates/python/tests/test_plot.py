"""Pictures: what they show is what the tables have."""

import unittest

import matplotlib

matplotlib.use("Agg")

import fulmar_lab as lab
from links import LOSSES, link
from matplotlib import pyplot

GRID = LOSSES | {"flow.mode": ["reliable", "nack-mack"]}


class Pictures(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.results = lab.sweep(link(), GRID, runs=3, seed=5)

    def tearDown(self) -> None:
        pyplot.close("all")

    def test_points_are_means_with_their_intervals(self) -> None:
        axes = lab.plot.points(self.results, "hop.loss", "goodput_bps", by="flow.mode")
        self.assertEqual(axes.get_xlabel(), "hop.loss, %")
        self.assertEqual(axes.get_ylabel(), "goodput, Mbit/s")
        lines, labels = axes.get_legend_handles_labels()
        self.assertEqual(labels, ["reliable", "nack-mack"])
        table = self.results.points
        wanted = [value / 1e6 for value, mode in zip(table.column("goodput_bps"), table.column("flow.mode"), strict=True) if mode == "reliable"]
        self.assertEqual(list(lines[0][0].get_xdata()), [0.0, 5.0, 20.0])
        self.assertEqual(list(lines[0][0].get_ydata()), wanted)

    def test_texts_stand_in_a_row(self) -> None:
        axes = lab.plot.points(self.results, "flow.mode", "delay_p99_s")
        self.assertEqual([text.get_text() for text in axes.get_xticklabels()], ["reliable", "nack-mack"])
        self.assertEqual(axes.get_ylabel(), "delay p99, ms")

    def test_a_distribution_ends_at_all_runs(self) -> None:
        axes = lab.plot.distribution(self.results, "delay_p99_s", by="hop.loss")
        self.assertEqual([line.get_label() for line in axes.lines], ["0 %", "5 %", "20 %"])
        for line in axes.lines:
            self.assertEqual(line.get_ydata()[-1], 1.0)
            self.assertEqual(sorted(line.get_xdata()), list(line.get_xdata()))

    def test_repair_and_octets_add_up_to_the_table(self) -> None:
        axes = lab.plot.octets(self.results)
        table = self.results.points
        parts = [table.column(f"wire_bytes.{name}") for name in ("source", "repair", "retransmission", "control")]
        for row in range(len(table)):
            drawn = sum(bars[row].get_width() for bars in axes.containers)
            self.assertAlmostEqual(drawn, sum(part[row] for part in parts) / 1e6)
        names = [f"{mode}, {100 * loss:g} %" for mode, loss in zip(table.column("flow.mode"), table.column("hop.loss"), strict=True)]
        self.assertEqual([text.get_text() for text in axes.get_yticklabels()], names)
        mended = lab.plot.repair(self.results)
        self.assertIn("first repetition", mended.get_legend_handles_labels()[1])

    def test_looks_differ_and_end_with_their_block(self) -> None:
        before = matplotlib.rcParams["axes.facecolor"]
        with lab.plot.style("dark"):
            self.assertEqual(matplotlib.rcParams["axes.facecolor"], "#16181c")
        self.assertEqual(matplotlib.rcParams["axes.facecolor"], before)
        self.assertRaisesRegex(ValueError, "light, dark or print", lab.plot.style, "blue")

    def test_a_missing_column_is_named(self) -> None:
        self.assertRaisesRegex(KeyError, "no column 'goodput'", lab.plot.points, self.results, "hop.loss", "goodput")


if __name__ == "__main__":
    unittest.main()
