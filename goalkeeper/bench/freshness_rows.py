"""The row on what it costs to fingerprint a large work tree after each tool result.

Knows nothing of how a fingerprint is made.
"""

from __future__ import annotations

from collections.abc import Sequence

from goalkeeper.bench.case import Bench, Row
from goalkeeper.bench.freshness import FILES, measure

LIMIT = 2.0


def freshness_rows(bench: Bench) -> Sequence[Row]:
    """Measure fingerprints of a checkout beside `git status` in it."""
    found = measure(FILES // 50, 3) if bench.quick else measure()
    status = found["git_status"]["median"]
    checkout = f"a checkout of {found['files']:,} files"
    repeats = f"n = {found['repeats']}"
    return [
        Row(
            f"fingerprint of {checkout}, nothing changed",
            found["unchanged"]["median"],
            "ms",
            status,
            "git status",
            LIMIT,
            f"{repeats}, best {found['unchanged']['min']:.1f} ms; a session's first {found['cold']['min']:,.0f} ms.",
        ),
        Row(
            f"fingerprint of {checkout}, one file changed",
            found["changed"]["median"],
            "ms",
            status,
            "git status",
            LIMIT,
            f"{repeats}, best {found['changed']['min']:.1f} ms.",
        ),
    ]
