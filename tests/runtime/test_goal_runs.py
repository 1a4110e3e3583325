"""What the source's own tests hold of a goal (spec, section 8), over the real driver, evaluator and rules."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from goalkeeper.core.limits import Usage
from goalkeeper.core.verdict import Terms
from goalkeeper.errors import PeerError
from goalkeeper.ports import ModelReply, ModelRequest
from goalkeeper.testing.scripted_evaluator import Held
from goalkeeper.testing.scripted_worker import ScriptedCall, ScriptedRun
from goalkeeper.testing.seen_window import seen_entries

PASSING = ScriptedRun((ScriptedCall("pytest -q", output="3 passed in 0.10s"),), "All tests pass.")


def verdict(word: str, evidence: list[str] | None = None, basis: str = "tool", **more: Any) -> str:
    answer = {"verdict": word, "reason": "As scripted.", "basis": basis, "evidence": evidence or []}
    return json.dumps(answer | more)


def met_citing(role: str, basis: str = "tool") -> Any:
    """Return an answer that says met and cites the newest entry of a role that is shown."""

    def answer(request: ModelRequest) -> str:
        return verdict("met", [[e for e in seen_entries(request.user) if e.role == role][-1].id], basis)

    return answer


async def test_8_4_the_evaluator_sees_command_and_error_flag_has_no_tools_and_a_met_ends_the_goal(stage: Any) -> None:
    running = await stage([PASSING], [met_citing("tool result")])
    await running.set_goal()
    met = await running.until("met")
    request = running.client.requests[0]
    (result,) = [entry for entry in seen_entries(request.user) if entry.role == "tool result"]
    assert result.command == "pytest -q"
    assert "error" not in result.facts
    assert not hasattr(request, "tools")
    assert running.worker.sent == [("all tests pass", False)]
    assert running.saved[-1].goal is None
    assert met.evidence[0].id == result.id


async def test_8_6_an_answer_goal_may_cite_the_deliverable(stage: Any) -> None:
    running = await stage([ScriptedRun(text="Roses are red.")], [met_citing("assistant text", "answer")])
    await running.set_goal("write a poem", terms=Terms("answer", (), "user"))
    await running.until("met")


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        ("Yes, all tests pass.", "malformed"),
        ("", "malformed"),
        (verdict("met"), "invalid_citation"),
        (verdict("met", ["deadbeef"]), "invalid_citation"),
        (ModelReply(verdict("not_met"), finish="error", error="overloaded"), "provider_error"),
        (ModelReply(verdict("not_met"), finish="length"), "cut_off"),
        (PeerError("HTTP 503: overloaded", kind="provider_error"), "provider_error"),
        (PeerError("no library", kind="unavailable"), "unavailable"),
    ],
)
async def test_8_7_and_8_15_an_evaluator_that_fails_pauses_with_its_kind(stage: Any, reply: Any, kind: str) -> None:
    running = await stage([PASSING], [reply])
    await running.set_goal()
    paused = await running.until("paused")
    assert paused.why == "evaluator_failed"
    (failed,) = running.names("evaluator_failed")
    assert failed.kind == kind
    assert failed.reason == paused.reason
    await running.idle()
    assert len(running.worker.sent) == 1
    assert running.names("met") == []


@pytest.mark.parametrize(("basis", "role"), [("tool", "assistant text"), ("answer", "user text")])
async def test_8_7_a_met_that_cites_words_pauses(stage: Any, basis: str, role: str) -> None:
    running = await stage([PASSING], [met_citing(role, basis)])
    await running.set_goal(terms=Terms(basis, (), "user"))
    assert (await running.until("paused")).why == "evaluator_failed"
    (failed,) = running.names("evaluator_failed")
    assert [finding.rule for finding in failed.findings] == ["not_evidence"]


async def test_8_12_two_unknowns_pause_and_later_runs_change_nothing(stage: Any) -> None:
    running = await stage([PASSING], [verdict("unknown")])
    await running.set_goal()
    assert (await running.until("paused")).why == "unverified"
    assert len(running.worker.sent) == 2
    assert "could not be verified" in running.worker.sent[1][0]
    await running.worker.send("a person's own message")
    await running.idle()
    assert len(running.client.requests) == 2


async def test_8_13_ten_not_met_verdicts_pause_and_resume_goes_on_from_0(stage: Any) -> None:
    runs = [ScriptedRun((ScriptedCall(f"echo {n}", output=str(n)),), "Working.") for n in range(20)]
    running = await stage(runs, [verdict("not_met")])
    await running.set_goal()
    assert (await running.until("paused")).why == "max_runs"
    assert len(running.client.requests) == 10
    assert len(running.worker.sent) == 10
    await running.resume()
    await running.until("run_settled", 11)
    assert running.names("run_settled")[10].run == 1


async def test_8_15_an_evaluator_that_hangs_is_ended_at_its_bound_and_closed(stage: Any) -> None:
    running = await stage([PASSING], [Held(verdict("met"))], timeout=0.05)
    await running.set_goal()
    await running.until("paused")
    (failed,) = running.names("evaluator_failed")
    assert failed.kind == "timeout"
    assert running.client.closed == 1


async def test_8_17_an_aborted_run_pauses_and_the_evaluator_is_not_asked(stage: Any) -> None:
    running = await stage([ScriptedRun(held=True)], [verdict("not_met")])
    await running.set_goal()
    await running.until("run_started")
    await running.worker.abort()
    assert (await running.until("paused")).why == "aborted"
    assert running.client.requests == []


async def test_8_18_a_new_goal_cancels_the_evaluation_of_the_old(stage: Any) -> None:
    running = await stage([PASSING], [Held(verdict("not_met"))])
    await running.set_goal("the first")
    await running.client.wait_asked(1)
    await running.set_goal("the second")
    await running.client.wait_asked(2)
    assert running.client.cancelled == 1
    assert [text for text, _ in running.worker.sent] == ["the first", "the second"]
    assert running.driver.state.goal.last_verdict is None


async def test_8_20_clearing_during_an_evaluation_announces_nothing_more(stage: Any) -> None:
    running = await stage([PASSING], [Held(verdict("met"))])
    await running.set_goal()
    await running.client.wait_asked(1)
    await running.clear()
    await running.idle()
    assert running.client.cancelled == 1
    assert running.names("verdict") == []
    assert [record.event for record in running.records][-1] == "cleared"


async def test_a_pi_that_dies_in_a_run_pauses(stage: Any) -> None:
    running = await stage([ScriptedRun(exits=-9)], [verdict("not_met")])
    await running.set_goal()
    paused = await running.until("paused")
    assert paused.why == "worker_exited"
    assert "signal 9" in paused.reason


async def test_a_pause_in_the_moment_of_sending_keeps_the_message_from_the_worker(stage: Any) -> None:
    running = await stage([PASSING], [verdict("not_met")])
    # Both are queued before anything is carried out, as when Ctrl-C comes at once.
    setting = asyncio.create_task(running.set_goal())
    interrupting = asyncio.create_task(running.interrupt())
    await setting
    await interrupting
    await running.idle()
    assert running.worker.sent == []
    assert running.driver.state.goal.pause.why == "interrupted"


async def test_three_runs_that_change_nothing_after_one_that_did_are_three(stage: Any) -> None:
    working = ScriptedRun((ScriptedCall("make", output="built"),), "Built.")
    running = await stage([working, ScriptedRun(text="Waiting.")], [verdict("not_met")])
    await running.set_goal()
    paused = await running.until("paused")
    assert paused.why == "no_progress"
    assert len(running.names("run_settled")) == 4


async def test_what_a_question_without_an_answer_cost_is_counted(stage: Any) -> None:
    paid = Usage(input=50, output=5, cost=0.25)
    running = await stage([PASSING], [ModelReply("no terms", usage=paid), ModelReply("again none", usage=paid)])
    await running.set_goal(terms=None)
    await running.until("paused")
    assert running.driver.state.goal.evaluator_usage.cost == 0.5
