"""What a review tried to break in the layers of bytes, commits and fences, and what was mended for it."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest

from langchain_filestate import FileToolkit, _commit, _fd, _inplace, _syscalls, _temp
from langchain_filestate._disk import Changed, commit, digest
from tests.targets import target

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from langchain_filestate import PlannedChange

OLD, NEW, NEXT = b"old\n" * 50, b"new\r\n" * 40, b"next\n"
leases = pytest.mark.skipif(not _syscalls.LEASES, reason="leases are Linux's")


@leases
def test_a_child_forked_during_a_save_does_not_keep_the_file_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "file.txt"
    path.write_bytes(OLD)
    real, children = _temp.Temp.fill, []

    def fork(temp: _temp.Temp, pieces: Sequence[bytes | memoryview]) -> None:
        real(temp, pieces)
        pid = os.fork()
        if not pid:
            signal.pause()
        children.append(pid)

    try:
        with target(path) as aim, caplog.at_level("DEBUG", "langchain_filestate.commit"):
            with monkeypatch.context() as patched:
                patched.setattr(_temp.Temp, "fill", fork)
                commit(aim, NEW, digest(OLD))
            commit(aim, NEXT, digest(NEW))
    finally:
        for pid in children:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    assert path.read_bytes() == NEXT
    assert [record.getMessage() for record in caplog.records] == [f"{path}: exchange with leases"] * 2


@leases
def test_a_log_that_is_written_all_the_time_is_not_waited_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file.log"
    path.write_bytes(OLD)
    waits: list[float] = []
    real = _fd.lease

    def take(fd: int, kind: _syscalls.LeaseKind, wait: float) -> _syscalls.LeaseState:
        waits.append(wait)
        if wait:
            log.write(b"line\n")  # as long as anybody waits, another line comes in
        return real(fd, kind, 0.0)

    monkeypatch.setattr(_commit, "lease", take)
    with target(path) as aim:
        with path.open("ab", buffering=0) as log:
            with pytest.raises(Changed):
                commit(aim, NEW, digest(OLD))
            waits.clear()
            commit(aim, NEW, digest(OLD + b"line\n"))
            assert waits == [0.0]
            waits.clear()
        # Closed by now: leased and replaced as ever.
        inode = path.stat().st_ino
        monkeypatch.setattr(_commit, "lease", real)
        commit(aim, NEXT, digest(NEW))
    assert path.read_bytes() == NEXT
    assert path.stat().st_ino != inode


@pytest.mark.parametrize("new", [b"", b"x", OLD[:90], OLD + b"a", OLD + b"longer\n" * 9, b"other\n" * 500])
@pytest.mark.parametrize("moment", ["_reserve", "_append", "write_at"])
def test_what_is_appended_while_a_file_is_written_in_place_stays_behind_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, new: bytes, moment: str
) -> None:
    path, other = tmp_path / "file.log", tmp_path / "other"
    path.write_bytes(OLD)
    os.link(path, other)
    monkeypatch.setattr(_syscalls, "take_lease", lambda *_: "none")
    real = getattr(_inplace, moment)
    told: list[int] = []

    def disturbed(*args: object) -> object:
        if not told:
            told.append(log.write(b"theirs 1\n"))
        result = real(*args)
        if len(told) < 4:
            told.append(log.write(b"theirs 2\n"))
        return result

    monkeypatch.setattr(_inplace, moment, disturbed)
    with path.open("ab", buffering=0) as log, target(path) as aim:
        commit(aim, new, digest(OLD))
    expected = b"theirs 1\n" * bool(told) + b"theirs 2\n" * (len(told) - 1)
    assert path.read_bytes() == other.read_bytes() == new + expected


def test_a_hook_may_change_attributes_before_each_write(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    path.write_bytes(OLD)
    path.chmod(0o444)
    planned: list[PlannedChange] = []

    def check_out(change: PlannedChange) -> None:
        planned.append(change)
        path.chmod(0o644)  # as `p4 edit` would; each time, whatever it was

    tools = {t.name: t for t in FileToolkit(tmp_path, before_write=check_out, require_read="never").get_tools()}
    tools["write_file"].invoke({"file_path": "file.txt", "content": "new\n"})
    assert path.read_bytes() == b"new\n"
    assert len(planned) == 1
    assert path.stat().st_mode & 0o777 == 0o644
