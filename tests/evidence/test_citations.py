"""Each rule of section "Rules" in docs/evaluator.md: what it refuses, and the nearest claim that it lets through."""

import hashlib
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from goalkeeper.core.verdict import Claim, EvaluatorFailure, Freshness, Judgement, Stamp, Terms, Verdict
from goalkeeper.evidence.citations import PAUSING_RULES, check_failed, judge_claim
from goalkeeper.evidence.transcript import Entry, ToolCall, Transcript
from goalkeeper.evidence.window import build_window

PYTEST = Terms("tool", ("pytest -q",))
ANY = Terms("tool")
GOAL = Entry("goal", "user", 1_000, "All tests pass.")
ANSWER = Entry("answer", "assistant", 9_000, "All tests pass now.", stop_reason="stop")


def run(name: str, command: str = "pytest -q", *, at: int = 5_000, **result: Any) -> tuple[Entry, Entry]:
    """A bash call `call-NAME` and its result NAME."""
    call = ToolCall(f"id-{name}", "bash", '{"command": "x"}', command)
    asked = Entry(f"call-{name}", "assistant", at - 1, "", (call,), "toolUse")
    base = Entry(name, "tool_result", at, "12 passed", tool_name="bash", command=command)
    return asked, replace(base, call_id=call.call_id, call_entry=asked.id, **result)


def edit(name: str, path: str = "a.py", *, tool: str = "edit", **result: Any) -> tuple[Entry, Entry]:
    """An edit call `call-NAME` and its result NAME."""
    call = ToolCall(f"id-{name}", tool, '{"path": "x"}', path=path)
    asked = Entry(f"call-{name}", "assistant", 5_000, "", (call,), "toolUse")
    base = Entry(name, "tool_result", 5_001, "Replaced.", tool_name=tool, call_id=call.call_id, call_entry=asked.id)
    return asked, replace(base, **result)


def shell(name: str, command: str = "pytest -q", *, at: int = 5_000, **facts: Any) -> Entry:
    return replace(Entry(name, "shell", at, "12 passed", command=command, exit_code=0), **facts)


@dataclass
class Scene:
    """A claim and what it is judged against; by default a claim that stands."""

    entries: tuple[Entry, ...] = (GOAL, *run("r"), ANSWER)
    cites: tuple[str, ...] = ("r",)
    verdict: Any = "met"
    basis: Any = "tool"
    quotes: tuple[tuple[str, str], ...] = ()
    terms: Terms = PYTEST
    goal_entry: str | None = "goal"
    goal_at: int | None = 1_000
    freshness: Freshness = field(default_factory=Freshness)
    checks: tuple[str, ...] = ()
    edited: frozenset[str] = frozenset()
    budget: int = 20_000

    def judge(self) -> Judgement:
        transcript = Transcript(self.entries, edited=self.edited)
        return judge_claim(
            Claim(self.verdict, "As shown.", self.basis, self.cites, self.quotes),
            build_window(transcript, budget=self.budget),
            transcript,
            self.terms,
            goal_entry=self.goal_entry,
            goal_at=self.goal_at,
            cwd="/project",
            freshness=self.freshness,
            checks=self.checks,
        )

    def rules(self) -> list[str]:
        return [finding.rule for finding in self.judge().findings]


def chatter(count: int) -> tuple[Entry, ...]:
    return tuple(Entry(f"talk{n}", "assistant", 6_000, "words " * 600) for n in range(count))


EDIT_CALL = ToolCall("id-e", "edit", "{}", path="a.py")
BESIDE = (
    Entry("both", "assistant", 4_000, "", (EDIT_CALL, ToolCall("id-r", "bash", "{}", "pytest -q"))),
    Entry("e", "tool_result", 4_500, "Replaced.", tool_name="edit", call_id="id-e", call_entry="both"),
    replace(run("r")[1], call_entry="both", call_id="id-r"),
)  # fmt: skip
AGAIN = (
    Entry("again", "assistant", 6_000, "", (ToolCall("id-e", "bash", "{}", "false"),)),
    replace(run("f", "false", is_error=True)[1], call_id="id-e", call_entry="again"),
)
READ_BESIDE = replace(BESIDE[0], calls=(ToolCall("id-e", "read", "{}"), BESIDE[0].calls[1]))
SUMMARY = Entry("sum", "summary", 4_000, "All 12 tests pass.")
CUT = "first\n" + "x" * 9_000 + "\n12 passed"
NESTED = replace(edit("n", tool="codemode")[1], nested_tools=("bash", "write"))

