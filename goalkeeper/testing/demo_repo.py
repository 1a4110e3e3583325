"""The demo project: a tiny package with one bug, one failing test, and the command that proves it fixed.

Knows nothing of goals or pi. The files are in `data/demo-repo`, so that an installed package has them too.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from importlib.resources import as_file, files
from pathlib import Path

COMMAND = "python3 -m unittest -q"
CONDITION = f"`{COMMAND}` exits 0"

BUGGY_FILE = "ledger/balance.py"
BUG = "        total += entry.cents\n"
FIX = '        total += entry.cents if entry.kind == "deposit" else -entry.cents\n'

GIT_SECONDS = 30.0


def copy_demo_repo(target: Path) -> None:
    """Copy the demo project to a folder that does not exist yet, and make it a git checkout with one commit.

    Without git on this machine it stays a plain folder.

    Raises:
        FileExistsError: the folder is there already.
    """
    with as_file(files("goalkeeper.testing") / "data" / "demo-repo") as source:
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    if not shutil.which("git"):
        return
    identity = ["-c", "user.name=Demo", "-c", "user.email=demo@example.invalid", "-c", "commit.gpgsign=false"]
    for arguments in (["init", "--quiet"], ["add", "--all"], [*identity, "commit", "--quiet", "--message=Start"]):
        _git(target, arguments)


def _git(folder: Path, arguments: list[str]) -> None:
    environment = {**os.environ, "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
    subprocess.run(["git", *arguments], cwd=folder, env=environment, check=True, timeout=GIT_SECONDS)
