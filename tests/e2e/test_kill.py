"""kill -9 at random moments: the state always loads, no run is counted twice or lost, no message is sent twice."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path
from typing import Any

import pytest
from e2e.support import GoalProcess, session_entries, user_texts

from goalkeeper.storage.schema import from_document
from goalkeeper.testing.demo_repo import CONDITION, copy_demo_repo
from goalkeeper.testing.demo_script import demo_worker
from goalkeeper.testing.judges import judge_unittest

pytestmark = pytest.mark.real_pi

KILLS = 100
SHARDS = 4
LONGEST = 2.5
"""Seconds after which a kill comes at the latest: a whole demo goal takes less on an idle machine."""


def loads(project: Path) -> dict[str, Any] | None:
    """Return the stored state, which must be whole at any moment; None when there is none."""
    path = project / ".pi-goal" / "state.json"
    if not path.exists():
        return None
    document = json.loads(path.read_text())
    from_document(document)
    return document


def completed_runs(entries: list[dict[str, Any]]) -> int:
    """Return how many runs of the session ended with a normal answer of the worker."""
    runs, ended = 0, False
    for message in (entry.get("message") or {} for entry in entries):
        if message.get("role") == "user":
            runs, ended = runs + ended, False
        elif message.get("role") == "assistant":
            ended = message.get("stopReason") == "stop"
        elif message.get("role") == "toolResult":
            ended = False
    return runs + ended


@pytest.mark.timeout(400)
@pytest.mark.parametrize("shard", range(SHARDS))
def test_kill_9_at_any_moment_loses_and_doubles_nothing(
    shard: int, scripted_model: Any, agent_env: Any, tmp_path: Path
) -> None:
    chance = random.Random(1000 + shard)
    model = scripted_model(worker=demo_worker, evaluator=judge_unittest())
    env = agent_env(model)
    kills = goals = 0
    while kills < KILLS // SHARDS:
        project = tmp_path / f"project-{goals}"
        goals += 1
        copy_demo_repo(project)
        kills += pursue(project, env, chance, KILLS // SHARDS - kills)


def pursue(project: Path, env: dict[str, str], chance: random.Random, most: int) -> int:
    """Pursue one demo goal to its end through kills at random moments; return how many kills hit."""
    hits, session = 0, None
    arguments = [CONDITION, "--evaluator", "pi"]
    for _ in range(60):
        goal = GoalProcess(arguments, project, env)
        try:
            if hits < most and hits < 6:
                wait_or_kill(goal, chance.uniform(0.0, LONGEST))
            else:
                goal.wait()
        finally:
            goal.end()
        code = goal.process.returncode
        session = next((e for e in goal.events if e["event"] == "session"), session)
        if code == 0:
            check(project, goal, session)
            return hits
        assert code in (-9, 2), f"{code}: {goal.stderr}"
        hits += code == -9
        # Nothing to resume means that the kill came before the goal was set.
        stored = loads(project)
        arguments = ["resume"] if stored else [CONDITION, "--evaluator", "pi"]
    pytest.fail("the goal was never met")


def wait_or_kill(goal: GoalProcess, delay: float) -> None:
    deadline = time.monotonic() + delay
    goal.wait_within(deadline - time.monotonic())
    if goal.process.poll() is None:
        goal.kill()


def check(project: Path, goal: GoalProcess, session: dict[str, Any] | None) -> None:
    """Hold the end of a goal against the session file and the journal."""
    assert session is not None
    assert loads(project) is None
    journal = [json.loads(line) for line in (project / ".pi-goal" / "journal.jsonl").read_text().splitlines()]
    mine = [record for record in journal if record["goal"] == goal.last("met")["goal"]]
    entries = session_entries(session)
    met = goal.last("met")
    assert met["runs"] == completed_runs(entries), [e.get("message", {}).get("stopReason") for e in entries]
    texts = user_texts(entries)
    assert texts.count(CONDITION) == 1, texts
    guidance = [text for text in texts if text.startswith("The goal is not met yet")]
    verdicts = [record for record in mine if record["event"] == "verdict" and record["verdict"] == "not_met"]
    assert len(guidance) <= len(verdicts)
    assert sum(record["event"] == "met" for record in mine) == 1
