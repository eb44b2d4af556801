"""Sweeps on engines: the same octets everywhere, whatever is killed."""

import asyncio
import concurrent.futures
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import types
import unittest
from unittest import mock

import fulmar_lab as lab
from fulmar_lab import _native
from fulmar_lab.engines import DaskEngine, Task, build, make
from fulmar_lab.sweeps import _Progress
from links import LOSSES, link

RUNS = 6
ROOT = os.environ.get("FULMAR_ROOT")


def octets(path):
    path = pathlib.Path(path)
    return path.read_bytes(), path.with_name(f"{path.stem}-points.parquet").read_bytes()


class Here:
    """An engine that makes tasks where it is asked for them."""

    def __init__(self, slots=1):
        self.tasks, self._slots, self.asked = [], slots, 0

    @property
    def slots(self):
        self.asked += 1
        return self._slots

    def submit(self, task):
        self.tasks.append(task)
        return task.first

    def finished(self, handles):
        (task,) = (task for task in self.tasks if task.first == handles[0])
        yield handles[0], make(task)

    def abandon(self, handles):
        self.abandoned = handles


class Failing(Here):
    def finished(self, handles):
        raise lab.SweepError("no disk")


class Stopped(Exception):
    pass


class Engines(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.expected = octets(lab.sweep(link(), LOSSES, runs=RUNS, jobs=1, out=cls.place("local")).path)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def place(cls, name):
        return pathlib.Path(cls.folder.name, f"{name}.parquet")

    def assert_same(self, name, **how):
        results = lab.sweep(link(), LOSSES, runs=RUNS, out=self.place(name), **how)
        self.assertTrue(octets(results.path) == self.expected, name)
        self.assertFalse(self.place(name).with_name(f"{name}.parquet.parts").exists(), "parts are removed")

    def test_threads_and_parts_of_any_size_give_the_same_octets(self):
        self.assert_same("threads", jobs=2, part_runs=5)
        self.assert_same("one by one", part_runs=1)

    def test_an_executor_gives_the_same_octets(self):
        with concurrent.futures.ProcessPoolExecutor(2) as executor:
            self.assert_same("executor", on=executor)

    def test_dask_gives_the_same_octets_with_one_two_and_four_workers(self):
        from distributed import Client

        for workers in (1, 2, 4):
            with Client(n_workers=workers, threads_per_worker=1, dashboard_address=None) as client:
                self.assert_same(f"dask {workers}", on=client)

    def test_dask_workers_that_are_killed_cost_no_octet(self):
        from distributed import Client

        with Client(n_workers=2, threads_per_worker=1, dashboard_address=None) as client:
            kills = []

            def kill_some(done, total):
                if len(kills) < 5 and done > 3 * len(kills):
                    busy = client.processing()
                    # One that starts again has no process yet. Those that have a task under way are killed first.
                    running = [(bool(busy.get(nanny.worker_address)), nanny.pid) for nanny in client.cluster.workers.values() if nanny.pid]
                    if running:
                        kills.append(max(running)[0])
                        os.kill(max(running)[1], signal.SIGKILL)

            self.assert_same("dask killed", on=client, part_runs=1, progress=kill_some)
            self.assertEqual(len(kills), 5)
            self.assertTrue(any(kills), "a task was lost")

    def test_waiting_on_dask_leaves_nothing_behind_in_the_client(self):
        from distributed import Client

        class Wide(DaskEngine):
            slots = 100

        with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=None) as client:
            loop = client.loop.asyncio_loop
            before, waits = len(asyncio.all_tasks(loop)), []
            # Two hundred tasks are under way, and one worker makes them one by one.
            told = lambda done, total: waits.append(len(asyncio.all_tasks(loop)))
            lab.sweep(link(), LOSSES, runs=100, on=Wide(client), part_runs=1, progress=told)
            self.assertGreaterEqual(len(waits), 300)
            self.assertLess(max(waits) - before, 2 * 200)

    def test_an_engine_is_asked_for_its_slots_once_a_second_at_most(self):
        here, began = Here(), time.monotonic()
        self.assert_same("asked", on=here, part_runs=1)
        self.assertEqual(len(here.tasks), 3 * RUNS)
        # And once to see that it is an engine.
        self.assertLessEqual(here.asked, 2 + time.monotonic() - began)

    def test_a_large_cluster_gets_tasks_for_all_its_workers(self):
        large, small = Failing(slots=1000), Failing(slots=2)
        for engine in (large, small):
            with self.assertRaisesRegex(lab.SweepError, "no disk"):
                lab.sweep(link(), LOSSES, runs=10_000, on=engine)
        # Two for each slot are under way: of a ten thousandth each, and of a 64th.
        self.assertEqual([task.runs for task in large.tasks], [3] * 2000)
        self.assertEqual([task.runs for task in small.tasks], [469] * 4)

    def test_an_executor_that_loses_a_process_is_told_and_another_goes_on(self):
        def kill(done, total):
            for process in list(executor._processes.values()):
                os.kill(process.pid, signal.SIGKILL)

        with concurrent.futures.ProcessPoolExecutor(2) as executor:
            with self.assertRaisesRegex(lab.SweepError, "a process of the executor died.*goes on with a new executor"):
                lab.sweep(link(), LOSSES, runs=RUNS, on=executor, part_runs=1, out=self.place("broken"), progress=kill)
        with concurrent.futures.ProcessPoolExecutor(2) as executor:
            self.assert_same("broken", on=executor)

    def test_ray_gives_the_same_octets(self):
        import ray

        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
        self.addCleanup(ray.shutdown)
        self.assert_same("ray", on="ray")

    def test_a_client_that_is_killed_goes_on_where_it_was(self):
        engines = {
            "local": "'local'",
            "dask": "__import__('distributed').Client(n_workers=2, threads_per_worker=1, dashboard_address=None)",
        }
        for name, engine in engines.items():
            with self.subTest(engine=name):
                out = self.place(f"killed {name}")
                program = textwrap.dedent(f"""
                    import os, signal
                    import fulmar_lab as lab
                    from links import LOSSES, link

                    def told(done, total):
                        if done >= 7:
                            os.kill(os.getpid(), signal.SIGKILL)

                    lab.sweep(link(), LOSSES, runs={RUNS}, out={str(out)!r}, on={engine}, part_runs=1, progress=told)
                """)
                ended = subprocess.run([sys.executable, "-c", program], cwd=pathlib.Path(__file__).parent, stderr=subprocess.DEVNULL)
                self.assertEqual(ended.returncode, -signal.SIGKILL)
                self.assertFalse(out.exists())
                told = []
                self.assert_same(f"killed {name}", progress=lambda done, total: told.append(done))
                self.assertGreaterEqual(told[0], 6)

    def test_a_sweep_goes_on_with_another_engine_and_in_other_parts(self):
        def stop(done, total):
            if done >= 8:
                raise Stopped

        with self.assertRaises(Stopped):
            lab.sweep(link(), LOSSES, runs=RUNS, out=self.place("gone on"), jobs=1, part_runs=4, progress=stop)
        parts = self.place("gone on").with_name("gone on.parquet.parts")
        kept = 4 * len(list(parts.iterdir()))
        self.assertGreaterEqual(kept, 4)
        # What a killed process leaves of a part.
        (parts / "half.new").write_bytes(b"PAR1")
        here, told = Here(), []
        self.assert_same("gone on", on=here, part_runs=3, progress=lambda done, total: told.append(done))
        self.assertEqual(told[0], kept)
        self.assertEqual(sum(task.runs for task in here.tasks), 3 * RUNS - kept)
        self.assertEqual([task.runs for task in here.tasks][:2], [3, 3])

    def test_ctrl_c_ends_a_sweep_at_once(self):
        # Hundreds of millions of packets, so its runs are not over within the bound, however fast the machine.
        program = textwrap.dedent("""
            import signal

            import fulmar_lab as lab
            from links import link

            # Whoever started the tests may have had it ignored.
            signal.signal(signal.SIGINT, signal.default_int_handler)
            print("begun", flush=True)
            lab.sweep(link().with_({"flow.bytes": "1000000MB", "run.duration": "1000000s"}), runs=4, progress=False)
        """)
        with subprocess.Popen([sys.executable, "-c", program], cwd=pathlib.Path(__file__).parent, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
            running.stdout.readline()
            time.sleep(0.5)
            running.send_signal(signal.SIGINT)
            try:
                _, said = running.communicate(timeout=60)
            finally:
                running.kill()
        self.assertIn(b"KeyboardInterrupt", said)

    def test_ctrl_c_is_looked_for_while_parts_are_put_together(self):
        # A part that cannot be opened before somebody writes to it, which waits for the signal's handler.
        pipe, noticed, in_time = self.place("pipe"), threading.Event(), []
        os.mkfifo(pipe)

        def interrupt(number, frame):
            noticed.set()
            raise Stopped

        def write():
            in_time.append(noticed.wait(20))
            pipe.write_bytes(b"no part")

        threading.Thread(target=write, daemon=True).start()
        self.addCleanup(signal.signal, signal.SIGALRM, signal.signal(signal.SIGALRM, interrupt))
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with self.assertRaises(Stopped):
            _native.merge([pipe], self.place("never"), self.place("never-points"))
        self.assertEqual(in_time, [True])
        self.assertFalse(self.place("never").exists())

    def test_a_bar_is_drawn_where_a_person_looks(self):
        def is_drawn(terminal, shell):
            ipython = types.SimpleNamespace(get_ipython=lambda: shell)
            with mock.patch.dict(sys.modules, IPython=ipython), mock.patch("sys.stderr") as stderr, mock.patch("tqdm.auto.tqdm"):
                stderr.isatty.return_value = terminal
                return _Progress(None, 3)._bar is not None

        self.assertTrue(is_drawn(True, None))
        self.assertTrue(is_drawn(False, types.SimpleNamespace(kernel=object())))
        self.assertFalse(is_drawn(False, types.SimpleNamespace()), "IPython in a pipe")
        self.assertFalse(is_drawn(False, None))

    def test_a_file_says_which_scenario_and_seeds_it_has_and_these_make_it_again(self):
        grid = {("flow.mode", "flow.fec_words"): [("reliable", 0), ("nack-mack", 16)], "hop.loss": ["0%", 0.05]}
        first = lab.sweep(link(), grid, runs=3, seed=7, out=self.place("told"))
        about = lab.Results.read(first.path).about
        self.assertEqual((about.seeds, about.points, about.scenario), (range(7, 10), 4, "scenario.toml"))
        self.assertEqual(about.parameters["flow.mode"], "reliable")
        again = lab.sweep(lab.Scenario(about.document, about.scenario), out=self.place("told again"))
        self.assertEqual(octets(again.path), octets(first.path))

    def test_a_worker_reads_a_scenario_once_and_again_when_its_trace_is_another(self):
        trace = self.place("trace").with_name("losses.csv")
        trace.write_text("lost\n" + "0\n0\n1\n" * 50)
        recorded = lab.Scenario(link()._text, trace.with_name("scenario.toml"), ["hop.loss=trace losses.csv loop"])
        tasks = [Task(recorded.with_({"run.runs": 3})._asked(None), number, 1, build()) for number in range(3)]
        read, real = [], _native.NativeStudy
        with mock.patch.object(_native, "NativeStudy", side_effect=lambda *asked: read.append(asked) or real(*asked)):
            parts = [make(task) for task in tasks]
            self.assertEqual(len(read), 1)
            trace.write_text("lost\n" + "0\n1\n1\n" * 60)
            self.assertNotEqual(make(tasks[0]), parts[0])
            self.assertEqual(len(read), 2)

    def test_a_place_that_cannot_be_written_is_an_error_of_the_system(self):
        study = link()._study()
        with self.assertRaises(FileNotFoundError) as raised:
            study.write_part(0, 1, 1, build(), self.place("no folder/part"))
        self.assertIn("no folder", raised.exception.filename.as_posix())

    def test_another_build_is_refused(self):
        with self.assertRaisesRegex(lab.SweepError, "another build"):
            make(Task(link()._asked(LOSSES), 0, 1, "other"))

    @unittest.skipUnless(ROOT, "the program is not at hand: run scripts/tests/test_lab.py")
    def test_the_program_gives_the_same_octets_whole_and_in_shards(self):
        fulmar = pathlib.Path(ROOT, os.environ.get("CARGO_TARGET_DIR", "target"), "release/fulmar")
        scenario = pathlib.Path(self.folder.name, "scenario.toml")
        scenario.write_text(link()._text)
        asked = [fulmar, "sim", scenario, "--runs", str(RUNS), "--set", "sweep.hop.loss=[0%,5%,20%]"]

        def run(*arguments):
            ended = subprocess.run(arguments, capture_output=True, text=True)
            self.assertEqual(ended.returncode, 0, ended.stderr)

        run(*asked, "--out", self.place("program"))
        self.assertTrue(octets(self.place("program")) == self.expected)
        parts = [self.place(f"part-{number}") for number in (1, 2, 3)]
        for number, part in enumerate(parts, 1):
            run(*asked, "--shard", f"{number}/3", "--out", part)
        run(fulmar, "merge", *reversed(parts), "--out", self.place("merged"))
        self.assertTrue(octets(self.place("merged")) == self.expected)

    def test_a_worker_that_fails_ends_the_sweep_with_its_error(self):
        failing = Failing(slots=2)
        with self.assertRaisesRegex(lab.SweepError, "no disk"):
            lab.sweep(link(), LOSSES, runs=1, on=failing)
        self.assertEqual(len(failing.abandoned), 3)

    def test_a_file_that_is_there_is_kept(self):
        out = self.place("kept")
        lab.sweep(link(), LOSSES, runs=1, out=out)
        before = out.stat().st_mtime_ns
        lab.sweep(link(), LOSSES, runs=1, out=out)
        self.assertEqual(out.stat().st_mtime_ns, before, "all runs were there")
        with self.assertRaisesRegex(lab.SweepError, "results of another sweep"):
            lab.sweep(link(), LOSSES, runs=2, out=out)

    def test_what_is_no_engine_is_refused(self):
        with self.assertRaisesRegex(TypeError, 'give "local", "ray"'):
            lab.sweep(link(), LOSSES, on="dask")
        with self.assertRaisesRegex(ValueError, "ends in .parquet"):
            lab.sweep(link(), LOSSES, out="results")

    def test_a_cluster_is_no_client(self):
        from distributed import LocalCluster

        with LocalCluster(n_workers=0, processes=False, dashboard_address=None) as cluster:
            with self.assertRaisesRegex(TypeError, "a dask.distributed.Client"):
                lab.sweep(link(), LOSSES, on=cluster)


if __name__ == "__main__":
    unittest.main()
