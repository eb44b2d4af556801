"""Ends with real sockets: what is sent arrives as it was, over a link that loses packets; and waiting costs nothing."""

import asyncio
import gc
import random
import socket
import sys
import threading
import time
import unittest
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

import fulmar_lab as lab

OCTETS = random.Random(5).randbytes(1_000_000)
PATIENCE = 60


class Link(asyncio.DatagramProtocol):
    """A relay of datagrams between one caller and a receiver, which loses a share of them."""

    def __init__(self, there: tuple[str, int], loss: float) -> None:
        self.there = there
        self.loss = loss
        self.caller: tuple[str, int] | None = None
        self.chance = random.Random(7)
        self.passed = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, octets: bytes, place: tuple[str, int]) -> None:
        if place != self.there:
            self.caller = place
        to = self.caller if place == self.there else self.there
        if to is not None and self.chance.random() >= self.loss:
            self.passed += 1
            self.transport.sendto(octets, to)


@asynccontextmanager
async def ends(loss: float = 0.0) -> AsyncIterator[tuple[lab.Sender, lab.Receiver, Link]]:
    ours, theirs = lab.SecretKey.generate(), lab.SecretKey.generate()
    async with lab.Receiver("127.0.0.1:0", key=theirs, peers=[ours.public], rate="100mbit") as receiver:
        loop = asyncio.get_running_loop()
        transport, link = await loop.create_datagram_endpoint(lambda: Link(receiver.address, loss), ("127.0.0.1", 0))
        port = transport.get_extra_info("sockname")[1]
        async with lab.Sender(f"127.0.0.1:{port}", key=ours, peer=theirs.public, rate="100mbit") as sender:
            yield sender, receiver, link
        transport.close()


