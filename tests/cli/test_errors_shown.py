from __future__ import annotations

from collections.abc import Callable

import pytest
import typer

from goalkeeper.cli.errors_shown import run_command
from goalkeeper.errors import PrerequisiteError, SessionHeldError, UsageError


def ended(action: Callable[[], object], *arguments: str) -> int:
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)

    @app.command()
    def command(number: int = 0) -> object:
        return action()

    return run_command(app, arguments, program="tool")


def raising(error: BaseException) -> Callable[[], object]:
    def action() -> object:
        raise error

    return action


def test_an_error_is_a_message_and_a_hint_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    code = ended(raising(PrerequisiteError("pi was not found.", "Run `goalkeeper setup`.")))

    shown = capsys.readouterr()
    assert code == 4
    assert shown.out == ""
    assert shown.err == "tool: pi was not found.\n  Run `goalkeeper setup`.\n"


def test_what_others_wrote_into_an_error_can_not_move_the_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    ended(raising(SessionHeldError("held by \x1b[2Jevil\r\x07", "one\n\x1b[1mtwo")))

    assert capsys.readouterr().err == "tool: held by evil\n  one\n  two\n"


@pytest.mark.parametrize("arguments", [["--numbr", "1"], ["--number", "x"], ["--number"], ["surplus"]])
def test_a_malformed_command_line_is_a_usage_error(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(lambda: None, *arguments) == 2

    shown = capsys.readouterr().err
    assert shown.startswith("tool: ") and "Try `tool --help`." in shown and "Traceback" not in shown


def test_what_a_command_returns_or_exits_with_is_the_code() -> None:
    assert ended(lambda: 3) == 3
    assert ended(lambda: None) == 0
    assert ended(raising(typer.Exit(5))) == 5


def test_an_interrupt_is_130() -> None:
    assert ended(raising(KeyboardInterrupt())) == 130


def test_a_fault_of_ours_keeps_its_traceback() -> None:
    with pytest.raises(ZeroDivisionError):
        ended(lambda: 1 // 0)


def test_a_usage_error_says_what_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(raising(UsageError("The condition is empty."))) == 2
    assert capsys.readouterr().err == "tool: The condition is empty.\n"
