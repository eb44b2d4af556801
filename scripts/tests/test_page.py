"""The pages of `fulmar reproduce all` in Chromium, from file://: whole, quiet, legible in light and dark, printable.

Method: one Chromium opens each page, in each window and scheme, and is asked there what the page looks like to it. Chromium itself
lists its requests and its complaints. The last cases break a page on purpose, so that each check is seen to fail.
"""

import json
import pathlib
import re
import shutil
import tempfile
import unittest
import zlib

import chromium
import program
from chromium import contrast, luminance

# Names resolve to nothing.
NO_NAMES = "--host-resolver-rules=MAP * ~NOTFOUND"
# `#16181c` as the drawing instructions of a PDF have it: the ground of the dark scheme.
DARK_GROUND = re.compile(rb"\.0863 \.0941 \.1098 rg")
PROBE = """(() => {
    const style = e => getComputedStyle(e), box = e => e.getBoundingClientRect();
    const text = document.querySelector("svg text"), ground = document.querySelector("svg rect");
    return {
        width: innerWidth, scroll: document.documentElement.scrollWidth,
        beyond: [...document.querySelectorAll("body *")].filter(e =>
            box(e).right > innerWidth + 1 && !e.closest("pre, .wide, svg")).slice(0, 5).map(e => e.tagName + "." + e.className),
        figures: [...document.querySelectorAll("figure")].map(e => {
            const svg = e.querySelector("svg");
            const marks = svg ? [...svg.querySelectorAll("polyline, circle")].filter(m => box(m).width + box(m).height > 0) : [];
            return {id: e.id, width: svg ? box(svg).width : 0, height: svg ? box(svg).height : 0, marks: marks.length};
        }),
        body: [style(document.body).color, style(document.body).backgroundColor],
        drawing: text && ground ? [style(text).fill, style(ground).fill] : null,
        rows: [...document.querySelectorAll("tr[id]")].map(e => e.id),
        links: [...document.querySelectorAll("a")].map(e => e.getAttribute("href")),
        foreign: [...document.querySelectorAll("link, script, img, image, use, iframe, object, embed, audio, video, source, [src]")]
            .map(e => e.outerHTML)};
})()"""


def requests(log):
    """The page's requests to the network, from Chromium's log: the browser's own requests have no origin."""
    start = log["constants"]["logEventTypes"]["URL_REQUEST_START_JOB"]
    jobs = [event.get("params", {}) for event in log["events"] if event["type"] == start]
    return [job["url"] for job in jobs if job.get("initiator", "not an origin") != "not an origin"]


