"""The demo's worker: it fixes the bug, claims to be done without a test run, and runs the tests when told to.

Knows nothing of the model server. It keeps no state: every answer follows from the conversation in the request, so a
demo that was killed at any moment goes on from its session and still ends with a test run that passes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from goalkeeper.testing.demo_repo import BUG, BUGGY_FILE, COMMAND, FIX
from goalkeeper.testing.model_steps import Calls, RecordedRequest, Step, Text, ToolUse, bash, text_of

CLAIM = "I fixed the sign of withdrawals in ledger/balance.py. The goal is done."
REPORT = f"`{COMMAND}` passes now."
GIVING_UP = f"`{COMMAND}` still fails although the known bug is fixed; I can't go on."

MAX_TEST_RUNS = 2
"""In one run; a failure that a second reading of the file does not explain is not ours to fix."""

READ = Calls(ToolUse("read", {"path": BUGGY_FILE}), text="Let me look at the code that fails.")
EDIT = Calls(
    ToolUse("edit", {"path": BUGGY_FILE, "edits": [{"oldText": BUG, "newText": FIX}]}),
    text="A withdrawal is added instead of subtracted.",
)
TEST = bash(COMMAND, text="Now the tests.")


def demo_worker(request: RecordedRequest) -> Step:
    """Return the worker's next step for the conversation as it stands."""
    messages = request.messages
    last = messages[-1] if messages else {}
    claimed = any(CLAIM in text_of(m) for m in messages if m.get("role") == "assistant")
    if last.get("role") != "tool":
        return TEST if claimed else READ
    name, arguments = _call(messages, str(last.get("tool_call_id", "")))
    output = text_of(last)
    if name == "bash" and arguments.get("command") == COMMAND:
        return _after_tests(messages, output)
    if name == "read":
        return EDIT if BUG in output else _after_fix(claimed)
    if name == "edit" and "Success" in output:
        return _after_fix(claimed)
    return READ


def _after_fix(claimed: bool) -> Step:
    return TEST if claimed else Text(CLAIM)


def _after_tests(messages: Sequence[Mapping[str, Any]], output: str) -> Step:
    if "OK" in output and "Command " not in output:  # pi adds "Command exited with code N", "Command aborted"
        return Text(REPORT)
    return Text(GIVING_UP) if _test_runs(messages) >= MAX_TEST_RUNS else READ


def _test_runs(messages: Sequence[Mapping[str, Any]]) -> int:
    """Count the test runs since the last user message."""
    count = 0
    for message in reversed(messages):
        if message.get("role") == "user":
            break
        count += sum(1 for _, _, arguments in _calls(message) if arguments.get("command") == COMMAND)
    return count


def _call(messages: Sequence[Mapping[str, Any]], call_id: str) -> tuple[str, dict[str, Any]]:
    """Return the name and the arguments of a call; both empty when it is not in the conversation."""
    for message in reversed(messages):
        for identifier, name, arguments in _calls(message):
            if identifier == call_id:
                return name, arguments
    return "", {}


def _calls(message: Mapping[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    return [
        (call["id"], call["function"]["name"], json.loads(call["function"]["arguments"] or "{}"))
        for call in message.get("tool_calls") or ()
    ]
