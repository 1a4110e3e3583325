import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from goalkeeper.errors import PeerError
from goalkeeper.evaluator.litellm_model import LitellmConfig, LitellmModel, preload, takes_schema
from goalkeeper.evaluator.prompt import terms_request
from goalkeeper.ports import ModelClient, ModelInfo, ModelRequest
from goalkeeper.testing.model_conformance import ANSWER, PART, PROVIDER_WORDS, QUESTION, Behaviour, ModelConformance
from goalkeeper.testing.model_steps import CutStream, EmptyAnswer, Hang, HttpError, Length, Step, Text, Tokens
from goalkeeper.testing.scripted_model import ScriptedModel

STEPS: dict[Behaviour, Step] = {
    "answers": Text(ANSWER, usage=Tokens(prompt=100, completion=20, cached=30)),
    "answers nothing": EmptyAnswer(),
    "is cut": Length(PART),
    "refuses": HttpError(429, PROVIDER_WORDS),
    "breaks": CutStream('{"answ'),
    "hangs": Hang(),
}
KEY = "sk-secret-of-this-test"


@pytest.fixture(scope="module", autouse=True)
def loaded() -> None:
    """The import takes seconds, which must not count against the time-outs of tests."""
    import litellm  # noqa: F401

    preload()


Factory = Callable[..., tuple[LitellmModel, ScriptedModel]]


@pytest.fixture
async def asked(scripted_model: Callable[..., ScriptedModel]) -> AsyncIterator[Factory]:
    """A factory of a client and the model that it asks; all clients are closed when the test ends."""
    clients = []

    def make(*steps: Step, **config: Any) -> tuple[LitellmModel, ScriptedModel]:
        model = scripted_model(evaluator=list(steps))
        client = LitellmModel(LitellmConfig("openai/scripted", model.base_url, KEY, **config))
        clients.append(client)
        return client, model

    yield make
    for client in clients:
        await client.close()


class TestLitellm(ModelConformance):
    patience = 3.0

    @pytest.fixture(autouse=True)
    def _models(self, scripted_model: Callable[..., ScriptedModel]) -> None:
        self.start = scripted_model

    def make(self, behaviour: Behaviour) -> ModelClient:
        self.model = self.start(evaluator=STEPS[behaviour])
        return LitellmModel(LitellmConfig("openai/scripted", self.model.base_url, KEY))

    async def wait_hanging(self, count: int) -> None:
        await asyncio.to_thread(self.model.wait_held, count, 20.0)

    async def wait_given_up(self) -> None:
        await asyncio.to_thread(self.model.wait_for, lambda requests: requests[-1].gone, 20.0)


async def test_the_question_carries_schema_and_key_and_neither_tools_nor_a_stream(asked: Factory) -> None:
    client, model = asked(Text(ANSWER))
    question = terms_request("x")
    await client.complete(ModelRequest(question.system, question.user, question.schema))
    (request,) = model.requests
    body = request.body
    assert body["response_format"]["json_schema"]["schema"] == question.schema
    assert body["response_format"]["json_schema"]["strict"] is True
    assert body["temperature"] == 0
    assert [message["role"] for message in body["messages"]] == ["system", "user"]
    assert (request.system, request.text) == (question.system, question.user)
    assert "tools" not in body and "tool_choice" not in body and not body.get("stream")
    assert request.authorization == f"Bearer {KEY}"


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_an_error_is_not_asked_about_again(asked: Factory, status: int) -> None:
    client, model = asked(HttpError(status, "no luck"))
    with pytest.raises(PeerError, match=f"HTTP {status}: no luck"):
        await client.complete(QUESTION)
    assert len(model.requests) == 1


async def test_words_of_the_provider_do_not_give_the_key_away(asked: Factory) -> None:
    client, _ = asked(HttpError(401, f"Incorrect API key provided: {KEY}."))
    with pytest.raises(PeerError) as caught:
        await client.complete(QUESTION)
    assert "HTTP 401" in caught.value.message and KEY not in caught.value.message
    assert KEY not in repr(LitellmConfig("openai/x", api_key=KEY))


async def test_a_provider_that_refuses_the_schema_is_asked_without_it_from_then_on(asked: Factory) -> None:
    client, model = asked(HttpError(400, "response_format is not supported by this model"), Text(ANSWER))
    assert (await client.complete(QUESTION)).text == ANSWER
    assert (await client.complete(QUESTION)).text == ANSWER
    assert ["response_format" in request.body for request in model.requests] == [True, False, False]


async def test_a_provider_that_refuses_a_temperature_is_asked_without_one(asked: Factory) -> None:
    client, model = asked(HttpError(400, "temperature does not support 0 with this model"), Text(ANSWER))
    assert (await client.complete(QUESTION)).text == ANSWER
    assert ["temperature" in request.body for request in model.requests] == [True, False]
    assert "response_format" in model.requests[1].body


async def test_any_other_refusal_is_a_failure(asked: Factory) -> None:
    client, model = asked(HttpError(400, "maximum context length exceeded"))
    with pytest.raises(PeerError, match="maximum context length"):
        await client.complete(QUESTION)
    assert len(model.requests) == 1


