"""Notebooks through agents and graphs: what must have been seen, what somebody else did, and going back."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage, RemoveMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from langchain_filestate import FileHistory, FileToolkit, Limits, NotebookResult, _records, parse_result
from langchain_filestate._records import load
from langchain_filestate.watch import shell_reads
from tests.notebook_styles import JUPYTER, STYLES, Style, fit, is_valid, sample, words
from tests.notebook_styles import code as code_cell
from tests.scripted import Session, agent_session, call, code, edit, graph_session, many, read, tool_messages, write

Make = Callable[..., Session]

CELLS = [words("# head", "intro"), code_cell("a = 1\nb = 2", 1), code_cell("c = 3", 2), words("end", "end")]
"""Called intro, code-1, code-2, end."""


def cell(path: Any, cell_id: str | None, source: str = "", mode: str = "replace", **more: Any) -> dict[str, Any]:
    return call("edit_notebook", file_path=str(path), cell_id=cell_id, new_source=source, edit_mode=mode, **more)


def put(path: Path, cells: list[dict[str, Any]] = CELLS, style: Style = JUPYTER) -> Path:
    path.write_bytes(style.dump(fit(style, cells)))
    return path


def with_source(cell_id: str, source: str, cells: list[dict[str, Any]] = CELLS) -> list[dict[str, Any]]:
    return [{**one, "source": source} if one["id"] == cell_id else one for one in cells]


def sources(path: Path) -> dict[str, str]:
    return {one["id"]: "".join(one["source"]) for one in json.loads(path.read_bytes())["cells"]}


def result_of(message: Any) -> NotebookResult:
    result = parse_result(message)
    assert isinstance(result, NotebookResult), message.content
    return result


def record_of(session: Session, path: Path) -> _records.Record:
    agents = session.records()
    (records,) = agents.values()
    record = load(records[str(path)])
    assert record is not None, records[str(path)]
    return record


def seen_cells(session: Session, path: Path) -> set[int]:
    return {n for view in record_of(session, path).views for n in range(view.first, view.last + 1)}


def changed_by_somebody(path: Path, cells: list[dict[str, Any]], *calls: Any) -> Callable[[], Any]:
    """The model's line: between its turn and the tools somebody saves the notebook."""

    def line() -> Any:
        put(path, cells)
        return list(calls)

    return line


# ---- the gate -------------------------------------------------------------------------------------------------------


def test_a_notebook_must_have_been_read(session: Make, tmp_path: Path) -> None:
    path = put(tmp_path / "n.ipynb")
    was = path.read_bytes()
    s = session()
    out = s.say([cell(path, "code-1", "x"), cell(path, None, "x", "insert"), cell(path, "end", mode="delete")])
    assert [code(m) for m in out] == ["not_read"] * 3
    assert path.read_bytes() == was
    shown, *out = s.say(read(path), cell(path, "code-1", "x = 1"), cell(path, None, "top", "insert"))
    assert [m.status for m in out] == ["success"] * 2
    assert '<cell id="code-1" type="code">\na = 1\nb = 2\n</cell>' in shown.content
    assert is_valid(path.read_bytes())


def test_the_result_tells_the_new_order_and_the_patch_the_bytes(session: Make, tmp_path: Path) -> None:
    path = put(tmp_path / "n.ipynb")
    before = path.read_bytes()
    s = session()
    _, first, second, third = s.say(
        read(path), cell(path, "code-1", "new = 1", "insert"), cell(path, "code-2", "c = 4"),
        cell(path, "intro", mode="delete"),
    )  # fmt: skip
    inserted, replaced, deleted = (result_of(m) for m in (first, second, third))
    new_id = inserted.cell_id
    assert inserted.cell_ids == ("intro", "code-1", new_id, "code-2", "end")
    assert (replaced.cell_id, replaced.edit_mode, replaced.cell_ids) == ("code-2", "replace", inserted.cell_ids)
    assert (deleted.cell_id, deleted.edit_mode) == ("intro", "delete")
    assert deleted.cell_ids == ("code-1", new_id, "code-2", "end")
    assert "The cells are now: code-1, " in third.content
    assert sources(path) == {"code-1": "a = 1\nb = 2", new_id: "new = 1", "code-2": "c = 4", "end": "end"}
    assert (inserted.before, replaced.before) == (s.toolkit.history.changes(path=str(path))[0].before, inserted.after)
    assert s.toolkit.history.content(inserted.before) == before
    assert '+    "c = 4"' in str(replaced.patch)
    assert not any([inserted.stale_recovered, inserted.content_not_in_model_context, inserted.user_modified])
    assert is_valid(path.read_bytes())
    changes = s.toolkit.history.changes(path=str(path))
    assert [change.tool for change in changes] == ["edit_notebook"] * 3


