"""What `scripts/several-paths` asks of two paths while one of them dies, or changes its rate.

    path_trials.py fetch URL SECONDS                  downloads, and prints the octets, their SHA-256 and the longest time for which nothing came
    path_trials.py hear PORT MESSAGES                 prints the delays of datagrams in microseconds
    path_trials.py say PORT MESSAGES                  sends one datagram every 20 ms

Outages and changes of an emulated link count from the emulator's start. `Path.began` has that time by the system's monotonic clock.
"""

import contextlib
import dataclasses
import hashlib
import json
import math
import socket
import subprocess
import sys
import time
import urllib.request

import real_links

# The deaths asked for: one of two paths for a second of every 2.5.
DEATHS, DEAD_S, DEATH_EVERY_S = 10, 1, 2.5
# Messages: due within so long, while one path is down for two of every five seconds.
MESSAGES, MESSAGE_BYTES, EVERY_S, DUE_US = 5_000, 1_000, 0.02, 150_000
EACH = (5, 20, 20)
# The rate of one path halves and doubles.
TURN_S, TURNS = 15, 6
# Before the rate of a flow is found, nothing is counted.
FOUND_S = 5


@dataclasses.dataclass
class Path:
    """An emulated path: rate in mbit, delay in ms, loss in percent; what its emulator is told besides; when that began."""

    mbit: float
    millis: float
    percent: float
    told: tuple = ()
    began: float = math.nan

    def ideal(self):
        return self.mbit * (1 - self.percent / 100) * 1472 / 1500

    def flags(self, seed):
        return ["--rate", f"{self.mbit}mbit", "--delay", f"{self.millis}ms", "--loss", f"{self.percent}%", "--seed", str(seed), *self.told]


def run(role, namespace, *arguments):
    """Runs one of the roles below in a namespace; returns what it prints."""
    command = ["ip", "netns", "exec", namespace, *real_links.PREFIX, sys.executable, __file__, role, *map(str, arguments)]
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def deaths_within(began, begin, end):
    """The deaths of a path, whose emulator began at `began`, that begin and end between two times."""
    first = math.ceil((begin - began) / DEATH_EVERY_S)
    last = math.floor((end - began - DEAD_S) / DEATH_EVERY_S)
    return max(0, last - max(first, 1) + 1)


def longest_gap_max(paths):
    """The longest gap that is asked for, in seconds: 100 ms and two round trips of the slower path."""
    return 0.1 + 2 * 2 * max(path.millis for path in paths) / 1e3


def dying(paths, dead):
    """The same paths, of which one dies again and again."""
    told = ("--outage", f"every {DEATH_EVERY_S}s for {DEAD_S}s")
    return [dataclasses.replace(path, told=told) if place == dead else path for place, path in enumerate(paths)]


def deaths(made, paths, patience_s, digest):
    """A download while one of the paths dies again and again. `made` has the world: the namespaces, and the paths with their times."""
    pair, dead = made
    begin = time.monotonic()
    got = run("fetch", pair.here, "http://127.0.0.1:8080/file", patience_s)
    return {
        "gap_s": got["gap_s"],
        "asked_s": longest_gap_max(paths),
        "deaths": deaths_within(dead.began, begin, begin + got["seconds"]),
        "complete": got["sha256"] == digest,
        "seconds": got["seconds"],
    }


def messages(pair):
    """Datagrams through the gateways; the share that came in time."""
    hear = ["ip", "netns", "exec", pair.there, *real_links.PREFIX, sys.executable, __file__, "hear", "8080", str(MESSAGES)]
    with subprocess.Popen(hear, text=True, stdout=subprocess.PIPE) as reader:
        if reader.stdout.readline() != "ready\n":
            sys.exit("nobody listens for the messages")
        before = octets_left(pair.here)
        run("say", pair.here, 8080, MESSAGES)
        left = octets_left(pair.here) - before
        delays = json.loads(reader.stdout.readline())
    in_time = sum(delay <= DUE_US for delay in delays)
    return {"in_time": in_time / MESSAGES, "came": len(delays) / MESSAGES, "octets": left / (MESSAGES * MESSAGE_BYTES)}


