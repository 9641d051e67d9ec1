"""How all of it is measured: both sides in one run, in turn, medians, and ratios of these.

Absolute times mean nothing on a machine that others use as well, and wall clock and processor time go different ways
there; so each comparison gives both. A side that runs first in a round finds other caches than the second: they take
turns.
"""

from __future__ import annotations

import gc
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[2]
SHARED_MEMORY = Path("/dev/shm")


@dataclass(frozen=True)
class Row:
    """One line of the table; `met` is None for what has no goal and is there to explain."""

    question: str
    measured: str
    reach: str = ""
    met: bool | None = None


@dataclass(frozen=True)
class Side:
    """Medians in seconds."""

    wall: float
    cpu: float


def in_turn(sides: Mapping[str, Callable[[], object]], rounds: int, *, warm: int = 1) -> dict[str, Side]:
    """Run each side once a round, the order turned round each time; processor time is that of all threads."""
    names = list(sides)
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    for number in range(-warm, rounds):
        for name in names if number % 2 else reversed(names):
            gc.collect() if rounds < 20 else None
            wall, cpu = time.perf_counter(), time.process_time()
            sides[name]()
            spent = time.perf_counter() - wall, time.process_time() - cpu
            if number >= 0:
                times[name].append(spent)
    return {
        name: Side(statistics.median(w for w, _ in spent), statistics.median(c for _, c in spent))
        for name, spent in times.items()
    }


def ratio(question: str, ours: Side, other: Side, most: float | None = None) -> Row:
    """How many times the other side's time ours is: by the clock (which decides) and by processor time."""
    by_clock, by_work = ours.wall / other.wall, ours.cpu / other.cpu if other.cpu else 0.0
    measured = f"{by_clock:.2f} ({span(ours.wall)} / {span(other.wall)}); processor {by_work:.2f}"
    return Row(question, measured, f"<= {most}" if most else "", None if most is None else by_clock <= most)


def at_most(question: str, value: float, most: float, unit: str, scale: float = 1.0, note: str = "") -> Row:
    """A figure with a bound, in `unit` after multiplying by `scale`."""
    shown = f"{value * scale:,.3g} {unit}" if value * scale < 1000 else f"{value * scale:,.0f} {unit}"
    return Row(question, f"{shown}{note and '; '}{note}", f"<= {most:g} {unit}", value * scale <= most)


def span(seconds: float) -> str:
    """A time in the unit that suits it."""
    for unit, scale in (("us", 1e6), ("ms", 1e3)):
        if seconds * scale < 1000:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds:.2f} s"


@contextmanager
def place(kind: str) -> Iterator[Path]:
    """A directory on the project's disk, or in memory."""
    where = SHARED_MEMORY
    if kind == "disk":
        temporary = Path(tempfile.gettempdir())
        where = temporary if temporary.stat().st_dev == PROJECT.stat().st_dev else PROJECT
    with tempfile.TemporaryDirectory(prefix="filestate-bench-", dir=where) as path:
        yield Path(path)


def places() -> list[str]:
    """The kinds of place that this machine has."""
    return ["tmpfs", "disk"] if os.path.ismount(SHARED_MEMORY) else ["disk"]


def call_of(tool: Any, number: int, **args: Any) -> Any:
    """Invoke a tool as `ToolNode` does, outside of a graph."""
    return tool.invoke({"name": tool.name, "args": args, "id": f"call_{number}", "type": "tool_call"})


def tools_of(toolkit: Any) -> dict[str, Any]:
    return {tool.name: tool for tool in toolkit.get_tools()}
