"""A throwaway repository folder through which git looks at somebody's work tree without touching their repository.

Knows nothing of fingerprints. Its own index, objects, settings and attributes are used; the owner's objects are only
read, the owner's hooks, filters and monitors never run.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from goalkeeper.worktree.checkout import Checkout, NoTreeError

GIT_TIMEOUT = 300.0
"""Seconds that one git process may take: the first look at a very large tree reads every file."""

# Raw content is compared, so nothing may convert it: neither line ends nor filters such as LFS.
_RAW_ATTRIBUTES = "* -text !eol !crlf !filter !ident !working-tree-encoding\n"

_CONVERTING = re.compile(rb"(?:^|[\s!])(?:text|eol|crlf|filter|ident|working-tree-encoding)(?:$|[\s=])", re.MULTILINE)

# Everything under [core] that could make two looks at the same content differ is set here; Scratch takes over a few
# settings of the owner that say what is ignored.
_CONFIG = """[core]
\tbare = false
\trepositoryFormatVersion = {version}
\tfileMode = true
\tsymlinks = true
\tautocrlf = false
\tfsmonitor = false
\tuntrackedCache = false
\tsplitIndex = false
\tpreloadIndex = true
\ttrustctime = true
\tcheckStat = default
\tlooseCompression = 0
\tfsync = none
\tlogAllRefUpdates = false
\thooksPath = /dev/null
[index]
\tthreads = true
\tskipHash = true
\tsparse = false
[gc]
\tauto = 0
[maintenance]
\tauto = false
"""


_WHICH_CONFIG = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM")


def clean_environment() -> dict[str, str]:
    """Return this process's environment without anything that steers git."""
    return {
        **_without_git(),
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_OPTIONAL_LOCKS": "0",
    }


def _without_git() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}


