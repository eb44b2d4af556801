"""Tables fit the terminal they are shown on, and are whole where there is none.

Method: commands on a pseudo-terminal of a given width, and into a pipe.
"""

import fcntl
import os
import pty
import struct
import subprocess
import termios
import unittest

from program import FULMAR, ROOT, build

PATIENCE = 60
COMMANDS = (
    ["sim", "scenarios/airborne.toml", "--runs", "1", "--set", "flow.bytes=50kB", "--set", "sweep.hop.ber=[0,1e-5]"],
    ["plan", "--rate", "5mbit", "--rtt", "600ms", "--ber", "1e-5"],
)
FRAME = "┌╞└│"


def piped(command):
    run = subprocess.run([FULMAR, *command], cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE)
    assert run.returncode == 0, run.stderr
    return run.stdout


def shown(command, columns):
    """Its output on a terminal that is `columns` wide."""
    master, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    said = b""
    with subprocess.Popen([FULMAR, *command], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=terminal, stderr=subprocess.DEVNULL) as process:
        os.close(terminal)
        try:
            while piece := os.read(master, 65536):
                said += piece
        except OSError:
            pass  # Nobody holds the terminal any more.
        assert process.wait(PATIENCE) == 0
    os.close(master)
    return said.decode().replace("\r", "")


def table(text):
    return [line for line in text.splitlines() if line[0:1] in FRAME and line]


class Tables(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        build()

    def test_a_pipe_gets_each_row_on_one_line(self):
        for command in COMMANDS:
            with self.subTest(command[0]):
                text = piped(command)
                lines = table(text)
                self.assertGreater(len(lines[0]), 100)
                self.assertEqual({len(line) for line in lines}, {len(lines[0])})
                # Frame, headings and rows: no row of two lines, whose first cell would be empty.
                self.assertFalse([line for line in lines if line[0] == "│" and not line[1:].split("┆")[0].strip()])
                self.assertNotIn("no room", text)

    def test_a_wide_terminal_gets_what_a_pipe_gets(self):
        for command in COMMANDS:
            with self.subTest(command[0]):
                self.assertEqual(table(shown(command, 250)), table(piped(command)))

    def test_a_narrow_terminal_gets_whole_words_and_is_told_what_is_left_out(self):
        for command in COMMANDS:
            whole = table(piped(command))
            words = set(" ".join(line.strip("│") for line in whole if line[0] == "│").replace("┆", " ").split())
            for columns in (80, 60, 40):
                with self.subTest(command[0], columns=columns):
                    text = shown(command, columns)
                    self.assertLessEqual(max(map(len, table(text))), columns)
                    seen = " ".join(line.strip("│") for line in table(text) if line[0] == "│").replace("┆", " ").split()
                    self.assertLessEqual(set(seen), words, "a word in two")
                    self.assertIn("no room on this terminal for: ", text)

    def test_eighty_columns_have_room_for_what_a_scenario_is_about(self):
        setup = ["sim", "scenarios/setup.toml", "--runs", "1"]
        text = shown(setup, 80)
        for word in ("goodput", "first", "data"):
            self.assertIn(word, text.split("no room")[0])
        self.assertNotIn("first data", text.split("no room")[1])

    def test_columns_are_chosen_by_their_names(self):
        setup = ["sim", "scenarios/setup.toml", "--runs", "1", "--columns", "hop.loss,first_arrival_s,overhead"]
        heads = [head.strip() for head in table(shown(setup, 80))[1].strip("│").split("┆")]
        self.assertEqual(heads, ["hop.loss", "first data ms", "overhead kB"])
        wrong = subprocess.run([FULMAR, *setup[:-1], "speed"], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual((wrong.returncode, wrong.stdout), (2, ""))
        self.assertIn("--columns speed: there are hop.loss, n, complete %", wrong.stderr)


if __name__ == "__main__":
    unittest.main()
