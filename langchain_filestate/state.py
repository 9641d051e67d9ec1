"""The channel that carries the records, and what of an agent's messages counts as evidence."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Any

from typing_extensions import TypedDict  # that of LangGraph's own states: the two kinds cannot be mixed before 3.13

from langchain_filestate._records import State, merge_records

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

CHANNEL = "file_state"
LEFT_OUT = "file_state_left_out"
"""Key of the middleware's private note: ids of messages that the last request to the model did not hold."""

_RECENT = 64
"""Evidence is mostly recent: that many messages are looked at before the rest."""


class FileState(TypedDict, total=False):
    """The state that a graph with these tools needs; inherit it beside `MessagesState`."""

    file_state: Annotated[dict[str, dict[str, Any]], merge_records]
    """Agent name, then real absolute path, then record (see the README for its fields). Written by the tools alone."""


class Messages:
    """What stands in the calling agent's messages.

    Args:
        messages: The agent's messages; None where there are none to be had, and then everything counts.
        left_out: Ids of messages that the model was not really sent.
    """

    def __init__(self, messages: Sequence[Any] | None, left_out: Collection[str] = ()) -> None:
        self._messages = messages
        self._left_out = frozenset(left_out)

    def alive(self, evidence: Collection[str]) -> Collection[str]:
        """Those of the message ids that the agent still has before it."""
        if self._messages is None:
            return evidence
        want = set(evidence) - self._left_out
        alive = want.intersection(map(_id, self._messages[-_RECENT:]))
        if len(alive) < len(want) and len(self._messages) > _RECENT:
            alive |= want.intersection(map(_id, self._messages[:-_RECENT]))
        return alive

    def shown(self, path: str, digest: str, first: int, last: int) -> bool:
        """True if one read of exactly this range of exactly these bytes stands there in full."""
        for message in reversed(self._messages or ()):
            artifact = getattr(message, "artifact", None)
            if (
                isinstance(artifact, dict)
                and artifact.get("kind") == "read"
                and artifact.get("digest") == digest
                and artifact.get("file_path") == path
                and (artifact.get("first_line"), artifact.get("last_line")) == (first, last)
                and not artifact.get("unchanged")
                and message.id not in self._left_out
            ):
                return True
        return False


_id = attrgetter("id")


def channel_of(state: Any) -> State | None:
    """The channel's value in any kind of state; None if the state has no such channel."""
    value = state.get(CHANNEL) if isinstance(state, dict) else getattr(state, CHANNEL, None)
    if value is None:
        return {} if has_channel(state) else None
    return value if isinstance(value, dict) else {}


def has_channel(state: Any) -> bool:
    """True if the graph declares the channel."""
    return CHANNEL in state if isinstance(state, dict) else hasattr(state, CHANNEL)


def value_of(state: Any, key: str) -> Any:
    """A value of any kind of state: dict, pydantic model or dataclass; None if there is none."""
    return state.get(key) if isinstance(state, dict) else getattr(state, key, None)


def update_of(agent: str, records: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """The state update that books records of one agent."""
    return {CHANNEL: {agent: dict(records)}}
