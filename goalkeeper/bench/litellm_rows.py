"""The row on litellm's import: seconds long, and never on the way of a verdict after a run that took 10 s.

Knows nothing of what litellm does.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence

from goalkeeper.bench.case import Bench, NotMeasured, Row
from goalkeeper.bench.own_cycle import goal_program, goal_requests
from goalkeeper.testing.judges import yes_man
from goalkeeper.testing.model_steps import Policy, Step, Text, bash

FIRST_RUN_SECONDS = 10
LIMIT = 0.1
"""Of the import's time: what is left of it on the way would be far more."""


def litellm_rows(bench: Bench) -> Sequence[Row]:
    """Measure the way from the end of a first run of 10 s to the evaluator's request, beside the import alone."""
    goal_program()
    seconds = 2 if bench.quick else FIRST_RUN_SECONDS
    steps: list[Step | Policy] = [bash(f"sleep {seconds}"), bash("echo passed"), Text("Done.")]
    requests = goal_requests(bench.folder / "goal", steps, yes_man())
    asked = next((index for index, request in enumerate(requests) if request.kind == "evaluator"), 0)
    last = next((r for r in reversed(requests[:asked]) if r.kind == "worker"), None)
    if last is None or last.answered_at is None:
        raise NotMeasured("The evaluator was not asked after a run.")
    waited = (requests[asked].at - last.answered_at) * 1000
    return [
        Row(
            f"from the end of a first run of {seconds} s to the evaluator's request",
            waited,
            "ms",
            _import_milliseconds(),
            'python -c "import litellm"',
            LIMIT,
            "One goal, in a process of its own; the import happens beside the run.",
        )
    ]


def _import_milliseconds() -> float:
    environment = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    command = [sys.executable, "-c", "import litellm"]
    subprocess.run(command, env=environment, check=True, timeout=120)  # warms the page cache
    began = time.perf_counter()
    subprocess.run(command, env=environment, check=True, timeout=120)
    return (time.perf_counter() - began) * 1000