def test_views_count_cells_and_own_edits_keep_credit(session: Make, tmp_path: Path) -> None:
    path = put(tmp_path / "n.ipynb")
    s = session()
    s.say(read(path))
    assert (record_of(s, path).lines, seen_cells(s, path)) == (4, {1, 2, 3, 4})
    assert record_of(s, path).origin == "notebook"
    s.say(cell(path, "code-1", "x", "insert"), cell(path, None, "y", "insert"), cell(path, "end", mode="delete"))
    assert (record_of(s, path).lines, seen_cells(s, path)) == (5, {1, 2, 3, 4, 5})
    s.say(*(cell(path, f"cell-{n}", f"again {n}") for n in range(5)))
    assert list(sources(path).values()) == [f"again {n}" for n in range(5)]


def test_only_cells_that_were_shown_whole_are_replaced(session: Make, tmp_path: Path) -> None:
    long = code_cell("\n".join(f"line_{n} = {n}" for n in range(60)), 3)
    path = put(tmp_path / "n.ipynb", [*CELLS, long])
    was = path.read_bytes()
    s = session(limits=Limits(max_chars=300))
    s.say(read(path, offset=2, limit=1), read(path, offset=5))
    assert seen_cells(s, path) == {2}
    out = s.say([cell(path, "intro", "x"), cell(path, "end", mode="delete"), cell(path, "code-3", "x")])
    assert [code(m) for m in out] == ["partially_read"] * 3
    assert "(offset=1, limit=1)" in out[0].content
    size = len("\n".join(f"line_{n} = {n}" for n in range(60)))
    assert f"Cell code-3 has {size} characters, more than the 300 that one read shows" in out[2].content
    assert s.one(cell(path, "code-3", "# beside it", "insert")).status == "success"  # as the text says
    path.write_bytes(was)
    s.say(read(path, offset=2, limit=1), read(path, offset=5))
    assert path.read_bytes() == was
    assert s.one(cell(path, "end", "after the end", "insert")).status == "success"  # nothing is lost by that
    assert s.one(cell(path, "code-1", "a = 2")).status == "success"
    s.say(read(path, offset=1, limit=1))
    assert s.one(cell(path, "intro", "x")).status == "success"
    assert is_valid(path.read_bytes())


def test_a_cell_that_is_in_the_context_no_more_is_not_replaced(session: Make, tmp_path: Path) -> None:
    path = put(tmp_path / "n.ipynb")
    s = session()
    (shown,) = s.say(read(path))
    s.graph.update_state(
        s.config, {"messages": [RemoveMessage(str(shown.id))]}, as_node="tools" if "tools" in s.graph.nodes else None
    )
    (message,) = s.say(cell(path, "code-1", "x"))
    assert code(message) == "not_in_context"
    assert s.one(cell(path, "code-1", "x", "insert")).status == "success"


def test_a_read_in_the_same_message_shows_nothing_yet(session: Make, tmp_path: Path) -> None:
    path = put(tmp_path / "n.ipynb")
    out = session().say([read(path), cell(path, None, "top", "insert"), cell(path, "code-1", "x")])
    assert [code(m) for m in out] == [None, None, "not_in_context"]
    assert sources(path)["code-1"] == "a = 1\nb = 2"


@pytest.mark.parametrize(("rule", "expected"), [("always", "not_read"), ("overwrite", None), ("never", None)])
def test_what_needs_a_read(session: Make, tmp_path: Path, rule: str, expected: str | None) -> None:
    path = put(tmp_path / "n.ipynb")
    message = session(require_read=rule).one(cell(path, "code-1", "x"))
    assert code(message) == expected
    if expected is None:
        assert result_of(message).content_not_in_model_context is True


