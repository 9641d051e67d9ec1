"""Middleware for `create_agent`: the tools and their state, and what tools alone cannot do.

`FileToolsMiddleware` supplies tools and channel. `FileStateMiddleware` has the agent's loop in hand: it announces
outside changes before the model is called, books what shell commands show, and notes which results a request to the
model did not hold. Put it last in the list, so that it is the innermost and sees what the model is really sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, NotRequired

from langchain.agents.middleware.types import (
    AgentMiddleware,
    AgentState,
    ExtendedModelResponse,
    ModelRequest,
    ModelResponse,
    PrivateStateAttr,
    ToolCallRequest,
)
from langchain_core.messages import ToolMessage
from langchain_core.runnables import run_in_executor
from langgraph.types import Command

from langchain_filestate import _deepagents, watch
from langchain_filestate._giveway import without_old_media
from langchain_filestate._records import evidence_in
from langchain_filestate._running import run_of
from langchain_filestate.errors import WiringError
from langchain_filestate.state import CHANNEL, LEFT_OUT, FileState, channel_of, mark, new_id
from langchain_filestate.tools import FileToolkit

if TYPE_CHECKING:
    import os
    from collections.abc import Awaitable, Callable, Iterator


class ToolsState(AgentState[Any], FileState):
    """The state of an agent with the tools."""


class WatchedState(ToolsState):
    """The state of an agent with `FileStateMiddleware`."""

    file_state_left_out: NotRequired[Annotated[list[str], PrivateStateAttr]]
    """Ids of messages that the last request to the model did not hold, though they are in the state."""


def _told(request: ModelRequest[Any], news: Mapping[str, Any], gone: Mapping[str, ToolMessage]) -> ModelRequest[Any]:
    """The request with the notice at its end, if there is one, and without the media that gave way."""
    if not gone and "messages" not in news:
        return request
    messages = [*(gone.get(str(message.id), message) for message in request.messages), *news.get("messages", ())]
    return request.override(messages=messages)


class FileToolsMiddleware(AgentMiddleware[Any, Any, Any]):
    """The tools and their state for `create_agent`.

    Takes the same arguments as `FileToolkit`, or a toolkit that is there already.
    """

    state_schema = ToolsState

    def __init__(self, root: str | os.PathLike[str] | FileToolkit = ".", **options: Any) -> None:
        super().__init__()
        if isinstance(root, FileToolkit):
            if options:
                raise TypeError("Give the options to the toolkit that is passed.")
            self.toolkit = root
        else:
            self.toolkit = FileToolkit(root, **options)
        self.tools = self.toolkit.get_tools()

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
        """Raise where deepagents works on other files than these tools."""
        _deepagents.check(request.tools, request.state, self.toolkit.ours)
        return handler(request)

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
        """As `wrap_model_call`."""
        _deepagents.check(request.tools, request.state, self.toolkit.ours)
        return await handler(request)

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]]
    ) -> ToolMessage | Command[Any]:
        """Let the records go along when a tool hands over to another agent."""
        return _handed_on(handler(request), request)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]]
    ) -> ToolMessage | Command[Any]:
        """As `wrap_tool_call`."""
        return _handed_on(await handler(request), request)


class FileStateMiddleware(FileToolsMiddleware):
    """Tools and state, notices of outside changes, reading by shell commands, and what the model was really sent.

    Of pictures and PDF files the older ones give way to a note, so that the conversation never holds more than `Limits`
    say and providers take.

    Takes the same arguments as `FileToolkit`, and:

    Args:
        root: As for the toolkit, or a toolkit.
        shell_tools: Name of each shell tool and of its argument with the command, `{"shell": "command"}`; None: those
            of LangChain's `ShellToolMiddleware` (`shell`) and of deepagents (`execute`).
        options: As for the toolkit.
    """

    state_schema = WatchedState

    def __init__(
        self,
        root: str | os.PathLike[str] | FileToolkit = ".",
        *,
        shell_tools: Mapping[str, str] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(root, **options)
        if shell_tools is not None and not isinstance(shell_tools, Mapping):
            raise WiringError('shell_tools takes the name of each tool and of its argument: {"shell": "command"}.')
        self.toolkit.editor.gives_way = True
        self._shell_tools = {"shell": "command", "execute": "command"} if shell_tools is None else dict(shell_tools)

    # The sweep stands here and not in `before_model`: a node of its own costs every step of the graph a superstep and a
    # checkpoint, whether there is something to tell or not. What is told comes before the model's answer all the same.

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
        """Announce files that changed outside, and note which results the request does not hold."""
        _deepagents.check(request.tools, request.state, self.toolkit.ours)
        news = watch.changed_files(request.state, self.toolkit)
        gone = without_old_media(request.messages, self.toolkit.policy.limits)
        return self._noted(request, news, gone, handler(_told(request, news, gone)))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
        """As `wrap_model_call`, with the work on files in a thread."""
        _deepagents.check(request.tools, request.state, self.toolkit.ours)
        news = await run_in_executor(None, watch.changed_files, request.state, self.toolkit)
        gone = without_old_media(request.messages, self.toolkit.policy.limits)
        return self._noted(request, news, gone, await handler(_told(request, news, gone)))

    def _noted(
        self,
        request: ModelRequest[Any],
        news: Mapping[str, Any],
        gone: Mapping[str, ToolMessage],
        response: ModelResponse[Any],
    ) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
        missing = watch.left_out(request.state["messages"], request.messages, _evidence(request.state))
        update: dict[str, Any] = {}
        if missing != (request.state.get(LEFT_OUT) or []):
            update[LEFT_OUT] = missing
        if gone:
            kept = [gone[str(message.id)] for message in request.state["messages"] if message.id in gone]
            update |= {"messages": kept} if kept else {}
        if news:
            update[CHANNEL] = news[CHANNEL]
            response = replace(response, result=[*news.get("messages", ()), *response.result])
        return ExtendedModelResponse(response, Command(update=update)) if update else response

    def _command(self, request: ToolCallRequest) -> str | None:
        """The shell command that a call runs; None for other tools."""
        name = self._shell_tools.get(request.tool_call["name"])
        command = request.tool_call["args"].get(name) if name is not None else None
        return command if isinstance(command, str) else None

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]]
    ) -> ToolMessage | Command[Any]:
        """Book what a shell command shows, and what changes while it runs."""
        command = self._command(request)
        if command is None:
            return super().wrap_tool_call(request, handler)
        before = watch.known_before(request.state, self.toolkit)
        try:
            result = handler(request)
        finally:
            self._record(request, before)
        return self._shown(request, command, result)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]]
    ) -> ToolMessage | Command[Any]:
        """As `wrap_tool_call`, with the work on files in threads."""
        command = self._command(request)
        if command is None:
            return await super().awrap_tool_call(request, handler)
        before = await run_in_executor(None, watch.known_before, request.state, self.toolkit)
        try:
            result = await handler(request)
        finally:
            await run_in_executor(None, self._record, request, before)
        return await run_in_executor(None, self._shown, request, command, result)

    def _record(self, request: ToolCallRequest, before: Mapping[str, watch.Held]) -> None:
        """Put into the history what changed while the command ran, also if it failed."""
        _, checkpoint = run_of(request.runtime)
        watch.record_changes(before, self.toolkit, checkpoint_id=checkpoint, tool_call_id=request.tool_call["id"])

    def _shown(
        self, request: ToolCallRequest, command: str, result: ToolMessage | Command[Any]
    ) -> ToolMessage | Command[Any]:
        """Book what the output shows. Its message is marked: an outer middleware may move a long output away."""
        given: dict[str, Any] = {}
        if isinstance(result, Command):
            given = result.update if isinstance(result.update, dict) else {}
        messages = list(given.get("messages", ())) if isinstance(result, Command) else [result]
        for at, message in enumerate(messages):
            if isinstance(message, ToolMessage) and message.tool_call_id == request.tool_call["id"]:
                marked = message.model_copy(
                    update={
                        "id": message.id or new_id(),
                        "additional_kwargs": {**message.additional_kwargs, **mark(message.content)},
                    }
                )
                update = watch.shell_reads(command, marked, self.toolkit, state=request.state)
                if update:
                    messages[at] = marked
                    update = {**given, "messages": messages, CHANNEL: update[CHANNEL]}
                    return replace(result, update=update) if isinstance(result, Command) else Command(update=update)
        return result


def _evidence(state: Any) -> Iterator[str]:
    """Evidence of all records."""
    records = (record for records in (channel_of(state) or {}).values() for record in records.values())
    return (name for record in records for name in evidence_in(record))


def _handed_on(result: ToolMessage | Command[Any], request: ToolCallRequest) -> ToolMessage | Command[Any]:
    """Let the records go with the messages when a tool hands over to another agent of the parent graph.

    Such a command ends this graph, and what it does not carry is lost.
    """
    if not isinstance(result, Command) or result.graph != Command.PARENT or not isinstance(result.update, dict):
        return result
    channel = channel_of(request.state)
    return replace(result, update={CHANNEL: channel, **result.update}) if channel else result
