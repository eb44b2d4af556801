"""The pages of `fulmar reproduce all` in Chromium: nothing from elsewhere, everything shown, light and dark, narrow."""

import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import tempfile
import unittest
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGET = ROOT / os.environ.get("CARGO_TARGET_DIR", "target")
FULMAR = TARGET / "release/fulmar"
CHROMIUM = shutil.which("chromium")
# No network: names resolve to nothing, and the browser's own calls home are off. Root has no sandbox.
FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-background-networking",
         "--disable-component-update", "--no-first-run", "--host-resolver-rules=MAP * ~NOTFOUND",
         "--enable-logging=stderr", "--log-level=0"]
# Tells of itself how wide it is, and what reaches beyond the window without a scroll bar of its own.
PROBE = """<script>
const beyond = [...document.querySelectorAll("body *")].filter(e =>
    e.getBoundingClientRect().right > innerWidth + 1 && !e.closest("pre, .wide") && !e.closest("svg"));
document.title = JSON.stringify({width: innerWidth, scroll: document.documentElement.scrollWidth,
    beyond: beyond.slice(0, 5).map(e => e.tagName + "." + e.className + "#" + e.id)});
</script>"""


def pixels(png):
    """Width, height and rows of RGB octets of an 8-bit PNG without interlacing (RFC 2083)."""
    octets = pathlib.Path(png).read_bytes()
    at, data = 8, b""
    while at < len(octets):
        length, kind = struct.unpack(">I4s", octets[at:at + 8])
        body = octets[at + 8:at + 8 + length]
        if kind == b"IHDR":
            width, height, depth, colour = struct.unpack(">IIBB", body[:10])
            assert depth == 8 and colour in (2, 6), (depth, colour)
            size = 3 if colour == 2 else 4
        elif kind == b"IDAT":
            data += body
        at += 12 + length
    data = zlib.decompress(data)
    stride, before, rows = width * size, bytearray(width * size), []
    for number in range(height):
        start = number * (stride + 1)
        kind, line = data[start], bytearray(data[start + 1:start + 1 + stride])
        for i in range(stride):
            left = line[i - size] if i >= size else 0
            up = before[i]
            corner = before[i - size] if i >= size else 0
            if kind == 1:
                line[i] = (line[i] + left) & 255
            elif kind == 2:
                line[i] = (line[i] + up) & 255
            elif kind == 3:
                line[i] = (line[i] + (left + up) // 2) & 255
            elif kind == 4:
                near = min((abs(up - corner), 0, left), (abs(left - corner), 1, up),
                           (abs(left + up - 2 * corner), 2, corner))
                line[i] = (line[i] + near[2]) & 255
        rows.append(line)
        before = line
    return width, height, [bytes(line[i] for i in range(stride) if i % size < 3) for line in rows]


@unittest.skipUnless(CHROMIUM, "no chromium; scripts/setup-debian installs it")
class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        build = ["cargo", "build", "--release", "--locked", "-p", "fulmar-cli"]
        subprocess.run(build, cwd=ROOT, check=True, timeout=1800, capture_output=True)
        cls.folder = tempfile.TemporaryDirectory()
        cls.out = pathlib.Path(cls.folder.name) / "pages"
        command = [FULMAR, "reproduce", "all", "--runs", "1", "--out", cls.out]
        subprocess.run(command, check=True, timeout=300, capture_output=True)
        cls.papers = sorted(path.name for path in cls.out.iterdir() if path.is_dir())
        cls.pages = [cls.out / "index.html", *(cls.out / paper / "index.html" for paper in cls.papers)]

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def browse(self, page, *flags):
        """What Chromium says of a page: the document as it stands then, and its console."""
        profile = tempfile.mkdtemp(dir=self.folder.name)
        log = pathlib.Path(profile) / "net.json"
        command = [CHROMIUM, *FLAGS, f"--user-data-dir={profile}", f"--log-net-log={log}", *flags, page.as_uri()]
        run = subprocess.run(command, capture_output=True, text=True, timeout=120)
        self.assertEqual(run.returncode, 0, run.stderr)
        console = [line for line in run.stderr.splitlines() if "CONSOLE" in line]
        self.assertEqual(console, [], page)
        asked = set(re.findall(r'"url":\s*"(\w+://[^"]*)"', log.read_text()))
        self.assertEqual({url for url in asked if not url.startswith("file:")}, set(), page)
        return run.stdout

    def claims(self, folder):
        return json.loads((folder / "claims.json").read_text())

    def test_the_list_of_all_claims_is_that_of_the_papers(self):
        each = [{**claim, "id": f"{paper}/{claim['id']}"} for paper in self.papers for claim in self.claims(self.out / paper)]
        everything = self.claims(self.out)
        self.assertEqual(sorted(each, key=lambda c: c["id"]), sorted(everything, key=lambda c: c["id"]))
        self.assertGreaterEqual(len(everything), 25)
        for claim in everything:
            self.assertEqual(set(claim), {"id", "where", "claim", "verdict", "figure", "comment"})
            self.assertIn(claim["verdict"], {"reproduced", "partly", "not"})
            self.assertTrue(all(claim.values()), claim)

    def test_every_link_leads_to_something_in_the_directory(self):
        for page in self.pages:
            html = page.read_text()
            self.assertNotRegex(html.replace("http://www.w3.org/2000/svg", ""), r"https?:|src=|url\(|@import|<script")
            for link in re.findall(r'href="([^"]*)"', html):
                name, _, fragment = link.partition("#")
                there = page.parent / name if name else page
                self.assertTrue(there.is_file(), link)
                if fragment:
                    self.assertIn(f'id="{fragment}"', there.read_text(), link)

    def test_pages_show_every_figure_and_claim_and_fit_a_narrow_window(self):
        for page in self.pages:
            with self.subTest(page.parent.name):
                probe = page.parent / "probe.html"
                html = page.read_text()
                probe.write_text(html.replace("</body>", PROBE + "</body>"))
                dom = self.browse(probe, "--window-size=400,900", "--dump-dom")
                told = json.loads(re.search("<title>(.*?)</title>", dom).group(1).replace("&amp;", "&"))
                self.assertEqual(told["width"], 400)
                self.assertEqual(told["beyond"], [])
                self.assertLessEqual(told["scroll"], told["width"])
                claims = self.claims(page.parent)
                titles = re.findall("<title>(.*?)</title>", html)
                self.assertTrue(titles and titles[0])
                if page.parent == self.out:
                    self.assertEqual(len(re.findall(r'<a href="[^"]*/index.html#', dom)), len(claims))
                    continue
                self.assertIn(page.parent.name, titles[0])
                figures = len(list(page.parent.glob("*.svg")))
                self.assertEqual(len(list(page.parent.glob("*.csv"))), figures)
                self.assertEqual(len(re.findall("<figure ", dom)), figures)
                self.assertEqual(len(re.findall("<svg ", dom)), figures)
                self.assertEqual(re.findall('<tr id="([^"]*)"', dom), [claim["id"] for claim in claims])

    def test_pages_are_drawn_light_and_dark(self):
        page = self.out / self.papers[0] / "index.html"
        mean = {}
        for scheme, flags in (("light", []), ("dark", [DARK])):
            picture = self.out / f"{scheme}.png"
            # From the first figure on: it has every colour of the drawings.
            first = pathlib.Path(f"{page}")
            self.browse(first, "--window-size=900,3000", f"--screenshot={picture}", *flags)
            width, height, rows = pixels(picture)
            self.assertEqual((width, height), (900, 3000))
            colours = {bytes(row[i:i + 3]) for row in rows[::10] for i in range(0, len(row), 3)}
            self.assertGreater(len(colours), 50)
            mean[scheme] = sum(map(sum, rows[::10])) / sum(map(len, rows[::10]))
        self.assertGreater(mean["light"], 200)
        self.assertLess(mean["dark"], 70)


DARK = "--blink-settings=preferredColorScheme=0"

if __name__ == "__main__":
    unittest.main()
