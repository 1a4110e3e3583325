"""`goal` without arguments: whatever lies in the folder is said plainly, fast, and changes nothing."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from goalkeeper.cli.layout import rows
from goalkeeper.cli.status import status, status_lines
from goalkeeper.cli.status_report import KNOWN_VERSION, folder_report
from goalkeeper.core.limits import Limits, Usage
from goalkeeper.core.state import GoalState, LastVerdict, LoopState, Pause, SessionState
from goalkeeper.core.verdict import CitedEntry, RuleFinding
from goalkeeper.storage.locks import hold_session
from goalkeeper.storage.schema import VERSION, to_document

NOW = 1_700_000_000_000
VERDICT = LastVerdict(
    verdict="unknown",
    reason="Not proven.",
    at=NOW - 65_000,
    evidence=(CitedEntry("e1", "tool_result", "00", "pytest -q"),),
    findings=(RuleFinding("later_change", "src/a.py changed"),),
    claimed="met",
)
GOAL = GoalState(
    id="a1b2",
    condition="the tests pass",
    started_at=NOW - 600_000,
    limits=Limits(10, 1800.0, 2.5),
    checks=("pytest -q",),
    stage="evaluating",
    turns=3,
    seconds=130.0,
    last_verdict=VERDICT,
    worker_usage=Usage(1000, 200, 0, 0, 0.02),
    evaluator_usage=Usage(100, 20, 0, 0, None),
)
EXTENSION = {
    "condition": "the docs build",
    "startedAt": NOW - 90_000,
    "turns": 2,
    "lastReason": "The output is missing.",
    "lastEvalAt": NOW - 5_000,
    "lastVerdict": "unknown",
    "evidence": [],
    "unknowns": 2,
    "pausedReason": "Unable to verify completion twice.",
}


class Folder:
    """A folder with sessions and their state."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.state = path / ".pi-goal"

    def session(self, name: str = "s1") -> Path:
        path = self.path / f"2026_{name}.jsonl"
        path.write_text(json.dumps({"type": "session", "id": name, "cwd": str(self.path)}) + "\n")
        return path

    def put(self, document: object, name: str = "state.json") -> None:
        self.state.mkdir(exist_ok=True)
        (self.state / name).write_text(document if isinstance(document, str) else json.dumps(document))

    def goal(self, goal: GoalState | None, loop: LoopState | None = None, name: str = "s1") -> Path:
        session = self.session(name)
        document = to_document(SessionState(goal=goal, loop=loop), str(session), saved_at=NOW - 3000)
        self.put(document, "state.json" if name == "s1" else f"state-{name}.json")
        return session

    def text(self, here: Path | None = None, session: str | None = None) -> str:
        report = folder_report(here or self.path, now=NOW, session=session)
        lines = status_lines(report, now=NOW, here=str(here or self.path))
        return "\n".join(row for line in lines for row in rows(line, None))

    def report(self, **options: Any) -> dict[str, Any]:
        return folder_report(self.path, now=NOW, **options)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_no_goal_is_said_and_is_no_failure(folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    assert status(folder.path, as_json=False, session=None) == 0
    assert capsys.readouterr().out == "No goal is set in this folder.\n"
    assert status(folder.path, as_json=True, session=None) == 0
    assert json.loads(capsys.readouterr().out) == {
        "folder": str(folder.path),
        "goals": [],
        "loops": [],
        "problems": [],
    }
    assert not folder.state.exists()


def test_an_active_goal_that_nobody_drives_says_resume(folder: Folder) -> None:
    session = folder.goal(GOAL)
    assert folder.text().splitlines() == [
        "◎ goal active · 2m 10s · run 3 of 10",
        "  │ the tests pass",
        "  active, but nobody drives it: say `goal resume`",
        "  last verdict: unknown (claimed met) · 1m 5s ago",
        "  │ Not proven.",
        "    refused by later_change: src/a.py changed",
        "    cited: e1 (tool result, `pytest -q`)",
        "  budget: 10 runs, 30m, $2.5",
        "  worker: 1.2k tokens · $0.0200",
        "  evaluator: 120 tokens · cost unknown",
        "  check: pytest -q",
        f"  session: {session}",
        "  → `goal resume` goes on with the budget that is left.",
    ]


def test_a_driven_goal_names_its_process_and_counts_the_time_since_it_was_saved(folder: Folder) -> None:
    session = folder.goal(GOAL)
    lock = hold_session(str(session), {"pid": os.getpid()})
    try:
        text = folder.text()
        goal = folder.report()["goals"][0]
    finally:
        lock.release()
    assert f"driven by process {os.getpid()} · the evaluator is asked" in text
    assert "resume" not in text
    assert goal["seconds"] == 133.0
    assert (goal["driven"], goal["pid"]) == (True, os.getpid())
    assert folder.report()["goals"][0]["driven"] is False


def test_a_paused_goal_says_why_and_how_to_go_on(folder: Folder) -> None:
    folder.goal(replace(GOAL, pause=Pause("question", "pi asked: which database?")))
    text = folder.text()
    assert "‖ goal paused" in text
    assert "│ pi asked: which database?" in text
    assert "Answer it in the session with pi, then `goal resume`." in text
    assert folder.report()["goals"][0]["paused"] == {"why": "question", "reason": "pi asked: which database?"}


def test_several_goals_are_told_apart(folder: Folder) -> None:
    folder.goal(GOAL)
    folder.goal(replace(GOAL, id="c3d4", condition="the docs build"), name="s2")
    assert "`goal resume --session s1`" in folder.text()
    assert "`goal resume --session s2`" in folder.text()
    for wanted in ("s2", str(folder.path / "2026_s2.jsonl")):
        assert [goal["condition"] for goal in folder.report(session=wanted)["goals"]] == ["the docs build"]
    assert folder.report(session="s9")["goals"] == []


def test_a_loop_is_listed_too(folder: Folder) -> None:
    folder.goal(None, LoopState("check the queue", 300_000, 4, NOW))
    text = folder.text()
    assert "No goal is set in this folder." in text
    assert "↻ loop · every 5m · 4 ticks" in text
    assert "│ check the queue" in text


def test_state_of_the_pi_extension_is_read(folder: Folder) -> None:
    session = folder.session()
    folder.put({"owner": str(session), "goal": EXTENSION, "loop": None})
    text = folder.text()
    assert "‖ goal paused · 1m 30s · run 2 of 10" in text
    assert "│ Unable to verify completion twice." in text
    assert "last verdict: unknown · 5s ago" in text
    assert "worker: unknown" in text
    older = {"condition": "x", "startedAt": NOW, "turns": 0}
    folder.put({"owner": str(session), "goal": older})
    assert "set by pi's goal extension" in folder.text()
    assert "no verdict yet" in folder.text()


def test_what_the_extension_changed_since_wins(folder: Folder) -> None:
    folder.goal(GOAL)
    document = json.loads((folder.state / "state.json").read_text())
    document["goal"] |= {"turns": 4, "lastReason": "other", "pausedReason": "paused in pi"}
    folder.put(document)
    goal = folder.report()["goals"][0]
    assert (goal["state"], goal["runs"], goal["last_verdict"]["claimed"]) == ("paused", 4, None)
    assert goal["paused"] == {"why": "user", "reason": "paused in pi"}


@pytest.mark.parametrize(
    ("document", "kind"),
    [
        ('{"owner": "/x', "corrupt"),
        ("[]", "corrupt"),
        ({"goal": EXTENSION}, "no_owner"),
        ({"owner": "relative.jsonl", "goal": EXTENSION}, "no_owner"),
        ({"owner": "/nowhere/at/all.jsonl", "goal": EXTENSION}, "owner_gone"),
    ],
)
def test_a_state_that_is_nobodys_is_a_problem_and_no_goal(folder: Folder, document: object, kind: str) -> None:
    folder.put(document)
    before = (folder.state / "state.json").read_text()
    report = folder.report()
    assert report["goals"] == []
    assert [problem["kind"] for problem in report["problems"]] == [kind]
    assert str(folder.state / "state.json") in folder.text()
    assert (folder.state / "state.json").read_text() == before


def test_a_state_that_is_a_folder_and_a_newer_one_are_said(folder: Folder) -> None:
    (folder.state / "state.json").mkdir(parents=True)
    assert folder.report()["problems"][0]["kind"] == "unreadable"
    session = folder.session("s2")
    folder.put({"owner": str(session), "goal": EXTENSION, "goalkeeper": {"version": VERSION + 1}}, "state-s2.json")
    assert folder.report()["problems"][1]["kind"] == "newer"
    assert KNOWN_VERSION == VERSION


def test_a_folder_further_up_is_found_and_named(folder: Folder) -> None:
    folder.goal(GOAL)
    deep = folder.path / "src" / "deep"
    deep.mkdir(parents=True)
    assert folder.text(deep).splitlines()[:2] == [f"In {folder.path}:", "◎ goal active · 2m 10s · run 3 of 10"]
    (folder.state / "state.json").unlink()
    assert folder.text(deep) == f"No goal is set in {folder.path}."


def test_hostile_state_can_not_steer_the_terminal(folder: Folder) -> None:
    hostile = "x\x1b[2J\x07\r\n◎ goal active · run 1\n\u202e\u2028"
    folder.goal(replace(GOAL, condition=hostile, pause=Pause("user", hostile), checks=(hostile,)))
    lines = folder.text().split("\n")
    assert not [c for line in lines for c in line if ord(c) < 32 or c in "\u202e\u2028"]
    assert sum(line.lstrip().startswith("◎") for line in lines) == 0


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(sorted(EXTENSION)), inner, max_size=5),
    max_leaves=20,
)
FIELDS = sorted({*EXTENSION, "goalkeeper", "id", "limits", "pause", "last_verdict", "worker_usage", "seconds"})


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=80)
@given(st.dictionaries(st.sampled_from(FIELDS), JSON, min_size=1), st.dictionaries(st.text(max_size=8), JSON))
def test_no_state_however_odd_breaks_the_status(folder: Folder, goal: dict[str, Any], loop: dict[str, Any]) -> None:
    session = folder.session()
    ours = {key: goal.get(key) for key in ("condition", "limits", "pause", "last_verdict", "worker_usage", "seconds")}
    folder.put({"owner": str(session), "goal": {**goal, "goalkeeper": ours}, "loop": loop, "goalkeeper": goal})
    json.dumps(folder.report())
    assert folder.text()


