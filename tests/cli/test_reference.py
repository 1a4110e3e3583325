from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import TypeAdapter

from goalkeeper.cli.reference import PAGES, main
from goalkeeper.core.records import Record

DOCS = Path(__file__).parents[2] / "docs"


def examples() -> list[dict[str, Any]]:
    """Return the JSON objects of docs/events.md that are events."""
    text = (DOCS / "events.md").read_text(encoding="utf-8")
    lines = [line for block in re.findall(r"```json\n(.*?)```", text, re.DOTALL) for line in block.splitlines()]
    objects = [json.loads(line) for line in lines if line.startswith("{")]
    return [value for value in objects if "event" in value]


@pytest.mark.parametrize("name", PAGES)
def test_the_committed_page_is_what_the_code_says(name: str) -> None:
    page = (DOCS / name).read_text(encoding="utf-8")
    assert page == PAGES[name](page), "run `make docs`"


def test_the_diagram_goes_between_its_marks(tmp_path: Path) -> None:
    (tmp_path / "architecture.md").write_text("Before.\n<!-- diagram: made -->\nold\n<!-- /diagram -->\nAfter.\n")

    assert main([str(tmp_path)]) == 0

    page = (tmp_path / "architecture.md").read_text(encoding="utf-8")
    assert page.startswith("Before.\n<!-- diagram: made -->\n```mermaid\nstateDiagram-v2\n")
    assert page.endswith("\n```\n<!-- /diagram -->\nAfter.\n")
    assert "old" not in page
    json.loads((tmp_path / "events.schema.json").read_text(encoding="utf-8"))


def test_every_event_has_an_example_that_fits_its_class() -> None:
    kinds = {kind.__dataclass_fields__["event"].default: kind for kind in get_args(Record)}
    shown = {example["event"] for example in examples()}
    assert shown == set(kinds)
    for example in examples():
        TypeAdapter(kinds[example["event"]]).validate_python(example)
        assert set(example) <= set(kinds[example["event"]].__dataclass_fields__)
