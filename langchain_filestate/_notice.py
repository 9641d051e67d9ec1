"""What an agent is told of files that changed outside, and what counts as seen of them by that.

One message for all files, short: which file, what became of it, by whom if that is known, and the change itself as far
as there is room. No cause is named that is not known, and nothing is ordered. A change that stands there in full counts
as seen; one that is cut, or only named, does not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from langchain_filestate import _outside, _patch, _records, _text
from langchain_filestate._history import next_seq
from langchain_filestate._plan import cell_changes, cells_in
from langchain_filestate._records import Record, View
from langchain_filestate.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_filestate._celldiff import CellDiff
    from langchain_filestate._history import FileHistory
    from langchain_filestate._hunks import StructuredPatch
    from langchain_filestate._policy import Policy
    from langchain_filestate._records import Known

_MAX_NAMED = 50
"""Files that one notice names; of the others it gives the number."""

_MAX_DIFFS = 20
"""Files whose difference is worked out for one notice."""


@dataclass(frozen=True, slots=True)
class Now:
    """One file as it is on disk.

    Attributes:
        path: Real, absolute path.
        digest: Of its bytes; empty if it is gone or cannot be read.
        size: Bytes.
        data: Its bytes; None if there are none, or too many for a diff.
        lost: Why there are none: it is gone, or there is something that cannot be read as a file.
    """

    path: str
    digest: str
    size: int
    data: bytes | None
    lost: Literal["", "gone", "unreadable"] = ""


@dataclass(frozen=True, slots=True)
class Told:
    """A refusal that has told of the change already: id of its message, the digest it spoke of, if all was shown."""

    message: str
    digest: str
    full: bool


@dataclass(frozen=True, slots=True)
class Item:
    """One changed file.

    Attributes:
        now: As it is.
        known: What the agent knew of it, which is another digest.
        told: What has been said of it already; None if nothing.
    """

    now: Now
    known: Known
    told: Told | None = None


@dataclass(frozen=True, slots=True)
class _Difference:
    """What is different, if the old bytes are known: the diff if both are text, the cells if both are notebooks.

    Attributes:
        lines: Lines of the file, cells of a notebook; -1 for what is no text.
        patch: The diff.
        cells: What became of the cells.
    """

    lines: int
    patch: StructuredPatch | None = None
    cells: CellDiff | None = None

    def text(self, most: int) -> _Shown:
        """What of it is shown in so many lines."""
        if self.cells is not None:
            text, shown = self.cells.text(most)
            return _Shown(text, len(shown) == len(self.cells.numbers), shown)
        if self.patch is None:
            return _NOTHING
        return _Shown(*_outside.diff_text(self.patch, most))

    def views(self, old: Sequence[View], evidence: str, shown: _Shown) -> tuple[View, ...]:
        """What still counts as seen after it."""
        if self.cells is not None:
            return _records.move(old, self.cells.edits(shown.cells), evidence)
        if self.patch is None or not shown.full:
            return ()
        return _records.move(old, _outside.edits_of(self.patch), evidence)

    def all(self) -> _Shown:
        """As if all of it were shown."""
        names = [change.name for change in self.cells.changes] if self.cells is not None else []
        return _Shown("", full=True, cells=frozenset(names))


@dataclass(frozen=True, slots=True)
class _Shown:
    """What is shown of a difference: the text, if it is all, and which cells are in it in full."""

    text: str
    full: bool
    cells: frozenset[str] = frozenset()


_NOTHING = _Shown("", full=False)


@dataclass(frozen=True, slots=True)
class Notice:
    """The text, None if all has been told, and the records by path."""

    text: str | None
    records: dict[str, Record]


def notice(
    items: Sequence[Item], history: FileHistory, policy: Policy, *, agent: str, thread_id: str | None, evidence: str
) -> Notice:
    """Say what changed.

    Args:
        items: The changed files.
        history: Knows old bytes, and who wrote.
        policy: For the bounds.
        agent: Who is told.
        thread_id: Its thread.
        evidence: Id of the message that the text will be.
    """
    records: dict[str, Record] = {}
    named: list[tuple[Item, _Difference]] = []
    more = 0
    for item in items:
        if item.told is not None:
            difference = _difference(item, history, policy)
            shown = difference.all() if item.told.full else _NOTHING
            records[item.now.path] = _record(item, difference, item.told.message, shown)
        elif len(named) < _MAX_NAMED:
            wanted = len(named) < _MAX_DIFFS
            named.append((item, _difference(item, history, policy) if wanted else _Difference(0)))
        else:
            more += 1
            records[item.now.path] = _record(item, _Difference(0), evidence, _NOTHING)
    if not named:
        return Notice(None, records)
    texts = _fitting([difference for _, difference in named], policy.limits.max_notice_lines)
    told = ["A file changed on disk since it was last shown here:" if len(items) == 1 else
            "Files changed on disk since they were last shown here:"]  # fmt: skip
    for (item, difference), shown in zip(named, texts, strict=True):
        by = _by_whom(item, history, agent, thread_id)
        told.append(f"{item.now.path} {_became(item, difference)}{by and ' '}{by}.")
        if shown.text:
            told.append(shown.text)
        elif difference.cells is not None:
            told[-1] += f" What differs: {difference.cells.summary()}."
        records[item.now.path] = _record(item, difference, evidence, shown)
    if more:
        told.append(f"And {more} more files that were shown in this conversation changed.")
    return Notice("\n".join(told), records)


def _record(item: Item, difference: _Difference, evidence: str, shown: _Shown) -> Record:
    now, old = item.now, item.known.record
    views = difference.views(item.known.views, evidence, shown)
    seq = next_seq(old.seq if old is not None else 0)
    return Record(now.digest, now.size, difference.lines, views, seq, "notice")


def _became(item: Item, difference: _Difference) -> str:
    now, old = item.now, item.known.record
    if now.lost:
        return "was deleted" if now.lost == "gone" else "cannot be read any more"
    if old is not None and not old.digest:
        return "is there again"
    if now.data is not None and difference.lines < 0:
        return "was changed and is no text any more"
    return "was changed"


def _by_whom(item: Item, history: FileHistory, agent: str, thread_id: str | None) -> str:
    if item.now.lost == "unreadable":
        return ""
    who = _outside.writer(history, item.now.path, item.now.digest or None, item.known.record)
    return _outside.who_changed(who, agent, thread_id)


def _difference(item: Item, history: FileHistory, policy: Policy) -> _Difference:
    now, old = item.now, item.known.record
    if now.data is None:
        return _Difference(0)
    before = history.content(old.digest) if old is not None and old.digest else None
    cells = cells_in(now.path, now.data)
    if cells is not None:
        return _Difference(cells, cells=cell_changes(now.path, before, now.data))
    try:
        lines = _text.profile(now.data, policy.encodings).lines
    except Refused:  # no text any more
        return _NO_TEXT
    if before is None or cells_in(now.path, before) is not None:  # of a notebook its raw text was not seen
        return _Difference(lines)
    return _Difference(lines, _patch.patch_bytes(now.path, before, now.data, policy.encodings))


_NO_TEXT = _Difference(-1)


def _fitting(differences: Sequence[_Difference], most: int) -> list[_Shown]:
    """What is shown, as many as fit whole, the shortest first; the first of the others is cut to what is left."""
    texts = [difference.text(most) for difference in differences]
    sizes = [shown.text.count("\n") + 1 if shown.text else 0 for shown in texts]
    out = [_NOTHING] * len(texts)
    left = most
    for index in sorted(range(len(texts)), key=sizes.__getitem__):
        if texts[index].full and sizes[index] <= left:
            out[index] = texts[index]
            left -= sizes[index]
    for index, difference in enumerate(differences):
        if texts[index].text and not out[index].text and left > 1:
            out[index] = replace(difference.text(left - 1), full=False)
            break
    return out
