"""scripts/changelog finds the changes of a version, and cuts a version off what is not released."""

import datetime
import importlib.machinery
import importlib.util
import pathlib
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = "# Changelog\n\nWords.\n\n## Unreleased\n\n### Added\n- New.\n\n## 0.2.0 (2026-01-02)\n\n### Fixed\n- Old.\n"


def module():
    loader = importlib.machinery.SourceFileLoader("changelog", str(ROOT / "scripts/changelog"))
    made = importlib.util.module_from_spec(importlib.util.spec_from_loader("changelog", loader))
    loader.exec_module(made)
    return made


class Changelog(unittest.TestCase):
    def test_a_version_has_its_chapter_and_another_what_is_not_released(self):
        changelog = module()
        self.assertEqual(changelog.changes(PAGE, "0.2.0"), "### Fixed\n- Old.")
        self.assertEqual(changelog.changes(PAGE, "0.3.0"), "### Added\n- New.")
        with self.assertRaisesRegex(ValueError, "write what changed"):
            changelog.changes("# Changelog\n\n## Unreleased\n", "0.3.0")

    def test_a_cut_titles_what_is_not_released_and_begins_anew(self):
        changelog = module()
        made = changelog.cut(PAGE, "0.3.0", datetime.date(2026, 2, 3))
        self.assertIn("## Unreleased\n\n## 0.3.0 (2026-02-03)\n\n### Added\n- New.\n", made)
        self.assertEqual(changelog.changes(made, "0.3.0"), "### Added\n- New.")
        for version in ("0.2.0", "0.3.0"):
            with self.assertRaises(ValueError):
                changelog.cut(made, version, datetime.date(2026, 2, 3))

    def test_our_page_has_changes_to_tell(self):
        changelog = module()
        self.assertGreater(len(changelog.changes((ROOT / "CHANGELOG.md").read_text(), "0.1.0")), 100)


if __name__ == "__main__":
    unittest.main()
