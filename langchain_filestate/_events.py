"""What happened in a thread, in order: from its messages, and from the history.

The idea: the messages say what an agent asked for and was told, the history says what was written and when, and the
digests tie the two together. A change of the history belongs to the message with its call id, path and digest; a
file whose digest is another one at the next look, without a change that leads there, was changed by somebody outside.

Messages carry no time. In one thread their order is known; between threads a read comes after the change that made the
bytes it shows, and all else as soon as its own thread allows. A change is `undone` if a later rewind of its path went
back to before it, and that rewind was not itself undone.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from langchain_filestate import _patch
from langchain_filestate._changes import thread_name
from langchain_filestate.results import (
    EditResult,
    FailureResult,
    NotebookResult,
    ReadResult,
    WriteResult,
    parse_result,
)  # fmt: skip
from langchain_filestate.state import channel_of, mark_in, value_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from langchain_filestate._changes import Change
    from langchain_filestate._history import FileHistory
    from langchain_filestate._hunks import StructuredPatch

Kind = Literal["read", "edit", "write", "notebook", "refused", "outside", "notice", "shell", "rewind"]
OUTSIDE = "outside"
"""The lane of what no agent of the thread did."""
_TOLD = re.compile(
    r"^(/.+) (was changed and is no text any more|was changed|was deleted|is there again|cannot be read any more)"
    r"( by .+?| while .+?)?\.(?: Cells .*| The text .*)?$",
    re.MULTILINE,
)
"""What a notice says of each file."""
_NAMED = re.compile(r"It was changed (.+?)\.")


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened.

    Attributes:
        kind: What.
        lane: Who: the agent's name, or `OUTSIDE`.
        path: Real and absolute; as the model gave it for some refusals.
        said: In a few words.
        text: What the agent was told; "" where that says no more than the patch.
        patches: What changed, by path.
        group: The assistant message of the call; "" if there is none.
        undone: Whether a later rewind took it back.
        digest: Of the file afterwards; None if there is none or it is not known.
        before: Of the file before; "" where that is not known, None where there was none.
        also: Other paths that it left with a digest: a rewind puts back several files.
        time: When, in nanoseconds since the epoch; 0 if it is not known.
        exact_time: Whether that is when it happened, or only a time after which it did.
    """

    kind: Kind
    lane: str
    path: str
    said: str
    text: str = ""
    patches: tuple[tuple[str, StructuredPatch], ...] = ()
    group: str = ""
    undone: bool = False
    digest: str | None = None
    before: str | None = ""
    also: tuple[tuple[str, str | None], ...] = ()
    time: int = 0
    exact_time: bool = False


@dataclass(frozen=True, slots=True)
class Thread:
    """One conversation.

    Attributes:
        messages: In order.
        agents: Whose evidence each message is, where the records say so.
        thread_id: Its id, where that is known.
        default: The agent's name where nothing else says it.
    """

    messages: tuple[Any, ...]
    agents: Mapping[str, str]
    thread_id: str | None
    default: str


def thread_of(value: Any, thread_id: str | None) -> Thread:
    """A thread from a state, a snapshot of one, or a list of messages."""
    configurable = (getattr(value, "config", None) or {}).get("configurable") or {}
    name = thread_id if thread_id is not None else configurable.get("thread_id")
    state = getattr(value, "values", None)
    if state is None or callable(state):
        state = value
    if isinstance(state, (list, tuple)):
        messages, channel = state, {}
    else:
        messages, channel = value_of(state, "messages") or (), channel_of(state) or {}
    agents = {
        view[2]: agent
        for agent, records in channel.items()
        for record in records.values()
        for view in record.get("views", ())
    }
    default = next(iter(channel)) if len(channel) == 1 else "main"
    return Thread(tuple(messages), agents, thread_name(name), default)


# ---- from the messages


def _said(result: Any) -> str:
    """A result in a few words."""
    match result:
        case ReadResult():
            if result.complete:
                return "unchanged" if result.unchanged else "all"
            return f"{result.first_line}-{result.last_line} of {result.total_lines}"
        case FailureResult():
            return result.code.replace("_", " ")
        case EditResult() | WriteResult() | NotebookResult():
            counts = f"+{result.patch.added} -{result.patch.removed}"
            if getattr(result, "stale_recovered", False):
                return f"{counts} recovered"
            if result.already_applied:
                return f"{counts} again"
            return f"{counts} new" if getattr(result, "created", False) else counts
    raise TypeError(type(result).__name__)  # pragma: no cover  the union is closed


