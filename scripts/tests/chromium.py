"""Chromium with one page, told through its debugging pipe (DevTools protocol) what to open, how wide and in which scheme.

Starting it costs more than any page here: tests share one.
"""

import base64
import contextlib
import json
import os
import re
import select
import shutil
import signal
import subprocess
import time

from program import lacks

PROGRAM = shutil.which("chromium")
# Longer than anything here takes, by far: it turns a hang into a failure.
PATIENCE = 60
# The browser's calls home are off, most of them. Root has no sandbox.
FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--disable-extensions", "--no-first-run", "--no-pings",
         "--remote-debugging-pipe"]


def require():
    if not PROGRAM:
        raise lacks("no chromium, in which the pages are looked at: as root, scripts/setup-debian installs it")


def luminance(colour):
    """The relative luminance of `rgb(r, g, b)` (WCAG 2.2)."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(ink, ground):
    high, low = sorted((luminance(ink), luminance(ground)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def read(descriptor, most, deadline):
    """The octets that can be read from a pipe or terminal, at the latest at `deadline`."""
    left = deadline - time.monotonic()
    if left <= 0 or not select.select([descriptor], [], [], left)[0]:
        raise AssertionError("nothing more was said in time")
    return os.read(descriptor, most)


class Browser:
    def __init__(self, folder, *flags):
        there, self.to = os.pipe()
        self.back, here = os.pipe()
        command = ["bash", "-c", f'exec "$@" 3<&{there} 4>&{here}', "bash", PROGRAM, *FLAGS, *flags, f"--user-data-dir={folder}"]
        self.process = subprocess.Popen(command, pass_fds=(there, here), stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        os.close(there)
        os.close(here)
        self.asked, self.rest, self.events, self.session = 0, b"", [], None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def listen(self, deadline):
        """The next message: an answer, or an event."""
        while b"\0" not in self.rest:
            piece = read(self.back, 1 << 20, deadline)
            if not piece:
                raise AssertionError("Chromium ended")
            self.rest += piece
        one, self.rest = self.rest.split(b"\0", 1)
        return json.loads(one)

    def call(self, method, **parameters):
        self.asked += 1
        message = {"id": self.asked, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + PATIENCE
        while True:
            answer = self.listen(deadline)
            if answer.get("id") == self.asked:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def eval(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in answer:
            raise AssertionError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def open(self, url, width=1280, height=900, dark=False, mobile=None):
        """Asks for a page; a narrow window is a phone's if not told otherwise."""
        mobile = width < 600 if mobile is None else mobile
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Page.navigate", url=url)

    def load(self, url, **how):
        """As `open`, and waits until the page and all that belongs to it is there; `events` are then this page's."""
        self.events.clear()
        self.open(url, **how)
        deadline = time.monotonic() + PATIENCE
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self.listen(deadline))

    def until(self, what, expression):
        # Between two pages there is none.
        safe = f"(() => {{ try {{ return Boolean({expression}); }} catch {{ return false; }} }})()"
        deadline = time.monotonic() + PATIENCE
        while not self.eval(safe):
            if time.monotonic() > deadline:
                raise AssertionError(f"waited in vain for {what}: {self.eval('document.body.innerText')}")
            time.sleep(0.05)

    def picture(self, file):
        height = self.eval("document.documentElement.scrollHeight")
        width = self.eval("innerWidth")
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=True,
                         clip={"x": 0, "y": 0, "width": width, "height": height, "scale": 1})
        file.write_bytes(base64.b64decode(shot["data"]))

    def pdf(self):
        """The page as its reader prints it."""
        told = self.call("Page.printToPDF", printBackground=True, preferCSSPageSize=True, generateTaggedPDF=True)
        return base64.b64decode(told["data"])

    def complaints(self):
        """The browser's complaints: exceptions, the console, violations of the policy."""
        of = {"Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"}
        return [event["params"] for event in self.events if event.get("method") in of]

    def requests(self):
        return [event["params"]["request"]["url"] for event in self.events if event.get("method") == "Network.requestWillBeSent"]

    def quit(self):
        """Ends it in its own way, so that its logs are whole."""
        with contextlib.suppress(AssertionError):
            self.call("Browser.close")
        self.process.wait(PATIENCE)

    def close(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self.to)
        os.close(self.back)
