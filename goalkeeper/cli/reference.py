"""Writes the generated parts of docs/: the schema of the events and the state diagram. `make docs` calls it.

Knows nothing of their content; a test holds the committed files against it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from goalkeeper.cli.schema import schema_text
from goalkeeper.core.machine import diagram

_DIAGRAM = re.compile(r"(<!-- diagram:[^\n]*-->\n).*?(<!-- /diagram -->)", re.DOTALL)


def with_diagram(page: str) -> str:
    """Return a page with the state diagram between its two marks."""
    block = f"```mermaid\n{diagram().strip()}\n```\n"
    return _DIAGRAM.sub(lambda marks: f"{marks[1]}{block}{marks[2]}", page)


PAGES: Mapping[str, Callable[[str], str]] = {
    "events.schema.json": lambda _: schema_text(),
    "architecture.md": with_diagram,
}
"""The files of docs/ that are generated, or have generated parts: each from what it holds to what it should hold."""


def main(arguments: Sequence[str]) -> int:
    """Bring a folder, `docs` by default, up to date and return the exit code."""
    folder = Path(arguments[0] if arguments else "docs")
    for name, page in PAGES.items():
        path = folder / name
        path.write_text(page(path.read_text(encoding="utf-8") if path.exists() else ""), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
