"""The evaluator that asks a model: question -> model -> answer read, every failure with its own kind.

Knows nothing of windows, rules or which model it is; it never asks twice.
"""

from __future__ import annotations

import asyncio
import contextlib

from goalkeeper.core.limits import Usage
from goalkeeper.core.verdict import Claim, EvaluatorFailure, Terms
from goalkeeper.errors import GoalkeeperError, PeerError
from goalkeeper.evaluator.prompt import EvaluatorRequest, terms_request
from goalkeeper.evaluator.reply import parse_claim, parse_terms
from goalkeeper.ports import ModelClient, ModelReply, ModelRequest

DEFAULT_TIMEOUT = 60.0
_CLOSE_TIMEOUT = 10.0


class LlmEvaluator:
    """Asks one model for terms and verdicts.

    Args:
        client: the model.
        timeout: seconds until a question is given up, whatever the client does.
    """

    def __init__(self, client: ModelClient, *, timeout: float = DEFAULT_TIMEOUT) -> None:
        self._client = client
        self._timeout = timeout

    async def settle_terms(self, condition: str) -> tuple[Terms | EvaluatorFailure, Usage]:
        """Return what would prove a goal, asked from its condition alone, and what that cost."""
        reply, usage = await self._ask(terms_request(condition))
        if isinstance(reply, EvaluatorFailure):
            return reply, usage
        return parse_terms(reply.text, reply.finish, condition, reply.error), usage

    async def evaluate(self, request: EvaluatorRequest) -> tuple[Claim | EvaluatorFailure, Usage]:
        """Return what the model claims, before any rule, and what that cost.

        Args:
            request: made by `verdict_request` from a window that holds at least one entry.
        """
        reply, usage = await self._ask(request)
        if isinstance(reply, EvaluatorFailure):
            return reply, usage
        return parse_claim(reply.text, reply.finish, reply.error), usage

    async def close(self) -> None:
        """End what was started for the model. Idempotent."""
        await self._client.close()

    async def _ask(self, request: EvaluatorRequest) -> tuple[ModelReply | EvaluatorFailure, Usage]:
        question = ModelRequest(request.system, request.user, request.schema, self._timeout)
        try:
            async with asyncio.timeout(self._timeout):
                reply = await self._client.complete(question)
        except TimeoutError:
            await self._end_hanging()
            return self._late(), Usage(cost=None)
        except PeerError as error:
            if error.kind == "timeout":
                return self._late(), Usage(cost=None)
            return _failure(error), Usage()
        except GoalkeeperError as error:
            return EvaluatorFailure("unavailable", f"The evaluator can't start: {_words(error)}"), Usage()
        return reply, reply.usage

    def _late(self) -> EvaluatorFailure:
        return EvaluatorFailure("timeout", f"The evaluator did not answer within {self._timeout:g} s.")

    async def _end_hanging(self) -> None:
        """Close a client that hangs, without hanging with it."""
        with contextlib.suppress(TimeoutError, GoalkeeperError):
            async with asyncio.timeout(_CLOSE_TIMEOUT):
                await self._client.close()


def _failure(error: PeerError) -> EvaluatorFailure:
    if error.kind == "unavailable":
        return EvaluatorFailure("unavailable", f"The evaluator can't start: {_words(error)}")
    return EvaluatorFailure("provider_error", f"The evaluator's provider failed: {_words(error)}")


def _words(error: GoalkeeperError) -> str:
    return f"{error.message} {error.hint}".strip()
