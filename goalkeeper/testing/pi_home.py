"""An isolated agent folder for pi, with the scripted model as its only provider.

Knows nothing of what is asked of pi, or of the scripts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PROVIDER = "scripted"
MODEL = "scripted"
API_KEY = "scripted-key"
LOOPBACK = "127.0.0.1,localhost"
NO_COST = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}


def pi_home(
    folder: Path,
    base_url: str,
    *,
    cost: Mapping[str, float] | None = None,
    context_window: int = 128_000,
    settings: Mapping[str, Any] | None = None,
) -> dict[str, str]:
    """Make an agent folder in which pi uses the scripted model without any flag.

    Args:
        folder: where to make it; made if it is not there.
        base_url: the model's address, ending in /v1.
        cost: USD per million tokens, keys input, output, cacheRead, cacheWrite; None for a model that is free.
        context_window: in tokens; a small one makes pi compact.
        settings: pi settings that are added or replaced.

    Returns:
        The environment variables that make pi use it, to be laid over the process environment.
    """
    folder.mkdir(parents=True, exist_ok=True)
    model = {
        "id": MODEL,
        "name": MODEL,
        "contextWindow": context_window,
        "maxTokens": 4096,
        "cost": dict(cost or NO_COST),
    }
    provider = {"baseUrl": base_url, "api": "openai-completions", "apiKey": API_KEY, "models": [model]}
    _write(folder / "models.json", {"providers": {PROVIDER: provider}})
    defaults = {
        "defaultProvider": PROVIDER,
        "defaultModel": MODEL,
        "quietStartup": True,
        "defaultProjectTrust": "never",
    }
    _write(folder / "settings.json", {**defaults, **(settings or {})})
    return {
        "PI_CODING_AGENT_DIR": str(folder),
        "PI_OFFLINE": "1",
        "PI_TELEMETRY": "0",
        "PI_SKIP_VERSION_CHECK": "1",
        # A proxy of the surrounding environment must not be asked for loopback.
        "NO_PROXY": LOOPBACK,
        "no_proxy": LOOPBACK,
    }


def _write(path: Path, data: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
