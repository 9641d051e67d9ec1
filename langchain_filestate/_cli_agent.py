"""The agent of the command line: a real `create_agent` graph with the middleware, and a model for it.

The model is any that `init_chat_model` knows, or `scripted:FILE.json`: a JSON list of what it says, line by line, each
a text, a tool call `{"name": ..., "args": {...}}`, or a list of tool calls. After the last line it says "done". That is
for trying things out without a key or a network.
"""

from __future__ import annotations

import json
import os
import secrets
from typing import TYPE_CHECKING, Any

from langchain.agents import create_agent
from langchain.agents.middleware.types import AgentMiddleware
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import StructuredTool
from langgraph.errors import GraphBubbleUp
from pathspec import GitIgnoreSpec

from langchain_filestate import _text
from langchain_filestate._cli_show import Stop, clean, one_line
from langchain_filestate.errors import Refused
from langchain_filestate.middleware import FileStateMiddleware

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from langchain.agents.middleware.types import ModelRequest, ModelResponse
    from langchain_core.tools import BaseTool
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.graph.state import CompiledStateGraph
    from langgraph.types import StateSnapshot

    from langchain_filestate.tools import FileToolkit

NAME = "agent"
SCRIPTED = "scripted:"
MOST_LISTED = 500
_MOST_WALKED = 50_000
_SKIPPED = {"__pycache__", "node_modules"}


class Scripted(BaseChatModel):
    """A model that says the lines of a script: a text, a tool call, several, or a function that gives one of these."""

    script: list[Any]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        """The script knows its tools."""
        del tools
        return self

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **_: Any) -> ChatResult:
        del messages, stop, run_manager
        line = self.script.pop(0) if self.script else "done"
        if callable(line):
            line = line()
        if isinstance(line, str):
            message = AIMessage(line)
        else:
            calls = [line] if isinstance(line, dict) else line
            message = AIMessage(
                "",
                tool_calls=[
                    {"name": call["name"], "args": call["args"], "id": call.get("id") or f"call_{secrets.token_hex(4)}"}
                    for call in calls
                ],
            )
        return ChatResult(generations=[ChatGeneration(message=message)])


def model_of(name: str) -> BaseChatModel:
    """The model that the user named.

    Args:
        name: `provider:model` as for `init_chat_model`, or `scripted:FILE.json`.

    Raises:
        Stop: There is no such model, its package is not installed, or it lacks a key.
    """
    if name.startswith(SCRIPTED):
        return Scripted(script=_script(name.removeprefix(SCRIPTED)))
    from langchain.chat_models import init_chat_model  # noqa: PLC0415  slow to import

    try:
        model = init_chat_model(name)
    except ImportError as error:
        raise Stop(one_line(str(error), 400)) from error
    except Exception as error:  # each provider has errors of its own, for a missing key above all
        raise Stop(f"The model {name} cannot be used: {one_line(str(error), 400)}") from error
    if not isinstance(model, BaseChatModel):  # pragma: no cover  only for a model without a name
        raise Stop(f"{name} names no chat model.")
    return model


def _script(path: str) -> list[Any]:
    try:
        with open(path, encoding="utf-8") as file:
            lines = json.load(file)
    except OSError as error:
        raise Stop(f"The script {path} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise Stop(f"The script {path} is not JSON: {error}.") from error
    if not isinstance(lines, list) or not all(map(_is_line, lines)):
        raise Stop(
            f'The script {path} must be a list of lines, each a text, a call {{"name": ..., "args": {{...}}}}, '
            "or a list of calls."
        )
    return lines


def _is_line(line: object) -> bool:
    return (
        isinstance(line, str) or _is_call(line) or (isinstance(line, list) and bool(line) and all(map(_is_call, line)))
    )


def _is_call(line: object) -> bool:
    return isinstance(line, dict) and isinstance(line.get("name"), str) and isinstance(line.get("args"), dict)


class _Guard(AgentMiddleware[Any, Any, Any]):
    """Names what the model's provider raises, so that it is told from a fault in the program."""

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """As for every middleware."""
        try:
            return handler(request)
        except GraphBubbleUp:
            raise
        except Exception as error:  # each provider has errors of its own
            what = f"{type(error).__name__}: {one_line(str(error), 400)}"
            raise Stop(f"The model did not answer. {what}", 1) from error


def agent_of(
    model: BaseChatModel, toolkit: FileToolkit, saver: BaseCheckpointSaver[Any], *, listing: bool = False
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """The graph.

    Args:
        model: What answers.
        toolkit: The file tools.
        saver: Where the checkpoints are kept.
        listing: Whether the agent also gets a tool that lists files, and a word on where it works.
    """
    tools: Sequence[BaseTool] = [lister(toolkit)] if listing else []
    prompt = (
        f"You work on the files below {toolkit.workspace.root}; relative paths start there. list_files shows what "
        "there is. Change only what the task asks for, and end with a short summary of what you changed."
    )
    return create_agent(
        model,
        tools,
        system_prompt=prompt if listing else None,
        middleware=[_Guard(), FileStateMiddleware(toolkit)],
        checkpointer=saver,
        name=NAME,
    )


def checkpoint_of(snapshots: Iterable[StateSnapshot], thread: str, given: str) -> StateSnapshot:
    """The checkpoint that the user means.

    Args:
        snapshots: All checkpoints of the thread.
        thread: The thread.
        given: Its id, or how it begins.

    Raises:
        Stop: There is none, or more than one.
    """
    named = []
    for each in snapshots:
        own = each.config["configurable"]["checkpoint_id"]
        if own == given:
            return each
        if given and own.startswith(given):
            named.append(each)
    if not named:
        raise Stop(f"Thread {thread} has no checkpoint {clean(given)}; `rewind --thread {thread}` lists them.")
    if len(named) > 1:
        raise Stop(f"{len(named)} checkpoints begin with {clean(given)}; give more of it.")
    return named[0]


def lister(toolkit: FileToolkit) -> BaseTool:
    """A tool that lists the files which the toolkit's rules let be read."""
    workspace = toolkit.workspace

    def readable(path: str) -> bool:
        try:
            return workspace.locate(path, write=False).path != ""
        except Refused:
            return False

    def list_files(pattern: str = "*") -> str:
        spec = GitIgnoreSpec.from_lines([pattern])
        found: list[str] = []
        walked = 0
        for directory, below, names in os.walk(workspace.root):
            below[:] = sorted(name for name in below if not name.startswith(".") and name not in _SKIPPED)
            for name in sorted(names):
                path = os.path.relpath(os.path.join(directory, name), workspace.root)
                walked += 1
                if spec.match_file(path) and readable(path):
                    found.append(_text.show(path))
            if len(found) > MOST_LISTED or walked > _MOST_WALKED:
                return "\n".join([*found[:MOST_LISTED], "... (more files; give a narrower pattern)"])
        return "\n".join(found) or "No files match."

    return StructuredTool.from_function(
        list_files,
        description=(
            "List files below the working directory that match a pattern in gitignore syntax: *.py finds them at any "
            "depth, src/ everything below src. Hidden directories are left out."
        ),
    )
