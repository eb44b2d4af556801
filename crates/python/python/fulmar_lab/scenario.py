"""Scenarios: which links, channels and flows."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, Unpack

import tomli_w

from . import _native
from .bounds import COUNT_MAX, JOBS_MAX, seconds, whole
from .engines import Asked
from .keys import Tables, TablesBesideHops
from .names import Named
from .own import Parts, native_parts
from .table import Table, Value

#: A value of a scenario: a number, or a text with its unit such as ``"10ms"``, ``"5mbit"``, ``"20MB"`` or ``"2%"``.
Setting = bool | int | float | str
#: The values of a sweep by path: ``"hop.loss"``, or several paths that go together: ``("flow.mode", "flow.fec_words")``.
Grid = Mapping[str | tuple[str, ...], Sequence[Setting] | Sequence[Sequence[Setting]]]


class Run(Mapping[str, Value]):
    """The measures of one run by name, as ``docs/guide/simulator.md`` lists them: spans in seconds, rates in bits per
    second, lengths in octets. A name that is not there is a ``KeyError`` with the nearest ones."""

    def __init__(self, table: Table) -> None:
        (values,) = table.rows()
        self._values = Named(values, "measure", "`list(run)`")

    def __getitem__(self, name: str) -> Value:
        return self._values[name]

    def __contains__(self, name: object) -> bool:
        return name in self._values

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

    def __init__(
        self, text: str, path: str | PathLike[str] = "scenario.toml", sets: Sequence[str] = (), parts: Parts | None = None
    ) -> None:
        """A scenario from TOML. ``path`` is what errors name; traces that the scenario names lie beside it. ``parts`` are
        those of your own that it may name."""
        self._parts = parts
        self._text = text
        self._path = str(path)
        self._sets = tuple(sets)
        #: Read once, since a sweep of thousands of points takes a while; a scenario that travels leaves it behind.
        self._kept: _native.NativeStudy | None = None
        self._study()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_kept": None}

    @classmethod
    def read(cls, path: str | PathLike[str], parts: Parts | None = None) -> Scenario:
        """The scenario of a TOML file.

        Raises:
            OSError: The file cannot be read.
            ScenarioError: It is wrong.
        """
        return cls(Path(path).read_text(encoding="utf-8"), path, parts=parts)

    @classmethod
    def build(cls, *, parts: Parts | None = None, **tables: Unpack[Tables]) -> Scenario:
        """A scenario from its tables: ``run``, ``hop``, ``flow`` and the others; a list where there are several. Type checkers
        know each key (:mod:`fulmar_lab.keys`).

        >>> Scenario.build(run={"duration": "9s"}, hop=[{"rate": "8mbit"}, {"rate": "2mbit", "loss": "5%"}],
        ...                flow={"transport": "udp", "traffic": "bulk", "bytes": "9kB"})
        <fulmar_lab.Scenario scenario.toml: 1 point, 1 run>
        """
        return cls(tomli_w.dumps(_table(tables)), parts=parts)

    def with_(self, changes: Mapping[str, Setting]) -> Scenario:
        """The scenario with other values, by path: ``{"hop.loss": "5%", "run.seed": 7}``."""
        sets = [f"{path}={_written(value)}" for path, value in changes.items()]
        kept = [old for old in self._sets if old.split("=")[0] not in changes]
        return Scenario(self._text, self._path, [*kept, *sets], self._parts)

    def run(self, seed: int | None = None, jobs: int = 0) -> Run:
        """One run. A scenario with a sweep has several points; take :func:`sweep` for those.

        Args:
            seed: The seed; without it the scenario's.
            jobs: Threads; 0 is one for each core. One run has one.

        Raises:
            ScenarioError: The scenario has more than one point.
            ValueError: There are no so many threads.
        """
        return Run(Table(self._one(seed).make(0, 1, whole("jobs", jobs, 0, JOBS_MAX))))

    def record(self, seed: int | None = None) -> Recording:
        """One run with its single events: every packet, every delivered piece, every decision.

        Raises:
            ScenarioError: The scenario has more than one point.
        """
        recording = self._one(seed).record()
        packets, pieces, decisions = Table(recording.packets), Table(recording.pieces), Table(recording.decisions)
        return Recording(Run(Table(recording.run)), packets, pieces, decisions, recording)

    def _one(self, seed: int | None) -> _native.NativeStudy:
        changes: dict[str, Setting] = {"run.runs": 1}
        if seed is not None:
            changes["run.seed"] = seed
        study = self.with_(changes)._study()
        if study.points != 1:
            raise _native.ScenarioError(f"the scenario has {study.points} points; use sweep() for a scenario with [sweep]")
        return study

    def draw(self) -> Drawing:
        """The nodes, the hops and the flows of its first point as a picture, which notebooks show."""
        return Drawing(self._study().drawing() or "")

    def flow_figure(
        self, flow: int = 0, *, start: float = 0.0, span: float | None = None, packets: int = 100, seed: int | None = None
    ) -> Drawing:
        """The packets of a flow in one run as a figure: time goes down, the sender stands left, the receiver right.

        Args:
            flow: The flow, from 0.
            start: The second of the run at which the figure begins.
            span: The seconds that it shows; without it, until there are so many packets.
            packets: Packets that are drawn, at most; 2000 or fewer.
            seed: The seed; without it the scenario's.

        Raises:
            ScenarioError: The scenario has more than one point, or no such flow.
            ValueError: A number or a time is beyond what a figure has.
        """
        flow, packets = whole("flow", flow, 0, COUNT_MAX), whole("packets", packets, 0, 2000)
        return Drawing(self._one(seed).flow_figure(flow, (start, span), packets))

    @property
    def parameters(self) -> dict[str, str]:
        """Everything that the scenario says at its first point, by path, as written."""
        return Named(self._study().parameters(0), "parameter that the scenario says", "`scenario.parameters`")

    def __repr__(self) -> str:
        study = self._study()
        points = f"{study.points} point" + "s" * (study.points != 1)
        runs = f"{study.runs} run" + "s" * (study.runs != 1)
        return f"<fulmar_lab.Scenario {Path(self._path).name}: {points}, {runs}>"

    def _study(self) -> _native.NativeStudy:
        if self._kept is None:
            self._kept = _native.NativeStudy(*self._asked(None))
        return self._kept

    def _asked(self, grid: Grid | None) -> Asked:
        """What a worker needs to make the same study."""
        swept = None
        if grid:
            axes = {path if isinstance(path, str) else ", ".join(path): values for path, values in grid.items()}
            swept = tomli_w.dumps({"sweep": {path: _values(values, path) for path, values in axes.items()}})
        return self._text, self._path, list(self._sets), swept, native_parts(self._parts)


@dataclass(frozen=True)
class Drawing:
    """A picture of a scenario. Notebooks show it; ``svg`` is its text."""

    svg: str

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the picture to a file, an SVG."""
        Path(path).write_text(self.svg, encoding="utf-8")

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"<fulmar_lab.Drawing of {len(self.svg)} characters>"


