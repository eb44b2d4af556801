"""Simulate reliable transport over links that lose, corrupt and vanish.

A :class:`Scenario` says which links, channels and flows; :meth:`Scenario.run` makes one run of it, and :func:`sweep`
many, on this machine or on a Dask or Ray cluster. Results are tables that Arrow, pandas, Polars and DuckDB read; each
column has its unit and its meaning. One scenario, one seed: one result, to the octet.

    >>> import fulmar_lab as lab
    >>> link = lab.Scenario.build(
    ...     run={"duration": "60s"},
    ...     hop={"rate": "8mbit", "delay": "20ms"},
    ...     flow={"transport": "aerotp", "traffic": "bulk", "bytes": "100kB"},
    ... )
    >>> results = lab.sweep(link, {"hop.loss": ["0%", "5%", "20%"]}, runs=3)
    >>> results.points.column("completed")
    [1.0, 1.0, 1.0]

:func:`plan` says what a link can carry before anything is simulated, :func:`fit` which loss model is behind a recording.
A :class:`Sender` and a :class:`Receiver` carry streams and messages over real sockets, for asyncio.
:mod:`fulmar_lab.plot` draws results, and :mod:`fulmar_lab.fec` has the codes of the protocols. :mod:`fulmar_lab.gym`, which wants
gymnasium, makes an environment of the choice of repair.
"""

from . import fec, keys, plot
from ._native import Fate, RepairSeen, ScenarioError, SecretKey, SweepError, Turn
from .captures import LinkRecording
from .ends import Expired, Messages, Receiver, Sender, Stream
from .engines import Engine
from .links import Fit, Plan, fit, plan
from .own import LOST, Channel, Parts, RepairController, RepairPlan, TrafficSource, Transport
from .results import About, Results
from .scenario import Drawing, Recording, Run, Scenario, channel_of, sent_as_perf
from .sweeps import sweep
from .table import Column, Table

__all__ = [
    "LOST",
    "About",
    "Channel",
    "Column",
    "Drawing",
    "Engine",
    "Expired",
    "Fate",
    "Fit",
    "LinkRecording",
    "Messages",
    "Parts",
    "Plan",
    "Receiver",
    "Recording",
    "RepairController",
    "RepairPlan",
    "RepairSeen",
    "Results",
    "Run",
    "Scenario",
    "ScenarioError",
    "SecretKey",
    "Sender",
    "Stream",
    "SweepError",
    "Table",
    "TrafficSource",
    "Transport",
    "Turn",
    "channel_of",
    "fec",
    "fit",
    "keys",
    "plan",
    "plot",
    "sent_as_perf",
    "sweep",
]
