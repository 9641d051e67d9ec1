"""Changes, records and threads for people: in Jupyter as HTML and SVG, elsewhere as text.

Each function takes a value and gives a `Shown`: Jupyter draws it, `print` prints its plain text, `.html` and `.svg` are
to be saved or embedded. Results, patches, rewind plans and the history show themselves the same way when they are the
last line of a cell.

Everything is escaped, nothing runs a script or loads anything, and the colours follow a light or dark page. Paths below
the working directory are shown relative to it. With the extra `display` (Pygments) diffs have the colours of their
language.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from langchain_filestate import _diffview, _events, _html, _seenview, _timeline
from langchain_filestate._diffview import MAX_LINES
from langchain_filestate._history import FileHistory
from langchain_filestate._html import Shown
from langchain_filestate._hunks import StructuredPatch
from langchain_filestate._rewind import RewindEntry, RewindPlan, RewindReport
from langchain_filestate._workspace import Workspace
from langchain_filestate.errors import WiringError
from langchain_filestate.results import (
    EditResult,
    FailureResult,
    NotebookResult,
    ReadResult,
    WriteResult,
    parse_result,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from langchain_filestate._events import Event
    from langchain_filestate.tools import FileToolkit

__all__ = [
    "Shown",
    "show",
    "show_history",
    "show_patch",
    "show_records",
    "show_result",
    "show_rewind",
    "show_timeline",
]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NULL = "/dev/null"
_MOST_CHANGES = 100


def _here() -> str:
    """The working directory with a slash behind it; "" if it is gone."""
    try:
        return f"{Workspace('.').root}/".replace("//", "/")
    except WiringError:
        return ""


def _name(path: str, here: str | None = None) -> str:
    """A path as it is shown: relative to the working directory if it is below it."""
    here = _here() if here is None else here
    return path[len(here) :] if here and path.startswith(here) and path != here else path


def _said(text: str) -> str:
    """What a model was told, its paths shown as elsewhere."""
    here = _here()
    return text.replace(here, "") if len(here) > 1 else text


def _path_of(patch: StructuredPatch) -> str:
    """The path that a patch is of; its labels have lost the slash in front."""
    label = patch.source if patch.target == _NULL else patch.target
    path = label[2:] if label[:2] in {"a/", "b/"} else label
    short = _name(f"/{path}")
    return path if short == f"/{path}" else short


def _counts(patch: StructuredPatch) -> tuple[str, str]:
    about = "≈" if patch.truncated else ""
    markup = f"{_html.span('good', f'{about}+{patch.added}')} {_html.span('bad', f'{about}-{patch.removed}')}"
    return markup, f"{about}+{patch.added} {about}-{patch.removed}"


def _head(*pieces: tuple[str, str]) -> tuple[str, str]:
    """A heading, as markup and as text, from pieces of colour and text; "path" is a colour here."""
    markup = " ".join(_html.span(kind, text) for kind, text in pieces if text)
    return f'<div class="fs-head">{markup}</div>', " ".join(_html.clean(text) for _, text in pieces if text)


def show_patch(
    patch: StructuredPatch, *, side_by_side: bool = False, name: str | None = None, max_lines: int = MAX_LINES
) -> Shown:
    """A change to one file: line numbers before and after, the words that changed marked.

    Args:
        patch: From a result, a plan, or `PlannedChange.patch`.
        side_by_side: True: before and after in two columns.
        name: The file's name as it is shown, and by which its language is known; None: the patch's own.
        max_lines: Most lines of the diff; how many more there are is said.
    """
    return _patch(patch, side_by_side=side_by_side, name=name, max_lines=max_lines)


def _patch(
    patch: StructuredPatch, *, side_by_side: bool = False, name: str | None = None, max_lines: int = MAX_LINES,
    styled: bool = True,
) -> Shown:  # fmt: skip
    shown = _path_of(patch) if name is None else name
    inner = _diffview.diff(patch, shown, side_by_side=side_by_side, max_lines=max_lines)
    done = {_NULL: "created"}.get(patch.source, "") or {_NULL: "deleted"}.get(patch.target, "")
    counts, counts_text = _counts(patch)
    head = (
        f'<div class="fs-head"><span class="fs-path">{_html.escaped(shown)}</span> {counts} {_html.escaped(done)}</div>'
    )
    text = f"{_html.clean(shown)}  {counts_text} {done}".rstrip()
    return Shown(_html.box(head, inner.html, styled=styled), f"{text}\n{inner.text}")


def show_result(
    result: ReadResult | EditResult | WriteResult | NotebookResult | FailureResult, *, side_by_side: bool = False
) -> Shown:
    """What a tool call came to.

    Args:
        result: From `parse_result(message)`.
        side_by_side: As for `show_patch`.
    """
    name = _name(result.file_path)
    if isinstance(result, FailureResult):
        lines = ", ".join(map(str, result.lines))
        where = f"(line {lines})" if lines else ""
        head, text = _head(("bad", "refused"), ("path", name), ("soft", result.code), ("soft", where))
        said = _said(result.message)
        return Shown(_html.box(head, _html.message(said)), f"{text}\n{_html.clean(said)}")
    if isinstance(result, ReadResult):
        head, text = _head(("info", "read"), ("path", name), ("soft", _read_as(result)))
        return Shown(_html.box(head), text)
    head, text = _head(("good", result.kind), ("path", name), ("soft", ", ".join(_facts(result))))
    inner = _diffview.diff(result.patch, name, side_by_side=side_by_side)
    counts, counts_text = _counts(result.patch)
    head = head.removesuffix("</div>") + f" {counts}</div>"
    return Shown(_html.box(head, inner.html), f"{text}  {counts_text}\n{inner.text}")


def _read_as(result: ReadResult) -> str:
    unit = "pages" if result.encoding is None else "cells" if result.file_path.endswith(".ipynb") else "lines"
    lines = f"{unit} {result.first_line}-{result.last_line} of {result.total_lines}"
    facts = [f"all {result.total_lines} {unit}" if result.complete else lines]
    facts += ["unchanged since the last read"] * result.unchanged
    facts += [result.encoding] if result.encoding else []
    facts += ["with BOM"] * result.bom
    facts += [result.newline.upper()] if result.newline != "none" else []
    facts += ["no newline at the end"] * (result.encoding is not None and result.size > 0 and not result.final_newline)
    return ", ".join([*facts, f"{result.size} bytes"])


def _facts(result: EditResult | WriteResult | NotebookResult) -> list[str]:
    said = {
        "created": "created",
        "stale_recovered": "on bytes that had changed since the read",
        "content_not_in_model_context": "text that was not in context",
        "user_modified": "as the user changed it",
        "already_applied": "was already applied",
        "newline_changed": "other line endings",
    }
    facts = [text for field, text in said.items() if getattr(result, field, False)]
    if isinstance(result, NotebookResult):
        facts.insert(0, f"{result.edit_mode} cell {result.cell_id}")
    return facts


_DOES = {"restore": "put back", "delete": "delete", "recreate": "create again"}
_DID = {"restore": "was put back", "delete": "was deleted", "recreate": "was created again"}


def show_rewind(plan: RewindPlan | RewindReport | RewindEntry) -> Shown:
    """What a rewind would do, or did, file by file with its diff.

    Args:
        plan: From `toolkit.plan_rewind` or `toolkit.rewind`.
    """
    if isinstance(plan, RewindReport):
        entries = [(entry, _DID[entry.action], True) for entry in plan.restored]
        entries += [(entry, "left alone", False) for entry in plan.conflicts]
        title = f"Rewind: {len(plan.restored)} restored, {len(plan.conflicts)} left alone"
    else:
        listed = plan.entries if isinstance(plan, RewindPlan) else (plan,)
        entries = [(entry, _DOES[entry.action], entry.conflict is None) for entry in listed]
        held = sum(entry.conflict is not None for entry in listed)
        title = f"Plan of a rewind: {len(listed) - held} to do, {held} in conflict"
    head, text = _head(("info", title))
    body, lines = [], [text]
    for entry, done, fine in entries:
        name = _name(entry.file_path)
        line = f"{_html.span('good' if fine else 'warn', done)} {_html.span('path', name)}"
        words = f"{done} {_html.clean(name)}"
        if entry.patch is not None:
            counts, counts_text = _counts(entry.patch)
            line, words = f"{line} {counts}", f"{words}  {counts_text}"
        if entry.conflict is not None:
            line += f'<div class="fs-soft">{_html.escaped(entry.conflict)}</div>'
            words += f"\n  {_html.clean(entry.conflict)}"
        if entry.patch is None:
            body.append(f'<div class="fs-body">{line}</div>')
        else:
            inner = _diffview.diff(entry.patch, name)
            body.append(_html.details(line, inner.html, opened=len(entries) == 1))
            words += f"\n{inner.text}"
        lines.append(words)
    if not entries:
        note = "Every file is as it was; there is nothing to do." if isinstance(plan, RewindPlan) else "Nothing."
        body.append(f'<div class="fs-body fs-soft">{note}</div>')
        lines.append(note)
    return Shown(_html.box(head, *body), "\n".join(lines))


def show_history(
    history: FileHistory, thread_id: str | None = None, path: str | None = None, *, times: bool = True
) -> Shown:
    """The changes that a history holds, the newest hundred, each with its diff where the bytes are known.

    Args:
        history: From `toolkit.history`.
        thread_id: Only of this thread; None for all.
        path: Only of this real, absolute path; None for all.
        times: False: without the times (UTC), so that the same changes look the same.
    """
    changes = history.changes(thread_id, path)
    left = len(changes) - _MOST_CHANGES
    columns = ["", *(["when (UTC)"] if times else []), "thread", "who", "tool", "change"]
    rows, texts, here = [], [], _here()
    for number, change in list(enumerate(changes, 1))[-_MOST_CHANGES:]:
        name, patch = _name(change.path, here), _events.between(history, change.path, change.before, change.after)
        cells = [str(number), *([_moment(change.seq)] if times else [])]
        cells += [change.thread_id or "", change.agent or "", change.tool]
        line, words = _html.span("path", name), name
        if patch is not None:
            counts, counts_text = _counts(patch)
            line, words = f"{line} {counts}", f"{words}  {counts_text}"
            line = _html.details(line, _html.box(_diffview.diff(patch, name).html, styled=False))
        rows.append((*map(_html.escaped, cells), line))
        texts.append((*cells, words))
    title = "1 change" if len(changes) == 1 else f"{len(changes)} changes"
    head, text = _head(("info", title), ("soft", f"the newest {_MOST_CHANGES} are shown" if left > 0 else ""))
    if not changes:
        return Shown(_html.box(head), text)
    return Shown(_html.box(head, _html.table(columns, rows)), f"{text}\n{_html.text_table(columns, texts)}")


def _moment(seq: int) -> str:
    return (_EPOCH + timedelta(microseconds=seq // 1000)).strftime("%Y-%m-%d %H:%M:%S")


def show_records(state: Any, toolkit: FileToolkit) -> Shown:
    """Who has seen what of which file, and whether that still counts.

    `fresh`: all of it is before the model, and it is what is on disk. `partial`: a part of it. `stale`: the file is
    another one now. `out of context`: the messages that showed it are gone. `gone`: there is no such file.

    Args:
        state: The graph's state, or what `graph.get_state` returned; "before the model" is judged by its messages.
            None: what is known outside of any graph.
        toolkit: The toolkit of the agent; files that it may not read are `unknown`.
    """
    values = getattr(state, "values", None)
    if values is not None and not callable(values):
        state = values
    here = _here()
    return _seenview.view(_seenview.look(state, toolkit), lambda path: _name(path, here))


def show_timeline(
    thread: Any,
    history: FileHistory | None = None,
    thread_id: str | None = None,
    *,
    others: Iterable[Any] = (),
    columns: int = _timeline.COLUMNS,
) -> Shown:
    """What happened in a thread: agents as lanes, with reads, edits, refusals, outside changes, notices and rewinds.

    Args:
        thread: What `graph.get_state` returned, or a state, or a list of messages.
        history: From `toolkit.history`: adds rewinds, changes that no message tells of, and what was changed outside.
            None: only what the messages say.
        thread_id: The thread's id, where `thread` does not say it.
        others: More threads, whose agents work on the same files.
        columns: Marks side by side before the picture goes on below; at least 1.

    Returns:
        The picture with a list of its steps; `.svg` is the picture alone, a file of its own.
    """
    threads = [_events.thread_of(thread, thread_id), *(_events.thread_of(one, None) for one in others)]
    here = _here()
    found = _events.events(threads, history)
    return _timeline.view(found, lambda path: _name(path, here), _event, max(columns, 1))


def _event(event: Event) -> Shown | None:
    """What an event changed or said."""
    if event.patches:
        shown = [_patch(patch, name=_name(path), styled=False) for path, patch in event.patches]
        return Shown("".join(one.html for one in shown), "\n".join(one.text for one in shown))
    if event.text:
        said = _said(event.text)
        return Shown(_html.box(_html.message(said), styled=False), _html.clean(said))
    return None


def show(value: Any) -> Shown:
    """Any of the values that this package knows how to show.

    Args:
        value: A patch, a result, a tool message of these tools, a rewind plan, entry or report, or a history.

    Raises:
        TypeError: It is something else.
    """
    if isinstance(value, Shown):
        return value
    if isinstance(value, StructuredPatch):
        return show_patch(value)
    if isinstance(value, RewindPlan | RewindReport | RewindEntry):
        return show_rewind(value)
    if isinstance(value, FileHistory):
        return show_history(value)
    result = value if isinstance(value, _RESULTS) else parse_result(value)
    if result is None:
        raise TypeError(f"There is nothing to show of a {type(value).__name__}.")
    return show_result(result)


_RESULTS = (ReadResult, EditResult, WriteResult, NotebookResult, FailureResult)


def bundle(value: Any) -> dict[str, str]:
    """What the values' own `_repr_mimebundle_` gives to Jupyter."""
    return show(value)._repr_mimebundle_()