#: A packet as the two ends of a link know it: the second in which it was handed over, its octets on the link, and the second
#: in which it arrived, or ``None``.
Packet = tuple[float, int, float | None]


@dataclass(frozen=True)
class Recording:
    """A run in its single events. Each column of the tables has its unit and its meaning.

    ``run`` has the measures. ``packets`` has a row for each packet on a hop: when it was sent and arrived, its octets, its
    kind, the cause of its loss, the queue that it met. ``pieces`` has a row for each delivered piece with its delay.
    ``decisions`` has a row for each decision of AeroTP's senders: a packet held for lost, another shape, another plan of
    repair with the loss that it answers.
    """

    run: Run
    packets: Table
    pieces: Table
    decisions: Table
    _recorded: _native.NativeRecording = field(repr=False)

    def rates(self, every: float = 0.1) -> Table:
        """The rates over time on each direction of each hop: a row for each interval with what was sent of each kind, what
        arrived, and the longest queue that a packet met.

        Args:
            every: Seconds of an interval.

        Raises:
            ValueError: It is none, or there would be more than a million rows.
        """
        return Table(self._recorded.rates(seconds("every", every)))

    def channel(self, hop: int = 0) -> dict[str, Any]:
        """What a hop was like, as tables of a scenario (:func:`channel_of`)."""
        return tomllib.loads(self._recorded.hop_tables(whole("hop", hop, 0, COUNT_MAX)))

    def replay(self, hop: int = 0, *, as_perf: bool | str = False, **tables: Unpack[TablesBesideHops]) -> Scenario:
        """A scenario over the recorded hop with other flows: what would have happened.

        ``tables`` are the scenario's others: ``flow``, and ``run``, ``tcp`` and so on where they are wanted. ``as_perf`` lets the
        flows send as ``fulmar perf`` does (:func:`sent_as_perf`): ``"5mbit"`` as with ``--rate 5mbit``, ``True`` as without.
        """
        return replayed(self.channel(hop), tables, as_perf)


