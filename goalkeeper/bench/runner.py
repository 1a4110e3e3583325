"""Runs the cases, one after the other, and writes the page.

Knows nothing of any single measurement.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

from goalkeeper.bench.case import Bench, Case, NotMeasured, Row
from goalkeeper.bench.evaluator_rows import evaluator_rows
from goalkeeper.bench.freshness_rows import freshness_rows
from goalkeeper.bench.goal_cycle import goal_cycle_rows
from goalkeeper.bench.litellm_rows import litellm_rows
from goalkeeper.bench.report import page
from goalkeeper.bench.session_rows import session_rows
from goalkeeper.bench.status_rows import status_rows

CASES = (
    Case("cycle", goal_cycle_rows),
    Case("session", session_rows),
    Case("evaluator", evaluator_rows),
    Case("status", status_rows),
    Case("freshness", freshness_rows),
    Case("litellm", litellm_rows),
)

PAGE = Path("docs/benchmarks.md")


def measure(cases: Sequence[Case], *, quick: bool = False) -> tuple[list[Row], list[str]]:
    """Run cases; return their rows, and one sentence for each that could not run."""
    rows: list[Row] = []
    missing: list[str] = []
    for case in cases:
        with tempfile.TemporaryDirectory(prefix="goalkeeper-bench-") as folder:
            try:
                measured = case.run(Bench(Path(folder), quick))
            except NotMeasured as reason:
                missing.append(f"{case.name}: {reason}")
                print(missing[-1], flush=True)
                continue
        for row in measured:
            ratio = "" if row.ratio is None else f", ratio {row.ratio:.2f}"
            print(f"{row.name}: {row.value:,.1f} {row.unit}{ratio}{'' if row.ok else '  MISSED'}", flush=True)
        rows += measured
    return rows, missing


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line asks for; return 0 when all was measured and every target is met, else 1."""
    parser = argparse.ArgumentParser(prog="python -m goalkeeper.bench", description="Measure, and write the page.")
    parser.add_argument("--only", action="append", choices=[case.name for case in CASES], help="repeatable")
    parser.add_argument("--output", type=Path, help=f"where to write the page; {PAGE} when every case runs")
    parser.add_argument("--quick", action="store_true", help="few repetitions on small data; the figures mean nothing")
    options = parser.parse_args(arguments)
    rows, missing = measure([c for c in CASES if not options.only or c.name in options.only], quick=options.quick)
    output = options.output or (None if options.only or options.quick else PAGE)
    if output is not None:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(page(rows, missing), encoding="utf-8")
    return 0 if not missing and all(row.ok for row in rows) else 1
