"""What an agent knows of a file: a digest of the bytes it was shown, and which lines, each on its evidence.

Records live in the graph's state as plain dicts (`Record.to_state`), so that every checkpointer can carry them; here
they are frozen values. A view counts only while its evidence, the id of the message that showed the lines, stands in
the agent's context; the caller says which ids do. Nothing here reads a file, a clock or a message.

Limits: at most `MAX_VIEWS` views a record (the smallest go first) and `MAX_RECORDS` records an agent (the oldest go
first); a file that fell out is simply not read.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from contextlib import suppress
from functools import partial
from itertools import compress
from operator import itemgetter, le, sub
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from langchain_filestate._patch import LineEdit

MAX_RECORDS = 512
MAX_VIEWS = 128
VERSION = 1

Origin = Literal["read", "edit", "write", "notebook", "notice", "shell"]
_ORIGINS: dict[object, Origin] = {name: name for name in get_args(Origin)}

State = dict[str, dict[str, dict[str, Any]]]
"""The channel's value: agent, then real absolute path, then record."""


class View(NamedTuple):
    """One range of lines that was shown.

    Attributes:
        first: First line, from 1.
        last: Last line, included.
        evidence: Id of the message that showed them.
    """

    first: int
    last: int
    evidence: str


_evidence = itemgetter(View._fields.index("evidence"))

_view = partial(tuple.__new__, View)
"""Makes a view of a list, without the call of Python code that the class makes."""


class Record(NamedTuple):
    """What one agent knows of one file.

    Attributes:
        digest: SHA-256 of the raw bytes in hex; empty for a file that was announced as gone.
        size: Bytes.
        lines: Lines of the file (cells of a notebook).
        views: What was shown of these bytes, in order, not overlapping where the evidence is the same.
        seq: Orders the records of one path; taken under the path's lock.
        origin: What made the record.
    """

    digest: str
    size: int
    lines: int
    views: tuple[View, ...]
    seq: int
    origin: Origin

    def to_state(self) -> dict[str, Any]:
        """The record as plain values for the graph's state."""
        return {
            "v": VERSION,
            "digest": self.digest,
            "size": self.size,
            "lines": self.lines,
            "views": [*map(list, self.views)],
            "seq": self.seq,
            "origin": self.origin,
        }


def load(value: object) -> Record | None:
    """A record from the state; None for unknown versions and broken shapes, which count as "not read"."""
    if not isinstance(value, dict) or value.get("v") != VERSION:
        return None
    digest, seen = value.get("digest"), value.get("views")
    size, lines, seq = value.get("size"), value.get("lines"), value.get("seq")
    if not (isinstance(digest, str) and isinstance(seen, (list, tuple))):
        return None
    if not (type(size) is int and type(lines) is int and type(seq) is int and size >= 0 and lines >= 0):
        return None  # a bool is an int too, and no number of anything
    if not _are_views(seen, lines):
        return None
    name = value.get("origin")
    origin = _ORIGINS.get(name) if isinstance(name, str) else None
    return None if origin is None else Record(digest, size, lines, tuple(map(_view, seen)), seq, origin)


def _are_views(seen: Sequence[Any], lines: int) -> bool:
    """Whether all are ranges of a file of so many lines. A record holds many: no line of Python is run for each."""
    if not ({*map(type, seen)} <= {list, tuple} and {*map(len, seen)} <= {len(View._fields)}):
        return False
    if not seen:
        return True
    first, last, evidence = zip(*seen, strict=True)
    return (
        {*map(type, first), *map(type, last)} == {int}
        and {*map(type, evidence)} == {str}
        and min(first) >= 1
        and max(last) <= lines
        and all(map(le, first, last))
    )


def evidence_in(record: object) -> list[str]:
    """The evidence that a record of the state names; of one in another version or shape, what is there to be found."""
    views = record.get("views") if isinstance(record, dict) else None
    if not isinstance(views, (list, tuple)):
        return []
    return [view[2] for view in views if isinstance(view, (list, tuple)) and [*map(type, view)][2:3] == [str]]


