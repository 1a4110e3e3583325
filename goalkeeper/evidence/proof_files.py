"""Which changed files a proof rests on: tests, their configuration, and what a proof or check names.

Knows nothing of git, and reads no file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Literal

from goalkeeper.core.verdict import Terms

ProofMark = Literal["", "test", "test configuration", "named in a proof or check"]

_TEST_FOLDERS = frozenset(
    {"test", "tests", "__tests__", "spec", "specs", "e2e", "testdata", "fixtures", "__snapshots__"}
)
_TEST_NAMES = (
    "test_*.py",
    "*_test.py",
    "conftest.py",
    "*_test.go",
    "*_test.rs",
    "*.test.*",
    "*.spec.*",
    "*_spec.rb",
    "*test.java",
    "*tests.java",
    "*test.kt",
    "*tests.cs",
    "*.bats",
    "*.snap",
)
_CONFIG_NAMES = (
    "pytest.ini", "pyproject.toml", "setup.cfg", "tox.ini", "noxfile.py", ".coveragerc", "mypy.ini", "ruff.toml",
    ".ruff.toml", ".flake8", "makefile", "gnumakefile", "*.mk", "justfile", "package.json", "jest.config.*",
    "vitest.config.*", "playwright.config.*", "karma.conf.*", ".mocharc*", "tsconfig*.json", "eslint.config.*",
    ".eslintrc*", "cargo.toml", "go.mod", "build.gradle*", "pom.xml", "cmakelists.txt", "phpunit.xml*", ".rspec",
    "rakefile", "dockerfile*", "docker-compose*", ".pre-commit-config.yaml", ".gitlab-ci.yml", "azure-pipelines.yml",
    "jenkinsfile",
)  # fmt: skip
_CI_FOLDERS = (".github/workflows/", ".circleci/", ".buildkite/")
_WORD = re.compile(r"[^\s\"'`;|&<>()=]+")


def changed_proof_files(
    changed: Sequence[str], terms: Terms, checks: Sequence[str] = ()
) -> tuple[tuple[str, ProofMark], ...]:
    """Mark the changed files that a proof may rest on.

    Args:
        changed: names of changed files, relative to the session's folder, with `/`.
        terms: what counts as proof.
        checks: the commands that the controller runs itself.

    Returns:
        Each name with its mark, an empty string for an ordinary file; marked files first, else in the given order.
    """
    named = {_plain(word) for command in (*terms.proofs, *checks) for word in _WORD.findall(command)}
    marked = [(name, _mark(name, named)) for name in changed]
    return tuple(sorted(marked, key=lambda pair: pair[1] == ""))


def _mark(name: str, named: set[str]) -> ProofMark:
    plain = _plain(name)
    if plain in named or any(plain.startswith(f"{word}/") for word in named if word not in ("", ".")):
        return "named in a proof or check"
    lowered = plain.lower()
    *folders, base = lowered.split("/")
    if any(fnmatchcase(base, pattern) for pattern in _TEST_NAMES):
        return "test"
    if any(fnmatchcase(base, pattern) for pattern in _CONFIG_NAMES) or lowered.startswith(_CI_FOLDERS):
        return "test configuration"
    return "test" if _TEST_FOLDERS.intersection(folders) else ""


def _plain(name: str) -> str:
    """Drop what does not name the file: `./` before it, a slash or a test's `::name` behind it."""
    return name.split("::")[0].removeprefix("./").rstrip("/")
