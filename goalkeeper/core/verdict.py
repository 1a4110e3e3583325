"""What an evaluator says, and what is left of it after the rules.

Knows nothing of prompts, models or transcripts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

VerdictWord = Literal["met", "not_met", "unknown"]
Basis = Literal["tool", "answer"]

FailureKind = Literal[
    "provider_error",  # the provider answered with an error, or not at all
    "timeout",  # no answer within the bound
    "malformed",  # an answer that is not one verdict
    "cut_off",  # the provider cut the answer at its length limit
    "invalid_citation",  # a claim that cites what it can't cite
    "unavailable",  # the evaluator can't start: no model, no key, no library
]


@dataclass(frozen=True, slots=True)
class Claim:
    """The evaluator's own answer, before any rule.

    Attributes:
        verdict: met, not_met or unknown.
        reason: never empty.
        basis: what the evaluator says its verdict rests on.
        evidence: cited entry ids, in the order given.
        quotes: entry id to a short verbatim text of that entry.
    """

    verdict: VerdictWord
    reason: str
    basis: Basis
    evidence: tuple[str, ...] = ()
    quotes: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class CitedEntry:
    """A cited entry as the journal keeps it: id, kind and a hash of its content, no text.

    Attributes:
        id: the session entry's id.
        role: the entry's kind, see `goalkeeper.evidence.transcript.EntryKind`; "unknown" if it is not there.
        digest: sha-256 (hex) of the entry's text, empty if it is not there.
        command: the shell command behind the entry, if there is one.
    """

    id: str
    role: str
    digest: str = ""
    command: str | None = None


@dataclass(frozen=True, slots=True)
class RuleFinding:
    """One rule that refused a claim.

    Attributes:
        rule: its name in the table of rules (docs/evaluator.md).
        detail: one sentence for a person.
    """

    rule: str
    detail: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict that stands after the rules.

    Attributes:
        verdict: met, not_met or unknown.
        reason: the evaluator's reason, or why the rules refused it.
        basis: basis that was applied.
        evidence: the cited entries.
        findings: the rules that refused the claim, empty when it stands.
        claimed: the evaluator's own word, None if it was not asked.
    """

    verdict: VerdictWord
    reason: str
    basis: Basis = "tool"
    evidence: tuple[CitedEntry, ...] = ()
    findings: tuple[RuleFinding, ...] = ()
    claimed: VerdictWord | None = None


@dataclass(frozen=True, slots=True)
class EvaluatorFailure:
    """The evaluator gave no verdict. It is evidence of nothing, and it pauses the goal.

    Attributes:
        kind: see `FailureKind`; each reads differently to the user.
        reason: one sentence.
        findings: for "invalid_citation", the rules that refused the claim.
        claimed: the evaluator's own word, if it gave one.
        evidence: the cited entries, if any.
    """

    kind: FailureKind
    reason: str
    findings: tuple[RuleFinding, ...] = ()
    claimed: VerdictWord | None = None
    evidence: tuple[CitedEntry, ...] = ()


Judgement = Verdict | EvaluatorFailure


@dataclass(frozen=True, slots=True)
class Terms:
    """What counts as proof of a goal; settled before the worker has written anything, then fixed.

    Attributes:
        basis: "tool" when the condition speaks of external state, "answer" when only of an answer.
        proofs: commands that the condition (or the user) names as its proof, verbatim.
        settled_by: "user" when given by hand, "evaluator" when asked, "default" when no model decides.
    """

    basis: Basis
    proofs: tuple[str, ...] = ()
    settled_by: Literal["user", "evaluator", "default"] = "evaluator"


@dataclass(frozen=True, slots=True)
class Stamp:
    """What the controller saw when a result completed.

    Attributes:
        tree: fingerprint of the work tree's content at that moment, None outside a git checkout.
        exit_code: exit code on the wire, None when there was none.
        overlapped: another call that may change files ran between the result's start and its fingerprint, so
            the fingerprint can't be tied to the result.
    """

    tree: str | None
    exit_code: int | None = None
    overlapped: bool = False


@dataclass(frozen=True, slots=True)
class Freshness:
    """What is known about the work tree when a claim is judged.

    Attributes:
        tree: the tree's fingerprint now; None when there is none (no git, or a session never driven): then the
            order of edit and write calls decides.
        stamps: stamps by entry id.
        changed: for each stamped tree that differs from `tree`, the names of the changed files.
        lost: there is no tree now, though there was one when the goal was set.
    """

    tree: str | None = None
    stamps: dict[str, Stamp] = field(default_factory=dict)
    changed: dict[str, tuple[str, ...]] = field(default_factory=dict)
    lost: bool = False
