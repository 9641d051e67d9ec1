"""What `import langchain_filestate` takes more than the frameworks that it stands on, as a user has it installed.

With byte code: pip compiles what it installs, so an import that compiles 60 modules would measure what no user meets.
Each import has a process of its own, which loads the frameworks first; only what follows is timed. Two processes, one
with and one without, differ by less than either varies. The garbage collector runs as in any program: whether one of
its full passes, which look at all that the frameworks have loaded too, falls into the import is told beside the time.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from tests.benchmarks._measure import Row, at_most, place, span
from tests.benchmarks._peak import run

CODE = """
import importlib
for name in sys.argv[2:]:
    importlib.import_module(name)
before = gc.get_stats()[2]["collections"]
wall, cpu = time.perf_counter(), time.process_time()
importlib.import_module(sys.argv[1])
spent = time.perf_counter() - wall, time.process_time() - cpu
print(json.dumps({"wall": spent[0], "cpu": spent[1], "passes": gc.get_stats()[2]["collections"] - before}))
"""
BASE = ["langgraph.graph", "langchain_core.tools"]


def rows(*, quick: bool) -> Iterator[Row]:
    with place("disk") as cache:
        run(CODE, "langchain_filestate", *BASE, cache=cache)  # compiles
        each = [run(CODE, "langchain_filestate", *BASE, cache=cache) for _ in range(3 if quick else 15)]
    wall, cpu, passes = (statistics.median(one[key] for one in each) for key in ("wall", "cpu", "passes"))
    note = f"processor {span(cpu)}; full passes of the garbage collector in it: {passes:g}"
    yield at_most("import over langgraph.graph and langchain_core.tools", wall, 60, "ms", 1e3, note=note)
