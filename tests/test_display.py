from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from langgraph.store.memory import InMemoryStore

from langchain_filestate import FileHistory, FileToolkit, StructuredPatch, display, parse_result
from langchain_filestate._diff import Budget
from langchain_filestate._diffrows import MAX_CHARS, Row, rows
from langchain_filestate._html import COLOURS, Shown, clean, escaped, plain
from langchain_filestate._patch import patch_bytes
from langchain_filestate._rewind import RewindEntry, RewindPlan, RewindReport
from langchain_filestate.results import EditResult, FailureResult, NotebookResult, ReadResult, WriteResult
from tests.scripted import Session, agent_session, call, edit, many, read, tool_messages, write

EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)> ]]> &lt; \x1b[31m\x07\u202eabc\u2066 \ufeff\ufffe א"
TAGS = {
    "div", "pre", "span", "table", "thead", "tbody", "tr", "td", "th", "ins", "del", "details", "summary", "style",
    "svg", "g", "path", "rect", "circle", "text", "title",
}  # fmt: skip
ATTRIBUTES = re.compile(
    r"(class|colspan|open|title|style|width|height|x|y|d|r|rx|cx|cy|fill|stroke[a-z-]*|text-anchor|role|viewbox|xmlns"
    r"|aria-hidden)"
)


class Page(HTMLParser):
    """Holds the markup to the few elements and attributes that the displays use, and collects the text."""

    def __init__(self, markup: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.words: list[str] = []
        self.feed(markup)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS
        for name, value in attrs:
            assert ATTRIBUTES.fullmatch(name), name
            assert not re.search(r"url\(|javascript:|expression", value or "")
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_data(self, data: str) -> None:
        if self.open[-1:] == ["style"]:
            assert "http" not in data
            assert "url(" not in data
        else:
            self.words.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)

    def handle_decl(self, decl: str) -> None:
        raise AssertionError(decl)

    def handle_pi(self, data: str) -> None:
        raise AssertionError(data)

    def unknown_decl(self, data: str) -> None:
        raise AssertionError(data)

    @property
    def text(self) -> str:
        return "".join(self.words)


def checked(shown: Shown) -> Page:
    """A display whose markup, picture and text are sound."""
    page = Page(shown.html)
    for text in (shown.text, page.text):
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufffe]", text)
    if shown.svg is not None:
        tree = ET.fromstring(shown.svg)
        assert {element.tag.split("}")[1] for element in tree.iter()} <= TAGS
        assert "href" not in shown.svg
    assert shown._repr_mimebundle_() == {"text/html": shown.html, "text/plain": shown.text}
    assert str(shown) == shown.text
    return page


def patched(before: str | None, after: str | None, path: str = "/w/a.py") -> StructuredPatch:
    old, new = (None if text is None else text.encode() for text in (before, after))
    return patch_bytes(path, old, new)


# ---- text to markup


@given(st.text())
def test_text_stays_text(text: str) -> None:
    page = Page(escaped(text))
    assert page.text == clean(text)
    ET.fromstring(f'<a title="{plain(text)}">{escaped(text)}</a>')


def test_what_cannot_be_shown_stands_as_an_escape() -> None:
    assert clean("a\x1b\u202eb\ud800\udcff\ufeff\U000e0041\tc\n") == "a\\x1b\\u202eb\\ud800\\xff\\ufeff\\U000e0041\tc\n"
    assert clean("👨‍👩‍👧 א é") == "👨‍👩‍👧 א é"
    assert escaped("\x1b") == '<span class="fs-esc">\\x1b</span>'


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", [0, 1])
@pytest.mark.parametrize("text", ["fg", "soft", "key", "str", "num", "name", "note", "warn"])
def test_every_text_can_be_read_on_every_background(text: str, theme: int) -> None:
    for ground in ("bg", "head", "add", "addm", "del", "delm"):
        assert contrast(COLOURS[text][theme], COLOURS[ground][theme]) >= 4.5, ground


@pytest.mark.parametrize("theme", [0, 1])
def test_colours_that_mean_something_can_be_read_and_told_apart(theme: int) -> None:
    for name in ("good", "bad", "warn", "info"):
        assert min(contrast(COLOURS[name][theme], COLOURS[ground][theme]) for ground in ("bg", "head")) >= 4.5
    assert len({COLOURS[name][theme] for name in ("bg", "add", "addm", "del", "delm")}) == 5


