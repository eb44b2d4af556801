"""The commands that the documentation shows: where they stand, which part of a line is the command, and what a page says that they print.

A command stands in an indented or fenced block, or between backticks. A block is one of commands if its first line begins with
a program; behind `$ ` stands a command wherever it is, and the lines below it are then its output.
"""

import dataclasses
import functools
import itertools
import re
import shlex
import shutil
import subprocess

from program import ROOT

# Programs that pages may name and this machine may lack.
PROGRAMS = set("""apt apt-get cargo cd chown cp curl docker dpkg export fulmar git ip iperf3 jq make mkdir nc nft npm pip pip3 ping
    podman python3 rustup service setcap ssh start-stop-daemon sudo sysctl systemctl tar tc tshark unzip wget wireshark""".split())
# Words that are a program's name, but stand in a drawing or a table.
WORDS = {"link"}
# Text between the backticks of running text is a command only if it begins so.
INLINE = re.compile(r"(?:sudo (?:-E )?)?(fulmar|make|cargo|scripts/\S+|bench/\S+)(?: |$)")


@dataclasses.dataclass(frozen=True)
class Command:
    page: str
    line: int
    text: str

    def __str__(self):
        return f"{self.page}:{self.line}: {self.text}"


@functools.cache
def tracked(*patterns):
    listed = subprocess.run(["git", "ls-files", *patterns], cwd=ROOT, check=True, capture_output=True, text=True)
    return listed.stdout.splitlines()


def pages():
    return tracked("*.md")


def without_explanation(line):
    """`line` without its explanation, which stands behind three blanks or a `#`."""
    return re.split(r"\s{3,}|\s+#\s", line)[0].strip()


def is_command(line):
    word = line.split()[0]
    if word in WORDS or word.endswith(":"):
        return False
    return word in PROGRAMS or word in tracked() or bool(re.fullmatch(r"[a-z0-9._-]+", word) and shutil.which(word))


def raw_blocks(text):
    """(number of the first line, lines) of each indented or fenced block."""
    block, start, fence, blank = [], 0, None, True
    for number, line in enumerate([*text.splitlines(), "end"], 1):
        mark = re.match(r" {0,3}(```+|~~~+)", line)
        if mark and fence is None:
            fence, inside = mark[1], False
        elif mark and line.strip() == fence:
            fence, inside = None, False
        else:
            # Indented text below a line of text belongs to that.
            inside = bool(line.strip()) and (fence is not None or line.startswith("    ") and bool(block or blank))
        if inside:
            start = start or number
            block.append(line.strip())
        elif block:
            yield start, block
            block, start = [], 0
        blank = not line.strip()


def blocks(page, text=None):
    """The page's blocks of commands, each a list."""
    text = (ROOT / page).read_text() if text is None else text
    for start, lines in raw_blocks(text):
        numbered = list(enumerate(lines, start))
        prompted = [(n, line[2:]) for n, line in numbered if line.startswith("$ ")]
        if not prompted and not is_command(lines[0]):
            continue
        yield [Command(page, n, without_explanation(line)) for n, line in prompted or numbered]


def inline(page, text=None):
    """The commands between backticks in the page's running text."""
    text = (ROOT / page).read_text() if text is None else text
    for match in re.finditer(r"(?<!`)`([^`]+)`(?!`)", text):
        words = " ".join(match[1].split())
        if INLINE.match(words):
            yield Command(page, text.count("\n", 0, match.start()) + 1, words)


def words(command):
    """A line's words without `sudo` and settings of the environment; each part of a pipeline or list for itself."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split = True
    parts, skip = [[]], False
    for word in lexer:
        if set(word) <= set("|&;"):
            parts.append([])
        elif set(word) <= set("<>"):
            skip = True
        elif skip:
            skip = False
        elif parts[-1] or not (word in ("sudo", "-E") or re.fullmatch(r"[A-Z_]+=.*", word)):
            parts[-1].append(word)
    return [part for part in parts if part]


def shown_lines(page, text=None):
    """The lines of a page that show what a program says: in a block, behind our program's name or below a command behind `$ `."""
    text = (ROOT / page).read_text() if text is None else text
    for start, block in raw_blocks(text):
        is_session = any(line.startswith("$ ") for line in block)
        for number, line in enumerate(block, start):
            if line.startswith("fulmar: ") or is_session and not line.startswith("$ "):
                yield number, line


def shown_below(command, text=None):
    """The lines that the command's page shows below it as its output."""
    text = (ROOT / command.page).read_text() if text is None else text
    for start, block in raw_blocks(text):
        if start <= command.line < start + len(block) and block[command.line - start].startswith("$ "):
            return list(itertools.takewhile(lambda line: not line.startswith("$ "), block[command.line - start + 1:]))
    return []


def as_shown(line):
    """Lines that say the same as this one, with other numbers and places of files."""
    stand_ins = {r"\d+(?:[.,]\d+)*(?:e-?\d+)?": r"[\d.,e-]+", r"(?<!\S)/\S+?(?=[;,]?(?: |$))": r"/\S+?"}
    token = "|".join(f"(?P<t{place}>{found})" for place, found in enumerate(reversed(stand_ins)))
    pieces, at = [], 0
    for match in re.finditer(token, line):
        pieces += [re.escape(line[at:match.start()]), list(reversed(stand_ins.values()))[int(match.lastgroup[1:])]]
        at = match.end()
    return re.compile("".join(pieces) + re.escape(line[at:]) + r"\s*")


def printed_lines(said):
    """The lines of what programs `said` as pages show them: without indentation and the times of logs."""
    return [re.sub(r"^\d{4}-\d\d-\d\dT\S+Z +", "", line.strip()) for line in said.splitlines()]
