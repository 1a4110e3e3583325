"""`goalkeeper doctor`: what `goal` needs on this machine and in this folder, one line each, with the fix.

Knows nothing of goals; it asks the same code that a goal would ask, and leaves nothing behind.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from goalkeeper.cli.exit_codes import ExitCode
from goalkeeper.errors import GoalkeeperError, PeerError, UsageError
from goalkeeper.evidence.text import clean, one_line
from goalkeeper.pi.auth import check_auth
from goalkeeper.pi.install import MINIMUM_NODE, PiCommand, find_pi, run_quietly
from goalkeeper.ports import ModelInfo
from goalkeeper.storage.holder import holder
from goalkeeper.storage.locks import hold_session
from goalkeeper.storage.read_state import read_states
from goalkeeper.workers.pi_worker import EPHEMERAL, PiWorker, PiWorkerConfig

PI_SECONDS = 30.0
"""Seconds that pi has to say which model it would use."""

TOOL_SECONDS = 20.0

_BARE = ("--no-tools", "--no-extensions", "--no-skills", "--no-prompt-templates", "--no-context-files", "--no-approve")
_LOGIN = "Log in: run `{pi}`, then /login. Or set the provider's API key, or name a model: goal ... -- --model NAME"


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that was looked at.

    Attributes:
        name: what.
        status: "ok", "note" (works, but less well) or "problem".
        found: what was found.
        fix: what to do about it, empty if there is nothing to do.
    """

    name: str
    status: Literal["ok", "note", "problem"]
    found: str
    fix: str = ""


def run_doctor(cwd: Path, *, as_json: bool) -> int:
    """Look at everything, print it, and return the exit code: 0, or 4 if there is a problem."""
    if not cwd.is_dir():
        raise UsageError(f"{cwd} is no folder.")
    lines = asyncio.run(examine(cwd.resolve()))
    if as_json:
        print(json.dumps({"lines": [asdict(line) for line in lines]}, ensure_ascii=False))
    else:
        for line in lines:
            print(f"{line.status:<8} {line.name:<10} {one_line(line.found, 400)}")
            if line.fix:
                print(f"{'':<19} fix: {clean(line.fix)}")
    return ExitCode.MISSING if any(line.status == "problem" for line in lines) else ExitCode.MET


async def examine(cwd: Path) -> list[Line]:
    """Return what was found, in the order in which a user would fix it."""
    pi: PiCommand | None = None
    try:
        pi = find_pi()
        pi_line = Line("pi", "ok", f"{pi.version} ({' '.join(pi.argv)})")
    except GoalkeeperError as error:
        pi_line = _problem("pi", error)
    return [
        pi_line,
        _node(pi),
        *(await _model(pi, cwd)),
        _evaluator(),
        _git(cwd),
        _folder("folder", cwd),
        _folder("sessions", _sessions_folder()),
        *_locks(cwd),
    ]


def _problem(name: str, error: GoalkeeperError) -> Line:
    return Line(name, "problem", error.message, error.hint)


# ---- programs -------------------------------------------------------------------------------------------------


def _node(pi: PiCommand | None) -> Line:
    if pi is not None:
        return Line("node", "ok", pi.node_version or "pi brings its own runtime")
    version = _version_of("node")
    if not version:
        return Line("node", "problem", "not found", f"Install Node {MINIMUM_NODE} or later, or run `goalkeeper setup`.")
    return Line("node", "note", f"{version} on PATH; pi needs {MINIMUM_NODE} or later", "Run `goalkeeper setup`.")


