"""When two shell commands count as the same one, and which ones a condition names.

Knows nothing of entries or goals, and runs nothing.
"""

from __future__ import annotations

import posixpath
import re

# `cd DIR &&` with a DIR that the shell takes literally: no variable, no glob, no substitution, no home folder.
_CD = re.compile(
    r"""cd[ \t]+("[^"$`\\\n]*"|'[^'\n]*'|[^\s"'$`\\;&|<>()*?\[\]{}~#!-][^\s"'$`\\;&|<>()*?\[\]{}~#!]*)\s*&&\s*"""
)
_NAMED_PROOF = re.compile(
    r"""(`+)(?!`)([^`\n]+)\1\s+(?:now\s+)?(?:
        (?P<exits>exits\s+(?:with\s+)?(?:(?:exit\s+)?(?:code|status)\s+)?(?:0|zero)\b)
        | returns\s+(?:(?:exit\s+)?(?:code|status)\s+)?(?:0|zero)\b
        | (?:succeeds|passes)(?=\s*(?:$|[.,;:!)]|(?:and|then|but|again)\b))
    )""",
    re.VERBOSE | re.IGNORECASE,
)
_PROGRAMS = re.compile(
    "ant|bash|bats|bazel|behave|black|buck|bun|bundle|cargo|cmake|composer|coverage|ctest|curl|deno|docker|dotnet|eslint"
    "|flake8|git|go|gradle|helm|hatch|java|jest|just|kubectl|make|mix|mocha|mvn|mypy|ninja|node|nox|npm|npx|php|phpunit"
    "|playwright|pnpm|poetry|pre-commit|prettier|pylint|pyright|pytest|python[23]?|rake|rspec|ruby|ruff|sbt|sh|shellcheck"
    "|swift|terraform|tox|tsc|uv|uvx|vitest|yarn|zig"
)
_CALL = re.compile(r"\w+\(")
_STDERR_TOO = re.compile(r"[ \t]+2>&1$")


def normalise(command: str, cwd: str) -> str:
    """Return the command as it is compared with others.

    White space around it goes, one trailing `2>&1` goes, and one leading `cd DIR &&` goes when DIR is the session's
    folder. Anything else (a pipe, `||`, `;`, a redirect, another option) stays and makes it another command.

    Args:
        command: the command's text.
        cwd: absolute path of the session's folder.
    """
    command = command.strip()
    found = _CD.match(command)
    if found and _is_folder(found[1], cwd):
        command = command[found.end() :]
    return _STDERR_TOO.sub("", command).strip()


def same_command(one: str | None, other: str | None, cwd: str) -> bool:
    """Whether both are the same command; no command is the same as none."""
    return one is not None and other is not None and normalise(one, cwd) == normalise(other, cwd)


def named_proofs(condition: str) -> tuple[str, ...]:
    """Return the commands that a condition itself names as its proof, read without a model.

    Only what can't be meant otherwise: a command as a code span, followed by words that say that it succeeds, as in
    "`pytest -q` exits 0". A test passes, a function returns 0 and a request succeeds, too: with such words the span
    must begin with a program.

    Args:
        condition: the user's words.
    """
    found = ((match[2].strip(), match["exits"]) for match in _NAMED_PROOF.finditer(condition))
    return tuple(dict.fromkeys(span for span, exits in found if _runs_program(span, surely=bool(exits))))


def is_program(word: str) -> bool:
    """Whether a word is the name of a program that commonly shows that something works."""
    return _PROGRAMS.fullmatch(word) is not None


def _runs_program(span: str, *, surely: bool) -> bool:
    first = span.split(maxsplit=1)[0] if span else ""
    if surely:
        return bool(first) and not _CALL.match(first)
    return is_program(first) or first.startswith("./")


def _is_folder(word: str, cwd: str) -> bool:
    if word[0] in "\"'":
        word = word[1:-1]
    if not word or not cwd or ".." in word.split("/"):  # `..` behind a link leads elsewhere than its text says
        return False
    return posixpath.normpath(posixpath.join(cwd, word)) == posixpath.normpath(cwd)
