"""A unified diff as a value: what results carry, and its text.

How one is made, and the rules that it follows, is told in `_patch`. Results are read by programs that make none.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, NonNegativeInt

if TYPE_CHECKING:
    from unidiff.patch import PatchedFile

_ESCAPES = {
    '"': '\\"',
    "\\": "\\\\",
    "\a": "\\a",
    "\b": "\\b",
    "\t": "\\t",
    "\n": "\\n",
    "\v": "\\v",
    "\f": "\\f",
    "\r": "\\r",
}
_EMPTY = "e69de29"
"""Git's name for empty content."""
MARKER = "\\ No newline at end of file"
DEV_NULL = "/dev/null"


class PatchHunk(BaseModel):
    """Lines that changed, with three unchanged ones around them."""

    model_config = ConfigDict(frozen=True)

    source_start: NonNegativeInt
    """First line before, from 1; of an empty range the line in front of it, 0 at the top."""
    source_length: NonNegativeInt
    """Number of lines before."""
    target_start: NonNegativeInt
    """First line after, as for `source_start`."""
    target_length: NonNegativeInt
    """Number of lines after."""
    section_header: str = ""
    """What may stand behind the numbers; these tools leave it empty."""
    lines: list[str]
    """`" kept"`, `"-gone"`, `"+new"`, without their LF, or the marker behind a line that has none."""


class StructuredPatch(BaseModel):
    """What one change did to one file. `str()` gives the text of it, ending in a line end."""

    model_config = ConfigDict(frozen=True)

    source: str
    """Label of the file before, not quoted: `a/PATH`, or `/dev/null` if there was none."""
    target: str
    """Label of the file after, as for `source`."""
    added: NonNegativeInt
    """Lines put in. An upper bound where `truncated` is true; 0 for binary content."""
    removed: NonNegativeInt
    """Lines taken out, as for `added`."""
    truncated: bool = False
    """True if lines stand here that did not change, or lines that did are missing: the change was too large to compare
    or to show, or is binary."""
    exact: bool = True
    """True if the lines, encoded as the file is, are its bytes, so that applying them gives the file after. False where
    bytes that are no text are shown as escapes, lines are missing, or the encoding is another one after the change."""
    hunks: list[PatchHunk]

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """For Jupyter: as `langchain_filestate.display` shows it."""
        del include, exclude
        from langchain_filestate import display  # noqa: PLC0415  only where somebody looks

        return display.bundle(self)

    def to_unidiff(self) -> PatchedFile:
        """The same as objects of `unidiff`, built and not parsed: names may hold any character."""
        from unidiff.patch import Hunk, Line, PatchedFile  # noqa: PLC0415  not every edit needs it

        binary = not self.hunks and not self.exact
        file = PatchedFile(source=self.source, target=self.target, is_binary_file=binary)
        at = 2  # lines of text so far; unidiff numbers them
        for h in self.hunks:
            part = Hunk(h.source_start, h.source_length, h.target_start, h.target_length, h.section_header)
            at += 1
            old, new = h.source_start, h.target_start
            for left, entry in enumerate(h.lines, 1 - len(h.lines)):
                at += 1
                kind = entry[0]
                here, there = kind in {" ", "-"}, kind in {" ", "+"}
                # the parser numbers no marker that ends a hunk
                number = None if kind == MARKER[0] and not left else at
                part.append(Line(entry[1:] + "\n", kind, old if here else None, new if there else None, number))
                old, new = old + here, new + there
            file.append(part)
        return file

    def __str__(self) -> str:
        source, target = _quoted(self.source), _quoted(self.target)
        if not self.hunks:
            if not self.exact:
                return f"Binary files {source} and {target} differ\n"
            if (self.source == DEV_NULL) == (self.target == DEV_NULL):
                return ""
            made = self.source == DEV_NULL
            name = (self.target if made else self.source)[1:]
            kind, index = ("new", f"0000000..{_EMPTY}") if made else ("deleted", f"{_EMPTY}..0000000")
            return f"diff --git {_quoted('a' + name)} {_quoted('b' + name)}\n{kind} file mode 100644\nindex {index}\n"
        parts = [f"--- {source}{_end_of(source)}\n+++ {target}{_end_of(target)}\n"]
        for h in self.hunks:
            section = f" {h.section_header}" if h.section_header else ""
            parts.append(f"@@ -{h.source_start},{h.source_length} +{h.target_start},{h.target_length} @@{section}\n")
            parts.extend(f"{entry}\n" for entry in h.lines)
        return "".join(parts)


def _quoted(name: str) -> str:
    """A label as git writes it, see "core.quotePath" in its manual: quoted only if it must be; other letters stay."""
    if not re.search(r'["\\]|\s$', name) and name.isprintable():  # GNU patch drops blanks at the end of a bare name
        return name
    return '"' + "".join(map(_escaped, name)) + '"'


def _escaped(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char.isprintable():
        return char
    return "".join(f"\\{byte:03o}" for byte in char.encode("utf-8", "surrogateescape"))


def _end_of(name: str) -> str:
    """A tab behind a name with blanks, as git has it: `patch` would end the name at the blank."""
    return "\t" if " " in name and not name.startswith('"') else ""
