"""`history` and `rewind`: what was changed, and back to before it.

Changes of a thread are numbered from 1 in the order in which they were made. A place to go back to is a checkpoint at
which every tool call has its answer, so that the conversation can go on from there; `--before N` takes the newest one
before change N. Places between which no file changed are one to this command, and only the newest of them is listed.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, ToolMessage

from langchain_filestate import _cli_home as _home
from langchain_filestate import _disk, _patch
from langchain_filestate._cli_show import EPOCH, Stop, clean, clock, moment, one_line, short
from langchain_filestate._workspace import Workspace
from langchain_filestate.errors import Refused, WiringError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Sequence

    from langgraph.types import StateSnapshot

    from langchain_filestate._changes import Change
    from langchain_filestate._cli_home import Desk, Thread
    from langchain_filestate._cli_show import Screen
    from langchain_filestate._history import FileHistory
    from langchain_filestate._patch import StructuredPatch
    from langchain_filestate._rewind import RewindEntry

_MOST_BYTES = 64 * 1024 * 1024
_ID_SHOWN = 18
"""Characters of a checkpoint's id that hold its time, to 100 ns; the rest is the machine."""


# ---- history


def history(args: argparse.Namespace, screen: Screen) -> int:
    """Print threads, or the changes of one thread or path. Returns 0."""
    where = _home.home(args.state)
    if not _home.exists(where):
        if args.thread is not None:
            raise Stop(f"There is no thread {clean(args.thread)}: nothing is kept in {where}.")
        if not args.json:
            screen.line(f"Nothing is kept in {where} yet.")
        return 0
    with _home.opened(where) as desk:
        if args.thread is None and args.path is None:
            _threads(args, screen, desk)
            return 0
        if args.thread is not None and desk.thread(args.thread) is None and args.thread not in desk.history.threads():
            raise Stop(f"There is no thread {clean(args.thread)}; `history` lists them.")
        _changes(args, screen, desk.history)
    return 0


def _threads(args: argparse.Namespace, screen: Screen, desk: Desk) -> None:
    known = {thread.id: thread for thread in desk.threads()}
    changed: dict[str, list[Change]] = {name: [] for name in known}
    for change in desk.history.changes():
        if change.thread_id is not None:
            changed.setdefault(change.thread_id, []).append(change)
    rows = []
    for name, changes in changed.items():
        thread = known.get(name)
        first = datetime.fromisoformat(thread.started) if thread else moment(changes[0].seq)
        last = moment(changes[-1].seq) if changes else None
        files = len({change.path for change in changes})
        if args.json:
            screen.json(
                {
                    "thread": name,
                    "changes": len(changes),
                    "files": files,
                    "started": first.isoformat(),
                    "last_change": last and last.isoformat(),
                    "root": thread and thread.root,
                    "model": thread and thread.model,
                }
            )
        ended = clock(last) if last else ""
        rows.append([name, str(len(changes)), str(files), clock(first), ended, thread.root if thread else ""])
    if args.json:
        return
    if rows:
        screen.table(["thread", "#changes", "#files", "started", "last change", "root"], rows)
    else:
        screen.line("No threads yet.")


def _changes(args: argparse.Namespace, screen: Screen, kept: FileHistory) -> None:
    path = None if args.path is None else os.path.realpath(args.path)
    numbers = _Numbers(kept)
    rows, patches = [], []
    for change in kept.changes(args.thread, path):
        patch = patch_of(kept, change)
        number = numbers.of(change)
        if args.json:
            screen.json(_as_json(change, number, patch, full=args.patch))
            continue
        added, removed = (f"+{patch.added}", f"-{patch.removed}") if patch else ("?", "?")
        named = [] if args.thread is not None else [change.thread_id or ""]
        who = [change.agent or "", change.tool, short(change.path)]
        rows.append([*named, number, clock(moment(change.seq)), *who, added, removed])
        patches.append((number, change, patch))
    if args.json:
        return
    if not rows:
        screen.line("No changes.")
        return
    named = [] if args.thread is not None else ["thread"]
    screen.table([*named, "#no", "when", "agent", "tool", "path", "#added", "#removed"], rows)
    if args.patch:
        for number, change, patch in patches:
            screen.line("")
            screen.line((f"Change {number}: {change.tool} {short(change.path)}", "bold"))
            screen.diff(str(patch) if patch else "(the bytes are not kept)", indent="")


