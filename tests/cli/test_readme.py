from __future__ import annotations

import re
from pathlib import Path

import pytest

from goalkeeper.cli.exit_codes import ExitCode
from goalkeeper.cli.goal import run as run_goal
from goalkeeper.cli.main import run

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def options_in(text: str) -> set[str]:
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text))


def test_the_exit_codes_are_those_of_the_table() -> None:
    rows = re.findall(r"^\| (\d+) \| ", README, re.MULTILINE)
    assert [int(row) for row in rows] == sorted(ExitCode)


def test_the_options_table_is_complete_and_names_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_goal(["--help"]) == 0
    known = options_in(capsys.readouterr().out) - {"--help"}
    section = README.partition("| option of `goal`")[2].partition("## Exit codes")[0]
    of_pi = {"--tools"}

    named = options_in(section) - of_pi
    assert named - known == set()
    assert known - named <= {"--since", "--continue", "--cwd"}  # of `goal log`; named by their short forms


def test_help_names_values_as_people_do_and_not_the_types_of_python(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_goal(["--help"]) == 0
    shown = capsys.readouterr().out
    assert "--run-timeout TIME" in shown
    assert "<" not in shown and "[[" not in shown


def test_every_command_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    listed = re.findall(r"^  ([a-z]+) {2,}", capsys.readouterr().out.partition("Commands:")[2], re.MULTILINE)
    assert listed and all(f"`{name}`" in README or f"goalkeeper {name}" in README for name in listed)


@pytest.mark.parametrize("page", ["README.md", *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md")))])
def test_links_to_files_lead_somewhere(page: str) -> None:
    path = ROOT / page
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8"))
    assert [link for link in links if not (path.parent / link).exists()] == []
