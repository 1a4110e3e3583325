"""A model client that answers from a script: the double of the model port.

Knows nothing of verdicts; `judges.say_verdict` writes answers that an evaluator can use.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from goalkeeper.errors import PeerError
from goalkeeper.ports import ModelReply, ModelRequest

ScriptedReply = str | ModelReply | PeerError | Callable[[ModelRequest], str]
"""A complete answer's text, a whole reply, how the provider fails, or what makes the text from the question."""


@dataclass(frozen=True, slots=True)
class Held:
    """An answer that waits for `ScriptedEvaluator.release`, or for the question's time-out.

    Attributes:
        reply: the answer given then.
    """

    reply: ScriptedReply


class ScriptedEvaluator:
    """Answers questions in turn; after the last answer it repeats.

    Args:
        replies: at least one answer.

    Attributes:
        requests: the questions so far.
        cancelled: how many of them were given up by the one who asked.
        closed: how often it was closed.
    """

    def __init__(self, replies: Sequence[ScriptedReply | Held]) -> None:
        if not replies:
            raise ValueError("a scripted evaluator needs an answer")
        self.requests: list[ModelRequest] = []
        self.cancelled = 0
        self.closed = 0
        self._replies = tuple(replies)
        self._changed = asyncio.Condition()
        self._released = 0

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Return the next answer; see `ModelClient`."""
        index = len(self.requests)
        self.requests.append(request)
        reply = self._replies[min(index, len(self._replies) - 1)]
        try:
            async with self._changed:
                self._changed.notify_all()
            if isinstance(reply, Held):
                await self._wait_released(request.timeout)
                reply = reply.reply
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if isinstance(reply, PeerError):
            raise reply
        if callable(reply):
            reply = reply(request)
        return ModelReply(reply) if isinstance(reply, str) else reply

    async def close(self) -> None:
        """Count the end; nothing was started."""
        self.closed += 1

    async def wait_asked(self, count: int, timeout: float = 10.0) -> None:
        """Wait until `count` questions were asked.

        Raises:
            TimeoutError: fewer were asked within `timeout` seconds.
        """
        async with asyncio.timeout(timeout), self._changed:
            await self._changed.wait_for(lambda: len(self.requests) >= count)

    async def release(self) -> None:
        """Let every answer that is held now go on; later ones are held again."""
        async with self._changed:
            self._released += 1
            self._changed.notify_all()

    async def _wait_released(self, timeout: float) -> None:
        before = self._released
        try:
            async with asyncio.timeout(timeout), self._changed:
                await self._changed.wait_for(lambda: self._released != before)
        except TimeoutError:
            raise PeerError(f"No answer within {timeout:g} s.", kind="timeout") from None
