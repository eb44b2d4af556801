"""Errors name what is wrong and the cure, and are as short as a line can be."""

import pathlib
import signal
import subprocess
import sys
import tempfile
import textwrap
import unittest
from unittest import mock

import fulmar_lab as lab
from links import LOSSES, link

HERE = pathlib.Path(__file__).parent
# Each optional part, a package of its extra that is missing, and the extra.
OPTIONAL = {
    "table.to_pyarrow()": ("pyarrow", "tables"),
    "table.to_pandas()": ("pyarrow", "tables"),
    "table.to_pandas() #": ("pandas", "tables"),
    "table.to_polars()": ("polars", "polars"),
    "table.to_xarray()": ("xarray", "grids"),
    "table.to_xarray() #": ("numpy", "grids"),
    "lab.plot.points(results, 'hop.loss', 'goodput_bps')": ("matplotlib", "plot"),
    "lab.plot.style('print')": ("matplotlib", "plot"),
    "import fulmar_lab.gym": ("gymnasium", "gym"),
    "lab.sweep(link(), LOSSES, on='ray')": ("ray", "ray"),
    "lab.sweep(link(), LOSSES, progress=True)": ("tqdm", "progress"),
}


class Names(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.results = lab.sweep(link(), LOSSES, runs=1)

    def test_a_name_that_is_not_there_is_told_with_the_nearest_and_not_with_all(self):
        run, table, scenario = link().run(1), self.results.points, link()
        self.assertGreater(len(table.columns), 140)
        plan = lab.plan("5mbit", rtt="10ms", loss="2%")
        asked = [
            (lambda: run["goodput"], rf"no measure 'goodput'; the nearest: goodput_bps.*; all {len(run)} are in `list\(run\)`"),
            (lambda: run["fec_words"], "the nearest: .*recovered.fec_words"),
            (lambda: run["arq"], "the nearest: .*recovered.arq_first"),
            (lambda: run["zzz"], r"no measure 'zzz'; all \d+ are in"),
            (lambda: run[3], "no measure 3; all"),
            (lambda: table.column("loss"), r"no column 'loss'; the nearest: .*hop.loss.*; all \d+ are in `table.columns`"),
            (lambda: table.columns["delay_p95_s"], "the nearest: delay_p99_s"),
            (lambda: scenario.parameters["hop.dellay"], "no parameter that the scenario says 'hop.dellay'; the nearest: hop.delay"),
            (lambda: plan.arqs["selective"], "the nearest: selective-repeat"),
            (lambda: lab.plot.points(self.results, "loss", "goodput_bps"), "the nearest: .*hop.loss"),
        ]
        for ask, said in asked:
            with self.subTest(said=said), self.assertRaisesRegex(KeyError, said) as raised:
                ask()
            self.assertLess(len(str(raised.exception)), 250)

    def test_a_name_that_may_be_missing_is_looked_for_without_an_error(self):
        run = link().run(1)
        self.assertEqual((run.get("goodput"), "goodput" in run, "seed" in run), (None, False, True))
        self.assertEqual(self.results.runs.columns.get("goodput"), None)


class Optional(unittest.TestCase):
    def test_each_optional_part_names_its_extra_where_a_package_is_missing(self):
        for call, (package, extra) in OPTIONAL.items():
            with self.subTest(call=call, package=package):
                program = textwrap.dedent(f"""
                    import sys

                    class Missing:
                        def find_spec(self, name, path=None, target=None):
                            if name.split(".")[0] == {package!r}:
                                raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

                    sys.meta_path.insert(0, Missing())
                    import fulmar_lab as lab
                    from links import LOSSES, link

                    results = lab.sweep(link(), LOSSES, runs=1, progress=False)
                    table = results.points
                    try:
                        {call}
                    except ModuleNotFoundError as error:
                        print(error.name, error)
                """)
                ended = subprocess.run([sys.executable, "-c", program], cwd=HERE, capture_output=True, text=True)
                self.assertEqual(ended.stdout, f"{package} {package} is not installed: pip install 'fulmar-lab[{extra}]'\n", ended.stderr)


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_results_that_are_not_there_are_told_with_what_was_expected(self):
        path = self.folder / "none/sweep.parquet"
        with self.assertRaisesRegex(FileNotFoundError, "Parquet file of a sweep's runs.*none/sweep.parquet") as raised:
            lab.Results.read(path)
        self.assertEqual(raised.exception.filename, str(path))
        with self.assertRaisesRegex(IsADirectoryError, "name the Parquet file of a sweep's runs in it"):
            lab.Results.read(self.folder)
        with self.assertRaises(FileNotFoundError):
            lab.Table.read(path)
        (self.folder / "text.parquet").write_text("no table")
        with self.assertRaisesRegex(lab.SweepError, "text.parquet .*no Parquet file"):
            lab.Table.read(self.folder / "text.parquet")

    def test_points_that_are_not_there_are_told_with_the_command_that_makes_them(self):
        path = self.folder / "sweep.parquet"
        lab.sweep(link(), LOSSES, runs=1, out=path)
        (self.folder / "sweep-points.parquet").unlink()
        results = lab.Results.read(path)
        self.assertEqual(len(results.runs), 3)
        with self.assertRaisesRegex(FileNotFoundError, "fulmar merge sweep.parquet") as raised:
            results.points
        self.assertEqual(raised.exception.filename, str(self.folder / "sweep-points.parquet"))

    def test_ctrl_c_is_raised_from_one_place_and_says_what_is_kept(self):
        out = self.folder / "sweep.parquet"
        program = textwrap.dedent(f"""
            import signal

            import fulmar_lab as lab
            from links import LOSSES, link

            # Whoever started the tests may have had it ignored.
            signal.signal(signal.SIGINT, signal.default_int_handler)
            told = lambda done, total: print(done, flush=True)
            lab.sweep(link().with_({{"flow.bytes": "2MB"}}), LOSSES, runs=2000, jobs=1, part_runs=2, progress=told, out={str(out)!r})
        """)
        with subprocess.Popen([sys.executable, "-c", program], cwd=HERE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
            while int(running.stdout.readline()) < 4:
                pass
            running.send_signal(signal.SIGINT)
            _, said = running.communicate(timeout=60)
        *frames, last = said.strip().splitlines()
        self.assertRegex(last, r"^KeyboardInterrupt: the sweep was stopped; \d+ of its 6000 runs are kept in .*sweep.parquet.parts, and the same call goes on")
        files = [frame for frame in frames if frame.lstrip().startswith("File ")]
        self.assertEqual(len(files), 2, said)
        self.assertIn("in sweep", files[1])
        kept = int(last.split("; ")[1].split()[0])
        self.assertGreaterEqual(kept, 4)
        self.assertEqual(kept, 2 * len(list(self.folder.glob("sweep.parquet.parts/*.parquet"))))
        with self.assertRaisesRegex(FileNotFoundError, "was stopped: the same call goes on with the parts in sweep.parquet.parts"):
            lab.Results.read(out)

    def test_ctrl_c_before_anything_was_begun_is_no_other_error(self):
        out = self.folder / "sweep.parquet"
        with mock.patch("fulmar_lab.sweeps.engine_of", side_effect=KeyboardInterrupt):
            with self.assertRaisesRegex(KeyboardInterrupt, "; 0 of its 3 runs are kept"):
                lab.sweep(link(), LOSSES, runs=1, out=out)


class EndArguments(unittest.TestCase):
    def test_a_wrong_argument_is_refused_before_the_end_is_opened(self):
        ours, theirs = lab.SecretKey.generate(), lab.SecretKey.generate()
        sender = {"address": "127.0.0.1:4914", "key": ours, "peer": theirs.public}
        receiver = {"address": "127.0.0.1:0", "key": ours, "peers": [theirs.public]}
        asked = [
            (lab.Sender, sender, {"peer": theirs}, TypeError, "peer: give the peer's public key, not a SecretKey.*`key.public`"),
            (lab.Sender, sender, {"peer": b"key"}, TypeError, "peer: .* a text of 44 characters, not a bytes"),
            (lab.Sender, sender, {"peer": "abc"}, ValueError, "^peer: .*44 characters"),
            (lab.Receiver, receiver, {"peers": theirs.public}, TypeError, r"peers: give a list of public keys, such as \[key.public\], not one text"),
            (lab.Receiver, receiver, {"peers": [theirs.public, theirs]}, TypeError, r"peers\[1\]: give the peer's public key, not a SecretKey"),
            (lab.Receiver, receiver, {"peers": ["abc"]}, ValueError, r"^peers\[0\]: .*44 characters"),
            (lab.Receiver, receiver, {"peers": theirs}, TypeError, "peers: give a list of public keys"),
            (lab.Sender, sender, {"key": ours.text}, TypeError, r"key: give a SecretKey, not one text; SecretKey\(text\)"),
            (lab.Sender, sender, {"address": "ground"}, ValueError, "address='ground': give a host and a port"),
            (lab.Sender, sender, {"address": ("ground", 4914)}, TypeError, r"address=\('ground', 4914\): give a text"),
            (lab.Sender, sender, {"local": "127.0.0.1:70000"}, ValueError, "local='127.0.0.1:70000': give a host and a port"),
        ]
        for end, given in ((lab.Sender, sender), (lab.Receiver, receiver)):
            asked += [
                (end, given, {"rate": 5}, TypeError, 'rate=5: give a text with its unit, such as "50mbit"'),
                (end, given, {"rate": "5"}, ValueError, 'rate="5": .* has no unit'),
                (end, given, {"rate": "0mbit"}, ValueError, "^rate is 0; give the link's rate"),
                (end, given, {"deadline": "50ms"}, TypeError, "deadline='50ms': give seconds as a number, such as 0.05"),
                (end, given, {"deadline": float("nan")}, ValueError, "deadline=NaN"),
                (end, given, {"deadline": 0}, ValueError, "^deadline must be"),
                (end, given, {"give_up_after": "1s"}, TypeError, "give_up_after='1s': give seconds"),
                (end, given, {"give_up_after": 0.5}, ValueError, "^give_up_after must be at least 1s"),
                (end, given, {"share": "mine"}, ValueError, 'share="mine": own, fair or background'),
                (end, given, {"share": True}, TypeError, "share=True: give a text"),
                (end, given, {"carrier": "pigeon"}, ValueError, "udp or auto"),
            ]
        for end, given, wrong, error, said in asked:
            with self.subTest(end=end.__name__, wrong=wrong):
                end(**given)
                with self.assertRaisesRegex(error, said) as raised:
                    end(**{**given, **wrong})
                self.assertNotIn(ours.text, str(raised.exception), "a secret key is never told")


if __name__ == "__main__":
    unittest.main()
