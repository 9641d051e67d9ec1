"""Where a call comes from, as far as LangGraph tells: the running configuration, the messages, the message's calls."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, BaseMessage
from langgraph.config import get_config
from pydantic import BaseModel, TypeAdapter, ValidationError

from langchain_filestate._changes import thread_name
from langchain_filestate._siblings import Place, file_name
from langchain_filestate.errors import Refused
from langchain_filestate.state import value_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

# LangGraph has no public names for these: what a running node's configuration holds.
READ = "__pregel_read"
SCRATCHPAD = "__pregel_scratchpad"


def running_config() -> Mapping[str, Any] | None:
    """The configuration of what is running; None outside of anything that runs."""
    try:
        return get_config()
    except RuntimeError:  # not inside anything that runs
        return None


def run_of(runtime: Any) -> tuple[str | None, str | None]:
    """Ids of thread and checkpoint of the run that a runtime belongs to; None where there is no such thing."""
    info = runtime.execution_info
    return (None, None) if info is None else (thread_name(info.thread_id), info.checkpoint_id)


def in_graph() -> bool:
    """True inside a node of a running graph; a config alone is there inside any tool."""
    return READ in ((running_config() or {}).get("configurable") or {})


@dataclass(frozen=True, slots=True)
class Spot:
    """Where a call stands in the conversation.

    Attributes:
        key: Key of the messages in the state.
        messages: The messages; None for a state without any.
        message_id: Id of the assistant message with the call; None if it is not there.
        index: The call's place among the calls of that message, from 0.
        identity: The call's id, made unique in its message: some providers give every call the same one.
        earlier: Index and `file_path` of earlier calls of the message.
        given: The arguments that stand in the message; None if the call is not there.
        changed: Arguments that arrived with another value than the model gave them, but for the path.
    """

    key: str = "messages"
    messages: Sequence[Any] | None = None
    message_id: str | None = None
    index: int = 0
    identity: str | None = None
    earlier: tuple[tuple[int, str], ...] = ()
    given: Mapping[str, Any] | None = None
    changed: Mapping[str, Any] = field(default_factory=dict)

    def place(self, runtime: Any) -> Place | None:
        """Where the call stands among those of its message, in the run that LangGraph tells of; None without one."""
        if self.message_id is None:
            return None
        return Place((*run_of(runtime), self.message_id), self.index)

    def earlier_on(self, path: str) -> list[int]:
        """The indexes of earlier calls of the message that may be about the same file, by its name alone."""
        name = file_name(path)
        return [index for index, given in self.earlier if file_name(given) == name]


def spot(state: Any, call_id: str | None, tool: str, arguments: Mapping[str, Any], tools: Collection[str]) -> Spot:
    """Find a call in the messages of a state.

    Args:
        state: The graph's state.
        call_id: Id of the call.
        tool: Name of the tool.
        arguments: Its arguments, to tell calls with one id apart.
        tools: Names of the tools whose `file_path` matters.
    """
    first = None
    messages = value_of(state, "messages")
    if isinstance(messages, list):
        first = _among("messages", messages, call_id, tool, arguments, tools)
        if first.given is not None:
            return first
    for key in state if isinstance(state, dict) else vars(state):
        value = value_of(state, key)
        if key != "messages" and isinstance(value, list) and value and isinstance(value[-1], BaseMessage):
            found = _among(key, value, call_id, tool, arguments, tools)
            if found.given is not None:
                return found
            first = first or found
    return first or Spot()


def _among(
    key: str,
    messages: Sequence[Any],
    call_id: str | None,
    tool: str,
    arguments: Mapping[str, Any],
    tools: Collection[str],
) -> Spot:
    for message in reversed(messages):
        if not isinstance(message, AIMessage):
            continue
        calls = message.tool_calls
        same = [n for n, call in enumerate(calls) if call["id"] == call_id]
        if not same:
            continue
        index = same[0]
        if len(same) > 1:
            index = next((n for n in same if calls[n]["name"] == tool and _given(calls[n]["args"], arguments)), index)
        earlier = tuple(
            (n, path)
            for n, call in enumerate(calls[:index])
            if call["name"] in tools and isinstance(path := call["args"].get("file_path"), str)
        )
        identity = call_id if len(same) == 1 else f"{call_id}.{index}"
        given = calls[index]["args"]
        changed = {
            name: _value(value)
            for name, value in arguments.items()
            if name in given and name != "file_path" and not _equal(given[name], value)
        }
        return Spot(key, messages, message.id, index, identity, earlier, given, changed)
    return Spot(key, messages)


def _given(args: Mapping[str, Any], arguments: Mapping[str, Any]) -> bool:
    """True if these are the arguments that the model gave."""
    return all(_equal(args[name], value) for name, value in arguments.items() if name in args)


def _value(value: Any) -> Any:
    """A validated value as plain data."""
    if isinstance(value, list):
        return [_value(each) for each in value]
    return value.model_dump() if isinstance(value, BaseModel) else value


def _equal(given: Any, value: Any) -> bool:
    """Compares a value that the model gave with what it was validated to: dicts have become models."""
    if isinstance(value, list):
        return isinstance(given, list) and len(given) == len(value) and all(map(_equal, given, value))
    if isinstance(value, BaseModel):
        return isinstance(given, dict) and all(_equal(each, getattr(value, name, each)) for name, each in given.items())
    if isinstance(value, int) and isinstance(given, str):  # "true", "3": some models write them so
        try:
            given = TypeAdapter(type(value)).validate_python(given)
        except ValidationError:
            return False
    return bool(given == value)


def wrong(error: ValidationError) -> Refused:
    """Wrong arguments, by name; never the arguments themselves."""
    faults = error.errors(include_url=False, include_input=False)
    if any(fault["type"] == "string_unicode" for fault in faults):
        names = ", ".join(".".join(map(str, fault["loc"])) for fault in faults if fault["type"] == "string_unicode")
        return Refused(
            f"{names} holds half of a surrogate pair, which no file can hold. Write the whole character.",
            code="encoding",
        )
    told = "; ".join(f"{'.'.join(map(str, fault['loc'])) or 'arguments'}: {fault['msg']}" for fault in faults[:5])
    return Refused(f"Wrong arguments: {told}. Call the tool again with these corrected.", code="bad_arguments")
