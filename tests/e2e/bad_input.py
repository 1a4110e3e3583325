"""What the tests of bad input share: cheap goals, what must hold after a failure, sessions written by hand.

Each failure must end in a message that a user understands and in a named exit code, with nothing lost.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from e2e.support import Event, GoalProcess

CHECKED = ("--evaluator", "checks", "--check", "true")
"""A goal that is met after its first run, without a model for the evaluator."""

ASKED = ("--evaluator", "pi", "--basis", "tool")
"""A goal whose evaluator is asked through pi, which starts faster than litellm is imported."""

FAST_RETRIES = {"retry": {"baseDelayMs": 20}}
"""pi's settings for its usual three retries without the usual 14 seconds."""


def refused(goal: GoalProcess, code: int, *words: str) -> str:
    """Assert that a command ended with this code and one message that holds these words; return the message."""
    assert goal.process.returncode == code, (goal.process.returncode, goal.stderr, goal.lines)
    assert goal.stderr.startswith("goal: "), goal.stderr
    assert "Traceback" not in goal.stderr
    for word in words:
        assert word in goal.stderr, goal.stderr
    return goal.stderr


def paused(goal: GoalProcess, why: str, *words: str) -> Event:
    """Assert that a goal paused for this reason, said so, and that state and session are whole; return the record."""
    assert goal.process.returncode == 3, (goal.process.returncode, goal.stderr, goal.lines)
    assert goal.stderr == ""
    assert "met" not in goal.names()
    record = goal.last("paused")
    assert record["why"] == why, record
    for word in words:
        assert word in record["reason"], record
    session = goal.last("session")
    assert entries_of(session["session_file"])
    stored = state_of(session)
    assert stored["goal"]["pausedReason"] == record["reason"]
    return record


def state_of(session: Event) -> dict[str, Any]:
    """Return the stored state of a session by its `session` record."""
    folder = Path(session["cwd"]) / ".pi-goal"
    for path in sorted(folder.glob("state*.json")):
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if document["owner"] == session["session_file"]:
            return document
    pytest.fail(f"no state of {session['session_file']} in {sorted(path.name for path in folder.iterdir())}")


def entries_of(session_file: str | Path) -> list[Event]:
    """Return all lines of a session file, each of which must be one JSON object."""
    data = Path(session_file).read_bytes()
    assert data.endswith(b"\n")
    return [json.loads(line) for line in data.decode("utf-8").split("\n")[:-1]]


def run_goalkeeper(*arguments: str, env: Mapping[str, str], cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run `goalkeeper` as a process of its own and return what it said."""
    code = "from goalkeeper.cli.main import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=cwd,
        env=dict(env),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )


# ---- sessions by hand -----------------------------------------------------------------------------------------------


def message(entry: str, parent: str | None, **fields: Any) -> dict[str, Any]:
    """Return a message entry as pi writes it."""
    at = {"timestamp": 1796070584141}
    head = {"type": "message", "id": entry, "parentId": parent, "timestamp": "2026-11-30T20:09:44.141Z"}
    return {**head, "message": {**fields, **at}}


def answer(entry: str, parent: str | None, *content: Mapping[str, Any], stop: str = "stop") -> dict[str, Any]:
    """Return an assistant's entry as pi writes it."""
    usage = {"input": 1, "output": 1, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 2}
    usage |= {"cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}}
    made = {"api": "openai-completions", "provider": "scripted", "model": "scripted", "usage": usage}
    return message(entry, parent, role="assistant", content=list(content), stopReason=stop, **made)


def call(name: str, call_id: str, **arguments: Any) -> dict[str, Any]:
    """Return a tool call for `answer`."""
    return {"type": "toolCall", "id": call_id, "name": name, "arguments": arguments}


def text(words: str) -> dict[str, Any]:
    """Return a block of text."""
    return {"type": "text", "text": words}


def passing_session(folder: Path, *, condition: str = "it works", output: str = "all 3 tests pass\n") -> list[Event]:
    """Return the lines of a session in which a command was asked for and passed."""
    header = {"type": "session", "version": 3, "id": "01a22e89-4543-7036-85ed-2c997b11af77"}
    header |= {"timestamp": "2026-11-30T20:09:44.141Z", "cwd": str(folder)}
    model = {"type": "model_change", "id": "00000001", "parentId": None, "timestamp": "2026-11-30T20:09:44.141Z"}
    return [
        header,
        {**model, "provider": "scripted", "modelId": "scripted"},
        message("00000002", "00000001", role="user", content=[text(condition)]),
        answer("00000003", "00000002", call("bash", "call_1", command="run-tests"), stop="toolUse"),
        message(
            "00000004",
            "00000003",
            role="toolResult",
            toolCallId="call_1",
            toolName="bash",
            content=[text(output)],
            isError=False,
        ),
        answer("00000005", "00000004", text("Done.")),
    ]


def write_session(path: Path, lines: Sequence[Mapping[str, Any]]) -> Path:
    """Write a session file and return its path."""
    path.write_bytes(b"".join(as_line(line) for line in lines))
    return path


def as_line(entry: Mapping[str, Any]) -> bytes:
    """Return an entry as a line, non-ASCII characters as they are, the way pi writes it."""
    return json.dumps(entry, ensure_ascii=False, separators=(",", ":")).encode("utf-8") + b"\n"


# ---- disks ----------------------------------------------------------------------------------------------------------

needs_mount = pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")


@contextmanager
def mounted(folder: Path, *options: str) -> Iterator[Path]:
    """Mount a small file system of its own on a folder; skip the test where that is not permitted.

    Args:
        folder: made if it is not there.
        options: what `mount -o` takes, e.g. "size=64k".
    """
    folder.mkdir(parents=True, exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", ",".join(options), "tmpfs", str(folder)]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("mounting is not permitted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(folder: Path) -> Path:
    """Use up the space that is left on a folder's file system; return the file that does."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as opened, pytest.raises(OSError, match="No space"):
        while True:
            opened.write(b"x" * 4096)
    return ballast
