"""The states of a gateway in which its live page is looked at: answers for `view` and `history`, made of a real gateway's.

`states(view, history)` has each by its name; `script(state)` is what a page needs to be given instead of the gateway's answers.
"""

import copy
import json
import math

FINE = ("Loses 20.1 % there, 19.8 % here, mostly one by one; delivers 7.55 of the 7.84 Mbit/s that such a link allows (96 %). Fine.")


def way(title, sent, lost, repaired, delivered, needed=0.0, gone=0.0):
    parts = lambda pairs: [{"label": label, "per_second": rate} for label, rate in pairs]
    return {"title": title, "sent": sent, "lost": parts(lost), "repaired": parts(repaired), "needed_no_repair": needed,
            "lost_for_good": gone, "delivered_text": delivered, "says": f"{sent} datagrams a second are sent; {delivered} is delivered."}


def ways(peer, lossy=True, gone=0.0):
    if not lossy:
        return [way(f"From here to {peer}", 830.0, [], [], "9.62 Mbit/s"), way(f"From {peer} to here", 210.0, [], [], "48.2 kbit/s")]
    return [way(f"From here to {peer}", 830.0, [("one by one", 158.1), ("in bursts", 8.4)],
                [("by parity", 22.0), ("by the 1st repetition", 118.0), ("by the 2nd repetition", 19.5), ("by a later repetition", 2.0)],
                "7.55 Mbit/s", needed=max(5.0 - gone, 0), gone=gone),
            way(f"From {peer} to here", 210.0, [("one by one", 41.6)], [("by parity", 2.0), ("by repetition", 9.0)], "48.2 kbit/s", needed=30.6)]


def flow(n, peer="ground"):
    hosts = ("fileserver.example:443", "10.20.0.7:22", "camera-east.example:554", "[2001:db8::17]:8443")
    return {"id": f"{n:016x}", "peer": peer, "class": ("bulk", "interactive", "video")[n % 3], "protocol": ("tcp", "udp")[n % 5 == 4],
            "direction": ("in", "out")[n % 7 == 6], "destination": hosts[n % 4], "sent_bytes": 40_000 * (n + 1) ** 2,
            "received_bytes": 7_000 * (n + 1), "seconds": 20.0 + 11 * n, "sent_text": f"{40 * (n + 1) ** 2} kB",
            "received_text": f"{7 * (n + 1)} kB", "age_text": f"{20 + 11 * n} s"}


def alarm(rule, grade, peer, text, cause, cure):
    return {"rule": rule, "grade": grade, "peer": peer, "text": text, "cause": cause, "cure": cure}


OPEN = alarm("security_off", "bad", None, "there are no keys: whoever is on the way can read and change everything", '[security] says kind = "none"',
             "in a trial on one machine, nothing; else let `fulmar init` write the files of both ends with their keys, or make a key for each end with `fulmar keygen`")
DOWN = alarm("outage", "bad", "ground", "nothing has come back for 42.00 s: sending is held, flows wait",
             "The link, the peer or its address is gone",
             "wait for the link, or ask with `fulmar doctor -c FILE`; flows are ended after [limits] outage")
RATE = alarm("rate_too_high", "poor", "ground", "the configured rate, 10.0 Mbit/s, is more than the link has, which carries 5.00 Mbit/s",
             "The rate was told wrong, or the link has become slower", "lower `rate` of this [[peer]], or leave it out")


def judged(view, grade, state, text, alarms=()):
    view["grade"], view["alarms"] = grade, list(alarms)
    view["peers"][0]["verdict"] = {"grade": grade, "state": state, "text": text}
    return view


def series(history, outage=None, spike=False):
    """An hour of samples that swing a little, with an outage (from, until) and, after it, one round trip of 30 s."""
    made = copy.deepcopy(history)
    made["uptime_seconds"], made["points"] = 7200, []
    scale = {"bit/s": 2e6, "s": 0.03, "1": 0.05}
    for at in [*range(3610, 6900, 10), *range(6900, 7201)]:
        down = outage and outage[0] < at <= outage[1]
        late = spike and outage and outage[1] < at <= outage[1] + 20
        point = [at]
        for n, column in enumerate(made["columns"]):
            if column["name"] == "fulmar_link_up":
                point.append(0 if down else 1)
                continue
            value = scale.get(column["unit"], 20.0) * (1 + n % 4) * (1 + 0.2 * math.sin(at / 170 + n) + 0.05 * math.sin(at * 1.7 + n))
            point.append(0 if down else value * 300 if late and column["unit"] == "s" else value)
        made["points"].append(point)
    return made


