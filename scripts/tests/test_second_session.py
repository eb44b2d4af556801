"""A client that knows docs/protocol alone, and shares no line with ours, speaks with a live gateway.

Method: `second` is written from the pages; no page, no feature. What an implementation has to guess is a defect of the page. Its
packages (scripts/tests/second/requirements.txt) come from PyPI, held to their hashes.
"""

import contextlib
import pathlib
import re
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

from program import ROOT, build, lacks

REQUIREMENTS = ROOT / "scripts/tests/second/requirements.txt"
installed = subprocess.run([ROOT / "scripts/python-packages", REQUIREMENTS], capture_output=True, text=True)
if installed.returncode:
    raise lacks(f"the packages of {REQUIREMENTS} are not to be had: {installed.stderr[-300:]}")
sys.path.insert(1, installed.stdout.strip())

from second import checks, connection, datagrams, flow, live, messages, noise, sealing, session

PAGE = (ROOT / "docs/protocol/session.md").read_text()
# Longer than anything here takes, by far: it turns a hang into a failure.
PATIENCE = 30
SILENCE = 0.5
RELIABLE, NACK_MACK = 4, 6
SERVICE = 7070
WIRE_TWO = {"wire-2": ("1", False)}
AES = {"cipher": ("aes-256-gcm", False)}
PATTERN = bytes(range(251)) * 1600


def example(name):
    """The octets of one of the page's examples."""
    block = PAGE.partition(f"Example: {name}\n")[2].partition("```text\n")[2].partition("```")[0]
    octets = b""
    for line in block.splitlines():
        line = line.partition("|")[0].strip()
        many = re.fullmatch(r"(\d+) x (\w\w)", line)
        octets += bytes.fromhex(many[2]) * int(many[1]) if many else bytes.fromhex(line)
    return octets


class Examples(unittest.TestCase):
    """What the page prints."""

    index, theirs = 0x96F4A86C, 0x6120C5D2

    def keys(self, wire=1, ours=index, theirs=theirs):
        return sealing.Keys(wire, theirs, ours, sealing.Clear(None), sealing.Clear(None))

    def test_initiation(self):
        hello = datagrams.Hello(bytes.fromhex("389344441a95b88e"), 2**40 + 1, {"splice": ("1", True)}).encode()
        octets = datagrams.Header(datagrams.INITIATION, 0, self.index).encode() + hello + checks.crc32(hello)
        first = checks.first_check(session.Security("none", label=5).addressee(), octets)
        self.assertEqual(octets + first + bytes(16), example("initiation"))

    def test_response(self):
        octets = example("response")
        header = datagrams.read_header(octets)
        self.assertEqual(header, datagrams.Header(datagrams.RESPONSE, self.index, self.theirs))
        self.assertEqual(checks.crc32(octets[12:-4]), octets[-4:])
        hello = datagrams.read_hello(octets[12:-4])
        self.assertEqual(hello, datagrams.Hello(bytes.fromhex("a260829302011af2"), 0, {"splice": ("1", True)}))

    def test_probes(self):
        self.assertEqual(self.keys().seal(bytes([messages.PROBE]) + messages.probe(1, 2000)), example("probe"))
        ours = self.keys()
        self.assertEqual(ours.open(example("probe of the responder")), (0, 0, bytes([messages.PROBE]) + messages.probe(1, 3000)))
        self.assertEqual(ours.open(example("probe reply")), (0, 1, bytes([messages.PROBE_REPLY]) + messages.probe(1, 2000)))

    def test_wire_two(self):
        keys = self.keys(2, theirs=0xD9932BC5)
        sent = [(messages.PROBE, messages.probe(1, 2000)), (messages.PROBE_REPLY, messages.probe(1, 2000)),
                (0x58, bytes.fromhex("0e8600 03e800186a") + b"ping")]
        for frame, name in zip(sent, ("probe in wire 2", "probe reply in wire 2", "data in wire 2")):
            self.assertEqual(keys.seal(messages.join([frame])), example(name))

    def test_notice(self):
        header = datagrams.read_header(example("notice"))
        self.assertEqual((header.kind, header.index, header.word), (datagrams.NOTICE, self.index, 1 << 24))
        self.assertEqual(example("notice")[12:], example("initiation")[-32:-16])

    def test_xchacha(self):
        """The subkey of draft-irtf-cfrg-xchacha, section 2.2.1."""
        subkey = checks.hchacha20(bytes(range(32)), bytes.fromhex("000000090000004a0000000031415927"))
        self.assertEqual(subkey.hex(), "82413b4227b27bfed30e42508a877d73a0f9e4d58a74a853c12ec41326d3ecdc")

    def test_ranges(self):
        """Examples of section 11.6 of AeroTP's page."""
        self.assertEqual(connection.ranges(1001, [1002, 1004, 1005, 1006]).hex(), "05020000")
        self.assertEqual(connection.read_ranges(1001, bytes.fromhex("05020000")), [1004, 1005, 1006, 1002])


