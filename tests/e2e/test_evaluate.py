"""`goalkeeper evaluate` on single questions: who is asked, what is refused, and that nothing is touched."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import ModelFactory

from goalkeeper.cli.evaluate import EvaluateOptions, evaluate
from goalkeeper.cli.evaluate_report import evaluation_document
from goalkeeper.cli.main import run
from goalkeeper.config import RESERVED_WORDS
from goalkeeper.core.verdict import Stamp
from goalkeeper.evaluator.llm_evaluator import LlmEvaluator
from goalkeeper.evaluator.prompt import MAX_CONDITION
from goalkeeper.pi.session_log import SessionLog
from goalkeeper.storage.journal import StampFile
from goalkeeper.testing.judges import basis_answer, say_verdict, yes_man
from goalkeeper.testing.model_steps import HttpError, Script, Text
from goalkeeper.testing.pi_home import MODEL, PROVIDER
from goalkeeper.testing.scripted_evaluator import ScriptedEvaluator
from goalkeeper.testing.session_builder import SessionBuilder, bash, edit
from goalkeeper.worktree.fingerprint import WorkTree

CONDITION = "All tests pass: `pytest -q` exits 0."
COMMAND_BOUND = 110.0

AgentEnv = Callable[..., dict[str, str]]


@pytest.fixture(autouse=True)
def _no_model_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GOALKEEPER_MODEL", raising=False)


def passing(cwd: Path | str = "/project") -> tuple[SessionBuilder, str]:
    session = SessionBuilder(str(cwd))
    session.entry("model_change", provider=PROVIDER, modelId=MODEL)
    session.user(CONDITION)
    session.run(edit())
    cited = session.run(bash("pytest -q"))
    session.say("All tests pass.")
    return session, cited


def run_command(env: dict[str, str], cwd: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "goalkeeper.cli.main", "evaluate", *arguments]
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, encoding="utf-8", timeout=COMMAND_BOUND)


def snapshot(folder: Path) -> dict[str, tuple[bytes, int]]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


# ---- who is asked ---------------------------------------------------------------------------------------------


@pytest.mark.real_pi
@pytest.mark.parametrize("evaluator", ["litellm", "pi"])
def test_the_sessions_own_model_is_asked_with_the_key_that_pi_has_and_nothing_is_touched(
    evaluator: str, scripted_model: ModelFactory, agent_env: AgentEnv, project: Path, tmp_path: Path
) -> None:
    model = scripted_model((), yes_man(), terms=basis_answer("tool", ["pytest -q"]))
    env = agent_env(model)
    session, cited = passing(project)
    path = session.save(tmp_path / "session.jsonl")
    before, file = snapshot(project), path.read_bytes()

    done = run_command(env, project, str(path), CONDITION, "--evaluator", evaluator, "--json")

    found = json.loads(done.stdout)
    assert (done.returncode, found["verdict"], found["evidence"][0]["id"]) == (0, "met", cited)
    assert found["terms"] == {"basis": "tool", "proofs": ["pytest -q"], "settled_by": "evaluator"}
    assert [request.kind for request in model.requests] == ["terms", "evaluator"]
    assert not any(request.body.get("tools") for request in model.requests)
    assert {request.authorization for request in model.requests} == {"Bearer scripted-key"}
    assert snapshot(project) == before
    assert path.read_bytes() == file
    assert [other.name for other in tmp_path.glob("*session*")] == ["session.jsonl"]


@pytest.mark.real_pi
def test_a_model_that_pi_does_not_know_is_missing(
    scripted_model: ModelFactory, agent_env: AgentEnv, tmp_path: Path
) -> None:
    session = SessionBuilder()
    session.entry("model_change", provider="nobody", modelId="x")
    session.user(CONDITION)
    path = session.save(tmp_path / "session.jsonl")

    done = run_command(agent_env(scripted_model()), tmp_path, str(path), CONDITION)

    assert done.returncode == 4
    assert "nobody/x" in done.stderr and "--model" in done.stderr and "Traceback" not in done.stderr


def test_a_model_without_a_key_is_missing(scripted_model: ModelFactory, agent_env: AgentEnv, tmp_path: Path) -> None:
    session, _ = passing()
    path = session.save(tmp_path / "session.jsonl")

    done = run_command(agent_env(scripted_model()), tmp_path, str(path), CONDITION, "--model", "openai/gpt-5-mini")

    assert done.returncode == 4
    assert "OPENAI_API_KEY" in done.stdout and "unavailable" in done.stdout


def test_a_session_that_names_no_model_needs_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    session = SessionBuilder()
    session.user(CONDITION)
    path = session.save(tmp_path / "session.jsonl")

    assert run(["evaluate", str(path), CONDITION]) == 4
    assert "GOALKEEPER_MODEL" in capsys.readouterr().err


# ---- what is refused ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("condition", ["", "  ", "x" * (MAX_CONDITION + 1), *sorted(RESERVED_WORDS), " CLEAR "])
def test_what_can_not_be_a_condition_is_a_usage_error(
    condition: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = passing()[0].save(tmp_path / "session.jsonl")

    assert run(["evaluate", str(path), condition]) == 2
    assert capsys.readouterr().err.startswith("goalkeeper: ")


@pytest.mark.parametrize("content", [None, b"", b"garbage\n", b"{}\n", b'{"type":"message"}\n', b"\xff\xfe\n"])
def test_what_is_no_session_is_a_usage_error(
    content: bytes | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "session.jsonl"
    if content is not None:
        path.write_bytes(content)

    assert run(["evaluate", str(path), CONDITION]) == 2
    assert str(path) in capsys.readouterr().err


def test_a_folder_is_no_session(tmp_path: Path) -> None:
    assert run(["evaluate", str(tmp_path), CONDITION]) == 2


@pytest.mark.parametrize(
    "arguments",
    [["--basis", "maybe"], ["--evaluator", "checks"], ["--proof", " "], ["--basis", "answer", "--proof", "make"]],
)
def test_options_that_make_no_sense_are_usage_errors(arguments: list[str], tmp_path: Path) -> None:
    path = passing()[0].save(tmp_path / "session.jsonl")

    assert run(["evaluate", str(path), CONDITION, *arguments]) == 2


def test_a_goal_entry_that_is_not_there_is_a_usage_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = passing()[0].save(tmp_path / "session.jsonl")

    assert run(["evaluate", str(path), CONDITION, "--goal-entry", "nowhere"]) == 2
    assert "nowhere" in capsys.readouterr().err


# ---- what comes of it -----------------------------------------------------------------------------------------


async def found_in(path: Path, *replies: str, **options: Any) -> tuple[dict[str, Any], ScriptedEvaluator]:
    client = ScriptedEvaluator(replies)
    evaluation = await evaluate(EvaluateOptions(path, CONDITION, **options), LlmEvaluator(client))
    return evaluation_document(evaluation), client


async def test_an_empty_session_is_unknown_without_asking(tmp_path: Path) -> None:
    path = SessionBuilder().save(tmp_path / "session.jsonl")

    found, client = await found_in(path, "never asked")

    assert (found["verdict"], found["claimed"], found["window"]) == ("unknown", None, None)
    assert client.requests == []


async def test_an_entry_named_as_the_goals_counts(tmp_path: Path) -> None:
    session, cited = passing()
    last = session.user("And now?")
    path = session.save(tmp_path / "session.jsonl")
    answer = say_verdict("met", evidence=[cited]).text

    found, _ = await found_in(path, answer, basis="tool", goal_entry=last)

    assert (found["verdict"], found["rules"], found["goal_entry"]) == ("unknown", ["before_goal"], last)


async def test_without_a_message_that_sets_the_goal_no_result_is_older(tmp_path: Path) -> None:
    session = SessionBuilder()
    cited = session.run(bash("pytest -q"))
    path = session.save(tmp_path / "session.jsonl")

    found, _ = await found_in(path, say_verdict("met", evidence=[cited]).text, basis="tool")

    assert (found["verdict"], found["goal_entry"]) == ("met", None)


async def test_terms_that_can_not_be_settled_are_a_failure(tmp_path: Path) -> None:
    path = passing()[0].save(tmp_path / "session.jsonl")

    found, client = await found_in(path, "I would rather not say.")

    assert (found["verdict"], found["failure"], found["terms"]) == (None, "malformed", None)
    assert len(client.requests) == 1


async def test_what_the_evaluator_saw_and_said_is_told(tmp_path: Path) -> None:
    session, cited = passing()
    path = session.save(tmp_path / "session.jsonl")

    found, client = await found_in(
        path, say_verdict("not_met", "One is left.", evidence=[cited], quotes={cited: "12 passed"}).text, basis="tool"
    )

    assert (found["verdict"], found["reason"], found["rules"]) == ("not_met", "One is left.", [])
    assert found["claim"]["quotes"] == {cited: "12 passed"}
    assert found["window"]["characters"] < len(client.requests[0].user)
    assert found["window"]["entries"] == len(found["window"]["ids"]) == 6
    assert "12 passed" in found["evidence"][0]["excerpt"]


@pytest.mark.parametrize(
    ("script", "code", "words"),
    [
        (say_verdict("unknown", "Run the tests."), 3, "verdict   unknown"),
        (Text("Yes, all of it."), 3, "the evaluator failed (malformed)"),
        (HttpError(401, "wrong key"), 3, "wrong key"),
    ],
    ids=["unknown", "prose", "wrong key"],
)
def test_whatever_is_not_met_is_3(
    script: Script, code: int, words: str, scripted_model: ModelFactory, agent_env: AgentEnv, tmp_path: Path
) -> None:
    model = scripted_model((), script)
    path = passing()[0].save(tmp_path / "session.jsonl")
    keys = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": model.base_url}

    done = run_command(
        {**agent_env(model), **keys}, tmp_path, str(path), CONDITION, "--proof", "pytest -q", "--model", "openai/x"
    )

    assert done.returncode == code
    assert words in done.stdout
    assert len(model.requests) == 1


# ---- stamps of an earlier controller --------------------------------------------------------------------------


async def test_stored_stamps_show_a_change_that_no_edit_call_made(project: Path, tmp_path: Path) -> None:
    session, cited = passing(project)
    path = session.save(tmp_path / "session.jsonl")
    tree = WorkTree(project)
    now = await tree.fingerprint()
    tree.close()
    call = next(entry.call_id for entry in SessionLog(path).read(10_000).entries if entry.id == cited)
    StampFile(project, path, pytest.fail).append(str(call), Stamp(now, 0))
    answer = say_verdict("met", evidence=[cited]).text

    fresh, _ = await found_in(path, answer, proofs=("pytest -q",))
    (project / "README.md").write_text("Changed by hand.\n")
    stale, client = await found_in(path, answer, proofs=("pytest -q",))

    assert (fresh["verdict"], fresh["rules"]) == ("met", [])
    assert (stale["verdict"], stale["rules"]) == ("unknown", ["later_change"])
    assert "exit code 0" in client.requests[0].user


async def test_without_stamps_the_order_of_edits_decides(project: Path, tmp_path: Path) -> None:
    session, cited = passing(project)
    path = session.save(tmp_path / "session.jsonl")
    (project / "README.md").write_text("Changed by hand.\n")

    found, _ = await found_in(path, say_verdict("met", evidence=[cited]).text, basis="tool")

    assert found["verdict"] == "met"
