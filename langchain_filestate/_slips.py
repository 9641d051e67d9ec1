r"""Slips with a name: what a text would be without one, and what to tell the model if that stands in the file.

Each is a whole-text change of which it can be said exactly what went wrong between the file, the tool call and back:
JSON escapes done once too often or not at all, HTML entities, letters composed or decomposed on the way (macOS, input
methods), line numbers copied with the text, bytes that were shown as escapes. None of them is ever put right silently.
The texts are templates with the line number as `{line}`.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections import Counter
from typing import TYPE_CHECKING

from langchain_filestate import _mismatch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from langchain_filestate._mismatch import Difference

LINE_ENDINGS = (
    "It is there in line {line}, but with other line endings: old_string has CRLF (\\r\\n) where the file has LF. Give "
    "line breaks as \\n, which match both."
)
FINAL_NEWLINE = (
    "It is there in line {line}, at the very end, but the file has no final newline: leave the line break at the end "
    "of old_string out."
)
GUTTER = (
    "old_string holds line numbers: the gutter (number and tab) that read_file and `cat -n` print before each line is "
    "no part of the file. Leave it out of old_string and of new_string."
)

_GUTTER = re.compile(r"[ \t]*(\d{1,7})(?:(\t|→)|\||: ?)")
_BAD_BYTE = re.compile(r"\\x([89a-f][0-9a-f])")
_AFFECTED = re.compile(r"&#?\w+;|\\x..|\\.|[\x00-\x1f\\\"'`&<>]|[\x00-\x7f]?[^\x00-\x7f]+", re.DOTALL)
_TAKEN = {"n": "\n", "t": "\t", "r": "\r"}
_THERE = "It is there in line {line}, but "


def has_gutter(line: str) -> bool:
    """Whether a line begins as if with a line number."""
    return _GUTTER.match(line) is not None


def without_gutter(text: str) -> str | None:
    """The text without a line-number gutter, None if it has none.

    A gutter counts up on every line but perhaps the first (a copy may begin inside it) and empty ones; on a single line
    only number and tab (or the arrow that some tools print) are taken for one.
    """
    lines = text.split("\n")
    marks = [_GUTTER.match(line) for line in lines]
    numbers = {int(mark[1]) - n for n, mark in enumerate(marks) if mark}
    if len(numbers) != 1 or any(line and not mark for line, mark in zip(lines[1:], marks[1:], strict=True)):
        return None
    if sum(1 for mark in marks if mark) == 1 and not any(mark and mark[2] for mark in marks):
        return None
    return "\n".join(line[mark.end() :] if mark else line for line, mark in zip(lines, marks, strict=True))


def unaffected(text: str) -> str:
    """The longest piece of the text that is the same without any of the slips: where it is missing, all are."""
    return max(_AFFECTED.split(text), key=len)


def slips(text: str) -> Iterator[tuple[str, str]]:
    """Give the text as it would be without each slip, and the hint; often that is the text itself."""
    if "\\" in text:
        yield from _escapes(text)
    for char, written, called in (("\n", "\\n", "a line break"), ("\t", "\\t", "a tab")):
        yield (
            text.replace(char, written),
            f"{_THERE}the file has {written} as two characters where old_string has {called}.",
        )
    quoted = re.sub(r"([\"'])", r"\\\1", text)
    yield quoted, f"{_THERE}the file has a backslash before the quotes."
    doubled = text.replace('"', '\\"')
    yield doubled, f"{_THERE}the file has a backslash before the double quotes."
    literal = doubled.replace("\n", "\\n").replace("\t", "\\t")
    yield literal, f"{_THERE}written with escapes (\\n, \\t or a backslash before quotes), as in a string literal."
    yield (
        html.unescape(text),
        f"{_THERE}the file has the characters that entities such as &amp; in old_string stand for.",
    )
    for quote in (False, True):
        hint = "the file has entities such as &amp; where old_string has the characters that they stand for."
        yield html.escape(text, quote=quote), _THERE + hint
    hint = "the file's accented letters are {0}, those of old_string {1}."
    yield unicodedata.normalize("NFC", text), _THERE + hint.format("composed (NFC)", "decomposed (NFD)")
    yield unicodedata.normalize("NFD", text), _THERE + hint.format("decomposed (NFD)", "composed (NFC)")
    yield (
        text.replace("\n", "\r"),
        f"{_THERE}the file separates these lines by a lone CR, which is no line ending here.",
    )
    yield text.lstrip("\ufeff"), f"{_THERE}without the byte order mark (U+FEFF) that old_string begins with."


def _escapes(text: str) -> Iterator[tuple[str, str]]:
    """As `slips`, for text with a backslash."""
    breaks = re.sub(r"\\([nt])", lambda match: _TAKEN[match[1]], text)
    yield (
        breaks,
        f"{_THERE}the file has the line break or tab itself where old_string has \\n or \\t as two characters.",
    )
    quotes = re.sub(r"\\([\"'`])", r"\1", text)
    yield quotes, f"{_THERE}without the backslash that old_string has before quotes."
    characters = re.sub(r"\\([ntr\"'`\\/$])", lambda match: _TAKEN.get(match[1], match[1]), text)
    yield (
        characters,
        f"{_THERE}the file has the characters themselves where old_string has them escaped by a backslash.",
    )
    yield text.replace("\\", "\\\\"), f"{_THERE}the file has two backslashes where old_string has one."
    shown = _BAD_BYTE.sub(lambda match: chr(0xDC00 + int(match[1], 16)), text)
    yield (
        shown,
        f"{_THERE}its \\x escapes stand for bytes that are no text and cannot be matched. Choose text beside them.",
    )


def clauses(differences: Sequence[Difference], most: int) -> str:
    """The differences as text; what has a pattern in one clause, of the others the first `most`."""
    indents = [difference for difference in differences if difference.kind == "indent"]
    rest = [difference for difference in differences if difference.kind != "indent"]
    said: list[str] = []
    if len(indents) > 1:
        more = {b.file.removesuffix(b.old) if b.file.endswith(b.old) else None for b in indents}
        less = {b.old.removesuffix(b.file) if b.old.endswith(b.file) else None for b in indents}
        shift, side = (more, "more") if more != {None} and len(more) == 1 else (less, "less")
        span = f"lines {indents[0].line} to {indents[-1].line}"
        if len(shift) == 1 and None not in shift:
            by = _mismatch.blanks(next(iter(shift)) or "")
            said.append(f"{span} are indented by {by} {side} in the file than in old_string")
        else:
            said += [difference.clause for difference in indents[:2]]
            if len(indents) > 2:  # noqa: PLR2004  the two that were said
                said.append(f"{len(indents) - 2} more lines up to line {indents[-1].line} are indented otherwise too")
    else:
        rest = list(differences)
    said += [difference.clause for difference in rest[:most]]
    left = Counter(difference.kind for difference in rest[most:])
    if left:
        total = sum(left.values())
        said.append(f"and {total} further difference{'s' if total > 1 else ''} of this kind")
    return "; ".join(said)
