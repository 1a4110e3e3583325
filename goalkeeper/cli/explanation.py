"""What the last verdict rests on, as one document: what `goal explain --json` prints.

Knows nothing of how it is shown. State and journal name the entries and their digests; the session file has the text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from goalkeeper.cli.status_report import belongs_to, folder_report
from goalkeeper.evidence.citations import content_digest
from goalkeeper.evidence.text import clean, cut
from goalkeeper.evidence.transcript import Entry
from goalkeeper.pi.session_log import SessionLog
from goalkeeper.storage.journal import read_journal
from goalkeeper.storage.paths import session_id
from goalkeeper.storage.read_state import read_states

Document = dict[str, Any]

EXCERPT: Final = 1_500
"""Characters of a cited entry that are shown, its head and its tail."""

_DEPTHS: Final = (40_000, 400_000, 4_000_000)
"""How far back the session is read for an entry, in characters: no further than needed."""


@dataclass(slots=True)
class Explanation:
    """What the last verdict rests on.

    Attributes:
        folder: the folder with the goal state.
        goal: the goal's id, null where there is none.
        condition: the goal's condition, null where there is none.
        session: path of the session file, null where it is not known.
        verdict: `verdict`, `reason`, `at`, `claimed`, `failure`, `findings` (`rule`, `detail`), `window` (digest of
            what the evaluator saw); null where there is none.
        evidence: the cited entries: `id`, `role`, `command`, `digest`, `content` ("unchanged", "changed",
            "not_recorded", "missing", "no_session") and `excerpt`, null where the entry can't be read.
        changed: files changed since the goal was set that are tests or proof, null where that was not recorded.
    """

    folder: str
    goal: str | None = None
    condition: str | None = None
    session: str | None = None
    verdict: Document | None = None
    evidence: list[Document] = field(default_factory=list)
    changed: list[str] | None = None


def explanation(folder: Path, session: str | None) -> Explanation:
    """Explain the last verdict on the goal that is set, or on the last one that was.

    Args:
        folder: the folder with the goal state.
        session: path or id of the one session that is asked for.
    """
    found = Explanation(str(folder))
    goals = folder_report(folder, now=0, session=session)["goals"]
    if goals:
        goal = max(goals, key=_last_sign)
        found.goal, found.condition, found.session = goal["id"], goal["condition"], goal["session"]
        record = _record(folder, found.goal, None) if found.goal else None
        record = record or _from_state(goal)
    else:
        record = _record(folder, None, _wanted(session))
        if record is not None:
            found.goal = _text(record, "goal")
            found.condition = _condition(folder, record)
            found.session = _session_of(folder, record)
    if record is not None:
        _take_verdict(found, record)
        found.evidence = _looked_up(found.session, _objects(record, "evidence"))
    return found


# ---- journal and state ------------------------------------------------------------------------------------------


def _last_sign(goal: Document) -> int:
    verdict = goal["last_verdict"]
    return max(int(goal["started_at"]), int(verdict["at"]) if verdict else 0)


def _wanted(session: str | None) -> str | None:
    if session is None:
        return None
    return session_id(session) if "/" in session or session.endswith(".jsonl") else session


def _record(folder: Path, goal: str | None, session: str | None) -> Document | None:
    """Return the newest record of a verdict, or of an evaluator's failure."""
    for record in read_journal(folder, goal=goal):
        told = record.get("event") in ("verdict", "evaluator_failed")
        if told and (session is None or str(record.get("session_id")).startswith(session)):
            return record
    return None


def _from_state(goal: Document) -> Document | None:
    last: Document | None = goal["last_verdict"]
    return {**last, "kind": last["failure"]} if last else None


def _take_verdict(found: Explanation, record: Document) -> None:
    at = record.get("at")
    changed = record.get("changed")
    found.verdict = {
        "verdict": _text(record, "verdict"),
        "reason": _text(record, "reason") or "",
        "at": at if isinstance(at, int) else 0,
        "claimed": _text(record, "claimed"),
        "failure": _text(record, "kind"),
        "findings": [
            {"rule": _text(item, "rule") or "?", "detail": _text(item, "detail") or ""}
            for item in _objects(record, "findings")
        ],
        "window": _text(record, "window"),
    }
    found.changed = [str(name) for name in changed] if isinstance(changed, list) else None


def _condition(folder: Path, record: Document) -> str | None:
    for other in read_journal(folder, goal=_text(record, "goal")):
        if condition := _text(other, "condition"):
            return condition
    return None


def _session_of(folder: Path, record: Document) -> str | None:
    wanted = _text(record, "session_id")
    if wanted is None:
        return None
    for state in read_states(folder):
        if state.owner and belongs_to(state, wanted):
            return state.owner
    for other in read_journal(folder, session=wanted):
        if path := _text(other, "session_file"):
            return path
    return None


# ---- the session ------------------------------------------------------------------------------------------------


def _looked_up(session: str | None, cited: Sequence[Document]) -> list[Document]:
    ids = [_text(item, "id") or "?" for item in cited]
    entries = _entries(session, ids) if session and Path(session).is_file() else None
    return [_cited(entry_id, item, entries) for entry_id, item in zip(ids, cited, strict=True)]


def _cited(entry_id: str, item: Document, entries: dict[str, Entry] | None) -> Document:
    entry = entries.get(entry_id) if entries is not None else None
    digest = _text(item, "digest")
    if entries is None:
        content = "no_session"
    elif entry is None:
        content = "missing"
    elif not digest:
        content = "not_recorded"
    else:
        content = "unchanged" if content_digest(entry.text) == digest else "changed"
    return {
        "id": entry_id,
        "role": _text(item, "role") or (entry.kind if entry else None),
        "command": _text(item, "command") or (entry.command if entry else None),
        "digest": digest,
        "content": content,
        "excerpt": cut(clean(entry.text).strip(), EXCERPT)[0] if entry else None,
    }


def _entries(session: str, ids: Sequence[str]) -> dict[str, Entry] | None:
    log = SessionLog(session)
    found: dict[str, Entry] = {}
    try:
        for entries in _deeper(log):
            found = {entry.id: entry for entry in entries}
            if all(entry_id in found for entry_id in ids):
                break
    except OSError:
        return None
    return found


def _deeper(log: SessionLog) -> Iterator[tuple[Entry, ...]]:
    for characters in _DEPTHS:
        transcript = log.read(characters)
        yield transcript.entries
        if transcript.earlier == 0:
            return


def _text(document: Document, key: str) -> str | None:
    value = document.get(key)
    return value if isinstance(value, str) else None


def _objects(document: Document, key: str) -> list[Document]:
    value = document.get(key)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
