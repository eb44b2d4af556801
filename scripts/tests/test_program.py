"""Files that the tests make once and share: whole, or an error where making failed."""

import pathlib
import tempfile
import unittest

import program


class SharedPages(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.place = pathlib.Path(place.name)
        self.ours = self.place / "ours"
        self.ours.mkdir()
        (self.ours / "page").write_text("ours")

    def test_pages_that_cannot_be_put_in_their_place_are_an_error_here(self):
        with self.assertRaises(OSError):
            program.put(self.ours, self.place / "nowhere" / "made")

    def test_pages_of_somebody_who_was_first_are_as_good(self):
        made = self.place / "made"
        made.mkdir()
        (made / "page").write_text("theirs")
        program.put(self.ours, made)
        self.assertEqual((made / "page").read_text(), "theirs")


if __name__ == "__main__":
    unittest.main()