@pytest.mark.parametrize("style", STYLES.values(), ids=STYLES)
def test_each_style_through_a_graph(tmp_path: Path, style: Style) -> None:
    path = tmp_path / "n.ipynb"
    before = style.dump(sample(style))
    path.write_bytes(before)
    s = graph_session(tmp_path)
    s.say(read(path), cell(path, "cell-2", "y = 3 < 4\n"), cell(path, "cell-2", "x = 1 / 2"))
    assert path.read_bytes() == before
    s.say(cell(path, "cell-1", "new 'é'\n", "insert", cell_type="markdown"), cell(path, "cell-2", mode="delete"))
    assert path.read_bytes() == before


# ---- other ways to write --------------------------------------------------------------------------------------------


def test_a_notebook_that_was_written_as_text_is_edited_by_cells(session: Make, tmp_path: Path) -> None:
    path = tmp_path / "n.ipynb"
    s = session()
    made, changed, more = s.say(
        write(path, JUPYTER.dump(CELLS).decode()), cell(path, "code-1", "x = 1"), cell(path, "end", mode="delete")
    )
    assert [m.status for m in (made, changed, more)] == ["success"] * 3
    assert made.artifact["lines_after"] == JUPYTER.dump(CELLS).count(b"\n")
    assert (record_of(s, path).lines, seen_cells(s, path)) == (3, {1, 2, 3})
    assert "lines 1 to" not in s.one(read(path)).content


def test_a_broken_notebook_that_is_mended_is_read_again(session: Make, tmp_path: Path) -> None:
    path = put(tmp_path / "n.ipynb")
    path.write_bytes(b"<<<<<<< ours\n" + path.read_bytes())
    s = session()
    assert code(s.say(read(path), cell(path, "code-1", "x"))[1]) == "bad_notebook"
    mended, blind = s.say(edit(path, "<<<<<<< ours\n", ""), cell(path, "code-1", "x"))
    assert str(mended.content).endswith("read it again for them.")
    assert code(blind) == "partially_read"
    assert (record_of(s, path).lines, seen_cells(s, path)) == (4, set())
    shown, changed = s.say(read(path), cell(path, "code-1", "x"))
    assert str(shown.content).startswith("<cell")
    assert changed.status == "success"
    assert code(s.one(many(path, ("end", "END")))) == "is_notebook"


def test_reading_by_the_shell_shows_no_cells(session: Make, tmp_path: Path) -> None:
    for name in ("n.ipynb", "N.IPYNB"):
        path = put(tmp_path / name)
        s = session(thread=name)
        shown = shell_reads(f"cat {name}", path.read_text(), s.toolkit, evidence="x")
        assert shown == {}
        assert code(s.one(cell(path, "code-1", "x"))) == "not_read"
    path.write_text("no notebook\n")
    assert shell_reads(f"cat {path}", path.read_text(), FileToolkit(tmp_path), evidence="x")


def test_a_notebook_that_the_user_gave_counts_by_cells(agent: Make, tmp_path: Path) -> None:
    path = put(tmp_path / "n.ipynb")
    s = agent()
    given = {
        "messages": [HumanMessage(path.read_text(), id="given")],
        **s.toolkit.seen(str(path), "given", agent="coder"),
    }
    s.graph.update_state(s.config, given)
    assert (record_of(s, path).lines, seen_cells(s, path)) == (4, {1, 2, 3, 4})
    assert s.one(cell(path, "end", "x")).status == "success"


def test_a_large_notebook_is_read_by_cells_too(session: Make, tmp_path: Path) -> None:
    picture = {"output_type": "display_data", "metadata": {}, "data": {"image/png": "A" * 9_000_000}}
    path = put(
        tmp_path / "n.ipynb",
        with_source("intro", "# large", [*CELLS, {**code_cell("plot()", 9), "outputs": [picture]}]),
    )
    s = session()
    shown, changed = s.say(read(path), cell(path, "code-1", "x"))
    assert "[image/png, " in shown.content
    assert len(shown.content) < 1000
    assert changed.status == "success"
    assert seen_cells(s, path) == {1, 2, 3, 4, 5}
    assert len(path.read_bytes()) > 9_000_000


