"""Scripted evaluators: fixed verdicts, a yes-man that always says met, and an honest judge of one command.

Knows nothing of the rules that a verdict must pass; it only reads the window that an evaluator request shows.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from goalkeeper.core.verdict import Basis, VerdictWord
from goalkeeper.testing.demo_repo import COMMAND
from goalkeeper.testing.model_steps import Policy, RecordedRequest, Step, Text
from goalkeeper.testing.seen_window import seen_entries


def say_verdict(
    verdict: VerdictWord,
    reason: str = "As scripted.",
    *,
    basis: Basis = "tool",
    evidence: Sequence[str] = (),
    quotes: dict[str, str] | None = None,
) -> Text:
    """Return the answer with exactly this verdict."""
    answer: dict[str, Any] = {"verdict": verdict, "reason": reason, "basis": basis, "evidence": list(evidence)}
    if quotes is not None:
        answer["quotes"] = quotes
    return Text(json.dumps(answer))


def basis_answer(basis: Basis = "tool", proofs: Sequence[str] = ()) -> Text:
    """Return the answer to the question that settles a goal's basis and the commands that prove it."""
    return Text(json.dumps({"basis": basis, "proofs": list(proofs)}))


def is_terms_request(system: str) -> bool:
    """Say whether a system prompt asks to settle a goal's terms, and not for a verdict."""
    return '"proofs"' in system and '"verdict"' not in system


def yes_man(basis: Basis = "tool") -> Policy:
    """Return a judge that always says met and cites the most convincing entry that it can find.

    Args:
        basis: what it claims; for "tool" it cites the newest result, for "answer" the newest assistant text. Where
            there is none it cites the newest entry, and an empty window makes it cite nothing.
    """

    def judge(request: RecordedRequest) -> Step:
        seen = seen_entries(request.text)
        wanted = [e for e in seen if (e.is_result if basis == "tool" else e.role == "assistant text")]
        cited = [(wanted or seen)[-1].id] if seen else []
        return say_verdict("met", "Everything is done.", basis=basis, evidence=cited)

    return judge


def judge_command(command: str) -> Policy:
    """Return an honest judge: met if and only if the newest result of exactly this command passed."""

    def judge(request: RecordedRequest) -> Step:
        runs = [entry for entry in seen_entries(request.text) if entry.is_result and entry.command == command]
        if not runs:
            return say_verdict("not_met", f"No run of `{command}` is shown. Run it and show its result.")
        newest = runs[-1]
        if newest.passed:
            return say_verdict("met", f"The newest run of `{command}` passed.", evidence=[newest.id])
        return say_verdict("not_met", f"The newest run of `{command}` failed.", evidence=[newest.id])

    return judge


def judge_unittest() -> Policy:
    """Return the demo's honest judge, which goes by the tests of the demo project."""
    return judge_command(COMMAND)
