"""Recordings of runs, and what would have happened on a recorded link."""

import statistics
import unittest

import fulmar_lab as lab

BULK = {"transport": "aerotp", "mode": "reliable", "traffic": "bulk", "bytes": "3MB"}


def scenario(hop=None, change=(), flow=BULK, duration="200s"):
    tables = {"change": list(change)} if change else {}
    hop = {"rate": "8mbit", "delay": "20ms", **(hop or {})}
    return lab.Scenario.build(run={"duration": duration}, hop=hop, flow=flow, **tables)


class Recordings(unittest.TestCase):
    def test_a_recorded_run_is_the_run_that_is_not_recorded(self):
        lossy = scenario({"loss": "10%"})
        self.assertEqual(dict(lossy.record(7).run), dict(lossy.run(7)))

    def test_packets_add_up_to_the_measures(self):
        recording = scenario({"loss": "10%", "queue": "20 packets"}, [{"at": "1s", "rate": "4mbit"}]).record(2)
        run, packets = recording.run, recording.packets
        causes = packets.column("lost")
        self.assertEqual((causes.count("loss"), causes.count("queue")), (run["wire_loss.loss"], run["wire_loss.queue"]))
        self.assertGreater(causes.count("queue"), 0)
        taken = [octets for octets, cause in zip(packets.column("bytes"), causes, strict=True) if cause != "queue"]
        self.assertEqual(len(taken), run["wire_packets"])
        kinds = ("source", "repair", "retransmission", "control")
        self.assertEqual(sum(taken), sum(run[f"wire_bytes.{kind}"] for kind in kinds))
        self.assertLessEqual(max(packets.column("queue_packets")), 20)
        for sent, arrived, cause in zip(packets.column("sent_s"), packets.column("arrived_s"), causes, strict=True):
            self.assertTrue(cause if arrived is None else arrived >= sent + 0.02)

    def test_rates_over_time_add_up_to_what_was_sent_and_arrived(self):
        recording = scenario({"loss": "10%"}, [{"at": "1s", "rate": "4mbit"}]).record(2)
        run, rates = recording.run, recording.rates(0.25)
        self.assertEqual(rates.columns["source_bps"].unit, "bit/s")
        for kind in ("source", "repair", "retransmission", "control"):
            octets = sum(rate * 0.25 / 8 for rate in rates.column(f"{kind}_bps"))
            self.assertAlmostEqual(octets, run[f"wire_bytes.{kind}"], delta=1)
        arrived = [row["arrived_bps"] for row in rates.rows() if row["direction"] == "forward"]
        packets = recording.packets.rows()
        came = sum(row["bytes"] for row in packets if row["arrived_s"] is not None and row["direction"] == "forward")
        self.assertAlmostEqual(sum(arrived) * 0.25 / 8, came, delta=1)
        # The link carries less from the first second on, less what it loses.
        for begins, ends, rate in ((0.25, 1.0, 8e6), (1.25, 3.0, 4e6)):
            rows = [row["arrived_bps"] for row in rates.rows() if row["direction"] == "forward" and begins <= row["at_s"] < ends]
            self.assertAlmostEqual(statistics.fmean(rows) / rate, 0.9, delta=0.05)
        starts = [row["at_s"] for row in rates.rows() if row["direction"] == "forward"]
        self.assertEqual(starts, [0.25 * place for place in range(len(starts))])
        for every, said in ((0.0, "every=0: give seconds above 0"), (float("nan"), "every=NaN"), (1e-7, "more than 1000000 rows")):
            with self.assertRaisesRegex(ValueError, said):
                recording.rates(every)
        # Rows are counted on both directions together.
        lasts = max(row["arrived_s"] or row["sent_s"] for row in packets)
        with self.assertRaisesRegex(ValueError, "more than 1000000 rows"):
            recording.rates(lasts / 600_000)
        self.assertLessEqual(len(recording.rates(lasts / 400_000)), 1_000_000)

    def test_pieces_have_the_delays_of_the_run(self):
        recording = scenario({"loss": "5%"}).record(3)
        delays = sorted(recording.pieces.column("delay_s"))
        self.assertAlmostEqual(statistics.fmean(delays), recording.run["delay_mean_s"], places=6)
        self.assertEqual(recording.pieces.columns["delay_s"].unit, "s")

    def test_decisions_say_what_was_seen_and_chosen(self):
        flow = {"transport": "aerotp", "mode": "auto", "traffic": "messages", "size": "200B", "interval": "20ms"}
        flow |= {"deadline": "80ms", "overhead": "90%", "deliver": "all", "bytes": "400kB"}
        recording = scenario({"loss": "20%"}, flow=flow).record(1)
        rows = recording.decisions.to_pandas()
        plans = rows[rows["decision"] == "repair_planned"]
        self.assertGreater(len(plans), 0)
        self.assertGreater(plans["ahead"].max(), 0)
        self.assertTrue(((plans["loss"] > 0.05) & (plans["loss"] < 0.4)).all())
        self.assertIn("held_lost", set(rows["decision"]))

    def test_the_link_is_read_out_of_its_packets(self):
        changes = [{"at": "1s", "rate": "4mbit"}, {"at": "4s", "delay": "60ms", "rate": "8mbit"}]
        recording = scenario({"loss": "5%", "outages": "2s+500ms"}, changes, {**BULK, "bytes": "4MB"}).record(4)
        channel = recording.channel()
        first = channel["hop"][0]["forward"]
        outages = [[int(part.removesuffix("us")) / 1e6 for part in text.split("+")] for text in first["outages"].split(", ")]
        (start, length) = max(outages, key=lambda outage: outage[1])
        self.assertAlmostEqual(start, 2, delta=0.02)
        self.assertAlmostEqual(length, 0.5, delta=0.15)

        def at(when):
            way = dict(first)
            for change in channel["change"]:
                if int(change["at"].removesuffix("ms")) / 1e3 <= when:
                    way |= change.get("forward", {})
            return int(way["rate"].removesuffix("bit")) / 1e6, int(way["delay"].removesuffix("us")) / 1e3

        for when, rate, delay in ((0.9, 8, 20), (1.6, 4, 20), (4.9, 8, 60)):
            self.assertAlmostEqual(at(when)[0], rate, delta=0.1, msg=f"{when} s")
            self.assertAlmostEqual(at(when)[1], delay, delta=1, msg=f"{when} s")

    def test_what_would_have_happened_happens(self):
        links = {
            "loss": ({"loss": "20%"}, []),
            "rate": ({"loss": "2%"}, [{"at": "1s", "rate": "4mbit"}]),
            "outage": ({"loss": "2%", "outages": "1s+1s"}, []),
        }
        other = {**BULK, "mode": "nack-mack"}
        for name, (hop, change) in links.items():
            replayed = scenario(hop, change).record(77).replay(flow=other, run={"duration": "200s"})
            real = scenario(hop, change, other)
            for measure, near in (("goodput_bps", 0.05), ("delay_p50_s", 0.05), ("delay_p99_s", 0.10)):
                predicted, happened = (statistics.fmean(link.run(seed)[measure] for seed in range(16)) for link in (replayed, real))
                self.assertLess(abs(predicted / happened - 1), near, f"{name}: {measure} {predicted} for {happened}")

    def test_packets_of_any_link_make_a_channel(self):
        packets = [(index * 0.01, 1500, None if index % 10 == 9 else index * 0.01 + 0.0315) for index in range(400)]
        way = lab.channel_of(packets)["hop"][0]["forward"]
        self.assertEqual(way["loss"], f"fates {' '.join(40 * ['9+1'])} shifted")
        with self.assertRaisesRegex(ValueError, "no packet arrived"):
            lab.channel_of([(0.0, 1500, None)])

    def test_times_count_from_the_first_packet(self):
        packets = [(index * 0.01, 1500, None if index % 10 == 9 else index * 0.01 + 0.03) for index in range(100)]
        since_1970 = [(1.7e9 + sent, octets, arrived and 1.7e9 + arrived) for sent, octets, arrived in packets]
        plain, dated = (lab.channel_of(of)["hop"][0]["forward"] for of in (packets, since_1970))
        self.assertEqual(dated["loss"], plain["loss"])
        # A time since 1970 has a quarter of a microsecond.
        self.assertAlmostEqual(int(dated["delay"].removesuffix("us")), int(plain["delay"].removesuffix("us")), delta=5)
        late = lab.channel_of([(sent + 5, octets, arrived and arrived + 5) for sent, octets, arrived in packets], start=5)
        self.assertEqual(late, lab.channel_of(packets))

    def test_a_recording_of_years_is_refused_with_the_cure(self):
        packets = [(0.0, 1500, 0.03), (1.7e9, 1500, 1.7e9 + 0.03)]
        with self.assertRaisesRegex(ValueError, "19675 days behind the start, and 10 days are read.*give a part"):
            lab.channel_of(packets)
        with self.assertRaisesRegex(ValueError, "10 days"):
            lab.channel_of([(0.0, 1500, 0.03), (0.01, 1500, 0.04)], [(1.7e9, 1500, 1.7e9 + 0.03)])

    def test_arrivals_that_show_no_rate_are_told(self):
        for packets in ([(0.0, 1500, 0.03)], [(0.0, 1500, 0.03), (0.01, 1500, 0.03)]):
            with self.assertRaisesRegex(ValueError, "no rate can be seen"):
                lab.channel_of(packets)


if __name__ == "__main__":
    unittest.main()