class _Numbers:
    """The numbers of changes in their threads."""

    def __init__(self, kept: FileHistory) -> None:
        self._kept = kept
        self._of: dict[str | None, dict[tuple[int, str], int]] = {}

    def of(self, change: Change) -> str:
        """The number; empty for a change outside any thread."""
        if change.thread_id is None:
            return ""
        if change.thread_id not in self._of:
            listed = self._kept.changes(change.thread_id)
            self._of[change.thread_id] = {(each.seq, each.id): n for n, each in enumerate(listed, 1)}
        return str(self._of[change.thread_id].get((change.seq, change.id), ""))


def patch_of(kept: FileHistory, change: Change) -> StructuredPatch | None:
    """What a change did; None where the bytes before or after it are not known."""
    before = None if change.before is None else kept.content(change.before)
    after = None if change.after is None else kept.content(change.after)
    if after is None and change.after is not None:
        after = on_disk(change.path, change.after)
    if (before is None) != (change.before is None) or (after is None) != (change.after is None):
        return None
    return _patch.patch_bytes(change.path, before, after)


def on_disk(path: str, digest: str) -> bytes | None:
    """The bytes of a file if they are those of a digest."""
    try:
        workspace = Workspace(os.path.dirname(path))
        with workspace.open(workspace.at(path, write=False)) as target:
            snapshot = _disk.snapshot(target, max_bytes=_MOST_BYTES)
    except (Refused, WiringError):
        return None
    return snapshot.data if snapshot is not None and snapshot.digest == digest else None


def _as_json(change: Change, number: str, patch: StructuredPatch | None, *, full: bool) -> dict[str, Any]:
    fields = ("path", "before", "after", "seq", "agent", "tool", "checkpoint_id", "tool_call_id", "kept")
    return {
        "thread": change.thread_id,
        "number": int(number) if number else None,
        "when": moment(change.seq).isoformat(),
        **{name: getattr(change, name) for name in fields},
        "added": patch and patch.added,
        "removed": patch and patch.removed,
        **({"patch": patch and str(patch)} if full else {}),
    }


# ---- rewind


@dataclass(frozen=True, slots=True)
class Place:
    """A checkpoint that a thread can go back to.

    Attributes:
        checkpoint: Its id.
        when: When it was made.
        later: How many of the thread's changes were made after it.
        last: What was said last.
    """

    checkpoint: str
    when: datetime
    later: int
    last: str


def rewind(args: argparse.Namespace, screen: Screen) -> int:
    """List the places, show what going back would do, or do it.

    Returns:
        1 if there are files that are left alone, 0 otherwise.
    """
    where = _home.home(args.state)
    if not _home.exists(where):
        raise Stop(f"There is no thread {clean(args.thread)}: nothing is kept in {where}.")
    from langchain_filestate._cli_agent import Scripted, agent_of  # noqa: PLC0415  langchain is slow to import
    from langchain_filestate.tools import FileToolkit  # noqa: PLC0415

    with _home.opened(where) as desk:
        thread = _known(args, desk)
        toolkit = FileToolkit(thread.root, deny=thread.deny, read_only=thread.read_only, history=desk.history)
        graph = agent_of(Scripted(script=[]), toolkit, desk.saver)
        snapshots = graph.get_state_history({"configurable": {"thread_id": thread.id}})
        changes = desk.history.changes(thread.id)
        if args.to is None and args.before is None:
            _list(args, screen, _places(snapshots, changes))
            return 0
        snapshot = _snapshot(args, snapshots, changes)
        if args.apply:
            newest = graph.get_state({"configurable": {"thread_id": thread.id}}).config["configurable"]["checkpoint_id"]
            report = toolkit.rewind(snapshot, force=args.force)
            done, left = report.restored, report.conflicts
        else:
            newest = ""
            entries = toolkit.plan_rewind(snapshot).entries
            left = tuple(entry for entry in entries if entry.conflict and not (args.force and entry.patch is not None))
            done = tuple(entry for entry in entries if entry not in left)
    checkpoint = snapshot.config["configurable"]["checkpoint_id"]
    if args.json:
        screen.json(
            {
                "thread": thread.id,
                "checkpoint": checkpoint,
                "applied": args.apply,
                "restored": [_entry_json(entry) for entry in done],
                "conflicts": [_entry_json(entry) for entry in left],
            }
        )
    else:
        _show(args, screen, thread, checkpoint, newest, done, left)
    return 1 if left else 0


def _known(args: argparse.Namespace, desk: Desk) -> Thread:
    thread = desk.thread(args.thread)
    if thread is None:
        raise Stop(f"There is no thread {clean(args.thread)}; `history` lists them.")
    return thread


