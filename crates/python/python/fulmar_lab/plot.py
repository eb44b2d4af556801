"""Pictures of results, with matplotlib (``pip install 'fulmar-lab[plot]'``).

Every function takes the results of a sweep or the recording of a run, draws into the axes that it is given or into new ones,
and returns them.
Axes say what they show and in which unit. Nothing is shown or saved: a notebook does the one, ``ax.figure.savefig`` the
other.

    >>> import fulmar_lab as lab
    >>> results = lab.sweep(link, {"hop.loss": ["0%", "5%", "20%"], "flow.mode": ["reliable", "nack-mack"]}, runs=25)
    >>> with lab.plot.style("print"):
    ...     ax = lab.plot.points(results, "hop.loss", "goodput_bps", by="flow.mode")
    ...     ax.figure.savefig("goodput.pdf")
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

from .extras import needs
from .scenario import Recording
from .results import Results
from .table import Column, Table, Value

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from matplotlib.axes import Axes

__all__ = ["delays", "distribution", "engines", "octets", "points", "repair", "reproduced", "style", "timeline"]

_INK = {"light": ("#1d1f23", "#d9dbdf", "#ffffff"), "dark": ("#e8e9ec", "#3a3f48", "#16181c"), "print": ("#000000", "#cccccc", "#ffffff")}
_SERIES = {
    "light": ("#1f5fbf", "#b4540a", "#18794e", "#a81d1d", "#6b4fa0", "#565b64"),
    "dark": ("#78aaf5", "#f0a05a", "#66cf9b", "#ff8d8d", "#b9a2ea", "#a3a9b4"),
    "print": ("#000000", "#1f5fbf", "#b4540a", "#18794e", "#a81d1d", "#777777"),
}
#: Lines are told apart by their marks as well as by their colours.
_MARKS = "osD^vP"

#: The factor and the name of the unit in which people read a column's unit.
_READ_AS = {"s": (1e3, "ms"), "bit/s": (1e-6, "Mbit/s"), "octet": (1e-6, "MB"), "share": (100.0, "%")}


def style(look: Literal["light", "dark", "print"] = "light") -> AbstractContextManager[None]:
    """How pictures look inside the ``with`` block: on a light or a dark ground, or on paper (small, black first).

    Raises:
        ValueError: There is no such look.
    """
    if look not in _INK:
        raise ValueError(f"style({look!r}): light, dark or print")
    matplotlib = _matplotlib()
    from cycler import cycler

    ink, line, ground = _INK[look]
    settings: dict[str, Any] = {name: ink for name in ("text.color", "axes.labelcolor", "xtick.color", "ytick.color", "axes.titlecolor")}
    settings |= {name: ground for name in ("figure.facecolor", "axes.facecolor", "savefig.facecolor", "legend.facecolor")}
    settings |= {"axes.edgecolor": line, "grid.color": line, "axes.grid": True, "axes.axisbelow": True, "legend.frameon": False}
    settings |= {"axes.spines.top": False, "axes.spines.right": False, "axes.prop_cycle": cycler(color=_SERIES[look])}
    settings |= {"figure.constrained_layout.use": True, "pdf.fonttype": 42, "svg.hashsalt": "fulmar"}
    if look == "print":
        settings |= {"figure.figsize": (3.5, 2.6), "font.size": 8, "lines.linewidth": 1.0, "savefig.dpi": 300}
    context: AbstractContextManager[None] = matplotlib.rc_context(settings)
    return context


def points(results: Results, x: str, y: str, *, by: str | None = None, ax: Axes | None = None) -> Axes:
    """The mean of a measure over a swept value, with its 95 % interval as a bar.

    Args:
        results: The results of a sweep.
        x: A swept path, such as ``"hop.loss"``. Texts stand in a row, numbers on a scale.
        y: A measure, such as ``"goodput_bps"``.
        by: Another swept path, each value of which is a line.
        ax: The axes to draw into.

    Raises:
        KeyError: There is no such column.
        ValueError: Several points of a line have the same ``x``, since a further path was swept.
    """
    table = results.points
    axes = _axes(ax)
    where, across = table.column(x), _scaled(table, x)
    height = _scaled(table, y)
    half = _scaled(table, y, f"{y}_ci95")
    places = list(dict.fromkeys(where))
    in_a_row = any(isinstance(value, str) for value in where)
    for index, (label, rows) in enumerate(_groups(table, by)):
        if len({where[row] for row in rows}) < len(rows):
            raise ValueError(f"several points have one {x}; say by=, or sweep fewer paths")
        rows = [row for row in rows if height[row] is not None]
        xs = [float(places.index(where[row])) if in_a_row else across[row] for row in rows]
        axes.errorbar(
            xs, [height[row] for row in rows], yerr=[half[row] or 0.0 for row in rows],
            label=label, marker=_MARKS[index % len(_MARKS)], markersize=4, capsize=3,
        )  # fmt: skip
    if in_a_row:
        axes.set_xticks(range(len(places)), [str(place) for place in places])
    axes.set_xlabel(x if in_a_row else _label(table, x))
    axes.set_ylabel(_label(table, y))
    if by is not None:
        axes.legend(title=by)
    return axes


def distribution(results: Results, measure: str, *, by: str | None = None, ax: Axes | None = None) -> Axes:
    """The share of runs that have at most a value of a measure, such as ``"delay_p99_s"``.

    Args:
        results: The results of a sweep.
        measure: A measure; runs without it (nothing was delivered) count as having none, and the line ends below 1.
        by: A swept path, each value of which is a line.
        ax: The axes to draw into.

    Raises:
        KeyError: There is no such column.
    """
    table = results.runs
    axes = _axes(ax)
    values = _scaled(table, measure)
    for label, rows in _groups(table, by):
        had = sorted(value for row in rows if (value := values[row]) is not None)
        axes.step([had[0], *had] if had else [], [number / len(rows) for number in range(len(had) + 1)] if had else [], where="post", label=label)
    axes.set_ylim(0, 1.02)
    axes.set_xlabel(_label(table, measure))
    axes.set_ylabel("share of the runs")
    if by is not None:
        axes.legend(title=by)
    return axes


def repair(results: Results, *, ax: Axes | None = None) -> Axes:
    """How losses were mended at each point: TPDUs put right by parity words, by repair symbols and by repetitions, and
    what remained, in the mean of its runs.

    Args:
        results: The results of a sweep.
        ax: The axes to draw into.
    """
    parts = {
        "recovered.fec_words": "parity words", "recovered.fec_block": "repair symbols",
        "recovered.arq_first": "first repetition", "recovered.arq_second": "second", "recovered.arq_later": "later",
        "residual_loss.lost": "lost",
    }  # fmt: skip
    return _stacked(results, parts, "TPDUs", 1.0, ax)


def octets(results: Results, *, ax: Axes | None = None) -> Axes:
    """The octets on the wire at each point, by what they were for, in the mean of its runs.

    Args:
        results: The results of a sweep.
        ax: The axes to draw into.
    """
    parts = {f"wire_bytes.{name}": name for name in ("source", "repair", "retransmission", "control")}
    return _stacked(results, parts, "on the wire, MB", 1e-6, ax)


def engines(
    results: Results, x: str, *, by: str = "flow.mode", measures: Sequence[str] = ("goodput_bps", "delay_p99_s", "sent_per_byte"), axes: Sequence[Axes] | None = None
) -> list[Axes]:
    """Engines of repair side by side: a panel for each measure, in which each engine has a line over a swept value.

    Args:
        results: The results of a sweep.
        x: A swept path, such as ``"hop.loss"``.
        by: The swept path that tells the engines apart: ``"flow.mode"``, or ``"flow.transport"``.
        measures: A measure for each panel.
        axes: The axes to draw into, as many as there are measures.

    Raises:
        KeyError: There is no such column.
        ValueError: There are more or fewer axes than measures, or several points of a line have the same ``x``.
    """
    if axes is None:
        matplotlib = _matplotlib()
        from matplotlib import pyplot

        width, height = matplotlib.rcParams["figure.figsize"]
        size = (width * (1 + 0.6 * (len(measures) - 1)), height)
        axes = list(pyplot.subplots(1, len(measures), squeeze=False, figsize=size, layout="constrained")[1][0])
    if len(axes) != len(measures):
        raise ValueError(f"there are {len(axes)} axes for {len(measures)} measures: give one for each")
    for panel, measure in zip(axes, measures, strict=True):
        points(results, x, measure, by=by, ax=panel)
    for panel in axes[1:]:
        # The lines are the same in each panel.
        if legend := panel.get_legend():
            legend.remove()
    return list(axes)


def delays(recordings: Mapping[str, Recording], *, ax: Axes | None = None) -> Axes:
    """The share of delivered pieces that took at most so long, a line for each recorded run.

    Args:
        recordings: Recordings by the names of their lines, such as ``{"reliable": link.record(seed=1)}``.
        ax: The axes to draw into.
    """
    axes = _axes(ax)
    for label, recording in recordings.items():
        took = sorted(value for value in _scaled(recording.pieces, "delay_s") if value is not None)
        axes.step([took[0], *took] if took else [], [number / len(took) for number in range(len(took) + 1)] if took else [], where="post", label=label)
    axes.set_ylim(0, 1.02)
    axes.set_xlabel("delay, ms")
    axes.set_ylabel("share of the pieces")
    axes.legend()
    return axes


def timeline(recording: Recording, *, flow: int = 0, ax: Axes | None = None) -> Axes:
    """The decisions of a flow's sender over time, a row for each kind: packets held for lost by each sign, other shapes of
    packets, and plans of repair. A plan says its repair symbols ahead for each message, and the transmissions in the first,
    second and later rounds. The ground is darker where the sender was stalled: nothing was acknowledged for a whole timeout.

    Args:
        recording: A recorded run (:meth:`Scenario.record`).
        flow: The flow, from 0.
        ax: The axes to draw into.
    """
    axes = _axes(ax)
    rows = [row for row in recording.decisions.rows() if row["flow"] == flow]
    kinds: dict[str, list[float]] = {}
    stalled: float | None = None
    for row in rows:
        at, decision = _number(row["at_s"]), str(row["decision"])
        if decision == "stalled" and stalled is None:
            stalled = at
        elif decision == "resumed" and stalled is not None:
            axes.axvspan(stalled, at, alpha=0.25, color="C5", linewidth=0)
            stalled = None
        elif decision not in ("stalled", "resumed"):
            sign = f", {row['sign']}" if row["sign"] else ""
            kinds.setdefault(decision.replace("_", " ") + sign, []).append(at)
    for place, times in enumerate(kinds.values()):
        axes.eventplot(times, lineoffsets=place, linelengths=0.6, color=f"C{place % 6}")
    if "repair planned" in kinds:
        place = list(kinds).index("repair planned")
        for row in rows:
            if row["decision"] == "repair_planned":
                rounds = "-".join(f"{_number(row[name]):g}" for name in ("times_first", "times_second", "times_later"))
                plan = f"{_number(row['ahead']):g} ahead, {rounds}"
                axes.annotate(plan, (_number(row["at_s"]), place + 0.35), rotation=45, fontsize="x-small")
    axes.set_yticks(range(len(kinds)), list(kinds))
    axes.set_ylim(-0.6, len(kinds) + 0.4)
    axes.grid(False, axis="y")
    axes.set_xlabel("time, s")
    return axes


def reproduced(path: str | PathLike[str], *, ax: Axes | None = None) -> Axes:
    """A figure of a paper, from the table that ``fulmar reproduce PAPER --figure NAME --out DIRECTORY`` writes beside its
    picture: each curve with its 95 % intervals, medians where the figure has those.

    Args:
        path: The table, ``NAME.csv``.
        ax: The axes to draw into.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is no table of a figure.
    """
    with open(path, encoding="utf-8", newline="") as file:
        head, *rows = list(csv.reader(file)) or [[]]
    if head[:1] != ["line"] or head[2:3] != ["n"] or len(head) < 6:
        raise ValueError(f"{path} is no table of a figure; give one that `fulmar reproduce` wrote")
    axes = _axes(ax)
    places = list(dict.fromkeys(row[1] for row in rows))
    in_a_row = not all(_is_number(place) for place in places)
    for index, label in enumerate(dict.fromkeys(row[0] for row in rows)):
        drawn = [(places.index(row[1]) if in_a_row else float(row[1]), *map(float, row[-3:])) for row in rows if row[0] == label and all(row[-3:])]
        single = [(float(places.index(row[1])) if in_a_row else float(row[1]), float(row[-3])) for row in rows if row[0] == label and row[-3] and not all(row[-3:])]
        mark = _MARKS[index % len(_MARKS)]
        if drawn:
            xs, values, low, high = zip(*drawn, strict=True)
            half = [[value - end for value, end in zip(values, low, strict=True)], [end - value for value, end in zip(values, high, strict=True)]]
            axes.errorbar(xs, values, yerr=half, label=label, marker=mark, markersize=4, capsize=3)
        if single:
            # Points of the paper itself have no interval.
            axes.plot(*zip(*single, strict=True), label=None if drawn else label, marker=mark, markersize=4, linestyle="none")
    if in_a_row:
        axes.set_xticks(range(len(places)), places)
    elif (numbers := sorted(float(place) for place in places if float(place) > 0)) and numbers[-1] >= 100 * numbers[0]:
        axes.set_xscale("symlog", linthresh=numbers[0])
    statistic, unit = head[-3].split("_", 1)
    axes.set_xlabel(head[1].replace("_", " "))
    axes.set_ylabel(f"{statistic}, {unit.replace('_per_', '/').replace('_', ' ')}")
    axes.legend()
    return axes


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _stacked(results: Results, parts: dict[str, str], label: str, factor: float, ax: Axes | None) -> Axes:
    table = results.points
    axes = _axes(ax)
    names = _names_of_points(table)
    below = [0.0] * len(names)
    # A part keeps its colour from one picture to the next, also where another part is empty.
    for index, (column, part) in enumerate(parts.items()):
        lengths = [factor * _number(value) for value in table.column(column)]
        if any(lengths):
            axes.barh(names, lengths, left=below, label=part, color=f"C{index}")
            below = [left + length for left, length in zip(below, lengths, strict=True)]
    axes.invert_yaxis()
    axes.grid(False, axis="y")
    axes.set_xlabel(label)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=2)
    return axes


def _names_of_points(table: Table) -> list[str]:
    swept = [name for name, column in table.columns.items() if column.is_swept]
    values = {name: table.column(name) for name in swept}
    names = [", ".join(_written(values[name][row], table.columns[name]) for name in swept) for row in range(len(table))]
    return names if swept else ["all runs"]


def _groups(table: Table, by: str | None) -> list[tuple[str | None, list[int]]]:
    """The rows that have a value of ``by`` in common, in the order in which the values come."""
    if by is None:
        return [(None, list(range(len(table))))]
    groups: dict[Value, list[int]] = {}
    for row, value in enumerate(table.column(by)):
        groups.setdefault(value, []).append(row)
    return [(_written(value, table.columns[by]), rows) for value, rows in groups.items()]


def _written(value: Value, column: Column | None = None) -> str:
    if isinstance(value, float) and column is not None and column.unit in _READ_AS:
        factor, unit = _READ_AS[column.unit]
        return f"{value * factor:g} {unit}"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _scaled(table: Table, name: str, column: str | None = None) -> Sequence[Any]:
    """The values of a column, or of another one, in the unit in which people read the first; ``None`` where there is none."""
    values = table.column(name if column is None else column)
    factor, _ = _READ_AS.get(table.columns[name].unit, (1.0, ""))
    return [_number(value) * factor if isinstance(value, (int, float)) and not _is_none(value) else None for value in values]


def _is_none(value: Value) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _number(value: Value) -> float:
    return 0.0 if isinstance(value, str) or _is_none(value) else float(value or 0.0)


def _label(table: Table, name: str) -> str:
    _, unit = _READ_AS.get(table.columns[name].unit, (1.0, ""))
    stem = name.removesuffix("_bps").removesuffix("_s").removesuffix("_bytes")
    words = stem.replace("_", " ") if "." not in name else stem
    return f"{words}, {unit}" if unit else words


def _axes(ax: Axes | None) -> Axes:
    if ax is not None:
        return ax
    _matplotlib()
    from matplotlib import pyplot

    return pyplot.subplots(layout="constrained")[1]


def _matplotlib() -> Any:
    with needs("plot"):
        import matplotlib

    return matplotlib