@pytest.mark.parametrize("odd", ["1e999", "-1e999", "NaN", "1" + "0" * 400, "true", '"3"', "[]", "{}", "null"])
def test_a_number_that_nobody_measured_is_not_taken(folder: Folder, odd: str) -> None:
    folder.goal(GOAL, LoopState("p", 1, 1, 1))
    text = (folder.state / "state.json").read_text()
    for value in (600000, 130.0, 3, 2.5, 0.02, 1000, 1800.0):
        text = text.replace(f": {value},", f": {odd},").replace(f": {value}}}", f": {odd}}}")
    for name in ("startedAt", "lastEvalAt", "saved_at", "intervalMs", "iterations", "lastTickAt"):
        text = re.sub(f'"{name}": [0-9]+', f'"{name}": {odd}', text)
    folder.put(text)
    goal = folder.report()["goals"][0]
    assert (goal["runs"], goal["max_cost"], goal["max_seconds"]) == (0, None, 1800.0)
    assert "run 0 of 10" in folder.text()


def test_the_fast_path_loads_nothing_heavy(folder: Folder) -> None:
    folder.goal(GOAL)
    program = (
        "import sys\nfrom goalkeeper.cli.goal import run\ncode = run([])\n"
        "heavy = {'pydantic', 'rich', 'typer', 'click', 'filelock', 'asyncio', 'litellm'} & set(sys.modules)\n"
        "sys.exit(str(sorted(heavy)) if heavy else code)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=folder.path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert "the tests pass" in done.stdout


def test_a_folder_that_is_not_there_is_a_usage_error(folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    assert status(folder.path / "none", as_json=False, session=None) == 2
    assert "is no folder" in capsys.readouterr().err


def test_the_time_of_a_goal_of_the_extension_is_the_clocks(folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    session = folder.session()
    started = time.time_ns() // 1_000_000 - 7_200_000
    folder.put({"owner": str(session), "goal": {"condition": "x", "startedAt": started, "turns": 1}})
    status(folder.path, as_json=True, session=None)
    goal = json.loads(capsys.readouterr().out)["goals"][0]
    assert 7200 <= goal["seconds"] < 7300
