"""docs/dependencies.md names every dependency with the crates that use it, and nothing else."""

import pathlib
import re
import tomllib
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/dependencies.md").read_text()


def manifest(path):
    return tomllib.loads((ROOT / path).read_text())


class Dependencies(unittest.TestCase):
    maxDiff = None

    def test_the_table_is_what_the_manifests_say(self):
        used = {}
        for path in sorted((ROOT / "crates").glob("*/Cargo.toml")):
            for name in manifest(path)["dependencies"]:
                if name.split("-")[0] != "fulmar":
                    used.setdefault(name, []).append(path.parent.name)
        told = {}
        for names, users in re.findall(r"^\| (`.*?) \| ([a-z, ]+) \|", PAGE, re.MULTILINE):
            for name in re.findall(r"`([a-z0-9_-]+)`", names):
                told[name] = sorted(users.split(", "))
        self.assertEqual(told, used)

    def test_the_packages_of_the_tests_are_those_that_contributing_lists(self):
        (installed,) = re.findall(r"^TESTS=\(([^)]*)\)", (ROOT / "scripts/setup-debian").read_text(), re.MULTILINE)
        table = (ROOT / "CONTRIBUTING.md").read_text().partition("| packages | for |\n|---|---|\n")[2].partition("\n\n")[0]
        told = [name for row in table.splitlines() for name in row.strip("| ").split(" | ")[0].split(", ")]
        self.assertEqual(sorted(told), sorted(installed.split()))

    def test_the_workspace_declares_nothing_that_no_crate_uses(self):
        used = set()
        for path in (ROOT / "crates").glob("*/Cargo.toml"):
            for table in ("dependencies", "dev-dependencies"):
                used |= set(manifest(path).get(table, {}))
        declared = set(manifest("Cargo.toml")["workspace"]["dependencies"])
        self.assertEqual(declared - used, set())
        # Beside the table, the page's last paragraph has those of tests.
        for name in declared:
            self.assertTrue(name.split("-")[0] == "fulmar" or f"`{name}`" in PAGE, name)


if __name__ == "__main__":
    unittest.main()
