"""A change, and how changes of one path hang together.

A change is one write by these tools: the digest before, the digest after, who, when. It is written down before the
bytes are committed, so that a crash in between loses nothing; the price is that a change may be on record whose
`after` never reached the disk (a *phantom*). Nothing marks it: a second write per edit to say "done" would cost as
much as the first. It is recognised by the digests alone:

- Changes of a path in the order of `seq` form a chain where each `before` is the previous `after`.
- A change that is not a link of the chain is a phantom if its `before` is bytes that the chain had passed through by
  then: it was planned on the path's own bytes, and nothing goes on from its `after`. (Not only the bytes just before
  it: another process may have written between its snapshot and its entry here.)
- A change whose `before` the chain does not know was made on somebody else's bytes: that is a gap.

Limit: a real change whose result somebody put back by hand to exactly the bytes before it looks like a phantom. Then
no bytes are at stake that the chain does not hold anyway.

`None` as a digest stands for "no file", and is a place in a chain as any other.

No I/O, no framework.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


@dataclass(frozen=True, slots=True)
class Change:
    """One write to one path, as the history keeps it.

    Attributes:
        id: The call it belongs to (`change_id`); a call applied again after a rewind has two changes with the same id.
            Empty outside a graph, where nothing is a replay.
        path: Real, absolute path of the file.
        before: SHA-256 (hex) of the bytes before; None if there was no file.
        after: SHA-256 (hex) of the bytes after; None if the file was removed.
        mode: Permission bits (`stat.S_IMODE`) before the change; None if there was no file.
        seq: When, in nanoseconds since the epoch, made unique and increasing by `next_seq`.
        agent: Name of the agent; None if nobody is certain (a shell command, a hook).
        tool: Name of the tool; "rewind" for a rewind, "shell" for what happened while a command ran.
        thread_id: LangGraph thread; None outside a graph or without a thread.
        checkpoint_id: Checkpoint that the call ran from, if there is one.
        tool_call_id: Id of the tool call, if there is one.
        result: What is needed to give the same answer again. Plain JSON; not to be changed afterwards. `"message_id"`
            is the assistant message with the call; `"made"` lists the directories that the change made for the file,
            outermost first, real absolute paths; `"rewind"` is the id of the rewind that it is part of.
        kept: Whether the bytes before are in the history. False if they were larger than its limit, or not known.
    """

    id: str
    path: str
    before: str | None
    after: str | None
    mode: int | None
    seq: int
    agent: str | None
    tool: str
    thread_id: str | None
    checkpoint_id: str | None
    tool_call_id: str | None
    result: dict[str, Any] = field(default_factory=dict)
    kept: bool = True

    def is_mate(self, other: Change) -> bool:
        """True if another change was made by a call of the same assistant message."""
        message = self.result.get("message_id")
        return message is not None and (other.thread_id, other.result.get("message_id")) == (self.thread_id, message)

    def to_json(self) -> str:
        """The change as ASCII JSON text.

        ASCII, because a path may hold bytes that are no text (as lone surrogates) and a patch may hold NUL, and
        PostgreSQL's `jsonb` takes neither as a character; as escapes inside one string both survive.
        """
        return json.dumps({"v": 1, **{name: getattr(self, name) for name in _FIELDS}}, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Change | None:
        """The change that `to_json` wrote, or None for a shape that this version does not know."""
        data = json.loads(text)
        if not isinstance(data, dict) or data.pop("v", None) != 1 or set(data) != set(_FIELDS):
            return None
        return cls(**data)


_FIELDS = tuple(Change.__slots__)


def newest_of(changes: Iterable[Change]) -> dict[tuple[str, str], int]:
    """The highest `seq` of each thread and path; changes without a thread are left out."""
    newest: dict[tuple[str, str], int] = {}
    for change in changes:
        if change.thread_id is not None:
            key = change.thread_id, change.path
            newest[key] = max(change.seq, newest.get(key, 0))
    return newest


class Mark(Protocol):
    """What is needed of a change to follow a chain."""

    @property
    def before(self) -> str | None:
        """Digest before."""

    @property
    def after(self) -> str | None:
        """Digest after."""

    @property
    def seq(self) -> int:
        """Order."""


M = TypeVar("M", bound=Mark)


def _follow(marks: Sequence[M], end: str | None, start: str | None, *, whole: bool) -> list[M] | None:
    """Walk back from `end`, to `start` or through all marks; None if a change does not hang together with the rest."""
    place = end
    links: list[M] = []
    unknown: set[str | None] = set()  # bytes that a skipped change was made on, and the chain has not passed yet
    reached = 0 if whole else None
    for mark in reversed(marks):
        if mark.after == place and mark.before != mark.after:
            place = mark.before
            unknown.discard(place)
            if whole or reached is None:
                links.append(mark)
            if reached is None and place == start:
                reached = len(links)
        elif mark.before != place:
            unknown.add(mark.before)
        if not whole and reached is not None and not unknown:
            break
    if reached is None or unknown:
        return None
    links.reverse()
    return links


def trace(marks: Sequence[M], start: str | None, end: str | None) -> list[M] | None:
    """The newest run of changes that leads from one digest to another.

    What came after the run is not looked at: whoever put the bytes of `end` back, they are the bytes of the chain.

    Args:
        marks: Changes of one path, by `seq`.
        start: Digest to begin with; None for "no file".
        end: Digest to arrive at.

    Returns:
        The changes in order, without phantoms; empty if both digests are the same; None if there is no such run, or
        a change inside it was made on bytes that are not part of it.
    """
    if start == end:
        return []
    last = next((i for i in range(len(marks) - 1, -1, -1) if marks[i].after == end), -1)
    return _follow(marks[: last + 1], end, start, whole=False)


def standing(marks: Sequence[M], end: str | None) -> list[M] | None:
    """The changes that lead to `end` without a gap, if all of them are accounted for.

    Args:
        marks: Changes of one path, by `seq`.
        end: Digest that is on disk now; None for "no file".

    Returns:
        The changes without phantoms; empty if none of them stands; None if one of them was made on, or made, bytes that
        do not hang together with the rest: somebody else's change lies between or on top.
    """
    return _follow(marks, end, None, whole=True)


def thread_name(thread_id: object) -> str | None:
    """A thread's id as the history has it: LangGraph takes ids of any type, and its snapshots have them as strings."""
    return None if thread_id is None else str(thread_id)


