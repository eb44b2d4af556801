"""Channels, sources of traffic and controllers of repair of one's own."""

import functools
import importlib
import os
import pickle
import random
import subprocess
import sys
import tempfile
import threading
import types
import unittest
from pathlib import Path

import fulmar_lab as lab
from fulmar_lab import LOST, _native

DATAGRAMS = {"transport": "udp", "traffic": "constant-rate", "rate": "1mbit", "write": "1000B", "bytes": "200kB"}


class Thirds:
    """Loses every third packet, and holds the others back for 7 ms."""

    def __init__(self, seed):
        self.seen = 0

    def fly(self, start, end, octets):
        assert 0 <= start < end and octets == 1028
        self.seen += 1
        return lab.LOST if self.seen % 3 == 0 else lab.Fate(later=0.007)


class Chance:
    def __init__(self, seed):
        self.chance = random.Random(seed)

    def fly(self, start, end, octets):
        return lab.LOST if self.chance.random() < 0.2 else None


class Slow(Chance):
    """A tenth of the rate after a second."""

    def rate(self, now):
        return 0.8e6 if now > 1 else None


class FiveWrites:
    def __init__(self, seed):
        self.views = []

    def next_write(self, now, written, waiting):
        return (0.25, 900) if written < 4500 else None


class Ahead:
    def __init__(self, seed):
        pass

    def choose(self, seen):
        assert seen.plan[1] and 0 <= seen.loss <= 1 and seen.deadline == 1 and seen.gap > 0, seen
        return (8, (1, 1, 1))


class Broken:
    def __init__(self, seed):
        self.left = 20

    def fly(self, start, end, octets):
        self.left -= 1
        return None if 1 / self.left else lab.LOST


def link(flow=DATAGRAMS, hop=None, **parts):
    hop = {"rate": "8mbit", "delay": "20ms", **(hop or {})}
    return lab.Scenario.build(run={"duration": "60s"}, hop=hop, flow=flow, parts=lab.Parts(**parts))


