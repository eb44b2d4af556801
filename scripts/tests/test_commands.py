"""Every command that README and the documentation show works as it is shown: it runs here, or `ELSEWHERE` says who runs it.

Method: each block of a page runs as it is written, in a folder with the files that the page's reader has, and in network and mount
namespaces of its own, where its ports, addresses and names are free. The servers of a block start first and end with Ctrl-C.
All words, also of commands between backticks and in the program's own help, are compared with what `--help`, the Makefile and
the manifests know.
"""

import concurrent.futures
import difflib
import functools
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time
import tomllib
import unittest

import documents
import inputs
from documents import Command
from program import CI, FULMAR, ROOT

# Longer than anything here takes, by far: it turns a hang into a failure.
# What `make` runs may wait until other modules have built.
PATIENCE = 600
AT_ONCE = 4
# Words that stand for a name of the reader's own.
PLACEHOLDERS = {"HOST": "127.0.0.1"}
# They run until somebody ends them.
SERVER = re.compile(r"(sudo )?fulmar (recv|emulate(?! --help)|gateway -c|perf -s)|sudo ip netns exec \S+ (iperf3 -s|fulmar up )")
# Too long for a test: their reader's Ctrl-C comes after so many seconds, and they end with 130.
INTERRUPTED = {
    "fulmar perf -c HOST": 2,
    "fulmar perf -c HOST -u -b 4M -t 60 -i 1": 2,
    "fulmar perf -c HOST -P 8 -i 1": 2,
    "fulmar perf -c HOST -R --mode nack-mack -J": 2,
    "fulmar perf -c HOST --sounding 10ms --capture here.pcapng": 2,
    "fulmar reproduce all --out pages/": 2,
    "fulmar reproduce aerotp-hybrid --out page/": 2,
    "fulmar reproduce aerotp-multi-mode --out page/": 2,
    "fulmar reproduce slacp --out page/": 2,
    "fulmar reproduce auto --out page/": 2,
    "fulmar sim --swarm 10000 --seed 1": 2,
    "fulmar sim --auto-vs-fixed --random 500": 2,
    "fulmar sim scenarios/fso.toml": 2,
}
# 1: something of this machine is not as it should be.
CODES = {"fulmar doctor": (0, 1)}
BY_HAND = "by hand: a measurement, or tools that are not installed here"
PACKAGE = "scripts/tests/test_package.py:test_a_life_from_installation_to_purge"
STATIC = "scripts/tests/static/test_static.py:test_its_image_runs_as_its_user_reads_a_configuration_and_finds_names"
# Commands that are not run here, and who runs them: a test (file:name), a verb, or somebody by hand. Their words are compared all the same.
ELSEWHERE = {
    "make test": "make test",
    "make wheel": "scripts/tests/test_lab.py:test_its_own_tests_pass",
    "pip install target/wheels/fulmar_lab-*.whl": "scripts/tests/test_lab.py:test_pip_installs_it_with_what_its_extras_need",
    "make package": PACKAGE,
    "make static": "make static",
    "make release VERSION=0.1.0": "make release",
    "buildah build --format docker --tag fulmar --file packaging/container/Containerfile target/static": STATIC,
    "podman run --name ground --volume /etc/fulmar:/etc/fulmar:ro --volume fulmar:/var/lib/fulmar"
    " --publish 4914:4914/udp --publish 127.0.0.1:9490:9490 fulmar:0.1.0": BY_HAND,
    "install -o fulmar -g fulmar -m 600 ground/ground.key /etc/fulmar/ground.key": BY_HAND,
    "install -m 644 ground/fulmar.toml /etc/fulmar/ground.toml": BY_HAND,
    # 100 s at 622 Mbit/s, for its processor time.
    "fulmar sim scenarios/fso-table.toml --jobs 1 --runs 1 --set flow.transport=aerotp --set"
    " flow.mode=nack-mack --set flow.window=16384 --set flow.send_buffer=32MB --set flow.mtu=1500B --set"
    " flow.bytes=100GB --set run.duration=100s --json": BY_HAND,
    "apt-get install ./target/package/fulmar_0.1.0-1_amd64.deb": PACKAGE,
    "fulmar keygen /etc/fulmar/NAME.key && chown fulmar: /etc/fulmar/NAME.key": PACKAGE,
    "fulmar doctor -c /etc/fulmar/NAME.toml": PACKAGE,
    "systemctl enable --now fulmar-gateway@NAME": PACKAGE,
    "install -D -m 644 /usr/share/doc/fulmar/examples/transparent.conf"
    " /etc/systemd/system/fulmar-gateway@NAME.service.d/transparent.conf": PACKAGE,
    "start-stop-daemon --start --background --make-pidfile --pidfile /run/fulmar-NAME.pid --chuid fulmar --exec /usr/bin/fulmar"
    " -- gateway -c /etc/fulmar/NAME.toml": PACKAGE,
    "start-stop-daemon --stop --retry 10 --remove-pidfile --pidfile /run/fulmar-NAME.pid": PACKAGE,
    # One at each of two machines.
    **dict.fromkeys(
        ("fulmar init --pair", "fulmar init --pair --called 203.0.113.10"),
        "crates/cli/tests/pairing.rs:two_machines_pair_and_their_tunnel_works_where_half_of_all_datagrams_are_lost",
    ),
    # Its reports come from two receivers.
    "fulmar send big.iso 10.0.0.255 --return none --preset link.preset --rate 5mbit --report a.fulmar-report --report b.fulmar-report":
        "crates/cli/tests/one_way.rs:a_killed_receiver_goes_on_with_what_it_had_and_a_report_brings_the_rest",
    "cargo build --release -p fulmar-cli": "scripts/tests/test_commands.py:setUpClass",
    "cargo doc -p fulmar-channel": "make lint",
    **dict.fromkeys(
        (f"cargo run -p fulmar --example {words}" for words in (
            "chat key", "chat listen 127.0.0.1:4920 SECRET PUBLIC", "chat call 127.0.0.1:4920 SECRET PUBLIC",
            "sensor collect 127.0.0.1:4921 SECRET PUBLIC", "sensor measure 127.0.0.1:4921 SECRET PUBLIC",
            "through 127.0.0.1:4914 SECRET PUBLIC 10.0.0.2:80 /",
        )),
        "make test",
    ),
    "cargo run -p fulmar --example both_ends": "crates/fulmar/tests/examples.rs:the_guide_s_program_is_the_example_and_says_what_the_guide_says",
    "cargo run --release --manifest-path examples/own-parts/Cargo.toml -- --speed": "scripts/tests/test_own_parts.py:test_it_runs",
    "make random-links": BY_HAND,
    "make random-links LINKS=200 RATE_MAX=20mbit FIRST=5000": BY_HAND,
    "cargo bench -p fulmar-channel": BY_HAND,
    "cargo test -p fulmar-proto fec": "make test",
    "cargo test -p fulmar-proto --test it slow_packet_fec -- --nocapture": "make test",
    "cargo bench -p fulmar-proto --bench fec": BY_HAND,
    "cargo +nightly fuzz run wire_tpdu -- -max_total_time=30": BY_HAND,
    "python3 -m pip download --no-deps ns3==3.44.post0 && unzip -q -d wheel ns3-3.44*.whl": BY_HAND,
    'bench/ns3/build ns337 airborne && bench/ns3/build ns344 airborne "$PWD/wheel"': BY_HAND,
    "bench/ns3/more-runs ./ns337 ./ns344 > reference/ns3/s1_more_runs.csv": BY_HAND,
    "bench/ns3/more-runs ./ns337 short-timer > reference/ns3/s1_short_timer.csv": BY_HAND,
}
# Pages with a test of their own.
PAGES_ELSEWHERE = {
    "docs/guide/wireshark.md": "scripts/tests/test_dissectors.py:test_the_guide_s_commands_do_what_they_say",
    # Its captures come from two ends of a real link.
    "docs/guide/replay.md": "crates/cli/tests/replay.rs:the_captures_of_a_test_of_perf_show_the_path_between_its_ends",
}
# Pages that show what their commands say; all that they show is said by commands that run here.
COMPARED = {f"docs/guide/{page}.md" for page in ("chains", "gateway", "links", "one-way", "tunnel")}
# What a gateway writes for a reader at a terminal; elsewhere it writes JSON.
GATEWAY = re.compile(r"((?:sudo )?(?:ip netns exec \S+ )?fulmar (?:gateway -c|up) (?!-)\S+)$")
# Programs that write a file or a socket, and say nothing.
SILENT = ("mkdir", "export", "tar", "printf", "sed", "echo")
# They make what the servers of their block read, where they stand above them.
PREPARING = ("mkdir", "printf", "sed")
# Between backticks, but no command.
NO_COMMANDS = {
    "fulmar session 1",
    "fulmar 2026-11-27 one-way datagrams",
    "fulmar 2026-11-27 one-way file",
    "fulmar 2026-11-27 one-way report",
}
# A place of its own: nothing of the machine's network, no namespaces, no state of gateways but its own.
ENTER = ["unshare", "--mount", "--net"] + (["--map-root-user"] if os.geteuid() else [])
FURNISH = """mount --make-rprivate /
mount -t tmpfs tmpfs /run && mkdir -p /run/netns
ip link set lo up && ip address add 10.0.0.2/32 dev lo
echo ready; exec sleep infinity"""


