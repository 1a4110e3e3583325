"""`pytest tests/scenarios --rewrite` writes the machine's answers into the scenario files, for a person to read."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="write the answers into the scenario files")
