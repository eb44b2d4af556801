"""The session's own messages, and frames of content in wire 2 (section 5 of the session's page; section 11.1 of AeroTP's)."""

import struct

from .datagrams import Malformed

TPDU, HEARTBEAT, PROBE, PROBE_REPLY, CLOSE, FRAGMENT, REPORT, PADDING = range(8)
PATH_ACK = 0x10
MORE = 0x80
FRAMES_MAX = 16
SIZE_PROBE = 1 << 31


def variable(number):
    """RFC 9000, section 16, in its shortest form."""
    for prefix, octets in enumerate((1, 2, 4, 8)):
        if number < 1 << (8 * octets - 2):
            return (number | prefix << (8 * octets - 2)).to_bytes(octets, "big")
    raise ValueError(number)


def read_variable(octets):
    """The number, and what is behind it."""
    if not octets:
        raise Malformed("a number is cut off")
    length = 1 << (octets[0] >> 6)
    if len(octets) < length:
        raise Malformed("a number is cut off")
    return int.from_bytes(octets[:length], "big") & ((1 << (8 * length - 2)) - 1), octets[length:]


def join(frames):
    """Content of frames, each a type and a body; only the last may have a type from 0x40 on."""
    octets = b"".join(bytes([kind | MORE]) + variable(len(body)) + body for kind, body in frames[:-1])
    kind, body = frames[-1]
    return octets + bytes([kind]) + body


def split(content):
    """Frames of content: what comes before one that is cut off counts."""
    frames = []
    while content and len(frames) < FRAMES_MAX:
        kind, content = content[0], content[1:]
        if kind & 0x40 or not kind & MORE:
            return [*frames, (kind, content)]
        try:
            length, content = read_variable(content)
        except Malformed:
            return frames
        if length > len(content):
            return frames
        frames.append((kind & ~MORE, content[:length]))
        content = content[length:]
    return frames


def probe(number, microseconds, padding=0):
    return struct.pack(">II", number, microseconds % 2**32) + bytes(padding)


def read_probe(body):
    if len(body) < 8:
        raise Malformed("a probe is cut off")
    return struct.unpack(">II", body[:8])


def fragments(number, octets, count):
    """Bodies of the fragments of a TPDU, of equal length except for the last."""
    length = -(-len(octets) // count)
    return [struct.pack(">IBB", number, index, count) + octets[index * length:(index + 1) * length] for index in range(count)]


def path_ack(place, largest, hold_seconds, clock_seconds, octets, marks=0):
    hold = min(int(hold_seconds * 1e6 / 16), 0xFFFF)
    return (bytes([place]) + largest.to_bytes(3, "big")
            + struct.pack(">HIIH", hold, int(clock_seconds * 1e6) % 2**32, octets % 2**32, marks % 2**16))


def read_path_ack(body):
    """Place, largest counter, hold in seconds, clock in microseconds, octets and marks."""
    if len(body) < 16:
        raise Malformed("a path ack is cut off")
    hold, clock, octets, marks = struct.unpack(">HIIH", body[4:16])
    return body[0], int.from_bytes(body[1:4], "big"), hold * 16e-6, clock, octets, marks
