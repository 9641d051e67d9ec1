"""What happens around the tools: files that change outside, and shell commands that show or change files.

Plain functions over a state and a toolkit, for hand-made graphs; `FileStateMiddleware` calls them for `create_agent`.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain_core.messages import HumanMessage

from langchain_filestate import _disk, _outside, _patch, _records, _shell, _text
from langchain_filestate._history import Change, next_seq
from langchain_filestate._records import Record, View
from langchain_filestate._running import in_graph
from langchain_filestate.errors import Refused
from langchain_filestate.state import LEFT_OUT, Messages, channel_of, mark, mark_in, update_of, value_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from langchain_filestate._records import Known, State
    from langchain_filestate.tools import FileToolkit

_MAX_BYTES = 8 * 1024 * 1024
"""Larger files are announced without a diff, and not looked for in a command's output."""

_MAX_NAMED = 20
"""Files that one notice names; of the others it gives the number."""


@dataclass(frozen=True, slots=True)
class _Now:
    """One file as it is on disk: `data` is None if it is gone or too large for a diff."""

    path: str
    digest: str
    size: int
    data: bytes | None


def changed_files(state: Any, toolkit: FileToolkit) -> dict[str, Any]:
    """Announce files that changed or vanished since the agent last saw them: a node before the model.

    A record takes the digest that was announced, so each change is announced once. Where the notice shows a change in
    full, what the agent had seen of the file still counts; otherwise the file counts as unread for an overwrite.

    Args:
        state: The graph's state, with `messages` and `file_state`.
        toolkit: The toolkit of the agent.

    Returns:
        A state update with one message and the new records; empty if nothing changed.
    """
    channel = channel_of(state)
    agent = toolkit.running_agent()
    if not channel:
        return {}
    suspects = _suspects(channel, agent, value_of(state, "messages"))
    if not suspects:
        return {}
    context = Messages(value_of(state, "messages"), value_of(state, LEFT_OUT) or ())
    changed: list[tuple[_Now, Known]] = []
    for path in suspects:
        now = _now(path, toolkit)
        if now is None:
            continue
        records = _of_path(channel, path)
        known = _records.known(records, agent, now.digest, context.alive)
        if known.record is not None and known.record.digest != now.digest:
            changed.append((now, known))
    return _announce(changed, agent, toolkit) if changed else {}


def _suspects(channel: State, agent: str, messages: Sequence[Any] | None) -> list[str]:
    """Paths whose digest on disk may not be the one of the record; a settled stamp saves the reading."""
    suspects = []
    for path, record in channel.get(agent, {}).items():
        if _disk.known_digest(path) != record.get("digest"):
            suspects.append(path)
    others = {
        path: record
        for name, records in channel.items()
        if name != agent
        for path, record in records.items()
        if path not in channel.get(agent, {})
    }
    if others:
        alive = Messages(messages).alive({view[2] for record in others.values() for view in record.get("views", ())})
        suspects += [
            path
            for path, record in others.items()
            if any(view[2] in alive for view in record.get("views", ()))
            and _disk.known_digest(path) != record.get("digest")
        ]
    return suspects


def _of_path(channel: State, path: str) -> dict[str, Record]:
    loaded = {name: _records.load(records.get(path)) for name, records in channel.items()}
    return {name: record for name, record in loaded.items() if record is not None}


def _now(path: str, toolkit: FileToolkit) -> _Now | None:
    """The file as it is; None if this toolkit may not look at it, or it cannot be told."""
    try:
        location = toolkit.workspace.at(path, write=False)
        with toolkit.workspace.open(location) as target, _disk.lock(path):
            size = _disk.size_of(target)
            if size is None:
                return _Now(path, "", 0, None)
            if size > _MAX_BYTES:
                digest = _disk.digest_of(target)
                return _Now(path, digest or "", size, None)
            snapshot = _disk.snapshot(target)
            if snapshot is None:
                return _Now(path, "", 0, None)
            return _Now(path, snapshot.digest, size, snapshot.data)
    except Refused as refused:
        return _Now(path, "", 0, None) if refused.code == "not_found" else None


