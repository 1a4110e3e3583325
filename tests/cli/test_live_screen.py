"""The live screen on a real pseudo-terminal, read as a terminal would read it."""

from __future__ import annotations

import codecs
import contextlib
import os
import re
import select
import struct
import subprocess
import sys
import termios
import time
import unicodedata
from collections.abc import Iterator
from fcntl import ioctl

import pytest

PATIENCE = 30.0

HOSTILE = (
    "\\x1b[2J\\x1b[H\\x1b]0;pwned\\x07\\x1b]8;;http://evil\\x1b\\\\link\\x9b1A\\x1b[?1049h\\rsafe\\x07\\x08\\u202etxet"
    "\\n✔ goal met\\n◎ goal active · 0s\\n[bold red]markup[/] :smile: \\x1bPq#0\\x1b\\\\ " + "表" * 90 + " ✔ goal met"
)

PRELUDE = """
import sys
from goalkeeper.cli.live_screen import LiveScreen
from goalkeeper.cli.excerpt import EvidenceExcerpt
from goalkeeper.core.limits import Limits, Usage
from goalkeeper.core.records import *
from goalkeeper.core.verdict import CitedEntry, RuleFinding
screen = LiveScreen()
screen.start()
go_on = sys.stdin.readline
hostile = "HOSTILE"
cited = (CitedEntry(hostile, "tool_result", "", hostile),)
screen.tell(GoalWasSet(at=0, condition="the tests pass", limits=Limits(), evaluator="litellm"))
screen.tell(RunStart(at=0, run=3, max_runs=10, message="guidance"))
"""

TOOL = """
call = dict(call="c", name="bash", summary="pytest -q")
screen.tell(ToolUsed(at=0, status="started", **call))
go_on()
screen.tell(ToolUsed(at=2100, status="ended", is_error=True, exit_code=1, **call))
screen.stop()
screen.stop()
print("THE END", flush=True)
"""

EVERYTHING_HOSTILE = """
call = dict(call=hostile, name=hostile, summary=hostile)
screen.tell(SessionOpened(at=0, session_file=hostile, session_id=hostile, cwd=hostile, model=hostile, pi=hostile))
screen.tell(GoalWasSet(at=0, condition=hostile, limits=Limits(), evaluator=hostile, checks=(hostile,),
    replaced=hostile))
screen.tell(ToolUsed(at=0, status="started", **call))
go_on()
screen.tell(ToolUsed(at=0, status="ended", is_error=False, exit_code=0, **call))
screen.tell(RunSettledRecord(at=0, run=1, max_runs=10, aborted=False, error=hostile, usage=Usage(), seconds=1))
screen.tell(CheckRan(at=0, command=hostile, exit_code=0, entry=hostile))
screen.tell(VerdictRecord(at=0, verdict="not_met", reason=hostile, claimed="met", basis="tool", evidence=cited,
    findings=(RuleFinding(hostile, hostile),)))
screen.tell(EvaluatorFailed(at=0, kind="malformed", reason=hostile, evidence=cited))
screen.tell(Notice(at=0, level="warning", text=hostile))
screen.tell(GoalPaused(at=0, why="question", reason=hostile, runs=1))
screen.show_evidence([EvidenceExcerpt(hostile, hostile, hostile)])
screen.stop()
print("THE END", flush=True)
"""


class Terminal:
    """What a terminal makes of a program's output; it knows a few controls and fails on any other."""

    CONTROL = re.compile(r"\x1b\[(\??)([0-9;]*)([A-Za-z])|\x1b.?|[\x00-\x1f\x7f-\x9f]", re.DOTALL)

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self.rows = [""]
        self.row = self.column = 0
        self.cursor_shown = True
        self.rest = ""
        self.coloured = False

    def feed(self, text: str) -> None:
        text, self.rest = self.rest + text, ""
        cut = text.rfind("\x1b")
        if cut >= 0 and not self.CONTROL.fullmatch(text, cut, len(text)) and not re.search("[A-Za-z]", text[cut:]):
            text, self.rest = text[:cut], text[cut:]
        at = 0
        for found in self.CONTROL.finditer(text):
            self.put(text[at : found.start()])
            self.control(found)
            at = found.end()
        self.put(text[at:])

    def put(self, text: str) -> None:
        for character in text:
            wide = 2 if unicodedata.east_asian_width(character) in "WF" else 1
            if self.column + wide > self.columns:
                self.down()
                self.column = 0
            row = self.rows[self.row].ljust(self.column)
            self.rows[self.row] = row[: self.column] + character + "\0" * (wide - 1) + row[self.column + wide :]
            self.column += wide

    def down(self) -> None:
        self.row += 1
        if self.row == len(self.rows):
            self.rows.append("")

    def control(self, found: re.Match[str]) -> None:
        match found[0], found[3]:
            case "\r", _:
                self.column = 0
            case "\n", _:
                self.down()
            case _, "m":
                self.coloured |= any(30 <= int(code) <= 37 for code in found[2].split(";") if code)
            case _, "K":
                assert found[2] == "2"
                self.rows[self.row] = ""
            case _, "A":
                self.row = max(0, self.row - int(found[2] or 1))
            case ("\x1b[?25l" | "\x1b[?25h") as seen, _:
                self.cursor_shown = seen.endswith("h")
            case other, _:
                pytest.fail(f"the screen sent {other!r}")

    @property
    def lines(self) -> list[str]:
        return [row.replace("\0", "").rstrip() for row in self.rows]