class Live(unittest.TestCase):
    """Calls at a gateway. It finds its rate towards us, so it wants path acks where we say that we send them."""

    kind = "noise"
    peer = ""

    @classmethod
    def setUpClass(cls):
        build()

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.echo = live.Echo()
        self.addCleanup(self.echo.close)
        self.gateway = self.start(self.kind, self.peer)
        self.flows = 0

    def start(self, kind, peer=""):
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        gateway = live.Gateway(folder, kind, self.echo.port, peer)
        self.addCleanup(gateway.end)
        return gateway

    def client(self, capabilities, gateway=None, security=None):
        gateway = gateway or self.gateway
        client = session.Client(gateway.address, security or gateway.ours, capabilities)
        self.addCleanup(client.socket.close)
        return client

    def call(self, capabilities, gateway=None):
        client = self.client(capabilities, gateway)
        client.call(PATIENCE)
        return client

    def fetch(self, client, octets=PATTERN, mode=RELIABLE, send=None):
        """Octets through a flow to the echo and back."""
        self.flows += 1
        joint = connection.Connection(send or client.send_frames, client.keys.wire, mode, 50_080 + self.flows, SERVICE,
                                      lambda: client.arrived_octets)
        # The count of starts is larger with each start: seconds since 1970.
        stream = flow.Stream(joint, "127.0.0.1", self.echo.port, int(time.time()) << 32 | self.flows)
        client.inner = joint.take
        stream.ask(octets)
        self.assertTrue(client.run(PATIENCE, stream.is_over, stream.keep_going), f"records {stream.records[-5:]}, dropped {client.dropped}")
        self.assertEqual(stream.answer, octets)
        joint.close()
        self.assertTrue(client.run(PATIENCE, lambda: joint.closed and joint.far_closed, stream.keep_going), "an orderly close")
        return stream

    def assert_answered(self, client, number, times=1):
        """Probes of this number are answered so often, and no more often."""
        def answers():
            return sum(kind == messages.PROBE_REPLY and body == messages.probe(number, 7) for kind, body in client.heard)
        client.run(PATIENCE, until=lambda: answers() >= times)
        client.run(SILENCE)
        self.assertEqual(answers(), times)

    def assert_lives(self, client, number, padding=0):
        client.send(messages.PROBE, messages.probe(number, 7, padding))
        self.assert_answered(client, number)

    def wait_for(self, event, client, gateway=None, found=lambda lines: lines):
        gateway = gateway or self.gateway
        client.run(PATIENCE, until=lambda: found(gateway.events(event)))
        self.assertTrue(found(gateway.events(event)), f"no {event} in the log: {gateway.log.read_text()[-2000:]}")

    def answers(self, datagrams_out, at_least=1, silence=SILENCE):
        """Datagrams that come back to a port of its own: so many, and whatever comes until nothing does."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as port:
            port.connect(self.gateway.address)
            for datagram in datagrams_out:
                port.send(datagram)
            found = []
            with contextlib.suppress(TimeoutError):
                while True:
                    port.settimeout(PATIENCE if len(found) < at_least else silence)
                    found.append(port.recv(2048))
            return found


class Flows(Live):
    def test_octets_go_there_and_back_under_every_security_wire_and_cipher(self):
        for kind in ("noise", "preset", "none"):
            gateway = self.start(kind)
            for wire, wanted in ((1, {}), (2, WIRE_TWO)):
                for cipher in ({}, AES) if kind != "none" else ({},):
                    with self.subTest(security=kind, wire=wire, cipher=cipher):
                        client = self.call({**wanted, **cipher, "path-ack": ("sends", False)}, gateway)
                        self.assertEqual(client.keys.wire, wire)
                        expected = sealing.Clear if kind == "none" else sealing.ChaCha
                        if cipher and client.theirs.says("cipher"):
                            expected = sealing.Aes
                        self.assertIs(type(client.keys.sending), expected)
                        self.fetch(client)
                        self.fetch(client, mode=NACK_MACK)
                        self.assertEqual(client.dropped, {}, "on the loopback nothing is to be dropped")
                        client.close()

    def test_a_tpdu_may_come_in_fragments(self):
        client = self.call(WIRE_TWO)
        numbers = iter(range(2**32 - 2, 2**33))

        def in_pieces(frames):
            for piece in messages.fragments(next(numbers) % 2**32, messages.join(frames), 3):
                client.send(messages.FRAGMENT, piece)

        self.fetch(client, b"in pieces" * 400, send=in_pieces)

    def test_path_acks_say_what_arrived(self):
        client = self.call({**WIRE_TWO, "path-ack": ("1", False)})
        self.fetch(client)
        acks = [messages.read_path_ack(body) for kind, body in client.heard if kind == messages.PATH_ACK]
        self.assertGreater(len(acks), 1)
        sent = sum(len(datagram) + session.IP_AND_UDP_OCTETS for datagram in client.raw_out)
        for earlier, later in zip(acks, acks[1:]):
            self.assertLessEqual(earlier[1], later[1], "largest counter")
            self.assertLess(earlier[3], later[3], "clock")
            self.assertLess(earlier[4], later[4], "octets")
        place, largest, _, _, octets, marks = acks[-1]
        self.assertEqual((place, marks), (0, 0))
        self.assertLess(largest, client.keys.sent)
        self.assertLessEqual(octets, sent)

    def test_path_acks_go_to_whom_they_are_wanted_by_alone(self):
        with_rate = self.start("noise", 'rate = "50mbit"\n')
        client = self.call({**WIRE_TWO, "path-ack": ("sends", False)}, with_rate)
        self.assertEqual(client.theirs.says("path-ack"), "sends")
        self.fetch(client)
        self.assertNotIn(messages.PATH_ACK, {kind for kind, _ in client.heard}, "we did not say that we find a rate")


class Datagrams(Live):
    """What becomes of one datagram."""

    def test_a_replay_is_not_answered(self):
        for wire, wanted in ((1, {}), (2, WIRE_TWO)):
            with self.subTest(wire=wire):
                client = self.call(wanted)
                datagram = client.keys.seal(bytes([messages.PROBE]) + messages.probe(1000, 7))
                for _ in range(5):
                    client.transmit(datagram)
                self.assert_answered(client, 1000)
                client.transmit(datagram)
                self.assert_lives(client, 1001)
                self.assert_answered(client, 1000)

    def test_a_damaged_datagram_is_not_answered_and_does_not_use_its_counter_up(self):
        for wire, wanted in ((1, {}), (2, WIRE_TWO)):
            with self.subTest(wire=wire):
                client = self.call(wanted)
                whole = client.keys.seal(bytes([messages.PROBE]) + messages.probe(2000, 7))
                for octet in (0, 4, *range(7, len(whole))):
                    damaged = bytearray(whole)
                    damaged[octet] ^= 1
                    client.transmit(bytes(damaged))
                for length in range(len(whole)):
                    client.transmit(whole[:length])
                # What comes after it is answered, so it was looked at.
                self.assert_lives(client, 2001)
                self.assert_answered(client, 2000, 0)
                client.transmit(whole)
                self.assert_answered(client, 2000)

    def test_we_refuse_what_is_damaged_or_came_before(self):
        client = self.call(WIRE_TWO)
        self.assert_lives(client, 3000)
        client.dropped.clear()
        newest = client.raw_in[-1]
        client.take(newest)
        client.take(newest[:-1] + bytes([newest[-1] ^ 1]))
        header = datagrams.read_header_two(newest)
        forged = datagrams.HeaderTwo(0, header.index, header.counter + 1000).encode() + newest[8:]
        client.take(forged)
        self.assertEqual(client.dropped, {"a counter that was seen": 2, "InvalidTag": 1})

    def test_data_in_the_other_wire_is_dropped(self):
        client = self.call(WIRE_TWO)
        keys = client.keys
        other = sealing.Keys(1, keys.theirs, keys.ours, keys.sending, keys.receiving)
        other.counters[0] = 900
        client.transmit(other.seal(bytes([messages.PROBE]) + messages.probe(4000, 7)))
        self.assert_lives(client, 4001)
        self.assert_answered(client, 4000, 0)

    def test_without_further_paths_what_comes_in_another_place_is_not_answered(self):
        client = self.call(WIRE_TWO)
        for place in range(datagrams.PLACES):
            client.transmit(client.keys.seal(bytes([messages.PROBE]) + messages.probe(5000, 7), place))
        self.assert_answered(client, 5000, 1)

    def test_packets_grow_to_what_the_path_carries(self):
        client = self.call(WIRE_TWO)
        self.wait_for("path_mtu", client, found=lambda lines: any(line["packet_bytes"] == 1500 for line in lines))
        sizes = {len(datagram) + session.IP_AND_UDP_OCTETS for datagram in client.raw_in}
        self.assertIn(1500, sizes, "a probe of that size came, and we answered it")
        self.assert_lives(client, messages.SIZE_PROBE | 6000, 1400)

    def test_close_ends_the_session(self):
        client = self.call(WIRE_TWO)
        self.wait_for("peer_up", client)
        client.send(messages.CLOSE)
        self.wait_for("peer_closed", client)
        client.send(messages.PROBE, messages.probe(7000, 7))
        self.assert_answered(client, 7000, 0)


class Calls(Live):
    """Handshakes, and what is no handshake."""

    def test_a_repeated_initiation_has_the_same_response(self):
        client = self.client(WIRE_TWO)
        call = session.Call(client.security, client.hello())
        found = self.answers([call.datagram()] * 3, 3)
        self.assertEqual([len(datagram) for datagram in found], [316] * 3)
        self.assertEqual(len(set(found)), 1)

    def test_no_word_leaves_under_keys_that_are_not_confirmed(self):
        client = self.client(WIRE_TWO)
        call = session.Call(client.security, client.hello())
        found = self.answers([call.datagram()], silence=2)
        self.assertEqual({datagram[0] for datagram in found}, {0x12}, "responses alone")

    def test_new_keys_replace_those_in_use_and_old_ones_are_taken_for_a_while(self):
        client = self.call(WIRE_TWO)
        old, port = client.keys, client.socket.getsockname()
        client.keys, client.confirmed = None, None
        client.call(PATIENCE)
        self.assertNotEqual(old.theirs, client.keys.theirs)
        self.assertEqual(client.socket.getsockname(), port)
        self.assert_lives(client, 1)
        client.transmit(old.seal(bytes([messages.PROBE]) + messages.probe(2, 7)))
        self.assert_answered(client, 2)
        self.fetch(client)

    def test_a_recorded_initiation_comes_to_nothing(self):
        client = self.call(WIRE_TWO)
        first, response = client.raw_out[0], next(one for one in client.raw_in if one[0] == 0x12)
        self.assertEqual(self.answers([first]), [response], "a repetition of the one answered last, whoever sends it")
        client.keys = None
        client.call(PATIENCE)
        (notice,) = self.answers([first])
        header = datagrams.read_header(notice)
        self.assertEqual((header.kind, header.word >> 24, notice[12:]), (datagrams.NOTICE, 4, first[-32:-16]), "superseded")
        self.assert_lives(client, 1)

    def test_a_damaged_initiation_is_not_answered_by_a_response(self):
        client = self.client(WIRE_TWO)
        call = session.Call(client.security, client.hello())
        whole = call.datagram()
        for octet in (0, 2, 5, 20, 60, 200, 370):
            found = self.answers([whole[:octet] + bytes([whole[octet] ^ 1]) + whole[octet + 1:]], 0, 0.1)
            self.assertNotIn(datagrams.RESPONSE, {one[0] & 0xF for one in found}, f"octet {octet}")
        self.assertEqual([one[0] for one in self.answers([whole])], [0x12])

    def test_a_capability_that_must_agree_and_does_not_is_told_to_both(self):
        client = self.client({**WIRE_TWO, "second": ("1", True)})
        with self.assertRaisesRegex(session.Refused, r"mismatch: {'second': \('1', None\)}"):
            client.call(PATIENCE)
        other = self.call(WIRE_TWO)
        self.wait_for("peer_mismatch", other)

    def test_a_wrong_call_hears_why(self):
        hello = datagrams.Hello(bytes(8), 1, {})
        ours = self.gateway.ours
        stranger = bytes(31) + b"\x40"
        notices = {
            "wrong key": (1, session.Security("noise", ours.secret, noise.public(stranger)), hello),
            "unknown caller": (2, session.Security("noise", stranger, ours.responder), hello),
            "other security": (3, session.Security("none", label=0), hello),
            "superseded": (4, ours, datagrams.Hello(bytes(8), 0, {})),
        }
        for name, (number, security, said) in notices.items():
            with self.subTest(name):
                call = session.Call(security, said)
                (notice,) = self.answers([call.datagram()])
                header = datagrams.read_header(notice)
                self.assertEqual((header.kind, header.index, header.word >> 24, notice[12:]), (datagrams.NOTICE, call.index, number, call.first))

    def test_data_for_no_session_hears_so(self):
        data = datagrams.HeaderTwo(3, 0x01020304, 0x050607).encode() + bytes(24)
        (notice,) = self.answers([data])
        header = datagrams.read_header(notice)
        self.assertEqual((header.kind, header.index, header.word >> 24, notice[12:].hex()), (datagrams.NOTICE, 0x01020304, 5, "2b050607"))

    def test_another_version_is_answered_by_ours(self):
        for version in (0, 5):
            with self.subTest(version):
                (answer,) = self.answers([datagrams.Header(datagrams.INITIATION, 0, 77, version=version).encode()])
                self.assertEqual(datagrams.read_header(answer), datagrams.Header(datagrams.VERSION, 77, 0))

    def test_early_data_is_for_those_who_are_set_to_take_it(self):
        """The gateway is not, so nobody answers."""
        ours = self.gateway.ours
        both = noise.shared(ours.secret, ours.responder) + bytes(32) + noise.public(ours.secret) + ours.responder
        root = checks.derive("fulmar 2026-11-23 session early root of public keys", both)
        (index,) = struct.unpack(">I", checks.derive("fulmar 2026-11-21 session early id", root)[:4])
        salt = struct.pack(">Q", time.time_ns() // 1000) + bytes(16)
        cipher = sealing.ChaCha20Poly1305(checks.derive("fulmar 2026-11-21 session early data", root + salt))
        sealed = cipher.encrypt(bytes(12), bytes([messages.TPDU]) + b"early", None)
        self.assertEqual(self.answers([datagrams.Header(datagrams.EARLY, index, 0).encode() + salt + sealed], 0), [])


class Load(Live):
    """A gateway that is called too often."""

    def test_a_caller_shows_its_address_by_a_cookie(self):
        for kind in ("noise", "preset", "none"):
            with self.subTest(kind):
                self.gateway = self.start(kind)
                hello = datagrams.Hello(bytes(8), time.time_ns() // 1000, WIRE_TWO)
                flood = session.Call(self.gateway.ours, hello).datagram()
                client = self.client(WIRE_TWO)
                with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as port:
                    port.connect(self.gateway.address)
                    for _ in range(400):
                        port.send(flood)
                    client.call(PATIENCE)
                self.assertGreater(client.cookies, 0, "the gateway was not under load")
                self.assertTrue(any(datagram[0] & 0xF == datagrams.INITIATION and datagram[-16:] != bytes(16) for datagram in client.raw_out))
                self.fetch(client, b"after the cookie")

    def test_a_second_check_that_is_made_up_helps_nobody(self):
        hello = datagrams.Hello(bytes(8), time.time_ns() // 1000, WIRE_TWO)
        flood = session.Call(self.gateway.ours, hello)
        found = self.answers([flood.datagram()] * 400 + [flood.octets + flood.first + b"made up by us..."] * 20, 100)
        kinds = [datagrams.read_header(one).kind for one in found]
        self.assertIn(datagrams.COOKIE, kinds)
        self.assertLessEqual(kinds.count(datagrams.RESPONSE), 100, "those from before the load")
        self.assertEqual(set(kinds), {datagrams.COOKIE, datagrams.RESPONSE})


if __name__ == "__main__":
    unittest.main()
