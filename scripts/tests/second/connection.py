"""One AeroTP connection that we open, in mode `reliable` or `nack-mack`, in both forms (docs/protocol/aerotp.md, sections 2, 4, 5, 7 and 11).

The link of the tests loses nothing much: what is not settled in time is sent again, and no NACK is sent.
"""

import struct
import time

from .checks import crc16, crc32
from .datagrams import Malformed
from .messages import TPDU, read_variable, variable

AGAIN_SECONDS = 0.3
REPORT_SECONDS = 0.01
IN_FLIGHT = 64
PAYLOAD_OCTETS = 1000
WINDOW = 4096
MACK, NACK, UNKNOWN_NAME = 0x20, 0x21, 0x22
ASYN, AFIN, RST, MACK_BIT, NACK_BIT, BLOCK_BIT, CRC_BIT, FEC_BIT = 0x002, 0x001, 0x004, 0x010, 0x800, 0x100, 0x400, 0x200
REPORT_BIT, CHANNEL_BIT = 0x008, 0x020


class Ended(Exception):
    """The peer ended the connection otherwise than in order."""


def near(low, expected):
    """The 32-bit number nearest to the expected one whose low 24 bits these are."""
    return (expected + ((low - expected + 2**23) % 2**24) - 2**23) % 2**32


