"""Who has seen what of which file, and what that is worth now.

The idea: the records say what each agent was shown, the disk says what is there, the messages say what is still before
the model; from the three follows one word for each file. It is the same judgement that the tools make before a write,
so the table shows beforehand what they would say.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from langchain_filestate import _disk, _html, _records
from langchain_filestate.errors import Refused
from langchain_filestate.state import LEFT_OUT, Messages, channel_of, value_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from typing import Any

    from langchain_filestate._records import Record, View
    from langchain_filestate.tools import FileToolkit

Standing = Literal["fresh", "partial", "stale", "out of context", "gone", "unknown"]
MEANING: dict[Standing, tuple[str, str]] = {
    "fresh": ("good", "all of it seen, as it is now"),
    "partial": ("info", "a part of it seen, as it is now"),
    "stale": ("warn", "seen as it was; it is another now"),
    "out of context": ("warn", "seen, but the text is no longer in the messages"),
    "gone": ("bad", "there is no such file any more"),
    "unknown": ("bad", "it cannot be read now"),
}
"""For each standing its colour and what it means."""
_BAR = 80
_WIDE = 44


@dataclass(frozen=True, slots=True)
class Seen:
    """What one agent knows of one file.

    Attributes:
        agent: Its name.
        path: Real and absolute.
        standing: What that is worth.
        record: The record.
        views: Those views that count.
        by: Who changed the file since, as far as it is known; "" where it did not change or nobody knows.
    """

    agent: str
    path: str
    standing: Standing
    record: Record
    views: tuple[View, ...]
    by: str

    def lines(self) -> str:
        """The lines that count, in words."""
        if not self.record.digest or not self.record.lines:
            return "the file is empty" if self.record.digest else "-"
        unit = "cells" if self.path.endswith(".ipynb") else "lines"
        if _records.covers(self.views, 1, self.record.lines):
            return f"all {self.record.lines} {unit}"
        ranges = ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in _ranges(self.views))
        return f"{unit} {ranges} of {self.record.lines}" if ranges else f"none of {self.record.lines} {unit}"


def _ranges(views: Sequence[View]) -> list[tuple[int, int]]:
    """The lines of the views, each once."""
    ranges: list[tuple[int, int]] = []
    for first, last, _ in sorted(views):
        if ranges and first <= ranges[-1][1] + 1:
            ranges[-1] = ranges[-1][0], max(last, ranges[-1][1])
        else:
            ranges.append((first, last))
    return ranges


def look(state: Any, toolkit: FileToolkit) -> list[Seen]:
    """What all agents of a state know, by agent and path; None as the state: what is known outside any graph."""
    if state is None:
        channel, context = toolkit.records, Messages(None)
    else:
        channel = channel_of(state) or {}
        context = Messages(value_of(state, "messages"), value_of(state, LEFT_OUT) or ())
    found = []
    for agent, records in sorted(channel.items()):
        for path, value in sorted(records.items()):
            record = _records.load(value)
            if record is not None:
                found.append(_judge(agent, path, record, context.alive, toolkit))
    return found


def _judge(
    agent: str, path: str, record: Record, alive: Callable[[Collection[str]], Collection[str]], toolkit: FileToolkit
) -> Seen:
    digest = _on_disk(path, toolkit)
    living = alive({view.evidence for view in record.views}) if record.views else ()
    views = _records.tidy(record.views, living)
    standing: Standing
    by = ""
    if digest is None:
        standing = "unknown"
    elif not digest:
        standing = "gone"
    elif digest != record.digest:
        standing = "stale"
        who = toolkit.history.writer(path, digest)
        by = "" if who is None else (who.agent or {"shell": "a shell command"}.get(who.tool, f"a {who.tool}"))
    elif _records.covers(views, 1, record.lines):
        standing = "fresh"
    elif views:
        standing = "partial"
    elif record.views:
        standing = "out of context"
    else:  # told that it changed, but not how
        standing = "stale"
    return Seen(agent, path, standing, record, views if standing in {"fresh", "partial"} else record.views, by)


def _on_disk(path: str, toolkit: FileToolkit) -> str | None:
    """The digest of what is on disk; "" if there is nothing, None if that cannot be told."""
    known = _disk.known_digest(path)
    if known is not None:
        return known
    try:
        location = toolkit.workspace.at(path, write=False)
        if location.path != path:
            return None
        with toolkit.workspace.open(location) as target:
            return _disk.digest_of(target) or ""
    except Refused as refused:
        return "" if refused.code == "not_found" else None


def view(found: Sequence[Seen], name: Callable[[str], str]) -> _html.Shown:
    """The table.

    Args:
        found: What `look` gave.
        name: A path as it is to be shown.
    """
    if not found:
        note = "No agent has seen any file."
        return _html.Shown(_html.box(f'<div class="fs-body fs-soft">{note}</div>'), note)
    columns = ("agent", "file", "seen", "is", "which means", "shown by")
    rows, texts = [], []
    for one in found:
        colour, meaning = MEANING[one.standing]
        if one.by:
            meaning = f"{meaning} (changed by {one.by})"
        rows.append(
            (
                _html.escaped(one.agent),
                f'<span class="fs-path">{_html.escaped(name(one.path))}</span>',
                f'<span class="fs-line">{_bar(one)}{_html.escaped(_cut(one.lines()))}</span>',
                _html.span(colour, one.standing),
                _html.escaped(meaning),
                _html.escaped(one.record.origin),
            )
        )
        texts.append((one.agent, name(one.path), one.lines(), one.standing, meaning, one.record.origin))
    return _html.Shown(_html.box(_html.table(columns, rows)), _html.text_table(columns, texts))


def _cut(text: str) -> str:
    return text if len(text) <= _WIDE else f"{text[: _WIDE - 4]} ..."


def _bar(one: Seen) -> str:
    """How much of the file was seen, and where."""
    total = one.record.lines
    if not total:
        return ""
    ranges = "".join(
        f'<rect class="fs-seen" x="{(a - 1) * _BAR / total:.1f}" y="0" width="{max((b - a + 1) * _BAR / total, 1):.1f}"'
        ' height="8"/>'
        for a, b in _ranges(one.views)
    )
    return (
        f'<svg class="fs-bar" width="{_BAR}" height="8" aria-hidden="true">'
        f'<rect class="fs-all" x="0" y="0" width="{_BAR}" height="8"/>{ranges}</svg>'
    )
