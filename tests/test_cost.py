"""What calls cost, by counting: bytes, reads, looks at files and messages. No test here depends on a clock."""

from __future__ import annotations

import copy
import gc
import hashlib
import json
import os
import subprocess
import sys
import weakref
from collections import Counter, deque
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import START, StateGraph
from langgraph.prebuilt import ToolNode
from pydantic import model_serializer

from langchain_filestate import (
    FileHistory,
    FileToolkit,
    _detect,
    _disk,
    _match,
    _past,
    _patch,
    _reading,
    _spans,
    _sums,
    _text,
    changed_files,
    merge_records,
)
from langchain_filestate._diff import gaps
from langchain_filestate._giveway import without_old_media
from langchain_filestate._lean import Update
from langchain_filestate._policy import Limits
from langchain_filestate._records import MAX_RECORDS
from langchain_filestate._shelves import Images
from langchain_filestate._text import UTF8, split_lines
from langchain_filestate.state import Messages, mark
from tests.benchmarks.knowledge import conversation
from tests.scripted import Session, State, call, edit, read, tool_messages

BIG = "x = 0\n" + "y = 1  # some text in a line\n" * 1400  # about 40 kB

Make = Callable[..., Session]


def size(value: Any) -> int:
    return len(JsonPlusSerializer().dumps_typed(value)[1])


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Calls of the system by name, and bytes read."""
    counter: Counter[str] = Counter()

    def counted(name: str) -> None:
        real = getattr(os, name)

        def spy(*args: Any, **kwargs: Any) -> Any:
            counter[name] += 1
            result = real(*args, **kwargs)
            if name == "pread":
                counter["bytes"] += len(result)
                counter["largest"] = max(counter["largest"], len(result))
            return result

        monkeypatch.setattr(os, name, spy)

    for name in ("open", "stat", "lstat", "fstat", "pread", "pwrite", "fsync", "listdir", "scandir"):
        counted(name)
    return counter


def call_of(tools: dict[str, Any], name: str, **args: Any) -> Any:
    message = tools[name].invoke(call(name, **args))
    assert message.status == "success", message.content
    return message


# ---- what stands in a checkpoint -------------------------------------------------------------------------------------


def test_a_record_of_a_whole_file_is_small_and_stays_so(session: Make, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(BIG)
    s = session()
    s.say(read("a.py"))
    assert size(s.records()["coder" if "coder" in s.records() else "main"][str(tmp_path / "a.py")]) <= 250
    s.say(*[edit("a.py", f"x = {n}\n", f"x = {n + 1}\n") for n in range(20)])
    (record,) = (record for records in s.records().values() for record in records.values())
    assert len(record["views"]) == 2  # the read, and the newest edit
    assert size(record) <= 250


def test_an_edit_adds_little_to_the_messages_whatever_the_size_of_the_file(session: Make, tmp_path: Path) -> None:
    sizes = []
    for name, text in (("a.py", BIG), ("b.py", BIG + BIG[6:] * 9)):
        (tmp_path / name).write_text(text)
        s = session(thread=name)
        s.say(read(name, limit=1))
        message = s.one(edit(name, "x = 0\n", "x = 1\n"))
        assert message.status == "success", message.content
        sizes.append(size(message))
    assert max(sizes) < 1500
    assert abs(sizes[0] - sizes[1]) < 10


def test_a_read_stores_the_text_once(session: Make, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(BIG)
    message = session().one(read("a.py"))
    assert size(message) < len(message.content) + 1000


# ---- what is done to files -------------------------------------------------------------------------------------------


def test_an_edit_reads_the_file_twice_and_writes_it_once(quick_path: Path, counts: Counter[str]) -> None:
    (quick_path / "a.py").write_text(BIG)
    for other in range(50):
        (quick_path / f"{other}.txt").write_text("beside it\n")
    tools = {tool.name: tool for tool in FileToolkit(quick_path).get_tools()}
    call_of(tools, "read_file", file_path="a.py")
    counts.clear()
    call_of(tools, "edit_file", file_path="a.py", old_string="x = 0\n", new_string="x = 1\n")
    assert counts["bytes"] == 2 * len(BIG)  # to plan, and to compare under the lease
    assert counts["pwrite"] == 1
    assert counts["fsync"] == 2  # the bytes, and their name
    assert counts["open"] <= 6  # twice the directory and the file, the directory to sync, the new file
    assert counts["stat"] + counts["lstat"] + counts["fstat"] <= 16
    assert counts["listdir"] + counts["scandir"] == 0


def test_the_bytes_of_a_file_are_in_memory_once(quick_path: Path) -> None:
    (quick_path / "a.py").write_text(f"{BIG}# {quick_path}\n")  # the images of all histories are in one place
    toolkit = FileToolkit(quick_path, history=FileHistory())
    tools = {tool.name: tool for tool in toolkit.get_tools()}
    call_of(tools, "read_file", file_path="a.py")
    for n in range(3):
        call_of(tools, "edit_file", file_path="a.py", old_string=f"x = {n}\n", new_string=f"x = {n + 1}\n")
    kept = [str(change.before) for change in toolkit.history.changes(path=str(quick_path / "a.py"))]
    assert len(kept) == 3
    for digest in kept:  # for rewinds, and for what changed since a read
        assert toolkit.history._shelf.image(digest) is toolkit.history._read.get(digest)


def test_a_read_opens_and_reads_the_file_once(quick_path: Path, counts: Counter[str]) -> None:
    (quick_path / "a.py").write_text(BIG)
    tools = {tool.name: tool for tool in FileToolkit(quick_path).get_tools()}
    counts.clear()
    call_of(tools, "read_file", file_path="a.py")
    assert (counts["bytes"], counts["open"], counts["pwrite"], counts["fsync"]) == (len(BIG), 2, 0, 0)


def test_what_an_edit_costs_does_not_depend_on_what_else_was_read(quick_path: Path, counts: Counter[str]) -> None:
    for n in range(100):
        (quick_path / f"{n}.py").write_text(BIG)
    toolkit = FileToolkit(quick_path)
    tools = {tool.name: tool for tool in toolkit.get_tools()}
    seen = []
    for n in (0, 99):
        for other in range(n):
            toolkit.seen(f"{other}.py", "shown")
        call_of(tools, "read_file", file_path=f"{n}.py")
        counts.clear()
        call_of(tools, "edit_file", file_path=f"{n}.py", old_string="x = 0\n", new_string="x = 1\n")
        seen.append(dict(counts))
    assert seen[0] == seen[1]


def test_a_sweep_of_settled_files_opens_none(
    quick_path: Path, counts: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_disk, "SETTLED_NS", -(10**12))
    toolkit = FileToolkit(quick_path, agent="coder")
    records: dict[str, Any] = {}
    for n in range(MAX_RECORDS):
        (quick_path / f"{n}.py").write_text(f"value = {n}\n")
        records |= toolkit.seen(f"{n}.py", "shown")["file_state"]["coder"]
    state = {"messages": [HumanMessage("these", id="shown")], "file_state": {"coder": records}}
    counts.clear()
    assert changed_files(state, toolkit) == {}
    assert counts == Counter(lstat=MAX_RECORDS)
    (quick_path / "7.py").write_text("value = 8\n")
    counts.clear()
    assert "7.py" in changed_files(state, toolkit)["messages"][0].content
    assert counts["pread"] == 1


def test_a_window_of_a_large_file_holds_a_piece_at_a_time(
    quick_path: Path, counts: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_disk, "PIECE", 4096)
    monkeypatch.setattr(_reading, "WHOLE_BYTES", 4096)
    text = "".join(f"line {n}\n" for n in range(1, 20_001))
    (quick_path / "a.txt").write_text(text)
    tools = {tool.name: tool for tool in FileToolkit(quick_path, limits=Limits(max_chars=1000)).get_tools()}
    counts.clear()
    message = call_of(tools, "read_file", file_path="a.txt", offset=-20, limit=5)
    assert message.content.startswith(" 19981\tline 19981")
    pieces = -(-len(text) // 4096)
    assert pieces < counts["pread"] <= pieces + 4
    assert counts["bytes"] <= 2 * len(text) + 3 * 8096


# ---- what is compared ------------------------------------------------------------------------------------------------


def test_the_patch_of_an_edit_looks_at_the_lines_around_it_only(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[int] = []
    compared: list[int] = []

    def split(data: bytes, fmt: Any) -> list[bytes]:
        looked_at.append(len(data))
        return real(data, fmt)

    def gaps_of(old: Sequence[bytes], new: Sequence[bytes], budget: Any) -> Any:
        compared.append(len(old) + len(new))
        return gaps(old, new, budget)

    real = split_lines
    monkeypatch.setattr(_spans, "split_lines", split)
    monkeypatch.setattr(_patch, "split_lines", split)
    monkeypatch.setattr(_spans, "gaps", gaps_of)
    data = "".join(f"line {n}\n" for n in range(100_000)).encode()
    splices = _match.replace(data, UTF8, "line 50000\n", "LINE\n", replace_all=False)
    patch = _patch.patch_splices("a.txt", data, splices, UTF8)
    assert (patch.added, patch.removed, patch.hunks[0].source_start) == (1, 1, 49_998)
    assert sum(looked_at) < 200
    assert compared == [2]


@pytest.mark.parametrize("lines", [1000, 100_000])
def test_an_edit_counts_no_line_end_twice(quick_path: Path, monkeypatch: pytest.MonkeyPatch, lines: int) -> None:
    counted: list[int] = []

    def count(data: bytes, fmt: Any, start: int = 0, end: int | None = None) -> int:
        counted.append((len(data) if end is None else end) - start)
        return real(data, fmt, start, end)

    real = _text.count_newlines
    monkeypatch.setattr(_text, "count_newlines", count)
    monkeypatch.setattr(_spans, "count_newlines", count)
    text = "".join(f"line {n} of the file, with some text\n" for n in range(lines))
    (quick_path / "a.txt").write_text(text)
    tools = {tool.name: tool for tool in FileToolkit(quick_path).get_tools()}
    call_of(tools, "read_file", file_path="a.txt", limit=1)
    counted.clear()
    old = f"line {lines // 2} of"
    message = call_of(tools, "edit_file", file_path="a.txt", old_string=old, new_string=old.upper())
    assert message.artifact["patch"]["hunks"][0]["source_start"] == lines // 2 + 1 - 3
    # Where the format was not to be had by a glance, the line ends were counted with it, block by block.
    most = len(text) if len(text) <= _text.BLOCK else 2 * _text.BLOCK
    assert sum(counted) <= most + 200


def test_a_large_file_that_was_read_is_not_judged_again_to_edit_it(
    quick_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks: list[int] = []

    def block(self: Any, data: bytes, *, final: bool = False) -> None:
        blocks.append(len(data))
        real(self, data, final=final)

    real = _detect._Judge.block
    monkeypatch.setattr(_detect._Judge, "block", block)
    text = "".join(f"line {n} of the file, with söme text\n" for n in range(50_000))
    path = quick_path / "a.txt"
    path.write_text(text)
    tools = {tool.name: tool for tool in FileToolkit(quick_path).get_tools()}
    call_of(tools, "read_file", file_path="a.txt", limit=1)
    assert sum(blocks) == path.stat().st_size
    blocks.clear()
    call_of(tools, "edit_file", file_path="a.txt", old_string="line 7 of", new_string="line seven of")
    assert blocks == []
    path.write_text(path.read_text() + "one more\n")
    call_of(tools, "edit_file", file_path="a.txt", old_string="line 8 of", new_string="line eight of")
    assert sum(blocks) > len(text)  # other bytes may be anything


class Hashed:
    """SHA-256 that counts the bytes that it is given."""

    total = 0

    def __init__(self, sha: Any = None) -> None:
        self.sha = hashlib.sha256() if sha is None else sha

    def copy(self) -> Hashed:
        return Hashed(self.sha.copy())

    def update(self, data: bytes) -> None:
        Hashed.total += len(data)
        self.sha.update(data)

    def hexdigest(self) -> str:
        return str(self.sha.hexdigest())


def test_an_edit_of_a_large_file_neither_copies_it_nor_hashes_again_what_is_before_it(
    quick_path: Path, monkeypatch: pytest.MonkeyPatch, counts: Counter[str]
) -> None:
    monkeypatch.setattr(_sums, "hashlib", SimpleNamespace(sha256=Hashed))
    monkeypatch.setattr(_match.Spliced, "__bytes__", None)
    text = "".join(f"line {n} of the file, with some text\n" for n in range(100_000))
    (quick_path / "a.txt").write_text(text)
    toolkit = FileToolkit(quick_path)
    monkeypatch.setattr(toolkit.history, "_read", Images(len(text) // 2))  # larger files are not remembered
    tools = {tool.name: tool for tool in toolkit.get_tools()}
    call_of(tools, "read_file", file_path="a.txt", limit=1)
    Hashed.total = 0
    counts.clear()
    message = call_of(tools, "edit_file", file_path="a.txt", old_string="line 90000 of", new_string="line n of")
    after = text.replace("line 90000 of", "line n of")
    rest = len(text) - text.index("line 90000 of")
    assert Hashed.total <= len(text) + rest + _sums.STEP
    assert counts["bytes"] == 2 * len(text)  # to plan, and to compare under the lease
    assert counts["pwrite"] == 3
    assert (quick_path / "a.txt").read_text() == after
    assert message.artifact["after"] == hashlib.sha256(after.encode()).hexdigest()


class Watched(list[Any]):
    """Messages that count how often one is looked at."""

    looks = 0

    def __getitem__(self, at: Any) -> Any:
        self.looks += 1
        return super().__getitem__(at)


def test_evidence_is_looked_for_in_recent_messages_first_and_then_where_it_was() -> None:
    messages = Watched(conversation(1000))
    newest, oldest = messages[-1].id, messages[2].id
    messages.looks = 0
    assert Messages(messages).alive({newest}) == {newest}
    assert messages.looks <= 5
    assert Messages(messages).alive({oldest}) == {oldest}
    messages.looks = 0
    assert Messages(messages).alive({newest, oldest}) == {newest, oldest}
    assert messages.looks <= 10


class Asked(list[Any]):
    """Messages that count which of them are looked at, one by one or in passing."""

    def __init__(self, messages: Sequence[Any]) -> None:
        super().__init__(messages)
        self.at: set[int] = set()

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, int):
            self.at.add(at % len(self))
        return super().__getitem__(at)


def reads_of_one_file(count: int) -> list[Any]:
    """A conversation that reads the same file again and again, each time as other bytes."""
    messages: list[Any] = [HumanMessage("go", id="human")]
    for n in range(count):
        about = {"kind": "read", "digest": f"d{n}", "file_path": "/a.py", "first_line": 1, "last_line": 1}
        asked = AIMessage("", id=f"ai-{n}", tool_calls=[read("/a.py")])
        text, name = f"1\tline {n}", asked.tool_calls[0]["id"]
        answer = ToolMessage(text, id=f"fs-{n}", tool_call_id=name, artifact=about, additional_kwargs=mark(text))
        messages += [asked, answer]
    return messages


def shown_in(messages: Sequence[Any], n: int) -> str | None:
    return Messages(messages).shown("/a.py", f"d{n}", 1, 1, f"line {n}")


def test_a_long_conversation_is_looked_through_once() -> None:
    messages = reads_of_one_file(500)
    assert shown_in(messages, 3) == "fs-3"
    more = Asked([*messages, *reads_of_one_file(501)[-2:]])
    assert shown_in(more, 500) == "fs-500"
    assert shown_in(more, 3) == "fs-3"
    assert shown_in(more, 999) is None
    assert without_old_media(more, Limits()) == {}
    assert Messages(more).alive({"fs-3", "nowhere"}) == {"fs-3"}
    assert len(more.at) < 32
    for n in range(60):  # what stands at the end of one request only, as reminders do, is no reason to begin again
        request = Asked([*messages, *reads_of_one_file(501 + n)[-2 * n - 2 :], HumanMessage(f"do not forget {n}")])
        assert shown_in(request, 3) == "fs-3"
        assert len(request.at) < 100


@pytest.fixture
def no_tail(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is known goes on with each message."""
    monkeypatch.setattr(_past, "_LATE", 0)
    monkeypatch.setattr(_past, "_TAIL", 0)


