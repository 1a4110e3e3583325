"""Rows on what an evaluator has to read: bounded, however long the session is.

Knows nothing of models.
"""

from __future__ import annotations

from collections.abc import Sequence

from goalkeeper.bench.case import Bench, Row
from goalkeeper.bench.session_file import write_session
from goalkeeper.core.verdict import Terms
from goalkeeper.evaluator.prompt import MAX_REQUEST, verdict_request, window_budget
from goalkeeper.evidence.window import build_window
from goalkeeper.pi.session_log import SessionLog

CONDITION = "`pytest -q` exits 0 and no test was removed or skipped"
SIZES = (10_000, 100_000, 10_000_000)


def evaluator_rows(bench: Bench) -> Sequence[Row]:
    """Measure the characters of one evaluator request on sessions of several sizes."""
    rows = []
    for size in SIZES:
        path = bench.folder / f"session-{size}.jsonl"
        runs = write_session(path, size)
        terms = Terms("tool", ("pytest -q",))
        budget = window_budget(CONDITION, terms)
        window = build_window(SessionLog(path).read(budget), budget=budget)
        request = verdict_request(CONDITION, window, terms)
        rows.append(
            Row(
                f"evaluator request after {runs:,} runs",
                float(request.characters),
                "characters",
                float(MAX_REQUEST),
                "fixed limit",
                1.0,
            )
        )
    return rows
