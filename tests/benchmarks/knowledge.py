"""What grows with what an agent knows: the time of a step, the size of a record, the search for evidence."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from langchain_filestate import FileStateMiddleware, FileToolsMiddleware
from langchain_filestate.state import Messages, mark
from tests.benchmarks._measure import Row, Side, at_most, in_turn, place, places, ratio, span
from tests.scripted import Scripted, call

STEPS = 25


def knowing(root: Path, kind: Any, files: int) -> tuple[Callable[[], None], dict[str, Any]]:
    """Steps of an agent that has been shown so many files, all in one message: only the records differ."""
    middleware = kind(root)
    model = Scripted(script=[], requests=[])
    records: dict[str, Any] = {}
    for number in range(files):
        (root / f"module_{number:03}.py").write_text(f"value = {number}\n" * 20)
        records |= middleware.toolkit.seen(f"module_{number:03}.py", "shown", agent="coder")["file_state"]["coder"]
    numbers, threads = count(), count()

    def run() -> None:
        graph = create_agent(model, [], middleware=[middleware], checkpointer=InMemorySaver(), name="coder")
        config: Any = {"configurable": {"thread_id": str(next(threads))}, "recursion_limit": 1000}
        edits = []
        for _ in range(STEPS):
            n = next(numbers)
            old = f"value = 0\nvalue = 0 #{n}\n" if n else "value = 0\n" * 20
            new = f"value = 0\nvalue = 0 #{n + 1}\n"
            edits.append(call("edit_file", file_path="module_000.py", old_string=old, new_string=new))
        model.requests.clear()
        model.script[:] = [*edits, "done"]
        start: Any = {"messages": [HumanMessage("these files", id="shown")], "file_state": {"coder": records}}
        out = graph.invoke(start, config)
        assert sum(isinstance(m, ToolMessage) and m.status == "success" for m in out["messages"]) == STEPS
        records.update(out["file_state"]["coder"])

    return run, records


def conversation(size: int) -> list[Any]:
    """Messages as they come from agents: calls and results."""
    messages: list[Any] = [HumanMessage("go", id="human")]
    while len(messages) < size:
        n = len(messages)
        args = {"file_path": "a.py", "old_string": f"{n}", "new_string": f"{n + 1}"}
        text = "The file /a.py has been updated successfully."
        messages += [
            AIMessage("", id=f"ai-{n}", tool_calls=[{"name": "edit_file", "args": args, "id": f"c{n}"}]),
            ToolMessage(text, tool_call_id=f"c{n}", id=f"fs-{n}", additional_kwargs=mark(text, args=args)),
        ]
    return messages


def lookup(messages: list[Any], evidence: str, *, rounds: int) -> float:
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        assert Messages(messages).alive({evidence}) == {evidence}
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def rows(*, quick: bool) -> Iterator[Row]:
    for kind in (FileToolsMiddleware, FileStateMiddleware):
        with place(places()[0]) as top:
            sides = {}
            for files in (10, 500):
                root = top / str(files)
                root.mkdir()
                sides[str(files)], records = knowing(root, kind, files)
            time.sleep(3.2)  # files that nobody has touched for a while need not be read again
            paths = list(records)
            began = time.perf_counter()
            for path in paths:
                os.stat(path)
            looking = time.perf_counter() - began
            took = in_turn(sides, 5 if quick else 21)
            each = {name: Side(side.wall / STEPS, side.cpu / STEPS) for name, side in took.items()}
        yield ratio(f"step with 500 files read against 10, {kind.__name__}", each["500"], each["10"], 1.2)
        if kind is FileStateMiddleware:
            yield Row("  of it 500 times os.stat", span(looking))
    path, record = next(iter(records.items()))
    size = len(JsonPlusSerializer().dumps_typed(record)[1])
    yield at_most("record of a file that was read whole", size, 250, "B", note=f"its path has {len(path)}")
    messages = conversation(1000)
    recent = lookup(messages, messages[-1].id, rounds=500)
    oldest = lookup(messages, messages[2].id, rounds=500)
    note = f"from the first messages {span(oldest)}"
    yield at_most("evidence among 1,000 messages", recent, 20, "us", 1e6, note=note)
