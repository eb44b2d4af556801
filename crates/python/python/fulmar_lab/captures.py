"""Recordings of real links: captures of gateways, of ``tcpdump``, of the emulator and of the simulator, and event traces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, Unpack

from . import _native
from .bounds import COUNT_MAX, whole
from .keys import TablesBesideHops
from .scenario import Packet, Scenario, channel_of, replayed


@dataclass(frozen=True)
class LinkRecording:
    """The packets of a link in both directions, from recordings at its ends.

    ``forward`` and ``reverse`` have the second of sending, the octets, and the second of arrival or ``None`` of each packet; seconds
    count from the first packet.
    ``remarks`` says what was left out. ``clocks_apart`` has the seconds by which the clocks of two captures were brought
    together.
    """

    forward: Sequence[Packet]
    reverse: Sequence[Packet]
    remarks: Sequence[str] = ()
    clocks_apart: float = 0.0

    @classmethod
    def open(cls, path: str | PathLike[str], other: str | PathLike[str] | None = None, *, hop: int = 0) -> LinkRecording:
        """Reads recordings, as ``fulmar replay`` does: captures (pcap or pcapng), or event traces of both ends.

        Args:
            path: The recording at one end, from which forward leads; or one that shows both ends, of ``fulmar emulate`` or
                ``fulmar sim``.
            other: The recording at the other end.
            hop: Of a capture of the simulator, the hop from 0.

        Raises:
            OSError: A file cannot be read.
            ValueError: A file is no recording, or no link is seen, or there is no such hop; the message says what to give.
        """
        forward, reverse, remarks, apart = _native.recorded_link(path, other, whole("hop", hop, 0, COUNT_MAX))
        return cls(forward, reverse, remarks, apart)

    def channel(self) -> dict[str, Any]:
        """The link as it was, as tables of a scenario (:func:`channel_of`)."""
        return channel_of(self.forward, self.reverse)

    def replay(self, *, as_perf: bool | str = False, **tables: Unpack[TablesBesideHops]) -> Scenario:
        """A scenario over the link with flows of yours: what would have happened. ``tables`` are ``flow``, ``run`` and so on.

        ``as_perf`` lets the flows send as ``fulmar perf`` does (:func:`sent_as_perf`): ``"5mbit"`` as with ``--rate 5mbit``,
        ``True`` as without.
        """
        return replayed(self.channel(), tables, as_perf)

    def __repr__(self) -> str:
        lost = sum(arrived is None for _, _, arrived in [*self.forward, *self.reverse])
        return f"<fulmar_lab.LinkRecording of {len(self.forward)} packets forward and {len(self.reverse)} back, {lost} lost>"
