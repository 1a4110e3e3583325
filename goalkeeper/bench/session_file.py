"""Makes synthetic pi session files of any size: runs of one shell call each, in the shape that pi 1.6 writes.

Knows nothing of how they are read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

RESULT_CHARACTERS = 1_000
START_MILLISECONDS = 1_790_000_000_000


def write_session(path: Path, size: int, *, cwd: str = "/project") -> int:
    """Write a session of at least `size` bytes; return how many runs are in it."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        header = {"type": "session", "version": 3, "id": "01a00000-0000-7000-8000-000000000000", "cwd": cwd}
        written = file.write(json.dumps({**header, "timestamp": "2026-11-30T00:00:00.000Z"}) + "\n")
        run = 0
        while written < size:
            written += file.write("".join(run_lines(run)))
            run += 1
    return run


def append_run(path: Path, run: int) -> None:
    """Append run number `run` (the count of runs so far) to a session that `write_session` made."""
    with path.open("a", encoding="utf-8", newline="\n") as file:
        file.write("".join(run_lines(run)))


def run_lines(run: int) -> Iterator[str]:
    """Yield the four lines of one run: prompt, call, result, answer."""
    call = f"call_{run}"
    output = f"{run} passed\n" + "x" * 99 + "\n"
    output *= max(1, RESULT_CHARACTERS // len(output))
    arguments = {"command": f"pytest -q tests/part_{run}"}
    yield _line(run, 0, {"role": "user", "content": [{"type": "text", "text": "Go on."}]})
    content = [{"type": "toolCall", "id": call, "name": "bash", "arguments": arguments}]
    yield _line(run, 1, {"role": "assistant", "content": content, "stopReason": "toolUse"})
    result = {"role": "toolResult", "toolCallId": call, "toolName": "bash", "isError": False}
    yield _line(run, 2, {**result, "content": [{"type": "text", "text": output}]})
    answer = [{"type": "text", "text": f"Part {run} passes."}]
    yield _line(run, 3, {"role": "assistant", "content": answer, "stopReason": "stop"})


def _line(run: int, at: int, message: dict[str, Any]) -> str:
    number = run * 4 + at
    parent = None if number == 0 else f"{number - 1:08x}"
    entry = {"type": "message", "id": f"{number:08x}", "parentId": parent, "timestamp": "2026-11-30T00:00:00.000Z"}
    return json.dumps({**entry, "message": {**message, "timestamp": START_MILLISECONDS + number}}) + "\n"
