"""Tables: what every reader of Arrow gets."""

import unittest

import duckdb
import pyarrow

import fulmar_lab as lab
from links import LOSSES, link


class Tables(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.results = lab.sweep(link(), LOSSES, runs=2, seed=5)

    def test_columns_have_units_and_meanings(self):
        columns = self.results.runs.columns
        self.assertEqual(columns["goodput_bps"].unit, "bit/s")
        self.assertEqual(columns["hop.loss"], lab.Column("hop.loss", "Float64", "share", "as the scenario has it", is_swept=True))
        self.assertEqual([name for name, column in columns.items() if column.is_swept], ["hop.loss"])
        self.assertTrue(all(column.about for column in columns.values()))

    def test_every_reader_sees_the_same_values(self):
        runs = self.results.runs
        goodputs = runs.column("goodput_bps")
        self.assertEqual(len(runs), 6)
        self.assertEqual(runs.column("seed"), [5, 6] * 3)
        self.assertEqual(runs.to_pyarrow()["goodput_bps"].to_pylist(), goodputs)
        self.assertEqual(runs.to_pandas()["goodput_bps"].tolist(), goodputs)
        self.assertEqual(runs.to_polars()["goodput_bps"].to_list(), goodputs)
        self.assertEqual([value for value, in duckdb.sql("select goodput_bps from runs").fetchall()], goodputs)
        self.assertEqual([row["goodput_bps"] for row in runs.rows()], goodputs)
        metadata = runs.to_pyarrow().schema.field("goodput_bps").metadata
        self.assertEqual(metadata[b"unit"], b"bit/s")

    def test_arrow_takes_the_values_without_a_copy(self):
        runs = self.results.runs
        first, second = (pyarrow.table(runs)["goodput_bps"].chunk(0).buffers()[1].address for _ in range(2))
        self.assertEqual(first, second)

    def test_means_are_those_of_the_runs(self):
        frame = self.results.runs.to_pandas()
        for mean, (_, runs) in zip(self.results.points.column("goodput_bps"), frame.groupby("point"), strict=True):
            self.assertAlmostEqual(mean, runs["goodput_bps"].mean(), places=3)


if __name__ == "__main__":
    unittest.main()
