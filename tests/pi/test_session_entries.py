from __future__ import annotations

from typing import Any

import pytest

from goalkeeper.evidence.transcript import Entry
from goalkeeper.pi.session_entries import Line, read_line


def message(role: str, **fields: Any) -> dict[str, Any]:
    inner = {"role": role, "timestamp": 1733234401000, **fields}
    return {"type": "message", "id": "e1", "parentId": "e0", "timestamp": "2024-12-03T14:00:01.000Z", "message": inner}


def entry(raw: dict[str, Any]) -> Entry:
    read = read_line(raw).entry
    assert read is not None
    return read


def test_user_text_is_shown_without_images() -> None:
    blocks = [{"type": "text", "text": "look"}, {"type": "image", "data": "AAAA"}, {"type": "text", "text": "here"}]
    assert entry(message("user", content=blocks)) == Entry("e1", "user", 1733234401000, "look\nhere")
    assert entry(message("user", content="plain")).text == "plain"


def test_an_assistant_keeps_text_and_calls_and_loses_its_thinking() -> None:
    blocks = [
        {"type": "thinking", "thinking": "secret"},
        {"type": "text", "text": "Run it."},
        {"type": "toolCall", "id": "c1", "name": "bash", "arguments": {"command": "ls", "timeout": 5}},
        {"type": "toolCall", "id": "c2", "name": "edit", "arguments": {"path": "a.py"}},
        {"type": "toolCall", "id": "c3", "name": "read", "arguments": {"path": "b.py"}},
    ]
    read = entry(message("assistant", content=blocks, stopReason="error", errorMessage="401", usage={"input": 1}))
    assert read.text == "Run it."
    assert [(c.call_id, c.command, c.path) for c in read.calls] == [
        ("c1", "ls", None),
        ("c2", None, "a.py"),
        ("c3", None, None),
    ]
    assert read.calls[0].arguments == '{"command": "ls", "timeout": 5}'
    assert (read.stop_reason, read.error_message) == ("error", "401")


def test_a_tool_result_keeps_its_flag_and_loses_its_details() -> None:
    raw = message(
        "toolResult", toolCallId="c1", toolName="bash", content=[{"type": "text", "text": "no"}], isError=True
    )
    raw["message"]["details"] = {"diff": "hidden"}
    read = entry(raw)
    assert (read.kind, read.text, read.call_id, read.tool_name, read.is_error) == (
        "tool_result",
        "no",
        "c1",
        "bash",
        True,
    )
    assert not read.truncated


CUT_BY_LINES = "x\n\n[Showing lines 10-2010 of 4000. Full output: /tmp/pi-bash-1.log]"


@pytest.mark.parametrize(
    ("details", "text", "cut"),
    [
        ({"truncation": {"truncated": True}}, "x", True),
        ({"truncation": {"truncated": False}}, "x", False),
        (None, CUT_BY_LINES, True),
        (None, CUT_BY_LINES + "\n\nCommand exited with code 1", True),
        (None, "x [Showing last 50KB of line 1. Full output: /tmp/p.log]", True),
        (None, "grep: [Showing lines 1-2 of 9]\n" + "y" * 100, False),
        (None, "done [1/1]", False),
    ],
)
def test_an_output_that_pi_cut_is_marked(details: Any, text: str, cut: bool) -> None:
    raw = message(
        "toolResult", toolCallId="c", toolName="bash", content=[{"type": "text", "text": text}], details=details
    )
    assert entry(raw).truncated is cut


def test_tools_that_a_tool_called_are_kept_unless_they_failed() -> None:
    calls = [{"id": "1", "name": "edit", "status": "ok"}, {"id": "2", "name": "write", "status": "error"}]
    raw = message(
        "toolResult", toolCallId="c", toolName="codemode", content=[], nestedCalls={"calls": calls, "complete": True}
    )
    assert entry(raw).nested_tools == ("edit",)


def test_a_direct_shell_execution_keeps_all_that_is_known_of_it() -> None:
    raw = message("bashExecution", command="ls", output="a\n", exitCode=3, cancelled=False, truncated=True)
    read = entry(raw)
    assert (read.kind, read.command, read.text, read.exit_code) == ("shell", "ls", "a\n", 3)
    assert (read.cancelled, read.truncated, read.excluded) == (False, True, False)
    raw = message("bashExecution", command="ls", output="", cancelled=True, truncated=False, excludeFromContext=True)
    read = entry(raw)
    assert (read.exit_code, read.cancelled, read.excluded) == (None, True, True)


@pytest.mark.parametrize(
    ("raw", "kind", "text"),
    [
        ({"type": "compaction", "summary": "S", "systemMessage": {"content": "no"}}, "summary", "S"),
        ({"type": "branch_summary", "summary": "S", "fromId": "x"}, "summary", "S"),
        ({"type": "custom_message", "content": [{"type": "text", "text": "C"}], "display": False}, "extension", "C"),
        (message("custom", content="C"), "extension", "C"),
        (message("hookMessage", content="H"), "extension", "H"),
    ],
)
def test_what_models_and_extensions_wrote_is_marked_as_such(raw: dict[str, Any], kind: str, text: str) -> None:
    read = entry({"id": "e1", "parentId": None, "timestamp": "2024-12-03T14:00:01.000Z", **raw})
    assert (read.kind, read.text) == (kind, text)


@pytest.mark.parametrize(
    "raw",
    [
        message("system", content="", sections={"a": "b"}),
        message("from_the_future", content="x"),
        {"type": "model_change", "id": "e1", "parentId": "e0"},
        {"type": "label", "id": "e1", "parentId": "e0", "targetId": "e0", "label": "x"},
        {"type": "usage", "id": "e1", "parentId": "e0", "usage": {}},
        {"type": "brand_new", "id": "e1", "parentId": "e0", "message": "text"},
        {"type": "message", "id": "e1", "parentId": "e0", "message": None},
    ],
)
def test_what_is_not_shown_still_is_a_place_on_its_branch(raw: dict[str, Any]) -> None:
    assert read_line(raw) == Line("e1", "e0")


def test_a_context_edit_names_its_target_whatever_it_puts_there() -> None:
    for replacement in (None, "other text"):
        raw = {"type": "context_edit", "id": "e2", "parentId": "e1", "targetId": "e0", "replacement": replacement}
        assert read_line(raw) == Line("e2", "e1", None, "e0")


def test_a_time_that_is_missing_or_strange_is_no_reason_to_fail() -> None:
    assert entry({"type": "compaction", "id": "a", "parentId": None, "summary": "S", "timestamp": "soon"}).at == 0
    raw = {"type": "compaction", "id": "a", "parentId": None, "summary": "S", "timestamp": "2024-12-03T14:00:01.000Z"}
    assert entry(raw).at == 1733234401000