# ---- rows of a hunk

LINES = st.lists(
    st.sampled_from(["", "a b", "a c", "x = 1", "x = 2", "def f(x):", '"""', "\tz", "é\u202e"]), max_size=9
)


@settings(max_examples=80, deadline=None)
@given(LINES, LINES, st.sampled_from(["", "\n"]), st.sampled_from(["", "a.py", "a.nonsense"]))
def test_rows_are_the_patch(old: list[str], new: list[str], end: str, name: str) -> None:
    before, after = "\n".join(old) + end, "\n".join(new)
    patch = patched(before, after)
    gone: list[tuple[int, str, bool]] = []
    came: list[tuple[int, str, bool]] = []
    for hunk in patch.hunks:
        for row in rows(hunk, name, Budget(100_000)):
            gone += [(row.old.number, row.old.text, row.old.ended)] if row.old else []
            came += [(row.new.number, row.new.text, row.new.ended)] if row.new else []
            if row.kept:
                assert row.old is not None
                assert row.new is not None
                assert row.old.text == row.new.text
            assert row.old or row.new
    assert [one[0] for one in gone] == sorted({one[0] for one in gone})
    for found, text in ((gone, before), (came, after)):
        lines = text.split("\n")
        for number, line, ended in found:
            assert lines[number - 1] == line
            assert ended == (number < len(lines))
    for two_columns in (False, True):
        checked(display.show_patch(patch, side_by_side=two_columns, name=name))


def pairs(old: str, new: str, budget: int = 100_000) -> list[Row]:
    (hunk,) = patched(old, new).hunks
    return rows(hunk, "", Budget(budget))


def marked(row: Row) -> tuple[list[str], list[str]]:
    assert row.old is not None
    assert row.new is not None
    return tuple([line.text[a:b] for a, b in line.marks] for line in (row.old, row.new))  # type: ignore[return-value]


def test_words_that_differ_are_marked() -> None:
    (row,) = pairs("total = price * count\n", "total = price * number\n")
    assert marked(row) == (["count"], ["number"])
    (row,) = pairs("return a + b\n", "return a + b + c\n")
    assert marked(row) == ([], [" + c"])


def test_lines_are_paired_with_those_they_resemble() -> None:
    found = pairs("alpha = 1\nbeta = 2\n", "new line here\nalpha = 3\nbeta = 4\n")
    assert [(row.old and row.old.text, row.new and row.new.text) for row in found] == [
        (None, "new line here"), ("alpha = 1", "alpha = 3"), ("beta = 2", "beta = 4"),
    ]  # fmt: skip
    assert all(row.old is None or row.new is None for row in pairs("alpha\n", "something else\n"))


def test_pairing_and_marking_are_bounded() -> None:
    assert [marked(row) for row in pairs("a b c d e\n", "b a d c e\n", budget=5)] == [([], [])]
    assert all(row.old is None or row.new is None for row in pairs("a b\n", "a c\n", budget=0))
    many_lines = "".join(f"line {n}\n" for n in range(60))
    assert len(pairs(many_lines, many_lines.replace("line", "row"))) == 120


def test_a_unified_view_has_the_lines_of_the_patch_in_its_order() -> None:
    patch = patched("a = 1\nb = 2\nc = 3\n", "a = 5\nb = 6\nc = 3\n")
    signs = re.findall(r"^ *\d*  *\d* ([ +-]) ", display.show_patch(patch).text, re.MULTILINE)
    assert signs == ["-", "-", "+", "+", " "]


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (None, "x\n", "created"),
        ("x\n", None, "deleted"),
        (None, "", "An empty file is created."),
        ("", None, "An empty file is deleted."),
        ("x\n", "x\n", "Nothing changed."),
        ("a\0b", "c\0d", "Binary content; no lines to show."),
        ("x", "y", "(no newline)"),
        ("a\r\n", "b\r\n", "\\r"),
    ],
)
def test_what_is_said_of_a_patch(before: str | None, after: str | None, said: str) -> None:
    shown = display.show_patch(patched(before, after))
    assert said in checked(shown).text
    assert said in shown.text


