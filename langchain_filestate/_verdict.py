"""What an agent's reading allows: whether a change may go ahead on the bytes that are on disk.

The record of the file decides, with the views that count. Calls of one message pass records to each other in the
process (`_siblings`); where that is lost, after a crash or a long wait for a person, the history stands in: what calls
of this very message wrote, and what a person was asked about, was allowed then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_filestate import _outside
from langchain_filestate._outcomes import since
from langchain_filestate._plan import cells_in
from langchain_filestate._planning import Edit, Write
from langchain_filestate.errors import Refused

if TYPE_CHECKING:
    from langchain_filestate._call import Call, Memory, Shop
    from langchain_filestate._history import Change
    from langchain_filestate._plan import Before
    from langchain_filestate._planning import Operation
    from langchain_filestate._records import Known, Record


def check_known(at: Shop, call: Call, op: Operation, before: Before, memory: Memory) -> bool:
    """Refuse what the agent's reading does not allow.

    Args:
        at: History and policy.
        call: Who wants to change the file.
        op: What they want.
        before: The file as it is.
        memory: What they know of it.

    Returns:
        True if the change goes ahead on bytes that the agent has not seen.

    Raises:
        Refused: `not_read`, `stale`, `partially_read`, `not_in_context`, `is_notebook`.
    """
    if before.data is None:
        return False
    known = memory.known(before.digest)
    record, required = known.record, at.policy.require_read
    fresh = record is not None and record.digest == before.digest
    if isinstance(op, Write) and required != "never" and cells_in(before.path, before.data) is not None:
        own = fresh and record is not None and record.origin == "write"  # all of the raw text stands in their call
        if not own:
            raise Refused(
                "This notebook exists, and its raw text has not been shown to you: it is read and changed as cells. "
                "Use edit_notebook.",
                code="is_notebook",
            )
    needs_read = required == "always" or (op.whole and required == "overwrite")
    made = [] if fresh else _by_siblings(at, call, record, before)
    if made:
        _check_own(at, call, op, before, memory, made, needs_read=needs_read)
        return False
    asked = (not fresh or known.announced_only()) and _was_asked(call, op, before)
    if record is None or (op.whole and known.announced_only()):
        if needs_read and not asked:
            raise Refused(_outside.NOT_READ, code="not_read")
        return False
    if not fresh and not asked:
        if op.whole or not at.policy.recover_stale:
            raise stale_refusal(at, call, before, known)
        return True
    if op.whole and needs_read:
        _outside.check_overwrite(known, memory.pending)
    told = not op.whole and known.announced_only() and not asked
    if told and not at.policy.recover_stale:
        raise stale_refusal(at, call, before, known)
    return told


def _by_siblings(at: Shop, call: Call, record: Record | None, before: Before) -> list[Change]:
    """What calls of this very message wrote since the record, the newest first; empty if others wrote since as well."""
    made: list[Change] = []
    place = before.digest
    while call.message_id is not None and (record is None or place != record.digest):
        change = at.history.writer(before.path, place, made[-1].seq if made else None)
        if change is None or not _is_sibling(change, call):
            return made if record is None else []
        made.append(change)
        place = change.before
        if place is None and record is None:
            break
    return made


def _is_sibling(change: Change, call: Call) -> bool:
    """True if a call of the same message made it, in the same run: a branch that was left is another one."""
    theirs = change.result.get("message_id"), change.agent, change.thread_id, change.checkpoint_id
    return theirs == (call.message_id, call.agent, call.thread_id, call.checkpoint_id)


def _check_own(
    at: Shop, call: Call, op: Operation, before: Before, memory: Memory, made: list[Change], *, needs_read: bool
) -> None:
    """Refuse to change what calls of this very message made, where that takes more than they hold."""
    known = memory.known(before.digest)
    if isinstance(op, Edit) or not needs_read or _hold_all(made):
        return
    if known.record is None:
        if _was_asked(call, op, before):
            return
        raise Refused(_outside.NOT_READ, code="not_read")
    if op.whole:
        if not all(map(_is_the_models, made)):
            raise stale_refusal(at, call, before, known)
        _outside.check_overwrite(known, memory.pending)


def _was_asked(call: Call, op: Operation, before: Before) -> bool:
    """True if a person was asked about this: it had been read then, by a call of the message whose record is lost."""
    return not op.whole and call.ask is not None and call.ask.asked(before.path, before.digest)


def _is_the_models(change: Change) -> bool:
    """False for what a hook, a person or a middleware made of a change: that stands in no call."""
    return change.result.get("own") is True


def _hold_all(made: list[Change]) -> bool:
    """True if the calls that made these changes hold all of the text: a write of the whole file, and edits since."""
    for change in made:
        if not _is_the_models(change):
            break
        if change.tool == "write_file" or change.before is None:
            return True
    return False


def stale_refusal(at: Shop, call: Call, before: Before, known: Known) -> Refused:
    """The refusal of a change to a file that is not what the agent read."""
    return _outside.stale(call, before, *since(at.history, before, known), at.policy)
