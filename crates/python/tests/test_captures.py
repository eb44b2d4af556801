"""Recordings of links: captures at both ends."""

import struct
import tempfile
import unittest
from pathlib import Path

import fulmar_lab as lab


def capture(path, datagrams):
    """A pcap file of UDP datagrams over IPv4: microseconds, ports, content."""
    octets = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 101)
    for micros, (source, target), content in datagrams:
        udp = struct.pack("!HHHH", source, target, 8 + len(content), 0) + content
        ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0, bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2])) + udp
        octets += struct.pack("<IIII", 1_790_000_000 + micros // 1_000_000, micros % 1_000_000, len(ip), len(ip)) + ip
    path.write_bytes(octets)
    return path


class Captures(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        # A datagram of 1000 octets each millisecond, through 8 Mbit/s of which one in ten is lost; an answer for each.
        self.sent = [(number * 2000, (7, 4917), b"%5d" % number + bytes(967)) for number in range(2000)]
        self.came = [(at + 21_000, ports, content) for number, (at, ports, content) in enumerate(self.sent) if number % 10 != 4]
        answers = [(at + 10, (4917, 7), content[:5] + b"answer") for at, _, content in self.came]
        back = [(at + 20_000, ports, content) for at, ports, content in answers]
        self.here = capture(self.folder / "here.pcap", sorted(self.sent + back))
        self.there = capture(self.folder / "there.pcap", sorted(self.came + answers))

    def test_a_file_that_is_not_there_is_an_error_of_the_system(self):
        for open_it in (lambda path: lab.LinkRecording.open(path), lambda path: lab.LinkRecording.open(self.folder / "here.pcap", path)):
            capture(self.folder / "here.pcap", self.sent[:3])
            with self.assertRaises(FileNotFoundError) as raised:
                open_it(self.folder / "none.pcap")
            self.assertEqual(raised.exception.filename, self.folder / "none.pcap")

    def test_captures_of_both_ends_are_a_link(self):
        link = lab.LinkRecording.open(self.here, self.there)
        self.assertEqual((len(link.forward), len(link.reverse)), (2000, 1800))
        self.assertEqual(sum(arrived is None for *_, arrived in link.forward), 200)
        sent, octets, arrived = link.forward[1]
        self.assertEqual(octets, 1000)
        self.assertAlmostEqual(arrived - sent, 0.021, places=9)
        self.assertIn("2000 packets forward and 1800 back, 200 lost", repr(link))
        hop = link.channel()["hop"][0]
        self.assertEqual(hop["forward"]["loss"].count("+1"), 200)
        run = link.replay(run={"duration": "60s"}, flow={"transport": "aerotp", "traffic": "bulk", "bytes": "100kB"}).run()
        self.assertTrue(run["completed"])

    def test_flows_send_as_perf_does_where_that_is_asked(self):
        link = lab.LinkRecording.open(self.here, self.there)
        tables = {"run": {"duration": "60s"}, "flow": {"transport": "aerotp", "traffic": "bulk", "bytes": "100kB", "burst": "1ms"}}
        keys = link.replay(as_perf="8mbit", **tables).parameters
        # 1,492 of each 1,500 octets count, and what the flow says itself stays.
        self.assertEqual((keys["flow.send_rate"], keys["flow.mtu"], keys["hop.0.framing"]), ("7957333bit", "1492B", "8B"))
        self.assertEqual(keys["flow.burst"], "1ms")
        self.assertEqual(link.replay(as_perf=True, **tables).parameters["flow.send_rate"], "found")
        self.assertNotIn("flow.mtu", link.replay(**tables).parameters)
        with self.assertRaisesRegex(ValueError, "as_perf"):
            link.replay(as_perf="8 apples", **tables)
        with self.assertRaisesRegex(TypeError, 'as_perf=8000000: give a rate as a text, such as "5mbit"'):
            link.replay(as_perf=8_000_000, **tables)

    def test_files_that_show_no_link_are_refused(self):
        with self.assertRaisesRegex(ValueError, "shows one end of the link"):
            lab.LinkRecording.open(self.here)
        with self.assertRaises(OSError):
            lab.LinkRecording.open(self.folder / "absent.pcap")


if __name__ == "__main__":
    unittest.main()
