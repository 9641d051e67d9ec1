"""The use case of reading: a window of a file as numbered text, cells of a notebook, or media, and the record of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain_filestate import _disk, _media, _text
from langchain_filestate._call import Memory, Outcome
from langchain_filestate._kind import is_notebook
from langchain_filestate._records import Record, View, tidy
from langchain_filestate._rules import plain
from langchain_filestate.errors import Refused
from langchain_filestate.results import ReadResult

if TYPE_CHECKING:
    from langchain_filestate._call import Call, Shop
    from langchain_filestate._policy import Limits, Policy
    from langchain_filestate._workspace import Location, Target, Workspace

WHOLE_BYTES = 8 * 1024 * 1024
"""Files up to this size are read in one piece; larger ones are scanned, and only the window is held."""

MEDIA_BYTES = 64 * 1024 * 1024
"""The same for pictures and PDFs; notebooks are read by cells up to the size that can be edited."""

_MEDIA_NAMES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".pdf")

_SCANS = 5
"""How often a large file is scanned again because it changed meanwhile."""

Reader = Callable[[int, int], bytes]
"""Gives the bytes at an offset, of a size."""

UNCHANGED = "File unchanged since last read."


@dataclass(frozen=True, slots=True)
class Read:
    """`read_file`.

    Attributes:
        file_path: As the model gave it.
        offset: First line, from 1; 0 is taken as 1; negative counts from the end.
        limit: Lines; None for as many as the limits allow.
        column: First character of the first line, from 1.
    """

    file_path: str
    offset: int = 1
    limit: int | None = None
    column: int = 1


@dataclass(frozen=True, slots=True)
class _View:
    """One file as it is to be shown: text or cells."""

    profile: _text.Profile
    window: _text.Window
    total: int
    unit: str = "line"


def read(call: Call, op: Read, location: Location, at: Shop) -> Outcome:
    """Show a window of a file and note what was shown; raises `Refused`."""
    if op.limit is not None and op.limit < 1:
        raise Refused("limit must be at least 1; leave it out to read on to the end.", code="bad_arguments")
    if op.column < 1:
        raise Refused("column must be at least 1.", code="bad_arguments")
    try:
        with at.workspace.open(location) as target, _disk.lock(location.path):
            return _show(call, op, location, target, at)
    except Refused as refused:
        if refused.code == "not_found":  # its directory is missing
            raise missing(at.workspace, location) from None
        raise


def missing(workspace: Workspace, location: Location, then: str = "") -> Refused:
    """The refusal of a call on a file that does not exist, with what may have been meant."""
    hint = workspace.suggest(location) or ("" if then else "Check the path, or list the directory.")
    return Refused(f"File does not exist: {plain(location.path)}.{hint and ' '}{hint}{then}", code="not_found")


def _show(call: Call, op: Read, location: Location, target: Target, at: Shop) -> Outcome:
    workspace, policy = at.workspace, at.policy
    size = _disk.size_of(target)
    if size is None:
        raise missing(workspace, location)
    if size > WHOLE_BYTES and not _held_whole(location.path, target, size, policy):
        view = _scan(op, target, policy)
    else:
        snapshot = _disk.snapshot(target)
        if snapshot is None:
            raise missing(workspace, location)
        kind = _media.kind_of(snapshot.data)
        if kind is not None:
            return _media_view(call, op, location, snapshot, kind, policy)
        at.history.remember(snapshot.data, snapshot.digest)
        cells = _notebook_view(op, snapshot, policy) if is_notebook(location.path) else None
        view = cells or _text_view(op, snapshot.data, policy)
    memory = Memory(call, at.siblings, location.path)
    profile, window = view.profile, view.window
    first, last = window.first_line, window.last_line
    earlier = None
    if last and op.column == 1:
        earlier = call.context.shown(location.path, profile.digest, first, last, window.text)
    unchanged = earlier is not None
    # The earlier result is booked anew: its record may have been lost on the way, as at a handoff between agents.
    fresh = tuple(View(a, b, earlier or call.evidence) for a, b in window.seen)
    views = tidy((*memory.carried(profile.digest), *fresh))
    record = Record(
        profile.digest,
        profile.size,
        view.total,
        views,
        memory.next_seq(),
        "notebook" if view.unit == "cell" else "read",
    )
    if unchanged:
        text = (
            f"{UNCHANGED} The {view.unit}s {first} to {last} of {view.total} stand in an earlier result above, "
            "and the file still has the same content."
        )
    else:
        text = "\n\n".join(part for part in (window.text, "\n".join(f"({note})" for note in window.notes)) if part)
    if location.note:
        text = f"{text}\n\n({location.note})"
    result = ReadResult(
        file_path=location.path,
        first_line=first,
        last_line=last,
        total_lines=view.total,
        complete=window.complete,
        unchanged=unchanged,
        encoding=profile.format.encoding,
        bom=bool(profile.format.bom),
        newline=profile.newline,
        final_newline=profile.final_newline,
        size=profile.size,
        digest=profile.digest,
    )
    return Outcome(text, result, location.path, record)


def _held_whole(path: str, target: Target, size: int, policy: Policy) -> bool:
    """True for a large file that is not shown by lines."""
    if is_notebook(path):
        return size <= policy.limits.max_file_bytes
    if size > MEDIA_BYTES:
        return False

    def look(piece: bytes) -> None:
        raise _Begins(piece[:32])

    try:
        with _disk.scan(target, look):
            return False
    except _Begins as begins:
        return _media.kind_of(begins.head) is not None
    except _disk.Changed:
        return False


class _Begins(Exception):  # noqa: N818  an answer inside this module
    """The first bytes of a file; it is read no further."""

    def __init__(self, head: bytes) -> None:
        super().__init__()
        self.head = head


def _text_view(op: Read, data: bytes, policy: Policy) -> _View:
    profile = _text.profile(data, policy.encodings)
    return _View(profile, _window(op, lambda at, size: data[at : at + size], profile, policy), profile.lines)


def _window(op: Read, read: Reader, profile: _text.Profile, policy: Policy) -> _text.Window:
    limits = policy.limits
    return _text.window(
        read,
        profile,
        offset=op.offset,
        limit=op.limit,
        column=op.column,
        max_lines=limits.max_lines,
        max_chars=limits.max_chars,
        max_line_chars=limits.max_line_chars,
    )


def _scan(op: Read, target: Target, policy: Policy) -> _View:
    """A window of a large file, without holding it: one pass for the profile, then only the window."""
    for _ in range(_SCANS):
        scan = _text.Scan(policy.encodings)
        try:
            with _disk.scan(target, scan.feed) as (read, _):
                profile = scan.finish()
                return _View(profile, _window(op, read, profile, policy), profile.lines)
        except _disk.Changed:
            continue
    raise Refused("Another program keeps writing to this file. Try again in a moment.", code="busy")


def _notebook_view(op: Read, snapshot: _disk.Snapshot, policy: Policy) -> _View | None:
    """The cells; None for a file that has the name of a notebook and is none, which is shown as text."""
    from langchain_filestate import _notebook  # noqa: PLC0415  few files are one

    try:
        notebook = _notebook.parse(snapshot.data)
    except Refused:
        return None
    window = _notebook.render(
        notebook, offset=op.offset, limit=op.limit, column=op.column, max_chars=policy.limits.max_chars
    )
    return _View(_text.profile(snapshot.data, policy.encodings), window, len(notebook.cells), "cell")


def _media_view(
    call: Call, op: Read, location: Location, snapshot: _disk.Snapshot, kind: _media.Kind, policy: Policy
) -> Outcome:
    """An image or a PDF as content blocks; never counts as text that was seen."""
    media = _media.blocks(
        snapshot.data,
        kind=kind,
        pages=_media.page_span(op.offset, op.limit),
        column=op.column,
        max_chars=policy.limits.max_chars,
        name=location.parts[-1],
        as_file=policy.pdf == "file",
    )
    if media.blocks:
        _check_room(call, media, policy.limits)
    notes = "\n".join(f"({note})" for note in (*media.notes, *([location.note] if location.note else ())))
    text = "\n\n".join(part for part in (media.text, notes) if part)
    content: str | list[dict[str, Any]] = text
    if media.blocks:
        words: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
        content = [*words, *media.blocks]
    first, last, total = media.pages or (0, 0, 0)
    result = ReadResult(
        file_path=location.path,
        first_line=first,
        last_line=last,
        total_lines=total,
        complete=False,
        encoding=None,
        bom=False,
        newline="none",
        final_newline=False,
        size=len(snapshot.data),
        digest=snapshot.digest,
    )
    return Outcome(content, result)


def _check_room(call: Call, media: _media.Media, limits: Limits) -> None:
    """Refuse what would make the conversation larger than providers take: they would reject all later turns too."""
    size = sum(len(str(block.get("base64", ""))) for block in media.blocks)
    if size > limits.max_thread_media_bytes:
        raise Refused(
            f"Not shown: it takes {size:,} bytes, and a conversation may hold {limits.max_thread_media_bytes:,}. "
            "Ask for fewer pages (offset, limit), or make a smaller copy.",
            code="too_large",
        )
    if call.gives_way:
        return
    count, there = call.context.media()
    # What earlier calls of this message show does not stand in the messages yet.
    count += sum(1 for _, path in call.earlier if path.lower().endswith(_MEDIA_NAMES))
    if count + len(media.blocks) > limits.max_thread_media or there + size > limits.max_thread_media_bytes:
        raise Refused(
            f"Not shown: this conversation holds {count} pictures or files already, and no provider takes many more. "
            "Go on without this one, or say what you would need it for.",
            code="too_large",
        )
