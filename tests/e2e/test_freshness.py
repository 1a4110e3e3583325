"""Freshness, checks and bases in a live session: what counts as proof there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from e2e.support import wait_until

from goalkeeper.testing.judges import say_verdict, yes_man
from goalkeeper.testing.model_steps import Calls, Text, ToolUse, bash
from goalkeeper.testing.seen_window import seen_entries

pytestmark = pytest.mark.real_pi

PASSING = "test -f README.md"


def runs_of(*runs: Any) -> Any:
    """Return a worker that plays one list of steps a run; the last run repeats."""
    steps = iter([step for run in runs for step in run])
    last = runs[-1]

    def worker(request: Any) -> Any:
        step = next(steps, None)
        if step is not None:
            return step
        return last[1] if request.body["messages"][-1]["role"] == "tool" else last[0]

    return worker


def slowly(project: Path, steps: Any) -> Any:
    """Return a worker that thinks until the stamp of its last call is made, as any real model does."""

    def worker(request: Any) -> Any:
        seen = sum(message["role"] == "tool" for message in request.body["messages"])

        def stamps() -> int:
            return sum(len(p.read_text().splitlines()) for p in (project / ".pi-goal").glob("stamps-*.jsonl"))

        wait_until(lambda: stamps() >= seen, "the stamps are made")
        return steps(request)

    return worker


def rules(event: dict[str, Any]) -> list[str]:
    return [finding["rule"] for finding in event["findings"]]


def citing_result(command: str) -> Any:
    """Return an evaluator that says met and cites the newest tool result of exactly this command."""

    def evaluator(request: Any) -> Any:
        results = [e for e in seen_entries(request.text) if e.is_result and e.command == command]
        return say_verdict("met", "It passed.", evidence=[results[-1].id])

    return evaluator


def test_behind_a_link_to_the_project_its_real_folder_is_the_sessions(
    scripted_model: Any, agent_env: Any, run_goal: Any, project: Path, tmp_path: Path
) -> None:
    link = tmp_path / "link"
    link.symlink_to(project)
    command = f"cd {project.resolve()} && {PASSING}"  # pi tells its model no other name
    model = scripted_model(worker=runs_of([bash(command), Text("Done.")]), evaluator=yes_man())
    goal = run_goal(
        "README.md is there", "--basis", "tool", "--proof", PASSING, "--max-runs", "1", env=agent_env(model), cwd=link
    )
    assert goal.process.returncode == 0, goal.events


def test_a_change_by_the_shell_after_the_proof_makes_it_stale(
    scripted_model: Any, agent_env: Any, run_goal: Any, project: Path
) -> None:
    steps = runs_of([bash(PASSING), bash("echo more >> README.md"), Text("Done.")], [bash(PASSING), Text("Done.")])
    model = scripted_model(
        worker=slowly(project, steps),
        evaluator=citing_result(PASSING),
    )
    goal = run_goal("README.md is there", "--basis", "tool", "--proof", PASSING, env=agent_env(model))
    first, second = [e for e in goal.events if e["event"] == "verdict"]
    assert first["verdict"] == "unknown"
    assert rules(first) == ["later_change"]
    assert "README.md" in first["reason"]
    assert second["verdict"] == "met"
    assert goal.process.returncode == 0


def test_a_person_who_edits_while_the_evaluator_thinks_makes_the_proof_stale(
    scripted_model: Any, agent_env: Any, run_goal: Any, project: Path
) -> None:
    edits = iter(["edited by a person\n"])

    def evaluator(request: Any) -> Any:
        text = next(edits, None)
        if text:
            (project / "README.md").write_text(text)
        return citing_result(PASSING)(request)

    model = scripted_model(worker=runs_of([bash(PASSING), Text("Done.")]), evaluator=evaluator)
    goal = run_goal("README.md is there", "--basis", "tool", "--proof", PASSING, env=agent_env(model))
    first, second = [e for e in goal.events if e["event"] == "verdict"]
    assert rules(first) == ["later_change"]
    assert second["verdict"] == "met"


def test_a_session_that_is_kept_inside_the_work_tree_makes_no_result_stale(
    scripted_model: Any, agent_env: Any, run_goal: Any, project: Path
) -> None:
    model = scripted_model(worker=runs_of([bash(PASSING), Text("Done.")]), evaluator=citing_result(PASSING))
    options = ("--basis", "tool", "--proof", PASSING, "--session", str(project / "s.jsonl"))
    goal = run_goal("README.md is there", *options, env=agent_env(model))
    (verdict,) = [e for e in goal.events if e["event"] == "verdict"]
    assert (project / "s.jsonl").stat().st_size > 0
    assert (verdict["verdict"], verdict["findings"]) == ("met", [])


def test_a_commit_after_the_proof_keeps_it_fresh(
    scripted_model: Any, agent_env: Any, run_goal: Any, project: Path
) -> None:
    steps = [bash("echo new > new.txt"), bash(PASSING), bash("git add -A && git commit -qm new"), Text("Done.")]
    model = scripted_model(
        worker=slowly(project, runs_of(steps)),
        evaluator=citing_result(PASSING),
    )
    goal = run_goal("README.md is there", "--basis", "tool", "--proof", PASSING, env=agent_env(model))
    assert goal.process.returncode == 0, goal.events


def test_stamps_outlive_their_controller(scripted_model: Any, agent_env: Any, start_goal: Any, project: Path) -> None:
    verdicts = iter([say_verdict("not_met", "Not yet.")])
    runs = iter([bash(PASSING), Text("Done.")])
    model = scripted_model(
        worker=lambda request: next(runs, Text("Nothing to do.")),
        evaluator=lambda request: next(verdicts, None) or citing_result(PASSING)(request),
    )
    env = agent_env(model)
    first = start_goal("README.md is there", "--basis", "tool", "--proof", PASSING, "--max-runs", "1", env=env)
    assert first.wait() == 3
    (project / "README.md").write_text("changed while nobody watched\n")
    again = start_goal("resume", "--max-runs", "1", env=env)
    assert again.wait() == 3
    assert rules(again.last("verdict")) == ["later_change"]


def test_a_resumed_goal_still_says_which_tests_changed_since_it_was_set(
    scripted_model: Any, agent_env: Any, start_goal: Any, project: Path
) -> None:
    (project / "test_a.py").write_text("assert work()\n")
    runs = iter([bash("echo pass > test_a.py"), Text("Done."), bash(PASSING), Text("Done.")])
    verdicts = iter([say_verdict("not_met", "Not yet.")])
    model = scripted_model(
        worker=lambda request: next(runs),
        evaluator=lambda request: next(verdicts, None) or citing_result(PASSING)(request),
    )
    env = agent_env(model)
    assert start_goal("it works", "--basis", "tool", "--max-runs", "1", env=env).wait() == 3
    assert len(list((project / ".pi-goal").glob("trees-*"))) == 1
    again = start_goal("resume", env=env)
    assert again.wait() == 0
    assert again.last("verdict")["changed"] == ["test_a.py (test)"]
    assert "test_a.py [test]" in [r.text for r in model.requests if r.kind == "evaluator"][-1]
    assert list((project / ".pi-goal").glob("trees-*")) == []


def test_a_check_that_fails_is_the_guidance_and_the_evaluator_is_not_asked(
    scripted_model: Any, agent_env: Any, run_goal: Any
) -> None:
    model = scripted_model(
        worker=runs_of([Text("Done.")], [bash("touch made"), Text("Now it is there.")]),
        evaluator=yes_man(),
    )
    goal = run_goal("made exists", "--basis", "tool", "--check", "ls made", env=agent_env(model))
    first = next(e for e in goal.events if e["event"] == "verdict")
    assert first["verdict"] == "not_met"
    assert rules(first) == ["check_failed"]
    assert first["claimed"] is None
    assert goal.process.returncode == 0
    assert [r.kind for r in model.requests].count("evaluator") == 1


def test_checks_alone_decide_without_a_model(scripted_model: Any, agent_env: Any, run_goal: Any) -> None:
    model = scripted_model(worker=runs_of([Text("Done.")], [bash("touch made"), Text("There.")]))
    goal = run_goal("made exists", "--evaluator", "checks", "--check", "ls made", env=agent_env(model))
    assert goal.process.returncode == 0, goal.stderr
    assert {r.kind for r in model.requests} == {"worker"}
    (cited,) = goal.last("met")["evidence"]
    assert cited["role"] == "shell"


def test_a_goal_that_wants_a_failure_says_so_with_a_negated_check(
    scripted_model: Any, agent_env: Any, run_goal: Any
) -> None:
    model = scripted_model(worker=[Text("It fails, as it should.")])
    goal = run_goal("it fails", "--evaluator", "checks", "--check", "! false-command-xyz", env=agent_env(model))
    assert goal.process.returncode == 0, goal.events


def test_a_check_that_changes_the_tree_each_time_is_never_fresh(
    scripted_model: Any, agent_env: Any, run_goal: Any
) -> None:
    model = scripted_model(worker=[bash("echo a"), Text("A."), bash("echo b"), Text("B.")])
    goal = run_goal(
        "it works", "--evaluator", "checks", "--check", "true", "--check", "date +%N > stamp", env=agent_env(model)
    )
    assert goal.process.returncode == 3
    assert goal.last("paused")["why"] == "unverified"
    assert rules(goal.last("verdict")) == ["later_change"]


def test_what_ignore_names_may_change_after_the_proof(scripted_model: Any, agent_env: Any, run_goal: Any) -> None:
    model = scripted_model(worker=[bash("echo a"), Text("A.")])
    goal = run_goal(
        "it works", "--evaluator", "checks", "--check", "true", "--check", "date +%N > stamp", "--ignore", "stamp",
        env=agent_env(model),
    )  # fmt: skip
    assert goal.process.returncode == 0, goal.events


def test_an_answer_goal_may_cite_the_deliverable(scripted_model: Any, agent_env: Any, run_goal: Any) -> None:
    def evaluator(request: Any) -> Any:
        answers = [e for e in seen_entries(request.text) if e.role == "assistant text"]
        return say_verdict("met", "The poem is there.", basis="answer", evidence=[answers[-1].id])

    model = scripted_model(worker=[Text("Roses are red.")], evaluator=evaluator)
    goal = run_goal("write a poem", "--basis", "answer", env=agent_env(model))
    assert goal.process.returncode == 0, goal.events


def test_the_pi_evaluator_judges_without_tools_and_leaves_no_session(
    scripted_model: Any, agent_env: Any, run_goal: Any, tmp_path: Path
) -> None:
    model = scripted_model(worker=[bash(PASSING), Text("Done.")], evaluator=citing_result(PASSING))
    goal = run_goal("README.md is there", "--evaluator", "pi", "--basis", "tool", env=agent_env(model))
    assert goal.process.returncode == 0, goal.events
    asked = [r for r in model.requests if r.kind == "evaluator"]
    assert len(asked) == 1
    assert not asked[0].body.get("tools")
    assert len(list((tmp_path / "agent").rglob("*.jsonl"))) == 1


def test_outside_a_git_checkout_the_order_of_edits_decides(
    scripted_model: Any, agent_env: Any, run_goal: Any, tmp_path: Path
) -> None:
    folder = tmp_path / "plain"
    folder.mkdir()
    write = Calls(ToolUse("write", {"path": "a.txt", "content": "text\n"}))
    model = scripted_model(
        worker=runs_of([bash("echo ok"), write, Text("Done.")], [bash("echo ok"), Text("Done.")]),
        evaluator=citing_result("echo ok"),
    )
    goal = run_goal("ok", "--basis", "tool", "--proof", "echo ok", env=agent_env(model), cwd=folder)
    first, second = [e for e in goal.events if e["event"] == "verdict"]
    assert rules(first) == ["later_change"]
    assert second["verdict"] == "met"


def test_a_check_that_passed_in_another_tree_proves_nothing_though_only_the_last_one_is_cited(
    scripted_model: Any, agent_env: Any, run_goal: Any
) -> None:
    model = scripted_model(worker=[bash("echo a"), Text("A."), bash("echo b"), Text("B.")], evaluator=yes_man())
    goal = run_goal(
        "it works", "--basis", "tool", "--check", "true", "--check", "date +%N > stamp", env=agent_env(model)
    )
    assert goal.process.returncode == 3, goal.events
    assert rules(goal.last("verdict")) == ["later_change"]
