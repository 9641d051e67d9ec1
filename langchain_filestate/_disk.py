"""The only way to user files: snapshot, scan, digest, commit, remove, and a lock per path.

Whether a file is still the same is decided by the digest of bytes just read. A stat may save that read where nothing
depends on it but a notice (`known_digest`), as Mercurial's dirstate and git's index do: its stamp must be equal, and
*settled*, that is older by some seconds than the read that it is remembered for, since within a clock tick of the file
system a second change leaves the same stamp.

All of it works on a `Target`, the open directory and a name in it, so that a directory swapped for a link in between
leads nowhere else.
"""

from __future__ import annotations

import hashlib
import os
import stat
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple
from weakref import WeakValueDictionary

from langchain_filestate._commit import commit, remove
from langchain_filestate._fd import PIECE, Changed, Stamp, check_regular, failure, open_regular, read_whole, stamp_of
from langchain_filestate._sums import STEP, Sum
from langchain_filestate._temp import sweep
from langchain_filestate._workspace import Target
from langchain_filestate.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = [
    "Changed",
    "Snapshot",
    "Stamp",
    "Target",
    "commit",
    "digest",
    "digest_of",
    "known_digest",
    "lock",
    "looks_same",
    "mode_of",
    "remove",
    "scan",
    "size_of",
    "snapshot",
    "stamp",
    "sweep",
]

QUIET_WAIT: Final = 0.5
"""Seconds to wait for a file to hold still while it is read."""

SETTLED_NS: Final = 3_000_000_000
"""Nanoseconds: more than the coarsest time stamp of a file system in use (FAT: two seconds)."""

MAX_MEMO: Final = 8192


class Snapshot(NamedTuple):
    """A file's content at one moment."""

    data: bytes
    digest: str
    """SHA-256 of the raw bytes, in hex."""
    mode: int
    """Permission bits, set-user-id and the like included."""
    stamp: Stamp
    sum: Sum | None = None
    """What gave the digest, if the content is large."""


def digest(data: bytes) -> str:
    """SHA-256 in hex."""
    return hashlib.sha256(data).hexdigest()


def snapshot(
    target: Target, *, max_bytes: int | None = None, likely: tuple[bytes, str] | None = None
) -> Snapshot | None:
    """Read a file whole, such that nobody wrote to it meanwhile as far as its stamps tell.

    Args:
        target: The file.
        max_bytes: Most bytes that are read; None for no limit.
        likely: Bytes that it may have, and their digest: comparing is faster than hashing.

    Returns:
        None if there is no file.

    Raises:
        Refused: `is_directory`, `not_a_file`, `symlink`, `too_large`, `io_error`; `busy` if it never holds still.
    """
    deadline = time.monotonic() + QUIET_WAIT
    while True:
        began = time.time_ns()
        opened = open_regular(target, os.O_RDONLY)
        if opened is None:
            return None
        fd, status = opened
        try:
            if max_bytes is not None and status.st_size > max_bytes:
                text = f"{target.path} has {status.st_size:,} bytes; at most {max_bytes:,} can be worked on."
                raise Refused(text, code="too_large")
            data = read_whole(fd, status.st_size)
            after = os.fstat(fd)
        except OSError as error:
            raise failure(error, target.path, "read") from None
        finally:
            os.close(fd)
        seen = stamp_of(status)
        if seen == stamp_of(after):
            if len(data) != seen.size:
                text = f"{target.path} does not tell its size: it is made by the system as it is read."
                raise Refused(text, code="not_a_file")
            found = Sum(data) if seen.size > STEP else None  # its states are worth more than what comparing spares
            if found is not None:
                sha = found.digest
            elif likely is not None and data == likely[0]:
                data, sha = likely  # which others hold already: once in memory is enough
            else:
                sha = digest(data)
            taken = Snapshot(data, sha, stat.S_IMODE(status.st_mode), seen, found)
            _memo.note(target.path, seen, sha, began)
            return taken
        _wait_quiet(target, deadline)


def _wait_quiet(target: Target, deadline: float) -> None:
    if time.monotonic() > deadline:
        text = f"{target.path} is being written by another program all the time. Try again later."
        raise Refused(text, code="busy")
    time.sleep(0.001)


@contextmanager
def scan(target: Target, sink: Callable[[bytes], object]) -> Iterator[tuple[Callable[[int, int], bytes], Stamp]]:
    """Go through a file of any size once, in pieces of 1 MB, then read in it at random, on one descriptor.

    Args:
        target: The file.
        sink: Is given each piece in order.

    Yields:
        A function `(offset, size) -> bytes`, and the stamp.

    Raises:
        Changed: It was written to meanwhile, as far as its stamps tell; start again, with another sink. Also raised
            when the block is left, if it was written to while the block ran.
        Refused: `not_found`, `is_directory`, `not_a_file`, `symlink`, `io_error`, `busy`.
    """
    opened = open_regular(target, os.O_RDONLY)
    if opened is None:
        raise Refused(f"File does not exist: {target.path}.", code="not_found")
    fd, status = opened
    seen = stamp_of(status)
    try:
        offset = 0
        while piece := _pread(target, fd, PIECE, offset):
            sink(piece)
            offset += len(piece)
            if offset > seen.size:
                raise Changed
        _check_still(fd, seen)
        yield lambda at, size: _pread(target, fd, size, at), seen
        _check_still(fd, seen)
    finally:
        os.close(fd)


