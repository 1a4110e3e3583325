from __future__ import annotations

import subprocess
import sys

import pytest

from goalkeeper import __version__
from goalkeeper.cli.main import run


@pytest.mark.parametrize("arguments", [["--version"], ["version"]])
def test_the_version_is_one_line(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 0
    assert capsys.readouterr().out == f"goalkeeper {__version__}\n"


def test_without_a_command_it_shows_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in ("evaluate", "doctor", "setup", "demo"))


def test_an_unknown_command_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bogus"]) == 2
    assert "bogus" in capsys.readouterr().err


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from goalkeeper.cli.main import run; run(['evaluate', '--help']);"
        "print([name for name in ('litellm', 'asyncio', 'goalkeeper.ports') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", timeout=60, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
