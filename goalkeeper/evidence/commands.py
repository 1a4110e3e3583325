"""When two shell commands count as the same one.

Knows nothing of entries or goals, and runs nothing.
"""

from __future__ import annotations

import posixpath
import re

# `cd DIR &&` with a DIR that the shell takes literally: no variable, no glob, no substitution, no home folder.
_CD = re.compile(
    r"""cd[ \t]+("[^"$`\\\n]*"|'[^'\n]*'|[^\s"'$`\\;&|<>()*?\[\]{}~#!-][^\s"'$`\\;&|<>()*?\[\]{}~#!]*)\s*&&\s*"""
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


def _is_folder(word: str, cwd: str) -> bool:
    if word[0] in "\"'":
        word = word[1:-1]
    if not word or not cwd or ".." in word.split("/"):  # `..` behind a link leads elsewhere than its text says
        return False
    return posixpath.normpath(posixpath.join(cwd, word)) == posixpath.normpath(cwd)