def test_long_patches_and_lines_are_cut_and_it_is_said() -> None:
    patch = patched("".join(f"{n}\n" for n in range(50)), "".join(f"{n}!\n" for n in range(50)))
    shown = display.show_patch(patch, max_lines=30)
    assert "70 more lines are not shown." in checked(shown).text
    assert shown.text.count("\n") < 40
    two = patched("".join(f"{n}\n" for n in range(50)), "".join(f"{n}{'!' * (n in {3, 40})}\n" for n in range(50)))
    assert "8 more lines are not shown." in display.show_patch(two, max_lines=8).text
    long = display.show_patch(patched(None, "z" * (MAX_CHARS + 7)))
    assert "... 7 more characters" in checked(long).text
    assert max(map(len, long.text.splitlines())) < MAX_CHARS + 50
    cut = patch_bytes("/w/a", b"a\n" * 300, b"b\n" * 300, max_lines=10)
    assert "too large to be shown exactly" in checked(display.show_patch(cut)).text


def test_languages_have_colours_where_pygments_knows_them(monkeypatch: pytest.MonkeyPatch) -> None:
    patch = patched(None, 'def f():\n    return "x"  # y\n')
    assert all(f'class="fs-{kind}"' in display.show_patch(patch).html for kind in ("key", "str", "note", "name"))
    assert 'class="fs-key"' not in display.show_patch(patch, name="a.nonsense").html
    assert 'class="fs-key"' not in display.show_patch(patched(None, "def f():\r\n")).html
    monkeypatch.setitem(sys.modules, "pygments.lexers", None)
    assert 'class="fs-key"' not in display.show_patch(patch).html
    assert "return" in checked(display.show_patch(patch)).text


def test_marks_and_colours_meet() -> None:
    html = display.show_patch(patched('x = "a b"\n', 'x = "a c"\n')).html
    assert '<del><span class="fs-str">b</span></del>' in html
    assert '<ins><span class="fs-str">c</span></ins>' in html


# ---- results


PATCH = patched("a\n", "b\n")
CHANGE: dict[str, Any] = {"file_path": "/w/a.py", "before": "0", "after": "1", "patch": PATCH}
READ: dict[str, Any] = {
    "first_line": 1, "last_line": 3, "total_lines": 9, "complete": False, "encoding": "utf-8", "bom": True,
    "newline": "crlf", "final_newline": False, "size": 12, "digest": "0",
}  # fmt: skip
RESULTS: list[tuple[Any, str]] = [
    (ReadResult(file_path="/w/a.py", **READ), "lines 1-3 of 9, utf-8, with BOM, CRLF, no newline at the end, 12 bytes"),
    (ReadResult(file_path="/w/a.ipynb", **READ), "cells 1-3 of 9"),
    (
        ReadResult(file_path="/w/a.pdf", **READ | {"encoding": None, "complete": True, "bom": False, "newline": "none"}),
        "all 9 pages, 12 bytes",
    ),
    (ReadResult(file_path="/w/a", **READ | {"unchanged": True}), "unchanged since the last read"),
    (EditResult(**CHANGE, replacements=1, stale_recovered=True), "on bytes that had changed since the read"),
    (
        WriteResult(
            **CHANGE, created=True, bytes_written=1, lines_before=0, lines_after=1, added=1, removed=0,
            newline_changed=True,
        ),
        "created, other line endings",
    ),
    (
        NotebookResult(**CHANGE, cell_id="c7", edit_mode="insert", cell_ids=("c7",), user_modified=True),
        "insert cell c7, as the user changed it",
    ),
    (FailureResult(file_path="/w/a.py", code="ambiguous", message="Found 2.", lines=(3, 8)), "ambiguous (line 3, 8)"),
]  # fmt: skip


@pytest.mark.parametrize(("result", "said"), RESULTS)
def test_results_show_themselves(result: Any, said: str) -> None:
    shown = display.show(result)
    assert said in checked(shown).text
    assert said in shown.text
    assert result._repr_mimebundle_() == shown._repr_mimebundle_()
    assert display.show(ToolMessage("x", tool_call_id="1", artifact=result.model_dump())) == shown


