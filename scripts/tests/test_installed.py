"""What a release consists of installs on a bare Debian, does what it is for, and leaves nothing: the Debian package, the RPM and the archive.

Method: packages of the release binary that the other tests use, in a root directory of their own. `make release` has the same tests of its own
files, which hold the static program, and of the image, the wheel and the crates (scripts/tests/release).
"""

import pathlib
import platform
import unittest

import bare_root
import installs
import program


class Installed(installs.Installs, unittest.TestCase):
    machine = platform.machine()

    @classmethod
    def setUpClass(cls):
        if lacking := bare_root.lacking("mmdebstrap", "dpkg-deb", "rpmbuild"):
            raise lacking
        program.build()
        cls.root = bare_root.BareRoot()
        cls.addClassCleanup(cls.root.close)

        def made(script, *words):
            said = bare_root.run(program.ROOT / "scripts" / script, *words).stdout
            return program.ROOT / said.splitlines()[-1]
        # A number of its own: test_package has those of the same name.
        cls.deb = made("package", "9")
        cls.rpm = made("rpm", program.FULMAR, cls.machine)
        cls.archive = made("archive", program.FULMAR, cls.machine)


if __name__ == "__main__":
    unittest.main()
