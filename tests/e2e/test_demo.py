"""`goalkeeper demo` as a newcomer runs it: real pi, a scripted model in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

BOUND = 115.0


def demo(env: dict[str, str], cwd: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "goalkeeper.cli.main", "demo", *arguments]
    return subprocess.run(
        command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", timeout=BOUND
    )


@pytest.fixture
def newcomer(tmp_path: Path, agent_env: Callable[..., dict[str, str]]) -> dict[str, str]:
    """The environment of somebody who has pi and has never logged in."""
    env = agent_env("http://127.0.0.1:9/v1")
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    return {**{k: v for k, v in env.items() if k != "PI_CODING_AGENT_DIR"}, "TMPDIR": str(temporary)}


@pytest.mark.real_pi
def test_the_goal_is_met_after_a_claim_without_proof_was_refused(newcomer: dict[str, str], tmp_path: Path) -> None:
    done = demo(newcomer, tmp_path)

    said = done.stdout
    assert done.returncode == 0, done.stderr
    assert "The model is not" in said and "is real" in said
    assert said.index("verdict: not met") < said.index("verdict: met")
    assert '-        total += entry.cents\n+        total += entry.cents if entry.kind == "deposit"' in said
    assert list(Path(newcomer["TMPDIR"]).glob("goalkeeper-demo-*")) == []


@pytest.mark.real_pi
def test_the_folder_is_kept_when_asked(newcomer: dict[str, str], tmp_path: Path) -> None:
    done = demo(newcomer, tmp_path, "--keep")

    (folder,) = Path(newcomer["TMPDIR"]).glob("goalkeeper-demo-*")
    assert done.returncode == 0, done.stderr
    assert f"Kept: {folder / 'ledger'}" in done.stdout
    assert (folder / "ledger" / ".pi-goal" / "journal.jsonl").is_file()
    assert list((folder / "agent" / "sessions").glob("*/*.jsonl"))


def test_without_pi_it_says_how_to_get_one(tmp_path: Path) -> None:
    env = {"PATH": os.defpath, "HOME": str(tmp_path), "GOALKEEPER_PI": str(tmp_path / "pi")}

    done = demo(env, tmp_path)

    assert done.returncode == 4
    assert done.stdout == ""
    assert "goalkeeper setup" in done.stderr and "Traceback" not in done.stderr
