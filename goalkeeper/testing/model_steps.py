"""What a scripted model may answer: one frozen dataclass per kind of answer, and the scripts made of them.

Knows nothing of sockets; `scripted_model.py` puts these on the wire.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

RequestKind = Literal["worker", "evaluator", "terms", "summary"]


@dataclass(frozen=True, slots=True)
class Tokens:
    """The usage that an answer claims.

    Attributes:
        prompt: prompt tokens, the cached ones included (as providers count them).
        completion: generated tokens.
        cached: prompt tokens read from a cache.
    """

    prompt: int
    completion: int
    cached: int = 0


@dataclass(frozen=True, slots=True)
class ToolUse:
    """One tool call of an answer.

    Attributes:
        name: the tool.
        arguments: its arguments; a plain string is sent as it is, so that bad JSON can be scripted.
    """

    name: str
    arguments: Mapping[str, Any] | str


@dataclass(frozen=True, slots=True)
class Text:
    """A complete answer of text.

    Attributes:
        text: the answer; empty is allowed.
        thinking: reasoning sent before it.
        usage: what the answer claims to have used; None estimates it from the sizes.
    """

    text: str
    thinking: str = ""
    usage: Tokens | None = None


@dataclass(frozen=True, slots=True, init=False)
class Calls:
    """An answer that calls tools: `Calls(ToolUse("bash", {"command": "ls"}), text="Looking.")`."""

    uses: tuple[ToolUse, ...]
    text: str
    thinking: str
    usage: Tokens | None

    def __init__(self, *uses: ToolUse, text: str = "", thinking: str = "", usage: Tokens | None = None) -> None:
        object.__setattr__(self, "uses", uses)
        object.__setattr__(self, "text", text)
        object.__setattr__(self, "thinking", thinking)
        object.__setattr__(self, "usage", usage)


def bash(command: str, *, text: str = "") -> Calls:
    """Return the step that calls the shell tool once."""
    return Calls(ToolUse("bash", {"command": command}), text=text)


@dataclass(frozen=True, slots=True)
class EmptyAnswer:
    """A complete answer with neither text nor call."""


@dataclass(frozen=True, slots=True)
class Length:
    """An answer that the provider cut at its length limit.

    Attributes:
        text: what came before the cut.
        uses: tool calls that were cut with it.
    """

    text: str
    uses: tuple[ToolUse, ...] = ()


@dataclass(frozen=True, slots=True)
class HttpError:
    """An error answer.

    Attributes:
        status: HTTP status.
        message: the provider's words.
        headers: further response headers, such as Retry-After.
    """

    status: int
    message: str = "scripted failure"
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Hang:
    """No byte of an answer, until the model is released or closed; then the connection ends."""


@dataclass(frozen=True, slots=True)
class CutStream:
    """A connection that ends in the middle of an answer.

    Attributes:
        after: the text sent before the end.
    """

    after: str = ""


@dataclass(frozen=True, slots=True)
class MalformedSse:
    """A stream with an event that is not JSON, after some text; without streaming, a body that is not JSON.

    Attributes:
        after: the text sent before it.
    """

    after: str = ""


Answer = Text | Calls | EmptyAnswer | Length | HttpError | Hang | CutStream | MalformedSse


@dataclass(frozen=True, slots=True)
class Hold:
    """An answer that waits for `ScriptedModel.release()`.

    Attributes:
        step: the answer given then.
    """

    step: Answer


Step = Answer | Hold


@dataclass(slots=True)
class RecordedRequest:
    """One request as it came, and when it was answered.

    Attributes:
        kind: who asked: the worker (it has tools), the evaluator, the evaluator settling a goal's terms, or pi
            asking for a compaction summary.
        body: the request's JSON.
        index: how many requests of this kind came before.
        at: when it had been read, monotonic seconds.
        authorization: the Authorization header, empty if there was none.
        answered_at: when the last byte of the answer had been handed over, None before.
        gone: the client closed the connection while it waited for the answer.
    """

    kind: RequestKind
    body: Mapping[str, Any]
    index: int
    at: float
    authorization: str = ""
    answered_at: float | None = None
    gone: bool = False

    @property
    def messages(self) -> Sequence[Mapping[str, Any]]:
        """The messages, oldest first, as they came."""
        messages: Sequence[Mapping[str, Any]] = self.body.get("messages", ())
        return messages

    @property
    def system(self) -> str:
        """The text of all system and developer messages."""
        return "\n".join(text_of(m) for m in self.messages if m.get("role") in ("system", "developer"))

    @property
    def text(self) -> str:
        """The text of all user messages."""
        return "\n".join(text_of(m) for m in self.messages if m.get("role") == "user")

    @property
    def characters(self) -> int:
        """The characters of text in all messages: the size of what the model has to read."""
        return sum(len(text_of(m)) for m in self.messages)


def text_of(message: Mapping[str, Any]) -> str:
    """Return the text of a chat message, whether its content is a string or a list of parts."""
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content if part.get("type") == "text")


Policy = Callable[[RecordedRequest], Step]
"""A script that decides from the request itself. It must not keep state of its own to survive a restart."""

Script = Step | Policy | Sequence[Step | Policy]
"""One step for ever, a policy, or steps in turn: after the last one it repeats."""


def step_for(script: Script, request: RecordedRequest) -> Step:
    """Return the step that a script gives for a request; `request.index` says which one's turn it is."""
    chosen: Step | Policy
    if isinstance(script, Sequence):
        if not script:
            return HttpError(400, f"the script has no step for {request.kind} requests")
        chosen = script[min(request.index, len(script) - 1)]
    else:
        chosen = script
    return chosen(request) if callable(chosen) else chosen