REFUSED: dict[str, tuple[str, Scene]] = {
    "met without a citation": ("no_citation", Scene(cites=())),
    "an invented id": ("unknown_id", Scene(cites=("feedbeef",))),
    "an invented id beside a good one": ("unknown_id", Scene(cites=("r", "feedbeef"))),
    "an invented id as an answer": ("unknown_id", Scene(terms=Terms("answer"), basis="answer", cites=("feedbeef",))),
    "an entry that scrolled out of the window": ("unknown_id", Scene(entries=(GOAL, *run("r"), *chatter(6)))),
    "an invented id in a not_met": ("unknown_id", Scene(verdict="not_met", cites=("feedbeef",))),
    "an invented id in an unknown": ("unknown_id", Scene(verdict="unknown", cites=("feedbeef",))),
    "the worker's words": ("not_evidence", Scene(cites=("answer",))),
    "the worker's words beside a result": ("not_evidence", Scene(cites=("r", "answer"))),
    "the user's words": ("not_evidence", Scene(cites=("goal",))),
    "a call without its result": ("not_evidence", Scene(entries=(GOAL, run("r")[0], ANSWER), cites=("call-r",))),
    "a summary": ("not_evidence", Scene(entries=(GOAL, *run("r"), SUMMARY), cites=("sum",))),
    "an extension's message": (
        "not_evidence",
        Scene(entries=(GOAL, *run("r"), Entry("x", "extension", 4_000, "ok")), cites=("x",)),
    ),
    "an answer that is only the user's words": (
        "not_evidence",
        Scene(terms=Terms("answer"), basis="answer", cites=("goal",)),
    ),
    "an answer from before the goal": (
        "not_evidence",
        Scene(entries=(ANSWER, GOAL), terms=Terms("answer"), basis="answer", cites=("answer",)),
    ),
    "an answer that is only results": ("not_evidence", Scene(terms=Terms("answer"), basis="answer")),
    "an excluded shell execution": (
        "excluded",
        Scene(entries=(GOAL, shell("s", excluded=True), ANSWER), cites=("s",)),
    ),
    "an answer for a goal about state": (
        "weaker_basis",
        Scene(basis="answer", cites=("answer",), terms=ANY),
    ),
    "a quote that is not there": ("quote_absent", Scene(quotes=(("r", "13 passed"),))),
    "a quote of an entry that was not sent": ("quote_absent", Scene(quotes=(("feedbeef", "12 passed"),))),
    "an error flag": ("is_error", Scene(entries=(GOAL, *run("r", is_error=True), ANSWER))),
    "an exit code seen on the wire": (
        "is_error",
        Scene(freshness=Freshness(stamps={"r": Stamp(None, exit_code=2)})),
    ),
    "a shell execution that failed": (
        "is_error",
        Scene(entries=(GOAL, shell("s", exit_code=1), ANSWER), cites=("s",)),
    ),
    "a shell execution that was cancelled": (
        "is_error",
        Scene(entries=(GOAL, shell("s", cancelled=True), ANSWER), cites=("s",)),
    ),
    "a shell execution without an exit code": (
        "is_error",
        Scene(entries=(GOAL, shell("s", exit_code=None), ANSWER), cites=("s",)),
    ),
    "an error beside the answer": (
        "is_error",
        Scene(
            entries=(GOAL, *run("r", is_error=True), ANSWER),
            terms=Terms("answer"), basis="answer", cites=("answer", "r"),
        ),
    ),
    "the same command failed later": (
        "contradicted",
        Scene(entries=(GOAL, *run("r"), *run("r2", "cd /project && pytest -q 2>&1", is_error=True), ANSWER)),
    ),
    "the same check failed later as a shell execution": (
        "contradicted",
        Scene(entries=(GOAL, *run("r"), shell("s", exit_code=1, at=6_000), ANSWER)),
    ),
    "the same command failed later by its wire exit code": (
        "contradicted",
        Scene(
            entries=(GOAL, *run("r"), *run("r2"), ANSWER),
            freshness=Freshness(stamps={"r2": Stamp(None, exit_code=1)}),
        ),
    ),
    "the same call of another tool failed later": (
        "contradicted",
        Scene(
            entries=(GOAL, *edit("f", tool="read"), *edit("f2", tool="read", is_error=True)),
            cites=("f",), terms=ANY,
        ),
    ),
    "a result from before the goal": (
        "before_goal",
        Scene(entries=(*run("r", at=500), GOAL, ANSWER)),
    ),
    "a result of the leaf at which the goal was set": ("before_goal", Scene(goal_entry="r", goal_at=None)),
    "a result older than a goal whose entry is not at hand": (
        "before_goal",
        Scene(entries=run("r", at=500), goal_entry="far away"),
    ),
    "a shell execution that ran before the goal and was recorded after it": (
        "before_goal",
        Scene(entries=(GOAL, shell("s", at=900), ANSWER), cites=("s",)),
    ),
    "an edit after the run": ("later_change", Scene(entries=(GOAL, *run("r"), *edit("e"), ANSWER))),
    "a write after the run": ("later_change", Scene(entries=(GOAL, *run("r"), *edit("e", tool="write"), ANSWER))),
    "an edit whose result is missing": ("later_change", Scene(entries=(GOAL, *run("r"), edit("e")[0]))),
    "an edit that another tool made": ("later_change", Scene(entries=(GOAL, *run("r"), NESTED, ANSWER))),
    "calls of another tool that pi did not record": (
        "later_change",
        Scene(entries=(GOAL, *run("r"), replace(NESTED, nested_tools=("?",)), ANSWER)),
    ),
    "an entry after the run that can't be read": (
        "later_change",
        Scene(entries=(GOAL, *run("r"), Entry("big", "unreadable", 6_000, ""), ANSWER)),
    ),
    "an edit during a shell execution's place in the file": (
        "later_change",
        Scene(entries=(GOAL, *edit("e"), shell("s", at=4_000), ANSWER), cites=("s",)),
    ),
    "another tree than at the run": (
        "later_change",
        Scene(freshness=Freshness("now", {"r": Stamp("then")}, {"then": ("b.py",)})),
    ),
    "a tree that can't be tied to the run": (
        "later_change",
        Scene(freshness=Freshness("now", {"r": Stamp("now", overlapped=True)})),
    ),
    "an unstamped run before a stamp of another tree": (
        "later_change",
        Scene(
            entries=(GOAL, *run("r"), *run("r2", "ls"), ANSWER),
            freshness=Freshness("now", {"r2": Stamp("then")}, {"then": ("b.py",)}),
        ),
    ),
    "an edit after an unstamped run, though the tree is known": (
        "later_change",
        Scene(entries=(GOAL, *run("r"), *edit("e"), ANSWER), freshness=Freshness("now")),
    ),
    "an unstamped run, though later ones carry the tree of now": (
        "later_change",
        Scene(
            entries=(GOAL, *run("r"), *run("r2", "sed -i s/a/b/ a.py"), ANSWER),
            freshness=Freshness("now", {"r2": Stamp("now")}),
        ),
    ),
    "a run whose stamp has no tree, though there is one now": (
        "later_change",
        Scene(freshness=Freshness("now", {"r": Stamp(None, 0)})),
    ),
    "a tree that can't be looked at any more": (
        "later_change",
        Scene(freshness=Freshness(None, {"r": Stamp("then", 0)})),
    ),
    "a run in a checkout that was none any more by then": (
        "later_change",
        Scene(freshness=Freshness(None, {"r": Stamp(None, 0)}, lost=True)),
    ),
    "an edit whose call id a failed call has again": (
        "later_change",
        Scene(entries=(GOAL, *run("r"), *edit("e"), *AGAIN, ANSWER)),
    ),
    "an edit called beside the run": ("same_message_change", Scene(entries=(GOAL, *BESIDE, ANSWER))),
    "an edit called beside the run, though its stamp is fresh": (
        "same_message_change",
        Scene(entries=(GOAL, *BESIDE, ANSWER), freshness=Freshness("now", {"r": Stamp("now")})),
    ),
    "an edit that a tool called beside the run made": (
        "same_message_change",
        Scene(entries=(GOAL, READ_BESIDE, replace(NESTED, call_id="id-e", call_entry="both"), BESIDE[2], ANSWER)),
    ),
    "a result edited out of the context": ("context_edited", Scene(edited=frozenset({"r"}))),
    "another command than the named one": (
        "other_command",
        Scene(entries=(GOAL, *run("r", "pytest -q || true"), ANSWER)),
    ),
    "one of two named commands": ("other_command", Scene(terms=Terms("tool", ("pytest -q", "ruff check .")))),
    "an output that pi cut": (
        "truncated",
        Scene(entries=(GOAL, *run("r", "make all", truncated=True), ANSWER), terms=ANY),
    ),
    "an output that the window cut": (
        "truncated",
        Scene(entries=(GOAL, *run("r", "make all", text=CUT), ANSWER), terms=ANY),
    ),
}  # fmt: skip

