"""The composition root: puts one controller of one session together, runs it, and takes it apart again.

Knows nothing of terminals or of how commands are spelled.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from goalkeeper.config import GoalConfig, Renewal, WorkerChoice, without_secrets
from goalkeeper.core.effects import Announce
from goalkeeper.core.events import ClearRequested, Event, GoalSet, Interrupted, ResumeRequested, SessionRestored
from goalkeeper.core.limits import Usage
from goalkeeper.core.machine import Transition, step
from goalkeeper.core.records import Cleared, Notice, Record, SessionOpened
from goalkeeper.core.state import EvaluatorName, GoalState, SessionState
from goalkeeper.errors import PeerError, PrerequisiteError, UsageError
from goalkeeper.evaluator.choose import open_evaluator
from goalkeeper.evidence.transcript import Transcript
from goalkeeper.pi.install import find_pi
from goalkeeper.pi.session_log import SessionLog
from goalkeeper.ports import WorkerInfo
from goalkeeper.runtime.clock import SystemClock
from goalkeeper.runtime.control import ControlServer
from goalkeeper.runtime.driver import Driver
from goalkeeper.runtime.ending import IDLE_PATIENCE, Ended
from goalkeeper.runtime.freshness import FreshnessSource
from goalkeeper.runtime.handlers import Handlers
from goalkeeper.runtime.judge import TRANSCRIPT_CHARACTERS
from goalkeeper.runtime.orphan import end_orphan, new_worker_key
from goalkeeper.runtime.recovery import trace_run
from goalkeeper.runtime.store import StateStore
from goalkeeper.runtime.watch import Watcher
from goalkeeper.storage.locks import SessionLock, drop_worker_lock, hold_session, worker_lock
from goalkeeper.storage.paths import session_files
from goalkeeper.workers.pi_worker import PiWorker, PiWorkerConfig
from goalkeeper.worktree.fingerprint import WorkTree
from goalkeeper.worktree.stamps import Stamper

INTERRUPTED_STATUS = 130
HANGUP_STATUS = 129

Tell = Callable[[Record], None]


class Controller:
    """One session with its worker, its goal and its locks.

    Use as an async context manager; inside, `set_goal` or `resume_goal` runs to the end.

    Args:
        choice: which pi works, and where.
        tell: told of each record, in order.
        on_kill: called before the process ends at once after a second Ctrl-C.
    """

    def __init__(self, choice: WorkerChoice, tell: Tell, on_kill: Callable[[], None] = lambda: None) -> None:
        self._choice = choice
        self._tell_user = tell
        self._on_kill = on_kill
        self._clock = SystemClock()
        self._stack = contextlib.AsyncExitStack()
        self._lock: SessionLock | None = None
        self._driver: Driver | None = None
        self._interrupts = 0

    async def __aenter__(self) -> Controller:
        """Start pi, hold its session, load what is stored about it.

        Raises:
            PrerequisiteError: no pi, pi too old, no model.
            SessionHeldError: another controller holds the session.
            PeerError: pi did not start.
        """
        await self._stack.__aenter__()
        try:
            await self._open()
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(self, *error: object) -> None:
        """End pi, give the session back."""
        await self._stack.aclose()

    async def _open(self) -> None:
        self._pi = find_pi()
        path = self._choice.session_path
        cwd = self._choice.cwd
        if path:
            cwd = session_folder(path) or cwd
            await self._hold(path)
        key = new_worker_key()
        fd = worker_lock(key)
        self._stack.callback(drop_worker_lock, key)
        self._worker = PiWorker(
            PiWorkerConfig(
                pi=self._pi,
                cwd=cwd,
                session=self._choice.session,
                pi_args=self._choice.pi_args,
                pass_fds=(fd,),
            )
        )
        try:
            self.info = await self._worker.start()
        finally:
            os.close(fd)
        self._stack.push_async_callback(self._worker.close)
        if self.info.session_file and not self._lock:
            await self._hold(self.info.session_file)
        if self._lock:
            self._lock.update(worker=key, pi=self.info.pid)
        self._store = StateStore(self.info.cwd, self.info.session_file, self._clock, self._warn)
        self.state = self._store.load()
        self._tell(
            SessionOpened(
                at=self._clock.now(),
                session_file=self.info.session_file,
                session_id=self.info.session_id,
                cwd=self.info.cwd,
                model=_model_words(self.info),
                pi=self.info.version,
            )
        )

    async def _hold(self, session_file: str) -> None:
        """Hold the session; see to it that the pi of a controller that died is gone first."""
        self._lock = hold_session(session_file, _holder_note())
        self._stack.callback(self._lock.release)
        await end_orphan(self._lock.before)

    # ---- goals ------------------------------------------------------------------------------------------------

    async def set_goal(self, config: GoalConfig) -> SessionState:
        """Set a goal and work until it is met, paused or cleared."""

        async def begin() -> Event:
            transcript = await self._worker.transcript(0)
            return GoalSet(
                goal=uuid.uuid4().hex[:12],
                condition=config.condition,
                leaf=transcript.leaf,
                limits=config.budget.limits(),
                evaluator=config.evaluator,
                model=config.model,
                terms=config.terms(),
                checks=tuple(config.checks),
                ignore=tuple(config.ignore),
                run_timeout=config.run_timeout,
                pi_args=without_secrets(self._choice.pi_args),
                tree=await self._tree.fingerprint(),
                **self._times(),
            )

        return await self._run(begin, config.evaluator, config.model, tuple(config.ignore))

    async def resume_goal(self, renewal: Renewal) -> SessionState:
        """Resume the session's goal: a paused one with a fresh budget, an active one with what was left.

        Raises:
            UsageError: there is nothing to resume.
        """
        goal = self.state.goal
        if goal is None:
            raise UsageError("No goal is set in this session.", "See `goal` for the goals of this folder.")
        self._check_seal(goal)

        async def begin() -> Event:
            transcript = await self._worker.transcript(TRANSCRIPT_CHARACTERS)
            given: dict[str, Any] = {
                "max_runs": renewal.budget.max_runs,
                "max_seconds": renewal.budget.max_seconds,
                "max_cost": renewal.budget.max_cost,
                "evaluator": renewal.evaluator,
                "model": renewal.model,
            }
            if goal.pause:
                return ResumeRequested(leaf=transcript.leaf, **given, **self._times())
            trace = trace_run(transcript, goal.sent)
            usage = Usage() if trace.run == "not_sent" or not goal.sent else await self._usage_since(goal.sent.after)
            return SessionRestored(
                run=trace.run, leaf=transcript.leaf, digest=trace.digest, usage=usage, **given, **self._times()
            )

        evaluator = renewal.evaluator or goal.evaluator
        model = renewal.model or (goal.model if evaluator == goal.evaluator else None)
        return await self._run(begin, evaluator, model, goal.ignore)

    def _check_seal(self, goal: GoalState) -> None:
        """Refuse a goal that somebody changed in the state file; the worker can write there."""
        finding = self._store.seal_of(goal)
        if finding == "broken":
            raise UsageError(
                "The stored goal is not the one that was set: its condition, checks, proofs or limits were changed.",
                "Look at it with `goal --json`, clear it with `goal clear`, and set it again.",
            )
        settled = (*goal.checks, *(goal.terms.proofs if goal.terms else ()))
        if finding == "none" and settled:
            listed = ", ".join(f"`{command}`" for command in settled)
            self._warn(f"No seal tells whether this is still what was settled for the goal: {listed}")

    async def _usage_since(self, entry_id: str | None) -> Usage:
        try:
            return await self._worker.usage_since(entry_id)
        except PeerError:
            return Usage(cost=None)  # what it cost is not recorded where it was expected: unknown, not nothing

    async def transcript(self) -> Transcript:
        """Return the newest part of the session's branch."""
        return await self._worker.transcript(TRANSCRIPT_CHARACTERS)

    async def _run(
        self, begin: Callable[[], Any], evaluator: EvaluatorName, model: str | None, ignore: tuple[str, ...]
    ) -> SessionState:
        self._tree = WorkTree(self.info.cwd, ignore, self._store.trees(), session_files(self.info.session_file))
        self._stack.callback(self._store.tidy)
        self._stack.callback(self._tree.close)
        stamper = Stamper(self._tree, known=self._store.stamps(), made=self._store.add_stamp)
        self._stack.push_async_callback(stamper.close)
        freshness = FreshnessSource(self._tree, stamper)
        driver = Driver(self.state, self._store, self._tell, self._clock)
        asker, event = await asyncio.gather(
            open_evaluator(evaluator, model, self.info.model, self._pi),
            begin(),
        )
        self._stack.push_async_callback(asker.close)
        handlers = Handlers(
            self._worker,
            asker,
            freshness,
            stamper,
            clock=self._clock,
            cwd=self.info.cwd,
            post=driver.post,
            tell=self._tell,
            fail=driver.fail,
        )
        watcher = Watcher(
            self._worker,
            stamper,
            clock=self._clock,
            post=driver.post,
            tell=self._tell,
            goal=lambda: driver.state.goal.id if driver.state.goal else "",
            leaf=getattr(event, "leaf", None),
        )
        watching = asyncio.create_task(watcher.run())
        watching.add_done_callback(lambda task: _report(task, driver.fail))
        self._driver = driver
        await self._listen()
        try:
            with self._signals(driver):
                driver.begin(event, handlers)
                self.state = await driver.run(handlers, Ended(self._clock.awake))
                with contextlib.suppress(TimeoutError):  # a pi that does not answer is ended, with all it started
                    await asyncio.wait_for(handlers.finish(), IDLE_PATIENCE)
        finally:
            watching.cancel()
        return self.state

    async def _listen(self) -> None:
        control = ControlServer(self._answer)
        await control.start()
        self._stack.push_async_callback(control.close)
        if self._lock:
            self._lock.update(control=control.path)

    def _times(self) -> dict[str, Any]:
        return {"at": self._clock.now(), "awake": self._clock.awake()}

    # ---- records ----------------------------------------------------------------------------------------------

    def _tell(self, record: Record) -> None:
        self._store.journal(record)
        self._tell_user(record)

    def _warn(self, text: str) -> None:
        self._tell_user(Notice(at=self._clock.now(), level="warning", text=text))

    # ---- other terminals, signals -----------------------------------------------------------------------------

    async def _answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        if self._driver is None:
            raise UsageError("The controller of this session is starting.", "Ask again in a second.")
        if request.get("do") == "clear":
            return _cleared(await self._driver.submit(ClearRequested(**self._times())))
        raise UsageError("This controller can't do that.", "It may be older than the command that asked.")

    @contextlib.contextmanager
    def _signals(self, driver: Driver) -> Iterator[None]:
        """Pause at the first Ctrl-C or SIGTERM, end at once at the second; end with the terminal unless under nohup."""
        loop = asyncio.get_running_loop()
        numbers = [signal.SIGINT, signal.SIGTERM]
        for number in numbers:
            loop.add_signal_handler(number, self._interrupted, driver)
        if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:  # nohup has it ignored
            loop.add_signal_handler(signal.SIGHUP, self._hung_up)
            numbers.append(signal.SIGHUP)
        try:
            yield
        finally:
            for number in numbers:
                loop.remove_signal_handler(number)

    def _interrupted(self, driver: Driver) -> None:
        self._interrupts += 1
        if self._interrupts == 1:
            driver.post(Interrupted(**self._times()))
            return
        try:
            self._on_kill()
            self._worker.kill()
            self._tree.close()
        finally:
            os._exit(INTERRUPTED_STATUS)

    def _hung_up(self) -> None:
        """End as with kill -9, but tidily: the goal stays active, and pi ends by itself when its input closes."""
        try:
            self._tree.close()
        finally:
            os._exit(HANGUP_STATUS)


