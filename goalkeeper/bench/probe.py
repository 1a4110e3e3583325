"""Runs one measured thing in a fresh Python process and returns its seconds and its memory.

Knows nothing of what is measured: the code is given as text.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

PROBE_SECONDS = 600.0

_PROGRAM = """
import json, sys, time
def memory(key):
    # VmHWM starts anew with each program, which getrusage's maximum does not.
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(key))
given = json.loads(sys.argv[1])
result = {}
%(setup)s
before = memory("VmRSS:")
began = time.perf_counter()
%(code)s
seconds = time.perf_counter() - began
grown = max(0, memory("VmHWM:") - before)
print(json.dumps({"seconds": seconds, "grown_kib": grown, "result": result}))
"""


@dataclass(frozen=True, slots=True)
class Probed:
    """What a fresh process measured.

    Attributes:
        seconds: how long the code took.
        grown_mib: how far the process's memory peaked above what it was before the code.
        result: what the code put into `result`.
    """

    seconds: float
    grown_mib: float
    result: Mapping[str, Any]


def probe(code: str, *, setup: str = "", **given: Any) -> Probed:
    """Run code in a fresh process.

    Args:
        code: what is measured; it may read `given` and fill the dict `result`.
        setup: what comes before it, not measured (imports).
        given: values for the code, JSON.

    Raises:
        subprocess.CalledProcessError: the code failed; its traceback is on our stderr.
    """
    program = _PROGRAM % {"setup": setup, "code": code}
    done = subprocess.run(
        [sys.executable, "-c", program, json.dumps(given)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        check=True,
        timeout=PROBE_SECONDS,
    )
    data = json.loads(done.stdout)
    return Probed(data["seconds"], data["grown_kib"] / 1024, data["result"])
