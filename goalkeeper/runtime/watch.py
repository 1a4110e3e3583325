"""Turns what a worker reports into events for the machine, records for the user, and stamps.

Knows nothing of what the machine makes of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from goalkeeper import ports
from goalkeeper.core import events, records
from goalkeeper.errors import PeerError
from goalkeeper.evidence.progress import evidence_digest_of_run
from goalkeeper.evidence.text import one_line
from goalkeeper.runtime.clock import Clock
from goalkeeper.runtime.judge import TRANSCRIPT_CHARACTERS
from goalkeeper.runtime.recovery import entries_after

SUMMARY_WIDTH = 200
"""Characters of a tool call or a notice that are told in one line."""


class ToolStamper(Protocol):
    """Stamps tool results; see `goalkeeper.worktree.stamps.Stamper`."""

    def tool_started(self, call_id: str, name: str) -> None:
        """Note that a call began."""
        ...

    def tool_ended(self, call_id: str, name: str, exit_code: int | None) -> None:
        """Note that a call ended; its stamp is made in the background."""
        ...

    def all_told(self) -> None:
        """Note that no word of a call is on its way."""
        ...


class Watcher:
    """Watches one worker.

    Args:
        worker: the agent.
        stamper: told of each tool call.
        clock: for the times in events.
        post: where events go.
        tell: where records go.
        goal: says the id of the goal that is set now, empty for none.
        leaf: the session's leaf when watching begins.
    """

    def __init__(
        self,
        worker: ports.Worker,
        stamper: ToolStamper,
        *,
        clock: Clock,
        post: Callable[[events.Event], None],
        tell: Callable[[records.Record], None],
        goal: Callable[[], str],
        leaf: str | None,
    ) -> None:
        self._worker = worker
        self._stamper = stamper
        self._clock = clock
        self._post = post
        self._tell = tell
        self._goal = goal
        self._leaf = leaf
        self._began = clock.now()
        self._calls: dict[str, tuple[str, str]] = {}
        """Goal and summary of each call under way: its end may come after the goal was cleared."""

    async def run(self) -> None:
        """Watch until the worker is closed or has exited."""
        async for event in self._worker.events():
            await self._handle(event)

    async def _handle(self, event: ports.WorkerEvent) -> None:
        match event:
            case ports.RunStarted():
                self._began = self._clock.now()
                self._post(events.RunBegan(**self._times()))
            case ports.RunSettled():
                await self._settled(event)
            case ports.ToolStarted() | ports.ToolEnded():
                self._tool(event)
            case ports.Compacted():
                self._post(events.SessionCompacted(**self._times()))
            case ports.QuestionAsked():
                question = one_line(event.question, SUMMARY_WIDTH)
                self._post(events.QuestionUnanswered(question=question, **self._times()))
            case ports.WorkerExited():
                self._post(events.WorkerLost(detail=_exit_words(event), **self._times()))
            case ports.RetryScheduled():
                words = one_line(event.error, SUMMARY_WIDTH)
                self._notice("warning", f"pi tries again in {event.delay:g} s (attempt {event.attempt}): {words}")
            case ports.WorkerNotice():
                self._notice(event.level, one_line(event.text, SUMMARY_WIDTH))

    async def _settled(self, event: ports.RunSettled) -> None:
        self._stamper.all_told()  # so that a crash from here on finds the stamps stored
        try:
            transcript = await self._worker.transcript(TRANSCRIPT_CHARACTERS)
            digest = evidence_digest_of_run(entries_after(transcript, self._leaf, self._began))
            self._leaf = transcript.leaf
        except PeerError as error:
            # What the run did is unknown, which is no sign of standing still.
            self._notice("warning", f"the session could not be read after the run: {error.message}")
            digest = f"unread at {self._clock.now()}"
        self._post(
            events.RunEnded(
                aborted=event.aborted,
                error=event.error,
                leaf=self._leaf,
                digest=digest,
                usage=event.usage,
                **self._times(),
            )
        )

    def _tool(self, event: ports.ToolStarted | ports.ToolEnded) -> None:
        at = self._clock.now()
        if isinstance(event, ports.ToolStarted):
            self._stamper.tool_started(event.call_id, event.name)
            goal, summary = self._calls[event.call_id] = self._goal(), one_line(event.summary, SUMMARY_WIDTH)
            self._tell(
                records.ToolUsed(
                    at=at, goal=goal, status="started", call=event.call_id, name=event.name, summary=summary
                )
            )
            return
        goal, summary = self._calls.pop(event.call_id, (self._goal(), ""))
        self._stamper.tool_ended(event.call_id, event.name, event.exit_code)
        self._tell(
            records.ToolUsed(
                at=at,
                goal=goal,
                status="ended",
                call=event.call_id,
                name=event.name,
                summary=summary,
                is_error=event.is_error,
                exit_code=event.exit_code,
            )
        )

    def _notice(self, level: Any, text: str) -> None:
        self._tell(records.Notice(at=self._clock.now(), level=level, text=text))

    def _times(self) -> dict[str, Any]:
        return {"at": self._clock.now(), "awake": self._clock.awake()}


def _exit_words(event: ports.WorkerExited) -> str:
    ended = f"killed by signal {-event.returncode}" if event.returncode < 0 else f"exit status {event.returncode}"
    last = one_line(event.detail.strip().rsplit("\n", 1)[-1], SUMMARY_WIDTH)
    return f"{ended}; its last words: {last}" if last else ended
