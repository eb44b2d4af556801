"""Every command that README shows runs as shown."""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
TARGET = ROOT / os.environ.get("CARGO_TARGET_DIR", "target")
FULMAR = TARGET / "release/fulmar"


def commands(prefix):
    """The indented README lines that begin with `prefix`, without their explanations."""
    lines = re.findall(rf"^    ({prefix}.*)$", README, re.MULTILINE)
    return [re.split(r"\s{3,}", line)[0] for line in lines]


class Readme(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        (build,) = commands("cargo")
        subprocess.run([*build.split(), "--locked"], cwd=ROOT, check=True, timeout=1200)

    def test_experiments_run_as_shown(self):
        shown = [line for verb in ("sim", "plan", "reproduce", "doctor") for line in commands(f"fulmar {verb}")]
        self.assertEqual(len(shown), 7)
        with tempfile.TemporaryDirectory() as folder:
            os.symlink(ROOT / "scenarios", pathlib.Path(folder) / "scenarios")
            for command in shown:
                with self.subTest(command):
                    argv = [str(FULMAR), *shlex.split(command)[1:]]
                    run = subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=1200)
                    self.assertEqual(run.returncode, 0, run.stderr)
                    self.assertTrue(run.stdout.strip() or run.stderr.strip())

    def test_the_gateways_first_commands_are_those_of_the_guide(self):
        # A test of the gateway types the guide's and compares what they print.
        guide = (ROOT / "docs/guide/gateway.md").read_text()
        shown = re.findall(r"^    \$ (.*)$", guide, re.MULTILINE)[:4]
        self.assertEqual(len(shown), 4)
        for command in shown:
            self.assertIn(f"    {command}\n", README)

    def test_the_file_crosses_the_bad_link_as_shown(self):
        (receive,), (emulate, _), (send,) = map(commands, ("fulmar recv", "fulmar emulate", "fulmar send"))
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(ROOT / "README.md", folder)
            (pathlib.Path(folder) / "incoming").mkdir()

            def start(command, **options):
                return subprocess.Popen([str(FULMAR), *command.split()[1:]], cwd=folder, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, **options)

            background = [start(receive), start(emulate)]
            try:
                for process in background:
                    # Each says where it listens before it takes anything.
                    self.assertIn("127.0.0.1", process.stderr.readline())
                sender = start(send)
                _, talk = sender.communicate(timeout=120)
                self.assertEqual(sender.returncode, 0, talk)
            finally:
                for process in background:
                    process.terminate()
                for process in background:
                    process.communicate(timeout=30)
            arrived = pathlib.Path(folder) / "incoming/README.md"
            self.assertEqual(arrived.read_text(), README)

    def test_a_path_is_measured_as_shown(self):
        serve, measure = commands("fulmar perf")
        with tempfile.TemporaryDirectory() as folder:
            server = subprocess.Popen([str(FULMAR), *serve.split()[1:]], cwd=folder, stdin=subprocess.DEVNULL,
                                      stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            try:
                self.assertIn(":4917", server.stderr.readline())
                client = subprocess.run([str(FULMAR), *measure.split()[1:]], capture_output=True, text=True, timeout=120)
                self.assertEqual(client.returncode, 0, client.stderr)
                self.assertIn("one-way delay", client.stdout)
            finally:
                server.terminate()
                server.communicate(timeout=30)


if __name__ == "__main__":
    unittest.main()
