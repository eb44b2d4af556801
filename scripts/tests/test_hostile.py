"""A million forged datagrams against a live receiver do not touch a running transfer.

Random octets, truncations, replays and copies with inverted bits, some from many ports. The file must
arrive whole, and the receiver's memory must stay where its bounds put it.
"""

import pathlib
import random
import socket
import subprocess
import tempfile
import unittest

from program import FULMAR, build

FORGED = 1_000_000
SEED = 7
# Reassembly of a connection is bounded by its window (4096 TPDUs, about 6 MB); forged TPDUs with sound
# checks can open others. What is measured here is far below; growth without bound is far above.
GROWTH_MAX_BYTES = 64 << 20


def resident_bytes(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) * 1024


def recorded(file):
    """Datagrams of a true sender, taken at a port of our own."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as tap:
        tap.bind(("127.0.0.1", 0))
        tap.settimeout(10)
        port = tap.getsockname()[1]
        send = [FULMAR, "send", file, f"127.0.0.1:{port}", "--rate", "5mbit", "--connect-timeout", "1s"]
        with subprocess.Popen(send, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
            return [tap.recv(2048) for _ in range(30)]


def forge(generator, true):
    kind = generator.randrange(4)
    if kind == 0:
        return generator.randbytes(generator.randrange(1, 200))
    datagram = bytearray(generator.choice(true))
    if kind == 1:
        return bytes(datagram[:generator.randrange(1, len(datagram))])
    if kind == 2:
        return bytes(datagram)
    for _ in range(generator.randrange(1, 4)):
        bit = generator.randrange(len(datagram) * 8)
        datagram[bit // 8] ^= 1 << (bit % 8)
    return bytes(datagram)


class Hostile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        build()

    def test_a_transfer_survives_a_million_forged_datagrams(self):
        generator = random.Random(SEED)
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            source = folder / "file"
            source.write_bytes(generator.randbytes(8_000_000))
            (folder / "in").mkdir()
            true = recorded(source)
            forgers = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(64)]
            with subprocess.Popen([FULMAR, "recv", folder / "in", "--listen", "127.0.0.1:0", "--json"],
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as receiver:
                try:
                    address = receiver.stdout.readline().split('"listening":"')[1].split('"')[0]
                    before = resident_bytes(receiver.pid)
                    sender = subprocess.Popen([FULMAR, "send", source, address, "--rate", "20mbit", "--give-up", "120s"],
                                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
                    host, port = address.rsplit(":", 1)
                    forged = [forge(generator, true) for _ in range(20_000)]
                    for i in range(FORGED):
                        forgers[i % 64].sendto(forged[i % len(forged)], (host, int(port)))
                    _, talk = sender.communicate(timeout=180)
                    self.assertEqual(sender.returncode, 0, f"seed {SEED}: {talk}")
                    self.assertIsNone(receiver.poll(), f"seed {SEED}: the receiver ended")
                    growth = resident_bytes(receiver.pid) - before
                    self.assertLess(growth, GROWTH_MAX_BYTES, f"seed {SEED}")
                    print(f"receiver grew by {growth / 1e6:.1f} MB", flush=True)
                finally:
                    receiver.terminate()
                    for forger in forgers:
                        forger.close()
            arrived = folder / "in/file"
            self.assertEqual(arrived.read_bytes(), source.read_bytes(), f"seed {SEED}")


if __name__ == "__main__":
    unittest.main()
