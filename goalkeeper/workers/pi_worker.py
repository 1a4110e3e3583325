"""The worker port over a real pi in RPC mode.

Knows nothing of goals, verdicts or budgets: it sends, reports what happens, and reads the session.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from goalkeeper.core.limits import Usage
from goalkeeper.errors import PeerError, PrerequisiteError
from goalkeeper.evidence.transcript import Transcript
from goalkeeper.pi.install import PiCommand
from goalkeeper.pi.rpc_client import RpcClient
from goalkeeper.pi.rpc_protocol import PeerEvent
from goalkeeper.pi.run_events import RunTracker, question_of
from goalkeeper.pi.session_reader import SessionReader
from goalkeeper.ports import ModelInfo, QuestionAsked, ShellResult, WorkerEvent, WorkerExited, WorkerInfo

NEW = "new"
CONTINUE = "continue"
EPHEMERAL = "ephemeral"


@dataclass(frozen=True, slots=True)
class PiWorkerConfig:
    """How to run a worker.

    Attributes:
        pi: how to run pi.
        cwd: the folder it works in.
        session: "new", "continue" (the folder's latest), "ephemeral" (no file), or a path or id of a session.
        pi_args: further arguments for pi, handed through as they are.
        env: variables added to this process's environment. GOALKEEPER_WORKER, which tells the commands that they
            are called from inside a worker, is "1" unless it is given here.
        dialog_wait: seconds until a question of an extension is answered with a cancel.
        pass_fds: descriptors that pi inherits.
        start_timeout: seconds until a start is given up.
        abort_timeout: seconds until an abort is given up.
        close_grace: seconds that each step of the end waits for the process.
    """

    pi: PiCommand
    cwd: str
    session: str = NEW
    pi_args: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    dialog_wait: float = 10.0
    pass_fds: Sequence[int] = ()
    start_timeout: float = 60.0
    abort_timeout: float = 30.0
    close_grace: float = 3.0

    def argv(self) -> list[str]:
        """Return the whole command line."""
        chosen = {NEW: [], CONTINUE: ["--continue"], EPHEMERAL: ["--no-session"]}
        session = chosen.get(self.session, ["--session", self.session])
        return [*self.pi.argv, "--mode", "rpc", *session, *self.pi_args]


class PiWorker:
    """A pi process with one session; see `goalkeeper.ports.Worker` for the contract."""

    def __init__(self, config: PiWorkerConfig) -> None:
        self._config = config
        self._client = RpcClient()
        self._tracker = RunTracker()
        self._reader = SessionReader(self._client, None)
        self._events: asyncio.Queue[WorkerEvent | None] = asyncio.Queue()
        self._pump: asyncio.Task[None] | None = None
        self._dialogs: set[asyncio.Task[None]] = set()
        self._closing = False

    # ---- life -------------------------------------------------------------------------------------------------

    async def start(self) -> WorkerInfo:
        """Start pi and return what it says of itself; see the port for errors."""
        env = {**os.environ, "GOALKEEPER_WORKER": "1", **self._config.env}
        await self._client.start(
            self._config.argv(),
            cwd=self._config.cwd,
            env=self._config.pi.environment(env),
            pass_fds=self._config.pass_fds,
        )
        try:
            state = await self._client.request("get_state", timeout=self._config.start_timeout)
            info = self._info(state if isinstance(state, dict) else {})
        except PeerError as error:
            await self.close()
            raise self._start_error(error) from error
        except BaseException:
            await self.close()
            raise
        self._reader = SessionReader(self._client, info.session_file)
        self._pump = asyncio.create_task(self._pump_events())
        return info

    def _info(self, state: Mapping[str, Any]) -> WorkerInfo:
        model = state.get("model")
        # A pi that knows no model names one "unknown" of a provider "unknown".
        if not isinstance(model, dict) or (model.get("provider"), model.get("id")) == ("unknown", "unknown"):
            raise PrerequisiteError(
                "pi has no model to work with.",
                f"Log in: run `{self._config.pi.typed()}`, then /login. "
                "Or name one of its models behind `--`, e.g. -- --model PROVIDER/ID.",
            )
        file = state.get("sessionFile")
        return WorkerInfo(
            session_file=str(Path(file).absolute()) if isinstance(file, str) and file else None,
            session_id=str(state.get("sessionId") or ""),
            # As pi and its shell name it: behind a link, their `cd` names the real folder.
            cwd=str(Path(self._config.cwd).resolve()),
            model=_model_info(model),
            version=self._config.pi.version,
            pid=self._client.process.pid,
        )

    def _start_error(self, error: PeerError) -> PeerError:
        process = self._client.process
        words = process.stderr_tail
        if error.kind == "exited":
            return PeerError(f"pi ended at its start (status {process.returncode}).", words, kind="exited")
        return PeerError(f"pi did not start: {error.message}", words, kind=error.kind)

    def kill(self) -> None:
        """End pi and all it started at once: for an end that waits for nothing, such as a second Ctrl-C."""
        self._client.kill()

    async def close(self) -> None:
        """End pi and all it started, bounded. Idempotent."""
        if self._closing:
            return
        self._closing = True
        for dialog in self._dialogs:
            dialog.cancel()
        await self._client.close(grace=self._config.close_grace)
        if self._pump is not None:
            await self._pump
        self._events.put_nowait(None)

    # ---- events -----------------------------------------------------------------------------------------------

    async def events(self) -> AsyncIterator[WorkerEvent]:
        """Yield what happens until the worker is closed or has exited."""
        while (event := await self._events.get()) is not None:
            yield event

    async def _pump_events(self) -> None:
        try:
            while (event := await self._client.events.get()) is not None:
                for reported in self._tracker.feed(event):
                    self._events.put_nowait(reported)
                if event.type == "extension_ui_request":
                    self._answer_later(event)
        finally:
            # Also when this task itself fails: a consumer must never wait for events that can't come any more.
            if not self._closing:
                process = self._client.process
                self._events.put_nowait(WorkerExited(process.returncode or 0, process.stderr_tail))
                self._events.put_nowait(None)

    def _answer_later(self, event: PeerEvent) -> None:
        question = question_of(event.body)
        if question is None:
            return
        own = event.body.get("timeout")
        wait = min(self._config.dialog_wait, own / 1000) if isinstance(own, int | float) else self._config.dialog_wait
        dialog = asyncio.create_task(self._cancel_dialog(str(event.body.get("id") or ""), question, wait))
        self._dialogs.add(dialog)
        dialog.add_done_callback(self._dialogs.discard)

    async def _cancel_dialog(self, dialog_id: str, question: str, wait: float) -> None:
        await asyncio.sleep(wait)
        with contextlib.suppress(PeerError):
            self._client.tell({"type": "extension_ui_response", "id": dialog_id, "cancelled": True})
            self._events.put_nowait(QuestionAsked(question))

    # ---- steering ---------------------------------------------------------------------------------------------

    async def send(self, text: str, *, steer: bool = False) -> None:
        """Send a user message; the text reaches the model as it is.

        A text that begins with "/" and the name of a command, template or skill of this pi gets one blank in front,
        so that it is not expanded; any other is sent exactly.
        """
        literal = await self._literal(text)
        # `steer` and `follow_up` only queue when pi is idle; `prompt` starts a run then and queues otherwise.
        data = await self._client.request("prompt", message=literal, streamingBehavior="steer" if steer else "followUp")
        if isinstance(data, dict) and data.get("disposition") == "handled":
            raise PeerError("An extension of pi took the message, so no run started.", kind="refused")

    async def _literal(self, text: str) -> str:
        """Return the text in a form that pi doesn't expand: only a name that pi knows after "/" is a command to it."""
        if not text.startswith("/"):
            return text
        data = await self._client.request("get_commands")
        commands = data.get("commands") if isinstance(data, dict) else None
        names = {c.get("name") for c in commands if isinstance(c, dict)} if isinstance(commands, list) else set()
        first_word = text[1:].split(maxsplit=1)[:1]
        # pi looks for a command only at the very first character; the model takes no notice of a blank there.
        return f" {text}" if first_word and first_word[0] in names else text

    async def abort(self) -> None:
        """Drop queued messages, abort the run and wait until pi is idle."""
        timeout = self._config.abort_timeout
        # An abort alone would let queued messages start the next run.
        try:
            await self._client.request("clear_queue", timeout=timeout)
        except PeerError as error:
            # pi has the command since 0.84.4; before, an abort has to do.
            if error.kind != "refused":
                raise
        self._tracker.expect_abort()
        await self._client.request("abort", timeout=timeout)

    async def shell(self, command: str, *, timeout: float) -> ShellResult:
        """Run a command as a direct shell execution; see the port."""
        since = await self._reader.cursor()
        running = asyncio.create_task(self._client.request("bash", command=command, timeout=None))
        try:
            done, _ = await asyncio.wait({running}, timeout=timeout)
            if not done:
                await self._client.request("abort_bash")
                done, _ = await asyncio.wait({running}, timeout=self._config.abort_timeout)
            if not done:
                raise PeerError(f"pi does not end the command {command!r}.", kind="timeout")
            data = running.result()
        except asyncio.CancelledError:
            with contextlib.suppress(PeerError):
                self._client.tell({"type": "abort_bash"})
            raise
        finally:
            running.cancel()
        result = data if isinstance(data, dict) else {}
        code = result.get("exitCode")
        return ShellResult(
            command=command,
            output=str(result.get("output") or ""),
            exit_code=code if isinstance(code, int) else None,
            cancelled=result.get("cancelled") is True,
            entry_id=await self._reader.shell_entry(command, since),
        )

    async def usage_since(self, entry_id: str | None) -> Usage:
        """Return what the session records as used behind an entry."""
        return await self._reader.usage_since(entry_id)

    async def transcript(self, characters: int) -> Transcript:
        """Return the newest part of the branch, read from the session file itself where there is one."""
        return await self._reader.transcript(characters)


def _model_info(model: Mapping[str, Any]) -> ModelInfo:
    cost = model.get("cost")
    names = ("input", "output", "cacheRead", "cacheWrite")
    prices = (
        {n: float(cost[n]) for n in names if isinstance(cost.get(n), int | float)} if isinstance(cost, dict) else {}
    )
    return ModelInfo(
        provider=str(model.get("provider") or ""),
        model_id=str(model.get("id") or ""),
        api=str(model.get("api") or ""),
        base_url=str(model.get("baseUrl") or ""),
        # All prices zero means that pi knows none.
        cost=prices if any(prices.values()) else {},
    )
