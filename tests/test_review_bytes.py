"""What a review tried to break in the layers of bytes, commits and fences, and what was mended for it."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest

from langchain_filestate import _syscalls, _temp
from langchain_filestate._disk import commit, digest
from tests.targets import target

if TYPE_CHECKING:
    from pathlib import Path

OLD, NEW, NEXT = b"old\n" * 50, b"new\r\n" * 40, b"next\n"
leases = pytest.mark.skipif(not _syscalls.LEASES, reason="leases are Linux's")


@leases
def test_a_child_forked_during_a_save_does_not_keep_the_file_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "file.txt"
    path.write_bytes(OLD)
    real, children = _temp.Temp.fill, []

    def fork(temp: _temp.Temp, data: bytes) -> None:
        real(temp, data)
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
