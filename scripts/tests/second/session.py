"""A client of sessions: the initiator's end over one UDP socket, written from docs/protocol/session.md alone.

It has one set of keys, calls once, follows no address, searches no packet size and sends no reports. All else that the page asks of
an initiator it does.
"""

import collections
import dataclasses
import os
import random
import select
import socket
import struct
import time

from cryptography.exceptions import InvalidTag

from . import messages, noise
from .checks import crc32, first_check, second_check, unwrap_cookie
from .datagrams import (COOKIE, HEADER_OCTETS, INITIATION, NOTICE, RESPONSE, VERSION, Header, Hello, Malformed, differences, is_data_two,
                       read_header, read_hello)
from .sealing import keys_of

GIVE_UP_SECONDS = 20
REPEAT_SECONDS = 0.25
COOKIE_SECONDS = 0.1
SILENT_SECONDS = 0.075
IP_AND_UDP_OCTETS = 28
DATAGRAM_OCTETS_MAX = 65_535
# Types from here on are the inner machine's; a TPDU in the long form is, too.
INNER = 0x20
# Data that is only these asks for path acks more rarely.
ACKNOWLEDGEMENTS = range(0x20, 0x23)


class Refused(Exception):
    """A call that came to nothing."""


@dataclasses.dataclass(frozen=True)
class Security:
    """One of `noise`, `preset` and `none`, with what each needs."""

    kind: str
    secret: bytes = None
    responder: bytes = None
    psk: bytes = bytes(noise.KEY_OCTETS)
    label: int = 0

    def addressee(self):
        """Kind and material, which first checks and cookies are made with."""
        material = {"noise": self.responder, "preset": self.psk, "none": struct.pack(">I", self.label)}[self.kind]
        return self.kind.encode() + material


class Call:
    """One initiation, and what reads the answers to it."""

    def __init__(self, security, hello):
        self.security, self.hello = security, hello
        self.index = 0
        while self.index == 0:
            self.index = int.from_bytes(os.urandom(4), "big")
        prologue = b"fulmar session 1" + struct.pack(">I", self.index)
        if security.kind == "none":
            self.handshake = None
            body = hello.encode() + crc32(hello.encode())
        else:
            pattern = {"noise": "IKpsk2", "preset": "NNpsk0"}[security.kind]
            self.handshake = noise.Initiator(pattern, prologue, os.urandom(noise.KEY_OCTETS), security.secret, security.responder, security.psk)
            body = self.handshake.write(hello.encode())
        self.octets = Header(INITIATION, 0, self.index).encode() + body
        self.first = first_check(security.addressee(), self.octets)
        self.cookie = None

    def datagram(self):
        """The initiation as it is sent now: the second check is zero without a cookie."""
        return self.octets + self.first + (second_check(self.cookie, self.first) if self.cookie else bytes(16))

    def take_cookie(self, content):
        self.cookie = unwrap_cookie(self.security.addressee(), self.first, content)

    def answered(self, header, content):
        """The responder's hello, and the keys."""
        if self.handshake is None:
            hello, check = content[:-4], content[-4:]
            if crc32(hello) != check:
                raise Malformed("CRC-32 of a response")
            secrets = None, None
        else:
            hello, *secrets = self.handshake.read(content)
        theirs = read_hello(hello)
        return theirs, keys_of(self.security.kind, (self.hello, theirs), (header.word, self.index), secrets)


