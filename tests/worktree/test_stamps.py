from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from goalkeeper.core.verdict import Stamp
from goalkeeper.testing.scripted_tree import ScriptedTree
from goalkeeper.worktree import stamps
from goalkeeper.worktree.stamps import Stamper


async def asked(tree: ScriptedTree, times: int) -> None:
    async with asyncio.timeout(5):
        while tree.asked < times:  # noqa: ASYNC110 - the double has no event
            await asyncio.sleep(0)


async def test_a_result_gets_the_tree_after_it_and_its_exit_code() -> None:
    kept: list[tuple[str, Stamp]] = []
    stamper = Stamper(ScriptedTree("t1"), made=lambda key, stamp: kept.append((key, stamp)))
    stamper.tool_started("c1", "bash")
    stamper.tool_ended("c1", "bash", 0)
    await stamper.drain(5)
    assert stamper.stamps() == {"c1": Stamp("t1", 0, False)}
    assert kept == [("c1", Stamp("t1", 0, False))]


async def test_no_checkout_still_keeps_the_exit_code() -> None:
    stamper = Stamper(ScriptedTree(None))
    stamper.tool_started("c1", "bash")
    stamper.tool_ended("c1", "bash", 3)
    await stamper.drain(5)
    assert stamper.stamps() == {"c1": Stamp(None, 3, False)}


@pytest.mark.parametrize("other", ["edit", "write", "bash", "my_own_tool"])
async def test_a_call_that_may_change_files_beside_it_makes_it_overlapped(other: str) -> None:
    stamper = Stamper(ScriptedTree())
    stamper.tool_started("check", "bash")
    stamper.tool_started("other", other)
    stamper.tool_ended("other", other, None)
    stamper.tool_ended("check", "bash", 0)
    await stamper.drain(5)
    assert stamper.stamps()["check"].overlapped
    assert stamper.stamps()["other"].overlapped


@pytest.mark.parametrize("other", sorted(stamps.READ_ONLY_TOOLS))
async def test_a_read_only_call_beside_it_does_not(other: str) -> None:
    stamper = Stamper(ScriptedTree())
    stamper.tool_started("read", other)
    stamper.tool_started("check", "bash")
    stamper.tool_ended("check", "bash", 0)
    stamper.tool_ended("read", other, None)
    await stamper.drain(5)
    assert not stamper.stamps()["check"].overlapped
    assert stamper.stamps()["read"].overlapped  # the bash call may have changed what it read


async def test_a_call_that_began_before_and_goes_on_makes_it_overlapped() -> None:
    stamper = Stamper(ScriptedTree())
    stamper.tool_started("long", "bash")
    stamper.tool_started("check", "bash")
    stamper.tool_ended("check", "bash", 0)
    await stamper.drain(5)
    assert stamper.stamps()["check"].overlapped


async def test_a_call_that_begins_while_the_fingerprint_is_taken_makes_it_overlapped() -> None:
    tree = ScriptedTree(held=True)
    stamper = Stamper(tree)
    stamper.tool_started("check", "bash")
    stamper.tool_ended("check", "bash", 0)
    await asked(tree, 1)
    stamper.tool_started("edit", "edit")
    tree.give()
    await stamper.drain(5)
    assert stamper.stamps()["check"].overlapped


async def test_word_of_a_change_that_comes_right_after_the_fingerprint_counts() -> None:
    tree = ScriptedTree()
    stamper = Stamper(tree)
    stamper.tool_started("check", "bash")
    stamper.tool_ended("check", "bash", 0)
    await asked(tree, 1)
    await asyncio.sleep(0)
    stamper.tool_started("edit", "edit")
    await stamper.drain(5)
    assert stamper.stamps()["check"].overlapped


async def test_calls_one_after_the_other_are_not_overlapped() -> None:
    stamper = Stamper(ScriptedTree())
    for number in range(3):
        stamper.tool_started(f"c{number}", "bash")
        stamper.tool_ended(f"c{number}", "bash", 0)
        await stamper.drain(5)
    assert not any(stamp.overlapped for stamp in stamper.stamps().values())


async def test_a_stamp_is_made_without_a_drain() -> None:
    done = asyncio.Event()
    stamper = Stamper(ScriptedTree(), made=lambda key, stamp: done.set())
    stamper.tool_started("c", "bash")
    stamper.tool_ended("c", "bash", 0)
    await asyncio.wait_for(done.wait(), 5)
    assert not stamper.stamps()["c"].overlapped


async def test_a_call_whose_beginning_was_not_told_is_overlapped() -> None:
    stamper = Stamper(ScriptedTree())
    stamper.tool_ended("c", "bash", 0)
    await stamper.drain(5)
    assert stamper.stamps()["c"].overlapped


async def test_a_shell_execution_of_our_own_is_stamped_at_once() -> None:
    kept: list[str] = []
    stamper = Stamper(ScriptedTree(), known={"old": Stamp("t0", 1)}, made=lambda key, stamp: kept.append(key))
    stamper.shell_stamp("entry1", 0, "t1")
    stamper.tool_started("c", "bash")
    stamper.shell_stamp("entry2", 0, "t1")
    assert stamper.stamps() == {"old": Stamp("t0", 1), "entry1": Stamp("t1", 0), "entry2": Stamp("t1", 0, True)}
    assert kept == ["entry1", "entry2"]


async def test_drain_and_close_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stamps, "CLOSE_TIMEOUT", 0.01)
    stamper = Stamper(ScriptedTree(held=True))
    stamper.tool_started("c", "bash")
    stamper.tool_ended("c", "bash", 0)
    await stamper.drain(0.01)
    assert stamper.stamps() == {}
    await stamper.close()
    await stamper.close()
    assert stamper.stamps() == {}


async def test_ending_a_call_never_waits_for_the_fingerprint(tmp_path: Path) -> None:
    tree = ScriptedTree(held=True)
    stamper = Stamper(tree)
    for number in range(100):
        stamper.tool_started(str(number), "read")
        stamper.tool_ended(str(number), "read", None)
    await asked(tree, 100)
    tree.give()
    await stamper.drain(5)
    assert len(stamper.stamps()) == 100
    assert not any(stamp.overlapped for stamp in stamper.stamps().values())


async def test_a_stamp_waits_for_no_more_word_once_all_was_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stamps, "GRACE", 60.0)
    kept: asyncio.Queue[tuple[str, Stamp]] = asyncio.Queue()
    stamper = Stamper(ScriptedTree("t1"), made=lambda key, stamp: kept.put_nowait((key, stamp)))
    stamper.tool_started("c1", "bash")
    stamper.tool_ended("c1", "bash", 0)
    stamper.all_told()
    assert await asyncio.wait_for(kept.get(), 5) == ("c1", Stamp("t1", 0, False))
    # The next run begins to be told again.
    stamper.tool_started("c2", "bash")
    stamper.tool_ended("c2", "bash", 0)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(kept.get(), 0.05)
    await stamper.drain(5)
