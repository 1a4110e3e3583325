"""The driver: take an event, step, save, act, feed results back.

Knows nothing of pi, models, files or terminals: it is handed a store, something that carries out effects, and
something that tells records.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from goalkeeper.core.effects import Announce, Effect
from goalkeeper.core.events import Event, TimePassed
from goalkeeper.core.machine import IllegalCommand, Transition, step
from goalkeeper.core.records import Record
from goalkeeper.core.state import SessionState
from goalkeeper.errors import PeerError
from goalkeeper.runtime.clock import Clock

HEARTBEAT = 10.0
"""Seconds between two savings of the time spent, so that a crash loses little of it."""


class Store(Protocol):
    """Where the state is kept."""

    def save(self, state: SessionState) -> None:
        """Save the state durably before returning; a failure is the store's to report."""
        ...


class EffectRunner(Protocol):
    """Who carries out effects."""

    def start(self, effect: Effect, state: SessionState) -> None:
        """Begin an effect; its result comes back as an event."""
        ...


class Driver:
    """Runs the machine of one session.

    Args:
        state: where to begin.
        store: saved to before any effect.
        tell: called with each record, in order, before the effects that follow it.
        clock: for the time in heartbeat events.
        heartbeat: seconds between two of them.
    """

    def __init__(
        self,
        state: SessionState,
        store: Store,
        tell: Callable[[Record], None],
        clock: Clock,
        *,
        heartbeat: float = HEARTBEAT,
    ) -> None:
        self.state = state
        self._store = store
        self._tell = tell
        self._clock = clock
        self._heartbeat = heartbeat
        self._inbox: asyncio.Queue[tuple[Event | BaseException, asyncio.Future[Transition] | None]] = asyncio.Queue()
        self._over = False

    def post(self, event: Event) -> None:
        """Queue an event from outside; a command that turns out illegal is dropped."""
        self._inbox.put_nowait((event, None))

    def fail(self, error: BaseException) -> None:
        """End `run` with a fault that showed up in the background."""
        self._inbox.put_nowait((error, None))

    async def submit(self, event: Event) -> Transition:
        """Queue a user's command and wait until it is saved.

        Raises:
            IllegalCommand: it can't be carried out; nothing has changed.
            PeerError: kind "ending": `run` is over, so nobody carries it out any more; nothing has changed.
        """
        if self._over:
            raise _ending()
        done: asyncio.Future[Transition] = asyncio.get_running_loop().create_future()
        self._inbox.put_nowait((event, done))
        return await done

    def begin(self, event: Event, runner: EffectRunner) -> None:
        """Handle the first event at once.

        Raises:
            IllegalCommand: it can't be carried out; nothing has changed.
        """
        self._apply(step(self.state, event), event, runner)

    async def run(self, runner: EffectRunner, until: Callable[[SessionState], bool]) -> SessionState:
        """Handle events until `until` holds; return the last state."""
        heartbeat = asyncio.create_task(self._beat())
        try:
            while not until(self.state):
                event, done = await self._inbox.get()
                if isinstance(event, BaseException):
                    raise event
                self._handle(event, done, runner)
            return self.state
        finally:
            heartbeat.cancel()
            self._over = True
            while not self._inbox.empty():
                _, done = self._inbox.get_nowait()
                if done and not done.done():
                    done.set_exception(_ending())

    def _handle(self, event: Event, done: asyncio.Future[Transition] | None, runner: EffectRunner) -> None:
        try:
            transition = step(self.state, event)
        except IllegalCommand as error:
            if done and not done.done():
                done.set_exception(error)
            return
        self._apply(transition, event, runner)
        if done and not done.done():
            done.set_result(transition)

    def _apply(self, transition: Transition, event: Event, runner: EffectRunner) -> None:
        if isinstance(event, TimePassed) or durable(transition.state) != durable(self.state):
            self._store.save(transition.state)
        self.state = transition.state
        for effect in transition.effects:
            if isinstance(effect, Announce):
                self._tell(effect.record)
            else:
                runner.start(effect, self.state)

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(self._heartbeat)
            self.post(TimePassed(at=self._clock.now(), awake=self._clock.awake()))


def _ending() -> PeerError:
    return PeerError("The controller of this session is ending.", "Ask again in a moment.", kind="ending")


def durable(state: SessionState) -> SessionState:
    """Return the part of a state whose change must be saved at once.

    Whether the worker already has a stored message is not: after a crash the session file tells. The time spent is
    saved with every other change and by the heartbeat.
    """
    goal = state.goal
    if goal:
        stage = "sending" if goal.stage == "running" else goal.stage
        goal = replace(goal, seconds=0.0, stage=stage, awaited=None if stage == "sending" else goal.awaited)
    return replace(state, goal=goal, busy=False, awake=None)
