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
        exits\s+(?:with\s+)?(?:(?:exit\s+)?(?:code|status)\s+)?(?:0|zero)\b
        | returns\s+(?:(?:exit\s+)?(?:code|status)\s+)?(?:0|zero)\b
        | (?:succeeds|passes)(?=\s*(?:$|[.,;:!)]|(?:and|then|but|again)\b))
    )""",
    re.VERBOSE | re.IGNORECASE,
)
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
    "`pytest -q` exits 0".

    Args:
        condition: the user's words.
    """
    return tuple(dict.fromkeys(found[2].strip() for found in _NAMED_PROOF.finditer(condition)))


def _is_folder(word: str, cwd: str) -> bool:
    if word[0] in "\"'":
        word = word[1:-1]
    if not word or not cwd or ".." in word.split("/"):  # `..` behind a link leads elsewhere than its text says
        return False
    return posixpath.normpath(posixpath.join(cwd, word)) == posixpath.normpath(cwd)
