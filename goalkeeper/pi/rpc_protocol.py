"""pi's RPC protocol without a process: bytes in, messages out; requests get ids, answers find their request.

Knows nothing of asyncio, of runs, or of what the events mean.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from goalkeeper.pi.jsonl import DEFAULT_MAXIMUM, Overlong, RecordSplitter, decode

# These arrive many times a second, up to megabytes each, or repeat at an end what other records said.
REPEATING_EVENTS = (
    "message_update",
    "tool_execution_update",
    "bash_execution_update",
    "message_start",
    "turn_end",
    "agent_end",
)
_SHOWN_OF_MALFORMED = 200


@dataclass(frozen=True, slots=True)
class Answer:
    """pi's answer to one request.

    Attributes:
        id: the request's id.
        success: pi did what was asked.
        data: what it returned, None if nothing.
        error: its words when it did not.
    """

    id: str
    success: bool
    data: Any = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class PeerEvent:
    """A record that answers nothing: an event of the session, or a question of an extension.

    Attributes:
        type: pi's name of it.
        body: the whole record.
    """

    type: str
    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Malformed:
    """A record that can't be used. It is reported, and the stream goes on.

    Attributes:
        reason: one sentence.
        head: the beginning of the record, for a person.
    """

    reason: str
    head: str


Message = Answer | PeerEvent | Malformed


class RpcProtocol:
    """The client's half of one conversation.

    Args:
        skip: event types that are dropped by their first bytes, without parsing them.
        maximum: longest record in bytes.
    """

    def __init__(self, skip: Iterable[str] = REPEATING_EVENTS, maximum: int = DEFAULT_MAXIMUM) -> None:
        self._splitter = RecordSplitter(maximum)
        self._skip = tuple(f'{{"type":"{name}"'.encode() for name in skip)
        self._last_id = 0
        self._open: set[str] = set()

    def request(self, command: str, fields: dict[str, Any]) -> tuple[str, bytes]:
        """Return a fresh id and the bytes that ask pi for `command`."""
        self._last_id += 1
        request_id = f"g{self._last_id}"
        self._open.add(request_id)
        return request_id, encode({"id": request_id, "type": command, **fields})

    def forget(self, request_id: str) -> None:
        """Stop waiting for an answer; if it comes after all it is malformed."""
        self._open.discard(request_id)

    def receive(self, data: bytes) -> list[Message]:
        """Return the messages that `data` completes, in order."""
        messages: list[Message] = []
        for record in self._splitter.feed(data):
            message = self._read(record)
            if message is not None:
                messages.append(message)
        return messages

    def _read(self, record: bytes | Overlong) -> Message | None:
        if isinstance(record, Overlong):
            if record.head.startswith(self._skip):
                return None
            head = decode(record.head[:_SHOWN_OF_MALFORMED])
            return Malformed(f"a record of {record.length} bytes is too long", head)
        if record.startswith(self._skip) or _is_silent_end(record):
            return None
        head = decode(record[:_SHOWN_OF_MALFORMED])
        try:
            body = json.loads(decode(record))
        except (ValueError, RecursionError) as error:
            return Malformed(f"a record is not JSON: {error}", head)
        if not isinstance(body, dict) or not isinstance(body.get("type"), str):
            return Malformed("a record is not an object with a type", head)
        if body["type"] == "response":
            return self._answer(body, head)
        return PeerEvent(body["type"], body)

    def _answer(self, body: dict[str, Any], head: str) -> Message:
        request_id = body.get("id")
        if not isinstance(request_id, str) or request_id not in self._open:
            return Malformed(f"an answer without a request: {body.get('error') or body.get('command')}", head)
        self._open.discard(request_id)
        return Answer(request_id, body.get("success") is True, body.get("data"), str(body.get("error") or ""))


def encode(record: dict[str, Any]) -> bytes:
    """Return one record as bytes, LF included. Lone surrogates survive as JSON escapes."""
    return json.dumps(record, separators=(",", ":")).encode("ascii") + b"\n"


_END_OF_ANSWER = b'{"type":"message_end","message":{"role":"assistant"'


def _is_silent_end(record: bytes) -> bool:
    """Say whether a `message_end` tells nothing: only an assistant's end and nested usage matter to a controller."""
    if not record.startswith(b'{"type":"message_end"'):
        return False
    return not record.startswith(_END_OF_ANSWER) and b'"usage":{' not in record