# ---- somebody else --------------------------------------------------------------------------------------------------


def test_a_cell_that_somebody_changed_is_not_replaced(session: Make, tmp_path: Path) -> None:
    path = put(tmp_path / "n.ipynb")
    s = session()
    s.say(read(path))
    theirs = with_source("code-1", "a = 1\nb = 'theirs'")
    out = s.say(changed_by_somebody(path, theirs, cell(path, "code-1", "mine"), cell(path, "code-1", mode="delete")))
    assert [code(m) for m in out] == ["stale", "stale"]
    assert str(out[0].content).startswith("File has been modified since read. Read it again before writing.")
    assert "Cell \"code-1\" (code) was changed:\n@@ -1,2 +1,2 @@\n a = 1\n-b = 2\n+b = 'theirs'" in out[0].content
    assert '"cell_type"' not in out[0].content  # cells, and no raw file
    assert out[0].artifact["lines"] == (2,) or out[0].artifact["lines"] == [2]
    assert path.read_bytes() == JUPYTER.dump(theirs)


def test_another_cell_of_a_notebook_that_somebody_changed_is_replaced(session: Make, tmp_path: Path) -> None:
    path = put(tmp_path / "n.ipynb")
    s = session()
    s.say(read(path))
    theirs = [words("theirs", "new"), *with_source("code-1", "theirs")]
    replaced, by_place = s.say(
        changed_by_somebody(path, theirs, cell(path, "code-2", "mine"), cell(path, "cell-3", "x"))
    )
    assert result_of(replaced).stale_recovered is True
    assert "cells changed: code-1; new: new" in replaced.content
    assert sources(path) == {"new": "theirs", "intro": "# head", "code-1": "theirs", "code-2": "mine", "end": "end"}
    assert code(by_place) == "ambiguous"  # by its place it is another one
    assert "may be another one than you meant. The cells are now: new, intro, " in by_place.content
    assert seen_cells(s, path) == {2, 4, 5}  # what was untouched is still known
    assert code(s.one(cell(path, "code-1", "x"))) == "partially_read"


def test_a_place_is_another_cell_when_somebody_put_one_in_front(session: Make, tmp_path: Path) -> None:
    path = put(tmp_path / "n.ipynb", style=Style(minor=4))
    s = session()
    s.say(read(path))
    later = fit(Style(minor=4), [*CELLS, words("theirs", "new")])

    def line() -> Any:
        path.write_bytes(Style(minor=4).dump([later[4], *later[:4]]))
        return [cell(path, "cell-2", "mine"), cell(path, "cell-0", "x", "insert"), cell(path, None, "top", "insert")]

    assert [code(m) for m in s.say(line)] == ["stale", "stale", None]
    assert is_valid(path.read_bytes())


def test_a_place_is_the_same_cell_when_somebody_added_one_behind(session: Make, tmp_path: Path) -> None:
    style = Style(minor=4)
    path = put(tmp_path / "n.ipynb", style=style)
    s = session()
    s.say(read(path))

    def line() -> Any:
        put(path, [*CELLS, words("theirs", "new")], style)
        return [cell(path, "cell-2", "mine")]

    (message,) = s.say(line)
    assert result_of(message).stale_recovered is True
    assert seen_cells(s, path) == {1, 2, 3, 4}


def test_a_place_means_what_it_meant_when_the_call_was_made(session: Make, tmp_path: Path) -> None:
    style = Style(minor=4)
    path = put(tmp_path / "n.ipynb", style=style)
    s = session()
    out = s.say(
        read(path),
        [
            cell(path, "cell-0", "# new head"),
            cell(path, "cell-1", "a = 2"),
            cell(path, "cell-2", "after c", "insert"),
            cell(path, "cell-3", "the end"),
            cell(path, "cell-2", mode="delete"),
            cell(path, "cell-3", "the end"),
            cell(path, "cell-0", "in front", "insert"),
            cell(path, None, "top", "insert"),
        ],
    )
    assert [code(m) for m in out] == [None, None, None, None, "ambiguous", None, None, None, None]
    there = ["".join(one["source"]) for one in json.loads(path.read_bytes())["cells"]]
    assert there == ["top", "# new head", "in front", "a = 2", "after c", "the end"]
    assert s.one(cell(path, "cell-5", "over")).status == "success"


