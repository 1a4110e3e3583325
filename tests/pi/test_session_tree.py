from __future__ import annotations

from goalkeeper.evidence.transcript import Entry, ToolCall
from goalkeeper.pi.session_entries import Line
from goalkeeper.pi.session_tail import Demand, Tail
from goalkeeper.pi.session_tree import branch, edited, joined, shown_size


def user(entry_id: str, parent: str | None, text: str = "x") -> Line:
    return Line(entry_id, parent, Entry(entry_id, "user", 0, text))


def call(entry_id: str, parent: str | None, call_id: str, command: str) -> Line:
    calls = (ToolCall(call_id, "bash", "{}", command),)
    return Line(entry_id, parent, Entry(entry_id, "assistant", 0, "", calls=calls))


def result(entry_id: str, parent: str | None, call_id: str) -> Line:
    return Line(entry_id, parent, Entry(entry_id, "tool_result", 0, "out", tool_name="bash", call_id=call_id))


def held(*lines: Line) -> dict[str, Line]:
    return {line.id: line for line in lines}


def ids(lines: object) -> list[str]:
    return [line.id for line in lines]  # type: ignore[attr-defined]


def test_a_branch_is_walked_from_its_leaf_to_its_root() -> None:
    lines = held(user("a", None), user("b", "a"), user("c", "a"), Line("d", "c"))
    found, missing = branch(lines, "d")
    assert (ids(found), missing) == (["a", "c", "d"], None)
    assert branch(lines, None) == ([], None)


def test_a_chain_that_breaks_or_bites_its_tail_ends_there() -> None:
    found, missing = branch(held(user("b", "gone"), user("c", "b")), "c")
    assert (ids(found), missing) == (["b", "c"], "gone")
    found, missing = branch(held(user("a", "b"), user("b", "a")), "b")
    assert (ids(found), missing) == (["a", "b"], None)


def test_edits_mark_their_targets() -> None:
    assert edited([user("a", None), Line("e", "a", None, "a"), Line("f", "e", None, "z")]) == {"a", "z"}


def test_a_result_is_joined_to_the_latest_call_with_its_id() -> None:
    lines = [call("a", None, "c0", "old"), result("b", "a", "c0"), call("c", "b", "c0", "new"), result("d", "c", "c0")]
    lines.append(result("e", "d", "unknown"))
    entries = joined([line.entry for line in lines if line.entry])
    assert [(e.call_entry, e.command) for e in entries if e.kind == "tool_result"] == [
        ("a", "old"),
        ("c", "new"),
        (None, None),
    ]


def test_of_two_calls_of_one_message_with_the_same_id_no_result_gets_a_command() -> None:
    calls = (ToolCall("c", "bash", "{}", "pytest || true"), ToolCall("c", "bash", "{}", "pytest"))
    caller = Entry("a", "assistant", 0, "", calls=calls)
    entries = joined(
        [caller, *(line.entry for line in (result("r1", "a", "c"), result("r2", "r1", "c")) if line.entry)]
    )
    assert [(entry.call_entry, entry.command) for entry in entries[1:]] == [("a", None), ("a", None)]


def test_an_entry_counts_at_most_four_thousand_characters() -> None:
    assert shown_size(user("a", None, "x" * 9000).entry) == 4000
    assert shown_size(None) == 0


def test_enough_includes_the_calls_of_the_results() -> None:
    demand = Demand(3)
    assert not demand.take(result("b", "a", "c0").entry)
    assert not demand.take(user("x", "a").entry)
    assert demand.take(call("a", None, "c0", "ls").entry)


def test_the_search_for_a_lost_call_is_bounded() -> None:
    demand = Demand(3)
    demand.take(result("b", "a", "lost").entry)
    taken = 0
    while not demand.take(user("x", "a").entry):
        taken += 1
        assert taken < 100


def test_a_tail_knows_how_much_comes_before_what_it_shows() -> None:
    tail = Tail()
    for number in range(10):
        tail.add(user(f"u{number}", f"u{number - 1}" if number else None, "x" * 100))
    view = tail.view("u9", 250)
    assert (ids(view.lines), view.earlier, view.complete) == (["u7", "u8", "u9"], 7, True)
    transcript = tail.transcript(view, "u9")
    assert (transcript.earlier, transcript.earlier_exact, transcript.leaf) == (7, True, "u9")
    assert not tail.view("u9", 1000).complete
    tail.add(user("u10", "u9"))
    assert tail.view("u10", 1).earlier == 10


def test_a_tail_whose_first_parent_is_nowhere_is_all_there_is() -> None:
    tail = Tail()
    tail.fill([user("b", "gone")], before=0, exact=True)
    assert not tail.view("b", 1000).complete
    tail.fill([user("b", "gone")], before=0, exact=True, broken_at="gone")
    assert tail.view("b", 1000).complete
