"""Anything can stand at a path, and anything can be given as one."""

from __future__ import annotations

import os
import re
import socket
import threading
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from langchain_filestate import Limits
from tests.cases.steps import Desk, Make, code, digest_of_tree, edit, many, read, write


def within_a_minute(work: Callable[[], Any]) -> Any:
    """Not a measurement: what hangs for ever is to fail."""
    out: list[Any] = []
    thread = threading.Thread(target=lambda: out.append(work()), daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive(), "it hangs"
    assert out, "it raised"
    return out[0]


# ---- RD-01 ----------------------------------------------------------------------------------------------------------


def one_line(size: int) -> bytes:
    return b'{"a":[' + b",".join(b'{"key":%d,"v":"x"}' % n for n in range(size // 22)) + b"]}"


def test_rd_01_a_huge_line_is_read_in_pieces(desk: Callable[..., Desk]) -> None:
    d = desk()
    data = one_line(10_000_000)
    path = d.put("f.json", data)
    text = ""
    args: dict[str, int] = {}
    tracemalloc.start()
    for _ in range(5):
        shown = d.read(path, **args)
        content = str(shown.content)
        assert len(content) < 101_000
        body = content.split("\n\n(", maxsplit=1)[0]
        text += body.split("\t", 1)[1]
        note = re.search(r"offset=(\d+), column=(\d+)", content)
        assert note is not None, content[-300:]
        args = {"offset": int(note[1]), "column": int(note[2])}
        assert args["column"] == len(text) + 1
    assert data.decode().startswith(text)
    assert len(text) > 400_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100_000_000
    message = within_a_minute(lambda: d.edit(path, '"key":77,', '"key":-77,'))
    assert message.status == "success"
    assert path.read_bytes() == data.replace(b'"key":77,', b'"key":-77,')
    assert len(str(message.content)) < 500
    assert len(str(message.artifact["patch"])) < 100_000  # bounded, though the line is not
    missed = within_a_minute(lambda: d.edit(path, '"key": 77,', "x"))
    assert code(missed) == "no_match"
    assert len(str(missed.content)) < 1500


def test_rd_01_a_huge_line_among_short_ones(desk: Callable[..., Desk]) -> None:
    d = desk()
    d.put("f", b"first\n" + b"x" * 300_000 + b"\nlast\n")
    shown = d.read("f")
    assert "     1\tfirst" in str(shown.content)
    assert "     3\tlast" in str(shown.content)
    assert len(str(shown.content)) < 5_000
    assert "offset=N, column=2001" in str(shown.content)


def test_rd_01_small_bounds_still_move_on(desk: Callable[..., Desk]) -> None:
    d = desk(limits=Limits(max_chars=1, max_line_chars=1, max_lines=1))
    d.put("f", b"ab\n\ncd\n")
    seen, args = [], {"offset": 1}
    for _ in range(10):
        shown = d.read("f", **args)
        assert shown.status == "success"
        seen.append(str(shown.content).split("\n")[0].split("\t")[-1])
        note = re.search(r"ead on with offset=(\d+)(?:, column=(\d+))?", str(shown.content))
        if note is None:
            break
        args = {"offset": int(note[1]), **({"column": int(note[2])} if note[2] else {})}
    assert "".join(seen) == "abcd"


# ---- RD-02 ----------------------------------------------------------------------------------------------------------


def test_rd_02_nothing_but_regular_files_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("w")
    os.symlink("w", "link")
    os.mkdir("d")
    os.symlink("../w", "d/deep")
    server = socket.socket(socket.AF_UNIX)
    server.bind("s")
    d = Desk(tmp_path)
    for name in ("w", "link", "d/deep", "s"):
        for ask in (
            lambda name=name: d.read(name),
            lambda name=name: d.edit(name, "a", "b"),
            lambda name=name: d.edit(name, "", "b"),
            lambda name=name: d.many(name, ("a", "b")),
            lambda name=name: d.write(name, "x"),
            lambda name=name: d.cell(name, "a", "b"),
        ):
            message = within_a_minute(ask)
            assert code(message) in {"not_a_file", "symlink"}, (name, message.content)
    server.close()
    assert "d" in os.listdir()
    told = within_a_minute(
        lambda: d.toolkit.describe_change({"name": "write_file", "args": {"file_path": "w", "content": "x"}})
    )
    assert "not a regular file" in told
    within_a_minute(lambda: d.read("w2"))  # suggestions look at names only


def test_rd_02_devices_and_the_kernel(desk: Callable[..., Desk]) -> None:
    d = desk(Path("/"))
    for name in ("/dev/zero", "/dev/random", "/dev/null", "/proc/self/mem", "/proc/kmsg", "/proc/self/environ", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0", "/proc/self/maps"):  # fmt: skip
        message = within_a_minute(partial(d.read, name))
        assert message.status == "error", (name, str(message.content)[:200])
        assert code(message) in {
            "not_a_file",
            "not_found",
            "outside_root",
            "is_directory",
            "bad_path",
            "io_error",
            "symlink",
        }, (name, message.content)
    for name in ("/dev/null", "/dev/zero", "/proc/self/comm"):
        message = within_a_minute(partial(d.write, name, "x"))
        assert message.status == "error"


def test_rd_02_a_file_that_becomes_a_pipe(desk: Callable[..., Desk]) -> None:
    d = desk()
    path = d.put("f", b"one\n")
    d.read(path)
    path.unlink()
    os.mkfifo(path)
    assert code(within_a_minute(lambda: d.edit(path, "one", "two"))) == "not_a_file"
    assert code(within_a_minute(lambda: d.write(path, "two"))) == "not_a_file"


def test_rd_02_a_notice_does_not_hang_on_a_pipe(agent: Make, tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("one\n")
    s = agent()
    s.say(read(path))
    path.unlink()
    os.mkfifo(path)
    (message,) = within_a_minute(lambda: s.say(edit(path, "one", "two")))
    assert code(message) == "not_a_file"


# ---- RD-03 ----------------------------------------------------------------------------------------------------------

SLIPS: dict[str, tuple[str, str | set[str]]] = {
    "a directory": ("dir", "is_directory"),
    "with a slash": ("dir/", "is_directory"),
    "a dot": (".", "is_directory"),
    "dots": ("dir/..", "is_directory"),
    "a dot behind": ("dir/.", "is_directory"),
    "a file with a slash": ("f/", {"parent_not_directory", "bad_path", "not_found"}),
    "a file with a dot": ("f/.", {"parent_not_directory", "bad_path", "not_found"}),
    "nothing": ("", "bad_path"),
    "blanks": ("   ", "bad_path"),
    "a line break": ("\n", "bad_path"),
    "NUL": ("a\0b", "bad_path"),
    "a name of 300": ("x" * 300, "bad_path"),
    "a name of 300 bytes": ("\u4e2d" * 100, "bad_path"),
    "a path of 5000": ("x/" * 2500 + "f", "bad_path"),
    "a drive": ("C:\\tmp\\x", "bad_path"),
    "a drive, slashes": ("C:/tmp/x", "bad_path"),
    "a small drive": ("c:\\x", "bad_path"),
    "a share": ("\\\\server\\share\\x", {"bad_path", "not_found"}),
    "a drive as Cygwin has it": ("/c/tmp/x", "outside_root"),
    "a drive as WSL has it": ("/mnt/c/x", "outside_root"),
    "backslashes": ("dir\\x", {"bad_path", "not_found"}),
    "an address": ("file:///etc/passwd", "bad_path"),
    "another address": ("https://example.org/x", "bad_path"),
    "home": ("~", {"is_directory", "outside_root", "bad_path"}),
    "somebody's home": ("~root/x", {"outside_root", "bad_path"}),
    "nobody's home": ("~nosuchuser/x", "bad_path"),
    "in the home": ("~/x", "outside_root"),
    "half a character": ("a\ud800", {"bad_path", "encoding", "bad_arguments"}),
    "the root": ("/", "outside_root"),
    "a variable": ("$HOME/../../etc/passwd", {"outside_root", "not_found", "bad_path"}),
}


@pytest.mark.parametrize(("given", "codes"), SLIPS.values(), ids=SLIPS)
def test_rd_03_slips_are_named_and_make_nothing(desk: Callable[..., Desk], given: str, codes: str | set[str]) -> None:
    d = desk()
    d.put("f", b"one\n")
    d.put("dir/x", b"one\n")
    before = digest_of_tree(d.root)
    cwd = set(os.listdir())
    wanted = {codes} if isinstance(codes, str) else codes
    for message in (
        d.read(given),
        d.edit(given, "a", "b"),
        d.many(given, ("a", "b")),
        d.cell(given, "a", "b"),
        d.write(given, "x"),
    ):
        if given.startswith(("$", "\\", "dir\\")) and message.name == "write_file" and message.status == "success":
            continue  # a name like any other
        assert code(message) in wanted, (message.name, message.content)
    if not given.startswith(("$", "\\", "dir\\")):
        assert digest_of_tree(d.root) == before
    assert set(os.listdir()) == cwd


def test_rd_03_home_is_expanded_and_then_judged(desk: Callable[..., Desk], monkeypatch: pytest.MonkeyPatch) -> None:
    d = desk()
    monkeypatch.setenv("HOME", str(d.root))
    assert d.write("~/x", "1\n").status == "success"
    assert (d.root / "x").read_bytes() == b"1\n"
    assert not (d.root / "~").exists()
    assert d.edit("x", "1", "2").status == "success"  # the same record
    assert code(d.read("~")) == "is_directory"
    d.put("~", b"a file of this name\n")
    assert d.read("./~").status == "success"


def test_rd_03_what_was_meant_is_named(desk: Callable[..., Desk]) -> None:
    d = desk(deny=["secret/"])
    d.put("src/package/module.py", b"x\n")
    d.put("src/package/README.md", b"x\n")
    d.put("secret/module.py", b"x\n")
    d.put("secret/modul.py", b"x\n")
    for given, meant in (
        ("module.py", "src/package/module.py"), ("src/module.py", "src/package/module.py"),
        ("src/package/modul.py", "module.py"), ("src/package/readme.md", "README.md"), ("src/packge/module.py", "module.py"),
    ):  # fmt: skip
        for message in (d.read(given), d.edit(given, "x", "y")):
            assert code(message) == "not_found"
            assert meant in str(message.content), (given, message.content)
            assert "secret" not in str(message.content)


def test_rd_03_odd_names_are_names(desk: Callable[..., Desk]) -> None:
    d = desk()
    for name in ("a b", " lead", "trail ", "-rf", "--", "#x", "a'b", 'a"b', "a*b", "a?b", "[a]", "a;b", "a&b", "$x", "%s", "{x}", "caf\u00e9", "\u4e2d\u6587", "\U0001f600", "a:b", "c\td", "..x", "x..", "...", ".hidden"):  # fmt: skip
        message = d.write(name, "1\n")
        assert message.status == "success", (name, message.content)
        assert (d.root / name).read_bytes() == b"1\n", name
        assert d.read(name).status == "success", name
        assert d.edit(name, "1", "2").status == "success", name
    for name in ("a\nb", "a\x1b[31mb"):
        message = d.write(name, "1\n")
        assert "\x1b" not in str(message.content)
        assert len(str(message.content).split("\n")) == 1


# ---- RD-04 ----------------------------------------------------------------------------------------------------------


def test_rd_04_a_file_on_the_way(session: Make, tmp_path: Path) -> None:
    s = session()
    s.say(write("a", "x\n"))
    before = digest_of_tree(tmp_path)
    out = s.say(
        write("a/b.txt", "y"), edit("a/b.txt", "x", "y"), edit("a/b.txt", "", "y"), many("a/b", ("x", "y")),
        read("a/b.txt"), write("a/b/c/d", "y"), read("a/../a/b"), write("a/.", "y"),
    )  # fmt: skip
    for message in out:
        assert code(message) == "parent_not_directory", message.content
        assert (
            str(tmp_path / "a") in str(message.content)
            or "a is" in str(message.content)
            or '"a"' in str(message.content)
        )
    assert digest_of_tree(tmp_path) == before
    assert s.one(edit("a", "x", "y")).status == "success"  # the run goes on
    assert next(iter(s.records().values())).keys() == {str(tmp_path / "a")}


def test_rd_04_other_things_on_the_way(desk: Callable[..., Desk]) -> None:
    d = desk()
    os.mkfifo(d.root / "pipe")
    (d.root / "dangling").symlink_to("nowhere")
    d.put("real", b"x\n")
    (d.root / "to file").symlink_to("real")
    for name in ("pipe/x", "dangling/x", "to file/x"):
        for message in (d.read(name), d.write(name, "x")):
            assert message.status == "error", name
            assert code(message) in {"parent_not_directory", "symlink", "not_found", "not_a_file"}, message.content
    assert not (d.root / "nowhere").exists()


def test_rd_04_a_directory_where_a_file_was_read(desk: Callable[..., Desk]) -> None:
    d = desk()
    path = d.put("a", b"x\n")
    d.read(path)
    path.unlink()
    path.mkdir()
    assert code(d.edit(path, "x", "y")) == "is_directory"
    assert code(d.write(path, "y")) == "is_directory"
    assert d.write("a/inside", "y").status == "success"
