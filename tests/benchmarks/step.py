"""A step of an agent that edits: `create_agent` with these tools, and with deepagents' on its FilesystemBackend."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from langchain_filestate import FileStateMiddleware, FileToolsMiddleware
from tests.benchmarks._floor import sync_directory
from tests.benchmarks._measure import Row, Side, in_turn, place, places, ratio, span
from tests.benchmarks.thread import Inner, Outer
from tests.scripted import Scripted, call

EDITS = 50
TEXT = "x = 0\n" + "y = 1  # some text in a line\n" * 1400


def deep(root: Path, *, sync: bool = False) -> Any:
    from deepagents.backends import FilesystemBackend
    from deepagents.middleware.filesystem import FilesystemMiddleware

    class Synced(FilesystemBackend):
        """What it has written is on the disk when it says so."""

        def edit(self, file_path: str, *args: Any, **kwargs: Any) -> Any:
            result = super().edit(file_path, *args, **kwargs)
            fd = os.open(root / file_path.lstrip("/"), os.O_RDONLY)
            os.fsync(fd)
            os.close(fd)
            sync_directory(root)
            return result

    return FilesystemMiddleware(backend=(Synced if sync else FilesystemBackend)(root_dir=root, virtual_mode=True))


def agent(root: Path, *middleware: Any, path: str = "a.py", after: list[Any] | None = None) -> Callable[[], None]:
    """A function that lets the agent make 50 edits in a row, in a thread of its own that has read the file.

    Args:
        root: Where the file is.
        middleware: Of the agent.
        path: The file, as these tools name it.
        after: Takes the messages at the end.
    """
    model = Scripted(script=[], requests=[])
    threads = count()
    file = root / path.lstrip("/")

    def run() -> None:
        file.write_text(TEXT)
        graph = create_agent(model, [], middleware=middleware, checkpointer=InMemorySaver(), name="coder")
        config: Any = {"configurable": {"thread_id": str(next(threads))}, "recursion_limit": 1000}
        edits = [
            call("edit_file", file_path=path, old_string=f"x = {n}\n", new_string=f"x = {n + 1}\n")
            for n in range(EDITS)
        ]
        model.requests.clear()
        model.script[:] = [call("read_file", file_path=path, limit=100), *edits, "done"]
        out = graph.invoke({"messages": [HumanMessage("go")]}, config)
        assert file.read_text().startswith(f"x = {EDITS}\n")
        if after is not None:
            after[:] = out["messages"]

    return run


def parts(root: Path) -> Iterator[Row]:
    """Where the difference to deepagents comes from: around the tool, around the model, in the checkpoints."""
    found: list[tuple[float, float, float]] = []
    for kind, path in (("tools", "a.py"), ("deep", "/a.py")):
        own = root / kind
        middleware = FileToolsMiddleware(own) if kind == "tools" else deep(own)
        messages: list[Any] = []
        outer = Outer()
        agent(own, outer, middleware, Inner(outer), path=path, after=messages)()
        serde = JsonPlusSerializer()
        times = []
        for _ in range(20):
            began = time.thread_time()
            serde.dumps_typed(messages)
            times.append(time.thread_time() - began)
        # each step writes two checkpoints; on the average half of the messages are there
        written = statistics.median(times)
        found.append((statistics.median(outer.tool), statistics.median(outer.around), written))
    for name, ours, theirs in zip(("tool call", "around the model", "messages serialised"), *found, strict=True):
        yield Row(f"  of it {name}, processor", f"{span(ours)} / {span(theirs)}")


def rows(*, quick: bool) -> Iterator[Row]:
    for kind in places():
        with place(kind) as top:
            roots = {name: top / name for name in ("tools", "state", "deep", "synced")}
            for root in roots.values():
                root.mkdir()
            sides = {
                "tools": agent(roots["tools"], FileToolsMiddleware(roots["tools"])),
                "deep": agent(roots["deep"], deep(roots["deep"]), path="/a.py"),
                "state": agent(roots["state"], FileStateMiddleware(roots["state"])),
            }
            if kind == "disk":
                sides["synced"] = agent(roots["synced"], deep(roots["synced"], sync=True), path="/a.py")
            took = in_turn(sides, 3 if quick else 11)
            why = list(parts(top)) if kind == places()[0] else []
            each = {name: Side(side.wall / EDITS, side.cpu / EDITS) for name, side in took.items()}
        yield ratio(f"step with an edit, {kind}: against deepagents", each["tools"], each["deep"], 1.0)
        yield from why
        if kind == "disk":
            yield ratio("  against deepagents that syncs as well", each["tools"], each["synced"])
        yield ratio(f"  FileStateMiddleware against FileToolsMiddleware, {kind}", each["state"], each["tools"], 1.15)
