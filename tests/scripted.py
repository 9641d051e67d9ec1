"""A model that follows a script, and the two kinds of graph that the tools are used in."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from langchain_filestate import FileState, FileStateMiddleware, FileToolkit

if TYPE_CHECKING:
    from pathlib import Path

_ids = itertools.count(1)

Calls = list[dict[str, Any]]
Line = str | dict[str, Any] | Calls | Callable[[], Any]


def call(name: str, **args: Any) -> dict[str, Any]:
    """One tool call with a fresh id."""
    return {"name": name, "args": args, "id": f"call_{next(_ids)}", "type": "tool_call"}


def read(path: Any, **args: Any) -> dict[str, Any]:
    return call("read_file", file_path=str(path), **args)


def edit(path: Any, old: str, new: str, **args: Any) -> dict[str, Any]:
    return call("edit_file", file_path=str(path), old_string=old, new_string=new, **args)


def write(path: Any, content: str) -> dict[str, Any]:
    return call("write_file", file_path=str(path), content=content)


def many(path: Any, *edits: tuple[str, str] | tuple[str, str, bool]) -> dict[str, Any]:
    keys = ("old_string", "new_string", "replace_all")
    return call("multi_edit", file_path=str(path), edits=[dict(zip(keys, one, strict=False)) for one in edits])


class Scripted(BaseChatModel):
    """Says the next line of its script: text, one call, several calls, or a function that gives one of these."""

    script: list[Any] = []
    requests: list[Any] = []

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **_: Any) -> ChatResult:
        self.requests.append(list(messages))
        line = self.script.pop(0) if self.script else "done"
        if callable(line):
            line = line()
        if isinstance(line, dict):
            line = [line]
        message = AIMessage(line) if isinstance(line, str) else AIMessage("", tool_calls=line)
        return ChatResult(generations=[ChatGeneration(message=message)])


def tool_messages(state: Any) -> list[ToolMessage]:
    return [message for message in state["messages"] if isinstance(message, ToolMessage)]


class Session:
    """One thread of one agent."""

    def __init__(self, graph: Any, model: Scripted, thread: str, toolkit: Any = None) -> None:
        self.graph, self.model, self.toolkit = graph, model, toolkit
        self.config: Any = {"configurable": {"thread_id": thread}}

    def say(self, *lines: Line) -> list[ToolMessage]:
        """Play assistant messages; the tool messages that they bring."""
        before = len(tool_messages(self.state()))
        self.model.script[:] = [*lines, "done"]
        out = self.graph.invoke({"messages": [HumanMessage("go on")]}, self.config)
        return tool_messages(out)[before:]

    async def asay(self, *lines: Line) -> list[ToolMessage]:
        before = len(tool_messages(self.state()))
        self.model.script[:] = [*lines, "done"]
        out = await self.graph.ainvoke({"messages": [HumanMessage("go on")]}, self.config)
        return tool_messages(out)[before:]

    def one(self, line: Line) -> ToolMessage:
        (message,) = self.say(line)
        return message

    def state(self) -> dict[str, Any]:
        return {"messages": [], **self.graph.get_state(self.config).values}

    def records(self) -> dict[str, Any]:
        found: dict[str, Any] = self.state().get("file_state", {})
        return found


def agent_session(
    root: Path, *, checkpointer: Any = None, thread: str = "t", name: str | None = "coder", tools: Sequence[Any] = (),
    middleware: Sequence[Any] = (), **policy: Any,
) -> Session:  # fmt: skip
    """An agent made by `create_agent` with the middleware."""
    from langchain.agents import create_agent

    model = Scripted(script=[], requests=[])
    ours = FileStateMiddleware(root, **policy)
    graph = create_agent(
        model, list(tools), middleware=[*middleware, ours], checkpointer=checkpointer or InMemorySaver(), name=name
    )
    return Session(graph, model, thread, ours.toolkit)


class State(MessagesState, FileState):
    """As a user writes it."""


def graph_session(
    root: Path, *, checkpointer: Any = None, thread: str = "t", tools: Sequence[Any] = (), **policy: Any
) -> Session:
    """A hand-made graph with a `ToolNode`."""
    model = Scripted(script=[], requests=[])
    toolkit = FileToolkit(root, **policy)
    builder = StateGraph(State)
    builder.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
    builder.add_node("tools", ToolNode([*tools, *toolkit.get_tools()]))
    builder.add_edge(START, "model")
    builder.add_conditional_edges("model", tools_condition)
    builder.add_edge("tools", "model")
    return Session(builder.compile(checkpointer=checkpointer or InMemorySaver()), model, thread, toolkit)


KINDS: dict[str, Callable[..., Session]] = {"agent": agent_session, "graph": graph_session}


def code(message: ToolMessage) -> str | None:
    """The code of a refusal; None for a success."""
    found: str | None = (message.artifact or {}).get("code")
    return found
