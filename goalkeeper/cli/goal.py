"""The `goal` command: what the words mean, and which options go with which.

Knows nothing of how a goal is pursued. Status is answered before anything heavy is imported.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from goalkeeper.cli.output import open_closed_streams

STATUS_OPTIONS = {"--json": 0, "-C": 1, "--cwd": 1, "--session": 1}
"""Options that status takes, with the number of their values."""


def main() -> None:
    """Run `goal` with the process's arguments and exit."""
    open_closed_streams()
    sys.exit(run(sys.argv[1:]))


def run(argv: Sequence[str]) -> int:
    """Run `goal` and return its exit code."""
    asked = status_request(argv)
    if asked is not None:
        from goalkeeper.cli.status import status

        return status(asked["cwd"] or ".", as_json=bool(asked["json"]), session=asked["session"])
    from goalkeeper.cli.goal_options import run_command_line

    return run_command_line(argv)


def status_request(argv: Sequence[str]) -> dict[str, str | None] | None:
    """Return what status is asked for, None when the arguments ask for something else or are malformed."""
    asked: dict[str, str | None] = {"json": None, "cwd": None, "session": None}
    rest = list(argv)
    if rest[:1] == ["status"]:
        rest.pop(0)
    while rest:
        name, equals, value = rest.pop(0).partition("=")
        if name not in STATUS_OPTIONS or (equals and not STATUS_OPTIONS[name]):
            return None
        if STATUS_OPTIONS[name] and not equals:
            if not rest:
                return None
            value = rest.pop(0)
        asked["cwd" if name == "-C" else name[2:]] = value or "yes"
    return asked


if __name__ == "__main__":
    main()
