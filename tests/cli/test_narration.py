"""Each record says to a person what it must, in the live and in the plain screen alike."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest

from goalkeeper.cli.excerpt import EvidenceExcerpt
from goalkeeper.cli.layout import rows
from goalkeeper.cli.narration import Narrator, excerpt_lines, outcome
from goalkeeper.core import records as r
from goalkeeper.core.limits import Limits, Usage
from goalkeeper.core.verdict import CitedEntry, RuleFinding, Terms

SPENT = Usage(1000, 200, 0, 0, 0.02)
CITED = (CitedEntry("e1", "tool_result", "00", "pytest -q"),)

SESSION = r.SessionOpened(at=0, session_file="/s/1_a.jsonl", session_id="a", cwd="/w", model="p/m", pi="1.6.0")
TOOL = r.ToolUsed(at=1000, status="started", call="c", name="bash", summary="pytest -q")
MET = r.GoalMet(
    at=0,
    condition="tests pass",
    reason="12 passed",
    evidence=CITED,
    runs=3,
    seconds=130,
    worker=SPENT,
    evaluator=Usage(10, cost=None),
)
PAUSED = r.GoalPaused(at=0, why="max_runs", reason="10 of 10 runs are used", runs=10)
UNKNOWN = r.VerdictRecord(
    at=0,
    verdict="unknown",
    reason="Not proven.\nsrc/a.py changed.",
    claimed="met",
    basis="tool",
    evidence=CITED,
    findings=(RuleFinding("later_change", "src/a.py changed"),),
)
EVERY = [
    SESSION,
    r.GoalWasSet(at=0, condition="c", limits=Limits(), evaluator="litellm", checks=("make",), replaced="old"),
    r.TermsWereSettled(at=0, terms=Terms("tool", ("pytest -q",))),
    r.RunStart(at=0, run=1, max_runs=10, message="condition"),
    TOOL,
    r.RunSettledRecord(at=0, run=1, max_runs=10, aborted=False, error=None, usage=SPENT, seconds=5),
    r.CheckRan(at=0, command="make", exit_code=0, entry="e2"),
    UNKNOWN,
    r.EvaluatorFailed(at=0, kind="timeout", reason="no answer within 60 s"),
    PAUSED,
    r.GoalResumed(at=0, condition="c", run=2, limits=Limits(), fresh=False),
    MET,
    r.Cleared(at=0, condition=None, loop_stopped=True),
    r.Dropped(at=0, what="Judged"),
    r.Notice(at=0, level="warning", text="the disk is full"),
]


def said(*told: r.Record) -> str:
    narrator = Narrator()
    found = [row for record in told for line in narrator.lines(record) for row in rows(line, None)]
    return "\n".join(found)


@pytest.mark.parametrize("kind", get_args(r.Record))
def test_every_kind_of_record_is_told_or_meant_for_the_journal(kind: type[r.Record]) -> None:
    of_kind = [record for record in EVERY if isinstance(record, kind)]
    assert of_kind
    silent = kind is r.Dropped or kind is r.ToolUsed
    assert all(bool(said(record)) is not silent for record in of_kind)


def test_a_finished_tool_call_is_one_line_with_mark_exit_code_and_duration() -> None:
    assert said(TOOL, replace(TOOL, at=3100, status="ended", is_error=False, exit_code=0)) == (
        "  ✓ bash pytest -q · exit 0 · 2.1s"
    )
    assert said(TOOL, replace(TOOL, at=1000, status="ended", is_error=True, exit_code=1)) == (
        "  ✗ bash pytest -q · failed · exit 1 · 0.0s"
    )


def test_an_exit_code_other_than_0_is_no_success_even_where_pi_says_so() -> None:
    assert said(replace(TOOL, status="ended", is_error=False, exit_code=3)) == "  ✗ bash pytest -q · exit 3"


def test_a_verdict_shows_reason_claim_rules_and_cited_entries() -> None:
    assert said(UNKNOWN).splitlines() == [
        "  ? verdict: unknown (the evaluator claimed met)",
        "    │ Not proven.",
        "    │ src/a.py changed.",
        "    refused by: later_change",
        "    cited: e1 (tool result, `pytest -q`)",
    ]


def test_each_kind_of_failure_reads_differently() -> None:
    kinds = get_args(r.FailureKind)
    assert len({said(r.EvaluatorFailed(at=0, kind=kind, reason="x")) for kind in kinds}) == len(kinds)


def test_the_closing_lines_hold_runs_time_and_both_costs_and_unknown_is_not_zero() -> None:
    text = said(MET)
    assert "✔ goal met" in text
    assert "work: 3 runs · 2m 10s" in text
    assert "worker: 1.2k tokens · $0.0200" in text
    assert "evaluator: 10 tokens · cost unknown" in text
    assert "cited: e1 (tool result, `pytest -q`)" in text


def test_changed_proof_of_the_last_verdict_is_named_at_the_end() -> None:
    verdict = r.VerdictRecord(at=0, verdict="met", reason="x", claimed="met", basis="tool")
    assert "changed" not in said(verdict, MET)
    assert "│ tests/test_a.py (test)" in said(replace(verdict, changed=("tests/test_a.py (test)",)), MET)


def test_a_pause_says_what_to_do_next() -> None:
    assert "→ `goal resume` goes on with a fresh budget." in said(PAUSED)
    assert "goalkeeper doctor" in said(replace(PAUSED, why="evaluator_failed"))


def test_a_session_of_memory_only_promises_no_resume() -> None:
    text = said(replace(SESSION, session_file=None), PAUSED)
    assert "nothing is kept" in text
    assert "goal resume" not in text


def test_a_run_shows_its_own_duration_and_not_that_of_all_runs() -> None:
    began = r.RunStart(at=60_000, run=2, max_runs=10, message="guidance")
    ended = r.RunSettledRecord(at=62_500, run=2, max_runs=10, aborted=False, error=None, usage=SPENT, seconds=70)
    assert "run 2/10 ended · 2.5s · " in said(began, ended)
    assert "run 2/10 ended · " in said(ended)
    assert "1m 10s" not in said(ended)


def test_a_failed_and_an_aborted_run_say_so() -> None:
    settled = EVERY[5]
    assert isinstance(settled, r.RunSettledRecord)
    assert "the run failed" in said(replace(settled, error="529 overloaded"))
    assert "│ 529 overloaded" in said(replace(settled, error="529 overloaded"))
    assert "the run was aborted" in said(replace(settled, aborted=True))


def test_an_excerpt_names_its_entry_and_is_quoted() -> None:
    found = [
        row
        for line in excerpt_lines([EvidenceExcerpt("e1", "bash pytest -q", "12 passed\nok")])
        for row in rows(line, None)
    ]
    assert found == ["  evidence e1: bash pytest -q", "  │ 12 passed", "  │ ok"]


def test_an_outcome_is_one_line() -> None:
    assert outcome(replace(MET, reason="12\npassed")) == "goal met · 3 runs · 2m 10s · evidence e1 · 12 passed"
    assert outcome(PAUSED) == "goal paused · 10 runs · 10 of 10 runs are used"
    assert outcome(r.Cleared(at=0, condition="x", loop_stopped=False)) == "goal cleared: x"
    assert outcome(UNKNOWN) == ""