def _announce(changed: Sequence[tuple[_Now, Known]], agent: str, toolkit: FileToolkit) -> dict[str, Any]:
    evidence = f"fs-{secrets.token_hex(6)}"
    left = toolkit.policy.limits.max_notice_lines
    told: list[str] = []
    records: dict[str, dict[str, Any]] = {}
    thread = toolkit.running_thread()
    for now, known in changed:
        old = known.record
        if old is None:
            continue
        text, lines = "", 0
        views: tuple[View, ...] = ()
        if now.data is not None:
            text, views, lines = _difference(now, known, evidence, left, toolkit)
            toolkit.history.remember(now.data, now.digest)
        who = toolkit.history.writer(now.path, now.digest) if now.digest else None
        by = _outside.who_changed(who, agent, thread)
        done = "changed" if now.digest else "deleted"
        if len(told) < _MAX_NAMED:
            told.append(f"{now.path} was {done}{by and ' '}{by}.{text and chr(10)}{text}")
            left -= text.count("\n") + bool(text)
        else:
            views = ()
        record = Record(now.digest, now.size, lines, views, next_seq(old.seq), "notice")
        records[now.path] = record.to_state()
    more = len(records) - len(told)
    if more > 0:
        told.append(f"And {more} more files that were shown in this conversation changed.")
    content = "Files changed on disk since they were last shown here:\n" + "\n".join(told)
    message = HumanMessage(content, id=evidence, additional_kwargs=mark(content))
    return {"messages": [message], **update_of(agent, records)}


def _difference(
    now: _Now, known: Known, evidence: str, left: int, toolkit: FileToolkit
) -> tuple[str, tuple[View, ...], int]:
    """The diff as far as there is room, the views that it completes, and the file's lines."""
    data, record = now.data or b"", known.record
    try:
        lines = _text.profile(data, toolkit.policy.encodings).lines
    except Refused:  # no text any more
        return "", (), 0
    old = toolkit.history.content(record.digest) if record is not None and record.digest else None
    if old is None or left <= 0:
        return "", (), lines
    patch = _patch.patch_bytes(now.path, old, data, toolkit.policy.encodings)
    text, full = _outside.diff_text(patch, left)
    views = _records.move(known.views, _outside.edits_of(patch), evidence) if full else ()
    if now.path.endswith(".ipynb"):
        views = ()  # its views count cells, and the diff does not
    return text, views, lines


def shell_reads(
    command: str, output: Any, toolkit: FileToolkit, *, evidence: str | None = None, state: Any = None
) -> dict[str, Any]:
    """Book what a shell command showed of files: only text that really stands in its output.

    Args:
        command: As the model gave it.
        output: What the model is shown: the tool's message, or its text.
        toolkit: The toolkit of the agent.
        evidence: Id of the message with the output; None: the message's own id.
        state: The graph's state: views that the agent has already are kept. None: there are none.

    Returns:
        A state update; empty if nothing counts.
    """
    content = getattr(output, "content", output)
    evidence = evidence or getattr(output, "id", None) or f"fs-{secrets.token_hex(6)}"
    named = {shown.file_path for shown in _shell.named_files(command)}
    if not named or not isinstance(content, str):
        return {}
    agent = toolkit.running_agent()
    files: dict[str, tuple[str, _Now, _text.Profile]] = {}
    texts: dict[str, list[str]] = {}
    for given in named:
        found = _text_file(given, toolkit)
        if found is not None:
            files[given] = found
            texts[given] = _lines(found[1].data or b"", found[2])
    shown = _shell.attribute(command, content, texts)
    channel = channel_of(state) if state is not None else None
    context = Messages(value_of(state, "messages") if state is not None else None)
    records: dict[str, dict[str, Any]] = {}
    for given, ranges in shown.items():
        path, now, profile = files[given]
        if not ranges and profile.lines:
            continue
        before = _records.known(_of_path(channel or {}, path), agent, now.digest, context.alive)
        current = before.record is not None and before.record.digest == now.digest
        views = _records.tidy(
            (*(before.views if current else ()), *(View(first, last, evidence) for first, last in ranges))
        )
        seq = next_seq(before.record.seq if before.record else 0)
        records[path] = Record(now.digest, now.size, profile.lines, views, seq, "shell").to_state()
        toolkit.history.remember(now.data or b"", now.digest)
    return update_of(agent, records) if records else {}


