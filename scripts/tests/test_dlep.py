"""A gateway's router side of DLEP (RFC 8175) with a modem that shares no line with it, each message read by Wireshark's dissector.

Method: the gateway in a network namespace, `modem` at the other end of a veth pair, where tshark captures. Wireshark's dissector is
a third reading of the RFC. Needs root.
"""

import contextlib
import json
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time
import unittest
import urllib.request

import modem
from program import FULMAR, build, lacks

if os.geteuid() != 0 or not shutil.which("tshark") or not shutil.which("ip"):
    raise lacks("needs root, tshark and ip")

PATIENCE = 60
NAMESPACE, DEVICE = "fulmar-dlep", "fulmar-dlep"
ROUTER, MODEM = "10.79.0.1", "10.79.0.2"
MAC, LONG_MAC = bytes.fromhex("020000000001"), bytes.fromhex("0200000000000002")
# What RFC 8175 leaves free for private use is known to nobody here.
UNKNOWN = 65_521
# A datagram that is longer than what precedes packets in a capture.
MARK_BYTES = 1_000
FIELDS = ("ip.src", "ip.ttl", "frame.protocols", "dlep.signal.type", "dlep.message.type", "dlep.dataitem.type", "dlep.dataitem.status.code",
          "dlep.dataitem.heartbeat", "dlep.dataitem.peertype.description", "_ws.expert.message")


def ip(*words, check=True):
    return subprocess.run(["ip", *words], check=check, capture_output=True, text=True, timeout=PATIENCE)


def down():
    ip("link", "delete", DEVICE, check=False)
    ip("netns", "delete", NAMESPACE, check=False)


