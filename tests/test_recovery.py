"""Real kills and real processes; the long forms are `python -m tests.long kill-graph` and `processes`."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.sqlite import SqliteStore

from langchain_filestate import FileHistory, _disk
from tests.long import kill_graph, processes
from tests.postgres import database, postgres_url  # noqa: F401  a fixture


@pytest.fixture(autouse=True)
def in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed process leaves the same on any file system; this one waits for no disk."""
    if os.path.isdir("/dev/shm"):
        monkeypatch.setenv("KILL_DIR", "/dev/shm")


def test_a_run_that_is_killed_at_random_and_resumed() -> None:
    figures = kill_graph.run(8, seed=time.time_ns())
    assert not figures.faults, str(figures)
    assert figures.runs == 8


def dies(where: str, kind: str, when: str, ready: Any) -> None:
    """An attempt that ends at once at the commit of its fourth change."""
    commit, left = _disk.commit, [4]

    def last(*args: Any, **options: Any) -> Any:
        left[0] -= 1
        if left[0]:
            return commit(*args, **options)
        if when == "after":
            commit(*args, **options)
        os._exit(9)

    _disk.commit = last
    kill_graph.attempt(where, kind, "sync", ready)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("kind", ["agent", "graph"])
def test_a_process_that_ends_around_the_commit(kind: str, when: str) -> None:
    ctx = kill_graph.context()
    base = kill_graph.fresh(kind)
    try:
        ready = ctx.Event()
        process = ctx.Process(target=dies, args=(str(base), kind, when, ready))
        process.start()
        process.join()
        assert process.exitcode == 9
        with SqliteStore.from_conn_string(str(base / "history.db")) as store:
            found = FileHistory(store).changes("t")
        phantom = found[-1]
        on_disk = Path(phantom.path).read_bytes() if Path(phantom.path).exists() else b""
        assert (_disk.digest(on_disk) == phantom.after) is (when == "after")
        process = kill_graph.start(ctx, base, kind, "sync")
        process.join()
        assert process.exitcode == 0
        figures = kill_graph.Figures()
        assert kill_graph.check(base, kind, figures) == []
        assert figures.again >= (when == "after")
    finally:
        shutil.rmtree(base)


@pytest.mark.postgres
def test_two_processes_on_one_store_and_one_folder(postgres_url: str) -> None:  # noqa: F811  pytest's way
    with database(postgres_url) as url:
        figures = processes.run(url, processes=2, edits=40, count=12)
    assert not figures.faults, str(figures)
    assert figures.codes["edit"] + figures.codes["recovered"] == 40
