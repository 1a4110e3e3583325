"""What an evaluator is told of changed files before its met counts."""

from __future__ import annotations

from goalkeeper.core.verdict import Stamp, Terms, Verdict
from goalkeeper.evaluator.llm_evaluator import LlmEvaluator
from goalkeeper.evidence.transcript import Entry, ToolCall, Transcript
from goalkeeper.runtime.freshness import FreshnessSource
from goalkeeper.runtime.judge import Question, judge
from goalkeeper.testing.judges import say_verdict
from goalkeeper.testing.scripted_evaluator import ScriptedEvaluator
from goalkeeper.testing.scripted_tree import ScriptedTree
from goalkeeper.worktree.stamps import Stamper

CALL = ToolCall("c1", "bash", "{}", "pytest -q")
BRANCH = Transcript(
    (
        Entry("u1", "user", 1, "all tests pass"),
        Entry("a1", "assistant", 2, "", (CALL,), "toolUse"),
        Entry("r1", "tool_result", 3, "3 passed", tool_name="bash", call_id="c1", call_entry="a1", command="pytest -q"),
    )
)
MET = say_verdict("met", "It passed.", evidence=["r1"]).text
UNKNOWN = say_verdict("unknown", "How did the tests change?").text


def question(start: str | None) -> Question:
    return Question("all tests pass", Terms("tool"), BRANCH, "/project", "u1", 1, start)


def freshness(changed: tuple[str, ...], *, stamped: str = "now") -> FreshnessSource:
    tree = ScriptedTree("now", {("start", "now"): changed})
    return FreshnessSource(tree, LateStamps(tree, known={"c0": Stamp(stamped, 0)}))


class LateStamps(Stamper):
    """The newest stamp is made only when somebody waits for it."""

    async def drain(self, timeout: float) -> None:
        self._keep("c1", Stamp("now", 0))


async def test_a_met_that_did_not_know_of_a_changed_test_is_asked_for_again_with_it() -> None:
    client = ScriptedEvaluator([MET, UNKNOWN])
    source = freshness(("tests/test_a.py", "a.py"), stamped="start")

    finding = await judge(question("start"), LlmEvaluator(client), source)

    assert isinstance(finding.judgement, Verdict)
    assert finding.judgement.verdict == "unknown"
    first, second = (request.user for request in client.requests)
    assert "tests/test_a.py" not in first
    assert "tests/test_a.py [test]" in second


async def test_a_met_that_stands_though_a_test_changed_names_it() -> None:
    client = ScriptedEvaluator([MET])

    finding = await judge(question("start"), LlmEvaluator(client), freshness(("tests/test_a.py",), stamped="start"))

    assert finding.judgement_is_met
    assert finding.changed == ("tests/test_a.py (test)",)
    assert len(client.requests) == 2


async def test_a_checkout_that_is_gone_is_not_judged_like_a_folder_that_never_was_one() -> None:
    tree = ScriptedTree(None)
    source = FreshnessSource(tree, Stamper(tree, known={"c1": Stamp(None, 0)}))
    verdicts = []
    for start in ("start", None):
        finding = await judge(question(start), LlmEvaluator(ScriptedEvaluator([MET])), source)
        assert isinstance(finding.judgement, Verdict)
        verdicts.append((finding.judgement.verdict, [found.rule for found in finding.judgement.findings]))
    assert verdicts == [("unknown", ["later_change"]), ("met", [])]


async def test_nobody_is_asked_twice_about_what_was_told_or_is_no_proof() -> None:
    for changed, stamped in ((("tests/test_a.py",), "now"), (("a.py",), "start")):
        client = ScriptedEvaluator([MET])
        finding = await judge(question("start"), LlmEvaluator(client), freshness(changed, stamped=stamped))
        assert finding.judgement_is_met
        assert len(client.requests) == 1
