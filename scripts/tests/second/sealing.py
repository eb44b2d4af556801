"""Data under the keys of a session: ciphers, counters, replays, both wires (section 5 of the session's page)."""

import dataclasses
import struct

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

from .checks import crc32, derive
from .datagrams import DATA, HEADER_OCTETS, HEADER_TWO_OCTETS, Header, HeaderTwo, Malformed, is_data_two, read_header, read_header_two

WINDOW = 8192


class ChaCha:
    tag_octets = 16

    def __init__(self, key):
        self.cipher = ChaCha20Poly1305(key)

    @staticmethod
    def nonce(place, counter):
        return bytes([0, 0, 0, place]) + counter.to_bytes(8, "little")

    def seal(self, place, counter, content):
        return self.cipher.encrypt(self.nonce(place, counter), content, None)

    def open(self, place, counter, sealed):
        return self.cipher.decrypt(self.nonce(place, counter), sealed, None)


class Aes(ChaCha):
    def __init__(self, key):
        self.cipher = AESGCM(derive("fulmar 2026-11-22 session aes-256-gcm", key))

    @staticmethod
    def nonce(place, counter):
        return bytes([0, 0, 0, place]) + counter.to_bytes(8, "big")


class Clear:
    """Security none: content in clear, and a CRC-32 instead of a tag."""

    tag_octets = 4

    def __init__(self, _key):
        pass

    @staticmethod
    def check(place, counter, content):
        bound = crc32(bytes([place]) + counter.to_bytes(7, "big"))
        return bytes(a ^ b for a, b in zip(crc32(content), bound))

    def seal(self, place, counter, content):
        return content + self.check(place, counter, content)

    def open(self, place, counter, sealed):
        content, tag = sealed[:-self.tag_octets], sealed[-self.tag_octets:]
        if tag != self.check(place, counter, content):
            raise InvalidTag
        return content


class Window:
    """Counters of one place that were seen."""

    def __init__(self):
        self.next, self.seen = 0, set()

    def is_fresh(self, counter):
        return counter not in self.seen and counter + WINDOW >= self.next

    def note(self, counter):
        self.seen.add(counter)
        self.next = max(self.next, counter + 1)
        if len(self.seen) > 2 * WINDOW:
            self.seen = {one for one in self.seen if one + WINDOW >= self.next}


@dataclasses.dataclass
class Keys:
    """Keys of one handshake, at one end."""

    wire: int
    # Which the peer chose, and which we chose.
    theirs: int
    ours: int
    sending: object
    receiving: object

    def __post_init__(self):
        self.sent, self.windows, self.counters = 0, {}, {}

    def seal(self, content, place=0):
        """One datagram of data."""
        counter = self.counters.get(place, 0)
        self.counters[place] = counter + 1
        self.sent += 1
        header = HeaderTwo(place, self.theirs, counter) if self.wire == 2 else Header(DATA, self.theirs, counter & 0xFFFFFFFF)
        return header.encode() + self.sending.seal(place, counter, content)

    def open(self, datagram):
        """Place, counter and content; raises `Malformed` or `InvalidTag` for what is to be dropped."""
        if is_data_two(datagram) != (self.wire == 2):
            raise Malformed("data in another wire")
        if self.wire == 2:
            header, rest = read_header_two(datagram), datagram[HEADER_TWO_OCTETS:]
            place, counter = header.place, header.counter
        else:
            header, rest = read_header(datagram), datagram[HEADER_OCTETS:]
            place, counter = 0, self.nearest(header.word)
        if header.index != self.ours:
            raise Malformed("no keys of this index")
        if len(rest) < self.receiving.tag_octets:
            raise Malformed("shorter than a tag")
        window = self.windows.setdefault(place, Window())
        if not window.is_fresh(counter):
            raise Malformed("a counter that was seen")
        content = self.receiving.open(place, counter, rest)
        window.note(counter)
        return place, counter, content

    def nearest(self, low):
        """The full counter, of which wire 1 carries the low half, nearest to the one that is expected."""
        expected = self.windows[0].next if 0 in self.windows else 0
        full = (expected & ~0xFFFFFFFF) + low
        return min((one for one in (full - 2**32, full, full + 2**32) if one >= 0), key=lambda one: abs(one - expected))


def keys_of(security, hellos, indices, secrets):
    """Keys that both hellos agree on. `secrets` are those for sending and receiving, of no meaning without security."""
    both = {name: {hello.says(name) for hello in hellos} for name in ("wire-2", "cipher")}
    cipher = Clear if security == "none" else Aes if both["cipher"] == {"aes-256-gcm"} else ChaCha
    return Keys(2 if both["wire-2"] == {"1"} else 1, *indices, *(cipher(secret) for secret in secrets))
