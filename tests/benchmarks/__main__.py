"""One table of all questions: `python -m tests.benchmarks [--quick] [names...]`."""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version

from tests.benchmarks._measure import Row

NAMES = (
    "edit", "step", "read", "knowledge", "thread", "sweep", "large", "window", "patch", "rewrite", "start", "hands",
)  # fmt: skip
PACKAGES = ("langchain-filestate", "langchain-core", "langchain", "langgraph", "deepagents", "pydantic")


def main() -> int:
    """Run them and print the table; the exit code says nothing of speed."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds and smaller files")
    parser.add_argument("names", nargs="*", metavar="name", help=f"of {', '.join(NAMES)}; all if there is none")
    options = parser.parse_args()
    unknown = set(options.names).difference(NAMES)
    if unknown:
        parser.error(f"there is no {', '.join(sorted(unknown))}")
    found: list[Row] = []
    for name in options.names or NAMES:
        print(f"{name} ...", file=sys.stderr, flush=True)
        found += importlib.import_module(f"tests.benchmarks.{name}").rows(quick=options.quick)
    print(table(found))
    print()
    print(f"Medians of runs in turn; {'quick form; ' if options.quick else ''}{versions()}")
    return 0


def table(rows: list[Row]) -> str:
    """The rows as Markdown."""
    marks = {True: "yes", False: "no", None: ""}
    cells = [("question", "measured", "to reach", "met")]
    cells += [(row.question.replace("  ", "… ", 1), row.measured, row.reach, marks[row.met]) for row in rows]
    widths = [max(len(row[n]) for row in cells) for n in range(4)]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in cells
    ]
    lines.insert(1, "| " + " | ".join("-" * width for width in widths) + " |")
    return "\n".join(lines)


def versions() -> str:
    """What was measured, and on what."""
    parts = [f"Python {platform.python_version()}", f"{platform.system()}, {os.cpu_count()} cores"]
    for package in PACKAGES:
        try:
            parts.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return ", ".join(parts)


if __name__ == "__main__":
    sys.exit(main())
