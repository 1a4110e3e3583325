"""What a session says about the last message after a crash."""

from __future__ import annotations

import pytest

from goalkeeper.core.state import Sent
from goalkeeper.evidence.transcript import Entry, ToolCall, Transcript
from goalkeeper.runtime.recovery import trace_run

SENT = Sent("it works", "before", 1, at=100)


def user(text: str, at: int = 101) -> Entry:
    return Entry("u", "user", at, text)


def answer(stop: str, *calls: ToolCall) -> Entry:
    return Entry("a", "assistant", 102, "text", calls=calls, stop_reason=stop)


CALL = answer("toolUse", ToolCall("c", "bash", "{}", "ls"))
RESULT = Entry("r", "tool_result", 103, "out", tool_name="bash", call_id="c", command="ls")
BEFORE = Entry("before", "assistant", 90, "old", stop_reason="stop")


@pytest.mark.parametrize(
    ("entries", "run"),
    [
        ((), "not_sent"),
        ((BEFORE,), "not_sent"),
        ((user("it works", 80), BEFORE), "not_sent"),
        ((BEFORE, user("something else")), "not_sent"),
        ((BEFORE, user("it works")), "interrupted"),
        ((BEFORE, user(" it works")), "interrupted"),
        ((BEFORE, user("it works"), CALL), "interrupted"),
        ((BEFORE, user("it works"), CALL, RESULT), "interrupted"),
        ((BEFORE, user("it works"), CALL, RESULT, answer("aborted")), "interrupted"),
        ((BEFORE, user("it works"), answer("error")), "interrupted"),
        ((BEFORE, user("it works"), answer("stop")), "finished"),
        ((BEFORE, user("it works"), CALL, RESULT, answer("length")), "finished"),
        ((user("it works", 80), answer("stop"), BEFORE, user("it works"), CALL), "interrupted"),
        ((BEFORE, user("it works"), answer("stop", *CALL.calls)), "interrupted"),
        ((BEFORE, user("it works"), answer("stop"), user("it works")), "interrupted"),
    ],
)
def test_the_session_tells_what_became_of_the_message(entries: tuple[Entry, ...], run: str) -> None:
    assert trace_run(Transcript(entries), SENT).run == run


def test_an_older_message_of_the_same_words_is_not_taken_for_this_one() -> None:
    """The leaf can be an entry that no transcript shows, such as a model change: then the time tells."""
    old = (user("it works", 50), Entry("a", "assistant", 51, "old", stop_reason="stop"))
    assert trace_run(Transcript(old), Sent("it works", "a model change", 1, at=100)).run == "not_sent"


@pytest.mark.parametrize(
    ("entries", "run"),
    [
        ((CALL, RESULT), "interrupted"),
        ((RESULT, answer("stop")), "finished"),
        ((BEFORE, RESULT), "not_sent"),
        ((user("something else", 80), RESULT), "not_sent"),
    ],
)
def test_a_run_that_is_longer_than_what_was_read_was_sent_all_the_same(entries: tuple[Entry, ...], run: str) -> None:
    """Else the message would be sent a second time, and a run that ended would not be counted."""
    assert trace_run(Transcript(entries, earlier=7), SENT).run == run


def test_a_session_of_which_nothing_can_be_read_does_not_hold_the_message() -> None:
    assert trace_run(Transcript((), earlier=7), SENT).run == "not_sent"


def test_nothing_was_sent_when_nothing_was_stored() -> None:
    assert trace_run(Transcript((user("it works"),)), None).run == "not_sent"


def test_the_digest_is_of_that_run_alone() -> None:
    with_result = trace_run(Transcript((BEFORE, user("it works"), CALL, RESULT, answer("stop"))), SENT)
    without = trace_run(Transcript((RESULT, BEFORE, user("it works"), answer("stop"))), SENT)
    assert with_result.digest
    assert without.digest == ""