def _from_messages(thread: Thread) -> Iterator[tuple[Event, str]]:
    """The events of the messages, each with its call id."""
    authors: dict[str, tuple[str, str | None]] = {}
    for message in thread.messages:
        kind = getattr(message, "type", "")
        if kind == "ai":
            for call in message.tool_calls:
                authors[call["id"]] = (message.id or "", message.name)
        elif kind == "human" and "file_state" in message.additional_kwargs:
            text = str(message.text)
            lane = thread.agents.get(message.id, thread.default)
            for path, done, _ in _TOLD.findall(text):
                yield Event("notice", lane, path, done, text), ""
        elif kind == "tool":
            result = parse_result(message)
            if result is None:
                continue
            group, name = authors.get(message.tool_call_id, ("", None))
            lane = name or thread.agents.get(message.id) or thread.default
            event = Event("refused", lane, result.file_path, _said(result), str(message.text), group=group)
            if isinstance(result, ReadResult):
                event = replace(event, kind="read", text="", digest=result.digest, before=result.digest)
            elif isinstance(result, FailureResult):
                stale = mark_in(message).get("stale")
                event = replace(event, before=stale.get("digest", "") if isinstance(stale, dict) else "")
            else:
                patches = ((result.file_path, result.patch),)
                event = replace(event, kind=result.kind, patches=patches, digest=result.after, before=result.before)
            yield event, message.tool_call_id


# ---- with the history


def between(history: FileHistory, path: str, before: str | None, after: str | None) -> StructuredPatch | None:
    """The patch from one digest to another; None for no file. None if the history does not know the bytes."""
    old = None if before is None else history.content(before)
    new = None if after is None else history.content(after)
    if (old is None) != (before is None) or (new is None) != (after is None):
        return None
    return _patch.patch_bytes(path, old, new)


@dataclass(slots=True)
class _Past:
    """What the history says, as far as it is about these threads."""

    history: FileHistory | None
    changes: dict[str, list[Change]]

    @classmethod
    def of(cls, history: FileHistory | None, paths: set[str], threads: set[str]) -> _Past:
        found: dict[str, list[Change]] = {}
        if history is not None:
            paths |= {change.path for name in threads for change in history.changes(name)}
            found = {path: history.changes(path=path) for path in sorted(paths)}
        return cls(history, found)

    def of_call(self, event: Event, call_id: str) -> Change | None:
        """The newest change that a call made."""
        for change in reversed(self.changes.get(event.path, [])):
            if call_id and change.tool_call_id == call_id and change.after == event.digest:
                return change
        return None

    def made(self, path: str, digest: str | None, before: float) -> int:
        """When these bytes came to be there, last before a time; 0 if nobody knows."""
        made = (c.seq for c in reversed(self.changes.get(path, [])) if digest and c.after == digest)
        return next((seq for seq in made if seq < before), 0)

    def next_by_others(self, path: str, thread_id: str | None, after: int, before: float) -> int:
        """When another thread changed a path next; `after` if that is not known."""
        others = (c.seq for c in self.changes.get(path, []) if c.thread_id != thread_id)
        return next((seq for seq in others if after < seq < before), after)

    def patch(self, path: str, before: str | None, after: str | None) -> StructuredPatch | None:
        """What lies between two digests, if the bytes are known."""
        return None if self.history is None or before == "" else between(self.history, path, before, after)

    def undone(self) -> set[tuple[str, int]]:
        """The changes that rewinds took back, as path and `seq`."""
        gone: set[tuple[str, int]] = set()
        for path, changes in self.changes.items():
            for at in range(len(changes) - 1, -1, -1):
                back = changes[at]
                if back.tool != "rewind" or (path, back.seq) in gone:
                    continue
                for number in range(at - 1, -1, -1):
                    if changes[number].before == back.after:
                        gone |= {(path, change.seq) for change in changes[number:at]}
                        break
        return gone


def events(threads: Sequence[Thread], history: FileHistory | None) -> list[Event]:
    """Everything that happened, in order."""
    raw = [list(_from_messages(thread)) for thread in threads]
    named = {thread.thread_id for thread in threads if thread.thread_id is not None}
    past = _Past.of(history, {event.path for one in raw for event, _ in one if event.kind != "refused"}, named)
    undone = past.undone()
    used: set[tuple[str, int]] = set()
    merged: list[tuple[tuple[int, int, int, int], Event]] = []
    for number, found in enumerate(raw):
        now = 0
        mine = [past.of_call(event, call_id) if event.patches else None for event, call_id in found]
        for at, (event, _) in enumerate(found):
            change = mine[at]
            if change is not None:
                now = max(now, change.seq)
                used |= _with_hooks(past, change)
                key = (event.path, change.seq)
                event = replace(event, lane=change.agent or event.lane, undone=key in undone, exact_time=True)  # noqa: PLW2901
                named.add(change.thread_id or "")
            else:
                seen = event.digest if event.kind == "read" else _next_digest(found, at)
                then = next((one.seq for one in mine[at:] if one is not None), math.inf)
                now = max(now, past.made(event.path, seen, then))
                if seen is None and _told(event) and _explained(event):
                    now = past.next_by_others(event.path, threads[number].thread_id, now, then)
            merged.append(((now, 0 if event.exact_time else 1, number, at), replace(event, time=now)))
    merged += _others(past, named, used, undone, [key[0] for key, _ in merged if key[0]])
    ordered = [event for _, event in sorted(merged, key=lambda one: one[0])]
    return list(_with_outside(ordered, past))


