"""The bytes of the OpenAI chat-completions protocol: answers as one body or as server-sent events.

Knows nothing of sockets, scripts or who asked.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from goalkeeper.testing.model_steps import Calls, EmptyAnswer, Length, RecordedRequest, Text, Tokens, ToolUse

Complete = Text | Calls | EmptyAnswer | Length

CHARACTERS_PER_TOKEN = 4
"""Only for estimated usage; close enough that compaction thresholds behave as with a real model."""


def completion(step: Complete, request: RecordedRequest) -> dict[str, Any]:
    """Return the body of an answer that is not streamed."""
    message: dict[str, Any] = {"role": "assistant", "content": _text(step)}
    if _thinking(step):
        message["reasoning_content"] = _thinking(step)
    if _uses(step):
        message["tool_calls"] = [_call(request, at, use) for at, use in enumerate(_uses(step))]
    return {
        **_head(request),
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": _finish(step)}],
        "usage": usage(step, request),
    }


def events(step: Complete, request: RecordedRequest) -> Iterator[bytes]:
    """Yield the server-sent events of a whole streamed answer."""
    yield delta(request, {"role": "assistant", "content": ""})
    if _thinking(step):
        yield delta(request, {"reasoning_content": _thinking(step)})
    if _text(step):
        yield delta(request, {"content": _text(step)})
    for at, use in enumerate(_uses(step)):
        yield delta(request, {"tool_calls": [{"index": at, **_call(request, at, use)}]})
    yield delta(request, {}, finish=_finish(step))
    yield event({**_head(request), "object": "chat.completion.chunk", "choices": [], "usage": usage(step, request)})
    yield b"data: [DONE]\n\n"


def delta(request: RecordedRequest, change: Mapping[str, Any], *, finish: str | None = None) -> bytes:
    """Return one event that adds to the answer."""
    choice = {"index": 0, "delta": dict(change), "finish_reason": finish}
    return event({**_head(request), "object": "chat.completion.chunk", "choices": [choice]})


def event(data: Mapping[str, Any]) -> bytes:
    """Return one server-sent event."""
    return b"data: " + json.dumps(data).encode() + b"\n\n"


def error_body(status: int, message: str) -> bytes:
    """Return the body of an error answer."""
    return json.dumps({"error": {"message": message, "type": "scripted", "code": status}}).encode()


def usage(step: Complete, request: RecordedRequest) -> dict[str, Any]:
    """Return the usage block: what the step claims, or an estimate from the sizes."""
    claimed = step.usage if isinstance(step, Text | Calls) else None
    tokens = claimed or Tokens(
        prompt=1 + len(json.dumps(request.messages)) // CHARACTERS_PER_TOKEN,
        completion=1 + len(_text(step)) // CHARACTERS_PER_TOKEN,
    )
    return {
        "prompt_tokens": tokens.prompt,
        "completion_tokens": tokens.completion,
        "total_tokens": tokens.prompt + tokens.completion,
        "prompt_tokens_details": {"cached_tokens": tokens.cached},
    }


def _head(request: RecordedRequest) -> dict[str, Any]:
    return {"id": f"chatcmpl-{request.kind}-{request.index}", "created": 0, "model": "scripted"}


def _call(request: RecordedRequest, at: int, use: ToolUse) -> dict[str, Any]:
    arguments = use.arguments if isinstance(use.arguments, str) else json.dumps(use.arguments)
    # The number of messages makes the id unique in its session, also when a restarted model counts from 0 again.
    identifier = f"call_{len(request.messages)}_{request.index}_{at}"
    return {"id": identifier, "type": "function", "function": {"name": use.name, "arguments": arguments}}


def _text(step: Complete) -> str:
    return "" if isinstance(step, EmptyAnswer) else step.text


def _thinking(step: Complete) -> str:
    return step.thinking if isinstance(step, Text | Calls) else ""


def _uses(step: Complete) -> tuple[ToolUse, ...]:
    return step.uses if isinstance(step, Calls | Length) else ()


def _finish(step: Complete) -> str:
    if isinstance(step, Length):
        return "length"
    return "tool_calls" if isinstance(step, Calls) else "stop"
