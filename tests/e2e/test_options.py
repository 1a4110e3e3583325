"""What can't be meant is a usage error with exit code 2 that says what was wrong; nothing is started for it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from e2e.bad_input import ASKED, CHECKED, refused
from e2e.support import session_entries, user_texts

from goalkeeper.cli.goal import run
from goalkeeper.evaluator.prompt import MAX_CONDITION
from goalkeeper.testing.judges import say_verdict
from goalkeeper.testing.model_steps import Text

Usage = Callable[[Sequence[str]], str]


@pytest.fixture
def usage_error(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Usage:
    """Run the whole command line in this process, assert a usage error and return its message."""
    monkeypatch.chdir(tmp_path)
    # Whoever gets so far that pi is looked for, fails with another code.
    monkeypatch.setenv("GOALKEEPER_PI", str(tmp_path / "no-pi"))
    monkeypatch.delenv("GOALKEEPER_WORKER", raising=False)

    def check(arguments: Sequence[str]) -> str:
        code = run(arguments)
        said = capsys.readouterr()
        assert (code, said.out) == (2, ""), said
        assert said.err.startswith("goal: ")
        assert not (tmp_path / ".pi-goal").exists()
        return said.err

    return check


@pytest.mark.parametrize("value", ["0", "-1", "1e3", "10 ", " 10", "+5", "1_000", "0x10", "ten", "", "3.5", "٣"])
def test_a_number_of_runs_is_written_in_digits_and_at_least_1(value: str, usage_error: Usage) -> None:
    separate = usage_error(["it works", "--max-runs", value])
    assert "--max-runs" in separate
    assert usage_error(["it works", f"--max-runs={value}"]) == separate


@pytest.mark.parametrize("option", ["--max-minutes", "--max-cost"])
@pytest.mark.parametrize("value", ["0", "-1", "1e3", "10 ", "nan", "inf", "0.0", "1,5", ""])
def test_minutes_and_dollars_are_plain_numbers_above_0(option: str, value: str, usage_error: Usage) -> None:
    assert option in usage_error(["it works", option, value])
    assert option in usage_error(["resume", option, value])


@pytest.mark.parametrize("value", ["0", "0s", "10x", "-5", "1e3", "m", ""])
def test_a_run_timeout_is_a_duration_above_0(value: str, usage_error: Usage) -> None:
    assert "--run-timeout" in usage_error(["it works", "--run-timeout", value])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["it works", "--max-run", "3"], "--max-run"),
        (["it works", "--maxruns=3"], "--maxruns"),
        (["it works", "-x"], "-x"),
        (["--check"], "--check"),
        (["it works", "--basis", "tools"], "tool, answer"),
        (["it works", "--evaluator", "gpt"], "litellm, pi, checks"),
        (["it works", "--evaluator", "checks"], "needs at least one --check"),
        (["it works", "--check", " "], "--check is empty"),
        (["it works", "--proof", ""], "--proof is empty"),
        (["it works", "--basis", "answer", "--proof", "make"], "--basis can't be answer"),
        (["it works", "--session", "x", "--continue"], "exclude each other"),
        (["it works", "--session", "x", "--no-session"], "exclude each other"),
        (["it works", "-c", "--no-session"], "exclude each other"),
        (["it works", "--session", " "], "--session is empty"),
        (["it works", "--since", "24h"], "--since goes with `goal log`"),
        (["it works", "-C", "no/such/folder"], "no/such/folder is no folder"),
        (["it works", "--condition", "it runs"], "more than once"),
        (["it works", "--condition-file", "x"], "more than once"),
        (["--condition-file", "no-such-file"], "no-such-file"),
        (["--max-runs", "3"], "There is no condition"),
        (["resume", "--check", "true"], "--check does not go with `goal resume`"),
        (["clear", "--max-runs", "3"], "--max-runs does not go with `goal clear`"),
        (["clear", "--", "--model", "x"], "starts nothing that could take arguments of pi"),
        (["log", "--since", "yesterday"], "'yesterday' is no duration"),
        (["status", "--max-runs", "3"], "--max-runs does not go with `goal status`"),
    ],
)
def test_what_does_not_go_together_is_named(arguments: list[str], words: str, usage_error: Usage) -> None:
    assert words in usage_error(arguments)


@pytest.mark.parametrize("text", ["", " ", "\t\n", "\u00a0\u2003"])
def test_an_empty_condition_is_a_usage_error(text: str, usage_error: Usage) -> None:
    assert "condition is empty" in usage_error([text])
    assert "condition is empty" in usage_error([f"--condition={text}"])


@pytest.mark.parametrize(
    "word", ["clear", "stop", "off", "reset", "none", "cancel", "resume", "log", "explain", "help"]
)
@pytest.mark.parametrize("shape", ["{}", " {} ", "\t{}\n"])
def test_a_reserved_word_never_becomes_a_condition(word: str, shape: str, usage_error: Usage) -> None:
    for written in (word, word.upper(), word.title()):
        assert "can't be a condition" in usage_error([f"--condition={shape.format(written)}"])


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("resum", "goal resume"),
        ("Stauts", "goal status"),
        (" explian", "goal explain"),
        ("doctor", "goalkeeper doctor"),
        ("version", "goalkeeper version"),
    ],
)
def test_a_slip_of_one_word_costs_no_run(word: str, meant: str, usage_error: Usage) -> None:
    assert f"Was `{meant}` meant?" in usage_error([word])


@pytest.mark.parametrize("condition", ["done", "green", "no doctor", "--condition=resum"])
def test_other_words_and_what_the_option_says_are_conditions(
    condition: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("GOALKEEPER_WORKER", raising=False)
    monkeypatch.setenv("GOALKEEPER_PI", str(tmp_path / "no-pi"))
    assert run([condition, "-C", str(tmp_path)]) == 4
    assert "no-pi" in capsys.readouterr().err


def test_reserved_words_in_any_case_are_the_words(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GOALKEEPER_WORKER", raising=False)
    for word in ("CLEAR", " Stop ", "oFF", "reset", "None", "cancel"):
        assert run([word]) == 0
        assert "No goal is set" in capsys.readouterr().out
    assert run([" RESUME "]) == 2
    assert "no goal to resume" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_condition_of_200_kb_is_refused_with_both_numbers(usage_error: Usage, tmp_path: Path) -> None:
    file = tmp_path / "condition.txt"
    file.write_text("all is well\n" * 17_000, encoding="utf-8")
    message = usage_error(["--condition-file", str(file)])

    assert "203,999 characters" in message
    assert f"{MAX_CONDITION:,}" in message
    assert "name the file in the condition" in message


def test_a_condition_file_without_an_end_is_refused(usage_error: Usage) -> None:
    assert "/dev/zero is too long" in usage_error(["--condition-file", "/dev/zero"])


@pytest.mark.parametrize("word", ["it works", "resume"])
@pytest.mark.parametrize(
    "arguments", [["--mode", "json"], ["--mode=text"], ["-p"], ["--help"], ["--session", "x"], ["--no-session"], ["-c"]]
)
def test_what_goal_itself_chooses_of_pi_is_not_handed_through(
    arguments: list[str], word: str, usage_error: Usage
) -> None:
    assert f"{arguments[0]} can't stand behind --" in usage_error([word, "--", "--model", "x", *arguments])


def test_a_condition_file_that_is_no_text_is_refused(usage_error: Usage, tmp_path: Path) -> None:
    file = tmp_path / "condition.bin"
    file.write_bytes(b"\xff\xfe\x00")
    assert "is not UTF-8" in usage_error(["--condition-file", str(file)])


def test_a_worker_can_not_steer_its_own_controller(usage_error: Usage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOALKEEPER_WORKER", "1")
    for arguments in (["it works"], ["clear"], ["resume"]):
        assert "A worker can't steer its own controller" in usage_error(arguments)


# ---- with pi --------------------------------------------------------------------------------------------------------


@pytest.mark.real_pi
def test_what_stands_behind_two_dashes_reaches_pi(scripted_model: Any, agent_env: Any, run_goal: Any) -> None:
    model = scripted_model(worker=[Text("Done.")])
    goal = run_goal(
        "it works", *CHECKED, "--max-runs=3", "--", "--model", "scripted/scripted:high", "--tools", "read,bash",
        "--append-system-prompt", "Speak -- plainly.", env=agent_env(model),
    )  # fmt: skip

    assert goal.process.returncode == 0, goal.stderr
    assert goal.last("goal_set")["limits"]["max_runs"] == 3
    (asked,) = model.of("worker")
    assert {tool["function"]["name"] for tool in asked.body["tools"]} == {"read", "bash"}
    assert "Speak -- plainly." in asked.system
    assert goal.last("session")["model"] == "scripted/scripted"


@pytest.mark.real_pi
def test_a_condition_may_start_with_a_dash(scripted_model: Any, agent_env: Any, run_goal: Any) -> None:
    model = scripted_model(worker=[Text("Done.")])
    goal = run_goal("--condition=-x is --gone", *CHECKED, env=agent_env(model))

    assert goal.process.returncode == 0, goal.stderr
    assert user_texts(session_entries(goal.last("session"))) == ["-x is --gone"]


@pytest.mark.real_pi
def test_the_longest_condition_reaches_worker_and_evaluator_whole(
    scripted_model: Any, agent_env: Any, run_goal: Any, tmp_path: Path
) -> None:
    condition = ("ü🚀" + "x" * 98) * (MAX_CONDITION // 100)
    assert len(condition) == MAX_CONDITION
    file = tmp_path / "condition.txt"
    file.write_text(condition, encoding="utf-8")
    model = scripted_model(worker=[Text("Done.")], evaluator=say_verdict("not_met", "No."))
    goal = run_goal("--condition-file", str(file), *ASKED, "--max-runs", "1", env=agent_env(model))

    assert goal.process.returncode == 3, goal.stderr
    assert user_texts(session_entries(goal.last("session"))) == [condition]
    (asked,) = model.of("evaluator")
    assert condition in asked.text
    assert asked.characters < 24_000


@pytest.mark.real_pi
def test_a_usage_error_of_the_command_itself_is_code_2_without_a_traceback(run_goal: Any) -> None:
    refused(run_goal("it works", "--max-runs", "1e3", env=dict(os.environ)), 2, "'1e3' is no whole number")
