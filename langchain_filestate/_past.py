"""What was found out about the messages of a conversation, so that a long one is not searched again at each step.

A state's list of messages is a new one at each step, but what it holds are the same objects, with some more at the end.
So what is known of them stays with one of the newest, and goes when that goes. A list is taken for the continuation of
a known one only if it holds the same messages so far; whatever was exchanged, removed or put in between is another
list, and is looked through from its beginning. The last few messages are looked at each time: they may stand in one
request only.

Positions are where to look, not what is there: whoever asks looks at the message itself. What a message was given in
place after it had been looked at is not noticed; states and requests exchange their messages.

Nothing is changed once others can see it, so there is no lock that a fork could leave taken.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

_MOST = 256
"""Conversations at a time."""

_LATE = 8
"""Messages at the end that may stand in one request only."""

_TAIL = 32
"""Messages behind those that are known above which what is known goes on to newer ones."""

_RECENT = 64
"""How many messages a step may have added for what is known to be found again."""

_known: dict[int, _Past] = {}
"""By the `id` of the last message that was looked at; that message itself is not kept alive by it."""


class _Past:
    """What is known of some messages.

    Args:
        messages: All of them.
        known: What is known of the first of them already.
    """

    __slots__ = ("before", "blocks", "places", "reads", "tip")

    def __init__(self, messages: Sequence[Any], known: _Past | None = None) -> None:
        self.before = list(messages[:-1])  # without the last: what hangs on it must not hold it
        self.tip: weakref.ref[Any] | None = None
        self.places: dict[str, int] = dict(known.places) if known is not None else {}
        self.reads: dict[str, tuple[int, ...]] = dict(known.reads) if known is not None else {}
        self.blocks: list[int] = list(known.blocks) if known is not None else []
        for at in range(len(known.before) + 1 if known is not None else 0, len(messages)):
            message = messages[at]
            name = _id(message)
            if name is not None:
                self.places[name] = at
            if _has_blocks(message):
                self.blocks.append(at)
            digest = _read_of(message)
            if digest is not None:
                self.reads[digest] = (*self.reads.get(digest, ()), at)

    def leads_to(self, messages: Sequence[Any], at: int) -> bool:
        """True if this is about the messages up to `at`."""
        if self.tip is None or self.tip() is not messages[at] or len(self.before) != at:
            return False
        return alike(self.before, messages[:at])


def _id(message: Any) -> str | None:
    fields = getattr(message, "__dict__", None)  # asking a model for what it lacks is slow
    name = getattr(message, "id", None) if fields is None else fields.get("id")
    return name if isinstance(name, str) else None


def _has_blocks(message: Any) -> bool:
    return isinstance(getattr(message, "content", None), list)


def _read_of(message: Any) -> str | None:
    """The digest of what a message shows, if it answers a read; what artifacts of others hold may be anything."""
    artifact = getattr(message, "__dict__", {}).get("artifact")
    if not isinstance(artifact, dict):
        return None
    kind, digest = artifact.get("kind"), artifact.get("digest")
    return digest if isinstance(kind, str) and kind == "read" and isinstance(digest, str) else None


def alike(one: Sequence[Any], other: Sequence[Any]) -> bool:
    """True if two lists hold the same messages, or equal ones.

    Lists compare by identity before they ask their items, which is thirty times as fast as doing so one by one; but
    equality of messages is slow where all are copies, and what an artifact holds may have none. So the ends go first.
    """
    if len(one) != len(other):
        return False
    if not one:
        return True
    if one[0] is not other[0] or one[-1] is not other[-1]:
        return False
    try:
        return bool(one == other)
    except Exception:  # noqa: BLE001  whatever the comparison of somebody's artifact raises
        return False


def places(messages: Sequence[Any], names: Collection[str]) -> dict[str, int]:
    """Where the last message with each of some ids stands, for those that are there."""
    past, new = _past(messages)
    found: dict[str, int] = {}
    for at in new:
        name = _id(messages[at])
        if name is not None and name in names:
            found[name] = at
    known = past.places if past is not None else {}
    for name in known.keys() & (set(names) - found.keys()):
        if _id(messages[known[name]]) == name:
            found[name] = known[name]
        else:  # it was given another id in place, which nothing should
            found.update((name, at) for at in range(new.start) if _id(messages[at]) == name)
    return found


def reads(messages: Sequence[Any], digest: str) -> Sequence[int]:
    """Where the answers of reads of certain bytes stand."""
    past, new = _past(messages)
    known = past.reads.get(digest, ()) if past is not None else ()
    return [*known, *(at for at in new if _read_of(messages[at]) == digest)]


def blocks(messages: Sequence[Any]) -> Sequence[int]:
    """Where messages stand whose content is not text alone."""
    past, new = _past(messages)
    known = past.blocks if past is not None else ()
    return [*known, *(at for at in new if _has_blocks(messages[at]))]


def _past(messages: Sequence[Any]) -> tuple[_Past | None, range]:
    """What is known of the messages, and where those stand of which nothing is."""
    count = len(messages)
    found = next(_candidates(messages), None)
    new = range(len(found.before) + 1 if found is not None else 0, count)
    if len(new) <= _TAIL:
        return found, new
    past = _Past(messages[: count - _LATE], found)
    if _hang(past, messages[count - _LATE - 1]) and found is not None and found.tip is not None:
        _known.pop(id(found.tip()), None)
    return past, range(count - _LATE, count)


def _candidates(messages: Sequence[Any]) -> Iterator[_Past]:
    for at in range(len(messages) - 1, max(len(messages) - 1 - _RECENT, -1), -1):
        known = _known.get(id(messages[at]))
        if known is not None and known.leads_to(messages, at):
            yield known


def _hang(past: _Past, message: Any) -> bool:
    """Let what is known hang on the last message that it is about; False if that cannot be."""
    if id(message) in map(id, past.before):  # it would keep itself alive
        return False
    key = id(message)
    try:
        # No lock in there: it may be called at any moment, by whatever thread gives up the message.
        past.tip = weakref.ref(message, lambda _: _known.pop(key, None))
    except TypeError:  # a message in another shape: a dict, say
        return False
    if len(_known) >= _MOST:
        _known.clear()
    _known[key] = past
    return True
