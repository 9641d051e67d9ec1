"""What was found out about the messages of a conversation, so that a long one is not searched again at each step.

A state's list of messages is a new one at each step, but what it holds are the same objects, with some more at the end.
So what is known of them stays with the newest message that was looked at, and goes when that goes; a list is taken for
the continuation of a known one only if it holds the same messages so far. Whatever was exchanged, removed or put in
between is another list, and is looked through from its beginning.

Positions are where to look, not what is there: whoever asks looks at the message itself. What a message was given in
place after it had been looked at is not noticed; states and requests exchange their messages.
"""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

_MOST = 256
"""Conversations at a time."""

_RECENT = 64
"""How many messages a step may have added for what is known to be found again."""

_NOTHING: dict[str, Any] = {}

_lock = threading.Lock()
_known: dict[int, _Past] = {}
"""By the `id` of the newest message that was looked at; that message itself is not kept alive by it."""


class _Past:
    __slots__ = ("before", "blocks", "places", "reads", "tip")

    def __init__(self) -> None:
        self.before: list[Any] = []  # without the newest: what hangs on it must not hold it
        self.tip: weakref.ref[Any] | None = None
        self.places: dict[str, int] = {}
        self.reads: dict[str, list[int]] = {}
        self.blocks: list[int] = []

    def leads_to(self, messages: Sequence[Any], at: int) -> bool:
        """True if this is about the messages up to `at`."""
        if self.tip is None or self.tip() is not messages[at] or len(self.before) != at:
            return False
        return alike(self.before, messages[:at])

    def go_on(self, messages: Sequence[Any]) -> None:
        """Look at those messages that are new."""
        new = len(self.before) + (self.tip is not None)
        for at in range(new, len(messages)):
            message = messages[at]
            fields = getattr(message, "__dict__", _NOTHING)  # asking a model for what it lacks is slow
            name, artifact = fields.get("id"), fields.get("artifact")
            if name.__class__ is str:
                self.places[name] = at
            if isinstance(fields.get("content"), list):
                self.blocks.append(at)
            if artifact.__class__ is dict and artifact.get("kind") == "read":
                digest = artifact.get("digest")
                if digest.__class__ is str:
                    self.reads.setdefault(digest, []).append(at)
        self.before += messages[len(self.before) : -1]


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
    with _lock:
        known = _past(messages).places
        return {name: known[name] for name in names if name in known}


def reads(messages: Sequence[Any], digest: str) -> Sequence[int]:
    """Where the answers of reads of certain bytes stand."""
    with _lock:
        return tuple(_past(messages).reads.get(digest, ()))


def blocks(messages: Sequence[Any]) -> Sequence[int]:
    """Where messages stand whose content is not text alone."""
    with _lock:
        return tuple(_past(messages).blocks)


def _past(messages: Sequence[Any]) -> _Past:
    found = _Past()
    end = len(messages) - 1
    for at in range(end, max(end - _RECENT, -1), -1):
        known = _known.get(id(messages[at]))
        if known is not None and known.leads_to(messages, at):
            found = known
            break
    if found.tip is None or len(found.before) != end:
        if found.tip is not None:
            _known.pop(id(found.tip()), None)
        found.go_on(messages)
        _keep(found, messages)
    return found


def _keep(past: _Past, messages: Sequence[Any]) -> None:
    """Let what is known hang on the newest message."""
    if not messages:
        return
    key = id(messages[-1])
    try:
        # No lock in there: it may be called at any moment, by whatever thread gives up the message.
        past.tip = weakref.ref(messages[-1], lambda _: _known.pop(key, None))
    except TypeError:  # a message in another shape: a dict, say
        return
    if len(_known) >= _MOST:
        _known.clear()
    _known[key] = past
