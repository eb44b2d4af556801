"""The live page of a gateway in Chromium: it, `fulmar top`, /status and /metrics agree on one instant's figures, and it is
legible, quiet and clear in every state.

Method: two gateways with a lossy link between them carry traffic. Chromium is told through its debugging pipe (DevTools
protocol) what to open and how wide, and its content is read in one go, while the traffic goes on. Pictures for
people are left in target/live.
"""

import collections
import contextlib
import fcntl
import json
import math
import os
import pathlib
import pty
import re
import socket
import struct
import subprocess
import tempfile
import termios
import threading
import time
import unittest
import urllib.error
import urllib.request

import chromium
from chromium import PATIENCE, Browser, contrast, luminance, read
from program import FULMAR, TARGET, build

HOSTILE = "<img src=x onerror=document.title=7>&amp;"
FIGURES = """(() => ({
    sequence: Number(document.body.dataset.sequence), state: document.body.dataset.state,
    figures: Object.fromEntries([...document.querySelectorAll("[data-series]")].map(e => [e.dataset.series,
        [e.dataset.value === undefined ? null : Number(e.dataset.value), (e.querySelector(".value") || e).textContent]]))}))()"""
# A full hour with two outages, in place of the few seconds that a test has.
HOUR = """
const really = window.fetch;
window.fetch = async (path, ...rest) => {
    const answer = await really(path, ...rest);
    if (!String(path).startsWith("history")) return answer;
    const history = await answer.json();
    history.uptime_seconds = 7200;
    history.points = [];
    for (let s = 3610; s <= 7200; s += s < 6900 ? 10 : 1) {
        const down = (s > 4800 && s < 5100) || (s > 6000 && s < 6050);
        history.points.push([s, ...history.columns.map((column, n) => column.name === "fulmar_link_up" ? Number(!down)
            : column.name === "fulmar_rtt_seconds" && down ? null : down ? 0 : (n + 1) * (4 + Math.sin(s / 300)))]);
    }
    return new Response(JSON.stringify(history));
};"""
LOOKS = """(() => {
    const box = e => e.getBoundingClientRect(), style = e => getComputedStyle(e);
    return {width: innerWidth, scroll: document.documentElement.scrollWidth,
        beyond: [...document.querySelectorAll("body *")].filter(e => box(e).right > innerWidth + 1 && !e.closest("svg"))
            .slice(0, 5).map(e => e.tagName + "." + e.className + " " + e.textContent.slice(0, 40)),
        body: [style(document.body).color, style(document.body).backgroundColor],
        quiet: [style(document.querySelector("footer")).color, style(document.body).backgroundColor],
        charts: [...document.querySelectorAll("#charts svg")].map(e => [box(e).width, box(e).height,
            Math.max(0, ...[...e.querySelectorAll("path")].map(p => p.getTotalLength()))])};
})()"""


# What the legends of the charts say, as numbers, beside the figures of the same name; and the span that is told.
FIRST_SECONDS = """(() => {
  const number = (text) => {
    const [value, unit = ""] = text.trim().split(" ");
    return Number(value) * ({k: 1e3, M: 1e6, G: 1e9}[unit[0]] || 1);
  };
  const legend = (label) => [...document.querySelectorAll("#charts .legend span")].map((e) => e.textContent)
    .find((text) => text.startsWith(label + " ")).slice(label.length);
  const figure = (series) => Number(document.querySelector(`[data-series^="${series}"]`).dataset.value);
  return {
    sequence: Number(document.body.dataset.sequence), window: document.querySelector("#picture-title .window").textContent,
    pairs: [["goodput sent", "fulmar_goodput_delivered_bits_per_second"], ["goodput received", "fulmar_goodput_received_bits_per_second"],
      ["sent on the wire", "fulmar_wire_sent_bits_per_second"]].map(([label, series]) => [label, figure(series), number(legend(label))]),
  };
})()"""


def start(*arguments, **options):
    return subprocess.Popen([FULMAR, *arguments], stdin=subprocess.DEVNULL, text=True, **options)


def end(process):
    process.kill()
    process.wait()
    for stream in (process.stdout, process.stderr):
        if stream:
            stream.close()


