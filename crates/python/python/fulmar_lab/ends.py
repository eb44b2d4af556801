"""Streams and messages to another program over real sockets, for asyncio.

A :class:`Receiver` has a port and takes what peers open; a :class:`Sender` opens streams and messages to one peer. Either
direction of a stream carries octets, so an answer goes back on the stream that asked. Ends know each other by their keys. The
peer may be a program in Rust as well (``docs/guide/library.md``); a gateway is reached by TCP, as from any program.

A thread of the end moves the datagrams without the interpreter's lock, so a task that computes for long holds nobody's
packets up. A call that is cancelled while it waits has taken nothing, but for :meth:`Stream.write`.
"""

from __future__ import annotations

import asyncio
import socket
import warnings
from collections.abc import AsyncIterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, Self

from . import _native
from ._native import SecretKey
from .bounds import COUNT_MAX, seconds, whole
from .end_settings import EndSettings, host_and_port, public_key

#: The octets of a read, if nothing else is said.
READ_BYTES = 1 << 18


@dataclass(frozen=True)
class Expired:
    """Messages that were not delivered because their time was over.

    ``here`` are those of this end that never left, ``arrived_late`` those of the peer that came too late.
    """

    here: int
    arrived_late: int


class _Calls:
    """The calls of one end that wait, and the loop that goes on with them when the native half rings."""

    def __init__(self, endpoint: _native.NativeEndpoint) -> None:
        self._endpoint = endpoint
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[int, asyncio.Future[None]] = {}
        self._loop.add_reader(endpoint.fileno(), self._rung)

    def _rung(self) -> None:
        for number in self._endpoint.rung():
            self._go_on(number)

    def _go_on(self, number: int) -> None:
        future = self._waiting.get(number)
        if future is not None and not future.done():
            future.set_result(None)

    def go_on_with_all(self) -> None:
        """Asks all that wait again: something was closed."""
        for number in list(self._waiting):
            self._go_on(number)

    def end(self) -> None:
        self._loop.remove_reader(self._endpoint.fileno())
        self.go_on_with_all()

    def abandon(self) -> None:
        """Ends them from whatever thread."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.end)

    async def answer(self, call: _native.NativeCall) -> Any:
        try:
            while (answer := call.poll()) is None:
                self._waiting[call.number] = future = self._loop.create_future()
                await future
            return answer[0]
        finally:
            self._waiting.pop(call.number, None)
            call.close()


class Stream:
    """Octets in order, once, unaltered, both ways, to and from one peer. A sender and a receiver make them.

    One task may read while another one writes; of several that read, or write, each waits for its turn. Calls raise ``TimeoutError`` when the peer never answered or was silent for
    too long, ``ConnectionRefusedError`` when it turned this end away, ``ConnectionResetError`` when it broke off, does not
    listen or has started again, and ``OSError`` once the stream or its end was closed.
    """

    def __init__(self, calls: _Calls, native: _native.NativeStream) -> None:
        self._calls = calls
        self._native = native
        self._reading = asyncio.Lock()
        self._writing = asyncio.Lock()

    @property
    def peer(self) -> str | None:
        """The peer's public key."""
        return self._native.peer

    async def read(self, most: int = READ_BYTES) -> bytes:
        """The octets that have come, ``most`` of them at most; it waits for the first one. ``b""`` at the end."""
        async with self._reading:
            octets: bytes = await self._calls.answer(self._native.read(whole("most", most, 0, COUNT_MAX)))
        return octets

    async def read_all(self) -> bytes:
        """All octets until the end."""
        return b"".join([octets async for octets in self])

    def __aiter__(self) -> AsyncIterator[bytes]:
        """The octets until the end, as they come."""
        return self._pieces()

    async def _pieces(self) -> AsyncIterator[bytes]:
        while octets := await self.read():
            yield octets

    async def write(self, octets: bytes | bytearray) -> None:
        """Writes all octets. It waits while 256 KiB have not left yet; if it is cancelled meanwhile, a part was written."""
        async with self._writing:
            await self._calls.answer(self._native.write(octets))

    async def finish(self) -> None:
        """Ends the own direction, and waits until the peer's end has received and confirmed all that was written. Octets from
        the peer can still be read."""
        async with self._writing:
            await self._calls.answer(self._native.finish())

    def close(self) -> None:
        """Gives the stream up. What was written still leaves in the background; whether it arrives, :meth:`finish` says."""
        self._native.close()
        self._calls.go_on_with_all()


