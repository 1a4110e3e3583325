"""pi's session entries, from their JSON to the worker-neutral entries that evidence is made of.

Knows nothing of files or branches: one JSON object in, one `Line` out. Unknown types and roles are tolerated.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from goalkeeper.evidence.transcript import Entry, ToolCall

_CHANGES_FILES = ("edit", "write")
# pi ends a cut output with one of these; the details that say the same are not in every version and tool.
_CUT_MARK = re.compile(r"\[(?:Showing (?:lines|last)\b|.*Full output: )[^\n]*\]\s*(?:Command [^\n]*\s*)?$")


@dataclass(frozen=True, slots=True)
class Line:
    """What a reader needs of one line of a session file.

    Attributes:
        id: the entry's id.
        parent: the id of the entry before it on its branch, None for a root.
        entry: what is shown of it, None for labels, model changes, system messages and the like.
        edits: the id of the entry whose place in the model's context it edits, else None.
    """

    id: str
    parent: str | None
    entry: Entry | None = None
    edits: str | None = None


def read_line(raw: Mapping[str, Any], *, line_id: str | None = None, parent: str | None = None) -> Line:
    """Read one session entry.

    Args:
        raw: the line's JSON object.
        line_id: id to use when the entry has none (session version 1).
        parent: parent to use when the entry names none (session version 1).
    """
    own = raw.get("id")
    entry_id = own if isinstance(own, str) and own else (line_id or "")
    named = raw.get("parentId", parent)
    above = named if isinstance(named, str) else None
    target = raw.get("targetId") if raw.get("type") == "context_edit" else None
    edits = target if isinstance(target, str) else None
    return Line(entry_id, above, _entry(raw, entry_id), edits)


def unreadable(entry_id: str, parent: str | None) -> Line:
    """Return the line for an entry that is too large or too strange to read."""
    return Line(entry_id, parent, Entry(entry_id, "unreadable", 0, ""))


def _entry(raw: Mapping[str, Any], entry_id: str) -> Entry | None:
    at = _milliseconds(raw)
    kind = raw.get("type")
    if kind in ("compaction", "branch_summary"):
        return Entry(entry_id, "summary", at, _text(raw.get("summary")))
    if kind == "custom_message":
        return Entry(entry_id, "extension", at, _text(raw.get("content")))
    message = raw.get("message")
    if kind != "message" or not isinstance(message, dict):
        return None
    role = message.get("role")
    if role == "user":
        return Entry(entry_id, "user", at, _text(message.get("content")))
    if role == "assistant":
        return _assistant(message, entry_id, at)
    if role == "toolResult":
        return _tool_result(message, entry_id, at)
    if role == "bashExecution":
        return _shell(message, entry_id, at)
    if role in ("custom", "hookMessage"):
        return Entry(entry_id, "extension", at, _text(message.get("content")))
    if role in ("compactionSummary", "branchSummary"):
        return Entry(entry_id, "summary", at, _text(message.get("summary")))
    return None


def _assistant(message: Mapping[str, Any], entry_id: str, at: int) -> Entry:
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    return Entry(
        entry_id,
        "assistant",
        at,
        _text(content),
        calls=tuple(_call(block) for block in blocks if isinstance(block, dict) and block.get("type") == "toolCall"),
        stop_reason=_string(message.get("stopReason")),
        error_message=_string(message.get("errorMessage")),
    )


def _call(block: Mapping[str, Any]) -> ToolCall:
    name = str(block.get("name") or "")
    arguments = block.get("arguments")
    values = arguments if isinstance(arguments, dict) else {}
    path = values.get("path", values.get("file_path")) if name in _CHANGES_FILES else None
    return ToolCall(
        str(block.get("id") or ""),
        name,
        json.dumps(arguments, ensure_ascii=False) if arguments is not None else "{}",
        command=_string(values.get("command")) if name == "bash" else None,
        path=_string(path),
    )


def _tool_result(message: Mapping[str, Any], entry_id: str, at: int) -> Entry:
    text = _text(message.get("content"))
    return Entry(
        entry_id,
        "tool_result",
        at,
        text,
        tool_name=_string(message.get("toolName")),
        call_id=_string(message.get("toolCallId")),
        is_error=message.get("isError") is True,
        truncated=_cut(message.get("details"), text),
        nested_tools=_nested(message.get("nestedCalls")),
    )


def _nested(nested: Any) -> tuple[str, ...]:
    """Return the tools that a tool called by itself; "?" for calls that pi did not record."""
    if not isinstance(nested, dict):
        return ()
    calls = nested.get("calls")
    records = [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    names = tuple(str(call.get("name") or "") for call in records if call.get("status") != "error")
    return names if nested.get("complete") is not False else (*names, "?")


def _cut(details: Any, text: str) -> bool:
    truncation = details.get("truncation") if isinstance(details, dict) else None
    if isinstance(truncation, dict) and truncation.get("truncated") is True:
        return True
    return _CUT_MARK.search(text[-600:]) is not None


def _shell(message: Mapping[str, Any], entry_id: str, at: int) -> Entry:
    code = message.get("exitCode")
    return Entry(
        entry_id,
        "shell",
        at,
        _text(message.get("output")),
        command=_string(message.get("command")),
        exit_code=code if isinstance(code, int) and not isinstance(code, bool) else None,
        cancelled=message.get("cancelled") is True,
        truncated=message.get("truncated") is True,
        excluded=message.get("excludeFromContext") is True,
    )


def _text(content: Any) -> str:
    """Return the text of a message's content; thinking and images are left out."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = (block.get("text") for block in content if isinstance(block, dict) and block.get("type") == "text")
    return "\n".join(text for text in texts if isinstance(text, str))


def _string(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _milliseconds(raw: Mapping[str, Any]) -> int:
    """Return when the entry was made: the message's own time, else the line's."""
    message = raw.get("message")
    inner = message.get("timestamp") if isinstance(message, dict) else None
    if isinstance(inner, int | float):
        return int(inner)
    stamp = raw.get("timestamp")
    if isinstance(stamp, int | float):
        return int(stamp)
    try:
        return int(datetime.fromisoformat(str(stamp)).timestamp() * 1000)
    except ValueError:
        return 0
