"""A gateway does all it can do under the unit's system call filter and with its capabilities, and keeps none of them.

Method: no systemd. The filter is made out of the unit's own lines as a classic BPF program and set with prctl(2) before the gateway starts;
a call that is not in it kills the process, where the unit only refuses it. Two gateways on the loopback then carry TCP, UDP and SOCKS,
keep octets on disk, resolve names, capture, trace, serve their page, are reloaded, killed, started again and stopped.
"""

import contextlib
import ctypes
import itertools
import json
import os
import pathlib
import platform
import re
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.request

import program

UNIT = program.ROOT / "packaging/systemd/fulmar-gateway@.service"
TRANSPARENT = program.ROOT / "packaging/systemd/transparent.conf"
TUNNEL = program.ROOT / "packaging/systemd/tunnel.conf"
NUMBERS = pathlib.Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h")
PATIENCE = 60
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 22, 38, 2
RET_ALLOW, RET_KILL_PROCESS = 0x7FFF0000, 0x80000000
LOAD_NUMBER, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06


def settings(path, key):
    """All words of a key in a unit file: its lines add up."""
    lines = re.findall(rf"^{key}=(.*)$", path.read_text(), re.MULTILINE)
    return [word for line in lines for word in line.split()]


def numbers():
    return {name: int(number) for name, number in re.findall(r"#define __NR_(\w+) (\d+)", NUMBERS.read_text())}


class Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("program", ctypes.c_char_p))


def compiled(names):
    """Returns a program that lets these calls pass and kills for any other. Names of other architectures are left out, as systemd does."""
    known = numbers()
    steps = [struct.pack("HBBI", LOAD_NUMBER, 0, 0, 0)]
    for name in names:
        if name in known:
            steps.append(struct.pack("HBBI", JUMP_IF_EQUAL, 0, 1, known[name]))
            steps.append(struct.pack("HBBI", RETURN, 0, 0, RET_ALLOW))
    steps.append(struct.pack("HBBI", RETURN, 0, 0, RET_KILL_PROCESS))
    return b"".join(steps), len(steps)


def confined(names):
    """Returns what a child does before it becomes the gateway."""
    octets, length = compiled(names)
    wanted = Filter(length, octets)
    libc = ctypes.CDLL(None, use_errno=True)

    def confine():
        if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(wanted)):
            raise OSError(ctypes.get_errno(), "prctl")

    return confine


# Below those that the kernel gives to whoever asks for any; tests of another process begin elsewhere.
PORTS = itertools.count(10_000 + os.getpid() * 97 % 20_000)


def port(kind=socket.SOCK_STREAM):
    """A port that is free, and stays so until its gateway has it."""
    while True:
        number = next(PORTS)
        with socket.socket(socket.AF_INET, kind) as taken, contextlib.suppress(OSError):
            taken.bind(("127.0.0.1", number))
            return number


def until(what, done):
    for _ in range(PATIENCE * 20):
        if done():
            return
        time.sleep(0.05)
    raise AssertionError(f"waited in vain for {what}")


def echo_tcp():
    server = socket.create_server(("127.0.0.1", 0))

    def serve(client):
        with client:
            while octets := client.recv(65536):
                client.sendall(octets)

    def accept():
        while True:
            threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return server.getsockname()[1]


def echo_udp():
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("127.0.0.1", 0))

    def serve():
        while True:
            octets, client = server.recvfrom(65536)
            server.sendto(octets, client)

    threading.Thread(target=serve, daemon=True).start()
    return server.getsockname()[1]


def exchange(stream, octets=b"are you there"):
    stream.sendall(octets)
    back = b""
    while len(back) < len(octets):
        more = stream.recv(65536)
        if not more:
            raise AssertionError(f"{len(back)} of {len(octets)} octets came back")
        back += more
    if back != octets:
        raise AssertionError("other octets came back")


class Gateway:
    def __init__(self, place, name, text, confine=None, wrapper=()):
        self.file, self.log = place / f"{name}.toml", place / f"{name}.log"
        self.file.write_text(text)
        self.confine, self.wrapper = confine, wrapper
        self.start()

    def start(self):
        with self.log.open("ab") as log:
            command = [*self.wrapper, program.FULMAR, "gateway", "--json", "--log-format", "json", "-c", self.file]
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, preexec_fn=self.confine)
        line = self.process.stdout.readline()
        if not line:
            self.process.stdout.close()
            raise AssertionError(f"it ended with {self.process.wait()}: {self.log.read_text()}")
        self.record = json.loads(line)

    def end(self, with_signal):
        self.process.send_signal(with_signal)
        self.process.stdout.close()
        return self.process.wait(PATIENCE)

    def capabilities(self):
        """Each capability set of each thread, as numbers."""
        found = set()
        for status in pathlib.Path(f"/proc/{self.process.pid}/task").glob("*/status"):
            found.update(re.findall(r"^(Cap\w+|NoNewPrivs):\s+(\w+)$", status.read_text(), re.MULTILINE))
        return {(name, int(value, 16)) for name, value in found}