def _pread(target: Target, fd: int, size: int, offset: int) -> bytes:
    try:
        return os.pread(fd, size, offset)
    except OSError as error:
        raise failure(error, target.path, "read") from None


def _check_still(fd: int, seen: Stamp) -> None:
    if stamp_of(os.fstat(fd)) != seen:
        raise Changed


def digest_of(target: Target) -> str | None:
    """The digest of a file's bytes, read now, in pieces; None if there is no file.

    Raises:
        Refused: As `snapshot`.
    """
    deadline = time.monotonic() + QUIET_WAIT
    while True:
        began, sha = time.time_ns(), hashlib.sha256()
        try:
            with scan(target, sha.update) as (_, seen):
                pass
        except Refused as refused:
            if refused.code == "not_found":
                return None
            raise
        except Changed:
            _wait_quiet(target, deadline)
            continue
        found = sha.hexdigest()
        _memo.note(target.path, seen, found, began)
        return found


def stamp(target: Target) -> Stamp | None:
    """The stamp of what is at the name now, without opening it; None if there is nothing.

    Raises:
        Refused: `is_directory`, `not_a_file`, `symlink`, `io_error`.
    """
    try:
        status = os.stat(target.name, dir_fd=target.dir_fd, follow_symlinks=False)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise failure(error, target.path, "read") from None
    check_regular(status, target.path)
    return stamp_of(status)


def looks_same(target: Target, seen: Stamp | None) -> bool:
    """Whether a file looks as it did, without opening it: good for giving up early, never for a write.

    A change of attributes alone (mode, links) does not count: what runs before a write may make one each time.

    Args:
        target: The file.
        seen: Its stamp then; None if there was no file.

    Raises:
        Refused: As `stamp`.
    """
    now = stamp(target)
    if now is None or seen is None:
        return now is seen
    return (now.ino, now.size, now.mtime_ns) == (seen.ino, seen.size, seen.mtime_ns)


def size_of(target: Target) -> int | None:
    """Bytes of a file, without opening it; None if there is none. Raises as `stamp`."""
    seen = stamp(target)
    return None if seen is None else seen.size


# ---- the memo of digests ---------------------------------------------------------------------------------------------


class _Memo:
    """Digests by path, for files whose stamp has settled. Bounded: the oldest goes first."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._known: dict[str, tuple[tuple[int, int, int, int], str]] = {}

    def note(self, path: str, seen: Stamp, found: str, began: int) -> None:
        """Remember a digest, if the stamp was settled when the read began (nanoseconds since the epoch)."""
        with self._guard:
            self._known.pop(path, None)
            if max(seen.mtime_ns, seen.ctime_ns) + SETTLED_NS < began:
                self._known[path] = ((seen.ino, seen.size, seen.mtime_ns, seen.ctime_ns), found)
                if len(self._known) > MAX_MEMO:
                    del self._known[next(iter(self._known))]

    def get(self, path: str) -> str | None:
        known = self._known.get(path)
        try:
            status = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            return ""
        except (OSError, ValueError):  # or no path at all
            return None
        if known is None or known[0] != (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns):
            return None
        return known[1]


_memo = _Memo()


def known_digest(path: str) -> str | None:
    """What a file's digest is, if that can be told without reading it. Good for a notice, never for a write.

    Args:
        path: Real and absolute.

    Returns:
        The digest; `""` if there is nothing at the path; None if the file must be read to know (`digest_of`).
    """
    return _memo.get(path)


def mode_of(path: str) -> int | None:
    """Permission bits of what is at a path, without opening it; None if nothing is.

    Args:
        path: Real and absolute.
    """
    try:
        return stat.S_IMODE(os.lstat(path).st_mode)
    except (OSError, ValueError):
        return None


# ---- one at a time per path ------------------------------------------------------------------------------------------


_locks: WeakValueDictionary[str, threading.RLock] = WeakValueDictionary()
_locks_guard = threading.Lock()


def _after_fork() -> None:
    """In a child, nobody holds what threads of the parent held."""
    global _locks_guard  # noqa: PLW0603  a lock that was held at the fork would stay so
    _locks_guard = threading.Lock()
    _locks.clear()


os.register_at_fork(after_in_child=_after_fork)


def lock(path: str) -> threading.RLock:
    """What holds a file against other threads of this process in a `with` block; the same thread may take it again.

    It is gone when nobody holds it, so any number of paths costs nothing.

    Args:
        path: Real and absolute: one spelling for one file.
    """
    with _locks_guard:
        held = _locks.get(path)
        if held is None:
            held = _locks[path] = threading.RLock()
        return held
