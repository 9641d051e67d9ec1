"""The lines of a hunk for people: numbered, paired, with what changed inside a line, and the colours of the language.

The idea: a hunk is cut into rows, each a line before, a line after, or a pair of them. Lines that were replaced are
paired by what they have in common, in order; inside a pair the words that differ are marked.

Limits: pairing and marking take a bounded number of steps; beyond them lines stand unpaired and unmarked. The colours
come from Pygments (the extra `display`), which sees only the lines of the hunk: inside a long string it may be wrong.
Without it, or where its pieces are not exactly the line, the line has no colours.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from langchain_filestate._diff import gaps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from langchain_filestate._diff import Budget
    from langchain_filestate._hunks import PatchHunk

MAX_CHARS = 1000
"""Characters of one line that are looked at, and shown."""
_MAX_PAIRS = 2500
_ALIKE = 0.35
"""The share of two lines that must be the same for them to count as one line that changed."""
_MAX_COLOURED = 50_000
"""Characters of one side of a hunk that are coloured at most."""
_NO_NEWLINE = "\\"
_WORDS = re.compile(r"\w+|\s+|.", re.DOTALL)

Marks = tuple[tuple[int, int], ...]
"""Ranges of characters."""
Colours = tuple[tuple[int, int, str], ...]
"""Ranges of characters, each with the name of a colour."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of one side.

    Attributes:
        number: From 1.
        text: As in the patch, without its line end.
        ended: False if it is the last line and has no line end.
        marks: What is not in the line that it is paired with.
        colours: Of the language.
    """

    number: int
    text: str
    ended: bool = True
    marks: Marks = ()
    colours: Colours = ()


class Row(NamedTuple):
    """A line before, a line after, or both; `kept` if they are the same line."""

    old: Line | None
    new: Line | None
    kept: bool = False


def rows(hunk: PatchHunk, name: str, budget: Budget) -> list[Row]:
    """The rows of a hunk.

    Args:
        hunk: The hunk.
        name: Of the file, by which its language is known; "" for no colours.
        budget: Steps for pairing and marking.
    """
    old, new = _sides(hunk)
    found: list[Row] = []
    i = k = 0
    gone: list[Line] = []
    came: list[Line] = []
    coloured_old, coloured_new = _coloured(old, name), _coloured(new, name)

    def flush() -> None:
        found.extend(_paired(gone, came, budget))
        gone.clear()
        came.clear()

    for entry in hunk.lines:
        kind = entry[:1]
        if kind == "-":
            gone.append(coloured_old[i])
            i += 1
        elif kind == "+":
            came.append(coloured_new[k])
            k += 1
        elif kind == " ":
            flush()
            found.append(Row(coloured_old[i], coloured_new[k], kept=True))
            i, k = i + 1, k + 1
    flush()
    return found


def _sides(hunk: PatchHunk) -> tuple[list[Line], list[Line]]:
    """The lines before and after, numbered."""
    old: list[Line] = []
    new: list[Line] = []
    before, after = hunk.source_start, hunk.target_start
    entries = hunk.lines
    for at, entry in enumerate(entries):
        kind, text = entry[:1], entry[1:]
        ended = at + 1 == len(entries) or entries[at + 1][:1] != _NO_NEWLINE
        if kind in {" ", "-"}:
            old.append(Line(before, text, ended))
            before += 1
        if kind in {" ", "+"}:
            new.append(Line(after, text, ended))
            after += 1
    return old, new


# ---- what changed inside a line


def _paired(gone: Sequence[Line], came: Sequence[Line], budget: Budget) -> Iterator[Row]:
    """Rows for lines that were replaced by others: pairs where two are alike, in order, the rest alone."""
    i = k = 0
    for a, b in [*_partners(gone, came, budget), (len(gone), len(came))]:
        yield from (Row(line, None) for line in gone[i:a])
        yield from (Row(None, line) for line in came[k:b])
        if a < len(gone):
            yield Row(*_marked(gone[a], came[b], budget))
        i, k = a + 1, b + 1


def _partners(gone: Sequence[Line], came: Sequence[Line], budget: Budget) -> list[tuple[int, int]]:
    """Which lines belong together: the choice, in order, with the most in common."""
    size = len(gone) * len(came)
    if not size or size > _MAX_PAIRS or not budget.pay(size * 4):
        return []
    bags = [[Counter(_WORDS.findall(line.text[:MAX_CHARS])) for line in side] for side in (gone, came)]
    best = [[0.0] * (len(came) + 1) for _ in range(len(gone) + 1)]
    alike = [[_alike(a, b) for b in bags[1]] for a in bags[0]]
    for a in range(len(gone) - 1, -1, -1):
        for b in range(len(came) - 1, -1, -1):
            together = alike[a][b] + best[a + 1][b + 1] if alike[a][b] >= _ALIKE else 0.0
            best[a][b] = max(best[a + 1][b], best[a][b + 1], together)
    pairs: list[tuple[int, int]] = []
    a = b = 0
    while a < len(gone) and b < len(came):
        if alike[a][b] >= _ALIKE and best[a][b] == alike[a][b] + best[a + 1][b + 1]:
            pairs.append((a, b))
            a, b = a + 1, b + 1
        elif best[a][b] == best[a + 1][b]:
            a += 1
        else:
            b += 1
    return pairs


def _alike(a: Counter[str], b: Counter[str]) -> float:
    """The share of the characters that two lines have in common, blanks left out."""
    sizes = [sum(len(word) * n for word, n in bag.items() if not word.isspace()) for bag in (a, b, a & b)]
    return 2 * sizes[2] / (sizes[0] + sizes[1]) if sizes[0] + sizes[1] else 1.0


def _marked(old: Line, new: Line, budget: Budget) -> tuple[Line, Line]:
    """Both lines with their differences marked."""
    before, after = (_WORDS.findall(line.text[:MAX_CHARS]) for line in (old, new))
    differences = gaps(
        [word.encode("utf-8", "surrogatepass") for word in before],
        [word.encode("utf-8", "surrogatepass") for word in after],
        budget,
    )
    if budget.exceeded:
        return old, new
    ends = [_ends(words) for words in (before, after)]
    marks = [
        _joined([(ends[0][gap.i], ends[0][gap.j]) for gap in differences], old.text),
        _joined([(ends[1][gap.k], ends[1][gap.l]) for gap in differences], new.text),
    ]
    return (
        Line(old.number, old.text, old.ended, marks[0], old.colours),
        Line(new.number, new.text, new.ended, marks[1], new.colours),
    )


def _ends(words: Sequence[str]) -> list[int]:
    ends = [0]
    for word in words:
        ends.append(ends[-1] + len(word))
    return ends


def _joined(ranges: Sequence[tuple[int, int]], text: str) -> Marks:
    """Ranges with something in them; two with only blanks between them are one."""
    joined: list[tuple[int, int]] = []
    for start, end in ranges:
        if start == end:
            continue
        if joined and not text[joined[-1][1] : start].strip():
            joined[-1] = joined[-1][0], end
        else:
            joined.append((start, end))
    return tuple(joined)


# ---- the colours of the language


def _coloured(side: Sequence[Line], name: str) -> list[Line]:
    """The lines with the colours of their language, where that can be had."""
    text = "\n".join(line.text for line in side)
    find = _lexer(name) if name and len(text) <= _MAX_COLOURED and "\r" not in text else None
    if find is None:
        return list(side)
    colours: list[list[tuple[int, int, str]]] = [[] for _ in side]
    row = at = 0
    whole: list[str] = []
    for kind, piece in find(text):
        whole.append(piece)
        for number, part in enumerate(piece.split("\n")):
            if number:
                row, at = row + 1, 0
            if kind and part.strip() and row < len(side):
                colours[row].append((at, at + len(part), kind))
            at += len(part)
    if "".join(whole) != text:
        return list(side)
    return [
        Line(line.number, line.text, line.ended, line.marks, tuple(found))
        for line, found in zip(side, colours, strict=True)
    ]


def _lexer(name: str) -> Callable[[str], Iterator[tuple[str, str]]] | None:
    """What cuts a text of the language of a file into pieces, each with its colour or ""; None if nothing does."""
    try:
        from pygments.lexers import get_lexer_for_filename  # noqa: PLC0415  an extra, and slow to import
        from pygments.token import Token  # noqa: PLC0415
        from pygments.util import ClassNotFound  # noqa: PLC0415
    except ModuleNotFoundError:
        return None
    try:
        lexer = get_lexer_for_filename(name, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None
    kinds = (
        (Token.Comment, "note"), (Token.Literal.String, "str"), (Token.Literal.Number, "num"), (Token.Keyword, "key"),
        (Token.Name.Function, "name"), (Token.Name.Class, "name"), (Token.Name.Decorator, "name"),
        (Token.Name.Builtin, "num"), (Token.Name.Tag, "key"), (Token.Name.Attribute, "num"),
        (Token.Operator.Word, "key"),
    )  # fmt: skip

    def cut(text: str) -> Iterator[tuple[str, str]]:
        for token, piece in lexer.get_tokens(text):
            yield next((kind for base, kind in kinds if token in base), ""), piece

    return cut
