"""The codec of the state file: `SessionState` to the document that pi's goal extension shares, and back.

Knows nothing of files or locks. The fields that the extension knows are written in its shape; ours stand beside them
under "goalkeeper". When the two disagree, the extension has changed the file since, and its fields win.
"""

from __future__ import annotations

import dataclasses
import uuid
from dataclasses import replace
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from goalkeeper.core.records import Record
from goalkeeper.core.state import GoalState, LoopState, Pause, SessionState

VERSION: Final = 1
"""Version of the fields under "goalkeeper"."""

Document = dict[str, Any]

_GOAL: Final = TypeAdapter(GoalState)


class SchemaError(ValueError):
    """The document is JSON, but not a state that can be read."""


def to_document(state: SessionState, owner: str, *, saved_at: int) -> Document | None:
    """Return the document for a state, None when goal and loop are both cleared (the file goes away).

    Args:
        state: what to save.
        owner: absolute path of the owning session file.
        saved_at: milliseconds since the epoch.
    """
    if state.goal is None and state.loop is None:
        return None
    return {
        "owner": owner,
        "goal": _goal_document(state.goal) if state.goal else None,
        "loop": _loop_document(state.loop) if state.loop else None,
        "goalkeeper": {"version": VERSION, "next_id": state.next_id, "leaf": state.leaf, "saved_at": saved_at},
    }


def from_document(document: Document) -> SessionState:
    """Return the state of a document of ours or of the extension's, with older ones' missing fields filled in.

    Raises:
        SchemaError: a field has a type that can't be read.
    """
    ours = document.get("goalkeeper") or {}
    try:
        if not isinstance(ours, dict):
            raise SchemaError("goalkeeper is not an object")
        if int(ours.get("version", VERSION)) > VERSION:
            raise SchemaError(f"the state was written by a newer goalkeeper (version {ours['version']})")
        goal = document.get("goal")
        loop = document.get("loop")
        leaf = ours.get("leaf")
        return SessionState(
            goal=_read_goal(goal) if goal else None,
            loop=_read_loop(loop) if loop else None,
            leaf=leaf if isinstance(leaf, str) else None,
            next_id=int(ours.get("next_id", 1)),
        )
    except SchemaError:
        raise
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or "goal"
        raise SchemaError(f"{field} can't be read ({first['msg']})") from error
    except (ValueError, OverflowError, TypeError, KeyError, AttributeError) as error:
        raise SchemaError(f"a field can't be read ({error})") from error


def goal_fields(goal: GoalState) -> Document:
    """Return all fields of a goal as JSON values."""
    return dict(_GOAL.dump_python(goal, mode="json"))


def _goal_document(goal: GoalState) -> Document:
    last = goal.last_verdict
    document: Document = {
        "condition": goal.condition,
        "startedAt": goal.started_at,
        "turns": goal.turns,
        "unknowns": goal.unknowns,
        "goalkeeper": goal_fields(goal),
    }
    if last:
        document |= {
            "lastReason": last.reason,
            "lastEvalAt": last.at,
            "lastVerdict": last.verdict,
            "evidence": [cited.id for cited in last.evidence],
        }
    document["pausedReason"] = goal.pause.text if goal.pause else None
    return document


def _loop_document(loop: LoopState) -> Document:
    return {
        "prompt": loop.prompt,
        "intervalMs": loop.interval_ms,
        "iterations": loop.iterations,
        "lastTickAt": loop.last_tick_at,
    }


def _read_goal(document: Document) -> GoalState:
    condition = document["condition"]
    ours = document.get("goalkeeper")
    goal = _GOAL.validate_python(ours) if ours else None
    if goal is None or goal.condition != condition:
        if not isinstance(condition, str):
            raise SchemaError("goal.condition is not a string")
        goal = GoalState(
            id=uuid.uuid4().hex[:12],
            condition=condition,
            started_at=int(document.get("startedAt") or 0),
            stage="running",
        )
    text = document.get("pausedReason")
    pause = goal.pause if goal.pause and goal.pause.text == text else Pause("user", str(text)) if text else None
    return replace(
        goal,
        turns=int(document.get("turns") or 0),
        unknowns=int(document.get("unknowns") or 0),
        pause=pause,
    )


def _read_loop(document: Document) -> LoopState:
    interval = document.get("intervalMs")
    return LoopState(
        prompt=str(document["prompt"]),
        interval_ms=int(interval) if interval else None,
        iterations=int(document.get("iterations") or 0),
        last_tick_at=int(document.get("lastTickAt") or 0),
    )


def record_document(record: Record) -> Document:
    """Return a record as a JSON object: the event's name first, then its time, its goal and its own fields."""
    fields = dataclasses.asdict(record)
    return {"event": fields.pop("event"), "at": fields.pop("at"), "goal": fields.pop("goal"), **fields}


def record_schema() -> Document:
    """Return the JSON Schema of all records, for docs/events.schema.json."""
    return TypeAdapter(Record).json_schema(mode="serialization")
