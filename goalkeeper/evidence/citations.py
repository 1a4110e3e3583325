"""What is left of an evaluator's claim when code looks at what it cites.

Knows nothing of prompts and models, and does not understand prose: what only a reader can tell is the evaluator's part.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from goalkeeper.core.verdict import (
    CitedEntry,
    Claim,
    EvaluatorFailure,
    Freshness,
    Judgement,
    RuleFinding,
    Terms,
    Verdict,
)
from goalkeeper.evidence.changes import changes_after, edits_beside
from goalkeeper.evidence.commands import same_command
from goalkeeper.evidence.text import fold, one_line
from goalkeeper.evidence.transcript import Entry, Transcript
from goalkeeper.evidence.window import Window

PAUSING_RULES = frozenset({"no_citation", "unknown_id", "not_evidence", "excluded"})
_RESULTS = ("tool_result", "shell")


@dataclass(frozen=True, slots=True)
class Situation:
    """What a claim is judged against.

    Attributes:
        window: exactly what was sent to the evaluator.
        transcript: the branch that the window was made of.
        terms: what was settled when the goal was set.
        goal_entry: id of the entry that set the goal, or of the leaf at that moment; None if the session was empty.
        goal_at: when the goal was set, milliseconds since the epoch.
        cwd: absolute path of the session's folder.
        freshness: stamps, and the work tree as it is now.
        checks: the commands that the controller runs itself.
    """

    window: Window
    transcript: Transcript
    terms: Terms
    cwd: str
    goal_entry: str | None = None
    goal_at: int | None = None
    freshness: Freshness = field(default_factory=Freshness)
    checks: tuple[str, ...] = ()


def judge_claim(
    claim: Claim,
    window: Window,
    transcript: Transcript,
    terms: Terms,
    *,
    goal_entry: str | None,
    goal_at: int | None,
    cwd: str,
    freshness: Freshness,
    checks: Sequence[str] = (),
) -> Judgement:
    """Return the claim as a verdict if every rule agrees, else what the refusing rules make of it.

    The arguments are those of `Situation`. Rules that pause come first: with one of them the result is an
    `EvaluatorFailure` of kind "invalid_citation"; with any other the verdict is unknown.
    """
    at = Situation(window, transcript, terms, cwd, goal_entry, goal_at, freshness, tuple(checks))
    entries = {entry.id: (position, entry) for position, entry in enumerate(transcript.entries)}
    cited = tuple(dict.fromkeys(claim.evidence))
    records = tuple(_record(entry_id, entries) for entry_id in cited)
    findings = tuple(_pausing(claim, cited, at, entries))
    if findings:
        reason = f"The evaluator's verdict ({claim.verdict}) can't be used: {_sentences(findings)}"
        return EvaluatorFailure("invalid_citation", reason, findings, claim.verdict, records)
    if claim.verdict == "met":
        findings = tuple(_doubts(claim, [entries[entry_id] for entry_id in cited], at))
    if findings:
        reason = f"Completion is not proven: {_sentences(findings)}"
        return Verdict("unknown", reason, claim.basis, records, findings, claim.verdict)
    return Verdict(claim.verdict, claim.reason, claim.basis, records, (), claim.verdict)


def check_failed(command: str, exit_code: int | None, output: str, *, tail: int = 2_000) -> Verdict:
    """Return the verdict of a `--check` that did not exit 0: the end of its output is the guidance.

    Args:
        command: the check.
        exit_code: None when it was cancelled or ran out of time.
        output: what it printed, cleaned.
        tail: characters of the output that are kept.
    """
    ended = "did not end" if exit_code is None else f"exited {exit_code}"
    detail = f"the check `{command}` {ended}"
    end = output.strip()[-tail:]
    reason = f"check_failed: {detail}." + (f" The end of its output:\n{end}" if end else "")
    return Verdict("not_met", reason, findings=(RuleFinding("check_failed", detail),))


def content_digest(text: str) -> str:
    """Return the sha-256 (hex) by which the journal names an entry's content."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _record(entry_id: str, entries: dict[str, tuple[int, Entry]]) -> CitedEntry:
    if entry_id not in entries:
        return CitedEntry(entry_id, "unknown")
    entry = entries[entry_id][1]
    return CitedEntry(entry_id, entry.kind, content_digest(entry.text), entry.command)


def _sentences(findings: Sequence[RuleFinding]) -> str:
    return "; ".join(f"{finding.detail} ({finding.rule})" for finding in findings) + "."


# ---- rules that pause -----------------------------------------------------------------------------------------


def _pausing(
    claim: Claim, cited: tuple[str, ...], at: Situation, entries: dict[str, tuple[int, Entry]]
) -> Iterator[RuleFinding]:
    met = claim.verdict == "met"
    if met and not cited:
        yield RuleFinding("no_citation", "it cites nothing")
    for entry_id in cited:
        found = entries.get(entry_id)
        if at.window.find(entry_id) is None or found is None:
            yield _not_sent(entry_id, found[1] if found else None, met)
        elif met and claim.basis == "tool" and found[1].kind not in _RESULTS:
            yield RuleFinding("not_evidence", f"{entry_id} is {_called(found[1])}, not a result")
    if met and cited and claim.basis == "answer" and not any(_is_answer(entries.get(i), at) for i in cited):
        yield RuleFinding("not_evidence", "no cited entry is text that the worker wrote after the goal was set")


def _not_sent(entry_id: str, entry: Entry | None, met: bool) -> RuleFinding:
    """Name the rule for an id that the evaluator was not sent: some such entries have a rule of their own."""
    if met and entry is not None and entry.excluded:
        return RuleFinding("excluded", f"{entry_id} is a shell execution that is excluded from the worker's context")
    if met and entry is not None and entry.kind in ("summary", "extension"):
        return RuleFinding("not_evidence", f"{entry_id} is {_called(entry)}, not a result")
    return RuleFinding("unknown_id", f"{one_line(entry_id, 60)} is no entry that the evaluator was shown")