class Messages:
    """Whole messages both ways, each worth something for a limited time. A sender and a receiver make them.

    A message is delivered once and whole, or not at all; never when its time is over. Those of one priority arrive in the order
    in which they were sent; those of a higher priority overtake the others. Calls raise what those of a :class:`Stream` raise.
    """

    def __init__(self, calls: _Calls, native: _native.NativeMessages) -> None:
        self._calls = calls
        self._native = native

    @property
    def peer(self) -> str | None:
        """The peer's public key."""
        return self._native.peer

    async def send(self, message: bytes | bytearray, *, deadline: float, priority: int = 0) -> None:
        """Sends a message, to be received within ``deadline`` seconds from now.

        It waits while a mebibyte of this priority has not left yet, and raises ``TimeoutError`` if the message could not even
        be queued in time.

        Args:
            message: 65,536 octets at most.
            deadline: Half an hour at most.
            priority: 0 to 255, the higher first; one end uses eight of them at most.
        """
        deadline = seconds("deadline", deadline)
        call = self._native.send(message, deadline, whole("priority", priority, 0, 255))
        async with asyncio.timeout(deadline):
            await self._calls.answer(call)

    async def receive(self) -> bytes | None:
        """The next message; ``None`` when the peer sends no more."""
        message: bytes | None = await self._calls.answer(self._native.receive())
        return message

    def __aiter__(self) -> AsyncIterator[bytes]:
        """The messages until the peer sends no more, as they come."""
        return self._each()

    async def _each(self) -> AsyncIterator[bytes]:
        while (message := await self.receive()) is not None:
            yield message

    async def finish(self) -> None:
        """Sends no more, and waits until each message is confirmed by the peer's end or its time was over before it left."""
        await self._calls.answer(self._native.finish())

    @property
    def expired(self) -> Expired:
        """The messages whose time was over."""
        return Expired(*self._native.expired())

    def close(self) -> None:
        """Gives the messages up; those that were sent still leave in the background."""
        self._native.close()
        self._calls.go_on_with_all()


