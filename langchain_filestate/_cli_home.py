"""What the command line keeps between runs: checkpoints, changes with their before-images, and what a thread is.

One directory, readable by its user alone: `checkpoints.db` (LangGraph's `SqliteSaver`) and `history.db` (a LangGraph
`SqliteStore` with the file history, and per thread its root, model and rules). Both databases are in WAL mode, so that
several runs may go on side by side; a writer waits for another one up to half a minute.

Which directory: `--state`, or else the variable LANGCHAIN_FILESTATE_HOME, or else the user's state directory as
platformdirs knows it. It holds file contents, as any history does: `FileHistory.prune`, or removing the directory,
makes an end of them.
"""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_filestate._changes import label
from langchain_filestate._cli_show import Stop
from langchain_filestate._history import FileHistory

if TYPE_CHECKING:
    from collections.abc import Iterator

    from langgraph.checkpoint.sqlite import SqliteSaver
    from langgraph.store.sqlite import SqliteStore

VARIABLE = "LANGCHAIN_FILESTATE_HOME"
BUSY_SECONDS = 30.0
_THREADS = ("filestate_threads",)
_MOST_THREADS = 1_000_000


@dataclass(frozen=True, slots=True)
class Thread:
    """What a thread was started with, and goes on with.

    Attributes:
        id: LangGraph thread.
        root: Real path of the directory that its tools work in.
        model: As given to `--model`.
        deny: Gitignore patterns of what may be neither read nor written.
        read_only: Gitignore patterns of what may only be read.
        approve: Whether a person is asked about each change.
        started: Time in ISO 8601, UTC.
    """

    id: str
    root: str
    model: str
    deny: tuple[str, ...] = ()
    read_only: tuple[str, ...] = ()
    approve: bool = False
    started: str = ""


def home(given: str | None) -> Path:
    """The state directory; it may not exist yet.

    Args:
        given: What the user said; None if nothing.
    """
    chosen = given or os.environ.get(VARIABLE)
    if chosen:
        return Path(chosen).expanduser()
    from platformdirs import user_state_path  # noqa: PLC0415  an extra

    return user_state_path("langchain-filestate", appauthor=False)


@dataclass(frozen=True, slots=True)
class Desk:
    """An open state directory."""

    saver: SqliteSaver
    store: SqliteStore
    history: FileHistory

    def thread(self, name: str) -> Thread | None:
        """What is known of a thread; None if it was never run."""
        item = self.store.get(_THREADS, label(name))
        return None if item is None else _thread(item.value)

    def remember(self, thread: Thread) -> None:
        """Keep what a thread is."""
        # as one ASCII text: a path may hold bytes that are no text, which a database does not take as characters
        self.store.put(_THREADS, label(thread.id), {"thread": json.dumps(asdict(thread))}, index=False)

    def threads(self) -> list[Thread]:
        """All threads that were run, the oldest first."""
        found = self.store.search(_THREADS, limit=_MOST_THREADS)
        return sorted((_thread(item.value) for item in found), key=lambda thread: thread.started)


def _thread(value: dict[str, Any]) -> Thread:
    fields = json.loads(value["thread"])
    return Thread(**{**fields, "deny": tuple(fields["deny"]), "read_only": tuple(fields["read_only"])})


def exists(where: Path) -> bool:
    """Whether anything was kept there."""
    return (where / "history.db").exists()


@contextmanager
def opened(where: Path) -> Iterator[Desk]:
    """Open a state directory, made if it is not there.

    Raises:
        Stop: It cannot be made or is none.
    """
    from langgraph.checkpoint.sqlite import SqliteSaver  # noqa: PLC0415  an extra
    from langgraph.store.sqlite import SqliteStore  # noqa: PLC0415  an extra

    try:
        where.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise Stop(f"The state directory {where} cannot be used: {error.strerror}.") from error
    with ExitStack() as stack:
        try:
            with _alone(where):
                checkpoints = stack.enter_context(closing(_connect(where / "checkpoints.db", "DEFERRED")))
                changes = stack.enter_context(closing(_connect(where / "history.db", None)))
                saver, store = SqliteSaver(checkpoints), SqliteStore(changes)
                saver.setup()
                store.setup()
        except sqlite3.Error as error:
            raise Stop(f"The state directory {where} cannot be used: {error}.") from error
        yield Desk(saver, store, FileHistory(store))


@contextmanager
def _alone(where: Path) -> Iterator[None]:
    """Keep other processes from making the same tables at the same time: LangGraph's migrations do not.

    A third database serves as the lock, since SQLite's are the same on every system.
    """
    with closing(sqlite3.connect(where / "setup.db", timeout=BUSY_SECONDS, isolation_level=None)) as lock:
        lock.execute("BEGIN EXCLUSIVE")
        yield


def _connect(path: Path, isolation: str | None) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, check_same_thread=False, isolation_level=isolation)  # type: ignore[arg-type]
    try:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
    except sqlite3.Error:
        connection.close()
        raise
    return connection