def _called(entry: Entry) -> str:
    if entry.kind == "assistant":
        return "a call without its result" if entry.calls and not entry.text.strip() else "the worker's own text"
    names = {"user": "a user message", "summary": "a summary", "extension": "a message of an extension"}
    return names.get(entry.kind, f"an entry of kind {entry.kind}")


def _is_answer(found: tuple[int, Entry] | None, at: Situation) -> bool:
    if found is None:
        return False
    position, entry = found
    return entry.kind == "assistant" and bool(entry.text.strip()) and not _before_goal(position, entry, at)


# ---- rules that make a met unknown ----------------------------------------------------------------------------


def _doubts(claim: Claim, cited: Sequence[tuple[int, Entry]], at: Situation) -> Iterator[RuleFinding]:
    if claim.basis == "answer" and at.terms.basis == "tool":
        yield RuleFinding(
            "weaker_basis", "the goal speaks of external state, which the worker's own answer can't prove"
        )
    yield from _absent_quotes(claim, at.window)
    results = [(position, entry) for position, entry in cited if entry.kind in _RESULTS]
    for position, entry in results:
        yield from _result_doubts(position, entry, at)
    for _, entry in cited:
        if entry.id in at.transcript.edited:
            yield RuleFinding("context_edited", f"{entry.id} was edited out of the worker's context")
    yield from _other_commands([entry for _, entry in results], at)
    for _, entry in results:
        yield from _truncated(entry, at)


def _absent_quotes(claim: Claim, window: Window) -> Iterator[RuleFinding]:
    for entry_id, quote in claim.quotes:
        wanted = fold(quote)
        shown = window.find(entry_id)
        if wanted and (shown is None or wanted not in fold(shown.shown)):
            yield RuleFinding("quote_absent", f"“{one_line(quote, 80)}” does not stand in {one_line(entry_id, 60)}")


def _result_doubts(position: int, entry: Entry, at: Situation) -> Iterator[RuleFinding]:
    problem = _problem(entry, at)
    if problem:
        yield RuleFinding("is_error", f"{entry.id} {problem}")
    failed = _failed_later(position, entry, at)
    if failed:
        yield RuleFinding("contradicted", f"what {entry.id} ran failed later, in {failed}")
    if _before_goal(position, entry, at):
        yield RuleFinding("before_goal", f"{entry.id} is older than the goal; run it again")
    change = changes_after(position, entry, at.transcript, at.freshness)
    if change:
        yield RuleFinding("later_change", change)
    beside = edits_beside(entry, at.transcript)
    if beside:
        yield RuleFinding("same_message_change", f"{beside} was changed in the same message that called {entry.id}")


def _problem(entry: Entry, at: Situation) -> str:
    """Say why a result is an error, or return an empty string."""
    stamp = at.freshness.stamps.get(entry.id)
    code = entry.exit_code if entry.exit_code is not None else (stamp.exit_code if stamp else None)
    if entry.cancelled:
        return "was cancelled"
    if code not in (0, None):
        return f"exited {code}"
    if entry.is_error:
        return "is an error"
    return "has no exit code" if entry.kind == "shell" and code is None else ""


def _failed_later(position: int, entry: Entry, at: Situation) -> str:
    """Return the id of a later failure of the same command, or of the same call of another tool; empty if none."""
    for later in at.transcript.entries[position + 1 :]:
        if later.kind in _RESULTS and _problem(later, at) and _same_run(entry, later, at):
            return later.id
    return ""


def _same_run(one: Entry, other: Entry, at: Situation) -> bool:
    if one.command is not None or other.command is not None:
        return same_command(one.command, other.command, at.cwd)
    if one.tool_name is None or one.tool_name != other.tool_name:
        return False
    arguments = _arguments(one, at.transcript)
    return arguments is not None and arguments == _arguments(other, at.transcript)


def _arguments(entry: Entry, transcript: Transcript) -> str | None:
    for caller in transcript.entries:
        if caller.id == entry.call_entry:
            return next((call.arguments for call in caller.calls if call.call_id == entry.call_id), None)
    return None


def _before_goal(position: int, entry: Entry, at: Situation) -> bool:
    """Whether an entry is older than the goal.

    The place on the branch decides. A shell execution of a busy session is put there later than it ran, so its time
    counts as well; and time alone where the goal's own entry is not at hand.
    """
    older = at.goal_at is not None and entry.at < at.goal_at
    for index, other in enumerate(at.transcript.entries):
        if other.id == at.goal_entry:
            return position <= index or (entry.kind == "shell" and older)
    return older


def _other_commands(results: Sequence[Entry], at: Situation) -> Iterator[RuleFinding]:
    for proof in at.terms.proofs:
        if not any(same_command(entry.command, proof, at.cwd) for entry in results):
            yield RuleFinding(
                "other_command",
                f"the goal names `{one_line(proof, 200)}` as its proof, and no cited result is of exactly that command",
            )


def _truncated(entry: Entry, at: Situation) -> Iterator[RuleFinding]:
    shown = at.window.find(entry.id)
    if not entry.truncated and not (shown and shown.cut):
        return
    if any(same_command(entry.command, named, at.cwd) for named in (*at.terms.proofs, *at.checks)):
        return
    by = "before it was stored" if entry.truncated else "to fit the evaluator's window"
    yield RuleFinding("truncated", f"the output of {entry.id} was cut {by}; run a check with a shorter output")
