"""The codes of the protocols, on octets of your own: the same arithmetic as Fulmar's gateways and simulator.

- :func:`encode` and :func:`decode` repair lost packets of a block: any *k* units of it give its *k* sources.
- :func:`encode_window` and :class:`WindowDecoder` repair lost packets without blocks (RFC 8681 over GF(2^8)).
- :func:`append_parity` and :func:`correct` repair wrong octets inside one packet (Reed-Solomon, interleaved).

No code notices damage that it was not made for: check packets before you decode with them, and after you corrected one.
``docs/models/fec.md`` has the definitions.

    >>> sources = [b"one", b"two", b"three"]
    >>> symbols = encode(sources, 2)
    >>> decode(3, {1: b"two", 3: symbols[0], 4: symbols[1]})
    [b'one', b'two', b'three']
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from . import _native
from ._native import FecError

__all__ = ["FULL", "FecError", "WindowDecoder", "append_parity", "correct", "decode", "encode", "encode_window"]

#: The density at which no coefficient of a repair symbol is zero.
FULL: Final = 15


def encode(sources: Sequence[bytes], repairs: int) -> list[bytes]:
    """The repair symbols of a block.

    Args:
        sources: The payloads, 1 to 255 of at most 65535 octets each; their lengths may differ.
        repairs: The number of repair symbols; with the sources at most 256.

    Returns:
        Symbols with the longest payload's length plus 2 octets each. Unit ``len(sources) + i`` of the block is symbol *i*.

    Raises:
        FecError: A count or a length does not fit.
    """
    return _native.encode_block(sources, repairs)


def decode(k: int, units: Mapping[int, bytes]) -> list[bytes]:
    """All sources of a block, out of any ``k`` of its units.

    Args:
        k: The number of sources, 1 to 255.
        units: What came, by its number in the block: sources below ``k``, repair symbols from ``k`` on.

    Raises:
        FecError: Units are missing (the message says how many), contradict each other, or lie outside the block.
    """
    return _native.decode_block(k, list(units.items()))


def append_parity(payload: bytes, words: int) -> bytes:
    """A packet: the payload with ``words`` words of parity behind it, 4 octets each, 0 to 256.

    Raises:
        FecError: There are more words than a packet has.
    """
    return _native.append_parity(payload, words)


def correct(packet: bytes, words: int) -> tuple[bytes, int]:
    """The payload of a packet with ``words`` words of parity, and the number of wrong octets that were corrected.

    A word of parity mends two wrong octets of its codeword. With few words a badly damaged packet can be taken for
    another one: check a CRC of the payload afterwards.

    Raises:
        FecError: There is more damage than the parity can mend.
    """
    return _native.correct(packet, words)


def encode_window(sources: Sequence[bytes], key: int, density: int = FULL) -> bytes:
    """A repair symbol over consecutive sources, with the coefficients of a key.

    Args:
        sources: The payloads, 1 to 4095 of at most 65535 octets each.
        key: 0 to 65535. Two symbols over the same sources need two keys to be worth two.
        density: ``density + 1`` of 16 coefficients are not zero, 0 to 15.

    Raises:
        FecError: A count or a length does not fit.
    """
    return _native.encode_window(sources, key, density)


class WindowDecoder:
    """Takes sources and repair symbols in any order, and gives each lost source as soon as it is determined.

    Sources have ordinals that count up by one. What comes twice, too late or for nothing is passed over.
    """

    def __init__(self, first: int = 0, *, sources: int = 8192, symbols: int = 1024, memory_bytes: int = 16 << 20) -> None:
        """A decoder for the sources from ordinal ``first`` on.

        Args:
            first: The first ordinal.
            sources: The width of the window, from the oldest source that is kept to the newest. The window follows the newest.
            symbols: The number of repair symbols that may wait for others.
            memory_bytes: The most octets that sources and symbols take together.
        """
        self._window = _native.NativeWindow(first, sources, symbols, memory_bytes)

    def add_source(self, ordinal: int, payload: bytes) -> dict[int, bytes]:
        """Takes a source that came. Returns those that it determines besides, by ordinal.

        Raises:
            FecError: It contradicts what came before, or is longer than 65535 octets.
        """
        return dict(self._window.add_source(ordinal, payload))

    def add_repair(self, symbol: bytes, first: int, count: int, key: int, density: int = FULL) -> dict[int, bytes]:
        """Takes a repair symbol over ``count`` sources from ``first`` on. Returns the sources that it determines, by ordinal.

        Raises:
            FecError: It spans no source or more than the window has, has no length of such a symbol, or contradicts
                what came before.
        """
        return dict(self._window.add_repair((first, count), (key, density), symbol))

    def forget_before(self, ordinal: int) -> None:
        """Frees the sources before ``ordinal``."""
        self._window.forget_before(ordinal)

    @property
    def needed(self) -> int:
        """The number of further repair symbols, over all that is lost, that would do in most cases."""
        return self._window.needed

    @property
    def memory_bytes(self) -> int:
        """Octets of the sources and symbols that are kept."""
        return self._window.memory_bytes
