"""Wireshark reads the captures that the simulator, the emulator and a gateway write: each layer of each packet, and each damage.

Method: a short transfer of each transport over each link layer with bit errors, captured; the dissectors must find damaged the packets
that the channel says it damaged. Then real gateways, files and measurements over an emulated link.
"""

import json
import pathlib
import re
import socket
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.request

import test_dissectors as dissectors
from program import FULMAR, build

PATIENCE = 60
# A field that shows that a layer was read, for each transport and each link layer.
LINKS = {"none": "ip.src", "plain": "fulmar.network.source", "ll-arq": "fulmar.link.number",
         "selective-repeat": "fulmar.link.number", "ll-harq": "fulmar.link.place.packet", "slacp": "fulmar.slacp.lane"}
TRANSPORTS = {"aerotp": "fulmar.aerotp.mack.window", "tcp": "tcp.seq_raw", "udp": "udp.length", "lt-tcp": "fulmar.lt_tcp.report.block",
              "gateway": "fulmar.splice.total"}
PROTOCOLS = {"aerotp": "fulmar.aerotp", "tcp": "tcp", "udp": "udp", "lt-tcp": "fulmar.lt_tcp", "gateway": "fulmar.aerotp"}
RUNS = [("none", transport) for transport in TRANSPORTS] + [
    ("plain", "tcp"), ("ll-arq", "gateway"), ("ll-harq", "aerotp"), ("ll-harq", "lt-tcp"), ("selective-repeat", "aerotp"),
    ("slacp", "lt-tcp"), ("slacp", "tcp")]
# Packets that have either, at the least.
READ_MIN = 20
CHECKSUMS = [word for name in ("ip", "tcp", "udp") for word in ("-o", f"{name}.check_checksum:TRUE")]
CHECKSUM_GROUP, MALFORMED_GROUP = str(0x01000000), str(0x07000000)
INBOUND = "0x00000001"
SCENARIO = """
[run]
duration = "10s"
[hop]
rate = "10mbit"
delay = "5ms"
queue = "100 packets"
loss = "3%%"
ber = 1e-5
link = "%s"
[flow]
transport = "%s"
bytes = "60kB"
"""


def start(*arguments, **options):
    return subprocess.Popen([FULMAR, *arguments], stdin=subprocess.DEVNULL, text=True, stdout=subprocess.PIPE, **options)


def stop(process):
    """Ends it as Ctrl-C would, so that its capture is whole."""
    process.terminate()
    process.wait(PATIENCE)
    process.stdout.close()


def fields_of(path, *names):
    told = dissectors.run(path, *CHECKSUMS, "-T", "fields", *(word for name in names for word in ("-e", name)))
    return [line.split("\t") for line in told.split("\n")[:-1]]


def has(protocols, name):
    """Whether a packet's `frame.protocols` has one of that name."""
    return name in protocols.split(":")


