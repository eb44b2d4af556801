"""The native half; users take the names of ``fulmar_lab``."""

from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import final

from .ends import EndSettings
from .own import NativeParts

__all__ = [
    "Fate",
    "FecError",
    "NativeCall",
    "NativeEndpoint",
    "NativeListener",
    "NativeMessages",
    "NativeRecording",
    "NativeStream",
    "NativeStudy",
    "NativeTable",
    "NativeWindow",
    "RepairSeen",
    "ScenarioError",
    "SecretKey",
    "SweepError",
    "Turn",
    "WINDOW_MAX",
    "append_parity",
    "correct",
    "decode_block",
    "encode_block",
    "encode_window",
    "fit",
    "hop_tables",
    "merge",
    "plan",
    "read_table",
    "recorded_link",
]

#: The most for ``window`` of :func:`fit`.
WINDOW_MAX: int

class ScenarioError(ValueError): ...
class SweepError(Exception): ...
class FecError(ValueError): ...

@final
class Fate:
    """The fate of a packet on the link, which a channel of your own gives."""

    def __new__(cls, *, lost: bool = False, later: float = 0.0, flips: Sequence[int] = ...) -> Fate: ...
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, object]]: ...
    @property
    def lost(self) -> bool:
        """Whether it never arrives."""
    @property
    def later(self) -> float:
        """Seconds on top of the hop's delay. Packets may overtake each other."""
    @property
    def flips(self) -> list[int]:
        """Positions of inverted bits, from the first bit of the packet."""

@final
class RepairSeen:
    """The view that a controller of your own has of its flow. Spans in seconds, losses as shares."""

    @property
    def now(self) -> float: ...
    @property
    def deadline(self) -> float: ...
    @property
    def may_miss(self) -> float: ...
    @property
    def late_is_worth(self) -> bool: ...
    @property
    def overhead(self) -> float: ...
    @property
    def gap(self) -> float: ...
    @property
    def one_way(self) -> float: ...
    @property
    def round(self) -> float: ...
    @property
    def loss(self) -> float: ...
    @property
    def loss_error(self) -> float: ...
    @property
    def behind_a_loss(self) -> float: ...
    @property
    def messages(self) -> tuple[int, int, int]:
        """Messages so far whose deadline is over: in time, late, and not arrived. No sender knows it; it is for rewards."""
    def score_since(self, before: RepairSeen) -> float:
        """The score of the messages whose deadline passed since ``before``, by which ``fulmar sim --auto-vs-fixed`` compares."""
    @property
    def written_bytes(self) -> int:
        """Octets of the messages written so far."""
    @property
    def sent_bytes(self) -> int:
        """Octets sent for them so far, with headers, repair and repetitions."""
    @property
    def plan(self) -> tuple[int, tuple[int, int, int]]: ...

@final
class Turn:
    """The things that an end of a transport of your own does in one turn.

    ``send``: packets, as octets for application data that are sent for the first time, or as a pair of one of ``"source"``,
    ``"repair"``, ``"retransmission"`` and ``"control"`` with the octets. ``deliver``: octets for the application, which
    follow those before, or pairs of a position in the stream with octets. ``wake``: the seconds from now after which
    ``wake()`` is called; ``math.inf`` for never, and without it as was asked before.
    """

    def __new__(
        cls,
        *,
        send: Sequence[bytes | tuple[str, bytes]] = ...,
        deliver: Sequence[bytes | tuple[int, bytes]] = ...,
        wake: float | None = None,
    ) -> Turn: ...
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, object]]: ...

@final
class NativeTable:
    def num_rows(self) -> int: ...
    def columns(self) -> list[tuple[str, str, list[tuple[str, str]]]]: ...
    def values(self, name: str) -> list[bool | int | float | str | None]: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...

@final
class NativeRecording:
    run: NativeTable
    packets: NativeTable
    pieces: NativeTable
    decisions: NativeTable