def _made(snapshot: StateSnapshot) -> datetime:
    return datetime.fromisoformat(snapshot.created_at or "1970-01-01T00:00:00+00:00")


def _since(snapshot: StateSnapshot) -> int:
    """The moment as `seq` counts; a change is later if its `seq` is higher."""
    return (_made(snapshot) - EPOCH) // timedelta(microseconds=1) * 1000


def _rests(snapshot: StateSnapshot) -> bool:
    """Whether every tool call has its answer there."""
    asked: set[str | None] = set()
    for message in snapshot.values.get("messages", ()):
        if isinstance(message, AIMessage):
            asked |= {call["id"] for call in message.tool_calls}
        elif isinstance(message, ToolMessage):
            asked.discard(message.tool_call_id)
    return not asked


def _places(snapshots: Iterable[StateSnapshot], changes: Sequence[Change]) -> list[Place]:
    """From new to old."""
    places: list[Place] = []
    for snapshot in snapshots:
        since = _since(snapshot)
        later = sum(change.seq > since for change in changes)
        if (places and places[-1].later == later) or not _rests(snapshot):
            continue
        messages = snapshot.values.get("messages", ())
        last = f"{messages[-1].type}: {one_line(str(messages[-1].text), 60)}" if messages else "(the beginning)"
        places.append(Place(snapshot.config["configurable"]["checkpoint_id"], _made(snapshot), later, last))
    return places


def _list(args: argparse.Namespace, screen: Screen, places: Sequence[Place]) -> None:
    if args.json:
        for place in places:
            screen.json(
                {
                    "checkpoint": place.checkpoint,
                    "when": place.when.isoformat(),
                    "changes_since": place.later,
                    "last": place.last,
                }
            )
        return
    rows = [[place.checkpoint[:_ID_SHOWN], clock(place.when), str(place.later), place.last] for place in places]
    screen.table(["checkpoint", "when", "#changes since", "last message"], rows)
    screen.line("")
    screen.line("Go back with --to CHECKPOINT, or with --before NUMBER of a change in `history`.")


def _snapshot(args: argparse.Namespace, snapshots: Iterable[StateSnapshot], changes: Sequence[Change]) -> StateSnapshot:
    """The checkpoint that the user means."""
    if args.before is not None:
        if not 1 <= args.before <= len(changes):
            raise Stop(f"There is no change {args.before}: the thread has {len(changes)}.")
        seq = changes[args.before - 1].seq
        found = next((each for each in snapshots if _since(each) < seq and _rests(each)), None)
        if found is None:
            raise Stop(f"No checkpoint before change {args.before} is kept.")
        return found
    from langchain_filestate._cli_agent import checkpoint_of  # noqa: PLC0415  langchain is slow to import

    return checkpoint_of(snapshots, args.thread, args.to)


def _entry_json(entry: RewindEntry) -> dict[str, Any]:
    return {
        "file_path": entry.file_path,
        "action": entry.action,
        "added": entry.patch and entry.patch.added,
        "removed": entry.patch and entry.patch.removed,
        "conflict": entry.conflict,
        "patch": entry.patch and str(entry.patch),
    }


def _show(
    args: argparse.Namespace,
    screen: Screen,
    thread: Thread,
    checkpoint: str,
    newest: str,
    done: Sequence[RewindEntry],
    left: Sequence[RewindEntry],
) -> None:
    if not done and not left:
        screen.line("Nothing to do: the files are as they were then.")
    else:
        rows = [
            [
                _verb(entry.action, applied=args.apply) if entry in done else "left alone",
                short(entry.file_path),
                f"+{entry.patch.added}" if entry.patch else "?",
                f"-{entry.patch.removed}" if entry.patch else "?",
                entry.conflict or "",
            ]
            for entry in [*done, *left]
        ]
        screen.table(["action", "path", "#added", "#removed", "conflict"], rows)
        for entry in [*done, *left] if not args.apply else []:
            if entry.patch is not None:
                screen.line("")
                screen.diff(str(entry.patch), indent="")
    screen.line("")
    if args.apply:
        screen.line(f"Let the agent go on from there: run TASK --thread {thread.id} --from {checkpoint[:_ID_SHOWN]}")
        if done:
            screen.line(f"Undo this: rewind --thread {thread.id} --to {newest[:_ID_SHOWN]} --apply")
    elif done:
        screen.line("This is a preview; add --apply to do it.")
    if left and not args.force:
        screen.line(("--force also takes files that somebody else changed.", "yellow"))


def _verb(action: str, *, applied: bool) -> str:
    return {"restore": "restored", "delete": "deleted", "recreate": "recreated"}[action] if applied else action