def change_id(thread_id: object, message_id: str | None, tool_call_id: str | None) -> str:
    """The name of a call by which it finds itself when it runs again.

    From the thread, the assistant's message and the call: a time travel forks to a new task id, so that will not do;
    and some providers name every call of theirs "call_0", so the call id alone will not do.

    Args:
        thread_id: LangGraph thread, of any type; None if there is none.
        message_id: Id of the assistant's message; None outside a graph: then nothing is a replay and the id is new.
        tool_call_id: Id of the call; None as for `message_id`.

    Returns:
        32 hex digits.
    """
    if message_id is None or tool_call_id is None:
        return uuid.uuid4().hex
    return label(json.dumps([thread_name(thread_id), message_id, tool_call_id]))


def label(text: str) -> str:
    """A name that is safe as a namespace label and as a key in any store: 32 hex digits of the SHA-256."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


_clock = threading.Lock()
_last = 0


def next_seq(after: int = 0) -> int:
    """A number for the order of changes: the time in nanoseconds, but above every earlier one of this process.

    Args:
        after: Another number that it has to be above, such as the newest change of a path.
    """
    global _last  # noqa: PLW0603  one clock per process is the point
    with _clock:
        _last = max(_last + 1, after + 1, time.time_ns())
        return _last


def by_seq(changes: Iterable[M]) -> list[M]:
    """In the order in which they were made."""
    return sorted(changes, key=lambda mark: mark.seq)