def clear_stored(cwd: str, session_file: str) -> dict[str, Any]:
    """Clear the goal and the loop of a session that no controller holds; return what was cleared.

    Raises:
        SessionHeldError: a controller has taken it up meanwhile.
    """
    lock = hold_session(session_file, _holder_note())
    clock = SystemClock()
    try:
        asyncio.run(end_orphan(lock.before))
        store = StateStore(cwd, session_file, clock, lambda text: None)
        transition = step(store.load(), ClearRequested(at=clock.now(), awake=clock.awake()))
        for effect in transition.effects:
            if isinstance(effect, Announce):
                store.journal(effect.record)
        store.save(transition.state)
    finally:
        lock.release()
    return _cleared(transition)


def _holder_note() -> dict[str, Any]:
    # Others are shown the command line, and it outlives this process beside the session.
    return {"pid": os.getpid(), "command": " ".join(without_secrets(sys.argv)), "started": time.time()}


def _cleared(transition: Transition) -> dict[str, Any]:
    record = next(e.record for e in transition.effects if isinstance(e, Announce) and isinstance(e.record, Cleared))
    return {"condition": record.condition, "loop_stopped": record.loop_stopped}


def session_folder(session_file: str) -> str | None:
    """Return the folder that a session belongs to, None when there is no session file yet or it names no folder.

    Raises:
        UsageError: what is there is no readable file.
        PrerequisiteError: the folder is gone.
    """
    try:
        header = SessionLog(session_file).header()
    except OSError as error:
        raise UsageError(f"{session_file} can't be read as a session: {error.strerror}.") from error
    folder = header.cwd if header else ""
    if folder and not Path(folder).is_dir():
        raise PrerequisiteError(
            f"The session belongs to the folder {folder}, which is not there.",
            "Put the folder back, or work in a new session.",
        )
    return folder or None


def _report(task: asyncio.Task[None], fail: Callable[[BaseException], None]) -> None:
    if not task.cancelled() and (error := task.exception()):
        fail(error)


def _model_words(info: WorkerInfo) -> str:
    return f"{info.model.provider}/{info.model.model_id}" if info.model else ""
