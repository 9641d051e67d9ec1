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
the offsets come from encoding the pieces between the spans again, which together must give the very bytes of the file.

Where no CR or no line break is involved, one `find` over the bytes does it. Otherwise the longest line of the old text
is looked for, and only the stretch that holds it is brought to LF and searched. All searches are linear in the file.
Overlapping matches count as ambiguous; up to about a million are counted. Replacing all goes from left to right without
overlap, as `str.replace` does.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, AnyStr, Generic

from langchain_filestate import _text
from langchain_filestate._nearmiss import near_miss
from langchain_filestate.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from langchain_filestate._text import Format

__all__ = ["Splice", "apply", "find", "near_miss", "replace", "replace_many"]

_BARE = re.compile(r"(?<!\r)\n")
_PLACES = 10  # places that a refusal names
_ANCHORS = 8  # occurrences of the longest line up to which only their surroundings are searched
_COUNTED = 1_000_000  # matches counted at most; fewer for long texts: each search costs its length
_COUNTED_CHARS = 1 << 28


@dataclass(frozen=True, slots=True)
class Splice:
    """New bytes for a span of the old file.

    Args:
        start: Byte offset in the old file where the span begins, the byte order mark included in the count.
        end: Byte offset after it; greater than `start`.
        new: What stands there afterwards.
    """

    start: int
    end: int
    new: bytes


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
    view = _view(data, fmt)
    return _offsets(data, fmt, list(view.spans(old, overlapping=True))) if old else []


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
    return _splices(data, fmt, _hits(_view(data, fmt), data, fmt, old, new, replace_all=replace_all))


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
    view = _view(data, fmt)
    hits: list[tuple[int, int, str]] = []
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
                        f" Its old_string is text that edit {source} puts in, but all edits are matched against the file "
                        f"as it is before any of them: make one edit of both."
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
    rest = memoryview(data)
    parts: list[bytes | memoryview] = []
    at = 0
    for splice in splices:
        if not at <= splice.start <= splice.end <= len(data):
            message = f"splice {splice.start}..{splice.end} overlaps, is not in order, or reaches past the end"
            raise ValueError(message)
        parts += (rest[at : splice.start], splice.new)
        at = splice.end
    parts.append(rest[at:])
    return b"".join(parts)


# ---- searching ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _View(Generic[AnyStr]):
    """A file as it is searched: its bytes, or its text where the bytes cannot be searched.

    Args:
        hay: What is searched.
        start: Where its text begins, after the byte order mark.
        code: Brings text to the form of `hay`; raises `Refused` for what the encoding cannot hold.
    """

    hay: AnyStr
    start: int
    code: Callable[[str], AnyStr]

    def spans(self, old: str, *, overlapping: bool) -> Iterator[tuple[int, int]]:
        """Spans of `hay` that match `old`, ascending; the file's encoding may lack a character of `old`: no match."""
        try:
            pieces = [self.code(piece) for piece in _BARE.split(old)]
        except Refused:
            return iter(())
        lf, crlf = self.code("\n"), self.code("\r\n")
        needle = lf.join(pieces)
        if len(pieces) == 1 or crlf not in self.hay:
            size = len(needle)
            return ((at, at + size) for at in _each(self.hay, needle, self.start, 1 if overlapping else size))
        return self._flexible(max(pieces, key=len) or lf, needle, overlapping=overlapping)

    def _flexible(self, anchor: AnyStr, needle: AnyStr, *, overlapping: bool) -> Iterator[tuple[int, int]]:
        """As `spans`, where line breaks of `needle` may be LF or CRLF in the file."""
        lf, crlf = self.code("\n"), self.code("\r\n")
        places = list(islice(_each(self.hay, anchor, self.start, 1), _ANCHORS + 1))
        if not places:
            return
        reach = 2 * len(needle) + 2  # more than a match can be long: it never begins at the cut, inside a CRLF
        low = max(self.start, places[0] - reach)
        stretch = self.hay[low : places[-1] + reach] if len(places) <= _ANCHORS else self.hay[low:]
        plain, wanted = stretch.replace(crlf, lf), needle.replace(crlf, lf)
        begins, ends = _Cursor(stretch, crlf), _Cursor(stretch, crlf)
        given = [needle.startswith(crlf, at - 1) for at in _each(needle, lf, 0, 1)] if crlf in needle else []
        at = plain.find(wanted)
        while at >= 0:
            start, end = begins.to(at), ends.to(at + len(wanted))
            step = 1 if overlapping else len(wanted)
            if given and any(want and not has for want, has in zip(given, _kinds(stretch, lf, crlf, start, end), strict=True)):
                step = 1
            else:
                yield low + start, low + end
            at = plain.find(wanted, at + step)

    def texts(self, spans: Sequence[tuple[int, int]], old: str, new: str) -> list[str]:
        """`new` for each of the ascending `spans`, with the line endings that belong there."""
        lf, crlf = self.code("\n"), self.code("\r\n")
        if not _BARE.search(new) or crlf not in self.hay:
            return [new] * len(spans)
        around = _Around(self, lf, crlf)
        made: dict[tuple[bool, ...], str] = {}
        texts = []
        for start, end in spans:
            kinds = _kinds(self.hay, lf, crlf, start, end) if "\n" in old else (around.kind(start, end),)
            if kinds not in made:
                made[kinds] = _with_endings(old, new, kinds)
            texts.append(made[kinds])
        return texts