@unittest.skipUnless(dissectors.CI or dissectors.TSHARK, "needs tshark")
class Captures(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        build()

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_every_transport_over_every_link_layer_is_read_and_damage_is_what_the_channel_did(self):
        damaged = 0
        for link, transport in RUNS:
            with self.subTest(link=link, transport=transport):
                scenario, path = self.folder / "scenario.toml", self.folder / "run.pcapng"
                scenario.write_text(SCENARIO % (link, transport))
                run = subprocess.run([FULMAR, "sim", scenario, "--runs", "1", "--seed", "1", "--capture", path],
                                     capture_output=True, text=True, timeout=PATIENCE)
                self.assertEqual(run.returncode, 0, run.stderr)
                packets = fields_of(path, "frame.packet_flags_direction", "frame.comment", "_ws.expert.group", "frame.protocols",
                                    LINKS[link], TRANSPORTS[transport], *dissectors.NOTES)
                self.assertTrue(any(packet[5] for packet in packets), TRANSPORTS[transport])
                self.assertGreater(sum(bool(packet[4]) for packet in packets), READ_MIN, LINKS[link])
                self.assertGreater(sum(has(packet[3], PROTOCOLS[transport]) for packet in packets), READ_MIN, PROTOCOLS[transport])
                self.check_damage(packets, is_summed=link == "none")
                damaged += sum("damaged" in packet[1] for packet in packets)
        self.assertGreater(damaged, 100)

    def check_damage(self, packets, is_summed):
        for number, (direction, comment, groups, protocols, _, _, *notes) in enumerate(packets, 1):
            bits = re.search(r"damaged: (\d+) bit", comment)
            is_damaged = bits is not None and direction == INBOUND
            is_noted = CHECKSUM_GROUP in groups.split(",") or MALFORMED_GROUP in groups.split(",") or any(notes)
            # The Internet checksum overlooks some pairs of bits.
            if is_noted != is_damaged and not (is_damaged and is_summed and int(bits[1]) > 1):
                self.fail(f"packet {number}: {comment!r}, groups {groups}, {protocols}")

    def gateway(self, name, peer, key, address="", entries=""):
        file = self.folder / f"{name}.toml"
        file.write_text(f'[gateway]\nname = "{name}"\nlisten = "127.0.0.1:0"\nstate_dir = "{self.folder}/{name}"\n'
                        f'[security]\nkind = "noise"\nprivate_key_file = "{self.folder}/{name}.key"\n'
                        f'[[peer]]\nname = "{peer}"\n{address}public_key = "{key}"\nrate = "20mbit"\n'
                        f'[egress]\nallow = ["127.0.0.0/8:1-65535"]\n[metrics]\nlisten = "127.0.0.1:0"\n{entries}')
        with open(self.folder / f"{name}.log", "w") as log:
            capture = self.folder / f"{name}.pcapng"
            process = start("gateway", "--json", "-c", file, "--capture", capture, stderr=log)
        self.addCleanup(stop, process)
        line = process.stdout.readline()
        self.assertTrue(line, (self.folder / f"{name}.log").read_text())
        return process, json.loads(line)

    def link(self, to):
        """An emulated link with a capture of its own; returns the address to send to."""
        capture = self.folder / "link.pcapng"
        process = start("emulate", "--listen", "127.0.0.1:0", "--to", to, "--rate", "20mbit", "--delay", "5ms", "--loss", "5%",
                        "--capture", capture, stderr=subprocess.DEVNULL)
        self.addCleanup(stop, process)
        return process, json.loads(process.stdout.readline())["listening"]

    def test_a_gateway_s_session_is_read_sealed_and_opened(self):
        keys = {name: subprocess.run([FULMAR, "keygen", self.folder / f"{name}.key"], check=True, capture_output=True, text=True,
                                     timeout=PATIENCE).stdout.strip() for name in ("air", "ground")}
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        threading.Thread(target=answer, args=(listener,), daemon=True).start()
        ground, record = self.gateway("ground", "air", keys["air"])
        relay, at = self.link(record["listening"])
        to = "%s:%d" % listener.getsockname()
        air, record = self.gateway("air", "ground", keys["ground"], f'address = "{at}"\n',
                                   f'[[forward]]\nlisten = "127.0.0.1:0"\nto = "{to}"\n')
        host, port = record["entries"][0].rsplit(":", 1)
        with socket.create_connection((host, int(port)), timeout=PATIENCE) as client:
            client.sendall(bytes(100_000))
            client.shutdown(socket.SHUT_WR)
            while client.recv(65536):
                pass
        # Noise from a stranger.
        host, port = record["listening"].rsplit(":", 1)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            stranger.sendto(bytes([0xEE] * 64), (host, int(port)))
            self.until_refused(f"http://{record['metrics']}/status")
        for process in (air, relay, ground):
            process.terminate()
            process.wait(PATIENCE)
        outer = fields_of(self.folder / "link.pcapng", "fulmar.session.type", "fulmar.session.version", "fulmar.session.security",
                          "fulmar.session.sealed")
        kinds = {(kind, version) for kind, version, _, _ in outer}
        self.assertLessEqual({("0", "2"), ("1", "1"), ("2", "1")}, kinds, "data in wire 2, and a handshake")
        self.assertNotIn(("", ""), kinds, "each datagram was taken for one of a session")
        self.assertIn("Noise", {security for _, _, security, _ in outer})
        self.assertTrue(any(sealed for _, _, _, sealed in outer))
        for name in ("air", "ground"):
            told = fields_of(self.folder / f"{name}.pcapng", "frame.interface_name", "frame.comment", "frame.protocols",
                             "fulmar.splice.type", "_ws.expert.group", *dissectors.NOTES)
            inner = [packet for packet in told if packet[0] == "inner"]
            records = {kind for packet in inner for kind in packet[3].split(",")}
            self.assertLessEqual({"1", "2", "4", "5"}, records, "OPEN, ACCEPTED, DATA, END")
            self.assertTrue(all(has(packet[2], "fulmar.inner") for packet in inner))
            for layer, least in (("fulmar.session", 100), ("fulmar.inner", 50), ("fulmar.aerotp_short", 50)):
                self.assertGreater(sum(has(packet[2], layer) for packet in told), least, layer)
            refused = [packet for packet in told if "refused: header_check" in packet[1]]
            self.assertEqual(len(refused), 1 if name == "air" else 0)
            for packet in told:
                groups, notes = packet[4], packet[5:]
                is_noted = CHECKSUM_GROUP in groups or MALFORMED_GROUP in groups or any(notes)
                self.assertEqual(is_noted, packet in refused, packet)

    def until_refused(self, status):
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            with urllib.request.urlopen(status, timeout=PATIENCE) as answer:
                if json.load(answer)["carrier"]["dropped"]["header_check"]:
                    return
            time.sleep(0.05)
        self.fail("the noise was not refused")

    def test_perf_is_read_from_its_ports(self):
        server = start("perf", "-s", "-B", "127.0.0.1", "-p", "0", "-1", "--json", stderr=subprocess.DEVNULL)
        self.addCleanup(stop, server)
        relay, to = self.link(json.loads(server.stdout.readline())["listening"])
        host, port = to.rsplit(":", 1)
        subprocess.run([FULMAR, "perf", "-c", host, "-p", port, "-u", "-b", "1M", "-t", "1", "-i", "0.5", "-P", "2"], check=True,
                       capture_output=True, timeout=PATIENCE)
        relay.terminate()
        relay.wait(PATIENCE)
        told = fields_of(self.folder / "link.pcapng", "fulmar.aerotp.seq", "fulmar.perf.type", "fulmar.perf_data.sequence",
                         "_ws.expert.group", "fulmar.perf.streams", "fulmar.aerotp.dstport")
        self.assertTrue(all(packet[0] for packet in told))
        kinds = {kind for packet in told for kind in packet[1].split(",")}
        self.assertLessEqual({"0", "1", "3", "4", "5", "6"}, kinds, "HELLO to GO")
        messages = [packet for packet in told if packet[2]]
        self.assertGreater(len(messages), 50)
        self.assertEqual({packet[5] for packet in messages}, {"5120", "5121"}, "a port for each stream")
        self.assertLessEqual({"2"}, {streams for packet in told for streams in packet[4].split(",")}, "in HELLO and INTERVAL")
        self.assertFalse([packet for packet in told if CHECKSUM_GROUP in packet[3] or MALFORMED_GROUP in packet[3]])


def answer(listener):
    """Reads all that one client sends, and sends as much."""
    client, _ = listener.accept()
    with client:
        total = 0
        while piece := client.recv(65536):
            total += len(piece)
        client.sendall(bytes(total))


if __name__ == "__main__":
    unittest.main()
