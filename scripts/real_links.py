"""Emulated links between network namespaces, and what carries a file over them. Needs root.

`scripts/side-by-side` and `scripts/found-rate` measure with these: curl and nginx over kernel TCP, directly or through two `fulmar gateway`s,
and one stream of quinn (`bench/bulk`).
"""

import contextlib
import filecmp
import itertools
import json
import os
import pathlib
import select
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = ROOT / os.environ.get("CARGO_TARGET_DIR", "target")
FULMAR = TARGET / "release/fulmar"
BULK = ROOT / "bench/bulk/target/release/bulk"
CONTROLS_FILE = pathlib.Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
NUMBERS = itertools.count()
HERE, THERE = "10.77.0.1", "10.77.0.2"
# The measured processes' prefix, such as `chrt -f 10` where others use the machine.
PREFIX = []


def build():
    """Builds what is measured, unless BUILT names the commit at which that was done."""
    if os.environ.get("BUILT"):
        # Not only after hours of measuring.
        commit()
        return
    subprocess.run(["cargo", "build", "--release", "--locked", "-p", "fulmar-cli"], cwd=ROOT, check=True)
    own_target = {name: value for name, value in os.environ.items() if name != "CARGO_TARGET_DIR"}
    subprocess.run(["cargo", "build", "--release", "--locked"], cwd=ROOT / "bench/bulk", check=True, env=own_target)


def commit():
    """The commit that is measured: HEAD, or the one that BUILT names, with further words if need be."""
    built = os.environ.get("BUILT", "HEAD")
    name, *remarks = built.split() or ["HEAD"]
    found = subprocess.run(["git", "rev-parse", "--short", "--verify", "--quiet", f"{name}^{{commit}}"], cwd=ROOT, text=True, stdout=subprocess.PIPE)
    if found.returncode:
        sys.exit(f"BUILT={built}: {name} is no commit here; a page says which one was measured")
    return " ".join([found.stdout.strip(), *remarks])


def quinn_version():
    lock = (ROOT / "bench/bulk/Cargo.lock").read_text()
    return lock.partition('name = "quinn"\nversion = "')[2].partition('"')[0]


def available(controls):
    """Those of the kernel's congestion controls that it has."""
    for control in controls:
        if control not in CONTROLS_FILE.read_text().split():
            subprocess.run(["modprobe", f"tcp_{control}"], capture_output=True, check=False)
    return [control for control in controls if control in CONTROLS_FILE.read_text().split()]