def test_show_knows_what_it_can_show() -> None:
    shown = display.show(PATCH)
    assert display.show(shown) is shown
    assert PATCH._repr_mimebundle_() == shown._repr_mimebundle_()
    with pytest.raises(TypeError, match="nothing to show of a str"):
        display.show("x")


def test_paths_below_the_working_directory_are_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path.resolve() / "x" / "a.py")
    monkeypatch.chdir(tmp_path)
    assert display.show_patch(patched("a", "b", path)).text.startswith("x/a.py  +1 -1")
    assert display.show_patch(patched("a", "b", "x/a.py")).text.startswith("x/a.py  +1 -1")
    gone = FailureResult(file_path=path, code="not_found", message=f"No {path}.")
    assert "No x/a.py." in display.show(gone).text
    monkeypatch.chdir("/")
    assert path[1:] in display.show(gone).text
    lost = tmp_path / "lost"
    lost.mkdir()
    monkeypatch.chdir(lost)
    lost.rmdir()
    assert path in display.show(gone).text
    os.chdir("/")


# ---- rewinds and the history


@pytest.fixture
def made(tmp_path: Path) -> Session:
    """A thread that made two changes."""
    (tmp_path / "a.py").write_text("x = 1\n")
    session = agent_session(tmp_path, history=FileHistory(), thread=str(tmp_path), recover_stale=False)
    session.say(read("a.py"))
    return session


def test_plans_and_reports_show_each_file(made: Session, tmp_path: Path) -> None:
    start = made.graph.get_state(made.config)
    assert "there is nothing to do" in checked(display.show(made.toolkit.plan_rewind(start))).text
    made.say([edit("a.py", "1", "2"), write("b.py", "new\n")])
    plan = made.toolkit.plan_rewind(start)
    text = checked(display.show(plan)).text
    assert "Plan of a rewind: 2 to do, 0 in conflict" in text
    assert "put back" in text
    assert "delete" in text
    (tmp_path / "a.py").write_text("x = 3\n")
    plan, report = made.toolkit.plan_rewind(start), made.toolkit.rewind(start)
    assert "1 to do, 1 in conflict" in checked(display.show(plan)).text
    text = checked(display.show(report)).text
    assert "1 restored, 1 left alone" in text
    assert "not by this thread's tools" in text
    assert "not by this thread's tools" in display.show(report).text
    for value in (plan, report, plan.entries[0]):
        assert value._repr_mimebundle_() == display.show(value)._repr_mimebundle_()
    blind = RewindEntry(file_path="/w/a", action="recreate", patch=None, conflict="Not kept.")
    assert "Not kept." in checked(display.show(RewindReport(restored=(), conflicts=(blind,)))).text
    assert "Nothing." in display.show(RewindReport(restored=(), conflicts=())).text
    assert "create again" in checked(display.show(RewindPlan(entries=(blind,)))).text


def test_a_history_lists_its_changes(made: Session) -> None:
    history, thread = made.toolkit.history, made.config["configurable"]["thread_id"]
    assert display.show_history(history, thread).text == "0 changes"
    made.say(edit("a.py", "1", "2"))
    shown = display.show_history(history, thread)
    assert shown.text.startswith("1 change\n")
    assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d .* coder  edit_file +.*a\.py  \+1 -1$", shown.text, re.MULTILINE)
    assert "x = 2" in checked(shown).text
    assert not re.search(r"\d\d:\d\d", display.show_history(history, thread, times=False).text)
    for n in range(2, 104, 6):
        made.say([edit("a.py", f"x = {k}\n", f"x = {k + 1}\n") for k in range(n, n + 6)])
    assert display.show_history(history, thread).text.startswith("103 changes the newest 100 are shown\n")
    assert "text/html" in history._repr_mimebundle_()


# ---- who has seen what


def standings(state: Any, toolkit: FileToolkit) -> dict[str, tuple[str, str]]:
    """By file: what was seen, and what it is worth."""
    shown = display.show_records(state, toolkit)
    checked(shown)
    found = {}
    for line in shown.text.splitlines()[1:]:
        _, path, seen, standing, *_ = re.split(r"  +", line)
        found[path.rsplit("/", 1)[-1]] = (seen, standing)
    return found


