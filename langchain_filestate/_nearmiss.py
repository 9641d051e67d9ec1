r"""Why a text was not found in a file: the nearest place, and exactly what differs there.

Nothing found here is ever used for a replacement; it is told to the model, which sends the edit again. In this order:

1. The text with other line endings, and the new text that already stands where the old one was.
2. The text as it would be without one well-known slip: a copied line-number gutter, escapes or entities taken the
   wrong way, composed or decomposed letters, a final newline that the file does not have. Each costs one `find`.
3. Its *skeleton*, without blanks, quotes, dashes and backslashes, in lower case, in the skeleton of the file:
   `bytes.translate` makes it at the speed of copying. In text that is mostly ASCII the skeleton has no other
   characters, so all look-alikes fold; in other scripts they are kept. Where skeletons are equal, only such things
   differ.
4. Short pieces of the skeleton, spread evenly, each at its first few places in the file: where most of them fall
   together in order is the nearest place, and the walk from there shows where it goes another way.
5. Both folded whole, in the first megabyte, for short texts whose every letter is written otherwise (see `_twins`).

Work is bounded by counts, never by the clock, and nothing is quadratic in the file: the first 32 MB of the file are
looked at, up to 20,000 characters of the text, some forty searches, ten places. 10 MB take about a tenth of a second.
What is said stays below 1,000 characters.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from itertools import accumulate, islice
from typing import TYPE_CHECKING, NamedTuple

from langchain_filestate import _mismatch, _slips, _text, _twins

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from langchain_filestate._mismatch import Alignment
    from langchain_filestate._text import Format

_FILE_LIMIT = 32_000_000
_TEXT_LIMIT = 20_000
_FOLD_LIMIT = 1_000_000
_WALK_LIMIT = 40_000  # characters walked in all to choose among places
_PLACES = 10
_MARGIN = 400  # bytes of the file beside a place that are looked at too
_REGION = 400_000  # bytes of the file on each side, where blanks make a place very long
_SEEDS = 8
_SEED_SIZES = (32, 8)  # at most; the second only where the first is longer
_SEED_LEAST = 4
_SEED_PLACES = 8
_SAID = 990
_LINE = 120  # characters of one quoted line
_LINES = _CLAUSES = 3
_BLANKS = "(?:[ \t\u00a0\u3000])*".encode()
_SURE = 8  # characters of new text that do not stand somewhere by chance

_LOWER = bytes.maketrans(bytes(range(65, 91)), bytes(range(97, 123)))
_FOLDED = bytes(range(33)) + b"\"'`-\\\x7f"
_CHUNK = 1 << 16


class _Form(NamedTuple):
    """Which bytes a skeleton leaves out, and which characters of text it keeps."""

    dropped: bytes
    keep: re.Pattern[str]


_ASCII = _Form(_FOLDED + bytes(range(128, 256)), re.compile(r"[!#-&(-,./-\[\]^_a-~]"))
_OTHER = _Form(_FOLDED, re.compile(r"[!#-&(-,./-\[\]^_a-~\x80-\U0010ffff]"))


def near_miss(data: bytes, fmt: Format, old: str, new: str) -> tuple[str, tuple[int, ...]]:
    """Say why `old` is not in the file.

    Args:
        data: The file's bytes, with its byte order mark.
        fmt: How the file is encoded.
        old: Text that has no match.
        new: What was to replace it; it may stand there already.

    Returns:
        Sentences for the model, below 1,000 characters, that quote the file but never `old`; and the lines, from 1,
        where the text nearly matched.
    """
    file = _File(data, fmt)
    if not file.body:
        return "The file is empty.", ()
    wanted = old.replace("\r\n", "\n")
    said = _known(file, old, wanted) or _nearest(file, wanted, new) or _folded(file, wanted)
    if said is None:
        rest = "" if file.whole else f" Only its first {_FILE_LIMIT // 1_000_000} MB were compared."
        said = f"Nothing in the file is similar to it.{rest} Read the file and copy the text from there exactly.", ()
    text, lines = said
    return (text if len(text) <= _SAID else f"{text[:_SAID]}…"), lines


# ---- the file and its skeleton --------------------------------------------------------------------------------------


class _File:
    """A file's text as UTF-8, where all encodings look alike; lines and columns are those of the file."""

    def __init__(self, data: bytes, fmt: Format) -> None:
        body = data[len(fmt.bom) : len(fmt.bom) + _FILE_LIMIT]
        self._errors = fmt.errors  # what is no text comes and goes as it does in the file's own encoding
        if fmt.encoding != "utf-8":
            body = _text.decode(body, fmt).encode("utf-8", fmt.errors)
        self.body = body
        self._crlf = b"\r\n" in body
        self.whole = len(data) - len(fmt.bom) <= _FILE_LIMIT
        self._last = (0, 1, 1)  # a place that is known: offset, line, column

    def find(self, text: str, start: int = 0) -> int:
        """Offset of `text` with all LF or all CRLF, -1 if it is not there.

        Lone surrogates stand for bytes that are no text.
        """
        needle = text.encode("utf-8", "surrogateescape")
        at = self.body.find(needle, start) if needle else -1
        if at < 0 and self._crlf and b"\n" in needle:
            at = self.body.find(needle.replace(b"\n", b"\r\n"), start)
        return at

    def once(self, text: str) -> int:
        """Offset of `text` if it is there exactly once, else -1."""
        at = self.find(text)
        return at if at < 0 or self.find(text, at + 1) < 0 else -1

    def at_end(self, text: str) -> int:
        """Offset of `text` if the file ends with it, else -1."""
        needle = text.encode("utf-8", "surrogateescape")
        for end in (needle, needle.replace(b"\n", b"\r\n")):
            if self.whole and end and self.body.endswith(end):
                return len(self.body) - len(end)
        return -1

    def newline(self, offset: int) -> str:
        """The line end that comes next."""
        at = self.body.find(b"\n", offset)
        return "\r\n" if self.body[max(0, at - 1) : at] == b"\r" else "\n"

    def text(self, start: int, end: int) -> str:
        """Text between two offsets, with LF."""
        return self.body[start:end].decode("utf-8", self._errors).replace("\r\n", "\n")

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column at a byte offset, from 1; cheap if the offsets asked for ascend."""
        known, line, column = self._last if self._last[0] <= offset else (0, 1, 1)
        if more := self.body.count(b"\n", known, offset):
            line, column = line + more, 1
            known = self.body.rfind(b"\n", known, offset) + 1
        column += len(self.text(known, offset))
        self._last = offset, line, column
        return line, column

    def line(self, offset: int) -> int:
        return self.place(offset)[0]

    def _inside(self, at: int) -> bool:
        return 0 < at < len(self.body) and 0x80 <= self.body[at] < 0xC0  # noqa: PLR2004  a later byte of a character

    def region(self, start: int, end: int) -> tuple[_mismatch.Region, int]:
        """The text around `start`..`end`, cut between characters, and the byte offset where it begins."""
        start, end = max(0, start), min(len(self.body), end)
        for _ in range(3):  # out of a character, if it is in one
            start -= self._inside(start)
            end += self._inside(end)
        text = self.text(start, end)
        return _mismatch.Region(text, *self.place(start), last=self.whole and end == len(self.body)), start


class _Skeleton:
    """The file's bytes without those that `form` drops, in lower case."""

    def __init__(self, body: bytes, form: _Form) -> None:
        self._body, self._dropped = body, form.dropped
        chunks = [body[at : at + _CHUNK].translate(_LOWER, form.dropped) for at in range(0, len(body), _CHUNK)]
        self._begins = [0]
        for chunk in chunks:
            self._begins.append(self._begins[-1] + len(chunk))
        self.bytes = b"".join(chunks)

    def places(self, needle: bytes, limit: int) -> Iterator[int]:
        at = self.bytes.find(needle)
        while at >= 0 and limit:
            yield at
            limit -= 1
            at = self.bytes.find(needle, at + 1)

    def offset(self, at: int) -> int:
        """Where in the file the skeleton's byte at `at` stands."""
        chunk = bisect_right(self._begins, at) - 1
        low, missing = chunk * _CHUNK, at - self._begins[chunk]
        high = min(low + _CHUNK, len(self._body))
        while high - low > 1:
            middle = (low + high) // 2
            there = len(self._body[low:middle].translate(None, self._dropped))
            if there > missing:
                high = middle
            else:
                low, missing = middle, missing - there
        return low


