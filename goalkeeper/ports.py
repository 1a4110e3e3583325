"""The seams: what the driver needs of a worker, a model, and a session, and nothing more.

Knows no implementation. Each port has one conformance suite in `goalkeeper/testing/conformance.py`, run on the real
adapter and on its double.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from goalkeeper.core.limits import Usage
from goalkeeper.evidence.transcript import Transcript

# ---- model ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request to a model without tools.

    Attributes:
        system: the system prompt.
        user: the one user message.
        schema: a JSON schema that the answer must follow, sent where the provider supports structured output.
        timeout: seconds until the request is given up.
    """

    system: str
    user: str
    schema: Mapping[str, Any] | None = None
    timeout: float = 60.0


@dataclass(frozen=True, slots=True)
class ModelReply:
    """A model's whole answer.

    Attributes:
        text: the answer's text.
        finish: "stop" for a complete answer, "length" if the provider cut it, "error" if it ended in an error.
        usage: tokens and cost; cost is None when the price is unknown.
        error: the provider's words when finish is "error".
    """

    text: str
    finish: Literal["stop", "length", "error"] = "stop"
    usage: Usage = field(default_factory=Usage)
    error: str = ""


class ModelClient(Protocol):
    """A model that can be asked once, without tools, without retries by the client."""

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Return the answer.

        Raises:
            PeerError: kind "provider_error" (with the provider's own words), "timeout" or "unavailable".
        """
        ...

    async def close(self) -> None:
        """End what was started for the model. Idempotent."""
        ...


# ---- worker ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """The worker's current model, as pi describes it.

    Attributes:
        provider: pi's provider id.
        model_id: the id that is sent to the API.
        api: pi's name of the wire protocol, e.g. "openai-completions", "anthropic-messages".
        base_url: where requests go.
        cost: USD per million tokens, keys input, output, cacheRead, cacheWrite; empty if unknown.
    """

    provider: str
    model_id: str
    api: str = ""
    base_url: str = ""
    cost: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """What a started worker says of itself.

    Attributes:
        session_file: absolute path of the session file, None for an ephemeral session. It may not exist yet: pi
            creates it with the first user message.
        session_id: pi's session id.
        cwd: the folder it works in.
        model: its current model, None if it has none.
        version: pi's version.
        pid: process id.
    """

    session_file: str | None
    session_id: str
    cwd: str
    model: ModelInfo | None
    version: str
    pid: int


@dataclass(frozen=True, slots=True)
class RunStarted:
    """The worker began a run."""


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """A tool call began.

    Attributes:
        call_id: joins start, end and the session entry.
        name: the tool.
        summary: the command, path or arguments in one line, for a person.
    """

    call_id: str
    name: str
    summary: str


@dataclass(frozen=True, slots=True)
class ToolEnded:
    """A tool call completed.

    Attributes:
        call_id: joins start, end and the session entry.
        name: the tool.
        is_error: pi's error flag.
        exit_code: from the wire (pi stores none), None if the tool has none.
    """

    call_id: str
    name: str
    is_error: bool
    exit_code: int | None = None


@dataclass(frozen=True, slots=True)
class RunSettled:
    """pi said `agent_settled`: it will not go on by itself.

    Attributes:
        aborted: somebody aborted the run.
        error: the provider's words if the run died of an error, else None.
        usage: tokens and cost of the run.
    """

    aborted: bool = False
    error: str | None = None
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class Compacted:
    """pi compacted the session."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class RetryScheduled:
    """pi will try the provider again by itself.

    Attributes:
        attempt: 1 for the first retry.
        delay: seconds until it.
        error: the provider's words.
    """

    attempt: int
    delay: float
    error: str


@dataclass(frozen=True, slots=True)
class QuestionAsked:
    """pi asked something through a dialog; it was answered with a cancel after a bounded wait."""

    question: str


@dataclass(frozen=True, slots=True)
class WorkerNotice:
    """A notice that an extension of pi wants shown."""

    text: str
    level: Literal["info", "warning", "error"] = "info"


@dataclass(frozen=True, slots=True)
class WorkerExited:
    """The worker process ended though nobody closed it.

    Attributes:
        returncode: exit status, negative for a signal.
        detail: the end of what it wrote to stderr, for a person; never parsed.
    """

    returncode: int
    detail: str = ""


WorkerEvent = (
    RunStarted
    | ToolStarted
    | ToolEnded
    | RunSettled
    | Compacted
    | RetryScheduled
    | QuestionAsked
    | WorkerNotice
    | WorkerExited
)


@dataclass(frozen=True, slots=True)
class ShellResult:
    """A direct shell execution that the controller asked for.

    Attributes:
        command: what ran.
        output: its output, perhaps cut by pi.
        exit_code: None when cancelled.
        cancelled: it did not end by itself.
        entry_id: the session entry that records it, None while there is none yet (it ran beside a run).
    """

    command: str
    output: str
    exit_code: int | None
    cancelled: bool
    entry_id: str | None


class Worker(Protocol):
    """A coding agent with one session."""

    async def start(self) -> WorkerInfo:
        """Start the process and return what it says of itself.

        Raises:
            PrerequisiteError: no pi, pi too old, no model.
            PeerError: it ended or did not answer within the bound.
        """
        ...

    def events(self) -> AsyncIterator[WorkerEvent]:
        """Yield what happens, in order, until the worker is closed or has exited. One consumer."""
        ...

    async def send(self, text: str, *, steer: bool = False) -> None:
        """Send a user message: start a run when idle; while a run goes on, queue it.

        Args:
            text: the message.
            steer: deliver it into the run under way, not after it.

        Raises:
            PeerError: kind "refused" when pi did not accept it, "exited" when there is no process.
        """
        ...

    async def abort(self) -> None:
        """Drop queued messages, abort the run and wait (bounded) until the worker is idle. Fine when idle."""
        ...

    async def shell(self, command: str, *, timeout: float) -> ShellResult:
        """Run a command as a direct shell execution (it becomes an entry); end it at `timeout` seconds."""
        ...

    async def transcript(self, characters: int) -> Transcript:
        """Return the newest part of the branch, at least `characters` of shown text where there is so much."""
        ...

    async def usage_since(self, entry_id: str | None) -> Usage:
        """Return what the session records as used behind an entry (None: from its start), on all its branches.

        Raises:
            PeerError: the entry is not in the session, or there is no process.
        """
        ...

    async def close(self) -> None:
        """End the process and all it started, bounded: end of input, wait, TERM to the group, KILL. Idempotent."""
        ...
