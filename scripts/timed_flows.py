"""TCP flows that are counted as they come, for `scripts/found-rate`: one end sends without end to whoever connects, the other counts.

    timed_flows.py source ADDRESS PORT [CONTROL]     prints `ready`
    timed_flows.py sink ADDRESS PORT SECONDS         prints [[second, octets until then], ...], by the system's monotonic clock
"""

import contextlib
import json
import select
import socket
import sys
import threading
import time

EVERY_SECONDS = 0.5
BLOCK = bytes(1 << 16)


def feed(connection):
    with contextlib.suppress(OSError), connection:
        while True:
            connection.sendall(BLOCK)


def source(address, port, control=None):
    with socket.create_server((address, port)) as listener:
        if control:
            # Connections inherit it.
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
        print("ready", flush=True)
        while True:
            threading.Thread(target=feed, args=(listener.accept()[0],), daemon=True).start()


def sink(address, port, seconds):
    counted, octets = [], 0
    with socket.create_connection((address, port), timeout=30) as connection:
        began = time.monotonic()
        due = began
        while (now := time.monotonic()) < began + seconds:
            if now >= due:
                counted.append([round(now, 3), octets])
                due += EVERY_SECONDS
            if select.select([connection], [], [], max(0, min(due, began + seconds) - now))[0]:
                came = len(connection.recv(1 << 18))
                if not came:
                    break
                octets += came
        counted.append([round(time.monotonic(), 3), octets])
    print(json.dumps(counted), flush=True)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        if sys.argv[1] == "source":
            source(sys.argv[2], int(sys.argv[3]), *sys.argv[4:])
        else:
            sink(sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))