# ---- the whole text, but for one slip -------------------------------------------------------------------------------


def _known(file: _File, old: str, wanted: str) -> tuple[str, tuple[int, ...]] | None:
    """What is to be said if the whole text is there but for one well-known slip."""
    bare = _slips.without_gutter(wanted)
    tries = [
        (wanted if wanted != old else "", _slips.LINE_ENDINGS),
        (bare or "", _slips.GUTTER + " Without it the text is there in line {line}."),
    ]
    plain = _slips.unaffected(wanted)
    possible = _slips.slips(wanted) if file.find(plain) >= 0 or len(plain) < _SURE else ()
    for text, hint in (*tries, *possible):
        if text != old and (at := file.find(text)) >= 0:
            line = file.line(at)
            return hint.format(line=line), (line,)
    if wanted.endswith("\n") and (at := file.at_end(wanted.rstrip("\n"))) >= 0:
        line = file.line(at)
        return _slips.FINAL_NEWLINE.format(line=line), (line,)
    return None


# ---- the nearest place ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Place:
    """A stretch of the file that a text was laid beside."""

    region: _mismatch.Region
    alignment: Alignment

    @property
    def first(self) -> int:
        return self.region.place(self.alignment.start)[0]

    @property
    def last(self) -> int:
        return self.region.place(max(self.alignment.start, self.alignment.end - 1))[0]

    def line(self, number: int) -> str:
        """The text of a line, as far as it is in the region."""
        return self.region.text.split("\n")[number - self.region.line]

    def quote(self) -> str:
        """A few lines from the first difference on, as `read_file` prints them, long ones cut."""
        region = self.region
        first = min((difference.line for difference in self.alignment.differences), default=self.first)
        last = self.last if self.alignment.complete else region.place(max(0, len(region.text) - 1))[0]
        quoted = []
        for number in range(first, min(first + _LINES, last + 1)):
            line = self.line(number)
            begin = 0
            if number == self.first and len(line) > _LINE:  # perhaps a line of megabytes
                begin = self.alignment.start - (region.text.rfind("\n", 0, self.alignment.start) + 1)
            shown = _text.show(line[begin : begin + _LINE])
            before = "[...] " if begin or (number == region.line and region.column > 1) else ""
            quoted.append(f"{number:>6}\t{before}{shown}{' [...]' if len(line) > begin + _LINE else ''}")
        return "\n".join(quoted)


