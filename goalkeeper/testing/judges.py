"""Scripted evaluators: fixed verdicts, a yes-man that always says met, and an honest judge of one command.

Knows nothing of the rules that a verdict must pass; it only reads the window that an evaluator request shows.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from goalkeeper.core.verdict import Basis, VerdictWord
from goalkeeper.testing.model_steps import Text


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
    return "basis" in system and "verdict" not in system