class Connection:
    """`send` takes frames, `arrived` gives the octets that came on the path. Octets to send are given to `write`; those that came in order are in `octets`."""

    def __init__(self, send, wire, mode, port, service, arrived):
        self.arrived, self.reported_at = arrived, -1.0
        self.send, self.wire, self.mode, self.port, self.service = send, wire, mode, port, service
        self.name = (port - 49_152) * 4 + service % 4
        self.heard = self.closing = self.closed = self.far_closed = False
        self.out, self.settled, self.sent_at, self.next_out = [], set(), {}, 0
        self.next_in, self.waiting, self.octets = 0, {}, b""
        self.echo, self.echo_at = b"\0\0\0\0", 0.0

    # --- out

    def write(self, octets):
        for at in range(0, len(octets), PAYLOAD_OCTETS):
            self.out.append(octets[at:at + PAYLOAD_OCTETS])

    def close(self):
        self.closing = True

    def keep_going(self):
        """Sends what is due."""
        now = time.monotonic()
        first = next((number for number in range(self.next_out, len(self.out)) if number not in self.settled), len(self.out))
        self.next_out = first
        # Until it is heard, one TPDU opens the connection.
        for number in range(first, min(len(self.out), first + (IN_FLIGHT if self.heard else 1))):
            if number not in self.settled and now - self.sent_at.get(number, -1) >= AGAIN_SECONDS:
                self.sent_at[number] = now
                self.send([self.data(number)])
        if self.closing and not self.closed and first == len(self.out) and now - self.sent_at.get("end", -1) >= AGAIN_SECONDS:
            self.sent_at["end"] = now
            self.send([(TPDU, self.long(AFIN, len(self.out)))])

    def long(self, flags, number, stamp=None, body=b""):
        stamp = struct.pack(">I", time.monotonic_ns() // 1000 % 2**32) if stamp is None else stamp
        begun = struct.pack(">HHI", self.port, self.service, number) + stamp + struct.pack(">H", self.mode << 12 | flags)
        return begun + struct.pack(">H", crc16(begun)) + body

    def data(self, number):
        opens = ASYN if number == 0 and not self.heard else 0
        if self.wire == 1:
            return TPDU, self.long(opens, number, body=self.out[number])
        sent = (number % 2**24).to_bytes(3, "big") + (time.monotonic_ns() // 16_000 % 2**24).to_bytes(3, "big")
        if self.heard:
            return 0x40 | 0x10 | 0x08, struct.pack(">H", self.name) + sent + self.out[number]
        return 0x60 | (0x10 if opens else 0) | 0x08 | self.mode, struct.pack(">HH", self.port, self.service) + sent + self.out[number]

    def acknowledge(self, end=False):
        """A cumulative MACK, or AFINACK."""
        hold = min(int((time.monotonic() - self.echo_at) * 1e6 / 16), 0xFFFF)
        beyond, report, now = sorted(self.waiting)[:64], b"", time.monotonic()
        # Without these a peer that finds its rate, and is sent no path acks, learns too little to find much.
        if now - self.reported_at >= REPORT_SECONDS:
            self.reported_at = now
            report = struct.pack(">II", self.arrived() % 2**32, int(now * 1e6) % 2**32)
        if self.wire == 1:
            numbers = b"".join(struct.pack(">I", number) for number in beyond)
            flags = BLOCK_BIT | MACK_BIT | (AFIN if end else 0) | (REPORT_BIT if report else 0)
            return TPDU, self.long(flags, self.next_in, self.echo, struct.pack(">HH", WINDOW, hold) + report + numbers)
        return MACK, (bytes([0x80 | (0x20 if end else 0) | (0x04 if report else 0)]) + struct.pack(">H", self.name) + (self.next_in % 2**24).to_bytes(3, "big")
                      + self.echo[-3:] + struct.pack(">HH", WINDOW, hold) + report + ranges(self.next_in, beyond))

    # --- in

    def take(self, frames):
        """Frames of one datagram, of which those for this connection count."""
        begun = self.next_in, len(self.waiting)
        answer = end = False
        for kind, body in frames:
            if kind == TPDU:
                data, last = self.take_long(body)
            elif kind in (MACK, NACK):
                data, last = self.take_short_mack(kind, body), False
            elif kind == UNKNOWN_NAME and body[1:3] == struct.pack(">H", self.name):
                raise Ended("the peer has no connection of this name")
            elif kind & 0xE0 == 0x40:
                data, last = self.take_short_data(kind, body), False
            else:
                continue
            answer, end = answer or data or last, end or last
        while self.next_in in self.waiting:
            self.octets += self.waiting.pop(self.next_in)
            self.next_in += 1
        if answer or begun != (self.next_in, len(self.waiting)):
            self.far_closed = self.far_closed or end
            self.send([self.acknowledge(self.far_closed)])

    def take_data(self, number, stamp, payload):
        self.heard, self.echo, self.echo_at = True, stamp, time.monotonic()
        if number >= self.next_in:
            self.waiting[number] = payload
        return True

    def settle(self, upto, beyond, end):
        self.heard = True
        if upto > len(self.out):
            raise Malformed("a MACK of what was never sent")
        self.settled.update(range(self.next_out, upto))
        self.settled.update(beyond)
        self.closed = self.closed or end

    def take_long(self, body):
        """Whether it is to be acknowledged, and whether the peer ends here."""
        source, to, number, stamp, flags, check = struct.unpack(">HHI4sHH", body[:16])
        if crc16(body[:14]) != check:
            raise Malformed("header check of a TPDU")
        if (to, source) != (self.port, self.service):
            return False, False
        rest, kind = body[16:], flags & 0xFFF
        if kind & (FEC_BIT | NACK_BIT):
            raise Malformed("FEC or a NACK, where the tag vouches and nothing is lost")
        if kind & CRC_BIT:
            rest, check = rest[:-4], rest[-4:]
            if check != crc32(body[:-4]):
                raise Malformed("CRC-32 of a TPDU")
        if kind & RST:
            raise Ended("RST")
        if kind & MACK_BIT:
            if not kind & BLOCK_BIT:
                self.settle(0, [number, *struct.unpack(f">{len(rest) // 4}I", rest)], kind & AFIN)
                return False, False
            words = rest[4 + 4 * bool(kind & CHANNEL_BIT) + 8 * bool(kind & REPORT_BIT):]
            self.settle(number, struct.unpack(f">{len(words) // 4}I", words), kind & AFIN)
            return False, False
        if self.wire == 2:
            # The short form echoes a time of the long one as it would have come in the short one.
            stamp = struct.pack(">I", struct.unpack(">I", stamp)[0] >> 4)
        if kind & AFIN:
            self.echo, self.echo_at, self.heard = stamp, time.monotonic(), True
            return True, number == self.next_in
        return self.take_data(number, stamp, rest), False

    def take_short_data(self, kind, body):
        if kind & 0x10 or body[:2] != struct.pack(">H", self.name):
            return False
        if not kind & 0x08:
            raise Malformed("data without the time")
        number = near(int.from_bytes(body[2:5], "big"), self.next_in)
        return self.take_data(number, b"\0" + body[5:8], body[8:])

    def take_short_mack(self, kind, body):
        flags, name = struct.unpack(">BH", body[:3])
        if flags & 0x80 or name != self.name:
            return False
        upto = near(int.from_bytes(body[3:6], "big"), self.next_out)
        if kind == MACK:
            skip = 13 + 4 * bool(flags & 0x08) + 8 * bool(flags & 0x04)
            self.settle(upto, read_ranges(upto, body[skip:]), flags & 0x20)
        return False


def ranges(upto, numbers):
    """Ranges of section 11.4, of sorted numbers beyond `upto`."""
    octets, last = b"", None
    runs = []
    for number in reversed(numbers):
        if runs and runs[-1][0] - runs[-1][1] == number:
            runs[-1][1] += 1
        else:
            runs.append([number, 1])
    for largest, count in runs:
        octets += variable(largest - upto if last is None else last - largest - 2) + variable(count - 1)
        last = largest - count + 1
    return octets


def read_ranges(upto, octets):
    numbers, low = [], None
    while octets:
        gap, octets = read_variable(octets)
        count, octets = read_variable(octets)
        largest = upto + gap if low is None else low - gap - 2
        numbers += range(largest - count, largest + 1)
        low = largest - count
    return numbers
