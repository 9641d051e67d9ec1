"""What happens around the tools: files that change outside, and shell commands that show or change files.

Plain functions over a state and a toolkit, for hand-made graphs; `FileStateMiddleware` calls them for `create_agent`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from langchain_core.messages import AIMessage, HumanMessage

from langchain_filestate import _disk, _past, _records, _shell, _text
from langchain_filestate._history import Change, next_seq
from langchain_filestate._notice import Item, Now, Told, notice
from langchain_filestate._plan import cells_in
from langchain_filestate._records import Record, View
from langchain_filestate._running import in_graph
from langchain_filestate.errors import Refused
from langchain_filestate.state import LEFT_OUT, Messages, channel_of, mark, mark_in, new_id, update_of, value_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from langchain_filestate._records import State
    from langchain_filestate.tools import FileToolkit

_MAX_BYTES = 8 * 1024 * 1024
"""Larger files are announced without a diff, and not looked for in a command's output."""

_PASSING = frozenset({"busy"})
"""Refusals that say nothing of what a file is."""

_CLOSED = frozenset({"denied", "outside_root", "bad_path"})
"""Refusals of what an agent may not know."""


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
    messages = value_of(state, "messages")
    context = Messages(messages, value_of(state, LEFT_OUT) or ())
    told, mine = _told(messages or ()), channel.get(agent, {})
    items: list[Item] = []
    for path in suspects:
        last = mine.get(path, {}).get("digest")
        now = _now(path, toolkit, last)
        if now is None or last == now.digest:
            continue
        known = _records.known(_of_path(channel, path), agent, now.digest, context.alive)
        if known.record is not None and known.record.digest != now.digest:
            said = told.get(path)
            items.append(Item(now, known, said if said is not None and said.digest == now.digest else None))
    if not items:
        return {}
    evidence = new_id()
    thread_id = toolkit.running_thread()
    made = notice(items, toolkit.history, toolkit.policy, agent=agent, thread_id=thread_id, evidence=evidence)
    update = update_of(agent, {path: record.to_state() for path, record in made.records.items()})
    if made.text is None:
        return update
    return {"messages": [HumanMessage(made.text, id=evidence, additional_kwargs=mark(made.text))], **update}


def _told(messages: Sequence[Any]) -> dict[str, Told]:
    """Refusals of the last step that have shown how a file was changed: it is not said twice."""
    told: dict[str, Told] = {}
    for message in reversed(messages):
        if isinstance(message, AIMessage):
            break
        stale = mark_in(message).get("stale")
        artifact = getattr(message, "artifact", None)
        if isinstance(stale, dict) and isinstance(artifact, dict):
            found = Told(str(message.id), str(stale.get("digest")), stale.get("full") is True)
            told.setdefault(str(artifact.get("file_path")), found)
    return told


def _suspects(channel: State, agent: str, messages: Sequence[Any] | None) -> list[str]:
    """Paths whose digest on disk may not be the one of the record; a settled stamp saves the reading."""
    known_digest, mine = _disk.known_digest, channel.get(agent, {})
    suspects = [path for path, record in mine.items() if known_digest(path) != record.get("digest")]
    others = [
        (path, record)
        for name, records in channel.items()
        if name != agent
        for path, record in records.items()
        if path not in mine
    ]
    if others:
        there = {getattr(message, "id", None) for message in messages or ()}
        suspects += [
            path
            for path, record in others
            if not there.isdisjoint(_records.evidence_in(record)) and known_digest(path) != record.get("digest")
        ]
    return list(dict.fromkeys(suspects))


def _of_path(channel: State, path: str) -> dict[str, Record]:
    loaded = {name: _records.load(records.get(path)) for name, records in channel.items()}
    return {name: record for name, record in loaded.items() if record is not None}


def _now(path: str, toolkit: FileToolkit, last: object = None) -> Now | None:
    """The file as it is, most likely as it was last; None if this toolkit may not look, or it cannot be told now."""
    likely = toolkit.history.remembered(last) if isinstance(last, str) else None
    try:
        location = toolkit.workspace.at(path, write=False)
        with toolkit.workspace.open(location) as target, _disk.lock(path):
            size = _disk.size_of(target)
            if size is None:
                return Now(path, "", 0, None, "gone")
            if size > _MAX_BYTES:
                digest = _disk.digest_of(target)
                return Now(path, digest, size, None) if digest else Now(path, "", 0, None, "gone")
            snapshot = _disk.snapshot(target, likely=likely)
            if snapshot is None:
                return Now(path, "", 0, None, "gone")
            # What was read is at hand when the file has changed by the next look, also after a restart.
            toolkit.history.remember(snapshot.data, snapshot.digest)
            return Now(path, snapshot.digest, size, snapshot.data)
    except Refused as refused:
        if refused.code in _PASSING or refused.code in _CLOSED:
            return None
        return Now(path, "", 0, None, "gone" if refused.code == "not_found" else "unreadable")


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
        A state update; empty if nothing counts, as where no message is named.
    """
    content = getattr(output, "content", output)
    evidence = evidence or getattr(output, "id", None)
    named = {shown.file_path for shown in _shell.named_files(command)}
    if not named or not isinstance(content, str) or evidence is None:
        return {}
    agent = toolkit.running_agent()
    files: dict[str, tuple[str, Now, _text.Profile]] = {}
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


def _text_file(given: str, toolkit: FileToolkit) -> tuple[str, Now, _text.Profile] | None:
    """The file that a command names. If it is another one than the shell's, its text is not the one of the output."""
    for locate in (toolkit.workspace.locate, toolkit.workspace.at):  # a shell knows no virtual root
        try:
            location = locate(given, write=False)
            now = _now(location.path, toolkit)
            # A notebook is read by cells, and its raw text shows none.
            if now is not None and now.data is not None and cells_in(location.path, now.data) is None:
                return location.path, now, _text.profile(now.data, toolkit.policy.encodings)
        except Refused:
            continue
    return None