def merge_records(left: object, right: object) -> State:
    """Join two values of the channel: per agent and path the record with the higher `seq` wins whole.

    Commutative, associative and idempotent, so that parallel branches, retries and sub-graphs may deliver their
    updates in any order and more than once. Neither argument is changed.

    Args:
        left: The value so far; None and broken shapes count as empty.
        right: The update, likewise.

    Returns:
        A new value with at most `MAX_RECORDS` records an agent, those with the highest `seq`.
    """
    merged: State = {}
    for side in (left, right):
        for agent, records in side.items() if isinstance(side, dict) else ():
            if not isinstance(agent, str) or not isinstance(records, dict):
                continue
            if agent not in merged and side is left:
                merged[agent] = _clean(records)
                continue
            mine = merged.setdefault(agent, {})
            for path, record in records.items():
                if _usable(path, record) and (path not in mine or _newer(record, mine[path])):
                    mine[path] = record
    for agent, records in merged.items():
        if len(records) > MAX_RECORDS:
            newest = sorted(records.items(), key=lambda item: (item[1]["seq"], item[0]))[-MAX_RECORDS:]
            merged[agent] = dict(newest)
    return merged


def _clean(records: dict[Any, Any]) -> dict[str, dict[str, Any]]:
    """A copy without broken records. As a rule there are none, which costs less to find out for all at once."""
    values = records.values()
    with suppress(KeyError):  # a record without `seq`
        if (
            {*map(type, records)} <= {str}
            and {*map(type, values)} <= {dict}
            and {*map(type, map(itemgetter("seq"), values))} <= {int}
        ):
            return dict(records)
    return {path: record for path, record in records.items() if _usable(path, record)}


def _usable(path: object, record: object) -> bool:
    return isinstance(path, str) and isinstance(record, dict) and type(record.get("seq")) is int


