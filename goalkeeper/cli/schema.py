"""The JSON Schema of the events that `--json` prints, as docs/events.schema.json holds it.

Knows nothing of the events themselves: the schema is made from their classes.
"""

from __future__ import annotations

import json

from goalkeeper.storage.schema import record_schema


def schema_text() -> str:
    """Return the content of docs/events.schema.json."""
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "An event of goal --json"}
    return json.dumps(head | record_schema(), indent=2, ensure_ascii=False) + "\n"
