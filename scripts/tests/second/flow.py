"""A stream through a gateway: records of the splice, as their opener (docs/protocol/splice.md, sections 3 to 5)."""

import dataclasses
import os
import struct

OPEN, ACCEPTED, REFUSED, DATA, END, RESET, DELIVERED, MESSAGE, FLOW, FINISHED, STOP = range(1, 12)
CREDIT = 1 << 20
PRESUMED = 16 << 10
REPORT_OCTETS = CREDIT // 4
DATA_OCTETS = 16_384


class Failed(Exception):
    """The flow was refused or reset; the code is its argument."""


def record(kind, body=b""):
    return struct.pack(">BH", kind, len(body)) + body


def opening(flow, attempt, host, port):
    """OPEN for an IPv4 address."""
    fixed = struct.pack(">16sQBBBBHBBIIIIQQQ", flow, attempt, 0, 0, 0, 1, 0, 0, 0, 0, 0, CREDIT, PRESUMED, 0, CREDIT, 0)
    return record(OPEN, fixed + struct.pack(">BH4s", 4, port, bytes(int(part) for part in host.split("."))))


@dataclasses.dataclass
class Stream:
    """One proxied TCP connection over an AeroTP connection of its own."""

    connection: object
    host: str
    port: int
    attempt: int

    def __post_init__(self):
        self.answer, self.records, self.told = b"", [], 0
        self.ended_at = self.their_delivered = None
        self.read, self.question, self.said, self.limit = 0, b"", 0, PRESUMED

    def ask(self, octets):
        """Opens the flow; all octets of our direction, and its end, follow as credit allows."""
        self.question = octets
        self.connection.write(opening(os.urandom(16), self.attempt, self.host, self.port))
        self.say()

    def say(self):
        while self.said < min(len(self.question), self.limit):
            piece = self.question[self.said:min(self.said + DATA_OCTETS, self.limit)]
            self.said += len(piece)
            self.connection.write(record(DATA, piece))
            if self.said == len(self.question):
                self.connection.write(record(END, struct.pack(">Q", self.said)))

    def keep_going(self):
        stream = self.connection.octets
        while len(stream) - self.read >= 3:
            kind, length = struct.unpack(">BH", stream[self.read:self.read + 3])
            if len(stream) - self.read < 3 + length:
                break
            self.take(kind, stream[self.read + 3:self.read + 3 + length])
            self.read += 3 + length
        self.say()
        self.connection.keep_going()

    def take(self, kind, body):
        self.records.append(kind)
        if kind in (REFUSED, RESET):
            raise Failed(kind, body[0])
        if kind == ACCEPTED:
            (_, self.limit) = struct.unpack(">QQ", body[:16])
        elif kind == DATA:
            self.answer += body
            if len(self.answer) - self.told >= REPORT_OCTETS:
                self.report()
        elif kind == END:
            (self.ended_at,) = struct.unpack(">Q", body)
            if self.ended_at != len(self.answer):
                raise Failed("octets are missing")
            self.report()
        elif kind == DELIVERED:
            (self.their_delivered, self.limit) = struct.unpack(">QQ", body)

    def report(self):
        """DELIVERED: whoever asked has the octets as soon as they came."""
        self.told = len(self.answer)
        self.connection.write(record(DELIVERED, struct.pack(">QQ", self.told, self.told + CREDIT)))

    def is_over(self):
        """Whether both directions were ended and delivered."""
        return self.ended_at is not None and self.their_delivered == len(self.question)