class Gateway:
    """A gateway without keys, on the loopback."""

    def __init__(self, folder, name, peer, address="", entries=""):
        file = pathlib.Path(folder) / f"{name}.toml"
        file.write_text(f'[gateway]\nname = "{name}"\nlisten = "127.0.0.1:0"\nstate_dir = "{folder}/{name}"\n'
                        f'[security]\nkind = "none"\n[[peer]]\nname = {json.dumps(peer)}\n{address}rate = "20mbit"\n'
                        f'[egress]\nallow = ["127.0.0.0/8:1-65535"]\n[metrics]\nlisten = "127.0.0.1:0"\n{entries}')
        with open(pathlib.Path(folder) / f"{name}.log", "w") as log:
            self.process = start("gateway", "--json", "-c", file, stdout=subprocess.PIPE, stderr=log)
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError((pathlib.Path(folder) / f"{name}.log").read_text())
        record = json.loads(line)
        self.listening, self.entries = record["listening"], record["entries"]
        self.url = f"http://{record['metrics']}/"

    def get(self, path):
        with urllib.request.urlopen(self.url + path, timeout=PATIENCE) as answer:
            return answer.read().decode()

    def status(self, query=""):
        return json.loads(self.get("status" + query))

    def top(self, *arguments):
        run = subprocess.run([FULMAR, "top", self.url, "--once", *arguments], capture_output=True, text=True, timeout=PATIENCE)
        if run.returncode:
            raise AssertionError(run.stderr)
        return run.stdout


def echo(listener):
    def serve(client):
        # The other end may break off.
        with client, contextlib.suppress(OSError):
            while piece := client.recv(65536):
                client.sendall(piece)

    while True:
        try:
            client, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=serve, args=(client,), daemon=True).start()


def keep_talking(client, done):
    """Sends pieces and waits for their echoes, until it is done."""
    piece = bytes(4000)
    while not done.wait(0.01):
        client.sendall(piece)
        left = len(piece)
        while left:
            left -= len(client.recv(left))


def split(series):
    name, _, labels = series.partition("{")
    return name, frozenset(re.findall(r'(\w+="(?:[^"\\]|\\.)*")', labels))


def top_figures(view):
    groups = [group for part in (view, *view["peers"]) for group in part["groups"]]
    figures = [figure for group in (*groups, *view["classes"]) for figure in group["figures"]]
    return {figure["series"]: [figure["value"], figure["text"]] for figure in figures}


def picture(browser, name):
    place = TARGET / "live"
    place.mkdir(exist_ok=True)
    browser.picture(place / f"{name}.png")


