"""Octets of datagrams: headers of both wires, and hellos (sections 1 and 3 of the session's page)."""

import dataclasses
import struct

from .checks import crc16

DATA, INITIATION, RESPONSE, COOKIE, EARLY, VERSION, NOTICE = range(7)
HEADER_OCTETS = 12
HEADER_TWO_OCTETS = 8
HELLO_OCTETS = 256
PLACES = 8
MUST_AGREE = 1


class Malformed(Exception):
    """A datagram, hello or message that the page does not allow."""


@dataclasses.dataclass(frozen=True)
class Header:
    kind: int
    index: int
    word: int
    words: int = 0
    version: int = 1

    def encode(self):
        begun = bytes([self.version << 4 | self.kind, self.words])
        rest = struct.pack(">II", self.index, self.word)
        return begun + struct.pack(">H", crc16(begun + rest)) + rest


def read_header(datagram):
    """The header of anything but data in wire 2."""
    if len(datagram) < HEADER_OCTETS:
        raise Malformed("shorter than a header")
    first, words, check, index, word = struct.unpack(">BBHII", datagram[:HEADER_OCTETS])
    if crc16(datagram[:2] + datagram[4:HEADER_OCTETS]) != check:
        raise Malformed("header check")
    return Header(first & 0xF, index, word, words, first >> 4)


@dataclasses.dataclass(frozen=True)
class HeaderTwo:
    place: int
    index: int
    counter: int

    def encode(self):
        return struct.pack(">BI", 0x28 | self.place, self.index) + self.counter.to_bytes(3, "big")


def is_data_two(datagram):
    return len(datagram) >= HEADER_TWO_OCTETS and datagram[0] & 0xF8 == 0x28


def read_header_two(datagram):
    first, index = struct.unpack(">BI", datagram[:5])
    return HeaderTwo(first & 7, index, int.from_bytes(datagram[5:HEADER_TWO_OCTETS], "big"))


@dataclasses.dataclass(frozen=True)
class Hello:
    boot: bytes
    epoch: int
    # Name to value, and whether it must agree.
    capabilities: dict

    def encode(self):
        octets = bytes([1, len(self.capabilities)]) + self.boot + struct.pack(">Q", self.epoch)
        for name, (value, must_agree) in self.capabilities.items():
            octets += bytes([must_agree, len(name)]) + name.encode() + bytes([len(value)]) + value.encode()
        if len(octets) > HELLO_OCTETS:
            raise Malformed("capabilities do not fit a hello")
        return octets.ljust(HELLO_OCTETS, b"\0")

    def says(self, name):
        """The value of a capability, or None."""
        return self.capabilities.get(name, (None,))[0]


def read_hello(octets):
    if len(octets) != HELLO_OCTETS or octets[0] != 1:
        raise Malformed("no hello of format 1")
    capabilities, at = {}, 18

    def take(count):
        nonlocal at
        if at + count > HELLO_OCTETS:
            raise Malformed("a capability is cut off")
        at += count
        return octets[at - count:at]

    for _ in range(octets[1]):
        flags, length = take(2)
        if not 1 <= length <= 32:
            raise Malformed("length of a capability's name")
        name = take(length).decode()
        (length,) = take(1)
        if length > 32:
            raise Malformed("length of a capability's value")
        capabilities[name] = take(length).decode(), flags & MUST_AGREE == MUST_AGREE
    return Hello(octets[2:10], struct.unpack(">Q", octets[10:18])[0], capabilities)


def differences(ours, theirs):
    """Capabilities that one of the two hellos says must agree and that do not: name to both values."""
    names = [name for hello in (ours, theirs) for name, (_, must_agree) in hello.capabilities.items() if must_agree]
    return {name: (ours.says(name), theirs.says(name)) for name in names if ours.says(name) != theirs.says(name)}
