"""Mode, owner, attributes and links stay what they were; a file that is shut stays shut."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cases.steps import Desk, Make, code, edit, read, write


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def change(d: Desk, path: Path, how: str) -> Any:
    d.read(path)
    if how == "edit":
        return d.edit(path, "one", "two")
    if how == "many":
        return d.many(path, ("one", "two"))
    return d.write(path, "two\n")


HOW = ["edit", "many", "write"]


@pytest.mark.parametrize("how", HOW)
def test_mt_01_the_mode_stays(desk: Callable[..., Desk], how: str) -> None:
    d = desk()
    for mode in (0o755, 0o600, 0o644, 0o640, 0o664, 0o666, 0o777, 0o700, 0o2644, 0o4755, 0o1644, 0o200 | 0o400, 0o604):
        path = d.put(f"f{mode:o}", b"one\n")
        path.chmod(mode)
        assert change(d, path, how).status == "success", oct(mode)
        assert stat.S_IMODE(path.stat().st_mode) == mode, oct(mode)
        assert path.read_bytes() == b"two\n"


@pytest.mark.parametrize("how", HOW)
def test_mt_01_the_owner_stays(desk: Callable[..., Desk], how: str) -> None:
    d = desk()
    path = d.put("f", b"one\n")
    owner = (1234, 4321) if os.getuid() == 0 else (os.getuid(), os.getgroups()[-1])  # only root gives files away
    os.chown(path, *owner)
    path.chmod(0o640)
    assert change(d, path, how).status == "success"
    found = path.stat()
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (*owner, 0o640)


@pytest.mark.parametrize("how", HOW)
def test_mt_01_extended_attributes_stay(desk: Callable[..., Desk], how: str) -> None:
    d = desk()
    path = d.put("f", b"one\n")
    given = {"user.x": b"y", "user.big": b"z" * 500, "user.empty": b""}
    for name, value in given.items():
        os.setxattr(path, name, value)
    assert change(d, path, how).status == "success"
    assert {name: os.getxattr(path, name) for name in os.listxattr(path) if name.startswith("user.")} == given


@pytest.mark.parametrize("how", HOW)
def test_mt_01_an_access_list_stays(desk: Callable[..., Desk], how: str) -> None:
    d = desk()
    path = d.put("f", b"one\n")
    # user::rw-, user:1234:rw-, group::r--, mask::rw-, other::---  (acl(5), little endian)
    entries = [(1, 6, 0xFFFFFFFF), (2, 6, 1234), (4, 4, 0xFFFFFFFF), (16, 6, 0xFFFFFFFF), (32, 0, 0xFFFFFFFF)]
    acl = (2).to_bytes(4, "little") + b"".join(
        tag.to_bytes(2, "little") + perm.to_bytes(2, "little") + who.to_bytes(4, "little") for tag, perm, who in entries
    )
    os.setxattr(path, "system.posix_acl_access", acl)
    assert change(d, path, how).status == "success"
    assert os.getxattr(path, "system.posix_acl_access") == acl
    assert stat.S_IMODE(path.stat().st_mode) == 0o660


@pytest.mark.parametrize("mask", [0o022, 0o027, 0o077, 0o002, 0o000])
def test_mt_01_a_new_file_takes_the_umask(desk: Callable[..., Desk], mask: int) -> None:
    d = desk()
    with umask(mask):
        d.write("new/deep/f", "x")
        d.edit("g", "", "x")
        (d.root / "plain").write_bytes(b"")
        (d.root / "dir").mkdir()
    mode, of_dir = (d.root / "plain").stat().st_mode, (d.root / "dir").stat().st_mode
    assert (d.root / "new/deep/f").stat().st_mode == mode
    assert (d.root / "g").stat().st_mode == mode
    assert (d.root / "new").stat().st_mode == of_dir
    assert (d.root / "new/deep").stat().st_mode == of_dir


def test_mt_01_nothing_of_the_tools_is_left(desk: Callable[..., Desk], monkeypatch: pytest.MonkeyPatch) -> None:
    d = desk()
    path = d.put("f", b"one\n")
    change(d, path, "edit")
    d.edit(path, "nope", "x")
    d.read(path)
    real = os.fsync

    def full(fd: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    message = d.edit(path, "two", "three")
    assert code(message) == "io_error"
    assert "space" in str(message.content)
    monkeypatch.setattr(os, "fsync", real)
    assert path.read_bytes() == b"two\n"
    assert [p.name for p in d.root.iterdir()] == ["f"]
    assert d.edit(path, "two", "three").status == "success"  # and it goes on


@pytest.mark.parametrize("how", ["edit", "write", "new", "linked"])
def test_mt_01_a_disk_that_fails_leaves_the_old_bytes(
    desk: Callable[..., Desk], monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    d = desk()
    path = d.put("f", b"one\n")
    names = ["f"]
    if how == "linked":  # then it is written in place
        os.link(path, d.root / "g")
        names = ["f", "g"]
    d.read(path)
    for number in (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EACCES, errno.EPERM):

        def failing(fd: int, number: int = number) -> None:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(os, "fsync", failing)
        if how in {"edit", "linked"}:
            message = d.edit(path, "one", "two")
        else:
            message = d.write(path if how == "write" else "sub/new", "two\n")
        monkeypatch.undo()
        assert code(message) in {"io_error", "read_only"}, number
        assert path.read_bytes() == b"one\n"
        assert sorted(p.name for p in d.root.iterdir()) == names
        assert not [c for c in d.toolkit.history.changes() if c.path.startswith(str(d.root))]


# ---- MT-02: links ---------------------------------------------------------------------------------------------------


def test_mt_02_a_link_is_not_written_through_and_its_target_is_named(session: Make, tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_bytes(b"world")
    link.symlink_to("real")
    s = session()
    out = s.say(read("link"), edit("link", "world", "there"), write("link", "there"), edit(real, "world", "there"))
    assert [code(m) for m in out] == [None, "symlink", "symlink", None]
    for message in out[1:3]:
        assert str(message.content).startswith(
            f"Refusing to write {link}: it is a symbolic link. Write to the link's target path instead: {real}"
        )
    assert link.is_symlink()
    assert real.read_bytes() == b"there"


def test_mt_02_kinds_of_links(desk: Callable[..., Desk], tmp_path: Path) -> None:
    root = tmp_path / "root"
    d = desk(root) if root.mkdir() is None else None  # type: ignore[func-returns-value]
    assert d is not None
    d.put("dir/real", b"one\n")
    (root / "chain").symlink_to("chain2")
    (root / "chain2").symlink_to("dir/real")
    (root / "absolute").symlink_to(root / "dir" / "real")
    (root / "dirlink").symlink_to("dir")
    (root / "dangling").symlink_to("nowhere")
    (root / "loop").symlink_to("loop2")
    (root / "loop2").symlink_to("loop")
    (root / "self").symlink_to(".")
    (tmp_path / "outside").write_text("secret\n")
    (root / "out").symlink_to("../outside")
    for name in ("chain", "absolute", "dirlink/real", "self/dir/real"):
        assert d.read(name).status == "success", name
    for name in ("chain", "absolute"):
        message = d.edit(name, "one", "two")
        assert code(message) == "symlink", name
        assert str(root / "dir" / "real") in str(message.content)
    assert d.edit("dirlink/real", "one", "two").status == "success"  # a link on the way is a way
    assert d.edit("self/dirlink/real", "two", "three").status == "success"
    assert (root / "dir/real").read_bytes() == b"three\n"
    assert code(d.read("dangling")) == "not_found"
    assert code(d.write("dangling", "x")) == "symlink"
    assert code(d.edit("dangling", "", "x")) == "symlink"
    assert not (root / "nowhere").exists()
    for message in (d.read("loop"), d.write("loop", "x"), d.edit("loop/x", "a", "b")):
        assert message.status == "error"
    for message in (d.read("out"), d.write("out", "x"), d.edit("out", "secret", "x")):
        assert code(message) == "outside_root"
        assert "secret" not in str(message.content)
    assert (tmp_path / "outside").read_text() == "secret\n"
    assert all((root / name).is_symlink() for name in ("chain", "chain2", "absolute", "dangling", "loop", "out"))


@pytest.mark.parametrize("how", HOW)
def test_mt_02_hard_links_stay_together(desk: Callable[..., Desk], how: str) -> None:
    d = desk()
    path = d.put("h1", b"one\n")
    os.link(path, d.root / "h2")
    inode = path.stat().st_ino
    assert change(d, path, how).status == "success"
    assert (d.root / "h2").read_bytes() == b"two\n"
    assert path.stat().st_ino == (d.root / "h2").stat().st_ino == inode
    # To the other name the file has changed, whoever did it.
    assert code(d.write("h2", "x")) == "not_read"


def test_mt_02_hard_links_shrink_and_grow(desk: Callable[..., Desk]) -> None:
    d = desk()
    path = d.put("h1", b"x" * 10_000)
    os.link(path, d.root / "h2")
    d.read(path)
    for text in ("short\n", "long " * 5_000, "", "again\n"):
        assert d.write(path, text).status == "success"
        assert (d.root / "h2").read_bytes() == text.encode()


# ---- MT-04: shut files ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", HOW)
def test_mt_04_a_file_that_is_shut_is_refused(desk: Callable[..., Desk], how: str) -> None:
    d = desk()
    for mode in (0o444, 0o400, 0o555, 0o500, 0o404):
        path = d.put(f"f{mode:o}", b"one\n")
        path.chmod(mode)
        inode = path.stat().st_ino
        message = change(d, path, how)
        assert code(message) == "read_only"
        assert str(path) in str(message.content)
        assert f"mode {mode:04o}" in str(message.content)  # for root too
        found = path.stat()
        assert (found.st_ino, stat.S_IMODE(found.st_mode), path.read_bytes()) == (inode, mode, b"one\n")


def test_mt_04_one_that_was_shut_after_the_read(desk: Callable[..., Desk]) -> None:
    d = desk()
    path = d.put("f", b"one\n")
    d.read(path)
    path.chmod(0o444)
    assert code(d.edit(path, "one", "two")) == "read_only"
    path.chmod(0o644)
    assert d.edit(path, "one", "two").status == "success"


def test_mt_04_a_shut_notebook_too(desk: Callable[..., Desk]) -> None:
    d = desk()
    path = d.put(
        "n.ipynb",
        b'{"cells": [{"cell_type": "raw", "id": "a", "metadata": {}, "source": "x"}], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}',
    )
    d.read(path)
    path.chmod(0o444)
    assert code(d.cell(path, "a", "y")) == "read_only"


def test_mt_04_what_another_user_may_not(tmp_path: Path) -> None:
    """As a user without rights: a shut directory, a file that may not be read, one that may not be written."""
    if os.getuid() != 0:  # the rights of this user are tested as they are
        return
    root = tmp_path / "w"
    root.mkdir()
    for parent in (root, *root.parents):
        if parent.stat().st_mode & 0o005 != 0o005 and parent.is_relative_to(tempfile.gettempdir()):
            parent.chmod(parent.stat().st_mode | 0o055)
    (root / "unreadable").write_text("one\n")
    (root / "unreadable").chmod(0o600)
    (root / "of root").write_text("one\n")
    (root / "shut").mkdir()
    (root / "shut" / "f").write_text("one\n")
    (root / "shut" / "f").chmod(0o666)
    (root / "closed").mkdir(mode=0o700)
    (root / "closed" / "f").write_text("one\n")
    pid = os.fork()
    if pid == 0:  # pragma: no cover  another process
        status = 1
        try:
            os.setgid(65534)
            os.setuid(65534)
            d = Desk(root)
            got = [
                code(d.read("unreadable")), code(d.write("unreadable", "x")),
                code(d.read("of root")), code(d.edit("of root", "one", "two")),
                code(d.write("new", "x")), code(d.write("shut/new", "x")),
                code(d.read("closed/f")), code(d.write("closed/f", "x")),
                code(d.read("shut/f")), code(d.edit("shut/f", "one", "two")),
            ]  # fmt: skip
            want = [
                "io_error",
                "io_error",
                None,
                "read_only",
                "read_only",
                "read_only",
                "io_error",
                "io_error",
                None,
                None,
            ]
            (Path("/tmp") / f"got.{os.getppid()}").write_text(repr(got))
            status = 0 if got == want else 2
        finally:
            os._exit(status)
    _, status = os.waitpid(pid, 0)
    note = Path("/tmp") / f"got.{os.getpid()}"
    answers = note.read_text() if note.exists() else ""
    note.unlink(missing_ok=True)
    assert os.waitstatus_to_exitcode(status) == 0, answers
    assert (root / "shut" / "f").read_text() == "two\n"  # in place: the directory is shut, the file is not
    assert (root / "of root").read_text() == "one\n"
