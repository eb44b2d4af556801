"""Scenarios: which links, channels and flows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import tomli_w

from . import _native
from .table import Table, Value

#: A value of a scenario: a number, or a text with its unit such as ``"10ms"``, ``"5mbit"``, ``"20MB"`` or ``"2%"``.
Setting = bool | int | float | str
#: The values of a sweep by path: ``"hop.loss"``, or several paths that go together: ``("flow.mode", "flow.fec_words")``.
Grid = Mapping[str | tuple[str, ...], Sequence[Setting] | Sequence[Sequence[Setting]]]


class Run(Mapping[str, Value]):
    """The measures of one run by name, as ``docs/guide/simulator.md`` lists them: spans in seconds, rates in bits per
    second, lengths in octets."""

    def __init__(self, table: Table) -> None:
        (self._values,) = table.rows()

    def __getitem__(self, name: str) -> Value:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        told = ("completed", "goodput_bps", "delay_p99_s", "efficiency")
        return f"<fulmar_lab.Run seed={self['seed']} {' '.join(f'{name}={self[name]}' for name in told)}>"


class Scenario:
    """A scenario of the simulator, which never changes: :meth:`with_` gives another.

    Every key is described in ``docs/guide/simulator.md``. A wrong one raises :class:`ScenarioError`, which names it and
    the cure.
    """

    def __init__(self, text: str, path: str | PathLike[str] = "scenario.toml", sets: Sequence[str] = ()) -> None:
        """A scenario from TOML. ``path`` is what errors name; traces that the scenario names lie beside it."""
        self._text = text
        self._path = str(path)
        self._sets = tuple(sets)
        self._study()

    @classmethod
    def read(cls, path: str | PathLike[str]) -> Scenario:
        """The scenario of a TOML file.

        Raises:
            OSError: The file cannot be read.
            ScenarioError: It is wrong.
        """
        return cls(Path(path).read_text(encoding="utf-8"), path)

    @classmethod
    def build(cls, **tables: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> Scenario:
        """A scenario from its tables: ``run``, ``hop``, ``flow`` and the others; a list where there are several.

        >>> Scenario.build(run={"duration": "9s"}, hop=[{"rate": "8mbit"}, {"rate": "2mbit", "loss": "5%"}],
        ...                flow={"transport": "udp", "traffic": "bulk", "bytes": "9kB"})
        <fulmar_lab.Scenario scenario.toml: 1 point, 1 run>
        """
        return cls(tomli_w.dumps(dict(tables)))

    def with_(self, changes: Mapping[str, Setting]) -> Scenario:
        """The scenario with other values, by path: ``{"hop.loss": "5%", "run.seed": 7}``."""
        sets = [f"{path}={_written(value)}" for path, value in changes.items()]
        kept = [old for old in self._sets if old.split("=")[0] not in changes]
        return Scenario(self._text, self._path, [*kept, *sets])

    def run(self, seed: int | None = None, jobs: int = 0) -> Run:
        """One run. A scenario with a sweep has several points; take :func:`sweep` for those.

        Args:
            seed: The seed; without it the scenario's.
            jobs: Threads; 0 is one for each core. One run has one.

        Raises:
            ScenarioError: The scenario has more than one point.
        """
        changes: dict[str, Setting] = {"run.runs": 1}
        if seed is not None:
            changes["run.seed"] = seed
        study = self.with_(changes)._study()
        if study.points != 1:
            raise _native.ScenarioError(f"the scenario has {study.points} points; use sweep() for a scenario with [sweep]")
        return Run(Table(study.make(0, 1, jobs)))

    @property
    def parameters(self) -> dict[str, str]:
        """Everything that the scenario says at its first point, by path, as written."""
        return self._study().parameters(0)

    def __repr__(self) -> str:
        study = self._study()
        points = f"{study.points} point" + "s" * (study.points != 1)
        runs = f"{study.runs} run" + "s" * (study.runs != 1)
        return f"<fulmar_lab.Scenario {Path(self._path).name}: {points}, {runs}>"

    def _study(self, grid: Grid | None = None) -> _native.NativeStudy:
        return _native.NativeStudy(*self._asked(grid))

    def _asked(self, grid: Grid | None) -> tuple[str, str, list[str], str | None]:
        """What a worker needs to make the same study."""
        swept = None
        if grid:
            axes = {path if isinstance(path, str) else ", ".join(path): _plain(values) for path, values in grid.items()}
            swept = tomli_w.dumps({"sweep": axes})
        return self._text, self._path, list(self._sets), swept


def _plain(values: Sequence[Any]) -> list[Any]:
    """Lists in place of tuples, ranges and arrays, and Python's numbers in place of NumPy's."""
    plain: list[Any] = []
    for value in values:
        if isinstance(value, (list, tuple)):
            plain.append(_plain(value))
        else:
            plain.append(value.item() if hasattr(value, "item") else value)
    return plain


def _written(value: Setting) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)
