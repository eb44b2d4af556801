"""Plans and fits: what the commands print, as values."""

import tempfile
import unittest
from pathlib import Path

import fulmar_lab as lab


class Plans(unittest.TestCase):
    def test_a_plan_has_every_class_of_repetition(self) -> None:
        planned = lab.plan("622mbit", distance="61km", ber=1e-6)
        self.assertEqual(list(planned.arqs), ["stop-and-wait", "go-back-n", "selective-repeat"])
        self.assertEqual(planned.rate_bps, 622_000_000)
        shares = [arq.goodput_share for arq in planned.arqs.values()]
        self.assertEqual(shares, sorted(shares))
        assert planned.found is not None
        self.assertGreater(planned.found.share, 0.9)

    def test_what_no_link_can_be_is_named(self) -> None:
        for wishes, said in (
            ({"rtt": "10ms", "loss": "2%", "data": "0B"}, "data 0B: 1B to"),
            ({"rtt": "10ms", "distance": "5km", "loss": "2%"}, "either distance or rtt"),
            ({"rtt": "10ms"}, "one of ber, power and loss"),
            ({"rtt": "10", "ber": 0}, "rtt \"10\""),
            ({"rtt": "10ms", "power": "-44dBm"}, "rate of 622Mbit/s alone"),
        ):
            with self.subTest(wishes=wishes):
                self.assertRaisesRegex(ValueError, said, lab.plan, "5mbit", **wishes)


class Fits(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.table = Path(folder.name) / "losses.csv"

    def test_a_recording_becomes_what_a_scenario_takes(self) -> None:
        self.table.write_text("lost\n" + "0\n0\n0\n1\n1\n0\n0\n1\n0\n0\n0\n0\n0\n" * 300, encoding="ascii")
        found = lab.fit(self.table)
        self.assertEqual((found.packets, found.lost), (3900, 900))
        scenario = lab.Scenario.build(
            run={"duration": "60s"}, hop={"rate": "8mbit", "delay": "20ms"}, flow={"transport": "aerotp", "traffic": "bulk", "bytes": "9kB"}
        )
        self.assertTrue(scenario.with_({"hop.loss": found.loss}).run(seed=1)["completed"])

    def test_what_is_no_recording_is_named(self) -> None:
        self.table.write_text("lost\n0\nmaybe\n", encoding="ascii")
        self.assertRaisesRegex(ValueError, r"losses.csv:3: `lost`", lab.fit, self.table)
        self.assertRaisesRegex(ValueError, "no capture, pcap or pcapng; leave port= out", lab.fit, self.table, port=9)
        self.assertRaisesRegex(ValueError, "window=0: give 1 to 16384", lab.fit, self.table, window=0)
        with self.assertRaises(FileNotFoundError):
            lab.fit(self.table.with_name("gone.csv"))
        with self.assertRaises(IsADirectoryError):
            lab.fit(self.table.parent)


if __name__ == "__main__":
    unittest.main()
