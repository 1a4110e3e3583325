"""Carries out the machine's effects through the ports; results return as events.

Knows nothing of when an effect is due: `core` decides that.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from goalkeeper.core.effects import (
    AbortRun,
    CancelEvaluation,
    CancelTimers,
    Effect,
    RequestVerdict,
    RunChecks,
    SendMessage,
    SettleTerms,
    StartTimer,
)
from goalkeeper.core.events import (
    ChecksPassed,
    Event,
    Judged,
    MessageRefused,
    MessageSent,
    TermsSettled,
    TimerFired,
)
from goalkeeper.core.limits import Usage
from goalkeeper.core.records import CheckRan, Record
from goalkeeper.core.state import GoalState, SessionState
from goalkeeper.core.verdict import EvaluatorFailure, Terms
from goalkeeper.errors import GoalkeeperError, PeerError
from goalkeeper.evaluator.prompt import EvaluatorRequest
from goalkeeper.evidence.citations import check_failed
from goalkeeper.evidence.text import clean
from goalkeeper.ports import ShellResult, Worker
from goalkeeper.runtime.checks import CheckRound, CheckStamper, run_checks
from goalkeeper.runtime.clock import Clock
from goalkeeper.runtime.freshness import FreshnessSource
from goalkeeper.runtime.judge import TRANSCRIPT_CHARACTERS, ChecksEvaluator, Finding, Question, judge

T = TypeVar("T")


class GoalEvaluator(Protocol):
    """The evaluator of a goal; see `goalkeeper.evaluator.llm_evaluator.LlmEvaluator`."""

    async def settle_terms(self, condition: str) -> tuple[Terms | EvaluatorFailure, Usage]:
        """Return what counts as proof, from the condition alone."""
        ...

    async def evaluate(self, request: EvaluatorRequest) -> tuple[Any, Usage]:
        """Return a claim or a failure."""
        ...


class Handlers:
    """Carries out effects.

    Args:
        worker: the agent.
        evaluator: asked for terms and claims.
        freshness: the work tree and the stamps.
        stamper: told of the checks' results.
        clock: for the times in events.
        cwd: absolute path of the session's folder.
        post: where events go.
        tell: where records go that are not the machine's own.
        fail: told of a fault of ours in the background.
    """

    def __init__(
        self,
        worker: Worker,
        evaluator: GoalEvaluator,
        freshness: FreshnessSource,
        stamper: CheckStamper,
        *,
        clock: Clock,
        cwd: str,
        post: Callable[[Event], None],
        tell: Callable[[Record], None],
        fail: Callable[[BaseException], None],
    ) -> None:
        self._worker = worker
        self._evaluator = evaluator
        self._freshness = freshness
        self._stamper = stamper
        self._clock = clock
        self._cwd = cwd
        self._post = post
        self._tell = tell
        self._fail = fail
        self._orders: asyncio.Queue[SendMessage | AbortRun] = asyncio.Queue()
        self._orderly = self._background(self._carry_out_orders())
        self._evaluation: asyncio.Task[None] | None = None
        self._terms: tuple[str, asyncio.Task[Terms | EvaluatorFailure]] | None = None
        self._timers: dict[int, asyncio.TimerHandle] = {}
        self._round = CheckRound(())
        self._goal: GoalState | None = None
        self._owed = Usage()  # what questions cost that came to nothing

    def start(self, effect: Effect, state: SessionState) -> None:
        """Begin an effect of a transition to `state`."""
        goal = self._goal = state.goal
        if isinstance(effect, SendMessage | AbortRun):
            self._orders.put_nowait(effect)
        elif isinstance(effect, CancelEvaluation):
            self._cancel_evaluation()
        elif isinstance(effect, StartTimer):
            loop = asyncio.get_running_loop()
            self._timers[effect.id] = loop.call_later(effect.seconds, self._fire, effect)
        elif isinstance(effect, CancelTimers):
            self._cancel_timers()
        elif isinstance(effect, SettleTerms):
            self._terms = (effect.goal, self._background(self._settle(effect.goal, effect.condition)))
        elif goal and isinstance(effect, RunChecks):
            self._evaluation = self._background(self._check(effect, goal))
        elif goal and isinstance(effect, RequestVerdict):
            self._evaluation = self._background(self._judge(effect, goal))

    async def finish(self) -> None:
        """Carry out what was ordered of the worker, then stop everything. Idempotent."""
        self._cancel_timers()
        self._cancel_evaluation()
        await self._orders.join()
        self._orderly.cancel()

    def _background(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(work)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        if not task.cancelled() and (error := task.exception()):
            self._fail(error)

    def _times(self) -> dict[str, Any]:
        return {"at": self._clock.now(), "awake": self._clock.awake()}

    # ---- worker -----------------------------------------------------------------------------------------------

    async def _carry_out_orders(self) -> None:
        """Send and abort in the order of the machine: an abort ordered first never hits a later message."""
        while True:
            order = await self._orders.get()
            try:
                if isinstance(order, AbortRun):
                    with contextlib.suppress(PeerError):
                        await self._worker.abort()
                else:
                    await self._send(order)
            finally:
                self._orders.task_done()

    async def _send(self, order: SendMessage) -> None:
        if self._goal is None or self._goal.pause or self._goal.awaited != order.id:
            # Paused, cleared or replaced while the message waited: it must not start a run any more.
            self._post(MessageRefused(effect=order.id, reason="overtaken", **self._times()))
            return
        try:
            await self._worker.send(order.text, steer=order.steer)
        except PeerError as error:
            self._post(MessageRefused(effect=order.id, reason=error.message, **self._times()))
        else:
            self._post(MessageSent(effect=order.id, **self._times()))

    # ---- timers -----------------------------------------------------------------------------------------------

    def _fire(self, timer: StartTimer) -> None:
        self._timers.pop(timer.id, None)
        self._post(TimerFired(effect=timer.id, goal=timer.goal, name=timer.name, **self._times()))

    def _cancel_timers(self) -> None:
        for handle in self._timers.values():
            handle.cancel()
        self._timers.clear()

    # ---- checks and evaluator ---------------------------------------------------------------------------------

    def _cancel_evaluation(self) -> None:
        if self._evaluation:
            self._evaluation.cancel()
        if self._terms:
            self._terms[1].cancel()
        self._evaluation = self._terms = None

    async def _settle(self, goal: str, condition: str) -> Terms | EvaluatorFailure:
        terms, usage = await self._evaluator.settle_terms(condition)
        if isinstance(terms, Terms):
            self._post(TermsSettled(goal=goal, terms=terms, usage=usage, **self._times()))
        else:
            self._owed = self._owed.plus(usage)
        return terms

    async def _terms_of(self, goal: GoalState) -> Terms | EvaluatorFailure:
        """Return the goal's terms; ask once more where the question beside the first run failed."""
        if goal.terms:
            return goal.terms
        if self._terms and self._terms[0] == goal.id:
            terms = await self._terms[1]
            if isinstance(terms, Terms):
                return terms
        return await self._settle(goal.id, goal.condition)

    async def _check(self, effect: RunChecks, goal: GoalState) -> None:
        def told(result: ShellResult) -> None:
            self._tell(
                CheckRan(
                    at=self._clock.now(),
                    goal=goal.id,
                    command=result.command,
                    exit_code=result.exit_code,
                    entry=result.entry_id,
                )
            )

        try:
            self._round = await run_checks(self._worker, self._freshness, self._stamper, goal.checks, told)
        except GoalkeeperError as error:
            failure = EvaluatorFailure("unavailable", f"the checks could not be run: {error.message}")
            self._judged(effect, Finding(failure), None)
            return
        leaf = next((r.entry_id for r in reversed(self._round.results) if r.entry_id), None)
        failed = self._round.failed
        if failed:
            verdict = check_failed(failed.command, failed.exit_code, clean(failed.output))
            self._judged(effect, Finding(verdict, tree=await self._freshness.fingerprint()), leaf)
        else:
            self._post(ChecksPassed(effect=effect.id, goal=goal.id, leaf=leaf, **self._times()))

    async def _judge(self, effect: RequestVerdict, goal: GoalState) -> None:
        look = asyncio.create_task(self._freshness.fingerprint()) if effect.want_tree else None
        try:
            finding, leaf = await self._find(goal)
            if look and finding.tree is None:
                finding = replace(finding, tree=await look)
        except GoalkeeperError as error:
            finding, leaf = Finding(EvaluatorFailure("unavailable", error.message)), None
        finally:
            if look:
                look.cancel()
        self._judged(effect, finding, leaf)

    async def _find(self, goal: GoalState) -> tuple[Finding, str | None]:
        terms = await self._terms_of(goal)
        transcript = await self._worker.transcript(TRANSCRIPT_CHARACTERS)
        if isinstance(terms, EvaluatorFailure):
            return Finding(terms), transcript.leaf
        question = Question(
            condition=goal.condition,
            terms=terms,
            transcript=transcript,
            cwd=self._cwd,
            goal_entry=goal.set_after,
            goal_at=goal.started_at,
            tree_at_start=goal.tree_at_start,
            checks=self._round.results if goal.checks else (),
            checks_tree=self._round.tree,
        )
        evaluator = ChecksEvaluator(self._round.results) if goal.evaluator == "checks" else self._evaluator
        return await judge(question, evaluator, self._freshness), transcript.leaf

    def _judged(self, effect: RunChecks | RequestVerdict, finding: Finding, leaf: str | None) -> None:
        usage, self._owed = finding.usage.plus(self._owed), Usage()
        self._post(
            Judged(
                effect=effect.id,
                goal=effect.goal,
                judgement=finding.judgement,
                usage=usage,
                tree=finding.tree,
                leaf=leaf,
                window=finding.window,
                changed=finding.changed,
                **self._times(),
            )
        )
