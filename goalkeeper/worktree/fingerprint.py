"""The work tree's content as one word: the same word, the same content; two words, the names that differ.

Knows nothing of tools, goals or evidence. See `scan.py` for what counts as content.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
import tempfile
import weakref
from collections.abc import Sequence
from pathlib import Path

from goalkeeper.worktree.checkout import Checkout, NoTreeError, find_checkout
from goalkeeper.worktree.scan import TreeScanner


class WorkTree:
    """The work tree of the git checkout that contains a folder.

    Nothing in the repository is written; scratch files live in a folder of their own until `close` or exit.

    Args:
        cwd: a folder in the checkout.
        ignore: patterns to leave out, as lines of a .gitignore, besides `scan.LEFT_OUT`.
        trees: a folder of ours that keeps the names behind each fingerprint for later processes; it is given up as soon
            as it can't be used. None to forget them.
        own: files that are written with each result, such as the session's; no content, also where they lie in the
            checkout.
    """

    def __init__(
        self,
        cwd: str | Path,
        ignore: Sequence[str] = (),
        trees: Path | None = None,
        own: Sequence[Path] = (),
    ) -> None:
        self._cwd = Path(cwd)
        self._ignore = tuple(ignore)
        self._own = tuple(own)
        self._trees = trees
        self._reason = ""
        self._scanner: TreeScanner | None = None
        self._folder: Path | None = None
        self._finalizer: weakref.finalize[..., WorkTree] | None = None
        self._next: asyncio.Future[str | None] | None = None
        self._pump: asyncio.Task[None] | None = None
        self._git = asyncio.Lock()

    @property
    def reason(self) -> str:
        """Why the last fingerprint was None, for a person; empty if it was not."""
        return self._reason

    async def fingerprint(self) -> str | None:
        """Return the fingerprint of the content as it is now, None if there is none (see `reason`).

        The look behind it began after this call. Calls that wait at the same time share one.
        """
        if self._next is None:
            self._next = asyncio.get_running_loop().create_future()
        if self._pump is None or self._pump.done():
            self._pump = asyncio.create_task(self._run_looks())
        return await asyncio.shield(self._next)

    async def changed(self, old: str, new: str) -> tuple[str, ...]:
        """Return the names of the files that differ, relative to the checkout's top folder, sorted.

        Empty for equal fingerprints, and when a fingerprint of another process names a tree that was not kept.
        """
        if old == new:
            return ()
        async with self._git:
            return await asyncio.to_thread(self._changed, old, new)

    def close(self) -> None:
        """Remove the scratch files. Idempotent; a later call starts anew."""
        self._scanner = None
        if self._finalizer is not None:
            self._finalizer()

    async def _run_looks(self) -> None:
        while self._next is not None:
            async with self._git:
                # Taken at the last moment: whoever asks from here on gets the next look.
                future, self._next = self._next, None
                try:
                    future.set_result(await asyncio.to_thread(self._look))
                except asyncio.CancelledError:
                    future.cancel()
                    raise
                except Exception as error:  # a fault of ours: it belongs to those who wait, not to this task
                    future.set_exception(error)

    def _look(self) -> str | None:
        try:
            checkout = find_checkout(self._cwd)
            try:
                tree = self._look_at(checkout)
            except (NoTreeError, OSError):
                if self._trees is None:
                    raise
                self._trees = None  # that folder may be at fault: a full disk, or something that is no folder
                tree = self._look_at(checkout)
        except (NoTreeError, OSError, subprocess.SubprocessError) as error:
            self._reason = str(error)
            return None
        self._reason = ""
        return tree

    def _look_at(self, checkout: Checkout) -> str:
        if self._scanner is not None and self._scanner.checkout == checkout:
            try:
                return self._scanner.scan()
            except (NoTreeError, OSError):
                self._scanner = None  # the scratch index may be at fault: start anew, and let that look speak
        if self._trees is not None:
            self._trees.mkdir(exist_ok=True)
        ignore = (*self._ignore, *_patterns(self._own, checkout.root))
        self._scanner = TreeScanner(checkout, self._fresh_folder(), ignore, self._trees)
        if self._scanner.ignores(self._cwd.resolve()):
            self._scanner = None
            raise NoTreeError(f"{self._cwd} is ignored by the checkout {checkout.root}")
        try:
            return self._scanner.scan()
        except (NoTreeError, OSError):
            self._scanner = None
            raise

    def _fresh_folder(self) -> Path:
        if self._finalizer is not None:
            self._finalizer()
        folder = Path(tempfile.mkdtemp(prefix="goalkeeper-tree-"))
        self._folder = folder
        self._finalizer = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        return folder

    def _changed(self, old: str, new: str) -> tuple[str, ...]:
        if self._scanner is None:
            return ()
        try:
            return self._scanner.changed(old, new)
        except NoTreeError:
            return ()


def _patterns(files: Sequence[Path], root: Path) -> list[str]:
    """Return one line of a .gitignore for each of the files that lies below `root`, which matches nothing else."""
    top = root.resolve()
    places = {place for file in files for place in (file.parent.resolve() / file.name, file.resolve())}
    inside = sorted(place.relative_to(top).as_posix() for place in places if place.is_relative_to(top))
    return ["/" + re.sub(r"([\\*?\[\] ])", r"\\\1", name) for name in inside]