@pytest.mark.usefixtures("no_tail")
def test_what_was_exchanged_or_taken_out_of_a_known_conversation_is_noticed() -> None:
    messages = reads_of_one_file(9)
    assert shown_in(messages, 3) == "fs-3"
    other = messages[8].model_copy(update={"artifact": {**messages[8].artifact, "digest": "other"}})
    assert shown_in([*messages[:8], other, *messages[9:]], 3) is None
    assert shown_in([*messages[:7], *messages[9:]], 3) is None
    assert shown_in([*messages[:7], *messages[9:]], 5) == "fs-5"
    assert shown_in([messages[0], *messages], 5) == "fs-5"
    block = {"type": "image", "base64": "A" * 200, "mime_type": "image/png"}
    pictured = messages[8].model_copy(update={"content": [block], "additional_kwargs": mark([block])})
    there = [*messages[:8], pictured, *messages[9:]]
    assert set(without_old_media(there, Limits(max_thread_media_bytes=150))) == {"fs-3"}
    assert without_old_media(messages, Limits(max_thread_media_bytes=150)) == {}
    assert shown_in(messages, 3) == "fs-3"


def test_messages_are_compared_by_identity_and_never_fail() -> None:
    class Odd:
        def __eq__(self, other: object) -> bool:
            raise ValueError("neither this nor that")

        __hash__ = None  # type: ignore[assignment]

    a, b = HumanMessage("a"), HumanMessage("b")
    odd = [ToolMessage("", tool_call_id="1", artifact=Odd()) for _ in range(2)]
    assert _past.alike([a, odd[0], b], [a, odd[0], b])
    assert not _past.alike([a, odd[0], b], [a, odd[1], b])
    assert not _past.alike([a, b], [a, b, b])
    assert not _past.alike([a, b, a], [a, a, a])
    assert _past.alike([], [])
    assert not _past.alike([Untouchable(content="a")], [Untouchable(content="a")])


