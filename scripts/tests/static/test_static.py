"""The static binary needs nothing of the system, works alone, between two gateways and by names, and runs in its image.

Method: target/static/fulmar as `scripts/static` made it; `make static` builds it and then runs this, since the build alone
takes minutes. The image is built and run by buildah without a registry, an engine or namespaces (`--isolation chroot`).
Names are answered by a server of ours at an address of the loopback that nobody else uses.
"""

import hashlib
import json
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[3]
STATIC = ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "static"
FULMAR = STATIC / "fulmar"
CI = os.environ.get("CI") == "true"
SERVER = "127.0.0.77"
NAME = "far.fulmar.test"


def run(*command, **options):
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, **options)
    if ended.returncode:
        raise AssertionError(f"{' '.join(map(str, command))}: {ended.stdout}{ended.stderr}")
    return ended.stdout


def free_port(kind=socket.SOCK_DGRAM):
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def answer(query):
    """127.0.0.1 for NAME's A, nothing for its AAAA, unknown otherwise (RFC 1035, section 4)."""
    end = query.index(0, 12) + 1
    labels, at = [], 12
    while query[at]:
        labels.append(query[at + 1:at + 1 + query[at]].decode())
        at += 1 + query[at]
    known = ".".join(labels) == NAME
    found = known and query[end:end + 2] == b"\0\1"
    flags = 0x8180 if known else 0x8183
    record = b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 60, 4) + bytes([127, 0, 0, 1])
    header = query[:2] + struct.pack(">HHHHH", flags, 1, int(found), 0, 0)
    return header + query[12:end + 4] + (record if found else b"")


class Names(threading.Thread):
    def __init__(self):
        super().__init__(daemon=True)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((SERVER, 53))
        self.asked = 0

    def run(self):
        while True:
            try:
                query, client = self.socket.recvfrom(512)
            except OSError:
                return
            self.asked += 1
            self.socket.sendto(answer(query), client)


