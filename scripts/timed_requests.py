"""Requests and answers over TCP for `scripts/requests`, each on a connection of its own, one after the other.

    timed_requests.py answers ADDRESS PORT [CONTROL]                 prints `ready`
    timed_requests.py asks ADDRESS PORT COUNT BYTES PATIENCE         prints [seconds or null, ...]

A request is the answer's length in eight octets. The time runs from the connect to the answer's last octet.
"""

import contextlib
import json
import socket
import sys
import threading
import time

REQUEST_BYTES = 8


def exactly(connection, count):
    octets = bytearray()
    while len(octets) < count:
        came = connection.recv(min(1 << 18, count - len(octets)))
        if not came:
            raise ConnectionError(f"{len(octets)} of {count} octets")
        octets += came
    return octets


def answer(connection):
    with contextlib.suppress(OSError), connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(bytes(int.from_bytes(exactly(connection, REQUEST_BYTES))))


def answers(address, port, control=None):
    with socket.create_server((address, port), backlog=128) as listener:
        if control:
            # Connections inherit it.
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
        print("ready", flush=True)
        while True:
            threading.Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()


def ask(address, port, size, patience):
    """The seconds that one request took; `None` if it was given up."""
    begun = time.monotonic()
    with contextlib.suppress(OSError), socket.create_connection((address, port), timeout=patience) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(size.to_bytes(REQUEST_BYTES))
        exactly(connection, size)
        return round(time.monotonic() - begun, 6)
    return None


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        if sys.argv[1] == "answers":
            answers(sys.argv[2], int(sys.argv[3]), *sys.argv[4:])
        else:
            to, port, count, size, patience = sys.argv[2], *map(int, sys.argv[3:])
            print(json.dumps([ask(to, port, size, patience) for _ in range(count)]), flush=True)
