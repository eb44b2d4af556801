"""The tests of installing, for whoever has the files: attributes `root`, `machine`, `deb`, `rpm`, `archive`."""

import re

import bare_root

STATE = "/var/lib/fulmar"
CONFIGURATION = """
[gateway]
name = "test"
[security]
kind = "noise"
private_key_file = "/etc/fulmar/test.key"
[[peer]]
name = "far"
public_key = "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc="
[egress]
allow = ["10.0.0.0/8:80"]
"""


class Installs:
    def use(self):
        """What a user does first: a key, a file, and the question whether it is right; as the gateways' user, who may read both."""
        version = self.root.run("fulmar", "--version").stdout
        self.assertRegex(version, r"^fulmar \d+\.\d+\.\d+")
        self.root.run("fulmar", "keygen", "/etc/fulmar/test.key")
        self.root.run("chown", "fulmar:", "/etc/fulmar/test.key")
        (self.root.folder / "etc/fulmar/test.toml").write_text(CONFIGURATION)
        told = self.root.run("su", "-s", "/bin/sh", "fulmar", "-c", "fulmar gateway --check -c /etc/fulmar/test.toml").stdout
        self.assertIn("far", told)
        self.assertEqual(self.root.run("stat", "-c", "%U %a", STATE).stdout, "fulmar 700\n")
        self.assertEqual(self.root.run("stat", "-c", "%U:%G %a", "/etc/fulmar").stdout, "root:fulmar 750\n")
        return version.split()[1]

    def left(self):
        """Our files that are there, those of the user apart."""
        found = self.root.run("find", "/usr", "/lib/systemd", "/etc", "/var/lib/fulmar", "-path", "*fulmar*", check=False).stdout.split()
        return [path for path in found if "/share/doc" not in path or path.endswith("fulmar")]

    def test_the_debian_package(self):
        self.root.put(self.deb, "/fulmar.deb")
        self.root.run("dpkg", "--install", "/fulmar.deb")
        version = self.use()
        self.assertIn(f"fulmar_{version}-", self.deb.name)
        self.assertEqual(self.root.run("dpkg", "--verify", "fulmar").stdout, "")
        # A bare Debian leaves manuals out where its administrator said so; the package has them.
        listed = self.root.run("dpkg", "--listfiles", "fulmar").stdout
        self.assertIn("/usr/share/man/man5/fulmar.toml.5.gz\n", listed)
        self.assertIn("/usr/share/man/man1/fulmar-gateway.1.gz\n", listed)
        self.root.run("dpkg", "--purge", "fulmar")
        self.assertEqual(self.left(), [])

    def test_the_rpm(self):
        # The tools are this machine's, the root and its database are not; what a package of another family is called no database here knows.
        rpm = ["rpm", "--root", self.root.folder, "--nodeps"]
        listed = bare_root.run("rpm", "--query", "--package", "--requires", self.rpm).stdout
        self.assertIn("shadow-utils", listed)
        for wrong in ("libc.so", "ld-linux"):
            self.assertNotIn(wrong, listed)
        bare_root.run(*rpm, "--install", "--ignorearch", self.rpm)
        version = self.use()
        self.assertIn(f"fulmar-{version}-", self.rpm.name)
        verified = bare_root.run(*rpm, "--verify", "--nouser", "--nogroup", "--nomode", "fulmar", check=False).stdout
        self.assertEqual([line for line in verified.splitlines() if "/etc/fulmar" not in line], [])
        (self.root.folder / "etc/fulmar/test.toml").unlink()
        (self.root.folder / "etc/fulmar/test.key").unlink()
        bare_root.run(*rpm, "--erase", "fulmar")
        # Its state stays, as with every RPM.
        self.root.run("rm", "-r", STATE)
        self.assertEqual(self.left(), [])

    def test_the_archive(self):
        self.root.put(self.archive, "/archive.tar.gz")
        self.root.run("tar", "--extract", "--gzip", "--file", "/archive.tar.gz")
        folder = "/" + re.sub(r"\.tar\.gz$", "", self.archive.name)
        self.assertIn(folder[1:], f"fulmar-{self.root.run(f'{folder}/fulmar', '--version').stdout.split()[1]}-{self.machine}-linux")
        self.assertIn(".SH [egress]", self.root.run("zcat", f"{folder}/man/man5/fulmar.toml.5.gz").stdout)
        for name in ("LICENSE-MIT", "LICENSE-APACHE", "README.md", "completions/_fulmar", "completions/fulmar.fish", "examples/gateway/ground.toml", "examples/python/sweep.py", "scenarios/airborne.toml"):
            self.assertTrue((self.root.folder / folder[1:] / name).is_file(), name)
        self.root.run("rm", "-r", folder)
