"""Sweeps on engines: the same octets everywhere, whatever is killed."""

import concurrent.futures
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

import fulmar_lab as lab
from links import LOSSES, link

RUNS = 6
ROOT = os.environ.get("FULMAR_ROOT")


def octets(path):
    path = pathlib.Path(path)
    return path.read_bytes(), path.with_name(f"{path.stem}-points.parquet").read_bytes()


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
                    # One that starts again has no process yet.
                    running = [nanny.pid for nanny in client.cluster.workers.values() if nanny.pid]
                    if running:
                        kills.append(done)
                        os.kill(running[len(kills) % len(running)], signal.SIGKILL)

            self.assert_same("dask killed", on=client, part_runs=1, progress=kill_some)
            self.assertEqual(len(kills), 5)

    def test_ray_gives_the_same_octets(self):
        import ray

        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
        self.addCleanup(ray.shutdown)
        self.assert_same("ray", on="ray")

    def test_a_client_that_is_killed_goes_on_where_it_was(self):
        out = self.place("killed")
        program = textwrap.dedent(f"""
            import os, signal
            import fulmar_lab as lab
            from links import LOSSES, link

            def told(done, total):
                if done >= 7:
                    os.kill(os.getpid(), signal.SIGKILL)

            lab.sweep(link(), LOSSES, runs={RUNS}, out={str(out)!r}, part_runs=1, progress=told)
        """)
        ended = subprocess.run([sys.executable, "-c", program], cwd=pathlib.Path(__file__).parent)
        self.assertEqual(ended.returncode, -signal.SIGKILL)
        self.assertFalse(out.exists())
        told = []
        results = lab.sweep(link(), LOSSES, runs=RUNS, out=out, part_runs=1, progress=lambda done, total: told.append(done))
        self.assertGreaterEqual(told[0], 6)
        self.assertTrue(octets(results.path) == self.expected)

    def test_ctrl_c_ends_a_sweep_at_once(self):
        program = textwrap.dedent("""
            import signal

            import fulmar_lab as lab
            from links import link

            # Whoever started the tests may have had it ignored.
            signal.signal(signal.SIGINT, signal.default_int_handler)
            print("begun", flush=True)
            lab.sweep(link().with_({"flow.bytes": "1GB", "run.duration": "5000s"}), runs=4, progress=False)
        """)
        with subprocess.Popen([sys.executable, "-c", program], cwd=pathlib.Path(__file__).parent, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
            running.stdout.readline()
            time.sleep(0.5)
            running.send_signal(signal.SIGINT)
            # Far less than the sweep takes; a bound on a hang, not a measurement.
            _, said = running.communicate(timeout=60)
        self.assertIn(b"KeyboardInterrupt", said)

    def test_another_build_is_refused(self):
        from fulmar_lab.engines import Task, make

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
        class Failing:
            slots = 2

            def submit(self, task):
                return task.first

            def finished(self, handles):
                raise lab.SweepError("no disk")

            def abandon(self, handles):
                self.abandoned = handles

        failing = Failing()
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


if __name__ == "__main__":
    unittest.main()