class Static(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def start(self, *command):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        def stop():
            process.kill()
            process.wait()
        self.addCleanup(stop)
        return process

    def file(self, octets):
        path = self.directory / "file.bin"
        path.write_bytes(os.urandom(octets))
        return path, hashlib.sha256(path.read_bytes()).hexdigest()

    def arrived(self, path, digest):
        for _ in range(600):
            if path.exists() and hashlib.sha256(path.read_bytes()).hexdigest() == digest:
                return
            time.sleep(0.05)
        self.fail(f"{path} did not come, or not as it was sent")

    def test_it_needs_no_loader_and_no_library(self):
        self.assertNotIn("INTERP", run("readelf", "--program-headers", FULMAR))
        self.assertNotIn("NEEDED", run("readelf", "--dynamic", FULMAR))
        told = subprocess.run(["ldd", FULMAR], capture_output=True, text=True, timeout=60)
        self.assertRegex(told.stdout + told.stderr, "statically linked|not a dynamic executable")

    def test_it_is_the_version_of_the_workspace(self):
        metadata = json.loads(run("cargo", "metadata", "--no-deps", "--format-version", "1", cwd=ROOT))
        (version,) = {package["version"] for package in metadata["packages"] if package["name"] == "fulmar-cli"}
        self.assertEqual(run(FULMAR, "--version").split()[1], version)

    def test_the_demo_delivers(self):
        path, _ = self.file(100_000)
        rows = run(FULMAR, "demo", "--file", path, "--modes", "nack-mack", "--json", "--out", self.directory)
        rows = [json.loads(row) for row in rows.splitlines()]
        self.assertEqual({row["link"] for row in rows}, {"clean", "lossy"})

    def test_two_gateways_carry_a_connection_to_a_name(self):
        web = free_port(socket.SOCK_STREAM)
        path, digest = self.file(2_000_000)
        self.start("python3", "-m", "http.server", str(web), "--bind", "127.0.0.1", "--directory", self.directory)
        ports = {"air": free_port(), "ground": free_port()}
        entry = free_port(socket.SOCK_STREAM)
        keys = {name: run(FULMAR, "keygen", self.directory / f"{name}.key").strip() for name in ports}
        more = {
            "air": f'address = "127.0.0.1:{ports["ground"]}"\n[[forward]]\nprotocol = "tcp"\nlisten = "127.0.0.1:{entry}"\n'
                   f'to = "localhost:{web}"\n',
            "ground": f'[egress]\nallow = ["localhost:{web}", "127.0.0.0/8:{web}"]\n',
        }
        for name, peer in (("ground", "air"), ("air", "ground")):
            configuration = self.directory / f"{name}.toml"
            configuration.write_text(
                f'[gateway]\nname = "{name}"\nlisten = "127.0.0.1:{ports[name]}"\n'
                f'[security]\nkind = "noise"\nprivate_key_file = "{self.directory / name}.key"\n'
                f'[[peer]]\nname = "{peer}"\npublic_key = "{keys[peer]}"\nrate = "100mbit"\n{more[name]}')
            self.start(FULMAR, "gateway", "-c", configuration)
        for attempt in range(100):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{entry}/{path.name}", timeout=20) as response:
                    got = response.read()
                break
            except OSError:
                self.assertLess(attempt, 99, "the gateways carry nothing")
                time.sleep(0.1)
        self.assertEqual(hashlib.sha256(got).hexdigest(), digest)

    @unittest.skipUnless(CI or (os.geteuid() == 0 and shutil.which("buildah")), "needs root and buildah")
    def test_its_image_runs_as_its_user_reads_a_configuration_and_finds_names(self):
        store = ["--storage-driver", "vfs", "--root", self.directory / "root", "--runroot", self.directory / "run"]
        recipe = ROOT / "packaging/container/Containerfile"
        run("buildah", *store, "build", "--isolation", "chroot", "--format", "docker", "--tag", "fulmar", "--file", recipe, STATIC)
        container = run("buildah", *store, "from", "--pull-never", "fulmar").strip()
        image = pathlib.Path(run("buildah", *store, "mount", container).strip())
        self.addCleanup(subprocess.run, ["buildah", *store, "rm", container], capture_output=True, timeout=120)

        def inside(*arguments, volumes=()):
            volumes = [word for volume in volumes for word in ("--volume", volume)]
            return run("buildah", *store, "run", "--isolation", "chroot", *volumes, container, "--", "/fulmar", *arguments)

        self.assertIn("fulmar", inside("--version"))
        self.assertEqual((image / "var/lib/fulmar").stat().st_uid, 4914)

        etc = self.directory / "etc"
        etc.mkdir()
        run(FULMAR, "keygen", etc / "ground.key")
        shutil.copy(ROOT / "examples/gateway/ground.toml", etc / "gateway.toml")
        for path in etc.iterdir():
            shutil.chown(path, 4914, 4914)
        self.directory.chmod(0o755)
        told = inside("gateway", "--check", "-c", "/etc/fulmar/gateway.toml", volumes=[f"{etc}:/etc/fulmar:ro"])
        self.assertIn("ground", told)

        # As an engine does it: the resolver's file stands in the image.
        (image / "etc/resolv.conf").write_text(f"nameserver {SERVER}\n")
        (image / "etc/hosts").write_text("127.0.0.1 localhost\n")
        names = Names()
        names.start()
        self.addCleanup(names.socket.close)
        port = free_port()
        path, digest = self.file(50_000)
        shutil.copy(path, image / "file.bin")
        self.start(FULMAR, "recv", self.directory / "got", "--listen", f"127.0.0.1:{port}", "--once")
        run("chroot", "--userspec=4914:4914", image, "/fulmar", "send", "/file.bin", f"{NAME}:{port}", "--rate", "20mbit")
        self.arrived(self.directory / "got/file.bin", digest)
        self.assertGreater(names.asked, 0)


if __name__ == "__main__":
    unittest.main()
