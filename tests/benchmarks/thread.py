"""A long thread: what these tools take of a step after a thousand of them, beside the first ones.

Measured inside of the graph, around the tool and around the model: what LangGraph itself does with a growing list of
messages (it is copied and serialised at each step, whatever the tools) is another matter.

The last steps are measured in turn with the first ones of a second thread, in the same minute: what else the machine
does then, how fast its processor runs, and that the long list of messages has driven everything else out of its caches,
is the same for both. Two rows explain: the same last steps beside the thread's own first ones, a minute earlier, which
says as much about the machine as about the tools; and tools that do nothing, called with the same arguments and
answering with the same texts, as LangChain runs them. The garbage collector runs as it does for everybody (its share
was measured with `gc.callbacks`: below 0.3 ms of a step, at the end as at the beginning).
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import HumanMessage

from langchain_filestate import FileStateMiddleware
from tests.benchmarks._floor import Empty, EmptyRead
from tests.benchmarks._measure import Row, place, places, span
from tests.scripted import Scripted, call

LINE = "y = 1  # some text in a line\n"


class Outer(AgentMiddleware[Any, Any, Any]):
    """Around ours: what a tool call takes, and what a model call takes beside the model."""

    def __init__(self) -> None:
        super().__init__()
        self.tool: list[float] = []
        self.around: list[float] = []
        self.model = 0.0

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        began = time.thread_time()
        result = handler(request)
        self.tool.append(time.thread_time() - began)
        return result

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        began = time.thread_time()
        result = handler(request)
        self.around.append(time.thread_time() - began - self.model)
        return result


class Inner(AgentMiddleware[Any, Any, Any]):
    """Inside of ours: what the model takes."""

    def __init__(self, outer: Outer) -> None:
        super().__init__()
        self.outer = outer

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        began = time.thread_time()
        result = handler(request)
        self.outer.model = time.thread_time() - began
        return result


class Thread:
    """A thread of an agent that reads and edits, a step at a time."""

    def __init__(self, root: Path, name: str, steps: int, *, empty: bool) -> None:
        self.steps = steps
        self.file = root / name
        self.text = "x = 0\n" + LINE * 1400
        self.file.write_text(self.text)
        self.outer = Outer()
        script: list[Any] = []
        for n in range(steps):
            edit = call("edit_file", file_path=name, old_string=f"x = {n}\n", new_string=f"x = {n + 1}\n")
            script += [call("read_file", file_path=name, offset=n % 1300 + 1, limit=50), edit]
        model = Scripted(script=script)
        model.requests = Forgetful()
        tools = [EmptyRead(name="read_file", text=LINE * 50), Empty()] if empty else []
        ours = [] if empty else [FileStateMiddleware(root)]
        graph = create_agent(model, tools, middleware=[self.outer, *ours, Inner(self.outer)], name="coder")
        start: Any = {"messages": [HumanMessage("go")]}
        self.updates = graph.stream(start, {"recursion_limit": 10 * steps}, stream_mode="updates")
        self.empty = empty

    def go_to(self, step: int) -> None:
        while len(self.outer.tool) < 2 * step:
            next(self.updates)

    def end(self) -> None:
        for _ in self.updates:
            pass
        if not self.empty:
            assert self.file.read_text() == self.text.replace("x = 0", f"x = {self.steps}")

    def spent(self, part: slice) -> float:
        """What one read and one edit take, with the model calls before them."""
        outer = self.outer
        calls = zip(outer.tool[0::2], outer.tool[1::2], outer.around[0::2], outer.around[1::2], strict=False)
        return statistics.median([sum(each) for each in calls][part])


class Forgetful(list[Any]):
    """Requests that are not kept: a list of all messages for each call would be a burden of the benchmark's own."""

    def append(self, request: Any) -> None:
        pass


def compared(steps: int, *, empty: bool) -> tuple[float, float, float]:
    """What a step takes: the first hundred, the last, and the first of another thread in turn with the last."""
    with place(places()[0]) as root:
        long, fresh = (Thread(root, name, n, empty=empty) for name, n in (("a.py", steps), ("b.py", 100)))
        long.go_to(steps - 100)
        for n in range(1, 101):
            fresh.go_to(n)
            long.go_to(steps - 100 + n)
        long.end()
        fresh.end()
    return long.spent(slice(0, 100)), long.spent(slice(steps - 100, steps)), fresh.spent(slice(0, 100))


def rows(*, quick: bool) -> Iterator[Row]:
    steps = 300 if quick else 1000
    first, last, beside = compared(steps, empty=False)
    question = f"{steps:,} steps of read and edit: last 100 against"
    measured = f"{last / beside:.2f} ({span(last)} / {span(beside)}, processor)"
    yield Row(f"{question} the first 100 of another thread, in turn", measured, "<= 1.3", last <= 1.3 * beside)
    yield Row(f"{question} its own first 100", f"{last / first:.2f} ({span(last)} / {span(first)}, processor)")
    first, last, beside = compared(steps, empty=True)
    measured = f"{last / beside:.2f} ({span(last)} / {span(beside)}); own first {last / first:.2f} ({span(first)})"
    yield Row("The same with tools that do nothing, as LangChain runs them", measured)
