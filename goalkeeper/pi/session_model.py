"""Which model a session file used last.

Knows nothing of what pi knows about that model.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from goalkeeper.pi.jsonl import decode
from goalkeeper.pi.session_lines import FileLine, complete_end, ids_of, lines_backwards

_CHANGES_MODEL = (b'"model_change"', b'"assistant"')


def last_model(session_file: Path) -> tuple[str, str] | None:
    """Return provider and id of the model that the session's branch used last, None if it names none.

    Args:
        session_file: an existing session file; the last complete line is the leaf, as for pi.
    """
    with session_file.open("rb", buffering=0) as file:
        fd = file.fileno()
        wanted: str | None = None
        for line in lines_backwards(fd, complete_end(fd, os.fstat(fd).st_size)):
            ids = ids_of(line)
            if ids is not None and wanted is not None and ids[0] != wanted:
                continue
            found = _model_of(line)
            if found is not None:
                return found
            if ids is not None:
                wanted = ids[1]
                if wanted is None:
                    return None
    return None


def _model_of(line: FileLine) -> tuple[str, str] | None:
    # Most lines are results and texts: they are passed over without parsing.
    if line.body is None or not any(word in line.body for word in _CHANGES_MODEL):
        return None
    try:
        raw = json.loads(decode(line.body))
    except (ValueError, RecursionError):
        return None
    if not isinstance(raw, dict):
        return None
    if raw.get("type") == "model_change":
        return _pair(raw.get("provider"), raw.get("modelId"))
    message = raw.get("message")
    if raw.get("type") == "message" and isinstance(message, dict) and message.get("role") == "assistant":
        return _pair(message.get("provider"), message.get("model"))
    return None


def _pair(provider: object, model: object) -> tuple[str, str] | None:
    return (provider, model) if isinstance(provider, str) and isinstance(model, str) and provider and model else None
