"""The channel that carries the records, and what of an agent's messages counts as evidence."""

from __future__ import annotations

import json
import secrets
from typing import TYPE_CHECKING, Annotated, Any
from zlib import crc32

from typing_extensions import TypedDict  # that of LangGraph's own states: the two kinds cannot be mixed before 3.13

from langchain_filestate import _past
from langchain_filestate._records import State, merge_records

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

CHANNEL = "file_state"
LEFT_OUT = "file_state_left_out"
"""Key of the middleware's private note: ids of messages that the last request to the model did not hold."""

MARK = "file_state"
"""Key of a message's additional keywords with what it carries about itself (`mark`)."""


_PREFIX = "fs-"

_MEMO = 1 << 14
_RECENT = 16

_places: dict[str, int] = {}
"""Where in its thread's messages some evidence was last found. Only where to look first: messages come and go."""

_sums: dict[str, int] = {}
"""For a mark's checksum, the hash of what it was last found to be right for; a string computes its own only once."""


def _fields(message: Any) -> Mapping[str, Any]:
    """What a message holds: asking a model for attributes that it lacks is slow. Nothing for other shapes."""
    return getattr(message, "__dict__", {})


def _remember(memo: dict[str, int], key: str, value: int) -> None:
    if len(memo) >= _MEMO:
        memo.clear()
    memo[key] = value


_encoder = json.JSONEncoder(sort_keys=True, default=repr)

_MEDIA = frozenset({"image", "image_url", "input_image", "file", "input_file", "document", "media"})
"""Types of content blocks with data in them: LangChain's own, and those of providers."""


def new_id() -> str:
    """An id for a message of ours; ids of calls will not do: some providers use the same ones again."""
    return f"{_PREFIX}{secrets.token_hex(6)}"


def _made_here(name: object) -> bool:
    return isinstance(name, str) and name.startswith(_PREFIX)


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
        self._messages = messages if messages is None or isinstance(messages, (list, tuple)) else list(messages)
        self._left_out = frozenset(left_out)

    def alive(self, evidence: Collection[str]) -> Collection[str]:
        """Those of the message ids that the agent still has before it, with the text that they had."""
        messages = self._messages
        if messages is None:
            return evidence
        want, found, count = set(evidence) - self._left_out, set(), len(messages)
        for name in tuple(want):  # where it was last time
            at = _places.get(name, count)
            if at < count and getattr(messages[at], "id", None) == name:
                want.discard(name)
                if _stands(messages, at):
                    found.add(name)
        places: dict[str, int] = {}
        for at in range(count - 1, max(count - _RECENT, 0) - 1, -1):
            if not want:
                break
            name = getattr(messages[at], "id", "")  # a state may hold messages in other shapes, as they were given
            if name in want:
                want.discard(name)
                places[name] = at
        if want:
            places |= _past.places(messages, want)
        for name, at in places.items():
            _remember(_places, name, at)
            if _stands(messages, at):
                found.add(name)
        return found

    def shown(self, path: str, digest: str, first: int, last: int, text: str) -> str | None:
        """Id of a message in which one read of exactly this range of exactly these bytes stands; None without.

        Its text tells that it was not cut where this one is not: another toolkit may have had other limits.
        """
        messages = self._messages or ()
        for at in reversed(_past.reads(messages, digest)):
            message = messages[at]
            artifact = message.artifact
            if (
                isinstance(artifact, dict)
                and (artifact.get("kind"), artifact.get("digest")) == ("read", digest)
                and artifact.get("file_path") == path
                and (artifact.get("first_line"), artifact.get("last_line")) == (first, last)
                and not artifact.get("unchanged")
                and message.id is not None
                and message.id not in self._left_out
                and not mark_in(message).get("column")
                and text in message.text
                and _stands(messages, at)
            ):
                return str(message.id)
        return None

    def media(self) -> tuple[int, int]:
        """How many pictures and other files stand there as content blocks, and the characters of their data."""
        return media_in(*(self._messages or ()))


def media_in(*messages: Any) -> tuple[int, int]:
    """How many pictures and other files some messages hold as content blocks, and the characters of their data."""
    found = [
        block
        for message in messages
        if isinstance(getattr(message, "content", None), list)
        for block in message.content
        if isinstance(block, dict) and block.get("type") in _MEDIA
    ]
    return len(found), sum(map(_characters, found))


def _characters(block: object) -> int:
    values = block.values() if isinstance(block, dict) else ()
    return len(block) if isinstance(block, str) else sum(map(_characters, values))


def mark(
    content: object,
    *,
    args: Mapping[str, Any] | None = None,
    column: int = 1,
    stale: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """What a message of ours carries about itself, so that a text that is exchanged under its id can be told.

    Middleware clears, cuts and moves away old results, and arguments of old calls, and keeps the messages' ids.

    Args:
        content: The message's content.
        args: The arguments of the call that it answers, if they show what the record counts as shown.
        column: Where in its first line the text begins, from 1.
        stale: For a refusal that shows how a file was changed: the `digest` of which it speaks, and if it is `full`.

    Returns:
        Additional keywords for the message.
    """
    about: dict[str, Any] = {"text": _sum(content)} if isinstance(content, str) else {}
    if args is not None:
        about["args"] = _sum_of_args(args)
    if column > 1:
        about["column"] = column
    if stale is not None:
        about["stale"] = dict(stale)
    return {MARK: about}


def mark_in(message: Any) -> Mapping[str, Any]:
    """The mark that a message carries; empty if it has none."""
    found = (getattr(message, "additional_kwargs", None) or {}).get(MARK)
    return found if isinstance(found, dict) else {}


def _checksum(text: str) -> str:
    return f"{len(text)}:{crc32(text.encode('utf-8', 'surrogatepass')):08x}"


def _sum(text: str) -> str:
    found = _checksum(text)
    _remember(_sums, found, hash(text))
    return found


def _sum_of_args(args: Mapping[str, Any]) -> str:
    found = _checksum(_encoder.encode(args))
    _remember(_sums, found, _hash(args))
    return found


def _hash(args: Mapping[str, Any]) -> int:
    """A hash of arguments; 0 if they hold lists."""
    try:
        return hash(frozenset(args.items()))
    except TypeError:
        return 0


def _stands(messages: Sequence[Any], at: int) -> bool:
    """True if a message still says what it said; middleware may have put something before or after it."""
    message = messages[at]
    about = (getattr(message, "additional_kwargs", None) or {}).get(MARK)
    if not isinstance(about, dict):
        # Without a mark somebody else has put a message of their own in the place of ours.
        return not _made_here(message.id)
    said = about.get("text")
    if isinstance(said, str):
        content = message.content
        text = content if isinstance(content, str) else str(message.text)
        if _sums.get(said) != hash(text):
            size = int(said.partition(":")[0])
            if len(text) < size or said not in {_sum(text[:size]), _sum(text[len(text) - size :])}:
                return False
    given = about.get("args")
    return given is None or _call_stands(messages, at, given)


def _call_stands(messages: Sequence[Any], at: int, given: str) -> bool:
    """True if the call that a message answers still has the arguments that it had."""
    name = messages[at].tool_call_id
    for before in range(at - 1, -1, -1):
        calls = [call["args"] for call in _fields(messages[before]).get("tool_calls", ()) if call["id"] == name]
        if calls:
            known = _sums.get(given)
            return any((known and known == _hash(args)) or _sum_of_args(args) == given for args in calls)
    return False


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
