"""What a user wants of a goal, validated once.

Knows nothing of how it is carried out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from goalkeeper.core.limits import DEFAULT_MAX_RUNS, DEFAULT_MAX_SECONDS, Limits
from goalkeeper.core.state import EvaluatorName
from goalkeeper.core.verdict import Basis, Terms
from goalkeeper.errors import UsageError
from goalkeeper.evaluator.prompt import MAX_CONDITION
from goalkeeper.evidence.commands import named_proofs

CLEAR_WORDS: Final = frozenset({"clear", "stop", "off", "reset", "none", "cancel"})
"""Aliases of `goal clear`, as the pi extension has them."""

RESERVED_WORDS: Final = CLEAR_WORDS | {"resume", "log", "explain", "status", "help"}
"""Words that never become a condition, in any case and with spaces around."""

NEW_SESSION: Final = "new"
CONTINUE_SESSION: Final = "continue"
NO_SESSION: Final = "ephemeral"


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits by the user's word; None keeps what is there.

    Attributes:
        max_runs: completed runs, from 1.
        max_minutes: awake and attached minutes, above 0.
        max_cost: USD, above 0.
    """

    max_runs: int | None = None
    max_minutes: float | None = None
    max_cost: float | None = None

    def validate(self) -> None:
        """Raise UsageError for a budget that allows nothing."""
        if self.max_runs is not None and self.max_runs < 1:
            raise UsageError(f"--max-runs is {self.max_runs}, but a goal needs at least 1 run.")
        for name, value in (("--max-minutes", self.max_minutes), ("--max-cost", self.max_cost)):
            if value is not None and not 0 < value < float("inf"):
                raise UsageError(f"{name} is {value:g}, but it must be above 0.")

    @property
    def max_seconds(self) -> float | None:
        """Return the minutes as seconds."""
        return None if self.max_minutes is None else self.max_minutes * 60

    def limits(self) -> Limits:
        """Return the limits of a new goal."""
        return Limits(
            DEFAULT_MAX_RUNS if self.max_runs is None else self.max_runs,
            DEFAULT_MAX_SECONDS if self.max_seconds is None else self.max_seconds,
            self.max_cost,
        )


def without_secrets(arguments: Sequence[str]) -> tuple[str, ...]:
    """Return a command line's arguments as they may be stored or shown: without an API key."""
    kept: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        if argument == "--api-key":
            next(rest, None)
        elif not argument.startswith("--api-key="):
            kept.append(argument)
    return tuple(kept)


@dataclass(frozen=True, slots=True)
class WorkerChoice:
    """Which pi works, and where.

    Attributes:
        cwd: absolute path of the folder.
        session: "new", "continue", "ephemeral", or a session's path or id.
        pi_args: what stood behind `--`, handed to pi as it is.
    """

    cwd: str
    session: str = NEW_SESSION
    pi_args: Sequence[str] = ()

    @property
    def session_path(self) -> str | None:
        """Return the absolute path if the session is a path, None for an id or one of the three words."""
        if self.session in (NEW_SESSION, CONTINUE_SESSION, NO_SESSION):
            return None
        is_path = "/" in self.session or self.session.endswith(".jsonl")
        return str(Path(self.session).absolute()) if is_path else None


@dataclass(frozen=True, slots=True)
class Renewal:
    """What a user gives with a resume; None keeps what is there.

    Attributes:
        budget: other limits.
        evaluator: another evaluator, for one that failed.
        model: another model of the evaluator.
    """

    budget: Budget = field(default_factory=Budget)
    evaluator: EvaluatorName | None = None
    model: str | None = None


@dataclass(frozen=True, slots=True)
class GoalConfig:
    """A new goal.

    Attributes:
        condition: the user's words.
        budget: its limits.
        basis: settled by hand, None to ask the evaluator.
        proofs: commands named as proof by hand.
        checks: commands that the controller runs after each run.
        ignore: globs that freshness leaves out.
        evaluator: who gives the verdict.
        model: the evaluator's model, None for the session's current model.
        run_timeout: seconds after which a run is aborted.
    """

    condition: str
    budget: Budget = field(default_factory=Budget)
    basis: Basis | None = None
    proofs: Sequence[str] = ()
    checks: Sequence[str] = ()
    ignore: Sequence[str] = ()
    evaluator: EvaluatorName = "litellm"
    model: str | None = None
    run_timeout: float | None = None

    def validate(self) -> None:
        """Raise UsageError for a goal that can't be pursued."""
        validate_condition(self.condition)
        self.budget.validate()
        for name, commands in (("--check", self.checks), ("--proof", self.proofs), ("--ignore", self.ignore)):
            if any(not command.strip() for command in commands):
                raise UsageError(f"{name} is empty.")
        if self.evaluator == "checks" and not self.checks:
            raise UsageError("--evaluator checks needs at least one --check.")
        if self.basis == "answer" and self.proofs:
            raise UsageError("--proof names a command, so --basis can't be answer.")
        if self.run_timeout is not None and not 0 < self.run_timeout < float("inf"):
            raise UsageError(f"--run-timeout is {self.run_timeout:g}, but it must be above 0 seconds.")

    def terms(self) -> Terms | None:
        """Return what the user settled by hand, None when the evaluator is to be asked.

        Checks alone decide without a model.
        """
        settled = terms_by_hand(self.condition, self.basis, self.proofs)
        return settled or (Terms("tool", (), "default") if self.evaluator == "checks" else None)


def terms_by_hand(condition: str, basis: Basis | None, proofs: Sequence[str]) -> Terms | None:
    """Return the terms that options settle, None when they settle nothing.

    A proof names a command, so the basis is tool then. A basis of tool without a proof takes what the condition itself
    names beyond doubt.
    """
    given = tuple(command.strip() for command in proofs)
    if basis == "answer":
        return Terms("answer", (), "user")
    if basis or given:
        return Terms("tool", given or named_proofs(condition), "user")
    return None


def validate_condition(condition: str) -> None:
    """Raise UsageError for a condition that is empty, reserved or too long for the evaluator to see whole."""
    text = condition.strip()
    if not text:
        raise UsageError("The condition is empty.", 'Say what must be true, e.g. goal "the tests pass".')
    if text.casefold() in RESERVED_WORDS:
        raise UsageError(
            f'"{text}" is a command of goal, so it can\'t be a condition.',
            "Say it in more words; `goal --help` lists the commands.",
        )
    if len(condition) > MAX_CONDITION:
        raise UsageError(
            f"The condition has {len(condition):,} characters; at most {MAX_CONDITION:,} can be shown to the evaluator "
            "whole, and it is never cut.",
            "Put the details into a file and name the file in the condition.",
        )
