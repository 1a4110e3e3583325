"""pi's session events, from the wire to what a worker reports: runs, tools, retries, compactions, usage.

Knows nothing of processes or queues: one event in, the worker events that follow from it out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from goalkeeper.core.limits import Usage
from goalkeeper.pi.rpc_protocol import PeerEvent
from goalkeeper.ports import (
    Compacted,
    RetryScheduled,
    RunSettled,
    RunStarted,
    ToolEnded,
    ToolStarted,
    WorkerEvent,
    WorkerNotice,
)

DIALOGS = ("select", "confirm", "input", "editor")
_SUMMARY_LENGTH = 200


class RunTracker:
    """Follows the runs of one pi.

    Attributes:
        busy: a run is under way: pi has started and not settled.
    """

    def __init__(self) -> None:
        self.busy = False
        self._usage = Usage()
        self._error: str | None = None
        self._abort_asked = False

    def expect_abort(self) -> None:
        """Note that the run under way is being aborted."""
        self._abort_asked = self.busy

    def feed(self, event: PeerEvent) -> list[WorkerEvent]:
        """Return what follows from one event of pi; nothing for those that only repeat or decorate."""
        handler = _HANDLERS.get(event.type)
        return handler(self, event.body) if handler is not None else []

    def _started(self, _: Mapping[str, Any]) -> list[WorkerEvent]:
        # Retries, overflow recovery and queued messages start the agent again inside one run.
        if self.busy:
            return []
        self.busy = True
        return [RunStarted()]

    def _message_ended(self, body: Mapping[str, Any]) -> list[WorkerEvent]:
        message = body.get("message")
        if not isinstance(message, dict):
            return []
        self._usage = self._usage.plus(usage_of(message.get("usage")))
        if message.get("role") == "assistant":
            # `agent_settled` says "aborted" at most: whether the run died is in its last answer.
            self._error = _error_of(message)
        return []

    def _tool_started(self, body: Mapping[str, Any]) -> list[WorkerEvent]:
        name = str(body.get("toolName") or "")
        return [ToolStarted(str(body.get("toolCallId") or ""), name, summary_of(body.get("args")))]

    def _tool_ended(self, body: Mapping[str, Any]) -> list[WorkerEvent]:
        result = body.get("result")
        structured = result.get("structuredContent") if isinstance(result, dict) else None
        code = structured.get("exit_code") if isinstance(structured, dict) else None
        name = str(body.get("toolName") or "")
        exit_code = code if isinstance(code, int) and not isinstance(code, bool) else None
        return [ToolEnded(str(body.get("toolCallId") or ""), name, body.get("isError") is True, exit_code)]

    def _settled(self, body: Mapping[str, Any]) -> list[WorkerEvent]:
        # Before pi 1.1 the record does not say it, and the last answer calls an abort an error.
        aborted = body.get("aborted", self._abort_asked) is True
        settled = RunSettled(aborted, None if aborted else self._error, self._usage)
        self.busy, self._usage, self._error, self._abort_asked = False, Usage(), None, False
        return [settled]

    def _compacted(self, body: Mapping[str, Any]) -> list[WorkerEvent]:
        result = body.get("result")
        if not isinstance(result, dict):
            return []
        self._usage = self._usage.plus(usage_of(result.get("usage")))
        return [Compacted(str(body.get("reason") or ""))]

    def _retry(self, body: Mapping[str, Any]) -> list[WorkerEvent]:
        attempt, delay = body.get("attempt"), body.get("delayMs")
        return [
            RetryScheduled(
                attempt if isinstance(attempt, int) else 1,
                delay / 1000 if isinstance(delay, int | float) else 0.0,
                str(body.get("errorMessage") or ""),
            )
        ]

    def _interface(self, body: Mapping[str, Any]) -> list[WorkerEvent]:
        if body.get("method") != "notify":
            return []
        level = body.get("notifyType")
        text = str(body.get("message") or "")
        if level == "error":
            return [WorkerNotice(text, "error")]
        return [WorkerNotice(text, "warning" if level == "warning" else "info")]

    def _extension_failed(self, body: Mapping[str, Any]) -> list[WorkerEvent]:
        where = f"{body.get('extensionPath')}, {body.get('event')}"
        return [WorkerNotice(f"An extension of pi failed ({where}): {body.get('error')}", "warning")]


_HANDLERS = {
    "agent_start": RunTracker._started,
    "message_end": RunTracker._message_ended,
    "tool_execution_start": RunTracker._tool_started,
    "tool_execution_end": RunTracker._tool_ended,
    "agent_settled": RunTracker._settled,
    "compaction_end": RunTracker._compacted,
    "auto_retry_start": RunTracker._retry,
    "extension_ui_request": RunTracker._interface,
    "extension_error": RunTracker._extension_failed,
}


def usage_of(raw: Any) -> Usage:
    """Return pi's usage record as ours; nothing at all is no usage.

    pi reports a price of 0 for a model that it knows no prices of, so tokens that cost nothing have an unknown cost.
    """
    if not isinstance(raw, dict):
        return Usage()
    read, written = _count(raw.get("input")), _count(raw.get("output"))
    cached, stored = _count(raw.get("cacheRead")), _count(raw.get("cacheWrite"))
    prices = raw.get("cost")
    total = prices.get("total") if isinstance(prices, dict) else None
    cost = float(total) if isinstance(total, int | float) else 0.0
    unknown = cost == 0 and any((read, written, cached, stored))
    return Usage(read, written, cached, stored, cost=None if unknown else cost)


def _count(value: Any) -> int:
    return int(value) if isinstance(value, int | float) else 0


def _error_of(message: Mapping[str, Any]) -> str | None:
    reason = message.get("stopReason")
    if reason == "error":
        return str(message.get("errorMessage") or "The provider answered with an error.")
    return None  # "length" too is a normal end for pi: the run settles, and the evaluator sees what there is


def summary_of(arguments: Any) -> str:
    """Return a call's command, path or arguments in one line, for a person."""
    values = arguments if isinstance(arguments, dict) else {}
    for name in ("command", "path", "file_path", "pattern"):
        if isinstance(values.get(name), str):
            text = values[name]
            break
    else:
        text = json.dumps(arguments, ensure_ascii=False) if arguments else ""
    line = " ".join(text[: _SUMMARY_LENGTH * 4].split())
    return line if len(line) <= _SUMMARY_LENGTH else line[: _SUMMARY_LENGTH - 1] + "…"


def question_of(body: Mapping[str, Any]) -> str | None:
    """Return what a dialog of an extension asks, None if the record is no dialog."""
    if body.get("method") not in DIALOGS:
        return None
    parts = [str(body[name]) for name in ("title", "message") if body.get(name)]
    options = body.get("options")
    if isinstance(options, list) and options:
        parts.append(f"({', '.join(str(option) for option in options)})")
    return " ".join(parts) or "a question without a text"