def _told(event: Event) -> bool:
    """True if the agent learned that the file is another one."""
    return event.kind == "notice" or (event.kind == "refused" and event.said == "stale")


def _next_digest(found: Sequence[tuple[Event, str]], at: int) -> str | None:
    """What is at the path when it is looked at next; only asked where it is known to be another than before."""
    event = found[at][0]
    if event.before or not _told(event):
        return event.before or None
    return next((e.before for e, _ in found[at + 1 :] if e.path == event.path and e.before), None)


def _with_hooks(past: _Past, change: Change) -> set[tuple[str, int]]:
    """A change and those of the same call, of which the last one's result tells."""
    key = (change.tool_call_id, change.result.get("message_id"), change.thread_id)
    return {
        (one.path, one.seq)
        for one in past.changes[change.path]
        if one.seq == change.seq
        or ((one.tool_call_id, one.result.get("message_id"), one.thread_id) == key and one.after == change.before)
    }


def _others(
    past: _Past, named: set[str], used: set[tuple[str, int]], undone: set[tuple[str, int]], times: Sequence[int]
) -> Iterator[tuple[tuple[int, int, int, int], Event]]:
    """The changes that no message tells of: of these threads, and of others on these files in the same time."""
    first, last = (min(times), max(times)) if times else (0, -1)
    rewinds: dict[str, Event] = {}
    for path, changes in past.changes.items():
        for change in changes:
            mine = change.thread_id in named
            if (path, change.seq) in used or not (mine or first <= change.seq <= last):
                continue
            patch = past.patch(path, change.before, change.after)
            counts = f"+{patch.added} -{patch.removed}" if patch is not None else "changed"
            patches = ((path, patch),) if patch is not None else ()
            gone = (path, change.seq) in undone
            event = Event(
                _kind(change.tool), change.agent or OUTSIDE, path, counts, "", patches, undone=gone,
                group=change.result.get("message_id") or "",
                digest=change.after, before=change.before, time=change.seq, exact_time=True,
            )  # fmt: skip
            name = change.result.get("rewind")
            if change.tool == "rewind" and name in rewinds:
                one = rewinds[name]
                also = (*one.also, (path, change.after))
                rewinds[name] = replace(one, patches=(*one.patches, *patches), also=also)
            elif change.tool == "rewind" and name is not None:
                rewinds[name] = event
            else:
                yield (change.seq, 0, 0, 0), event
    for event in rewinds.values():
        said = "" if event.also else event.said
        yield (event.time, 0, 0, 0), replace(event, said=said)


def _kind(tool: str) -> Kind:
    kinds: dict[str, Kind] = {
        "rewind": "rewind", "shell": "shell", "write_file": "write", "edit_notebook": "notebook",
    }  # fmt: skip
    return kinds.get(tool, "edit")


# ---- what nobody recorded


def _with_outside(ordered: Sequence[Event], past: _Past) -> Iterator[Event]:
    """The events, and before those that show it, what somebody outside must have done."""
    current: dict[str, str | None] = {}
    for at, event in enumerate(ordered):
        told = _told(event)
        looked = _next_look(ordered, at) if told and not event.before else event.before
        if event.kind == "notice" and event.said == "was deleted":
            looked = None
        known = current.get(event.path, "")
        certain = known != "" or (told and looked is None)
        if certain and looked not in {"", known}:
            yield _outside(event, past, known, looked)
            current[event.path] = looked
        elif told and looked == "" and known != "" and not _explained(event):
            yield _outside(event, past, known, "")
            current[event.path] = ""
        yield event
        if event.kind not in {"refused", "notice"}:
            current[event.path] = event.digest
            current.update(event.also)


def _next_look(ordered: Sequence[Event], at: int) -> str | None:
    """The digest that the path of an event is found to have next; "" if nobody looks again."""
    path = ordered[at].path
    return next((e.before for e in ordered[at + 1 :] if e.path == path and e.before != ""), "")


def _explained(event: Event) -> bool:
    """True if the agent was told of somebody whose change stands in the history."""
    if event.kind == "notice":
        return any(path == event.path and by for path, _, by in _TOLD.findall(event.text))
    return _NAMED.search(event.text.split("\n", 1)[0]) is not None


def _outside(event: Event, past: _Past, known: str | None, looked: str | None) -> Event:
    patch = past.patch(event.path, known, looked) if looked != "" else None
    said = "" if patch is None else f"+{patch.added} -{patch.removed}"
    said = "deleted" if looked is None else said
    text = event.text if patch is None else ""
    patches = ((event.path, patch),) if patch is not None else ()
    return Event("outside", OUTSIDE, event.path, said, text, patches, digest=looked, before=known, time=event.time)
