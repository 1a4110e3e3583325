"""Replaces a file's content as a whole, or not at all.

Knows nothing of what is written.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

Replace = Callable[[str, str], None]


def write_atomic(path: Path, content: bytes, *, replace: Replace = os.replace) -> None:
    """Write `content` to `path`, mode 0600: whoever reads sees the old content or the new, also after a crash.

    Args:
        path: the file; its folder must exist. A symbolic link is replaced, not followed.
        content: the new content.
        replace: puts the finished temporary file in place; tests end the process here.

    Raises:
        OSError: nothing was changed, and the temporary file is gone.
    """
    fd, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")  # mode 0600
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        replace(temporary, str(path))
    except BaseException:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make a rename, creation or removal in `folder` last; file systems that can't are left alone."""
    with contextlib.suppress(OSError):
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