class _Cursor(Generic[AnyStr]):
    """Positions in text whose CRLF were made LF, as positions in the text before; asked in ascending order."""

    def __init__(self, text: AnyStr, crlf: AnyStr) -> None:
        self._text, self._crlf = text, crlf
        self._raw = self._plain = 0

    def to(self, plain: int) -> int:
        # Each step goes as far as it would be without any CRLF; what is missing is as many as there were on the way.
        while (missing := plain - self._plain) > 0:
            stop = self._raw + missing
            if self._text.startswith(self._crlf, stop - 1):
                stop += 1
            self._plain += stop - self._raw - self._text.count(self._crlf, self._raw, stop)
            self._raw = stop
        return self._raw


class _Around(Generic[AnyStr]):
    """The kind of line break (True: CRLF) around spans that hold none; asked in ascending order, so linear in all."""

    def __init__(self, view: _View[AnyStr], lf: AnyStr, crlf: AnyStr) -> None:
        self._hay, self._lf, self._crlf = view.hay, lf, crlf
        self._from = view.start
        self._before = -1
        self._after = view.hay.find(lf, view.start)
        self._most: bool | None = None

    def kind(self, start: int, end: int) -> bool:
        if 0 <= self._after < end:
            self._before = max(self._before, self._hay.rfind(self._lf, self._from, start))
            self._after = self._hay.find(self._lf, end)
        self._from = start
        found = {self._is_crlf(at) for at in (self._before, self._after) if at >= 0}
        if len(found) == 1:
            return found.pop()
        if self._most is None:
            self._most = 2 * self._hay.count(self._crlf) > self._hay.count(self._lf)
        return self._most

    def _is_crlf(self, at: int) -> bool:
        return at > 0 and self._hay.startswith(self._crlf, at - 1)


def _view(data: bytes, fmt: Format) -> _View[bytes] | _View[str]:
    if fmt.raw:
        return _View(data, len(fmt.bom), partial(_text.encode, fmt=fmt))
    return _View(_text.decode(data[len(fmt.bom) :], fmt), 0, str)


def _each(hay: AnyStr, needle: AnyStr, at: int, step: int) -> Iterator[int]:
    at = hay.find(needle, at)
    while at >= 0:
        yield at
        at = hay.find(needle, at + step)


def _kinds(hay: AnyStr, lf: AnyStr, crlf: AnyStr, start: int, end: int) -> tuple[bool, ...]:
    """For each line break in a span, whether it is CRLF."""
    kinds = []
    at = hay.find(lf, start, end)
    while at >= 0:
        kinds.append(at > start and hay.startswith(crlf, at - 1))
        at = hay.find(lf, at + 1, end)
    return tuple(kinds)


def _with_endings(old: str, new: str, kinds: tuple[bool, ...]) -> str:
    """`new` with line breaks of the kinds (True: CRLF) of the span that `old` matched."""
    before, after = ([line.removesuffix("\r") for line in text.split("\n")] for text in (old, new))
    same = 0  # lines at the end that stay
    while same < min(len(before), len(after)) and before[-1 - same] == after[-1 - same]:
        same += 1
    parts = new.split("\n")
    breaks = len(parts) - 1
    text = [parts[0]]
    for i, part in enumerate(parts[1:]):
        crlf = kinds[len(kinds) - (breaks - i)] if breaks - i < same else kinds[min(i, len(kinds) - 1)]
        text += ("\r\n" if crlf and not parts[i].endswith("\r") else "\n", part)
    return "".join(text)