def test_records_by_what_they_are_worth(tmp_path: Path) -> None:
    for name in "abcdefg":
        (tmp_path / f"{name}.txt").write_text("1\n2\n3\n4\n")
    (tmp_path / "empty.txt").write_text("")
    session = agent_session(tmp_path, history=FileHistory(), deny=[])
    session.say(
        [read("a.txt"), read("b.txt", limit=2), read("c.txt"), read("d.txt"), read("e.txt"), read("empty.txt"),
         read("f.txt")]
    )  # fmt: skip
    (tmp_path / "c.txt").write_text("other\n")
    (tmp_path / "d.txt").unlink()
    (gone,) = (m for m in tool_messages(session.state()) if parse_result(m).file_path.endswith("e.txt"))  # type: ignore[union-attr]
    session.graph.update_state(session.config, {"messages": [RemoveMessage(id=str(gone.id))]})
    (tmp_path / "f.txt").unlink()
    (tmp_path / "f.txt").mkdir()
    snapshot = session.graph.get_state(session.config)
    assert standings(snapshot, session.toolkit) == {
        "a.txt": ("all 4 lines", "fresh"),
        "b.txt": ("lines 1-2 of 4", "partial"),
        "c.txt": ("all 4 lines", "stale"),
        "d.txt": ("all 4 lines", "gone"),
        "e.txt": ("all 4 lines", "out of context"),
        "empty.txt": ("the file is empty", "fresh"),
        "f.txt": ("all 4 lines", "unknown"),
    }
    assert standings(snapshot.values, session.toolkit)["a.txt"] == ("all 4 lines", "fresh")


