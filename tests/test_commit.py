"""Bytes to a name, only over the expected bytes: every way of saving, every way of being disturbed."""

from __future__ import annotations

import collections
import errno
import fcntl
import multiprocessing
import os
import random
import resource
import signal
import stat
import struct
import subprocess
import tempfile
import threading
import time
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from langchain_filestate import _commit, _fd, _inplace, _syscalls, _temp
from langchain_filestate._disk import Changed, Snapshot, Target, commit, digest, lock, remove, snapshot
from langchain_filestate._lately import Lately
from langchain_filestate._temp import Temp, temp_names
from langchain_filestate.errors import Refused
from tests.slow_opens import opens_can_be_held, other_opens_held
from tests.targets import NOBODY, as_nobody, as_root, in_child, refusal, target

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

OLD, NEW, THEIRS = b"old\n" * 50, b"new\r\n\0\xff" * 40, b"theirs\n" * 30
SHM = Path("/dev/shm")
leases = pytest.mark.skipif(not _syscalls.LEASES, reason="leases are Linux's")


@pytest.fixture(params=["disk", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A directory on a disk's file system, and one in memory."""
    if request.param == "disk" or not SHM.is_dir():
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=SHM) as made:
        yield Path(made)


@pytest.fixture
def path(place: Path) -> Path:
    made = place / "file.txt"
    made.write_bytes(OLD)
    return made


@pytest.fixture
def aim(path: Path) -> Iterator[Target]:
    with target(path) as t:
        yield t


def entries(path: Path) -> set[str]:
    return set(os.listdir(path.parent))


def alone(path: Path) -> bool:
    return entries(path) == {path.name}


# ---- the ways of saving


def _no_leases(m: pytest.MonkeyPatch) -> None:
    m.setattr(_syscalls, "take_lease", lambda *_: "none")


def _no_exchange(m: pytest.MonkeyPatch) -> None:
    m.setattr(_syscalls, "_renameat2", None)


def _portable(m: pytest.MonkeyPatch) -> None:
    _no_leases(m)
    _no_exchange(m)


def _in_place(m: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> bool:
        raise OSError(errno.EBUSY, "Device or resource busy")

    m.setattr(Temp, "exchange", refuse)


def _contended(m: pytest.MonkeyPatch) -> None:
    m.setattr(_commit._contended, "at", lambda _: True)


def _contended_without_exchange(m: pytest.MonkeyPatch) -> None:
    _contended(m)
    _no_exchange(m)


WAYS = [
    (lambda _: None, "exchange with leases"),
    (_no_leases, "exchange"),
    (_no_exchange, "replace with leases"),
    (_portable, "replace"),
    (_in_place, "in place, because it cannot be replaced"),
    (_contended, "exchange with leases"),
    (_contended_without_exchange, "replace with leases"),
]


@pytest.fixture(params=WAYS, ids=[way[0].__name__ + "-" + way[1][:8] for way in WAYS])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    change, name = request.param
    change(monkeypatch)
    return str(name)


@leases
def test_each_way_puts_the_bytes_and_is_told(
    path: Path, aim: Target, way: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("DEBUG", "langchain_filestate.commit"):
        stamp = commit(aim, NEW, digest(OLD))
    assert path.read_bytes() == NEW
    assert stamp == _fd.stamp_of(path.stat())
    assert alone(path)
    assert f"{path}: {way}" in caplog.text


@pytest.mark.usefixtures("way")
def test_each_way_leaves_other_bytes_alone(path: Path, aim: Target) -> None:
    before = path.stat()
    for expected, known in ((digest(NEW), None), (digest(NEW), NEW), (digest(OLD[:-1]), OLD[:-1] + b"x")):
        with pytest.raises(Changed):
            commit(aim, NEW, expected, known=known)
    assert path.read_bytes() == OLD
    assert path.stat().st_ino == before.st_ino
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    assert alone(path)
    path.unlink()
    with pytest.raises(Changed):
        commit(aim, NEW, digest(OLD))
    assert not entries(path)


@pytest.mark.usefixtures("way")
@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(contents=st.lists(st.binary(max_size=300), min_size=1, max_size=4), known=st.booleans())
def test_any_bytes_over_any_bytes(path: Path, aim: Target, contents: list[bytes], known: bool) -> None:
    now = path.read_bytes()
    for data in contents:
        commit(aim, data, digest(now), known=now if known else None)
        assert path.read_bytes() == data
        now = data
    assert alone(path)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("sizes", [(2_200_000, 1_500_001), (10, 1_100_000), (1_100_000, 10), (5000, 5001)])
def test_large_files_and_long_prefixes(path: Path, aim: Target, sizes: tuple[int, int]) -> None:
    data = random.Random(1).randbytes(max(sizes))
    old, new = data[: sizes[0]], data[: sizes[1] - 5] + b"-end-"
    path.write_bytes(old)
    for known in (None, old):
        commit(aim, new, digest(old), known=known)
        assert path.read_bytes() == new
        commit(aim, old, digest(new))
        assert path.read_bytes() == old
    with pytest.raises(Changed):
        commit(aim, new, digest(old), known=old[:-1] + b"?")
    assert path.read_bytes() == old


def test_a_file_with_the_longest_name(place: Path) -> None:
    path = place / ("é" * 127 + "x")
    with target(path) as t:
        commit(t, OLD, None)
        commit(t, NEW, digest(OLD))
        assert path.read_bytes() == NEW
        remove(t, digest(NEW))
    assert not entries(path)


# ---- new files


@pytest.mark.parametrize("linked", [False, True])
@pytest.mark.parametrize(("umask", "mode", "want"), [(0o022, None, 0o644), (0o027, None, 0o640), (0o077, 0o755, 0o755)])
def test_new_files_get_the_mode_of_the_umask(
    place: Path, umask: int, mode: int | None, want: int, linked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if linked:
        _no_exchange(monkeypatch)
    path = place / "new"
    old = os.umask(umask)
    try:
        with target(path) as t:
            assert commit(t, NEW, None, mode=mode) == _fd.stamp_of(path.stat())
    finally:
        os.umask(old)
    assert path.read_bytes() == NEW
    assert stat.S_IMODE(path.stat().st_mode) == want
    assert path.stat().st_nlink == 1
    assert alone(path)


@pytest.mark.parametrize("linked", [False, True])
@pytest.mark.parametrize("when", ["before", "between"])
@pytest.mark.parametrize("what", ["file", "link", "directory"])
def test_creation_replaces_nothing(
    place: Path, what: str, when: str, linked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if linked:
        _no_exchange(monkeypatch)
    path = place / "new"

    def appear() -> None:
        if what == "file":
            path.write_bytes(THEIRS)
        elif what == "link":
            path.symlink_to("nowhere")
        else:
            path.mkdir()

    real = Temp.put_new

    def late(temp: Temp) -> None:
        appear()
        real(temp)

    if when == "before":
        appear()
    else:
        monkeypatch.setattr(Temp, "put_new", late)
    with target(path) as t, pytest.raises(Changed):
        commit(t, NEW, None)
    assert entries(path) == {"new"}
    assert what != "file" or path.read_bytes() == THEIRS


def test_directories_that_cannot_be_opened_at_all(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with target(place / "new") as t:
        real = os.open

        def fail(name: str, *rest: int, dir_fd: int | None = None) -> int:
            if name == ".":
                raise OSError(errno.EMFILE, "Too many open files")
            return real(name, *rest, dir_fd=dir_fd)

        monkeypatch.setattr(os, "open", fail)
        assert "too many open files" in refusal(lambda: commit(t, NEW, None)).message
    assert not entries(place / "new")


def test_creation_in_a_directory_that_is_gone(place: Path) -> None:
    (place / "d").mkdir()
    with target(place / "d" / "f") as t:
        (place / "d").rmdir()
        assert refusal(lambda: commit(t, NEW, None)).code == "io_error"
        with pytest.raises(Changed):
            remove(t, digest(OLD))


@as_root
def test_creation_without_permission() -> None:
    with tempfile.TemporaryDirectory() as made:
        os.chmod(made, 0o755)
        with target(Path(made) / "f") as t:
            code, text = as_nobody(lambda: commit(t, NEW, None))
            assert (code, text.startswith(f"Could not create {made}/f: ")) == ("read_only", True)
            assert not os.listdir(made)


# ---- what is kept


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("mode", [0o600, 0o2644, 0o6755])
def test_the_mode_is_kept(path: Path, aim: Target, mode: int) -> None:
    path.chmod(mode)
    commit(aim, NEW, digest(OLD))
    assert stat.S_IMODE(path.stat().st_mode) == mode
    commit(aim, OLD, digest(NEW), mode=0o640)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.usefixtures("way")
def test_extended_attributes_are_kept(path: Path, aim: Target) -> None:
    os.setxattr(path, "user.note", b"keep\0me")
    os.setxattr(path, "user.empty", b"")
    commit(aim, NEW, digest(OLD))
    assert path.read_bytes() == NEW
    assert {n: os.getxattr(path, n) for n in os.listxattr(path)} == {"user.note": b"keep\0me", "user.empty": b""}


def acl(*entries: tuple[int, int, int]) -> bytes:
    """A POSIX access list as the kernel has it (acl(5), linux/posix_acl_xattr.h): tag, permissions, id."""
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


NONE = 0xFFFFFFFF
SHARED = acl((1, 6, NONE), (2, 6, NOBODY), (4, 4, NONE), (16, 6, NONE), (32, 0, NONE))


@pytest.mark.usefixtures("way")
def test_access_lists_are_kept(path: Path, aim: Target) -> None:
    os.setxattr(path, _temp.ACL, SHARED)
    mode = path.stat().st_mode
    commit(aim, NEW, digest(OLD))
    assert os.getxattr(path, _temp.ACL) == SHARED
    assert path.stat().st_mode == mode


@pytest.mark.usefixtures("way")
def test_a_default_access_list_of_the_directory_is_not_put_on(path: Path, aim: Target) -> None:
    path.chmod(0o640)
    os.setxattr(path.parent, "system.posix_acl_default", SHARED)
    commit(aim, NEW, digest(OLD))
    assert os.listxattr(path) == []
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@as_root
@pytest.mark.usefixtures("way")
def test_the_owner_is_kept(path: Path, aim: Target) -> None:
    os.chown(path, 1234, 4321)
    path.chmod(0o6755)
    commit(aim, NEW, digest(OLD))
    now = path.stat()
    assert (now.st_uid, now.st_gid, stat.S_IMODE(now.st_mode)) == (1234, 4321, 0o6755)


@pytest.mark.usefixtures("way")
def test_hard_links_stay_one_file(path: Path, aim: Target, caplog: pytest.LogCaptureFixture) -> None:
    twin = path.with_name("twin")
    os.link(path, twin)
    with caplog.at_level("DEBUG", "langchain_filestate.commit"):
        commit(aim, NEW, digest(OLD))
    assert path.read_bytes() == twin.read_bytes() == NEW
    assert path.stat().st_ino == twin.stat().st_ino
    assert entries(path) == {"file.txt", "twin"}
    assert "in place" in caplog.text


@pytest.mark.parametrize("name", ["user.note", "security.selinux", _temp.ACL])
def test_what_cannot_be_given_to_another_file_is_written_in_place(
    path: Path, aim: Target, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    inode = path.stat().st_ino

    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(_temp, "_attributes", lambda _: [name])
    monkeypatch.setattr(os, "getxattr", lambda *_: b"")
    monkeypatch.setattr(os, "setxattr", refuse)
    commit(aim, NEW, digest(OLD))
    assert path.read_bytes() == NEW
    assert path.stat().st_ino == inode
    assert alone(path)


def test_what_a_write_drops_anyway_does_not_matter(path: Path, aim: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    inode = path.stat().st_ino

    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(_temp, "_attributes", lambda _: ["security.capability"])
    monkeypatch.setattr(os, "getxattr", lambda *_: b"")
    monkeypatch.setattr(os, "setxattr", refuse)
    commit(aim, NEW, digest(OLD))
    assert path.read_bytes() == NEW
    assert path.stat().st_ino != inode


def test_file_systems_without_attributes(path: Path, aim: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "listxattr")
    commit(aim, NEW, digest(OLD))
    assert path.read_bytes() == NEW


@as_root
def test_a_file_of_another_group_is_written_in_place(path: Path) -> None:
    os.chmod(path.parent, 0o777)
    os.chown(path, NOBODY, 4321)
    inode = path.stat().st_ino
    with target(path) as t:
        as_nobody(lambda: commit(t, NEW, digest(OLD)))
    now = path.stat()
    assert path.read_bytes() == NEW
    assert (now.st_ino, now.st_uid, now.st_gid) == (inode, NOBODY, 4321)
    assert alone(path)


@as_root
def test_a_file_of_another_owner_is_written_in_place(path: Path) -> None:
    path.chmod(0o666)
    inode = path.stat().st_ino
    for mode in (0o777, 0o1777, 0o755):
        os.chmod(path.parent, mode)
        with target(path) as t:
            as_nobody(lambda t=t: commit(t, NEW, digest(OLD)))  # type: ignore[misc]
            assert path.read_bytes() == NEW
            commit(t, OLD, digest(NEW))
        assert path.stat().st_uid == 0
    assert path.stat().st_ino != inode  # root's own commits replaced it
    assert alone(path)


@as_root
def test_a_directory_that_can_only_be_passed(path: Path) -> None:
    """Its names cannot be locked or made durable; a file in it can still be replaced."""
    os.chmod(path.parent, 0o333)
    os.chown(path, NOBODY, NOBODY)
    fd = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        t = Target(fd, path.name, str(path), ())
        assert isinstance(as_nobody(lambda: commit(t, NEW, digest(OLD))), _fd.Stamp)
        assert path.read_bytes() == NEW
        as_nobody(lambda: remove(t, digest(NEW)))
    finally:
        os.close(fd)
    assert not entries(path)


@contextmanager
def mounted(*arguments: str) -> Iterator[None]:
    done = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"mounting is not permitted here: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", arguments[-1]], check=True)


@as_root
def test_a_bind_mount_is_written_in_place(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    over = path.with_name("over")
    over.touch()
    with mounted("--bind", str(path), str(over)), target(over) as t:
        with caplog.at_level("DEBUG", "langchain_filestate.commit"):
            commit(t, NEW, digest(OLD))
        assert path.read_bytes() == over.read_bytes() == NEW
        assert entries(path) == {"file.txt", "over"}
        assert "in place" in caplog.text
        assert refusal(lambda: remove(t, digest(NEW))).code == "io_error"
        assert over.read_bytes() == NEW
        assert entries(path) == {"file.txt", "over"}


# ---- what may not be written


@pytest.mark.parametrize("mode", [0o444, 0o2555, 0o000])
def test_a_read_only_file_is_refused_for_root_too(path: Path, aim: Target, mode: int) -> None:
    path.chmod(mode)
    for call in (lambda: commit(aim, NEW, digest(OLD)), lambda: remove(aim, digest(OLD))):
        refused = refusal(call)
        if mode or os.geteuid() == 0:
            assert refused.code == "read_only"
            assert f"{path}: it is read-only (mode {mode:04o})" in refused.message
    path.chmod(0o600)
    assert path.read_bytes() == OLD
    assert alone(path)


@as_root
@pytest.mark.parametrize("links", [1, 2])
def test_a_file_of_somebody_else_is_refused(path: Path, links: int) -> None:
    os.chmod(path.parent, 0o777)
    path.chmod(0o644)
    if links == 2:
        os.link(path, path.with_name("twin"))
    with target(path) as t:
        for call in (lambda: commit(t, NEW, digest(OLD)), lambda: remove(t, digest(OLD))):
            code, text = as_nobody(call)
            assert code == "read_only"
            assert f"{path}: this user may not write it (mode 0644)" in text
    assert path.read_bytes() == OLD


@as_root
@pytest.mark.parametrize("flag", ["i", "a"])
def test_a_file_marked_immutable_or_append_only_is_refused(tmp_path: Path, flag: str) -> None:
    path = tmp_path / "f"
    path.write_bytes(OLD)
    if subprocess.run(["chattr", f"+{flag}", path], capture_output=True, check=False).returncode:
        pytest.skip("this file system has no such marks")
    try:
        with target(path) as t:
            refused = refusal(lambda: commit(t, NEW, digest(OLD)))
            assert refused.code == "read_only"
            assert "immutable or append-only" in refused.message
            assert refusal(lambda: remove(t, digest(OLD))).code == "read_only"
        assert path.read_bytes() == OLD
        assert alone(path)
    finally:
        subprocess.run(["chattr", f"-{flag}", path], check=True)


@as_root
def test_a_file_system_mounted_read_only(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    path = disk / "f"
    with mounted("-t", "tmpfs", "none", str(disk)):
        path.write_bytes(OLD)
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        with target(path) as t, target(disk / "new") as absent:
            for call in (lambda: commit(t, NEW, digest(OLD)), lambda: commit(absent, NEW, None)):
                refused = refusal(call)
                assert refused.code == "io_error"
                assert "read-only" in refused.message
        assert path.read_bytes() == OLD


def test_reasons_of_the_kernel_when_access_is_denied(path: Path, aim: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    """What `access` denies is tried, for its reason; what the trial does not deny goes on."""
    monkeypatch.setattr(os, "access", lambda name, *_, **__: name != path.name)
    real = os.open

    def fail(number: int, name: str, flags: int, *rest: int, dir_fd: int | None = None) -> int:
        if number and flags & os.O_ACCMODE == os.O_WRONLY:
            raise OSError(number, os.strerror(number))
        return real(name, flags, *rest, dir_fd=dir_fd)

    for number, code in ((errno.EACCES, "read_only"), (errno.EPERM, "read_only"), (errno.EROFS, "io_error")):
        monkeypatch.setattr(os, "open", partial(fail, number))
        assert refusal(lambda: commit(aim, NEW, digest(OLD))).code == code
    monkeypatch.setattr(os, "open", partial(fail, errno.ENOENT))
    with pytest.raises(Changed):
        commit(aim, NEW, digest(OLD))
    assert path.read_bytes() == OLD
    now = OLD
    for number in (0, errno.ETXTBSY):
        monkeypatch.setattr(os, "open", partial(fail, number))
        commit(aim, now + b"+", digest(now))
        now += b"+"
        assert path.read_bytes() == now


def test_links_and_others_are_refused(place: Path) -> None:
    path = place / "link"
    path.symlink_to("/etc/passwd")
    with target(path) as t:
        assert refusal(lambda: commit(t, NEW, digest(OLD))).code == "symlink"
        with pytest.raises(Changed):
            commit(t, NEW, None)
        path.unlink()
        os.mkfifo(path)
        assert refusal(lambda: commit(t, NEW, digest(OLD))).code == "not_a_file"
        assert refusal(lambda: remove(t, digest(OLD))).code == "not_a_file"


# ---- the disk fails


FAILURES = [errno.EIO, errno.ENOSPC]


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("number", FAILURES)
@pytest.mark.parametrize("name", ["pwrite", "fsync"])
def test_a_failing_disk_leaves_the_old_bytes(
    path: Path, aim: Target, name: str, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.setxattr(path, "user.note", b"keep")
    real, wrong = getattr(os, name), 1

    def fail(fd: int, *rest: Any) -> Any:
        nonlocal wrong
        if wrong and stat.S_ISREG(os.fstat(fd).st_mode):
            wrong -= 1
            if name == "pwrite":
                real(fd, rest[0][:5], rest[1])
            raise OSError(number, os.strerror(number))
        return real(fd, *rest)

    with monkeypatch.context() as patched:
        patched.setattr(os, name, fail)
        refused = refusal(lambda: commit(aim, NEW, digest(OLD)))
    assert refused.code == "io_error"
    assert str(path) in refused.message
    assert "[Errno" not in refused.message
    assert path.read_bytes() == OLD
    assert alone(path)
    commit(aim, NEW, digest(OLD))
    assert path.read_bytes() == NEW


@pytest.mark.parametrize("exchanged", [True, False])
def test_a_directory_that_cannot_be_made_durable(
    path: Path, aim: Target, exchanged: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.fsync
    number = errno.EIO

    def fail(fd: int) -> None:
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            raise OSError(number, os.strerror(number))
        real(fd)

    monkeypatch.setattr(os, "fsync", fail)
    if exchanged:
        assert refusal(lambda: commit(aim, NEW, digest(OLD))).code == "io_error"
        assert path.read_bytes() == OLD
    number = errno.EINVAL
    if not exchanged:
        _no_exchange(monkeypatch)
        number = errno.EIO
    commit(aim, NEW, digest(OLD))
    assert path.read_bytes() == NEW
    assert alone(path)


@pytest.mark.usefixtures("way")
def test_a_limit_on_the_size_of_files(path: Path, aim: Target) -> None:
    def limited() -> object:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        return commit(aim, b"x" * 5000, digest(OLD))

    code, text = in_child(limited)
    assert code == "io_error"
    assert "limit" in text
    assert path.read_bytes() == OLD
    assert alone(path)


@as_root
@pytest.mark.parametrize("links", [1, 2])
@pytest.mark.parametrize("sparse", [False, True])
def test_a_full_disk(tmp_path: Path, links: int, sparse: bool) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    path, twin = disk / "f", disk / "twin"
    with mounted("-t", "tmpfs", "-o", "size=1m", "none", str(disk)):
        path.write_bytes(OLD)
        if sparse:
            os.truncate(path, 3 << 20)
        if links == 2:
            os.link(path, twin)
        old = path.read_bytes()
        with target(path) as t, target(disk / "new") as absent:
            refused = refusal(lambda: commit(t, b"x" * (2 << 20), digest(old)))
            assert refused.code == "io_error"
            assert "no space left" in refused.message
            assert refusal(lambda: commit(absent, b"x" * (2 << 20), None)).code == "io_error"
        assert path.read_bytes() == old
        assert set(os.listdir(disk)) == {"f", "twin"} if links == 2 else {"f"}


@pytest.mark.parametrize(
    ("number", "code", "words"),
    [
        (errno.ENOSPC, "io_error", "no space left"),
        (errno.EDQUOT, "io_error", "quota"),
        (errno.EFBIG, "io_error", "limit"),
        (errno.EROFS, "io_error", "mounted read-only"),
        (errno.EIO, "io_error", "input/output error"),
        (errno.EACCES, "read_only", "permission is denied"),
        (errno.EPERM, "read_only", "immutable"),
        (errno.ETXTBSY, "busy", "running"),
        (errno.ENAMETOOLONG, "io_error", "file name too long"),
    ],
)
def test_each_failure_is_a_plain_sentence(number: int, code: str, words: str) -> None:
    error = OSError(number, os.strerror(number))
    refused = _fd.failure(error, "/p", "write")
    assert refused.code == code
    assert refused.message.startswith("Could not write /p: ")
    assert refused.message.endswith(". Nothing was changed.")
    assert words in refused.message
    assert _fd.failure(error, "/p", "read").code == ("io_error" if code == "read_only" else code)


def test_reserving_is_left_out_where_it_is_not_known(path: Path, aim: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    os.link(path, path.with_name("twin"))

    def refuse(*_: object) -> None:
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    commit(aim, NEW, digest(OLD))
    monkeypatch.delattr(os, "posix_fallocate")
    commit(aim, OLD, digest(NEW))
    assert path.read_bytes() == OLD


# ---- somebody else writes at the worst moment


@contextmanager
def around_exchange(
    monkeypatch: pytest.MonkeyPatch,
    before: Callable[[], object] | None = None,
    after: Callable[[], object] | None = None,
) -> Iterator[None]:
    """Do something in the moment between comparing and exchanging, or right after it."""
    real = Temp.exchange

    def exchanging(temp: Temp) -> bool:
        if before:
            before()
        done = real(temp)
        if after:
            after()
        return done

    with monkeypatch.context() as patched:
        patched.setattr(Temp, "exchange", exchanging)
        yield


class Opener:
    """Another process that opens a file, does something with it, and closes it. It may have to wait to open it."""

    def __init__(self, path: Path, mode: str, *, write: bytes = b"", hold: float = 0.0) -> None:
        self.path, self.mode, self.write, self.hold = path, mode, write, hold
        self.pid = 0

    def start(self) -> None:
        """Return when it waits inside its call to open (or has been let through)."""
        self.pid = os.fork()
        if self.pid == 0:
            with suppress(BaseException), self.path.open(self.mode, buffering=0) as f:
                time.sleep(self.hold)
                f.write(self.write)
            os._exit(0)
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            where = Path(f"/proc/{self.pid}/wchan").read_text()
            state = Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
            if "break_lease" in where or "fanotify" in where or state == "Z" or "nanosleep" in where:
                return
            time.sleep(0.001)

    def join(self) -> None:
        os.waitpid(self.pid, 0)


@leases
@pytest.mark.parametrize("contended", [False, True])
def test_a_save_by_renaming_in_between_wins(
    path: Path, aim: Target, contended: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if contended:
        _contended(monkeypatch)
    other = path.with_name("other")
    other.write_bytes(THEIRS)
    other.chmod(0o751)
    os.setxattr(other, "user.theirs", b"1")
    with around_exchange(monkeypatch, before=lambda: other.rename(path)), pytest.raises(Changed):
        commit(aim, NEW, digest(OLD))
    assert path.read_bytes() == THEIRS
    assert stat.S_IMODE(path.stat().st_mode) == 0o751
    assert os.listxattr(path) == ["user.theirs"]
    assert alone(path)


@leases
def test_who_comes_late_to_a_file_that_others_keep_saving_is_waited_for(
    path: Path, aim: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped between finding the old file and opening it: as if it were opened where it stands now."""
    _contended(monkeypatch)
    monkeypatch.setattr(_commit, "LOOK_AFTER", 0.5)
    late = Opener(path.with_name(temp_names(path.name)[0]), "ab", write=THEIRS)
    coming = threading.Timer(0.05, late.start)
    with around_exchange(monkeypatch, after=coming.start), pytest.raises(Changed):
        commit(aim, NEW, digest(OLD))
    coming.join()
    late.join()
    assert path.read_bytes() == OLD + THEIRS
    assert alone(path)


@leases
@opens_can_be_held
@pytest.mark.parametrize("close_wait", [5.0, 0.02])
def test_who_is_still_being_looked_at_by_a_virus_scanner_counts_as_a_writer(
    path: Path, aim: Target, close_wait: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel looks for leases only after the scanner has answered."""
    monkeypatch.setattr(_commit, "CLOSE_WAIT", close_wait)
    other = Opener(path, "wb", write=THEIRS)
    with other_opens_held(path) as go:
        letting_go = threading.Timer(0.1, go.set)
        letting_go.start()
        with around_exchange(monkeypatch, before=other.start), pytest.raises(Changed):
            commit(aim, NEW, digest(OLD))
        letting_go.join()
        other.join()
    assert path.read_bytes() == THEIRS
    assert alone(path)


@leases
@pytest.mark.parametrize("reason", ["space", "owner", "held"])
def test_a_save_by_renaming_that_cannot_be_copied_gets_its_name_back(
    path: Path, aim: Target, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = path.with_name("other")
    other.write_bytes(THEIRS)
    inode = other.stat().st_ino

    def fail(*_: object) -> None:
        if reason == "space":
            raise OSError(errno.ENOSPC, "No space left on device")
        raise _temp.NotBeside

    with around_exchange(monkeypatch, before=lambda: other.rename(path)), monkeypatch.context() as patched:
        held = other.open("ab") if reason == "held" else None
        if reason == "space":
            patched.setattr(_commit, "copy_bytes", fail)
        elif reason == "owner":
            real, calls = Temp.own, iter((True, False))
            patched.setattr(Temp, "own", lambda temp, status: real(temp, status) if next(calls) else fail())
        else:
            patched.setattr(_commit, "CLOSE_WAIT", 0.02)
        with pytest.raises(Changed):
            commit(aim, NEW, digest(OLD))
        if held is not None:
            held.write(b"more")
            held.close()
    assert path.read_bytes() == THEIRS + b"more" * (reason == "held")
    assert path.stat().st_ino == inode
    assert alone(path)


@leases
@pytest.mark.parametrize("what", ["link", "directory", "pipe"])
def test_what_is_no_file_gets_its_name_back(
    path: Path, aim: Target, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def swap() -> None:
        path.unlink()
        if what == "link":
            path.symlink_to("/etc/passwd")
        elif what == "directory":
            path.mkdir()
        else:
            os.mkfifo(path)

    with around_exchange(monkeypatch, before=swap), pytest.raises(Changed):
        commit(aim, NEW, digest(OLD))
    assert {"link": path.is_symlink, "directory": path.is_dir, "pipe": path.is_fifo}[what]()
    assert alone(path)


@leases
def test_two_saves_by_renaming_the_later_stays(path: Path, aim: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    """Theirs came out, cannot be copied, and yet another came meanwhile: giving back does not undo that one."""
    first, second = path.with_name("first"), path.with_name("second")
    first.write_bytes(b"first")
    second.write_bytes(b"second")

    def fail(*_: object) -> None:
        second.rename(path)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(_commit, "copy_bytes", fail)
    with around_exchange(monkeypatch, before=lambda: first.rename(path)), pytest.raises(Changed):
        commit(aim, NEW, digest(OLD))
    assert path.read_bytes() == b"second"
    assert alone(path)


@leases
def test_what_came_out_is_gone_before_it_can_be_looked_at(
    path: Path, aim: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = path.with_name("other")
    other.write_bytes(THEIRS)
    real = _fd.open_regular

    def late(at: Target, flags: int, name: str | None = None) -> tuple[int, os.stat_result] | None:
        if name is not None:
            path.with_name(name).unlink()
        return real(at, flags, name)

    monkeypatch.setattr(_commit, "open_regular", late)
    with around_exchange(monkeypatch, before=lambda: other.rename(path)), pytest.raises(Changed):
        commit(aim, NEW, digest(OLD))
    assert alone(path)


@leases
def test_a_deletion_before_the_last_comparison(path: Path, aim: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Temp.dress

    def late(temp: Temp, *rest: Any) -> None:
        real(temp, *rest)
        path.unlink()

    monkeypatch.setattr(Temp, "dress", late)
    with pytest.raises(Changed):
        commit(aim, NEW, digest(OLD))
    assert not entries(path)


@leases
def test_a_deletion_in_between_stands(path: Path, aim: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    with around_exchange(monkeypatch, before=path.unlink), pytest.raises(Changed):
        commit(aim, NEW, digest(OLD))
    assert not entries(path)
    path.write_bytes(OLD)

    def fail(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(Temp, "sync_directory", fail)
    with around_exchange(monkeypatch, after=path.unlink):
        assert refusal(lambda: commit(aim, NEW, digest(OLD))).code == "io_error"
    assert not entries(path)


@leases
@pytest.mark.parametrize("way_of", ["exchange", "replace"])
@pytest.mark.parametrize(("mode", "add"), [("ab", True), ("wb", False), ("r+b", False)])
def test_a_save_that_had_found_the_old_file_is_kept(
    path: Path, aim: Target, mode: str, add: bool, way_of: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Opener(path, mode, write=THEIRS)
    if way_of == "exchange":
        with around_exchange(monkeypatch, before=other.start), pytest.raises(Changed):
            commit(aim, NEW, digest(OLD))
    else:
        _no_exchange(monkeypatch)
        real = Temp.replace

        def replacing(temp: Temp) -> None:
            other.start()
            real(temp)

        monkeypatch.setattr(Temp, "replace", replacing)
        with pytest.raises(Changed):
            commit(aim, NEW, digest(OLD))
    other.join()
    assert path.read_bytes() == {"ab": OLD + THEIRS, "wb": THEIRS, "r+b": THEIRS + OLD[len(THEIRS) :]}[mode]
    assert alone(path)


@leases
def test_who_opened_the_old_file_and_wrote_nothing_does_not_matter(
    path: Path, aim: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Opener(path, "r+b")
    with around_exchange(monkeypatch, before=other.start):
        commit(aim, NEW, digest(OLD))
    other.join()
    assert path.read_bytes() == NEW
    assert alone(path)


@leases
def test_who_waits_at_the_new_file_finds_what_was_undone(
    path: Path, aim: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    saving, appending = Opener(path, "ab", write=b"saved\n"), Opener(path, "ab", write=b"appended\n")
    with around_exchange(monkeypatch, before=saving.start, after=appending.start), pytest.raises(Changed):
        commit(aim, NEW, digest(OLD))
    saving.join()
    appending.join()
    assert path.read_bytes() == OLD + b"saved\nappended\n"
    assert alone(path)


@leases
@pytest.mark.parametrize("contended", [False, True])
def test_a_save_that_comes_at_the_last_look_is_kept(
    path: Path, aim: Target, contended: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It had found the old file, but got to open it only now."""
    if contended:
        _contended(monkeypatch)
    real = Temp.sync_directory

    def late(temp: Temp) -> None:
        real(temp)
        Opener(path.with_name(temp.name), "ab", write=THEIRS).start()

    monkeypatch.setattr(Temp, "sync_directory", late)
    with pytest.raises(Changed):
        commit(aim, NEW, digest(OLD))
    os.wait()
    assert path.read_bytes() == OLD + THEIRS
    assert alone(path)


@leases
def test_a_save_that_comes_while_another_is_copied_back(
    path: Path, aim: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Opener(path, "ab", write=b"first\n")
    real, seconds = _fd.copy_bytes, list[Opener]()

    def copying(source: int, into: int) -> None:
        real(source, into)
        if not seconds:
            seconds.append(Opener(path.with_name(temp_names(path.name)[0]), "ab", write=b"second\n"))
            seconds[0].start()

    monkeypatch.setattr(_commit, "copy_bytes", copying)
    with around_exchange(monkeypatch, before=first.start), pytest.raises(Changed):
        commit(aim, NEW, digest(OLD))
    first.join()
    seconds[0].join()
    assert path.read_bytes() == OLD + b"first\nsecond\n"
    assert alone(path)


@leases
def test_who_keeps_the_old_file_open_gets_its_name_back(
    path: Path, aim: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    inode = path.stat().st_ino
    other = Opener(path, "ab", write=THEIRS, hold=0.3)
    monkeypatch.setattr(_commit, "CLOSE_WAIT", 0.02)
    with around_exchange(monkeypatch, before=other.start), pytest.raises(Changed):
        commit(aim, NEW, digest(OLD))
    assert path.read_bytes() == OLD
    other.join()
    assert path.read_bytes() == OLD + THEIRS
    assert path.stat().st_ino == inode
    assert alone(path)


@leases
def test_a_file_that_is_kept_open_for_writing_is_written_in_place(
    path: Path, aim: Target, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(_commit, "LEASE_WAIT", 0.01)
    inode = path.stat().st_ino
    now = OLD
    with path.open("ab", buffering=0) as log, caplog.at_level("DEBUG", "langchain_filestate.commit"):
        for new in (NEW, b"shorter\n", b"much longer\n" * 9):
            commit(aim, new, digest(now))
            log.write(b"line\n")
            now = new + b"line\n"
            assert path.read_bytes() == now
        with pytest.raises(Changed):
            commit(aim, NEW, digest(OLD))
    assert path.read_bytes() == now
    assert path.stat().st_ino == inode
    assert alone(path)
    assert "another program has it open for writing" in caplog.text


@leases
def test_what_was_replaced_without_a_way_back_stands(path: Path, aim: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    _no_exchange(monkeypatch)
    monkeypatch.setattr(_commit, "CLOSE_WAIT", 0.02)
    other, real = Opener(path, "r+b", hold=0.3), Temp.replace

    def replacing(temp: Temp) -> None:
        other.start()
        real(temp)

    monkeypatch.setattr(Temp, "replace", replacing)
    commit(aim, NEW, digest(OLD))
    other.join()
    assert path.read_bytes() == NEW
    assert alone(path)


@leases
def test_a_lease_that_was_held_for_long_proves_nothing(
    path: Path, aim: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the process was stopped: the kernel took the lease, another program wrote, and now it is to be had."""
    monkeypatch.setattr(_commit, "LEASE_AGE", 0.0)
    monkeypatch.setattr(_syscalls, "lease_whole", lambda *_: True)

    def write() -> None:
        _syscalls.drop_lease(held[0])
        with path.with_name(temp_names(path.name)[0]).open("ab") as theirs:
            theirs.write(THEIRS)

    held, real = list[int](), _syscalls.take_lease

    def take(fd: int, kind: Any) -> Any:
        if kind == "read":
            held.append(fd)
        return real(fd, kind)

    monkeypatch.setattr(_syscalls, "take_lease", take)
    with around_exchange(monkeypatch, after=write), pytest.raises(Changed):
        commit(aim, NEW, digest(OLD))
    assert path.read_bytes() == OLD + THEIRS
    assert alone(path)


@leases
def test_a_save_that_took_long_does_not_have_the_next_ones_written_in_place(
    path: Path, aim: Target, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Without a lease a save that is just under way could be overwritten."""
    with path.open("r+b"), monkeypatch.context() as patched:
        patched.setattr(_commit, "LEASE_WAIT", 0.01)
        commit(aim, NEW, digest(OLD))
    commit(aim, OLD, digest(NEW))
    other = Opener(path, "r+b", hold=0.05)
    other.start()
    with caplog.at_level("DEBUG", "langchain_filestate.commit"):
        commit(aim, NEW, digest(OLD))
    other.join()
    assert path.read_bytes() == NEW
    assert "in place" not in caplog.text


@leases
def test_lines_appended_while_a_file_is_written_in_place_are_kept(
    path: Path, aim: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_commit, "LEASE_WAIT", 0.01)
    real = _inplace._reserve
    with path.open("ab", buffering=0) as log:
        monkeypatch.setattr(_inplace, "_reserve", lambda fd, size: (real(fd, size), log.write(b"line\n")))
        commit(aim, b"short\n", digest(OLD))
        assert path.read_bytes() == b"short\nline\n"
        commit(aim, NEW, digest(b"short\nline\n"))
        assert path.read_bytes() == NEW + b"line\n"


def test_another_file_put_at_the_name_while_one_is_written_in_place(
    path: Path, aim: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    twin, other = path.with_name("twin"), path.with_name("other")
    os.link(path, twin)
    other.write_bytes(THEIRS)
    real = _inplace._reserve
    monkeypatch.setattr(_inplace, "_reserve", lambda fd, size: (real(fd, size), other.rename(path)))
    with pytest.raises(Changed):
        commit(aim, NEW, digest(OLD))
    assert path.read_bytes() == THEIRS
    assert twin.read_bytes() == OLD


def test_a_file_that_goes_before_it_is_written_in_place(
    path: Path, aim: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.link(path, path.with_name("twin"))
    real = _inplace.write_in_place

    def late(*arguments: Any, **options: Any) -> Any:
        path.unlink()
        return real(*arguments, **options)

    monkeypatch.setattr(_commit, "write_in_place", late)
    with pytest.raises(Changed):
        commit(aim, NEW, digest(OLD))
    assert not path.exists()


@pytest.mark.parametrize("moment", ["exchange", "holds", "fill", "sync_directory"])
def test_an_interrupt_leaves_the_old_file(
    path: Path, aim: Target, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = _commit if moment == "holds" else Temp
    real = getattr(owner, moment)

    def interrupt(*arguments: Any) -> None:
        real(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(owner, moment, interrupt)
    with pytest.raises(KeyboardInterrupt):
        commit(aim, NEW, digest(OLD))
    assert path.read_bytes() == OLD
    assert alone(path)
    if owner is Temp and moment != "exchange":
        path.unlink()
        with pytest.raises(KeyboardInterrupt):
            commit(aim, NEW, None)
        assert moment == "sync_directory" or not entries(path)


def test_a_path_that_was_contended_is_hurried_for_a_while(
    path: Path, aim: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    contended = Lately(most=1)
    monkeypatch.setattr(_commit, "_contended", contended)
    pushed: list[int] = []
    monkeypatch.setattr(_syscalls, "push_data", pushed.append)
    commit(aim, OLD, digest(OLD))
    assert not pushed
    with pytest.raises(Changed):
        commit(aim, NEW, digest(NEW))
    commit(aim, NEW, digest(OLD))
    assert len(pushed) == 1
    monkeypatch.setattr(contended, "_seconds", 0.0)
    commit(aim, OLD, digest(NEW))
    assert len(pushed) == 1
    monkeypatch.setattr(contended, "_seconds", 60.0)
    other = path.with_name("other")
    other.write_bytes(OLD)
    for name in (path, other):
        with target(name) as t, pytest.raises(Changed):
            commit(t, NEW, digest(NEW))
    assert sum(contended.at(str(name)) for name in (path, other)) <= 1


def test_what_happened_lately_is_remembered_for_a_while_and_of_few() -> None:
    lately = Lately(seconds=60, most=2)
    lately.note("a")
    lately.note("b")
    assert [lately.at(name) for name in "abc"] == [True, True, False]
    lately.forget("a")
    lately.forget("a")
    assert [lately.at(name) for name in "ab"] == [False, True]
    lately.note("a")
    lately.note("c")
    assert not any(map(lately.at, "abc"))
    over = Lately(seconds=0)
    over.note("a")
    assert not over.at("a")


# ---- removing


def test_removing_takes_the_expected_file_only(path: Path, aim: Target) -> None:
    with pytest.raises(Changed):
        remove(aim, digest(NEW))
    assert path.read_bytes() == OLD
    remove(aim, digest(OLD))
    assert not entries(path)
    with pytest.raises(Changed):
        remove(aim, digest(OLD))


def test_removing_what_goes_by_itself(path: Path, aim: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Temp.take_away

    def late(temp: Temp) -> None:
        path.unlink()
        real(temp)

    monkeypatch.setattr(Temp, "take_away", late)
    with pytest.raises(Changed):
        remove(aim, digest(OLD))
    assert not entries(path)


@leases
@pytest.mark.parametrize("disturb", ["rename", "append", "hold"])
@pytest.mark.parametrize("linked", [False, True])
def test_removing_keeps_what_somebody_saved_in_between(
    path: Path, aim: Target, disturb: str, linked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if linked:
        _no_exchange(monkeypatch)
    other = path.with_name("other")
    saving = Opener(path, "ab", write=THEIRS, hold=0.2 if disturb == "hold" else 0)
    if disturb == "hold":
        monkeypatch.setattr(_commit, "CLOSE_WAIT", 0.02)
    real = Temp.take_away

    def taking(temp: Temp) -> None:
        if disturb == "rename":
            other.write_bytes(THEIRS)
            other.rename(path)
        else:
            saving.start()
        real(temp)

    monkeypatch.setattr(Temp, "take_away", taking)
    with pytest.raises(Changed):
        remove(aim, digest(OLD))
    if disturb != "rename":
        saving.join()
    assert path.read_bytes() == (THEIRS if disturb == "rename" else OLD + THEIRS)
    assert alone(path)


def test_removing_leaves_a_newer_file_alone(path: Path, aim: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Temp.take_away

    def taking(temp: Temp) -> None:
        path.write_bytes(b"changed")
        real(temp)
        path.write_bytes(THEIRS)

    monkeypatch.setattr(Temp, "take_away", taking)
    monkeypatch.setattr(_syscalls, "take_lease", lambda *_: "none")
    with pytest.raises(Changed):
        remove(aim, digest(OLD))
    assert path.read_bytes() == THEIRS
    assert alone(path)


@pytest.mark.parametrize("moment", ["take_away", "sync_directory"])
def test_removing_that_fails_half_way(path: Path, aim: Target, moment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = getattr(Temp, moment)

    def failing(temp: Temp) -> None:
        real(temp)
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(Temp, moment, failing)
    refused = refusal(lambda: remove(aim, digest(OLD)))
    assert (refused.code, refused.message.startswith(f"Could not remove {path}: ")) == ("io_error", True)
    assert path.read_bytes() == OLD
    assert alone(path)


@leases
def test_removing_what_somebody_has_open_for_writing(path: Path, aim: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_commit, "LEASE_WAIT", 0.01)
    with path.open("ab"):
        assert refusal(lambda: remove(aim, digest(OLD))).code == "busy"
    assert path.read_bytes() == OLD


@as_root
def test_removing_without_permission_in_the_directory(path: Path) -> None:
    os.chmod(path.parent, 0o755)
    os.chown(path, NOBODY, NOBODY)
    with target(path) as t:
        code, text = as_nobody(lambda: remove(t, digest(OLD)))
    assert (code, text) == ("read_only", f"Could not remove {path}: its directory may not be written.")
    assert path.read_bytes() == OLD


# ---- temporary files


@contextmanager
def sibling(path: Path, count: int = 1) -> Iterator[None]:
    """Other processes that hang in the middle of a save."""
    pids = []
    for _ in range(count):
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            with suppress(BaseException), target(path) as t, Temp(t, 0o600):
                os.write(write, b"x")
                time.sleep(30)
            os._exit(1)
        os.read(read, 1)
        os.close(read)
        os.close(write)
        pids.append(pid)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def test_what_a_killed_process_left_is_removed_at_the_next_save(path: Path, aim: Target) -> None:
    with sibling(path):
        assert len(entries(path)) == 2
    assert len(entries(path)) == 2
    commit(aim, NEW, digest(OLD))
    assert alone(path)


@pytest.mark.parametrize("left", [(0,), (1,), (0, 1), (0, 2), (1, 2)])
def test_all_leftovers_of_a_file_go_and_nothing_else(path: Path, aim: Target, left: tuple[int, ...]) -> None:
    first, second = temp_names(path.name)
    all_names = (first, second, first[:-5] + "77-abc.tmp")
    others = {temp_names("another")[0], ".fs-mine.tmp", first + ".txt", first[:-4]}
    for name in (*(all_names[i] for i in left), *others):
        path.with_name(name).write_bytes(b"left")
    commit(aim, NEW, digest(OLD))
    assert entries(path) == {path.name, *others}


@pytest.mark.parametrize("count", [1, 2, 3])
def test_the_temporary_file_of_the_living_is_left_alone(
    path: Path, aim: Target, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_temp, "SLOT_WAIT", 0.01)
    with sibling(path, count):
        before = entries(path)
        assert len(before) == count + 1
        commit(aim, NEW, digest(OLD))
        assert path.read_bytes() == NEW
        assert entries(path) == before
    commit(aim, OLD, digest(NEW))
    assert alone(path)


def test_who_had_to_wait_looks_first(path: Path, aim: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_temp, "SLOT_WAIT", 0.01)
    other = path.with_name("other")
    real = Temp._take_turn

    def late(temp: Temp, first: str, second: str) -> None:
        other.write_bytes(THEIRS)
        other.rename(path)
        real(temp, first, second)

    with sibling(path):
        monkeypatch.setattr(Temp, "_take_turn", late)
        monkeypatch.setattr(Temp, "fill", None)
        with pytest.raises(Changed):
            commit(aim, NEW, digest(OLD))
    assert path.read_bytes() == THEIRS


def test_where_the_directory_cannot_be_locked_names_are_made_up(
    path: Path, aim: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_temp, "SLOT_WAIT", 0.01)
    first, _ = temp_names(path.name)
    path.with_name(first).write_bytes(b"left")
    with _locked(path.parent):
        commit(aim, NEW, digest(OLD))
    assert entries(path) == {path.name, first}

    def refuse(*_: object) -> None:
        raise OSError(errno.EBADF, "Bad file descriptor")

    monkeypatch.setattr(fcntl, "flock", refuse)
    commit(aim, OLD, digest(NEW))
    assert entries(path) == {path.name, first}
    monkeypatch.undo()
    commit(aim, NEW, digest(OLD))
    assert alone(path)


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    fd = os.open(directory, os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_EX)
    try:
        yield
    finally:
        os.close(fd)


def test_a_lock_that_is_lost_while_waiting(path: Path, aim: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    first, _ = temp_names(path.name)
    path.with_name(first).write_bytes(b"left")
    real, answers = Temp._share, iter((True, False))
    monkeypatch.setattr(Temp, "_share", lambda temp: real(temp) and next(answers))
    monkeypatch.setattr(Temp, "_alone", lambda _: False)
    commit(aim, NEW, digest(OLD))
    assert entries(path) == {path.name, first}


def test_no_descriptor_and_no_lease_is_left_open(path: Path, aim: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    def count() -> int:
        return len(os.listdir("/proc/self/fd"))

    before, now = count(), OLD
    for new in (NEW, THEIRS, OLD):
        commit(aim, new, digest(now))
        with pytest.raises(Changed):
            commit(aim, b"x", digest(b"y"))
        now = new
    os.link(path, path.with_name("twin"))
    commit(aim, NEW, digest(now))
    with pytest.raises(Changed):
        commit(aim, b"x", digest(b"y"))
    monkeypatch.setattr(Temp, "fill", lambda *_: os.read(-1, 1))
    with target(path.with_name("n")) as t, pytest.raises(Refused):
        commit(t, NEW, None)
    assert count() == before
    assert str(path.stat().st_ino) not in Path("/proc/locks").read_text()


# ---- kills, and many at once


def _edit_for_ever(path: Path, data: bytes) -> None:
    with target(path) as t:
        now = digest(path.read_bytes())
        while True:
            for letter in b"ab":
                new = bytes([letter]) + data[1:]
                commit(t, new, now)
                now = digest(new)


def kills(path: Path, times: int, seed: int) -> collections.Counter[str]:
    """Kill a process that edits a 1 MB file, again and again, and look what it left."""
    data = b"a" + random.Random(seed).randbytes(1 << 20)
    path.write_bytes(data)
    right = {bytes([letter]) + data[1:]: chr(letter) for letter in b"ab"}
    rng, found = random.Random(seed), collections.Counter[str]()
    for _ in range(times):
        pid = os.fork()
        if pid == 0:
            with suppress(BaseException):
                _edit_for_ever(path, data)
            os._exit(1)
        time.sleep(0.002 + rng.random() * 0.02)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        found[right.get(path.read_bytes(), "torn")] += 1
        found["litter"] += len(entries(path)) > 2
        found["left"] += len(entries(path)) > 1
    with target(path) as t:
        commit(t, NEW, digest(path.read_bytes()))
    assert alone(path)
    return found


def test_a_kill_leaves_the_old_file_or_the_new(path: Path) -> None:
    found = kills(path, 40, seed=1)
    assert found["a"] + found["b"] == 40
    assert found["litter"] == 0


def _save(path: Path, how: str, stop: Any, saved: Any) -> None:
    """Another program: each save adds a line."""
    rng, n = random.Random(1), 0
    while not stop.is_set():
        line = b"user %d\n" % n
        if how == "append":
            with path.open("ab") as f:
                f.write(line)
        else:
            data = path.read_bytes()
            if how == "truncate":
                path.write_bytes(data + line)
            else:
                other = path.with_name("saving")
                other.write_bytes(data + line)
                other.rename(path)
        n += 1
        saved.value = n
        time.sleep(rng.random() * 0.002)


def _look(path: Path, stop: Any, torn: Any) -> None:
    """A reader: the file is always there, and whole."""
    while not stop.is_set():
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            data = b"absent"
        torn.value += not (data.startswith(b"agent ") and data.endswith(b"\n"))
        time.sleep(0.001)


def edit_line(t: Target, name: str, until: float) -> tuple[int, int]:
    """Count up in a line of one's own; returns how far, and how often another had been there first."""
    head, n, again = f"agent {name} ".encode(), 0, 0
    while time.monotonic() < until:
        with lock(t.path):
            taken = snapshot(t)
            if not isinstance(taken, Snapshot) or not taken.data.startswith(b"agent "):
                continue
            lines = [line for line in taken.data.split(b"\n") if not line.startswith(head)]
            lines.insert(1, head + b"%d" % (n + 1))
            try:
                commit(t, b"\n".join(lines), taken.digest, known=taken.data)
            except Changed:
                again += 1
            else:
                n += 1
    return n, again


@leases
@pytest.mark.parametrize("how", ["append", "truncate", "rename"])
def test_nothing_that_another_program_saves_is_lost(path: Path, aim: Target, how: str) -> None:
    path.write_bytes(b"agent .\n")
    fork = multiprocessing.get_context("fork")
    stop, saved, torn = fork.Event(), fork.Value("q", 0), fork.Value("q", 0)
    others = [fork.Process(target=_save, args=(path, how, stop, saved))]
    if how != "truncate":  # it tears the file itself
        others.append(fork.Process(target=_look, args=(path, stop, torn)))
    for each in others:
        each.start()
    edits, _ = edit_line(aim, "a", time.monotonic() + 1.0)
    stop.set()
    for each in others:
        each.join()
    have = set(path.read_bytes().splitlines())
    assert [n for n in range(saved.value) if b"user %d" % n not in have] == []
    assert torn.value == 0
    assert edits > 0
    assert entries(path) <= {path.name, "saving"}


def test_several_processes_and_threads_edit_one_file(path: Path) -> None:
    """Every acknowledged edit is there, since each was made on the bytes of the one before."""
    path.write_bytes(b"agent .\n")
    until = time.monotonic() + 1.5

    with multiprocessing.get_context("fork").Pool(3) as pool:
        results = pool.map_async(_Work(path, until), ["a", "b", "c"]).get(30)
    told = {name: n for counts in results for name, n in counts.items()}
    lines = [line.split() for line in path.read_text().splitlines()]
    assert {line[1]: int(line[2]) for line in lines if len(line) == 3} == {k: v for k, v in told.items() if v}
    assert sum(told.values()) > 3
    assert alone(path)


class _Work:
    def __init__(self, path: Path, until: float) -> None:
        self.path, self.until = path, until

    def _run(self, name: str, counts: dict[str, int]) -> None:
        with target(self.path) as t:
            counts[name] = edit_line(t, name, self.until)[0]

    def __call__(self, name: str) -> dict[str, int]:
        counts: dict[str, int] = {}
        threads = [threading.Thread(target=self._run, args=(f"{name}{i}", counts)) for i in range(2)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        return counts
