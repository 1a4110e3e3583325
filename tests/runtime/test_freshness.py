"""Which stamp belongs to which entry."""

from __future__ import annotations

from goalkeeper.core.verdict import Stamp
from goalkeeper.evidence.transcript import Entry, Transcript
from goalkeeper.runtime.freshness import FreshnessSource
from goalkeeper.testing.scripted_tree import ScriptedTree
from goalkeeper.worktree.stamps import Stamper


def result(entry_id: str, call_id: str | None) -> Entry:
    return Entry(entry_id, "tool_result", 5_000, "ok", tool_name="bash", call_id=call_id)


async def test_a_stamp_belongs_to_the_newest_call_of_its_id_alone() -> None:
    stamps = Stamper(ScriptedTree("now"), known={"call_0": Stamp("now", 0), "call_1": Stamp("then", 1)})
    source = FreshnessSource(ScriptedTree("now"), stamps)
    branch = Transcript((result("older", "call_0"), result("other", "call_1"), result("newer", "call_0")))

    fresh = await source.of(branch, ["older", "newer"])

    assert fresh.stamps == {"newer": Stamp("now", 0), "other": Stamp("then", 1)}
    assert source.exit_codes(branch) == {"newer": 0, "other": 1}


async def test_a_shell_execution_has_the_stamp_of_its_entry() -> None:
    stamps = Stamper(ScriptedTree("now"), known={"shell": Stamp("now", 0)})
    source = FreshnessSource(ScriptedTree("now"), stamps)
    branch = Transcript((Entry("shell", "shell", 5_000, "ok", command="true", exit_code=0),))

    assert (await source.of(branch, ["shell"])).stamps == {"shell": Stamp("now", 0)}
