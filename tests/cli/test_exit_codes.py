from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

import pytest

from goalkeeper.cli.exit_codes import (
    ENDING_CODES,
    ERROR_CODES,
    Ending,
    ExitCode,
    code_of_ending,
    code_of_error,
    code_of_evaluation,
)
from goalkeeper.core.limits import StopReason
from goalkeeper.core.verdict import FailureKind, VerdictWord
from goalkeeper.errors import GoalkeeperError, PeerError, PrerequisiteError, SessionHeldError, UsageError


def all_errors(kind: type[GoalkeeperError] = GoalkeeperError) -> Iterator[type[GoalkeeperError]]:
    for child in kind.__subclasses__():
        yield child
        yield from all_errors(child)


def test_every_branch_of_the_error_tree_is_in_the_table() -> None:
    assert set(GoalkeeperError.__subclasses__()) == set(ERROR_CODES)


@pytest.mark.parametrize("kind", list(all_errors()))
def test_no_error_ends_with_success(kind: type[GoalkeeperError]) -> None:
    assert code_of_error(kind("It failed.")) not in (ExitCode.MET, ExitCode.INTERRUPTED)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageError("x"), 2),
        (PeerError("x", kind="exited"), 3),
        (PrerequisiteError("x"), 4),
        (PeerError("x", kind="unavailable"), 4),
        (SessionHeldError("x"), 5),
    ],
)
def test_each_error_has_its_number(error: GoalkeeperError, code: int) -> None:
    assert code_of_error(error) == code


def test_a_class_below_a_branch_counts_as_the_branch() -> None:
    class Late(SessionHeldError):
        pass

    assert code_of_error(Late("x")) == 5


def test_every_ending_has_a_number_and_only_met_is_0() -> None:
    assert set(ENDING_CODES) == set(get_args(Ending))
    assert [ending for ending in ENDING_CODES if code_of_ending(ending) == 0] == ["met"]


@pytest.mark.parametrize("why", get_args(StopReason))
def test_a_pause_is_3_unless_it_was_an_interrupt(why: StopReason) -> None:
    assert code_of_ending("paused", why) == (130 if why == "interrupted" else 3)


@pytest.mark.parametrize("verdict", [*get_args(VerdictWord), None])
def test_an_evaluation_is_0_only_when_met(verdict: VerdictWord | None) -> None:
    assert code_of_evaluation(verdict) == (0 if verdict == "met" else 3)


@pytest.mark.parametrize("failure", get_args(FailureKind))
def test_an_evaluator_that_can_not_start_lacks_something(failure: FailureKind) -> None:
    assert code_of_evaluation(None, failure) == (4 if failure == "unavailable" else 3)
