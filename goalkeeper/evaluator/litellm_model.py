"""A model client over litellm: the only place that imports it.

Knows nothing of evaluators. litellm takes seconds to import, so it is imported in a thread, on demand or by `preload`.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import re
import threading
import warnings
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Literal

from goalkeeper.core.limits import Usage
from goalkeeper.errors import PeerError
from goalkeeper.evidence.text import one_line
from goalkeeper.ports import ModelInfo, ModelReply, ModelRequest

_OTHER_EVALUATOR = "Use `--evaluator pi`, or name a model with `--model`."

# pi's API name -> litellm's prefix of the model.
_PREFIXES = {
    "openai-completions": "openai/",
    "openai-responses": "openai/responses/",
    "anthropic-messages": "anthropic/",
    "google-generative-ai": "gemini/",
}
_GOOGLE = "generativelanguage.googleapis.com"  # litellm knows this address, and lays out others differently

_PREFIX = re.compile(r"^(?:litellm\.)?(?:\w+Error: )*(?:\w+Exception - )?")

# Parts of a question that a provider may refuse, and the words by which its refusal is told.
_OPTIONAL = {
    "response_format": ("response_format", "response format", "json_schema", "structured output", "schema"),
    "temperature": ("temperature",),
}

# Providers for which litellm sends a JSON schema as such.
_WITH_SCHEMA = frozenset(
    {
        "azure", "custom_openai", "gemini", "hosted_vllm", "llamafile", "lm_studio", "mistral", "ollama", "ollama_chat",
        "openai", "openai_like", "openrouter", "xai",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class LitellmConfig:
    """Which model, where, and at what price.

    Attributes:
        model: litellm's name of the model, e.g. "anthropic/claude-haiku-4-5".
        api_base: where requests go, empty for the provider's own address.
        api_key: the key, empty to let litellm take it from the environment.
        cost: USD per million tokens, keys input, output, cacheRead, cacheWrite; empty to ask litellm's price list.
    """

    model: str
    api_base: str = ""
    api_key: str = field(default="", repr=False)
    cost: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of_session(cls, model: ModelInfo, api_key: str) -> LitellmConfig:
        """Return the configuration for the session's current model, with the key that pi resolves for it.

        Raises:
            PeerError: kind "unavailable": litellm does not speak the model's wire protocol with pi's credentials.
        """
        prefix = _PREFIXES.get(model.api)
        if prefix is None:
            raise PeerError(
                f"litellm can't be used for {model.provider}/{model.model_id} ({model.api or 'unknown'} API).",
                _OTHER_EVALUATOR,
                kind="unavailable",
            )
        base = "" if prefix == "gemini/" and _GOOGLE in model.base_url else model.base_url
        return cls(f"{prefix}{model.model_id}", base, api_key, model.cost)


class LitellmModel:
    """Asks one model through litellm, once per question: no tools, no retries.

    A schema goes along where litellm sends it as such, and temperature 0. If the provider refuses a question because
    of one of them, it is asked again without it (another question, no retry), and so are all later ones.

    Args:
        config: which model.
    """

    def __init__(self, config: LitellmConfig) -> None:
        self._config = config
        self._refused: set[str] = set()
        self._used = False

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Return the model's answer; see `ModelClient`."""
        try:
            async with asyncio.timeout(request.timeout):
                litellm = await _load()
                self._used = True
                return await self._complete(litellm, request)
        except TimeoutError:
            raise PeerError(f"No answer within {request.timeout:g} s.", kind="timeout") from None

    async def close(self) -> None:
        """Close the connections. Idempotent; a later question opens new ones."""
        if self._used:
            self._used = False
            litellm = await _load()
            await litellm.close_litellm_async_clients()
            litellm.in_memory_llm_clients_cache.flush_cache()

    async def _complete(self, litellm: Any, request: ModelRequest) -> ModelReply:
        arguments = self._arguments(request, with_schema=takes_schema(self._provider(litellm)))
        while True:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # of its own types, in the middle of a user's screen
                    return self._reply(await litellm.acompletion(**arguments))
            except Exception as error:  # litellm raises what the provider's library raises, too
                refused = _refused_part(error, arguments)
                if refused is None:
                    raise self._peer_error(litellm, error) from error
            self._refused.add(refused)
            del arguments[refused]

    def _provider(self, litellm: Any) -> str:
        try:
            return str(litellm.get_llm_provider(self._config.model)[1])
        except Exception as error:
            raise PeerError(
                f"litellm knows no provider for the model {self._config.model!r}.",
                "Write it as PROVIDER/MODEL, for example openai/gpt-5-mini.",
                kind="unavailable",
            ) from error

    def _arguments(self, request: ModelRequest, *, with_schema: bool) -> dict[str, Any]:
        arguments: dict[str, Any] = {
            "model": self._config.model,
            "messages": [{"role": "system", "content": request.system}, {"role": "user", "content": request.user}],
            "temperature": 0,
            "drop_params": True,  # models that take no temperature get none
            "timeout": request.timeout,
            "num_retries": 0,
            "max_retries": 0,
        }
        if self._config.api_base:
            arguments["api_base"] = self._config.api_base
        if self._config.api_key:
            arguments["api_key"] = self._config.api_key
        if with_schema and request.schema:
            named = {"name": "answer", "schema": dict(request.schema), "strict": True}
            arguments["response_format"] = {"type": "json_schema", "json_schema": named}
        return {name: value for name, value in arguments.items() if name not in self._refused}

    def _reply(self, response: Any) -> ModelReply:
        usage = self._usage(response)
        if not response.choices:
            return ModelReply("", "error", usage, "the answer holds no choice")
        choice = response.choices[0]
        text = choice.message.content or ""
        reason = choice.finish_reason or "stop"
        if reason == "content_filter":
            return ModelReply(text, "error", usage, "the provider's content filter ended the answer")
        finish: Literal["stop", "length"] = "length" if reason == "length" else "stop"
        return ModelReply(text, finish, usage)

    def _usage(self, response: Any) -> Usage:
        said = getattr(response, "usage", None)
        if said is None:
            return Usage(cost=None)
        details = getattr(said, "prompt_tokens_details", None)
        read = _count(getattr(details, "cached_tokens", 0)) or _count(getattr(said, "cache_read_input_tokens", 0))
        write = _count(getattr(said, "cache_creation_input_tokens", 0))
        prompt = max(_count(said.prompt_tokens) - read - write, 0)
        output = _count(said.completion_tokens)
        return Usage(prompt, output, read, write, self._cost(response, prompt, output, read, write))

    def _cost(self, response: Any, prompt: int, output: int, read: int, write: int) -> float | None:
        prices = self._config.cost
        if not prices:
            known = getattr(response, "_hidden_params", {}).get("response_cost")
            return known if isinstance(known, float) else None
        counts = {"input": prompt, "output": output, "cacheRead": read, "cacheWrite": write}
        if any(count and name not in prices for name, count in counts.items()):
            return None
        return sum(count * prices.get(name, 0.0) for name, count in counts.items()) / 1_000_000

    def _missing_keys(self, litellm: Any) -> list[str]:
        """Return the variables of which one should hold the key, empty if there is a key or none is needed."""
        if self._config.api_key:
            return []
        missing = litellm.validate_environment(self._config.model)["missing_keys"]
        return [name for name in missing if name.endswith("_API_KEY")]

    def _peer_error(self, litellm: Any, error: Exception) -> PeerError:
        if isinstance(error, litellm.Timeout):
            return PeerError("The provider did not answer in time.", kind="timeout")
        missing = self._missing_keys(litellm)
        if missing:
            # Providers that get no key at all fail in ways of their own, some before anything was sent.
            return PeerError(
                f"There is no key for {self._config.model}.", f"Set {' or '.join(missing)}.", kind="unavailable"
            )
        words = getattr(error, "message", None) or str(error) or type(error).__name__
        if self._config.api_key:
            words = words.replace(self._config.api_key, "…")
        words = one_line(_PREFIX.sub("", words), 500)
        status = getattr(error, "status_code", None)
        # litellm gives a status of its own to a connection that failed; no provider sent it.
        unreached = isinstance(error, litellm.APIConnectionError) or words == "Connection error."
        if unreached or not isinstance(status, int):
            return PeerError(f"The provider can't be reached: {words}" if unreached else words, kind="provider_error")
        return PeerError(f"HTTP {status}: {words}", kind="provider_error")


