r"""What exactly differs between a text and the place in a file that it was meant for.

Both are walked in step along their *kept* characters (letters, digits, most punctuation), which must be the same but
for case. What lies between two of them, a gap, is compared to the letter: blanks by kind and number, line breaks,
quotes, dashes and other look-alikes by code point, composed and decomposed letters. Where kept characters part, the
walk ends, and what the file has there is quoted; this is the one place where whole words of the file are given, and
the text that was looked for is never repeated. Line breaks in both are LF.

Each difference is one clause that names line and column of the file, from 1, columns in characters.
"""

from __future__ import annotations

import html
import re
import unicodedata
from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from langchain_filestate import _text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Kind = Literal["indent", "blanks", "lines", "characters", "case", "other"]

_BLANK = re.compile(r"[ \t\r\f\v]*\Z")
_ENTITY = re.compile(r"&(?:#\w{1,8}|[A-Za-z]{2,31});")
_SPACE = re.compile(r"\s*")
_WORD = re.compile(r"\w+")
_BREAKS = frozenset("\r\v\f\x1c\x1d\x1e\x85\u2028\u2029")
"""What other programs (and `str.splitlines`) take for the end of a line."""

_WRITTEN = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}
_BLANK_NAMES = {" ": "space", "\t": "tab", "\r": "carriage return", "\f": "form feed", "\v": "vertical tab"}
_FILE_ENTITY = "the file has the entity {}, old_string has the character that it stands for"
_OLD_ENTITY = "the file has the character that the entity {} of old_string stands for"
_QUOTED = 60  # characters of the file in one clause
_NEAR = 40  # characters looked at where kept characters part


