"""`goal log` and `goal explain`: what the journal of this folder tells, and what the last verdict rests on.

Knows nothing of a running controller.
"""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from goalkeeper.cli import words
from goalkeeper.cli.explanation import Document, Explanation, explanation
from goalkeeper.cli.layout import Line, rows
from goalkeeper.cli.output import Output, local_time, width_of
from goalkeeper.cli.status_report import state_folder
from goalkeeper.evidence.text import one_line
from goalkeeper.storage.journal import read_journal

_MOMENT: Final = "%Y-%m-%d %H:%M:%S"
_LOG_WIDTH: Final = 1_000


def log(cwd: str | Path, since: float | None = None, as_json: bool = False, goal: str | None = None) -> int:
    """Print the journal of a folder, oldest first, one line a record; return the exit code.

    Args:
        cwd: where the user is; the nearest folder upwards with goal state counts.
        since: how many seconds to go back, None for the whole journal.
        as_json: print the records as they are.
        goal: id of the one goal that is asked for.
    """
    folder = state_folder(cwd)
    first = None if since is None else time.time_ns() // 1_000_000 - int(since * 1000)
    found = list(read_journal(folder, since=first, goal=goal))
    output = Output()
    width = width_of(output)
    for record in reversed(found):
        if as_json:
            output.write(json.dumps(record, separators=(",", ":")) + "\n")
        else:
            output.write(rows(log_line(record), width)[0] + "\n")
        if output.gone:
            break
    if not found and not as_json:
        output.write(f"No journal records in {folder}.\n")
    output.flush()
    return 0


def log_line(record: Mapping[str, Any]) -> Line:
    """Return a journal record as one line: local time, goal, event, and what it says."""
    event = str(record.get("event") or "?")
    at = record.get("at")
    when = local_time(at, _MOMENT) if isinstance(at, int) else "?"
    tell = _TOLD.get(event)
    try:
        said = tell(record) if tell else _anything(record)
    except (KeyError, TypeError, ValueError, AttributeError):
        said = _anything(record)
    goal = one_line(str(record.get("goal") or "-"), 12)
    return Line(one_line(said, _LOG_WIDTH), f"{when} {goal:12} {one_line(event, 16):16}", one_row=True)


def _anything(record: Mapping[str, Any]) -> str:
    rest = {key: value for key, value in record.items() if key not in ("event", "at", "goal", "session_id")}
    return json.dumps(rest, ensure_ascii=False, default=str)


def _verdict(record: Mapping[str, Any]) -> str:
    refused = ", ".join(str(finding["rule"]) for finding in record["findings"])
    cited = ", ".join(str(entry["id"]) for entry in record["evidence"])
    parts = [f"refused by {refused}" if refused else "", f"cited {cited}" if cited else "", str(record["reason"])]
    return " · ".join(part for part in parts if part)


def _limits(limits: Mapping[str, Any]) -> str:
    return words.budget(limits["max_runs"], limits["max_seconds"], limits["max_cost"])


def _exit(code: int | None) -> str:
    return "did not end" if code is None else f"exit {code}"


def _ended(record: Mapping[str, Any]) -> str:
    error = f"failed: {record['error']}" if record["error"] else ""
    return "aborted" if record["aborted"] else error or "ended"


_TOLD: Final = {
    "session": lambda r: f"pi {r['pi']} · {r['model']} · {r['session_file']}",
    "goal_set": lambda r: f"{r['condition']} · at most {_limits(r['limits'])}",
    "terms": lambda r: " · ".join([f"basis {r['terms']['basis']}", *(f"proof: {p}" for p in r["terms"]["proofs"])]),
    "run_started": lambda r: f"{r['run']}/{r['max_runs']} · {words.MESSAGES.get(r['message'], r['message'])}",
    "run_settled": lambda r: f"{r['run']}/{r['max_runs']} {_ended(r)} · {words.duration(r['seconds'])} in all",
    "check": lambda r: f"{r['command']} · {_exit(r['exit_code'])}",
    "verdict": lambda r: f"{words.VERDICTS.get(r['verdict'], r['verdict'])} · {_verdict(r)}",
    "evaluator_failed": lambda r: f"{words.FAILURES.get(r['kind'], r['kind'])} · {_verdict(r)}",
    "paused": lambda r: f"{r['why']} · {words.count(r['runs'], 'run')} · {r['reason']}",
    "resumed": lambda r: f"{'fresh budget' if r['fresh'] else 'what was left'} · at most {_limits(r['limits'])}",
    "met": lambda r: f"{words.count(r['runs'], 'run')} · {words.duration(r['seconds'])} · {r['reason']}",
    "cleared": lambda r: "no goal was set" if r["condition"] is None else str(r["condition"]),
    "dropped": lambda r: str(r["what"]),
    "notice": lambda r: f"{r['level']}: {r['text']}",
}