class Dlep(unittest.TestCase):
    def setUp(self):
        build()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        down()
        self.addCleanup(down)
        ip("netns", "add", NAMESPACE)
        ip("link", "add", DEVICE, "type", "veth", "peer", "name", "radio", "netns", NAMESPACE)
        ip("address", "add", f"{MODEM}/24", "dev", DEVICE)
        ip("link", "set", DEVICE, "up")
        for words in (("address", "add", f"{ROUTER}/24", "dev", "radio"), ("link", "set", "radio", "up"), ("link", "set", "lo", "up")):
            ip("-n", NAMESPACE, *words)
        self.modem = modem.Modem(MODEM, PATIENCE)
        self.addCleanup(self.modem.close)

    @contextlib.contextmanager
    def captured(self, path):
        # Written packet by packet: what has gone by is in the file.
        command = ["tshark", "-i", DEVICE, "-f", "ip", "-w", path]
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            while "Capturing on" not in (line := child.stderr.readline()):
                self.assertTrue(line, "tshark ended")
            # It says so before it captures.
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as mark:
                mark.bind((MODEM, 0))
                while not path.exists() or path.stat().st_size < MARK_BYTES:
                    mark.sendto(bytes(MARK_BYTES), (ROUTER, 9))
                    time.sleep(0.05)
            yield
            # It gets packets from the kernel with a delay.
            time.sleep(1)
        finally:
            child.terminate()
            child.communicate(timeout=PATIENCE)

    @contextlib.contextmanager
    def gateway(self, device="radio"):
        def key(name):
            return subprocess.run([FULMAR, "keygen", self.folder / name], check=True, capture_output=True, text=True,
                                  timeout=PATIENCE).stdout.strip()
        key("own.key")
        file = self.folder / "air.toml"
        file.write_text(f'[gateway]\nname = "air"\nlisten = "{ROUTER}:4913"\nstate_dir = "{self.folder}/state"\n'
                        f'[security]\nkind = "noise"\nprivate_key_file = "{self.folder}/own.key"\n'
                        f'[[peer]]\nname = "ground"\npublic_key = "{key("peer.key")}"\naddress = "{MODEM}:9"\n'
                        f'[[link]]\nname = "radio"\ndlep = "{device}"\n[egress]\nallow = ["127.0.0.0/8:1-65535"]\n[metrics]\nlisten = "{ROUTER}:9000"\n')
        command = ["ip", "netns", "exec", NAMESPACE, FULMAR, "gateway", "--json", "-c", file]
        with open(self.folder / "log", "w") as log:
            child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            self.assertTrue(child.stdout.readline(), (self.folder / "log").read_text())
            yield
        finally:
            child.terminate()
            child.communicate(timeout=PATIENCE)

    def until(self, **wanted):
        """Waits until the gateway says this of its link."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            with urllib.request.urlopen(f"http://{ROUTER}:9000/status", timeout=PATIENCE) as answer:
                said = json.load(answer)["peers"][0]["links"][0]
            if {name: said[name] for name in wanted} == wanted:
                return
            time.sleep(0.05)
        self.fail(f"wanted {wanted}; the last said {said}")

    def converse(self):
        """Everything that a modem may tell, and what it may not; ends after the second session."""
        up, status = modem.item(modem.MAC, MAC), lambda items: items[modem.STATUS][0]
        rates = {"mdrr": 10_000_000, "mdrt": 10_000_000, "cdrr": 10_000_000, "cdrt": 10_000_000, "latency": 20_000}
        with self.modem.session(**rates, resources=100, rlqr=100, rlqt=100, mtu=1500) as session:
            address = modem.item(modem.V4_ADDRESS, b"\1" + bytes([10, 79, 0, 9]))
            session.say(modem.DESTINATION_UP, up + address + modem.metrics(cdrt=3_000_000, cdrr=2_000_000))
            answer = session.expect(modem.DESTINATION_UP_ANSWER)
            self.assertEqual((answer[modem.MAC], status(answer)), (MAC, modem.SUCCESS))
            self.until(rate_out_bits_per_second=3_000_000, is_heard=True)
            session.say(modem.DESTINATION_UPDATE, up + modem.metrics(cdrt=1_000_000, rlqt=40))
            self.until(rate_out_bits_per_second=1_000_000)
            session.say(modem.UPDATE, modem.metrics(cdrt=4_000_000))
            self.assertEqual(status(session.expect(modem.UPDATED)), modem.SUCCESS)
            self.until(rate_out_bits_per_second=4_000_000)
            session.heartbeat()
            session.say(modem.DESTINATION_DOWN, up)
            self.assertEqual(status(session.expect(modem.DESTINATION_DOWN_ANSWER)), modem.SUCCESS)
            session.say(modem.DESTINATION_UP, modem.item(modem.MAC, LONG_MAC) + modem.metrics(cdrt=5_000_000))
            self.assertEqual(session.expect(modem.DESTINATION_UP_ANSWER)[modem.MAC], LONG_MAC)
            self.until(rate_out_bits_per_second=5_000_000)
            session.say(UNKNOWN)
            self.assertEqual(status(session.expect(modem.TERMINATION)), modem.UNKNOWN_MESSAGE)
            session.say(modem.TERMINATED)
            self.assertTrue(session.ends())
        self.until(is_heard=False, wrong_messages=1)
        with self.modem.session(**rates) as session:
            session.say(modem.DESTINATION_UP, up)
            session.expect(modem.DESTINATION_UP_ANSWER)
            self.until(rate_out_bits_per_second=10_000_000, is_heard=True)
            session.say(modem.TERMINATION, modem.item(modem.STATUS, bytes([modem.SHUTTING_DOWN])))
            session.expect(modem.TERMINATED)
            self.assertTrue(session.ends())
        self.until(is_heard=False, wrong_messages=1)

    def meet(self, address):
        """A modem at this address is found, and what it tells is used."""
        met = modem.Modem(address, PATIENCE)
        try:
            with met.session(mdrt=10_000_000, mdrr=10_000_000) as session:
                session.say(modem.DESTINATION_UP, modem.item(modem.MAC, MAC) + modem.metrics(cdrt=3_000_000))
                session.expect(modem.DESTINATION_UP_ANSWER)
                self.until(rate_out_bits_per_second=3_000_000, is_heard=True, lack=None)
                session.say(modem.TERMINATION, modem.item(modem.STATUS, bytes([modem.SHUTTING_DOWN])))
                session.expect(modem.TERMINATED)
            self.until(is_heard=False)
        finally:
            met.close()

    def test_a_device_that_comes_late_or_has_another_address_or_is_made_anew_is_followed(self):
        # One port of DLEP on this machine.
        self.modem.close()
        own, other = "fulmar-late", "10.79.1.2"
        missing = "there is no device `late`; it is waited for, and `ip link` lists those that are there"

        def plug_in():
            ip("link", "add", own, "type", "veth", "peer", "name", "late", "netns", NAMESPACE)
            ip("address", "add", f"{other}/24", "dev", own)
            ip("link", "set", own, "up")
            ip("-n", NAMESPACE, "address", "add", "10.79.1.1/24", "dev", "late")
            ip("-n", NAMESPACE, "link", "set", "late", "up")

        self.addCleanup(ip, "link", "delete", own, check=False)
        with self.gateway("late"):
            self.until(is_heard=False, lack=missing)
            plug_in()
            self.meet(other)
            # In this order: with the first address of a network the kernel takes away the others.
            ip("-n", NAMESPACE, "address", "delete", "10.79.1.1/24", "dev", "late")
            ip("-n", NAMESPACE, "address", "add", "10.79.1.3/24", "dev", "late")
            self.meet(other)
            ip("link", "delete", own)
            self.until(is_heard=False, lack=missing)
            plug_in()
            self.meet(other)
        log = (self.folder / "log").read_text()
        self.assertEqual(log.count("link_device_missing"), 2, log)
        self.assertNotIn("link_message_wrong", log)

    def test_the_router_and_a_modem_of_the_rfc_alone_understand_each_other_and_wireshark_both(self):
        path = self.folder / "dlep.pcapng"
        with self.captured(path), self.gateway():
            self.converse()
        port = self.modem.listener.getsockname()[1]
        told = subprocess.run(["tshark", "-r", path, "-d", f"tcp.port=={port},dlep", "-Y", f"udp.port=={modem.PORT} || (tcp.port=={port} && tcp.len > 0)",
                               "-T", "fields", *(word for name in FIELDS for word in ("-e", name))],
                              check=True, capture_output=True, text=True, timeout=PATIENCE).stdout
        packets = [dict(zip(FIELDS, line.split("\t"))) for line in told.splitlines()]
        for packet in packets:
            self.assertIn("dlep", packet["frame.protocols"].split(":"), packet)
            self.assertEqual(packet["ip.ttl"], str(modem.HOPS), packet)
            # Wireshark would have one hop for any group of this block; RFC 8175, section 7.1, asks for 255.
            self.assertIn(packet["_ws.expert.message"].partition(" != ")[0], ("", '"Time To Live"'), packet)
        ours = [packet for packet in packets if packet["ip.src"] == ROUTER]
        self.assertTrue(any(packet["dlep.signal.type"] == str(modem.DISCOVERY) for packet in ours))
        kinds = [kind for packet in ours for kind in packet["dlep.message.type"].split(",") if kind and kind != str(modem.HEARTBEAT)]
        self.assertEqual(kinds, list(map(str, (
            modem.INITIALIZATION, modem.DESTINATION_UP_ANSWER, modem.UPDATED, modem.DESTINATION_DOWN_ANSWER, modem.DESTINATION_UP_ANSWER,
            modem.TERMINATION, modem.INITIALIZATION, modem.DESTINATION_UP_ANSWER, modem.TERMINATED))))
        begun = [packet for packet in ours if packet["dlep.message.type"] == str(modem.INITIALIZATION)]
        self.assertEqual({(packet["dlep.dataitem.heartbeat"], packet["dlep.dataitem.peertype.description"]) for packet in begun},
                         {("2000", "fulmar")})
        codes = [packet["dlep.dataitem.status.code"] for packet in ours if packet["dlep.dataitem.status.code"]]
        self.assertEqual(codes, list(map(str, [modem.SUCCESS] * 4 + [modem.UNKNOWN_MESSAGE, modem.SUCCESS])))


if __name__ == "__main__":
    unittest.main()
