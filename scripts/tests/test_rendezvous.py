"""Two gateways behind NATs meet through a third as docs/guide/gateway.md shows it, with the files that stand there.

Method: each of the two in a network namespace behind a router of its own, which masquerades what leaves and drops what nobody asked
for; the hub on the network of the routers' outsides. To the page's files come what it leaves out: names, key files, and an entry to
carry something. `crates/net/tests/gateway_rendezvous.rs` has restarts, and routers that forget. Needs root, ip and nft.
"""

import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time
import unittest

import documents
from program import FULMAR, ROOT, build, lacks

if os.geteuid() != 0 or not shutil.which("nft") or not shutil.which("ip"):
    raise lacks("needs root, nft and ip")

PAGE, SECTION = "docs/guide/gateway.md", "## Both ends behind NAT\n"
HUB, ENDS = "203.0.113.1", ("air", "ground")
# The ground's entry leads to the air's page.
ENTRY, STATUS = "127.0.0.1:8080", "127.0.0.1:9490"
# Longer than anything here takes, by far.
PATIENCE_SECONDS = 120


def section():
    """The section's text, with the number of its first line."""
    before, after = (ROOT / PAGE).read_text().split(SECTION)
    return before.count("\n") + 2, after.split("\n## ")[0]


def files():
    """The file of each gateway as the page shows it, side by side below their names."""
    (block,) = (block for _, block in documents.raw_blocks(section()[1]) if block[0].startswith("# "))
    starts = [match.start() for match in re.finditer("# ", block[0])]
    # A blank line ends a block of text: the rest of the columns is the next one.
    blocks = [block for _, block in documents.raw_blocks(section()[1]) if block[0].startswith(("# ", "[["))]
    columns = [[line[start:end].strip() for line in sum(blocks, [])] for start, end in zip(starts, [*starts[1:], None])]
    return {lines[0].removeprefix("# ").split(",")[0]: lines[1:] for lines in columns}


def shown():
    """The lines of an end's log that the page shows."""
    return [line for _, block in documents.raw_blocks(section()[1]) for line in block if line.startswith("INFO ")]


def run(*words):
    return subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True, timeout=PATIENCE_SECONDS).stdout


class Networks(contextlib.ExitStack):
    """A namespace for each gateway and router, by name, with the gateways' processes. All of it ends with this."""

    def __init__(self, ports):
        super().__init__()
        self.folder = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory()))
        self.names = {name: f"fulmar-nat-{os.getpid()}-{name}" for name in ("hub", "nat0", "nat1", *ENDS)}
        try:
            for name in self.names.values():
                run("ip", "netns", "add", name)
                self.callback(subprocess.run, ["ip", "netns", "delete", name], capture_output=True)
                run("ip", "-n", name, "link", "set", "lo", "up")
            self.lay(ports)
        except BaseException:
            self.close()
            raise

    def within(self, name, *words):
        return run("ip", "netns", "exec", self.names[name], *words)

    def join(self, name, device, address):
        self.within(name, "ip", "address", "add", f"{address}/24", "dev", device)
        self.within(name, "ip", "link", "set", device, "up")

    def lay(self, ports):
        self.within("hub", "ip", "link", "add", "outside", "type", "bridge")
        self.join("hub", "outside", HUB)
        for place, end in enumerate(ENDS):
            router = f"nat{place}"
            for inner, device, outer, other in (("hub", f"wan{place}", router, "wan"), (router, "lan", end, "eth0")):
                self.within(inner, "ip", "link", "add", device, "type", "veth", "peer", "name", other, "netns", self.names[outer])
            self.within("hub", "ip", "link", "set", f"wan{place}", "master", "outside", "up")
            self.join(router, "wan", f"203.0.113.{place + 2}")
            self.join(router, "lan", "10.0.0.1")
            self.join(end, "eth0", "10.0.0.2")
            self.within(end, "ip", "route", "add", "default", "via", "10.0.0.1")
            self.within(router, "sysctl", "-q", "-w", "net.ipv4.ip_forward=1")
            rules = f"""table ip nat {{
                chain leaving {{ type nat hook postrouting priority 100; oifname wan masquerade {ports}; }}
                chain arriving {{ type filter hook input priority 0; iifname wan drop; }}
            }}"""
            (self.folder / "rules").write_text(rules)
            self.within(router, "nft", "-f", self.folder / "rules")

    def start(self, name, text):
        """Starts a gateway with this file; returns the file of its log."""
        file, log = self.folder / f"{name}.toml", self.folder / f"{name}.log"
        file.write_text(text)
        command = ["ip", "netns", "exec", self.names[name], FULMAR, "gateway", "-c", file, "--log-format", "text"]
        with log.open("w") as said:
            child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
        self.callback(child.wait, PATIENCE_SECONDS)
        self.callback(child.terminate)
        return log

    def start_all(self):
        """Starts the three gateways; returns the files of their logs by name."""
        keys = {name: run(FULMAR, "keygen", self.folder / f"{name}.key").strip() for name in ("hub", *ENDS)}
        more = {"hub": "", "air": f'[metrics]\nlisten = "{STATUS}"\n[egress]\nallow = ["{STATUS}"]\n',
                "ground": f'[metrics]\nlisten = "{STATUS}"\n[[forward]]\nlisten = "{ENTRY}"\nto = "{STATUS}"\npeer = "air"\n'}
        logs = {}
        for name, lines in files().items():
            peer, text = None, ""
            for line in lines:
                peer = line.split('"')[1] if line.startswith("name") else peer
                text += line.replace('public_key = "..."', f'public_key = "{keys.get(peer)}"') + "\n"
            state = self.folder / f"{name}-state"
            head = f'[gateway]\nname = "{name}"\nstate_dir = "{state}"\n[security]\nkind = "noise"\nprivate_key_file = "{self.folder / name}.key"\n'
            logs[name] = self.start(name, head + text + more[name])
        return logs


class Rendezvous(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        build()

    def wait_for(self, lines, log):
        """Waits until a log has these lines, with other numbers."""
        missing, until = lines, time.monotonic() + PATIENCE_SECONDS
        while missing and time.monotonic() < until:
            time.sleep(0.1)
            said = documents.printed_lines(log.read_text())
            missing = [line for line in lines if not any(documents.as_shown(line).fullmatch(one) for one in said)]
        self.assertEqual(missing, [], f"{PAGE} shows this, and the log has only:\n{log.read_text()}")

    def reached(self, networks):
        """The status of the air gateway, through the ground's entry: the way by which it reaches the ground."""
        status = json.loads(networks.within("ground", "curl", "-sS", "--max-time", PATIENCE_SECONDS, f"http://{ENTRY}/status"))
        self.assertEqual(status["name"], "air")
        (peer,) = (peer for peer in status["peers"] if peer["name"] == "ground")
        return peer["reached"]

    def test_they_meet_directly_with_the_page_s_files_and_the_page_s_words(self):
        self.assertGreater(len(shown()), 2)
        with Networks("") as networks:
            logs = networks.start_all()
            self.wait_for(shown(), logs["ground"])
            self.assertEqual(self.reached(networks), "directly")

    def test_where_a_nat_has_a_port_for_each_destination_the_hub_passes_on(self):
        (way,) = re.findall(r'``(way="through .*?")``', section()[1])
        with Networks("random,fully-random") as networks:
            logs = networks.start_all()
            line = shown()[-1].split(" way=")[0] + " " + way
            self.assertIn('event="peer_reached"', line)
            self.wait_for([line], logs["ground"])
            self.assertEqual(self.reached(networks), "through `hub`")


if __name__ == "__main__":
    unittest.main()