@pytest.mark.usefixtures("no_tail")
def test_two_conversations_with_one_beginning_do_not_mix() -> None:
    messages = reads_of_one_file(20)
    assert shown_in(messages[:21], 5) == "fs-5"
    one, other = [*messages[:21], *messages[21:31]], [*messages[:21], *messages[31:]]
    for _ in range(2):
        assert [shown_in(one, n) for n in (5, 12, 17)] == ["fs-5", "fs-12", None]
        assert [shown_in(other, n) for n in (5, 12, 17)] == ["fs-5", None, "fs-17"]


@pytest.mark.usefixtures("no_tail")
def test_what_is_known_of_a_conversation_goes_with_it() -> None:
    gc.collect()
    before = len(_past._known)
    messages = reads_of_one_file(9)
    for end in range(2, 19):
        shown_in(messages[:end], 3)
    assert len(_past._known) == before + 1
    last = weakref.ref(messages[3])
    del messages
    gc.collect()
    assert len(_past._known) == before
    assert last() is None


@pytest.mark.usefixtures("no_tail")
def test_messages_in_other_shapes_are_looked_at_each_time() -> None:
    messages = [*reads_of_one_file(3), {"role": "user", "content": "go"}]
    assert shown_in(messages, 1) == "fs-1"
    assert shown_in([*messages, *reads_of_one_file(4)[-2:]], 3) == "fs-3"
    assert shown_in([], 3) is None


