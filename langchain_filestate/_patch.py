r"""A change to one file as a unified diff, made from the bytes and from where they were spliced.

The idea: the edit knows its spans, so nothing is searched for. Line numbers come from counting line ends, the spans are
widened to whole lines (`_spans`), only what stands inside them is compared, and only the lines shown are decoded. A
whole rewrite becomes one span by cutting off what both ends have in common.

Rules, from POSIX "diff -u" and git's documentation of its patch format:
- A line ends at LF and nowhere else; a CR is the last character of its line, and a BOM the first of line 1 (U+FEFF).
- A line without a line end is followed by the entry `\ No newline at end of file`.
- Labels are `a/PATH` and `b/PATH` without the leading slash, as git has them, so that `patch -p1` and `git apply` find
  relative paths and refuse none as absolute; `/dev/null` stands for a file that is not there. In the text, names that
  hold control characters, quotes or backslashes are quoted like C strings, and one with blanks is followed by a tab.
- The text is the decoded one. A patch is `exact` if encoding its lines as the file is encoded gives the bytes back; so
  it may be applied to the decoded file, or by `patch` to the file itself where `str(patch)` is written out in the
  file's encoding (any that keeps ASCII: not UTF-16 or UTF-32).

Limits: past the budget all lines of a span are taken out and put in as one hunk; past the bounds on lines and bytes
hunks are left out or cut. Both are `truncated`; the latter is not `exact` and must not be applied. Binary content has
no hunks. The creation or removal of an empty file has none either; its text is git's extended header, which takes the
next `---` line for its own: where texts are joined, it goes last.
"""

from __future__ import annotations

from operator import add
from typing import TYPE_CHECKING, NamedTuple

from langchain_filestate._diff import Budget
from langchain_filestate._hunks import DEV_NULL, MARKER, PatchHunk, StructuredPatch
from langchain_filestate._spans import Block, LineEdit, RawHunk, Touched, compare, difference, hunks, line_edits
from langchain_filestate._text import DEFAULT_ENCODINGS, UTF8, Format, decode, detect, show, split_lines
from langchain_filestate.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from langchain_filestate._match import Splice

BUDGET = 500_000
"""Steps of comparing that one patch may take: about 0.15 s."""
MAX_LINES = 10_000
"""Entries of one patch, over all hunks."""
MAX_BYTES = 1_000_000
"""Bytes of content that stand in one patch, over all hunks."""

__all__ = [
    "LineEdit",
    "PatchHunk",
    "StructuredPatch",
    "Touched",
    "line_edits",
    "patch_bytes",
    "patch_splices",
    "patch_touched",
]


def patch_splices(
    path: str,
    before: bytes,
    splices: Iterable[Splice],
    fmt: Format,
    *,
    max_lines: int = MAX_LINES,
    max_bytes: int = MAX_BYTES,
    budget: int = BUDGET,
) -> StructuredPatch:
    """The patch of an edit whose spans are known. The rest of the file is neither compared nor decoded.

    Args:
        path: Name for the labels; a leading slash is dropped.
        before: The whole file before, with its BOM.
        splices: Spans of it and the bytes that replace them; not overlapping.
        fmt: How the file is encoded, before and after.
        max_lines: Entries to show at most.
        max_bytes: Bytes of content to show at most.
        budget: Steps to spend at most on comparing what stands inside the spans.
    """
    touched = Touched(before, splices, fmt)
    return patch_touched(path, touched, max_lines=max_lines, max_bytes=max_bytes, budget=budget)


def patch_touched(
    path: str,
    touched: Touched,
    *,
    max_lines: int = MAX_LINES,
    max_bytes: int = MAX_BYTES,
    budget: int = BUDGET,
) -> StructuredPatch:
    """`patch_splices` where the lines of the splices are asked for elsewhere too."""
    before, fmt = touched.before, touched.fmt
    steps = Budget(budget)
    blocks: list[Block] = []
    for group in touched.groups:
        old = split_lines(before[group.start : group.end], fmt)
        blocks += compare(group.edit.first, group.start, old, split_lines(group.new, fmt), steps)
    label = path.lstrip("/")
    return _shown(_Frame(f"a/{label}", f"b/{label}", fmt, fmt, max_lines, max_bytes), before, blocks, steps)


def patch_bytes(
    path: str,
    before: bytes | None,
    after: bytes | None,
    encodings: Sequence[str] = DEFAULT_ENCODINGS,
    *,
    max_lines: int = MAX_LINES,
    max_bytes: int = MAX_BYTES,
    budget: int = BUDGET,
) -> StructuredPatch:
    """The patch between two contents of which nothing else is known.

    Args:
        path: Name for the labels; a leading slash is dropped.
        before: The whole file before; None if there was no file.
        after: The whole file after; None if there is none.
        encodings: Legacy encodings to try, as for `detect`.
        max_lines: Entries to show at most.
        max_bytes: Bytes of content to show at most.
        budget: Steps to spend at most on comparing.
    """
    old, new = before or b"", after or b""
    label = path.lstrip("/")
    source = DEV_NULL if before is None else f"a/{label}"
    target = DEV_NULL if after is None else f"b/{label}"
    try:
        fmt, fmt_after = _formats(old, new, encodings)
    except Refused:  # binary
        same = old == new
        return StructuredPatch(
            source=source, target=target, added=0, removed=0, truncated=not same, exact=same, hunks=[]
        )
    steps = Budget(budget)
    if fmt.encoding == fmt_after.encoding:
        (group,) = Touched(old, [difference(old, new, fmt)], fmt).groups
        lines = split_lines(old[group.start : group.end], fmt)
        blocks = compare(group.edit.first, group.start, lines, split_lines(group.new, fmt), steps)
    else:
        blocks = compare(1, 0, split_lines(old, fmt), split_lines(new, fmt_after), steps)
    return _shown(_Frame(source, target, fmt, fmt_after, max_lines, max_bytes), old, blocks, steps)


