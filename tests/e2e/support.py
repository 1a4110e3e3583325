"""The `goal` command as its users start it, for the end-to-end tests: a process of its own, and what it says."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from goalkeeper.testing.scripted_model import ScriptedModel

WORDS = {"resume", "clear", "log", "explain", "status"}

BOUND = 60.0
"""Seconds that any one condition may take."""

Event = dict[str, Any]


class GoalProcess:
    """A running `goal --json`, with what it said so far."""

    def __init__(self, arguments: Sequence[str], cwd: Path, env: dict[str, str], *, as_json: bool = True) -> None:
        chosen = "--evaluator" in arguments or (arguments[:1] and arguments[0] in WORDS)
        # litellm takes seconds to import; where it is not the point, a throwaway pi asks the same model.
        extra = [*(["--json"] if as_json else []), *([] if chosen else ["--evaluator", "pi"])]
        command = [sys.executable, "-m", "goalkeeper.cli.goal", *extra, *arguments]
        self.process = subprocess.Popen(
            command,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            start_new_session=True,
        )
        self.lines: list[str] = []
        self.errors: list[str] = []
        self._news = threading.Condition()
        self._readers = [
            threading.Thread(target=self._read, args=(self.process.stdout, self.lines), daemon=True),
            threading.Thread(target=self._read, args=(self.process.stderr, self.errors), daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def _read(self, stream: Any, into: list[str]) -> None:
        for line in stream:
            with self._news:
                into.append(line)
                self._news.notify_all()
        with self._news:
            self._news.notify_all()

    @property
    def events(self) -> list[Event]:
        return [json.loads(line) for line in self.lines]

    @property
    def stderr(self) -> str:
        return "".join(self.errors)

    def names(self) -> list[str]:
        """Return the events' names without the tool calls, runs of the same name kept."""
        return [event["event"] for event in self.events if event["event"] not in ("tool", "notice")]

    def last(self, name: str) -> Event:
        """Return the newest event of a name."""
        return next(event for event in reversed(self.events) if event["event"] == name)

    def wait_for(self, name: str, count: int = 1, **fields: Any) -> Event:
        """Wait until the `count`th event of a name with these fields was said."""

        def found() -> list[Event]:
            return [
                event
                for event in self.events
                if event["event"] == name and all(event.get(key) == value for key, value in fields.items())
            ]

        with self._news:
            done = self._news.wait_for(lambda: len(found()) >= count or self.process.poll() is not None, BOUND)
        matches = found()
        if not done or len(matches) < count:
            pytest.fail(f"no {count} of {name} {fields} in {self.events!r}; stderr: {self.stderr}")
        return matches[count - 1]

    def wait(self, timeout: float = BOUND) -> int:
        """Wait until the process has ended and all it said is read; return its exit code."""
        code = self.process.wait(timeout)
        for reader in self._readers:
            reader.join(BOUND)
        return code

    def wait_within(self, seconds: float) -> bool:
        """Wait at most so long for the end of the process; say whether it has ended."""
        try:
            self.process.wait(max(0.0, seconds))
        except subprocess.TimeoutExpired:
            return False
        return True

    def interrupt(self, number: int = signal.SIGINT) -> None:
        """Send a signal to the controller alone, as a terminal's Ctrl-C or `kill` does."""
        os.kill(self.process.pid, number)

    def kill(self) -> None:
        """End the controller with SIGKILL; its pi is on its own then."""
        self.interrupt(signal.SIGKILL)
        self.wait()

    def end(self) -> None:
        """End the controller and give its pi the time to follow."""
        if self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        for stream in (self.process.stdout, self.process.stderr):
            if stream:
                stream.close()


def session_entries(event: Event) -> list[Event]:
    """Return the entries of the session file that a `session` event names."""
    lines = Path(event["session_file"]).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def user_texts(entries: Sequence[Event]) -> list[str]:
    """Return the texts of the user messages of a session, oldest first."""
    texts = []
    for entry in entries:
        message = entry.get("message") or {}
        if message.get("role") == "user":
            content = message["content"]
            texts.append(content if isinstance(content, str) else "".join(part.get("text", "") for part in content))
    return texts


def worker_requests(model: ScriptedModel) -> int:
    """Return how many requests of a worker the model has seen."""
    return sum(request.kind == "worker" for request in model.requests)


def wait_until(condition: Callable[[], bool], what: str, timeout: float = BOUND) -> None:
    """Wait until a condition holds that nothing announces."""
    deadline = time.monotonic() + timeout
    waiter = threading.Event()
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail(f"not within {timeout:g} s: {what}")
        waiter.wait(0.02)
