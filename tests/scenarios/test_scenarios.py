"""Every scenario file says what the machine says, and every numbered rule of the machine has a scenario."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from goalkeeper.testing.scenario import Scenario, rewrite

FILES = sorted(Path(__file__).parent.glob("*.txt"))

SECTION_2_ROWS = range(1, 14)
"""The rows of the table of the goal's life cycle, from the top."""

SECTION_8_RULES = (1, 2, 3, 4, 7, 8, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21)
"""The source's rules that the machine decides; 5, 6, 9 and 10 are about the evaluator's reading and window."""

OTHERS = (
    "spec 2 budget", "spec 2 time", "spec 2 cost", "spec 2 no progress", "spec 4 checks", "spec 4 terms",
    "spec 7 restart", "spec 7 interrupt", "spec 7 question", "F24", "F32", "F35", "F39", "F52",
)  # fmt: skip

RULES = (
    *(f"spec 2.{number}" for number in SECTION_2_ROWS),
    *(f"spec 8.{number}" for number in SECTION_8_RULES),
    *OTHERS,
)


def rules_of(path: Path) -> set[str]:
    first = path.read_text(encoding="utf-8").splitlines()[0]
    return {rule.strip() for rule in first.removeprefix("#").split(",")}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_machine_answers_as_the_scenario_says(path: Path, request: pytest.FixtureRequest) -> None:
    text = path.read_text(encoding="utf-8")
    now = rewrite(text)
    if request.config.getoption("--rewrite", default=False):
        path.write_text(now, encoding="utf-8")
    else:
        assert now == text


@pytest.mark.parametrize("rule", RULES)
def test_every_numbered_rule_of_the_machine_has_a_scenario(rule: str) -> None:
    assert any(rule in rules_of(path) for path in FILES)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_scenario_names_only_rules_that_exist(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    assert rules_of(path) <= set(RULES)
    assert re.match(r"# [A-Z].*\.$", lines[1]), "the second line says the behaviour in a sentence"


def test_a_wrong_answer_is_noticed() -> None:
    text = FILES[0].read_text(encoding="utf-8")
    assert rewrite(text.replace("  sending", "  running", 1)) != text.replace("  sending", "  running", 1)


@pytest.mark.parametrize(
    "command", ["fly", "set x wings=2", "run walked", "judged failed tired why"], ids=lambda command: command
)
def test_a_command_outside_the_language_is_an_error(command: str) -> None:
    with pytest.raises(ValueError):
        Scenario().run(command)


def test_a_line_that_is_no_part_of_the_language_is_an_error() -> None:
    with pytest.raises(ValueError):
        rewrite("set x\n")