@dataclass(frozen=True, slots=True)
class Region:
    """A stretch of a file's text.

    Args:
        text: The stretch, line breaks as LF, bytes that are no text as lone surrogates.
        line: The line, from 1, of its first character.
        column: The column, from 1, of its first character.
        last: Whether it reaches the end of the file.
    """

    text: str
    line: int
    column: int
    last: bool

    def place(self, at: int) -> tuple[int, int]:
        """Line and column of the character at `at`."""
        begin = self.text.rfind("\n", 0, at) + 1
        return self.line + self.text.count("\n", 0, at), at - begin + (1 if begin else self.column)

    def begins_line(self, at: int) -> bool:
        """Whether a line begins at `at`."""
        return self.place(at)[1] == 1

    def ends_line(self, at: int) -> bool:
        """Whether a line ends before `at`."""
        return self.text.startswith("\n", at) or (self.last and at == len(self.text))


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that differs.

    Args:
        kind: What kind of thing.
        line: The line of the file, from 1.
        clause: What the file has and what was looked for, to be read after others and before a full stop.
        file: For `indent`, the blanks in the file.
        old: For `indent`, the blanks in the text.
    """

    kind: Kind
    line: int
    clause: str
    file: str = ""
    old: str = ""


@dataclass(frozen=True, slots=True)
class Alignment:
    """A text laid beside a region.

    Args:
        differences: In the order of the text.
        start: Where in the region the text begins, or the walk stopped on its way to the beginning.
        end: Where it ends, or the walk stopped.
        complete: Whether the walk reached both ends of the text.
    """

    differences: tuple[Difference, ...]
    start: int
    end: int
    complete: bool


def kept(text: str, keep: re.Pattern[str]) -> list[int]:
    """Positions of the characters of `text` that are compared one by one."""
    return [match.start() for match in keep.finditer(text)]


def align(old: str, olds: Sequence[int], i: int, region: Region, at: int, *, keep: re.Pattern[str]) -> Alignment:
    """Walk both ways from a place where `old` and the region have the same kept character.

    Args:
        old: The text that was looked for.
        olds: The positions of its kept characters.
        i: The index in `olds` to begin at.
        region: The text of the file.
        at: The position in the region that goes with `olds[i]`.
        keep: Which characters are kept.
    """
    text = region.text
    news = kept(text, keep)
    j = bisect_left(news, at)
    back = 1  # to the left as far as kept characters agree
    while back <= min(i, j) and _same(old[olds[i - back]], text[news[j - back]]):
        back += 1
    i, j = i - back + 1, j - back + 1
    differences: list[Difference] = []
    first = i == 0
    if first:
        lead, begin = _lead(old[: olds[0]], text[news[j - 1] + 1 if j else 0 : news[j]], news[j])
        differences += _gap(old[: olds[0]], lead, region, begin, outer="first")
    else:
        begin = news[j]
        differences.append(_before(old, olds[i], region, begin))
    named = 0  # up to here the case of a word was named
    while True:
        if old[olds[i]] != text[news[j]] and news[j] >= named:
            word = _WORD.match(text, news[j])
            named = word.end() if word else news[j] + 1
            differences.append(_case(region, news[j], named))
        i, j = i + 1, j + 1
        if i == len(olds) or j == len(news) or not _same(old[olds[i]], text[news[j]]):
            break
        differences += _gap(old[olds[i - 1] + 1 : olds[i]], text[news[j - 1] + 1 : news[j]], region, news[j - 1] + 1)
    end = news[j - 1] + 1
    if i < len(olds):
        differences.append(_parting(old, olds[i - 1] + 1, region, end))
        return Alignment(tuple(differences), begin, end, complete=False)
    trail = old[olds[-1] + 1 :]
    there = _trail(trail, text[end : news[j] if j < len(news) else len(text)])
    differences += _gap(trail, there, region, end, outer="last")
    return Alignment(tuple(differences), begin, end + len(there), first)


def name(char: str) -> str:
    """Name a character for the model, by code point where it could be taken for another one."""
    if "\udc80" <= char <= "\udcff":
        return f"the byte 0x{ord(char) - 0xDC00:02x} (no text)"
    known = {"\n": "a line break", "\t": "a tab", " ": "a space", "": "nothing"}.get(char)
    return known or f"U+{ord(char):04X} {unicodedata.name(char, 'without a name')}"


def blanks(text: str) -> str:
    """Count blanks by kind, in words."""
    groups = [(run[0][0], len(run[0])) for run in re.finditer(r"(?s)(.)\1*", text)]
    if len(groups) > 3:  # noqa: PLR2004  more than anyone reads
        return f"a mixture of {text.count(chr(9))} tabs and {text.count(' ')} spaces"
    words = [f"{size} {_BLANK_NAMES[char]}{'s' if size > 1 else ''}" for char, size in groups]
    return " and ".join(words) or "no blanks"


def _same(a: str, b: str) -> bool:
    return a == b or (a.isascii() and a.lower() == b.lower())


# ---- gaps -----------------------------------------------------------------------------------------------------------


def _lead(old: str, there: str, end: int) -> tuple[str, int]:
    """The part of the file's gap that the gap before the text's first kept character has to match, and its place."""
    parts = there.split("\n")
    parts = parts[max(0, len(parts) - 1 - old.count("\n")) :]
    first = old.partition("\n")[0]
    if parts[0].endswith(first) or not _BLANK.match(first):
        parts[0] = parts[0][max(0, len(parts[0]) - len(first)) :]
    cut = "\n".join(parts)
    return cut, end - len(cut)


def _trail(old: str, there: str) -> str:
    """The part of the file's gap that the gap after the text's last kept character has to match."""
    parts = there.split("\n")[: old.count("\n") + 1]
    last = old.rpartition("\n")[2]
    if len(parts) == old.count("\n") + 1 and (parts[-1].startswith(last) or not _BLANK.match(last)):
        parts[-1] = parts[-1][: len(last)]
    return "\n".join(parts)


def _gap(
    old: str, there: str, region: Region, at: int, *, outer: Literal["first", "last", ""] = ""
) -> Iterator[Difference]:
    """Differences between two gaps; `at` is where the file's gap is; `outer`: whether it begins or ends the text."""
    if old == there:
        return
    mine, theirs = old.split("\n"), there.split("\n")
    if len(mine) != len(theirs) and (odd := _break(old, there, region, at)) is not None:
        yield odd
        return
    if len(mine) != len(theirs):
        at_end = outer == "last" and region.last and at + len(there) == len(region.text)
        yield _lines(len(mine) - 1, len(theirs) - 1, *region.place(at), at_end=at_end)
        return
    for n, (a, b) in enumerate(zip(mine, theirs, strict=True)):
        if a != b and _BLANK.match(a) and _BLANK.match(b):
            begins = (n > 0 or outer == "first") and region.begins_line(at)
            ends = (n < len(mine) - 1 or outer == "last") and region.ends_line(at + len(b))
            yield _blanks(a, b, *region.place(at), begins=begins, ends=ends)
        elif a != b:
            yield _characters(a, b, *region.place(at))
        at += len(b) + 1