def octets_left(namespace):
    """The octets of all packets that left a namespace by its links."""
    said = subprocess.run(["ip", "-n", namespace, "-s", "-j", "link", "show"], check=True, text=True, stdout=subprocess.PIPE).stdout
    return sum(device["stats64"]["tx"]["bytes"] for device in json.loads(said) if device["ifname"] != "lo")


def changing(paths, place):
    """The same paths, of which the rate of one halves and doubles, from the emulator's start on."""
    path = paths[place]
    rates = [(turn * TURN_S, path.mbit / (1 + turn % 2)) for turn in range(1, 40)]
    told = tuple(word for at, rate in rates for word in ("--change", f"{at}s rate={rate}mbit"))
    return [dataclasses.replace(path, told=told) if one == place else other for one, other in enumerate(paths)]


def changing_sum(path, others_mbit, full_mbit, times):
    """The octets that would come between two times by a path that halves and doubles, which brings `full_mbit` at its full rate, and by others."""
    begin, end = times
    octets, at = 0.0, begin
    while at < end:
        turn = math.floor((at - path.began) / TURN_S)
        until = min(end, path.began + (turn + 1) * TURN_S)
        octets += (full_mbit / (1 + turn % 2) + others_mbit) * 1e6 / 8 * (until - at)
        at = until
    return octets


def flow(pair, seconds):
    """An endless TCP flow through the gateways: the times and octets, from when its rate is found."""
    source = [sys.executable, real_links.ROOT / "scripts/timed_flows.py", "source", "127.0.0.1", "8080"]
    with real_links.process(source, pair.there) as sender:
        if sender.stdout.readline() != "ready\n":
            sys.exit(f"nothing sends: {sender.stderr.read().strip()}")
        sink = [*real_links.PREFIX, sys.executable, real_links.ROOT / "scripts/timed_flows.py", "sink", "127.0.0.1", "8080", str(seconds + FOUND_S)]
        said = subprocess.run(["ip", "netns", "exec", pair.here, *map(str, sink)], text=True, stdout=subprocess.PIPE, check=True).stdout
    counted = json.loads(said)
    begin = counted[0][0] + FOUND_S
    return [(at, octets) for at, octets in counted if at >= begin]


def came_between(counted):
    """The first and the last time of a flow, and the octets between them."""
    (begin, first), (end, last) = counted[0], counted[-1]
    return (begin, end), last - first


def fetch(url, patience_s):
    began = time.monotonic()
    heard, gap, octets, digest = None, 0.0, 0, hashlib.sha256()
    with contextlib.suppress(TimeoutError), urllib.request.urlopen(url, timeout=patience_s) as answer:
        while block := answer.read1(65_536):
            now = time.monotonic()
            gap = max(gap, now - (heard or now))
            heard, octets = now, octets + len(block)
            digest.update(block)
            if now - began > patience_s:
                break
    return {"octets": octets, "sha256": digest.hexdigest(), "gap_s": gap, "seconds": time.monotonic() - began}


def hear(port, count):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", port))
        server.settimeout(8)
        print("ready", flush=True)
        delays, seen = [], set()
        while len(seen) < count:
            try:
                message = server.recv(65_536)
            except TimeoutError:
                break
            now = time.monotonic_ns()
            if len(message) != MESSAGE_BYTES or message[:8] in seen:
                sys.exit("a message came twice, or not whole")
            seen.add(message[:8])
            delays.append((now - int.from_bytes(message[:8])) // 1000)
    return delays


def say(port, count):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        due = time.monotonic()
        for _ in range(count):
            sender.sendto(time.monotonic_ns().to_bytes(8) + bytes(MESSAGE_BYTES - 8), ("127.0.0.1", port))
            due += EVERY_S
            time.sleep(max(0, due - time.monotonic()))
    return count


if __name__ == "__main__":
    role, first, second = sys.argv[1:]
    if role == "fetch":
        print(json.dumps(fetch(first, float(second))))
    elif role == "hear":
        print(json.dumps(hear(int(first), int(second))), flush=True)
    else:
        print(json.dumps(say(int(first), int(second))))
