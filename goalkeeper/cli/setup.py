"""`goalkeeper setup`: pi, and a Node that can run it, in the user's data folder.

Knows nothing of how they are installed.
"""

from __future__ import annotations

import os

from goalkeeper.cli.exit_codes import ExitCode
from goalkeeper.pi.install import PINNED_PI, data_folder, install_pi


def run_setup() -> int:
    """Install what is missing, say what there is now, and return the exit code.

    Raises:
        PrerequisiteError: npm is missing or failed.
    """
    print(f"Installing pi {PINNED_PI} into {data_folder(os.environ)}; this can take a minute …", flush=True)
    pi = install_pi()
    print(f"pi {pi.version} is ready ({' '.join(pi.argv)}).")
    print(f"It runs with Node {pi.node_version}." if pi.node_version else "It brings its own runtime.")
    print(f"If pi has no model yet, log in: run `{pi.typed()}`, then /login.")
    print("It is used when there is no other pi on PATH, and GOALKEEPER_PI is not set.")
    return ExitCode.MET
