"""Looks at one work tree and returns the git tree id of its content; nested checkouts are looked at as well.

Knows nothing of asyncio, tools or goals; it blocks, and one instance is used by one thread at a time.

How it works. A scratch index (see `scratch.py`) holds the stat data and hash of every file that counts. A look asks git
for files that differ from it and for files that it lacks, hashes those, and writes the tree. What counts is a function
of the work tree alone, not of earlier looks: files that are not ignored, plus ignored ones that the owner's index
tracks, minus those left out. Two rules keep it honest:

- After each look the scratch index's time is set to shortly before the look began. Git compares the content of every
  file that is not older than its index, so an edit within the same clock tick as the look is seen by the next one.
- Content is hashed as it is. Where the owner's settings convert content (line ends, LFS), hashes from their index
  would be of something else, so they are not used and every file is hashed once.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from stat import S_ISDIR, S_ISLNK, S_ISREG
from urllib.parse import quote_from_bytes, unquote_to_bytes

from goalkeeper.worktree.checkout import Checkout, NoTreeError, checkout_at
from goalkeeper.worktree.scratch import Scratch

LEFT_OUT = (
    ".pi-goal/",
    "__pycache__/",
    "*.py[cod]",
    ".pytest_cache/",
    ".coverage",
    ".coverage.*",
    "htmlcov/",
    ".mypy_cache/",
    ".ruff_cache/",
    ".hypothesis/",
    ".tox/",
    ".nox/",
    ".import_linter_cache/",
    ".eslintcache",
    "*.tsbuildinfo",
    "**/node_modules/.cache/",
    ".DS_Store",
    "Thumbs.db",
)
"""What tools write while they check something, as lines of a .gitignore; left out even where it is tracked."""

_GITLINK_MODE = "160000"
_TRIES = 3
_CLOCK_SLACK_NS = 2_000_000_000  # file times come from a coarser clock than time(), on some file systems 2 s coarse


class TreeScanner:
    """Looks at one checkout again and again.

    Args:
        checkout: the checkout.
        folder: an empty folder of ours for scratch files.
        ignore: further patterns to leave out, as lines of a .gitignore.
        objects: where new objects go; None for a folder of its own.

    Raises:
        NoTreeError: git is missing or can't read the repository.
    """

    def __init__(
        self, checkout: Checkout, folder: Path, ignore: Sequence[str] = (), objects: Path | None = None
    ) -> None:
        self.checkout = checkout
        self._folder = folder
        self._ignore = tuple(ignore)
        self._patterns = [f"--exclude={pattern}" for pattern in (*LEFT_OUT, *ignore)]
        self._scratch = Scratch(checkout, folder / "git", objects)
        self._owner_index: tuple[int, ...] | None = None
        self._started = False
        self._forced: set[bytes] = set()
        self._absent: set[bytes] = set()
        self._unreadable: set[bytes] = set()
        self._tree = ""
        self._nested: dict[bytes, TreeScanner] = {}
        self._composite: tuple[list[str], str] = ([], "")

    @property
    def object_format(self) -> str:
        """The repository's hash, "sha1" or "sha256"."""
        return self._scratch.object_format

    def scan(self) -> str:
        """Return the id of the tree as it is now; with nested checkouts or unreadable files, `<id>+`.

        Raises:
            NoTreeError: git can't look at this tree.
        """
        began = time.time_ns() - _CLOCK_SLACK_NS
        pending = self._sync()
        nested, changed = self._differences()
        changed |= pending
        if changed or self._unreadable or not self._tree:
            self._update(changed)
            self._tree = self._scratch.git("write-tree", "--missing-ok").decode().strip()
        if self._scratch.index.exists():
            os.utime(self._scratch.index, ns=(began, began))
        return self._compose(nested)

    def changed(self, old: str, new: str) -> tuple[str, ...]:
        """Return the names of the files that differ between two results of `scan`, relative to the top folder.

        Bytes that are no UTF-8 are shown as escapes.

        Raises:
            NoTreeError: the trees are not known here (another process made them).
        """
        plain = not (old.endswith("+") or new.endswith("+"))
        ids = [fingerprint if plain else self._as_composite(fingerprint) for fingerprint in (old, new)]
        out = self._scratch.git("diff-tree", "-r", "-z", "--name-only", "--no-renames", *ids)
        names = [name if plain else _plain_name(name) for name in out.split(b"\0") if name]
        return tuple(sorted({name.decode("utf-8", "backslashreplace") for name in names}))

    def ignores(self, folder: Path) -> bool:
        """Tell whether a folder of this checkout is ignored, so that its files do not count."""
        name = folder.relative_to(self.checkout.root)
        if name == Path():
            return False
        process = self._scratch.start(["check-ignore", "--no-index", "-q", "--", str(name)])
        self._scratch.finish(process, fine=(0, 1))
        return process.returncode == 0

    # ---- what counts ------------------------------------------------------------------------------------------

    def _sync(self) -> set[bytes]:
        """Follow the owner's index; return ignored files that count and that the scratch index lacks."""
        signature = _signature(self.checkout.index)
        if not self._started:
            self._start()
        if not self._started or signature != self._owner_index:
            ignored = self._owned("--exclude-standard") - self._owned(*self._patterns)
            self._drop(self._forced - ignored)
            self._absent = (self._absent & ignored) | (ignored - self._forced)
            self._forced = ignored
            self._drop_ignored()
            self._owner_index = signature
            self._started = True
        return {name for name in self._absent if self._is_file(name)}

    def _start(self) -> None:
        """Begin with the owner's index where its hashes are of the files' bytes, else with nothing."""
        if not self.checkout.index.is_file():
            return
        listing = self._scratch.of_owner("ls-files", "-z", "-v", "--stage")
        dropped = self._owned(*self._patterns)
        attributes: list[Path] = []
        for line in listing.split(b"\0"):
            facts, _, name = line.partition(b"\t")
            # Left as they are: files that git may trust to be what the index says. Not those that it was told to
            # trust (assume-unchanged is lower case, skip-worktree is S), not conflicts, not nested repositories.
            if not facts.startswith(b"H ") or not facts.endswith(b" 0") or _GITLINK_MODE.encode() in facts[:9]:
                dropped.add(name)
            if name.rpartition(b"/")[2] == b".gitattributes":
                attributes.append(self._path(name))
        if self._scratch.converts(attributes):
            return
        self._scratch.adopt_owner_index(_listing(dropped - {b""}))

    def _drop_ignored(self) -> set[bytes]:
        """Drop what became ignored since it was added, so that the result does not depend on the past."""
        if not self._scratch.index.exists():
            return set()
        ignored = self._files(self._scratch.git("ls-files", "-z", "-c", "-i", "--exclude-standard")) - self._forced
        self._drop(ignored)
        return ignored

    def _owned(self, *patterns: str) -> set[bytes]:
        """Return the files in the owner's index that match ignore patterns."""
        if not self.checkout.index.is_file():
            return set()
        return self._files(self._scratch.of_owner("ls-files", "-z", "-c", "-i", *patterns))

    def _files(self, listing: bytes) -> set[bytes]:
        # A folder in an index is a nested checkout; those are looked at on their own.
        return {name for name in listing.split(b"\0") if name and not self._path(name).is_dir()}

    # ---- one look ---------------------------------------------------------------------------------------------

    def _differences(self) -> tuple[set[bytes], set[bytes]]:
        """Return the nested checkouts, and the files that the scratch index lacks or has otherwise."""
        modified = self._scratch.start(["diff-files", "--name-only", "-z", "--ignore-submodules=all"])
        others = self._scratch.start(["ls-files", "-z", "-o", "--exclude-standard", *self._patterns])
        try:
            changed = set(self._scratch.finish(modified).split(b"\0"))
            found = self._scratch.finish(others).split(b"\0")
        finally:
            for process in (modified, others):
                if process.stdout and not process.stdout.closed:  # nobody finished it: the other one failed
                    process.kill()
                    process.communicate()
        nested = {name.rstrip(b"/") for name in found if name.endswith(b"/")}
        changed.update(name for name in found if not name.endswith(b"/"))
        changed.discard(b"")
        if any(name.rpartition(b"/")[2] == b".gitignore" for name in changed):
            changed -= self._drop_ignored()
        return nested, changed

    def _update(self, changed: set[bytes]) -> None:
        """Hash `changed` into the scratch index; what can't be read is remembered and left out of it."""
        names = changed - self._unreadable | {name for name in self._unreadable if self._is_readable(name)}
        self._unreadable -= names
        for attempt in range(_TRIES):
            try:
                self._hash(names)
                break
            except NoTreeError:
                bad = {name for name in names if not self._is_readable(name)}
                if attempt == _TRIES - 1:
                    raise
                self._unreadable |= bad
                self._drop(bad)
                names -= bad
        gone = {name for name in names & self._forced if not self._is_file(name)}
        self._absent = (self._absent - names) | gone

    def _hash(self, names: Iterable[bytes]) -> None:
        self._scratch.git(
            "update-index",
            *("--add", "--remove", "--replace", "--info-only", "-z", "--stdin"),
            stdin=_listing(names),
        )

    def _drop(self, names: Iterable[bytes]) -> None:
        listing = _listing(names)
        if listing:
            self._scratch.git("update-index", "--force-remove", "-z", "--stdin", stdin=listing)
            self._tree = ""

    def _path(self, name: bytes) -> Path:
        return self.checkout.root / os.fsdecode(name)

    def _is_file(self, name: bytes) -> bool:
        try:
            mode = self._path(name).lstat().st_mode
        except OSError:
            return False
        return S_ISREG(mode) or S_ISLNK(mode)

    def _is_readable(self, name: bytes) -> bool:
        """Tell whether git can hash the path, or drop it because nothing is there."""
        path = self._path(name)
        try:
            mode = path.lstat().st_mode
            if S_ISREG(mode):
                path.open("rb").close()
            return S_ISREG(mode) or S_ISLNK(mode) or S_ISDIR(mode)
        except (FileNotFoundError, NotADirectoryError):
            return True
        except OSError:
            return False

    # ---- nested checkouts and what can't be read ------------------------------------------------------------------

    def _compose(self, nested: set[bytes]) -> str:
        for name in self._nested.keys() - nested:
            self._forget(name)
        lines = [self._nested_line(name) for name in sorted(nested)]
        lines += [self._marker(b"!", name, self._facts(name)) for name in sorted(self._unreadable)]
        if not lines:
            return self._tree
        lines.append(f"040000 tree {self._tree}\t0")
        if lines != self._composite[0]:
            tree = self._scratch.git("mktree", "--missing", "-z", stdin="".join(f"{line}\0" for line in lines).encode())
            self._composite = (lines, tree.decode().strip())
        return f"{self._composite[1]}+"

    def _as_composite(self, fingerprint: str) -> str:
        if fingerprint.endswith("+"):
            return fingerprint[:-1]
        line = f"040000 tree {fingerprint}\t0\0"
        return self._scratch.git("mktree", "--missing", "-z", stdin=line.encode()).decode().strip()

    def _nested_line(self, name: bytes) -> str:
        """Return the tree entry of a nested checkout: its own content, whatever its HEAD says."""
        try:
            scanner = self._nested_scanner(name)
            tree = scanner.scan()
        except NoTreeError as error:
            self._forget(name)
            return self._marker(b"+", name, str(error).encode("utf-8", "replace"))
        if scanner.object_format != self.object_format:
            return self._marker(b"+", name, tree.encode())
        return f"040000 tree {tree.rstrip('+')}\t{_encoded(b'*' if tree.endswith('+') else b'+', name)}"

    def _nested_scanner(self, name: bytes) -> TreeScanner:
        checkout = checkout_at(self._path(name))
        if checkout is None:
            raise NoTreeError("not a checkout any more")
        known = self._nested.get(name)
        if known is not None and known.checkout == checkout:
            return known
        self._forget(name)
        folder = self._nested_folder(name)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        scanner = TreeScanner(checkout, folder, self._ignore, self._scratch.objects)
        self._nested[name] = scanner
        return scanner

    def _forget(self, name: bytes) -> None:
        if self._nested.pop(name, None) is not None:
            shutil.rmtree(self._nested_folder(name), ignore_errors=True)

    def _nested_folder(self, name: bytes) -> Path:
        return self._folder / "nested" / hashlib.sha256(name).hexdigest()[:16]

    def _facts(self, name: bytes) -> bytes:
        """What can be told of a file without reading it."""
        try:
            stat = self._path(name).lstat()
        except OSError:
            return b"gone"
        return f"{stat.st_mode} {stat.st_size} {stat.st_mtime_ns} {stat.st_ctime_ns}".encode()

    def _marker(self, sign: bytes, name: bytes, content: bytes) -> str:
        """Return a tree entry that stands for something git can't hash; its blob is never stored."""
        digest = hashlib.new(self.object_format, b"blob %d\0" % len(content) + content).hexdigest()
        return f"100644 blob {digest}\t{_encoded(sign, name)}"


def _listing(names: Iterable[bytes]) -> bytes:
    return b"".join(name + b"\0" for name in sorted(names))


def _encoded(sign: bytes, name: bytes) -> str:
    return sign.decode() + quote_from_bytes(name, safe="")


def _plain_name(name: bytes) -> bytes:
    """Return the path behind a path in a composite tree: `0/a` is a, `+sub/a` is sub/a, `*sub/0/a` is sub/a."""
    head, _, rest = name.partition(b"/")
    if head == b"0":
        return rest
    folder = unquote_to_bytes(head[1:])
    if head.startswith(b"*"):
        rest = _plain_name(rest)
    return folder + b"/" + rest if rest else folder


def _signature(path: Path) -> tuple[int, ...]:
    try:
        stat = path.stat()
    except OSError:
        return ()
    return (stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)