class Ends(unittest.IsolatedAsyncioTestCase):
    async def test_a_stream_carries_octets_both_ways_over_a_fifth_of_loss(self) -> None:
        async def answer(receiver: lab.Receiver) -> None:
            stream = await receiver.accept()
            async for octets in stream:
                await stream.write(octets)
            await stream.finish()

        async with asyncio.timeout(PATIENCE), ends(0.2) as (sender, receiver, link):
            answering = asyncio.create_task(answer(receiver))
            stream = sender.stream()
            coming = asyncio.create_task(stream.read_all())
            await stream.write(bytearray(OCTETS))
            await stream.finish()
            back = await coming
            await answering
            self.assertEqual(back, OCTETS)
            self.assertGreater(link.passed, 1_000)

    async def test_messages_arrive_whole_and_say_who_sent_them(self) -> None:
        async with asyncio.timeout(PATIENCE), ends(0.2) as (sender, receiver, _):
            out = sender.messages()
            for place in range(40):
                await out.send(OCTETS[place : place + 60_000], deadline=PATIENCE, priority=place % 2)
            finishing = asyncio.create_task(out.finish())
            there = await receiver.accept_messages()
            came = [message async for message in there]
            await finishing
            self.assertEqual(sorted(came), sorted(OCTETS[place : place + 60_000] for place in range(40)))
            self.assertEqual((out.expired, there.expired), (lab.Expired(0, 0), lab.Expired(0, 0)))
            self.assertEqual(len(there.peer or ""), 44)

    async def test_a_message_that_cannot_be_queued_in_time_is_refused(self) -> None:
        async with asyncio.timeout(PATIENCE), ends(1.0) as (sender, _, _):
            out = sender.messages()
            for _ in range(16):
                await out.send(bytes(65_536), deadline=PATIENCE)
            with self.assertRaises(TimeoutError):
                await out.send(bytes(65_536), deadline=0.05)
            with self.assertRaisesRegex(ValueError, "65536 octets"):
                await out.send(bytes(65_537), deadline=1)
            with self.assertRaisesRegex(TypeError, "deadline='50ms': give seconds as a number"):
                await out.send(b"", deadline="50ms")
            for priority in (-1, 256):
                with self.assertRaisesRegex(ValueError, f"priority={priority}: give 0 to 255"):
                    await out.send(b"", deadline=1, priority=priority)
            with self.assertRaisesRegex(ValueError, "most=-1: give 0 or more"):
                await sender.stream().read(-1)

    async def test_a_read_that_is_cancelled_takes_nothing(self) -> None:
        async with asyncio.timeout(PATIENCE), ends() as (sender, receiver, _):
            stream = sender.stream()
            await stream.write(b"begin")
            there = await receiver.accept()
            self.assertEqual(await there.read(), b"begin")
            reading = asyncio.create_task(there.read())
            await asyncio.sleep(0)
            reading.cancel()
            await asyncio.wait([reading])
            await stream.write(b"afterwards")
            self.assertEqual(await there.read(5), b"after")
            self.assertEqual(await there.read(), b"wards")

    async def test_two_tasks_that_read_one_stream_take_turns(self) -> None:
        async with asyncio.timeout(PATIENCE), ends() as (sender, receiver, _):
            stream = sender.stream()
            await stream.write(b"begin")
            there = await receiver.accept()
            self.assertEqual(await there.read(), b"begin")
            readings = [asyncio.create_task(there.read(3)) for _ in range(2)]
            await asyncio.sleep(0)
            await stream.write(b"onetwo")
            self.assertEqual([await reading for reading in readings], [b"one", b"two"])

    async def test_datagrams_move_while_python_computes_and_the_loop_stands_still(self) -> None:
        async with asyncio.timeout(PATIENCE):
            ours, theirs = lab.SecretKey.generate(), lab.SecretKey.generate()
            async with lab.Receiver("127.0.0.1:0", key=theirs, peers=[ours.public]) as receiver:
                address = ":".join(map(str, receiver.address))
                async with lab.Sender(address, key=ours, peer=theirs.public, rate="100mbit", share="own") as sender:
                    stream = sender.stream()
                    await stream.write(OCTETS[:1000])
                    there = await receiver.accept()
                    # It asks for the interpreter and tells when it got it: while this thread computes it does not.
                    asked, got = threading.Event(), []

                    def ask() -> None:
                        asked.wait()
                        got.append(time.monotonic())

                    asking = threading.Thread(target=ask)
                    asking.start()
                    await stream.write(OCTETS[1000:200_000])
                    interval = sys.getswitchinterval()
                    sys.setswitchinterval(60.0)
                    try:
                        asked.set()
                        ended = time.monotonic() + 1.0
                        while time.monotonic() < ended:
                            pass
                        still_alone = not got
                        # One look: what has come by now came while nobody else had the interpreter.
                        call = there._native.read(1 << 18)
                        answer = call.poll()
                        call.close()
                    finally:
                        sys.setswitchinterval(interval)
                    asking.join()
                    self.assertTrue(still_alone, "another thread had the interpreter")
                    assert answer is not None and isinstance(answer[0], bytes)
                    self.assertGreater(len(answer[0]), 50_000)

    async def test_what_waits_is_told_that_its_end_was_closed(self) -> None:
        async with asyncio.timeout(PATIENCE), ends() as (sender, receiver, _):
            stream = sender.stream()
            await stream.write(b"x")
            there = await receiver.accept()
            await there.read()
            waiting = [asyncio.create_task(call) for call in (receiver.accept(), receiver.accept_messages())]
            ending = asyncio.create_task(there.read())
            reading = asyncio.create_task(stream.read())
            await asyncio.sleep(0)
            stream.close()
            with self.assertRaisesRegex(OSError, "it was closed"):
                await reading
            self.assertEqual(await ending, b"", "the peer's end is the end of its octets")
            await receiver.close()
            for task in waiting:
                with self.assertRaises(OSError):
                    await task
            with self.assertRaisesRegex(RuntimeError, "the receiver is not open"):
                await receiver.accept()

    async def test_a_stranger_gets_no_answer(self) -> None:
        ours, theirs = lab.SecretKey.generate(), lab.SecretKey.generate()
        async with asyncio.timeout(PATIENCE), lab.Receiver("127.0.0.1:0", key=theirs, peers=[]) as receiver:
            address = ":".join(map(str, receiver.address))
            async with lab.Sender(address, key=ours, peer=theirs.public, connect_timeout=0.5) as sender:
                stream = sender.stream()
                await stream.write(b"hello")
                with self.assertRaises((ConnectionRefusedError, TimeoutError)):
                    await stream.finish()

    async def test_keys_are_texts_and_a_port_that_is_taken_is_refused(self) -> None:
        key = lab.SecretKey.generate()
        self.assertEqual(lab.SecretKey(key.text).public, key.public)
        self.assertNotIn(key.text, repr(key))
        self.assertRaisesRegex(ValueError, "44 characters", lab.SecretKey, "abc")
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
            taken.bind(("127.0.0.1", 0))
            with self.assertRaises(OSError):
                await lab.Receiver("127.0.0.1:%d" % taken.getsockname()[1], key=key, peers=[]).__aenter__()

    async def test_an_end_that_is_dropped_is_warned_of_and_ends(self) -> None:
        receiver = lab.Receiver("127.0.0.1:0", key=lab.SecretKey.generate(), peers=[])
        await receiver.__aenter__()
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            del receiver
            gc.collect()
        self.assertTrue(any("was not closed" in str(warning.message) for warning in told), told)


if __name__ == "__main__":
    unittest.main()
