"""Each file of a release does what it is for: installed on a bare Debian, unpacked into an empty root, loaded as an image, imported, compiled.

Method: target/dist as `scripts/release` made it; `make release` builds it and then runs this. The programs of the other machine run under
Debian's user-mode emulation. Nothing is fetched but what the wheel and the crates depend on.
"""

import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import bare_root  # noqa: E402
import installs  # noqa: E402
import program  # noqa: E402

DIST = program.TARGET / "dist"
EMULATOR = pathlib.Path("/usr/bin/qemu-aarch64-static")


def only(pattern):
    found = sorted(DIST.glob(pattern))
    if len(found) != 1:
        raise AssertionError(f"{DIST / pattern}: {[path.name for path in found]}")
    return found[0]


def rooted(cls, is_empty=False):
    if lacking := bare_root.lacking("mmdebstrap", "rpm", "buildah"):
        raise lacking
    cls.root = bare_root.BareRoot(is_empty)
    cls.addClassCleanup(cls.root.close)


class Here(installs.Installs, unittest.TestCase):
    """This machine's files on a bare Debian."""
    machine = "x86_64"

    @classmethod
    def setUpClass(cls):
        rooted(cls)
        cls.deb, cls.rpm = only("*_amd64.deb"), only("*.x86_64.rpm")
        cls.archive = only("*-x86_64-linux.tar.gz")


class Whole(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.folder.chmod(0o755)

    def test_every_file_has_its_sum(self):
        told = dict(reversed(line.split("  ")) for line in (DIST / "SHA256SUMS").read_text().splitlines())
        files = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in DIST.iterdir() if path.name != "SHA256SUMS"}
        self.assertEqual(told, files)
        self.assertGreater(len(files), 15)

    def test_all_packages_of_a_machine_hold_the_same_program(self):
        for machine, debian in (("x86_64", "amd64"), ("aarch64", "arm64")):
            with self.subTest(machine):
                room = self.folder / machine
                room.mkdir()
                bare_root.run("tar", "-xzf", only(f"*-{machine}-linux.tar.gz"), "-C", room, "--strip-components=1")
                bare_root.run("dpkg-deb", "--extract", only(f"*_{debian}.deb"), room / "deb")
                (room / "rpm").mkdir()
                bare_root.run("sh", "-c", f"cd {room}/rpm && rpm2cpio {only(f'*.{machine}.rpm')} | cpio -id --quiet")
                programs = [room / "fulmar", room / "deb/usr/bin/fulmar", room / "rpm/usr/bin/fulmar"]
                self.assertEqual(len({path.read_bytes() for path in programs}), 1)
                self.assertRegex(bare_root.run("file", programs[0]).stdout, "statically linked|static-pie linked")

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_the_program_of_each_machine_runs_in_an_empty_root(self):
        for machine in ("x86_64", "aarch64"):
            with self.subTest(machine):
                root = bare_root.BareRoot(is_empty=True)
                self.addCleanup(root.close)
                bare_root.run("tar", "-xzf", only(f"*-{machine}-linux.tar.gz"), "-C", root.folder, "--strip-components=1")
                command = ["/fulmar"]
                if machine == "aarch64":
                    root.put(EMULATOR, "/emulator")
                    command = ["/emulator", "/fulmar"]
                self.assertRegex(root.run(*command, "--version").stdout, r"^fulmar \d")
                rows = root.run(*command, "sim", "--swarm", "3", "--seed", "1", check=False)
                self.assertEqual(rows.returncode, 0, rows.stdout + rows.stderr)

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_the_image_of_each_machine_is_loaded_and_that_of_this_one_runs(self):
        store = ["--storage-driver", "vfs", "--root", self.folder / "root", "--runroot", self.folder / "run"]
        for machine, architecture in (("x86_64", "amd64"), ("aarch64", "arm64")):
            with self.subTest(machine):
                archive = only(f"*-{machine}-image.tar")
                name = bare_root.run("buildah", *store, "pull", "--quiet", f"docker-archive:{archive}").stdout.strip()
                told = json.loads(bare_root.run("buildah", *store, "inspect", "--type", "image", name).stdout)
                self.assertEqual(told["Docker"]["architecture"], architecture)
                self.assertEqual(told["Docker"]["config"]["User"], "4914:4914")
                self.assertIn("/fulmar", told["Docker"]["config"]["Healthcheck"]["Test"])
                container = bare_root.run("buildah", *store, "from", "--pull-never", name).stdout.strip()
                if machine == "x86_64":
                    said = bare_root.run("buildah", *store, "run", "--isolation", "chroot", container, "--", "/fulmar", "--version")
                    self.assertRegex(said.stdout, r"^fulmar \d")

    def test_the_wheel_is_imported_and_runs_a_scenario(self):
        wheel = only("*.whl")
        bare_root.run(sys.executable, "-m", "venv", self.folder / "venv")
        python = self.folder / "venv/bin/python"
        bare_root.run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel)
        code = ("import fulmar_lab; print(fulmar_lab.Scenario.build(run={'duration': '9s'}, hop=[{'rate': '8mbit', 'loss': '5%'}],"
                " flow={'transport': 'udp', 'traffic': 'bulk', 'bytes': '9kB'}).run(seed=1))")
        self.assertIn("goodput", bare_root.run(python, "-c", code).stdout)

    def test_a_program_is_built_with_the_crates(self):
        crates = self.folder / "crates"
        crates.mkdir()
        names = []
        for file in sorted(DIST.glob("*.crate")):
            bare_root.run("tar", "-xzf", file, "-C", crates)
            names.append(file.name.removesuffix(".crate"))
        self.assertGreater(len(names), 5)
        version = only("*.cdx.json").name.removeprefix("fulmar-").removesuffix(".cdx.json")
        patches = "".join(f'{name.removesuffix(f"-{version}")} = {{ path = "{crates / name}" }}\n' for name in names)
        (self.folder / "src").mkdir()
        (self.folder / "src/main.rs").write_text("fn main() { println!(\"{}\", core::any::type_name::<fulmar::Endpoint>()); }\n")
        (self.folder / "Cargo.toml").write_text('[package]\nname = "stranger"\nversion = "0.0.0"\nedition = "2024"\n'
                                                f'[dependencies]\nfulmar = "{version}"\n[patch.crates-io]\n{patches}')
        ended = subprocess.run(["cargo", "check", "--quiet"], cwd=self.folder, capture_output=True, text=True, timeout=1800,
                               env={**os.environ, "CARGO_TARGET_DIR": str(program.TARGET / "stranger")})
        self.assertEqual(ended.returncode, 0, ended.stderr)

    def test_the_changes_are_those_of_the_version(self):
        told = only("*-changes.md").read_text()
        self.assertNotIn("\n## ", "\n" + told)
        self.assertIn("### ", told)


if __name__ == "__main__":
    unittest.main()