class _Frame(NamedTuple):
    """What a patch is made for: labels, encodings and bounds."""

    source: str
    target: str
    fmt: Format
    fmt_after: Format
    max_lines: int
    max_bytes: int


def _shown(frame: _Frame, before: bytes, blocks: Sequence[Block], steps: Budget) -> StructuredPatch:
    """The patch of the blocks that differ, as far as the bounds allow."""
    shown: list[PatchHunk] = []
    exact = frame.fmt.encoding == frame.fmt_after.encoding or not blocks
    cut = False
    lines_left, bytes_left = max(frame.max_lines, 2), frame.max_bytes
    for raw in hunks(before, blocks, frame.fmt):
        lines_left -= len(raw.lines)
        bytes_left -= sum(map(len, raw.lines))
        cut = lines_left < 0 or bytes_left < 0
        if cut:
            if not shown:
                shown.append(_cut(frame, blocks[0]))
            break
        entries, faithful = _entries(frame, raw)
        exact = exact and faithful
        gone, new = len(raw.kinds) - raw.kinds.count("+"), len(raw.kinds) - raw.kinds.count("-")
        shown.append(_hunk(raw.line, gone, raw.target, new, entries))
    return StructuredPatch(
        source=frame.source,
        target=frame.target,
        added=sum([len(block.new) for block in blocks]),
        removed=sum([len(block.gone) for block in blocks]),
        truncated=cut or steps.exceeded,
        exact=exact and not cut,
        hunks=shown,
    )


def _entries(frame: _Frame, raw: RawHunk) -> tuple[list[str], bool]:
    """The lines of a hunk to show, and whether they give the bytes back when they are encoded."""
    if frame.fmt.unit == 1 and frame.fmt.encoding == frame.fmt_after.encoding:  # wider ones may end inside a unit
        text, faithful = _text(b"".join(raw.lines), frame.fmt)
        texts = text.split("\n")
        if faithful and len(texts) == len(raw.lines) + 1:  # all is text, and each line has its end
            return list(map(add, raw.kinds, texts)), True
    exact = True
    entries: list[str] = []
    for kind, line in zip(raw.kinds, raw.lines, strict=True):
        text, faithful = _text(line, frame.fmt_after if kind == "+" else frame.fmt)
        exact = exact and faithful
        entries += [kind + text[:-1]] if text.endswith("\n") else [kind + text, MARKER]
    return entries, exact


def _hunk(line: int, gone: int, target: int, new: int, entries: list[str]) -> PatchHunk:
    """A hunk; an empty range is named by the line in front of it."""
    return PatchHunk(
        source_start=line if gone else line - 1,
        source_length=gone,
        target_start=target if new else target - 1,
        target_length=new,
        lines=entries,
    )


def _cut(frame: _Frame, block: Block) -> PatchHunk:
    """The beginning of a block that is too large to show: some lines of both sides, long ones shortened."""
    room = max(frame.max_lines, 2)
    half = room // 2
    gone = block.gone[: max(half, room - len(block.new))]
    new = block.new[: room - len(gone)]
    size = max(frame.max_bytes // room // 4 * 4, 80)  # no character of any encoding is longer than four bytes
    entries: list[str] = []
    for kind, lines, fmt in (("-", gone, frame.fmt), ("+", new, frame.fmt_after)):
        for line in lines:
            text = _text(line, fmt)[0].removesuffix("\n") if len(line) <= size else _beginning(line, size, fmt)
            entries.append(kind + text)
    return _hunk(block.line, len(gone), block.line, len(new), entries)


def _beginning(line: bytes, size: int, fmt: Format) -> str:
    return show(line[:size].decode(fmt.encoding, "ignore")) + f" [... {len(line) - size} more bytes]"


def _text(line: bytes, fmt: Format) -> tuple[str, bool]:
    """A line to show, and whether it gives the bytes back when it is encoded."""
    try:
        text = line.decode(fmt.encoding)
        return text, text.encode(fmt.encoding) == line
    except UnicodeError:
        return show(decode(line, fmt)), False


def _formats(old: bytes, new: bytes, encodings: Sequence[str]) -> tuple[Format, Format]:
    """How the two sides are encoded; the same where one judgement fits both.

    Detection of a legacy encoding is a judgement, and a small change must not turn it over; ASCII fits most of them.
    """
    fmt = detect(old, encodings) if old else None
    if not new:
        return (fmt or UTF8,) * 2
    if fmt is not None and not fmt.bom and fmt.encoding != UTF8.encoding and not _is_utf8(new) and _fits(new, fmt):
        return fmt, fmt
    fmt_after = detect(new, encodings)
    if fmt is None or (old.isascii() and _fits(old, fmt_after)):
        return fmt_after, fmt_after
    return fmt, fmt if new.isascii() and _fits(new, fmt) else fmt_after


def _is_utf8(data: bytes) -> bool:
    return _text(data, UTF8)[1] and not data.isascii()


def _fits(data: bytes, fmt: Format) -> bool:
    """Whether content may as well be taken to be encoded so: nothing is lost, and line ends stay what they are."""
    return b"\0" not in data and "\n".encode(fmt.encoding) == b"\n" and _text(data, fmt)[1]