class Client:
    """A session with the gateway at `address`. `heard` collects frames of the session, `inner` takes those of the inner machine."""

    def __init__(self, address, security, capabilities):
        self.security, self.capabilities = security, capabilities
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.connect(address)
        self.boot = os.urandom(8)
        self.keys = self.theirs = self.confirmed = None
        self.cookie_at = -COOKIE_SECONDS
        # Nobody vouches for versions and notices: they end nothing.
        self.cookies, self.notices, self.versions, self.dropped = 0, [], [], collections.Counter()
        self.heard, self.inner = [], lambda frames: None
        # Octets as they came, for whoever wants to repeat or damage them.
        self.raw_in, self.raw_out = [], []
        self.last_sent, self.tpdu_unanswered = 0.0, None
        self.arrived_octets = 0
        # Of data that asks for a path ack: place, counter and time of the newest, when the last path ack left, and how many were answered at once.
        self.newest, self.acked_at, self.at_once = None, -1.0, 0

    def hello(self):
        # Microseconds since 1970: larger in each initiation, also after a restart.
        return Hello(self.boot, time.time_ns() // 1000, self.capabilities)

    def call(self, seconds=GIVE_UP_SECONDS):
        """Keys, after a response; raises `Refused`."""
        call = Call(self.security, self.hello())
        ends = time.monotonic() + seconds
        while (now := time.monotonic()) < ends:
            self.transmit(call.datagram())
            repeat = now + REPEAT_SECONDS * random.uniform(0.75, 1)
            while (datagram := self.datagram_before(min(repeat, ends))) is not None:
                if self.take_answer(call, datagram):
                    self.confirm()
                    return self.keys
        raise Refused(f"no answer in {seconds} s; notices {self.notices}, dropped {dict(self.dropped)}")

    def take_answer(self, call, datagram):
        """Whether the datagram was the response."""
        try:
            if is_data_two(datagram):
                raise Malformed("data before keys")
            header, content = read_header(datagram), datagram[HEADER_OCTETS:]
            if header.version != 1 and header.kind != VERSION:
                raise Malformed("another version")
            if header.kind == NOTICE:
                if header.index == call.index and content == call.first:
                    self.notices.append(header.word >> 24)
                return False
            if header.index != call.index:
                raise Malformed("an answer to another call")
            if header.kind == RESPONSE:
                self.theirs, keys = call.answered(header, content)
                if wrong := differences(call.hello, self.theirs):
                    raise Refused(f"mismatch: {wrong}")
                self.keys = keys
                return True
            if header.kind == COOKIE:
                self.cookies += 1
                call.take_cookie(content)
                if (now := time.monotonic()) - self.cookie_at >= COOKIE_SECONDS:
                    self.cookie_at = now
                    self.transmit(call.datagram())
            if header.kind == VERSION:
                self.versions.append(header.version)
        except (Malformed, InvalidTag) as why:
            self.drop(why)
        return False

    def confirm(self):
        """Something under the new keys, until something is heard under them."""
        ends = time.monotonic() + GIVE_UP_SECONDS
        while time.monotonic() < ends:
            self.send(messages.PROBE, messages.probe(0, self.microseconds()))
            if self.run(REPEAT_SECONDS, until=lambda: self.confirmed):
                return
        raise Refused("nothing came under the new keys")

    def microseconds(self):
        return time.monotonic_ns() // 1000

    def send(self, kind, body=b""):
        """One message, or frame of the inner machine."""
        self.send_frames([(kind, body)])

    def send_frames(self, frames):
        """Frames in one datagram; in wire 1 there is one, and it is a message."""
        self.transmit(self.keys.seal(messages.join(frames)))

    def transmit(self, datagram):
        self.raw_out.append(datagram)
        self.last_sent = time.monotonic()
        try:
            self.socket.send(datagram)
        except ConnectionRefusedError:
            self.drop("refused by the system")

    def drop(self, why):
        self.dropped[str(why) or type(why).__name__] += 1

    def datagram_before(self, when):
        """The next datagram, or None when the time is over."""
        while True:
            ready, _, _ = select.select([self.socket], [], [], max(0, when - time.monotonic()))
            if not ready:
                return None
            try:
                datagram = self.socket.recv(DATAGRAM_OCTETS_MAX)
            except ConnectionRefusedError:
                continue
            self.raw_in.append(datagram)
            return datagram

    def run(self, seconds, until=lambda: False, every=lambda: None):
        """Does what a session has to do until something is so; says whether it is. `every` is called at least each 10 ms."""
        ends = time.monotonic() + seconds
        while not until():
            now = time.monotonic()
            if now >= ends:
                return False
            every()
            self.in_time(now)
            datagram = self.datagram_before(min(ends, now + 0.01))
            if datagram is not None:
                self.take(datagram)
        return True

    def take(self, datagram):
        try:
            place, counter, content = self.keys.open(datagram)
        except (Malformed, InvalidTag) as why:
            self.drop(why)
            return
        self.confirmed = True
        self.arrived_octets += len(datagram) + IP_AND_UDP_OCTETS
        frames = messages.split(content) if self.keys.wire == 2 else [(content[0], content[1:])] if content else []
        kinds = {kind for kind, _ in frames}
        inner = any(kind == messages.TPDU or kind >= INNER for kind in kinds)
        if inner:
            self.tpdu_unanswered = self.tpdu_unanswered or time.monotonic()
        probes = [body for kind, body in frames if kind == messages.PROBE]
        if probes:
            # Of several probes in one datagram one is answered.
            self.send(messages.PROBE_REPLY, messages.probe(*messages.read_probe(probes[-1])))
        self.heard += frames
        if inner:
            self.ask_for_path_ack(place, counter, kinds)
            self.inner(frames)

    def in_time(self, now):
        if self.tpdu_unanswered and self.last_sent > self.tpdu_unanswered:
            self.tpdu_unanswered = None
        if self.tpdu_unanswered and now - max(self.tpdu_unanswered, self.last_sent) > SILENT_SECONDS:
            self.tpdu_unanswered = None
            self.send(messages.HEARTBEAT)
        if self.newest and now - self.acked_at >= (0.1 if self.newest[3] else 0.01):
            self.send_path_ack(now)

    def ask_for_path_ack(self, place, counter, kinds):
        now = time.monotonic()
        if self.keys.wire != 2 or self.theirs.says("path-ack") != "1" or self.capabilities.get("path-ack", (None,))[0] not in ("1", "sends"):
            return
        only_acknowledgements = all(kind in ACKNOWLEDGEMENTS or kind < INNER and kind != messages.TPDU for kind in kinds)
        if now - self.acked_at >= 1:
            self.at_once = 32
        self.newest = place, counter, now, only_acknowledgements
        if self.at_once and not only_acknowledgements:
            self.at_once -= 1
            self.send_path_ack(now)

    def send_path_ack(self, now):
        place, counter, when, _ = self.newest
        self.newest, self.acked_at = None, now
        self.send(messages.PATH_ACK, messages.path_ack(place, counter, now - when, now, self.arrived_octets))

    def close(self):
        if self.keys is not None:
            self.send(messages.CLOSE)
        self.socket.close()