def _blanks(old: str, there: str, line: int, column: int, *, begins: bool, ends: bool) -> Difference:
    mine, theirs = blanks(old), blanks(there)
    if begins:
        clause = f"line {line} is indented with {theirs} in the file, with {mine} in old_string"
        return Difference("indent", line, clause, there, old)
    if ends:
        return Difference("blanks", line, f"line {line} ends with {theirs} in the file, with {mine} in old_string")
    return Difference("blanks", line, f"in line {line}, column {column}, the file has {theirs}, old_string has {mine}")


def _characters(old: str, there: str, line: int, column: int) -> Difference:
    """The difference between two short texts of which at least one has more than blanks."""
    same = _common(old, there)
    mine, theirs = old[same:], there[same:]
    if (form := _form(mine, theirs, line, column + same)) is not None:
        return form
    tail = _common(mine[::-1], theirs[::-1])
    mine, theirs = mine[: len(mine) - tail], theirs[: len(theirs) - tail]
    clause = f"in line {line}, column {column + same}, the file has {name(theirs[:1])}, old_string has {name(mine[:1])}"
    return Difference("characters", line, clause)


def _form(old: str, there: str, line: int, column: int) -> Difference | None:
    """The difference between two texts that begin with the same letter, composed in one of them."""
    heads = ((old[:a], there[:b]) for a in range(1, 4) for b in range(1, 4))  # a letter and its accents
    head = next((b for a, b in heads if unicodedata.normalize("NFC", a) == unicodedata.normalize("NFC", b)), None)
    if head is None:
        return None
    form, other = ("decomposed (NFD)", "composed (NFC)")
    if not unicodedata.is_normalized("NFD", head):
        form, other = other, form
    clause = f"in line {line}, column {column}, the file has {form} letters, old_string has {other} ones"
    return Difference("characters", line, clause)


def _lines(mine: int, theirs: int, line: int, column: int, *, at_end: bool) -> Difference:
    """The difference between gaps with another number of line breaks."""
    if at_end and mine > theirs:
        if theirs:
            clause = f"the file ends there, with {_count(mine - theirs, 'line break')} less than old_string at its end"
        else:
            clause = "the file ends there and has no final newline: leave out the line break at the end of old_string"
    elif not mine:
        clause = f"line {line} ends before column {column} in the file, where old_string goes on in the same line"
    elif not theirs:
        clause = f"line {line} goes on at column {column} in the file, where old_string has a line break"
    else:
        more, less = ("the file", "old_string") if theirs > mine else ("old_string", "the file")
        clause = f"after line {line} {more} has {_count(abs(theirs - mine), 'empty line')} more than {less}"
    return Difference("lines", line, clause)


def _break(old: str, there: str, region: Region, at: int) -> Difference | None:
    """The difference where one side has a line break, and the other a character that only looks like one."""
    for mine, theirs, clause in (
        (old, there, "the file has {}, which ends no line here, where old_string has a line break"),
        (there, old, "the file has a line break, where old_string has {}, which ends no line here"),
    ):
        odd = next((n for n, char in enumerate(theirs) if char in _BREAKS), -1)
        if odd >= 0 and "\n" in mine[: odd + 1] and mine.count("\n") > theirs.count("\n"):
            line, column = region.place(at + (odd if theirs is there else 0))
            char = theirs[odd]
            called = f"a {_BLANK_NAMES[char]}" if char in _BLANK_NAMES else name(char)
            return Difference("characters", line, f"in line {line}, column {column}, {clause.format(called)}")
    return None


def _wide(old: str, there: str) -> tuple[str, str] | None:
    """The characters that one side has in one and the other spelled out, like the three dots of an ellipsis."""
    for one, many in ((old, there), (there, old)):
        spelled = unicodedata.normalize("NFKC", one[:1])
        if spelled != one[:1] and len(spelled) > 1 and many.startswith(spelled):
            return (one[:1], spelled) if one is there else (spelled, one[:1])
    return None


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'s' if number > 1 else ''}"


def _common(a: str, b: str) -> int:
    """How many characters both begin with."""
    return next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


# ---- kept characters ------------------------------------------------------------------------------------------------


def _case(region: Region, at: int, end: int) -> Difference:
    line, column = region.place(at)
    quoted = region.text[at : min(end, at + _QUOTED)]
    clause = f"in line {line}, column {column}, the file has `{quoted}`, old_string has other upper or lower case"
    return Difference("case", line, clause)


