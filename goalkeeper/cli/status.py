"""`goal` without arguments: every goal and loop of this folder, from any terminal, fast.

Knows nothing of pi or of models; imports the standard library only.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from goalkeeper.cli import words
from goalkeeper.cli.layout import Line, rows
from goalkeeper.cli.output import Output, local_time, width_of
from goalkeeper.cli.status_report import folder_report
from goalkeeper.evidence.text import one_line

Document = dict[str, Any]

_PROBLEMS = {
    "corrupt": "can't be parsed; the next goal of this folder sets it aside",
    "unreadable": "can't be read",
}


def status(cwd: str | Path, *, as_json: bool, session: str | None) -> int:
    """Print how the goals and loops of a folder stand; return the exit code.

    Args:
        cwd: where the user is; the nearest folder upwards with goal state counts.
        as_json: print one object, see `folder_report`.
        session: path or id of the one session that is asked for.
    """
    if not Path(cwd).is_dir():
        print(f"goal: {one_line(str(Path(cwd).absolute()), 500)} is no folder.", file=sys.stderr)
        return 2
    now = time.time_ns() // 1_000_000
    report = folder_report(cwd, now=now, session=session)
    output = Output()
    if as_json:
        output.line(json.dumps(report, separators=(",", ":")))
        return 0
    width = width_of(output)
    for line in status_lines(report, now=now, here=str(Path(cwd).absolute())):
        for row in rows(line, width):
            output.write(row + "\n")
    output.flush()
    return 0


def status_lines(report: Document, *, now: int, here: str) -> Iterator[Line]:
    """Yield what a report says to a person.

    Args:
        report: see `folder_report`.
        now: milliseconds since the epoch.
        here: where the user is; another folder is named.
    """
    folder = report["folder"]
    if folder != here and (report["goals"] or report["loops"] or report["problems"]):
        yield Line(f"In {folder}:")
    if not report["goals"]:
        yield Line("No goal is set in this folder." if folder == here else f"No goal is set in {folder}.")
    for number, goal in enumerate(report["goals"]):
        if number:
            yield Line("")
        yield from _goal(goal, now)
    for loop in report["loops"]:
        yield from _loop(loop)
    for problem in report["problems"]:
        words_of = _PROBLEMS.get(problem["kind"])
        what = f"{words_of} ({problem['detail']})" if words_of else problem["detail"]
        yield Line(f"{problem['path']}: {what}", "!")


def _goal(goal: Document, now: int) -> Iterator[Line]:
    limits = words.budget(goal["max_runs"], goal["max_seconds"], goal["max_cost"])
    spent = f"{words.duration(goal['seconds'])} · run {goal['runs']} of {goal['max_runs']}"
    yield Line(f"goal {goal['state']} · {spent}", "‖" if goal["paused"] else "◎", one_row=True)
    yield Line(goal["condition"], indent=2, quote=True)
    yield Line(_state(goal), indent=2)
    if goal["paused"]:
        yield Line(goal["paused"]["reason"], indent=2, quote=True)
    if goal["last_verdict"]:
        yield from _verdict(goal["last_verdict"], now, goal["paused"])
    else:
        yield Line("no verdict yet", indent=2)
    yield Line(f"budget: {limits}", indent=2)
    yield Line(f"worker: {_usage(goal['worker'])}", indent=2)
    yield Line(f"evaluator: {_usage(goal['evaluator'])}", indent=2)
    for name, commands in (("check", goal["checks"]), ("proof", goal["proofs"])):
        for command in commands:
            yield Line(f"{name}: {command}", indent=2, one_row=True)
    yield Line(f"session: {goal['session']}", indent=2)
    yield Line(goal["next"], "→", indent=2)


def _state(goal: Document) -> str:
    if goal["paused"]:
        return "paused:"
    if goal["driven"]:
        who = f"process {goal['pid']}" if goal["pid"] else "another process"
        doing = {"checking": "its checks run", "evaluating": "the evaluator is asked"}.get(goal["stage"], "pi works")
        return f"driven by {who} · {doing}"
    if goal["driven"] is None:
        return "active; whether a controller drives it can't be known here"
    if goal["written_by"] != "goalkeeper":
        return "set by pi's goal extension; no controller of ours drives it"
    return "active, but nobody drives it: say `goal resume`"


def _verdict(verdict: Document, now: int, paused: Document | None) -> Iterator[Line]:
    word = verdict["verdict"]
    failure = words.FAILURES.get(verdict["failure"] or "", "the evaluator failed")
    said = words.VERDICTS.get(word, word) if word else f"none: {failure}"
    claimed = verdict["claimed"]
    doubt = f" (claimed {words.VERDICTS.get(claimed, claimed)})" if claimed and claimed != word else ""
    ago = f" · {words.duration(max(now - verdict['at'], 0) // 1000)} ago" if verdict["at"] else ""
    yield Line(f"last verdict: {said}{doubt}{ago}", indent=2, one_row=True)
    if not paused or paused["reason"] != verdict["reason"]:
        yield Line(verdict["reason"], indent=2, quote=True)
    for finding in verdict["findings"]:
        yield Line(f"refused by {finding['rule']}: {finding['detail']}", indent=4, one_row=True)
    for entry in verdict["evidence"]:
        cited = words.cited(entry["id"], entry["role"], entry["command"]) if entry["role"] else entry["id"]
        yield Line(f"cited: {cited}", indent=4, one_row=True)


def _loop(loop: Document) -> Iterator[Line]:
    every = f"every {words.duration(loop['interval_ms'] / 1000)}" if loop["interval_ms"] else "self-paced"
    last = f" · last at {local_time(loop['last_tick_at'])}" if loop["last_tick_at"] else ""
    yield Line(f"loop · {every} · {words.count(loop['iterations'], 'tick')}{last}", "↻", one_row=True)
    yield Line(loop["prompt"], indent=2, quote=True)
    yield Line(f"driven by process {loop['pid']}" if loop["pid"] else "nobody drives it", indent=2)


def _usage(usage: Document | None) -> str:
    if usage is None:
        return "unknown"
    return words.spending(sum(usage[key] for key in ("input", "output", "cache_read", "cache_write")), usage["cost"])
