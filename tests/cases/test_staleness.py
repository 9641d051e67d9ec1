"""A file is stale when its bytes are others, and never for another reason; a formatter is not an enemy."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from tests.cases.steps import Desk, Make, cell, code, edit, many, read, write
from tests.notebook_styles import JUPYTER


def later(path: Path, seconds: float) -> None:
    stat = path.stat()
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns + int(seconds * 1e9)))


def replaced(path: Path) -> None:
    """As a sync client or an editor does that saves without a change: another inode with the same bytes."""
    copy = path.with_name("copy~")
    shutil.copy(path, copy)
    copy.replace(path)


def linked(path: Path) -> None:
    os.link(path, path.with_name("peer"))
    path.with_name("peer").unlink()


def there_and_back(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(b"something else\n")
    path.write_bytes(data)


def away_and_back(path: Path) -> None:
    path.rename(path.with_name("away"))
    path.with_name("away").rename(path)


def rewritten(path: Path) -> None:
    path.write_bytes(path.read_bytes())


def deleted_and_back(path: Path) -> None:
    data = path.read_bytes()
    path.unlink()
    path.write_bytes(data)


TOUCHES: dict[str, Callable[[Path], Any]] = {
    "5 s later": lambda path: later(path, 5),
    "300 ms later": lambda path: later(path, 0.3),
    "an hour earlier": lambda path: later(path, -3600),
    "1970": lambda path: os.utime(path, ns=(0, 0)),
    "in the future": lambda path: os.utime(path, (4e9, 4e9)),
    "read by another program": lambda path: path.read_bytes(),
    "another mode": lambda path: path.chmod(0o755),
    "another link": linked,
    "another inode": replaced,
    "written with the same bytes": rewritten,
    "there and back": there_and_back,
    "renamed and back": away_and_back,
    "deleted and back": deleted_and_back,
}


def test_st_01_a_time_that_moves_is_no_change(session: Make, tmp_path: Path) -> None:
    paths = {name: tmp_path / str(n) / "f" for n, name in enumerate(TOUCHES)}
    for path in paths.values():
        path.parent.mkdir()
        path.write_bytes(b"hello\n")

    def touched() -> None:
        for name, touch in TOUCHES.items():
            touch(paths[name])

    s = session()
    s.say([read(path) for path in paths.values()])
    touched()
    for message, name in zip(s.say([edit(path, "hello", "bye") for path in paths.values()]), paths, strict=True):
        assert message.status == "success", name
        assert message.artifact["stale_recovered"] is False, name
    touched()  # the write of the tool itself is what is remembered, not the clock
    for message, name in zip(s.say([write(path, "third\n") for path in paths.values()]), paths, strict=True):
        assert message.status == "success", name
        assert paths[name].read_bytes() == b"third\n"


def test_st_01_the_own_write_is_no_change(session: Make, tmp_path: Path) -> None:
    path = tmp_path / "f"
    s = session()

    def after_it() -> Any:
        later(path, 0.3)
        return edit(path, "hello", "bye")

    created, edited = s.say(write(path, "hello\n"), after_it)
    assert (created.status, edited.status) == ("success", "success")
    assert edited.artifact["stale_recovered"] is False


@pytest.mark.parametrize("mode", ["sync", "async"])
async def test_st_01_two_edits_of_one_message(session: Make, tmp_path: Path, mode: str) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"1\n2\n3\n")
    s = session()
    lines = (read(path), [edit(path, "1", "one"), edit(path, "3", "three")], write(path, "x\n"))
    out = await s.asay(*lines) if mode == "async" else s.say(*lines)
    assert [code(m) for m in out] == [None, None, None, None]
    assert [m.artifact["stale_recovered"] for m in out[1:3]] == [False, False]
    assert path.read_bytes() == b"x\n"


def test_st_01_the_same_size_and_time_is_still_a_change(session: Make, tmp_path: Path) -> None:
    """The other side of it: a time that does not move is no proof."""
    path = tmp_path / "f"
    path.write_bytes(b"hello\n")
    s = session()
    s.say(read(path))

    def by_hand() -> Any:
        stat = path.stat()
        path.write_bytes(b"jello\n")
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        return [write(path, "x\n"), edit(path, "hello", "bye")]

    assert [code(m) for m in s.say(by_hand)] == ["stale", "stale"]
    assert path.read_bytes() == b"jello\n"


BYTES = {
    "crlf": (b"a\r\nb\r\n", b"a\r\nc\r\n"),
    "mixed": (b"a\r\nb\nx\r\n", b"a\r\nc\nx\r\n"),
    "lone cr": (b"a\rb\r", b"a\rc\r"),
    "bom": (b"\xef\xbb\xbfa\r\nb", b"\xef\xbb\xbfa\r\nc"),
    "utf-16": ("\ufeffa\r\nb\r\n".encode("utf-16-le"), "\ufeffa\r\nc\r\n".encode("utf-16-le")),
    "utf-32": ("\ufeffa\r\nb\r\n".encode("utf-32-be"), "\ufeffa\r\nc\r\n".encode("utf-32-be")),
    "bad byte": (b"aaaaaaaaaaaaa\xff\r\nb\r\n", b"aaaaaaaaaaaaa\xff\r\nc\r\n"),
    "form feed": (b"a\x0c\r\nb", b"a\x0c\r\nc"),
    "decomposed": ("a\u0301\nb\n".encode(), "a\u0301\nc\n".encode()),
}


def test_st_02_raw_bytes_are_compared(session: Make, tmp_path: Path) -> None:
    for name, (before, _) in BYTES.items():
        (tmp_path / name).write_bytes(before)
    s = session()
    out = s.say(
        [read(name) for name in BYTES], *([edit(name, *texts) for name in BYTES] for texts in ("bc", "cb", "bc"))
    )
    assert {code(m) for m in out} == {None}
    assert not any(m.artifact.get("stale_recovered") for m in out)
    for name, (_, after) in BYTES.items():
        assert (tmp_path / name).read_bytes() == after, name


# ---- ST-03 ----------------------------------------------------------------------------------------------------------


def lines(count: int) -> str:
    return "".join(f"    line {n}\n" for n in range(1, count + 1))


def test_st_03_an_edit_goes_ahead_beside_another_hand(session: Make, tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text(lines(30))
    s = session()

    def formatter() -> Any:
        path.write_text(path.read_text().replace("    line 20\n", "\tline 20\n"))
        return edit(path, "line 5\n", "LINE 5\n")

    out = s.say(read(path), edit(path, "line 3\n", "LINE 3\n"), formatter)
    assert [m.status for m in out] == ["success"] * 3
    assert out[-1].artifact["stale_recovered"] is True
    assert "line 20" in out[-1].content
    text = path.read_text()
    assert "\tline 20\n" in text
    assert "LINE 3\n" in text
    assert "LINE 5\n" in text
    # What was not shown is still not seen, so it cannot be overwritten.
    assert code(s.one(write(path, "x"))) in {"partially_read", "not_in_context"}


@pytest.mark.parametrize("recover", [True, False])
def test_st_03_a_refusal_says_what_moved(session: Make, tmp_path: Path, recover: bool) -> None:
    path = tmp_path / "f"
    path.write_text(lines(30))
    s = session(recover_stale=recover)

    def formatter() -> Any:
        path.write_text(path.read_text().replace("    line 5\n", "\tline  5\n"))
        return edit(path, "    line 5\n", "    LINE 5\n")

    *_, out = s.say(read(path), formatter)
    assert code(out) == "stale"
    assert str(out.content).startswith("File has been modified since read. Read it again before writing.")
    assert "-    line 5" in out.content
    assert "+\tline  5" in out.content
    assert list(out.artifact["lines"]) == [5]
    assert len(out.content) < 1000


def test_st_03_text_that_became_ambiguous_is_refused(session: Make, tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("x = 1\ny = 2\n")
    s = session()

    def doubled() -> Any:
        path.write_text("x = 1\ny = 2\nx = 1\n")
        return [edit(path, "x = 1", "x = 3"), many(path, ("y = 2", "y = 3"), ("x = 1", "x = 3"))]

    assert [code(m) for m in s.say(read(path), doubled)] == [None, "stale", "stale"]
    assert path.read_text() == "x = 1\ny = 2\nx = 1\n"


def test_st_03_replace_all_in_a_changed_file_is_refused(session: Make, tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("x\nx\n")
    s = session()

    def more() -> Any:
        path.write_text("x\nx\nkeep x here\n")
        return edit(path, "x", "y", replace_all=True)

    assert [code(m) for m in s.say(read(path), more)] == [None, "stale"]


def formatted(path: Path) -> str:
    path.write_text(path.read_text().replace("    line", "\tline"))
    return "1 file reformatted"


def test_st_03_a_hook_of_the_project_is_no_other_hand(session: Make, tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text(lines(30))
    s = session(after_write=formatted)
    out = s.say(read(path), edit(path, "line 3\n", "LINE 3\n"), edit(path, "\tline 5\n", "\tLINE 5\n"))
    assert [m.status for m in out] == ["success"] * 3
    assert "1 file reformatted" in out[1].content
    assert out[2].artifact["stale_recovered"] is False
    assert "\tLINE 5\n" in path.read_text()


def gone(path: Path) -> None:
    path.unlink()


def no_text(path: Path) -> None:
    path.write_bytes(b"\x7fELF\0\0\0")


def a_link(path: Path) -> None:
    path.rename(path.with_name("moved"))
    path.symlink_to("moved")


def a_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def shut(path: Path) -> None:
    path.chmod(0o444)


def longer(path: Path) -> None:
    path.write_text("".join(f"new {n}\n" for n in range(500)))


def emptied(path: Path) -> None:
    path.write_bytes(b"")


HOOKS: dict[str, tuple[Callable[[Path], None], str | None]] = {
    "deletes it": (gone, "not there any more"),
    "makes it binary": (no_text, "changed"),
    "makes it a link": (a_link, "symbolic link"),
    "makes it a directory": (a_directory, "directory"),
    "shuts it": (shut, None),
    "puts another text there": (longer, "changed"),
    "empties it": (emptied, "changed"),
}


@pytest.mark.parametrize(("hook", "word"), HOOKS.values(), ids=HOOKS)
def test_st_03_whatever_a_hook_does_the_write_is_told_as_done(
    desk: Callable[..., Desk], hook: Callable[[Path], None], word: str | None
) -> None:
    done: list[bytes] = []

    def once(at: Path) -> None:
        done.append(at.read_bytes())
        hook(at)

    d = desk(after_write=once)
    path = d.put("f", b"one\n")
    d.read(path)
    out = d.edit(path, "one", "two")
    assert done == [b"two\n"]
    assert out.status == "success", out.content
    if word is not None:
        assert word in out.content
    assert len(d.toolkit.history.changes(path=str(path))) >= 1
    follow = d.write(path, "three\n")  # and nothing unseen is lost
    if follow.status == "success":
        assert hook in {gone, shut, emptied}


# ---- ST-04 ----------------------------------------------------------------------------------------------------------

OTHERS: dict[str, Callable[[Path], Any]] = {
    "appended": lambda path: path.write_bytes(path.read_bytes() + b"2\n"),
    "one byte": lambda path: path.write_bytes(path.read_bytes().replace(b"1", b"!")),
    "only the line ending": lambda path: path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n")),
    "only the last newline": lambda path: path.write_bytes(path.read_bytes().rstrip(b"\n")),
    "a byte order mark": lambda path: path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes()),
    "emptied": lambda path: path.write_bytes(b""),
    "another file moved here": lambda path: (
        path.with_name("n").write_bytes(b"9\n"),
        path.with_name("n").replace(path),
    ),
}


def test_st_04_a_write_never_loses_another_hand(session: Make, tmp_path: Path) -> None:
    paths = {name: tmp_path / str(n) / "f" for n, name in enumerate(OTHERS)}
    for path in paths.values():
        path.parent.mkdir()
        path.write_bytes(b"1\n")
    s = session()
    s.say([read(path) for path in paths.values()])
    left: dict[str, bytes] = {}

    def by_hand() -> Any:
        for name, other in OTHERS.items():
            other(paths[name])
            left[name] = paths[name].read_bytes()
        return [write(path, "1\n3\n") for path in paths.values()]

    for message, name in zip(s.say(by_hand), paths, strict=True):
        assert code(message) == "stale", name
        assert "Read it again before writing." in str(message.content)
        assert paths[name].read_bytes() == left[name]


def test_st_04_before_the_model_is_asked(session: Make, tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"1\n")
    s = session()
    s.say(read(path))
    path.write_bytes(b"1\n2\n")
    out = s.one(write(path, "1\n3\n"))
    told = [m for m in s.state()["messages"] if isinstance(m, HumanMessage) and "file_state" in m.additional_kwargs]
    if told:  # the middleware has told, in full: the agent knew what it wrote over
        assert "+2" in str(told[-1].content)
        assert out.status == "success"
    else:
        assert code(out) == "stale"
        assert path.read_bytes() == b"1\n2\n"


def test_st_04_the_guard_is_the_same_in_every_tool(session: Make, tmp_path: Path) -> None:
    book, text = tmp_path / "n.ipynb", tmp_path / "f"
    cells: list[dict[str, Any]] = [
        {"cell_type": "code", "id": "c0", "metadata": {}, "execution_count": None, "outputs": [], "source": "n = 1"}
    ]
    book.write_bytes(JUPYTER.dump(cells))
    text.write_text("a\nb\n")
    s = session()
    s.say(read(book), read(text))
    theirs = JUPYTER.dump([{**cells[0], "source": "n = 2  # theirs"}])

    def by_hand() -> Any:
        book.write_bytes(theirs)
        text.write_text("A\nB\n")
        return [
            cell(book, "c0", "n = 3"),
            cell(book, "c0", mode="delete"),
            write(text, "x"),
            edit(text, "a", "x"),
            many(text, ("a", "x"), ("b", "y")),
        ]

    assert [code(m) for m in s.say(by_hand)] == ["stale"] * 5
    assert book.read_bytes() == theirs
    assert text.read_text() == "A\nB\n"


def test_st_04_a_file_that_vanished_is_not_there(session: Make, tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("1\n")
    s = session()

    def by_hand() -> Any:
        path.unlink()
        return [edit(path, "1", "2"), read(path)]

    assert [code(m) for m in s.say(read(path), by_hand)] == [None, "not_found", "not_found"]
    # And back with other bytes: known as changed, in the agent's own words too.
    path.write_text("theirs\n")
    assert code(s.one(write(path, "x"))) in {"stale", "not_read", "not_in_context", "partially_read"}
    assert path.read_text() == "theirs\n"


def test_st_04_hooks_see_the_bytes_that_are_there(desk: Callable[..., Desk]) -> None:
    seen: list[bytes | None] = []
    d = desk(before_write=lambda change: seen.append(change.before))
    path = d.put("f", b"1\n")
    d.read(path)
    path.write_bytes(b"1\n2\n")
    assert d.edit(path, "1\n", "one\n").artifact["stale_recovered"] is True
    assert seen == [b"1\n2\n"]
    assert path.read_bytes() == b"one\n2\n"


@pytest.mark.parametrize("touch", ["later", "mode", "inode", "written"])
def test_st_01_a_hook_that_touches_the_file_is_no_change(desk: Callable[..., Desk], touch: str) -> None:
    calls: list[str] = []

    def hook(change: Any) -> None:
        calls.append(touch)
        path = Path(change.file_path)
        {"later": lambda p: later(p, 5), "mode": lambda p: p.chmod(0o600), "inode": replaced, "written": rewritten}[
            touch
        ](path)

    d = desk(before_write=hook)
    path = d.put("f", b"one\n")
    d.read(path)
    assert d.edit(path, "one", "two").status == "success"
    assert d.write(path, "three\n").status == "success"
    assert calls == [touch, touch]  # once each, and not until the clock stands still
    assert path.read_bytes() == b"three\n"
    if touch == "mode":
        assert path.stat().st_mode & 0o777 == 0o600


def test_st_03_a_hook_that_always_changes_the_file_ends_somewhere(desk: Callable[..., Desk]) -> None:
    def hook(change: Any) -> None:
        path = Path(change.file_path)
        path.write_bytes(path.read_bytes() + b"#\n")

    d = desk(before_write=hook)
    path = d.put("f", b"one\n")
    d.read(path)
    assert code(d.edit(path, "one", "two")) == "busy"
    assert path.read_bytes().startswith(b"one\n#\n")


def test_st_04_a_file_that_appears_before_it_is_created(desk: Callable[..., Desk]) -> None:
    def hook(change: Any) -> None:
        path = Path(change.file_path)
        if not path.exists():
            path.write_bytes(b"theirs\n")

    d = desk(before_write=hook)
    for message in (d.write("f", "mine\n"), d.edit("g", "", "mine\n")):
        assert code(message) == "not_read"
    assert [(d.root / name).read_bytes() for name in "fg"] == [b"theirs\n"] * 2