class Own(unittest.TestCase):
    def test_a_channel_decides_on_each_packet(self):
        run = link(hop={"channel": "thirds"}, channels={"thirds": Thirds}).run()
        self.assertEqual(run["wire_loss.loss"], 66)
        self.assertAlmostEqual(run["delay_p50_s"], 0.028028, places=6)

    def test_a_channel_may_say_the_rate(self):
        lossy = link(hop={"channel": "slow"}, channels={"slow": Slow})
        self.assertGreater(lossy.run()["delay_p99_s"], 0.03)
        self.assertLess(lossy.with_({"hop.channel": "none"}).run()["delay_p99_s"], 0.022)

    def test_chance_comes_from_the_seed_of_the_run(self):
        lossy = link(hop={"channel": "chance"}, channels={"chance": Chance})
        self.assertEqual(dict(lossy.run(4)), dict(lossy.run(4)))
        self.assertNotEqual(lossy.run(4)["wire_loss.loss"], lossy.run(5)["wire_loss.loss"])

    def test_a_sweep_over_channels_is_the_same_on_an_engine(self):
        from fulmar_lab.engines import Task, build, make

        lossy = link(hop={"channel": "none"}, channels={"chance": Chance, "thirds": Thirds})
        grid = {"hop.channel": ["none", "chance", "thirds"]}
        results = lab.sweep(lossy, grid, runs=2)
        self.assertEqual(results.runs.column("wire_loss.loss")[:2] + results.runs.column("wire_loss.loss")[4:], [0, 0, 66, 66])
        task = pickle.loads(pickle.dumps(Task(lossy._asked(grid), 0, 3, build())))
        self.assertEqual(make(task), make(Task(lossy._asked(grid), 0, 3, build())))

    def test_other_code_is_another_sweep(self):
        digests = {lossy._study().digest for lossy in (link(channels={"own": Chance}), link(channels={"own": Thirds}), link())}
        self.assertEqual(len(digests), 3)

    def test_what_a_part_is_made_of_counts_as_its_code(self):
        def closed(share):
            class Closed(Chance):
                def fly(self, start, end, octets):
                    return lab.LOST if self.chance.random() < share else None

            return Closed

        def attribute(share):
            return type("Attribute", (Thirds,), {"share": share})

        def default(share):
            return lambda seed, share=share: share

        def written(text):
            # As at a prompt: there is no text to be read.
            names = types.ModuleType("written").__dict__
            exec(text, names)
            return names["Part"]

        def based(share):
            return written(f"class Base:\n def fly(self, *packet):\n  return {share}\nclass Part(Base):\n pass")

        def helped(share):
            return written(f"SHARE = {share}\ndef helper():\n return SHARE\nclass Part:\n def fly(self, *packet):\n  return helper()")

        def partial(share):
            return functools.partial(default(share), share=1)

        def argument(share):
            return functools.partial(Chance, share)

        def instance(share):
            made = Odd()
            made.share = [{"of": {share}}]
            return made.fly

        def module(share):
            with tempfile.TemporaryDirectory() as folder:
                file = Path(folder, "helper_of_one.py")
                file.write_text(f"def helper():\n    return {share}\n", encoding="ascii")
                helpers = types.ModuleType("helper_of_one")
                helpers.__file__ = str(file)
                sys.modules["helper_of_one"] = helpers
                try:
                    names = {"helpers": helpers}
                    exec("def fly(*packet):\n return helpers.helper()", names)
                    return lab.Parts(channels={"own": names["fly"]}).version
                finally:
                    del sys.modules["helper_of_one"]

        self.assertEqual(module(0.25), module(0.25))
        self.assertNotEqual(module(0.25), module(0.5))
        for what in (closed, attribute, default, based, helped, partial, argument, instance):
            with self.subTest(what=what.__name__):
                one, same, other = (lab.Parts(channels={"own": what(share)}).version for share in (0.25, 0.25, 0.5))
                self.assertEqual(one, same)
                self.assertNotEqual(one, other)

    def test_modules_that_are_imported_inside_a_method_count_as_their_files(self):
        def version(share, line, names=()):
            names = dict(names)
            exec(f"def fly(*packet):\n def inner():\n  {line}\n  return share\n return inner()", names)
            with tempfile.TemporaryDirectory() as folder:
                package = Path(folder, "rains")
                package.mkdir()
                for file in (Path(folder, "rain_of_one.py"), package / "__init__.py", package / "steady.py"):
                    file.write_text(f"share = {share if 'init' not in file.name else 0}\n", encoding="ascii")
                sys.path.insert(0, folder)
                try:
                    return lab.Parts(channels={"own": names["fly"]}).version
                finally:
                    sys.path.remove(folder)
                    for module in [name for name in sys.modules if name.startswith(("rain_of_one", "rains"))]:
                        del sys.modules[module]
                    importlib.invalidate_caches()

        inside = {"__package__": "rains", "__name__": "rains.other"}
        for line, names in (
            ("import rain_of_one", {}),
            ("from rain_of_one import share", {}),
            ("import rains.steady as steady", {}),
            ("from rains import steady", {}),
            ("from .steady import share", inside),
            ("from . import steady", inside),
        ):
            with self.subTest(line=line):
                one, same, other = (version(share, line, names) for share in (0.25, 0.25, 0.5))
                self.assertEqual(one, same)
                self.assertNotEqual(one, other)
        self.assertEqual(version(1, "import math, numpy"), version(2, "import math, numpy"))
        self.assertNotEqual(version(1, "import no_such_rain"), version(1, "import no_such_rain"), "nobody can know")

    def test_a_module_that_its_digest_imports_changes_no_second_digest(self):
        with tempfile.TemporaryDirectory() as folder:
            package = Path(folder, "rains")
            package.mkdir()
            for name in ("__init__", "steady", "heavy"):
                (package / f"{name}.py").write_text(f"share = '{name}'\n", encoding="ascii")
            sys.path.insert(0, folder)
            names = {}
            exec("def first(*packet):\n from rains import steady\ndef second(*packet):\n from rains import heavy", names)
            try:
                parts = lab.Parts(channels={"one": names["first"], "two": names["second"]})
                self.assertEqual(parts.version, parts.version)
            finally:
                sys.path.remove(folder)
                for module in [name for name in sys.modules if name.startswith("rains")]:
                    del sys.modules[module]

    def test_a_worker_with_another_file_of_a_part_is_refused(self):
        from fulmar_lab.engines import Task, build, make

        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "channel_of_one.py")
            file.write_text("class Clear:\n def __init__(self, seed):\n  pass\n def fly(self, *packet):\n  pass\n", encoding="ascii")
            sys.path.insert(0, folder)
            try:
                import channel_of_one

                own = link(hop={"channel": "clear"}, channels={"clear": functools.partial(channel_of_one.Clear)})
                task = Task(own._asked(None), 0, 1, build())
                self.assertTrue(make(task))
                file.write_text("class Clear:\n pass\n", encoding="ascii")
                with self.assertRaisesRegex(lab.SweepError, "a worker has another channel_of_one than this machine"):
                    make(task)
            finally:
                sys.path.remove(folder)
                sys.modules.pop("channel_of_one", None)

    def test_fates_and_turns_travel(self):
        fate = pickle.loads(pickle.dumps(lab.Fate(lost=True, later=0.007, flips=[9, 100])))
        self.assertEqual(repr(fate), "Fate(lost=true, later=0.007, flips=[9, 100])".replace("true", "True"))
        for wake in (None, 0.25, float("inf")):
            turn = lab.Turn(send=[b"data", ("control", b"ack")], deliver=[b"first", (3000, b"later")], wake=wake)
            made = turn.__getnewargs_ex__()
            again = pickle.loads(pickle.dumps(turn))
            self.assertEqual(again.__getnewargs_ex__(), made)
            self.assertEqual(made, ((), {"send": [("source", b"data"), ("control", b"ack")], "deliver": [b"first", (3000, b"later")], "wake": wake}))

    def test_a_part_that_names_fates_and_turns_has_one_digest(self):
        held, turn = lab.Fate(later=0.01), lab.Turn(wake=0.5)

        def part(fate):
            class Held(Thirds):
                def fly(self, start, end, octets):
                    return (LOST, fate, turn)[0]

            return lab.Parts(channels={"own": Held}).version

        self.assertEqual(part(held), part(lab.Fate(later=0.01)))
        self.assertNotEqual(part(held), part(lab.Fate(later=0.02)))

    def test_every_error_travels(self):
        from fulmar_lab.fec import FecError

        for kind in (lab.ScenarioError, lab.SweepError, FecError):
            error = pickle.loads(pickle.dumps(kind("why")))
            self.assertEqual((type(error), str(error)), (kind, "why"))

    def test_code_is_the_same_in_every_process(self):
        text = "import sys; sys.path.insert(0, sys.argv[1]); import test_own as own; print(own.every_part().version)"
        here = str(Path(__file__).parent)
        told = {
            subprocess.run(
                [sys.executable, "-c", text, here], env={**os.environ, "PYTHONHASHSEED": seed}, check=True, capture_output=True, text=True
            ).stdout
            for seed in ("1", "2", "3")
        }
        self.assertEqual(told, {every_part().version + "\n"})

    def test_a_part_that_cannot_be_read_is_never_the_same(self):
        parts = lab.Parts(channels={"own": functools.partial(Chance, threading.Lock())})
        self.assertNotEqual(parts.version, parts.version)

    def test_a_kept_sweep_is_not_taken_for_one_with_another_closure(self):
        def after(first):
            class After:
                def __init__(self, seed):
                    self.left = first

                def fly(self, start, end, octets):
                    self.left -= 1
                    return lab.LOST if self.left < 0 else None

            return After

        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder, "kept.parquet")
            results = lab.sweep(link(hop={"channel": "after"}, channels={"after": after(100)}), out=out)
            self.assertEqual(results.runs.column("wire_loss.loss"), [100])
            lab.sweep(link(hop={"channel": "after"}, channels={"after": after(100)}), out=out)
            with self.assertRaisesRegex(lab.SweepError, "results of another sweep"):
                lab.sweep(link(hop={"channel": "after"}, channels={"after": after(50)}), out=out)

    def test_a_source_writes_when_it_says_and_ends_when_it_says(self):
        run = link(flow={"transport": "aerotp", "bytes": "1MB", "source": "five"}, sources={"five": FiveWrites}).run()
        self.assertTrue(run["completed"])
        self.assertEqual(run["delivered_bytes"], 4500)
        self.assertAlmostEqual(run["elapsed_s"], 5 * 0.25 + 0.021, delta=0.01)

    def test_a_controller_decides_what_is_sent_ahead(self):
        flow = {"transport": "aerotp", "mode": "auto", "traffic": "messages", "size": "200B", "interval": "20ms"}
        flow |= {"deadline": "1s", "deliver": "all", "overhead": "100%", "bytes": "100kB"}
        chosen = link(flow={**flow, "controller": "ahead"}, hop={"loss": "10%"}, controllers={"ahead": Ahead})
        own, auto = chosen.run(), chosen.with_({"flow.controller": "none"}).run()
        self.assertTrue(own["completed"])
        # A symbol for each of 500 messages.
        self.assertGreater(own["wire_bytes.repair"], auto["wire_bytes.repair"] + 80_000)

    def test_an_exception_ends_the_run_and_comes_out(self):
        broken = link(hop={"channel": "broken"}, channels={"broken": Broken})
        with self.assertRaises(ZeroDivisionError):
            broken.run()
        with self.assertRaises(ZeroDivisionError):
            lab.sweep(broken, runs=3)
        with self.assertRaisesRegex(TypeError, "give None or a fulmar_lab.Fate"):
            link(hop={"channel": "odd"}, channels={"odd": lambda seed: Odd()}).run()

    def test_an_exception_ends_the_call_that_met_it_and_no_other(self):
        begun, over = threading.Event(), threading.Event()

        class Waits(Thirds):
            def __init__(self, seed):
                super().__init__(seed)
                begun.set()
                over.wait(60)

        both = link(hop={"channel": "none"}, channels={"broken": Broken, "waits": Waits})
        study = _native.NativeStudy(*both._asked({"hop.channel": ["broken", "waits"]}))
        made = []
        other = threading.Thread(target=lambda: made.append(study.make(1, 1, 1).num_rows()))
        other.start()
        begun.wait(60)
        try:
            with self.assertRaises(ZeroDivisionError):
                study.make(0, 1, 1)
        finally:
            over.set()
            other.join()
        self.assertEqual(made, [1])

    def test_a_part_that_is_not_there_is_named(self):
        with self.assertRaisesRegex(lab.ScenarioError, "no channel `rain`; given with the scenario are: chance"):
            link(hop={"channel": "rain"}, channels={"chance": Chance})


class Odd:
    def fly(self, start, end, octets):
        return True


class Many(Chance):
    """Has what differs between processes, if anything does."""

    kinds = {"rain", "snow", "fog", "hail"}

    def fly(self, start, end, octets):
        return super().fly(start, end, octets) if str(octets) in {"rain", "snow", "fog"} else None


def every_part():
    return lab.Parts(channels={"thirds": Thirds, "many": Many, "slow": Slow}, sources={"five": FiveWrites}, controllers={"ahead": Ahead})


if __name__ == "__main__":
    unittest.main()