def test_a_place_is_not_guessed_where_the_old_bytes_are_not_known(
    session: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(tmp_path / "n.ipynb")
    s = session()
    s.say(read(path))
    monkeypatch.setattr(s.toolkit.history, "content", lambda _: None)
    out = s.say([cell(path, "code-1", "x"), cell(path, "cell-2", "y"), cell(path, "code-2", "z")])
    assert [code(m) for m in out] == [None, "ambiguous", None]


def test_without_the_old_bytes_only_inserts_go_ahead(
    session: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(tmp_path / "n.ipynb")
    s = session()
    s.say(read(path))
    monkeypatch.setattr(s.toolkit.history, "content", lambda _: None)  # as after a restart
    theirs = with_source("intro", "theirs")
    out = s.say(
        changed_by_somebody(
            path,
            theirs,
            cell(path, "code-2", "x"),
            cell(path, "cell-2", "x", "insert"),
            cell(path, "code-2", "x", "insert"),
        )
    )
    assert [code(m) for m in out] == ["stale", "stale", None]
    assert "what changed is not known here" in out[2].content


def test_where_stale_edits_are_refused_so_are_cells(session: Make, tmp_path: Path) -> None:
    path = put(tmp_path / "n.ipynb")
    s = session(recover_stale=False)
    s.say(read(path))
    theirs = with_source("intro", "theirs")
    out = s.say(changed_by_somebody(path, theirs, cell(path, "code-2", "x"), cell(path, None, "x", "insert")))
    assert [code(m) for m in out] == ["stale", "stale"]


def test_a_notice_tells_cells_and_keeps_what_was_seen(agent: Make, tmp_path: Path) -> None:
    path = put(tmp_path / "n.ipynb")
    s = agent()
    s.say(read(path))
    put(path, [*with_source("code-1", "a = 1\nb = 'theirs'"), words("theirs", "new")])
    s.say("hm")
    (notice,) = [m for m in s.state()["messages"] if "on disk" in str(m.content)]
    assert "Cell \"code-1\" (code) was changed:\n@@ -1,2 +1,2 @@\n a = 1\n-b = 2\n+b = 'theirs'" in notice.content
    assert 'Cell "new" (markdown) is new, after "end":\n+theirs' in notice.content
    assert (record_of(s, path).lines, seen_cells(s, path)) == (5, {1, 2, 3, 4, 5})
    out = s.say(cell(path, "code-1", "mine"), cell(path, "new", mode="delete"))
    assert [m.status for m in out] == ["success"] * 2
    assert not result_of(out[0]).stale_recovered


def test_a_notebook_that_was_run_is_still_known(agent: Make, tmp_path: Path) -> None:
    path = put(tmp_path / "n.ipynb")
    s = agent()
    s.say(read(path))
    output = {"output_type": "stream", "name": "stdout", "text": ["9\n"]}
    put(
        path,
        [{**one, "outputs": [output], "execution_count": 9} if one["cell_type"] == "code" else one for one in CELLS],
    )
    (message,) = s.say(cell(path, "code-1", "x"))
    assert message.status == "success"
    assert any("Only outputs changed: code-1, code-2." in str(m.content) for m in s.state()["messages"])
    assert seen_cells(s, path) == {1, 2, 3, 4}


def test_a_change_that_a_notice_has_no_room_for_is_not_seen(agent: Make, tmp_path: Path) -> None:
    path = put(tmp_path / "n.ipynb")
    s = agent(limits=Limits(max_notice_lines=4))
    s.say(read(path))
    put(path, with_source("code-1", "\n".join(f"line_{n}" for n in range(50))))
    hidden, other = s.say(cell(path, "code-1", "x"), cell(path, "code-2", "y"))
    assert code(hidden) == "partially_read"
    assert other.status == "success"
    assert seen_cells(s, path) == {1, 3, 4}


def test_a_refusal_that_has_told_is_not_told_again(agent: Make, tmp_path: Path) -> None:
    path = put(tmp_path / "n.ipynb")
    s = agent()
    s.say(read(path))
    (refused,) = s.say(changed_by_somebody(path, with_source("code-1", "theirs"), cell(path, "code-1", "x")))
    assert code(refused) == "stale"
    assert s.one(cell(path, "code-1", "now I know")).status == "success"
    assert not any("on disk" in str(m.content) for m in s.state()["messages"])


def test_a_hook_that_formats_is_told_in_cells(session: Make, tmp_path: Path) -> None:
    def strip(path: Path) -> str:
        book = json.loads(path.read_bytes())
        for one in book["cells"]:
            if one["cell_type"] == "code":
                one.update(
                    outputs=[], execution_count=None, source="".join(one["source"]).replace("=", " = ").split("\n")
                )
        path.write_text(json.dumps(book, indent=4))
        return "Outputs stripped."

    path = put(tmp_path / "n.ipynb")
    s = session(after_write=strip)
    _, message = s.say(read(path), cell(path, "code-2", "c=9"))
    assert "Outputs stripped." in message.content
    assert 'Cell "code-2" (code) was changed:\n@@ -1 +1 @@\n-c=9\n+c = 9' in message.content
    assert (record_of(s, path).lines, seen_cells(s, path)) == (4, {1, 2, 3, 4})
    assert result_of(message).after == record_of(s, path).digest
    assert s.one(cell(path, "code-2", "c = 10")).status == "success"


def test_a_hook_that_breaks_the_notebook_leaves_no_cells(session: Make, tmp_path: Path) -> None:
    path = put(tmp_path / "n.ipynb")
    s = session(after_write=lambda file: file.write_bytes(b"{\n" + file.read_bytes()) and None)
    s.say(read(path), cell(path, "code-2", "c = 9"))
    assert seen_cells(s, path) == set()
    assert code(s.one(cell(path, "code-2", "x"))) == "bad_notebook"


# ---- windows --------------------------------------------------------------------------------------------------------


def test_windows_by_cell(session: Make, tmp_path: Path) -> None:
    path = put(tmp_path / "n.ipynb", [words(f"text {n} " * 10, f"c{n}") for n in range(10)])
    s = session(limits=Limits(max_chars=600))
    first, last, again, gone = s.say(read(path), read(path, offset=-2), read(path, offset=-2), read(path, offset=11))
    artifact = first.artifact
    assert (artifact["first_line"], artifact["total_lines"], artifact["complete"]) == (1, 10, False)
    assert f"Go on with offset={artifact['last_line'] + 1}." in first.content
    assert (last.artifact["first_line"], last.artifact["last_line"]) == (9, 10)
    assert again.artifact["unchanged"] is True
    assert str(again.content).startswith("File unchanged since last read. The cells 9 to 10 of 10")
    assert code(gone) == "out_of_range"
    assert seen_cells(s, path) == {*range(1, artifact["last_line"] + 1), 9, 10}


def test_a_long_cell_is_read_on_by_column(session: Make, tmp_path: Path) -> None:
    text = "".join(chr(97 + n % 26) for n in range(900))
    path = put(tmp_path / "n.ipynb", [words(text, "long"), words("x", "short")])
    s = session(limits=Limits(max_chars=400))
    got, column = "", 1
    for _ in range(3):
        shown = s.one(read(path, column=column))
        got += str(shown.content).split('type="markdown">\n')[1].split("\n</cell>")[0]
        column = len(got) + 1
    assert got == text
    assert code(s.one(cell(path, "long", "x"))) == "partially_read"


# ---- time, people ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["replace", "insert", "delete"])
def test_a_call_that_runs_again_gives_the_same_answer(session: Make, tmp_path: Path, mode: str) -> None:
    path = put(tmp_path / "n.ipynb")
    s = session()
    _, first = s.say(read(path), cell(path, "code-1", "" if mode == "delete" else "x", mode))
    done = path.read_bytes()
    steps = list(s.graph.get_state_history(s.config))
    step = next(t for t in steps if t.next and t.next[0] == "tools" and len(tool_messages(t.values)) == 1)
    s.model.script[:] = ["done"]
    out = s.graph.invoke(None, step.config)
    again = tool_messages(out)[-1]
    assert path.read_bytes() == done
    assert again.artifact == {**first.artifact, "already_applied": True}
    assert again.content == f"This change was already applied. {first.content}"
    assert len(s.toolkit.history.changes(path=str(path))) == 1


def test_back_to_a_checkpoint_and_on(session: Make, tmp_path: Path) -> None:
    path = put(tmp_path / "n.ipynb")
    before = path.read_bytes()
    s = session()
    s.say(read(path))
    there = s.graph.get_state(s.config)
    s.say(cell(path, "code-1", "x"), cell(path, "code-1", "y", "insert"), cell(path, "end", mode="delete"))
    assert path.read_bytes() != before
    report = s.toolkit.rewind(there)
    assert [entry.file_path for entry in report.restored] == [str(path)]
    assert path.read_bytes() == before
    s.model.script[:] = [cell(path, "end", "after all"), "done"]
    out = s.graph.invoke({"messages": [HumanMessage("other way")]}, there.config)
    assert result_of(tool_messages(out)[-1]).stale_recovered is False
    assert sources(path)["end"] == "after all"


def test_a_person_may_change_the_source(session: Make, tmp_path: Path) -> None:
    path = put(tmp_path / "n.ipynb")
    s = session(approve=True)
    s.say(read(path))
    s.model.script[:] = [cell(path, "code-1", "mine"), "done"]
    asked = s.graph.invoke({"messages": [HumanMessage("go")]}, s.config)["__interrupt__"][0].value
    (request,) = asked["action_requests"]
    assert request["args"]["cell_id"] == "code-1"
    assert '+    "mine"' in request["description"]
    args = {**request["args"], "new_source": "theirs"}
    decision = {"type": "edit", "edited_action": {"name": "edit_notebook", "args": args}}
    out = s.graph.invoke(Command(resume={"decisions": [decision]}), s.config)
    message = tool_messages(out)[-1]
    assert result_of(message).user_modified is True
    assert "new_source is now:\ntheirs" in message.content
    assert sources(path)["code-1"] == "theirs"
    assert seen_cells(s, path) == {1, 2, 3, 4}


def test_a_person_cannot_turn_it_to_another_cell(session: Make, tmp_path: Path) -> None:
    path = put(tmp_path / "n.ipynb")
    was = path.read_bytes()
    s = session(approve=True)
    s.say(read(path))
    s.model.script[:] = [cell(path, "code-1", "mine"), "done"]
    (request,) = s.graph.invoke({"messages": [HumanMessage("go")]}, s.config)["__interrupt__"][0].value[
        "action_requests"
    ]
    decision = {
        "type": "edit",
        "edited_action": {"name": "edit_notebook", "args": {**request["args"], "cell_id": "end"}},
    }
    out = s.graph.invoke(Command(resume={"decisions": [decision]}), s.config)
    assert code(tool_messages(out)[-1]) == "rejected"
    assert path.read_bytes() == was


def test_describe_change_shows_a_cell(tmp_path: Path) -> None:
    path = put(tmp_path / "n.ipynb")
    assert '+    "x = 2"' in FileToolkit(tmp_path).describe_change(cell(path, "code-1", "x = 2"))


def test_records_of_notebooks_survive_a_checkpointer_and_another_process(tmp_path: Path) -> None:
    path = put(tmp_path / "n.ipynb")
    with SqliteSaver.from_conn_string(str(tmp_path / "saved.db")) as saver:
        agent_session(tmp_path, checkpointer=saver).say(read(path), cell(path, "code-1", "x", "insert"))
    with SqliteSaver.from_conn_string(str(tmp_path / "saved.db")) as saver:
        s = agent_session(tmp_path, checkpointer=saver, history=FileHistory())
        assert seen_cells(s, path) == {1, 2, 3, 4, 5}
        assert s.one(cell(path, "code-2", "y")).status == "success"


async def test_async(session: Make, tmp_path: Path) -> None:
    path = put(tmp_path / "n.ipynb")
    out = await session().asay(read(path), [cell(path, "code-1", f"n{i}", "insert") for i in range(5)])
    assert [m.status for m in out] == ["success"] * 6
    assert [text for text in sources(path).values() if text.startswith("n")] == ["n4", "n3", "n2", "n1", "n0"]
