"""What the model is told when a file is not what it read: who changed it, where, and what to do next.

No sentence names a cause that is not known, and none repeats the model's own text.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from langchain_filestate import _patch, _text
from langchain_filestate._patch import LineEdit
from langchain_filestate._plan import cell_changes
from langchain_filestate._records import covers
from langchain_filestate.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from langchain_filestate._call import Call
    from langchain_filestate._history import Change, FileHistory
    from langchain_filestate._hunks import StructuredPatch
    from langchain_filestate._plan import Before
    from langchain_filestate._policy import Policy
    from langchain_filestate._records import Known, Record, View

NOT_READ = "File has not been read yet. Read it first before writing to it."
STALE = "File has been modified since read. Read it again before writing."

_MAX_CHARS = 300
"""Of one line of a diff that the model is shown."""


def diff_text(patch: StructuredPatch, max_lines: int) -> tuple[str, bool]:
    """The hunks of a patch as text for the model, bounded, and whether that is all of it.

    Args:
        patch: Any patch.
        max_lines: Most lines of text.
    """
    lines: list[str] = []
    full = patch.exact and not patch.truncated
    for hunk in patch.hunks:
        lines.append(f"@@ -{hunk.source_start},{hunk.source_length} +{hunk.target_start},{hunk.target_length} @@")
        for line in hunk.lines:
            if len(line) > _MAX_CHARS:
                full = False
            lines.append(line if len(line) <= _MAX_CHARS else f"{line[:_MAX_CHARS]} ... (cut)")
        if len(lines) > max_lines:
            break
    if len(lines) > max_lines:
        lines, full = [*lines[:max_lines], "... (more not shown)"], False
    return "\n".join(lines), full


def edits_of(patch: StructuredPatch) -> tuple[LineEdit, ...]:
    """The replaced lines of a patch that is whole, so that views can be moved across it."""
    edits: list[LineEdit] = []
    for hunk in patch.hunks:
        at, first, old, new = hunk.source_start, 0, 0, 0
        # A file that holds a byte order mark and nothing else has no lines.
        empty = (hunk.target_start, hunk.target_length) == (1, 1) and hunk.lines[-2:-1] == ["+\ufeff"]
        if hunk.source_length == 0:
            at += 1  # a hunk without old lines names the line before it
        for line in [*hunk.lines, " "]:
            mark = line[:1]
            if mark == " ":
                if old or new:
                    edits.append(LineEdit(first, old, new, False, False, ()))
                old = new = 0
                at += 1
                continue
            if mark in "-+" and not (old or new):
                first = at
            if mark == "-":
                old += 1
                at += 1
            elif mark == "+":
                new += not empty
    return tuple(edits)


def writer(history: FileHistory, path: str, digest: str | None, record: Record | None) -> Change | None:
    """The change that put the bytes there since a record was made; None if nobody we know did.

    Args:
        history: Where changes are kept.
        path: Real, absolute path.
        digest: Of the bytes that are there now; None if there is no file.
        record: What the agent knew of the file; None if nothing.
    """
    change = history.writer(path, digest)
    # Who wrote the same bytes earlier did not put them back.
    return None if change is None or (record is not None and change.seq < record.seq) else change


class Stale(Refused):
    """The refusal of a write to a file that changed since it was read.

    Attributes:
        digest: Of the bytes that it speaks of; empty if it shows nothing of them.
        full: True if it shows the whole change.
    """

    def __init__(self, message: str, *, lines: Iterable[int] = (), digest: str = "", full: bool = False) -> None:
        super().__init__(message, code="stale", lines=lines)
        self.digest, self.full = digest, full


def who_changed(change: Change | None, agent: str, thread_id: str | None) -> str:
    """By whom, as far as it is known; empty if it is not."""
    if change is None:
        return ""
    if change.tool == "shell":
        return "while a shell command ran"
    if change.tool == "rewind":
        return "by a rewind"
    if change.agent != agent:
        return f'by agent "{change.agent}"'
    if change.thread_id != thread_id:
        return "by this agent in another thread"
    return "by an earlier call of your own"


def stale(call: Call, before: Before, old: bytes | None, who: Change | None, policy: Policy) -> Stale:
    """The refusal of a write to a file that changed since it was read.

    Args:
        call: Who wanted to write.
        before: The file now.
        old: The bytes that were read; None if they are not known any more.
        who: The change that made the bytes which are there now; None if nobody we know did.
        policy: For the bounds.
    """
    by = who_changed(who, call.agent, call.thread_id)
    text = f"{STALE} It was changed {by}." if by else STALE
    if old is None or before.data is None:
        return Stale(text)
    cells = cell_changes(before.path, old, before.data)
    lines: Iterable[int]
    if cells is not None:
        shown, parts = cells.text(policy.limits.max_diff_lines)
        lines, full = cells.numbers, len(parts) == len(cells.numbers)
    else:
        patch = _patch.patch_bytes(before.path, old, before.data, policy.encodings)
        shown, full = diff_text(patch, policy.limits.max_diff_lines)
        lines = [first for first, _ in _places(patch)]
    said = f"{text}\nChanged since the read:\n{shown}"
    return Stale(said, lines=lines, digest=before.digest or "", full=full)


def also_changed(call: Call, before: Before, old: bytes | None, who: Change | None, policy: Policy) -> str:
    """What an edit that went ahead on changed bytes says of the rest of the file."""
    by = who_changed(who, call.agent, call.thread_id)
    said = f"The file had also been changed elsewhere since you read it{f' ({by})' if by else ''}"
    if old is None:
        return f"{said}; what changed is not known here. Read it again where you build on it."
    cells = cell_changes(before.path, old, before.data)
    if cells is not None:
        return f"{said}: {cells.summary()}. Read those cells again if they matter."
    patch = _patch.patch_bytes(before.path, old, before.data, policy.encodings)
    places = _places(patch)
    shown = ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in places[:10])
    more = f" and {len(places) - 10} more places" if len(places) > 10 else ""  # noqa: PLR2004  as many as listed
    return f"{said}, at {_lines_word(shown)} {shown}{more} before this edit. Read those lines again if they matter."


def _places(patch: StructuredPatch) -> list[tuple[int, int]]:
    """Where a patch has put something, in lines of its target."""
    places, shift = [], 0
    for edit in edits_of(patch):
        first = edit.first + shift
        places.append((first, max(first, first + edit.new_count - 1)))
        shift += edit.new_count - edit.old_count
    return places


def check_overwrite(known: Known, coming: Collection[str]) -> None:
    """Refuse an overwrite of lines that the agent does not have before it.

    Args:
        known: What the agent knows of the file.
        coming: Evidence of other calls of the same message: it will be before the agent in the next one.
    """
    record = known.record
    if record is None or known.shows_all():
        return
    soon = (*known.views, *(view for view in record.views if view.evidence in coming))
    if covers(soon, 1, record.lines):
        raise Refused(
            "The text of this file comes with the answers to this very message, so it is not before you yet. "
            "Overwrite it in your next message.",
            code="not_in_context",
        )
    if (record.views and not soon) or covers(record.views, 1, record.lines):
        raise Refused(
            "The text of this file is no longer in your context. Read it again before overwriting it.",
            code="not_in_context",
        )
    missing = _missing(soon, record.lines)
    raise Refused(
        f"Only part of this file has been read; you have not seen {_lines_word(missing)} {missing}. "
        "Read those lines before overwriting the file, or use edit_file.",
        code="partially_read",
    )


def check_cell(known: Known, number: int, name: str, size: Callable[[], int], most: int) -> None:
    """Refuse to replace or delete a cell that the agent does not have before it: nothing of it is in the call.

    Args:
        known: What the agent knows of the bytes that it read.
        number: The cell in these, from 1.
        name: What it is called.
        size: Counts its characters.
        most: Characters that one read shows.
    """
    record = known.record
    if record is None or known.shows(number, number):
        return
    if (characters := size()) > most:
        raise Refused(
            f"Cell {name} has {characters} characters, more than the {most} that one read shows, so it can be neither "
            'replaced nor deleted. Insert a new cell beside it (edit_mode="insert"), or ask the user to change it.',
            code="partially_read",
        )
    if covers(record.views, number, number):
        raise Refused(
            f"The text of cell {name} is not in your context. Read it before you replace or delete it "
            f"(offset={number}, limit=1).",
            code="not_in_context",
        )
    raise Refused(
        f"Only part of this notebook has been read; you have not seen cell {name} in full. "
        f"Read it before you replace or delete it (offset={number}, limit=1).",
        code="partially_read",
    )


def _missing(views: Iterable[View], lines: int) -> str:
    gaps: list[str] = []
    need = 1
    for view in sorted(views):
        if view.first > need:
            gaps.append(_span(need, view.first - 1))
        need = max(need, view.last + 1)
    if need <= lines:
        gaps.append(_span(need, lines))
    return ", ".join(gaps[:5]) + (" and more" if len(gaps) > 5 else "")  # noqa: PLR2004  as many as listed


def _lines_word(named: str) -> str:
    return "line" if named.isdecimal() else "lines"


def _span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


def hook_said(said: object, most: int) -> str | None:
    """What the model is told of what a developer's hook returned, in characters that every checkpointer can keep.

    Args:
        said: What it returned.
        most: Characters of it at most.
    """
    if said is None or isinstance(said, str):
        more = f"\n... ({len(said) - most} more characters not shown)" if said and len(said) > most else ""
        return said and _text.show(said[:most]).replace("\0", "\\0") + more
    return f"What runs after a write returned {type(said).__name__} instead of text or None; it is left out."


def edited_call(changed: Mapping[str, Any], *, by_user: bool) -> tuple[str, bool]:
    """What the model is told of the texts of its call that were changed before it ran, and whether that is all of it.

    Args:
        changed: The arguments with other values than the model gave.
        by_user: True if a person changed them while approving; False if that is not known.
    """
    parts = {name: _shortened(value) for name, value in changed.items()}
    told = "\n".join(f"{name} is now:\n{text}" for name, (text, _) in parts.items())
    who = "The user changed your call before approving it" if by_user else "Your call was changed before it ran"
    return f"{who}: {told}", all(full for _, full in parts.values())


def tell_edited(refused: Refused, changed: Mapping[str, Any], *, by_user: bool) -> None:
    """Add what `edited_call` says of a call to what it is refused with."""
    told, _ = edited_call(changed, by_user=by_user)
    refused.message = f"{refused.message} {told}"


def _shortened(value: object, most: int = 4000) -> tuple[str, bool]:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return (text, True) if len(text) <= most else (f"{text[:most]} ... ({len(text)} characters in all)", False)
