"""Writes docs/events.schema.json from the classes that `--json` prints.

Knows nothing of the events themselves. `python -m goalkeeper.cli.schema` prints it; with a path, it writes it there.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from goalkeeper.storage.schema import record_schema


def schema_text() -> str:
    """Return the schema as the committed file holds it."""
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "An event of goal --json"}
    return json.dumps(head | record_schema(), indent=2, ensure_ascii=False) + "\n"


def main(arguments: Sequence[str]) -> int:
    """Write the schema to the path given, or print it; return the exit code."""
    if not arguments:
        sys.stdout.write(schema_text())
        return 0
    Path(arguments[0]).write_text(schema_text(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
