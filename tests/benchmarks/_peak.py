"""Peak memory of a piece of work, in a process of its own (Linux: `VmHWM`, reset before the work begins)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.benchmarks._measure import PROJECT

_FRAME = """
import gc, json, sys, time
from pathlib import Path

def status(key):
    line = next(line for line in open("/proc/self/status") if line.startswith(key))
    return int(line.split()[1]) * 1024

def measure(work):
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")
    idle = status("VmRSS")
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    spent = time.perf_counter() - wall, time.process_time() - cpu
    return {"wall": spent[0], "cpu": spent[1], "peak": status("VmHWM") - idle}
"""


def run(code: str, *args: str | Path, cache: Path | None = None) -> Any:
    """Run code that prints what `measure` gave, as JSON; `cache`: where compiled modules are kept."""
    command = [sys.executable, "-c", _FRAME + code, *map(str, args)]
    env = None
    if cache is not None:
        env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        env["PYTHONPYCACHEPREFIX"] = str(cache)
    done = subprocess.run(command, cwd=PROJECT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
