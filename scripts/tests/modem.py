"""A modem's end of DLEP, written from RFC 8175 alone: it shares no line with the router's end in crates/proto."""

import contextlib
import select
import socket
import struct

PORT, GROUP, HOPS = 854, "224.0.0.117", 255
# Signals (section 13, table 1).
DISCOVERY, OFFER = 1, 2
# Messages (section 15.3).
INITIALIZATION, INITIALIZED, UPDATE, UPDATED, TERMINATION, TERMINATED = range(1, 7)
DESTINATION_UP, DESTINATION_UP_ANSWER = 7, 8
DESTINATION_DOWN, DESTINATION_DOWN_ANSWER, DESTINATION_UPDATE = 11, 12, 13
HEARTBEAT = 16
# Data items (section 15.4).
STATUS, V4_POINT, PEER_TYPE, HEARTBEAT_INTERVAL, MAC, V4_ADDRESS = 1, 2, 4, 5, 7, 8
MDRR, MDRT, CDRR, CDRT, LATENCY, RESOURCES, RLQR, RLQT, MTU = range(12, 21)
# Status codes (section 13.1).
SUCCESS, UNKNOWN_MESSAGE, INVALID_DATA, SHUTTING_DOWN = 0, 128, 130, 255
# The octets of a metric's value (sections 13.12 to 13.20).
METRICS = {MDRR: "!Q", MDRT: "!Q", CDRR: "!Q", CDRT: "!Q", LATENCY: "!Q", RESOURCES: "!B", RLQR: "!B", RLQT: "!B", MTU: "!H"}


def item(kind, value):
    return struct.pack("!HH", kind, len(value)) + value


def metrics(**values):
    """Items of metrics by their names in lower case."""
    kinds = {name: globals()[name.upper()] for name in values}
    return b"".join(item(kinds[name], struct.pack(METRICS[kinds[name]], value)) for name, value in values.items())


def read_items(octets):
    items = {}
    while octets:
        kind, length = struct.unpack_from("!HH", octets)
        items[kind], octets = octets[4:4 + length], octets[4 + length:]
    return items


class Modem:
    """Answers discoveries on one device, and takes the sessions that follow."""

    def __init__(self, address, patience):
        self.address, self.patience = address, patience
        self.discovery = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.discovery.bind(("", PORT))
        self.discovery.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(GROUP) + socket.inet_aton(address))
        self.discovery.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, HOPS)
        self.discovery.settimeout(patience)
        self.listener = socket.create_server((address, 0))
        self.listener.settimeout(patience)

    def close(self):
        self.discovery.close()
        self.listener.close()

    def answer(self):
        """Answers one discovery."""
        octets, router = self.discovery.recvfrom(2048)
        word, kind, length = struct.unpack_from("!4sHH", octets)
        if (word, kind, length) != (b"DLEP", DISCOVERY, len(octets) - 8):
            raise AssertionError(f"no discovery: {octets!r}")
        port = self.listener.getsockname()[1]
        point = item(V4_POINT, b"\0" + socket.inet_aton(self.address) + struct.pack("!H", port))
        offer = item(PEER_TYPE, b"\0test modem") + point
        self.discovery.sendto(struct.pack("!4sHH", b"DLEP", OFFER, len(offer)) + offer, router)

    @contextlib.contextmanager
    def session(self, **values):
        """Meets the router, and tells it these metrics of every destination."""
        self.answer()
        # An offer may go to an address that the router has just lost: it asks again.
        while not select.select([self.listener], [], [], 0)[0]:
            ready, _, _ = select.select([self.discovery, self.listener], [], [], self.patience)
            if not ready:
                raise AssertionError("the router neither asks nor connects")
            if self.discovery in ready:
                self.answer()
        stream, _ = self.listener.accept()
        with stream:
            stream.settimeout(self.patience)
            stream.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, HOPS)
            session = Session(stream)
            items = session.expect(INITIALIZATION)
            if not {HEARTBEAT_INTERVAL, PEER_TYPE} <= items.keys():
                raise AssertionError(f"items are missing: {items}")
            told = item(STATUS, bytes([SUCCESS])) + item(PEER_TYPE, b"\0test modem") + item(HEARTBEAT_INTERVAL, struct.pack("!I", 60_000))
            session.say(INITIALIZED, told + metrics(**values))
            yield session


class Session:
    def __init__(self, stream):
        self.stream = stream

    def say(self, kind, items=b""):
        self.stream.sendall(struct.pack("!HH", kind, len(items)) + items)

    def exactly(self, length):
        octets = b""
        while len(octets) < length:
            piece = self.stream.recv(length - len(octets))
            if not piece:
                raise AssertionError("the router closed the connection")
            octets += piece
        return octets

    def heartbeat(self):
        """Waits for a heartbeat, before which nothing else may come."""
        kind, length = struct.unpack("!HH", self.exactly(4))
        if (kind, length) != (HEARTBEAT, 0):
            raise AssertionError(f"message {kind} of {length} octets came in place of a heartbeat")

    def expect(self, wanted):
        """The items of the next message that is no heartbeat, which must be of this type."""
        while True:
            kind, length = struct.unpack("!HH", self.exactly(4))
            items = read_items(self.exactly(length))
            if kind == wanted:
                return items
            if kind != HEARTBEAT:
                raise AssertionError(f"message {kind} came in place of {wanted}: {items}")

    def ends(self):
        """Whether the router closes the connection, as it does after the answer to an end."""
        return self.stream.recv(1) == b""
