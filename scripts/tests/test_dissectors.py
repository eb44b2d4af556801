"""Wireshark's dissectors of our wire formats show what our codecs read, notice damage, and survive any octets.

Method: the samples in scripts/tests/wire are octets that the codecs wrote, with the fields that they read in them (Rust tests hold
them to that, and to having each kind). They go through tshark in captures of link type 252, whose records name their dissector.
"""

import json
import os
import pathlib
import random
import re
import shlex
import shutil
import struct
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLUGIN = ROOT / "packaging/wireshark/fulmar.lua"
SAMPLES = ROOT / "scripts/tests/wire"
GUIDE = (ROOT / "docs/guide/wireshark.md").read_text()
TSHARK = shutil.which("tshark")
CI = os.environ.get("CI") == "true"
# Longer than anything here takes, by far: it turns a hang into a failure.
PATIENCE = 120
EXPORTED_PDU, RAW_IP = 252, 101
SEED = 20_261_122
# Fields that the dissectors show and no codec tells: raw check sequences, lengths, and fields derived from them.
BESIDE = {"fulmar.aerotp.hec", "fulmar.aerotp.crc", "fulmar.aerotp.fec.code", "fulmar.link.check", "fulmar.slacp.check",
          "fulmar.slacp.zero", "fulmar.lt_tcp.offset", "fulmar.lt_tcp.flags", "fulmar.lt_tcp.checksum", "fulmar.network.shape",
          "fulmar.network.zero", "fulmar.network.checksum", "fulmar.splice.goal", "fulmar.splice.flags", "fulmar.splice.flags.reserved",
          "fulmar.splice.gateway_length", "fulmar.splice.ignored", "fulmar.session.hec", "fulmar.session.crc", "fulmar.session.hello.padding",
          "fulmar.session.zero", "fulmar.transfer.flags"}
NOTES = ("fulmar.header_check_failed", "fulmar.payload_check_failed", "fulmar.truncated", "fulmar.malformed", "fulmar.unknown",
         "fulmar.unknown_version")
# No network header in these samples: the dissector of the carried packet shows its own fields.
CARRIED = {"fulmar.link": "fulmar.network", "fulmar.slacp": "fulmar.network", "fulmar.inner": "fulmar.aerotp",
           "fulmar.session": "fulmar.inner"}
# The short form has the fields of the long one.
SHOWN = {"fulmar.aerotp_short": "fulmar.aerotp"}


def block(kind, body):
    body += bytes(-len(body) % 4)
    return struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)


def capture(path, packets, link_type=EXPORTED_PDU):
    """Writes a pcapng file (draft-ietf-opsawg-pcapng) of `packets`."""
    parts = [block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)),
             block(1, struct.pack("<HHI", link_type, 0, 0))]
    parts += [block(6, struct.pack("<IIIII", 0, 0, at, len(packet), len(packet)) + packet) for at, packet in enumerate(packets)]
    path.write_bytes(b"".join(parts))


def tagged(dissector, octets, source=1, destination=2):
    """A record of an exported PDU: which dissector, between which addresses, the octets."""
    tags = [(12, dissector.encode()), (20, struct.pack(">I", source)), (21, struct.pack(">I", destination)), (0, b"")]
    head = b"".join(struct.pack(">HH", kind, len(value) + -len(value) % 4) + value + bytes(-len(value) % 4) for kind, value in tags)
    return head + octets


def udp(octets, source, destination):
    """An IPv4 packet with a UDP datagram, without checksums."""
    datagram = struct.pack(">HHHH", source, destination, 8 + len(octets), 0) + octets
    return struct.pack(">BBHIBBHII", 0x45, 0, 20 + len(datagram), 0, 64, 17, 0, 0x0A000001, 0x0A000002) + datagram


def hec(octets):
    """CRC-16/M17."""
    check = 0xFFFF
    for octet in octets:
        check ^= octet << 8
        for _ in range(8):
            check = (check << 1 ^ 0x5935 if check & 0x8000 else check << 1) & 0xFFFF
    return check


