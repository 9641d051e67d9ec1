"""What an agent is told of files that changed outside, and what counts as seen of them by that.

One message for all files, short: which file, what became of it, by whom if that is known, and the change itself as far
as there is room. No cause is named that is not known, and nothing is ordered. A change that stands there in full counts
as seen; one that is cut, or only named, does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from langchain_filestate import _notebook, _outside, _patch, _records, _text
from langchain_filestate._history import next_seq
from langchain_filestate._records import Record, View
from langchain_filestate.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_filestate._history import FileHistory
    from langchain_filestate._patch import StructuredPatch
    from langchain_filestate._policy import Policy
    from langchain_filestate._records import Known

_MAX_NAMED = 50
"""Files that one notice names; of the others it gives the number."""

_MAX_DIFFS = 20
"""Files whose difference is worked out for one notice."""

_MAX_CELLS = 10
"""Cells of a notebook that a notice names."""


@dataclass(frozen=True, slots=True)
class Now:
    """One file as it is on disk.

    Attributes:
        path: Real, absolute path.
        digest: Of its bytes; empty if it is gone or cannot be read.
        size: Bytes.
        data: Its bytes; None if there are none, or too many for a diff.
        lost: Why there are none: it is gone, or there is something that cannot be read as a file.
        mode: Its permission bits; None if they were not looked at.
    """

    path: str
    digest: str
    size: int
    data: bytes | None
    lost: Literal["", "gone", "unreadable"] = ""
    mode: int | None = None


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
    """What is different: the diff, if the old bytes are known and both are text."""

    lines: int
    patch: StructuredPatch | None = None
    words: str = ""


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
            records[item.now.path] = _record(
                item, _difference(item, history, policy), item.told.message, item.told.full
            )
        elif len(named) < _MAX_NAMED:
            wanted = len(named) < _MAX_DIFFS
            named.append((item, _difference(item, history, policy) if wanted else _Difference(0)))
        else:
            more += 1
            records[item.now.path] = _record(item, _Difference(0), evidence, full=False)
    if not named:
        return Notice(None, records)
    texts = _fitting([difference.patch for _, difference in named], policy.limits.max_notice_lines)
    told = ["A file changed on disk since it was last shown here:" if len(items) == 1 else
            "Files changed on disk since they were last shown here:"]  # fmt: skip
    for (item, difference), (text, full) in zip(named, texts, strict=True):
        by = _by_whom(item, history, agent, thread_id)
        told.append(f"{item.now.path} {_became(item, difference)}{by and ' '}{by}.{difference.words}")
        if text:
            told.append(text)
        records[item.now.path] = _record(item, difference, evidence, full=full)
    if more:
        told.append(f"And {more} more files that were shown in this conversation changed.")
    return Notice("\n".join(told), records)


def _record(item: Item, difference: _Difference, evidence: str, full: bool) -> Record:
    now, old = item.now, item.known.record
    views: tuple[View, ...] = ()
    if full and difference.patch is not None:
        views = _records.move(item.known.views, _outside.edits_of(difference.patch), evidence)
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
    try:
        lines = _text.profile(now.data, policy.encodings).lines
    except Refused:  # no text any more
        return _Difference(0) if now.path.endswith(".ipynb") else _NO_TEXT
    before = history.content(old.digest) if old is not None and old.digest else None
    if now.path.endswith(".ipynb"):
        return _Difference(0, words=_cells(before, now.data))
    if before is None:
        return _Difference(lines)
    return _Difference(lines, _patch.patch_bytes(now.path, before, now.data, policy.encodings))


_NO_TEXT = _Difference(-1)


def _cells(before: bytes | None, after: bytes) -> str:
    """Which cells are not what they were: an agent sees cells, and a diff of the raw file says little to it."""
    try:
        new = {cell.name: (cell.cell_type, cell.source) for cell in _notebook.parse(after).cells}
        old = {cell.name: (cell.cell_type, cell.source) for cell in _notebook.parse(before).cells} if before else None
    except Refused:
        return ""
    if old is None:
        return ""
    kinds = {
        "changed": [name for name in new if name in old and new[name] != old[name]],
        "new": [name for name in new if name not in old],
        "gone": [name for name in old if name not in new],
    }
    said = [
        f"{kind}: {', '.join(map(str, names[:_MAX_CELLS]))}{' and more' if len(names) > _MAX_CELLS else ''}"
        for kind, names in kinds.items()
        if names
    ]
    return f" Cells {'; '.join(said)}." if said else " The text of its cells is the same."


def _fitting(patches: Sequence[StructuredPatch | None], most: int) -> list[tuple[str, bool]]:
    """The diffs, as many as fit whole, the shortest first; the first of the others is cut to what is left."""
    texts = [_outside.diff_text(patch, most) if patch is not None else ("", False) for patch in patches]
    sizes = [text.count("\n") + 1 if text else 0 for text, _ in texts]
    out: list[tuple[str, bool]] = [("", False)] * len(texts)
    left = most
    for index in sorted(range(len(texts)), key=sizes.__getitem__):
        if texts[index][1] and sizes[index] <= left:
            out[index] = texts[index]
            left -= sizes[index]
    for index, patch in enumerate(patches):
        if patch is not None and not out[index][0] and left > 1:
            out[index] = (_outside.diff_text(patch, left - 1)[0], False)
            break
    return out