@pytest.mark.usefixtures("no_tail")
def test_what_is_known_does_not_keep_itself_alive() -> None:
    gc.collect()
    before = len(_past._known)
    twice = [*reads_of_one_file(3), HumanMessage("again", id="human")]
    messages = [twice[-1], *twice]
    assert shown_in(messages, 1) == "fs-1"
    last = weakref.ref(twice[-1])
    del messages, twice
    gc.collect()
    assert len(_past._known) == before
    assert last() is None


@pytest.mark.usefixtures("no_tail")
def test_ids_that_were_given_in_place_are_looked_up_again() -> None:
    messages = reads_of_one_file(40)
    assert Messages(messages).alive({"fs-2", "fs-30"}) == {"fs-2", "fs-30"}
    messages[6].id, messages[8].id = "other", "fs-2"
    assert Messages(messages).alive({"fs-2", "fs-30"}) == {"fs-2", "fs-30"}
    messages[8].id = "another"
    assert Messages(messages).alive({"fs-2", "fs-30"}) == {"fs-30"}


@pytest.mark.parametrize("late", [0, 8])
def test_artifacts_and_messages_of_others_may_be_anything(monkeypatch: pytest.MonkeyPatch, late: int) -> None:
    class Unclear:
        def __eq__(self, other: object) -> Any:
            return self

        def __bool__(self) -> bool:
            raise ValueError("the truth value of this is ambiguous")

        __hash__ = None  # type: ignore[assignment]

    class Slotted:
        __slots__ = ("content", "id")

        def __init__(self) -> None:
            self.id, self.content = "slotted", "text"

    monkeypatch.setattr(_past, "_LATE", late)
    monkeypatch.setattr(_past, "_TAIL", late)
    odd = {"kind": Unclear(), "digest": Unclear()}
    messages = [
        Slotted(),
        ToolMessage("rows", tool_call_id="1", artifact=odd),
        *reads_of_one_file(20),
        {"role": "user"},
    ]
    assert shown_in(messages, 3) == "fs-3"
    assert Messages(deque(messages)).alive({"fs-3", "slotted"}) == {"fs-3", "slotted"}
    assert without_old_media(messages[:-1], Limits()) == {}


