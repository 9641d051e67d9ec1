"""A step of an agent that edits: `create_agent` with these tools, and with deepagents' on its FilesystemBackend."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from langchain_filestate import FileStateMiddleware, FileToolsMiddleware
from tests.benchmarks._floor import sync_directory
from tests.benchmarks._measure import Row, Side, in_turn, place, places, ratio
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


def agent(root: Path, middleware: Any, path: str) -> Callable[[], None]:
    """A function that lets the agent make 50 edits in a row, in a thread of its own that has read the file."""
    model = Scripted(script=[], requests=[])
    threads = count()
    file = root / path.lstrip("/")

    def run() -> None:
        file.write_text(TEXT)
        graph = create_agent(model, [], middleware=[middleware], checkpointer=InMemorySaver(), name="coder")
        config: Any = {"configurable": {"thread_id": str(next(threads))}, "recursion_limit": 1000}
        edits = [
            call("edit_file", file_path=path, old_string=f"x = {n}\n", new_string=f"x = {n + 1}\n")
            for n in range(EDITS)
        ]
        model.requests.clear()
        model.script[:] = [call("read_file", file_path=path, limit=100), *edits, "done"]
        graph.invoke({"messages": [HumanMessage("go")]}, config)
        assert file.read_text().startswith(f"x = {EDITS}\n")

    return run


def rows(*, quick: bool) -> Iterator[Row]:
    for kind in places():
        with place(kind) as top:
            roots = {name: top / name for name in ("tools", "state", "deep", "synced")}
            for root in roots.values():
                root.mkdir()
            sides = {
                "tools": agent(roots["tools"], FileToolsMiddleware(roots["tools"]), "a.py"),
                "deep": agent(roots["deep"], deep(roots["deep"]), "/a.py"),
                "state": agent(roots["state"], FileStateMiddleware(roots["state"]), "a.py"),
            }
            if kind == "disk":
                sides["synced"] = agent(roots["synced"], deep(roots["synced"], sync=True), "/a.py")
            took = in_turn(sides, 3 if quick else 11)
            each = {name: Side(side.wall / EDITS, side.cpu / EDITS) for name, side in took.items()}
        yield ratio(f"step with an edit, {kind}: against deepagents", each["tools"], each["deep"], 1.0)
        if kind == "disk":
            yield ratio("  against deepagents that syncs as well", each["tools"], each["synced"])
        yield ratio(f"  FileStateMiddleware against FileToolsMiddleware, {kind}", each["state"], each["tools"], 1.15)