class Live(unittest.TestCase):
    """Gateways with traffic over a link that loses every tenth packet."""

    @classmethod
    def setUpClass(cls):
        chromium.require()
        build()
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.listener = socket.create_server(("127.0.0.1", 0))
        cls.addClassCleanup(cls.listener.close)
        threading.Thread(target=echo, args=(cls.listener,), daemon=True).start()
        cls.ground = Gateway(cls.folder.name, "ground", "air")
        cls.addClassCleanup(end, cls.ground.process)
        cls.link = start("emulate", "--listen", "127.0.0.1:0", "--to", cls.ground.listening, "--rate", "20mbit", "--delay", "5ms",
                         "--loss", "10%", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        cls.addClassCleanup(end, cls.link)
        at = json.loads(cls.link.stdout.readline())["listening"]
        to = "%s:%d" % cls.listener.getsockname()
        cls.air = Gateway(cls.folder.name, "air", "ground", f'address = "{at}"\n',
                          f'[[forward]]\nlisten = "127.0.0.1:0"\nto = "{to}"\n')
        cls.addClassCleanup(end, cls.air.process)
        host, port = cls.air.entries[0].rsplit(":", 1)
        cls.done = threading.Event()
        cls.client = socket.create_connection((host, int(port)), timeout=PATIENCE)
        cls.talk = threading.Thread(target=keep_talking, args=(cls.client, cls.done), daemon=True)
        cls.talk.start()
        cls.addClassCleanup(cls.hush)
        cls.browser = Browser(pathlib.Path(cls.folder.name) / "profile")
        cls.addClassCleanup(cls.browser.close)

    @classmethod
    def hush(cls):
        cls.done.set()
        cls.talk.join(PATIENCE)
        cls.client.close()

    def setUp(self):
        self.browser.events.clear()

    def tearDown(self):
        self.assertEqual(self.browser.complaints(), [])
        for url in self.browser.requests():
            self.assertTrue(url.startswith(self.air.url) or url.startswith("data:") or url == "about:blank", url)

    def check_agreement(self, gateway, page):
        """`page` is the browser's content; everything else is asked about that instant."""
        sequence = page["sequence"]
        status = gateway.status(f"?sequence={sequence}")
        lines = [line.rsplit(" ", 1) for line in gateway.get(f"metrics?sequence={sequence}").splitlines() if not line.startswith("#")]
        metrics = {name: float(value) for name, value in lines}
        view = json.loads(gateway.top("--json", "--sequence", str(sequence)))
        self.assertEqual(status["sequence"], sequence)
        self.assertEqual(view["sequence"], sequence)
        self.assertEqual({name: float(value) for name, value in status["metrics"].items()}, metrics)
        self.assertEqual(metrics["fulmar_snapshot_sequence"], sequence)
        figures = top_figures(view)
        self.assertEqual(page["figures"], figures)
        by_name = collections.defaultdict(list)
        for series, value in metrics.items():
            name, labels = split(series)
            by_name[name].append((labels, value))
        for series, (value, _) in figures.items():
            name, labels = split(series)
            values = [one for of, one in by_name[name] if labels <= of]
            self.assertEqual(value, sum(values) if values else None, series)
        # And the record's own fields are those figures.
        (peer,) = status["peers"]
        named = {
            "fulmar_flows": status["flows"],
            "fulmar_uptime_seconds": status["uptime_seconds"],
            f'fulmar_rtt_seconds{{peer="{peer["name"]}"}}': peer["rtt_seconds"],
            f'fulmar_wire_lost_packets_total{{peer="{peer["name"]}"}}': peer["transport"]["wire_lost_tpdus"],
            f'fulmar_recovered_packets_total{{peer="{peer["name"]}",by="arq_1"}}': peer["transport"]["recovered_tpdus"]["arq_1"],
            "fulmar_datagrams_sent_total": status["carrier"]["sent_datagrams"],
        }
        for series, value in named.items():
            self.assertEqual(figures[series][0], value, series)
        text = gateway.top("--sequence", str(sequence))
        for series, (_, words) in figures.items():
            self.assertIn(words, text, series)
        return figures

    def test_page_top_status_and_metrics_agree_while_traffic_flows(self):
        self.browser.open(self.air.url)
        lossy = "Number(document.querySelector('[data-series^=\"fulmar_wire_lost\"]')?.dataset.value) > 0"
        repaired = "Number(document.querySelector('[data-series*=arq_1]')?.dataset.value) > 0"
        # Each figure that traffic and loss move has moved.
        counted = "[...document.querySelectorAll('[data-series]')].filter(e => Number(e.dataset.value)).length > 20"
        self.browser.until("loss and repair", f"document.body.dataset.state === 'live' && {lossy} && {repaired} && {counted}")
        page = self.browser.eval(FIGURES)
        figures = self.check_agreement(self.air, page)
        counted = [series for series, (value, _) in figures.items() if value]
        self.assertGreater(len(counted), 20, counted)
        # A page that shows one packet more is noticed, and so is one of another instant.
        one = next(series for series, (value, _) in figures.items() if value and "_lost_packets" in series)
        value, words = figures[one]
        with self.assertRaises(AssertionError):
            self.check_agreement(self.air, {**page, "figures": {**page["figures"], one: [value + 1, words]}})
        with self.assertRaises(AssertionError):
            self.check_agreement(self.air, {**page, "sequence": self.air.status()["sequence"]})
        # The same instant once more, now that others have come.
        self.browser.open(f"{self.air.url}?sequence={page['sequence']}")
        self.browser.until("the snapshot", "document.body.dataset.state === 'fixed'")
        again = self.browser.eval(FIGURES)
        self.assertEqual((again["sequence"], again["figures"]), (page["sequence"], page["figures"]))
        self.assertTrue(self.browser.eval("document.querySelector('#drawings').hidden"))

    def test_the_page_is_legible_light_and_dark_wide_and_on_a_phone(self):
        for width in (1280, 400):
            for dark in (False, True):
                with self.subTest(width=width, dark=dark):
                    self.browser.open(self.air.url, width=width, dark=dark)
                    self.browser.until("charts", "document.querySelectorAll('#charts svg path').length >= 15 &&"
                                       " [...document.querySelectorAll('#charts path')].some(p => p.getTotalLength() > 10)")
                    told = self.browser.eval(LOOKS)
                    picture(self.browser, f"{width}-{'dark' if dark else 'light'}")
                    self.assertEqual((told["width"], told["beyond"]), (width, []))
                    self.assertLessEqual(told["scroll"], width)
                    self.assertGreaterEqual(contrast(*told["body"]), 7)
                    self.assertGreaterEqual(contrast(*told["quiet"]), 4.5)
                    ground = luminance(told["body"][1])
                    self.assertTrue(ground < 0.05 if dark else ground > 0.9, ground)
                    for wide, high, drawn in told["charts"]:
                        self.assertGreater(wide, 300)
                        self.assertGreater(high, 150)
                    self.assertTrue(any(drawn > 10 for _, _, drawn in told["charts"]), told["charts"])

    def test_every_figure_says_what_it_means(self):
        self.browser.open(self.air.url)
        self.browser.until("figures", "document.body.dataset.state === 'live'")
        self.assertEqual(self.browser.eval("[...document.querySelectorAll('.figure button')].filter(b => b.title.length < 8).length"), 0)
        self.browser.eval("document.querySelector('#peers .figure button').click()")
        shown = self.browser.eval("document.querySelector('#peers dd.help:not([hidden])').textContent")
        self.assertRegex(shown, "(Counted by|Computed): ")

    def test_an_hour_with_outages_is_drawn(self):
        script = self.browser.call("Page.addScriptToEvaluateOnNewDocument", source=HOUR)
        try:
            for width in (1280, 400):
                self.browser.open(self.air.url, width=width)
                self.browser.until("the drawing", "document.querySelectorAll('#charts rect.outage').length === 14")
                told = self.browser.eval(LOOKS)
                self.assertEqual(told["beyond"], [])
                self.assertTrue(all(drawn > wide / 2 for wide, _, drawn in told["charts"]), told["charts"])
                picture(self.browser, f"hour-{width}")
        finally:
            self.browser.call("Page.removeScriptToEvaluateOnNewDocument", identifier=script["identifier"])

    def test_the_history_can_be_had_and_is_bounded(self):
        self.browser.open(self.air.url)
        history = json.loads(self.air.get("history"))
        self.assertEqual(history["schema"], "fulmar.gateway.history.v1")
        width = 1 + len(history["columns"])
        self.assertTrue(all(len(point) == width for point in history["points"]))
        self.assertLessEqual(len(history["points"]), 662)


class States(unittest.TestCase):
    """Each by itself, with names that are markup."""

    def setUp(self):
        chromium.require()
        build()
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.browser = Browser(pathlib.Path(self.folder.name) / "profile")
        self.addCleanup(self.browser.close)

    def text(self):
        return self.browser.eval("document.body.innerText")

    def test_nobody_there_no_flows_then_no_gateway(self):
        lonely = Gateway(self.folder.name, "lonely", HOSTILE, 'address = "127.0.0.1:9"\n')
        self.addCleanup(end, lonely.process)
        self.browser.open(lonely.url, width=400)
        self.browser.until("the view", "document.body.dataset.state === 'live'")
        text = self.text()
        self.assertIn("No answer from", text)
        self.assertIn("No flows now.", text)
        # As text, and only so.
        self.assertIn(HOSTILE, text)
        self.assertEqual(self.browser.eval("document.querySelectorAll('img').length"), 0)
        self.assertNotEqual(self.browser.eval("document.title"), "7")
        self.assertEqual(self.browser.eval("document.documentElement.scrollWidth"), 400)
        self.assertEqual(self.browser.complaints(), [])
        picture(self.browser, "lonely")
        end(lonely.process)
        self.browser.until("the banner", "document.body.dataset.state === 'lost'")
        self.assertIn("The gateway does not answer", self.text())
        picture(self.browser, "lost")

    def test_the_first_seconds_show_figures_of_one_span_and_say_it(self):
        ground = Gateway(self.folder.name, "ground", "air")
        self.addCleanup(end, ground.process)
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        threading.Thread(target=echo, args=(listener,), daemon=True).start()
        air = Gateway(self.folder.name, "air", "ground", f'address = "{ground.listening}"\n',
                      '[[forward]]\nlisten = "127.0.0.1:0"\nto = "%s:%d"\n' % listener.getsockname())
        self.addCleanup(end, air.process)
        host, port = air.entries[0].rsplit(":", 1)
        client = socket.create_connection((host, int(port)), timeout=PATIENCE)
        self.addCleanup(client.close)
        done = threading.Event()
        talk = threading.Thread(target=keep_talking, args=(client, done), daemon=True)
        talk.start()
        self.addCleanup(talk.join, PATIENCE)
        self.addCleanup(done.set)
        self.browser.open(air.url)
        ready = "document.body.dataset.state === 'live' && document.querySelectorAll('#charts figure').length > 5"
        beside = 0
        for _ in range(8):
            self.browser.until("the charts", ready)
            told = self.browser.eval(FIRST_SECONDS)
            seconds = json.loads(air.get(f"view?sequence={told['sequence']}"))["window_seconds"]
            # None before the first figures.
            span = "" if seconds is None else f", last {10 if seconds >= 9.5 else max(math.floor(seconds + 0.5), 1)} s"
            self.assertEqual(told["window"], span)
            for label, figure, legend in told["pairs"]:
                # Nothing was told yet where there is none.
                if figure and figure > 1000:
                    beside += 1
                    self.assertLess(abs(legend - figure) / figure, 0.02, (label, told))
            sequence = told["sequence"]
            self.browser.until("another look", f"Number(document.body.dataset.sequence) > {sequence}")
        self.assertGreater(beside, 6)
        picture(self.browser, "first-seconds")

    def test_a_link_that_went_down_is_told_and_drawn(self):
        ground = Gateway(self.folder.name, "ground", "air")
        self.addCleanup(end, ground.process)
        air = Gateway(self.folder.name, "air", "ground", f'address = "{ground.listening}"\n',
                      '[[forward]]\nlisten = "127.0.0.1:0"\nto = "127.0.0.1:9"\n')
        self.addCleanup(end, air.process)
        self.browser.open(air.url)
        self.browser.until("the peer", "document.querySelector('.badge.up')")
        end(ground.process)
        # Silence is only noticed by who has something to say.
        host, port = air.entries[0].rsplit(":", 1)
        client = socket.create_connection((host, int(port)), timeout=PATIENCE)
        self.addCleanup(client.close)
        client.sendall(b"is anybody there?")
        self.browser.until("the outage", "document.querySelector('.badge.down')")
        self.assertIn("Nothing has come back for", self.text())
        self.assertIn("sending is held", self.text())
        self.assertIn("down", self.browser.eval("document.title"))
        self.browser.until("the decision", "document.querySelector('#decisions')?.innerText.includes('link down')")
        # Who comes now sees it drawn.
        self.browser.open(air.url)
        self.browser.until("its drawing", "document.querySelectorAll('#charts rect.outage').length >= 4")
        picture(self.browser, "down")
        self.assertEqual(self.browser.complaints(), [])


class Terminal(unittest.TestCase):
    """`fulmar top` on a terminal of any size: it comes, follows, goes, and leaves the screen as it was."""

    def setUp(self):
        build()
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.gateway = Gateway(self.folder.name, "lonely", "nobody", 'address = "127.0.0.1:9"\n')
        self.addCleanup(end, self.gateway.process)

    def watch(self, rows, columns, then, seen=lambda: None, **environment):
        """Its output until it ends with 130, having shown `then` of two looks; `seen` is called after the first."""
        master, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        surroundings = {**os.environ, "TERM": "xterm", **environment}
        process = subprocess.Popen([FULMAR, "top", self.gateway.url, "--interval", "50ms"], stdin=terminal, stdout=terminal,
                                   stderr=terminal, start_new_session=True, env=surroundings,
                                   preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(terminal)
        text, interrupted, told = "", False, False
        deadline = time.monotonic() + PATIENCE
        try:
            while True:
                try:
                    text += read(master, 65536, deadline).decode(errors="replace")
                except OSError:
                    break  # Nobody holds the terminal any more.
                if not told and "\x1b[J" in text:
                    seen()
                    told = True
                if not interrupted and text.count("\x1b[J") >= 3 and then in text:
                    os.write(master, b"\x03")
                    interrupted = True
            self.assertEqual(process.wait(PATIENCE), 130, text)
        finally:
            process.kill()
            process.wait()
            os.close(master)
        self.assertTrue(text.rstrip().endswith("\x1b[?25h\x1b[?1049l"), text[-80:])
        self.assertTrue(text.startswith("\x1b[?1049h\x1b[?25l"), text[:80])
        return text

    def test_it_shows_ends_at_ctrl_c_and_puts_the_screen_back(self):
        text = self.watch(50, 100, "No answer from")
        self.assertIn("\x1b[1;33mconnecting\x1b[0m", text)

    def test_no_color_means_no_colour(self):
        text = self.watch(50, 100, "No answer from", NO_COLOR="1")
        self.assertEqual(re.findall(r"\x1b\[[0-9;]*m", text), [])

    def test_small_terminals_get_what_fits(self):
        for rows, columns in ((10, 30), (2, 10), (1, 1)):
            with self.subTest(rows=rows, columns=columns):
                text = self.watch(rows, columns, "")
                for screen in text.split("\x1b[H")[1:-1]:
                    lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", screen).split("\n")
                    self.assertLessEqual(len(lines), rows)
                    self.assertLessEqual(max(map(len, lines)), columns)

    def test_a_gateway_that_goes_is_told_on_the_screen(self):
        self.watch(50, 100, "OLD: nothing answers", self.gateway.process.kill)


class Refusals(unittest.TestCase):
    def test_only_reading_is_answered_and_what_is_not_there_is_said(self):
        build()
        with tempfile.TemporaryDirectory() as folder:
            gateway = Gateway(folder, "lonely", "nobody", 'address = "127.0.0.1:9"\n')
            try:
                for method in ("POST", "PUT", "DELETE", "OPTIONS"):
                    with self.assertRaises(urllib.error.HTTPError) as refused:
                        urllib.request.urlopen(urllib.request.Request(gateway.url + "status", method=method), timeout=PATIENCE)
                    self.assertEqual((refused.exception.code, refused.exception.headers["Allow"]), (405, "GET, HEAD"))
                    refused.exception.close()
                for path, code in (("nothing", 404), ("status?sequence=77", 404), ("metrics?sequence=x", 400), ("history?peer=9", 404)):
                    with self.assertRaises(urllib.error.HTTPError) as refused:
                        gateway.get(path)
                    self.assertEqual(refused.exception.code, code, path)
                    refused.exception.close()
                head = urllib.request.Request(gateway.url, method="HEAD")
                with urllib.request.urlopen(head, timeout=PATIENCE) as answer:
                    policy = answer.headers["Content-Security-Policy"]
                    self.assertIn("default-src 'none'", policy)
                    self.assertNotIn("unsafe", policy)
                    self.assertEqual(answer.headers["X-Content-Type-Options"], "nosniff")
                    self.assertEqual(answer.read(), b"")
            finally:
                end(gateway.process)
            run = subprocess.run([FULMAR, "top", gateway.url, "--once"], capture_output=True, text=True, timeout=PATIENCE)
            self.assertEqual((run.returncode, run.stdout, len(run.stderr.splitlines())), (3, "", 1), run.stderr)
            self.assertIn("nothing answers at", run.stderr)


if __name__ == "__main__":
    unittest.main()
