"""The time between two runs of a goal: from the worker's last message to its next request, judge included.

Knows nothing of who decides in between; it reads times from the scripted model that both sides talk to.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

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


def cycles(requests: Sequence[RecordedRequest]) -> list[float]:
    """Return the milliseconds of each cycle in a goal's requests.

    A run's last worker request is the one that follows a tool result; the next worker request begins the next run.
    """
    workers = [request for request in requests if request.kind == "worker"]
    times: list[float] = []
    for last, following in itertools.pairwise(workers):
        if last.messages[-1].get("role") == "tool" and last.answered_at is not None:
            times.append((following.at - last.answered_at) * 1000)
    return times
