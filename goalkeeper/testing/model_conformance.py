"""The checks that every model client must pass, to be run on the real adapters and on the double.

Knows no implementation: a test module subclasses the suite and says how to make what is checked.
"""

# ruff: noqa: D102 - the names of the checks say what they check

from __future__ import annotations

import abc
import asyncio
from collections.abc import Awaitable
from dataclasses import replace
from typing import Literal

from goalkeeper.errors import PeerError
from goalkeeper.ports import ModelClient, ModelReply, ModelRequest

Behaviour = Literal["answers", "answers nothing", "is cut", "refuses", "breaks", "hangs"]

ANSWER = '{"answer": "ja – 12 ✓"}'
PART = '{"answ'
PROVIDER_WORDS = "the quota of this key is used up"
QUESTION = ModelRequest("Answer with one object.", "Line one.\nLine two – with ✓ and \u2028.", {"type": "object"}, 30.0)
SHORT = 1.0
"""Seconds after which a question to a model that hangs is given up."""


class ModelConformance(abc.ABC):
    """The model port. A subclass is a pytest class; its methods are the tests."""

    @abc.abstractmethod
    def make(self, behaviour: Behaviour) -> ModelClient:
        """Return a client of a model that does this for ever.

        "answers" with ANSWER and a usage of 70 new, 30 cached and 20 generated tokens; "is cut" at its length limit
        after PART; "refuses" with an error that says PROVIDER_WORDS; "breaks" off in the middle of an answer; "hangs".
        """

    @abc.abstractmethod
    async def wait_hanging(self, count: int) -> None:
        """Wait until the model has `count` questions that it does not answer."""

    @abc.abstractmethod
    async def wait_given_up(self) -> None:
        """Wait until the model sees that nobody waits for its answer any more."""

    async def test_an_answer_comes_back_whole_with_its_usage(self) -> None:
        reply = await self._ask("answers")
        assert (reply.text, reply.finish, reply.error) == (ANSWER, "stop", "")
        assert (reply.usage.input, reply.usage.cache_read, reply.usage.output) == (70, 30, 20)

    async def test_an_empty_answer_is_an_answer(self) -> None:
        reply = await self._ask("answers nothing")
        assert (reply.text, reply.finish) == ("", "stop")

    async def test_an_answer_cut_at_the_length_limit_says_so(self) -> None:
        reply = await self._ask("is cut")
        assert (reply.text, reply.finish) == (PART, "length")

    async def test_an_error_carries_the_words_of_the_provider(self) -> None:
        error = await self._failure("refuses")
        assert error.kind == "provider_error"
        assert PROVIDER_WORDS in error.message

    async def test_a_connection_that_breaks_is_an_error_of_the_provider(self) -> None:
        assert (await self._failure("breaks")).kind == "provider_error"

    async def test_a_model_that_hangs_is_given_up_in_time(self) -> None:
        client = self.make("hangs")
        try:
            asking = asyncio.ensure_future(client.complete(replace(QUESTION, timeout=self.patience)))
            await self.wait_hanging(1)
            async with asyncio.timeout(30):
                error = (await asyncio.gather(asking, return_exceptions=True))[0]
            assert isinstance(error, PeerError) and error.kind == "timeout"
            await self.wait_given_up()
        finally:
            await client.close()

    async def test_a_question_can_be_cancelled(self) -> None:
        client = self.make("hangs")
        try:
            asking = asyncio.ensure_future(client.complete(QUESTION))
            await self.wait_hanging(1)
            asking.cancel()
            ended = (await asyncio.gather(asking, return_exceptions=True))[0]
            assert isinstance(ended, asyncio.CancelledError)
            await self.wait_given_up()
        finally:
            await client.close()

    async def test_it_can_be_asked_again_after_a_failure_and_after_a_close(self) -> None:
        client = self.make("answers")
        await client.complete(QUESTION)
        await client.close()
        assert (await client.complete(QUESTION)).text == ANSWER
        await client.close()
        await client.close()

    async def test_closing_what_was_never_asked_is_fine(self) -> None:
        await self.make("answers").close()

    # ---- what a subclass may say otherwise --------------------------------------------------------------------

    patience = SHORT
    """Seconds that a question to a model that hangs is given; a client that starts a process needs more."""

    async def _ask(self, behaviour: Behaviour) -> ModelReply:
        client = self.make(behaviour)
        try:
            return await _bounded(client.complete(QUESTION))
        finally:
            await client.close()

    async def _failure(self, behaviour: Behaviour) -> PeerError:
        try:
            reply = await self._ask(behaviour)
        except PeerError as error:
            return error
        raise AssertionError(f"answered {reply!r} though the model {behaviour}")


async def _bounded(answer: Awaitable[ModelReply]) -> ModelReply:
    async with asyncio.timeout(45):
        return await answer