def explain(cwd: str | Path, session: str | None = None, as_json: bool = False) -> int:
    """Print what the last verdict of this folder rests on; return the exit code.

    Args:
        cwd: where the user is; the nearest folder upwards with goal state counts.
        session: path or id of the one session that is asked for.
        as_json: print one object, see `explanation`.
    """
    folder = state_folder(cwd)
    found = explanation(folder, session)
    output = Output()
    if as_json:
        output.line(json.dumps(dataclasses.asdict(found), separators=(",", ":")))
        return 0
    width = width_of(output)
    for line in explain_lines(found):
        for row in rows(line, width):
            output.write(row + "\n")
    output.flush()
    return 0


def explain_lines(found: Explanation) -> Iterator[Line]:
    """Yield what an explanation says to a person."""
    verdict = found.verdict
    if found.condition is not None:
        yield Line(f"goal {found.goal or ''}".rstrip())
        yield Line(found.condition, indent=2, quote=True)
    if verdict is None:
        yield Line(
            "No verdict has been given on this goal yet."
            if found.condition is not None
            else f"No verdict has been given in {found.folder}."
        )
        return
    yield from _stands(verdict)
    for finding in verdict["findings"]:
        yield Line(f"refused by {finding['rule']}", "✗", indent=2)
        yield Line(finding["detail"], indent=4, quote=True)
    yield from _changed(found.changed)
    if verdict["window"]:
        yield Line(f"what the evaluator saw had the digest {verdict['window']}", indent=2)
    yield Line(f"session: {found.session or 'not known'}", indent=2)
    for entry in found.evidence:
        yield from _cited(entry)
    if not found.evidence:
        yield Line("nothing was cited", indent=2)


def _stands(verdict: Document) -> Iterable[Line]:
    when = local_time(verdict["at"], _MOMENT)
    claimed = verdict["claimed"]
    yield Line(f"the evaluator claimed: {words.VERDICTS.get(claimed, claimed) if claimed else 'nothing'}", indent=2)
    if verdict["failure"]:
        stands = f"no verdict: {words.FAILURES.get(verdict['failure'], verdict['failure'])}"
    else:
        stands = words.VERDICTS.get(verdict["verdict"], str(verdict["verdict"]))
    yield Line(f"what stands: {stands} · {when}", indent=2)
    yield Line(verdict["reason"], indent=2, quote=True)


def _changed(changed: list[str] | None) -> Iterable[Line]:
    if changed:
        yield Line("changed since the goal was set, and part of its proof:", "!", indent=2)
        yield Line("\n".join(one_line(name, 200) for name in changed), indent=4, quote=True)


def _cited(entry: Document) -> Iterable[Line]:
    yield Line(
        f"cited: {words.cited(entry['id'], entry['role'] or 'unknown', entry['command'])}", indent=2, one_row=True
    )
    yield Line(_CONTENT[entry["content"]], indent=4)
    if entry["excerpt"] is not None:
        yield Line(entry["excerpt"] or "(empty)", indent=4, quote=True)


_CONTENT: Final = {
    "unchanged": "its content is what it was at the verdict",
    "changed": "ITS CONTENT IS NOT WHAT IT WAS AT THE VERDICT",
    "not_recorded": "its content at the verdict was not recorded",
    "missing": "it is not on the session's branch any more",
    "no_session": "the session can't be read",
}
