"""HTTP/3 by aioquic: a server with one resource, or clients that fetch it over fresh connections (scripts/tunnel).

    http3_once.py serve ADDRESS CERTIFICATE KEY BYTES
    http3_once.py get ADDRESS CERTIFICATE BYTES COUNT        prints how many came whole, and the seconds
"""

import asyncio
import hashlib
import sys
import time

from aioquic.asyncio import QuicConnectionProtocol, connect, serve
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration

PORT = 4433
PATIENCE_S = 60


def resource(octets):
    """The same octets at both ends, which do not compress."""
    return hashlib.shake_256(b"resource").digest(octets)


class Server(QuicConnectionProtocol):
    body = b""
    http = None

    def quic_event_received(self, event):
        self.http = self.http or H3Connection(self._quic)
        for one in self.http.handle_event(event):
            if isinstance(one, HeadersReceived):
                self.http.send_headers(one.stream_id, [(b":status", b"200")])
                self.http.send_data(one.stream_id, self.body, end_stream=True)
                self.transmit()


class Client(QuicConnectionProtocol):
    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        self.http = H3Connection(self._quic)
        self.body = bytearray()
        self.whole = asyncio.get_running_loop().create_future()

    def quic_event_received(self, event):
        for one in self.http.handle_event(event):
            if isinstance(one, DataReceived):
                self.body += one.data
            if getattr(one, "stream_ended", False) and not self.whole.done():
                self.whole.set_result(bytes(self.body))

    async def fetch(self, address):
        stream = self._quic.get_next_available_stream_id()
        head = [(b":method", b"GET"), (b":scheme", b"https"), (b":authority", address.encode()), (b":path", b"/")]
        self.http.send_headers(stream, head, end_stream=True)
        self.transmit()
        return await self.whole


async def serving(address, certificate, key, octets):
    Server.body = resource(octets)
    configuration = QuicConfiguration(is_client=False, alpn_protocols=H3_ALPN)
    configuration.load_cert_chain(certificate, key)
    await serve(address, PORT, configuration=configuration, create_protocol=Server)
    print("ready", flush=True)
    await asyncio.Event().wait()


async def getting(address, certificate, octets, count):
    expected, whole, begun = resource(octets), 0, time.monotonic()
    for _ in range(count):
        configuration = QuicConfiguration(alpn_protocols=H3_ALPN, cafile=certificate, server_name="tunnel.test")
        try:
            async with asyncio.timeout(PATIENCE_S), connect(address, PORT, configuration=configuration, create_protocol=Client) as client:
                whole += await client.fetch(address) == expected
        except (TimeoutError, ConnectionError):
            pass
    print(whole, f"{time.monotonic() - begun:.3f}")


role, arguments = sys.argv[1], sys.argv[2:]
if role == "serve":
    asyncio.run(serving(*arguments[:3], int(arguments[3])))
else:
    asyncio.run(getting(*arguments[:2], int(arguments[2]), int(arguments[3])))
