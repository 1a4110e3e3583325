"""The row on how fast `goal` says how things stand: close to the start of Python with one library.

Knows nothing of what it prints.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from goalkeeper.bench.case import Bench, NotMeasured, Row, spread
from goalkeeper.bench.own_cycle import goal_program

REPEATS = 15
SECONDS = 60.0
LIMIT = 1.5

REFERENCE = (sys.executable, "-c", "import pydantic; pydantic.BaseModel")
"""Touching the class makes pydantic load what it defers."""


def status_rows(bench: Bench) -> Sequence[Row]:
    """Measure `goal` without arguments in a folder that has no goal."""
    status = (str(goal_program()),)
    repeats = 3 if bench.quick else REPEATS
    ours: list[float] = []
    reference: list[float] = []
    _milliseconds(status, bench.folder)  # writes the byte code
    for _ in range(repeats):  # in turn, so that both meet the same load
        ours.append(_milliseconds(status, bench.folder))
        reference.append(_milliseconds(REFERENCE, bench.folder))
    return [
        Row(
            "`goal` status, whole process",
            statistics.median(ours),
            "ms",
            statistics.median(reference),
            'python -c "import pydantic"',
            LIMIT,
            spread(ours, "ms") + ".",
        )
    ]


def _milliseconds(arguments: Sequence[str], folder: Path) -> float:
    began = time.perf_counter()
    done = subprocess.run(
        arguments, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS
    )
    taken = (time.perf_counter() - began) * 1000
    if "Traceback" in done.stderr:
        raise NotMeasured(f"`{Path(arguments[0]).name}` failed: {done.stderr.strip().splitlines()[-1]}")
    return taken
