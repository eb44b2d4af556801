"""What a link can carry by closed forms, and which loss model is behind a recording."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike, fspath
from typing import Any, Literal

from . import _native
from .bounds import whole
from .names import Named

Quantity = int | float | str


@dataclass(frozen=True)
class ArqForecast:
    """One class of repetition on a link. Shares are of the link's rate."""

    arq: str
    header_bytes: int
    data_bytes: int
    packet_loss: float
    rtt_packets: float
    goodput_bps: int
    goodput_share: float
    best_data_bytes: int
    best_is_longest: bool
    best_goodput_share: float
    window_bytes: int
    back_channel_share: float


@dataclass(frozen=True)
class FoundRate:
    """The rate that a sender finds if nobody tells it, from a short run of the simulator."""

    arrives_bps: int
    share: float
    reached_after_s: float | None
    queueing_mean_s: float
    dropped_share: float
    cause: str
    simulated_s: float
    queue_packets: int
    packet_bytes: int


@dataclass(frozen=True)
class Plan:
    """What to expect of a link; ``docs/guide/plan.md`` has every field.

    ``arqs`` is by the class of repetition; ``blocks`` is what an acknowledgement of selective repeat has to name, ``None``
    where every packet is lost; ``found`` is ``None`` where a run would take too long.
    """

    rate_bps: int
    rtt_s: float
    ber: float | None
    arqs: Mapping[str, ArqForecast]
    blocks: Mapping[str, float] | None
    found: FoundRate | None


def plan(
    rate: Quantity,
    *,
    distance: str | None = None,
    rtt: str | None = None,
    ber: float | str | None = None,
    power: str | None = None,
    loss: float | str | None = None,
    processing: str = "0s",
    header: str = "20B",
    selective_header: str | None = None,
    data: str | None = None,
    longest: str | None = None,
    ack: str = "40B",
    back_ber: float | str = 0,
    confidence: float | str = "99%",
) -> Plan:
    """Goodput, best length and window for each class of repetition on a link, before anything is sent.

    >>> plan("622mbit", distance="61km", ber=1e-6).arqs["selective-repeat"].best_data_bytes
    1480

    Args:
        rate: The rate of the link, such as ``"622mbit"``.
        distance: Its length in free space; or
        rtt: the round trip itself.
        ber: The share of bits that are inverted, each for itself; or
        power: the received optical power at the reference receiver, of 622 Mbit/s; or
        loss: the share of packets lost, whatever their length.
        processing: With ``distance``, the time that the far end takes to answer.
        header: All headers of a packet.
        selective_header: Those of selective repeat, if its lists make them longer.
        data: User data of a packet; without it the best of each class.
        longest: The longest packet that may be advised; without it ``"1500B"``, or what ``data`` needs.
        ack: An acknowledgement, one for each packet.
        back_ber: The share of bits inverted on its way.
        confidence: The probability with which the number of blocks shall suffice.

    Raises:
        ValueError: A value is wrong, or no link can be like that; the message names it and the cure.
    """
    asked = {
        "rate": rate, "distance": distance, "rtt": rtt, "ber": ber, "power": power, "loss": loss, "processing": processing,
        "header": header, "selective_header": selective_header, "data": data, "longest": longest, "ack": ack,
        "back_ber": back_ber, "confidence": confidence,
    }  # fmt: skip
    record = json.loads(_native.plan({name: str(value) for name, value in asked.items() if value is not None}))
    arqs = Named({kind["arq"]: ArqForecast(**kind) for kind in record["kinds"]}, "class of repetition", "`plan.arqs`")
    found = record["found"]
    return Plan(record["rate_bps"], record["rtt_s"], record["ber"], arqs, record["blocks"], FoundRate(**found) if found else None)


@dataclass(frozen=True)
class Fit:
    """The loss model that fits a recording best.

    ``loss`` is what a scenario takes: ``scenario.with_({"hop.loss": found.loss})``. ``believable`` says whether its runs
    are those of the recording at a level of one per cent; ``None`` if that cannot be tested. ``record`` has all models with
    their parameters and intervals, as ``fulmar fit --json`` prints them (``docs/models/fit.md``).
    """

    loss: str
    believable: bool | None
    packets: int
    lost: int
    chosen: str
    record: Mapping[str, Any]


def fit(
    recording: str | PathLike[str],
    *,
    port: int | None = None,
    protocol: Literal["rtp", "aerotp"] = "rtp",
    ssrc: int | None = None,
    wrap: int | None = None,
    window: int = 1000,
) -> Fit:
    """The loss model behind a recording.

    Args:
        recording: A table with a column ``lost`` or ``sequence``, or a capture at the receiver (pcap, pcapng).
        port: For a capture: the UDP port that the flow's packets were sent to.
        protocol: For a capture: the protocol whose sequence numbers its packets have.
        ssrc: For a capture of RTP with several sources: the source to take.
        wrap: For a table: ``sequence`` has so many bits and begins again at 0.
        window: A packet that comes behind one with a number larger by more than this counts as lost.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is no recording, or of another kind, or a number is beyond its bounds; the message names file, line
            and cure.
    """
    if protocol not in ("rtp", "aerotp"):
        raise ValueError(f"protocol={protocol!r}: rtp or aerotp")
    if port is not None:
        port = whole("port", port, 0, 2**16 - 1)
    if ssrc is not None:
        ssrc = whole("ssrc", ssrc, 0, 2**32 - 1)
    if wrap is not None:
        wrap = whole("wrap", wrap, 4, 63)
    captured = None if port is None else (port, protocol == "aerotp", ssrc)
    text, cut = _native.fit(fspath(recording), captured, wrap, whole("window", window, 1, _native.WINDOW_MAX))
    if cut is not None:
        warnings.warn(f"{recording}: {cut}; a later packet is missing, not lost", stacklevel=2)
    record = json.loads(text)
    return Fit(record["loss"], record["believable"], record["packets"], record["lost"], record["chosen"], record)