def _nearest(file: _File, wanted: str, new: str) -> tuple[str, tuple[int, ...]] | None:
    """What is to be said of the new text, if it stands there, or of the place that is most like the text."""
    bare = _slips.without_gutter(wanted)
    text = wanted if bare is None else bare
    found = _places(file, text[:_TEXT_LIMIT])
    place = found[0] if found else None
    hint = ""
    if place and bare is not None and not _slips.has_gutter(place.line(place.first)):
        hint = f"{_slips.GUTTER} "
    there = file.once(new.replace("\r\n", "\n"))
    if there >= 0:
        applied = file.line(there)
        same = place is not None and place.first <= applied + new.count("\n") and applied <= place.last
        whole = place is not None and place.alignment.complete
        if (len(new) >= _SURE and (same or not whole)) or (same and whole and 2 * len(new) > len(wanted)):
            stands = f"new_string already stands in the file, in line {applied}: this change seems already applied."
            if same or place is None:
                return stands, (applied,)
            hint = f"{stands} Otherwise: {hint}"
    if place is None:
        return None
    first, last = place.first, place.last
    differences = place.alignment.differences
    if not differences:  # beyond what was walked, or the text has CRLF where the file has both kinds
        said, lines = _beyond(file, text) or (_slips.LINE_ENDINGS.format(line=first), (first,))
        return hint + said, lines
    where = f"line {first}" if first == last else f"lines {first}-{last}"
    others = sorted({other.first for other in found[1:4]} - {first})
    also = f" (also similar: line{'s' if len(others) > 1 else ''} {', '.join(map(str, others))})" if others else ""
    said = f"{hint}The nearest place is {where}{also}: {_slips.clauses(differences, _CLAUSES)}. The file has there:\n"
    return said + place.quote(), tuple(sorted({first, *others}))


def _beyond(file: _File, wanted: str) -> tuple[str, tuple[int, ...]] | None:
    """What is to be said of a long text that is there at its beginning: where it parts, and how."""
    at = file.find(wanted[:_TEXT_LIMIT]) if len(wanted) > _TEXT_LIMIT else -1
    if at < 0:
        return None
    there = file.text(at, at + 2 * len(wanted.encode("utf-8", "surrogateescape")))
    same = bisect_left(range(len(wanted)), True, key=lambda n: not there.startswith(wanted[: n + 1]))
    first = file.line(at)
    said = f"Its first {same} characters are there, from line {first} on, but not what follows"
    # The line in which they part, or before it, and what follows; of a long line a part.
    start = max(wanted.rfind("\n", 0, same - 1) + 1, same - _MARGIN)
    begin = at + len(wanted[:start].replace("\n", file.newline(at)).encode("utf-8", "surrogateescape"))
    old = wanted[start : start + _TEXT_LIMIT]
    region, offset = file.region(begin - _MARGIN, begin + len(old.encode("utf-8", "surrogateescape")) + _MARGIN)
    skipped = len(file.text(offset, begin))
    for form in (_ASCII, _OTHER):
        olds = _mismatch.kept(old, form.keep)
        if olds and olds[0] < same - start:
            place = _Place(region, _mismatch.align(old, olds, 0, region, skipped + olds[0], keep=form.keep))
            clauses = _slips.clauses(place.alignment.differences, _CLAUSES)
            return f"{said}: {clauses}. The file has there:\n{place.quote()}", (place.first,)
    return f"{said}.", (first,)