def _newer(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    if one["seq"] != other["seq"]:
        return bool(one["seq"] > other["seq"])
    if one == other:
        return False
    # Two records with one seq come only from two machines; any rule will do if it is the same everywhere.
    return _plain(one) > _plain(other)


def _plain(record: Mapping[str, Any]) -> str:
    return json.dumps(record, sort_keys=True, default=repr)


def tidy(views: Iterable[View], alive: Collection[str] | None = None) -> tuple[View, ...]:
    """The views in order, neighbours with one evidence joined, dead ones dropped, at most `MAX_VIEWS`.

    Args:
        views: Any views of one digest.
        alive: The evidence that still counts; None keeps all.
    """
    kept = sorted(views)
    if alive is not None:
        kept = [*compress(kept, map(alive.__contains__, map(_evidence, kept)))]
    if len({*map(_evidence, kept)}) < len(kept):
        kept = sorted(_joined(kept))
    if len(kept) > MAX_VIEWS:
        first, last, _ = zip(*kept, strict=True)
        by_size = sorted(range(len(kept)), key=[*map(sub, first, last)].__getitem__)
        kept = [kept[at] for at in sorted(by_size[:MAX_VIEWS])]
    return tuple(kept)


def _joined(views: Iterable[View]) -> list[View]:
    joined: list[View] = []
    last_of: dict[str, int] = {}
    for view in views:
        at = last_of.get(view.evidence)
        if at is not None and view.first <= joined[at].last + 1:
            joined[at] = View(joined[at].first, max(joined[at].last, view.last), view.evidence)
        else:
            last_of[view.evidence] = len(joined)
            joined.append(view)
    return joined


def covers(views: Iterable[View], first: int, last: int) -> bool:
    """True if every line from `first` to `last` stands in some view; an empty range always does."""
    need = first
    for view in sorted(views):
        if need > last or view.first > need:
            break
        need = max(need, view.last + 1)
    return need > last


def evidence_of(views: Iterable[View], line: int) -> frozenset[str]:
    """The evidence on which one line stands; empty if it was not shown."""
    return frozenset(view.evidence for view in views if view.first <= line <= view.last)


def move(views: Sequence[View], edits: Sequence[LineEdit], evidence: str) -> tuple[View, ...]:
    """The views after an edit: what was untouched moves, whole new lines stand on the edit's own evidence.

    A line that was replaced only in part keeps its old evidence, for the part that is left is old text; where two
    such lines were joined into one, only evidence that showed both counts. Where there were too many replacements to
    follow, all lines between keep their evidence if each holds text of the one with its number, else none has any.

    Args:
        views: The views before.
        edits: What was replaced, in order, in lines of the old text.
        evidence: Id of the message that shows the new lines.
    """
    moved: list[View] = []
    shift, done = 0, 1  # lines before `done` are dealt with
    views = sorted(views)
    for edit in edits:
        if edit.rough and edit.head_partial:
            continue  # each line holds text of the one with its number, and so stays on its evidence
        moved += _clip(views, done, edit.first - 1, shift)
        top, end = edit.first + shift, edit.first + shift + edit.new_count
        held: dict[int, frozenset[str]] = {}
        for after, before in edit.kept:
            shown = evidence_of(views, before)
            held[after] = held[after] & shown if after in held else shown
        for after in sorted(held):
            if top < after:
                moved.append(View(top, after - 1, evidence))
            moved += [View(after, after, name) for name in held[after]]
            top = after + 1
        if top < end and not edit.rough:
            moved.append(View(top, end - 1, evidence))
        done = edit.first + edit.old_count
        shift += edit.new_count - edit.old_count
    moved += _clip(views, done, None, shift)
    return tidy(moved)


def _clip(views: Sequence[View], first: int, last: int | None, shift: int) -> list[View]:
    """What views in order show of a range, moved."""
    if last is not None and last < first:
        return []
    whole: Sequence[View] = ()
    if last is None and not shift:  # nearly all, as a rule
        at = bisect_left(views, (first,))
        views, whole = views[:at], views[at:]
    kept: list[View] = []
    for view in views:
        low, high = max(view.first, first), view.last if last is None else min(view.last, last)
        if low <= high:
            kept.append(View(low + shift, high + shift, view.evidence))
    return [*kept, *whole]


class Known(NamedTuple):
    """What one agent may build on for one path: its record, and those views that count now.

    Attributes:
        record: The record in force; None if the file was not read.
        views: Views of that digest whose evidence is in the agent's context.
        owners: The agents whose records gave the views.
    """

    record: Record | None
    views: tuple[View, ...]
    owners: tuple[str, ...] = ()

    def shows(self, first: int, last: int) -> bool:
        """True if all lines from `first` to `last` stand in views that count."""
        return covers(self.views, first, last)

    def shows_all(self) -> bool:
        """True if the whole file does."""
        return self.record is not None and self.shows(1, self.record.lines)

    def announced_only(self) -> bool:
        """True if the agent was told that the file changed, but shown nothing of what it is now."""
        return self.record is not None and self.record.origin == "notice" and not self.record.views


def known(
    records: Mapping[str, Record], agent: str, digest: str | None, alive: Callable[[Collection[str]], Collection[str]]
) -> Known:
    """What `agent` knows of one path.

    Its own record counts always, that of another agent only where its evidence stands in this agent's context. A
    record of the bytes that are on disk goes before one of other bytes; then the newest is in force.

    Args:
        records: The records of one path by agent.
        agent: Who asks.
        digest: The digest of the bytes on disk; None if there is no file.
        alive: Says which of some evidence is in the agent's context.
    """
    ids = {name: {*map(_evidence, record.views)} for name, record in records.items()}
    named = set().union(*ids.values())
    living = set(alive(named) if named else ())
    candidates = {name: record for name, record in records.items() if name == agent or not living.isdisjoint(ids[name])}
    if not candidates:
        return Known(None, ())
    force = max(candidates.values(), key=lambda record: (record.digest == digest, record.seq))
    same = {name: record for name, record in candidates.items() if record.digest == force.digest}
    views = tidy((view for record in same.values() for view in record.views), living)
    return Known(force, views, tuple(same))
