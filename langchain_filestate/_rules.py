"""Names: which ones a rule covers, which ones look the same, and how they are shown. No I/O.

Rules are gitignore patterns (https://git-scm.com/docs/gitignore) as `pathspec` has them, taken per root, on paths below
it. Two things differ from git, both to the side of covering more. What a rule covers it covers whole: there is no `!`,
so a directory that is covered covers all below it. And a name is tried a second time, rule and name folded (canonical
caseless matching, Unicode 3.13 D145, without the characters that a casefolding ext4, HFS+ or APFS skips), since on such
file systems `.ENV` opens `.env`.

A rule that can match nothing would be a fence with a gap that nobody sees, so it is refused when it is set.
"""

from __future__ import annotations

import json
import re
import unicodedata
import warnings
from typing import TYPE_CHECKING

from langchain_filestate.errors import WiringError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pathspec import GitIgnoreSpec

_SHOWN = 240
"""Characters of a path that a message repeats at most: a text, not an echo."""

# Default_Ignorable_Code_Point of Unicode's DerivedCoreProperties.txt: no glyph; casefolding file systems skip them.
_IGNORABLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)

# Quotes and dashes that models and keyboards write for one another; spaces are found by their category (Zs).
_TWINS = str.maketrans(
    dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u00b4\u02bc\u0060", "'")
    | dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb", '"')
    | dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d", "-")
)


def fold(name: str) -> str:
    """Give one spelling to all that a caseless, normalising file system takes for the same name."""
    plain = unicodedata.normalize("NFD", _IGNORABLE.sub("", name)).casefold()
    return unicodedata.normalize("NFC", _IGNORABLE.sub("", plain))


def alike(name: str) -> str:
    """Give one spelling to all names that look the same: kinds of space, quote and dash, NFC and NFD, blanks around."""
    if name.isascii() and name.isprintable():
        return name.replace("`", "'").strip()
    plain = unicodedata.normalize("NFC", _IGNORABLE.sub("", name)).translate(_TWINS)
    return "".join(" " if c.isspace() else c for c in plain).strip()


def similar(name: str, other: str) -> bool:
    """Tell whether two names are easily taken for each other: look-alikes, and other widths of the same letters."""
    if name.isascii() and other.isascii():
        return alike(name) == alike(other)
    return unicodedata.normalize("NFKC", alike(name)) == unicodedata.normalize("NFKC", alike(other))


def escaped(name: str) -> str:
    r"""Write a name so that it can be told from its look-alikes: quoted, beyond ASCII as JSON's `\u` escapes."""
    return json.dumps(name)


def plain(path: str) -> str:
    """Show a real path in a message, whole: what does not print as escapes."""
    return path if path.isprintable() else escaped(path)


def brief(path: str) -> str:
    """Show a path that somebody wrote in a message: at most 240 characters, what does not print as escapes."""
    shown = plain(path)
    return f"{shown[: _SHOWN // 2]}...{shown[-_SHOWN // 2 :]}" if len(shown) > _SHOWN else shown


class Rules:
    """Gitignore patterns, all of which cover.

    Args:
        option: What the developer calls these rules, for the texts.
        rules: One pattern each.

    Raises:
        WiringError: A rule is no pattern, or can never match.
    """

    def __init__(self, option: str, rules: Sequence[str]) -> None:
        if isinstance(rules, str | bytes):
            raise WiringError(f"{option} takes a list of rules: write {option}=[{rules!r}].")
        self._exact: GitIgnoreSpec | None = None
        self._folded: GitIgnoreSpec | None = None
        if not rules:
            return
        for rule in rules:
            if why := _inert(rule):
                raise WiringError(f"The {option} rule {rule!r} {why}.")
        self._exact = _compile(rules)
        self._folded = _compile([fold(rule) for rule in rules])

    def __bool__(self) -> bool:
        return self._exact is not None

    def cover(self, below: str, *, directory: bool) -> bool:
        """Tell whether a rule covers a path.

        Args:
            below: The path below its root, with `/` between the names; empty for the root, which no rule covers.
            directory: Whether it is one, or may be: then a rule with a slash at its end covers it too.
        """
        if self._exact is None or self._folded is None or not below:
            return False
        below = below.replace("\n", "\x01")  # a "." of pathspec's expressions does not match a line break
        spellings = (below, f"{below}/") if directory else (below,)
        return any(self._exact.match_file(s) or self._folded.match_file(fold(s)) for s in spellings)


def _compile(rules: Sequence[str]) -> GitIgnoreSpec:
    from pathspec import GitIgnoreSpec  # noqa: PLC0415  most workspaces have no rules

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # "[[" is an ordinary class in gitignore
        return GitIgnoreSpec.from_lines(rules, backend="simple")


def _inert(rule: object) -> str | None:
    """Say why a rule would never match, or None if it can."""
    if not isinstance(rule, str):
        return "is not a string"
    if not fold(rule).strip() or rule.startswith("#"):
        return r"is empty or a comment; leave it out (a name that begins with # is written \#)"
    if rule.startswith("!"):
        return r"would allow again, which these rules cannot; name what is to be covered (a leading ! is written \!)"
    if "\n" in rule or "\0" in rule:
        return "holds a line break or NUL; give each rule as an item of its own"
    if re.match(r"~(?:$|/|\w+/.)|[A-Za-z]:[\\/]", rule):
        return r"is a path of the machine; rules are taken from each root (a leading ~ is written \~)"
    if re.search(r"\[:\w+:\]", rule):
        return "uses a POSIX character class, which is not supported; write the range out"
    names = rule.rstrip().removesuffix("/").removeprefix("/").split("/")
    if "" in names or "." in names or ".." in names:
        return "can never match: no name below a root is empty, '.' or '..'; write the path from the root without them"
    try:
        kept = [pattern.include for spec in (_compile([rule]), _compile([fold(rule)])) for pattern in spec.patterns]
    except (ValueError, re.error) as error:
        return f"is not a gitignore pattern ({error})"
    return None if all(kept) else "can never match as it is written (are its brackets closed?)"
