"""The Containerfile fits the examples and the files that `make static` leaves for it, and needs no shell, which its image does not have.

Method: the file is read, not built. Building takes the static binary; `make static` does that, and tries the image.
"""

import json
import pathlib
import re
import tomllib
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples/gateway").glob("*.toml"))


def instructions():
    text = (ROOT / "packaging/container/Containerfile").read_text()
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [tuple(line.split(maxsplit=1)) for line in lines]


def only(name):
    (found,) = [rest for instruction, rest in instructions() if instruction == name]
    return found


class Container(unittest.TestCase):
    def test_nothing_but_ours_is_in_it_and_nothing_is_fetched(self):
        self.assertEqual(only("FROM"), "scratch")
        names = {name for name, _ in instructions()}
        self.assertLessEqual(names, {"FROM", "COPY", "USER", "EXPOSE", "VOLUME", "STOPSIGNAL", "HEALTHCHECK", "ENTRYPOINT", "CMD"})

    def test_it_runs_as_a_number_that_is_not_root_and_owns_its_volume(self):
        user = only("USER")
        self.assertRegex(user, r"^[1-9]\d*:[1-9]\d*$")
        owned = [rest for name, rest in instructions() if name == "COPY" and rest.endswith(" " + only("VOLUME"))]
        self.assertEqual(len(owned), 1)
        self.assertIn(f"--chown={user} ", owned[0])

    def test_commands_are_lists_since_there_is_no_shell(self):
        self.assertEqual(json.loads(only("ENTRYPOINT")), ["/fulmar"])
        self.assertEqual(json.loads(only("CMD"))[0], "gateway")
        check = only("HEALTHCHECK").split(" CMD ")[1]
        self.assertEqual(json.loads(check)[:3], ["/fulmar", "top", "--once"])

    def test_what_it_copies_is_what_the_script_leaves(self):
        script = (ROOT / "scripts/static").read_text()
        for name, rest in instructions():
            if name == "COPY":
                source = rest.split()[-2]
                self.assertIn(f'"$out/{source}"', script)

    def test_ports_and_volume_are_those_of_the_examples(self):
        exposed = set(only("EXPOSE").split())
        # These run beside another gateway, which has their port.
        for path in (path for path in EXAMPLES if path.name not in ("laptop-link.toml", "laptop-two-paths.toml", "chain-relay.toml")):
            with self.subTest(path.name):
                gateway = tomllib.loads(path.read_text())
                listen = gateway["gateway"].get("listen")
                if listen and not listen.startswith("127."):
                    self.assertIn(re.sub(r".*:", "", listen) + "/udp", exposed)
                if state := gateway["gateway"].get("state_dir"):
                    self.assertEqual(state, only("VOLUME"))
                if metrics := gateway.get("metrics"):
                    self.assertIn(re.sub(r".*:", "", metrics["listen"]) + "/tcp", exposed)


if __name__ == "__main__":
    unittest.main()
