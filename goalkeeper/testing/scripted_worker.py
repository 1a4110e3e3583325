"""A worker without pi: it follows a script, runs its commands for real, and writes a real session file.

Knows nothing of goals or evaluators. It passes the same conformance suite as the worker over a real pi.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import itertools
import json
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from goalkeeper.core.limits import Usage
from goalkeeper.errors import PeerError
from goalkeeper.evidence.transcript import Transcript
from goalkeeper.pi.run_events import usage_of
from goalkeeper.pi.session_log import SessionLog
from goalkeeper.ports import (
    Compacted,
    ModelInfo,
    QuestionAsked,
    RunSettled,
    RunStarted,
    ShellResult,
    ToolEnded,
    ToolStarted,
    WorkerEvent,
    WorkerExited,
    WorkerInfo,
)

Effect = Callable[[], Awaitable[None] | None]


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """One tool call of a scripted run.

    Attributes:
        command: the shell command, when the tool is `bash`.
        output: what the tool returns; None runs the command for real.
        exit_code: its exit code when the output is given.
        name: the tool.
        arguments: the arguments of a tool other than `bash`.
        effect: called while the tool runs, e.g. to change a file; it may be a coroutine function.
    """

    command: str = ""
    output: str | None = None
    exit_code: int = 0
    name: str = "bash"
    arguments: Mapping[str, Any] = field(default_factory=dict)
    effect: Effect | None = None


@dataclass(frozen=True, slots=True)
class ScriptedRun:
    """What the worker does with one user message.

    Attributes:
        calls: tool calls, one assistant message each.
        text: the last assistant message.
        error: the provider's words, when the run dies of an error instead of the text.
        held: the run goes on until it is aborted or released.
        question: what pi asks in a dialog, answered with a cancel at once.
        compacts: pi compacts the session before the text.
        exits: the process ends with this status instead of the text.
        usage: what the run used.
    """

    calls: Sequence[ScriptedCall] = ()
    text: str = "Done."
    error: str | None = None
    held: bool = False
    question: str | None = None
    compacts: bool = False
    exits: int | None = None
    usage: Usage = field(default_factory=lambda: Usage(input=100, output=10, cost=0.001))


SCRIPTED_MODEL = ModelInfo("scripted", "scripted", "openai-completions", "http://127.0.0.1:9/v1", {"input": 1.0})


class ScriptedWorker:
    """A worker that follows `runs`; the last one repeats.

    Args:
        session_file: where the session is, or will be with the first user message.
        cwd: folder in which commands run.
        runs: what it does with each user message.

    Attributes:
        sent: the messages it was sent, with whether they were to steer.
        aborts: how often it was aborted.
        closed: it was closed.
    """

    def __init__(self, session_file: Path, cwd: Path, runs: Sequence[ScriptedRun] = (ScriptedRun(),)) -> None:
        self.sent: list[tuple[str, bool]] = []
        self.aborts = 0
        self.closed = False
        self._cwd = cwd
        self._runs = itertools.chain(runs, itertools.repeat(runs[-1]))
        self._session = _SessionWriter(session_file, cwd)
        self._events: asyncio.Queue[WorkerEvent | None] = asyncio.Queue()
        self._run: asyncio.Task[None] | None = None
        self._steers: list[str] = []
        self._follow_ups: list[str] = []
        self._released = asyncio.Event()
        self._gone = True

    async def start(self) -> WorkerInfo:
        """Return what a pi would say of itself."""
        self._gone = False
        session = self._session
        return WorkerInfo(str(session.path), session.id, str(self._cwd), SCRIPTED_MODEL, "scripted", os.getpid())

    async def events(self) -> AsyncIterator[WorkerEvent]:
        """Yield what happens until the worker is closed or has exited."""
        while (event := await self._events.get()) is not None:
            yield event

    async def send(self, text: str, *, steer: bool = False) -> None:
        """Start a run, or queue the message while one goes on."""
        if self._gone:
            raise PeerError("The scripted worker is not running.", kind="exited")
        self.sent.append((text, steer))
        if self._run is not None and not self._run.done():
            (self._steers if steer else self._follow_ups).append(text)
            return
        self._session.user(text)
        self._events.put_nowait(RunStarted())
        self._run = asyncio.create_task(self._go())

    def release(self) -> None:
        """Let held runs go on, this one and later ones."""
        self._released.set()

    async def abort(self) -> None:
        """Drop queued messages and abort the run."""
        if self._gone:
            raise PeerError("The scripted worker is not running.", kind="exited")
        self.aborts += 1
        self._steers.clear()
        self._follow_ups.clear()
        if self._run is not None and not self._run.done():
            await self._end_run()
            self._session.assistant("", stop_reason="aborted", error="This operation was aborted")
            self._events.put_nowait(RunSettled(aborted=True))

    async def crash(self, returncode: int = -9) -> None:
        """End like a process that was killed."""
        await self._end_run()
        self._exit(returncode)

    async def shell(self, command: str, *, timeout: float) -> ShellResult:
        """Run a command for real and record it."""
        if self._gone:
            raise PeerError("The scripted worker is not running.", kind="exited")
        output, code = await _run_command(command, self._cwd, timeout)
        entry_id = self._session.shell(command, output, code)
        return ShellResult(command, output, code, code is None, entry_id)

    async def usage_since(self, entry_id: str | None) -> Usage:
        """Return what stands in the session file as used."""
        return self._session.usage_since(entry_id)

    async def transcript(self, characters: int) -> Transcript:
        """Return what stands in the session file."""
        return self._session.read(characters)

    async def close(self) -> None:
        """End everything. Idempotent."""
        if self.closed:
            return
        self.closed = self._gone = True
        await self._end_run()
        self._events.put_nowait(None)

    # ---- runs -------------------------------------------------------------------------------------------------

    async def _end_run(self) -> None:
        if self._run is not None:
            self._run.cancel()
            await asyncio.wait({self._run})

    def _exit(self, returncode: int) -> None:
        self._gone = True
        self._events.put_nowait(WorkerExited(returncode, "scripted exit"))
        self._events.put_nowait(None)

    async def _go(self) -> None:
        usage = Usage()
        error: str | None = None
        while True:
            run = next(self._runs)
            for call in run.calls:
                await self._call(call)
                self._deliver(self._steers)
            if run.question is not None:
                self._events.put_nowait(QuestionAsked(run.question))
            if run.held:
                await self._released.wait()
            if run.exits is not None:
                self._exit(run.exits)
                return
            error = self._finish(run)
            usage = usage.plus(run.usage)
            if not self._deliver(self._steers) and not self._deliver(self._follow_ups):
                break
        self._events.put_nowait(RunSettled(False, error, usage))

    def _finish(self, run: ScriptedRun) -> str | None:
        if run.compacts:
            self._session.append(
                {"type": "compaction", "summary": "Summary.", "firstKeptEntryId": "", "tokensBefore": 1}
            )
            self._events.put_nowait(Compacted("threshold"))
        if run.error is None:
            self._session.assistant(run.text, usage=run.usage)
        else:
            self._session.assistant("", stop_reason="error", error=run.error, usage=run.usage)
        return run.error

    def _deliver(self, queue: list[str]) -> bool:
        if not queue:
            return False
        self._session.user(queue.pop(0))
        return True

    async def _call(self, call: ScriptedCall) -> None:
        arguments = {"command": call.command} if call.name == "bash" else dict(call.arguments)
        call_id = self._session.call(call.name, arguments)
        self._events.put_nowait(ToolStarted(call_id, call.name, call.command or json.dumps(arguments)))
        if call.effect is not None:
            pending = call.effect()
            if inspect.isawaitable(pending):
                await pending
        if call.output is not None or call.name != "bash":
            output, code = call.output or "", call.exit_code
        else:
            output, ended = await _run_command(call.command, self._cwd, None)
            code = 0 if ended is None else ended
        if code != 0:
            output = f"{output or '(no output)'}\n\nCommand exited with code {code}"
        self._session.result(call_id, call.name, output, is_error=code != 0)
        exit_code = code if call.name == "bash" else None
        self._events.put_nowait(ToolEnded(call_id, call.name, code != 0, exit_code))


async def _run_command(command: str, cwd: Path, timeout: float | None) -> tuple[str, int | None]:
    """Run a command; return its output and exit code, None when it was ended at `timeout`."""
    process = await asyncio.create_subprocess_exec(
        "/bin/sh",
        "-c",
        command,
        cwd=cwd,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        output, _ = await asyncio.wait_for(process.communicate(), timeout)
    except TimeoutError:
        return "", None
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    return output.decode("utf-8", "replace"), process.returncode


class _SessionWriter:
    """Writes a session file as pi does: nothing before the first user message, then line by line."""

    def __init__(self, path: Path, cwd: Path) -> None:
        self.path = path.absolute()
        self._log = SessionLog(self.path)
        header = self._log.header()
        self.id = header.id if header is not None else f"scripted-{time.time_ns():x}"
        self._leaf = self._log.last_id()
        self._count = 0
        self._waiting: list[str] = []
        if header is None:
            self._waiting.append(
                _json({"type": "session", "version": 3, "id": self.id, "timestamp": _now(), "cwd": str(cwd)})
            )

    def read(self, characters: int) -> Transcript:
        return self._log.read(characters)

    def usage_since(self, entry_id: str | None) -> Usage:
        lines = self.path.read_text(encoding="utf-8").splitlines() if self.path.exists() else []
        entries = [json.loads(line) for line in lines]
        ids = [entry.get("id") for entry in entries]
        if entry_id is not None and entry_id not in ids:
            raise PeerError(f"Entry not found: {entry_id}", kind="refused")
        behind = entries[ids.index(entry_id) + 1 :] if entry_id is not None else entries
        total = Usage()
        for entry in behind:
            total = total.plus(usage_of((entry.get("message") or {}).get("usage")))
        return total

    def append(self, fields: Mapping[str, Any], *, flush: bool = False) -> str:
        self._count += 1
        entry_id = f"{time.time_ns() & 0xFFFFFF:06x}{self._count:02x}"
        kind = fields["type"]
        rest = {name: value for name, value in fields.items() if name != "type"}
        self._waiting.append(_json({"type": kind, "id": entry_id, "parentId": self._leaf, "timestamp": _now(), **rest}))
        self._leaf = entry_id
        if flush or self.path.exists():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as file:
                file.writelines(line + "\n" for line in self._waiting)
            self._waiting.clear()
        return entry_id

    def _message(self, role: str, fields: Mapping[str, Any], *, flush: bool = False) -> str:
        message = {"role": role, **fields, "timestamp": int(time.time() * 1000)}
        return self.append({"type": "message", "message": message}, flush=flush)

    def user(self, text: str) -> None:
        self._message("user", {"content": [{"type": "text", "text": text}]}, flush=True)

    def assistant(
        self, text: str, *, stop_reason: str = "stop", error: str | None = None, usage: Usage | None = None
    ) -> None:
        content = [{"type": "text", "text": text}] if text else []
        failed = {"errorMessage": error} if error is not None else {}
        used = {"usage": _usage_record(usage)} if usage is not None else {}
        self._message("assistant", {"content": content, "stopReason": stop_reason, **failed, **used})

    def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        call_id = f"call_{self._count}_{time.time_ns():x}"
        block = {"type": "toolCall", "id": call_id, "name": name, "arguments": dict(arguments)}
        self._message("assistant", {"content": [block], "stopReason": "toolUse"})
        return call_id

    def result(self, call_id: str, name: str, output: str, *, is_error: bool) -> None:
        content = [{"type": "text", "text": output}]
        fields = {"toolCallId": call_id, "toolName": name, "content": content, "isError": is_error}
        self._message("toolResult", fields)

    def shell(self, command: str, output: str, code: int | None) -> str:
        ended = {} if code is None else {"exitCode": code}
        fields = {"command": command, "output": output, **ended, "cancelled": code is None, "truncated": False}
        return self._message("bashExecution", fields)


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _now() -> str:
    return datetime.fromtimestamp(time.time(), UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _usage_record(usage: Usage) -> dict[str, Any]:
    tokens = {
        "input": usage.input,
        "output": usage.output,
        "cacheRead": usage.cache_read,
        "cacheWrite": usage.cache_write,
    }
    return {**tokens, "cost": {"total": usage.cost or 0}}
