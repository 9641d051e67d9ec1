r"""Exact search for text in a file's bytes, and the line endings that belong to the spans.

A file is looked at through a `View`: its raw bytes where a match in them is one of whole characters (UTF-8 synchronises
itself, single bytes always do), else its decoded text. Spans are positions of the view; `offsets` turns them into
byte offsets, for decoded text by encoding the pieces between them again, which together must give the file's bytes.

Without a line break in the text or a CRLF in the file, one `find` does it. Otherwise the longest line of the text is
looked for, and the stretch of the file that holds all its places (all of the file if there are many) is brought to LF
and searched; a cursor leads back to the real positions. No regular expression meets the file; everything is linear in
it, also for texts and files that repeat themselves.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice
from typing import TYPE_CHECKING, AnyStr, Generic

from langchain_filestate import _text
from langchain_filestate.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from langchain_filestate._text import Format

_BARE = re.compile(r"(?<!\r)\n")  # a line break that matches LF and CRLF
_LARGE = 1 << 20  # bytes above which it pays to look how to search them
_SAMPLE = 4096
_SPARSE = 400  # bytes from one place to the next, at least, for a byte to be rare
_TRIES = 100
_LONG = 4096  # bytes of a needle with which a try costs too much, where what it is tried on repeats itself
_ANCHORS = 8  # places of the longest line up to which only their surroundings are searched


@dataclass(frozen=True)
class View(Generic[AnyStr]):
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
        lf = self.code("\n")
        needle = lf.join(pieces)
        if len(pieces) == 1 or not self._has_crlf:
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
            if given and any(
                want and not has for want, has in zip(given, _kinds(stretch, lf, crlf, start, end), strict=True)
            ):
                step = 1
            else:
                yield low + start, low + end
            at = plain.find(wanted, at + step)

    @cached_property
    def _has_crlf(self) -> bool:
        # One character is found ten times as fast as two, and most files have none.
        return self.code("\r") in self.hay and self.code("\r\n") in self.hay

    def texts(self, spans: Sequence[tuple[int, int]], old: str, new: str) -> list[str]:
        """`new` for each of the ascending `spans`, with the line endings that belong there."""
        if not _BARE.search(new) or not self._has_crlf:
            return [new] * len(spans)
        lf, crlf = self.code("\n"), self.code("\r\n")
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
        self._text: AnyStr = text
        self._crlf: AnyStr = crlf
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

    def __init__(self, seen: View[AnyStr], lf: AnyStr, crlf: AnyStr) -> None:
        self._hay: AnyStr = seen.hay
        self._lf: AnyStr = lf
        self._crlf: AnyStr = crlf
        self._from = seen.start
        self._before = -1
        self._after = seen.hay.find(lf, seen.start)
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


def view(data: bytes, fmt: Format) -> View[bytes] | View[str]:
    """The view through which a file in this format is searched."""
    if fmt.raw:
        return View(data, len(fmt.bom), partial(_text.encode, fmt=fmt))
    return View(_text.decode(data[len(fmt.bom) :], fmt), 0, str)


def _each(hay: AnyStr, needle: AnyStr, at: int, step: int) -> Iterator[int]:
    find = _finder(hay, needle) if isinstance(hay, bytes) and len(hay) > _LARGE else hay.find
    at = find(needle, at)
    while at >= 0:
        yield at
        at = find(needle, at + step)


def _finder(hay: bytes, needle: bytes) -> Callable[[bytes, int], int]:
    """`hay.find`, or what finds the same faster: one byte is found ten times as fast as two.

    So where a byte of the needle is rare in the hay, its places are gone through.
    """
    if not 1 < len(needle) <= _LONG:
        return hay.find
    sample = b"".join(hay[at : at + _SAMPLE] for at in (0, len(hay) // 2, len(hay) - _SAMPLE))
    count, rare = min((sample.count(byte), byte) for byte in set(needle))
    if count * _SPARSE > len(sample):
        return hay.find
    offset = needle.index(rare)

    def find(needle: bytes, at: int) -> int:
        place, tries = hay.find(rare, at + offset), 0
        while place >= 0:
            if hay.startswith(needle, place - offset):
                return place - offset
            tries += 1
            if tries > _TRIES and tries * _SPARSE > place - at:  # not as rare as in the sample
                return hay.find(needle, place - offset + 1)
            place = hay.find(rare, place + 1)
        return -1

    return find


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


def offsets(data: bytes, fmt: Format, spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Byte spans for spans of the view; proves that the file's bytes survive decoding and encoding in such pieces."""
    if fmt.raw or not spans:
        return list(spans)
    body = data[len(fmt.bom) :]
    text = _text.decode(body, fmt)
    known: dict[int, int] = {}
    parts = []
    at, size = 0, len(fmt.bom)
    for stop in sorted({position for span in spans for position in span}):
        part = _text.reencode(text[at:stop], fmt)
        parts.append(part)
        at, size = stop, size + len(part)
        known[stop] = size
    parts.append(_text.reencode(text[at:], fmt))
    if b"".join(parts) != body:
        message = (
            f"This file's bytes do not come back the same when they are decoded and encoded as {fmt.encoding}, so it "
            f"cannot be edited in place without changing other text."
        )
        raise Refused(message, code="encoding")
    return [(known[start], known[end]) for start, end in spans]
