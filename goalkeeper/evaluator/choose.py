"""Opens the evaluator that a goal asks for.

Knows nothing of how it is asked.
"""

from __future__ import annotations

from typing import Literal

from goalkeeper.errors import PeerError, PrerequisiteError
from goalkeeper.evaluator.litellm_model import LitellmConfig, LitellmModel, preload
from goalkeeper.evaluator.llm_evaluator import LlmEvaluator
from goalkeeper.evaluator.pi_model import PiModel, PiModelConfig
from goalkeeper.pi.auth import check_auth, resolve_api_key
from goalkeeper.pi.install import PiCommand
from goalkeeper.ports import ModelClient, ModelInfo, ModelReply, ModelRequest


async def open_evaluator(
    kind: Literal["litellm", "pi", "checks"],
    model: str | None,
    session_model: ModelInfo | None,
    pi: PiCommand | None,
) -> LlmEvaluator:
    """Return the evaluator; what takes long to load loads in the background.

    Args:
        kind: "litellm", "pi" or "checks".
        model: a model by the user's word: litellm's name for litellm, pi's for pi.
        session_model: the session's current model, used where `model` is None.
        pi: how to run pi; needed by "pi", and by "litellm" for the session's key.

    Raises:
        PrerequisiteError: no model, or pi has no key for it.
        PeerError: kind "unavailable": litellm can't reach this model with pi's credentials.
    """
    return LlmEvaluator(await _client(kind, model, session_model, pi))


async def _client(kind: str, model: str | None, session_model: ModelInfo | None, pi: PiCommand | None) -> ModelClient:
    if kind == "checks":
        return _NoModel()
    if kind == "litellm" and model:
        preload()
        return LitellmModel(LitellmConfig(model))
    if pi is None:
        raise PrerequisiteError("The evaluator has no model.", "Name one with --model or GOALKEEPER_MODEL.")
    if kind == "pi":
        return PiModel(PiModelConfig(pi, *_pi_names(model, session_model)))
    if session_model is None:
        raise PrerequisiteError("The evaluator has no model.", "Name one with --model or GOALKEEPER_MODEL.")
    preload()
    return LitellmModel(LitellmConfig.of_session(session_model, await _key(pi, session_model.provider)))


def _pi_names(model: str | None, session_model: ModelInfo | None) -> tuple[str, str]:
    """Return pi's provider and model id; a model by the user's word may name its provider as "provider/id"."""
    provider, slash, model_id = (model or "").partition("/")
    if slash:
        return provider, model_id
    if session_model is None:
        raise PrerequisiteError("The evaluator has no model.", "Name one with --model or GOALKEEPER_MODEL.")
    return session_model.provider, model or session_model.model_id


async def _key(pi: PiCommand, provider: str) -> str:
    key = await resolve_api_key(pi, provider)
    if key is None and (await check_auth(pi, provider)).ready is False:
        raise PrerequisiteError(
            f"pi has no key for {provider}.", f"Log in: run `{pi.typed()}`, then /login. Or set its API key."
        )
    return key or ""


class _NoModel:
    """The model of a goal that only its checks decide: there is none, and nobody asks it."""

    async def complete(self, request: ModelRequest) -> ModelReply:
        raise PeerError("this goal has no evaluator's model", kind="unavailable")

    async def close(self) -> None:
        """Nothing to end."""
