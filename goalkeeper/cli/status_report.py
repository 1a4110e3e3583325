"""What the state files of a folder say of its goals and loops, as one document: what `goal --json` prints.

Knows nothing of how it is shown; standard library only. A file may come from pi's extension, an older or a newer
goalkeeper, or a stranger: every field is taken only where it has its type.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

from goalkeeper.cli import words
from goalkeeper.core.limits import DEFAULT_MAX_RUNS, DEFAULT_MAX_SECONDS
from goalkeeper.errors import PrerequisiteError
from goalkeeper.storage.holder import holder
from goalkeeper.storage.paths import STATE_FOLDER, session_id
from goalkeeper.storage.read_state import StateDocument, read_states, same_session

Document = dict[str, Any]
T = TypeVar("T")

KNOWN_VERSION: Final = 1
"""Newest version of our fields that is understood; see `goalkeeper.storage.schema.VERSION`."""

UNTOLD: Final = 15.0
"""Seconds that a running controller may have worked since it saved the time; it saves every 10."""

_LARGEST: Final = 10**15
"""A larger number is no time, count or price: nobody measured it, and arithmetic may fail on it."""

_USAGE: Final = ("input", "output", "cache_read", "cache_write")


def state_folder(cwd: str | Path) -> Path:
    """Return the nearest folder upwards that has goal state, `cwd` itself where none has."""
    start = Path(cwd).absolute()
    return next((folder for folder in (start, *start.parents) if (folder / STATE_FOLDER).is_dir()), start)


def folder_report(cwd: str | Path, *, now: int, session: str | None = None) -> Document:
    """Return what is known of the goals and loops of a folder, or of the nearest one upwards that has any.

    Args:
        cwd: where the user is.
        now: milliseconds since the epoch.
        session: path or id (or its beginning) of the one session that is asked for.

    Returns:
        Keys `folder` (absolute path), `goals`, `loops` and `problems` (lists).

        A goal: `condition`, `id` (null for one of pi's extension), `state` ("active", "paused"), `stage`, `driven`
        (null where that can't be known), `pid`, `started_at` (milliseconds), `seconds`, `runs`, `max_runs`,
        `max_seconds`, `max_cost`, `paused` (`why`, `reason`), `last_verdict` (`verdict`, `reason`, `at`, `evidence`,
        `findings`, `claimed`, `failure`), `worker` and `evaluator` (tokens and `cost`, null where unknown), `checks`,
        `proofs`, `written_by` ("goalkeeper", "pi extension"), `session`, `session_id`, `next`.

        A loop: `prompt`, `interval_ms`, `iterations`, `last_tick_at`, `driven`, `pid`, `session`, `session_id`.

        A problem: `path`, `kind`, `detail`.
    """
    folder = state_folder(cwd)
    report: Document = {"folder": str(folder), "goals": [], "loops": [], "problems": []}
    for state in read_states(folder):
        if session is None or belongs_to(state, session):
            _add(report, state, now)
    several = len(report["goals"]) > 1
    for goal in report["goals"]:
        goal["next"] = _next(goal, several)
    return report


def belongs_to(state: StateDocument, session: str) -> bool:
    """Tell whether a state is that of a session, named by its path or by the beginning of its id."""
    if state.owner is None:
        return False
    return same_session(state.owner, Path(session).absolute()) or session_id(state.owner).startswith(session)


def _add(report: Document, state: StateDocument, now: int) -> None:
    problem = _problem(state)
    if problem:
        report["problems"].append({"path": str(state.path), "kind": problem[0], "detail": problem[1]})
        return
    assert state.document is not None and state.owner is not None
    shared = {**_driver(report, state.owner), "session": state.owner, "session_id": session_id(state.owner)}
    goal, loop = state.document.get("goal"), state.document.get("loop")
    if goal:
        saved = _take(_part(state.document, "goalkeeper"), "saved_at", int)
        report["goals"].append(_goal(goal, shared, saved, now))
    if loop:
        report["loops"].append(
            {
                "prompt": _take(loop, "prompt", str) or "",
                "interval_ms": _take(loop, "intervalMs", int),
                "iterations": _take(loop, "iterations", int) or 0,
                "last_tick_at": _take(loop, "lastTickAt", int) or 0,
                **shared,
            }
        )


def _problem(state: StateDocument) -> tuple[str, str] | None:
    if state.problem:
        return state.problem, state.detail
    if state.owner is None:
        return "no_owner", "it names no session, so it is nobody's and is left alone"
    if not Path(state.owner).is_absolute():
        return "no_owner", f"its owner is {state.owner!r}, which is no absolute path, so it is left alone"
    try:
        orphaned = state.orphaned
    except PrerequisiteError:
        orphaned = False
    if orphaned:
        return "owner_gone", f"its session {state.owner} is gone; the next goal of this folder removes it"
    version = _take(_part(state.document or {}, "goalkeeper"), "version", int) or KNOWN_VERSION
    if version > KNOWN_VERSION:
        return "newer", f"a newer goalkeeper wrote it (version {version})"
    return None


def _driver(report: Document, owner: str) -> Document:
    try:
        live = holder(owner)
    except PrerequisiteError as error:
        report["problems"].append({"path": owner, "kind": "no_lock", "detail": error.message})
        return {"driven": None, "pid": None}
    return {"driven": live is not None, "pid": live.pid or None if live else None}


def _goal(goal: Document, shared: Document, saved: int | None, now: int) -> Document:
    ours = _part(goal, "goalkeeper")
    if ours.get("condition") != goal.get("condition"):
        ours = {}  # the extension has set another goal since
    limits = _part(ours, "limits")
    started = _take(goal, "startedAt", int) or 0
    paused = _pause(goal, ours)
    terms = _part(ours, "terms")
    return {
        "condition": _take(goal, "condition", str) or "",
        "id": _take(ours, "id", str),
        "state": "paused" if paused else "active",
        "stage": None if paused else _take(ours, "stage", str),
        "started_at": started,
        "seconds": _seconds(ours, started, saved, now, running=shared["driven"] is True and not paused),
        "runs": _take(goal, "turns", int) or 0,
        "max_runs": _take(limits, "max_runs", int) or DEFAULT_MAX_RUNS,
        "max_seconds": _number(limits, "max_seconds") or DEFAULT_MAX_SECONDS,
        "max_cost": _number(limits, "max_cost"),
        "paused": paused,
        "last_verdict": _verdict(goal, _part(ours, "last_verdict")),
        "worker": _usage(_part(ours, "worker_usage")),
        "evaluator": _usage(_part(ours, "evaluator_usage")),
        "checks": _texts(ours, "checks"),
        "proofs": _texts(terms, "proofs"),
        "written_by": "goalkeeper" if ours else "pi extension",
        **shared,
    }


def _pause(goal: Document, ours: Document) -> Document | None:
    reason = _take(goal, "pausedReason", str)
    if not reason:
        return None
    pause = _part(ours, "pause")
    same = pause.get("text") == reason
    return {"why": (_take(pause, "why", str) if same else None) or "user", "reason": reason}


def _seconds(ours: Document, started: int, saved: int | None, now: int, *, running: bool) -> float:
    known = _number(ours, "seconds")
    if known is None:  # the extension counts from the beginning
        return max((now - started) / 1000, 0.0) if started else 0.0
    since = (now - saved) / 1000 if running and saved else 0.0
    return round(known + min(max(since, 0.0), UNTOLD), 3)


def _verdict(goal: Document, ours: Document) -> Document | None:
    at = _take(goal, "lastEvalAt", int)
    reason = _take(goal, "lastReason", str)
    if reason is None and not at:
        return None
    same = ours.get("reason") == reason and ours.get("at") == at
    ours = ours if same else {}
    details = {item.get("id"): item for item in _objects(ours, "evidence")}
    ids = _texts(goal, "evidence")
    return {
        "verdict": _take(goal, "lastVerdict", str),
        "reason": reason or "",
        "at": at or 0,
        "evidence": [
            {"id": entry, **{key: _take(details.get(entry, {}), key, str) for key in ("role", "command", "digest")}}
            for entry in ids
        ],
        "findings": [
            {key: _take(item, key, str) or "" for key in ("rule", "detail")} for item in _objects(ours, "findings")
        ],
        "claimed": _take(ours, "claimed", str),
        "failure": _take(ours, "failure", str),
    }


def _usage(usage: Document) -> Document | None:
    if not usage:
        return None
    return {**{key: _take(usage, key, int) or 0 for key in _USAGE}, "cost": _number(usage, "cost")}


def _next(goal: Document, several: bool) -> str:
    resume = f"goal resume --session {goal['session_id']}" if several else "goal resume"
    if goal["paused"]:
        return words.next_step(goal["paused"]["why"], goal["session_id"] if several else None)
    if goal["driven"]:
        clear = resume.replace("resume", "clear", 1)
        return f"`{clear}` ends it from here; Ctrl-C where it runs pauses it."
    if goal["written_by"] != "goalkeeper":
        return f"pi works on it if it is open there; if not, `{resume}` goes on."
    return f"`{resume}` goes on with the budget that is left."


# ---- fields of documents that anybody may have written ----------------------------------------------------------


def _take(document: Mapping[str, Any], key: str, kind: type[T]) -> T | None:
    value = document.get(key)
    if not isinstance(value, kind) or isinstance(value, bool):
        return None
    return None if isinstance(value, int) and abs(value) > _LARGEST else value


def _number(document: Mapping[str, Any], key: str) -> float | None:
    value = document.get(key)
    return (
        float(value)
        if isinstance(value, int | float) and abs(value) <= _LARGEST and not isinstance(value, bool)
        else None
    )


def _part(document: Mapping[str, Any], key: str) -> Document:
    return _take(document, key, dict) or {}


def _objects(document: Mapping[str, Any], key: str) -> list[Document]:
    return [item for item in _take(document, key, list) or [] if isinstance(item, dict)]


def _texts(document: Mapping[str, Any], key: str) -> list[str]:
    return [item for item in _take(document, key, list) or [] if isinstance(item, str)]
