"""Lines that stand in for others: `# ... rest of the file unchanged ...`.

The idea: a model that rewrites a file sometimes leaves out what it did not mean to change and says so in a comment.
Writing that would delete the lines. A line is taken for such a placeholder if all of it is one comment of any style,
if its words come from one table (`_phrases`) in a combination that says "something stands here that I do not repeat",
and if at its place the old text has lines which the new one lacks.

Rules: the more a line looks like an ellipsis (dots in front, dots on both sides), the fewer words it takes. Without
dots hardly another word than those of the table may stand in it, and no comment of the same style next to it. A
placeholder that the old text has too, or quotes within a longer line, is its subject and counts as text. Bare dots on
a line of their own are code in Python and the end of a document in YAML: they count at the left margin only, and only
if much is missing.
Limits: English, Chinese and Japanese; a placeholder in a string or behind code on the same line is not looked for.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from langchain_filestate._diff import anchors
from langchain_filestate._phrases import ALONE, KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from langchain_filestate._phrases import Kind

MUCH = 3
"""Missing lines that a faint placeholder must stand for; they must also be more than were added there."""
LONGEST = 160
"""Characters of a line above which it says more than that."""
WORDS = 10
"""Words above which it does so too."""
FEW = 2
"""Words not in the table that may stand in a line with dots; in some cases one more."""
SHORT = 6
"""Words between dots that need not tell anything."""
MANY = 100
"""Placeholders that are looked for in longer lines of the old text."""
SUBJECT = 2
"""Placeholders in the old text that make them its subject."""

Look = Literal["silent", "dots", "words", "faint"]
"""How a line shows what it is: dots in a comment and no word, dots and telling words, words alone, or dots with words
that tell little."""

_LONGEST_WORD = max(map(len, KINDS))
_MOST_WORDS = max(word.count(" ") + 1 for word in KINDS)
_PART = re.compile(r"[a-z0-9$_']+|[^\sa-z0-9$_']+")

# Which lines to read at all: one begins with such a character and holds dots, a telling word, or an East Asian letter.
_FIRST = frozenset("#/*<-;%{(@'!\":|[.…⋯（【rRdD")
_TELLING = frozenset(
    max(word.split(), key=len)
    for word, kind in KINDS.items()
    if kind in {"rest", "keep", "past", "state", "brief"} and word.isascii()
)
_LATIN = re.compile("[a-z]+")
_EAST = re.compile("[…⋯\u3000-\u30ff\u4e00-\u9fff]")

# What a line begins with, in the comment styles of languages and templates; nothing (the last one) where dots or
# brackets take the place of a comment sign.
_HEAD = re.compile(
    r"""\s*(?P<mark>
        \#\| | \#+ | //+!? | /\*+ | <!-+ | --+\[\[ | --+ | ;+ | %+\{? | ::+
        | \{/\*+ | \{\{!-* | \{\{/\*+ | \{\#-? | \{- | <%-- | <%\# | <\# | \(\*+ | @\*
        | (?:\*+ | - | '+ | !+ | " | rem | dnl)(?=\s)
        | (?=\.\.\.|…|⋯|[\[(<（【])
    )""",
    re.VERBOSE | re.IGNORECASE,
)
_TAIL = re.compile(r"(?:\*+/\}\}|\*+/\}?|--+>|-?#\}|--%>|%>|#>|\*+\)|\*@|-\}|-*\}\}|\]\]|\|#|%\})\s*$")
_DOTS = r"(?<!\.)(?:\.{3,4}|…{1,3}|⋯{1,3}|。{3,6}|・{3,6})(?!\.)"
_LEAD = re.compile(rf"[\s\-=~*<>\[({{（【「]*{_DOTS}(?P<apart>\s?)")
_TRAIL = re.compile(rf"{_DOTS}[\s\-=~*<>\])}}）】」.,;]*$")
_ONLY = re.compile(rf"[\[({{（【]?\s*{_DOTS}\s*[\])}}）】]?")
_BARE = frozenset(["...", "…", "……"])
_WRAPPED = re.compile(r"[\s\-=~*]*[\[({<（【「].*[\])}>）】」][\s\-=~*.。]*$")
_NOISE = re.compile(rf"{_DOTS}|[^\w$']+|_{{2,}}")
_CODE = re.compile(r"[=;\\]|\w\(")


def find_placeholders(before: str | None, after: str) -> list[tuple[int, str]]:
    """Lines of a new text that stand in for lines of the old one which it lacks.

    Args:
        before: The old text; None or empty if there was none, and then nothing can be left out.
        after: The new text.

    Returns:
        The number of each such line, from 1, and the line without the blanks around it.
    """
    if not before:
        return []
    lines = after.split("\n")
    old = before.split("\n")
    known = set(old)
    found = {at: look for at, line in enumerate(lines) if line not in known and (look := looks_like(line)) is not None}
    if not found:
        return []
    if sum(looks_like(line) in {"dots", "words"} and _has_words(line) for line in old) >= SUBJECT:
        return []
    old, new = [line.strip() for line in old], [line.strip() for line in lines]
    own, text = set(old), before.casefold()
    # looking each up in the whole text is not linear: enough for any real file
    quoted = [line for line in {new[at] for at in [*found][:MANY]} if _has_words(line) and line.casefold() in text]
    own.update(quoted)
    for at, look in [*found.items()]:
        if new[at] in own or (look == "words" and _in_prose(new, at)):
            del found[at]
    return [(at + 1, new[at]) for at in _standing_in(old, new, found)] if found else []


def _in_prose(lines: Sequence[str], at: int) -> bool:
    """Whether the lines around are comments of the same style, so that the words are part of a longer text."""
    mark = _mark(lines[at])
    near = [lines[i] for i in (at - 1, at + 1) if 0 <= i < len(lines)]
    return mark != "" and any(_mark(line) == mark and _has_words(line) and looks_like(line) is None for line in near)


def _mark(line: str) -> str | None:
    head = _HEAD.match(line)
    return head["mark"] if head else None


def _standing_in(old: Sequence[str], new: Sequence[str], found: Mapping[int, Look]) -> Iterator[int]:
    """Those at whose place lines are missing: between the nearest lines that both texts have exactly once."""
    before, after = Counter(filter(None, old)), Counter(filter(None, new))
    gone, added = before - after, after - before
    fixed = [(-1, -1), *anchors(old, new), (len(old), len(new))]
    tops = [k for _, k in fixed]
    balance: dict[int, tuple[int, int]] = {}
    for at, look in found.items():
        here = bisect_left(tops, at)
        if here not in balance:
            (i, k), (j, m) = fixed[here - 1 : here + 1]
            missing = sum(line in gone for line in old[i + 1 : j])
            balance[here] = missing, sum(line in added for line in new[k + 1 : m])
        missing, more = balance[here]
        # Without a telling word it is one only where more went than came: "# ..." also ends a quoted traceback.
        least = {"faint": MUCH, "silent": 1}.get(look)
        if missing if least is None else missing >= least and missing > more:
            yield at


def looks_like(line: str) -> Look | None:
    """How a line by itself looks like a placeholder; None if it is something else."""
    bare = line.strip()
    if bare[:1] not in _FIRST or len(bare) > LONGEST or not _worth_reading(bare):
        return None
    head = _HEAD.match(bare)
    if head is None:
        return None
    mark, text = head["mark"], _TAIL.sub("", bare[head.end() :]).strip()
    item = mark in {"*", "-"}
    words = _NOISE.sub(" ", text).casefold().strip()
    if not words:
        if item or not _ONLY.fullmatch(text):
            return None
        if mark:
            return "silent"
        return "faint" if line[0] == text[0] and text in _BARE else None
    count = _count(words)
    if count is None or text.endswith((":", "?", "：", "？")):
        return None
    lead, trail = _LEAD.match(text), _TRAIL.search(text) is not None
    wrapped = _WRAPPED.match(text) is not None
    if not mark:
        dotted = lead is not None and (trail or (lead["apart"] != "" and text[0] in ".…⋯"))
        return _bare(count, dotted=dotted, wrapped=wrapped)
    if lead:
        look = _between_dots(count) if trail else _behind_dots(count)
        return None if look == "faint" and (item or _CODE.search(text)) else look
    if (mark.startswith("##") or item) and not (count.has("state") and count.has("rest", "keep")):
        return None  # a heading or an item of a list
    return _plain(count, words, marked=trail or wrapped)


def _worth_reading(line: str) -> bool:
    if "..." in line or (not line.isascii() and _EAST.search(line)):
        return True
    return not _TELLING.isdisjoint(_LATIN.findall(line.casefold()))


@dataclass(frozen=True, slots=True)
class _Count:
    """What the words of a line are."""

    kinds: frozenset[Kind]
    size: int
    unknown: int
    opens: bool
    """Whether the first word is known."""

    def has(self, *kinds: Kind) -> bool:
        return not self.kinds.isdisjoint(kinds)


def _count(words: str) -> _Count | None:
    """The kinds of words; None if there are too many for a placeholder."""
    kinds: list[Kind | None] = []
    parts = _PART.findall(words)
    at = 0
    while at < len(parts) and len(kinds) <= WORDS:
        if parts[at].isascii():
            size, kind = _known([f" {part}" for part in parts[at : at + _MOST_WORDS]], 1)
            kinds.append("number" if kind is None and parts[at].isdigit() else kind)
            at += size
        else:
            run = parts[at]
            while run:  # words written together
                size, kind = _known(run[:_LONGEST_WORD], 0)
                kinds.append(kind)
                run = run[size if kind else 2 :]
            at += 1
    if len(kinds) > WORDS:
        return None
    return _Count(frozenset(filter(None, kinds)), len(kinds), kinds.count(None), kinds[0] is not None)


def _known(parts: Sequence[str], skip: int) -> tuple[int, Kind | None]:
    """The longest phrase of the table that they begin with: how many parts it has, and its kind; (1, None) if none."""
    for size in range(len(parts), 0, -1):
        kind = KINDS.get("".join(parts[:size])[skip:])
        if kind is not None:
            return size, kind
    return 1, None


def _between_dots(count: _Count) -> Look | None:
    """`... words ...`: nearly anything short."""
    if not count.has("prose"):
        if count.has("rest", "keep", "past", "other", "state", "brief") and count.unknown <= FEW + 1:
            return "dots"
        if count.has("soft", "code", "noun", "thing") and count.unknown <= FEW:
            return "dots"
    return "faint" if count.size <= SHORT else None


def _behind_dots(count: _Count) -> Look | None:
    """`... words`: may also go on with the sentence of the line above."""
    if count.has("prose") or count.unknown > FEW:
        return None
    something = count.has("code", "noun", "thing")
    if count.has("rest", "keep", "state", "brief") or (count.has("past") and (something or count.has("soft"))):
        return "dots"
    if count.unknown == 0 and count.has("other") and (something or count.size == 1):
        return "dots"
    return "faint" if (something or count.has("soft", "other", "past")) and count.unknown <= 1 else None


def _plain(count: _Count, words: str, *, marked: bool) -> Look | None:
    """`words`, `words ...` (marked) or `(words)` (marked): the words must tell it, and hardly one may be strange."""
    state, rest, keep = count.has("state"), count.has("rest"), count.has("keep")
    subject = rest or keep or count.has("code")
    room = 0
    if count.opens and rest and (marked or state):
        room = FEW
    elif count.has("brief"):
        room = FEW + 1
    elif count.opens and subject and state:
        room = 1
    if count.has("prose") or count.unknown > room:
        return None
    something = count.has("noun", "thing")
    told = (
        count.has("brief")
        or (state and (subject or count.has("other", "noun") or words in ALONE))
        or (rest and (marked or count.has("code", "noun", "soft")))
        or (keep and (count.has("code") or (something and (marked or count.has("soft")))))
        or (count.has("past", "other") and count.has("soft") and (something or count.has("code")))
    )
    return "words" if told else None


def _bare(count: _Count, *, dotted: bool, wrapped: bool) -> Look | None:
    """Without a comment sign, as in plain text: `... rest of the file ...`, `[rest of file unchanged]`."""
    if count.unknown or count.has("prose") or count.size == 1:
        return None
    something = count.has("code", "noun", "thing")
    if dotted and (count.has("rest") or (count.has("keep", "past", "other") and something)):
        return "dots"
    told = count.has("state", "brief") and (something or count.has("rest", "keep", "past", "other"))
    return "dots" if told and (dotted or wrapped) else None


def _has_words(line: str) -> bool:
    return re.search(r"\w", line) is not None
