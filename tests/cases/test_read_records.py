"""What an agent has read: under one name, in its own context, and only as much as it was shown."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.prebuilt import ToolRuntime
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command

from langchain_filestate import FileHistory
from tests.cases.steps import Desk, Make, code, edit, many, read, write
from tests.scripted import KINDS, Session, agent_session, call, graph_session, tool_messages

UNCHANGED = "File unchanged since last read."


# ---- RS-01 ----------------------------------------------------------------------------------------------------------


def test_rs_01_one_record_for_all_spellings(session: Make, tmp_path: Path) -> None:
    root = tmp_path / "w"
    (root / "sub" / "deep").mkdir(parents=True)
    path = root / "a.txt"
    path.write_text("0\n")
    (root / "here").symlink_to(".")
    (root / "deeper").symlink_to("sub/deep")
    (tmp_path / "alias").symlink_to("w")
    spellings = [
        "a.txt", "./a.txt", "././a.txt", "sub/../a.txt", f"{root}/sub/../a.txt", f"{tmp_path}//w///a.txt", f"{root}/./a.txt",
        "here/a.txt", "here/here/a.txt", f"{tmp_path}/alias/a.txt", "deeper/../../a.txt",
    ]  # fmt: skip
    s = session(root)
    numbers = itertools.count()
    for start, then in itertools.pairwise(spellings):
        n = next(numbers)
        out = s.say(read(start), edit(then, f"{n}\n", f"{n + 1}\n"))
        assert [code(m) for m in out] == [None, None], (start, then, out[-1].content)
        assert {m.artifact["file_path"] for m in out} == {str(path)}
    assert [list(paths) for paths in s.records().values()] == [[str(path)]]
    # `..` after a link goes up from where it leads, as the kernel has it.
    assert s.one(write("here/../w/a.txt", "x\n")).artifact["file_path"] == str(path)
    assert path.read_text() == "x\n"


def test_rs_01_a_root_that_is_a_link(session: Make, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a").write_text("1\n")
    (tmp_path / "link").symlink_to("real")
    s = session(tmp_path / "link")
    out = s.say(read("a"), edit(tmp_path / "real" / "a", "1", "2"), write(tmp_path / "link" / "a", "3\n"))
    assert [code(m) for m in out] == [None] * 3


def test_rs_01_two_files_are_two_records(session: Make, tmp_path: Path) -> None:
    """The other side: names that only look the same are other files."""
    names = ["a", "A", "a ", "caf\u00e9", unicodedata.normalize("NFD", "caf\u00e9"), "a\u00a0b", "a b"]
    s = session()
    for name in names:
        (tmp_path / name).write_text(f"{name}\n")
    s.say(read(names[0]))
    out = s.say([write(name, "x") for name in names])
    assert [code(m) for m in out] == [None] + ["not_read"] * (len(names) - 1)


# ---- RS-03 ----------------------------------------------------------------------------------------------------------

RESUME = """
import json, sys
from pathlib import Path
from langgraph.checkpoint.sqlite import SqliteSaver
from tests.scripted import KINDS, code, edit, write
root, out = Path(sys.argv[1]), {}
with SqliteSaver.from_conn_string(str(root / "db.sqlite")) as saver:
    for kind, make in KINDS.items():
        s = make(root / kind, checkpointer=saver, thread=kind)
        said = s.say(edit("same", "one", "two"), edit("other", "one", "two"), write("same", "three\\n"), write("other", "x"))
        out[kind] = [[code(m), m.artifact] for m in said]
