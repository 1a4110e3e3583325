"""Runs what `goal` was asked for: set, resume, clear.

Knows nothing of options; it puts a controller and a screen together and says how it ended.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from goalkeeper.bootstrap import Controller, clear_stored
from goalkeeper.cli.excerpt import EvidenceExcerpt
from goalkeeper.cli.exit_codes import ExitCode, code_of_ending
from goalkeeper.cli.screen import open_screen
from goalkeeper.cli.status_report import belongs_to, state_folder
from goalkeeper.config import GoalConfig, Renewal, WorkerChoice
from goalkeeper.core.records import Cleared, GoalMet, GoalPaused, Record
from goalkeeper.core.verdict import CitedEntry
from goalkeeper.errors import PeerError, UsageError
from goalkeeper.evidence.text import clean
from goalkeeper.evidence.transcript import Transcript
from goalkeeper.runtime.control import ask
from goalkeeper.storage.holder import holder
from goalkeeper.storage.read_state import StateDocument, read_states

EXCERPT_CHARACTERS = 1_200
"""Characters of a cited entry that the closing panel shows, from its end."""


START_PATIENCE = 10.0
"""Seconds that another terminal waits for a starting controller to listen, or for an ending one to be gone."""

_STEP = 0.05


@dataclass(slots=True)
class _Outcome:
    """The record that ended the command."""

    last: Record | None = None

    def note(self, record: Record) -> None:
        if isinstance(record, GoalMet | GoalPaused | Cleared):
            self.last = record

    @property
    def code(self) -> ExitCode:
        if isinstance(self.last, GoalMet):
            return code_of_ending("met")
        if isinstance(self.last, GoalPaused):
            return code_of_ending("paused", self.last.why)
        return code_of_ending("cleared")


def set_goal(config: GoalConfig, choice: WorkerChoice, *, as_json: bool, quiet: bool) -> int:
    """Set a goal and work in the foreground until it is met, paused or cleared; return the exit code."""
    return _drive(choice, lambda controller: controller.set_goal(config), as_json=as_json, quiet=quiet)


def resume(
    cwd: str, session: str | None, renewal: Renewal, pi_args: Sequence[str], *, as_json: bool, quiet: bool
) -> int:
    """Resume the folder's goal and work in the foreground; return the exit code.

    pi starts with the arguments that the goal was set with, unless others are given.
    """
    state = _choose(cwd, session, "resume")
    if state is None or state.owner is None:
        raise UsageError("There is no goal to resume in this folder.", _why_none(cwd))
    choice = WorkerChoice(_folder_of(state), state.owner, tuple(pi_args) or _stored_pi_args(state))
    return _drive(choice, lambda controller: controller.resume_goal(renewal), as_json=as_json, quiet=quiet)


def clear(cwd: str, session: str | None, *, as_json: bool) -> int:
    """Clear the folder's goal and loop, in the running controller if there is one; return the exit code."""
    state = _choose(cwd, session, "clear")
    answer: dict[str, Any] = {"condition": None, "loop_stopped": False}
    if state is not None and state.owner is not None:
        answer = _clear(_folder_of(state), state.owner)
    if as_json:
        record = {"event": "cleared", "at": time.time_ns() // 1_000_000, "goal": ""}
        print(json.dumps(record | {"condition": answer["condition"], "loop_stopped": answer["loop_stopped"]}))
        return ExitCode.MET
    if answer["condition"] is not None:
        print(f"Goal cleared: {clean(answer['condition'])}")
    else:
        print("No goal is set in this folder.")
    if answer["loop_stopped"]:
        print("The loop is stopped, too.")
    return ExitCode.MET


def _clear(folder: str, owner: str) -> dict[str, Any]:
    """Clear a session's goal and loop, in its controller if there is one; one that is ending is waited for."""
    deadline = time.monotonic() + START_PATIENCE
    while control := _control_of(owner):
        try:
            return ask(control, {"do": "clear"})
        except PeerError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_STEP)
    return clear_stored(folder, owner)


def _drive(choice: WorkerChoice, work: Callable[[Controller], Awaitable[Any]], *, as_json: bool, quiet: bool) -> int:
    screen = open_screen(as_json=as_json, quiet=quiet)
    outcome = _Outcome()

    def tell(record: Record) -> None:
        outcome.note(record)
        screen.tell(record)

    async def drive() -> None:
        async with Controller(choice, tell, on_kill=screen.stop) as controller:
            await work(controller)
            if isinstance(outcome.last, GoalMet):
                screen.show_evidence(excerpts(await controller.transcript(), outcome.last.evidence))

    screen.start()
    try:
        asyncio.run(drive())
    finally:
        screen.stop()
    return outcome.code


def excerpts(transcript: Transcript, evidence: tuple[CitedEntry, ...]) -> list[EvidenceExcerpt]:
    """Return what the cited entries say, from their end."""
    entries = {entry.id: entry for entry in transcript.entries}
    shown = []
    for cited in evidence:
        entry = entries.get(cited.id)
        if entry:
            text = clean(entry.text).strip()
            cut = text if len(text) <= EXCERPT_CHARACTERS else "… " + text[-EXCERPT_CHARACTERS:]
            title = f"{entry.tool_name or entry.kind} {entry.command or ''}".strip()
            shown.append(EvidenceExcerpt(cited.id, title, cut))
    return shown


def _control_of(owner: str) -> str:
    """Return the control socket of the session's live controller, empty when nobody controls it.

    A controller that has just started listens a moment later; it is waited for.
    """
    deadline = time.monotonic() + START_PATIENCE
    while live := holder(owner):
        if live.control or time.monotonic() > deadline:
            return live.control
        time.sleep(_STEP)
    return ""


def _stored_pi_args(state: StateDocument) -> tuple[str, ...]:
    goal = (state.document or {}).get("goal") or {}
    stored = (goal.get("goalkeeper") or {}).get("pi_args") or ()
    return tuple(argument for argument in stored if isinstance(argument, str))


def _folder_of(state: StateDocument) -> str:
    return str(state.path.parent.parent)


def _choose(cwd: str, session: str | None, verb: str) -> StateDocument | None:
    """Return the one state that can be meant, in the folder or the nearest one upwards that has any; None without one.

    Raises:
        UsageError: there are several; the user must say which.
    """
    states = [state for state in read_states(state_folder(cwd)) if _is_usable(state)]
    if session is not None:
        states = [state for state in states if belongs_to(state, session)]
    if not states:
        return None
    if len(states) > 1:
        names = "\n".join(f"  --session {s.owner}  {_condition(s)}" for s in states)
        raise UsageError(f"There are {len(states)} goals in this folder; say which to {verb}:\n{names}")
    return states[0]


def _why_none(cwd: str) -> str:
    """Return what to do when a folder has no goal: it may have one that can't be read."""
    states = read_states(state_folder(cwd))
    broken = [f"{state.path} can't be read: {state.detail}." for state in states if state.problem]
    return "\n".join(broken) or 'Set one: goal "the tests pass"'


def _is_usable(state: StateDocument) -> bool:
    document = state.document
    return bool(state.owner and document and not state.problem and (document.get("goal") or document.get("loop")))


def _condition(state: StateDocument) -> str:
    goal = (state.document or {}).get("goal") or {}
    return clean(str(goal.get("condition") or "a loop"))[:60]