def _lines(data: bytes, profile: _text.Profile) -> list[str]:
    fmt = profile.format
    pieces = _text.split_lines(data[len(fmt.bom) :], fmt)
    return [_text.decode(piece, fmt).removesuffix("\n").removesuffix("\r") for piece in pieces]


def seen(path: str, evidence: str, toolkit: FileToolkit, *, agent: str | None = None) -> dict[str, Any]:
    """Book a file whose whole current text stands in a message: `FileToolkit.seen`."""
    location = toolkit.workspace.locate(str(path), write=False)  # a person may well give a `Path`
    with toolkit.workspace.open(location) as target, _disk.lock(location.path):
        snapshot = _disk.snapshot(target, max_bytes=toolkit.policy.limits.max_file_bytes)
    if snapshot is None:
        raise Refused(f"File does not exist: {location.path}.", code="not_found")
    profile = _text.profile(snapshot.data, toolkit.policy.encodings)
    toolkit.history.remember(snapshot.data, snapshot.digest)
    cells = cells_in(location.path, snapshot.data)
    count = profile.lines if cells is None else cells
    views = (View(1, count, evidence),) if count else ()
    record = Record(profile.digest, profile.size, count, views, next_seq(), "read" if cells is None else "notebook")
    name = agent or toolkit.running_agent()
    records = {location.path: record.to_state()}
    if not in_graph():
        toolkit.book(name, records)
    return update_of(name, records)


class Held(NamedTuple):
    """A file before a command runs: its digest, and its permission bits."""

    digest: str
    mode: int | None


def known_before(state: Any, toolkit: FileToolkit) -> dict[str, Held]:
    """The agent's files that are what they were when it saw them, by path: to be taken before a command runs."""
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
            known[path] = Held(digest, _disk.mode_of(path))
    return known


def record_changes(
    before: Mapping[str, Held],
    toolkit: FileToolkit,
    *,
    checkpoint_id: str | None = None,
    tool_call_id: str | None = None,
) -> list[str]:
    """Put into the history what changed while a command ran: nobody's for certain.

    Args:
        before: What `known_before` gave.
        toolkit: The toolkit of the agent.
        checkpoint_id: The checkpoint that the step started from.
        tool_call_id: The call that ran the command.

    Returns:
        The paths.
    """
    changed = []
    for path, (digest, mode) in before.items():
        if _disk.known_digest(path) == digest:
            continue
        now = _now(path, toolkit)
        if now is None or now.digest == digest:
            continue
        if toolkit.history.chain(path, digest, now.digest or None):
            continue  # another call's or agent's, which is on record
        change = Change(
            id=toolkit.history.change_id(None, None, None),
            path=path,
            before=digest,
            after=now.digest or None,
            mode=mode,
            seq=next_seq(),
            agent=None,
            tool="shell",
            thread_id=toolkit.running_thread(),
            checkpoint_id=checkpoint_id,
            tool_call_id=tool_call_id,
        )
        toolkit.history.record(change, toolkit.history.content(digest))
        changed.append(path)
    return changed


def left_out(state_messages: Sequence[Any], request_messages: Sequence[Any], evidence: Iterable[str]) -> list[str]:
    """The evidence that stands in the state's messages but was not in the request to the model as it is there.

    Args:
        state_messages: The messages of the state.
        request_messages: What the model was sent.
        evidence: The message ids that records refer to.

    Returns:
        Ids, sorted.
    """
    had, sent = state_messages, request_messages
    if had is sent or _past.alike(had, sent):
        return []  # as it mostly is
    there = {message.id: message for message in sent}
    stood = Messages(had).alive(set(evidence))
    out = set(stood) - set(Messages(sent).alive(stood))
    for message in had:
        # Messages of others carry no mark: there the texts themselves are compared.
        if message.id in stood and message.id not in out and not mark_in(message):
            other = there[message.id]
            if other is not message and other.content != message.content and other.text != message.text:
                out.add(message.id)
    return sorted(out)