def states(view, history):
    """Each state by its name: (view, history)."""
    base = copy.deepcopy(view)
    base["name"], base["uptime_seconds"], base["flows_left_out"] = "air", 7200.0, 0
    base["unprotected"] = False
    (peer,) = base["peers"]
    peer |= {"name": "ground", "link": "up", "secure": True, "says": "Datagrams pass.", "ways": ways("ground", lossy=False), "paths": []}
    base["flows"] = [flow(n) for n in range(4)]
    base["decisions"] = [
        {"number": 20 - n, "uptime_seconds": 7150.0 - 300 * n, "peer": "ground", "what": ("rate", "path_mtu", "carrier")[n % 3],
         "why": ("7.940 Mbit/s from now on: more than the link carries makes a queue grow", "packets of 1500 octets are known to arrive",
                 "udp: the peer mends nothing that is damaged")[n % 3]} for n in range(12)]
    steady = series(history)
    made = {}

    def state(name, change, history=steady):
        one = copy.deepcopy(base)
        change(one)
        made[name] = (one, history)

    good = "Loses nothing; delivers 9.62 of the 9.81 Mbit/s that such a link allows (98 %). Fine."

    def idle(view):
        judged(view, "good", "idle", "Nothing to carry. Fine.")
        view["flows"], view["decisions"], view["classes"] = [], [], []
        view["peers"][0]["ways"] = [way("From here to ground", 0.0, [], [], "0 bit/s"), way("From ground to here", 0.0, [], [], "0 bit/s")]

    def lossy(view):
        judged(view, "good", "lossy", FINE)["peers"][0]["ways"] = ways("ground")

    def outage(view):
        judged(view, "bad", "outage", "Nothing has come back for 42.00 s: sending is held, flows wait; " + DOWN["cure"] + ".", [DOWN])
        view["peers"][0] |= {"link": "down", "ways": [way("From here to ground", 0.0, [], [], "0 bit/s"), way("From ground to here", 0.0, [], [], "0 bit/s")]}

    def wrong_rate(view):
        judged(view, "poor", "rate_too_high", "Loses 12.0 % there, nothing here, mostly to full queues; delivers 4.70 of the 4.91 Mbit/s that"
               " such a link allows (96 %): " + RATE["text"] + "; " + RATE["cure"] + ".", [RATE])
        view["peers"][0]["ways"] = ways("ground", gone=3.0)

    def unprotected(view):
        judged(view, "good", "good", good.removesuffix(".") + ", but not protected: there are no keys.", [OPEN])
        view["unprotected"], view["peers"][0]["secure"] = True, False

    def many_flows(view):
        lossy(view)
        view["flows"] = [flow(n) for n in range(500)]

    def paths(view):
        lossy(view)
        path = {"path": 0, "cost": 0, "state": "up", "rate_text": "6.10 Mbit/s", "rtt_text": "41.0 ms", "lost_text": "1.20 %, mostly in bursts",
                "outages_text": "none"}
        view["peers"][0]["paths"] = [path, {**path, "path": 1, "cost": 1, "state": "down", "rtt_text": "–", "outages_text": "3, 1 min 20 s in all"}]

    def many_peers(view):
        judged(view, "bad", "outage", "", [OPEN, DOWN])
        view["unprotected"] = True
        texts = [("good", "lossy", FINE), ("good", "good", good), ("good", "idle", "Nothing to carry. Fine."),
                 ("poor", "rate_too_high", "Loses nothing; delivers 4.70 of the 4.91 Mbit/s that such a link allows (96 %): " + RATE["text"] + "; "
                  + RATE["cure"] + ".")]
        view["peers"] = []
        for n in range(20):
            one = copy.deepcopy(peer)
            grade, word, text = texts[n % 4 if n % 4 < 3 or n % 8 == 3 else 1]
            one |= {"name": f"site-{n:02}", "ways": ways(f"site-{n:02}", lossy=n % 4 == 0), "verdict": {"grade": grade, "state": word, "text": text}}
            view["peers"].append(one)
        view["peers"][7] |= {"link": "down", "verdict": {"grade": "bad", "state": "outage", "text": DOWN["text"].capitalize() + "; " + DOWN["cure"] + "."}}

    state("idle", idle)
    state("good", lambda view: judged(view, "good", "good", good))
    state("lossy", lossy)
    state("outage", outage, series(history, outage=(6500, 7200)))
    state("after-outage", lossy, series(history, outage=(4800, 5100), spike=True))
    state("wrong-rate", wrong_rate)
    state("unprotected", unprotected)
    state("500-flows", many_flows)
    state("paths", paths)
    state("20-peers", many_peers)
    return made


def script(state):
    """The source of a script that answers in the gateway's place."""
    view, history = (json.dumps(part) for part in state)
    return f"""(() => {{
        const answers = {{view: {view}, history: {history}}};
        window.fetch = async (path) => new Response(JSON.stringify(answers[String(path).split("?")[0]]));
    }})();"""