def _before(old: str, i: int, region: Region, at: int) -> Difference:
    """What to say where kept characters part on the way to the left, before `old[i]` and the region's `at`."""
    mine, theirs = old[max(0, i - _NEAR) : i], region.text[max(0, at - _NEAR) : at]
    same = _common(mine[::-1], theirs[::-1])
    line, column = region.place(at - same)
    a, b = mine[: len(mine) - same], theirs[: len(theirs) - same]
    for longer, shorter, clause in ((b, a, _FILE_ENTITY), (a, b, _OLD_ENTITY)):
        for entity in _ENTITY.findall(longer):
            if longer.endswith(entity) and shorter.endswith(html.unescape(entity)):
                where = f"in line {line}, before column {column},"
                return Difference("characters", line, f"{where} {clause.format(entity)}")
    if b[-4:-1].endswith(a[-4:-1]) and _confusable(a[-1:], b[-1:]):
        return _characters(a[-1:], b[-1:], line, column - 1)
    line, column = region.place(at)
    begin = region.text.rfind("\n", 0, at) + 1
    quoted = _text.show(region.text[max(begin, at - _QUOTED) : at]).strip()
    if quoted:
        clause = f"old_string begins otherwise: before line {line}, column {column}, the file has `{quoted}`"
    else:
        clause = f"old_string begins otherwise: only the rest of it is there, from line {line}, column {column}, on"
    return Difference("other", line, clause)


def _parting(old: str, i: int, region: Region, at: int) -> Difference:
    """What to say where kept characters part, somewhere after `old[i]` and the region's `at`."""
    same = _common(old[i : i + _NEAR], region.text[at : at + _NEAR])
    i, at = i + same, at + same
    line, column = region.place(at)
    a, b = old[i : i + _NEAR], region.text[at : at + _NEAR]
    where = f"in line {line}, column {column},"
    for char, written in _WRITTEN.items():
        if a.startswith(char) and b.startswith(written):
            clause = f"{where} the file has {written} as two characters, old_string has {name(char)} itself"
            return Difference("characters", line, clause)
        if b.startswith(char) and a.startswith(written):
            clause = f"{where} the file has {name(char)} itself, old_string has {written} as two characters"
            return Difference("characters", line, clause)
    if entity := _entity(region.text, at, old, i):
        return Difference("characters", line, f"{where} {_FILE_ENTITY.format(entity)}")
    if entity := _entity(old, i, region.text, at):
        return Difference("characters", line, f"{where} {_OLD_ENTITY.format(entity)}")
    if (odd := _break(a[:1], b[:1], region, at)) is not None:
        return odd
    if (wide := _wide(a, b)) is not None:
        theirs, mine = (name(text) if len(text) == 1 else f"`{text}`" for text in wide)
        return Difference("characters", line, f"{where} the file has {theirs}, old_string has {mine}")
    after = _SPACE.match(region.text, at)
    beyond = after.end() if after else at
    if region.last and beyond == len(region.text):
        return Difference("other", line, f"the file ends at line {line}, column {column}, where old_string goes on")
    breaks = [text[: len(text) - len(text.lstrip())].count("\n") for text in (a, b)]
    if breaks[0] != breaks[1] and 0 in breaks:
        return _lines(breaks[0], breaks[1], line, column, at_end=False)
    if (form := _form(a, b, line, column)) is not None:
        return form
    if b[1:4].startswith(a[1:4]) and _confusable(a[:1], b[:1]):
        return _characters(a[:1], b[:1], line, column)
    line, column = region.place(beyond)
    quoted = _text.show(region.text[beyond : beyond + _QUOTED]).split("\n")[0]
    return Difference("other", line, f"from line {line}, column {column}, on the file has `{quoted}`")


def _confusable(a: str, b: str) -> bool:
    """Whether one character in the place of another (or of none) is better named than shown."""
    return not (a + b).isascii() and {unicodedata.category(char) for char in a + b} != {"Lo"}


def _entity(text: str, at: int, other: str, there: int) -> str:
    """The entity that `text` has near `at` for the character that `other` has near `there`; "" if none."""
    for back in (0, 1):
        if back <= min(at, there) and (entity := _ENTITY.match(text, at - back)):
            char = html.unescape(entity[0])
            if char != entity[0] and other.startswith(char, there - back):
                return entity[0]
    return ""
