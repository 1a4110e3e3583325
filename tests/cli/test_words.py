"""Durations, costs and next steps as people read them."""

from __future__ import annotations

from typing import get_args

import pytest

from goalkeeper.cli import words
from goalkeeper.core.limits import StopReason
from goalkeeper.core.verdict import FailureKind, VerdictWord
from goalkeeper.evidence.transcript import EntryKind


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-3.0, "0.0s"),
        (3, "3s"),
        (0.44, "0.4s"),
        (9.9, "9.9s"),
        (9.96, "9s"),
        (12, "12s"),
        (59.9, "59s"),
        (60, "1m"),
        (130, "2m 10s"),
        (1800, "30m"),
        (3600, "1h"),
        (11_100, "3h 5m"),
        (187_200, "2d 4h"),
    ],
)
def test_a_duration_has_its_two_largest_units(seconds: float, text: str) -> None:
    assert words.duration(seconds) == text


@pytest.mark.parametrize(
    ("usd", "text"),
    [(None, "cost unknown"), (0.0, "$0.0000"), (0.00001, "under $0.0001"), (0.0231, "$0.0231"), (12.5, "$12.50")],
)
def test_an_unknown_cost_is_never_zero(usd: float | None, text: str) -> None:
    assert words.cost(usd) == text


@pytest.mark.parametrize(
    ("number", "usd", "text"),
    [
        (0, 0.0, "no tokens"),
        (0, None, "0 tokens · cost unknown"),
        (1, None, "1 token · cost unknown"),
        (999, 0.5, "999 tokens · $0.5000"),
        (15_800, 0.5, "15.8k tokens · $0.5000"),
        (999_999, 1.0, "1.0M tokens · $1.00"),
    ],
)
def test_tokens_and_cost_stand_together(number: int, usd: float | None, text: str) -> None:
    assert words.spending(number, usd) == text


@pytest.mark.parametrize(
    ("table", "names"),
    [
        (words.VERDICTS, get_args(VerdictWord)),
        (words.VERDICT_MARKS, get_args(VerdictWord)),
        (words.FAILURES, get_args(FailureKind)),
        (words.ROLES, (*get_args(EntryKind), "unknown")),
    ],
)
def test_every_word_of_the_machine_has_words_for_people(table: dict[str, str], names: tuple[str, ...]) -> None:
    assert set(table) == set(names)


@pytest.mark.parametrize("why", get_args(StopReason))
def test_every_pause_says_how_to_go_on(why: str) -> None:
    assert "`goal resume" in words.next_step(why)
    assert "`goal resume --session 0198aa" in words.next_step(why, "0198aa")


def test_a_budget_names_a_price_only_where_there_is_one() -> None:
    assert words.budget(1, 1800, None) == "1 run, 30m"
    assert words.budget(10, 90, 2.5) == "10 runs, 1m 30s, $2.5"
