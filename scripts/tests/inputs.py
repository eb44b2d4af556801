"""The files that the reader of a page has: files to send, recordings of losses, captures of radio links."""

import random
import select
import socket
import struct
import subprocess

SEED = 1


def losses(generator, packets=20_000):
    """Ones and zeros: a link in two states."""
    bad, lost = False, []
    for _ in range(packets):
        bad = generator.random() < (0.9 if bad else 0.02)
        lost.append(generator.random() < (0.6 if bad else 0.005))
    return lost


def uneven(generator, packets=20_000):
    """`losses` of a sender that pauses now and then, with times."""
    now, rows = 0.0, ["sent_s,lost"]
    for lost in losses(generator, packets):
        now += 0.2 if generator.random() < 0.005 else 0.001
        rows.append(f"{now:.6f},{int(lost)}")
    return "\n".join(rows) + "\n"


def rtp(generator):
    """(time, port, payload) of each packet of an RTP flow that arrived."""
    for number, lost in enumerate(losses(generator)):
        if not lost:
            yield number * 0.002, 5004, struct.pack(">BBHII", 0x80, 96, number % 65536, number * 160, 7) + bytes(20)


def aerotp(generator, fulmar, file, folder):
    """The same of a transfer by AeroTP, taken between its two ends; its port is told as 4914."""
    start = [fulmar, "recv", folder, "--listen", "127.0.0.1:0", "--once", "--json"]
    with (subprocess.Popen(start, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as receiver,
          socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as near, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as far):
        host, port = receiver.stdout.readline().split('"listening":"')[1].split('"')[0].rsplit(":", 1)
        near.bind(("127.0.0.1", 0))
        far.connect((host, int(port)))
        send = [fulmar, "send", file, "127.0.0.1:%d" % near.getsockname()[1], "--rate", "50mbit"]
        with subprocess.Popen(send, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as sender:
            taken, client = [], None
            while sender.poll() is None:
                for ready in select.select([near, far], [], [], 0.1)[0]:
                    if ready is far:
                        near.sendto(far.recv(2048), client)
                        continue
                    payload, client = near.recvfrom(2048)
                    if generator.random() < 0.97:
                        far.send(payload)
                        taken.append((len(taken) * 0.001, 4914, payload))
        receiver.terminate()
    return taken


def ip(port, payload):
    """An IPv4 packet of UDP to `port`; checksums are left out."""
    udp = struct.pack(">HHHH", 9, port, 8 + len(payload), 0) + payload
    return struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0, b"\x0a\0\0\1", b"\x0a\0\0\2") + udp


def pcap(records):
    """A capture of bare IP packets (draft-ietf-opsawg-pcap)."""
    octets = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101)]
    for seconds, port, payload in records:
        packet = ip(port, payload)
        octets += [struct.pack("<IIII", int(seconds), int(seconds % 1 * 1e6), len(packet), len(packet)), packet]
    return b"".join(octets)


def pcapng(records):
    """The same as draft-ietf-opsawg-pcapng has it."""
    octets = [struct.pack("<IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28), struct.pack("<IIHHII", 1, 20, 101, 0, 0, 20)]
    for seconds, port, payload in records:
        packet = ip(port, payload)
        padded, micros = packet + bytes(-len(packet) % 4), int(seconds * 1e6)
        length = 32 + len(padded)
        octets.append(struct.pack("<IIIIIII", 6, length, 0, micros >> 32, micros & 0xFFFFFFFF, len(packet), len(packet)) + padded)
        octets.append(struct.pack("<I", length))
    return b"".join(octets)


def lay_out(folder, fulmar):
    """All of it, in `folder`."""
    generator = random.Random(SEED)
    (folder / "file").write_bytes(generator.randbytes(300_000))
    (folder / "big.iso").write_bytes(generator.randbytes(1_000_000))
    (folder / "dir").mkdir()
    (folder / "dir/one").write_bytes(generator.randbytes(10_000))
    (folder / "losses.csv").write_text("".join(f"{int(lost)}\n" for lost in losses(generator)))
    (folder / "uneven.csv").write_text(uneven(generator))
    (folder / "radio.pcapng").write_bytes(pcapng(rtp(generator)))
    arrived = folder / "arrived"
    arrived.mkdir()
    transfer = aerotp(generator, fulmar, folder / "big.iso", arrived)
    (folder / "radio.pcap").write_bytes(pcap(sorted([*rtp(generator), *transfer], key=lambda record: record[0])))