class Place:
    """A folder and namespaces where commands run; all of them end with it."""

    def __init__(self, folder):
        self.folder = folder
        self.holder = subprocess.Popen([*ENTER, "sh", "-ec", FURNISH], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.started = []
        if self.holder.stdout.readline() != "ready\n":
            raise PermissionError(self.holder.communicate()[1].strip())

    def start(self, command):
        """Starts a line of a page as its reader's shell does."""
        text = command.text.removesuffix("&").strip()
        for name, value in PLACEHOLDERS.items():
            text = re.sub(rf"\b{name}\b", value, text)
        text = GATEWAY.sub(r"\1 --log-format text", text)
        # Into a file it would say nothing before its end.
        text = text.replace("iperf3 -s", "iperf3 -s --forceflush")
        environment = {**os.environ, "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}", "XDG_STATE_HOME": str(self.folder)}
        # The Makefile's own place is the repository. The demo's build of its own would only repeat the one that is there.
        where = ROOT if text.startswith("make") else self.folder
        environment |= {"DEMO_PROFILE": "release"} if where == ROOT else {}
        # The compiler lies in the home of whoever installed it; nothing else reads or writes there.
        environment |= {} if where == ROOT else {"HOME": str(self.folder)}
        inside = ["nsenter", f"--target={self.holder.pid}", "--mount", "--net", f"--wd={where}"]
        if os.geteuid():
            inside.insert(1, "--user")
        output = tempfile.TemporaryFile(dir=self.folder)
        process = subprocess.Popen([*inside, "bash", "-o", "pipefail", "-c", text], env=environment, stdin=subprocess.DEVNULL,
                                   stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
        self.started.append((command, process, output))
        return process, output

    def interrupt(self, process):
        """Ctrl-C."""
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)

    def close(self):
        for _, process, output in self.started:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            output.close()
        self.holder.kill()
        self.holder.communicate()


def printed(output):
    return os.pread(output.fileno(), 1 << 20, 0).decode(errors="replace")


def serve(place, command):
    """A server of the page, once it says that it is there."""
    process, output = place.start(command)
    deadline = time.monotonic() + PATIENCE
    while not printed(output) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    if not printed(output):
        raise AssertionError(f"{command} says nothing and ended with {process.poll()}")


def carry_out(place, command):
    """Runs a command of the page to its end."""
    codes = CODES.get(command.text, (0,))
    seconds = INTERRUPTED.get(command.text)
    program = documents.words(command.text)[0][0]
    # A server's first line may come before its link is up, and who types is slower than we. What is asked may not be so yet: it is asked again until it is as shown.
    shown = documents.shown_below(command) if program == "curl" and command.page in COMPARED else []
    for _ in range(20 if program in ("curl", "ip", "echo") else 1):
        process, output = place.start(command)
        try:
            process.wait(timeout=seconds or PATIENCE)
        except subprocess.TimeoutExpired:
            if not seconds:
                raise AssertionError(f"{command} takes more than {PATIENCE} s: say in INTERRUPTED when its reader ends it") from None
            place.interrupt(process)
            process.wait(timeout=PATIENCE)
            codes = (130, -signal.SIGINT)
        said = printed(output)
        if process.returncode in codes and not lacking(shown, said):
            break
        time.sleep(0.5)
    if process.returncode not in codes:
        raise AssertionError(f"{command} ended with {process.returncode}, not {codes}:\n{said}")
    if not said and documents.words(command.text)[0][0] not in SILENT and not re.search(r"\| (sudo sh|tar x)$", command.text):
        raise AssertionError(f"{command} says nothing")


def lacking(shown, said):
    """Those of the lines `shown` that are not in what was `said`."""
    lines = documents.printed_lines(said)
    return [line for line in shown if not any(map(documents.as_shown(line).fullmatch, lines))]


def compare_shown(pages, said):
    """What these pages show and no command of theirs said."""
    lines = documents.printed_lines(said)
    for page in sorted(pages & COMPARED):
        for number, shown in documents.shown_lines(page):
            if lacking([shown], said):
                like = difflib.get_close_matches(shown, lines, 1, 0)
                raise AssertionError(f"{page}:{number} shows `{shown}`, and no command of the page says so; the most alike is {like}")


def run_page(page, stock):
    """Runs a page's sessions one after the other, since later ones read what earlier ones wrote; each with what went wrong."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder).resolve()
        furnish(folder, stock)
        said = []
        outcome = [(session, run_session(session, folder, said)) for session in page]
        try:
            compare_shown({command.page for session in page for command in session}, "\n".join(said))
        except AssertionError as error:
            outcome.append((page[-1], str(error)))
        return outcome


def run_session(session, folder, said):
    """Runs the commands of a block, servers first, and keeps what they `said`; returns the fault, if there is one."""
    place = Place(folder)
    try:
        servers = [command for command in session if SERVER.match(command.text)]
        first = min((command.line for command in servers), default=0)
        prepared = [command for command in session
                    if documents.words(command.text)[0][0] in PREPARING[:1 if command.line > first else None]]
        for command in prepared:
            carry_out(place, command)
        for command in servers:
            serve(place, command)
        for command in session:
            if command not in servers and command not in prepared:
                carry_out(place, command)
        for command, process, output in place.started:
            place.interrupt(process)
            process.wait(timeout=PATIENCE)
            ours = command in servers and command.text.removeprefix("sudo ").startswith("fulmar")
            if ours and process.returncode not in (0, 130, -signal.SIGINT):
                raise AssertionError(f"{command} ended with {process.returncode} at Ctrl-C:\n{printed(output)}")
        check_files(session, folder)
        return None
    except (AssertionError, OSError, subprocess.SubprocessError) as error:
        return str(error)
    finally:
        said += [printed(output) for _, _, output in place.started]
        place.close()


def furnish(folder, stock):
    """The files that the page's reader has."""
    shutil.copytree(stock, folder, dirs_exist_ok=True)
    for name in ("scenarios", "examples"):
        (folder / name).symlink_to(ROOT / name)
    shutil.copy(ROOT / "README.md", folder)
    shutil.copy(ROOT / "examples/gateway/aircraft.toml", folder)
    shutil.copy(ROOT / "examples/gateway/laptop-ground.toml", folder / "gateway.toml")
    (folder / "bin").mkdir()
    (folder / "bin/fulmar").symlink_to(FULMAR)
    # We are root in there already.
    (folder / "bin/sudo").write_text('#!/bin/sh\n[ "$1" = -E ] && shift\nexec "$@"\n')
    (folder / "bin/sudo").chmod(0o755)


def check_files(session, folder):
    """A block receives the octets that it sends."""
    for receive in session:
        into = re.match(r"fulmar recv ([a-z]+)/", receive.text)
        for send in session if into else ():
            file = re.match(r"fulmar send (\S+)", send.text)
            if file and (folder / into[1] / file[1]).read_bytes() != (folder / file[1]).read_bytes():
                raise AssertionError(f"{send}: what arrived is another file")


def sessions(page, text=None):
    """The page's commands as they belong together: a block, or all that a section shows behind `$ `."""
    text = (ROOT / page).read_text() if text is None else text
    lines, joined = text.splitlines(), {}
    for block in documents.blocks(page, text):
        if lines[block[0].line - 1].lstrip().startswith("$ "):
            section = max((n for n, line in enumerate(lines[:block[0].line]) if line.startswith("#")), default=0)
            joined.setdefault(section, []).extend(block)
        else:
            yield block
    yield from joined.values()


@functools.cache
def help_of(verb):
    run = subprocess.run([FULMAR, *verb.split(), "--help"], capture_output=True, text=True, timeout=30)
    return run.stdout if run.returncode == 0 else None


def check_fulmar(words):
    """The fault in the arguments of a `fulmar` command, if there is one."""
    if not words or words[0] in ("-V", "--version", "-h", "--help"):
        return None
    told = help_of(words[0]) if re.fullmatch("[a-z-]+", words[0]) else None
    if told is None:
        return f"`fulmar {words[0]}` is no command of the program"
    flags = set(re.findall(r"(?:^\s+|, )(-[A-Za-z0-9]|--[a-z][a-z-]*)(?=[ ,\n\[=.])", told, re.MULTILINE))
    for word in words[1:]:
        flag = word.split("=")[0]
        if re.match(r"--?[A-Za-z1]", word) and flag not in flags:
            return f"`fulmar {words[0]}` has no flag {flag}"
        if re.match(r"(scenarios|examples)/.", word) and word not in documents.tracked():
            return f"there is no file {word}"
    values = re.search(r"^ +\[PAPER\]\n(?:.*\n)*?.*\[possible values: (.*)\]", told, re.MULTILINE)
    if values and len(words) > 1 and re.match("[a-z]", words[1]) and words[1] not in values[1].split(", "):
        return f"there is no paper {words[1]}"
    return None


def check_make(words):
    makefile = (ROOT / "Makefile").read_text()
    for word in words:
        name, is_variable, _ = word.partition("=")
        known = rf"^{name} \?=" if is_variable else rf"^{name}:"
        if re.match(r"[A-Za-z]", name) and not re.search(known, makefile, re.MULTILINE):
            return f"the Makefile knows no {name}"
    return None


def check_cargo(words):
    """The fault in a `cargo` command, if there is one: its package, target or filter."""
    words = [word for word in words if not word.startswith("+")]
    if words[:2] == ["fuzz", "run"]:
        targets = tomllib.loads((ROOT / "fuzz/Cargo.toml").read_text())["bin"]
        return None if words[2] in {target["name"] for target in targets} else f"there is no fuzz target {words[2]}"
    own = words[:words.index("--")] if "--" in words else words
    verb, rest, folder, target, filters = own[0], iter(own[1:]), ROOT, None, []
    for word in rest:
        if word == "-p":
            folder = ROOT / "crates" / next(rest).removeprefix("fulmar-")
        elif word in ("--test", "--bench"):
            target = (word, next(rest))
        elif not word.startswith("-"):
            filters.append(word)
    if not (folder / "Cargo.toml").is_file():
        return f"there is no package {folder.name}"
    if target:
        told = tomllib.loads((folder / "Cargo.toml").read_text()).get(target[0].strip("-"), [])
        places = [folder / f"{target[0].strip('-')}{'s' if target[0] == '--test' else 'es'}" / name
                  for name in (f"{target[1]}.rs", f"{target[1]}/main.rs")]
        if target[1] not in {entry["name"] for entry in told} and not any(place.is_file() for place in places):
            return f"{folder.name} has no target {target[0]} {target[1]}"
    for word in filters if verb == "test" else ():
        files = documents.tracked(f"{folder.relative_to(ROOT)}/*.rs")
        if not any(word in file or re.search(rf"(fn|mod) \w*{word}", (ROOT / file).read_text()) for file in files):
            return f"{folder.name} has no test named {word}"
    return None


def check_words(text):
    """The fault in the words of a command, if there is one."""
    if text in NO_COMMANDS:
        return None
    for words in documents.words(text):
        check = {"fulmar": check_fulmar, "make": check_make, "cargo": check_cargo}.get(words[0])
        wrong = check and check(words[1:])
        if not check and "/" in words[0] and not words[0].startswith(("/", ".")) and not (ROOT / words[0]).exists():
            wrong = f"there is no script {words[0]}"
        if wrong:
            return wrong
    return None


class Commands(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        (build,) = (c for b in documents.blocks("README.md") for c in b if c.text.startswith("cargo build"))
        subprocess.run([*build.text.split(), "--locked"], cwd=ROOT, check=True, timeout=1800, capture_output=True)

    def test_every_block_runs_as_it_is_shown(self):
        try:
            with tempfile.TemporaryDirectory() as folder:
                Place(pathlib.Path(folder)).close()
        except (PermissionError, FileNotFoundError) as error:
            lacking = f"no namespaces to run the documentation's commands in: {error}"
            raise AssertionError(f"{lacking}; CI=true forbids to skip") if CI else unittest.SkipTest(lacking)
        seen, jobs = set(), []
        for page in documents.pages():
            job = []
            for block in sessions(page):
                here = [c for c in block if c.text not in ELSEWHERE and page not in PAGES_ELSEWHERE]
                if any(SERVER.match(command.text) for command in here):
                    job.append(here)
                    continue
                # An experiment that two pages show runs once.
                fresh = [command for command in here if command.text not in seen]
                seen |= {command.text for command in fresh}
                long = [command for command in fresh if command.text.startswith("make")]
                jobs += [[[command]] for command in long]
                job += [[c for c in fresh if c not in long]] if len(fresh) > len(long) else []
            jobs += [job] if job else []
        self.assertGreater(sum(map(len, jobs)), 20)
        # Those that take longest come first.
        jobs.sort(key=lambda job: (not job[0][0].text.startswith("make"), -len(job)))
        with tempfile.TemporaryDirectory() as stock, concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            inputs.lay_out(pathlib.Path(stock), FULMAR)
            for job in pool.map(lambda job: run_page(job, stock), jobs):
                for session, wrong in job:
                    with self.subTest(str(session[0])):
                        remedy = "mend the page, or say in ELSEWHERE (scripts/tests/test_commands.py) who runs it"
                        self.assertIsNone(wrong, f"{wrong}\n{remedy}")

    def test_whoever_runs_a_command_elsewhere_is_there(self):
        shown = {command.text for page in documents.pages() for block in documents.blocks(page) for command in block}
        for listed in (ELSEWHERE, INTERRUPTED, CODES):
            self.assertEqual(set(listed) - shown, set(), "no page shows these any more")
        self.assertEqual(set(PAGES_ELSEWHERE) - set(documents.pages()), set())
        for command, runner in (ELSEWHERE | PAGES_ELSEWHERE).items():
            with self.subTest(command):
                if runner.startswith("make "):
                    self.assertIsNone(check_words(runner))
                elif runner != BY_HAND:
                    file, name = runner.split(":")
                    self.assertRegex((ROOT / file).read_text(), rf"(def|fn) {name}\b")

    def test_every_word_of_a_command_is_known(self):
        for page in documents.pages():
            for command in [*(c for block in documents.blocks(page) for c in block), *documents.inline(page)]:
                with self.subTest(str(command)):
                    self.assertIsNone(check_words(command.text), f"{command}: mend the page; {check_words(command.text)}")

    def test_every_example_of_the_help_is_known(self):
        verbs = set(re.findall(r"^  ([a-z-]+) ", help_of(""), re.MULTILINE)) - {"help"}
        self.assertGreater(len(verbs), 10)
        for verb in verbs:
            for example in re.findall(r"^ +((?:sudo )?fulmar [a-z](?:[^\\\n]|\\\n)*)$", help_of(verb), re.MULTILINE):
                with self.subTest(example):
                    self.assertIsNone(check_words(documents.without_explanation(example.replace("\\\n", " "))))

    def test_what_is_unknown_is_noticed(self):
        for text, wrong in {
            "fulmar smi a.toml": "fulmar smi", "fulmar sim a.toml --jbos 2": "--jbos", "make tset": "tset",
            "make fuzz SECONDS=1": "SECONDS", "fulmar reproduce slacp2 --out a": "slacp2", "fulmar sim scenarios/none.toml": "none.toml",
            "cargo test -p fulmar-none": "none", "cargo test -p fulmar-proto --test none": "none", "scripts/none 1": "scripts/none",
            "cargo test -p fulmar-proto no_such_test_of_ours": "no_such_test_of_ours", "fulmar plan --rate 5mbit -x": "-x",
            "sudo -E fulmar emulate --tnu | jq .": "--tnu",
        }.items():
            with self.subTest(text):
                self.assertIn(wrong, check_words(text) or "")

    def test_what_a_page_shows_is_found_in_what_was_said_with_other_numbers_and_no_other_words(self):
        text = "Text\n\n    fulmar: a.md: 8081 bytes in 0.89 s at 1e-6; kept in /home/you/x/counters; so\n    other: 1\n"
        ((line, shown),) = documents.shown_lines("p", text)
        self.assertEqual(line, 3)
        session = "    $ fulmar gateway -c a.toml\n    INFO event=\"started\"\n\n    $ curl x\n    {}\n\n    INFO of a drawing\n"
        self.assertEqual([shown for _, shown in documents.shown_lines("p", session)], ['INFO event="started"', "{}"])
        below = {line: documents.shown_below(Command("p", line, "any"), session) for line in (1, 2, 4, 7)}
        self.assertEqual(below, {1: ['INFO event="started"'], 2: [], 4: ["{}"], 7: []})
        for said, is_same in {
            "fulmar: a.md: 9,109 bytes in 12 s at 1e-9; kept in /tmp/a/b; so": True,
            "fulmar: a.md: 9109 bytes in 12 s at 1e-9; kept in /tmp/a/b; no": False,
            "fulmar: b.md: 9109 bytes in 12 s at 1e-9; kept in /tmp/a/b; so": False,
            "fulmar: a.md: some bytes in 12 s at 1e-9; kept in /tmp/a/b; so": False,
        }.items():
            with self.subTest(said):
                self.assertEqual(bool(documents.as_shown(shown).fullmatch(said)), is_same)
        with self.assertRaisesRegex(AssertionError, "one-way.md:[0-9]+ shows `fulmar: "):
            compare_shown({"docs/guide/one-way.md"}, "fulmar: nothing")

    def test_commands_are_found_in_pages(self):
        page = """Text `fulmar top` and `not fulmar` and `fulmar sim
    --json` more.

    fulmar sim a.toml   says
    make test           # says too

    $ fulmar doctor
    good

```sh
wget -q http://host/
```

    [hop]
    rate = "5mbit"

- a list
    fulmar is here a word
"""
        blocks = [[(c.line, c.text) for c in block] for block in documents.blocks("p", page)]
        self.assertEqual(blocks, [[(4, "fulmar sim a.toml"), (5, "make test")], [(7, "fulmar doctor")], [(11, "wget -q http://host/")]])
        self.assertEqual([c.text for c in documents.inline("p", page)], ["fulmar top", "fulmar sim --json"])

    def test_a_command_that_fails_or_arrives_wrong_is_noticed(self):
        with tempfile.TemporaryDirectory() as stock:
            for text, wrong in {"fulmar sim none.toml": "ended with 2", "fulmar recv incoming/ --listen nowhere": "ended with",
                                "true": "says nothing"}.items():
                with self.subTest(text):
                    try:
                        ((_, said),) = run_page([[Command("p.md", 7, text)]], pathlib.Path(stock))
                    except PermissionError as error:
                        self.skipTest(str(error))
                    self.assertIn("p.md:7", said)
                    self.assertIn(wrong, said)


if __name__ == "__main__":
    unittest.main()
