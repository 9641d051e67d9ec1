"""Several edits of one file at once, through agents and graphs: all against the file as it is, all of them or none."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import HumanMessage
from langgraph.types import Command

from langchain_filestate import EditResult, FileToolkit, Limits, parse_result
from langchain_filestate._records import load
from tests.scripted import Session, call, code, edit, graph_session, many, read, tool_messages, write

Make = Callable[..., Session]
TEXT = "alpha\nbeta\ngamma\nbeta max\ndelta\n"


def result_of(message: Any) -> EditResult:
    result = parse_result(message)
    assert isinstance(result, EditResult), message.content
    return result


def seen(session: Session, path: Path) -> set[int]:
    (records,) = session.records().values()
    record = load(records[str(path)])
    assert record is not None
    return {n for view in record.views for n in range(view.first, view.last + 1)}


# ---- what fits together ---------------------------------------------------------------------------------------------


CASES: list[tuple[str, str, list[Any], str]] = [
    ("one", "a b\n", [("a", "x")], "x b\n"),
    ("two lines", TEXT, [("alpha", "A"), ("delta", "D")], "A\nbeta\ngamma\nbeta max\nD\n"),
    ("from the end to the top", TEXT, [("delta", "D"), ("alpha", "A")], "A\nbeta\ngamma\nbeta max\nD\n"),
    ("side by side", "abcd\n", [("ab", "1"), ("cd", "2")], "12\n"),
    ("side by side at a line end", "a\nb\n", [("a\n", "x\n"), ("b\n", "y\n")], "x\ny\n"),
    ("swapped", "a b\n", [("a", "b"), ("b", "a")], "b a\n"),  # what another one puts in is not seen
    ("put in, not matched", "x\n", [("x", "y y")], "y y\n"),
    ("gone", TEXT, [("beta\n", ""), ("gamma\n", "")] [1:], "alpha\nbeta\nbeta max\ndelta\n"),
    ("each to nothing", "ab\n", [("a", ""), ("b", "")], "\n"),
    ("all", "a a a b\n", [("a", "x", True), ("b", "y")], "x x x y\n"),
    ("all, where there is one", "a b\n", [("a", "x", True), ("b", "y", True)], "x y\n"),
    ("longer and shorter", "a\nb\nc\n", [("a", "a\na2\na3"), ("b\nc", "bc")], "a\na2\na3\nbc\n"),
    ("in one line, three", "f(a, b, c)\n", [("a", "1"), ("b", "2"), ("c", "3")], "f(1, 2, 3)\n"),
    ("no newline at the end", "a\nb", [("a", "x"), ("b", "y")], "x\ny"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "edits", "after"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_all_at_once(tmp_path: Path, text: str, edits: list[Any], after: str, ending: str) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(text.replace("\n", ending).encode())
    s = graph_session(tmp_path)
    _, message = s.say(read(path), many(path, *edits))
    assert message.status == "success", message.content
    assert path.read_bytes() == after.replace("\n", ending).encode()
    (change,) = s.toolkit.history.changes(path=str(path))
    result = result_of(message)
    assert (change.before, change.after) == (result.before, result.after)
    assert (result.stale_recovered, result.content_not_in_model_context) == (False, False)


def test_one_patch_one_change_one_event(session: Make, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("".join(f"line {n}\n" for n in range(60)))
    s = session()
    s.say(read(path))
    s.model.script[:] = [many(path, ("line 5\n", "five\n"), ("line 56\n", "56\nmore\n"), ("line 59\n", "")), "done"]
    events = list(s.graph.stream({"messages": [HumanMessage("go")]}, s.config, stream_mode="custom"))
    assert [(event["added"], event["removed"]) for event in events] == [(3, 3)]
    message = tool_messages(s.state())[-1]
    result = result_of(message)
    assert (result.replacements, result.replace_all, result.patch.added, result.patch.removed) == (3, False, 3, 3)
    assert len(result.patch.hunks) == 2
    assert message.text.endswith("3 replacements were made.")
    assert len(s.toolkit.history.changes(path=str(path))) == 1
    assert seen(s, path) == set(range(1, 61))
    assert s.one(write(path, "new\n")).status == "success"


# ---- what does not --------------------------------------------------------------------------------------------------


FAILURES: list[tuple[str, str, list[Any], str, str]] = [
    ("one over another", "abc\n", [("ab", "x"), ("bc", "y")], "overlap", "dit"),
    ("one in another", "abc\n", [("abc", "x"), ("b", "y")], "overlap", "dit"),
    ("the same twice", "abc\n", [("abc", "x"), ("abc", "x")], "overlap", "dit"),
    ("the same twice, other text", "abc\n", [("abc", "x"), ("abc", "y")], "overlap", "dit"),
    ("all, and one of them", "a a\n", [("a", "x", True), ("a a", "y")], "overlap", "dit"),
    ("a chain", "a b\n", [("a", "c"), ("c", "d")], "no_match", "dit 2"),
    ("the second is missing", "A\n", [("A", "AA"), ("missing", "x")], "no_match", "dit 2"),
    ("the first is missing", "A\n", [("missing", "x"), ("A", "AA")], "no_match", "dit 1"),
    ("one is twice there", "a a b\n", [("b", "x"), ("a", "y")], "ambiguous", "dit 2"),
    ("one changes nothing", "a b\n", [("a", "x"), ("b", "b")], "no_change", "dit 2"),
    ("an empty text", "a b\n", [("a", "x"), ("", "y")], "empty_old_string", "dit 2"),
    ("a placeholder", "a\nb\nc\nd\n", [("a\nb\nc\n", "a\n# ... rest of the code ...\n"), ("d", "D")], "placeholder", "dit 1"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "edits", "expected", "named"), [c[1:] for c in FAILURES], ids=[c[0] for c in FAILURES]
)
def test_all_or_none(session: Make, tmp_path: Path, text: str, edits: list[Any], expected: str, named: str) -> None:
    path = tmp_path / "a.txt"
    path.write_text(text)
    os.utime(path, ns=(1, 1))
    s = session()
    _, message = s.say(read(path), many(path, *edits))
    assert code(message) == expected
    assert named in message.content
    if expected == "overlap":
        assert "1" in message.content
        assert "2" in message.content
    assert path.read_text() == text
    assert path.stat().st_mtime_ns == 1
    assert s.toolkit.history.changes(path=str(path)) == []
    assert s.one(edit(path, text[0], "z")).status == "error" or path.read_text() != text  # what was read still counts


@pytest.mark.parametrize("edits", [[], None, [{}], [{"old_string": "a"}], "x", [3]])
def test_wrong_arguments_are_named(session: Make, tmp_path: Path, edits: Any) -> None:
    (tmp_path / "a.txt").write_text("a\n")
    message = session().one(call("multi_edit", file_path="a.txt", edits=edits))
    assert code(message) == "bad_arguments"
    assert "edits" in message.content
    assert (tmp_path / "a.txt").read_text() == "a\n"


def test_what_must_be_there_first(session: Make, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a\n")
    s = session(read_only=["fixed.txt"])
    (tmp_path / "fixed.txt").write_text("a\n")
    out = s.say(
        many("a.txt", ("a", "b")),
        many("none.txt", ("a", "b")),
        many("none.txt", ("", "b")),
        many("fixed.txt", ("a", "b")),
    )
    assert [code(m) for m in out] == ["not_read", "not_found", "not_found", "read_only"]
    assert not (tmp_path / "none.txt").exists()


# ---- many, large, with somebody else --------------------------------------------------------------------------------


def test_a_thousand_edits(session: Make, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"".join(b"name_%d = %d\r\n" % (n, n) for n in range(2000)))
    s = session()
    edits = [(f"name_{n} =", f"name_{n} = 1 +") for n in range(0, 2000, 2)]
    _, message = s.say(read(path), many(path, *edits))
    assert message.status == "success"
    assert path.read_bytes() == b"".join(b"name_%d = %s%d\r\n" % (n, b"" if n % 2 else b"1 + ", n) for n in range(2000))
    result = result_of(message)
    assert (result.replacements, result.patch.added, result.patch.removed) == (1000, 1000, 1000)
    assert len(s.toolkit.history.changes(path=str(path))) == 1
    assert len(message.content) < 300
    failing = s.one(many(path, *((f"name_{n} = {n}\n", "x") for n in range(0, 2000, 2))))
    assert code(failing) == "no_match"
    assert len(failing.content) < 1500


def test_a_file_that_somebody_changed_elsewhere(session: Make, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text(TEXT)
    s = session()
    s.say(read(path))

    def by_hand() -> Any:
        path.write_text("theirs\n" + TEXT)
        return many(path, ("alpha", "A"), ("delta", "D"))

    (message,) = s.say(by_hand)
    assert result_of(message).stale_recovered is True
    assert "at line 1 before this edit" in message.content
    assert path.read_text() == "theirs\nA\nbeta\ngamma\nbeta max\nD\n"
    assert seen(s, path) in ({2, 6}, set(range(1, 7)))


@pytest.mark.parametrize(
    "edits",
    [
        [("alpha", "A"), ("gone", "x")],
        [("alpha", "A"), ("beta", "B")],  # twice there
        [("alpha", "A"), ("beta", "B", True)],  # all of them: whoever put them in
        [("alpha\nbeta", "x"), ("beta\ngamma", "y")],
    ],
)
def test_if_one_is_not_certain_in_a_changed_file_none_is_made(session: Make, tmp_path: Path, edits: list[Any]) -> None:
    path = tmp_path / "a.txt"
    path.write_text(TEXT)
    s = session()
    s.say(read(path))

    def by_hand() -> Any:
        path.write_text("theirs\n" + TEXT)
        return many(path, *edits)

    (message,) = s.say(by_hand)
    assert code(message) == "stale"
    assert "+theirs" in message.content
    assert path.read_text() == "theirs\n" + TEXT


def test_unread_parts_are_marked(session: Make, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("".join(f"<{n}>\n" for n in range(1, 31)))
    _, inside, outside = session().say(
        read(path, limit=10), many(path, ("<1>", "[1]"), ("<10>", "[10]")), many(path, ("<2>", "[2]"), ("<30>", "[30]"))
    )
    assert result_of(inside).content_not_in_model_context is False
    assert result_of(outside).content_not_in_model_context is True


def test_calls_of_one_message_follow_each_other(session: Make, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("a b\n")
    out = session().say(read(path), [many(path, ("a", "b1"), ("b", "a1")), many(path, ("b1", "c"), ("a1", "d"))])
    assert [m.status for m in out] == ["success"] * 3
    assert path.read_text() == "c d\n"


def test_it_is_applied_once(session: Make, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("a b\n")
    s = session()
    _, first = s.say(read(path), many(path, ("a", "aa"), ("b", "bb")))
    step = next(
        t for t in s.graph.get_state_history(s.config) if "tools" in t.next and len(tool_messages(t.values)) == 1
    )
    again = tool_messages(s.graph.invoke(None, step.config))[-1]
    assert path.read_text() == "aa bb\n"
    assert again.artifact == {**first.artifact, "already_applied": True}


def test_a_person_may_change_the_edits(session: Make, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("a b\n")
    s = session(approve=True)
    s.say(read(path))
    s.model.script[:] = [many(path, ("a", "x"), ("b", "y")), "done"]
    (question,) = s.graph.invoke({"messages": [HumanMessage("go")]}, s.config)["__interrupt__"]
    (request,) = question.value["action_requests"]
    assert "-a b\n+x y" in request["description"]
    args = {**request["args"], "edits": [{"old_string": "b", "new_string": "theirs"}]}
    decision = {"type": "edit", "edited_action": {"name": "multi_edit", "args": args}}
    message = tool_messages(s.graph.invoke(Command(resume={"decisions": [decision]}), s.config))[-1]
    assert result_of(message).user_modified is True
    assert path.read_text() == "a theirs\n"
    assert "theirs" in message.content


def test_describe_change_shows_one_diff(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a\nb\n")
    told = FileToolkit(tmp_path).describe_change(many("a.txt", ("a", "x"), ("b", "y")))
    assert "(+2 / -2)" in told


def test_a_file_that_is_too_large_is_refused_once(session: Make, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a b\n" * 100)
    message = session(limits=Limits(max_file_bytes=100)).one(many("a.txt", ("a", "b")))
    assert code(message) == "too_large"


# ---- against an oracle ----------------------------------------------------------------------------------------------


@given(st.data())
def test_disjoint_edits_are_what_replacing_by_place_gives(tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
    """Words that are there once, replaced in any order, by texts that may look like one another."""
    words = [f"w{n}" for n in range(data.draw(st.integers(1, 8)))]
    gaps = data.draw(
        st.lists(st.sampled_from([" ", "\n", "\r\n", "\t", "é "]), min_size=len(words), max_size=len(words))
    )
    text = "".join(word + gap for word, gap in zip(words, gaps, strict=True))
    chosen = data.draw(st.permutations(words))[: data.draw(st.integers(1, len(words)))]
    news = {word: data.draw(st.sampled_from(["", "x", *words, "w0 w1", "a b"])) for word in chosen}
    news = {word: new for word, new in news.items() if new != word}
    root = tmp_path_factory.getbasetemp() / "oracle"
    root.mkdir(exist_ok=True)
    path = root / "a.txt"
    path.write_bytes(text.encode())
    tools = {tool.name: tool for tool in FileToolkit(root, require_read="never").get_tools()}
    if not news:
        return
    message = tools["multi_edit"].invoke(many(path, *news.items()))
    assert message.status == "success", message.content
    want = "".join(news.get(word, word) + gap for word, gap in zip(words, gaps, strict=True))
    assert path.read_bytes() == want.encode()
