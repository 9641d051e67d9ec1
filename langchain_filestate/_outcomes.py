"""What comes of a change that is on disk: the answer, the views after it, and the same answer again.

All of it is made after the commit, so that little happens between the snapshot and the commit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from langchain_filestate import _outside, _patch, _records, _text
from langchain_filestate._call import Outcome
from langchain_filestate._kind import is_notebook
from langchain_filestate._plan import Facts, cell_changes, cell_size, cells_in
from langchain_filestate._planning import Edit, Write
from langchain_filestate._records import Record, View
from langchain_filestate.errors import Refused
from langchain_filestate.results import EditResult, FailureResult, NotebookResult, WriteResult, parse_result

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_filestate import _disk
    from langchain_filestate._call import Call, Memory, Shop
    from langchain_filestate._celldiff import CellDiff
    from langchain_filestate._history import Change, FileHistory
    from langchain_filestate._plan import Before, Plan
    from langchain_filestate._planning import Operation
    from langchain_filestate._records import Known


class Ready(NamedTuple):
    """A plan that was allowed to go ahead, and what is needed to carry it out.

    Attributes:
        given: The operation as the model asked for it, if a person changed it; else None.
    """

    op: Operation
    before: Before
    plan: Plan
    memory: Memory
    known: Known
    stamp: _disk.Stamp | None
    mode: int | None
    stale: bool
    given: Operation | None


@dataclass(frozen=True, slots=True)
class Formatted:
    """What `after_write` left.

    Attributes:
        data: The bytes; None if there is no file that can be read.
        digest: Their digest; empty if there is none.
        said: What the hook said.
        lost: Why there is no file that can be read.
    """

    data: bytes | None
    digest: str
    said: str | None
    lost: str = ""


def since(history: FileHistory, before: Before, known: Known) -> tuple[bytes | None, Change | None]:
    """The bytes that the agent had read, and the change that made the bytes which are there now; None if unknown."""
    record = known.record
    # With the bytes that are there the record only says that it was told of a change.
    told = record is None or record.digest in {"", before.digest}
    old = history.content(record.digest) if record is not None and not told else None
    return old, _outside.writer(history, before.path, before.digest, record) if before.digest is not None else None


def stands(at: Shop, call: Call, op: Operation, before: Before, plan: Plan, known: Known, *, stale: bool) -> bool:
    """Say whether a change is still what the agent meant, in a file that changed; raises `Refused` for unseen cells."""
    if isinstance(op, (Edit, Write)):
        return plan.unique or not stale
    number = here = next((first for first, _ in plan.touched()), 0)
    record, data = known.record, before.data or b""
    given = _records.load(call.state.get(call.agent, {}).get(before.path))
    if not stale and given is not None and given.digest != before.digest:
        op.check_place(at.history.content(given.digest), data)
    if stale or (record is not None and record.digest != before.digest):
        place = op.stands_in(since(at.history, before, known)[0], data)
        if place is None:
            return not stale  # a call of this very message has changed it
        number = number and place
    if number and at.policy.require_read == "always":
        size = partial(cell_size, data, here)
        _outside.check_cell(known, number, plan.fields["cell_id"], size, at.policy.limits.max_chars)
    return True


def outcome_of(at: Shop, call: Call, ready: Ready, after: str, seq: int, formatted: Formatted | None = None) -> Outcome:
    """What is told of a change that is on disk."""
    before, plan, op = ready.before, ready.plan, ready.op
    out = not all(ready.known.shows(first, last) for first, last in plan.touched())
    notes = plan.notes
    # The texts that are not what the model gave, by whomever they were changed.
    changed = {**call.changed, **(changed_texts(ready.given, op) if ready.given is not None else {})}
    full = True
    if changed:
        told, full = _outside.edited_call(changed, by_user=ready.given is not None)
        notes = (*notes, told)
    cells = None
    if ready.stale:
        out = not ready.known.views
        old, who = since(at.history, before, ready.known)
        notes = (*notes, _outside.also_changed(call, before, old, who, at.policy))
        cells = cell_changes(before.path, old, before.data)
    facts = Facts(after, plan.patch, plan.lines, plan.size, ready.stale, out, ready.given is not None, notes)
    views, units = _views_after(call, ready, cells), plan.units
    if not full:  # the model has seen neither its call nor the note with all of the new text
        views = tuple(view for view in views if view.evidence != call.evidence)
    if formatted is not None:
        facts, views, units = _with_hook(at, call, ready, facts, views, formatted)
    text, result = op.outcome(before, plan, facts)
    hooked = formatted is not None and formatted.digest != after
    # Of a notebook that a hook changed the model is told the cells; its raw text stands nowhere.
    origin = "notebook" if hooked and is_notebook(before.path) else result.kind
    record = Record(facts.after, facts.size, units, views, seq, origin)
    if formatted is not None and formatted.data is None:
        record = Record("", 0, 0, (), seq, result.kind)
    return Outcome(" ".join((text, *facts.notes)), result, before.path, record, told=bool(changed) or hooked)


def changed_texts(given: Operation, done: Operation) -> dict[str, Any]:
    """The arguments in which one operation differs from the one that was given."""
    before = given.args()
    return {name: value for name, value in done.args().items() if before.get(name) != value}


def _views_after(call: Call, ready: Ready, cells: CellDiff | None) -> tuple[View, ...]:
    plan = ready.plan
    if plan.edits is None:
        return (View(1, plan.units, call.evidence),) if plan.units else ()
    if plan.mended:
        return ()
    if not ready.stale:
        old = ready.memory.carried(ready.before.digest)
    elif cells is not None:  # cells that nobody touched are what they were
        old = _records.move(ready.known.views, cells.edits(()), call.evidence)
    else:  # after a recovered stale edit only what is shown counts: the edit itself
        old = ()
    return _records.move(old, plan.edits, call.evidence)


def _with_hook(
    at: Shop, call: Call, ready: Ready, facts: Facts, views: tuple[View, ...], now: Formatted
) -> tuple[Facts, tuple[View, ...], int]:
    """What is told when a hook ran after the write: its words, and what it changed; the views, and of how much."""
    if now.said:
        facts = facts._replace(notes=(*facts.notes, now.said))
    if now.digest == facts.after:
        return facts, views, ready.plan.units
    if now.data is None:
        told = f"After the write the project's own hook took the file away: {now.lost}"
        gone = _patch.patch_bytes(ready.before.path, ready.before.data, None, at.policy.encodings)
        return facts._replace(after="", patch=gone, notes=(*facts.notes, told)), (), 0
    path, encodings, most = ready.before.path, at.policy.encodings, at.policy.limits.max_diff_lines
    lines, cells = _lines_of(now.data, encodings), cells_in(path, now.data)
    difference = cell_changes(path, ready.plan.after, now.data)
    if difference is not None:
        said, shown = difference.text(most)
        views = _records.move(views, difference.edits(shown), call.evidence)
    else:
        own = _patch.patch_bytes(path, ready.plan.after, now.data, encodings)
        said, full = _outside.diff_text(own, most)
        said = said or str(own).rstrip()
        same_unit = full and cells is None and ready.plan.cells is None
        views = _records.move(views, _outside.edits_of(own), call.evidence) if same_unit else ()
    facts = facts._replace(
        after=now.digest,
        patch=_patch.patch_bytes(path, ready.before.data, now.data, encodings),
        lines=lines,
        size=len(now.data),
        notes=(*facts.notes, f"After the write it was also changed by the project's own hook:\n{said}"),
    )
    return facts, views, lines if cells is None else cells


def _lines_of(data: bytes, encodings: Sequence[str]) -> int:
    try:
        return _text.profile(data, encodings).lines
    except Refused:  # no text any more
        return 0


def answer_of(call: Call, outcome: Outcome) -> dict[str, Any]:
    """An answer that cannot be planned again, for the history; its own evidence stands as None."""
    record = outcome.record
    views = record.views if record is not None else ()
    return {
        "text": outcome.content,
        "artifact": outcome.result.model_dump(mode="json"),
        "digest": record.digest if record is not None else "",
        "size": record.size if record is not None else 0,
        "lines": record.lines if record is not None else 0,
        "views": [[v.first, v.last, None if v.evidence == call.evidence else v.evidence] for v in views],
    }


def answered(call: Call, change: Change, seq: int) -> Outcome:
    """The answer that the history kept."""
    stored = change.result
    result = parse_result(stored["artifact"])
    if not isinstance(result, EditResult | WriteResult | NotebookResult):  # pragma: no cover  nothing else is stored
        raise TypeError(f"The history holds no answer for {change.id}.")
    views = tuple(View(first, last, call.evidence if name is None else name) for first, last, name in stored["views"])
    record = Record(stored.get("digest", result.after), stored["size"], stored["lines"], views, seq, result.kind)
    return Outcome(stored["text"], result, change.path, record)


def event_of(call: Call, outcome: Outcome) -> dict[str, Any]:
    """What is streamed of a change, for a user interface."""
    patch = getattr(outcome.result, "patch", None)
    return {
        "type": "file_change",
        "path": outcome.path,
        "kind": outcome.result.kind,
        "added": patch.added if patch is not None else 0,
        "removed": patch.removed if patch is not None else 0,
        "tool_call_id": call.call_id,
    }


def refusal(refused: Refused, path: str) -> Outcome:
    """The outcome of a refusal.

    Args:
        refused: Why.
        path: Real, absolute path; as given where it could not be resolved.
    """
    shown = _text.show(path)[:300].replace("\0", "\\0")
    message = _text.show(refused.message)  # a hook's words, or a person's
    result = FailureResult(file_path=shown, code=refused.code, message=message, lines=refused.lines)
    stale = {"digest": refused.digest, "full": refused.full} if isinstance(refused, _outside.Stale) else None
    return Outcome(message, result, stale=stale)
