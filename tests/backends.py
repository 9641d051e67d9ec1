"""Checkpointer and store of one kind, side by side: in memory, SQLite, PostgreSQL."""

from __future__ import annotations

import uuid
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore

from langchain_filestate import FileHistory
from tests.postgres import open_store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KINDS = ["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]

EACH = ["memory-agent", "memory-graph", "sqlite-agent", pytest.param("postgres-graph", marks=pytest.mark.postgres)]
"""Backend and kind of graph; both kinds of graph with each backend would show no more and take longer."""

EACH = ["memory-agent", "memory-graph", "sqlite-agent", pytest.param("postgres-graph", marks=pytest.mark.postgres)]
"""Backend and kind of graph; both kinds of graph with each backend would show no more and take longer."""

_set_up: set[str] = set()


@dataclass
class Backend:
    """Where one test keeps its checkpoints and changes; its threads are its own."""

    saver: Any
    store: Any
    name: str = field(default_factory=lambda: uuid.uuid4().hex[:8])

    def history(self) -> FileHistory:
        """A history as a process has it that has just begun."""
        return FileHistory(self.store)

    def thread(self, name: str = "t") -> str:
        return f"{name}.{self.name}"


@contextmanager
def opened(kind: str, where: Path, request: pytest.FixtureRequest) -> Iterator[Backend]:
    if kind == "memory":
        yield Backend(InMemorySaver(), InMemoryStore())
    elif kind == "sqlite":
        with (
            SqliteSaver.from_conn_string(str(where / "checkpoints.db")) as saver,
            SqliteStore.from_conn_string(str(where / "history.db")) as store,
        ):
            yield Backend(saver, store)
    else:
        url = request.getfixturevalue("postgres_url")
        with PostgresSaver.from_conn_string(url) as saver, open_store(url) as store:
            if url not in _set_up:
                saver.setup()
                _set_up.add(url)
            yield Backend(saver, store)
