"""A graph that is killed at random moments, and resumed in a new process until it is done.

The run: two files read, then ten edits in seven messages, some of them several in one message, on one file and on two;
one file is made new, one edit is of the kind that would show a second application ("x" to "xx"). Checkpointer and store
are SQLite, on disk. Each attempt is a process of its own, forked from one that has everything imported; it is killed by
SIGKILL after a random time. What has to hold at the end: the files are as after one run, the history has each change
once and leads from the first bytes to the last, and nothing is left over in the directory.

`durability="sync"`, for the graph must not go on before its checkpoint is written: with "async", a message of the model
may be lost with the process after its calls ran, and what the model then says is another message.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import shutil
import signal
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.store.sqlite import SqliteStore

from langchain_filestate import FileHistory, _disk
from langchain_filestate._changes import standing
from tests.scripted import KINDS, edit, read, tool_messages, write

BEFORE = {"a": b"x\n" + b"".join(b"line %d\n" % n for n in range(40)), "b": b"0\n"}
AFTER = {
    "a": BEFORE["a"]
    .replace(b"x\n", b"xxx\n")
    .replace(b"line 1\n", b"line 1 line 1\n")
    .replace(b"line 2\n", b"two two\n"),
    "b": b"written\n",
    "sub/n": b"newer\n",
}
EDITS = 10


def script(root: Path) -> list[list[dict[str, Any]]]:
    """What the model says, by the number of its message; call ids depend on nothing but the place."""
    a, b, n = root / "a", root / "b", root / "sub" / "n"
    lines = [
        [read(a), read(b)],
        [edit(a, "x\n", "xx\n")],
        [edit(a, "line 1\n", "line 1 line 1\n"), edit(b, "0", "00")],
        [edit(a, "line 2\n", "two\n"), edit(a, "two\n", "two two\n")],
        [write(n, "new\n")],
        [edit(n, "new", "newer"), edit(b, "00", "1")],
        [edit(a, "xx\n", "xxx\n")],
        [write(b, "written\n")],
    ]
    return [[{**call, "id": f"call_{at}"} for at, call in enumerate(calls)] for calls in lines]


def attempt(where: str, kind: str, durability: Any, ready: Any) -> None:
    """Begin or go on, in a process of its own."""
    base = Path(where)
    root = base / "root"
    with (
        SqliteSaver.from_conn_string(str(base / "checkpoints.db")) as saver,
        SqliteStore.from_conn_string(str(base / "history.db")) as store,
    ):
        store.setup()
        session = KINDS[kind](root, checkpointer=saver, history=FileHistory(store), thread="t")
        lines = [*script(root), "done"]

        def line() -> Any:
            return lines[sum(isinstance(message, AIMessage) for message in session.model.requests[-1])]

        session.model.script[:] = [line] * len(lines)
        given = None if saver.get_tuple(session.config) else {"messages": [HumanMessage("go")]}
        ready.set()
        session.graph.invoke(given, session.config, durability=durability)


@dataclass
class Figures:
    """What was seen."""

    runs: int = 0
    kills: int = 0
    late: int = 0
    """Attempts that were done before they were to be killed."""
    again: int = 0
    """Answers that say that the change was already applied."""
    moments: Counter[int] = field(default_factory=Counter)
    """How many changes were on record at a kill."""
    faults: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        spread = ", ".join(f"{changes}: {times}" for changes, times in sorted(self.moments.items()))
        return (
            f"{self.runs} runs, {self.kills} kills, {self.again} calls found applied, {self.late} attempts done before "
            f"their kill\nkills by changes on record: {spread}\n{len(self.faults)} faults\n" + "\n".join(self.faults)
        )


def context() -> Any:
    """Processes forked from one that has imported everything."""
    made = multiprocessing.get_context("forkserver")
    made.set_forkserver_preload(["tests.long.kill_graph", "langchain.agents"])
    return made


def start(ctx: Any, base: Path, kind: str, durability: str) -> Any:
    ready = ctx.Event()
    process = ctx.Process(target=attempt, args=(str(base), kind, durability, ready))
    process.start()
    while not ready.wait(0.05):
        if process.exitcode is not None:
            raise RuntimeError(f"the run ended with {process.exitcode} before it began")
    return process


def fresh(kind: str) -> Path:
    base = Path(tempfile.mkdtemp(prefix=f"fs-kill-{kind}-", dir=os.environ.get("KILL_DIR")))
    (base / "root").mkdir()
    for name, data in BEFORE.items():
        (base / "root" / name).write_bytes(data)
    return base


def files(base: Path) -> dict[str, bytes]:
    root = base / "root"
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def once(ctx: Any, kind: str, durability: str) -> float:
    """Seconds of a run that nobody kills."""
    base = fresh(kind)
    try:
        process = start(ctx, base, kind, durability)
        began = time.perf_counter()
        process.join()
        assert files(base) == AFTER
        return time.perf_counter() - began
    finally:
        shutil.rmtree(base)


def check(base: Path, kind: str, figures: Figures) -> list[str]:
    """What is wrong after a run."""
    faults = []
    if (found := files(base)) != AFTER:
        faults.append(f"files: {sorted(found)}: { {n: d for n, d in found.items() if d != AFTER.get(n)} }")
    root = base / "root"
    with (
        SqliteSaver.from_conn_string(str(base / "checkpoints.db")) as saver,
        SqliteStore.from_conn_string(str(base / "history.db")) as store,
    ):
        history = FileHistory(store)
        session = KINDS[kind](root, checkpointer=saver, history=history, thread="t")
        answers = tool_messages(session.state())
        figures.again += sum(bool(message.artifact.get("already_applied")) for message in answers)
        if len(answers) != EDITS + 2 or any(message.status == "error" for message in answers):
            faults.append(f"answers: {[message.content for message in answers]}")
        if any(message.artifact.get("stale_recovered") for message in answers):
            faults.append("an edit was taken for one of a stale file")
        changes = history.changes("t")
        if len(changes) != EDITS:
            faults.append(f"{len(changes)} changes: {[(change.tool, change.path) for change in changes]}")
        for name, data in AFTER.items():
            path = str((root / name).resolve())
            links = standing([change for change in changes if change.path == path], _disk.digest(data))
            first = _disk.digest(BEFORE[name]) if name in BEFORE else None
            if not links or links[0].before != first:
                faults.append(f"the changes of {name} do not lead from the first bytes to the last")
        records = session.records()
        for path, record in next(iter(records.values())).items():
            if record["digest"] != _disk.digest(Path(path).read_bytes()):
                faults.append(f"the record of {path} is not what is on disk")
        # And all of it can be taken back.
        first_of = list(session.graph.get_state_history(session.config))[-1]
        session.toolkit.rewind(first_of)
        if (found := files(base)) != BEFORE:
            faults.append(f"rewound: {found}")
    return faults


def run(
    times: int,
    *,
    seed: int = 0,
    durability: str = "sync",
    most_kills: int = 3,
    kinds: tuple[str, ...] = ("agent", "graph"),
) -> Figures:
    """Kill `times` runs."""
    ctx, figures, dice = context(), Figures(), random.Random(seed)
    seconds = {kind: once(ctx, kind, durability) for kind in kinds}
    for number in range(times):
        kind = kinds[number % len(kinds)]
        base = fresh(kind)
        figures.runs += 1
        for left in reversed(range(most_kills + 1)):
            process = start(ctx, base, kind, durability)
            if left:
                process.join(dice.uniform(0, seconds[kind]))
                if process.exitcode is None:
                    process.kill()  # unless it has ended just now
            process.join()
            if process.exitcode == -signal.SIGKILL:
                figures.kills += 1
                with SqliteStore.from_conn_string(str(base / "history.db")) as store:
                    figures.moments[len(FileHistory(store).changes("t"))] += 1
                continue
            figures.late += left > 0
            if process.exitcode != 0:
                figures.faults.append(f"run {number} ({kind}): ended with {process.exitcode}; see {base}")
            break
        faults = check(base, kind, figures)
        figures.faults += [f"run {number} ({kind}): {fault}; see {base}" for fault in faults]
        if not faults:
            shutil.rmtree(base)
    return figures


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="kill-graph", description=__doc__)
    parser.add_argument("--times", type=int, default=200)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--durability", default="sync", choices=["sync", "async", "exit"])
    given = parser.parse_args(argv)
    seed = random.randrange(10**6) if given.seed is None else given.seed
    began = time.perf_counter()
    figures = run(given.times, seed=seed, durability=given.durability)
    print(f"seed {seed}, durability {given.durability}, {time.perf_counter() - began:.0f} s\n{figures}")
    return bool(figures.faults)