# ---- deciding -------------------------------------------------------------------------------------------------------


def _hits(
    view: _View[bytes] | _View[str], data: bytes, fmt: Format, old: str, new: str, *, replace_all: bool
) -> list[tuple[int, int, str]]:
    """Spans of `view` with their new text, or the refusal of this edit."""
    _text.encode(old, _text.UTF8)  # lone surrogates; other characters that the encoding lacks are a miss
    _text.encode(new, fmt)
    if not old:
        message = "old_string is empty, which only creates a file or fills an empty one. Give the text to replace."
        raise Refused(message, code="empty_old_string")
    if old == new:
        message = "No changes to make: old_string and new_string are exactly the same."
        raise Refused(message, code="no_change")
    if replace_all:
        spans = list(view.spans(old, overlapping=False))
    else:
        spans = list(islice(view.spans(old, overlapping=True), 2))
    if not spans:
        text, lines = near_miss(data, fmt, old, new)
        message = f"String to replace not found in file. {text}"
        raise Refused(message, code="no_match", lines=lines)
    if len(spans) > 1 and not replace_all:
        raise _ambiguous(view, data, fmt, old)
    return [(*span, text) for span, text in zip(spans, view.texts(spans, old, new), strict=True)]


def _ambiguous(view: _View[bytes] | _View[str], data: bytes, fmt: Format, old: str) -> Refused:
    limit = max(1000, min(_COUNTED, _COUNTED_CHARS // len(old)))
    spans = view.spans(old, overlapping=True)
    first = list(islice(spans, _PLACES))
    count = len(first) + sum(1 for _ in islice(spans, limit - len(first)))
    lines: list[int] = []
    line, at = 1, 0
    for start, _ in _offsets(data, fmt, first):
        line += _text.count_newlines(data, fmt, at, start)
        at = start
        lines += [line] if line not in lines else []
    found = f"more than {limit}" if count == limit else f"{count}"
    more = f" and {'more' if count == limit else count - _PLACES} further" if count > _PLACES else ""
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
            line = _text.line_at(data, fmt, _offsets(data, fmt, [(start, end)])[0][0])
            first, second = sorted((holder, number))
            message = (
                f"Edits {first} and {second} overlap: both replace text in line {line}. No edit was applied. All edits are "
                f"matched against the file as it is now; join these two into one, or let them touch different text."
            )
            raise Refused(message, code="overlap", lines=(line,))
        if end > reach:
            reach, holder = end, number


def _splices(data: bytes, fmt: Format, hits: Sequence[tuple[int, int, str]]) -> tuple[Splice, ...]:
    """Splices for ascending spans of the view, unless nothing would change."""
    coded: dict[str, bytes] = {}
    splices = []
    for (start, end), (_, _, text) in zip(_offsets(data, fmt, [hit[:2] for hit in hits]), hits, strict=True):
        if text not in coded:
            coded[text] = _text.encode(text, fmt)
        splices.append(Splice(start, end, coded[text]))
    if sum(len(splice.new) - splice.end + splice.start for splice in splices) == 0:
        low, high = splices[0].start, splices[-1].end
        moved = [Splice(splice.start - low, splice.end - low, splice.new) for splice in splices]
        if apply(data[low:high], moved) == data[low:high]:
            message = (
                "No changes to make: the file would have exactly the same bytes. A line break of new_string takes the line "
                "ending that the file has at that place; to change line endings, write the whole file."
            )
            raise Refused(message, code="no_change")
    return tuple(splices)


def _offsets(data: bytes, fmt: Format, spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Byte spans for spans of the view; proves that the file's bytes survive decoding and encoding in such pieces."""
    if fmt.raw or not spans:
        return list(spans)
    body = data[len(fmt.bom) :]
    text = _text.decode(body, fmt)
    offsets: dict[int, int] = {}
    parts = []
    at, size = 0, len(fmt.bom)
    for stop in sorted({position for span in spans for position in span}):
        part = _text.reencode(text[at:stop], fmt)
        parts.append(part)
        at, size = stop, size + len(part)
        offsets[stop] = size
    parts.append(_text.reencode(text[at:], fmt))
    if b"".join(parts) != body:
        message = (
            f"This file's bytes do not come back the same when they are decoded and encoded as {fmt.encoding}, so it "
            f"cannot be edited in place without changing other text."
        )
        raise Refused(message, code="encoding")
    return [(offsets[start], offsets[end]) for start, end in spans]
