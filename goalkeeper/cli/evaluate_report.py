"""What `goalkeeper evaluate` prints: one JSON object (docs/events.md), or the same for a person.

Knows nothing of how the evaluation was made.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from goalkeeper.core.verdict import CitedEntry, EvaluatorFailure
from goalkeeper.evidence.text import clean, cut, one_line
from goalkeeper.evidence.transcript import Entry
from goalkeeper.runtime.judge import Finding, Question

EXCERPT_CHARACTERS = 600
"""Characters of a cited entry that are shown, head and tail."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One evaluation.

    Attributes:
        session: the session file as it was named.
        question: what was judged.
        finding: what came of it.
        settled: the goal's terms were settled; False if the evaluator failed at that.
    """

    session: str
    question: Question
    finding: Finding
    settled: bool = True


def print_evaluation(evaluation: Evaluation, *, as_json: bool) -> None:
    """Print the result to stdout."""
    document = evaluation_document(evaluation)
    if as_json:
        print(json.dumps(document, ensure_ascii=False))
        return
    for line in _lines(document):
        print(line)


def evaluation_document(evaluation: Evaluation) -> dict[str, Any]:
    """Return the result as JSON values; the keys are described in docs/events.md."""
    question, finding = evaluation.question, evaluation.finding
    judgement, claim, window = finding.judgement, finding.claim, finding.sent
    failed = isinstance(judgement, EvaluatorFailure)
    entries = {entry.id: entry for entry in question.transcript.entries}
    return {
        "session": evaluation.session,
        "condition": question.condition,
        "goal_entry": question.goal_entry,
        "terms": asdict(question.terms) if evaluation.settled else None,
        "claimed": judgement.claimed,
        "verdict": None if isinstance(judgement, EvaluatorFailure) else judgement.verdict,
        "failure": judgement.kind if isinstance(judgement, EvaluatorFailure) else None,
        "reason": judgement.reason,
        "basis": None if isinstance(judgement, EvaluatorFailure) else judgement.basis,
        "rules": list(dict.fromkeys(finding.rule for finding in judgement.findings)),
        "findings": [asdict(finding) for finding in judgement.findings],
        "evidence": [_evidence(cited, entries.get(cited.id)) for cited in judgement.evidence],
        "claim": None if claim is None else asdict(claim) | {"quotes": dict(claim.quotes)},
        "window": None
        if window is None
        else {
            "characters": len(window.text),
            "entries": len(window.entries),
            "ids": list(window.ids),
            "omitted": window.omitted,
            "omitted_exact": window.omitted_exact,
            "digest": window.digest,
        },
        "usage": asdict(finding.usage),
    } | ({"basis": claim.basis} if failed and claim else {})


def _evidence(cited: CitedEntry, entry: Entry | None) -> dict[str, Any]:
    text = "" if entry is None else cut(clean(entry.text).strip(), EXCERPT_CHARACTERS)[0]
    return asdict(cited) | {"excerpt": text}


def _lines(document: dict[str, Any]) -> Iterator[str]:
    terms, window = document["terms"], document["window"]
    yield f"claimed   {document['claimed'] or 'nothing'}"
    yield f"verdict   {document['verdict'] or 'none: the evaluator failed (' + document['failure'] + ')'}"
    yield f"reason    {_indented(document['reason'])}"
    for finding in document["findings"]:
        yield f"rule      {finding['rule']}: {one_line(finding['detail'], 400)}"
    if terms:
        proofs = "".join(f"; proof: {one_line(proof, 200)}" for proof in terms["proofs"])
        yield f"terms     basis {terms['basis']}, settled by {terms['settled_by']}{proofs}"
    yield f"goal      {document['goal_entry'] or 'no message of what was read sets it: no result counts as older'}"
    if window:
        about = "" if window["omitted_exact"] else "about "
        yield (
            f"window    {window['characters']:,} characters, {window['entries']} entries, "
            f"{about}{window['omitted']:,} older ones left out"
        )
    usage = document["usage"]
    cost = "unknown" if usage["cost"] is None else f"${usage['cost']:.4f}"
    yield f"usage     {usage['input']:,} tokens in, {usage['output']:,} out, cost {cost}"
    for cited in document["evidence"]:
        command = f" `{one_line(cited['command'], 200)}`" if cited["command"] else ""
        yield f"cited     {one_line(cited['id'], 64)} ({cited['role']}){command}"
        if cited["excerpt"]:
            yield "          " + _indented(cited["excerpt"])


def _indented(text: str) -> str:
    return clean(text).strip().replace("\n", "\n          ")
