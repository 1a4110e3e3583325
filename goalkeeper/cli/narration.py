"""What each record says to a person, as lines; the live and the plain screen say the same.

Knows nothing of terminals: `layout` turns lines into rows and makes foreign text harmless.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from goalkeeper.cli import words
from goalkeeper.cli.excerpt import EvidenceExcerpt
from goalkeeper.cli.layout import Line, Style
from goalkeeper.core import records
from goalkeeper.core.limits import Limits, Usage
from goalkeeper.core.records import Record
from goalkeeper.core.verdict import CitedEntry, RuleFinding
from goalkeeper.evidence.text import one_line

GOAL: Final = "◎"
PAUSED: Final = "‖"
DONE: Final = "✓"
FAILED: Final = "✗"

_VERDICT_STYLES: Final[dict[str, Style]] = {"met": "good", "not_met": "bad", "unknown": "warn"}


class Narrator:
    """Tells the records of one controller; remembers what later ones need of earlier ones."""

    def __init__(self) -> None:
        self._calls_began: dict[str, int] = {}
        self._run_began: int | None = None
        self._changed: tuple[str, ...] = ()
        self._kept = True

    def lines(self, record: Record) -> list[Line]:
        """Return what a record says, nothing for what only the journal needs."""
        tell = _TELLERS.get(type(record))
        return list(tell(self, record)) if tell else []

    def _session(self, record: records.SessionOpened) -> Iterable[Line]:
        self._kept = record.session_file is not None
        model = record.model or "no model"
        yield Line(f"pi {record.pi} · {model} · {record.cwd}", style="dim")
        kept = record.session_id if self._kept else "of memory only: nothing is kept"
        yield Line(f"session {kept}", style="dim", one_row=True)

    def _set(self, record: records.GoalWasSet) -> Iterable[Line]:
        yield Line(f"goal: {record.condition}", GOAL, "head")
        yield Line(f"at most {_budget(record.limits)} · evaluator {record.evaluator}", style="dim", indent=2)
        for check in record.checks:
            yield Line(f"check: {check}", style="dim", indent=2, one_row=True)
        if record.replaced is not None:
            yield Line(f"it replaces: {record.replaced}", style="dim", indent=2, one_row=True)

    def _terms(self, record: records.TermsWereSettled) -> Iterable[Line]:
        terms = record.terms
        what = "an answer" if terms.basis == "answer" else "results of tools"
        proofs = "".join(f", among them exactly `{one_line(proof, 200)}`" for proof in terms.proofs)
        yield Line(f"counts as proof: {what}{proofs} (settled by {terms.settled_by})", style="dim", indent=2)

    def _run(self, record: records.RunStart) -> Iterable[Line]:
        self._run_began = record.at
        yield Line(f"run {record.run}/{record.max_runs} · {words.MESSAGES[record.message]}", "──", "head", one_row=True)

    def _tool(self, record: records.ToolUsed) -> Iterable[Line]:
        if record.status == "started":
            self._calls_began[record.call] = record.at
            return
        began = self._calls_began.pop(record.call, None)
        tail = " · failed" if record.is_error else ""
        tail += "" if record.exit_code is None else f" · exit {record.exit_code}"
        tail += "" if began is None else f" · {words.duration((record.at - began) / 1000)}"
        yield _done(not record.is_error and not record.exit_code, f"{record.name} {record.summary}", tail)

    def _settled(self, record: records.RunSettledRecord) -> Iterable[Line]:
        number = f"run {record.run}/{record.max_runs}"
        # The record's own seconds are those of the whole budget; a run that a dead controller began has no beginning.
        took = "" if self._run_began is None else f"{words.duration((record.at - self._run_began) / 1000)} · "
        self._run_began = None
        spent = f"{took}{_spending(record.usage)}"
        if record.error is not None:
            yield Line(f"the run failed · {spent}", FAILED, "bad", indent=2, one_row=True)
            yield Line(record.error, indent=4, quote=True)
        elif record.aborted:
            yield Line(f"the run was aborted · {spent}", FAILED, "bad", indent=2, one_row=True)
        else:
            yield Line(f"{number} ended · {spent}", style="dim", indent=2, one_row=True)

    def _check(self, record: records.CheckRan) -> Iterable[Line]:
        tail = " · did not end" if record.exit_code is None else f" · exit {record.exit_code}"
        yield _done(record.exit_code == 0, f"check {record.command}", tail)

    def _verdict(self, record: records.VerdictRecord) -> Iterable[Line]:
        self._changed = record.changed
        word, claimed = record.verdict, record.claimed
        doubt = f" (the evaluator claimed {words.VERDICTS[claimed]})" if claimed not in (None, word) else ""
        text = f"verdict: {words.VERDICTS[word]}{doubt}"
        yield Line(text, words.VERDICT_MARKS[word], _VERDICT_STYLES[word], indent=2)
        if word == "met":  # what it rests on follows with the closing lines
            return
        yield from _grounds(record.reason, record.evidence, record.findings)
        yield from self._changes(4)

    def _failure(self, record: records.EvaluatorFailed) -> Iterable[Line]:
        yield Line(f"no verdict: {words.FAILURES[record.kind]}", "!", "bad", indent=2)
        yield from _grounds(record.reason, record.evidence, record.findings)

    def _paused(self, record: records.GoalPaused) -> Iterable[Line]:
        yield Line("")
        yield Line(f"goal paused after {words.count(record.runs, 'run')}", PAUSED, "warn")
        yield Line(record.reason, indent=2, quote=True)
        if record.loop_stopped:
            yield Line("the loop is stopped, too", indent=2)
        yield Line(words.next_step(record.why) if self._kept else words.NOT_KEPT, "→", indent=2)

    def _resumed(self, record: records.GoalResumed) -> Iterable[Line]:
        yield Line(f"goal resumed: {record.condition}", GOAL, "head")
        budget = "a fresh budget" if record.fresh else f"{words.count(record.run, 'run')} used"
        yield Line(f"at most {_budget(record.limits)} · {budget}", style="dim", indent=2)

    def _met(self, record: records.GoalMet) -> Iterable[Line]:
        runs = f"{words.count(record.runs, 'run')} · {words.duration(record.seconds)}"
        yield Line("")
        yield Line("goal met", words.VERDICT_MARKS["met"], "good")
        yield Line(record.condition, indent=2, quote=True)
        yield Line(record.reason, indent=2, quote=True)
        yield from _evidence(record.evidence, 2)
        yield Line(f"work: {runs}", indent=2)
        yield Line(f"worker: {_spending(record.worker)}", indent=2)
        yield Line(f"evaluator: {_spending(record.evaluator)}", indent=2)
        yield from self._changes(2)

    def _cleared(self, record: records.Cleared) -> Iterable[Line]:
        yield Line("no goal was set" if record.condition is None else f"goal cleared: {record.condition}", PAUSED)
        if record.loop_stopped:
            yield Line("the loop is stopped, too", indent=2)

    def _notice(self, record: records.Notice) -> Iterable[Line]:
        mark, style = _NOTICE_STYLES[record.level]
        yield Line(f"{record.level}: {record.text}", mark, style)

    def _changes(self, indent: int) -> Iterable[Line]:
        if self._changed:
            yield Line("changed since the goal was set, and part of its proof:", "!", "warn", indent=indent)
            yield Line("\n".join(one_line(name, 200) for name in self._changed), indent=indent + 2, quote=True)


_NOTICE_STYLES: Final[dict[str, tuple[str, Style]]] = {
    "info": ("·", "dim"),
    "warning": ("!", "warn"),
    "error": ("!", "bad"),
}

_TELLERS: Final[dict[type, Callable[[Narrator, Any], Iterable[Line]]]] = {
    records.SessionOpened: Narrator._session,
    records.GoalWasSet: Narrator._set,
    records.TermsWereSettled: Narrator._terms,
    records.RunStart: Narrator._run,
    records.ToolUsed: Narrator._tool,
    records.RunSettledRecord: Narrator._settled,
    records.CheckRan: Narrator._check,
    records.VerdictRecord: Narrator._verdict,
    records.EvaluatorFailed: Narrator._failure,
    records.GoalPaused: Narrator._paused,
    records.GoalResumed: Narrator._resumed,
    records.GoalMet: Narrator._met,
    records.Cleared: Narrator._cleared,
    records.Notice: Narrator._notice,
}


def excerpt_lines(items: Sequence[EvidenceExcerpt]) -> list[Line]:
    """Return what the cited entries say."""
    found = []
    for item in items:
        found.append(Line(f"evidence {item.entry}: {item.title}", style="head", indent=2, one_row=True))
        found.append(Line(item.text or "(empty)", indent=2, quote=True))
    return found


def outcome(record: Record) -> str:
    """Return how the work on a goal ended, in one line; empty for a record that ends nothing."""
    if isinstance(record, records.GoalMet):
        cited = ", ".join(entry.id for entry in record.evidence)
        spent = f"{words.count(record.runs, 'run')} · {words.duration(record.seconds)}"
        return one_line(f"goal met · {spent} · evidence {cited} · {record.reason}", 1000)
    if isinstance(record, records.GoalPaused):
        return one_line(f"goal paused · {words.count(record.runs, 'run')} · {record.reason}", 1000)
    if isinstance(record, records.Cleared):
        return one_line(
            f"goal cleared: {record.condition}" if record.condition is not None else "no goal was set", 1000
        )
    return ""


def _done(good: bool, text: str, tail: str) -> Line:
    return Line(text, DONE if good else FAILED, "good" if good else "bad", indent=2, one_row=True, tail=tail)


def _grounds(reason: str, evidence: Sequence[CitedEntry], findings: Sequence[RuleFinding]) -> Iterable[Line]:
    yield Line(reason, indent=4, quote=True)
    if findings:
        yield Line(f"refused by: {', '.join(finding.rule for finding in findings)}", indent=4)
    yield from _evidence(evidence, 4)


def _evidence(evidence: Sequence[CitedEntry], indent: int) -> Iterable[Line]:
    for entry in evidence:
        yield Line(f"cited: {words.cited(entry.id, entry.role, entry.command)}", indent=indent, one_row=True)


def _budget(limits: Limits) -> str:
    return words.budget(limits.max_runs, limits.max_seconds, limits.max_cost)


def _spending(usage: Usage) -> str:
    return words.spending(usage.input + usage.output + usage.cache_read + usage.cache_write, usage.cost)
