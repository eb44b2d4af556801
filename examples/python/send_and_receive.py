"""A stream and messages over real sockets: both ends in one program, which might as well be two on two machines."""

import asyncio

import fulmar_lab as lab


async def collect(receiver: lab.Receiver) -> None:
    stream = await receiver.accept()
    octets = await stream.read_all()
    await stream.write(b"%d octets" % len(octets))
    await stream.finish()
    readings = await receiver.accept_messages()
    count = len([reading async for reading in readings])
    print(f"{count} readings came, {readings.expired.arrived_late} of them too late")


async def main() -> None:
    ours, theirs = lab.SecretKey.generate(), lab.SecretKey.generate()
    async with lab.Receiver("127.0.0.1:0", key=theirs, peers=[ours.public]) as receiver:
        host, port = receiver.address
        collecting = asyncio.create_task(collect(receiver))
        async with lab.Sender(f"{host}:{port}", key=ours, peer=theirs.public) as sender:
            stream = sender.stream()
            await stream.write(bytes(1_000_000))
            await stream.finish()
            print("the other end says:", (await stream.read_all()).decode())
            readings = sender.messages()
            for reading in range(20):
                await readings.send(f"{reading / 20:.0%}".encode(), deadline=0.5)
            await readings.finish()
            await collecting


if __name__ == "__main__":
    asyncio.run(main())