ACCEPTED: dict[str, Scene] = {
    "a passing run of the named command": Scene(),
    "the same id twice": Scene(cites=("r", "r")),
    "a run in the session's folder": Scene(entries=(GOAL, *run("r", "cd /project && pytest -q 2>&1"), ANSWER)),
    "a direct shell execution": Scene(entries=(GOAL, shell("s"), ANSWER), cites=("s",)),
    "two results": Scene(entries=(GOAL, *run("r"), *run("r2", "ls"), ANSWER), cites=("r", "r2")),
    "any command where none is named": Scene(entries=(GOAL, *run("r", "pytest -q | tail -1"), ANSWER), terms=ANY),
    "the worker's answer where an answer is asked for": Scene(terms=Terms("answer"), basis="answer", cites=("answer",)),
    "an answer beside a result": Scene(terms=Terms("answer"), basis="answer", cites=("answer", "r")),
    "an answer beside the user's words": Scene(terms=Terms("answer"), basis="answer", cites=("goal", "answer")),
    "a result where an answer would do": Scene(terms=Terms("answer"), basis="tool"),
    "an answer that also calls a tool": Scene(
        entries=(GOAL, replace(run("r")[0], text="Here it is."), run("r")[1]),
        terms=Terms("answer"), basis="answer", cites=("call-r",),
    ),
    "a quote with other white space": Scene(quotes=(("r", " 12\n  passed "),)),
    "a blank quote": Scene(quotes=(("r", " "),)),
    "a quote of the command": Scene(quotes=(("r", "pytest -q"),)),
    "an exit code 0 on the wire": Scene(freshness=Freshness(stamps={"r": Stamp(None, exit_code=0)})),
    "a failure before the passing run": Scene(entries=(GOAL, *run("r0", is_error=True), *run("r"), ANSWER)),
    "a later failure of another command": Scene(entries=(GOAL, *run("r"), *run("r2", "ls x", is_error=True), ANSWER)),
    "a later failure of another call": Scene(
        entries=(GOAL, *edit("f", tool="read"), *edit("f2", tool="grep", is_error=True)), cites=("f",), terms=ANY
    ),
    "a later failure of a call that is not at hand": Scene(
        entries=(GOAL, edit("f", tool="read")[1], edit("f2", tool="read", is_error=True)[1]), cites=("f",), terms=ANY
    ),
    "a run right after the goal": Scene(entries=(GOAL, *run("r", at=1_001), ANSWER)),
    "a run whose clock was set back": Scene(entries=(GOAL, *run("r", at=10), ANSWER)),
    "a run in a session that was empty when the goal was set": Scene(goal_entry=None),
    "an edit before the run": Scene(entries=(GOAL, *edit("e"), *run("r"), ANSWER)),
    "an edit that failed": Scene(entries=(GOAL, *run("r"), *edit("e", is_error=True), ANSWER)),
    "a read after the run": Scene(entries=(GOAL, *run("r"), *edit("e", tool="read"), ANSWER)),
    "nested calls that change nothing": Scene(
        entries=(GOAL, *run("r"), replace(NESTED, nested_tools=("read", "bash")), ANSWER)
    ),
    "the write itself": Scene(entries=(GOAL, *edit("w", tool="write"), ANSWER), cites=("w",), terms=ANY),
    "the tree of the run": Scene(freshness=Freshness("now", {"r": Stamp("now")})),
    "an edit that left the tree as it was": Scene(
        entries=(GOAL, *run("r"), *edit("e"), ANSWER), freshness=Freshness("now", {"r": Stamp("now")})
    ),
    "a stamp without a tree where there is none now": Scene(freshness=Freshness(None, {"r": Stamp(None, 0)})),
    "a read beside the run": Scene(
        entries=(GOAL, READ_BESIDE, replace(BESIDE[1], tool_name="read"), BESIDE[2], ANSWER)
    ),
    "another entry edited out of the context": Scene(edited=frozenset({"answer"})),
    "a cut output of the named command": Scene(entries=(GOAL, *run("r", truncated=True, text=CUT), ANSWER)),
    "a cut output of a check": Scene(
        entries=(GOAL, shell("s", "make all", truncated=True), ANSWER),
        cites=("s",), terms=ANY, checks=("make all",),
    ),
    "a long answer": Scene(
        entries=(GOAL, replace(ANSWER, text=CUT)), terms=Terms("answer"), basis="answer", cites=("answer",)
    ),
}  # fmt: skip


