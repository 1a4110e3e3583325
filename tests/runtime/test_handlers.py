"""How effects are carried out when something is late, overtaken, broken or cancelled."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from goalkeeper.core.effects import SettleTerms
from goalkeeper.core.state import SessionState
from goalkeeper.core.verdict import Terms
from goalkeeper.errors import PeerError
from goalkeeper.evaluator.prompt import EvaluatorRequest
from goalkeeper.runtime.clock import SystemClock
from goalkeeper.runtime.freshness import FreshnessSource
from goalkeeper.runtime.handlers import Handlers
from goalkeeper.testing.scripted_evaluator import Held
from goalkeeper.testing.scripted_tree import ScriptedTree
from goalkeeper.testing.scripted_worker import ScriptedCall, ScriptedRun, ScriptedWorker
from goalkeeper.worktree.stamps import Stamper

NOT_MET = json.dumps({"verdict": "not_met", "reason": "Not yet.", "basis": "tool", "evidence": []})
TERMS = json.dumps({"basis": "answer", "proofs": []})


async def broken(*_: Any, **__: Any) -> Any:
    raise PeerError("it broke", kind="exited")


async def test_a_message_that_was_overtaken_leaves_no_run_to_wait_for(stage: Any) -> None:
    running = await stage()
    # Both are queued before anything is carried out, as when Ctrl-C comes at once.
    both = [asyncio.create_task(running.set_goal()), asyncio.create_task(running.interrupt())]
    await asyncio.gather(*both)
    await running.until("dropped")
    assert running.worker.sent == []
    assert not running.driver.state.busy


async def test_a_message_that_is_refused_leaves_no_run_to_wait_for(stage: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    running = await stage()
    monkeypatch.setattr(running.worker, "send", broken)
    await running.set_goal()
    assert (await running.until("paused")).why == "not_sent"
    assert not running.driver.state.busy


async def test_a_clear_ends_the_question_of_what_counts_as_proof(stage: Any) -> None:
    running = await stage([ScriptedRun(held=True)], [Held(TERMS)])
    await running.set_goal(terms=None)
    await running.client.wait_asked(1)
    await running.clear()
    await running.idle()
    await running.close()
    assert running.client.cancelled == 1


async def test_what_counts_as_proof_is_asked_once_more_when_the_first_answer_was_none(stage: Any) -> None:
    running = await stage([ScriptedRun()], ["prose", TERMS, NOT_MET])
    await running.set_goal(terms=None)
    settled = await running.until("terms")
    assert settled.terms.basis == "answer"
    assert (await running.until("verdict")).verdict == "not_met"


async def test_the_end_waits_for_an_abort_that_was_ordered(stage: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    running = await stage([ScriptedRun(held=True)])
    ended = []

    async def slow() -> None:
        for _ in range(20):
            await asyncio.sleep(0)
        ended.append("abort")

    monkeypatch.setattr(running.worker, "abort", slow)
    await running.set_goal()
    await running.until("run_started")
    await running.interrupt()
    assert ended == []
    await running.handlers.finish()
    assert ended == ["abort"]


async def test_an_abort_of_a_worker_that_is_gone_is_no_fault(stage: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    running = await stage([ScriptedRun(held=True)])
    await running.set_goal()
    await running.until("run_started")
    monkeypatch.setattr(running.worker, "abort", broken)
    await running.interrupt()
    await running.idle()
    await running.clear()
    assert running.names("cleared")


async def test_checks_that_passed_in_the_tree_of_now_are_met(stage: Any) -> None:
    running = await stage([ScriptedRun()], tree=ScriptedTree("tree-1"))
    await running.set_goal(checks=("true",), evaluator="checks")
    met = await running.until("met")
    assert [cited.command for cited in met.evidence] == ["true"]
    assert running.client.requests == []


async def test_checks_that_can_not_be_run_are_a_failure_and_not_a_verdict(
    stage: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = await stage()
    monkeypatch.setattr(running.worker, "shell", broken)
    await running.set_goal(checks=("true",))
    paused = await running.until("paused")
    assert paused.why == "evaluator_failed"
    assert "it broke" in paused.reason


async def test_a_session_that_can_not_be_read_is_a_failure_and_not_a_verdict(
    stage: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = await stage()
    monkeypatch.setattr(running.worker, "transcript", broken)
    await running.set_goal(terms=Terms("tool", (), "user"))
    paused = await running.until("paused")
    assert paused.why == "evaluator_failed"
    assert "it broke" in paused.reason


@pytest.mark.parametrize("checks", [(), ("false",)])
async def test_a_tree_that_changes_is_progress_whoever_judges(stage: Any, checks: tuple[str, ...]) -> None:
    """The worker's results say the same in each run, but the files change."""
    tree = ScriptedTree("tree-0")

    def change() -> None:
        tree.tree = f"{tree.tree}+"

    same = ScriptedRun((ScriptedCall("make", output="done", effect=change),))
    running = await stage([same], [NOT_MET], tree=tree)
    await running.set_goal(checks=checks)
    assert (await running.until("paused")).why == "max_runs"


class Faulty:
    """An evaluator with a fault of ours in it."""

    async def settle_terms(self, condition: str) -> Any:
        raise ZeroDivisionError("ours")

    async def evaluate(self, request: EvaluatorRequest) -> Any:
        raise ZeroDivisionError("ours")


async def test_a_fault_of_ours_in_the_background_is_told(tmp_path: Path) -> None:
    faults: asyncio.Queue[BaseException] = asyncio.Queue()
    tree = ScriptedTree()
    stamper = Stamper(tree)
    handlers = Handlers(
        ScriptedWorker(tmp_path / "s.jsonl", tmp_path),
        Faulty(),
        FreshnessSource(tree, stamper),
        stamper,
        clock=SystemClock(),
        cwd=str(tmp_path),
        post=lambda event: None,
        tell=lambda record: None,
        fail=faults.put_nowait,
    )
    handlers.start(SettleTerms("g", "it works"), SessionState())
    assert isinstance(await asyncio.wait_for(faults.get(), 10), ZeroDivisionError)
    await handlers.finish()