def drawn(pdf):
    """The drawing instructions of a PDF, decompressed."""
    streams = []
    for stream in re.findall(rb"stream\r?\n(.*?)endstream", pdf, re.DOTALL):
        try:
            streams.append(zlib.decompressobj().decompress(stream))
        except zlib.error:
            pass  # Not all are compressed so: fonts' are, pictures' are not.
    return b"\n".join(streams)


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        chromium.require()
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.out = cls.folder / "pages"
        shutil.copytree(program.pages(), cls.out)
        cls.papers = sorted(path.name for path in cls.out.iterdir() if path.is_dir())
        cls.pages = [cls.out / "index.html", *(cls.out / paper / "index.html" for paper in cls.papers)]
        cls.browser = chromium.Browser(cls.folder / "profile", NO_NAMES)
        cls.addClassCleanup(cls.browser.close)

    def open(self, page, **how):
        """Opens a page; it must not ask for anything but itself, nor complain."""
        self.browser.load(page.as_uri(), mobile=False, **how)
        self.check_quiet(page)

    def check_quiet(self, page):
        self.assertEqual([url for url in self.browser.requests() if not url.startswith("data:")], [page.as_uri()])
        self.assertEqual(self.browser.complaints(), [], page)

    def asked(self, pages):
        """The requests to the network, by its own log, of a Chromium of its own while it shows these pages."""
        with tempfile.TemporaryDirectory(dir=self.folder) as profile:
            log = pathlib.Path(profile) / "net.json"
            browser = chromium.Browser(profile, NO_NAMES, f"--log-net-log={log}")
            try:
                for page in pages:
                    browser.load(page.as_uri())
                browser.quit()
                return requests(json.loads(log.read_text()))
            finally:
                browser.close()

    def check(self, page, width=1280, dark=False):
        """Checks every page, in whichever window and scheme; returns the page as Chromium has it."""
        self.open(page, width=width, dark=dark)
        told = self.browser.eval(PROBE)
        self.assertEqual(told["foreign"], [])
        self.assertEqual(re.findall(r"url\([^)]*\)|@import", page.read_text()), [])
        self.assertEqual(told["beyond"], [])
        self.assertLessEqual(told["scroll"], told["width"])
        for figure in told["figures"]:
            self.assertGreater(figure["width"], 300, figure)
            self.assertGreater(figure["height"], 150, figure)
            self.assertGreater(figure["marks"], 10, figure)
        self.assertGreaterEqual(contrast(*told["body"]), 7)
        if told["drawing"]:
            self.assertGreaterEqual(contrast(*told["drawing"]), 7)
        return told

    def claims(self, folder):
        return json.loads((folder / "claims.json").read_text())

    def test_the_list_of_all_claims_is_that_of_the_papers(self):
        each = [{**claim, "id": f"{paper}/{claim['id']}"} for paper in self.papers for claim in self.claims(self.out / paper)]
        everything = self.claims(self.out)
        self.assertEqual(sorted(each, key=lambda c: c["id"]), sorted(everything, key=lambda c: c["id"]))
        self.assertGreaterEqual(len(everything), 25)
        for claim in everything:
            self.assertEqual(set(claim), {"id", "where", "claim", "verdict", "figure", "comment"})
            self.assertIn(claim["verdict"], {"reproduced", "partly", "not", "given"})
            self.assertEqual(claim["verdict"] == "given", "\nGiven, not found: " in claim["comment"], claim)
            self.assertTrue(all(claim.values()), claim)

    def test_every_link_leads_to_something_in_the_directory(self):
        for page in self.pages:
            text = page.read_text()
            for link in re.findall(r'href="([^"]*)"', text):
                name, _, fragment = link.partition("#")
                there = page.parent / name if name else page
                self.assertTrue(there.is_file(), link)
                if fragment:
                    self.assertIn(f'id="{fragment}"', there.read_text(), link)

    def test_pages_show_every_figure_and_claim_in_a_wide_and_in_a_narrow_window(self):
        for page in self.pages:
            with self.subTest(page.parent.name):
                names = {path.stem for path in page.parent.glob("*.svg")}
                tables = {path.stem for path in page.parent.glob("*.csv")} - names
                self.assertLessEqual(names, {path.stem for path in page.parent.glob("*.csv")})
                for table in tables:
                    self.assertRegex(page.read_text(), rf'<h3 id="{table}">(?:(?!<h3)[\s\S])*<(td|svg)')
                narrow, wide = self.check(page, width=400), self.check(page)
                for told, width in ((narrow, 400), (wide, 1280)):
                    self.assertEqual(told["width"], width)
                    self.assertEqual({figure["id"] for figure in told["figures"]}, names)
                claims = self.claims(page.parent)
                if page.parent == self.out:
                    self.assertEqual(len([link for link in wide["links"] if "/index.html#" in link]), len(claims))
                else:
                    self.assertEqual(wide["rows"], [claim["id"] for claim in claims])

    def test_pages_follow_the_scheme(self):
        for page in self.pages:
            with self.subTest(page.parent.name):
                light, dark = self.check(page), self.check(page, dark=True)
                self.assertGreater(luminance(light["body"][1]), 0.9)
                self.assertLess(luminance(dark["body"][1]), 0.05)
                if light["drawing"]:
                    self.assertGreater(luminance(light["drawing"][1]), 0.9)
                    self.assertLess(luminance(dark["drawing"][1]), 0.05)

    def test_pages_print_whole_and_light(self):
        for page in self.pages:
            with self.subTest(page.parent.name):
                self.check_print(page)

    def check_print(self, page):
        """Checks every page on paper, also for a reader who prefers the dark scheme."""
        self.open(page, dark=True)
        pdf = self.browser.pdf()
        # The content that only paper shows is asked for now.
        self.check_quiet(page)
        self.assertTrue(pdf.startswith(b"%PDF-"))
        figures = len(list(page.parent.glob("*.svg")))
        # In the document's structure: each figure, the drawing in it, and those that stand alone (computed curves).
        drawings = page.read_text().count("<svg")
        self.assertGreaterEqual(drawings, figures)
        self.assertEqual(len(re.findall(rb"/S\s*/Figure\b", pdf)), figures + drawings)
        # A sheet holds six figures, or forty claims of one line each, and no more.
        least = figures / 6 + len(self.claims(page.parent)) / 40
        self.assertGreaterEqual(len(re.findall(rb"/Type\s*/Page\b", pdf)), least)
        self.assertEqual(DARK_GROUND.findall(drawn(pdf)), [])

    def broken(self, old, new):
        """A page with `old` replaced in it."""
        page = self.out / self.papers[0] / "broken.html"
        text = (self.out / self.papers[0] / "index.html").read_text()
        self.assertIn(old, text)
        page.write_text(text.replace(old, new, 1))
        self.addCleanup(page.unlink, missing_ok=True)
        return page

    def test_a_page_that_asks_for_something_is_noticed(self):
        for new in ('<img src="https://example.org/a.png"></body>', '<link rel="stylesheet" href="a.css"></body>'):
            with self.subTest(new):
                page = self.broken("</body>", new)
                with self.assertRaises(AssertionError):
                    self.check(page)
        # Chromium notices it too, whatever the element.
        page = self.broken("</body>", '<p style="background:u\\72l(https://example.org/a.png)">a</p></body>')
        with self.assertRaisesRegex(AssertionError, "example.org"):
            self.open(page)
        self.assertEqual(self.asked([page]), ["https://example.org/a.png"])

    def test_pages_ask_the_network_for_nothing(self):
        self.assertEqual(self.asked(self.pages), [])

    def test_a_page_that_complains_is_noticed(self):
        with self.assertRaises(AssertionError):
            self.check(self.broken("</body>", "<script>console.error('no')</script></body>"))

    def test_a_figure_without_a_size_is_noticed(self):
        with self.assertRaises(AssertionError):
            self.check(self.broken("<figure ", "<figure hidden "))

    def test_something_too_wide_for_a_narrow_window_is_noticed(self):
        page = self.broken("<h2", '<div style="width:450px">wide</div><h2')
        self.check(page)
        with self.assertRaises(AssertionError):
            self.check(page, width=400)

    def test_ink_that_does_not_follow_the_scheme_is_noticed(self):
        page = self.broken("svg [fill='#222223' i]{fill:var(--ink)}", "")
        self.check(page)
        with self.assertRaises(AssertionError):
            self.check(page, dark=True)

    def test_a_dark_print_is_noticed(self):
        page = self.broken("@media print{:root{color-scheme:light;--ink:#000;--ground:#fff;",
                           "@media print{:root{color-scheme:light;--ink:#000;--ground:#16181c;")
        with self.assertRaises(AssertionError):
            self.check_print(page)

    def test_a_print_that_asks_for_something_is_noticed(self):
        page = self.broken("</body>", '<style>@media print { p { background: u\\72l(https://example.org/a.png) } }</style></body>')
        with self.assertRaisesRegex(AssertionError, "example.org"):
            self.check_print(page)

    def test_a_print_without_its_figures_is_noticed(self):
        with self.assertRaises(AssertionError):
            self.check_print(self.broken("@media print{", "@media print{figure{display:none}"))


if __name__ == "__main__":
    unittest.main()
