"""The keys of a scenario's tables, for type checkers and editors. ``docs/guide/simulator.md`` says what each means.

A quantity with a unit is a text, such as ``"20ms"``; a :data:`Share` may be a number as well, since it has none.

    >>> hop: Hop = {"rate": "8mbit", "delay": "20ms", "loss": "5%"}
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

#: A rate: ``"8mbit"``, ``"5Mbit/s"``.
Rate = str
#: A span of time: ``"20ms"``, ``"1.5s"``.
Span = str
#: Octets: ``"1500B"``, ``"20MB"``.
Octets = str
#: A share or a probability: ``"5%"``, ``0.05``, ``"1e-5"``. Of a loss also its model: ``"2% burst 4"``.
Share = str | float


class RunTable(TypedDict, total=False):
    """``[run]``."""

    seed: int
    runs: int
    duration: Span
    lateness: Span


class Lan(TypedDict, total=False):
    """``[lan]``."""

    rate: Rate
    delay: Span
    queue: str
    framing: Octets


class _Way(TypedDict, total=False):
    rate: Rate
    delay: Span
    queue: str
    ecn_threshold: str
    aqm: str
    policer: str
    loss: Share
    ber: Share
    fading: str
    outages: str
    reorder: str
    duplicate: Share
    jitter: str
    tdma: str
    channel: str


class HopWay(_Way, total=False):
    """``[hop.forward]`` and ``[hop.reverse]``."""

    dama: str


class LinkLane(TypedDict, total=False):
    """``[hop.link.urgent]``."""

    persistence: int
    arq: bool
    fec: bool


class LinkClass(LinkLane, total=False):
    """``[[hop.link.class]]``."""

    priority: int


#: The key that Python has for itself.
_LinkClasses = TypedDict("_LinkClasses", {"class": LinkClass | Sequence[LinkClass]}, total=False)


class Link(_LinkClasses, total=False):
    """``[hop.link]``."""

    layer: str
    window: int
    queue_order: str
    retries: int
    in_order: bool
    retransmit_after: Span
    fragments: int
    adaptive: bool
    units: int
    failure: Share
    repair_failure: Share
    memory: int
    lanes: int
    persistence: int
    arq: bool
    fec: bool
    urgent: LinkLane
    redundancy: Share
    ack_delay: Span


class Red(TypedDict, total=False):
    """``[hop.red]``."""

    min: int
    max: int
    probability: Share
    weight: float


#: The key that Python has for itself.
_From = TypedDict("_From", {"from": str}, total=False)


class Hop(_Way, _From, total=False):
    """``[hop]``, or one of several ``[[hop]]``."""

    name: str
    to: str
    cost: int
    forward: HopWay
    reverse: HopWay
    frame_check: bool
    framing: Octets
    link: str | Link
    red: Red
    ip_queue: str
    told_after: Span


class ChangeWay(TypedDict, total=False):
    """``[change.forward]`` and ``[change.reverse]``."""

    rate: Rate
    delay: Span
    loss: Share
    ber: Share


class Change(ChangeWay, total=False):
    """``[change]``, or one of several ``[[change]]``."""

    at: Span
    hop: int | str
    forward: ChangeWay
    reverse: ChangeWay


class FlowPath(TypedDict, total=False):
    """``[[flow.path]]``."""

    via: Sequence[str]
    cost: int
    rate: Rate


class Tcp(TypedDict, total=False):
    """``[tcp]``, or ``[flow.tcp]``."""

    preset: str
    congestion: str
    mss: Octets
    initial_window: int
    byte_counting: bool
    window_validation: bool
    growth_at_recovery_end: bool
    growth_at_repair_end: bool
    restart_after_idle: bool
    delayed_ack: Span
    ack_every: int
    ack_after_slow_start: bool
    ack_first_at_once: bool
    sack: bool
    duplicates: int
    limited_transmit: bool
    rescue: bool
    rate_reduction: bool
    frto: bool
    careful: bool
    reduce: str
    share_ssthresh: bool
    share_rtt: bool
    rto_initial: Span
    rto_min: Span
    rto_max: Span
    rto_rule: str
    rto_granularity: Span
    samples_of_retransmissions: bool
    syn_retries: int
    data_retries: int
    window_scaling: bool
    timestamps: bool
    ecn: bool
    nagle: bool
    keep_out_of_order: bool
    runs_kept: int
    receive_buffer: Octets
    send_buffer: Octets
    unsent: Octets
    time_wait: Span


class LtTcp(TypedDict, total=False):
    """``[lt_tcp]``, or ``[flow.lt_tcp]``."""

    unit_min: Octets
    granularity: int
    units_max: int
    pfec: Share
    rfec: Share
    loss_deviations: float
    loss_floor: Share
    loss_gain: Share
    initial_window: int
    ack_every: int
    delayed_ack: Span
    ecn: bool
    rto_initial: Span
    rto_min: Span
    rto_max: Span
    syn_retries: int
    data_retries: int
    receive_buffer: Octets
    send_buffer: Octets
    time_wait: Span


class Flow(_From, total=False):
    """``[flow]``, or one of several ``[[flow]]``."""

    to: str
    via: Sequence[str]
    path: FlowPath | Sequence[FlowPath]
    transport: str
    traffic: str
    bytes: Octets
    write: Octets
    rate: Rate
    size: Octets
    interval: Span
    first: str
    source: str
    controller: str
    start: Span
    count: int
    spacing: Span
    direction: str
    mtu: Octets
    send_rate: Rate
    share: str
    copies: int
    measured: bool
    tcp: Tcp
    lt_tcp: LtTcp
    mode: str
    deliver: str
    deadline: Span
    residual: Share
    overhead: Share
    order: str
    sealed: bool
    fec_words: int
    fec_block: str
    fec_block_close: Span
    mack: int
    mack_flush: Span
    mack_repeats: int
    mack_style: str
    payload_crc: bool
    deliver_damaged: bool
    window: int
    send_buffer: Octets
    rto_initial: Span
    rto_margin: Span
    rto_max: Span
    wait_lost: Span
    wait_requested: Span
    adapt: str
    adapt_power: bool
    follow_length: bool
    tail_repeats: int
    give_up_after: Span
    priority: int
    ecn: bool
    burst: Span
    credit: Octets
    read_rate: Rate


class TablesBesideHops(TypedDict, total=False):
    """The tables of a scenario over a recorded link, which has its hop and its changes."""

    run: RunTable
    lan: Lan
    flow: Flow | Sequence[Flow]
    tcp: Tcp
    lt_tcp: LtTcp
    sweep: dict[str, Sequence[object]]
    title: str
    about: str


class Tables(TablesBesideHops, total=False):
    """All tables of a scenario."""

    hop: Hop | Sequence[Hop]
    change: Change | Sequence[Change]
