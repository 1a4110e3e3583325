import asyncio

import pytest

from goalkeeper.core.limits import Usage
from goalkeeper.errors import PeerError
from goalkeeper.ports import ModelClient, ModelReply, ModelRequest
from goalkeeper.testing.model_conformance import ANSWER, PART, PROVIDER_WORDS, Behaviour, ModelConformance
from goalkeeper.testing.scripted_evaluator import Held, ScriptedEvaluator, ScriptedReply

REPLIES: dict[Behaviour, ScriptedReply | Held] = {
    "answers": ModelReply(ANSWER, usage=Usage(70, 20, 30)),
    "answers nothing": "",
    "is cut": ModelReply(PART, "length"),
    "refuses": PeerError(f"HTTP 429: {PROVIDER_WORDS}", kind="provider_error"),
    "breaks": PeerError("The connection broke.", kind="provider_error"),
    "hangs": Held("too late"),
}


class TestTheDouble(ModelConformance):
    patience = 0.05

    def make(self, behaviour: Behaviour) -> ModelClient:
        self.client = ScriptedEvaluator([REPLIES[behaviour]])
        return self.client

    async def wait_hanging(self, count: int) -> None:
        await self.client.wait_asked(count)

    async def wait_given_up(self) -> None:
        """The double holds nothing that would have to notice."""


async def test_answers_come_in_turn_and_the_last_one_repeats() -> None:
    client = ScriptedEvaluator(["one", PeerError("no", kind="provider_error"), "two"])
    question = ModelRequest("s", "u")
    assert (await client.complete(question)).text == "one"
    with pytest.raises(PeerError):
        await client.complete(question)
    assert [(await client.complete(question)).text for _ in range(2)] == ["two", "two"]
    assert client.requests == [question] * 4


async def test_a_held_answer_comes_when_it_is_released() -> None:
    client = ScriptedEvaluator([Held("late")])
    asking = asyncio.ensure_future(client.complete(ModelRequest("s", "u")))
    await client.wait_asked(1)
    assert not asking.done()
    await client.release()
    assert (await asking).text == "late"


async def test_a_cancelled_question_is_counted() -> None:
    client = ScriptedEvaluator([Held("late")])
    asking = asyncio.ensure_future(client.complete(ModelRequest("s", "u")))
    await client.wait_asked(1)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    assert client.cancelled == 1


def test_a_script_without_an_answer_is_refused() -> None:
    with pytest.raises(ValueError, match="needs an answer"):
        ScriptedEvaluator([])