def _places(file: _File, old: str) -> list[_Place]:
    """The places most like `old`, best first; several only where nothing but gaps and case differ."""
    form = _ASCII if 2 * len(_ASCII.keep.findall(old)) >= len(_OTHER.keep.findall(old)) else _OTHER
    olds = _mismatch.kept(old, form.keep)
    if len(olds) < 2:  # noqa: PLR2004  one character is everywhere
        return _alone(file, old, olds, form) if olds else []
    skeleton = _Skeleton(file.body, form)
    letters = [old[i].lower() if old[i].isascii() else old[i] for i in olds]
    widths = [0, *accumulate(len(letter.encode()) for letter in letters)]  # where each letter begins in the skeleton

    def beside(i: int, at: int) -> _Place:
        offset = skeleton.offset(at)
        low = skeleton.offset(max(0, at - widths[i])) - _MARGIN
        high = skeleton.offset(min(at + widths[-1] - widths[i], len(skeleton.bytes)) - 1) + _MARGIN
        region, begin = file.region(max(low, offset - _REGION), min(high, offset + _REGION))
        here = len(file.text(begin, offset))
        return _Place(region, _mismatch.align(old, olds, i, region, here, keep=form.keep))

    limit = max(1, min(_PLACES, _WALK_LIMIT // len(olds)))
    whole = [beside(0, at) for at in skeleton.places("".join(letters).encode(), limit)]
    if whole:
        return sorted(whole, key=lambda place: len(place.alignment.differences))
    for size in sorted({max(_SEED_LEAST, min(most, len(letters) // 4)) for most in _SEED_SIZES}, reverse=True):
        if seed := _seed(skeleton, letters, widths, size):
            return [beside(*seed)]
    return []


def _alone(file: _File, old: str, olds: Sequence[int], form: _Form) -> list[_Place]:
    """The first lines that hold the one character of `old` and beside it only blanks, as a bracket mostly stands."""
    line = rb"^%b(%b)%b\r?$" % (_BLANKS, re.escape(old[olds[0]].encode()), _BLANKS)
    found = []
    for match in islice(re.finditer(line, file.body, re.MULTILINE), _PLACES):
        region, begin = file.region(match.start() - _MARGIN, match.end() + _MARGIN)
        at = len(file.text(begin, match.start(1)))
        found.append(_Place(region, _mismatch.align(old, olds, 0, region, at, keep=form.keep)))
    return found


def _seed(skeleton: _Skeleton, letters: Sequence[str], widths: Sequence[int], size: int) -> tuple[int, int] | None:
    """The index in `letters` and the place in the skeleton where a walk along the nearest place begins."""
    spread = max(0, len(letters) - size)
    indices = sorted({spread * n // (_SEEDS - 1) for n in range(_SEEDS)})
    hits: list[tuple[int, int, int, int]] = []  # diagonal, index, place, how many places this piece has
    for i in indices:
        places = list(skeleton.places("".join(letters[i : i + size]).encode(), _SEED_PLACES))
        hits += [(at - widths[i], i, at, len(places)) for at in places]
    hits.sort()
    slack = 16 + widths[-1] // 4
    best: list[tuple[int, int, int, int]] = []
    score = (0, 0.0)
    for n, (diagonal, *_) in enumerate(hits):
        near = [hit for hit in hits[n:] if hit[0] <= diagonal + slack]
        value = (len({hit[1] for hit in near}), sum(1 / hit[3] for hit in near))
        if value > score:
            best, score = near, value
    found = {i + n for _, i, *_ in best for n in range(size)}
    if score[0] < max(2, len(indices) // 3) and 2 * len(found) < len(letters):
        return None
    _, i, at, _ = min(best, key=lambda hit: (hit[1], hit[2]))
    return i, at


def _folded(file: _File, wanted: str) -> tuple[str, tuple[int, ...]] | None:
    """What is to be said where nothing but characters that look the same differ, and few others are there."""
    text = file.region(0, _FOLD_LIMIT)[0].text
    found = _twins.twin_lines(text, wanted[:_TEXT_LIMIT])
    if not found:
        return None
    first = found[0]
    lines = text.split("\n")[first : first + wanted.count("\n") + 1]
    for n, (line, old) in enumerate(zip(lines, wanted.split("\n"), strict=False), first + 1):
        other = _twins.first_other(line, old)
        if other is not None:
            at, char, mine = other
            where = f"in line {n}, column {at + 1}, the file has {_mismatch.name(char)}"
            clause = f"{where}, old_string has {_mismatch.name(mine)}" if mine else f"{where}, old_string has not"
            quoted = f"{n:>6}\t{_text.show(line[max(0, at - _LINE // 2) :][:_LINE])}"
            return f"The nearest place is line {n}: {clause}. The file has there:\n{quoted}", (n,)
    return None