@final
class NativeStudy:
    points: int
    runs: int
    varied: list[str]
    digest: str
    def __new__(cls, text: str, path: str | PathLike[str], sets: list[str], sweep: str | None = None, parts: NativeParts | None = None) -> NativeStudy: ...
    def parameters(self, point: int) -> dict[str, str]: ...
    def part_name(self, first: int, count: int, build: str) -> str: ...
    def has_part(self, first: int, count: int, build: str, path: str | PathLike[str]) -> bool: ...
    def found_parts(
        self, directory: str | PathLike[str], build: str, part_runs: int
    ) -> tuple[list[tuple[int, int, Path]], list[Path], list[tuple[int, int]]]: ...
    def is_whole(self, path: str | PathLike[str]) -> bool: ...
    def record(self) -> NativeRecording: ...
    def drawing(self) -> str | None: ...
    def flow_figure(self, flow: int, times_s: tuple[float, float | None], packets_max: int) -> str: ...
    def make(self, first: int, count: int, jobs: int, told: Callable[[int], None] | None = None) -> NativeTable: ...
    def write_part(
        self, first: int, count: int, jobs: int, build: str, path: str | PathLike[str], told: Callable[[int], None] | None = None
    ) -> None: ...

def merge(files: Sequence[str | PathLike[str]], runs: str | PathLike[str], points: str | PathLike[str]) -> None: ...
def hop_tables(
    there: list[tuple[float, int, float | None]], back: list[tuple[float, int, float | None]], start: float | None
) -> str: ...
def recorded_link(
    path: str | PathLike[str], other: str | PathLike[str] | None, hop: int
) -> tuple[list[tuple[float, int, float | None]], list[tuple[float, int, float | None]], list[str], float]: ...
def read_table(path: str | PathLike[str]) -> NativeTable: ...
def plan(wishes: dict[str, str]) -> str: ...
def fit(
    path: str | PathLike[str], captured: tuple[int, bool, int | None] | None, wrap: int | None, window: int
) -> tuple[str, str | None]: ...
def encode_block(sources: Sequence[bytes], repairs: int) -> list[bytes]: ...
def decode_block(k: int, units: Sequence[tuple[int, bytes]]) -> list[bytes]: ...
def append_parity(payload: bytes, words: int) -> bytes: ...
def correct(packet: bytes, words: int) -> tuple[bytes, int]: ...
def encode_window(sources: Sequence[bytes], key: int, threshold: int) -> bytes: ...

@final
class NativeWindow:
    needed: int
    memory_bytes: int
    def __new__(cls, first: int, sources: int, equations: int, memory_bytes: int) -> NativeWindow: ...
    def add_source(self, ordinal: int, payload: bytes) -> list[tuple[int, bytes]]: ...
    def add_repair(self, span: tuple[int, int], coefficients: tuple[int, int], symbol: bytes) -> list[tuple[int, bytes]]: ...
    def forget_before(self, ordinal: int) -> None: ...

@final
class SecretKey:
    """The secret key of an end of your own. ``SecretKey(text)`` takes the text of a key file."""

    def __new__(cls, text: str) -> SecretKey: ...
    @staticmethod
    def generate() -> SecretKey:
        """Makes a new key."""
    @property
    def text(self) -> str:
        """The key as text, as in a key file. Keep it secret."""
    @property
    def public(self) -> str:
        """The key by which others know this end."""

@final
class NativeCall:
    number: int
    def poll(self) -> tuple[object] | None: ...
    def close(self) -> None: ...

@final
class NativeEndpoint:
    address: tuple[str, int]
    def __new__(cls, address: str, key: SecretKey, peers: list[str], settings: EndSettings) -> NativeEndpoint: ...
    def fileno(self) -> int: ...
    def rung(self) -> list[int]: ...
    def listen(self) -> NativeListener: ...
    def stream(self, address: str, peer: str) -> NativeStream: ...
    def messages(self, address: str, peer: str) -> NativeMessages: ...
    def close(self) -> None: ...

@final
class NativeListener:
    def accept(self) -> NativeCall: ...
    def accept_messages(self) -> NativeCall: ...
    def close(self) -> None: ...

@final
class NativeStream:
    peer: str | None
    def read(self, most: int) -> NativeCall: ...
    def write(self, octets: bytes | bytearray) -> NativeCall: ...
    def finish(self) -> NativeCall: ...
    def close(self) -> None: ...

@final
class NativeMessages:
    peer: str | None
    def send(self, message: bytes | bytearray, deadline: float, priority: int) -> NativeCall: ...
    def receive(self) -> NativeCall: ...
    def finish(self) -> NativeCall: ...
    def expired(self) -> tuple[int, int]: ...
    def close(self) -> None: ...