@pytest.mark.parametrize(("rule", "scene"), REFUSED.values(), ids=REFUSED)
def test_refused(rule: str, scene: Scene) -> None:
    judgement = scene.judge()
    assert rule in scene.rules()
    assert f"({rule})" in judgement.reason
    if rule in PAUSING_RULES:
        assert isinstance(judgement, EvaluatorFailure) and judgement.kind == "invalid_citation"
    else:
        assert isinstance(judgement, Verdict) and judgement.verdict == "unknown"
    assert judgement.claimed == scene.verdict


@pytest.mark.parametrize("scene", ACCEPTED.values(), ids=ACCEPTED)
def test_accepted(scene: Scene) -> None:
    judgement = scene.judge()
    assert scene.rules() == []
    assert isinstance(judgement, Verdict) and judgement.verdict == "met"
    assert judgement.reason == "As shown."


ALL_RULES = PAUSING_RULES | {
    "weaker_basis", "quote_absent", "is_error", "contradicted", "before_goal", "later_change", "same_message_change",
    "context_edited", "other_command", "truncated",
}  # fmt: skip


def test_every_rule_is_shown_to_refuse() -> None:
    assert {rule for rule, _ in REFUSED.values()} == ALL_RULES


def test_the_documentation_lists_exactly_the_rules_that_there_are() -> None:
    page = (Path(__file__).parents[2] / "docs" / "evaluator.md").read_text(encoding="utf-8")
    table = page.split("## Rules")[1].split("*Exactly that command*")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == ALL_RULES | {"check_failed"}


