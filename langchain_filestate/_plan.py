"""What a change will do, before it is done, and what came of it: the values that planning and carrying out share."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from langchain_filestate import _disk, _media, _text
from langchain_filestate._kind import is_notebook
from langchain_filestate._match import Spliced
from langchain_filestate._rules import plain
from langchain_filestate.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from langchain_filestate._celldiff import CellDiff
    from langchain_filestate._hunks import StructuredPatch
    from langchain_filestate._patch import LineEdit
    from langchain_filestate._policy import Policy
    from langchain_filestate._sums import Sum

_QUOTED = 60
"""Characters of a placeholder that its refusal quotes."""


class Before(NamedTuple):
    """The file that a change is planned on.

    Attributes:
        path: Real, absolute path.
        data: The bytes on disk; None if there is no file.
        digest: Their SHA-256 in hex; None if there is no file.
        format: How the bytes are text; that of a new file if there is none.
        marks: Line ends before each block of them, as `Profile` has them, if they have been counted.
        sum: What gave the digest, if the file is large.
    """

    path: str
    data: bytes | None
    digest: str | None
    format: _text.Format = _text.UTF8
    marks: tuple[int, ...] = ()
    sum: Sum | None = None


@dataclass(frozen=True)
class Plan:
    """What a change will do. The patch and the moved lines are made when asked for, as a rule after the commit.

    Attributes:
        made: The new bytes; of a large file what they are made of.
        make_patch: Makes the difference.
        make_edits: Tells which lines are replaced, in lines of the old file; None if the whole file is new.
        lines: Lines of the new file.
        cells: Cells of the new file, if it is a notebook; these are what its views count.
        mended: The file was no notebook before and is one now, so that views of its lines are none of its cells.
        unique: Each edit matched at one place.
        fields: What the result says beyond what every change does.
        notes: Sentences for the model after the first one.
    """

    made: bytes | Spliced
    make_patch: Callable[[], StructuredPatch]
    make_edits: Callable[[], tuple[LineEdit, ...]] | None
    lines: int
    cells: int | None = None
    mended: bool = False
    unique: bool = True
    fields: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @cached_property
    def after(self) -> bytes:
        """The new bytes."""
        return bytes(self.made)

    @property
    def content(self) -> bytes | Sequence[bytes | memoryview]:
        """The new bytes, or the pieces to write one after the other."""
        return self.made.pieces if isinstance(self.made, Spliced) else self.made

    @property
    def size(self) -> int:
        """How many bytes there will be."""
        return len(self.made)

    def changes(self, data: bytes | None) -> bool:
        """Whether the new bytes are others than these, on which it was planned."""
        return isinstance(self.made, Spliced) or self.made != data  # an edit that changes nothing has been refused

    def digest(self, before: Before) -> str:
        """SHA-256 of the new bytes, in hex."""
        if before.sum is not None and isinstance(self.made, Spliced):
            return before.sum.spliced(self.made.pieces)
        return _disk.digest(self.after)

    @property
    def units(self) -> int:
        """How much there is to be seen of the new file: lines, or cells."""
        return self.lines if self.cells is None else self.cells

    @cached_property
    def patch(self) -> StructuredPatch:
        """The difference."""
        return self.make_patch()

    @cached_property
    def edits(self) -> tuple[LineEdit, ...] | None:
        """Which lines are replaced; None if the whole file is new."""
        return None if self.make_edits is None else self.make_edits()

    def touched(self) -> tuple[tuple[int, int], ...]:
        """The ranges of old lines that are replaced or whose part is."""
        return tuple((e.first, e.first + e.old_count - 1) for e in self.edits or () if e.old_count)


class Facts(NamedTuple):
    """What came of a plan when it was carried out.

    Attributes:
        after: Digest of the bytes that are there now.
        patch: The whole difference, with what `after_write` changed.
        lines: Lines now.
        size: Bytes now.
        stale: The file had changed since it was read.
        out_of_context: The lines that matched stand in no view that counts.
        user_modified: A person changed the texts.
        notes: More sentences for the model.
    """

    after: str
    patch: StructuredPatch
    lines: int
    size: int
    stale: bool = False
    out_of_context: bool = False
    user_modified: bool = False
    notes: tuple[str, ...] = ()


def text_before(path: str, data: bytes, digest: str, policy: Policy, found: Sum | None = None) -> Before:
    """A file as it is; raises `Refused` for one that is no text."""
    if _media.kind_of(data) is not None:  # some PDFs are made of characters alone
        raise Refused(f"This is no text but a {_media.describe(data)}: it can be shown and not changed.", code="binary")
    return Before(path, data, digest, *_text.judged(data, policy.encodings, digest), found)


def cells_in(path: str, data: bytes | Spliced) -> int | None:
    """How many cells a file has; None if it is no notebook by its name and by its content: a broken one is text."""
    if not is_notebook(path):
        return None
    from langchain_filestate import _notebook  # noqa: PLC0415  few files are one

    try:
        return len(_notebook.parse(bytes(data)).cells)
    except Refused:
        return None


def cell_size(data: bytes, number: int) -> int:
    """How many characters the source of a cell of a notebook has; cells count from 1."""
    from langchain_filestate import _notebook  # noqa: PLC0415  few files are one

    return len(_notebook.parse(data).cells[number - 1].source)


def cell_changes(path: str, old: bytes | None, new: bytes | None) -> CellDiff | None:
    """What became of the cells of a notebook; None if one of the two is none, or is not known."""
    if not is_notebook(path):
        return None
    from langchain_filestate import _celldiff  # noqa: PLC0415  few files are one

    return _celldiff.between(path, old, new)


def line_count(data: bytes, fmt: _text.Format) -> int:
    """How many lines some bytes are."""
    return lines_of(_text.count_newlines(data, fmt), data, fmt)


def lines_of(ends: int, data: bytes | Spliced, fmt: _text.Format) -> int:
    """How many lines some bytes with so many line ends are."""
    return ends + (len(data) > len(fmt.bom) and not data.endswith(fmt.newline))


def refuse_placeholders(
    before: str,
    after: str,
    policy: Policy,
    *,
    where: str,
    advice: str,
    in_file: Callable[[], frozenset[str]] | None = None,
) -> None:
    """Refuse a new text in which a placeholder stands in for lines of the old one.

    Args:
        before: The old text.
        after: The new text.
        policy: May allow it.
        where: In which text the lines are counted, for the message.
        advice: What to do instead.
        in_file: Gives those of the whole file, where the texts are only a part of it: it may have more of such lines,
            and then they are its subject.
    """
    if policy.allow_placeholders:
        return
    from langchain_filestate import _omission  # noqa: PLC0415  its patterns take long to compile; reading needs none

    found = _omission.find_placeholders(before, after)
    if found and in_file is not None:
        found = [(number, line) for number, line in found if line in in_file()]
    if not found:
        return
    quoted = "; ".join(f"line {number}: {_shortened(line)}" for number, line in found[:3])
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""  # noqa: PLR2004  as many as quoted
    raise Refused(
        f"{where} stands in for existing lines with a placeholder ({quoted}{more}). {advice}",
        code="placeholder",
        lines=[number for number, _ in found],
    )


def no_arguments() -> Refused:
    """The refusal of a call that a person changed into one that is none."""
    return Refused(
        "The user changed your call into one that this tool cannot carry out; the file was not changed. "
        "Ask them what they meant, or make the call again.",
        code="bad_arguments",
    )


def _shortened(line: str) -> str:
    return _text.show(line if len(line) <= _QUOTED else f"{line[:_QUOTED]}...")


def created_text(path: str, lines: int, size: int) -> str:
    """What the model is told about a new file."""
    return f"File created successfully at: {plain(path)} (wrote {lines} lines, {size} bytes)."