print(json.dumps(out))
"""


def test_rs_03_a_resumed_session_has_not_forgotten(tmp_path: Path) -> None:
    with SqliteSaver.from_conn_string(str(tmp_path / "db.sqlite")) as saver:
        for kind, make in KINDS.items():
            (tmp_path / kind).mkdir()
            for name in ("same", "other"):
                (tmp_path / kind / name).write_text(
                    f"one\nrest of {name}\n"
                )  # the bytes of one tell nothing of the other
            make(tmp_path / kind, checkpointer=saver, thread=kind).say([read("same"), read("other")])
            (tmp_path / kind / "other").write_text("one\nREST\n")
    env = {**os.environ, "LANGGRAPH_STRICT_MSGPACK": "true", "PYTHONPATH": str(Path.cwd())}
    done = subprocess.run(
        [sys.executable, "-c", RESUME, str(tmp_path)], env=env, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    for kind, out in json.loads(done.stdout).items():
        # In a new process nobody knows the old bytes any more: the edit goes ahead, and says that it does not know.
        assert [c for c, _ in out[:3]] == [None, None, None], out
        assert out[3][0] in {"stale", "partially_read", "not_in_context"}  # never "not_read"
        assert out[1][1]["stale_recovered"] is True
        assert (tmp_path / kind / "other").read_text() == "two\nREST\n"


def forget(s: Session, *kinds: type[Any]) -> None:
    gone = [RemoveMessage(m.id) for m in s.state()["messages"] if not kinds or isinstance(m, kinds)]
    s.graph.update_state(s.config, {"messages": gone}, as_node="tools")


def test_rs_03_after_trimming_an_edit_works_and_an_overwrite_asks_for_the_text(session: Make, tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("one\nrest\n")
    s = session()
    s.say(read(path))
    forget(s)
    changed, whole = s.say(edit(path, "one", "two"), write(path, "x\n"))
    assert changed.status == "success"
    assert changed.artifact["stale_recovered"] is False
    assert changed.artifact["content_not_in_model_context"] is True
    assert code(whole) in {"not_in_context", "partially_read"}
    again, whole = s.say(read(path), write(path, "x\n"))
    assert "rest" in again.content
    assert whole.status == "success"


def test_rs_03_another_thread_has_read_nothing(session: Make, tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("one\n")
    saver = InMemorySaver()
    session(checkpointer=saver, thread="1").say(read(path))
    other = session(checkpointer=saver, thread="2")
    assert [code(m) for m in other.say(edit(path, "one", "two"), write(path, "x"))] == ["not_read", "not_read"]


# ---- RS-04 ----------------------------------------------------------------------------------------------------------


def summarised(s: Session) -> None:
    s.graph.update_state(
        s.config,
        {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES), HumanMessage("Summary: f was read.")]},
        as_node="tools",
    )


def only_the_result(s: Session) -> None:
    forget(s, ToolMessage)


def cleared(s: Session) -> None:
    """As context editing that writes back: the same id with another content."""
    message = tool_messages(s.state())[-1]
    s.graph.update_state(s.config, {"messages": [message.model_copy(update={"content": "[cleared]"})]}, as_node="tools")


def copied(s: Session) -> None:
    """A new message with the same text under another id: nobody can tell what it is."""
    message = tool_messages(s.state())[-1]
    update = [RemoveMessage(message.id or ""), message.model_copy(update={"id": "other", "content": "gone"})]
    s.graph.update_state(s.config, {"messages": update}, as_node="tools")


SURGERY = {"all": forget, "summary": summarised, "only the result": only_the_result, "other content": cleared, "other id and content": copied}  # fmt: skip


@pytest.mark.parametrize("surgery", SURGERY.values(), ids=SURGERY)
def test_rs_04_text_that_is_gone_is_sent_again(
    session: Make, tmp_path: Path, surgery: Callable[[Session], None]
) -> None:
    path = tmp_path / "f"
    path.write_text("the text\nof it\n")
    s = session()
    first, second = s.say(read(path), read(path))
    assert "the text" in first.content
    assert str(second.content).startswith(UNCHANGED)
    forget(s, AIMessage, HumanMessage)
    forget_last(s)
    surgery(s)
    again, write_again = s.say(read(path), write(path, "new\n"))
    assert "the text\n" in again.content
    assert write_again.status == "success"


@pytest.mark.parametrize("surgery", SURGERY.values(), ids=SURGERY)
def test_rs_04_text_that_is_gone_is_no_ground_to_overwrite(
    session: Make, tmp_path: Path, surgery: Callable[[Session], None]
) -> None:
    path = tmp_path / "f"
    path.write_text("the text\nof it\n")
    s = session()
    s.say(read(path))
    surgery(s)
    assert code(s.one(write(path, "new\n"))) == "not_in_context"
    assert path.read_text() == "the text\nof it\n"


def forget_last(s: Session) -> None:
    last = tool_messages(s.state())[-1]
    s.graph.update_state(s.config, {"messages": [RemoveMessage(last.id or "")]}, as_node="tools")


def test_rs_04_the_first_goes_and_the_note_stays(session: Make, tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("the text\nof it\n")
    s = session()
    first, note = s.say(read(path), read(path))
    assert str(note.content).startswith(UNCHANGED)
    s.graph.update_state(s.config, {"messages": [RemoveMessage(first.id or "")]}, as_node="tools")
    again, whole = s.say(read(path), write(path, "x\n"))
    assert "the text" in again.content  # the note is no text
    assert whole.status == "success"


def test_rs_04_the_note_is_only_for_the_same_bytes_and_range(session: Make, tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("".join(f"line {n}\n" for n in range(1, 21)))
    s = session()
    reads = [
        read(path),
        read(path),
        read(path, offset=3),
        read(path, limit=5),
        read(path, offset=3, limit=2),
        read(path, offset=3),
    ]
    told = [str(m.content).startswith(UNCHANGED) for m in s.say(*reads)]
    assert told == [False, True, False, False, False, True]

    def by_hand() -> Any:
        path.write_text(path.read_text().replace("line 20", "line twenty"))
        return read(path, limit=5)

    assert not str(s.one(by_hand).content).startswith(UNCHANGED)


def test_rs_04_before_a_fork_nothing_was_read(session: Make, tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("the text\n")
    s = session()
    s.say("hello")
    before = s.graph.get_state(s.config).config
    s.say(read(path))
    s.config = s.graph.update_state(before, {"messages": [HumanMessage("another way")]}, as_node="tools")
    s.model.script[:] = [write(path, "x"), read(path), "done"]
    out = s.graph.invoke(None, s.config)
    refused, shown = tool_messages(out)[-2:]
    assert code(refused) == "not_read"
    assert "the text" in shown.content


def test_rs_04_two_reads_of_one_message_show_it_at_least_once(session: Make, tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("the text\n")
    out = session().say([read(path), read(path)])
    assert any("the text" in str(m.content) for m in out)
    assert "the text" in out[0].content or not str(out[0].content).startswith(UNCHANGED)


# ---- RS-05, RS-06: parent and child ---------------------------------------------------------------------------------


def family(root: Path, child_says: list[Any], *, parent: str = "parent", child: str = "child", share: bool = True) -> tuple[Session, list[Any]]:  # fmt: skip
    """A parent with a tool that runs a child on messages of its own, with the parent's records, and takes them back."""
    answers: list[Any] = []
    theirs = agent_session(root, name=child, checkpointer=False)

    @tool
    def delegate(runtime: ToolRuntime) -> Any:
        """Let the child do it."""
        theirs.model.script[:] = [*child_says, "done"]
        given = {"file_state": runtime.state["file_state"]} if share else {}
        out = theirs.graph.invoke({"messages": [HumanMessage("do it")], **given})
        answers.extend(tool_messages(out))
        return Command(update={"messages": [ToolMessage("done", tool_call_id=runtime.tool_call_id)], "file_state": out["file_state"]})  # fmt: skip

    return agent_session(root, name=parent, tools=[delegate]), answers


