"""Finds the git checkout that a folder belongs to, by looking at files alone.

Knows nothing of fingerprints, and runs no program: git's own discovery refuses folders of other owners and obeys
variables and settings that have no say here.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


class NoTreeError(Exception):
    """There is no work tree to look at, or git can't read it; the message is the reason, for a person."""


@dataclass(frozen=True, slots=True)
class Checkout:
    """One work tree of a git repository.

    Attributes:
        root: the top folder of the work tree.
        git_dir: the folder with this work tree's index and HEAD.
        common_dir: the folder with the objects and settings, shared by linked work trees.
    """

    root: Path
    git_dir: Path
    common_dir: Path

    @property
    def index(self) -> Path:
        """The index file, which a fresh repository does not have yet."""
        return self.git_dir / "index"


def find_checkout(cwd: Path) -> Checkout:
    """Return the checkout that contains `cwd`.

    Raises:
        NoTreeError: there is none: no repository, a bare one, or a broken pointer to one.
    """
    start = cwd.resolve()
    for folder in (start, *start.parents):
        checkout = checkout_at(folder)
        if checkout is not None:
            return checkout
        if _is_git_dir(folder):
            raise NoTreeError(f"{folder} is a bare repository or the inside of one")
    raise NoTreeError(f"{start} is not in a git checkout")


def checkout_at(root: Path) -> Checkout | None:
    """Return the checkout whose top folder is `root`, None if there is none.

    Raises:
        NoTreeError: a `.git` file points to something that is no repository.
    """
    dot_git = root / ".git"
    if dot_git.is_dir():
        return Checkout(root, dot_git, _common_dir(dot_git)) if _is_git_dir(dot_git) else None
    if not dot_git.is_file():
        return None
    text = dot_git.read_bytes().decode("utf-8", "surrogateescape")
    if not text.startswith("gitdir:"):
        raise NoTreeError(f"{dot_git} does not name a repository")
    git_dir = (root / text.removeprefix("gitdir:").strip()).resolve()
    if not _is_git_dir(git_dir):
        raise NoTreeError(f"{dot_git} names {git_dir}, which is not a repository")
    return Checkout(root, git_dir, _common_dir(git_dir))


def _is_git_dir(folder: Path) -> bool:
    head = folder / "HEAD"
    if not (head.is_file() or head.is_symlink()):
        return False
    return (folder / "commondir").is_file() or ((folder / "objects").is_dir() and (folder / "refs").is_dir())


def _common_dir(git_dir: Path) -> Path:
    pointer = git_dir / "commondir"
    if not pointer.is_file():
        return git_dir
    text = pointer.read_bytes().decode("utf-8", "surrogateescape").strip()
    return (git_dir / text).resolve()
