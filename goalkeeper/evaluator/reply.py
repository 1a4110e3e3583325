"""A model's answer -> one claim or the terms of a goal, or the reason why it is neither.

Knows nothing of models, windows or rules: an answer is read here, not believed.
"""

from __future__ import annotations

import json
import re
from typing import Any, Literal, cast

from goalkeeper.core.verdict import Basis, Claim, EvaluatorFailure, Terms, VerdictWord
from goalkeeper.evidence.commands import is_program, named_proofs
from goalkeeper.evidence.text import clean, one_line

Finish = Literal["stop", "length", "error"]

_THINKING = re.compile(r"\s*<(think|thinking)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_FENCE = re.compile(r"^[ \t]*(```+|~~~+)[ \t]*([\w-]*)[ \t]*\n(.*?)\n?[ \t]*\1[ \t]*$", re.DOTALL | re.MULTILINE)
_WORDS: tuple[VerdictWord, ...] = ("met", "not_met", "unknown")
_BASES: tuple[Basis, ...] = ("tool", "answer")
_MAX_REASON = 4_000


class _Refused(Exception):
    """An answer that is not what was asked for; the text says why, in the middle of a sentence."""


def parse_claim(text: str, finish: Finish = "stop", error: str = "") -> Claim | EvaluatorFailure:
    """Read a verdict.

    One JSON object is read: bare, in one Markdown fence with or without prose around it, or either of these after a
    closed thinking block. Anything else is a failure of the evaluator, and evidence of nothing.

    Args:
        text: the model's whole answer.
        finish: how the answer ended, see `ModelReply`.
        error: the provider's words when it ended in an error.
    """
    ended = _ended_badly(finish, error)
    if ended is not None:
        return ended
    try:
        return _claim(_one_object(text))
    except _Refused as refused:
        return EvaluatorFailure("malformed", f"The evaluator's answer is not one verdict: {refused}.")


def parse_terms(text: str, finish: Finish, condition: str, error: str = "") -> Terms | EvaluatorFailure:
    """Read what a model says of a condition alone: its basis, and the commands that the condition names as proof.

    A command is kept only if it stands verbatim in the condition; what is not a command there is dropped silently. What
    the condition names beyond doubt (see `named_proofs`) counts, named by the model or not.

    Args:
        text: the model's whole answer.
        finish: how the answer ended, see `ModelReply`.
        condition: the condition that was asked about.
        error: the provider's words when it ended in an error.
    """
    ended = _ended_badly(finish, error)
    if ended is not None:
        return ended
    try:
        answer = _one_object(text)
        basis = _word(answer, "basis", _BASES)
    except _Refused as refused:
        return EvaluatorFailure("malformed", f"The evaluator's answer does not settle the goal's terms: {refused}.")
    answered = answer.get("proofs", answer.get("commands"))
    commands = [name for name in answered if isinstance(name, str)] if isinstance(answered, list) else []
    plain = named_proofs(condition)
    known = [_accepted(command, condition) for command in commands]
    accepted = [command for command in known if command and not any(command in whole for whole in plain)]
    # What stands in the condition beyond doubt holds whatever a model makes of it.
    return Terms(cast("Basis", "tool" if plain else basis), tuple(dict.fromkeys((*plain, *accepted))), "evaluator")


def _ended_badly(finish: Finish, error: str) -> EvaluatorFailure | None:
    if finish == "length":
        return EvaluatorFailure("cut_off", "The provider cut the evaluator's answer at its length limit.")
    if finish == "error":
        words = one_line(error, 300) or "no further words"
        return EvaluatorFailure("provider_error", f"The evaluator's answer ended in a provider error: {words}")
    return None


# ---- one object -----------------------------------------------------------------------------------------------


def _one_object(text: str) -> dict[str, Any]:
    answer = _THINKING.sub("", text, count=1) if _THINKING.match(text) else text
    if not answer.strip():
        raise _Refused("it is empty")
    fences = _FENCE.findall(answer)
    if len(fences) > 1:
        raise _Refused("it holds more than one fenced block")
    if fences:
        outside = _FENCE.sub("", answer)
        if "{" in outside:
            raise _Refused("it holds another object outside the fenced one")
        answer = fences[0][2]
    try:
        value = json.loads(answer, object_pairs_hook=_unique, parse_constant=_no_constant)
    except (ValueError, RecursionError) as problem:
        raise _Refused(_why(answer, problem)) from problem
    if not isinstance(value, dict):
        raise _Refused("it is JSON, but no object")
    return value


def _why(answer: str, problem: Exception) -> str:
    if "{" not in answer:
        return f"it is prose without a JSON object ({one_line(answer, 80)})"
    if isinstance(problem, json.JSONDecodeError) and problem.msg == "Extra data":
        return "something follows the JSON object"
    return f"it is no valid JSON ({one_line(str(problem), 120)})"


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


# ---- its fields -----------------------------------------------------------------------------------------------


def _claim(answer: dict[str, Any]) -> Claim:
    verdict = _word(answer, "verdict", _WORDS)
    reason = answer.get("reason")
    if not isinstance(reason, str):
        raise _Refused("`reason` is missing or no text")
    reason = clean(reason).strip()[:_MAX_REASON]
    if not reason:
        raise _Refused("`reason` is empty")
    basis = _word(answer, "basis", _BASES)
    evidence = answer.get("evidence")
    if not isinstance(evidence, list) or not all(isinstance(entry, str) for entry in evidence):
        raise _Refused("`evidence` is missing or no list of texts")
    return Claim(
        cast("VerdictWord", verdict), reason, cast("Basis", basis), tuple(evidence), _quotes(answer.get("quotes"))
    )


def _quotes(quotes: object) -> tuple[tuple[str, str], ...]:
    """Read quotes: an object from id to text, or the list of `{"id", "text"}` that a strict schema needs instead."""
    if quotes is None:
        return ()
    if isinstance(quotes, dict):
        pairs = list(quotes.items())
    elif isinstance(quotes, list) and all(isinstance(quote, dict) for quote in quotes):
        pairs = [(quote.get("id"), quote.get("text")) for quote in quotes]
    else:
        raise _Refused("`quotes` is no object of texts")
    if not all(isinstance(key, str) and isinstance(text, str) for key, text in pairs):
        raise _Refused("`quotes` holds something that is no text")
    return tuple(pairs)


def _word(answer: dict[str, Any], key: str, words: tuple[str, ...]) -> str:
    value = answer.get(key)
    if not isinstance(value, str) or value not in words:
        said = "missing" if value is None else f"{one_line(json.dumps(value), 60)}"
        raise _Refused(f"`{key}` is {said}, not one of {', '.join(words)}")
    return value


# ---- commands in a condition ----------------------------------------------------------------------------------


def _accepted(command: str, condition: str) -> str:
    """Return the command as the condition has it, or an empty string if the condition does not name it."""
    command = command.strip().strip("`").strip()
    if not command or not _stands_in(command, condition):
        return ""
    spans = [found[2].strip() for found in re.finditer(r"(`+)(.+?)\1", condition, re.DOTALL)]
    if command in spans:
        return command
    for span in spans:  # a command without the options that the condition gives it is another command
        if span.startswith(f"{command} ") and not re.match(r"[ ]+(?:&&|\|\|?|;|>)", span[len(command) :]):
            return span
    # In plain words, what is no program by its name must look like a command otherwise.
    program = command.split()[0]
    return command if is_program(program) or re.search(r"[./=\d]", program) else ""


def _stands_in(command: str, condition: str) -> bool:
    return bool(re.search(rf"(?<![\w./-]){re.escape(command)}(?![\w/-]|\.\w)", condition))
