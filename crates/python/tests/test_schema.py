"""Properties of tables, for sweeps that nobody has thought of."""

import tempfile
import unittest
from pathlib import Path

import fulmar_lab as lab
import numpy
from fulmar_lab import _native
from fulmar_lab.engines import Task, build, make
from hypothesis import given, settings
from hypothesis import strategies as some

SHARES = some.sampled_from(["0%", "0.02", "1%", "20%", "100%"])
SPANS = some.sampled_from(["0s", "1us", "20ms", "1s"])
RATES = some.sampled_from(["64kbit", "1mbit", "1Gbit/s"])
LENGTHS = some.sampled_from(["1B", "1000B", "2kB", "3KiB"])
#: A swept path with its values, and the unit that its column has.
AXES = some.fixed_dictionaries(
    {},
    optional={
        "hop.loss": some.lists(SHARES, min_size=1, max_size=3, unique=True),
        "hop.delay": some.lists(SPANS, min_size=1, max_size=2, unique=True),
        "hop.rate": some.lists(RATES, min_size=1, max_size=2, unique=True),
        "flow.bytes": some.lists(LENGTHS, min_size=1, max_size=2, unique=True),
    },
)
UNITS = {"hop.loss": "share", "hop.delay": "s", "hop.rate": "bit/s", "flow.bytes": "octet"}


def unit(name, values):
    """The unit of a swept column; one of plain numbers alone has none."""
    return "1" if name == "hop.loss" and not any("%" in value for value in values) else UNITS[name]


#: The same cases every time.
SAME = settings(derandomize=True, deadline=None, max_examples=8, database=None)


def link():
    return lab.Scenario.build(
        run={"duration": "3s"}, hop={"rate": "8mbit", "delay": "20ms"}, flow={"transport": "udp", "traffic": "bulk", "bytes": "2kB"}
    )


class Schema(unittest.TestCase):
    @SAME
    @given(AXES, some.integers(1, 3), some.integers(0, 2**63 - 10))
    def test_every_sweep_has_one_schema_and_a_row_for_each_run(self, grid, runs, seed):
        results = lab.sweep(link(), grid, runs=runs, seed=seed)
        table, plain = results.runs, lab.sweep(link()).runs
        points = numpy.prod([len(values) for values in grid.values()], dtype=int)
        self.assertEqual(len(table), points * runs)
        self.assertEqual(table.column("seed"), [seed + run for _ in range(points) for run in range(runs)])
        # What is swept comes on top of the columns that every table has, with the unit of its values.
        others = {name: column for name, column in table.columns.items() if name not in grid}
        self.assertEqual(others, plain.columns)
        told = {name: values for name, values in grid.items() if values != ["0s"]}
        self.assertEqual({name: table.columns[name].unit for name in told}, {name: unit(name, values) for name, values in told.items()})

    @SAME
    @given(AXES, some.integers(1, 3))
    def test_points_are_the_means_of_their_runs_and_a_grid(self, grid, runs):
        results = lab.sweep(link(), grid, runs=runs)
        cells = results.points.to_xarray()
        self.assertEqual(dict(cells.sizes), {name: len(values) for name, values in grid.items()})
        each = results.runs.to_xarray()["delivered_bytes"]
        self.assertEqual(each.sizes["run"], runs)
        numpy.testing.assert_allclose(each.mean("run").values, cells["delivered_bytes"].values)

    @SAME
    @given(AXES, some.integers(1, 3), some.randoms(use_true_random=False))
    def test_any_cut_and_any_order_give_the_same_octets(self, grid, runs, chance):
        with tempfile.TemporaryDirectory() as folder:
            expected = lab.sweep(link(), grid, runs=runs, out=Path(folder, "whole.parquet")).path.read_bytes()
            asked = link().with_({"run.runs": runs})._asked(grid)
            all_runs = _native.NativeStudy(*asked).runs
            cuts = sorted(chance.sample(range(1, all_runs), chance.randint(0, all_runs - 1))) if all_runs > 1 else []
            parts = []
            for first, end in zip([0, *cuts], [*cuts, all_runs], strict=True):
                parts.append(Path(folder, f"{first}.parquet"))
                parts[-1].write_bytes(make(Task(asked, first, end - first, build())))
            chance.shuffle(parts)
            _native.merge(parts, Path(folder, "joined.parquet"), Path(folder, "joined-points.parquet"))
            self.assertEqual(Path(folder, "joined.parquet").read_bytes(), expected)

    def test_paths_that_go_together_make_no_dimensions(self):
        results = lab.sweep(link(), {("hop.loss", "hop.delay"): [("0%", "1ms"), ("5%", "2ms")]})
        with self.assertRaisesRegex(ValueError, "no grid of the swept values"):
            results.points.to_xarray()


if __name__ == "__main__":
    unittest.main()
