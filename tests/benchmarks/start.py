"""What `import langchain_filestate` takes more than the frameworks that it stands on."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from tests.benchmarks._measure import Row, at_most, place, span
from tests.benchmarks._peak import run

CODE = """
import importlib
def work():
    for name in sys.argv[1:]:
        importlib.import_module(name)
print(json.dumps(measure(work)))
"""
BASE = ["langgraph.graph", "langchain_core.tools"]


def rows(*, quick: bool) -> Iterator[Row]:
    ours, base = [], []
    with place("disk") as cache:
        run(CODE, *BASE, "langchain_filestate", cache=cache)  # compiles
        for _ in range(3 if quick else 15):
            base.append(run(CODE, *BASE, cache=cache))
            ours.append(run(CODE, *BASE, "langchain_filestate", cache=cache))
    more = {
        key: statistics.median(each[key] for each in ours) - statistics.median(each[key] for each in base)
        for key in ("wall", "cpu")
    }
    note = f"of {span(statistics.median(each['wall'] for each in ours))}; processor {span(more['cpu'])}"
    yield at_most("import over langgraph.graph and langchain_core.tools", more["wall"], 60, "ms", 1e3, note=note)