def _text_file(given: str, toolkit: FileToolkit) -> tuple[str, _Now, _text.Profile] | None:
    try:
        location = toolkit.workspace.locate(given, write=False)
    except Refused:
        return None
    now = _now(location.path, toolkit)
    if now is None or now.data is None or location.path.endswith(".ipynb"):
        return None
    try:
        return location.path, now, _text.profile(now.data, toolkit.policy.encodings)
    except Refused:
        return None


def _lines(data: bytes, profile: _text.Profile) -> list[str]:
    fmt = profile.format
    pieces = _text.split_lines(data[len(fmt.bom) :], fmt)
    return [_text.decode(piece, fmt).removesuffix("\n").removesuffix("\r") for piece in pieces]


def seen(path: str, evidence: str, toolkit: FileToolkit, *, agent: str | None = None) -> dict[str, Any]:
    """Book a file whose whole current text stands in a message: `FileToolkit.seen`."""
    location = toolkit.workspace.locate(path, write=False)
    with toolkit.workspace.open(location) as target, _disk.lock(location.path):
        snapshot = _disk.snapshot(target, max_bytes=toolkit.policy.limits.max_file_bytes)
    if snapshot is None:
        raise Refused(f"File does not exist: {location.path}.", code="not_found")
    profile = _text.profile(snapshot.data, toolkit.policy.encodings)
    toolkit.history.remember(snapshot.data, snapshot.digest)
    views = (View(1, profile.lines, evidence),) if profile.lines else ()
    record = Record(profile.digest, profile.size, profile.lines, views, next_seq(), "read")
    name = agent or toolkit.running_agent()
    records = {location.path: record.to_state()}
    if not in_graph():
        toolkit.book(name, records)
    return update_of(name, records)


def known_before(state: Any, toolkit: FileToolkit) -> dict[str, str]:
    """The digests of the agent's files that are what they were when it saw them: to be taken before a command runs."""
    channel = channel_of(state) or {}
    known = {}
    for path, record in channel.get(toolkit.running_agent(), {}).items():
        digest = record.get("digest")
        if not digest:
            continue
        found = _disk.known_digest(path)
        if found is None:
            now = _now(path, toolkit)
            found = now.digest if now else None
        if found == digest:
            known[path] = digest
    return known


def record_changes(before: Mapping[str, str], toolkit: FileToolkit, *, checkpoint_id: str | None = None) -> list[str]:
    """Put into the history what changed while a command ran: nobody's for certain.

    Args:
        before: What `known_before` gave.
        toolkit: The toolkit of the agent.
        checkpoint_id: The checkpoint that the step started from.

    Returns:
        The paths.
    """
    changed = []
    for path, digest in before.items():
        if _disk.known_digest(path) == digest:
            continue
        now = _now(path, toolkit)
        if now is None or now.digest == digest:
            continue
        change = Change(
            id=toolkit.history.change_id(None, None, None),
            path=path,
            before=digest,
            after=now.digest or None,
            mode=None,
            seq=next_seq(),
            agent=None,
            tool="shell",
            thread_id=toolkit.running_thread(),
            checkpoint_id=checkpoint_id,
            tool_call_id=None,
        )
        toolkit.history.record(change, toolkit.history.content(digest))
        changed.append(path)
    return changed


def left_out(state_messages: Iterable[Any], request_messages: Iterable[Any], evidence: Iterable[str]) -> list[str]:
    """The evidence that stands in the state's messages but was not in the request to the model as it is there.

    Args:
        state_messages: The messages of the state.
        request_messages: What the model was sent.
        evidence: The message ids that records refer to.

    Returns:
        Ids, sorted.
    """
    had, sent = list(state_messages), list(request_messages)
    stood = Messages(had).alive(set(evidence))
    out = set(stood) - set(Messages(sent).alive(stood))
    # Messages of others carry no mark: there the texts themselves are compared.
    there = {message.id: message for message in sent}
    for message in had:
        if message.id in stood and message.id not in out and not mark_in(message):
            other = there[message.id]
            if other is not message and other.content != message.content and other.text != message.text:
                out.add(message.id)
    return sorted(out)
