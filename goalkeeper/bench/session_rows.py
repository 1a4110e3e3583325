"""Rows on reading a session: a long one costs no more than a short one, in time and in memory.

Knows nothing of pi; the sessions are synthetic.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from pathlib import Path

from goalkeeper.bench.case import Bench, Row, spread
from goalkeeper.bench.probe import probe
from goalkeeper.bench.session_file import append_run, write_session
from goalkeeper.evidence.window import DEFAULT_BUDGET, build_window
from goalkeeper.pi.session_log import SessionLog

LARGE = 200_000_000
SMALL = 1_000_000
REPEATS = 5
LATER_RUNS = 20
MEMORY_LIMIT_MIB = 30e6 / 2**20
COLD_LIMIT = 0.02
LATER_LIMIT = 1.5

_IMPORTS = """
from goalkeeper.evidence.window import build_window
from goalkeeper.pi.session_log import SessionLog
"""
_WINDOW = """
window = build_window(SessionLog(given["path"]).read(given["characters"]))
result["entries"] = len(window.entries)
"""
_WHOLE = """
with open(given["path"], encoding="utf-8") as file:
    for line in file:
        json.loads(line)
"""


def session_rows(bench: Bench) -> Sequence[Row]:
    """Measure a first window, its memory, and the window after one more run, on a large and a small session."""
    large, small = bench.folder / "large.jsonl", bench.folder / "small.jsonl"
    runs = write_session(large, LARGE // 100 if bench.quick else LARGE)
    small_runs = write_session(small, SMALL)
    megabytes = large.stat().st_size / 1e6
    repeats = 2 if bench.quick else REPEATS
    # The first reading warms the page cache for all that follow.
    whole = [probe(_WHOLE, path=str(large)).seconds * 1000 for _ in range(2)][-1]
    colds = [probe(_WINDOW, setup=_IMPORTS, path=str(large), characters=DEFAULT_BUDGET) for _ in range(repeats)]
    times = [cold.seconds * 1000 for cold in colds]
    later, later_small = _later(large, runs), _later(small, small_runs)
    size = f"{megabytes:,.0f} MB session"
    return [
        Row(
            f"first window of a {size}, fresh process",
            statistics.median(times),
            "ms",
            whole,
            "reading and parsing the whole file",
            COLD_LIMIT,
            spread(times, "ms") + "; both with the file in the page cache.",
        ),
        Row(
            f"memory that this takes, {size}",
            max(cold.grown_mib for cold in colds),
            "MiB",
            MEMORY_LIMIT_MIB,
            "fixed limit",
            1.0,
            "Peak resident memory above that of the process with its modules loaded; the worst of the repeats.",
        ),
        Row(
            f"window after one more run, {size}",
            statistics.median(later),
            "ms",
            statistics.median(later_small),
            "the same on a 1 MB session",
            LATER_LIMIT,
            spread(later, "ms") + ".",
        ),
    ]


def _later(path: Path, runs: int) -> list[float]:
    """Return the milliseconds of each window after one more run, in a log that is open already."""
    times = []
    log = SessionLog(path)
    log.read(DEFAULT_BUDGET)
    for run in range(runs, runs + LATER_RUNS):
        append_run(path, run)
        began = time.perf_counter()
        build_window(log.read(DEFAULT_BUDGET))
        times.append((time.perf_counter() - began) * 1000)
    return times