def test_evidence_is_found_where_it_has_moved_to() -> None:
    messages = conversation(9)
    evidence = messages[-1].id
    assert Messages(messages).alive({evidence}) == {evidence}
    assert Messages(messages[2:]).alive({evidence}) == {evidence}
    assert Messages([*messages[:1], *messages]).alive({evidence}) == {evidence}
    assert Messages(messages[:-1]).alive({evidence}) == set()


def test_a_checksum_that_was_right_once_is_not_right_for_another_text() -> None:
    messages = conversation(3)
    evidence = messages[-1].id
    assert Messages(messages).alive({evidence}) == {evidence}
    cleared = messages[-1].model_copy(update={"content": "[cleared]"})
    assert Messages([*messages[:-1], cleared]).alive({evidence}) == set()
    args = {**messages[1].tool_calls[0]["args"], "new_string": "..."}
    cut = messages[1].model_copy(update={"tool_calls": [{**messages[1].tool_calls[0], "args": args}]})
    assert Messages([messages[0], cut, messages[2]]).alive({evidence}) == set()
    assert Messages(messages).alive({evidence}) == {evidence}


def test_arguments_with_lists_have_a_checksum_too() -> None:
    args = {"file_path": "a.py", "edits": [{"old_string": "a", "new_string": "b"}]}
    assert mark("done", args=args) == mark("done", args=copy.deepcopy(args))
    assert mark("done", args=args) != mark("done", args={**args, "edits": []})


