"""Whatever an evaluator answers, only one whole verdict with sound citations counts; anything else pauses the goal."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from e2e.bad_input import ASKED, entries_of, paused, state_of

from goalkeeper.testing.judges import say_verdict
from goalkeeper.testing.model_steps import (
    CutStream,
    EmptyAnswer,
    Hang,
    Length,
    MalformedSse,
    Policy,
    RecordedRequest,
    Step,
    Text,
    bash,
    text_of,
)
from goalkeeper.testing.seen_window import SeenEntry, seen_entries

pytestmark = pytest.mark.real_pi


def met(evidence: Any, **fields: Any) -> str:
    """Return the JSON of a met with this as its evidence."""
    return json.dumps({"verdict": "met", "reason": "It is done.", "basis": "tool", "evidence": evidence} | fields)


def result(request: RecordedRequest) -> SeenEntry:
    """Return the newest result that the evaluator is shown."""
    return [entry for entry in seen_entries(request.text) if entry.is_result][-1]


def sound(request: RecordedRequest) -> str:
    """Return a verdict that would stand if it came alone and whole."""
    return met([result(request).id])


def assistant(request: RecordedRequest) -> Step:
    """Cite what the worker said as the proof of a file."""
    said = [entry.id for entry in seen_entries(request.text) if entry.role == "assistant text"]
    return Text(met([said[-1]]))


@dataclass(frozen=True)
class Bad:
    """A bad answer, and how the failure is named."""

    answer: Callable[[RecordedRequest], Step]
    kind: str
    words: str
    rules: tuple[str, ...] = ()


BAD = {
    "prose": Bad(
        lambda r: Text("Yes, everything passes, the goal is met."), "malformed", "prose without a JSON object"
    ),
    "two objects": Bad(lambda r: Text(sound(r) + "\n" + sound(r)), "malformed", "something follows the JSON object"),
    "a text where a list belongs": Bad(lambda r: Text(met(result(r).id)), "malformed", "`evidence` is"),
    "nothing": Bad(lambda r: EmptyAnswer(), "malformed", "it is empty"),
    "cut by length": Bad(lambda r: Length(sound(r)), "cut_off", "at its length limit"),
    "ended in an error": Bad(lambda r: MalformedSse(sound(r)), "provider_error", "provider failed"),
    "cut connection": Bad(lambda r: CutStream(sound(r)), "provider_error", "provider failed"),
    "an invented id": Bad(lambda r: Text(met(["deadbeef"])), "invalid_citation", "deadbeef", ("unknown_id",)),
    "nothing cited": Bad(lambda r: Text(met([])), "invalid_citation", "cites nothing", ("no_citation",)),
    "an assistant's word": Bad(assistant, "invalid_citation", "is the worker's own text", ("not_evidence",)),
}


@pytest.mark.parametrize("name", BAD)
def test_an_answer_that_is_no_sound_verdict_pauses_and_says_why(
    name: str, scripted_model: Any, agent_env: Any, run_goal: Any
) -> None:
    bad = BAD[name]
    model = scripted_model(worker=[bash("echo hi"), Text("The file is there.")], evaluator=bad.answer)
    goal = run_goal("the file is there", *ASKED, env=agent_env(model))

    paused(goal, "evaluator_failed", bad.words)
    failure = goal.last("evaluator_failed")
    assert failure["kind"] == bad.kind
    assert tuple(finding["rule"] for finding in failure["findings"]) == bad.rules
    assert len(model.of("evaluator")) == 1
    assert len(model.of("worker")) == 2  # nothing is sent after the pause
    stored = state_of(goal.last("session"))["goal"]
    assert stored["turns"] == 1
    assert "achieved" not in stored["pausedReason"]


def fenced(request: RecordedRequest) -> Step:
    return Text(f"Here is my verdict.\n\n```json\n{sound(request)}\n```\n")


def after_thinking(request: RecordedRequest) -> Step:
    return Text(f'<think>{{"verdict": "not_met"}} or not?</think>\n{sound(request)}')


@pytest.mark.parametrize("answer", [fenced, after_thinking])
def test_one_object_in_a_fence_or_after_thinking_is_read(
    answer: Policy, scripted_model: Any, agent_env: Any, run_goal: Any
) -> None:
    model = scripted_model(worker=[bash("echo hi"), Text("Done.")], evaluator=answer)
    goal = run_goal("the file is there", *ASKED, env=agent_env(model))

    assert goal.process.returncode == 0, goal.stderr
    assert goal.last("met")["reason"] == "It is done."


def test_an_entry_that_the_evaluator_was_not_shown_can_not_be_cited(
    scripted_model: Any, agent_env: Any, run_goal: Any, tmp_path: Path
) -> None:
    shown: list[list[str]] = []
    oldest: list[str] = []

    def worker(request: RecordedRequest) -> Step:
        if request.index < 8:
            return bash(f"echo {request.index}; head -c 5000 /dev/zero | tr '\\0' {request.index}")
        return Text("Done.")

    def cites_the_oldest(request: RecordedRequest) -> Step:
        (session,) = (tmp_path / "agent" / "sessions").rglob("*.jsonl")
        results = [e["id"] for e in entries_of(session) if (e.get("message") or {}).get("role") == "toolResult"]
        shown.append([entry.id for entry in seen_entries(request.text)])
        oldest.append(results[0])
        return Text(met([results[0], result(request).id]))

    model = scripted_model(worker=worker, evaluator=cites_the_oldest)
    goal = run_goal("the file is there", *ASKED, env=agent_env(model))

    assert oldest[0] not in shown[0]
    paused(goal, "evaluator_failed", oldest[0])
    assert [finding["rule"] for finding in goal.last("evaluator_failed")["findings"]] == ["unknown_id"]


def test_a_question_about_the_terms_that_fails_pauses_after_the_run(
    scripted_model: Any, agent_env: Any, run_goal: Any
) -> None:
    model = scripted_model(worker=[Text("Done.")], evaluator=say_verdict("met"), terms=Text("It is about files."))
    goal = run_goal("the file is there", "--evaluator", "pi", env=agent_env(model))

    paused(goal, "evaluator_failed", "does not settle the goal's terms", "prose without a JSON object")
    assert model.of("evaluator") == []


@pytest.mark.waits
def test_an_evaluator_that_hangs_is_given_up_after_a_minute(scripted_model: Any, agent_env: Any, run_goal: Any) -> None:
    model = scripted_model(worker=[bash("echo hi"), Text("Done.")], evaluator=Hang())
    goal = run_goal("the file is there", *ASKED, env=agent_env(model), timeout=100)

    paused(goal, "evaluator_failed", "did not answer within 60 s")
    assert goal.last("evaluator_failed")["kind"] == "timeout"
    asked = model.of("evaluator")
    assert len(asked) == 1
    assert asked[0].gone  # the pi that asked is gone


def test_an_emoji_on_every_cut_stays_whole_or_goes_away_whole(
    scripted_model: Any, agent_env: Any, run_goal: Any
) -> None:
    seen: list[str] = []

    def worker(request: RecordedRequest) -> Step:
        # Four lengths before the emojis, so that every cut falls on each of an emoji's four bytes in turn.
        if request.index < 4:
            return bash(f"printf 'x%.0s' $(seq 1 {request.index + 1}); yes 👩🏽‍🚀 | head -n 3000 | tr -d '\\n'")
        return Text("👩🏽‍🚀" * 3000)

    def judge(request: RecordedRequest) -> Step:
        seen.extend(text_of(message) for message in request.messages)
        return Text(met([]))

    model = scripted_model(worker=worker, evaluator=judge)
    goal = run_goal("it works 👩🏽‍🚀", *ASKED, env=agent_env(model))

    paused(goal, "evaluator_failed", "cites nothing")
    window = "".join(seen)
    assert "👩🏽‍🚀" in window
    assert "\ufffd" not in window
    window.encode("utf-8")  # no half of a surrogate pair
    assert len(window) < 24_000


def test_the_condition_itself_may_hold_anything_that_is_text(
    scripted_model: Any, agent_env: Any, run_goal: Any
) -> None:
    condition = "the file «ü» is there\u2028and \x1b[31mred\x1b[0m 👩🏽‍🚀"
    model = scripted_model(worker=[Text("Done.")], evaluator=say_verdict("not_met", "No\u2028file."))
    goal = run_goal(condition, *ASKED, "--max-runs", "1", env=agent_env(model))

    paused(goal, "max_runs")
    assert state_of(goal.last("session"))["goal"]["condition"] == condition
    assert goal.last("goal_set")["condition"] == condition
    texts = [text_of(m) for m in model.of("worker")[0].messages if m.get("role") == "user"]
    assert texts == [condition]
