"""Finds pi and a Node that can run it; installs both into the user's data folder when asked.

Knows nothing of sessions or of RPC.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from goalkeeper.errors import PrerequisiteError

PINNED_PI = "1.6.0"
PINNED_NODE = "24.21.0"
MINIMUM_PI = "0.80.4"
MINIMUM_NODE = "22.19.0"
PACKAGE = "@earendil-works/pi-coding-agent"

_PROBE_TIMEOUT = 20.0
_INSTALL_TIMEOUT = 600.0
_HINT = "Run `goalkeeper setup` to install it, or set GOALKEEPER_PI to a pi of your own."

Runner = Callable[[Sequence[str], float], "subprocess.CompletedProcess[str]"]


@dataclass(frozen=True, slots=True)
class PiCommand:
    """How to run pi.

    Attributes:
        argv: program and first arguments; pi's own arguments follow.
        env_path_prefix: folder to put first on PATH so that pi finds its Node, empty if there is no need.
        version: pi's version.
        node_version: version of the Node that runs it, empty if it brings its own runtime.
    """

    argv: tuple[str, ...]
    env_path_prefix: str = ""
    version: str = ""
    node_version: str = ""

    def environment(self, base: Mapping[str, str]) -> dict[str, str]:
        """Return `base` with the folder of pi's Node first on PATH, where that is needed."""
        env = dict(base)
        if self.env_path_prefix:
            env["PATH"] = os.pathsep.join(part for part in (self.env_path_prefix, env.get("PATH", "")) if part)
        return env

    def typed(self, env: Mapping[str, str] | None = None) -> str:
        """Return what a person types to run it: "pi" where PATH leads to it and to its Node, else the whole command.

        Args:
            env: environment to look at, this process's own by default.
        """
        path = (os.environ if env is None else env).get("PATH", os.defpath)
        names = ("pi",) if len(self.argv) == 1 else ("node", "pi")
        found = [shutil.which(name, path=path) for name in names]
        same = all(a and os.path.realpath(a) == os.path.realpath(b) for a, b in zip(found, self.argv, strict=False))
        return "pi" if same else shlex.join(self.argv)


def data_folder(env: Mapping[str, str]) -> Path:
    """Return the folder where `goalkeeper setup` puts what it installs."""
    if env.get("GOALKEEPER_DATA_DIR"):
        return Path(env["GOALKEEPER_DATA_DIR"])
    base = env.get("XDG_DATA_HOME")
    return (Path(base) if base else Path(env.get("HOME") or Path.home()) / ".local" / "share") / "goalkeeper"


def run_quietly(argv: Sequence[str], timeout: float) -> subprocess.CompletedProcess[str]:
    """Run a program, stdin closed, and return its output as text.

    Raises:
        OSError: it can't be started.
        subprocess.TimeoutExpired: it took longer than `timeout` seconds.
    """
    return subprocess.run(
        argv, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", errors="replace", timeout=timeout
    )


# ---- finding ---------------------------------------------------------------------------------------------------


def find_pi(env: Mapping[str, str] | None = None, *, runner: Runner = run_quietly) -> PiCommand:
    """Find pi: GOALKEEPER_PI, then PATH, then the data folder.

    Args:
        env: environment to look at, this process's own by default.
        runner: runs the few programs whose version stands in no file.

    Raises:
        PrerequisiteError: there is none, it is too old, or no Node that can run it was found.
    """
    env = os.environ if env is None else env
    executable = _locate(env)
    package = _package_of(executable.resolve(), PACKAGE)
    if package is None:
        return _wrapped(executable, env, runner)
    script, version = package
    _require(version)
    node, node_version = _find_node(executable, env, runner)
    return PiCommand((str(node), str(script)), "", version, node_version)


def _locate(env: Mapping[str, str]) -> Path:
    named = env.get("GOALKEEPER_PI")
    if named:
        found = shutil.which(named, path=env.get("PATH")) or (named if Path(named).is_file() else None)
        if found is None:
            raise PrerequisiteError(f"GOALKEEPER_PI names {named}, which is not there.", _HINT)
        return Path(found).absolute()
    for path in (env.get("PATH", os.defpath), str(_bin_folder(env))):
        found = shutil.which("pi", path=path)
        if found is not None:
            return Path(found).absolute()
    raise PrerequisiteError("pi was not found.", _HINT)


def _bin_folder(env: Mapping[str, str]) -> Path:
    return data_folder(env) / "pi" / "node_modules" / ".bin"


def _package_of(file: Path, name: str) -> tuple[Path, str] | None:
    """Return the file and the version of the npm package `name` that holds it, None if none does."""
    for folder in list(file.parents)[:5]:
        try:
            manifest = json.loads((folder / "package.json").read_text("utf-8"))
        except (OSError, ValueError):
            continue
        if isinstance(manifest, dict) and manifest.get("name") == name and isinstance(manifest.get("version"), str):
            return file, manifest["version"]
    return None


