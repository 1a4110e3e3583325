"""One evaluation: evidence in, verdict after the rules out; a live goal and `goalkeeper evaluate` share it.

Knows nothing of budgets, messages or where the transcript came from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from goalkeeper.core.limits import Usage
from goalkeeper.core.verdict import Claim, EvaluatorFailure, Freshness, Judgement, RuleFinding, Terms, Verdict
from goalkeeper.evaluator.prompt import EvaluatorRequest, verdict_request, window_budget
from goalkeeper.evidence.citations import judge_claim
from goalkeeper.evidence.proof_files import ProofMark, changed_proof_files
from goalkeeper.evidence.transcript import Transcript
from goalkeeper.evidence.window import Window, build_window
from goalkeeper.ports import ShellResult
from goalkeeper.runtime.freshness import FreshnessSource

TRANSCRIPT_CHARACTERS = 40_000
"""How much of the branch is read for a window of 20,000: room for results that are shown cut and for their calls."""


_UNBOUNDED = 10_000_000
"""Window budget where no model has to read it: every check must be in it."""


class Evaluator(Protocol):
    """Who is asked; see `goalkeeper.evaluator.llm_evaluator.LlmEvaluator` and `ChecksEvaluator`."""

    async def evaluate(self, request: EvaluatorRequest) -> tuple[Claim | EvaluatorFailure, Usage]:
        """Return what the evaluator claims, or how it failed, and what that cost."""
        ...


@dataclass(frozen=True, slots=True)
class Question:
    """What is to be judged.

    Attributes:
        condition: the user's words.
        terms: what counts as proof.
        transcript: the newest part of the branch.
        cwd: absolute path of the session's folder.
        goal_entry: the entry that set the goal, or the leaf at that moment.
        goal_at: when that was, milliseconds since the epoch.
        tree_at_start: the work tree's fingerprint then.
        checks: results of the controller's own checks.
        checks_tree: the work tree's fingerprint when they had all exited 0.
    """

    condition: str
    terms: Terms
    transcript: Transcript
    cwd: str
    goal_entry: str | None = None
    goal_at: int | None = None
    tree_at_start: str | None = None
    checks: Sequence[ShellResult] = ()
    checks_tree: str | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """What came of it.

    Attributes:
        judgement: what stands after the rules.
        claim: what the evaluator itself said, None if it was not asked or failed.
        window: digest of the window it saw, empty if it was not asked.
        tree: the work tree's fingerprint if a claim was held against it.
        usage: tokens and cost of the evaluator.
        sent: the window itself, None if it was not asked.
        changed: files changed since the goal was set that are tests or proof, as "name (mark)".
    """

    judgement: Judgement
    claim: Claim | None = None
    window: str = ""
    tree: str | None = None
    usage: Usage = field(default_factory=Usage)
    sent: Window | None = None
    changed: tuple[str, ...] = ()

    @property
    def judgement_is_met(self) -> bool:
        """Whether a met stands."""
        return isinstance(self.judgement, Verdict) and self.judgement.verdict == "met"


class ChecksEvaluator:
    """No model: the checks have all exited 0, so the claim is met, and their entries are its evidence.

    Args:
        results: the results of the round that passed.
    """

    def __init__(self, results: Sequence[ShellResult]) -> None:
        self._results = results

    async def evaluate(self, request: EvaluatorRequest) -> tuple[Claim | EvaluatorFailure, Usage]:
        """Return the claim; the rules still have their say."""
        cited = tuple(result.entry_id for result in self._results if result.entry_id)
        commands = ", ".join(f"`{result.command}`" for result in self._results)
        return Claim("met", f"Every check exited 0: {commands}", "tool", cited), Usage()


async def judge(question: Question, evaluator: Evaluator, freshness: FreshnessSource) -> Finding:
    """Ask the evaluator about a bounded window and hold its claim against the rules.

    Which files changed is taken from the stamps that there are, so that nothing is waited for. If a met turns out to
    have been given without word of a changed test or proof, the evaluator is asked once more, with it.
    """
    changed = _marked(await freshness.changed_since(question.tree_at_start), question)
    finding = await _ask(question, evaluator, freshness, changed)
    if question.tree_at_start and finding.tree and finding.judgement_is_met:
        now = _marked(await freshness.changed(question.tree_at_start, finding.tree), question)
        if {name for name, mark in now if mark} - {name for name, _ in changed}:
            again = await _ask(question, evaluator, freshness, now)
            return replace(again, usage=finding.usage.plus(again.usage))
    return finding


def _marked(changed: Sequence[str], question: Question) -> tuple[tuple[str, ProofMark], ...]:
    return changed_proof_files(changed, question.terms, tuple(result.command for result in question.checks))


async def _ask(
    question: Question, evaluator: Evaluator, freshness: FreshnessSource, changed: tuple[tuple[str, ProofMark], ...]
) -> Finding:
    transcript, terms, checks = question.transcript, question.terms, question.checks
    commands = tuple(result.command for result in checks)
    without_model = isinstance(evaluator, ChecksEvaluator)
    window = build_window(
        transcript,
        budget=_UNBOUNDED if without_model else window_budget(question.condition, terms, changed, checks),
        exit_codes=freshness.exit_codes(transcript),
    )
    if not window.entries:
        return Finding(Verdict("unknown", "There is no evidence yet: nothing has been done or run in this session."))
    answer, usage = await evaluator.evaluate(verdict_request(question.condition, window, terms, changed, checks))
    if isinstance(answer, EvaluatorFailure):
        return Finding(answer, None, window.digest, None, usage, window)
    # Only a met must hold in the tree as it is now; for anything else a look at it would just take time.
    fresh = await freshness.of(transcript, answer.evidence) if answer.verdict == "met" else Freshness()
    # A checkout that can't be looked at any more must not be judged by the weaker rules for folders that are none.
    fresh = replace(fresh, lost=question.tree_at_start is not None and fresh.tree is None)
    judgement = judge_claim(
        answer,
        window,
        transcript,
        terms,
        goal_entry=question.goal_entry,
        goal_at=question.goal_at,
        cwd=question.cwd,
        freshness=fresh,
        checks=commands,
    )
    if isinstance(judgement, Verdict) and judgement.verdict == "met" and checks and fresh.tree != question.checks_tree:
        judgement = await _stale_checks(judgement, question.checks_tree, fresh.tree, freshness)
    marked = tuple(f"{name} ({mark})" for name, mark in changed if mark)
    return Finding(judgement, answer, window.digest, fresh.tree, usage, window, marked)


async def _stale_checks(met: Verdict, then: str | None, now: str | None, freshness: FreshnessSource) -> Verdict:
    """Return unknown for a met whose checks passed in another tree than the one that is there now."""
    files = ", ".join((await freshness.changed(then, now))[:5]) if then and now else ""
    detail = "the work tree changed after the checks had passed" + (f": {files}" if files else "")
    finding = RuleFinding("later_change", detail)
    reason = f"Completion is not proven: {detail} (later_change)."
    return Verdict("unknown", reason, met.basis, met.evidence, (finding,), met.claimed)