def data_tpdu(seq, body, mode=4, source=50_000, destination=7_070, asyn=False):
    head = struct.pack(">HHIIBB", source, destination, seq, 0, mode << 4, 2 if asyn else 0)
    return head + struct.pack(">H", hec(head)) + body


def leaves(layers, found):
    """The values of each field, in the order of the packet."""
    for name, value in layers.items():
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, dict):
                found.setdefault(name, [])
                leaves(one, found)
            else:
                found.setdefault(name, []).append({"True": "1", "False": "0"}.get(one, one))
    return found


def run(path, *options, install=None):
    """The output of tshark for a capture, with the plugin given to it or installed by a command."""
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "HOME": home, "XDG_CONFIG_HOME": home, "LC_ALL": "C.UTF-8"}
        if install:
            subprocess.run(["sh", "-ec", install], check=True, cwd=ROOT, env=environment)
        plugin = [] if install else ["-X", f"lua_script:{PLUGIN}"]
        ended = subprocess.run([TSHARK, "-n", *plugin, "-r", path, *options], capture_output=True, text=True, timeout=PATIENCE,
                               env=environment)
    said = [line for line in ended.stderr.splitlines() if line and "Running as user" not in line]
    if ended.returncode or said:
        raise AssertionError(f"tshark: {ended.returncode}: {said}")
    return ended.stdout


def samples(name):
    return [json.loads(line) for line in (SAMPLES / f"{name}.jsonl").read_text().splitlines()]


def formats():
    return sorted(path.stem for path in SAMPLES.glob("*.jsonl"))


