"""The Debian package installs, runs a gateway as its own user, is upgraded without losing its data, and leaves nothing.

Method: on this machine, as root, with dpkg itself. Where no systemd runs the gateway is started as docs/guide/operating.md says.
"""

import json
import os
import pathlib
import pwd
import re
import shutil
import subprocess
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CI = os.environ.get("CI") == "true"
GUIDE = (ROOT / "docs/guide/operating.md").read_text()
CONFIGURATION = pathlib.Path("/etc/fulmar/test.toml")
KEPT = pathlib.Path("/var/lib/fulmar")
PID = pathlib.Path("/run/fulmar-test.pid")
UNIT = pathlib.Path("/lib/systemd/system/fulmar-gateway@.service")


def run(*command, check=True):
    ended = subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=ROOT)
    if check and ended.returncode:
        raise AssertionError(f"{' '.join(map(str, command))}: {ended.stdout}{ended.stderr}")
    return ended


def build(revision):
    return ROOT / run("scripts/package", str(revision)).stdout.strip()


def shown(beginning):
    """The guide's command that begins so, for a gateway named `test`."""
    (line,) = re.findall(rf"^    ({beginning}.*)$", GUIDE, re.MULTILINE)
    return line.replace("NAME", "test")


def is_known():
    return run("dpkg-query", "--show", "fulmar", check=False).returncode == 0


@unittest.skipUnless(CI or (os.geteuid() == 0 and shutil.which("dpkg-deb")), "needs root and dpkg")
class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if is_known():
            raise AssertionError("fulmar is installed here: apt-get purge fulmar, and run this again")
        cls.first, cls.second = build(1), build(2)
        cls.addClassCleanup(lambda: run("dpkg", "--purge", "fulmar", check=False))

    def start(self):
        """Runs the guide's line for machines without systemd."""
        run("sh", "-c", shown("start-stop-daemon --start "))
        for _ in range(200):
            status = run("curl", "--silent", "http://127.0.0.1:49180/status", check=False)
            if status.returncode == 0:
                return json.loads(status.stdout)
            time.sleep(0.05)
        self.fail("the gateway does not answer")

    def stop(self):
        run("sh", "-c", shown("start-stop-daemon --stop "))

    def test_a_life_from_installation_to_purge(self):
        run("dpkg", "--install", self.first)
        self.addCleanup(lambda: run("pkill", "-u", "fulmar", "-x", "fulmar", check=False))
        version = run("/usr/bin/fulmar", "--version").stdout.split()[1]
        self.assertIn(f"fulmar_{version}-1_", self.first.name)
        self.assertIn(self.first.name.rsplit("_", 1)[0], shown("apt-get install "))
        self.assertEqual(run("dpkg", "--verify", "fulmar").stdout, "")
        self.assertTrue(pathlib.Path("/usr/share/man/man1/fulmar-gateway.1.gz").exists())
        self.assertIn("fulmar.aerotp", run("tshark", "-G", "protocols").stdout, "Wireshark does not see the plugin")
        unit = run("systemd-analyze", "verify", "--man=no", UNIT, check=False)
        self.assertNotIn("fulmar-gateway@", unit.stderr)
        self.assertEqual(unit.returncode, 0, unit.stderr)

        run("sh", "-c", shown("fulmar keygen "))
        owner = os.stat("/etc/fulmar/test.key").st_uid
        self.assertEqual(owner, pwd.getpwnam("fulmar").pw_uid)
        far = run("/usr/bin/fulmar", "keygen", "/etc/fulmar/far.key").stdout.strip()
        CONFIGURATION.write_text(f"""
[gateway]
name = "test"
listen = "127.0.0.1:49140"
[security]
kind = "noise"
private_key_file = "/etc/fulmar/test.key"
[[peer]]
name = "far"
rate = "10mbit"
public_key = "{far}"
[egress]
allow = ["127.0.0.0/8:1-65535"]
[class.kept]
mode = "near-reliable"
custody = "disk"
[custody]
directory = "/var/lib/fulmar/custody"
[metrics]
listen = "127.0.0.1:49180"
""")
        doctor = run("sh", "-c", shown("fulmar doctor "), check=False)
        self.assertIn(doctor.returncode, (0, 1), doctor.stderr)
        self.assertIn("far", doctor.stdout)
        # Nothing is started where no systemd runs.
        run("sh", "-c", shown("systemctl enable ").replace(" --now", ""))
        run("sh", "-c", shown("install -D "))
        drop_in = pathlib.Path("/etc/systemd/system/fulmar-gateway@test.service.d")
        self.assertIn("CAP_NET_ADMIN", (drop_in / "transparent.conf").read_text())
        # Its administrator's, who takes it away.
        shutil.rmtree(drop_in)
        self.assertEqual(self.start()["name"], "test")
        pid = int(PID.read_text())
        owner = os.stat(f"/proc/{pid}").st_uid
        self.assertEqual(owner, pwd.getpwnam("fulmar").pw_uid)
        marker = KEPT / "custody" / "marker"
        marker.write_text("kept")

        run("dpkg", "--install", self.second)
        self.assertEqual(self.installed(), f"{version}-2")
        self.assertEqual(marker.read_text(), "kept")
        self.assertIn("test.key", CONFIGURATION.read_text())
        # The gateway of before still runs: without systemd its administrator starts it anew.
        os.kill(pid, 0)
        self.stop()
        self.assertEqual(self.start()["name"], "test")
        self.stop()

        run("dpkg", "--remove", "fulmar")
        self.assertTrue(marker.exists() and CONFIGURATION.exists(), "removing is not purging")
        run("dpkg", "--purge", "fulmar")
        self.assertFalse(is_known())
        self.assertEqual(list(pathlib.Path("/etc/systemd").rglob("*fulmar*")), [])
        for gone in (KEPT, CONFIGURATION.parent, UNIT, pathlib.Path("/usr/bin/fulmar")):
            self.assertFalse(gone.exists(), gone)

    def installed(self):
        return run("dpkg-query", "--show", "--showformat", "${Version}", "fulmar").stdout

    def test_lintian_finds_no_error(self):
        found = run("lintian", "--allow-root", "--fail-on", "error", self.first, check=False)
        self.assertEqual(found.returncode, 0, found.stdout + found.stderr)


if __name__ == "__main__":
    unittest.main()
