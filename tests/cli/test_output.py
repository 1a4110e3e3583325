"""Standard streams that are not there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CALLS = [
    ("goalkeeper.cli.goal", "", 0),
    ("goalkeeper.cli.goal", "--json", 0),
    ("goalkeeper.cli.goal", "log", 0),
    ("goalkeeper.cli.goal", "clear", 0),
    ("goalkeeper.cli.goal", "--max-runs 0 x", 2),
    ("goalkeeper.cli.main", "version", 0),
]


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize(("module", "arguments", "code"), CALLS)
def test_a_command_whose_standard_streams_are_closed_ends_as_it_would_with_them(
    module: str, arguments: str, code: int, closed: str, tmp_path: Path
) -> None:
    done = subprocess.run(
        ["sh", "-c", f'"$PYTHON" -m {module} {arguments} {closed}'],
        cwd=tmp_path,
        env={**os.environ, "PYTHON": sys.executable},
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert "Traceback" not in done.stderr
    assert done.returncode == code


def test_what_is_opened_later_does_not_become_a_closed_stream() -> None:
    code = (
        "import os; from goalkeeper.cli.output import open_closed_streams; open_closed_streams();"
        "os._exit(os.open(os.devnull, os.O_RDONLY))"
    )
    done = subprocess.run(
        ["sh", "-c", '"$PYTHON" -c "$CODE" <&- >&- 2>&-'],
        env={**os.environ, "PYTHON": sys.executable, "CODE": code},
        timeout=60,
        check=False,
    )
    assert done.returncode > 2
