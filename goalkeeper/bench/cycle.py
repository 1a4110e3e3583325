"""The time between two runs of a goal: from the worker's last message to its next request, judge included.

Knows nothing of who decides in between; it reads times from the scripted model that both sides talk to.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from goalkeeper.bench.case import spread
from goalkeeper.testing.demo_repo import copy_demo_repo
from goalkeeper.testing.model_steps import RecordedRequest, Step, Text, bash

RUNS = 10
"""Runs of a goal: the judge says no after each but the last, so there is one cycle less."""

CONDITION = "every test passes"
REPORT = "All tests pass."

GOAL_SECONDS = 120.0

FLAGS = ("--offline", "--no-extensions", "--no-skills", "--no-prompt-templates", "--no-themes", "--no-context-files")
"""How both sides start pi, so that neither pays for what the other leaves out."""


def make_project(folder: Path) -> Path:
    """Make the project that a goal is pursued in, a small git checkout, and return it."""
    folder.mkdir(parents=True)
    copy_demo_repo(folder / "project")
    return folder / "project"


def worker(request: RecordedRequest) -> Step:
    """Call the shell once in each run, then report. Its output differs from run to run, as progress does."""
    last = request.messages[-1] if request.messages else {}
    return Text(REPORT) if last.get("role") == "tool" else bash(f"echo pass {len(request.messages)}")


@dataclass(frozen=True, slots=True)
class Cycle:
    """The way from one run to the next, in milliseconds.

    Attributes:
        to_judge: from the worker's last message to the judge's request.
        from_judge: from the judge's answer to the worker's next request.
        total: from the worker's last message to its next request.
    """

    to_judge: float
    from_judge: float
    total: float


def cycles(requests: Sequence[RecordedRequest]) -> list[Cycle]:
    """Return the cycles in a goal's requests, in order.

    A run's last worker request is the one that follows a tool result; the next requests are the judge's, and then the
    one that begins the next run. What does not come in this order is no cycle.
    """
    found: list[Cycle] = []
    asked = [request for request in requests if request.kind in ("worker", "evaluator")]
    for last, judge, following in zip(asked, asked[1:], asked[2:], strict=False):
        in_order = [r.kind for r in (last, judge, following)] == ["worker", "evaluator", "worker"]
        if in_order and last.answered_at is not None and judge.answered_at is not None:
            to_judge, from_judge = judge.at - last.answered_at, following.at - judge.answered_at
            total = following.at - last.answered_at
            found.append(Cycle(to_judge * 1000, from_judge * 1000, total * 1000))
    return found


def in_words(found: Sequence[Cycle]) -> str:
    """Return sample size, spread and the medians of both halves."""
    to_judge = statistics.median(cycle.to_judge for cycle in found)
    from_judge = statistics.median(cycle.from_judge for cycle in found)
    halves = f"to the judge {to_judge:.1f}, from the judge {from_judge:.1f} ms"
    return f"{spread([cycle.total for cycle in found], 'ms')} ({halves})"