def channel_of(forward: Iterable[Packet], reverse: Iterable[Packet] = (), *, start: float | None = None) -> dict[str, Any]:
    """What a link was like, from the packets of its two directions: ``hop`` and ``change`` of a scenario, for :meth:`Scenario.build`.

    Rate, delay and loss over time, outages, and the length of the queue where a full one was seen. From packets that left a
    capacity unused no more of it is known than what they used. The loss is the row of their fates in their order, from a place
    of its own in each run.

    Args:
        forward: The packets of the forward direction. Times are in seconds, from wherever they count: those of a capture
            may be seconds since 1970.
        reverse: The packets of the other direction; without them it is like the forward one, but for outages and queue.
        start: The second at which the scenario begins; without it that of the first packet.

    Raises:
        ValueError: No packet arrived, no rate can be seen in their arrivals, or they reach over more than ten days.
    """
    return tomllib.loads(_native.hop_tables(list(forward), list(reverse), start))


def sent_as_perf(tables: Mapping[str, Any], rate: str | None = None) -> dict[str, Any]:
    """Tables of a scenario whose flows send as ``fulmar perf`` does: in datagrams of UDP, their messages as parts of a stream, in
    bursts, and shorter where that helps. What the tables say themselves stays.

    Args:
        tables: The tables: ``hop``, ``flow`` and others.
        rate: That of ``fulmar perf --rate``; without it flows find the rate, as ``fulmar perf`` does.

    Raises:
        ValueError: It is no rate.
    """
    of_flows, of_hops = (tomllib.loads(text) for text in _native.perf_keys(rate))
    made = dict(tables)
    for name, keys in (("flow", of_flows), ("hop", of_hops)):
        given = made.get(name, ())
        made[name] = {**keys, **given} if isinstance(given, Mapping) else [{**keys, **table} for table in given]
    return made


def replayed(channel: Mapping[str, Any], tables: Mapping[str, Any], as_perf: bool | str) -> Scenario:
    """A scenario over a recorded link, whose flows send as ``fulmar perf`` does if that is wanted, or told a rate."""
    made = {**channel, **tables}
    if not isinstance(as_perf, (bool, str)):
        raise TypeError(f'as_perf={as_perf!r}: give a rate as a text, such as "5mbit", or True')
    if as_perf:
        made = sent_as_perf(made, as_perf if isinstance(as_perf, str) else None)
    return Scenario.build(**made)


def _table(table: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    """A table as TOML has it."""
    return {str(key): _plain(value, f"{path}.{key}" if path else str(key)) for key, value in table.items()}


def _values(values: object, path: str) -> list[Any]:
    """The values of a swept path."""
    plain = _plain(values, f"sweep.{path}")
    if not isinstance(plain, list):
        raise _native.ScenarioError(f'`sweep.{path}`: {values!r} is no list of values; give one, such as ["0%", "5%"]')
    return plain


def _plain(value: Any, path: str) -> Any:
    """A value as TOML has it: lists in place of tuples, ranges and arrays, and Python's numbers in place of NumPy's."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Mapping):
        return _table(value, path)
    if isinstance(value, Iterable) and not isinstance(value, (bytes, bytearray)):
        return [_plain(each, f"{path}.{index}") for index, each in enumerate(value)]
    raise _native.ScenarioError(f"`{path}`: {value!r} is no value of a scenario; give a number, a truth value, or a text with its unit")


def _written(value: Setting) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)
