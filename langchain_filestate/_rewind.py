"""Files back to what they were at a checkpoint.

For each path that the checkpoint's thread changed since, the history has the bytes before the first of these changes.
They are put back where the thread's changes are all that happened: they hang together without a gap, and the disk holds
the last result. Anything else is somebody else's work (a person's, another thread's, a shell command's), and is left
alone unless the caller insists.

- Only paths that the thread's tools changed, and that this workspace may write, are looked at. A link is not
  followed, neither at the end nor on the way.
- What cannot be read is not taken for absent: it is a conflict that insisting does not settle, and so are bytes that
  the history did not keep.
- A file that already has the bytes is not touched, and is in no plan.
- Directories that the tools made are removed again when they are empty.
- A rewind is itself recorded, one change per path, before it is carried out; so it can be rewound, by the checkpoint
  that was the newest when it happened, and a crash in the middle leaves files that can be rewound again.

Time is the order here: a change belongs to "since" if its `seq` is later than the checkpoint's `created_at`. On several
machines this is as good as their clocks agree.

Paths are taken in the order of their names, each under its lock, and judged again there: a plan that was shown before
binds nobody.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict

from langchain_filestate import _disk, _patch, _walk
from langchain_filestate._changes import Change, change_id, next_seq, standing
from langchain_filestate._hunks import StructuredPatch
from langchain_filestate._text import DEFAULT_ENCODINGS
from langchain_filestate.errors import Refused, WiringError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from langgraph.types import StateSnapshot

    from langchain_filestate._history import FileHistory
    from langchain_filestate._workspace import Location, Workspace

_ATTEMPTS = 5
_CLOSED = frozenset({"denied", "read_only"})  # by a rule: not a path that these tools may write
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class RewindEntry(BaseModel):
    """What a rewind does to one file."""

    model_config = ConfigDict(frozen=True)

    file_path: str
    """Real and absolute."""
    action: Literal["restore", "delete", "recreate"]
    """Other bytes into a file that exists, no file where there was none, or a file again where there is none."""
    patch: StructuredPatch | None
    """From what is on disk to what will be; None where either cannot be known."""
    conflict: str | None
    """Why it is not done, or only if insisted on; None if nothing is in the way."""

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """For Jupyter: as `langchain_filestate.display` shows it."""
        del include, exclude
        from langchain_filestate import display  # noqa: PLC0415  only where somebody looks

        return display.bundle(self)


class RewindPlan(BaseModel):
    """What a rewind would do, by path. Files that already are as they were are not in it."""

    model_config = ConfigDict(frozen=True)

    entries: tuple[RewindEntry, ...]

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """For Jupyter: as `langchain_filestate.display` shows it."""
        del include, exclude
        from langchain_filestate import display  # noqa: PLC0415  only where somebody looks

        return display.bundle(self)


class RewindReport(BaseModel):
    """What a rewind did, by path."""

    model_config = ConfigDict(frozen=True)

    restored: tuple[RewindEntry, ...]
    """Files that were changed; where it was insisted on, their entries still say what the conflict was."""
    conflicts: tuple[RewindEntry, ...]
    """Files that were left as they are, and why."""

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """For Jupyter: as `langchain_filestate.display` shows it."""
        del include, exclude
        from langchain_filestate import display  # noqa: PLC0415  only where somebody looks

        return display.bundle(self)


@dataclass(frozen=True, slots=True)
class _Point:
    """A checkpoint, as far as files are concerned."""

    thread_id: str
    checkpoint_id: str | None
    since: int


@dataclass(frozen=True, slots=True)
class _Task:
    """One path, and all that is known about it at this moment."""

    entry: RewindEntry
    location: Location | None
    """None if it cannot be done, not even by insisting."""
    now: _disk.Snapshot | None
    digest: str | None
    data: bytes | None
    mode: int | None


def plan_rewind(
    history: FileHistory, workspace: Workspace, snapshot: StateSnapshot, encodings: Sequence[str] = DEFAULT_ENCODINGS
) -> RewindPlan:
    """Say what `rewind` would do now. Changes nothing.

    Args:
        history: Where the changes are.
        workspace: Which paths may be written.
        snapshot: What `graph.get_state` or `get_state_history` returned.
        encodings: Legacy encodings for the patches.

    Raises:
        WiringError: The snapshot is not of a checkpoint.
    """
    way = _way(history, workspace, snapshot, encodings)
    entries = []
    for path, changes in way.by_path():
        with _disk.lock(path):
            task = way.judge(path, changes)
        if task is not None:
            entries.append(task.entry)
    return RewindPlan(entries=tuple(entries))


def rewind(
    history: FileHistory,
    workspace: Workspace,
    snapshot: StateSnapshot,
    *,
    force: bool = False,
    encodings: Sequence[str] = DEFAULT_ENCODINGS,
) -> RewindReport:
    """Put the files back to what they were at a checkpoint.

    Args:
        history: Where the changes are, and where the rewind is recorded.
        workspace: Which paths may be written.
        snapshot: What `graph.get_state` or `get_state_history` returned.
        force: Also where somebody else wrote since. Their bytes are kept in the history like any others.
        encodings: Legacy encodings for the patches.

    Returns:
        What was done and what was not. A path that cannot be done does not stop the others.

    Raises:
        WiringError: The snapshot is not of a checkpoint.
    """
    way = _way(history, workspace, snapshot, encodings)
    restored: list[RewindEntry] = []
    conflicts: list[RewindEntry] = []
    made: set[str] = set()
    for path, changes in way.by_path():
        with _disk.lock(path):
            entry, done = way.settle(path, changes, force=force)
        if entry is not None:
            (restored if done else conflicts).append(entry)
        if done or (entry is None and workspace.writable(path)):
            made.update(each for change in changes for each in change.result.get("made", ()))
    _remove_empty(workspace, made)
    return RewindReport(restored=tuple(restored), conflicts=tuple(conflicts))


def _way(history: FileHistory, workspace: Workspace, snapshot: StateSnapshot, encodings: Sequence[str]) -> _Way:
    point = _point(snapshot)
    return _Way(history, workspace, point, encodings, history.pruned(point.thread_id))


def _point(snapshot: StateSnapshot) -> _Point:
    configurable = (getattr(snapshot, "config", None) or {}).get("configurable", {})
    thread_id = configurable.get("thread_id")
    if thread_id is None or snapshot.created_at is None:
        raise WiringError(
            "This snapshot is not of a checkpoint, so there is no moment to go back to. Pass what graph.get_state or "
            "graph.get_state_history returned, of a graph that was compiled with a checkpointer, for a thread that "
            "has run.",
        )
    created = datetime.fromisoformat(snapshot.created_at)
    if created.tzinfo is None:
        created = created.replace(tzinfo=UTC)
    since = (created - _EPOCH) // timedelta(microseconds=1) * 1000
    return _Point(str(thread_id), configurable.get("checkpoint_id"), since)


def _root_of(workspace: Workspace, path: str) -> str | None:
    """The innermost root that a path is below by its name."""
    return max((r for r in workspace.roots if path.startswith(r.rstrip("/") + "/")), key=len, default=None)


def _remove_empty(workspace: Workspace, directories: Iterable[str]) -> None:
    for directory in sorted(directories, reverse=True):  # what is inside comes first
        root = _root_of(workspace, directory)
        if root is not None:
            _walk.unmake(_walk.Root(root), [directory])


def _action(before: str | None, now: str | None) -> Literal["restore", "delete", "recreate"]:
    if before is None:
        return "delete"
    return "recreate" if now is None else "restore"


def _hopeless(path: str, before: str | None, digest: str | None, why: str, now: _disk.Snapshot | None = None) -> _Task:
    """A path that cannot be done, not even by insisting; a digest is empty where it is not known."""
    entry = RewindEntry(file_path=path, action=_action(before, digest), patch=None, conflict=why)
    return _Task(entry, None, now, before, None, None)


@dataclass(frozen=True, slots=True)
class _Way:
    """The way back to one checkpoint."""

    history: FileHistory
    workspace: Workspace
    point: _Point
    encodings: Sequence[str]
    pruned: Mapping[str, int]
    """Paths of which older changes of the thread are no longer kept, and when the newest of these was made."""
    name: str = field(default_factory=lambda: uuid.uuid4().hex)

    def by_path(self) -> list[tuple[str, list[Change]]]:
        """The thread's changes since the checkpoint, as far as they are kept."""
        found: dict[str, list[Change]] = {path: [] for path, seq in self.pruned.items() if seq > self.point.since}
        for change in self.history.changes(self.point.thread_id):
            if change.seq > self.point.since:
                found.setdefault(change.path, []).append(change)
        return sorted(found.items())

    def judge(self, path: str, changes: Sequence[Change]) -> _Task | None:
        """What there is to do for a path; None if nothing, or if the path is not this workspace's."""
        if _root_of(self.workspace, path) is None:
            return None
        before = changes[0].before if changes else ""
        try:
            location = self.workspace.locate(path, write=True)
            if location.path != path:
                return _hopeless(
                    path, before, "", f"It leads to {location.path} now: something on the way became a link."
                )
            now = self._read(location)
        except Refused as refusal:
            return None if refusal.code in _CLOSED else _hopeless(path, before, "", refusal.message)
        digest = None if now is None else now.digest
        if self.pruned.get(path, 0) > self.point.since:
            why = "Older changes of it were pruned from the history, so it is not known what it was."
            return _hopeless(path, "", digest, why, now)
        first = changes[0]
        stands = standing(changes, digest)
        if stands == [] or first.before == digest:
            return None
        if stands:
            first = stands[0]
        data = None if first.before is None else self.history.content(first.before)
        if first.before is not None and (data is None or _disk.digest(data) != first.before):
            why = (
                "are no longer in the history"
                if first.kept
                else "were not kept (too large for the history, or not read)"
            )
            return _hopeless(path, first.before, digest, f"The bytes that it had then {why}.", now)
        patch = _patch.patch_bytes(path, None if now is None else now.data, data, self.encodings)
        conflict = self._conflict(changes, stands, digest)
        entry = RewindEntry(file_path=path, action=_action(first.before, digest), patch=patch, conflict=conflict)
        return _Task(entry, location, now, first.before, data, first.mode)

    def _read(self, location: Location) -> _disk.Snapshot | None:
        try:
            with self.workspace.open(location) as target:
                return _disk.snapshot(target)
        except Refused as refusal:
            if refusal.code == "not_found":  # its directory is gone
                return None
            raise

    def _conflict(self, changes: Sequence[Change], stands: list[Change] | None, digest: str | None) -> str | None:
        if stands is not None:
            if any(change.agent is None and change.tool != "rewind" for change in stands):
                return "It changed while a command ran, so it is not certain whose change that was."
            return None
        if digest == changes[-1].after:
            return "Somebody else changed it between two changes of this thread; going back would undo that, too."
        if digest is None:
            return "It was deleted since, not by this thread's tools."
        who = self.history.writer(changes[0].path, digest)
        if who is not None and who.thread_id != self.point.thread_id:
            thread = "a call outside of any thread" if who.thread_id is None else f"thread {who.thread_id}"
            return f"It was changed since by {who.agent or 'somebody'} in {thread}."
        return "It was changed since, not by this thread's tools."

    def settle(self, path: str, changes: Sequence[Change], *, force: bool) -> tuple[RewindEntry | None, bool]:
        """Carry out what is to be done for a path: the entry, if there is one, and whether it was done."""
        entry: RewindEntry | None = None
        for _ in range(_ATTEMPTS):
            task = self.judge(path, changes)
            if task is None:
                return None, False
            entry = task.entry
            if task.location is None or (entry.conflict is not None and not force):
                return entry, False
            try:
                self._carry_out(task, task.location, changes[-1].seq)
            except _disk.Changed:
                continue
            except (Refused, OSError) as error:
                return entry.model_copy(update={"conflict": str(error)}), False
            return entry, True
        busy = "It is being changed by another program all the time; try again later."
        return entry and entry.model_copy(update={"conflict": busy}), False

    def _carry_out(self, task: _Task, location: Location, newest: int) -> None:
        now = task.now
        before = None if now is None else now.digest
        with self.workspace.open(location, make_parents=task.digest is not None) as target:
            change = Change(
                id=change_id(self.point.thread_id, f"rewind {self.name}", location.path),
                path=location.path,
                before=before,
                after=task.digest,
                mode=None if now is None else now.mode,
                seq=next_seq(after=newest),
                agent=None,
                tool="rewind",
                thread_id=self.point.thread_id,
                checkpoint_id=self.point.checkpoint_id,
                tool_call_id=None,
                result={"rewind": self.name, "made": list(target.made)},
            )
            self.history.record(change, None if now is None else now.data)
            try:
                if task.data is not None:
                    mode = task.mode if now is None or task.mode != now.mode else None
                    _disk.commit(target, task.data, before, known=None if now is None else now.data, mode=mode)
                else:
                    _disk.remove(target, str(before))
            except (_disk.Changed, Refused, OSError):
                self.history.withdraw(change)
                raise
