"""A channel of your own: rain that comes and goes, beside Fulmar's loss of the same share."""

import random
import time

import fulmar_lab as lab


class Rain:
    """Falls for two of every ten seconds, and then nothing gets through."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)

    def fly(self, start: float, end: float, octets: int) -> lab.Fate | None:
        return lab.LOST if end % 10 < 2 else None


def main() -> None:
    link = lab.Scenario.build(
        run={"duration": "300s"},
        hop={"rate": "8mbit", "delay": "20ms"},
        flow={"transport": "aerotp", "traffic": "bulk", "bytes": "20MB"},
        parts=lab.Parts(channels={"rain": Rain}),
    )
    for name, changes in (("loss of 20%", {"hop.loss": "20%"}), ("rain", {"hop.channel": "rain"})):
        begun = time.process_time()
        run = link.with_(changes).run(seed=1)
        packets = run["wire_packets"] / (time.process_time() - begun)
        print(f"{name:12} {run['goodput_bps'] / 1e6:5.2f} Mbit/s, 99 of 100 pieces within {run['delay_p99_s']:.2f} s; {packets:.0f} packets a second")


if __name__ == "__main__":
    main()
