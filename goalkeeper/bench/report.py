"""Rows as the Markdown page docs/benchmarks.md.

Knows nothing of how anything was measured.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence

from goalkeeper.bench.case import Row

HEAD = """# Benchmarks

Written by `make bench`; run it to repeat the figures on your machine. Model answers come from a scripted model on
loopback that answers at once, so times are the machinery's own. A reference that is not a fixed limit was measured in
the same run as the value beside it.
"""


def page(rows: Sequence[Row], missing: Sequence[str]) -> str:
    """Return the whole page.

    Args:
        rows: what was measured, in order.
        missing: one sentence for each case that could not run.
    """
    lines = [HEAD, f"Machine: {machine()}.", "", "| measure | value | against | ratio | target | met |"]
    lines.append("|---|---:|---|---:|---:|---|")
    lines += [_line(row) for row in rows]
    notes = [f"- {row.name}: {row.note}" for row in rows if row.note]
    if notes:
        lines += ["", "## Notes", "", *notes]
    if missing:
        lines += ["", "## Not measured", "", *(f"- {sentence}" for sentence in missing)]
    return "\n".join(lines) + "\n"


def machine() -> str:
    """Return what the figures depend on: processors, system, Python."""
    return (
        f"{os.cpu_count()} processors ({platform.machine()}), {platform.system()}, Python {platform.python_version()}"
    )


def _line(row: Row) -> str:
    against = "" if row.reference is None else f"{row.reference_name}: {_number(row.reference)} {row.unit}"
    ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
    target = "" if row.limit is None else f"≤ {row.limit:g}"
    met = "" if row.limit is None else ("yes" if row.ok else "**no**")
    return f"| {row.name} | {_number(row.value)} {row.unit} | {against} | {ratio} | {target} | {met} |"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}"
