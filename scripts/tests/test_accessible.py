"""The live page in each state, narrow and wide, light and dark: nothing that axe-core finds hinders anybody; the verdict is on the
first screen, also without a script; everything can be reached with the keyboard.

Method: the page is a real gateway's; its answers are put in its place (page_states.py). Pictures for people are left in target/live.
"""

import json
import pathlib
import shutil
import subprocess
import tempfile
import unittest
import urllib.request

import chromium
import page_states
from chromium import Browser
from program import ROOT, build, lacks
from test_live import Gateway, end, picture

# Each state in a narrow and a wide window; those whose colours tell something also dark, in between.
WINDOWS = [(400, False), (1400, False)]
DARK = {"lossy", "outage", "unprotected"}
AXE = "axe.run(document, {resultTypes: ['violations']}).then(found => found.violations.map(v => [v.id, v.impact, v.nodes.map(n => n.html.slice(0, 120)).slice(0, 3)]))"


def axe():
    """The source of axe-core."""
    if not shutil.which("npm"):
        raise lacks("no npm, which fetches axe-core")
    run = subprocess.run([ROOT / "scripts/axe-core"], capture_output=True, text=True, timeout=120)
    if run.returncode:
        raise AssertionError(run.stderr)
    return pathlib.Path(run.stdout.strip()).read_text()


class Accessible(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        chromium.require()
        build()
        cls.axe = axe()
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.gateway = Gateway(cls.folder.name, "air", "ground", 'address = "127.0.0.1:9"\n')
        cls.addClassCleanup(end, cls.gateway.process)
        view, history = (json.loads(cls.gateway.get(path)) for path in ("view", "history"))
        cls.states = page_states.states(view, history)
        cls.browser = Browser(pathlib.Path(cls.folder.name) / "profile")
        cls.addClassCleanup(cls.browser.close)

    def show(self, name, **how):
        script = self.browser.call("Page.addScriptToEvaluateOnNewDocument", source=page_states.script(self.states[name]))
        try:
            self.browser.load(self.gateway.url, **how)
            self.browser.until("the view", "document.body.dataset.state === 'live' && document.querySelector('#charts svg path')")
        finally:
            self.browser.call("Page.removeScriptToEvaluateOnNewDocument", identifier=script["identifier"])

    def found(self):
        self.browser.eval(self.axe + "; 0")
        answer = self.browser.call("Runtime.evaluate", expression=AXE, returnByValue=True, awaitPromise=True)
        self.assertNotIn("exceptionDetails", answer)
        return answer["result"]["value"]

    def test_no_state_hinders_anybody_and_the_first_screen_has_the_verdict(self):
        for name, (view, _) in self.states.items():
            for width, dark in WINDOWS + [(900, True)] * (name in DARK):
                with self.subTest(state=name, width=width, dark=dark):
                    self.show(name, width=width, dark=dark)
                    if width > 400:
                        picture(self.browser, f"state-{name}-{width}{'-dark' if dark else ''}")
                    self.assertEqual(self.found(), [])
                    self.assertLessEqual(self.browser.eval("document.documentElement.scrollWidth"), width)
                    worst = max(view["peers"], key=lambda peer: ("good", "poor", "bad").index(peer["verdict"]["grade"]))
                    first = self.browser.eval("(() => { const e = document.querySelector('.verdict .text');"
                                              " return [e.textContent, e.getBoundingClientRect().bottom]; })()")
                    self.assertEqual(first[0], worst["verdict"]["text"].replace("`", ""))
                    self.assertLess(first[1], 600)
                    self.assertEqual(self.browser.complaints(), [])

    def test_what_hinders_somebody_is_noticed(self):
        self.show("good")
        self.browser.eval("document.querySelector('#search').removeAttribute('aria-label'); document.querySelector('#flow-controls').hidden = false;"
                          " document.querySelector('#search').removeAttribute('placeholder'); 0")
        self.assertIn("label", [rule for rule, *_ in self.found()])

    def test_a_gateway_without_keys_says_so_in_red_beside_its_good_links(self):
        self.show("unprotected")
        shown = "(() => { const e = document.querySelector('#unprotected'); return [e.textContent, e.hidden, getComputedStyle(e).backgroundColor]; })()"
        self.assertEqual(self.browser.eval(shown), ["not protected", False, "rgb(168, 29, 29)"])
        self.assertEqual(self.browser.eval("document.querySelector('#grade').textContent"), "good")
        self.assertIn("fulmar init", self.browser.eval("document.querySelector('#alarms .cure').textContent"))
        self.show("good")
        self.assertTrue(self.browser.eval(shown)[1])

    def test_verdicts_are_there_before_any_script_and_the_page_is_light(self):
        with urllib.request.urlopen(self.gateway.url) as answer:
            page = answer.read()
        self.assertLess(len(page), 150_000)
        self.assertIn(b"No answer from", page.partition(b"<script")[0])

    def test_flows_can_be_sorted_found_and_shown_with_the_keyboard(self):
        self.show("500-flows")
        rows = "document.querySelectorAll('#flows tbody tr').length"
        self.assertEqual(self.browser.eval(rows), 10)
        self.browser.eval("document.querySelector('#flows th:nth-child(8) button').focus(); 0")
        for kind in ("keyDown", "keyUp"):
            self.browser.call("Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", text="\r", windowsVirtualKeyCode=13)
        self.browser.until("the oldest first", "document.querySelector('#flows td:nth-child(8)').textContent === '5509 s'")
        self.assertEqual(self.browser.eval("document.querySelector('#flows th:nth-child(8)').getAttribute('aria-sort')"), "descending")
        self.browser.eval("document.querySelector('#search').focus(); 0")
        self.browser.call("Input.insertText", text="camera")
        self.browser.until("those found", "document.querySelector('#more-flows').textContent.includes('of 125 found')")
        self.browser.eval("document.querySelector('#all-flows').click()")
        self.assertEqual(self.browser.eval(rows), 125)

    def test_one_late_round_trip_does_not_flatten_the_axis(self):
        self.show("after-outage")
        # The median of the delays is drawn in the upper part of its chart, and what is beyond has a mark.
        chart = "[...document.querySelectorAll('#charts figure')].find(e => e.querySelector('h3').textContent === 'Delay')"
        marks = self.browser.eval(f"{chart}.querySelectorAll('polygon.above').length")
        self.assertGreater(marks, 0)
        box = self.browser.eval(f"(() => {{ const b = {chart}.querySelector('path.s0').getBBox(); return [b.y, b.height]; }})()")
        self.assertGreater(box[1], 5, box)
        self.assertGreater(self.browser.eval(f"Number({chart}.querySelectorAll('text')[2].textContent.split(' ')[0])"), 0)
        self.assertIn("ms", self.browser.eval(f"{chart}.querySelectorAll('text')[2].textContent"))

    def test_a_peer_that_is_chosen_has_the_picture(self):
        self.show("20-peers")
        self.assertEqual(self.browser.eval("document.querySelectorAll('.verdict').length"), 12)
        self.browser.eval("[...document.querySelectorAll('.verdict button')].find(b => b.textContent === 'site-03').click()")
        self.browser.until("its picture", "document.querySelector('#ways h3').textContent === 'From here to site-03'")
        self.browser.eval("document.querySelector('#all-verdicts').click()")
        self.assertEqual(self.browser.eval("document.querySelectorAll('.verdict').length"), 20)


if __name__ == "__main__":
    unittest.main()
