r"""Old text in the bytes of a file, and new text in its place.

Matching is exact. `old_string` is encoded as the file is and looked for in its raw bytes; nothing is folded, trimmed or
guessed, and new text goes in as it was given, without escapes or templates. Two liberties only, both about line ends:

- A `\n` of the old text matches LF or CRLF, since a model sees lines and not their ends; a `\r\n` given as such matches
  CRLF only. A span that begins or ends with a line break takes in the whole of it.
- A `\n` of the new text becomes what the matched span has (in a span of several lines, line by line; at the end of the
  text counted from the end, so that unchanged last lines keep theirs), else what the line breaks around it have, else
  what most of the file has, else LF. A `\r\n` given as such stays.

UTF-8 and single-byte encodings are searched in the bytes: UTF-8 synchronises itself, a match never begins inside a
character. The bytes of other encodings (UTF-16, Shift-JIS, ...) are not safe to search; they are searched decoded, and
the offsets come from encoding the pieces between the spans again (`_search`).

Overlapping matches count as ambiguous; up to 200,000 are counted. Replacing all goes from left to right without
overlap, as `str.replace` does.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from langchain_filestate import _search, _text
from langchain_filestate.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from langchain_filestate._search import View
    from langchain_filestate._text import Format

__all__ = ["Splice", "Spliced", "apply", "find", "near_miss", "replace", "replace_many"]

_PLACES = 10  # places that a refusal names
_COUNTED = 200_000  # matches counted at most; fewer for long texts: each search costs its length
_COUNTED_CHARS = 1 << 26


_Hit = tuple[int, int, str]  # a span of what is searched, and the text that goes there


class Splice(NamedTuple):
    """New bytes for a span of the old file.

    Args:
        start: Byte offset in the old file where the span begins, the byte order mark included in the count.
        end: Byte offset after it; greater than `start`.
        new: What stands there afterwards.
    """

    start: int
    end: int
    new: bytes


class Spliced:
    """What `apply` makes, not put together yet: large content can be hashed and written without a copy of it.

    Args:
        data: The bytes before.
        splices: Ascending and without overlap.

    Raises:
        ValueError: The splices are not in order.
    """

    def __init__(self, data: bytes, splices: Iterable[Splice]) -> None:
        rest = memoryview(data)
        self.pieces: list[bytes | memoryview] = []
        """In order; the first is the unchanged beginning."""
        at = 0
        for splice in splices:
            if not at <= splice.start <= splice.end <= len(data):
                message = f"splice {splice.start}..{splice.end} overlaps, is not in order, or reaches past the end"
                raise ValueError(message)
            self.pieces += (rest[at : splice.start], splice.new)
            at = splice.end
        self.pieces.append(rest[at:])

    def __len__(self) -> int:
        return sum(map(len, self.pieces))

    def __bytes__(self) -> bytes:
        return b"".join(self.pieces)

    def endswith(self, end: bytes) -> bool:
        """Whether these bytes stand at the end."""
        tail = b""
        for piece in reversed(self.pieces):
            tail = bytes(piece[-len(end) :]) + tail
            if len(tail) >= len(end):
                break
        return tail.endswith(end)


def find(data: bytes, fmt: Format, old: str) -> list[tuple[int, int]]:
    r"""Find all matches of `old`, overlapping ones too.

    Args:
        data: The file's bytes, with its byte order mark; the mark itself is never matched.
        fmt: How the file is encoded.
        old: The text; `\n` matches LF and CRLF. Empty text matches nowhere.

    Returns:
        Byte spans, ascending.

    Raises:
        Refused: `encoding`: `old` holds a lone surrogate, or the file's bytes do not survive a round trip.
    """
    _text.encode(old, _text.UTF8)
    view = _search.view(data, fmt)
    return _search.offsets(data, fmt, list(view.spans(old, overlapping=True))) if old else []


def replace(data: bytes, fmt: Format, old: str, new: str, *, replace_all: bool) -> tuple[Splice, ...]:
    """Plan the replacement of `old` by `new`.

    Args:
        data: The file's bytes, with its byte order mark.
        fmt: How the file is encoded.
        old: Text to replace; it must match exactly once, or at least once with `replace_all`.
        new: Text to put there, verbatim but for line endings.
        replace_all: Whether to replace every match, left to right without overlap.

    Returns:
        One splice for each replacement, ascending.

    Raises:
        Refused: `empty_old_string`, `encoding` (lone surrogates, or characters that the file's encoding cannot hold),
            `no_change` (the same text, or the same bytes in the end), `no_match` with the nearest place, `ambiguous`
            with the first lines where it matched.
    """
    return _splices(data, fmt, _hits(_search.view(data, fmt), data, fmt, old, new, replace_all=replace_all))


def replace_many(data: bytes, fmt: Format, edits: Sequence[tuple[str, str, bool]]) -> tuple[Splice, ...]:
    """Plan several replacements, all or nothing.

    All are matched against the file as it is, none against what another one puts in. Spans may touch each other.

    Args:
        data: The file's bytes, with its byte order mark.
        fmt: How the file is encoded.
        edits: `(old, new, replace_all)` each, as for `replace`.

    Returns:
        The splices of all edits, ascending.

    Raises:
        Refused: `overlap`, naming both edits by number, from 1; else as `replace`, with the number of the edit.
    """
    if not edits:
        raise Refused("No changes to make: there are no edits.", code="no_change")
    view = _search.view(data, fmt)
    hits: list[_Hit] = []
    numbered: list[tuple[int, int, int]] = []
    for number, (old, new, everywhere) in enumerate(edits, 1):
        try:
            found = _hits(view, data, fmt, old, new, replace_all=everywhere)
        except Refused as refusal:
            hint = ""
            if refusal.code == "no_match":
                source = next((i for i, edit in enumerate(edits, 1) if i != number and old in edit[1]), None)
                if source:
                    hint = (
                        f" Its old_string is text that edit {source} puts in, but all edits are matched against the "
                        f"file as it is before any of them: make one edit of both."
                    )
            message = f"{refusal.message}{hint} This is about edit {number} of {len(edits)}; no edit was applied."
            raise Refused(message, code=refusal.code, lines=refusal.lines) from None
        hits += found
        numbered += [(start, end, number) for start, end, _ in found]
    _refuse_overlap(data, fmt, sorted(numbered))
    return _splices(data, fmt, sorted(hits))


def apply(data: bytes, splices: Iterable[Splice]) -> bytes:
    """Put the new bytes of `splices`, ascending and without overlap, into `data`; all other bytes stay.

    Raises:
        ValueError: The splices are not in order.
    """
    return bytes(Spliced(data, splices))


def near_miss(data: bytes, fmt: Format, old: str, new: str) -> tuple[str, tuple[int, ...]]:
    """Say why `old` is not in the file: see `_nearmiss`."""
    from langchain_filestate import _nearmiss  # noqa: PLC0415  slow to import, and only for what fails

    return _nearmiss.near_miss(data, fmt, old, new)


# ---- deciding -------------------------------------------------------------------------------------------------------


def _hits(
    view: View[bytes] | View[str], data: bytes, fmt: Format, old: str, new: str, *, replace_all: bool
) -> list[_Hit]:
    """Spans of `view` with their new text, or the refusal of this edit."""
    _text.encode(old, _text.UTF8)  # lone surrogates; other characters that the encoding lacks are a miss
    _text.encode(new, fmt)
    if not old:
        message = "old_string is empty, which only creates a file or fills an empty one. Give the text to replace."
        raise Refused(message, code="empty_old_string")
    if old == new:
        message = "No changes to make: old_string and new_string are exactly the same."
        raise Refused(message, code="no_change")
    matches = view.spans(old, overlapping=not replace_all)
    spans = list(matches if replace_all else islice(matches, _PLACES))
    if not spans:
        text, lines = near_miss(data, fmt, old, new)
        message = f"String to replace not found in file. {text}"
        raise Refused(message, code="no_match", lines=lines)
    if len(spans) > 1 and not replace_all:
        limit = max(1000, min(_COUNTED, _COUNTED_CHARS // len(old)))
        count = len(spans) + sum(1 for _ in islice(matches, limit - len(spans)))
        raise _ambiguous(data, fmt, spans, count, limit)
    return [(*span, text) for span, text in zip(spans, view.texts(spans, old, new), strict=True)]


def _ambiguous(data: bytes, fmt: Format, first: list[tuple[int, int]], count: int, limit: int) -> Refused:
    """The refusal of `count` matches, of which `first` are known; counting ended at `limit`."""
    lines: list[int] = []
    line, at = 1, 0
    for start, _ in _search.offsets(data, fmt, first):
        line += _text.count_newlines(data, fmt, at, start)
        at = start
        lines += [line] if line not in lines else []
    found = f"more than {limit - 1}" if count == limit else f"{count}"
    more = ", and there are more" if count > len(first) else ""
    where = f"line{'s' if len(lines) > 1 else ''} {', '.join(map(str, lines))}"
    message = (
        f"Found {found} matches of the string to replace, but replace_all is false. They begin in {where}{more}. Add "
        f"surrounding text to old_string so that it matches once, or set replace_all to true to change them all."
    )
    return Refused(message, code="ambiguous", lines=lines)


def _refuse_overlap(data: bytes, fmt: Format, spans: Sequence[tuple[int, int, int]]) -> None:
    reach, holder = -1, 0
    for start, end, number in spans:
        if start < reach:
            line = _text.line_at(data, fmt, _search.offsets(data, fmt, [(start, end)])[0][0])
            first, second = sorted((holder, number))
            message = (
                f"Edits {first} and {second} overlap: both replace text in line {line}. No edit was applied. All edits "
                f"are matched against the file as it is now; join these two into one, or let them touch different text."
            )
            raise Refused(message, code="overlap", lines=(line,))
        reach, holder = end, number


def _splices(data: bytes, fmt: Format, hits: Sequence[_Hit]) -> tuple[Splice, ...]:
    """Splices for ascending spans of the view, unless nothing would change."""
    coded: dict[str, bytes] = {}
    splices = []
    for (start, end), (_, _, text) in zip(_search.offsets(data, fmt, [hit[:2] for hit in hits]), hits, strict=True):
        if text not in coded:
            coded[text] = _text.encode(text, fmt)
        splices.append(Splice(start, end, coded[text]))
    if sum(len(splice.new) - splice.end + splice.start for splice in splices) == 0:
        low, high = splices[0].start, splices[-1].end
        moved = [Splice(splice.start - low, splice.end - low, splice.new) for splice in splices]
        if apply(data[low:high], moved) == data[low:high]:
            message = (
                "No changes to make: the file would have exactly the same bytes. A line break of new_string takes the "
                "line ending that the file has at that place; to change line endings, write the whole file."
            )
            raise Refused(message, code="no_change")
    return tuple(splices)