class Untouchable(HumanMessage):
    """A message that nobody may dump or copy."""

    @model_serializer
    def _dump(self) -> dict[str, Any]:
        raise AssertionError("dumped")

    def __deepcopy__(self, memo: Any = None) -> Any:
        raise AssertionError("copied")


def test_a_call_neither_dumps_nor_copies_the_messages(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(BIG)
    builder = StateGraph(State)
    builder.add_node("tools", ToolNode(FileToolkit(tmp_path).get_tools()))
    builder.add_edge(START, "tools")
    graph = builder.compile()
    state: Any = {"messages": [Untouchable(content="go"), AIMessage("", tool_calls=[read("a.py")])]}
    state = graph.invoke(state)
    state["messages"].append(AIMessage("", tool_calls=[edit("a.py", "x = 0\n", "x = 1\n")]))
    assert [message.status for message in tool_messages(graph.invoke(state))] == ["success"] * 2


def test_the_answer_of_a_call_is_not_copied() -> None:
    update: Any = Update(update={"messages": [object()]})
    assert copy.deepcopy(update) is update


def test_records_that_are_the_same_are_not_written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    record = {"v": 1, "digest": "d", "size": 1, "lines": 1, "views": [], "seq": 1, "origin": "read"}
    state = {"main": {f"/{n}": {**record, "seq": n} for n in range(10)}}
    monkeypatch.setattr(json, "dumps", None)
    assert merge_records(state, copy.deepcopy(state)) == state
    newer = {"main": {"/3": {**record, "seq": 99}}}
    assert merge_records(state, newer)["main"]["/3"]["seq"] == 99


# ---- what is imported ------------------------------------------------------------------------------------------------

SEEN = """
import sys
import langgraph.graph, langchain_core.tools
before = set(sys.modules)
import langchain_filestate
print("\\n".join(set(sys.modules) - before))
"""


def test_the_package_loads_no_extra_and_little_else() -> None:
    done = subprocess.run([sys.executable, "-c", SEEN], capture_output=True, text=True, check=True)
    new = set(done.stdout.split())
    tops = {name.partition(".")[0] for name in new}
    extras = {"langchain", "charset_normalizer", "PIL", "pypdf", "rich", "pygments", "platformdirs", "psycopg"}
    assert not tops & (extras | {"pathspec", "unidiff", "deepagents"})
    own = {name.partition(".")[2] for name in new if name.partition(".")[0] == "langchain_filestate"}
    glue = {"_operations", "_past", "state", "_running", "_arguments", "_lean", "_siblings", "tools"}
    values = {"errors", "_changes", "_codec", "_hunks", "_records", "results", "_policy"}
    assert own == {"", *glue, *values}


USED = """
import sys
from langchain_filestate import FileToolkit
def loaded():
    print(*(name for name in sys.modules if name.startswith("langchain_filestate.")))
tools = {tool.name: tool for tool in FileToolkit(sys.argv[1]).get_tools()}
loaded()
tools["read_file"].invoke({"file_path": "a.py"})
loaded()
tools["edit_file"].invoke({"file_path": "a.py", "old_string": "1", "new_string": "2"})
loaded()
"""


def test_calls_load_only_what_they_need(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    done = subprocess.run([sys.executable, "-c", USED, str(tmp_path)], capture_output=True, text=True, check=True)
    made, read_one, edited = (set(line.split()) for line in done.stdout.splitlines())
    assert (tmp_path / "a.py").read_text() == "x = 2\n"
    assert read_one == made  # the threads of a first message find all that is mostly needed
    assert edited - made == {f"langchain_filestate.{name}" for name in ("_omission", "_phrases")}
    cells = {"_json_spans", "_outputs", "_cells", "_notebook", "_celldiff", "_cellplan"}
    others = {"watch", "_notice", "_shell", "_shell_commands", "_rewind", "_approval", "_store_shelf", "_giveway"}
    shown = {"middleware", "display", "_nearmiss", "_mismatch", "_slips", "_twins", "_media_image", "_media_pdf"}
    assert not edited & {f"langchain_filestate.{name}" for name in cells | others | shown}


def test_bytes_that_are_at_hand_are_compared_and_not_hashed_again(
    session: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.py"
    path.write_text(BIG)
    s = session()
    s.say(read(path))
    hashed: list[bytes] = []
    real = _disk.digest

    def digest(data: bytes) -> str:
        hashed.append(data)
        return real(data)

    monkeypatch.setattr(_disk, "digest", digest)
    s.say(edit(path, "x = 0\n", "x = 1\n"), edit(path, "x = 1\n", "x = 2\n"))
    assert hashed == [BIG.replace("x = 0", f"x = {n}").encode() for n in (1, 2)]
    path.write_text(BIG)  # and somebody else's bytes are never taken for those
    s.say(edit(path, "x = 0\n", "x = 3\n"))
    assert hashed[2:] == [BIG.encode(), BIG.replace("x = 0", "x = 3").encode()]
    assert path.read_text() == BIG.replace("x = 0", "x = 3")
