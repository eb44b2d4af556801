"""Parts of your own: channels, sources of traffic, controllers of repair and whole transports, as classes of Python.

A part is a class, or any function that makes an object from a seed; the simulator makes one for each run, and of a channel
one for each direction. It calls the object's methods, one call for each packet, write or choice, so runs are slow: for
trying. Equal seeds and equal calls must give equal answers, or the results of a sweep depend on who made them. What proves
itself is written in Rust (``examples/own-parts``) and is as fast as our own.
"""

from __future__ import annotations

import functools
import hashlib
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from ._native import Fate, RepairSeen, Turn
from .part_code import digest_of

#: The fate of a packet that never arrives.
LOST = Fate(lost=True)
#: Repair symbols ahead for eight messages, and the transmissions in the first, the second and each later round of repetition.
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

    def choose(self, seen: RepairSeen) -> RepairPlan | None:
        """The plan to follow from now on. It is asked every half second. ``None`` leaves the repair as it is, which is to
        ``auto`` until a plan was chosen."""


class Transport(Protocol):
    """One end of a flow over a transport of your own, made from a seed, whether this is the end that sends, the rate of the
    way in bit/s, and the octets of the longest packet.

    Times are in seconds. Each method but :meth:`room` gives a :class:`Turn`, or ``None`` for nothing.
    """

    def room(self) -> int:
        """Octets that it takes from the application now. It is asked after each of its turns."""

    def write(self, now: float, octets: bytes) -> Turn | None:
        """The application sends these octets, at most :meth:`room`."""

    def finish(self, now: float) -> Turn | None:
        """The application has written everything."""

    def receive(self, now: float, packet: bytes) -> Turn | None:
        """A packet of the other end arrived. Its octets may be inverted where a hop lets them."""

    def wake(self, now: float) -> Turn | None:
        """The time has come that ``Turn(wake=...)`` asked for."""


@dataclass(frozen=True)
class Parts:
    """Parts of your own by the names that a scenario gives them: ``hop.channel``, ``flow.source``, ``flow.controller``,
    ``flow.transport``."""

    channels: Mapping[str, Callable[[int], Channel]] = field(default_factory=dict)
    sources: Mapping[str, Callable[[int], TrafficSource]] = field(default_factory=dict)
    controllers: Mapping[str, Callable[[int], RepairController]] = field(default_factory=dict)
    transports: Mapping[str, Callable[[int, bool, float, int], Transport]] = field(default_factory=dict)

    @property
    def version(self) -> str:
        """A digest of the code of the parts: another code makes other results. It is another one each time where code or a
        value cannot be read, so that no sweep goes on with runs of what may have been other code."""
        kinds = (self.channels, self.sources, self.controllers, self.transports)
        return digest_of([named for kind in kinds for named in kind.items()])


@dataclass(frozen=True)
class NativeParts:
    """Parts as the native half reads them."""

    channels: dict[str, Callable[[int], Channel]]
    sources: dict[str, Callable[[int], TrafficSource]]
    controllers: dict[str, Callable[[int], RepairController]]
    transports: dict[str, Callable[[int, bool, float, int], Transport]]
    version: str
    #: The modules in which they were written, which a worker imports itself, with digests of their files.
    files: dict[str, str]

    def other_files(self) -> list[str]:
        """The modules that have other files here."""
        here = _files([*self.channels.values(), *self.sources.values(), *self.controllers.values(), *self.transports.values()])
        return sorted(name for name, digest in self.files.items() if here.get(name, digest) != digest)


def _files(makers: Iterable[Any]) -> dict[str, str]:
    digests = {}
    for maker in makers:
        while isinstance(maker, functools.partial):
            maker = maker.func
        name = getattr(maker, "__module__", None) or type(maker).__module__
        # What was written in the program itself travels as a whole.
        file = None if name == "__main__" else getattr(sys.modules.get(name), "__file__", None)
        if file is not None:
            digests[name] = hashlib.blake2b(Path(file).read_bytes(), digest_size=16).hexdigest()
    return digests


def native_parts(parts: Parts | None) -> NativeParts | None:
    if parts is None:
        return None
    kinds = dict(parts.channels), dict(parts.sources), dict(parts.controllers), dict(parts.transports)
    return NativeParts(*kinds, parts.version, _files(maker for kind in kinds for maker in kind.values()))
