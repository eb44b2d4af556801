"""Parts of your own: channels, sources of traffic and controllers of repair, as classes of Python.

A part is a class, or any function that makes an object from a seed; the simulator makes one for each run, and of a channel
one for each direction. It calls the object's methods, one call for each packet, write or choice, so runs are slow: for
trying. Equal seeds and equal calls must give equal answers, or the results of a sweep depend on who made them. What proves
itself is written in Rust (``examples/own-parts``) and is as fast as our own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from ._native import Fate, RepairSeen
from .part_code import digest_of

#: The fate of a packet that never arrives.
LOST = Fate(lost=True)
#: Repair symbols ahead for four messages, and the transmissions in the first, the second and each later round of repetition.
RepairPlan = tuple[int, tuple[int, int, int]]


class Channel(Protocol):
    """A channel of your own: what the medium does to a packet behind the hop's rate and queue, and before its delay.

    Beside :meth:`fly` it may have ``rate(now)``: the rate in bit/s of packets that are handed over from ``now`` on, or
    ``None``, which leaves it as it is.
    """

    def fly(self, start: float, end: float, octets: int) -> Fate | None:
        """The fate of a packet whose transmission lasts from ``start`` to ``end``, in seconds: ``None`` if it arrives whole
        and in time, :data:`LOST`, or a :class:`Fate`."""


class TrafficSource(Protocol):
    """A sending application of your own."""

    def next_write(self, now: float, written: int, waiting: int) -> tuple[float, int] | None:
        """The next write: seconds from now, and octets. ``None`` ends the stream.

        It is asked at the start and whenever a write has been made. ``written`` octets were written so far, ``waiting`` of
        them the transport has not taken yet. A write of 0 octets is a look at the flow at that time.
        """


class RepairController(Protocol):
    """A choice of repair of your own, for a flow with ``mode = "auto"`` and a deadline."""

    def choose(self, seen: RepairSeen) -> RepairPlan:
        """The plan to follow from now on. It is asked every half second."""


@dataclass(frozen=True)
class Parts:
    """Parts of your own by the names that a scenario gives them: ``hop.channel``, ``flow.source``, ``flow.controller``."""

    channels: Mapping[str, Callable[[int], Channel]] = field(default_factory=dict)
    sources: Mapping[str, Callable[[int], TrafficSource]] = field(default_factory=dict)
    controllers: Mapping[str, Callable[[int], RepairController]] = field(default_factory=dict)

    @property
    def version(self) -> str:
        """A digest of the code of the parts: another code makes other results. It is another one each time where code or a
        value cannot be read, so that no sweep goes on with runs of what may have been other code."""
        return digest_of([*self.channels.items(), *self.sources.items(), *self.controllers.items()])


@dataclass(frozen=True)
class NativeParts:
    """Parts as the native half reads them."""

    channels: dict[str, Callable[[int], Channel]]
    sources: dict[str, Callable[[int], TrafficSource]]
    controllers: dict[str, Callable[[int], RepairController]]
    version: str


def native_parts(parts: Parts | None) -> NativeParts | None:
    if parts is None:
        return None
    return NativeParts(dict(parts.channels), dict(parts.sources), dict(parts.controllers), parts.version)