async def test_the_cost_comes_from_the_given_prices(asked: Factory) -> None:
    prices = {"input": 1.0, "output": 10.0, "cacheRead": 0.1, "cacheWrite": 2.0}
    client, _ = asked(Text(ANSWER, usage=Tokens(1_000_000, 100_000, 400_000)), cost=prices)
    usage = (await client.complete(QUESTION)).usage
    assert usage.cost == pytest.approx(0.6 + 1.0 + 0.04)


@pytest.mark.parametrize("prices", [{}, {"input": 1.0}])
async def test_a_cost_that_is_not_known_in_full_is_unknown(asked: Factory, prices: dict[str, float]) -> None:
    client, _ = asked(Text(ANSWER, usage=Tokens(10, 5)), cost=prices)
    assert (await client.complete(QUESTION)).usage.cost is None


async def test_a_closed_port_is_a_provider_that_can_not_be_reached() -> None:
    client = LitellmModel(LitellmConfig("openai/x", "http://127.0.0.1:9/v1", KEY))
    with pytest.raises(PeerError, match="can't be reached") as caught:
        await client.complete(QUESTION)
    assert caught.value.kind == "provider_error" and "HTTP" not in caught.value.message
    await client.close()


async def test_a_model_without_a_provider_is_unavailable() -> None:
    client = LitellmModel(LitellmConfig("nonsense"))
    with pytest.raises(PeerError, match="knows no provider") as caught:
        await client.complete(QUESTION)
    assert caught.value.kind == "unavailable" and caught.value.hint


async def test_a_missing_key_is_said_with_the_variable_that_should_hold_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    client = LitellmModel(LitellmConfig("openai/x", "http://127.0.0.1:9/v1"))
    with pytest.raises(PeerError, match="no key for openai/x") as caught:
        await client.complete(QUESTION)
    assert caught.value.kind == "unavailable" and "OPENAI_API_KEY" in caught.value.hint
    await client.close()


@pytest.mark.parametrize(
    ("api", "base", "model", "api_base"),
    [
        ("openai-completions", "http://localhost:1234/v1", "openai/qwen", "http://localhost:1234/v1"),
        ("openai-responses", "https://api.openai.com/v1", "openai/responses/qwen", "https://api.openai.com/v1"),
        ("anthropic-messages", "https://api.anthropic.com", "anthropic/qwen", "https://api.anthropic.com"),
        ("google-generative-ai", "https://generativelanguage.googleapis.com/v1beta", "gemini/qwen", ""),
    ],
)
def test_the_sessions_model_is_reached_by_its_wire_protocol(api: str, base: str, model: str, api_base: str) -> None:
    config = LitellmConfig.of_session(ModelInfo("p", "qwen", api, base, {"input": 1.0}), KEY)
    assert config == LitellmConfig(model, api_base, KEY, {"input": 1.0})


@pytest.mark.parametrize("api", ["openai-codex-responses", "bedrock-converse-stream", "google-vertex", ""])
def test_a_protocol_that_only_pi_speaks_points_to_the_other_evaluator(api: str) -> None:
    with pytest.raises(PeerError, match="litellm can't be used") as caught:
        LitellmConfig.of_session(ModelInfo("p", "m", api), KEY)
    assert caught.value.kind == "unavailable" and "--evaluator pi" in caught.value.hint


@pytest.mark.parametrize("provider", ["anthropic", "bedrock", "groq", "vertex_ai", "something-new"])
def test_a_provider_for_which_litellm_makes_a_schema_a_tool_gets_none(provider: str) -> None:
    assert not takes_schema(provider)


def test_a_local_server_gets_the_schema() -> None:
    assert all(takes_schema(provider) for provider in ("openai", "ollama", "lm_studio", "hosted_vllm"))


OFFLINE = """
import sys

def refuse(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo"):
        print("NETWORK", arguments, file=sys.stderr)
        sys.exit(3)

import asyncio, json, os, time
import goalkeeper.evaluator.litellm_model as door
assert "litellm" not in sys.modules
sys.addaudithook(refuse)

async def main():
    door.preload()
    door.preload()
    slowest = 0.0
    loading = asyncio.ensure_future(door._load())
    while not loading.done():
        before = time.monotonic()
        await asyncio.sleep(0.005)
        slowest = max(slowest, time.monotonic() - before)
    litellm = await loading
    leaked = "LEAKED_FROM_DOTENV" in os.environ
    print(json.dumps({"slowest": slowest, "leaked": leaked, "module": litellm.__name__}))

asyncio.run(main())
"""


def test_the_import_asks_no_network_reads_no_dotenv_prints_nothing_and_leaves_the_loop_running(tmp_path: Any) -> None:
    (tmp_path / ".env").write_text("LEAKED_FROM_DOTENV=1\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", OFFLINE], cwd=tmp_path, capture_output=True, encoding="utf-8", timeout=100
    )
    assert (done.returncode, done.stderr) == (0, "")
    said = json.loads(done.stdout)
    assert said["module"] == "litellm" and not said["leaked"]
    assert said["slowest"] < 2.0  # the import takes several seconds: the loop ran meanwhile