def test_a_file_that_was_announced_without_its_text_is_stale(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("".join(f"{n}\n" for n in range(5000)))
    session = agent_session(tmp_path, history=FileHistory())
    session.say(read("a.txt"))
    (tmp_path / "a.txt").write_text("".join(f"{n}!\n" for n in range(5000)))
    session.say("I see.")
    assert standings(session.state(), session.toolkit)["a.txt"] == ("none of 5000 lines", "stale")
    assert "-" in {standings(session.state(), session.toolkit)["a.txt"][0], "-"}


def test_records_name_who_changed_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("1\n")
    history = FileHistory()
    one = agent_session(tmp_path, history=history, name="one", thread="1")
    two = agent_session(tmp_path, history=history, name="two", thread="2")
    one.say(read("a.txt"))
    two.say([read("a.txt"), edit("a.txt", "1", "2")])
    assert "(changed by two)" in checked(display.show_records(one.state(), one.toolkit)).text


def test_records_outside_any_graph_and_none(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("1\n2\n")
    toolkit = FileToolkit(tmp_path, history=FileHistory())
    assert display.show_records(None, toolkit).text == "No agent has seen any file."
    assert display.show_records({}, toolkit).text == "No agent has seen any file."
    toolkit.get_tools()[0].invoke({"file_path": "a.txt"})
    assert standings(None, toolkit) == {"a.txt": ("all 2 lines", "fresh")}


def test_records_of_a_file_that_became_a_link_are_unknown(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("1\n")
    (tmp_path / "b.txt").write_text("2\n")
    toolkit = FileToolkit(tmp_path, history=FileHistory())
    toolkit.get_tools()[0].invoke({"file_path": "a.txt"})
    (tmp_path / "a.txt").unlink()
    (tmp_path / "a.txt").symlink_to("b.txt")
    assert standings(None, toolkit)["a.txt"][1] in {"unknown", "stale"}


# ---- the timeline


def story(shown: Shown) -> list[tuple[str, ...]]:
    """The steps: who, what, and how."""
    checked(shown)
    lines = shown.text.splitlines()
    at = [lines[0].index(name) for name in ("who", "what", "file")]
    found = []
    for line in lines[1:]:
        said = re.split(r"  +", line[at[2] :], maxsplit=1)[1:]
        found.append((line[at[0] : at[1]].strip(), line[at[1] : at[2]].strip(), *(one.strip() for one in said)))
    return found


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_text("x = 1\ny = 2\nz = 3\n")
    return iter([tmp_path])


@pytest.fixture
def folder(here: Iterator[Path]) -> Path:
    return next(here)


def saved(path: Path, old: str, new: str, line: Any) -> Callable[[], Any]:
    """A person saves, then the model says its line."""

    def play() -> Any:
        path.write_text(path.read_text().replace(old, new))
        return line

    return play


def test_a_thread_with_everything(folder: Path) -> None:
    session = agent_session(folder, history=FileHistory(), recover_stale=False, thread="all")
    session.say(edit("a.py", "x = 1", "x = 9"), read("a.py"), edit("a.py", "x = 1", "x = 9"))
    start = session.graph.get_state(session.config)
    session.say(saved(folder / "a.py", "z = 3", "z = 30", edit("a.py", "y = 2", "y = 20")), read("a.py", limit=2))
    session.say([edit("a.py", "y = 2", "y = 20"), write("b.py", "b\n")])
    session.toolkit.rewind(start)
    session.say(read("a.py"))
    shown = display.show_timeline(session.graph.get_state(session.config), session.toolkit.history)
    assert story(shown) == [
        ("coder", "refused", "not read"),
        ("coder", "read", "all"),
        ("coder", "edit", "+1 -1"),
        ("outside", "changed", "+1 -1"),
        ("coder", "refused", "stale"),
        ("coder", "read", "1-2 of 3"),
        ("coder", "edit", "+1 -1 (undone)"),
        ("coder", "write", "+1 -0 new (undone)"),
        ("outside", "rewind"),
        ("coder", "is told", "was changed"),
        ("coder", "is told", "was deleted"),
        ("coder", "read", "all"),
    ]
    assert "2 files" in shown.text
    assert shown.svg is not None
    assert shown.svg.count("<title>Calls of one message</title>") == 1
    assert "z = 30" in shown.svg
    assert "File has been modified since read." in shown.svg
    narrow = display.show_timeline(session.graph.get_state(session.config), session.toolkit.history, columns=0)
    assert story(narrow) == story(shown)


def test_a_recovered_edit_shows_what_was_changed_outside(folder: Path) -> None:
    session = agent_session(folder, history=FileHistory(), thread="recovered")
    session.say(read("a.py"), saved(folder / "a.py", "z = 3", "z = 30", edit("a.py", "x = 1", "x = 9")))
    shown = display.show_timeline(session.graph.get_state(session.config), session.toolkit.history)
    assert story(shown) == [
        ("coder", "read", "all"), ("outside", "changed", "+1 -1"), ("coder", "edit", "+1 -1 recovered"),
    ]  # fmt: skip


def test_without_a_history_the_messages_are_told(folder: Path) -> None:
    session = agent_session(folder, history=FileHistory(), thread="bare")
    session.say(read("a.py"), saved(folder / "a.py", "z = 3", "z = 30", edit("a.py", "x = 1", "x = 9")))
    shown = display.show_timeline(session.state()["messages"])
    assert story(shown) == [
        ("coder", "read", "all"), ("outside", "changed"), ("coder", "edit", "+1 -1 recovered"),
    ]  # fmt: skip
    assert display.show_timeline([]).text == "Nothing happened to any file."
    assert display.show_timeline({"messages": [HumanMessage("hello"), AIMessage("hi")]}).svg is None


def test_a_deletion_that_is_announced(folder: Path) -> None:
    session = agent_session(folder, history=FileHistory(), thread="deleted")
    session.say(read("a.py"))
    saved(folder / "a.py", "1", "7", "")()
    session.say("Hm.")
    (folder / "a.py").unlink()
    session.say(edit("a.py", "x = 1", "x = 9"))
    shown = display.show_timeline(session.graph.get_state(session.config), session.toolkit.history)
    assert story(shown) == [
        ("coder", "read", "all"),
        ("outside", "changed"),
        ("coder", "is told", "was changed"),
        ("outside", "changed", "deleted"),
        ("coder", "is told", "was deleted"),
        ("coder", "refused", "not found"),
    ]


def test_two_threads_in_the_order_in_which_they_worked(folder: Path) -> None:
    history = FileHistory(InMemoryStore())  # of this test alone: other tests have threads of these names
    one = agent_session(folder, history=history, name="one", thread="one")
    two = agent_session(folder, history=history, name="two", thread="two")
    one.say(read("a.py"), edit("a.py", "x = 1", "x = 9"))
    two.say(read("a.py"))

    def meanwhile() -> Any:
        one.say(edit("a.py", "y = 2", "y = 20"))
        return write("a.py", "nothing\n")

    two.say(meanwhile)
    states = [session.graph.get_state(session.config) for session in (two, one)]
    expected = [
        ("one", "read", "all"),
        ("one", "edit", "+1 -1"),
        ("two", "read", "all"),
        ("one", "edit", "+1 -1"),
        ("two", "refused", "stale"),
    ]
    assert story(display.show_timeline(states[0], history, others=states[1:])) == expected
    alone = [step for step in expected if step != ("one", "read", "all")]
    assert story(display.show_timeline(one.state(), history, "one")) == [s for s in expected if s[0] == "one"]
    assert story(display.show_timeline(states[0], history))[-3:] == alone[-3:]


def test_hooks_commands_redo_and_several_edits(folder: Path) -> None:
    def tidy(path: Path) -> str:
        path.write_text(path.read_text().replace("  ", " "))
        return "tidied"

    from langchain_core.tools import tool

    @tool
    def shell(command: str) -> str:
        """Run."""
        (folder / "a.py").write_text("by a command\n")
        return ""

    session = agent_session(folder, history=FileHistory(), thread="hooks", after_write=tidy, tools=[shell])
    session.say(read("a.py"), many("a.py", ("x = 1", "x  = 9"), ("y = 2", "y = 20")))
    start = session.graph.get_state(session.config)
    session.say(call("shell", command="make"))
    session.say(edit("a.py", "by a", "by the"))
    end = session.graph.get_state(session.config)
    session.toolkit.rewind(start, force=True)
    session.toolkit.rewind(end)
    shown = display.show_timeline(session.graph.get_state(session.config), session.toolkit.history)
    assert story(shown) == [
        ("coder", "read", "all"),
        ("coder", "edit", "+2 -2"),
        ("outside", "by a command", "+1 -3"),
        ("coder", "is told", "was changed"),
        ("coder", "edit", "+1 -1"),
        ("outside", "rewind", "+3 -1 (undone)"),
        ("outside", "rewind", "+1 -3"),
    ]


def test_many_steps_go_on_below(folder: Path) -> None:
    session = agent_session(folder, history=FileHistory(), thread="long")
    session.say(read("a.py"), *(edit("a.py", f"x = {n}\n", f"x = {n + 1}\n") for n in range(1, 20)))
    shown = display.show_timeline(session.graph.get_state(session.config), session.toolkit.history)
    assert shown.svg is not None
    height = int(re.search(r'height="(\d+)"', shown.svg)[1])  # type: ignore[index]
    one = display.show_timeline(session.graph.get_state(session.config), session.toolkit.history, columns=99)
    assert one.svg is not None
    assert height > 2 * int(re.search(r'height="(\d+)"', one.svg)[1])  # type: ignore[index]
    assert len(story(shown)) == 20


# ---- nothing that stands in a file, a path, a name or a message becomes markup


def test_injection_over_every_display(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    name = "<b onclick=x>\"'&amp;]]>\u202e.py"
    evil = EVIL.replace("\ufffe", "")
    history = FileHistory()
    session = agent_session(tmp_path, history=history, name="<i>agent</i>", thread="<u>t</u>", recover_stale=False)
    session.say(write(name, f"{evil}\none\ntwo\n"), edit(name, "no such </script> text", evil))
    start = session.graph.get_state(session.config)
    path = next(iter(tmp_path.iterdir()))
    session.say(saved(path, "one\n", f"one\n{evil}\n", edit(name, "two", "</title><script>")), read(name))
    session.say(edit(name, "two", f"</title></style>{evil}"))
    state = session.graph.get_state(session.config)
    plan = session.toolkit.plan_rewind(start)
    shown = [
        display.show_timeline(state, history),
        display.show_records(state, session.toolkit),
        display.show_history(history, "<u>t</u>"),
        display.show_rewind(plan),
        display.show_rewind(session.toolkit.rewind(start)),
        display.show_patch(patched(EVIL, f"{EVIL}</td>{EVIL}", f"/w/{name}"), side_by_side=True),
        *(display.show(message) for message in tool_messages(state.values)),
    ]
    for one in shown:
        page = checked(one)
        assert "<b onclick=x>" in page.text
        assert "<b onclick=x>" in one.text
    for one in (shown[0], shown[3], shown[5]):
        assert "<script>alert(1)</script>" in checked(one).text
        assert "\\u202e" in one.text


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=60), st.text(max_size=60), st.text(min_size=1, max_size=20))
def test_any_text_in_a_patch_a_name_or_a_message(old: str, new: str, name: str) -> None:
    before, after = (text.encode("utf-8", "surrogatepass") for text in (old, new))
    checked(display.show_patch(patch_bytes("/w/x.html", before, after), name=name))
    checked(display.show(FailureResult(file_path=name, code="no_match", message=old + new)))
    messages = [
        AIMessage("", name=name, id="1", tool_calls=[{"name": "edit_file", "args": {}, "id": "c"}]),
        ToolMessage(
            old, tool_call_id="c", id="2",
            artifact=FailureResult(file_path=new, code="stale", message=old).model_dump(),
        ),
    ]  # fmt: skip
    checked(display.show_timeline(messages))


# ---- what is rare


def test_marks_with_only_blanks_between_them_are_one() -> None:
    (row,) = pairs("keep this: a b and this\n", "keep this: x y and this\n")
    assert marked(row) == (["a b"], ["x y"])


def test_a_lexer_that_changes_the_text_is_not_believed() -> None:
    shown = display.show_patch(patched(None, "\ufeffdef f():\n    pass\n"), name="a.py")
    assert 'class="fs-key"' not in shown.html
    assert "\\ufeffdef f():" in checked(shown).text


def test_bytes_that_are_not_kept_are_not_shown(folder: Path) -> None:
    from langchain_filestate import Change

    history, path = FileHistory(), str(folder.resolve() / "a.py")
    known: dict[str, Any] = {"path": path, "mode": None, "agent": "coder", "thread_id": "lost", "checkpoint_id": None}
    for seq, tool in ((1, "edit_file"), (2, "rewind"), (3, "edit_notebook")):
        history.record(
            Change(
                id="", before=str(seq) * 64, after=str(seq + 1) * 64, seq=seq, tool=tool, tool_call_id=None, **known
            ),
            None,
        )
    assert re.search(r"edit_file +a\.py$", display.show_history(history, "lost").text, re.MULTILINE)
    assert story(display.show_timeline([], history, "lost")) == [
        ("coder", "edit", "changed"), ("coder", "rewind", "changed"), ("coder", "edit cell", "changed"),
    ]  # fmt: skip


def test_a_call_that_was_applied_before_and_long_names() -> None:
    long = EditResult(**CHANGE | {"file_path": f"/w/{'n' * 40}.py"}, replacements=1, already_applied=True)
    big = patched("".join(f"{n}\n" for n in range(99)), None)
    gone = EditResult(**CHANGE | {"patch": big}, replacements=1)
    messages = [
        ToolMessage("x", tool_call_id=str(n), artifact=result.model_dump()) for n, result in enumerate((long, gone))
    ]
    shown = display.show_timeline(messages)
    assert story(shown) == [("main", "edit", "+1 -1 again"), ("main", "edit", "+0 -99")]
    assert shown.svg is not None
    assert "nnnnnnnnnnn\u2026" in shown.svg
    assert "\n...</title>" in shown.svg


def test_broken_records_are_not_shown(tmp_path: Path) -> None:
    toolkit = FileToolkit(tmp_path, history=FileHistory())
    broken = {"messages": [], "file_state": {"coder": {"/w/a.py": {"v": 99, "views": []}}}}
    assert display.show_records(broken, toolkit).text == "No agent has seen any file."


def test_an_arrow_does_not_go_back_to_the_next_row(folder: Path) -> None:
    session = agent_session(folder, history=FileHistory(), thread="arrow")
    session.say(read("a.py"), saved(folder / "a.py", "z = 3", "z = 30", edit("a.py", "x = 1", "x = 9")))
    state = session.graph.get_state(session.config)
    wide, narrow = (display.show_timeline(state, session.toolkit.history, columns=n).svg or "" for n in (9, 2))
    assert ('stroke-dasharray="4 3"' in wide, 'stroke-dasharray="4 3"' in narrow) == (True, False)
