"""Stop, interrupt, kill, resume: a goal keeps its place and does what it is told."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from e2e.support import session_entries, user_texts, wait_until, worker_requests

from goalkeeper.testing.judges import say_verdict
from goalkeeper.testing.model_steps import Calls, Hang, Text, ToolUse, bash

pytestmark = pytest.mark.real_pi

NOT_MET = say_verdict("not_met", "It is not done.")


def goal_command(*arguments: str, cwd: Path, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "goalkeeper.cli.goal", *arguments],
        cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", timeout=60,
    )  # fmt: skip


def state_of(project: Path) -> dict[str, Any]:
    return json.loads((project / ".pi-goal" / "state.json").read_text())


def echoing(text: str = "Trying.") -> Any:
    """Return a worker whose runs each run one command with an output of its own."""
    counter = iter(range(10_000))

    def worker(request: Any) -> Any:
        return Text(text) if request.body["messages"][-1]["role"] == "tool" else bash(f"echo step {next(counter)}")

    return worker


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_clear_from_another_terminal_stops_a_run_within_a_second(
    scripted_model: Any, agent_env: Any, start_goal: Any, project: Path
) -> None:
    model = scripted_model(worker=[bash("echo $$ > pid; exec sleep 300")], evaluator=[NOT_MET])
    env = agent_env(model)
    goal = start_goal("it works", "--basis", "tool", env=env)
    wait_until(lambda: (project / "pid").is_file() and (project / "pid").read_text() != "", "the tool runs")
    sleeper = int((project / "pid").read_text())
    requests = worker_requests(model)

    cleared = goal_command("clear", cwd=project, env=env)
    assert cleared.returncode == 0, cleared.stderr
    assert "it works" in cleared.stdout
    wait_until(lambda: not alive(sleeper), "the command is ended", 2)
    assert goal.wait() == 3
    assert goal.names()[-1] == "cleared"
    assert worker_requests(model) == requests
    assert not (project / ".pi-goal" / "state.json").exists()


def test_clear_with_nothing_set_says_so(scripted_model: Any, agent_env: Any, project: Path) -> None:
    env = agent_env(scripted_model())
    cleared = goal_command("  CLEAR ", cwd=project, env=env)
    assert cleared.returncode == 0
    assert "No goal is set" in cleared.stdout


def test_ctrl_c_pauses_and_resume_goes_on_with_a_fresh_budget(
    scripted_model: Any, agent_env: Any, start_goal: Any, project: Path
) -> None:
    steps = iter([bash("sleep 300")])

    def worker(request: Any) -> Any:
        return next(steps, Text("Nothing left to do."))

    model = scripted_model(worker=worker, evaluator=[NOT_MET])
    env = agent_env(model)
    goal = start_goal("it works", "--basis", "tool", "--max-runs", "1", env=env)
    goal.wait_for("tool", status="started")
    goal.interrupt()
    assert goal.wait() == 130
    assert goal.last("paused")["why"] == "interrupted"
    assert state_of(project)["goal"]["pausedReason"] == "interrupted"
    entries = session_entries(goal.last("session"))
    assert any((e.get("message") or {}).get("role") == "toolResult" for e in entries), "the session is left whole"

    again = start_goal("resume", env=env)
    assert again.wait() == 3
    resumed = again.last("resumed")
    assert resumed["fresh"] is True
    assert again.last("session")["session_file"] == goal.last("session")["session_file"]
    assert again.last("paused")["why"] == "max_runs"
    assert user_texts(session_entries(goal.last("session"))) == ["it works", "it works"]


def test_sigterm_pauses_as_ctrl_c_does(scripted_model: Any, agent_env: Any, start_goal: Any, project: Path) -> None:
    model = scripted_model(worker=[Hang()], evaluator=[NOT_MET])
    goal = start_goal("it works", "--basis", "tool", env=agent_env(model))
    goal.wait_for("run_started")
    wait_until(lambda: worker_requests(model) == 1, "the worker is asked")
    goal.interrupt(signal.SIGTERM)
    assert goal.wait() == 130
    assert goal.last("paused")["why"] == "interrupted"


def test_a_second_ctrl_c_ends_at_once_and_leaves_nothing_running(
    scripted_model: Any, agent_env: Any, start_goal: Any, project: Path
) -> None:
    # A command that ignores TERM, in a pi that therefore can't settle.
    model = scripted_model(worker=[bash("trap '' TERM INT; echo $$ > pid; while :; do sleep 1; done")])
    goal = start_goal("it works", "--basis", "tool", env=agent_env(model))
    wait_until(lambda: (project / "pid").is_file() and (project / "pid").read_text() != "", "the tool runs")
    worker = int((project / "pid").read_text())
    goal.interrupt()
    goal.wait_for("paused")
    goal.interrupt()
    assert goal.wait(10) == 130
    wait_until(lambda: not alive(worker), "the worker's command is gone", 10)


def test_kill_9_and_resume_go_on_with_the_budget_that_was_left(
    scripted_model: Any, agent_env: Any, start_goal: Any, project: Path
) -> None:
    steps = iter([bash("echo one"), Text("One."), bash("echo two"), Text("Two."), bash("sleep 300")])

    def worker(request: Any) -> Any:
        return next(steps, Text("More."))

    model = scripted_model(worker=worker, evaluator=[NOT_MET])
    env = agent_env(model)
    goal = start_goal("it works", "--basis", "tool", "--max-runs", "3", env=env)
    goal.wait_for("tool", count=3, status="started")
    goal.kill()
    state = state_of(project)["goal"]
    assert state["turns"] == 2
    assert state["pausedReason"] is None

    again = start_goal("resume", env=env)
    assert again.wait() == 3
    assert again.last("resumed") | {"fresh": False, "run": 2} == again.last("resumed")
    assert again.last("paused")["why"] == "max_runs"
    assert state_of(project)["goal"]["turns"] == 3
    texts = user_texts(session_entries(goal.last("session")))
    assert len(texts) == 4, texts
    assert texts[0] == "it works"
    assert "interrupted" in texts[3]


def test_a_closed_terminal_leaves_the_goal_active_and_nothing_running(
    scripted_model: Any, agent_env: Any, start_goal: Any, project: Path, tmp_path: Path
) -> None:
    steps = iter([bash("echo $$ > pid; exec sleep 300")])
    model = scripted_model(worker=lambda request: next(steps, Text("Done.")), evaluator=[NOT_MET])
    (tmp_path / "tmp").mkdir()
    env = agent_env(model) | {"TMPDIR": str(tmp_path / "tmp")}
    goal = start_goal("it works", "--basis", "tool", "--max-runs", "1", env=env)
    wait_until(lambda: (project / "pid").is_file() and (project / "pid").read_text() != "", "the tool runs")
    sleeper = int((project / "pid").read_text())
    goal.interrupt(signal.SIGHUP)
    assert goal.wait() == 129
    assert list(Path(env["TMPDIR"]).glob("goalkeeper-tree-*")) == []
    wait_until(lambda: not alive(sleeper), "the command is ended", 10)
    assert state_of(project)["goal"]["pausedReason"] is None
    again = start_goal("resume", env=env)
    assert again.wait() == 3
    assert again.last("paused")["why"] == "max_runs"


def test_a_second_controller_of_a_session_refuses_and_changes_nothing(
    scripted_model: Any, agent_env: Any, start_goal: Any, project: Path
) -> None:
    model = scripted_model(worker=[Hang()])
    env = agent_env(model)
    goal = start_goal("it works", "--basis", "tool", env=env)
    wait_until(lambda: worker_requests(model) == 1, "the worker is asked")
    before = state_of(project)
    for arguments in (["resume"], ["--session", goal.last("session")["session_file"], "--basis", "tool", "other"]):
        second = start_goal(*arguments, env=env)
        assert second.wait() == 5, second.stderr
        assert str(goal.process.pid) in second.stderr
    assert state_of(project)["goal"]["condition"] == before["goal"]["condition"]
    assert worker_requests(model) == 1
    assert goal.process.poll() is None


def test_a_worker_can_not_steer_its_own_controller_but_can_ask(
    scripted_model: Any, agent_env: Any, run_goal: Any, project: Path
) -> None:
    python = sys.executable
    script = (
        f"{python} -m goalkeeper.cli.goal clear; echo clear=$?; {python} -m goalkeeper.cli.goal other goal; "
        f"echo set=$?; {python} -m goalkeeper.cli.goal resume; echo resume=$?; {python} -m goalkeeper.cli.goal"
    )
    model = scripted_model(worker=[bash(script), Text("Tried.")], evaluator=[NOT_MET])
    goal = run_goal("it works", "--basis", "tool", "--max-runs", "1", env=agent_env(model))
    assert goal.last("paused")["why"] == "max_runs"
    (result,) = [
        e for e in session_entries(goal.last("session")) if (e.get("message") or {}).get("role") == "toolResult"
    ]
    output = result["message"]["content"][0]["text"]
    assert "clear=2" in output
    assert "set=2" in output
    assert "resume=2" in output
    assert "it works" in output
    assert "can't steer" in output


def test_a_run_that_takes_too_long_is_aborted_and_pauses(scripted_model: Any, agent_env: Any, run_goal: Any) -> None:
    model = scripted_model(worker=[bash("sleep 300")], evaluator=[NOT_MET])
    goal = run_goal("it works", "--basis", "tool", "--run-timeout", "1s", env=agent_env(model))
    assert goal.process.returncode == 3
    assert goal.last("paused")["why"] == "run_timeout"


def test_a_question_that_nobody_answers_pauses_with_the_question(
    scripted_model: Any, agent_env: Any, run_goal: Any, tmp_path: Path
) -> None:
    extension = tmp_path / "asks.ts"
    extension.write_text(
        "export default function (pi) {\n"
        '  pi.on("tool_call", async (event, ctx) => {\n'
        '    const ok = await ctx.ui.confirm("Deploy to production?", "Really?", { timeout: 500 });\n'
        '    if (!ok) return { block: true, reason: "not allowed" };\n'
        "  });\n"
        "}\n"
    )
    model = scripted_model(worker=[bash("echo deploy"), Text("Waiting.")], evaluator=[NOT_MET])
    goal = run_goal("it works", "--basis", "tool", "--", "-e", str(extension), env=agent_env(model))
    assert goal.process.returncode == 3
    paused = goal.last("paused")
    assert paused["why"] == "question"
    assert "Deploy to production?" in paused["reason"]


def test_pi_killed_in_the_middle_of_a_run_pauses_and_resume_starts_it_again(
    scripted_model: Any, agent_env: Any, start_goal: Any, project: Path
) -> None:
    steps = iter([bash("kill -9 $PPID; sleep 5")])

    def worker(request: Any) -> Any:
        return next(steps, Text("Done what I could."))

    model = scripted_model(worker=worker, evaluator=[NOT_MET])
    env = agent_env(model)
    goal = start_goal("it works", "--basis", "tool", "--max-runs", "1", env=env)
    assert goal.wait() == 3
    paused = goal.last("paused")
    assert paused["why"] == "worker_exited"
    assert "signal 9" in paused["reason"]
    again = start_goal("resume", env=env)
    assert again.wait() == 3
    assert again.last("paused")["why"] == "max_runs"


def test_an_ephemeral_session_writes_nothing(scripted_model: Any, agent_env: Any, run_goal: Any, project: Path) -> None:
    model = scripted_model(worker=echoing(), evaluator=[NOT_MET])
    goal = run_goal("it works", "--basis", "tool", "--max-runs", "2", "--no-session", env=agent_env(model))
    assert goal.process.returncode == 3
    assert goal.last("session")["session_file"] is None
    assert goal.last("paused")["why"] == "max_runs"
    assert not (project / ".pi-goal").exists()


def test_a_new_goal_in_the_same_session_replaces_the_old_one(
    scripted_model: Any, agent_env: Any, run_goal: Any, project: Path
) -> None:
    model = scripted_model(worker=echoing(), evaluator=[NOT_MET])
    env = agent_env(model)
    first = run_goal("the first", "--basis", "tool", "--max-runs", "1", env=env)
    second = run_goal("the", "second", "-c", "--basis", "tool", "--max-runs", "1", env=env)
    assert second.last("goal_set")["condition"] == "the second"
    assert second.last("goal_set")["replaced"] == "the first"
    assert second.last("session")["session_file"] == first.last("session")["session_file"]
    assert state_of(project)["goal"]["condition"] == "the second"


def test_two_sessions_in_one_folder_keep_their_own_goals(
    scripted_model: Any, agent_env: Any, run_goal: Any, project: Path
) -> None:
    model = scripted_model(worker=echoing(), evaluator=[NOT_MET])
    env = agent_env(model)
    for condition in ("the first", "the second"):
        run_goal(condition, "--basis", "tool", "--max-runs", "1", env=env)
    found = sorted(path.name for path in (project / ".pi-goal").glob("state*.json"))
    assert len(found) == 2, found
    resumed = goal_command("resume", cwd=project, env=env)
    assert resumed.returncode == 2
    assert "the first" in resumed.stderr
    assert "the second" in resumed.stderr


def test_arguments_behind_the_dashes_reach_pi(scripted_model: Any, agent_env: Any, run_goal: Any) -> None:
    model = scripted_model(worker=[Text("Hm.")], evaluator=[NOT_MET])
    goal = run_goal("it works", "--basis", "tool", "--max-runs", "1", "--", "--tools", "read", env=agent_env(model))
    assert goal.process.returncode == 3
    (request,) = [r for r in model.requests if r.kind == "worker"]
    assert [tool["function"]["name"] for tool in request.body["tools"]] == ["read"]


def test_no_progress_in_three_runs_pauses(scripted_model: Any, agent_env: Any, run_goal: Any) -> None:
    model = scripted_model(worker=[Text("Still waiting.")], evaluator=[NOT_MET])
    goal = run_goal("it works", "--basis", "tool", env=agent_env(model))
    assert goal.last("paused")["why"] == "no_progress"
    assert goal.names().count("run_settled") == 3


def test_a_steered_tool_of_pi_is_told_with_its_exit_code(scripted_model: Any, agent_env: Any, run_goal: Any) -> None:
    model = scripted_model(worker=[Calls(ToolUse("bash", {"command": "exit 7"})), Text("Failed.")], evaluator=[NOT_MET])
    goal = run_goal("it works", "--basis", "tool", "--max-runs", "1", env=agent_env(model))
    ended = next(e for e in goal.events if e["event"] == "tool" and e["status"] == "ended")
    assert ended["exit_code"] == 7
    assert ended["is_error"] is True
    assert os.environ.get("GOALKEEPER_WORKER") is None
