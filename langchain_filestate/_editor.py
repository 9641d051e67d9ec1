"""The use cases, one body each: read, and change (edit, several edits, write, notebook).

A change is planned without side effects and then carried out. The order is always the same: path and permission;
applied already?; record and freshness; plan; `before_write`; approval; then, under the path's lock, freshness again,
the change into the history, commit, `after_write`, record. When freshness fails under the lock, the lock is let go
and the plan made anew, so that under contention little happens between the snapshot and the commit.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from langchain_filestate import _disk, _kind, _outside, _reading, _text
from langchain_filestate._call import Memory, Outcome
from langchain_filestate._history import Change, FileHistory, next_seq
from langchain_filestate._outcomes import (
    Formatted,
    Ready,
    answer_of,
    answered,
    changed_texts,
    event_of,
    outcome_of,
    refusal,
    stands,
)  # fmt: skip
from langchain_filestate._plan import Before, cells_in, text_before
from langchain_filestate._planning import Edit, Write
from langchain_filestate._policy import PlannedChange, answered_at_once
from langchain_filestate._rules import plain
from langchain_filestate._siblings import file_name
from langchain_filestate._verdict import check_known, stale_refusal
from langchain_filestate.errors import Refused

if TYPE_CHECKING:
    from langchain_filestate._call import Call
    from langchain_filestate._plan import Plan
    from langchain_filestate._planning import Operation
    from langchain_filestate._policy import Policy
    from langchain_filestate._records import Known, Record
    from langchain_filestate._siblings import Siblings
    from langchain_filestate._workspace import Location, Workspace

MAX_TRIES = 1000
"""How often a plan is made anew because the file changed between plan and commit."""

APPLIED = "This change was already applied."


class Editor:
    """Carries out the calls of one toolkit.

    Args:
        workspace: Where it may go.
        history: Where changes are kept.
        policy: The rules.
        siblings: What the calls of one message share.
    """

    def __init__(self, workspace: Workspace, history: FileHistory, policy: Policy, siblings: Siblings) -> None:
        self.workspace, self.history, self.policy, self.siblings = workspace, history, policy, siblings
        self.gives_way = False  # `FileStateMiddleware` sees to it that older media give way

    def run(self, call: Call, op: _reading.Read | Operation) -> Outcome:
        """Carry out one call; a refusal is an outcome too."""
        if call.place is None:
            return self._one(call, op)
        self.siblings.begin(call.place)
        interrupted = False
        try:
            return self._one(call, op)
        except call.reraise:
            interrupted = True
            raise
        finally:
            self.siblings.end(call.place, interrupted=interrupted)

    def _one(self, call: Call, op: _reading.Read | Operation) -> Outcome:
        reading = isinstance(op, _reading.Read)
        path = op.file_path
        try:
            location = self.workspace.locate(op.file_path, write=not reading)
            path = location.path
            if call.place is not None and call.earlier:
                same = [index for index, given in call.earlier if self._same(given, location)]
                self.siblings.wait(call.place, same, self.policy.limits.wait_seconds)
            if not isinstance(op, _reading.Read):
                return self._change(call, op, location)
            return self._pass_on(call, _reading.read(call, op, location, self), written=False)
        except Refused as refused:
            if call.changed:
                _outside.tell_edited(refused, call.changed, by_user=False)
            return refusal(refused, path)
        except OSError as error:
            # What the modules below know by name they have refused by name; this is a disk or a mount that fails.
            text = f"The system refused: {error.strerror or error}. Try again; if it stays so, tell the user."
            return refusal(Refused(text, code="io_error"), path)

    def _pass_on(self, call: Call, outcome: Outcome, *, written: bool) -> Outcome:
        """Leave the record for later calls: of the message, or, outside any graph, for all."""
        if outcome.record is None or outcome.path is None:
            return outcome
        if call.place is not None:
            # What only the answer tells is not before the model yet.
            written = written and not outcome.told
            self.siblings.note(call.place, call.agent, outcome.path, outcome.record, call.evidence, written=written)
        if call.book is not None:
            call.book(call.agent, {outcome.path: outcome.record.to_state()})
        return outcome

    def _same(self, given: str, location: Location) -> bool:
        """True if another call's path means the same file."""
        if given == location.given:
            return True
        name = location.parts[-1]
        if file_name(given) != name and not self.workspace.disguised(given, name):
            return False
        try:
            return self.workspace.locate(given, write=False).path == location.path
        except Refused:
            return False

    # ---- a change: planned ------------------------------------------------------------------------------------------

    def _change(self, call: Call, op: Operation, location: Location) -> Outcome:
        name = self._change_id(call, op)
        for _ in range(MAX_TRIES):
            with _disk.lock(location.path):  # what a sibling wrote and what it passes on are seen together
                memory = Memory(call, self.siblings, location.path)
                snapshot = self._snapshot(location, memory.records.get(call.agent))
            applied = self._applied(call, name, op, location, snapshot)
            if applied is not None:
                return self._pass_on(call, applied, written=True)
            ready = self._ready(call, op, location, snapshot, memory)
            if not ready.plan.changes(ready.before.data):
                return self._nothing_to_do(call, ready)
            outcome = self._carry_out(call, name, ready, location)
            if outcome is not None:
                return outcome
        raise Refused("Another program keeps changing this file. Try again in a moment.", code="busy")

    def _snapshot(self, location: Location, record: Record | None = None) -> _disk.Snapshot | None:
        """The file, most likely as the record has it; None if it, or its directory, does not exist."""
        likely = self.history.remembered(record.digest) if record is not None else None
        try:
            with self.workspace.open(location) as target:
                return _disk.snapshot(target, max_bytes=self.policy.limits.max_file_bytes, likely=likely)
        except Refused as refused:
            if refused.code == "not_found":
                return None
            raise

    def _ready(
        self, call: Call, op: Operation, location: Location, snapshot: _disk.Snapshot | None, memory: Memory
    ) -> Ready:
        before = self._before(location, snapshot, op)
        known = memory.known(before.digest)
        stale = check_known(self, call, op, before, memory)
        plan = self._plan(call, op, before, known, stale=stale)
        given = op
        if plan.changes(before.data):
            op, plan = self._allowed(call, op, before, plan, known, stale=stale)
        return Ready(
            op, before, plan, memory, known, snapshot.stamp if snapshot else None, snapshot.mode if snapshot else None,
            stale, given if op != given else None,
        )  # fmt: skip

    def _allowed(
        self, call: Call, op: Operation, before: Before, plan: Plan, known: Known, *, stale: bool
    ) -> tuple[Operation, Plan]:
        """Ask the hook and the person; the operation and the plan as the person may have changed them."""
        self._before_write(call, before, plan)
        if call.ask is None:
            return op, plan
        planned = self._planned(call, before, plan)
        answer = call.ask(planned, before.digest, plan.digest(before), op.args(), stale=stale)
        if not answer.approved:
            words = f" They said: {answer.message}" if answer.message else ""
            raise Refused(f"The user rejected this change; the file was not changed.{words}", code="rejected")
        changed = op if answer.args is None else op.with_args(answer.args)
        if changed == op:
            return op, plan
        try:
            plan = self._plan(call, changed, before, known, stale=stale)
            self._before_write(call, before, plan)
        except Refused as refused:
            _outside.tell_edited(refused, changed_texts(op, changed), by_user=True)
            raise
        return changed, plan

    def _before_write(self, call: Call, before: Before, plan: Plan) -> None:
        hook = self.policy.before_write
        if hook is not None:
            answered_at_once("before_write", hook(self._planned(call, before, plan)))

    def _before(self, location: Location, snapshot: _disk.Snapshot | None, op: Operation) -> Before:
        if snapshot is None:
            if not op.whole and not (isinstance(op, Edit) and not op.many and not op.edits[0][0]):
                raise _reading.missing(self.workspace, location, " Use write_file to create it.")
            return Before(location.path, None, None)
        if not isinstance(op, (Edit, Write)) and not _kind.is_notebook(location.path):
            raise Refused("This is not a notebook (.ipynb). Use edit_file instead.", code="bad_notebook")
        if isinstance(op, Edit) and cells_in(location.path, snapshot.data) is not None:
            raise Refused("This file is a notebook. Use edit_notebook to change its cells.", code="is_notebook")
        return text_before(location.path, snapshot.data, snapshot.digest, self.policy, snapshot.sum)

    def _plan(self, call: Call, op: Operation, before: Before, known: Known, *, stale: bool) -> Plan:
        try:
            plan = op.plan(before, self.policy)
        except Refused as refused:
            if stale and refused.code in {"no_match", "ambiguous", "cell_not_found", "overlap"}:
                raise stale_refusal(self, call, before, known) from refused
            raise
        if not stands(self, call, op, before, plan, known, stale=stale):
            raise stale_refusal(self, call, before, known)
        return plan

    def _planned(self, call: Call, before: Before, plan: Plan) -> PlannedChange:
        return PlannedChange(call.tool, call.call_id, call.agent, before.path, before.data, plan.after, plan.patch)

    def preview(self, tool: str, agent: str, op: Operation) -> PlannedChange:
        """What an operation would change, whoever asks and whatever they have read; raises `Refused`."""
        location = self.workspace.locate(op.file_path, write=True)
        before = self._before(location, self._snapshot(location), op)
        plan = op.plan(before, self.policy)
        return PlannedChange(tool, None, agent, before.path, before.data, plan.after, plan.patch)

    # ---- a change: carried out --------------------------------------------------------------------------------------

    def _carry_out(self, call: Call, name: str, ready: Ready, location: Location) -> Outcome | None:
        """Commit the plan; None if the file is no longer the one that it was made on."""
        before, plan = ready.before, ready.plan
        after = plan.digest(before)
        formatted = None
        try:
            with (
                _disk.lock(location.path),
                self.workspace.open(location, make_parents=before.data is None) as target,
            ):
                if not _disk.looks_same(target, ready.stamp) and _disk.digest_of(target) != before.digest:
                    return None
                seq = ready.memory.next_seq()
                change = self._change_of(call, name, ready, after, seq, target.made)
                change = self.history.record(change, before.data)
                try:
                    _disk.commit(target, plan.content, before.digest, known=before.data)
                except (_disk.Changed, Refused, OSError):
                    self.history.withdraw(change)
                    raise
                self.history.remember(plan.made, after)
                if self.policy.after_write is not None:
                    formatted = self._after_write(call, change, plan, target)
                outcome = outcome_of(self, call, ready, after, seq, formatted)
                self._pass_on(call, outcome, written=True)
        except _disk.Changed:
            return None
        except Refused as refused:
            if refused.code == "not_found" and before.data is not None:  # its directory is gone since
                return None
            raise
        if formatted is not None or not change.kept:
            # It cannot be planned once more to give the same answer, so the answer itself is kept.
            self.history.amend(replace(change, result={**change.result, **answer_of(call, outcome)}))
        if call.emit is not None:
            call.emit(event_of(call, outcome))
        return outcome

    def _change_of(self, call: Call, name: str, ready: Ready, after: str, seq: int, made: tuple[str, ...]) -> Change:
        return Change(
            id=name,
            path=ready.before.path,
            before=ready.before.digest,
            after=after,
            mode=ready.mode,
            seq=seq,
            agent=call.agent,
            tool=call.tool,
            thread_id=call.thread_id,
            checkpoint_id=call.checkpoint_id,
            tool_call_id=call.call_id,
            # With these and the bytes before, the same call gives the same answer again.
            result={
                "message_id": call.message_id,
                "made": list(made),
                "stale": ready.stale,
                "args": ready.op.args() if ready.given is not None else None,
                "own": ready.given is None and not call.changed,  # its text stands in the call as the model gave it
            },
        )

    def _change_id(self, call: Call, given: Operation) -> str:
        if call.message_id is None or call.identity is None:
            return ""  # nothing is a replay
        # Who goes back and changes the arguments of a call keeps its id, but means another call.
        what = json.dumps([call.identity, call.tool, given.args()])
        return self.history.change_id(call.thread_id, call.message_id, what)

    def _after_write(self, call: Call, change: Change, plan: Plan, target: _disk.Target) -> Formatted:
        """Run the hook; what it changed is a second change."""
        hook, most = self.policy.after_write, self.policy.limits.max_chars
        said = None
        try:
            said = _outside.hook_said(hook(Path(change.path)), most) if hook is not None else None
        except call.reraise:
            raise
        except Exception as error:  # noqa: BLE001  a developer's hook may raise anything; the write stands
            failed = f"What runs after a write failed: {type(error).__name__}: {error}"
            said = _outside.hook_said(failed, min(most, 1000))
        lost = "The file is not there any more."
        try:
            now = _disk.snapshot(target)
        except Refused as refused:
            if refused.code not in {"symlink", "is_directory", "not_a_file"}:  # it is there, and cannot be read now
                return Formatted(plan.after, change.after or "", " ".join(filter(None, (said, refused.message))))
            now, lost = None, refused.message
        if now is not None and now.digest == change.after:
            return Formatted(plan.after, now.digest, said)
        second = replace(
            change, id=f"{change.id}-after" if change.id else "", before=change.after,
            after=now.digest if now is not None else None, seq=next_seq(change.seq),
            result={"message_id": call.message_id},
        )  # fmt: skip
        self.history.record(second, plan.after)
        if now is None:
            return Formatted(None, "", said, lost)
        self.history.remember(now.data, now.digest)
        return Formatted(now.data, now.digest, said)

    def _nothing_to_do(self, call: Call, ready: Ready) -> Outcome:
        """A write of what is there already: nothing is touched, and the model knows the text now."""
        with _disk.lock(ready.before.path):
            seq = ready.memory.next_seq()
        outcome = outcome_of(self, call, ready, ready.before.digest or "", seq)
        text = f"The file {plain(ready.before.path)} already has exactly this content; nothing was written."
        return self._pass_on(call, outcome._replace(content=text), written=True)

    def _applied(
        self, call: Call, name: str, op: Operation, location: Location, snapshot: _disk.Snapshot | None
    ) -> Outcome | None:
        """The same answer again if this very call has been carried out before; None if it is to be carried out."""
        change = self.history.find(name, call.thread_id) if name else None
        if change is None or change.path != location.path:
            return None
        effect = self.history.effect(change, snapshot.digest if snapshot else None)
        if effect == "pending":
            return None
        if effect == "unknown":
            raise Refused(
                "This call had begun before, and the file has been changed since by somebody else. "
                "Read it again to see what it is now.",
                code="conflict",
            )
        if snapshot is not None:  # it may have been killed right after the commit
            with self.workspace.open(location) as target:
                _disk.sweep(target)
        # The record keeps its place in time: what was read or written after it goes before it.
        outcome = answered(call, change, change.seq) if "artifact" in change.result else self._again(call, op, change)
        result = outcome.result.model_copy(update={"already_applied": True})
        return outcome._replace(content=f"{APPLIED} {outcome.content}", result=result)

    def _again(self, call: Call, op: Operation, change: Change) -> Outcome:
        """The answer of a change made before, planned once more on the bytes that were there then."""
        data = None if change.before is None else self.history.content(change.before)
        if change.before is not None and data is None:
            raise Refused(f"{APPLIED} What it changed is no longer kept; read the file to see it.", code="conflict")
        fmt = _text.UTF8 if data is None else _text.detect(data, self.policy.encodings)
        before = Before(change.path, data, change.before, fmt)
        memory = Memory(call, self.siblings, change.path, change.seq)
        args = change.result.get("args")
        done = op if args is None else op.with_args(args)
        ready = Ready(
            done, before, done.plan(before, self.policy), memory, memory.known(change.before), None, change.mode,
            bool(change.result.get("stale")), None if args is None else op,
        )  # fmt: skip
        return outcome_of(self, call, ready, change.after or "", change.seq)
