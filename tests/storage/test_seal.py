"""The seal: what a user settled, kept where the worker does not work."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from goalkeeper.core.limits import Limits
from goalkeeper.core.state import GoalState
from goalkeeper.core.verdict import Terms
from goalkeeper.storage.seal import Seal, seals_folder

GOAL = GoalState(id="g", condition="it works", started_at=1, checks=("false",))


@pytest.fixture(autouse=True)
def state_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.mark.parametrize(
    "changed",
    [
        replace(GOAL, condition="anything"),
        replace(GOAL, checks=("true",)),
        replace(GOAL, terms=Terms("answer")),
        replace(GOAL, limits=Limits(max_runs=1000)),
        replace(GOAL, ignore=("*",)),
        replace(GOAL, pi_args=("-e", "x.ts")),
        replace(GOAL, model="other/model"),
    ],
)
def test_a_change_of_what_a_user_settles_breaks_the_seal(changed: GoalState) -> None:
    Seal("/s.jsonl").put(GOAL)
    assert Seal("/s.jsonl").check(changed) == "broken"


def test_what_the_machine_counts_does_not_break_it() -> None:
    Seal("/s.jsonl").put(GOAL)
    assert Seal("/s.jsonl").check(replace(GOAL, turns=3, unknowns=1, seconds=9.0, stage="running")) == "intact"


def test_a_crash_between_seal_and_state_keeps_the_goal() -> None:
    seal = Seal("/s.jsonl")
    seal.put(GOAL)
    settled = replace(GOAL, terms=Terms("tool", ("make",)))
    seal.put(settled)
    assert Seal("/s.jsonl").check(GOAL) == "intact"
    assert Seal("/s.jsonl").check(settled) == "intact"


def test_a_goal_that_the_extension_set_in_the_same_session_has_no_seal() -> None:
    Seal("/s.jsonl").put(GOAL)
    assert Seal("/s.jsonl").check(GoalState(id="other", condition="its own", started_at=2)) == "none"


def test_each_session_has_its_own_and_a_cleared_goal_has_none(state_home: Path) -> None:
    seal = Seal("/s.jsonl")
    seal.put(GOAL)
    assert Seal("/other.jsonl").check(GOAL) == "none"
    Seal("/s.jsonl").put(None)  # by another process, as `goal clear` is
    assert Seal("/s.jsonl").check(GOAL) == "none"
    assert list(seals_folder({"XDG_STATE_HOME": str(state_home)}).iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b"\xff"])
def test_a_seal_that_can_not_be_read_is_none(content: bytes, state_home: Path) -> None:
    Seal("/s.jsonl").put(GOAL)
    (path,) = seals_folder({"XDG_STATE_HOME": str(state_home)}).iterdir()
    path.write_bytes(content)
    assert Seal("/s.jsonl").check(GOAL) == "none"


def test_a_home_that_can_not_be_written_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    Seal("/s.jsonl").put(GOAL)
    assert Seal("/s.jsonl").check(GOAL) == "none"
