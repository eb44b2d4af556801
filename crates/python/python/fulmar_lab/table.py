"""Tables in memory, for every library that reads Arrow."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING

from . import _native
from .extras import needs
from .names import Named

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow
    import xarray

Value = bool | int | float | str | None


@dataclass(frozen=True)
class Column:
    """A column of a table.

    ``unit`` is ``s``, ``bit/s``, ``octet``, ``share`` (0 to 1), ``truth``, ``text`` or ``1`` for plain numbers, and
    empty for the columns that name a run. ``is_swept`` says whether it has the values of a swept path.
    """

    name: str
    type: str
    unit: str
    about: str
    is_swept: bool = False


class Table:
    """A table. pandas 3, Polars, DuckDB and pyarrow take it as it is, without a copy (Arrow's PyCapsule interface)."""

    def __init__(self, native: _native.NativeTable) -> None:
        self._native = native

    @classmethod
    def read(cls, path: str | PathLike[str]) -> Table:
        """A Parquet file that a sweep or ``fulmar sim --out FILE.parquet`` has written.

        Raises:
            OSError: The file cannot be read.
            SweepError: Fulmar did not write it.
        """
        return cls(_native.read_table(path))

    def __len__(self) -> int:
        return self._native.num_rows()

    def __repr__(self) -> str:
        return f"<fulmar_lab.Table of {len(self)} rows, {len(self.columns)} columns>"

    @property
    def columns(self) -> dict[str, Column]:
        """The columns by name. A name that is not there is a ``KeyError`` with the nearest ones."""
        columns = {}
        for name, type_, metadata in self._native.columns():
            said = dict(metadata)
            columns[name] = Column(name, type_, said.get("unit", ""), said.get("about", ""), said.get("role") == "swept")
        return Named(columns, "column", "`table.columns`")

    def column(self, name: str) -> list[Value]:
        """The values of a column, from the first row to the last; ``None`` where there is none.

        Raises:
            KeyError: There is no such column; the message says the nearest ones.
        """
        return self._native.values(self.columns[name].name)

    def rows(self) -> list[dict[str, Value]]:
        """The rows as dictionaries; for a look, since columns are faster."""
        columns = {name: self._native.values(name) for name in self.columns}
        return [{name: values[row] for name, values in columns.items()} for row in range(len(self))]

    def __arrow_c_schema__(self) -> object:
        return self._native.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._native.__arrow_c_stream__(requested_schema)

    def to_pyarrow(self) -> pyarrow.Table:
        """A ``pyarrow.Table`` (``pip install 'fulmar-lab[tables]'``)."""
        with needs("tables"):
            import pyarrow

        return pyarrow.table(self)

    def to_pandas(self) -> pandas.DataFrame:
        """A ``pandas.DataFrame`` (``pip install 'fulmar-lab[tables]'``)."""
        with needs("tables"):
            frame: pandas.DataFrame = self.to_pyarrow().to_pandas()
        return frame

    def to_polars(self) -> polars.DataFrame:
        """A ``polars.DataFrame`` (``pip install 'fulmar-lab[polars]'``)."""
        with needs("polars"):
            import polars

        return polars.DataFrame(self)

    def to_xarray(self) -> xarray.Dataset:
        """The measures over the grid of a sweep: a dimension for each swept path, and of a table of runs one more, ``run``.

        Each measure is a ``DataArray`` with its ``unit`` and its meaning (``about``) as attributes. ``pip install
        'fulmar-lab[grids]'``.

        Raises:
            ValueError: The rows are no whole grid: paths go together in the sweep, or the table is none of a sweep.
        """
        with needs("grids"):
            import numpy
            import xarray

        swept = [name for name, column in self.columns.items() if column.is_swept]
        values = {name: self.column(name) for name in swept}
        axes: dict[str, list[Value]] = {name: list(dict.fromkeys(column)) for name, column in values.items()}
        if "n" not in self.columns:
            points = math.prod(len(axis) for axis in axes.values())
            axes["run"] = list(range(len(self) // max(points, 1)))
        shape = tuple(len(axis) for axis in axes.values())
        order = list(itertools.product(*(axes[name] for name in swept)))
        each = math.prod(shape) // max(len(order), 1)
        rows = list(zip(*values.values(), strict=True)) if swept else [()] * len(self)
        if math.prod(shape) != len(self) or rows != [point for point in order for _ in range(each)]:
            raise ValueError("the rows are no grid of the swept values: paths that go together make no dimensions; take to_pandas()")
        measures = {}
        for name, column in self.columns.items():
            if name in axes or not column.type.startswith(("Float", "UInt", "Int", "Bool")):
                continue
            numbers = numpy.array([numpy.nan if value is None else value for value in self.column(name)]).reshape(shape)
            measures[name] = (tuple(axes), numbers, {"unit": column.unit, "about": column.about})
        return xarray.Dataset(measures, axes)