def _wrapped(executable: Path, env: Mapping[str, str], runner: Runner) -> PiCommand:
    """Describe a pi that is no npm script: a wrapper or a self-contained binary. Its version has to be asked for."""
    try:
        done = runner([str(executable), "--version"], _PROBE_TIMEOUT)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PrerequisiteError(f"{executable} can't be run: {error}.", _HINT) from error
    match = re.search(r"\d+\.\d+\.\d+\S*", done.stdout)
    if done.returncode != 0 or match is None:
        words = (done.stderr or done.stdout).strip()[-400:]
        raise PrerequisiteError(f"{executable} does not tell its version: {words}", _HINT)
    _require(match[0])
    return PiCommand((str(executable),), "", match[0], "")


def _require(version: str) -> None:
    if version_numbers(version) < version_numbers(MINIMUM_PI):
        raise PrerequisiteError(f"pi {version} is too old: at least {MINIMUM_PI} is needed.", _HINT)


def version_numbers(version: str) -> tuple[int, ...]:
    """Return the three numbers of a version, to be compared; what follows a dash is left out."""
    return tuple(int(part) for part in re.findall(r"\d+", version.partition("-")[0])[:3])


def _find_node(executable: Path, env: Mapping[str, str], runner: Runner) -> tuple[Path, str]:
    """Find a Node that is new enough: beside pi, on PATH, in the data folder."""
    too_old = ""
    for path in (str(executable.parent), env.get("PATH", os.defpath), str(_bin_folder(env))):
        found = shutil.which("node", path=path)
        if found is None:
            continue
        version = _node_version(Path(found), runner)
        if version and version_numbers(version) >= version_numbers(MINIMUM_NODE):
            return Path(found).absolute(), version
        too_old = too_old or version
    said = f"Node {too_old} is too old for pi" if too_old else "Node was not found"
    raise PrerequisiteError(f"{said}: at least {MINIMUM_NODE} is needed.", "Run `goalkeeper setup` to install one.")


def _node_version(node: Path, runner: Runner) -> str:
    package = _package_of(node.resolve(), "node")
    if package is not None:
        return package[1]
    try:
        done = runner([str(node), "--version"], _PROBE_TIMEOUT)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip().removeprefix("v") if done.returncode == 0 else ""


# ---- installing ------------------------------------------------------------------------------------------------


def install_pi(
    version: str = PINNED_PI, *, env: Mapping[str, str] | None = None, runner: Runner = run_quietly
) -> PiCommand:
    """Install pi, and a Node if the one on PATH is too old, into the data folder; return how to run it. Idempotent.

    Raises:
        PrerequisiteError: npm is missing or failed; the message ends with npm's own last words.
    """
    env = os.environ if env is None else env
    prefix = data_folder(env) / "pi"
    script = _bin_folder(env) / "pi"
    here = {**env, "GOALKEEPER_PI": str(script)}
    installed = _package_of(script.resolve(), PACKAGE) if script.exists() else None
    if installed is None or installed[1] != version or not _has_node(here, runner):
        _npm_install(prefix, version, env, runner)
    return find_pi(here, runner=runner)


def _has_node(env: Mapping[str, str], runner: Runner) -> bool:
    try:
        _find_node(Path(env["GOALKEEPER_PI"]), env, runner)
    except PrerequisiteError:
        return False
    return True


def _npm_install(prefix: Path, version: str, env: Mapping[str, str], runner: Runner) -> None:
    npm = shutil.which("npm", path=env.get("PATH", os.defpath))
    if npm is None:
        raise PrerequisiteError("npm was not found.", "Install Node.js with npm, then run `goalkeeper setup` again.")
    packages = [f"{PACKAGE}@{version}"]
    system_node = shutil.which("node", path=env.get("PATH", os.defpath))
    if system_node is None or version_numbers(_node_version(Path(system_node), runner)) < version_numbers(MINIMUM_NODE):
        packages.append(f"node@{PINNED_NODE}")
    try:
        prefix.mkdir(parents=True, exist_ok=True)
        flags = ["--no-package-lock", "--no-fund", "--no-audit", "--prefix", str(prefix)]
        done = runner([npm, "install", *flags, *packages], _INSTALL_TIMEOUT)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PrerequisiteError(f"npm can't install pi: {error}.") from error
    if done.returncode != 0:
        words = (done.stderr or done.stdout).strip()[-600:]
        raise PrerequisiteError(f"npm could not install pi: {words}", "Check the network and npm's settings.")