def takes_schema(provider: str) -> bool:
    """Say whether litellm sends a JSON schema to this provider as such.

    For others it may invent a tool that the model has to call, and an evaluator must have none.
    """
    return provider in _WITH_SCHEMA


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0


def _refused_part(error: Exception, arguments: Mapping[str, Any]) -> str | None:
    """Return the optional part of a question that the provider's refusal is about, None if it is about neither."""
    words = str(error).lower()
    if getattr(error, "status_code", None) not in (400, 422):
        return None
    for part, names in _OPTIONAL.items():
        if part in arguments and any(name in words for name in names):
            return part
    return None


# ---- the import -----------------------------------------------------------------------------------------------

_lock = threading.Lock()
_loading: Future[Any] | None = None


def preload() -> None:
    """Begin to import litellm in a thread; returns at once. Idempotent."""
    _begin()


async def _load() -> Any:
    """Return the litellm module.

    Raises:
        PeerError: kind "unavailable": it can't be imported.
    """
    loading = _begin()
    try:
        return loading.result() if loading.done() else await asyncio.wrap_future(loading)
    except Exception as error:
        raise PeerError(f"litellm can't be imported: {error}", _OTHER_EVALUATOR, kind="unavailable") from error


def _begin() -> Future[Any]:
    global _loading
    with _lock:
        if _loading is None:
            _loading = Future()
            # A daemon: a command that ends before the import is done must not wait for it.
            threading.Thread(target=_import, args=(_loading,), name="import litellm", daemon=True).start()
        return _loading


def _import(loading: Future[Any]) -> None:
    # Without these the import asks the network for a price list and reads a `.env` that a worker may have written.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    os.environ.setdefault("LITELLM_MODE", "PRODUCTION")
    try:
        import litellm

        litellm.suppress_debug_info = True
        litellm.telemetry = False
        for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        _warm_up(litellm)
        # Its 200 MB of objects live as long as the process; each look of the collector at them would take 0.1 s.
        gc.freeze()
    except BaseException as error:
        loading.set_exception(error)
    else:
        loading.set_result(litellm)


def _warm_up(litellm: Any) -> None:
    """Let litellm load what it loads at its first call, which would hold up the event loop for tenths of a second.

    A mock response is answered by litellm itself, without a request. Its failure does not matter.
    """
    with contextlib.suppress(Exception):
        litellm.completion(model="openai/none", messages=[], mock_response="none", api_key="none", num_retries=0)