async def _looked_up(host: str, port: int) -> tuple[socket.AddressFamily, str]:
    """The first address that a name has, and its family."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_DGRAM)
    family, _, _, _, place = found[0]
    found_host = str(place[0])
    if family is socket.AF_INET6:
        scope = f"%{place[3]}" if len(place) > 3 and place[3] else ""
        return family, f"[{found_host.partition('%')[0]}{scope}]:{port}"
    return family, f"{found_host}:{port}"


class _End:
    """A port and its thread, from ``async with`` on."""

    def __init__(self, config: _native.NativeEndConfig) -> None:
        self._config = config
        self._bound: tuple[_native.NativeEndpoint, _Calls] | None = None

    def _bind(self, address: str) -> _native.NativeEndpoint:
        endpoint = _native.NativeEndpoint(address, self._config)
        self._bound = endpoint, _Calls(endpoint)
        return endpoint

    def _open(self) -> tuple[_native.NativeEndpoint, _Calls]:
        if self._bound is None:
            raise RuntimeError(f"the {type(self).__name__.lower()} is not open: use `async with`")
        return self._bound

    async def close(self) -> None:
        """Ends it: waits for three seconds at most until what was written is confirmed, tells the peers, and ends the streams
        that are left."""
        if self._bound is not None:
            (endpoint, calls), self._bound = self._bound, None
            try:
                await asyncio.get_running_loop().run_in_executor(None, endpoint.close)
            finally:
                calls.end()

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    def __del__(self) -> None:
        if (bound := getattr(self, "_bound", None)) is not None:
            warnings.warn(f"{self!r} was not closed: use `async with`", ResourceWarning, stacklevel=2)
            bound[1].abandon()


class Sender(_End):
    """Opens streams and messages to one peer.

    >>> async with lab.Sender("ground.example:4914", key=key, peer=public) as sender:  # doctest: +SKIP
    ...     stream = sender.stream()
    ...     await stream.write(b"hello")
    ...     await stream.finish()
    """

    def __init__(
        self,
        address: str,
        *,
        key: SecretKey,
        peer: str,
        local: str | None = None,
        rate: str | None = None,
        share: Literal["own", "fair", "background"] | None = None,
        deadline: float | None = None,
        carrier: Literal["udp", "auto"] = "udp",
        connect_timeout: float = 10.0,
        give_up_after: float = 30.0,
    ) -> None:
        """Settings of a sender; ``async with`` opens its port.

        Args:
            address: The peer's host and port.
            key: The own key.
            peer: The peer's public key.
            local: The own address and port; without it any.
            rate: The rate of a link of one's own, such as ``"50mbit"``. Without it the rate is found.
            share: Whose the link is: shared fairly unless it is said, or a rate is.
            deadline: Seconds from writing to reading that what this end sends is repaired for. It is a target and drops nothing.
            carrier: ``"auto"`` lets data leave without UDP's checksum where damage is worth mending.
            connect_timeout: Seconds after which a stream fails whose peer never answered.
            give_up_after: Seconds of an outage after which streams fail, 1 at least.

        Raises:
            TypeError: An argument is of another type; the message names it and what to give.
            ValueError: An argument is wrong; the message names it and the cure.
            OSError: When it is opened: the port cannot be had, or the name has no address.
        """
        super().__init__(EndSettings(rate, share, deadline, carrier, connect_timeout, give_up_after).checked(key, []))
        self._address = host_and_port("address", address)
        self._peer = public_key("peer", peer)
        self._local = None if local is None else host_and_port("local", local)
        self._there = ""

    async def __aenter__(self) -> Self:
        family, self._there = await _looked_up(*self._address)
        here = "[::]:0" if family is socket.AF_INET6 else "0.0.0.0:0"
        self._bind(here if self._local is None else (await _looked_up(*self._local))[1])
        return self

    def stream(self) -> Stream:
        """Opens a stream. Nothing is waited for: octets that are written at once travel as early as keys allow."""
        endpoint, calls = self._open()
        return Stream(calls, endpoint.stream(self._there, self._peer))

    def messages(self) -> Messages:
        """Opens a way for messages."""
        endpoint, calls = self._open()
        return Messages(calls, endpoint.messages(self._there, self._peer))


class Receiver(_End):
    """Takes the streams and messages that peers open.

    >>> async with lab.Receiver("0.0.0.0:4914", key=key, peers=[public]) as receiver:  # doctest: +SKIP
    ...     stream = await receiver.accept()
    ...     print(await stream.read_all())
    """

    def __init__(
        self,
        address: str,
        *,
        key: SecretKey,
        peers: list[str],
        rate: str | None = None,
        share: Literal["own", "fair", "background"] | None = None,
        deadline: float | None = None,
        carrier: Literal["udp", "auto"] = "udp",
        give_up_after: float = 30.0,
    ) -> None:
        """Settings of a receiver; ``async with`` opens its port. Rate, share, deadline and carrier are those of answers.

        Args:
            address: The own address and port, ``"0.0.0.0:4914"`` for any of the machine; port 0 for any.
            key: The own key.
            peers: The public keys of those who may come. Others get no answer.

        Raises:
            TypeError: An argument is of another type; the message names it and what to give.
            ValueError: An argument is wrong; the message names it and the cure.
            OSError: When it is opened: the port cannot be had, or the name has no address.
        """
        super().__init__(EndSettings(rate, share, deadline, carrier, 10.0, give_up_after).checked(key, peers))
        self._address = host_and_port("address", address)
        self._listener: _native.NativeListener | None = None

    async def __aenter__(self) -> Self:
        self._listener = self._bind((await _looked_up(*self._address))[1]).listen()
        return self

    @property
    def address(self) -> tuple[str, int]:
        """The address and port that it is bound to."""
        return self._open()[0].address

    def _listening(self) -> tuple[_native.NativeListener, _Calls]:
        _, calls = self._open()
        assert self._listener is not None, "it listens from the beginning"
        return self._listener, calls

    async def accept(self) -> Stream:
        """Waits for the next stream. 128 wait to be accepted at most, others are turned away."""
        listener, calls = self._listening()
        return Stream(calls, await calls.answer(listener.accept()))

    async def accept_messages(self) -> Messages:
        """Waits for the next messages of a peer."""
        listener, calls = self._listening()
        return Messages(calls, await calls.answer(listener.accept_messages()))
