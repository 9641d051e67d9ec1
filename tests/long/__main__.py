"""`python -m tests.long kill-graph ...` runs `main` of `tests.long.kill_graph`; each command is a module of its own."""

from __future__ import annotations

import importlib
import pkgutil
import sys

import tests.long


def main(argv: list[str]) -> int:
    commands = sorted(m.name.replace("_", "-") for m in pkgutil.iter_modules(tests.long.__path__) if m.name[0] != "_")
    if not argv or argv[0] not in commands:
        print("usage: python -m tests.long COMMAND [ARGUMENTS]; commands:", ", ".join(commands))
        return 2
    return int(importlib.import_module(f"tests.long.{argv[0].replace('-', '_')}").main(argv[1:]) or 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
