"""The row on how fast `goal` says how things stand: close to the start of Python with one library.

Knows nothing of what it prints.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from goalkeeper.bench.case import Bench, NotMeasured, Row, spread
from goalkeeper.bench.own_cycle import goal_program
from goalkeeper.core.state import GoalState, Pause, SessionState
from goalkeeper.storage.schema import to_document

REPEATS = 15
SECONDS = 60.0
LIMIT = 2.0

REFERENCE = (sys.executable, "-c", "import pydantic")


def status_rows(bench: Bench) -> Sequence[Row]:
    """Measure `goal` without arguments in a folder that has a goal."""
    status = (str(goal_program()),)
    _write_goal(bench.folder)
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


def _write_goal(folder: Path) -> None:
    goal = GoalState(id="bench", condition="every test passes", started_at=0, pause=Pause("user", "for a measurement"))
    session = folder / "2026-01-01T00-00-00-000Z_bench.jsonl"
    session.write_text("")
    document = to_document(SessionState(goal), str(session), saved_at=0)
    (folder / ".pi-goal").mkdir()
    (folder / ".pi-goal" / "state.json").write_text(json.dumps(document))


def _milliseconds(arguments: Sequence[str], folder: Path) -> float:
    began = time.perf_counter()
    done = subprocess.run(
        arguments, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS
    )
    taken = (time.perf_counter() - began) * 1000
    if done.returncode != 0 or (arguments[0] != sys.executable and "every test passes" not in done.stdout):
        raise NotMeasured(f"`{Path(arguments[0]).name}` failed: {(done.stderr or done.stdout).strip()[-400:]}")
    return taken
