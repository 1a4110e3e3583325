"""Measures a fingerprint of a large checkout beside `git status` in it.

Knows nothing of the other rows of the benchmark.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from goalkeeper.worktree.fingerprint import WorkTree
from goalkeeper.worktree.scratch import clean_environment

FILES = 50_000
FILES_PER_FOLDER = 100
REPEATS = 15


def measure(files: int = FILES, repeats: int = REPEATS) -> dict[str, Any]:
    """Measure in a new checkout of `files` files, one of them changed since its commit.

    Returns:
        Milliseconds, each as {"min": ..., "median": ...}: "git_status"; "unchanged", a fingerprint when nothing changed
        since the last one; "changed", when one file did; "cold", the first one, has only "min". Also "files",
        "repeats", and by the median of "git_status" the medians of "unchanged", "ratio", and of "changed",
        "ratio_changed".
    """
    with tempfile.TemporaryDirectory(prefix="goalkeeper-bench-") as folder:
        root = Path(folder)
        _make(root, files)
        return asyncio.run(_measure(root, files, repeats))


async def _measure(root: Path, files: int, repeats: int) -> dict[str, Any]:
    changed = root / "d0" / "f0.txt"
    changed.write_text("changed\n")
    tree = WorkTree(root)
    taken: dict[str, list[float]] = {"git_status": [], "unchanged": [], "changed": []}
    try:
        began = time.perf_counter()
        await tree.fingerprint()
        cold = _milliseconds(began)
        await tree.fingerprint()  # looks at what is as new as the first look
        _git(root, "status", "--porcelain")
        for number in range(repeats):  # in turn, so that all meet the same load
            began = time.perf_counter()
            await asyncio.to_thread(_git, root, "status", "--porcelain")
            taken["git_status"].append(_milliseconds(began))
            began = time.perf_counter()
            await tree.fingerprint()
            taken["unchanged"].append(_milliseconds(began))
            changed.write_text(f"changed {number}\n")
            began = time.perf_counter()
            await tree.fingerprint()
            taken["changed"].append(_milliseconds(began))
    finally:
        tree.close()
    result: dict[str, Any] = {
        name: {"min": min(values), "median": statistics.median(values)} for name, values in taken.items()
    }
    reference = result["git_status"]["median"]
    ratios = {
        "ratio": result["unchanged"]["median"] / reference,
        "ratio_changed": result["changed"]["median"] / reference,
    }
    return {**result, "cold": {"min": cold}, "files": files, "repeats": repeats, **ratios}


def _make(root: Path, files: int) -> None:
    for number in range(files):
        folder = root / f"d{number // FILES_PER_FOLDER}"
        if number % FILES_PER_FOLDER == 0:
            folder.mkdir()
        (folder / f"f{number % FILES_PER_FOLDER}.txt").write_text(f"file {number}\n")
    _git(root, "init", "-q")
    _git(root, "add", "-A")
    _git(root, "-c", "user.name=bench", "-c", "user.email=bench@localhost", "commit", "-q", "-m", "bench")
    # As in a checkout of some age: files that are older than the index need no second look.
    for path in root.glob("d*/*.txt"):
        os.utime(path, (1_700_000_000, 1_700_000_000))
    _git(root, "status")


def _git(root: Path, *arguments: str) -> None:
    environment = {**clean_environment(), "GIT_OPTIONAL_LOCKS": "1"}
    command: Sequence[str] = ["git", *arguments]
    subprocess.run(command, cwd=root, env=environment, capture_output=True, timeout=300, check=True)


def _milliseconds(began: float) -> float:
    return (time.perf_counter() - began) * 1000
