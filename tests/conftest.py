from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.scripted import KINDS, Session


@pytest.fixture(params=sorted(KINDS))
def session(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Session]:
    """make(**policy) -> a session, once with `create_agent` and once with `ToolNode`."""

    def make(root: Path = tmp_path, **options: Any) -> Session:
        return KINDS[request.param](root, **options)

    return make


@pytest.fixture
def agent(tmp_path: Path) -> Callable[..., Session]:
    """make(**policy) -> a session of `create_agent`."""

    def make(root: Path = tmp_path, **options: Any) -> Session:
        return KINDS["agent"](root, **options)

    return make


@pytest.fixture
def quick_path() -> Iterator[Path]:
    """A directory that waits for no disk, where there is such a thing; else like `tmp_path`."""
    base = Path(tempfile.mkdtemp(prefix="fs-quick-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)).resolve()
    try:
        yield base
    finally:
        shutil.rmtree(base)


@pytest.fixture
def tidy_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    """LangChain's shell leaves the pipes of its ended process, and the threads that read them, to the collector.

    On a busy machine that would be the one of a later test, which would fail for it.
    """
    shell_tool = pytest.importorskip("langchain.agents.middleware.shell_tool")
    real = shell_tool.ShellSession.stop

    def stop(self: Any, timeout: float) -> None:
        process, readers = self._process, (self._stdout_thread, self._stderr_thread)
        real(self, timeout)
        if process is not None:
            for pipe, reader in zip((process.stdout, process.stderr), readers, strict=True):
                reader.join(10)
                pipe.close()

    monkeypatch.setattr(shell_tool.ShellSession, "stop", stop)