def base(place, name, peer, listen, address=None):
    where = f'address = "localhost:{address}"\n' if address else ""
    return (
        f'[gateway]\nname = "{name}"\nlisten = "127.0.0.1:{listen}"\nstate_dir = "{place}/state-{name}"\n'
        f'[security]\nkind = "preset"\npreset_key_file = "{place}/link.preset"\n'
        f'[[peer]]\nname = "{peer}"\nrate = "50mbit"\n{where}'
        f'[class.kept]\nmode = "near-reliable"\ncustody = "disk"\n[custody]\ndirectory = "{place}/custody-{name}"\n'
        f'[metrics]\nlisten = "127.0.0.1:0"\n[capture]\nfile = "{place}/{name}.pcapng"\n[trace]\nfile = "{place}/{name}.jsonl"\n'
        '[egress]\nallow = ["127.0.0.0/8:1-65535", "localhost:1-65535"]\n'
    )


@unittest.skipUnless(program.CI or (platform.machine() == "x86_64" and NUMBERS.exists()), "needs x86-64 and linux-libc-dev")
class Confined(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        program.build()

    def setUp(self):
        self.place = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.running = []
        self.addCleanup(self.kill_all)
        subprocess.run([program.FULMAR, "keygen", "--preset", self.place / "link.preset"], check=True, capture_output=True)
        for name in ("air", "ground"):
            for kind in ("state", "custody"):
                (self.place / f"{kind}-{name}").mkdir(mode=0o700)

    def kill_all(self):
        for gateway in self.running:
            if gateway.process.poll() is None:
                gateway.end(signal.SIGKILL)

    def gateway(self, *arguments, **keywords):
        self.running.append(Gateway(self.place, *arguments, **keywords))
        return self.running[-1]

    def carry(self, names):
        """Lets two gateways under a filter do all they can."""
        confine = confined(names)
        carrier, tcp, udp = port(socket.SOCK_DGRAM), echo_tcp(), echo_udp()
        ground = self.gateway("ground", base(self.place, "ground", "air", carrier), confine=confine)
        at = port()
        entries = (
            f'[[forward]]\nlisten = "127.0.0.1:0"\nto = "127.0.0.1:{tcp}"\n'
            f'[[forward]]\nlisten = "127.0.0.1:{at}"\nto = "localhost:{tcp}"\nclass = "kept"\n'
            f'[[forward]]\nprotocol = "udp"\nlisten = "127.0.0.1:0"\nto = "127.0.0.1:{udp}"\n'
            '[[socks]]\nlisten = "127.0.0.1:0"\n'
        )
        text = base(self.place, "air", "ground", 0, carrier) + entries
        air = self.gateway("air", text, confine=confine)
        stream, kept, datagrams, socks = ((host, int(number)) for host, number in (entry.rsplit(":", 1) for entry in air.record["entries"]))
        with socket.create_connection(stream, PATIENCE) as client:
            exchange(client, os.urandom(1_000_000))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.settimeout(PATIENCE)
            client.sendto(b"datagram", datagrams)
            self.assertEqual(client.recv(100), b"datagram")
        with socket.create_connection(socks, PATIENCE) as client:
            client.sendall(b"\5\1\0\5\1\0\3\x09localhost" + struct.pack("!H", tcp))
            while len(greeting := client.recv(2)) != 2:
                self.assertTrue(greeting)
            self.assertEqual(client.recv(10)[:2], b"\5\0")
            exchange(client)
        page = f"http://{air.record['metrics']}/status"
        with urllib.request.urlopen(page, timeout=PATIENCE) as answer:
            self.assertEqual(json.load(answer)["peers"][0]["link"], "up")
        air.process.send_signal(signal.SIGHUP)
        until("the reload", lambda: '"reloaded"' in air.log.read_text())
        with socket.create_connection(kept, PATIENCE) as client:
            exchange(client)
            air.end(signal.SIGKILL)
            air.start()
            exchange(client)
            self.assertEqual(air.end(signal.SIGTERM), 143)
        self.assertEqual(ground.end(signal.SIGTERM), 143)

    def test_a_gateway_does_all_it_can_do_under_the_units_filter(self):
        names = settings(UNIT, "SystemCallFilter")
        self.assertFalse([name for name in names if name.startswith(("@", "~"))], "names only: groups grow with systemd")
        self.assertGreater(len(names), 50)
        for barred in ("ptrace", "mount", "bpf", "setuid", "init_module", "process_vm_writev", "io_uring_setup", "unshare", "keyctl"):
            self.assertNotIn(barred, names)
        self.carry(names)

    def test_the_filter_of_this_test_kills(self):
        names = settings(UNIT, "SystemCallFilter")
        names.remove("capset")
        with self.assertRaisesRegex(AssertionError, f"ended with -{int(signal.SIGSYS)}:"):
            self.carry(names)


@unittest.skipUnless(program.CI or (os.geteuid() == 0 and shutil.which("setpriv")), "needs root and setpriv")
class Privileges(unittest.TestCase):
    NET_ADMIN, NET_BIND_SERVICE, DAC_OVERRIDE = 1 << 12, 1 << 10, 1 << 1
    SETS = ("CapInh", "CapPrm", "CapEff", "CapAmb")

    @classmethod
    def setUpClass(cls):
        program.build()

    # udev lets everybody open the device, and machines without udev only root.
    OPEN_TUN = 'mknod "$0"/tun c 10 200 && chmod 666 "$0"/tun && mount --bind "$0"/tun /dev/net/tun && exec "$@"'

    def kept(self, entries, *units, user=65534):
        """The capabilities of a gateway that begins with those of these units."""
        place = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        text = (
            f'[gateway]\nlisten = "127.0.0.1:0"\nstate_dir = "{place}"\n[security]\nkind = "none"\n'
            f'[[peer]]\nname = "b"\nrate = "1mbit"\n[metrics]\nlisten = "127.0.0.1:0"\n[egress]\nallow = ["127.0.0.1:80"]\n{entries}'
        )
        os.chown(place, user, user)
        given = [name.removeprefix("CAP_").lower() for unit in units for name in settings(unit, "AmbientCapabilities")]
        bounds = [name.removeprefix("CAP_").lower() for unit in units for name in settings(unit, "CapabilityBoundingSet")]
        self.assertEqual(given, bounds)
        some = ",".join(f"+{name}" for name in given)
        sets = [f"--inh-caps={some}", f"--ambient-caps={some}", f"--bounding-set=-all,{some}"] if units else []
        device = ["unshare", "--mount", "sh", "-c", self.OPEN_TUN, str(place)] if TUNNEL in units else []
        wrapper = [*device, "setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", *sets]
        gateway = Gateway(place, "gateway", text, wrapper=wrapper)
        try:
            return gateway.capabilities()
        finally:
            gateway.end(signal.SIGKILL)

    def test_a_gateway_of_the_unit_keeps_nothing_though_it_has_a_low_port(self):
        entries = '[[forward]]\nlisten = "127.0.0.1:97"\nto = "127.0.0.1:80"\n'
        has = self.kept(entries, UNIT)
        for name in self.SETS:
            self.assertIn((name, 0), has)
        self.assertIn(("NoNewPrivs", 1), has)
        self.assertEqual(len(has), 6, has)

    def test_capabilities_stay_only_where_each_client_needs_them(self):
        for protocol, kept in (("tcp", 0), ("udp", self.NET_ADMIN | self.NET_BIND_SERVICE)):
            has = self.kept(f'[[transparent]]\nprotocol = "{protocol}"\nlisten = "127.0.0.1:0"\n', UNIT, TRANSPARENT)
            self.assertIn(("CapPrm", kept), has)
            self.assertIn(("CapEff", kept), has)
            self.assertIn(("CapAmb", 0), has)

    def test_a_tunnel_s_device_is_made_with_its_drop_in_and_nothing_is_kept(self):
        self.assertIn("/dev/net/tun", settings(TUNNEL, "DeviceAllow"))
        self.assertEqual(settings(TUNNEL, "PrivateDevices"), ["no"])
        entries = '[[tunnel]]\npeer = "b"\ndevice = "fulmar-unit"\naddress = "10.213.7.1/30"\n'
        has = self.kept(entries, UNIT, TUNNEL)
        for name in self.SETS:
            self.assertIn((name, 0), has)

    def test_root_keeps_the_right_to_files_and_can_get_no_other_back(self):
        has = self.kept("", user=0)
        for name in ("CapPrm", "CapEff", "CapBnd"):
            self.assertIn((name, self.DAC_OVERRIDE), has)
        self.assertEqual(len(has), 6, has)


if __name__ == "__main__":
    unittest.main()
