r"""Where a text stands in a file but for characters that look the same, when nothing else has found it.

The walks of `_nearmiss` need some characters that are the same on both sides. Short texts in wide letters, with an
ideographic space or with a Greek question mark have none. So both sides are folded whole, line by line: compatibility
forms (NFKC), quotes, dashes, all kinds of blanks, characters without a glyph. Equal folds are no match, only a hint:
the first character that one side has and the other has not is named.
"""

from __future__ import annotations

import unicodedata

_TWINS = str.maketrans(
    dict.fromkeys('\u2018\u2019\u201a\u201b\u2032\u00b4\u02bc\u0060"\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb', "'")
    | dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\u2500\u30fc", "-")
    | dict.fromkeys("\u3001\uff0c", ",")
    | dict.fromkeys("\u3002\uff0e", ".")
    | dict.fromkeys("\u00ad\u034f\u200b\u200c\u200d\u200e\u200f\u2060\ufe0e\ufe0f\ufeff", "")
    | dict.fromkeys(" \t\r\f\v\u0085\u00a0\u1680\u202f\u205f\u3000\u2028\u2029", "")
    | dict.fromkeys(map(chr, range(0x2000, 0x200B)), "")
)
_LEAST = 2
"""Characters of the fold of a line; fewer stand anywhere."""


def fold(text: str) -> str:
    """Give one spelling to texts that look the same. Line breaks stay."""
    return unicodedata.normalize("NFKC", text.translate(_TWINS)).translate(_TWINS).lower()


def twin_lines(text: str, wanted: str) -> list[int]:
    """The lines of `text`, from 0, at which `wanted` begins but for characters that look the same; ten at most."""
    if text.isascii() and wanted.isascii():
        return []
    parts = fold(wanted).split("\n")
    key = max(range(len(parts)), key=lambda n: len(parts[n]))
    if len(parts[key]) < _LEAST:
        return []
    lines = fold(text).split("\n")
    return [n - key for n, line in enumerate(lines) if parts[key] in line and n >= key][:10]


def first_other(text: str, wanted: str) -> tuple[int, str, str] | None:
    """The first character of a line that `wanted` has not, and the first of `wanted` that the line has not.

    Returns:
        Where in the line the first one is, from 0, it, and the other one, each "" if there is none; None if neither is.
    """
    at = next((n for n, char in enumerate(text) if char not in wanted), -1)
    other = next((char for char in wanted if char not in text), "")
    if at < 0 and not other:
        return None
    return max(at, 0), text[at] if at >= 0 else "", other
