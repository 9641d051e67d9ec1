"""Degenerate arguments change nothing, and all means each one once."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from typing import Any

import pytest

from tests.cases.steps import Desk, code
from tests.scripted import call

# ---- ED-01 ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("was_read", [True, False])
def test_ed_01_empty_old_text_does_nothing_to_a_file(desk: Callable[..., Desk], was_read: bool) -> None:
    d = desk()
    for n, data in enumerate((b"abc", b"abc\n", b"\n", b" ", b"\xef\xbb\xbfabc")):
        path = d.put(f"f{n}", data)
        os.utime(path, ns=(1, 1))
        if was_read:
            d.read(path)
        for new, everywhere in itertools.product(("X", ""), (True, False)):
            message = d.edit(path, "", new, replace_all=everywhere)
            assert code(message) == ("empty_old_string" if was_read else "not_read")
        assert path.read_bytes() == data
        assert path.stat().st_mtime_ns == 1


SAME = ["b", "a", "abc", "\n"]


@pytest.mark.parametrize("text", SAME)
def test_ed_01_the_same_text_is_no_change(desk: Callable[..., Desk], text: str) -> None:
    d = desk()
    path = d.put("f", b"abc\n")
    os.utime(path, ns=(1, 1))
    d.read(path)
    for message in (d.edit(path, text, text), d.edit(path, text, text, replace_all=True), d.many(path, (text, text))):
        assert code(message) == "no_change"
        assert str(message.content).startswith("No changes to make")
    assert path.stat().st_mtime_ns == 1
    assert not d.toolkit.history.changes(path=str(path))


def test_ed_01_the_same_bytes_by_another_way_are_no_change(desk: Callable[..., Desk]) -> None:
    d = desk()
    path = d.put("f", b"a\r\nb\r\n")
    os.utime(path, ns=(1, 1))
    d.read(path)
    assert code(d.edit(path, "a\nb", "a\r\nb")) == "no_change"
    assert code(d.many(path, ("a\n", "a\r\n"), ("b\n", "b\r\n"))) == "no_change"
    assert d.write(path, "a\r\nb\r\n").status == "success"
    assert path.stat().st_mtime_ns == 1


def test_ed_01_creating_by_an_empty_old_text(desk: Callable[..., Desk]) -> None:
    d = desk()
    message = d.edit("deep/new", "", "x\n")
    assert str(message.content).startswith(
        f"File created successfully at: {d.root / 'deep/new'} (wrote 1 lines, 2 bytes)."
    )
    assert message.artifact["created"] is True
    assert code(d.edit("deep/new", "", "y\n")) == "empty_old_string"  # it is there now
    assert (d.root / "deep/new").read_bytes() == b"x\n"
    assert d.edit("empty", "", "").status == "success"
    assert (d.root / "empty").read_bytes() == b""
    assert code(d.edit("empty", "", "")) == "no_change"
    assert d.edit("empty", "", "now\n").status == "success"
    assert (d.root / "empty").read_bytes() == b"now\n"


def test_ed_01_an_empty_file_that_was_not_read(desk: Callable[..., Desk]) -> None:
    d = desk()
    d.put("f", b"")
    assert code(d.edit("f", "", "x")) == "not_read"
    d.read("f")
    assert d.edit("f", "", "x").status == "success"


def test_ed_01_an_absent_file_needs_no_old_text(desk: Callable[..., Desk]) -> None:
    d = desk()
    for message in (d.edit("none", "a", "b"), d.many("none", ("a", "b")), d.many("none", ("", "b"))):
        assert code(message) == "not_found"
        assert "write_file" in str(message.content)
    assert list(d.root.iterdir()) == []


WRONG: dict[str, dict[str, Any]] = {
    "no old": call("edit_file", file_path="f", new_string="x"),
    "no new": call("edit_file", file_path="f", old_string="a"),
    "null old": call("edit_file", file_path="f", old_string=None, new_string="x"),
    "null new": call("edit_file", file_path="f", old_string="a", new_string=None),
    "a number": call("edit_file", file_path="f", old_string="a", new_string=1),
    "a list": call("write_file", file_path="f", content=["a"]),
    "a dict": call("write_file", file_path="f", content={"a": 1}),
    "all as a word": call("edit_file", file_path="f", old_string="a", new_string="x", replace_all="sometimes"),
    "no path": call("write_file", content="x"),
    "null path": call("write_file", file_path=None, content="x"),
    "edits as text": call("multi_edit", file_path="f", edits="a -> b"),
    "edits as JSON of nothing": call("multi_edit", file_path="f", edits="[]"),
    "an edit without new": call("multi_edit", file_path="f", edits=[{"old_string": "a"}]),
    "null edits": call("multi_edit", file_path="f", edits=None),
    "offset as a word": call("read_file", file_path="f", offset="first"),
    "limit of nothing": call("read_file", file_path="f", limit=0),
    "limit below nothing": call("read_file", file_path="f", limit=-5),
    "half a line": call("read_file", file_path="f", offset=1.5),
    "a mode that is none": call("edit_notebook", file_path="n.ipynb", cell_id="a", edit_mode="move"),
    "a type that is none": call("edit_notebook", file_path="n.ipynb", cell_id="a", new_source="x", cell_type="text"),
}


@pytest.mark.parametrize("given", WRONG.values(), ids=WRONG)
def test_ed_01_wrong_arguments_name_the_field(desk: Callable[..., Desk], given: dict[str, Any]) -> None:
    d = desk()
    d.put("f", b"abc\n")
    d.read("f")
    message = d.do(given)
    assert code(message) == "bad_arguments", message.content
    assert any(name in str(message.content) for name in ("old_string", "new_string", "content", "file_path", "edits", "offset", "limit", "edit_mode", "cell_type", "replace_all"))  # fmt: skip
    assert len(str(message.content)) < 500
    assert (d.root / "f").read_bytes() == b"abc\n"


def test_ed_01_arguments_that_a_model_gets_nearly_right(desk: Callable[..., Desk]) -> None:
    d = desk()
    d.put("f", b"abc\n")
    assert d.do(call("read_file", file_path="f", offset="1", limit="5")).status == "success"  # numbers as text
    assert (
        d.do(call("edit_file", file_path="f", old_string="a", new_string="x", replace_all="true")).status == "success"
    )
    assert d.do(call("read_file", file_path="f", offset=None, limit=None)).status in {"success", "error"}
    assert (d.root / "f").read_bytes() == b"xbc\n"


# ---- ED-03 ----------------------------------------------------------------------------------------------------------

OVERLAPPING: dict[str, tuple[str, str, str, str, int]] = {
    "aaaa": ("aaaa", "aa", "b", "bb", 2),
    "aaaaa": ("aaaaa", "aa", "b", "bba", 2),
    "a a a a": ("a a a a", "a a", "b", "b b", 2),
    "dashes": ("--------- x ----", "----", "=", "==- x =", 3),
    "lines": ("x\nx\nx\nx\n", "x\nx\n", "y\n", "y\ny\n", 2),
    "lines, crlf": ("x\r\nx\r\nx\r\nx\r\n", "x\nx\n", "y\n", "y\r\ny\r\n", 2),
    "grows": ("aXa", "a", "aa", "aaXaa", 2),
    "holds itself": ("x.x", "x", "(x)", "(x).(x)", 2),
    "to nothing": ("abab", "ab", "", "", 2),
    "one": ("abc", "b", "B", "aBc", 1),
    "newlines": ("\n\n\n\n", "\n\n", "\n", "\n\n", 2),
    "blank lines": ("a\n\n\n\nb", "\n\n", "\n", "a\n\nb", 2),
    "astral": ("\U0001f600\U0001f600\U0001f600", "\U0001f600\U0001f600", "x", "x\U0001f600", 1),
}


@pytest.mark.parametrize(("text", "old", "new", "after", "count"), OVERLAPPING.values(), ids=OVERLAPPING)
def test_ed_03_all_is_left_to_right_without_overlap(
    desk: Callable[..., Desk], text: str, old: str, new: str, after: str, count: int
) -> None:
    for encoding in ("utf-8", "utf-16"):
        d = desk()
        path = d.put("f", text.encode(encoding))
        d.read(path)
        message = d.edit(path, old, new, replace_all=True)
        assert message.status == "success", message.content
        assert message.artifact["replacements"] == count
        assert path.read_bytes().decode(encoding) == after
        if count > 1:
            assert f"{count} replacements" in str(message.content)


@pytest.mark.parametrize("count", [1, 1000, 3_000])
def test_ed_03_many_replacements(desk: Callable[..., Desk], count: int) -> None:
    d = desk()
    path = d.put("f", b"old line\n" * count)
    d.read(path, limit=1)
    message = d.edit(path, "old", "new", replace_all=True)
    assert message.artifact["replacements"] == count
    assert path.read_bytes() == b"new line\n" * count
    assert len(str(message.content)) < 500
    assert sum(len(hunk["lines"]) for hunk in message.artifact["patch"]["hunks"]) <= 10_000