def _git(cwd: Path) -> Line:
    version = _version_of("git")
    weaker = "without it the order of edits decides whether a result is fresh"
    if not version:
        return Line("git", "note", f"not found: {weaker}", "Install git.")
    try:
        inside = run_quietly(["git", "-C", str(cwd), "rev-parse", "--is-inside-work-tree"], TOOL_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return Line("git", "note", f"{version}, which does not answer: {weaker}")
    if inside.returncode != 0:
        return Line("git", "note", f"{version}, but {cwd} is no checkout: {weaker}", "Run `git init`.")
    return Line("git", "ok", version)


def _version_of(program: str) -> str:
    if shutil.which(program) is None:
        return ""
    try:
        done = run_quietly([program, "--version"], TOOL_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _evaluator() -> Line:
    # Found, not imported: the import takes seconds and 200 MB.
    if importlib.util.find_spec("litellm") is None:
        return Line("evaluator", "problem", "litellm is not installed", "Reinstall goalkeeper, or use --evaluator pi.")
    named = os.environ.get("GOALKEEPER_MODEL")
    return Line("evaluator", "ok", f"litellm, {'model ' + named if named else 'with the model of the session'}")


# ---- the model ------------------------------------------------------------------------------------------------


async def _model(pi: PiCommand | None, cwd: Path) -> list[Line]:
    if pi is None:
        return [
            Line("model", "problem", "can't be known without pi"),
            Line("key", "problem", "can't be known without pi"),
        ]
    login = _LOGIN.format(pi=pi.typed())
    try:
        model = await _default_model(pi, cwd)
    except GoalkeeperError as error:
        return [Line("model", "problem", error.message, error.hint or login)]
    named = Line("model", "ok", f"{model.provider}/{model.model_id}")
    status = await check_auth(pi, model.provider)
    if status.ready is None:
        return [named, Line("key", "note", f"not known: {status.reason}")]
    if not status.ready:
        return [named, Line("key", "problem", f"pi has none for {model.provider} ({status.reason})", login)]
    return [named, Line("key", "ok", f"pi has one for {model.provider}")]


async def _default_model(pi: PiCommand, cwd: Path) -> ModelInfo:
    worker = PiWorker(PiWorkerConfig(pi, str(cwd), EPHEMERAL, _BARE, start_timeout=PI_SECONDS))
    try:
        info = await worker.start()
    finally:
        await worker.close()
    if info.model is None:
        raise PeerError("pi has no model.")
    return info.model


# ---- folders and locks ----------------------------------------------------------------------------------------


def _sessions_folder() -> Path:
    named = os.environ.get("PI_CODING_AGENT_DIR")
    agent = Path(named) if named else Path.home() / ".pi" / "agent"
    return agent / "sessions"


def _folder(name: str, folder: Path) -> Line:
    """Take a lock where a goal would, and see that it is seen."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent  # pi makes what is missing
    return _guarded(name, lambda: _probe(name, folder), f"Make {folder} writable, on a file system with flock.")


def _probe(name: str, folder: Path) -> Line:
    with tempfile.TemporaryDirectory(prefix=".goalkeeper-doctor-", dir=folder) as scratch:
        session = Path(scratch) / "probe.jsonl"
        lock = hold_session(session, {"pid": os.getpid(), "command": "goalkeeper doctor"})
        try:
            seen = holder(session) is not None
        finally:
            lock.release()
    if not seen:
        return Line(name, "problem", f"{folder}: a lock that is held there is not seen", "Use another file system.")
    return Line(name, "ok", f"{folder} is writable, and locks work there")


def _locks(cwd: Path) -> list[Line]:
    lines = []
    for state in read_states(cwd):
        if state.problem:
            fix = "It is set aside with the next goal." if state.problem == "corrupt" else "Look at its permissions."
            lines.append(Line("state", "note", f"{state.path} can't be read: {state.detail}", fix))
        elif state.owner:
            lines.append(_lock(state.owner))
    return lines or [Line("lock", "ok", "no goal is set in this folder")]


def _lock(owner: str) -> Line:
    def look() -> Line:
        held = holder(owner)
        if held is None:
            return Line("lock", "ok", f"no controller holds {owner}")
        return Line("lock", "note", f"process {held.pid} ({held.command}) holds {owner}", "Steer it with `goal clear`.")

    return _guarded("lock", look, "")


def _guarded(name: str, look: Callable[[], Line], fix: str) -> Line:
    try:
        return look()
    except GoalkeeperError as error:
        return _problem(name, error)
    except OSError as error:
        return Line(name, "problem", f"{error.filename or ''}: {error.strerror or error}".lstrip(": "), fix)