@pytest.mark.parametrize("names", [("parent", "child"), ("same", "same")], ids=["two names", "one name"])
def test_rs_05_a_child_has_read_nothing(tmp_path: Path, names: tuple[str, str]) -> None:
    path = tmp_path / "f"
    path.write_text("the text\n")
    s, answers = family(
        tmp_path, [write(path, "x\n"), read(path), write(path, "child\n")], parent=names[0], child=names[1]
    )
    s.say(read(path), call("delegate"))
    refused, shown, done = answers
    assert code(refused) in {"not_read", "not_in_context"}
    assert "the text" in shown.content
    assert done.status == "success"


def test_rs_05_a_child_may_not_edit_what_it_has_not_read(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("the text\n")
    s, answers = family(tmp_path, [edit(path, "the", "a"), many(path, ("the", "a"))])
    s.say(read(path), call("delegate"))
    assert [code(m) for m in answers] == ["not_read", "not_read"]


def test_rs_05_a_sibling_has_read_nothing(tmp_path: Path) -> None:
    """Two agents on one toolkit's root, one thread each: hash facts are shared, reading is not."""
    path = tmp_path / "f"
    path.write_text("the text\n")
    one, two = agent_session(tmp_path, name="one"), agent_session(tmp_path, name="two")
    one.say(read(path))
    refused, shown = two.say(write(path, "x"), read(path))
    assert code(refused) == "not_read"
    assert "the text" in shown.content


def test_rs_06_a_parent_is_told_of_the_childs_work(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("one\ntwo\n")
    s, answers = family(tmp_path, [read(path), edit(path, "two", "TWO")])
    s.say(read(path), call("delegate"), edit(path, "TWO", "2"))
    assert [code(m) for m in answers] == [None, None]
    # The request after the child's return tells what changed, and by whom: so the parent knows what it goes on with.
    notices = [str(m.content) for m in s.model.requests[-2] if isinstance(m, HumanMessage)]
    assert '"child"' in notices[-1]
    assert "+TWO" in notices[-1]
    assert path.read_text() == "one\n2\n"


def test_rs_06_side_by_side_in_one_message(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("one\ntwo\n")
    s, answers = family(tmp_path, [read(path), edit(path, "two", "TWO")])
    _, _, whole = s.say(read(path), [call("delegate"), write(path, "one\ntwo\nthree\n")])
    # Whoever came first: the other one worked on what was there, or was refused.
    if code(whole) is None:
        assert path.read_text() == "one\nTWO\nthree\n"
    else:
        assert (code(whole), path.read_text()) == ("stale", "one\nTWO\n")
        assert '"child"' in str(whole.content)
    assert [code(m) for m in answers] == [None, None]


@pytest.mark.parametrize("share", [True, False])
def test_rs_06_an_old_view_is_refused_and_names_the_child(tmp_path: Path, share: bool) -> None:
    path = tmp_path / "f"
    path.write_text("one\ntwo\n")
    saver = InMemorySaver()
    s, _ = family(tmp_path, [read(path), edit(path, "two", "TWO")], share=share)
    theirs = graph_session(tmp_path, agent="parent", checkpointer=saver)  # no middleware, so nobody announces anything
    theirs.say(read(path))
    s.say(call("delegate"))
    whole = theirs.one(write(path, "one\ntwo\nthree\n"))
    assert code(whole) == "stale"
    assert '"child"' in whole.content
    assert "+TWO" in whole.content
    assert path.read_text() == "one\nTWO\n"


def test_rs_06_the_childs_newer_record_gives_no_credit(tmp_path: Path) -> None:
    path, other = tmp_path / "f", tmp_path / "g"
    path.write_text("one\ntwo\n")
    other.write_text("never read by the parent\n")
    s, _ = family(tmp_path, [read(path), read(other), edit(path, "two", "TWO"), edit(other, "never", "not")])
    s.say(call("delegate"))
    assert [code(m) for m in s.say(write(path, "x"), write(other, "x"), edit(other, "not", "x"))] == ["not_read"] * 3


# ---- RS-07 ----------------------------------------------------------------------------------------------------------


def test_rs_07_work_trees_are_kept_apart(session: Make, tmp_path: Path) -> None:
    outer, inner = tmp_path / "repo", tmp_path / "repo" / ".wt" / "x"
    for tree in (outer, inner):
        (tree / "src").mkdir(parents=True)
        (tree / "src" / "a.py").write_text("x = 1\n")
    s = session(inner)
    out = s.say(
        read("src/a.py"), edit("src/a.py", "1", "2"), read(outer / "src/a.py"), edit(outer / "src/a.py", "1", "3")
    )
    assert [code(m) for m in out] == [None, None, "outside_root", "outside_root"]
    assert str(inner / "src" / "a.py") in out[1].content
    assert out[1].artifact["file_path"] == str(inner / "src" / "a.py")
    assert (inner / "src/a.py").read_text() == "x = 2\n"
    assert (outer / "src/a.py").read_text() == "x = 1\n"
    assert [code(m) for m in s.say(read("../../src/a.py"), write("../../src/new.py", "x"))] == ["outside_root"] * 2
    assert not (outer / "src/new.py").exists()


def test_rs_07_the_directory_of_the_process_does_not_matter(
    session: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a").write_text(f"{name}\n")
    monkeypatch.chdir(tmp_path / "here")
    s = session(Path())  # "."
    monkeypatch.chdir(tmp_path / "there")
    assert "here" in s.one(read("a")).content
    assert s.one(write("new", "x")).status == "success"
    assert (tmp_path / "here" / "new").exists()


def test_rs_07_from_outside_in(session: Make, tmp_path: Path) -> None:
    """Extra roots are reached by absolute paths only, and a relative one never falls through to them."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "f").write_text("b\n")
    s = session(tmp_path / "a", extra_roots=[tmp_path / "b"])
    assert [code(m) for m in s.say(read("f"), read(tmp_path / "b" / "f"))] == ["not_found", None]


# ---- RS-08 ----------------------------------------------------------------------------------------------------------

LOOK_ALIKES = {
    "U+202F": ("Shot 1.00\u202fPM.txt", "Shot 1.00 PM.txt"),
    "NBSP": ("a\u00a0b.txt", "a b.txt"),
    "given NBSP": ("a b.txt", "a\u00a0b.txt"),
    "decomposed": (unicodedata.normalize("NFD", "caf\u00e9.txt"), unicodedata.normalize("NFC", "caf\u00e9.txt")),
    "composed": (unicodedata.normalize("NFC", "caf\u00e9.txt"), unicodedata.normalize("NFD", "caf\u00e9.txt")),
    "curly": ("Bob\u2019s.txt", "Bob's.txt"),
    "straight": ("Bob's.txt", "Bob\u2019s.txt"),
    "dash": ("1\u20132.txt", "1-2.txt"),
    "zero width": ("a\u200bb.txt", "ab.txt"),
    "ideographic space": ("a\u3000b.txt", "a b.txt"),
}


@pytest.mark.parametrize(("real", "given"), LOOK_ALIKES.values(), ids=LOOK_ALIKES)
def test_rs_08_names_that_look_the_same(desk: Callable[..., Desk], real: str, given: str) -> None:
    d = desk()
    path = d.put(real, b"text\n")
    shown = d.read(given)
    if shown.status == "error":  # offered, with what it is really called
        assert json.dumps(real) in str(shown.content), shown.content
    else:
        assert "text" in shown.content
        assert shown.artifact["file_path"] == str(path)
        assert "which looks the same, was taken instead" in str(shown.content)
        assert json.dumps(real)[1:-1] in str(shown.content)
    for message in (d.write(given, "x"), d.edit(given, "text", "x")):
        assert message.status == "error"
        assert code(message) in {"not_found", "bad_path"}
    assert path.read_bytes() == b"text\n"
    assert [p.name for p in path.parent.iterdir()] == [real]
    d.read(path)
    assert d.write(path, "y").status == "success"  # by its real name


def test_rs_08_another_width_is_another_name_and_is_offered(desk: Callable[..., Desk]) -> None:
    d = desk()
    d.put("\uff41.txt", b"text\n")
    assert json.dumps("\uff41.txt") in str(d.read("a.txt").content)
    d.put("\u4e2d\u6587\u6587\u6863.txt", b"text\n")
    assert "\u4e2d\u6587\u6587\u6863.txt" in str(
        d.read("\u4e2d\u6587\u6587\u4ef6.txt").content
    )  # no escapes where none are needed


def test_rs_08_two_that_look_the_same_are_offered_and_not_guessed(desk: Callable[..., Desk]) -> None:
    d = desk()
    d.put("a\u00a0b", b"1\n")
    d.put("a\u202fb", b"2\n")
    message = d.read("a b")
    assert code(message) == "not_found"
    assert json.dumps("a\u00a0b") in str(message.content)
    assert json.dumps("a\u202fb") in str(message.content)


def test_rs_08_the_exact_name_goes_first(desk: Callable[..., Desk]) -> None:
    d = desk()
    d.put("a\u00a0b", b"wrong\n")
    d.put("a b", b"right\n")
    assert "right" in d.read("a b").content
    assert d.write("a b", "x").status == "success"


def test_rs_08_look_alikes_on_the_way(desk: Callable[..., Desk]) -> None:
    d = desk()
    path = d.put("My\u00a0Files/a.txt", b"text\n")
    shown = d.read("My Files/a.txt")
    assert shown.status == "success" or "\\xa0" in str(shown.content) or "\\u00a0" in str(shown.content), shown.content
    assert d.write("My Files/b.txt", "x").status in {"success", "error"}
    assert path.read_bytes() == b"text\n"


# ---- RS-10 ----------------------------------------------------------------------------------------------------------

WINDOWS: dict[str, tuple[list[dict[str, int]], bool]] = {
    "first five": ([{"limit": 5}], False),
    "last five": ([{"offset": -5}], False),
    "all but the first": ([{"offset": 2}], False),
    "all but the last": ([{"limit": 99}], False),
    "a hole of one line": ([{"limit": 49}, {"offset": 51}], False),
    "two halves": ([{"limit": 50}, {"offset": 51}], True),
    "halves the other way round": ([{"offset": 51}, {"limit": 50}], True),
    "overlapping": ([{"limit": 60}, {"offset": 40}], True),
    "tenths": ([{"offset": n, "limit": 10} for n in range(1, 100, 10)], True),
    "from a column": ([{"offset": 1, "column": 2}], False),
    "from offset 0": ([{"offset": 0}], True),
    "more than all": ([{"limit": 10_000}], True),
}


@pytest.mark.parametrize(("reads", "enough"), WINDOWS.values(), ids=WINDOWS)
def test_rs_10_a_window_is_not_the_file(desk: Callable[..., Desk], reads: list[dict[str, int]], enough: bool) -> None:
    d = desk()
    path = d.put("f", "".join(f"line {n}\n" for n in range(1, 101)).encode())
    for args in reads:
        assert d.read(path, **args).status == "success"
    message = d.write(path, "line 1\n")
    assert (message.status == "success") is enough
    if not enough:
        assert code(message) == "partially_read"
        assert "line" in message.content
        assert d.edit(path, "line 50\n", "LINE 50\n").status == "success"  # the exact text is proof enough
        assert path.read_bytes().count(b"\n") == 100


def test_rs_10_a_cut_line_was_not_seen(session: Make, tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("short\n" + "x" * 5000 + "end\nshort\n")
    s = session()
    shown, whole = s.say(read(path), write(path, "x"))
    assert "offset=N, column=2001" in shown.content
    assert code(whole) == "partially_read"
    assert "line 2" in whole.content
    _, whole = s.say(read(path, offset=2, limit=1), write(path, "x\n"))
    assert whole.status == "success"


def test_rs_10_views_of_different_bytes_do_not_add_up(session: Make, tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("1\n2\n3\n4\n")
    s = session()

    def by_hand() -> Any:
        path.write_text("one\n2\n3\n4\n")
        return read(path, offset=3)

    *_, whole = s.say(read(path, limit=2), by_hand, write(path, "x"))
    assert code(whole) in {"partially_read", "stale"} or whole.status == "success"
    if whole.status == "success":  # only where the change was shown as well
        assert any("+one" in str(m.content) for m in s.state()["messages"])


def test_rs_10_own_edits_keep_what_was_seen(session: Make, tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("".join(f"line {n}\n" for n in range(1, 101)))
    s = session()
    out = s.say(
        read(path, limit=50),
        edit(path, "line 10\n", "a\nb\nc\n"),
        write(path, "x"),
        read(path, offset=53),
        write(path, "x"),
    )
    assert [code(m) for m in out] == [None, None, "partially_read", None, None]


def test_rs_10_an_empty_file_is_seen_when_it_is_read(desk: Callable[..., Desk]) -> None:
    d = desk()
    path = d.put("f", b"")
    assert code(d.write(path, "x")) == "not_read"
    d.read(path)
    assert d.write(path, "x").status == "success"


def test_rs_03_a_history_of_another_process_knows_the_old_bytes_of_changes(tmp_path: Path) -> None:
    store = InMemoryStore()
    saver = InMemorySaver()
    path = tmp_path / "f"
    one = graph_session(tmp_path, checkpointer=saver, history=FileHistory(store))
    one.say(write(path, "one\ntwo\n"))
    path.write_text("one\nTWO\n")
    two = graph_session(tmp_path, checkpointer=saver, history=FileHistory(store))
    assert code(two.one(write(path, "x"))) == "stale"