@unittest.skipUnless(CI or TSHARK, "needs tshark")
class Dissectors(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "capture.pcapng"

    def dissect(self, packets, *options, link_type=EXPORTED_PDU):
        """The fields of each packet."""
        capture(self.path, packets, link_type)
        told = json.loads(run(self.path, "-T", "json", "--no-duplicate-keys", *options))
        self.assertEqual(len(told), len(packets))
        return [leaves(packet["_source"]["layers"], {}) for packet in told]

    def columns(self, packets, *options, link_type=EXPORTED_PDU):
        """Protocol and info of each packet."""
        capture(self.path, packets, link_type)
        told = run(self.path, "-T", "fields", "-E", "separator=\t", "-e", "_ws.col.Protocol", "-e", "_ws.col.Info", *options)
        return [tuple(line.split("\t")) for line in told.splitlines()]

    def test_every_field_has_the_value_that_the_codec_read(self):
        for name in formats():
            dissector = f"fulmar.{name}"
            known = samples(name)
            # Each frame of the short form comes from an end of its own, so that a name means nothing.
            packets = [tagged(dissector, bytes.fromhex(sample["octets"]), at if name == "aerotp_short" else 1,
                              0x0A000002 if name == "network" else 2) for at, sample in enumerate(known, 10)]
            told = self.dissect(packets, "-o", "tcp.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE")
            for sample, fields in zip(known, told):
                with self.subTest(f"{dissector}: {sample['name']}"):
                    expected = {}
                    for field, value in sample["fields"]:
                        expected.setdefault(field, []).append(value)
                    for field, values in expected.items():
                        self.assertEqual(fields.get(field), values, field)
                    own = SHOWN.get(dissector, dissector)
                    shown = {field for field in fields if field.startswith(f"{own}.") and not field.endswith("_tree")}
                    self.assertEqual(shown - expected.keys() - BESIDE, set(), "no codec has these")
                    if CARRIED.get(dissector) not in fields:
                        self.assertEqual([note for note in NOTES if note in fields], [])

    def test_a_wrong_bit_is_noted_wherever_a_check_covers_it(self):
        chance = random.Random(SEED)
        for name, accepted in (("aerotp", {"header", "payload"}), ("link", {"payload", "unknown", "truncated"}),
                               ("slacp", {"payload"}), ("lt_tcp", {"payload"}), ("network", {"header"}),
                               ("session", {"header", "payload"})):
            known = samples(name)
            packets, flipped = [tagged(f"fulmar.{name}", bytes.fromhex(sample["octets"])) for sample in known], []
            for sample in known:
                octets = bytes.fromhex(sample["octets"])
                covered = self.covered(name, sample, len(octets))
                for bit in chance.sample(covered, min(len(covered), 24)):
                    damaged = bytearray(octets)
                    damaged[bit // 8] ^= 0x80 >> bit % 8
                    flipped.append((sample["name"], bit))
                    packets.append(tagged(f"fulmar.{name}", bytes(damaged)))
            notes = {f"fulmar.{note}_check_failed" if note in ("header", "payload") else f"fulmar.{note}" for note in accepted}
            told = self.dissect(packets)[len(known):] if known else []
            for (sample, bit), fields in zip(flipped, told):
                with self.subTest(f"fulmar.{name}: {sample}, bit {bit}"):
                    found = notes & fields.keys()
                    # Two bits say whether a descriptor is there: without it a TPDU may be too short.
                    self.assertTrue(found or (name == "aerotp" and "fulmar.truncated" in fields), sorted(fields))

    def covered(self, name, sample, length):
        """The bits that a check covers."""
        fields = dict(sample["fields"])
        octets = 20 if name == "network" else length
        if name == "aerotp":
            parity = 4 * int(fields.get("fulmar.aerotp.fec.words", 0))
            descriptors = 4 * (("fulmar.aerotp.fec.words" in fields) + ("fulmar.aerotp.block.code" in fields))
            octets = length - parity if "fulmar.aerotp.crc.status" in fields else 16 + descriptors
        elif fields.get("fulmar.session.armoured") == "1":
            # One bit makes an armoured header one of plain data.
            return [bit for bit in range(17 * 8) if bit != 3]
        elif fields.get("fulmar.session.armoured") == "0":
            # The tag is for those who have the keys, and a CRC-32 that is wrong looks like one.
            octets = 0
        elif name == "session":
            # Without security a hello has a CRC-32 behind it.
            octets = 12 + 256 + 4 if "fulmar.session.hello.version" in fields else 12
        return range(octets * 8)

    def assert_stood(self, packets, link_type=EXPORTED_PDU):
        """No error of Lua and no end of tshark, whatever the octets; not of a dissector of Wireshark's own either."""
        capture(self.path, packets, link_type)
        told = run(self.path, "-T", "fields", "-e", "frame.number", "-e", "_ws.col.Info", "-e", "_ws.expert.message",
                   "-e", "_ws.lua.error").splitlines()
        self.assertEqual(len(told), len(packets))
        self.assertEqual([line for line in told if "Lua Error" in line or "_ws.lua" in line][:3], [])

    def test_cuts_at_every_length_are_stood(self):
        packets = []
        for name in formats():
            for sample in samples(name):
                octets = bytes.fromhex(sample["octets"])
                lengths = [length for length in range(len(octets)) if length < 64 or length % 16 == 0 or len(octets) < 400]
                packets += [tagged(f"fulmar.{name}", octets[:length]) for length in lengths]
        self.assertGreater(len(packets), 2_000)
        self.assert_stood(packets)

    def test_ten_thousand_random_packets_are_stood(self):
        chance = random.Random(SEED)
        names = [*formats(), "datagram"]
        known = {name: [bytes.fromhex(sample["octets"]) for sample in samples(name)] for name in formats()}
        packets = []
        for at in range(10_000):
            name = names[at % len(names)]
            octets = bytearray(chance.randbytes(chance.randrange(80)))
            if at % 3 and name in known:
                # A packet that begins as one should comes further.
                octets = bytearray(chance.choice(known[name])[:600])
                for _ in range(chance.randrange(1, 4)):
                    octets[chance.randrange(len(octets))] = chance.randrange(256)
                if name in ("aerotp", "session") and at % 2 and len(octets) >= 16:
                    self.seal(name, octets)
            packets.append(tagged(f"fulmar.{name}", bytes(octets)))
        self.assert_stood(packets)

    def seal(self, name, octets):
        """Makes the header check right again."""
        if name == "session":
            octets[2:4] = struct.pack(">H", hec(octets[:2] + octets[4:12]))
            return
        descriptors = (octets[12] & 2) * 2 + (0 if octets[13] & 0x10 else (octets[12] & 1) * 4)
        octets[14:16] = struct.pack(">H", hec(octets[:14] + octets[16:16 + descriptors]))

    def test_records_are_put_together_from_tpdus_in_any_order(self):
        records = [bytes.fromhex(sample["octets"]) for sample in samples("splice")]
        stream = b"".join(records)
        cut = [stream[at:at + 37] for at in range(0, len(stream), 37)]
        order = list(range(len(cut)))
        order[1], order[4] = order[4], order[1]
        tpdus = [tagged("fulmar.aerotp", data_tpdu(at, cut[at], asyn=at == 0)) for at in [*order, 2]]
        told = self.dissect(tpdus)
        found = [kind for fields in told for kind in fields.get("fulmar.splice.type", [])]
        # 5 was completed by the TPDU that came late.
        expected = [str(record[0]) for record in records]
        self.assertEqual(found, expected)
        self.assertNotIn("fulmar.splice.type", told[-1], "a TPDU that came twice")
        self.assertFalse([fields for fields in told if set(NOTES) & fields.keys()])

    def test_udp_is_recognised_by_port_by_preference_and_by_its_header_check(self):
        tpdu = data_tpdu(0, b"x")
        for source, destination in ((4_914, 4_914), (40_000, 4_917), (41_000, 42_000)):
            with self.subTest(port=destination):
                ((protocol, info),) = self.columns([udp(tpdu, source, destination)], link_type=RAW_IP)
                self.assertIn("AeroTP", protocol)
                self.assertIn("seq=0", info)
        damaged = bytes([tpdu[0] ^ 1]) + tpdu[1:]
        told = self.columns([udp(damaged, 41_000, 42_000)], link_type=RAW_IP)
        self.assertEqual(told[0][0], "UDP")
        told = self.columns([udp(damaged, 41_000, 42_000)], "-o", "fulmar.ports:42000", link_type=RAW_IP)
        self.assertEqual(told[0][0], "Fulmar")
        # A protocol that was recognised between two ports before is not doubted.
        told = self.columns([udp(tpdu, 41_000, 4_914), udp(damaged, 41_000, 4_914)], link_type=RAW_IP)
        self.assertIn("header check failed", told[1][1])

    def test_a_session_s_data_in_the_second_wire_is_recognised_by_what_came_before_it(self):
        known = {sample["name"]: bytes.fromhex(sample["octets"]) for sample in samples("session")}
        sealed = known["data in wire 2, sealed"]

        def last(*datagrams, options=()):
            """The protocol of the last one."""
            packets = [udp(octets, source, 42_000) for octets, source in datagrams]
            return self.columns(packets, *options, link_type=RAW_IP)[-1][0]

        self.assertEqual(last((sealed, 41_000)), "UDP", "nothing tells")
        self.assertEqual(last((sealed, 41_000), options=("-o", "fulmar.ports:42000")), "Session")
        # The receiver's index is the initiator's in these handshakes; another's is not known.
        for before in ("notice, wrong key", "response, sealed"):
            self.assertEqual(last((known[before], 41_000), (sealed, 41_000)), "Session", "between the same ports")
        self.assertEqual(last((known["notice, wrong key"], 41_000), (sealed, 41_001)), "UDP")
        to_responder = bytes([0x28]) + known["response, sealed"][8:12] + sealed[5:]
        self.assertEqual(last((known["response, sealed"], 41_000), (to_responder, 41_001)), "Session", "the peer moved")
        # A check that is left, or the parity of an armoured header, tells as well.
        for name in ("data in wire 2, in clear", "armoured data, sealed", "armoured data, in clear"):
            self.assertEqual(last((known[name], 41_000)), "AeroTP" if "clear" in name else "Session", name)
        damaged = bytes([sealed[0] ^ 0x40]) + sealed[1:]
        told = self.columns([udp(known["response, sealed"], 41_000, 4_914), udp(damaged, 41_000, 4_914)], link_type=RAW_IP)
        self.assertIn("header check failed", told[-1][1])

    def test_a_name_stands_for_the_ports_that_were_said_before_it(self):
        records = [bytes.fromhex(sample["octets"]) for sample in samples("splice")]
        stream = b"".join(records)
        cut = [stream[at:at + 37] for at in range(0, len(stream), 37)]
        # A connection from port 50,081 to port 7,070 in mode 4, whose numbers begin 10 before they need more than 24 bits.
        first = 2**24 - 10

        def frame(at, is_full):
            number = ((first + at) % 2**24).to_bytes(3, "big") + bytes(3)
            head = bytes([0x7C if at == 0 else 0x6C]) + struct.pack(">HH", 50_081, 7_070) if is_full else bytes.fromhex("580e86")
            return head + number + cut[at]

        def mack(opened, source, destination):
            octets = bytes([0x20, 0x80 if opened else 0]) + bytes.fromhex("0e86 000064 000000 0fff 0000")
            return tagged("fulmar.inner", octets, source, destination)

        order = [0, 1, 3, 2, *range(4, len(cut))]
        packets = [tagged("fulmar.inner", frame(at, at < 2)) for at in order]
        told = self.dissect([*packets, mack(False, 2, 1), mack(True, 2, 1), mack(False, 3, 1)])
        found = [kind for fields in told for kind in fields.get("fulmar.splice.type", [])]
        self.assertEqual(found, [str(record[0]) for record in records])
        self.assertFalse([fields for fields in told if set(NOTES) & fields.keys()])
        named = told[2]
        self.assertEqual([named[f"fulmar.aerotp.{field}"] for field in ("name", "srcport", "dstport", "mode")],
                         [["3718"], ["50081"], ["7070"], ["4"]])
        answer, *others = told[-3:]
        self.assertEqual((answer["fulmar.aerotp.srcport"], answer["fulmar.aerotp.dstport"]), (["7070"], ["50081"]))
        for fields in others:
            self.assertNotIn("fulmar.aerotp.srcport", fields, "another connection of this name")

    def test_frames_that_are_none_are_noted(self):
        data = "580e860003e800186a78"
        bad = {"announced, and not there": "8100", "longer than there is": "8105", "no length": "81",
               "a repair symbol with another behind it": "b001" + "00" + data, "seventeen": "8700" * 16 + "07",
               "of unknown type": "0900", "an odd type of data": "59" + data[2:], "without a time": "50" + data[2:],
               "of no known mode": "7fc3a11b9e" + data[6:], "a name with octets behind it": "22000e8600",
               "zero bits set": "22400e86", "no numbers there": "21000e860003e900186a40",
               "numbers beyond 2^23": "21000e860003e900186a80800000", "numbers below the first": "20000e860003e900186a0ffd007d0203",
               "both flags of set-up": "20600e860003e900186a0ffd007d", "no symbol": "300e860003e800186a1f07"}
        told = self.dissect([tagged("fulmar.inner", bytes.fromhex(octets)) for octets in bad.values()])
        for name, fields in zip(bad, told):
            with self.subTest(name):
                self.assertTrue(set(NOTES) & fields.keys())
        # What came before is read nevertheless.
        sound = self.dissect([tagged("fulmar.inner", bytes.fromhex("c0" + data)), tagged("fulmar.inner", bytes.fromhex("8901ff" + data))])
        self.assertNotIn("fulmar.aerotp.seq", sound[0], "a type from 0xC0 on fills the rest")
        self.assertEqual(sound[1]["fulmar.aerotp.seq"], ["1000"], "one below is skipped")

    def test_the_guide_s_commands_do_what_they_say(self):
        sound = tagged("fulmar.aerotp", data_tpdu(0, b"x"))
        damaged = tagged("fulmar.aerotp", b"\xFF" + data_tpdu(1, b"x")[1:])
        capture(self.path, [sound, damaged])
        commands = [line.strip() for line in GUIDE.splitlines() if line.startswith("    tshark -r")]
        told = [run(self.path, *shlex.split(command)[3:]) for command in commands]
        self.assertEqual(len(told), 4)
        self.assertEqual(told[0].count("header check failed"), 1)
        self.assertEqual(told[1:3], ["", ""])
        self.assertIn("IO Statistics", told[3])
        install = "\n".join(re.findall(r"^    ((?:mkdir|cp) .*)$", GUIDE, re.MULTILINE))
        self.assertIn("seq=0", run(self.path, install=install))


if __name__ == "__main__":
    unittest.main()
