"""The use cases, one body each: read, and change (edit, several edits, write, notebook).

A change is planned without side effects and then carried out. The order is always the same: path and permission;
applied already?; record and freshness; plan; `before_write`; approval; then, under the path's lock, freshness again,
the change into the history, commit, `after_write`, record. When freshness fails under the lock, the lock is let go
and the plan made anew, so that under contention little happens between the snapshot and the commit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_filestate import _disk, _outside, _patch, _reading, _records, _text
from langchain_filestate._call import Memory, Outcome
from langchain_filestate._history import Change, FileHistory
from langchain_filestate._planning import Before, Edit, Facts, NotebookEdit, Operation, Plan, Write, is_notebook
from langchain_filestate._policy import PlannedChange
from langchain_filestate._records import Record, View
from langchain_filestate.errors import Refused
from langchain_filestate.results import EditResult, FailureResult, NotebookResult, WriteResult, parse_result

if TYPE_CHECKING:
    from langchain_filestate._call import Call
    from langchain_filestate._policy import Policy
    from langchain_filestate._records import Known
    from langchain_filestate._siblings import Siblings
    from langchain_filestate._workspace import Location, Workspace

MAX_TRIES = 100
"""How often a plan is made anew because the file changed between plan and commit."""

APPLIED = "This change was already applied."

_Done = EditResult | WriteResult | NotebookResult


@dataclass(frozen=True, slots=True)
class _Ready:
    """A plan that was allowed to go ahead, and what is needed to carry it out."""

    op: Operation
    before: Before
    plan: Plan
    memory: Memory
    stamp: _disk.Stamp | None
    mode: int | None
    stale: bool
    out_of_context: bool
    user_modified: bool
    notes: tuple[str, ...]


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
            if isinstance(op, _reading.Read):
                outcome = _reading.read(call, op, location, self)
            else:
                outcome = self._change(call, op, location)
        except Refused as refused:
            return refusal(refused, path)
        except OSError as error:
            # What the modules below know by name they have refused by name; this is a disk or a mount that fails.
            return refusal(Refused(f"The system refused: {error.strerror or error}.", code="io_error"), path)
        if call.place is not None and outcome.record is not None and outcome.path is not None:
            self.siblings.note(
                call.place, call.agent, outcome.path, outcome.record, call.evidence, written=not reading
            )
        return outcome

    def _same(self, given: str, location: Location) -> bool:
        """True if another call's path means the same file."""
        if given == location.given:
            return True
        if given.rstrip("/").rpartition("/")[2] != location.parts[-1]:
            return False
        try:
            return self.workspace.locate(given, write=False).path == location.path
        except Refused:
            return False

    # ---- a change: planned ------------------------------------------------------------------------------------------

    def _change(self, call: Call, op: Operation, location: Location) -> Outcome:
        for _ in range(MAX_TRIES):
            snapshot = self._snapshot(location)
            applied = self._applied(call, location, snapshot)
            if applied is not None:
                return applied
            ready = self._ready(call, op, location, snapshot)
            if ready.plan.after == ready.before.data:
                return self._nothing_to_do(call, ready)
            outcome = self._carry_out(call, ready, location)
            if outcome is not None:
                return outcome
        raise Refused("Another program keeps changing this file. Try again in a moment.", code="busy")

    def _snapshot(self, location: Location) -> _disk.Snapshot | None:
        """The file as it is; None if it, or its directory, does not exist."""
        try:
            with self.workspace.open(location) as target:
                return _disk.snapshot(target, max_bytes=self.policy.limits.max_file_bytes)
        except Refused as refused:
            if refused.code == "not_found":
                return None
            raise

    def _ready(self, call: Call, op: Operation, location: Location, snapshot: _disk.Snapshot | None) -> _Ready:
        before = self._before(location, snapshot, op)
        memory = Memory(call, self.siblings, location.path)
        known = memory.known(before.digest)
        stale = self._check_known(call, op, before, known)
        plan = self._plan(call, op, before, known, stale=stale)
        modified, notes = False, plan.notes
        planned = self._planned(call, before, plan)
        idle = plan.after == before.data
        if self.policy.before_write is not None and not idle:
            self.policy.before_write(planned)
        if call.ask is not None and not idle:
            answer = call.ask(planned, before.digest, _disk.digest(plan.after), op.args())
            if not answer.approved:
                words = f" They said: {answer.message}" if answer.message else ""
                raise Refused(f"The user rejected this change; the file was not changed.{words}", code="rejected")
            if answer.args is not None:
                given, op = op, op.with_args(answer.args)
                if op != given:
                    plan = self._plan(call, op, before, known, stale=stale)
                    modified, notes = True, (*plan.notes, _outside.edited_by_user(given.args(), op.args()))
                    if self.policy.before_write is not None:
                        self.policy.before_write(self._planned(call, before, plan))
        out = any(not known.shows(first, last) for first, last in plan.touched())
        if stale:
            out = not known.views
            notes = (*notes, self._also_changed(call, before, known))
        return _Ready(
            op, before, plan, memory, snapshot.stamp if snapshot else None, snapshot.mode if snapshot else None,
            stale, out, modified, notes,
        )  # fmt: skip

    def _before(self, location: Location, snapshot: _disk.Snapshot | None, op: Operation) -> Before:
        if snapshot is None:
            if not op.whole and not (isinstance(op, Edit) and not op.many and not op.edits[0][0]):
                raise _reading.missing(self.workspace, location, " Use write_file to create it.")
            return Before(location.path, None, None)
        if is_notebook(location.path) and isinstance(op, Edit):
            raise Refused("This file is a notebook. Use edit_notebook to change its cells.", code="is_notebook")
        return Before(
            location.path, snapshot.data, snapshot.digest, _text.detect(snapshot.data, self.policy.encodings)
        )

    def _plan(self, call: Call, op: Operation, before: Before, known: Known, *, stale: bool) -> Plan:
        if not stale:
            return op.plan(before, self.policy)
        try:
            plan = op.plan(before, self.policy)
        except Refused as refused:
            if refused.code in {"no_match", "ambiguous", "cell_not_found", "overlap"}:
                raise self._stale(call, before, known) from refused
            raise
        if not op.unique(plan):
            raise self._stale(call, before, known)
        return plan

    def _planned(self, call: Call, before: Before, plan: Plan) -> PlannedChange:
        return PlannedChange(call.tool, call.call_id, call.agent, before.path, before.data, plan.after, plan.patch)

    def preview(self, tool: str, agent: str, op: Operation) -> PlannedChange:
        """What an operation would change, whoever asks and whatever they have read; raises `Refused`."""
        location = self.workspace.locate(op.file_path, write=True)
        before = self._before(location, self._snapshot(location), op)
        plan = op.plan(before, self.policy)
        return PlannedChange(tool, None, agent, before.path, before.data, plan.after, plan.patch)

    # ---- what the agent knows of the file ---------------------------------------------------------------------------

    def _check_known(self, call: Call, op: Operation, before: Before, known: Known) -> bool:
        """Refuse what the agent's reading does not allow; True if the change goes ahead on bytes it has not seen."""
        if before.data is None:
            return False
        if is_notebook(before.path) and isinstance(op, Write) and self.policy.require_read != "never":
            raise Refused(
                "This notebook exists. It is read as cells, so its raw text has not been seen: "
                "use edit_notebook to change its cells.",
                code="is_notebook",
            )
        needs_read = self.policy.require_read == "always" or (op.whole and self.policy.require_read == "overwrite")
        record = known.record
        if record is None or (op.whole and known.announced_only()):
            if needs_read:
                raise Refused(_outside.NOT_READ, code="not_read")
            return False
        if record.digest != before.digest:
            if self._own_siblings(call, record, before):
                return False
            if op.whole or not self.policy.recover_stale:
                raise self._stale(call, before, known)
            return True
        if op.whole and needs_read:
            _outside.check_overwrite(known)
        return not op.whole and known.announced_only() and self._recover_or_refuse(call, before, known)

    def _recover_or_refuse(self, call: Call, before: Before, known: Known) -> bool:
        if not self.policy.recover_stale:
            raise self._stale(call, before, known)
        return True

    def _own_siblings(self, call: Call, record: Record, before: Before) -> bool:
        """True if only calls of this very message lie between the record and the disk, as after a crash."""
        if call.message_id is None:
            return False
        chain = self.history.chain(before.path, record.digest, before.digest, thread_id=call.thread_id)
        return bool(chain) and all(
            change.result.get("message_id") == call.message_id and change.agent == call.agent for change in chain or ()
        )

    def _stale(self, call: Call, before: Before, known: Known) -> Refused:
        record = known.record
        old = self.history.content(record.digest) if record and record.digest else None
        who = self.history.writer(before.path, before.digest) if before.digest else None
        return _outside.stale(call, before, old, who, self.policy)

    def _also_changed(self, call: Call, before: Before, known: Known) -> str:
        record = known.record
        old = self.history.content(record.digest) if record and record.digest else None
        who = self.history.writer(before.path, before.digest) if before.digest else None
        return _outside.also_changed(call, before, old, who, self.policy)

    # ---- a change: carried out --------------------------------------------------------------------------------------

    def _carry_out(self, call: Call, ready: _Ready, location: Location) -> Outcome | None:
        """Commit the plan; None if the file is no longer the one that it was made on."""
        before, plan = ready.before, ready.plan
        facts = Facts(
            after=_disk.digest(plan.after),
            patch=plan.patch,
            lines=plan.lines,
            size=len(plan.after),
            stale=ready.stale,
            out_of_context=ready.out_of_context,
            user_modified=ready.user_modified,
            notes=ready.notes,
        )
        views = self._views_after(call, ready)
        try:
            with (
                _disk.lock(location.path),
                self.workspace.open(location, make_parents=before.data is None) as target,
            ):
                if _disk.stamp(target) != ready.stamp:
                    return None
                seq = ready.memory.next_seq()
                change = self._change_of(call, ready, facts, views, seq, target.made)
                self.history.record(change, before.data)
                try:
                    _disk.commit(target, plan.after, before.digest)
                except (_disk.Changed, Refused, OSError):
                    self.history.withdraw(change)
                    raise
                self.history.remember(plan.after, facts.after)
                if self.policy.after_write is not None:
                    facts, views = self._after_write(call, ready, facts, views, target, change)
        except _disk.Changed:
            return None
        text, result = self._told(ready, facts)
        if call.emit is not None:
            call.emit(
                {
                    "type": "file_change",
                    "path": before.path,
                    "kind": result.kind,
                    "added": facts.patch.added,
                    "removed": facts.patch.removed,
                    "tool_call_id": call.call_id,
                }
            )
        record = Record(facts.after, facts.size, facts.lines, views, seq, result.kind)
        return Outcome(text, result, before.path, record)

    def _told(self, ready: _Ready, facts: Facts) -> tuple[str, _Done]:
        text, result = ready.op.outcome(ready.before, ready.plan, facts)
        return " ".join((text, *facts.notes)), result

    def _views_after(self, call: Call, ready: _Ready) -> tuple[View, ...]:
        plan = ready.plan
        if plan.edits is None:
            return (View(1, plan.lines, call.evidence),) if plan.lines else ()
        # After a recovered stale edit only what is shown counts: the edit itself.
        old = () if ready.stale else ready.memory.carried(ready.before.digest)
        return _records.move(old, plan.edits, call.evidence)

    def _change_of(
        self, call: Call, ready: _Ready, facts: Facts, views: tuple[View, ...], seq: int, made: tuple[str, ...]
    ) -> Change:
        text, result = self._told(ready, facts)
        return Change(
            id=self._change_id(call),
            path=ready.before.path,
            before=ready.before.digest,
            after=facts.after,
            mode=ready.mode,
            seq=seq,
            agent=call.agent,
            tool=call.tool,
            thread_id=call.thread_id,
            checkpoint_id=call.checkpoint_id,
            tool_call_id=call.call_id,
            result={"message_id": call.message_id, "made": list(made), **self._answer(call, ready, facts, views)},
        )

    def _change_id(self, call: Call) -> str:
        return self.history.change_id(call.thread_id, call.message_id, call.call_id)

    def _answer(self, call: Call, ready: _Ready, facts: Facts, views: tuple[View, ...]) -> dict[str, Any]:
        """What is needed to give the same answer again; the evidence of the answer itself stands as None."""
        text, result = self._told(ready, facts)
        return {
            "text": text,
            "artifact": result.model_dump(mode="json"),
            "size": facts.size,
            "lines": facts.lines,
            "views": [[v.first, v.last, None if v.evidence == call.evidence else v.evidence] for v in views],
        }

    def _after_write(
        self, call: Call, ready: _Ready, facts: Facts, views: tuple[View, ...], target: _disk.Target, change: Change
    ) -> tuple[Facts, tuple[View, ...]]:
        """Run the hook; what it changed becomes a second change, and part of what the model is told."""
        hook, path = self.policy.after_write, ready.before.path
        said = None
        try:
            said = hook(Path(path)) if hook is not None else None
        except call.reraise:
            raise
        except Exception as error:  # noqa: BLE001  a developer's hook may raise anything; the write stands
            said = f"What runs after a write failed: {type(error).__name__}: {error}"[:1000]
        if said:
            facts = replace(facts, notes=(*facts.notes, said))
        now = _disk.snapshot(target)
        if now is not None and now.digest != facts.after:
            second = replace(change, id=f"{change.id}-after", before=facts.after,
                             after=now.digest, seq=change.seq + 1, result={"message_id": call.message_id})  # fmt: skip
            self.history.record(second, ready.plan.after)
            self.history.remember(now.data, now.digest)
            own = _patch.patch_bytes(path, ready.plan.after, now.data, self.policy.encodings)
            shown, full = _outside.diff_text(own, self.policy.limits.max_diff_lines)
            profile = _text.profile(now.data, self.policy.encodings)
            views = _records.move(views, _outside.edits_of(own), call.evidence) if full else ()
            facts = replace(
                facts,
                after=now.digest,
                patch=_patch.patch_bytes(path, ready.before.data, now.data, self.policy.encodings),
                lines=profile.lines,
                size=len(now.data),
                notes=(*facts.notes, f"After the write it was also changed by the project's own hook:\n{shown}"),
            )
        self.history.amend(replace(change, result={**change.result, **self._answer(call, ready, facts, views)}))
        return facts, views

    def _nothing_to_do(self, call: Call, ready: _Ready) -> Outcome:
        """A write of what is there already: nothing is touched, and the model knows the text now."""
        before, plan = ready.before, ready.plan
        facts = Facts(before.digest or "", plan.patch, plan.lines, len(plan.after), user_modified=ready.user_modified)
        _, result = ready.op.outcome(before, plan, facts)
        with _disk.lock(before.path):
            seq = ready.memory.next_seq()
        views = self._views_after(call, ready)
        record = Record(facts.after, facts.size, facts.lines, views, seq, result.kind)
        text = f"The file {before.path} already has exactly this content; nothing was written."
        return Outcome(text, result, before.path, record)

    def _applied(self, call: Call, location: Location, snapshot: _disk.Snapshot | None) -> Outcome | None:
        """The same answer again if this very call has been carried out before; None if it is to be carried out."""
        if call.message_id is None or call.call_id is None:
            return None
        change = self.history.find(self._change_id(call), call.thread_id)
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
        result = parse_result(change.result.get("artifact"))
        if not isinstance(result, EditResult | WriteResult | NotebookResult):
            return None
        views = tuple(View(a, b, call.evidence if e is None else e) for a, b, e in change.result["views"])
        with _disk.lock(location.path):
            seq = Memory(call, self.siblings, location.path).next_seq()
        record = Record(result.after, change.result["size"], change.result["lines"], views, seq, result.kind)
        return Outcome(
            f"{APPLIED} {change.result['text']}", result.model_copy(update={"already_applied": True}), change.path, record
        )


def refusal(refused: Refused, path: str) -> Outcome:
    """The outcome of a refusal.

    Args:
        refused: Why.
        path: Real, absolute path; as given where it could not be resolved.
    """
    shown = _text.show(path)[:300].replace("\0", "\\0")
    result = FailureResult(file_path=shown, code=refused.code, message=refused.message, lines=refused.lines)
    return Outcome(refused.message, result)
