"""A long thread: what these tools take of a step after a thousand of them, beside the first ones.

Measured inside of the graph, around the tool and around the model: what LangGraph itself does with a growing list of
messages (it is copied and serialised at each step, whatever the tools) is another matter.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import HumanMessage

from langchain_filestate import FileStateMiddleware
from tests.benchmarks._measure import Row, place, places, span
from tests.scripted import Scripted, call


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


def rows(*, quick: bool) -> Iterator[Row]:
    steps = 300 if quick else 1000
    with place(places()[0]) as root:
        text = "x = 0\n" + "y = 1  # some text in a line\n" * 1400
        (root / "a.py").write_text(text)
        outer = Outer()
        model = Scripted(script=[], requests=[])
        ours = FileStateMiddleware(root)
        graph = create_agent(model, [], middleware=[outer, ours, Inner(outer)], name="coder")
        for n in range(steps):
            start = n % 1300 + 1
            edit = call("edit_file", file_path="a.py", old_string=f"x = {n}\n", new_string=f"x = {n + 1}\n")
            model.script += [call("read_file", file_path="a.py", offset=start, limit=50), edit]
        graph.invoke({"messages": [HumanMessage("go")]}, {"recursion_limit": 10 * steps})
        assert (root / "a.py").read_text() == text.replace("x = 0", f"x = {steps}")

    def of(part: slice) -> float:
        # one read and one edit, with the model calls before them
        calls = zip(outer.tool[0::2], outer.tool[1::2], outer.around[0::2], outer.around[1::2], strict=False)
        return statistics.median([sum(each) for each in calls][part])

    first, last = of(slice(0, 100)), of(slice(steps - 100, steps))
    measured = f"{last / first:.2f} ({span(last)} / {span(first)}, processor)"
    yield Row(f"{steps:,} steps of read and edit: last 100 against first", measured, "<= 1.3", last <= 1.3 * first)
