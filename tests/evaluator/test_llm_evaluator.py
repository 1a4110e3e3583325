import asyncio
import json

import pytest

from goalkeeper.core.limits import Usage
from goalkeeper.core.verdict import Claim, EvaluatorFailure, Terms
from goalkeeper.errors import PeerError, PrerequisiteError
from goalkeeper.evaluator.llm_evaluator import LlmEvaluator
from goalkeeper.evaluator.prompt import EvaluatorRequest, terms_request
from goalkeeper.ports import ModelReply, ModelRequest
from goalkeeper.testing.scripted_evaluator import Held, ScriptedEvaluator, ScriptedReply

REQUEST = EvaluatorRequest("system", "user", {"type": "object"})
CLAIM = json.dumps({"verdict": "met", "reason": "ok", "basis": "tool", "evidence": ["a"]})
USAGE = Usage(10, 2, 3, 0, 0.5)


async def ask(reply: ScriptedReply | Held, timeout: float = 10.0) -> tuple[Claim | EvaluatorFailure, Usage]:
    return await LlmEvaluator(ScriptedEvaluator([reply]), timeout=timeout).evaluate(REQUEST)


async def test_a_claim_comes_back_with_what_it_cost() -> None:
    assert await ask(ModelReply(CLAIM, usage=USAGE)) == (Claim("met", "ok", "tool", ("a",)), USAGE)


async def test_the_question_is_handed_on_as_it_is_and_asked_once() -> None:
    client = ScriptedEvaluator(["prose"])
    await LlmEvaluator(client, timeout=7.0).evaluate(REQUEST)
    assert client.requests == [ModelRequest("system", "user", {"type": "object"}, 7.0)]


async def test_terms_are_settled_from_the_condition() -> None:
    client = ScriptedEvaluator([ModelReply('{"basis": "tool", "proofs": ["make test"]}', usage=USAGE)])
    terms, usage = await LlmEvaluator(client).settle_terms("make test exits 0")
    assert (terms, usage) == (Terms("tool", ("make test",)), USAGE)
    asked = terms_request("make test exits 0")
    assert (client.requests[0].system, client.requests[0].user) == (asked.system, asked.user)


async def test_terms_fail_like_verdicts() -> None:
    failing = ScriptedEvaluator([PeerError("HTTP 500: boom", kind="provider_error")])
    failure, _ = await LlmEvaluator(failing).settle_terms("x")
    assert isinstance(failure, EvaluatorFailure) and failure.kind == "provider_error"


@pytest.mark.parametrize(
    ("reply", "kind", "words"),
    [
        (PeerError("HTTP 401: bad key", kind="provider_error"), "provider_error", "provider failed: HTTP 401: bad key"),
        (PeerError("gone", kind="exited"), "provider_error", "gone"),
        (PeerError("late", kind="timeout"), "timeout", "did not answer within 10 s"),
        (
            PeerError("no library", "Install it.", kind="unavailable"),
            "unavailable",
            "can't start: no library Install it.",
        ),
        (ModelReply("half", "error", error="upstream broke"), "provider_error", "upstream broke"),
        (ModelReply(CLAIM, "length"), "cut_off", "length limit"),
        ("Yes.", "malformed", "prose"),
        ("", "malformed", "empty"),
    ],
)
async def test_each_failure_has_its_kind_and_its_own_words(reply: ScriptedReply, kind: str, words: str) -> None:
    failure, _ = await ask(reply)
    assert isinstance(failure, EvaluatorFailure)
    assert failure.kind == kind and words in failure.reason


async def test_what_a_useless_answer_cost_is_counted_too() -> None:
    assert (await ask(ModelReply("Yes.", usage=USAGE)))[1] == USAGE


async def test_what_a_late_answer_costs_is_unknown() -> None:
    assert (await ask(PeerError("late", kind="timeout")))[1].cost is None


class Deaf(ScriptedEvaluator):
    """A client that does not keep its own time-out, and whose end hangs or fails as told."""

    def __init__(self, end: str) -> None:
        super().__init__([Held("never")])
        self.end = end

    async def complete(self, request: ModelRequest) -> ModelReply:
        return await super().complete(ModelRequest(request.system, request.user, timeout=3_600))

    async def close(self) -> None:
        await super().close()
        if self.end == "fails":
            raise PeerError("can't be closed", kind="exited")


@pytest.mark.parametrize("end", ["works", "fails"])
async def test_a_client_that_hangs_is_ended_and_closed(end: str) -> None:
    client = Deaf(end)
    failure, usage = await LlmEvaluator(client, timeout=0.05).evaluate(REQUEST)
    assert isinstance(failure, EvaluatorFailure) and failure.kind == "timeout"
    assert usage.cost is None
    assert (client.cancelled, client.closed) == (1, 1)


async def test_a_cancelled_evaluation_cancels_the_question() -> None:
    client = ScriptedEvaluator([Held("never")])
    asking = asyncio.ensure_future(LlmEvaluator(client).evaluate(REQUEST))
    await client.wait_asked(1)
    asking.cancel()
    assert isinstance((await asyncio.gather(asking, return_exceptions=True))[0], asyncio.CancelledError)
    assert client.cancelled == 1


async def test_a_missing_prerequisite_is_an_evaluator_that_can_not_start() -> None:
    class Missing(ScriptedEvaluator):
        async def complete(self, request: ModelRequest) -> ModelReply:
            raise PrerequisiteError("pi was not found.", "Run setup.")

    failure, _ = await LlmEvaluator(Missing(["x"])).evaluate(REQUEST)
    assert isinstance(failure, EvaluatorFailure) and failure.kind == "unavailable"
    assert "pi was not found. Run setup." in failure.reason


async def test_closing_closes_the_client() -> None:
    client = ScriptedEvaluator(["x"])
    await LlmEvaluator(client).close()
    assert client.closed == 1
