"""Writes pi session files (version 3) entry by entry, in the shapes that pi 1.6 writes, for cases that tests hold.

Knows nothing of how they are read or judged.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

START = 1_772_000_000_000
"""Milliseconds since the epoch of the first entry; each later one is a second later."""


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool call of an assistant message, with its result.

    Attributes:
        name: the tool.
        arguments: its arguments.
        output: the result's text; None for a call without a result.
        error: the result's error flag.
        nested: names of tools that this tool called by itself.
        truncated: pi cut the output before it stored it.
    """

    name: str
    arguments: Mapping[str, Any]
    output: str | None = "Done."
    error: bool = False
    nested: Sequence[str] = ()
    truncated: bool = False


def bash(command: str, output: str | None = "12 passed\n", *, error: bool = False, truncated: bool = False) -> Tool:
    """Return a call of the shell tool."""
    return Tool("bash", {"command": command}, output, error, truncated=truncated)


def edit(path: str = "ledger.py", *, error: bool = False, output: str | None = "Success.") -> Tool:
    """Return a call of the edit tool."""
    return Tool("edit", {"path": path, "edits": [{"oldText": "a", "newText": "b"}]}, output, error)


@dataclass(slots=True)
class SessionBuilder:
    """A session in the making; each method appends to the branch and returns the id of what it appended.

    Attributes:
        cwd: the folder in the header.
        leaf: the entry that the next one follows; set it to leave a branch.
    """

    cwd: str = "/project"
    leaf: str | None = None
    _lines: list[dict[str, Any]] = field(default_factory=list)

    def user(self, text: str) -> str:
        """Append a user message."""
        return self._message({"role": "user", "content": [{"type": "text", "text": text}]})

    def say(self, text: str, *, stop: str = "stop", error: str | None = None) -> str:
        """Append text of the assistant."""
        content = [{"type": "text", "text": text}] if text else []
        failed = {"errorMessage": error} if error else {}
        return self._message({"role": "assistant", "content": content, "stopReason": stop, **failed})

    def call(self, *tools: Tool) -> tuple[str, ...]:
        """Append one assistant message that calls tools, and their results; return the ids, the caller's first."""
        numbers = [f"call_{len(self._lines)}_{index}" for index in range(len(tools))]
        content = [
            {"type": "toolCall", "id": number, "name": tool.name, "arguments": dict(tool.arguments)}
            for number, tool in zip(numbers, tools, strict=True)
        ]
        ids = [self._message({"role": "assistant", "content": content, "stopReason": "toolUse"})]
        for number, tool in zip(numbers, tools, strict=True):
            if tool.output is not None:
                ids.append(self._result(number, tool))
        return tuple(ids)

    def run(self, tool: Tool) -> str:
        """Append a message with one call and its result; return the result's id."""
        return self.call(tool)[-1]

    def shell(
        self,
        command: str,
        output: str = "12 passed\n",
        *,
        exit_code: int | None = 0,
        cancelled: bool = False,
        excluded: bool = False,
    ) -> str:
        """Append a direct shell execution."""
        message: dict[str, Any] = {"role": "bashExecution", "command": command, "output": output}
        message |= {"cancelled": cancelled, "truncated": False}
        message |= {} if exit_code is None else {"exitCode": exit_code}
        return self._message(message | ({"excludeFromContext": True} if excluded else {}))

    def entry(self, kind: str, **fields: Any) -> str:
        """Append an entry of another type: compaction, branch_summary, custom_message, label, context_edit."""
        entry_id = f"{len(self._lines) + 0xE0000000:08x}"
        at = START + 1_000 * len(self._lines)
        stamp = {"timestamp": f"2026-02-25T06:{len(self._lines) // 60:02d}:{len(self._lines) % 60:02d}.000Z"}
        message = fields.get("message")
        if isinstance(message, dict):
            fields["message"] = {**message, "timestamp": at}
        self._lines.append({"type": kind, "id": entry_id, "parentId": self.leaf, **stamp, **fields})
        self.leaf = entry_id
        return entry_id

    def save(self, path: Path, *, tail: str = "") -> Path:
        """Write the file and return its path.

        Args:
            path: where.
            tail: raw text behind the last line, such as a torn one.
        """
        header = {"type": "session", "version": 3, "id": "0862e185-824b-777a-a360-fac9cc207725", "cwd": self.cwd}
        lines = [json.dumps(line, ensure_ascii=False) for line in [header, *self._lines]]
        path.write_text("\n".join(lines) + "\n" + tail, encoding="utf-8")
        return path

    def _result(self, number: str, tool: Tool) -> str:
        message: dict[str, Any] = {
            "role": "toolResult",
            "toolCallId": number,
            "toolName": tool.name,
            "content": [{"type": "text", "text": tool.output}],
            "isError": tool.error,
        }
        if tool.truncated:
            message["details"] = {"truncation": {"truncated": True}}
        if tool.nested:
            message["nestedCalls"] = {
                "calls": [{"name": name, "status": "ok"} for name in tool.nested],
                "complete": True,
            }
        return self._message(message)

    def _message(self, message: dict[str, Any]) -> str:
        return self.entry("message", message=message)
