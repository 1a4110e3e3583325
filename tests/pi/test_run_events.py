from __future__ import annotations

from typing import Any

import pytest

from goalkeeper.core.limits import Usage
from goalkeeper.pi.rpc_protocol import PeerEvent
from goalkeeper.pi.run_events import RunTracker, question_of, summary_of, usage_of
from goalkeeper.ports import Compacted, RunSettled, RunStarted, ToolEnded, ToolStarted, WorkerEvent, WorkerNotice


def feed(tracker: RunTracker, *records: dict[str, Any]) -> list[WorkerEvent]:
    return [event for record in records for event in tracker.feed(PeerEvent(record["type"], record))]


def usage(**fields: Any) -> dict[str, Any]:
    return {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "cost": {"total": 0}, **fields}


def answer(stop: str, error: str | None = None, **fields: Any) -> dict[str, Any]:
    message = {"role": "assistant", "stopReason": stop, "usage": usage(**fields)}
    return {"type": "message_end", "message": {**message, **({"errorMessage": error} if error else {})}}


START, SETTLED = {"type": "agent_start"}, {"type": "agent_settled", "aborted": False}


def test_agent_starts_inside_a_run_are_one_run() -> None:
    tracker = RunTracker()
    assert feed(tracker, START, {"type": "agent_end", "willRetry": False}, START) == [RunStarted()]
    assert tracker.busy
    assert feed(tracker, SETTLED) == [RunSettled()]
    assert not tracker.busy
    assert feed(tracker, START) == [RunStarted()]


def test_the_last_answer_says_how_the_run_ended() -> None:
    tracker = RunTracker()
    events = feed(tracker, START, answer("error", "500: broke"), answer("stop"), SETTLED)
    assert events[-1] == RunSettled()
    events = feed(tracker, START, answer("stop"), answer("error", "401: no"), SETTLED)
    assert events[-1] == RunSettled(error="401: no")
    assert feed(tracker, START, SETTLED)[-1] == RunSettled()


def test_an_abort_that_an_older_pi_calls_an_error_is_an_abort() -> None:
    tracker = RunTracker()
    feed(tracker, START, answer("error", "This operation was aborted"))
    tracker.expect_abort()
    assert feed(tracker, {"type": "agent_settled"}) == [RunSettled(aborted=True)]
    assert feed(tracker, START, {"type": "agent_settled"})[-1] == RunSettled()


def test_an_abort_of_an_idle_pi_does_not_mark_the_next_run() -> None:
    tracker = RunTracker()
    tracker.expect_abort()
    assert feed(tracker, START, {"type": "agent_settled"})[-1] == RunSettled()


def test_usage_is_summed_over_answers_tools_and_compactions() -> None:
    tracker = RunTracker()
    nested = {"type": "message_end", "message": {"role": "toolResult", "usage": usage(output=2, cost={"total": 1.0})}}
    compaction = {
        "type": "compaction_end",
        "reason": "threshold",
        "result": {"usage": usage(input=5, cost={"total": 2.0})},
    }
    events = feed(tracker, START, answer("toolUse", input=1, cost={"total": 0.5}), nested, compaction, SETTLED)
    assert events[1:] == [Compacted("threshold"), RunSettled(usage=Usage(6, 2, cost=3.5))]


def test_a_compaction_that_failed_is_none() -> None:
    assert feed(RunTracker(), {"type": "compaction_end", "reason": "overflow", "errorMessage": "no"}) == []


@pytest.mark.parametrize(
    ("raw", "cost"),
    [
        (usage(), 0.0),
        (usage(input=3), None),
        (usage(input=3, cost={"total": 0.1}), 0.1),
        (usage(cacheRead=1), None),
        (None, 0.0),
    ],
)
def test_tokens_without_a_price_have_an_unknown_cost(raw: Any, cost: float | None) -> None:
    assert usage_of(raw).cost == cost


def test_the_exit_code_of_a_tool_is_taken_from_the_wire() -> None:
    start = {"type": "tool_execution_start", "toolCallId": "c", "toolName": "bash", "args": {"command": "a\n  b"}}
    end = {"type": "tool_execution_end", "toolCallId": "c", "toolName": "bash", "isError": True}
    code = {**end, "result": {"structuredContent": {"exit_code": 7}}}
    assert feed(RunTracker(), start, end, code) == [
        ToolStarted("c", "bash", "a b"),
        ToolEnded("c", "bash", True, None),
        ToolEnded("c", "bash", True, 7),
    ]


def test_a_failing_extension_is_a_notice() -> None:
    (notice,) = feed(RunTracker(), {"type": "extension_error", "extensionPath": "x.ts", "event": "e", "error": "boom"})
    assert isinstance(notice, WorkerNotice) and "boom" in notice.text and notice.level == "warning"


def test_a_question_is_told_from_a_decoration() -> None:
    assert question_of({"method": "select", "title": "Which?", "options": ["a", "b"]}) == "Which? (a, b)"
    assert question_of({"method": "input"}) == "a question without a text"
    assert question_of({"method": "setStatus", "statusText": "x"}) is None


def test_a_summary_is_one_short_line() -> None:
    assert summary_of({"path": "a.py", "edits": ["x" * 5000]}) == "a.py"
    assert summary_of({"command": "x" * 5000}).endswith("…")
    assert len(summary_of({"other": "y" * 5000})) == 200
    assert summary_of({}) == ""


@pytest.mark.parametrize("record", [{"type": "message_end"}, {"type": "auto_retry_start"}, {"type": "new_in_pi_2"}])
def test_records_with_missing_fields_or_of_unknown_types_are_tolerated(record: dict[str, Any]) -> None:
    feed(RunTracker(), record)
