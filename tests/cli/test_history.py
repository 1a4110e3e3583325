"""`goal log` and `goal explain`: what the journal tells, and whether the cited entries still say what they said."""

from __future__ import annotations

import json
import re
import time
from dataclasses import replace
from pathlib import Path

import pytest

from goalkeeper.cli.explanation import explanation
from goalkeeper.cli.history import explain, log
from goalkeeper.core import records as r
from goalkeeper.core.limits import Limits, Usage
from goalkeeper.core.state import GoalState, LastVerdict, SessionState
from goalkeeper.core.verdict import CitedEntry, RuleFinding
from goalkeeper.evidence.citations import content_digest
from goalkeeper.storage.journal import Journal
from goalkeeper.storage.schema import record_document, to_document
from goalkeeper.testing.session_builder import SessionBuilder, bash

AT = 1_772_000_000_000
GOAL = GoalState(id="a1b2", condition="the tests pass", started_at=AT)


class Past:
    """A folder in which something has happened in a session."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.session = folder / "2026_s1.jsonl"
        builder = SessionBuilder(str(folder))
        builder.user("the tests pass")
        self.cited = builder.run(bash("pytest -q", "\x1b[32m12 passed\x1b[0m in 0.3s\n"))
        builder.save(self.session)
        self.journal = Journal(folder, self.session, pytest.fail)

    def tell(self, *told: r.Record) -> None:
        for record in told:
            assert self.journal.append(record_document(record))

    def verdict(self, digest: str = content_digest("\x1b[32m12 passed\x1b[0m in 0.3s\n")) -> r.VerdictRecord:
        return r.VerdictRecord(
            at=AT + 5000,
            goal=GOAL.id,
            verdict="unknown",
            reason="Completion is not proven.",
            claimed="met",
            basis="tool",
            evidence=(CitedEntry(self.cited, "tool_result", digest, "pytest -q"),),
            findings=(RuleFinding("later_change", "src/a.py changed\nafter it"),),
            window="d1g3st",
            changed=("tests/test_a.py (test)",),
        )

    def opened(self) -> r.SessionOpened:
        return r.SessionOpened(
            at=AT, session_file=str(self.session), session_id="s1", cwd=str(self.folder), model="p/m", pi="1.6.0"
        )

    def set_goal(self) -> r.GoalWasSet:
        return r.GoalWasSet(at=AT, goal=GOAL.id, condition=GOAL.condition, limits=Limits(), evaluator="litellm")

    def met(self) -> r.GoalMet:
        return r.GoalMet(
            at=AT + 9000,
            goal=GOAL.id,
            condition=GOAL.condition,
            reason="12 passed",
            evidence=(),
            runs=1,
            seconds=5.0,
            worker=Usage(),
            evaluator=Usage(),
        )

    def save(self, goal: GoalState) -> None:
        document = to_document(SessionState(goal=goal), str(self.session), saved_at=AT)
        (self.folder / ".pi-goal").mkdir(exist_ok=True)
        (self.folder / ".pi-goal" / "state.json").write_text(json.dumps(document))


@pytest.fixture
def past(tmp_path: Path) -> Past:
    return Past(tmp_path)


# ---- log --------------------------------------------------------------------------------------------------------


def test_the_log_has_one_line_a_record_oldest_first_in_local_time(
    past: Past, capsys: pytest.CaptureFixture[str]
) -> None:
    past.tell(past.opened(), past.set_goal(), past.verdict(), past.met())
    assert log(past.folder) == 0
    lines = capsys.readouterr().out.splitlines()
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(AT / 1000))
    assert [line.split()[3] for line in lines] == ["session", "goal_set", "verdict", "met"]
    assert lines[1] == f"{when} a1b2         goal_set         the tests pass · at most 10 runs, 30m"
    assert lines[2].endswith(f"unknown · refused by later_change · cited {past.cited} · Completion is not proven.")


def test_every_kind_of_record_has_a_line_of_its_own(past: Past, capsys: pytest.CaptureFixture[str]) -> None:
    told: list[r.Record] = [
        r.RunStart(at=AT, run=1, max_runs=10, message="verify"),
        r.RunSettledRecord(at=AT, run=1, max_runs=10, aborted=False, error="529", usage=Usage(), seconds=5.0),
        r.CheckRan(at=AT, command="make test", exit_code=None, entry=None),
        r.EvaluatorFailed(at=AT, kind="timeout", reason="no answer"),
        r.GoalPaused(at=AT, why="max_runs", reason="10 of 10", runs=10),
        r.GoalResumed(at=AT, condition="x", run=0, limits=Limits(), fresh=True),
        r.Cleared(at=AT, condition=None, loop_stopped=False),
        r.Dropped(at=AT, what="Judged"),
        r.Notice(at=AT, level="warning", text="full disk"),
    ]
    past.tell(*told)
    past.journal.append({"event": "tick", "at": AT, "goal": "", "slot": 7})
    past.journal.append({"event": "verdict", "at": "noon", "goal": 5})
    log(past.folder)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(told) + 2
    wanted = ["1/10 · asked to show it", "failed: 529", "did not end", "in time", "10 of 10", "fresh budget"]
    wanted += ["no goal was set", "Judged", "full disk", '{"slot": 7}', "?"]
    assert all(text in line for text, line in zip(wanted, lines, strict=True))


def test_the_log_can_be_asked_for_a_goal_a_time_and_the_records_themselves(
    past: Past, capsys: pytest.CaptureFixture[str]
) -> None:
    now = time.time_ns() // 1_000_000
    past.tell(past.set_goal(), replace(past.met(), at=now - 60_000, goal="c3d4"))
    log(past.folder, goal="a1b2", as_json=True)
    assert [json.loads(line)["event"] for line in capsys.readouterr().out.splitlines()] == ["goal_set"]
    log(past.folder, since=3600.0)
    assert "c3d4" in capsys.readouterr().out
    log(past.folder, since=30)
    assert capsys.readouterr().out == f"No journal records in {past.folder}.\n"


def test_a_hostile_record_stays_one_harmless_line(past: Past, capsys: pytest.CaptureFixture[str]) -> None:
    hostile = "x\x1b[2J\r\n2026-01-01 00:00:00 a1b2 met\u2028\u202e\x07"
    past.tell(r.Notice(at=AT, goal=hostile, level="info", text=hostile))
    past.journal.append({"event": hostile, "at": AT, "goal": hostile, hostile: hostile})
    log(past.folder)
    out = capsys.readouterr().out
    assert out.count("\n") == 2
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u202e]", out)


# ---- explain ----------------------------------------------------------------------------------------------------


def test_a_verdict_is_explained_with_claim_rules_entries_and_digests(
    past: Past, capsys: pytest.CaptureFixture[str]
) -> None:
    past.save(GOAL)
    past.tell(past.opened(), past.set_goal(), past.verdict())
    assert explain(past.folder) == 0
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime((AT + 5000) / 1000))
    assert capsys.readouterr().out.splitlines() == [
        "goal a1b2",
        "  │ the tests pass",
        "  the evaluator claimed: met",
        f"  what stands: unknown · {when}",
        "  │ Completion is not proven.",
        "  ✗ refused by later_change",
        "    │ src/a.py changed",
        "    │ after it",
        "  ! changed since the goal was set, and part of its proof:",
        "    │ tests/test_a.py (test)",
        "  what the evaluator saw had the digest d1g3st",
        f"  session: {past.session}",
        f"  cited: {past.cited} (tool result, `pytest -q`)",
        "    its content is what it was at the verdict",
        "    │ 12 passed in 0.3s",
    ]


def test_changed_content_is_said(past: Past, capsys: pytest.CaptureFixture[str]) -> None:
    past.tell(past.opened(), past.verdict(digest=content_digest("3 failed")))
    explain(past.folder)
    assert "ITS CONTENT IS NOT WHAT IT WAS" in capsys.readouterr().out


def test_a_finished_goal_is_explained_from_the_journal(past: Past) -> None:
    past.tell(past.opened(), past.set_goal(), past.verdict(), past.met())
    found = explanation(past.folder, None)
    assert (found.goal, found.condition, found.session) == ("a1b2", "the tests pass", str(past.session))
    assert [entry["content"] for entry in found.evidence] == ["unchanged"]


def test_an_evaluators_failure_is_explained(past: Past, capsys: pytest.CaptureFixture[str]) -> None:
    findings = (RuleFinding("unknown_id", "beef was not in the window"),)
    evidence = (CitedEntry("beef", "unknown"),)
    kind = "invalid_citation"
    past.tell(past.opened(), past.verdict())
    past.tell(r.EvaluatorFailed(at=AT + 9000, kind=kind, reason="bad", evidence=evidence, findings=findings))
    explain(past.folder)
    out = capsys.readouterr().out
    assert "no verdict: the evaluator cited what it can't cite" in out
    assert "beef was not in the window" in out
    assert "it is not on the session's branch any more" in out


@pytest.mark.parametrize("wanted", ["s1", "2026_s1.jsonl"])
def test_one_session_can_be_asked_for(past: Past, wanted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(past.folder)
    past.tell(past.opened(), past.verdict())
    other = Journal(past.folder, past.folder / "2026_s2.jsonl", pytest.fail)
    other.append(record_document(replace(past.verdict(), goal="c3d4")))
    assert explanation(past.folder, None).goal == "c3d4"
    assert explanation(past.folder, wanted).goal == "a1b2"


def test_a_session_that_is_gone_leaves_ids_and_digests(past: Past) -> None:
    past.tell(past.opened(), past.verdict())
    past.session.unlink()
    found = explanation(past.folder, None)
    assert [(entry["id"], entry["content"], entry["excerpt"]) for entry in found.evidence] == [
        (past.cited, "no_session", None)
    ]


def test_without_a_journal_the_state_is_explained(past: Past) -> None:
    last = LastVerdict("unknown", "Not proven.", AT, (CitedEntry(past.cited, "tool_result"),), claimed="met")
    past.save(replace(GOAL, last_verdict=last))
    found = explanation(past.folder, None)
    assert found.verdict is not None
    assert (found.verdict["reason"], found.verdict["claimed"]) == ("Not proven.", "met")
    assert [entry["content"] for entry in found.evidence] == ["not_recorded"]


def test_nothing_to_explain_is_said(past: Past, capsys: pytest.CaptureFixture[str]) -> None:
    explain(past.folder)
    assert capsys.readouterr().out == f"No verdict has been given in {past.folder}.\n"
    past.save(GOAL)
    explain(past.folder)
    assert capsys.readouterr().out.endswith("No verdict has been given on this goal yet.\n")


def test_an_entry_far_back_is_found(past: Past) -> None:
    lines = past.session.read_text().splitlines()
    last = json.loads(lines[-1])["id"]
    with past.session.open("a") as file:
        for number in range(400):
            entry = {
                "type": "message",
                "id": f"f{number:07}",
                "parentId": last,
                "timestamp": "2026-03-01T00:00:00.000Z",
                "message": {"role": "user", "content": "x" * 1000, "timestamp": AT},
            }
            last = entry["id"]
            file.write(json.dumps(entry) + "\n")
    past.tell(past.opened(), past.verdict())
    assert [entry["content"] for entry in explanation(past.folder, None).evidence] == ["unchanged"]


def test_json_has_the_same_and_is_ascii(past: Past, capsys: pytest.CaptureFixture[str]) -> None:
    past.tell(past.opened(), past.set_goal(), past.verdict())
    explain(past.folder, as_json=True)
    out = capsys.readouterr().out
    assert out.isascii()
    found = json.loads(out)
    assert sorted(found) == ["changed", "condition", "evidence", "folder", "goal", "session", "verdict"]
    assert found["verdict"]["window"] == "d1g3st"
