"""Several processes with threads of their own, on one PostgreSQL and one folder of files.

Each process runs agents whose messages read ten files and then edit these ten, whatever the others do to them meanwhile: each edit puts a
line of its own in. Nothing may be lost: each line stands in its file once, each change is in the history,
and the changes of a file lead without a gap from its first bytes to its last, whoever made them.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from langchain_core.messages import HumanMessage
from langgraph.checkpoint.postgres import PostgresSaver

from langchain_filestate import FileHistory, _disk
from langchain_filestate._changes import standing
from tests.postgres import binaries, database, open_store, server
from tests.scripted import KINDS, edit, read, tool_messages

BATCH = 10
ROUNDS = 5
"""Messages with edits in one thread; then the process begins another thread."""


def first(n: int) -> bytes:
    return b"".join(b"line %d of file %d\n" % (line, n) for line in range(50)) + b"END\n"


def work(url: str, root: str, number: int, edits: int, count: int, seed: int, start: Any, results: Any) -> None:
    """What one process does."""
    dice = random.Random(seed)
    codes: Counter[str] = Counter()
    wrote: list[tuple[str, str]] = []
    waits: list[float] = []
    with PostgresSaver.from_conn_string(url) as saver, open_store(url) as store:
        history = FileHistory(store)
        start.wait()
        left, thread = edits, 0
        while left:
            session = KINDS["graph"](
                Path(root),
                checkpointer=saver,
                history=history,
                thread=f"process {number}, thread {thread}",
                agent=f"p{number}",
            )
            thread += 1
            lines: list[Any] = []
            for _ in range(ROUNDS):
                batch = min(BATCH, left)
                left -= batch
                names = [f"{root}/{n:03}.txt" for n in dice.sample(range(count), batch)]
                marks = [f"p{number} t{thread} e{left + at}" for at in range(batch)]
                lines.append([read(name) for name in names])
                lines.append([edit(name, "END\n", f"{mark}\nEND\n") for name, mark in zip(names, marks, strict=True)])
                wrote += zip(names, marks, strict=True)
                if not left:
                    break
            session.model.script[:] = [*lines, "done"]
            began = time.perf_counter()
            out = session.graph.invoke({"messages": [HumanMessage("go")]}, {**session.config, "recursion_limit": 100})
            waits.append(time.perf_counter() - began)
            for message in tool_messages(out):
                result = message.artifact
                codes[result.get("code") or ("recovered" if result.get("stale_recovered") else result["kind"])] += 1
    results.put((number, wrote, codes))


@dataclass
class Figures:
    """What was seen."""

    edits: int
    seconds: float
    codes: Counter[str]
    faults: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.edits} edits in {self.seconds:.1f} s: {self.edits / self.seconds:.0f} per second, each with a read\n"
            f"{dict(self.codes)}\n{len(self.faults)} faults\n" + "\n".join(self.faults)
        )


def run(url: str, *, processes: int, edits: int, count: int, seed: int = 0, wait: float = 900) -> Figures:
    """Run the processes on an empty database and an empty folder."""
    ctx = multiprocessing.get_context("forkserver")
    ctx.set_forkserver_preload(["tests.long.processes", "tests.long.kill_graph"])
    with PostgresSaver.from_conn_string(url) as saver:
        saver.setup()
    with open_store(url) as store, tempfile.TemporaryDirectory(prefix="fs-many-") as made:
        root = str(Path(made).resolve())
        for n in range(count):
            Path(root, f"{n:03}.txt").write_bytes(first(n))
        results, start = ctx.Queue(), ctx.Barrier(processes + 1)
        each = [edits // processes + (n < edits % processes) for n in range(processes)]
        workers = [
            ctx.Process(target=work, args=(url, root, n, each[n], count, seed * 1000 + n, start, results))
            for n in range(processes)
        ]
        for worker in workers:
            worker.start()
        start.wait(wait)
        began = time.perf_counter()
        found = [results.get(timeout=wait) for _ in workers]
        seconds = time.perf_counter() - began
        for worker in workers:
            worker.join()
        figures = Figures(edits, seconds, sum((codes for _, _, codes in found), Counter()))
        figures.faults += check(FileHistory(store), root, count, [one for _, wrote, _ in found for one in wrote])
        return figures


def check(history: FileHistory, root: str, count: int, wrote: list[tuple[str, str]]) -> list[str]:
    """What is wrong at the end."""
    faults = []
    changes = history.changes()
    if len(changes) != len(wrote):
        faults.append(f"{len(changes)} changes for {len(wrote)} edits")
    threads = {thread for thread in history.threads() for change in history.changes(thread)}
    if sum(len(history.changes(thread)) for thread in threads) != len(changes):
        faults.append("the threads do not have all changes")
    for n in range(count):
        path = f"{root}/{n:03}.txt"
        data = Path(path).read_bytes()
        lines = Counter(data.decode().splitlines())
        marks = [mark for name, mark in wrote if name == path]
        if any(lines[mark] != 1 for mark in marks) or sum(lines.values()) != 51 + len(marks):
            faults.append(f"{path}: {[mark for mark in marks if lines[mark] != 1]}")
        links = standing([change for change in changes if change.path == path], _disk.digest(data))
        if links is None or len(links) != len(marks) or (links and links[0].before != _disk.digest(first(n))):
            faults.append(f"{path}: its changes do not hang together: {links and len(links)} of {len(marks)}")
        for change in links or ():
            kept = history.content(str(change.before))
            if kept is None or _disk.digest(kept) != change.before:
                faults.append(f"{path}: bytes before a change are missing")
    if len(list(Path(root).iterdir())) != count:
        faults.append(f"left over: {sorted(path.name for path in Path(root).iterdir())[:5]}")
    return faults


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="processes", description=__doc__)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--edits", type=int, default=2000)
    parser.add_argument("--files", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(argv)
    found = binaries()
    if found is None:
        print("PostgreSQL's server is not installed")
        return 2
    with server(found) as url, database(url) as own:
        figures = run(own, processes=given.processes, edits=given.edits, count=given.files, seed=given.seed)
    print(f"{given.processes} processes, {given.files} files\n{figures}")
    return bool(figures.faults)
