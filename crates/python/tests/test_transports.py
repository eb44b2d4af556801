"""Whole transports of one's own."""

import math
import unittest

import fulmar_lab as lab


class StopAndWait:
    """One packet at a time, each until it is answered."""

    def __init__(self, seed, sends, rate, packet_max):
        assert rate == 8e6 and packet_max == 1476
        self.sends, self.most = sends, packet_max - 1
        self.number, self.packet = 0, None

    def room(self):
        return 0 if self.packet else self.most

    def write(self, now, octets):
        assert self.sends and 0 < len(octets) <= self.most
        self.packet = bytes([self.number]) + octets
        return lab.Turn(send=[self.packet], wake=0.2)

    def finish(self, now):
        assert self.sends

    def wake(self, now):
        return lab.Turn(send=[("retransmission", self.packet)], wake=0.2)

    def receive(self, now, packet):
        if not self.sends:
            is_new = packet[0] == self.number
            self.number ^= is_new
            return lab.Turn(send=[("control", packet[:1])], deliver=[packet[1:]] if is_new else [])
        if not self.packet or packet[0] != self.number:
            return None
        self.number, self.packet = self.number ^ 1, None
        return lab.Turn(wake=math.inf)


class Backwards(StopAndWait):
    """Delivers the second half of each packet first."""

    def __init__(self, *told):
        super().__init__(*told)
        self.before = 0

    def receive(self, now, packet):
        turn = super().receive(now, packet)
        if self.sends:
            return turn
        octets, middle, begin = packet[1:], len(packet) // 2, self.before
        self.before += len(octets)
        return lab.Turn(send=[("control", packet[:1])], deliver=[(begin + middle, octets[middle:]), (begin, octets[:middle])])


def link(transport=StopAndWait, **hop):
    return lab.Scenario.build(
        run={"duration": "60s"},
        hop={"rate": "8mbit", "delay": "20ms", **hop},
        flow={"transport": "own", "traffic": "bulk", "bytes": "147500B"},
        parts=lab.Parts(transports={"own": transport}),
    )


class Transports(unittest.TestCase):
    def test_a_transport_carries_what_the_application_sends(self):
        run = link().run()
        self.assertTrue(run["completed"])
        self.assertEqual(run["delivered_bytes"], 147_500)
        # 100 packets of 1500 octets take 1.5 ms and 20 ms each; the answers, of 25 octets, take 25 us and 20 ms.
        self.assertAlmostEqual(run["elapsed_s"], 100 * 0.0215 + 99 * 0.020025, places=6)
        self.assertEqual(run["wire_bytes.source"], 150_000)
        self.assertEqual(run["wire_bytes.control"], 2_500)

    def test_what_is_lost_it_sends_again(self):
        run = link(loss="10%").run(seed=3)
        self.assertTrue(run["completed"])
        self.assertEqual(run["delivered_bytes"], 147_500)
        self.assertGreater(run["wire_bytes.retransmission"], 5 * 1500)
        self.assertEqual(dict(link(loss="10%").run(seed=3)), dict(run))

    def test_octets_may_be_delivered_at_a_position(self):
        run = link(Backwards).run()
        self.assertTrue(run["completed"])
        self.assertEqual(run["corrupt_bytes"], 0)

    def test_a_wrong_turn_is_an_error(self):
        class Odd(StopAndWait):
            def write(self, now, octets):
                return lab.Turn(send=[("sauce", octets)])

        class Silent(StopAndWait):
            def write(self, now, octets):
                return True

        with self.assertRaisesRegex(ValueError, "no kind of packet `sauce`; there are: source, repair, retransmission, control"):
            link(Odd).run()
        with self.assertRaisesRegex(TypeError, "gave <class 'bool'>; give None or a fulmar_lab.Turn"):
            link(Silent).run()

    def test_a_packet_that_is_too_long_ends_nothing_and_is_told(self):
        class Long(StopAndWait):
            def write(self, now, octets):
                self.packet = bytes(self.most + 2)
                return lab.Turn(send=[self.packet])

        run = link(Long).run()
        self.assertFalse(run["completed"])
        self.assertEqual(run["delivered_bytes"], 0)

    def test_a_transport_that_is_not_there_is_named(self):
        with self.assertRaisesRegex(lab.ScenarioError, "`other` is not known"):
            link().with_({"flow.transport": "other"})


if __name__ == "__main__":
    unittest.main()