@pytest.mark.parametrize("verdict", ["not_met", "unknown"])
def test_other_verdicts_need_no_proof(verdict: str) -> None:
    entries = (GOAL, *run("r", "make", is_error=True), *edit("e"), ANSWER)
    for cites in ((), ("r",), ("answer", "goal")):
        judgement = Scene(entries=entries, verdict=verdict, cites=cites, quotes=(("r", "nowhere"),)).judge()
        assert isinstance(judgement, Verdict)
        assert (judgement.verdict, judgement.findings) == (verdict, ())


def test_rules_that_pause_come_before_doubts() -> None:
    judgement = Scene(entries=(GOAL, *run("r", is_error=True), ANSWER), cites=("r", "answer")).judge()
    assert isinstance(judgement, EvaluatorFailure)
    assert [finding.rule for finding in judgement.findings] == ["not_evidence"]


def test_all_doubts_are_named_at_once() -> None:
    scene = Scene(entries=(GOAL, *run("r", "make", is_error=True), *edit("e", "src/a.py"), ANSWER))
    assert scene.rules() == ["is_error", "later_change", "other_command"]
    reason = scene.judge().reason
    assert "src/a.py" in reason and "`pytest -q`" in reason and "r is an error" in reason


def test_a_stale_result_names_the_files_that_changed() -> None:
    many = tuple(f"f{n}.py" for n in range(8))
    reason = Scene(freshness=Freshness("now", {"r": Stamp("then")}, {"then": many})).judge().reason
    assert "f0.py, f1.py, f2.py, f3.py, f4.py and 3 more" in reason
    assert "names not known" in Scene(freshness=Freshness("now", {"r": Stamp("then")})).judge().reason


def test_an_overlap_says_that_another_command_ran_at_the_same_time() -> None:
    reason = Scene(freshness=Freshness("now", {"r": Stamp("now", overlapped=True)})).judge().reason
    assert "at the same time" in reason


def test_cited_entries_are_kept_by_role_hash_and_command() -> None:
    judgement = Scene(cites=("r",)).judge()
    (cited,) = judgement.evidence
    assert (cited.id, cited.role, cited.command) == ("r", "tool_result", "pytest -q")
    assert cited.digest == hashlib.sha256(b"12 passed").hexdigest()
    (unknown,) = Scene(cites=("feedbeef",)).judge().evidence
    assert (unknown.role, unknown.digest) == ("unknown", "")


def test_one_changed_byte_of_a_quote_is_refused() -> None:
    assert Scene(quotes=(("r", "12 passed"),)).rules() == []
    for position in range(len("12 passed")):
        quote = "12 passed"[:position] + "#" + "12 passed"[position + 1 :]
        assert Scene(quotes=(("r", quote),)).rules() == ["quote_absent"]


def test_a_failed_check_is_a_verdict_with_the_end_of_its_output() -> None:
    verdict = check_failed("make test", 2, "noise\n" * 1_000 + "1 failed\n")
    assert verdict.verdict == "not_met"
    assert [finding.rule for finding in verdict.findings] == ["check_failed"]
    assert "check_failed" in verdict.reason and "`make test` exited 2" in verdict.reason
    assert verdict.reason.endswith("1 failed") and len(verdict.reason) < 2_200
    assert verdict.claimed is None
    assert "did not end" in check_failed("make", None, "").reason
