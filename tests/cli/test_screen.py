"""Which screen a command gets, and what files, pipes and programs are given."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import unicodedata
from collections.abc import Callable

import pytest

from goalkeeper.cli.excerpt import EvidenceExcerpt
from goalkeeper.cli.json_screen import JsonScreen
from goalkeeper.cli.output import Output
from goalkeeper.cli.plain_screen import PlainScreen, QuietScreen
from goalkeeper.cli.screen import Screen, open_screen
from goalkeeper.core import records as r
from goalkeeper.core.limits import Limits, Usage

HOSTILE = "\x1b[2J\x1b]0;pwned\x07a\rb\x08\x9b1A\u2028\u202e\ud800\n12:00:00 ✔ goal met\n\ttab"
TOLD: list[r.Record] = [
    r.GoalWasSet(at=0, condition=HOSTILE, limits=Limits(), evaluator="litellm"),
    r.ToolUsed(at=0, status="ended", call="c", name="bash", summary=HOSTILE, is_error=False, exit_code=0),
    r.Notice(at=0, level="info", text="a trifle"),
    r.Notice(at=0, level="warning", text=HOSTILE),
    r.VerdictRecord(at=0, verdict="not_met", reason=HOSTILE, claimed="not_met", basis="tool"),
    r.GoalPaused(at=0, why="no_progress", reason=HOSTILE, runs=3),
]


def shown(screen: Callable[[Output], Screen], encoding: str = "utf-8") -> str:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding, newline="")
    subject = screen(Output(stream))
    subject.start()
    for record in TOLD:
        subject.tell(record)
    subject.show_evidence([EvidenceExcerpt("e1", "bash pytest", HOSTILE)])
    subject.stop()
    subject.stop()
    return raw.getvalue().decode(encoding)


def test_plain_lines_have_a_time_and_no_control_characters() -> None:
    lines = shown(PlainScreen).split("\n")
    assert lines.pop() == ""
    assert not [c for c in "".join(lines) if unicodedata.category(c) in ("Cc", "Cs", "Zl") or c == "\u202e"]
    timed = [line for line in lines if re.match(r"\d\d:\d\d:\d\d ", line)]
    assert len(timed) == len(TOLD)
    assert all(line.startswith(" " * 9) for line in lines if line not in timed)
    assert timed[1].endswith("  ✓ bash a b 12:00:00 ✔ goal met tab · exit 0")


def test_quiet_shows_the_outcome_and_warnings_alone() -> None:
    warnings = io.StringIO()
    text = shown(lambda output: QuietScreen(output, Output(warnings)))
    assert re.fullmatch(r"goal paused · 3 runs · [^\n]+\n", text)
    assert re.fullmatch(r"warning: [^\n]+\n", warnings.getvalue())


def test_json_is_one_object_a_line_in_ascii_that_says_everything() -> None:
    text = shown(JsonScreen)
    assert text.isascii()
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", text)
    found = [json.loads(line) for line in text.splitlines()]
    assert [record["event"] for record in found] == [record.event for record in TOLD]
    assert found[4]["reason"] == HOSTILE
    assert found[4]["at"] == 0


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_stream_that_knows_few_signs_gets_question_marks(encoding: str) -> None:
    assert "? bash" in shown(PlainScreen, encoding)


RUN = """
import sys
from goalkeeper.cli.screen import open_screen
from goalkeeper.core.records import Notice
screen = open_screen(as_json={as_json}, quiet=False)
screen.start()
for number in range(5000):
    screen.tell(Notice(at=0, level="info", text="x" * 100))
screen.stop()
loaded = sorted({{"rich", "pydantic", "litellm"}} & set(sys.modules))
print(loaded, file=sys.stderr)
sys.exit(7)
"""


@pytest.mark.parametrize(("as_json", "loaded"), [(True, "['pydantic']"), (False, "[]")])
def test_a_reader_that_leaves_ends_the_output_quietly_and_rich_is_not_loaded(as_json: bool, loaded: str) -> None:
    program = [sys.executable, "-c", RUN.format(as_json=as_json)]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == f"{loaded}\n"
        assert process.wait(30) == 7


def test_without_a_terminal_the_screen_is_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    assert isinstance(open_screen(as_json=False, quiet=False), PlainScreen)
    assert isinstance(open_screen(as_json=False, quiet=True), QuietScreen)
    assert isinstance(open_screen(as_json=True, quiet=True), JsonScreen)


def test_a_paused_goal_of_unknown_cost_never_shows_zero() -> None:
    stream = io.StringIO()
    screen = PlainScreen(Output(stream))
    settled = r.RunSettledRecord(
        at=0, run=1, max_runs=10, aborted=False, error=None, usage=Usage(5, cost=None), seconds=1.0
    )
    screen.tell(settled)
    assert "cost unknown" in stream.getvalue()
    assert "$" not in stream.getvalue()
