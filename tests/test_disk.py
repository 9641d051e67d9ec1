"""Reading user files: snapshots, scans, the memo of digests, locks."""

from __future__ import annotations

import ctypes
import fcntl
import hashlib
import os
import re
import socket
import stat
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from langchain_filestate import _disk, _fd, _syscalls
from langchain_filestate._disk import Changed, Target
from tests.targets import refusal, target

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "file.txt"


# ---- snapshot


@pytest.mark.parametrize("data", [b"", b"a", b"\0\r\n\xff", bytes(range(256)) * 9000])
def test_a_snapshot_is_the_bytes_their_digest_mode_and_stamp(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    path.chmod(0o2751)
    with target(path) as t:
        taken = _disk.snapshot(t)
        assert taken is not None
        assert taken.data == data
        assert taken.digest == hashlib.sha256(data).hexdigest() == _disk.digest(data) == _disk.digest_of(t)
        assert taken.mode == 0o2751
        assert taken.stamp == _disk.stamp(t) == _fd.stamp_of(path.stat())
        assert _disk.size_of(t) == len(data)


def test_what_is_absent_is_none(path: Path) -> None:
    with target(path) as t:
        assert _disk.snapshot(t) is None
        assert _disk.digest_of(t) is None
        assert _disk.stamp(t) is None
        assert _disk.size_of(t) is None
        assert refusal(lambda: _disk.scan(t, lambda _: None).__enter__()).code == "not_found"


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        here = os.getcwd()
        os.chdir(path.parent)  # a socket's path is short
        try:
            made.bind(path.name)
        finally:
            os.chdir(here)


def _link_to_file(path: Path) -> None:
    path.with_name("other").write_bytes(b"x")
    path.symlink_to("other")


@pytest.mark.parametrize(
    ("make", "code", "word"),
    [
        (lambda p: p.mkdir(), "is_directory", "directory"),
        (_fifo, "not_a_file", "pipe"),
        (_socket, "not_a_file", "socket"),
        (_link_to_file, "symlink", "link"),
        (lambda p: p.symlink_to("nowhere"), "symlink", "link"),
        (lambda p: p.symlink_to(p.name), "symlink", "link"),
    ],
)
def test_only_regular_files_are_read_and_nothing_blocks(
    path: Path, make: Callable[[Path], None], code: str, word: str
) -> None:
    make(path)
    with target(path) as t:
        for call in (_disk.snapshot, _disk.digest_of, _disk.stamp):
            refused = refusal(lambda call=call: call(t))  # type: ignore[misc]
            assert (refused.code, word in refused.message, str(path) in refused.message) == (code, True, True)


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null"])
def test_devices_are_not_even_opened(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with target(Path(device)) as t:
        monkeypatch.setattr(os, "open", None)
        assert refusal(lambda: _disk.snapshot(t)).code == "not_a_file"


def test_a_block_device_and_others_are_named() -> None:
    status = os.stat_result((stat.S_IFBLK | 0o600, *range(9)))
    assert "block device" in refusal(lambda: _fd.check_regular(status, "x")).message
    status = os.stat_result((0o600, *range(9)))
    assert "special file" in refusal(lambda: _fd.check_regular(status, "x")).message


def test_a_file_swapped_after_the_look_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_bytes(b"x")
    real = os.open

    def swap(make: Callable[[], object]) -> None:
        def opening(name: str, *rest: int, dir_fd: int | None = None) -> int:
            monkeypatch.setattr(os, "open", real)
            path.unlink()
            make()
            return real(name, *rest, dir_fd=dir_fd)

        monkeypatch.setattr(os, "open", opening)

    with target(path) as t:
        swap(lambda: path.symlink_to("/etc/passwd"))
        assert refusal(lambda: _disk.snapshot(t)).code == "symlink"
        path.unlink()
        path.write_bytes(b"x")
        swap(lambda: os.mkfifo(path))
        assert refusal(lambda: _disk.snapshot(t)).code == "not_a_file"
        path.unlink()
        path.write_bytes(b"x")
        swap(lambda: None)
        assert _disk.snapshot(t) is None


def test_files_made_by_the_system_are_refused() -> None:
    with target(Path("/proc/self/status")) as t:
        refused = refusal(lambda: _disk.snapshot(t))
        assert refused.code == "not_a_file"
        assert "does not tell its size" in refused.message


def test_too_large_says_how_large(path: Path) -> None:
    path.write_bytes(b"x" * 2000)
    with target(path) as t:
        assert _disk.snapshot(t, max_bytes=2000) is not None
        refused = refusal(lambda: _disk.snapshot(t, max_bytes=1999))
    assert refused.code == "too_large"
    assert "2,000 bytes" in refused.message
    assert "1,999" in refused.message


def test_a_file_that_is_written_is_read_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_bytes(b"x")
    real, times = _fd.read_whole, 1

    def reading(fd: int, size: int) -> bytes:
        nonlocal times
        if times:
            times -= 1
            with path.open("ab") as f:
                f.write(b"y")
        return real(fd, size)

    monkeypatch.setattr(_disk, "read_whole", reading)
    with target(path) as t:
        taken = _disk.snapshot(t)
        assert taken is not None
        assert taken.data == b"xy"
        times = 10**9
        monkeypatch.setattr(_disk, "QUIET_WAIT", 0.01)
        refused = refusal(lambda: _disk.snapshot(t))
    assert refused.code == "busy"
    assert str(path) in refused.message


def test_a_read_that_fails_is_told(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_bytes(b"x")

    def fail(*_: object, **__: object) -> bytes:
        raise OSError(5, "Input/output error")

    with target(path) as t:
        for name in ("pread", "open", "stat"):
            with monkeypatch.context() as patched:
                patched.setattr(os, name, fail)
                calls = (_disk.snapshot, _disk.digest_of) if name != "stat" else (_disk.snapshot, _disk.stamp)
                for call in calls:
                    refused = refusal(lambda call=call: call(t))  # type: ignore[misc]
                    assert refused.code == "io_error"
                    assert refused.message.startswith(f"Could not read {path}: ")


def test_no_permission_to_read_is_told(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_bytes(b"x")

    def deny(*_: object, **__: object) -> int:
        raise PermissionError(13, "Permission denied")

    with target(path) as t:
        monkeypatch.setattr(os, "open", deny)
        refused = refusal(lambda: _disk.snapshot(t))
    assert refused.code == "io_error"
    assert "permission is denied" in refused.message


@pytest.mark.skipif(not _syscalls.LEASES, reason="leases are Linux's")
def test_a_file_under_a_lease_is_waited_for(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_bytes(b"x")
    fd = os.open(path, os.O_RDWR)
    assert _syscalls.take_lease(fd, "write") == "held"
    assert _syscalls.lease_whole(fd, "write")
    with target(path) as t:
        monkeypatch.setattr(_fd, "OPEN_WAIT", 0.01)
        assert refusal(lambda: _disk.snapshot(t)).code == "busy"
        assert not _syscalls.lease_whole(fd, "write")
        monkeypatch.setattr(_fd, "OPEN_WAIT", 30)
        letting_go = threading.Timer(0.01, _syscalls.drop_lease, (fd,))
        letting_go.start()
        assert _disk.snapshot(t) is not None
        letting_go.join()
    os.close(fd)


# ---- scan


def test_a_scan_gives_all_pieces_and_then_any_range(path: Path) -> None:
    data = os.urandom(2_500_000)
    path.write_bytes(data)
    pieces: list[bytes] = []
    with target(path) as t, _disk.scan(t, pieces.append) as (read, seen):
        assert b"".join(pieces) == data
        assert max(map(len, pieces)) == _fd.PIECE
        assert (read(0, 5), read(2_499_998, 100), read(9_999_999, 1)) == (data[:5], data[-2:], b"")
        assert seen == _disk.stamp(t)


def test_a_scan_of_a_file_that_changes_starts_again(path: Path) -> None:
    path.write_bytes(b"x" * (_fd.PIECE + 1))

    def grow(_: bytes) -> None:
        with path.open("ab") as f:
            f.write(b"more")

    def shrink(_: bytes) -> None:
        os.truncate(path, 3)

    def touch(_: bytes) -> None:
        with path.open("r+b") as f:
            f.write(b"z")

    with target(path) as t:
        for meddle in (grow, shrink, touch):
            with pytest.raises(Changed), _disk.scan(t, meddle):
                pytest.fail("not reached")
        body = []
        with pytest.raises(Changed), _disk.scan(t, lambda _: None) as (read, _):
            body.append(read(0, 1))
            grow(b"")
        assert body == [b"z"]


def test_a_scan_passes_on_what_the_block_raises(path: Path) -> None:
    path.write_bytes(b"x")
    with target(path) as t, pytest.raises(KeyError), _disk.scan(t, lambda _: None):
        raise KeyError


def test_a_digest_of_a_file_that_never_holds_still(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_bytes(b"x")
    real, times = os.pread, 1

    def reading(fd: int, size: int, offset: int) -> bytes:
        nonlocal times
        if times:
            times -= 1
            with path.open("ab") as f:
                f.write(b"y")
        return real(fd, size, offset)

    monkeypatch.setattr(os, "pread", reading)
    with target(path) as t:
        assert _disk.digest_of(t) == _disk.digest(b"xy")
        monkeypatch.setattr(_disk, "QUIET_WAIT", 0.01)
        times = 10**9
        assert refusal(lambda: _disk.digest_of(t)).code == "busy"


# ---- the memo


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if all files had been written long ago."""
    monkeypatch.setattr(_disk, "SETTLED_NS", -(10**12))


def test_a_fresh_file_is_not_remembered(path: Path) -> None:
    path.write_bytes(b"x")
    with target(path) as t:
        assert _disk.snapshot(t) is not None
        assert _disk.known_digest(str(path)) is None


@pytest.mark.usefixtures("settled")
@pytest.mark.parametrize("call", [_disk.snapshot, _disk.digest_of])
def test_a_settled_file_is_known_without_reading(
    path: Path, call: Callable[[Target], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    path.write_bytes(b"x")
    assert _disk.known_digest(str(path)) is None
    with target(path) as t:
        call(t)
        with monkeypatch.context() as patched:
            patched.setattr(os, "open", None)
            assert _disk.known_digest(str(path)) == _disk.digest(b"x")
        os.utime(path, ns=(1, 1))  # the same bytes, but who knows
        assert _disk.known_digest(str(path)) is None
        call(t)
        assert _disk.known_digest(str(path)) == _disk.digest(b"x")
    path.unlink()
    assert _disk.known_digest(str(path)) == ""
    assert _disk.known_digest(str(path / "below")) == ""
    assert _disk.known_digest(str(path.with_name("n" * 300))) is None


@pytest.mark.usefixtures("settled")
def test_same_size_and_time_are_still_told_apart(path: Path) -> None:
    path.write_bytes(b"one")
    before = path.stat()
    with target(path) as t:
        _disk.snapshot(t)
    time.sleep(0.02)  # a clock tick of the file system
    path.write_bytes(b"two")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert _disk.known_digest(str(path)) is None


@pytest.mark.usefixtures("settled")
def test_the_memo_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_disk, "MAX_MEMO", 3)
    monkeypatch.setattr(_disk, "_memo", _disk._Memo())
    paths = [tmp_path / str(i) for i in range(5)]
    for each in paths:
        each.write_bytes(b"x")
        with target(each) as t:
            _disk.snapshot(t)
    assert [_disk.known_digest(str(each)) is None for each in paths] == [True, True, False, False, False]


@pytest.mark.usefixtures("settled")
def test_a_sweep_costs_one_stat_per_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [tmp_path / str(i) for i in range(512)]
    for each in paths:
        each.write_bytes(b"x")
        with target(each) as t:
            _disk.digest_of(t)
    stats: list[str] = []
    real = os.lstat

    def counting(at: str) -> os.stat_result:
        stats.append(at)
        return real(at)

    monkeypatch.setattr(os, "lstat", counting)
    monkeypatch.setattr(os, "open", None)
    assert {_disk.known_digest(str(each)) for each in paths} == {_disk.digest(b"x")}
    assert len(stats) == 512


# ---- locks


def test_a_lock_is_per_path_and_may_be_taken_again() -> None:
    order: list[str] = []
    inside, go = threading.Event(), threading.Event()

    def other() -> None:
        with _disk.lock("/a"):
            order.append("other")

    def elsewhere() -> None:
        with _disk.lock("/b"):
            inside.set()
            go.wait(10)

    far = threading.Thread(target=elsewhere)
    far.start()
    assert inside.wait(10)
    with _disk.lock("/a"), _disk.lock("/a"):
        waiting = threading.Thread(target=other)
        waiting.start()
        time.sleep(0.02)
        order.append("first")
        assert set(_disk._locks) == {"/a", "/b"}
    waiting.join()
    go.set()
    far.join()
    assert order == ["first", "other"]
    assert not _disk._locks


def test_a_child_does_not_inherit_held_locks() -> None:
    held, go = threading.Event(), threading.Event()

    def hold() -> None:
        with _disk.lock("/a"):
            held.set()
            go.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    assert held.wait(10)
    _disk._after_fork()  # what a child runs first
    with _disk.lock("/a"):
        pass
    go.set()
    thread.join()


def test_leases_fall_back_where_there_are_none(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_bytes(b"x")
    with path.open("r+b") as f:
        assert _syscalls.take_lease(f.fileno(), "read") in {"in_use", "none"}
        _syscalls.drop_lease(f.fileno())  # none is held: no error

        def refuse(*_: object) -> int:
            raise OSError(22, "Invalid argument")

        with monkeypatch.context() as patched:
            patched.setattr(fcntl, "fcntl", refuse)
            assert _syscalls.take_lease(f.fileno(), "read") == "none"
        monkeypatch.setattr(_syscalls, "LEASES", False)
        assert _syscalls.take_lease(f.fileno(), "read") == "none"
        assert _syscalls._libc("renameat2", int) is None
        monkeypatch.setattr(_syscalls, "_sync_file_range", None)
        _syscalls.push_data(f.fileno())
        monkeypatch.setattr(_syscalls, "_renameat2", None)
        assert not _syscalls.exchange(f.fileno(), "a", "b")


@pytest.mark.parametrize(("number", "raises"), [(22, False), (38, False), (95, False), (5, True), (16, True)])
def test_an_exchange_that_the_file_system_does_not_know_is_no_error(
    number: int, raises: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        ctypes.set_errno(number)
        return -1

    monkeypatch.setattr(_syscalls, "_renameat2", refuse)
    for call in (_syscalls.exchange, _syscalls.rename_new):
        if raises:
            with pytest.raises(OSError, match=re.escape(os.strerror(number))):
                call(0, "a", "b")
        else:
            assert not call(0, "a", "b")
