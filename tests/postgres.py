"""A PostgreSQL server of the tests' own: started on a socket in a directory of its own, stopped by its process id.

Debian's package installs the server but puts its binaries on no path; `initdb` and the server refuse to run as root.
"""

from __future__ import annotations

import atexit
import glob
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import TYPE_CHECKING

import psycopg
import pytest
from langgraph.store.postgres import PostgresStore

if TYPE_CHECKING:
    from collections.abc import Iterator

START_SECONDS = 60


def binaries() -> str | None:
    """The directory of `initdb` and `postgres`: the newest that Debian installed, or what is on the path."""
    versions = glob.glob("/usr/lib/postgresql/*/bin/initdb")
    found = max(versions, key=lambda path: float(path.split("/")[4]), default=shutil.which("initdb"))
    return os.path.dirname(found) if found else None


def _drop() -> dict[str, int | list[int]]:
    """Arguments of `subprocess` that give up root; none where we are somebody else already."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            user = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    raise RuntimeError("no user to run PostgreSQL as")


@contextmanager
def server(bin_dir: str) -> Iterator[str]:
    """A running server without durability (it lives as long as the tests); gives a connection string."""
    user = _drop()
    # A socket's path may have about 100 bytes, so not below pytest's own directories.
    base = tempfile.mkdtemp(prefix="fs-pg-")
    process = None
    try:
        if user:
            os.chown(base, int(str(user["user"])), int(str(user["group"])))
        data = os.path.join(base, "data")
        subprocess.run(
            [os.path.join(bin_dir, "initdb"), "-D", data, "-U", "tests", "-A", "trust", "-E", "UTF8", "--locale=C", "-N"],
            check=True, capture_output=True, timeout=START_SECONDS, cwd=base, **user,  # type: ignore[call-overload]
        )  # fmt: skip
        options = {"listen_addresses": "", "unix_socket_directories": base, "fsync": "off", "max_connections": "100"}
        arguments = [part for key, value in options.items() for part in ("-c", f"{key}={value}")]
        with open(os.path.join(base, "log"), "wb") as log:
            process = subprocess.Popen(
                [os.path.join(bin_dir, "postgres"), "-D", data, *arguments],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=base, **user,  # type: ignore[call-overload]
            )  # fmt: skip
        url = f"postgresql://tests@/postgres?host={base}"
        _wait(process, url, os.path.join(base, "log"))
        yield url
    finally:
        if process is not None:
            process.send_signal(signal.SIGINT)  # "fast": open connections are closed
            try:
                process.wait(START_SECONDS)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGQUIT)
                process.wait(START_SECONDS)
        shutil.rmtree(base, ignore_errors=True)


def _wait(process: subprocess.Popen[bytes], url: str, log: str) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            with psycopg.connect(url, connect_timeout=5):
                return
        except psycopg.OperationalError:
            if process.poll() is not None or time.monotonic() > deadline:
                with open(log, encoding="utf-8", errors="replace") as file:
                    raise RuntimeError(f"PostgreSQL did not start:\n{file.read()}") from None
            time.sleep(0.05)


@cache
def _shared(bin_dir: str) -> str:
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(server(bin_dir))


@pytest.fixture(scope="session")
def postgres_url() -> str:
    """Connection string of the one server of this test run. Test modules import this fixture by name."""
    found = binaries()
    if found is None:
        pytest.skip("PostgreSQL's server is not installed")
    return _shared(found)


@contextmanager
def open_store(url: str) -> Iterator[PostgresStore]:
    """A store in the server's first database, with a connection of its own, as another process would have."""
    with PostgresStore.from_conn_string(url) as store:
        store.setup()
        yield store


@contextmanager
def empty_store(url: str) -> Iterator[PostgresStore]:
    """The same with nothing in it; much faster than a database of its own."""
    with open_store(url) as store:
        store.conn.execute("TRUNCATE store")  # type: ignore[union-attr]
        yield store


_databases = 0


@contextmanager
def database(url: str) -> Iterator[str]:
    """An empty database on the server, with a connection string of its own; dropped afterwards."""
    global _databases  # noqa: PLW0603
    _databases += 1
    name = f"tests_{os.getpid()}_{_databases}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    try:
        yield url.replace("/postgres?", f"/{name}?")
    finally:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