class Scratch:
    """The throwaway repository folder of one checkout.

    Args:
        checkout: whose work tree is looked at.
        folder: an empty folder of ours, which becomes the scratch GIT_DIR.
        objects: the folder for new objects; nested checkouts share the one of the outermost.

    Raises:
        NoTreeError: git is missing or can't read the repository's settings.
    """

    def __init__(self, checkout: Checkout, folder: Path, objects: Path | None = None) -> None:
        git = shutil.which("git")
        if git is None:
            raise NoTreeError("git is not installed")
        self._git = git
        self.checkout = checkout
        self.folder = folder
        self.objects = objects or folder / "objects"
        self.index = folder / "index"
        self.settings = self._read_settings()
        self.object_format = self.settings.get("extensions.objectformat", "sha1").lower()
        self._lay_out()
        self._environment = {
            **clean_environment(),
            "GIT_DIR": str(folder),
            "GIT_WORK_TREE": str(checkout.root),
            "GIT_OBJECT_DIRECTORY": str(self.objects),
        }
        # Only to read a sparse index, which names trees. Never while trees are written: git renews the times of
        # objects that it finds there.
        self._owner_objects = {"GIT_ALTERNATE_OBJECT_DIRECTORIES": str(checkout.common_dir / "objects")}

    def start(self, arguments: Sequence[str], *, extra: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        """Start git in the work tree's top folder with its output on pipes.

        Raises:
            NoTreeError: it can't be started.
        """
        try:
            return subprocess.Popen(
                [self._git, *arguments],
                cwd=self.checkout.root,
                env={**self._environment, **(extra or {})},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        except OSError as error:
            raise NoTreeError(f"git can't be started: {error}") from error

    def finish(self, process: subprocess.Popen[bytes], stdin: bytes = b"", fine: Sequence[int] = (0,)) -> bytes:
        """Feed `stdin` and return what the process wrote; exit codes other than `fine` are failures.

        Raises:
            NoTreeError: it failed, or took longer than `GIT_TIMEOUT`.
        """
        try:
            out, err = process.communicate(stdin, timeout=GIT_TIMEOUT)
        except subprocess.TimeoutExpired as error:
            process.kill()
            process.communicate()
            raise NoTreeError(f"git took longer than {GIT_TIMEOUT:.0f} s") from error
        if process.returncode not in fine:
            words = err.decode("utf-8", "replace").strip().splitlines()
            raise NoTreeError(f"git failed: {words[-1] if words else f'exit code {process.returncode}'}")
        return out

    def git(self, *arguments: str, stdin: bytes = b"", extra: Mapping[str, str] | None = None) -> bytes:
        """Run git and return its output.

        Raises:
            NoTreeError: see `start` and `finish`.
        """
        return self.finish(self.start(arguments, extra=extra), stdin)

    def of_owner(self, *arguments: str) -> bytes:
        """Run git on the owner's index, which it does not write.

        Raises:
            NoTreeError: see `start` and `finish`.
        """
        # A split index names a second file, which git would look for here, and whose time it would renew there.
        for shared in self.checkout.git_dir.glob("sharedindex.*"):
            if not (self.folder / shared.name).exists():
                shutil.copyfile(shared, self.folder / shared.name)
        return self.git(*arguments, extra={"GIT_INDEX_FILE": str(self.checkout.index), **self._owner_objects})

    def adopt_owner_index(self, dropped: bytes) -> None:
        """Begin with a copy of the owner's index, without some of its entries.

        Args:
            dropped: their names, each ended by a NUL.

        Raises:
            NoTreeError: see `start` and `finish`.
        """
        shutil.copyfile(self.checkout.index, self.index)
        stat = self.checkout.index.stat()
        os.utime(self.index, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        if dropped:
            self.git("update-index", "--force-remove", "-z", "--stdin", stdin=dropped, extra=self._owner_objects)

    def converts(self, attribute_files: Sequence[Path]) -> bool:
        """Tell whether the owner's settings may make stored content differ from the file's bytes.

        Args:
            attribute_files: the `.gitattributes` files that the repository tracks.
        """
        if self.settings.get("core.autocrlf", "false").lower() not in ("false", "no", "off", "0"):
            return True
        configured = self.settings.get("core.attributesfile")
        own = Path(configured).expanduser() if configured else _config_home() / "attributes"
        shared = (own, Path("/etc/gitattributes"), self.checkout.common_dir / "info" / "attributes")
        if any(path.is_file() and _CONVERTING.search(path.read_bytes()) for path in shared):
            return True
        # One that is tracked and gone still counts for git, which reads it from the index.
        return any(not path.is_file() or _CONVERTING.search(path.read_bytes()) for path in attribute_files)

    def _read_settings(self) -> dict[str, str]:
        # The only place where the user's own settings are read: what they ignore is ignored.
        config = {name: value for name, value in os.environ.items() if name in _WHICH_CONFIG}
        environment = {**_without_git(), **config}
        command = [self._git, f"--git-dir={self.checkout.git_dir}", "config", "-z", "--list"]
        done = subprocess.run(command, env=environment, capture_output=True, timeout=GIT_TIMEOUT, check=False)
        if done.returncode != 0:
            raise NoTreeError(f"git can't read its settings: {done.stderr.decode('utf-8', 'replace').strip()}")
        settings = {}
        for item in done.stdout.decode("utf-8", "surrogateescape").split("\0"):
            name, _, value = item.partition("\n")
            settings[name] = value
        return settings

    def _lay_out(self) -> None:
        for name in ("objects", "refs", "info"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        (self.folder / "HEAD").write_text("ref: refs/heads/none\n")
        (self.folder / "config").write_text(self._config(), "utf-8", "surrogateescape")
        (self.folder / "info" / "attributes").write_text(_RAW_ATTRIBUTES)
        # A link, so that later edits of the owner's file count.
        (self.folder / "info" / "exclude").symlink_to(self.checkout.common_dir / "info" / "exclude")

    def _config(self) -> str:
        plain = self.object_format == "sha1"
        lines = [_CONFIG.format(version=0 if plain else 1)]
        for name in ("excludesfile", "ignorecase", "precomposeunicode"):
            value = self.settings.get(f"core.{name}")
            if value is not None:
                escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
                lines.append(f'[core]\n\t{name} = "{escaped}"\n')
        if not plain:
            lines.append(f"[extensions]\n\tobjectFormat = {self.object_format}\n")
        return "".join(lines)


def _config_home() -> Path:
    base = os.environ.get("XDG_CONFIG_HOME")
    return (Path(base) if base else Path("~/.config").expanduser()) / "git"