@contextlib.contextmanager
def process(command, inside=None):
    prefix = ["ip", "netns", "exec", inside] if inside else []
    child = subprocess.Popen([*prefix, *PREFIX, *map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield child
    finally:
        end(child)


def end(child):
    """Ends a process; returns what it said since it was read last."""
    if child.poll() is None:
        child.send_signal(signal.SIGINT)
    try:
        return child.communicate(timeout=10)[0]
    except ValueError:
        return ""  # It was ended before.
    except subprocess.TimeoutExpired:
        child.kill()
        return child.communicate()[0]


class Link:
    """A link's two namespaces, and the emulator's figures once it has ended."""

    def __init__(self):
        self.here, self.there = (f"fulmar-{os.getpid()}-{next(NUMBERS)}-{end}" for end in "ab")
        self.figures = {}


@contextlib.contextmanager
def link(flags):
    made = Link()
    with process([FULMAR, "emulate", "--tun", f"a={made.here}", f"b={made.there}", "--json", *flags]) as emulator:
        if not emulator.stdout.readline():
            sys.exit(f"the emulator did not start: {emulator.stderr.read().strip()}")
        try:
            yield made
        finally:
            said = end(emulator)
            if os.environ.get("SHOW"):
                print(said)
            for line in said.splitlines():
                with contextlib.suppress(json.JSONDecodeError):
                    made.figures = json.loads(line)


@contextlib.contextmanager
def web_server(namespace, directory):
    config = directory / f"nginx-{namespace}.conf"
    config.write_text(
        f"daemon off; master_process off; worker_processes 1; pid {config}.pid; error_log stderr;\n"
        "events {}\n"
        f"http {{ access_log off; server {{ listen 8080; root {directory}; }} }}\n")
    with process(["nginx", "-p", directory, "-c", config], namespace):
        time.sleep(0.5)
        yield


def use_control(namespace, control):
    """Gives TCP from `there` to `here` a congestion control. By route: a namespace's sysctl takes only what the system allows to everybody."""
    route = subprocess.run(["ip", "-n", namespace, "-o", "route", "get", HERE], check=True, text=True, capture_output=True).stdout.split()
    device = route[route.index("dev") + 1]
    subprocess.run(["ip", "-n", namespace, "route", "replace", f"{HERE}/32", "dev", device, "src", THERE, "congctl", control], check=True)


def keys(directory):
    public = {}
    for name in ("ground", "air"):
        key = directory / f"{name}.key"
        if not key.exists():
            subprocess.run([FULMAR, "keygen", key], check=True, capture_output=True)
        public[name] = subprocess.run([FULMAR, "keygen", "--public", key], check=True, text=True, capture_output=True).stdout.strip()
    return public


def asked(namespace, port, what):
    command = ["ip", "netns", "exec", namespace, "curl", "-s", f"http://127.0.0.1:{port}/{what}"]
    return subprocess.run(command, text=True, capture_output=True, timeout=10).stdout


def settings(directory, public, place, peer, mode, states):
    """The configurations of the pair of gateways in a place of its own: the near one's entry leads to port 8080 + `place` of the far one's host."""
    door = f"127.0.0.1:{8080 + place}"

    def common(own, other, address):
        return (f'[gateway]\nname = "{own}"\nlisten = "0.0.0.0:{4914 + place}"\nstate_dir = "{states[own]}"\n'
                f'[security]\nkind = "noise"\nprivate_key_file = "{directory}/{own}.key"\n'
                f'[[peer]]\nname = "{other}"\n{address}public_key = "{public[other]}"\n{peer}'
                f'[metrics]\nlisten = "127.0.0.1:{9490 + place}"\n')

    air = common("air", "ground", "") + f'[egress]\nallow = ["{door}"]\n'
    ground = (common("ground", "air", f'address = "{THERE}:{4914 + place}"\n') + f'[class.bulk]\nmode = "{mode}"\n'
              + f'[[forward]]\nlisten = "{door}"\nto = "{door}"\nclass = "bulk"\n')
    return {"air": air, "ground": ground}


@contextlib.contextmanager
def gateways(pair, directory, peer, mode="reliable", place=0, states=None):
    """Two gateways that have found each other; `peer` are the lines of each one's [[peer]] on rates. `states` are the directories of what they keep."""
    if states is None:
        states = state_directories(directory)
    texts = settings(directory, keys(directory), place, peer, mode, states)
    with contextlib.ExitStack() as stack:
        for name, namespace in (("air", pair.there), ("ground", pair.here)):
            config = directory / f"{namespace}-{place}.toml"
            config.write_text(texts[name])
            started = stack.enter_context(process([FULMAR, "gateway", "-c", config, "--json"], namespace))
            if not started.stdout.readline():
                sys.exit(f"a gateway did not start: {started.stderr.read().strip()}")
        # Gateways run for months: what is measured does not include their first handshake.
        port = 9490 + place
        until = time.monotonic() + 60
        while 'fulmar_link_up{peer="air"} 1.0' not in asked(pair.here, port, "metrics"):
            if time.monotonic() > until:
                sys.exit("the gateways did not find each other")
            time.sleep(0.1)
        yield
        if os.environ.get("SHOW"):
            for name in (pair.here, pair.there):
                print(asked(name, port, "metrics"))


def state_directories(directory):
    """Fresh directories: what a gateway found before would be tried first."""
    states = {name: directory / f"state-{name}-{next(NUMBERS)}" for name in ("air", "ground")}
    for state in states.values():
        state.mkdir(mode=0o700)
    return states


class WrongFile(SystemExit):
    """A file arrived with wrong octets: no figure of the run is worth anything."""


def fetch(namespace, url, directory, size, cap):
    """Downloads a file for `cap` seconds at most; returns the seconds, the octets, and whether they are all."""
    out = directory / f"got-{namespace}"
    command = ["ip", "netns", "exec", namespace, "curl", "-s", "-S", "--max-time", str(cap), "-o", out, "-w", "%{time_total}", url]
    run = subprocess.run(list(map(str, command)), text=True, capture_output=True, timeout=cap + 30)
    got = out.stat().st_size if out.exists() else 0
    whole = run.returncode == 0 and got == size
    if whole and not filecmp.cmp(out, directory / "file", shallow=False):
        raise WrongFile(f"{url}: the file differs from the original")
    out.unlink(missing_ok=True)
    if run.returncode not in (0, 28):
        print(f"curl: {run.stderr.strip()}", file=sys.stderr)
    return {"seconds": float(run.stdout or cap), "octets": got, "complete": whole}


def fetch_by_quic(pair, directory, size, cap, *control):
    """Sends one stream from `there` to `here`, with quinn's default congestion control or another; returns the seconds, the octets that came in order, and whether all came."""
    address, certificate = f"{HERE}:4433", directory / f"certificate-{pair.here}"
    with process([BULK, "quic-sink", address, certificate], pair.here) as sink:
        if sink.stdout.readline() != "ready\n":
            sys.exit(f"bulk did not begin: {sink.stderr.read().strip()}")
        begun = time.monotonic()
        with process([BULK, "quic-source", address, size, certificate, *control], pair.there):
            ended, _, _ = select.select([sink.stdout], [], [], cap)
            seconds = time.monotonic() - begun
            if not ended:
                sink.send_signal(signal.SIGINT)
            said = sink.stdout.readline()
    got = json.loads(said)["bytes"] if said else 0
    whole = bool(ended) and got == size
    if ended and not whole:
        print(f"bulk ended after {seconds:.1f} s with {got} octets", file=sys.stderr)
    return {"seconds": seconds, "octets": got, "complete": whole}