class Session:
    """A program on a pseudo-terminal."""

    def __init__(self, body: str, columns: int, **environment: str) -> None:
        self.master, slave = os.openpty()
        self.resize(columns)
        settings = termios.tcgetattr(slave)
        settings[3] &= ~termios.ECHO
        termios.tcsetattr(slave, termios.TCSANOW, settings)
        self.terminal = Terminal(columns)
        self.decoder = codecs.getincrementaldecoder("utf-8")()
        names = {"TERM": "xterm-256color", "LANG": "C.UTF-8", "PATH": os.environ["PATH"], **environment}
        self.process = subprocess.Popen(
            [sys.executable, "-c", (PRELUDE + body).replace("HOSTILE", HOSTILE)],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=names,
            start_new_session=True,
        )
        os.close(slave)

    def resize(self, columns: int) -> None:
        ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))

    def until(self, wanted: str) -> list[str]:
        """Read until a line holds a text, and return all lines."""
        end = time.monotonic() + PATIENCE
        while not any(wanted in line for line in self.terminal.lines):
            left = end - time.monotonic()
            assert left > 0, f"{wanted!r} did not come:\n" + "\n".join(self.terminal.lines)
            if select.select([self.master], [], [], left)[0]:
                self.terminal.feed(self.decoder.decode(os.read(self.master, 65536)))
        return self.terminal.lines

    def enter(self) -> None:
        os.write(self.master, b"\n")

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(PATIENCE)
        with contextlib.suppress(OSError):
            os.close(self.master)


@pytest.fixture
def on_terminal() -> Iterator[object]:
    sessions: list[Session] = []

    def start(body: str, columns: int = 80, **environment: str) -> Session:
        sessions.append(Session(body, columns, **environment))
        return sessions[-1]

    yield start
    for session in sessions:
        session.close()


def test_the_status_line_says_what_goes_on_and_leaves_no_trace(on_terminal) -> None:  # type: ignore[no-untyped-def]
    session = on_terminal(TOOL)
    shown = session.until("bash pytest -q")
    assert re.fullmatch(r"◎ goal active · \d+s · run 3/10 · bash pytest -q", shown[-1])
    assert session.terminal.cursor_shown
    session.enter()
    assert session.until("THE END") == [
        "◎ goal: the tests pass",
        "  at most 10 runs, 30m · evaluator litellm",
        "── run 3/10 · told what is missing",
        "  ✗ bash pytest -q · failed · exit 1 · 2.1s",
        "THE END",
        "",
    ]
    assert session.terminal.cursor_shown
    assert session.terminal.coloured


def test_no_color_is_respected(on_terminal) -> None:  # type: ignore[no-untyped-def]
    session = on_terminal(TOOL, NO_COLOR="1")
    session.until("bash pytest -q")
    session.enter()
    session.until("THE END")
    assert not session.terminal.coloured


@pytest.mark.parametrize("columns", [20, 40, 80, 200])
def test_nothing_that_others_wrote_moves_the_cursor_or_fakes_a_line(on_terminal, columns: int) -> None:  # type: ignore[no-untyped-def]
    session = on_terminal(EVERYTHING_HOSTILE, columns)
    session.until("goal: ")
    session.enter()
    lines = session.until("THE END")
    ours = [line for line in lines if line and not re.match(r" *│ ", line)]
    assert not [line for line in ours if re.match(r" *(✔|◎ goal active)", line)]
    assert sum(line.startswith("◎ goal: ") for line in ours) == 2
    assert [line for line in lines if re.match(r" +│ ", line) and "✔ goal met" in line]
    assert "[bold red]markup[/] :smile:" in " ".join(re.sub(r"^ *│ ", "", line) for line in lines)


def test_a_resize_in_the_middle_breaks_nothing(on_terminal) -> None:  # type: ignore[no-untyped-def]
    session = on_terminal(TOOL, 80)
    session.until("bash pytest -q")
    session.resize(40)
    session.terminal.columns = 40
    session.enter()
    lines = session.until("THE END")
    assert "  ✗ bash pyte… · failed · exit 1 · 2.1s" in lines
    assert not any("goal active" in line for line in lines)


def test_a_terminal_that_goes_away_ends_nothing(on_terminal) -> None:  # type: ignore[no-untyped-def]
    session = on_terminal(
        "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "screen.tell(Notice(at=0, level='info', text='ready'))\n"
        "try:\n    go_on()\nexcept OSError:\n    pass\n"
        "for _ in range(100):\n    screen.tell(Notice(at=0, level='info', text='x' * 100))\n"
        "screen.stop()\nsys.exit(7)\n"
    )
    session.until("ready")
    os.close(session.master)
    assert session.process.wait(PATIENCE) == 7
