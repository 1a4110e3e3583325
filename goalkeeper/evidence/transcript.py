"""Worker-neutral entries of one session branch, oldest first, each with its stable id.

Knows nothing of pi's file format, of goals, or of evaluators.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

EntryKind = Literal[
    "user",  # text of a person or of the controller
    "assistant",  # text and tool calls of the worker
    "tool_result",  # what a tool of the worker returned
    "shell",  # a direct shell execution: a person's `!cmd`, or a --check that the controller ran
    "summary",  # compaction or branch summary: written by a model about other entries
    "extension",  # a message that an extension put into the context
    "unreadable",  # an entry that is too large or too strange to read; only its id is known
]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call inside an assistant entry.

    Attributes:
        call_id: the id that joins the call and its result.
        name: the tool's name.
        arguments: the arguments as JSON text.
        command: the shell command of a `bash` call, else None.
        path: the file that an `edit` or `write` call names, else None.
    """

    call_id: str
    name: str
    arguments: str
    command: str | None = None
    path: str | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of the branch.

    Attributes:
        id: the session entry's id, unique within its session.
        kind: see `EntryKind`.
        at: when the entry was made, milliseconds since the epoch.
        text: the text as the session holds it (user, assistant, tool output, shell output, summary).
        calls: the tool calls of an assistant entry.
        stop_reason: pi's stop reason of an assistant entry ("stop", "toolUse", "length", "error", "aborted").
        error_message: the provider's error of an assistant entry whose stop reason is "error".
        tool_name: the tool that a tool result is of.
        call_id: the call that a tool result answers.
        call_entry: the id of the assistant entry that holds that call, None if it is not on the branch.
        command: the shell command behind a `bash` tool result or a shell execution.
        is_error: pi's error flag of a tool result.
        exit_code: exit code of a shell execution (tool results do not carry one in the file).
        cancelled: the shell execution was cancelled.
        truncated: pi cut the output before it stored it.
        excluded: a shell execution that is kept out of the model's context.
        nested_tools: of a tool result: the names of the tools that this tool called by itself and that did not fail;
            "?" stands for calls that pi did not record.
    """

    id: str
    kind: EntryKind
    at: int
    text: str
    calls: tuple[ToolCall, ...] = ()
    stop_reason: str | None = None
    error_message: str | None = None
    tool_name: str | None = None
    call_id: str | None = None
    call_entry: str | None = None
    command: str | None = None
    is_error: bool = False
    exit_code: int | None = None
    cancelled: bool = False
    truncated: bool = False
    excluded: bool = False
    nested_tools: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Transcript:
    """The newest part of one branch.

    Attributes:
        entries: oldest first, contiguous up to the leaf; labels, model changes and the like are left out.
        edited: ids of entries that a later context edit on this branch replaced or hid.
        earlier: how many entries of the branch come before `entries` (0: the whole branch is here).
        earlier_exact: False when `earlier` is an estimate from the file's size.
        leaf: id of the branch's last entry of any type, None for an empty session.
    """

    entries: tuple[Entry, ...]
    edited: frozenset[str] = frozenset()
    earlier: int = 0
    earlier_exact: bool = True
    leaf: str | None = None
