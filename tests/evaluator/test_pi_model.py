import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from goalkeeper.errors import PeerError
from goalkeeper.evaluator.pi_model import PiModel, PiModelConfig
from goalkeeper.pi.install import PiCommand, find_pi
from goalkeeper.ports import ModelClient
from goalkeeper.testing.model_conformance import ANSWER, PART, PROVIDER_WORDS, QUESTION, Behaviour, ModelConformance
from goalkeeper.testing.model_steps import CutStream, EmptyAnswer, Hang, HttpError, Length, Step, Text, Tokens
from goalkeeper.testing.pi_home import MODEL, PROVIDER
from goalkeeper.testing.scripted_model import ScriptedModel

STEPS: dict[Behaviour, Step] = {
    "answers": Text(ANSWER, usage=Tokens(prompt=100, completion=20, cached=30)),
    "answers nothing": EmptyAnswer(),
    "is cut": Length(PART),
    "refuses": HttpError(429, PROVIDER_WORDS),
    "breaks": CutStream('{"answ'),
    "hangs": Hang(),
}
Environment = Callable[..., dict[str, str]]
Models = Callable[..., ScriptedModel]


def client_of(env: dict[str, str]) -> PiModel:
    return PiModel(PiModelConfig(find_pi(env), PROVIDER, MODEL, env))


@pytest.mark.real_pi
class TestPi(ModelConformance):
    patience = 6.0

    @pytest.fixture(autouse=True)
    def _models(self, scripted_model: Models, agent_env: Environment) -> None:
        self.start, self.env = scripted_model, agent_env

    def make(self, behaviour: Behaviour) -> ModelClient:
        self.model = self.start(evaluator=STEPS[behaviour])
        return client_of(self.env(self.model))

    async def wait_hanging(self, count: int) -> None:
        await asyncio.to_thread(self.model.wait_held, count, 20.0)

    async def wait_given_up(self) -> None:
        await asyncio.to_thread(self.model.wait_for, lambda requests: requests[-1].gone, 20.0)


@pytest.mark.real_pi
async def test_pi_sends_our_words_alone_and_no_tools(
    scripted_model: Models, agent_env: Environment, tmp_path: Path
) -> None:
    model = scripted_model(evaluator=Text(ANSWER))
    env = agent_env(model)
    for name in ("AGENTS.md", "APPEND_SYSTEM.md", "SYSTEM.md"):
        (tmp_path / "agent" / name).write_text("WORDS OF THE USER'S OWN FILES", encoding="utf-8")
    question = replace(QUESTION, system="Judge it.", user="/help is a text, not a command.")
    await client_of(env).complete(question)
    (request,) = model.requests
    assert "tools" not in request.body
    assert request.system.startswith("Judge it.") and "OWN FILES" not in request.system
    assert request.text.strip() == question.user
    assert len(request.messages) == 2


@pytest.mark.real_pi
async def test_pi_does_not_retry_and_leaves_no_session(
    scripted_model: Models, agent_env: Environment, tmp_path: Path
) -> None:
    model = scripted_model(evaluator=HttpError(500, "boom"))
    with pytest.raises(PeerError, match="boom"):
        await client_of(agent_env(model)).complete(QUESTION)
    assert len(model.requests) == 1
    assert not list(tmp_path.rglob("*.jsonl"))


@pytest.mark.real_pi
async def test_an_older_pi_works_too(scripted_model: Models, agent_env: Environment, old_pi: Path) -> None:
    model = scripted_model(evaluator=Text(ANSWER))
    reply = await client_of(agent_env(model, pi=old_pi)).complete(QUESTION)
    assert reply.text == ANSWER and "tools" not in model.requests[0].body


@pytest.mark.real_pi
async def test_a_close_ends_a_question_that_is_still_open(scripted_model: Models, agent_env: Environment) -> None:
    model = scripted_model(evaluator=Hang())
    client = client_of(agent_env(model))
    asking = asyncio.ensure_future(client.complete(QUESTION))
    await asyncio.to_thread(model.wait_held, 1, 20.0)
    await client.close()
    error = (await asyncio.gather(asking, return_exceptions=True))[0]
    assert isinstance(error, PeerError) and error.kind == "provider_error"


def test_tools_and_everything_that_may_bring_some_are_off() -> None:
    argv = PiModelConfig(PiCommand(("pi",)), "p", "m").argv("SYSTEM")
    for flag in ("--no-tools", "--no-extensions", "--no-skills", "--no-context-files", "--no-session", "--no-approve"):
        assert flag in argv
    assert not {"--tools", "-t", "-e", "--extension"} & set(argv)
    assert argv[argv.index("--thinking") + 1] == "minimal"
    assert argv[argv.index("--system-prompt") + 1] == "SYSTEM"


@pytest.mark.parametrize(
    ("script", "words"),
    [("read line; exit 3", "pi did not start"), ("read line; echo no model >&2; exit 1", "no model")],
)
async def test_a_pi_that_ends_at_its_start_is_unavailable(tmp_path: Path, script: str, words: str) -> None:
    program = tmp_path / "pi"
    program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    program.chmod(0o755)
    with pytest.raises(PeerError) as caught:
        await PiModel(PiModelConfig(PiCommand((str(program),)), "p", "m")).complete(QUESTION)
    assert caught.value.kind == "unavailable"
    assert words in f"{caught.value.message} {caught.value.hint}"


async def test_a_pi_that_is_not_there_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(PeerError, match="can't be started") as caught:
        await PiModel(PiModelConfig(PiCommand((str(tmp_path / "none"),)), "p", "m")).complete(QUESTION)
    assert caught.value.kind == "unavailable"
