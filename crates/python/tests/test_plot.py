"""Pictures: what they show is what the tables have."""

import pathlib
import tempfile
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

    def test_points_that_differ_in_what_is_not_drawn_are_refused(self) -> None:
        with self.assertRaisesRegex(ValueError, "several points have one hop.loss; say by="):
            lab.plot.points(self.results, "hop.loss", "goodput_bps")
        with self.assertRaisesRegex(ValueError, "several points have one flow.mode; say by="):
            lab.plot.engines(self.results, "flow.mode", by="flow.mode")

    def test_texts_stand_in_a_row(self) -> None:
        axes = lab.plot.points(self.results, "flow.mode", "delay_p99_s", by="hop.loss")
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

    def test_engines_stand_side_by_side_over_the_same_values(self) -> None:
        panels = lab.plot.engines(self.results, "hop.loss", measures=("goodput_bps", "delay_p99_s"))
        self.assertEqual([panel.get_ylabel() for panel in panels], ["goodput, Mbit/s", "delay p99, ms"])
        self.assertEqual([panel.get_legend() is None for panel in panels], [False, True])
        for panel in panels:
            self.assertEqual(panel.get_legend_handles_labels()[1], ["reliable", "nack-mack"])
        with self.assertRaisesRegex(ValueError, "2 axes for 3 measures"):
            lab.plot.engines(self.results, "hop.loss", axes=panels)

    def test_delays_of_recordings_end_at_all_pieces(self) -> None:
        recording = link().record(seed=2)
        line = lab.plot.delays({"reliable": recording}).lines[0]
        self.assertEqual(line.get_ydata()[-1], 1.0)
        self.assertAlmostEqual(line.get_xdata()[-1], 1e3 * max(recording.pieces.column("delay_s")))

    def test_a_timeline_has_each_decision_and_says_each_plan(self) -> None:
        flow = {"transport": "aerotp", "mode": "auto", "traffic": "messages", "size": "200B", "interval": "20ms", "deadline": "80ms"}
        flow |= {"overhead": "90%", "deliver": "all", "bytes": "100kB"}
        hop = {"rate": "8mbit", "delay": "20ms", "loss": "20%"}
        recording = lab.Scenario.build(run={"duration": "60s"}, hop=hop, flow=flow).record(1)
        axes = lab.plot.timeline(recording)
        made = recording.decisions.column("decision")
        drawn = sum(len(events.get_positions()) for events in axes.collections if hasattr(events, "get_positions"))
        self.assertEqual(drawn, sum(name not in ("stalled", "resumed") for name in made))
        plans = [text.get_text() for text in axes.texts]
        self.assertEqual(len(plans), made.count("repair_planned"))
        self.assertRegex(plans[0], r"^[\d.]+ ahead, \d-\d-\d$")

    def test_a_papers_figure_is_drawn_from_its_table(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "figure.csv")
            path.write_text(
                "line,hop_ber,n,mean_Mbit_per_s,ci95_low_Mbit_per_s,ci95_high_Mbit_per_s\r\n"
                "TCP,0,25,4.5,4,5\r\nTCP,0.0001,25,1,0.5,2\r\nthe paper,0.0001,1,0.8,,\r\n"
            )
            axes = lab.plot.reproduced(path)
            self.assertEqual(axes.get_legend_handles_labels()[1], ["the paper", "TCP"])
            self.assertEqual((axes.get_xlabel(), axes.get_ylabel()), ("hop ber", "mean, Mbit/s"))
            path.write_text("point,goodput_bps\n0,1\n")
            self.assertRaisesRegex(ValueError, "is no table of a figure", lab.plot.reproduced, path)

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
