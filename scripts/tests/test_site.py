"""The site: pages fit the screen of a phone, what is wrong in a page is found, and words can be looked up."""

import importlib.machinery
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import chromium
from program import ROOT, lacks

PHONE = 400
PICTURE = '<svg xmlns="http://www.w3.org/2000/svg" width="2000" height="900" viewBox="0 0 2000 900"><rect width="2000" height="900"/></svg>'
WIDE = f"""# A page with all that may be too wide

![A picture of two thousand pixels](picture.svg)

| {" | ".join(f"a column called {number}" for number in range(12))} |
|{"---|" * 12}
| {" | ".join("words and words" for _ in range(12))} |

    a command {"--with-a-flag=of-its-own " * 20}

`{"a_name_without_a_blank_" * 8}` and https://example.org/{"a/long/address/" * 12}

```{{toctree}}
:hidden:
```
"""


def site():
    loader = importlib.machinery.SourceFileLoader("site_script", str(ROOT / "scripts/site"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("site_script", loader))
    loader.exec_module(module)
    return module


class Site(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_a_page_fits_a_phone_and_what_is_wider_scrolls_or_shrinks(self):
        chromium.require()
        found = subprocess.run([ROOT / "scripts/python-packages", ROOT / "site/requirements.txt"], capture_output=True, text=True)
        if found.returncode:
            raise lacks(f"the packages of the site are not to be had: {found.stderr[-300:]}")
        source, out = self.folder / "source", self.folder / "html"
        source.mkdir()
        (source / "index.md").write_text(WIDE)
        (source / "picture.svg").write_text(PICTURE)
        environment = os.environ | {"PYTHONPATH": found.stdout.strip()}
        command = [sys.executable, "-m", "sphinx", "-q", "-W", "-c", ROOT / "site", source, out]
        made = subprocess.run(command, env=environment, capture_output=True, text=True)
        self.assertEqual(made.returncode, 0, made.stderr)
        browser = chromium.Browser(self.folder / "browser")
        self.addCleanup(browser.close)
        browser.load((out / "index.html").as_uri(), width=PHONE, height=800)
        self.assertEqual(browser.eval("innerWidth"), PHONE, "a phone shows what is wider smaller")
        self.assertLessEqual(browser.eval("document.documentElement.scrollWidth"), PHONE)
        self.assertLessEqual(browser.eval("document.querySelector('article img').getBoundingClientRect().right"), PHONE)
        # What is beyond the edge can be scrolled to.
        for wide in ("table", "pre"):
            scrolls = f"""(() => {{
                for (let box = document.querySelector('article {wide}'); box; box = box.parentElement)
                    if (box.scrollWidth > box.clientWidth && getComputedStyle(box).overflowX === 'auto') return true;
                return false;
            }})()"""
            self.assertTrue(browser.eval(scrolls), wide)

    def test_the_glossary_is_in_alphabetical_order_and_has_no_word_twice(self):
        words = re.findall(r"^\| (?!word )([^|]+?) \|", (ROOT / "docs/glossary.md").read_text(), re.MULTILINE)
        self.assertGreater(len(words), 70)
        letters = [re.sub("[^a-z0-9 ]", "", word.lower()) for word in words]
        self.assertEqual(letters, sorted(set(letters)))

    def test_links_to_nothing_and_what_comes_from_another_host_are_found(self):
        (self.folder / "sound.html").write_text('<a href="other.html#here">there</a><a href="other.html#T%3CU%3E">a type</a><a href="other.html#3-7">lines</a><img src="data:image/png;base64,">')
        (self.folder / "other.html").write_text('<p id="here">text</p><p id="T%3CU%3E"></p><p id="3"></p><p id="7"></p><a href="https://example.org/">elsewhere</a>')
        self.assertEqual(list(site().faults(self.folder)), [])
        (self.folder / "api").mkdir()
        (self.folder / "api/wrong.html").write_text(
            '<script src="https://example.org/a.js"></script><img src="//example.org/b.png"><a href="../gone.html">a</a><a href="../other.html#gone">b</a><a href="../other.html#3-8">c</a>'
        )
        self.assertEqual(sorted(site().faults(self.folder)), [
            "api/wrong.html links to ../gone.html, which is not there",
            "api/wrong.html links to ../other.html#3-8: that page has no such place",
            "api/wrong.html links to ../other.html#gone: that page has no such place",
            "api/wrong.html loads //example.org/b.png",
            "api/wrong.html loads https://example.org/a.js",
        ])


if __name__ == "__main__":
    unittest.main()
