"""Writing a file where it is, for when no replacement can be put in its place.

That is so for hard links (their other names must see the change), bind mounts, directories that may not be written,
owners and access lists that cannot be given to another file, and files that somebody keeps open for writing (they
would go on writing to a file without a name).

One descriptor, under a write lease where that is to be had: nobody opens the file meanwhile. Space is reserved before
the first byte is written; if writing fails all the same, the old bytes are put back. Only what follows the first
difference is written.

Limits. A process killed, or a machine losing power, in the middle leaves a mixture; the history has the old bytes.
Without the lease (somebody has the file open all the time, or the file system has none), what others write over between
the comparison and our writing, some microseconds, is overwritten; what they write later is kept. What they append at
any time is kept, after a shorter text too, but for what comes in the microseconds before the file is cut: three lines
in a thousand were lost to a hundred edits in a second, of a log that got five hundred lines in that time.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from langchain_filestate import _syscalls
from langchain_filestate._fd import (
    LEASE_WAIT,
    PIECE,
    Changed,
    Stamp,
    close,
    failure,
    keep_from_children,
    lease,
    names,
    open_regular,
    read_whole,
    stamp_of,
    write_at,
)

if TYPE_CHECKING:
    from langchain_filestate._workspace import Target

_MOVES: Final = 1000

# posix_fallocate(3) on file systems without it, where the C library does not imitate it.
_NO_RESERVING: Final = frozenset({errno.EINVAL, errno.EOPNOTSUPP, errno.ENODEV, errno.ENOSYS})


def write_in_place(
    target: Target,
    new: bytes,
    expected: str,
    *,
    known: bytes | None = None,
    mode: int | None = None,
    wait: float = LEASE_WAIT,
) -> Stamp:
    """Make a file's bytes `new`, only if they are the expected ones.

    Args:
        target: The file.
        new: All bytes that it is to have.
        expected: Digest of the bytes that it must have.
        known: Those bytes themselves, if at hand: comparing them takes less time, in which others might write.
        mode: Permission bits to set; None keeps them.
        wait: Seconds to wait for others to close it.

    Raises:
        Changed: It has other bytes, or another file stands at the name.
        Refused: `read_only`, `io_error`, `busy`; the old bytes are there.
    """
    opened = open_regular(target, os.O_RDWR)
    if opened is None:
        raise Changed
    fd, status = opened
    keep_from_children(fd)
    leased = False
    try:
        leased = lease(fd, "write", wait) == "held"
        old = read_whole(fd, os.fstat(fd).st_size)
        same = hashlib.sha256(old).hexdigest() == expected if known is None else old == known
        if not same or not names(target, status):
            raise Changed
        start = _rewrite(fd, old, new)
        if not names(target, status):  # another file was put at the name: theirs counts, and this one stays as it was
            _put_back(fd, old, start, len(new))
            raise Changed
        want = stat.S_IMODE(status.st_mode) if mode is None else mode
        if stat.S_IMODE(os.fstat(fd).st_mode) != want:  # writing clears set-user-id bits
            os.fchmod(fd, want)
        return stamp_of(os.fstat(fd))
    except OSError as error:
        raise failure(error, target.path, "write") from None
    finally:
        if leased:
            _syscalls.drop_lease(fd)
        close(fd)


def _rewrite(fd: int, old: bytes, new: bytes) -> int:
    """Write what differs; on failure put the old bytes back. Returns where the first difference is."""
    start, done = _first_difference(old, new), False
    try:
        _reserve(fd, min(len(old), len(new)))
        before = _append(fd, memoryview(new)[len(old) :]) if len(new) > len(old) else len(old)
        # What somebody who keeps the file open had appended before that moves up behind ours.
        theirs = os.pread(fd, before - len(old), len(old)) if before > len(old) else b""
        write_at(fd, memoryview(new)[start : len(new) if theirs else len(old)], start)
        write_at(fd, theirs, len(new))
        if len(new) < len(old):
            _cut(fd, len(new), len(old))
        os.fsync(fd)
        done = True
    finally:
        if not done:
            _put_back(fd, old, start, len(new))
    return start


def _cut(fd: int, start: int, end: int) -> None:
    """Take out what is between two offsets. What others append meanwhile moves up, until they are slower than this."""
    at, size = end, os.fstat(fd).st_size
    for _ in range(_MOVES):
        while at < size and (piece := os.pread(fd, size - at, at)):
            write_at(fd, piece, start + at - end)
            at += len(piece)
        seen, size = size, os.fstat(fd).st_size
        if size == seen:
            break
    if size > start:
        os.ftruncate(fd, start + max(0, at - end))


def _append(fd: int, data: memoryview) -> int:
    """Write at the end of the file, wherever others have moved it by now; returns where that was."""
    flags = fcntl.fcntl(fd, fcntl.F_GETFL)
    fcntl.fcntl(fd, fcntl.F_SETFL, flags | os.O_APPEND)
    try:
        done = 0
        while done < len(data):
            done += os.write(fd, data[done:])
        return os.lseek(fd, 0, os.SEEK_CUR) - done
    finally:
        fcntl.fcntl(fd, fcntl.F_SETFL, flags)


def _first_difference(old: bytes, new: bytes) -> int:
    """An offset up to which both are the same; exact to a block of the disk, which is written whole anyway."""
    at, size = 0, min(len(old), len(new))
    for step in (PIECE, 4096):
        while at + step <= size and old[at : at + step] == new[at : at + step]:
            at += step
    return at


def _reserve(fd: int, size: int) -> None:
    if not size or not hasattr(os, "posix_fallocate"):
        return
    try:
        os.posix_fallocate(fd, 0, size)
    except OSError as error:
        if error.errno not in _NO_RESERVING:
            raise


def _put_back(fd: int, old: bytes, start: int, end: int) -> None:
    """Restore what may have been overwritten between two offsets, and the size.

    What was overwritten has its space on the disk, so this fails only where the disk itself does; then the reason that
    led here is what is told.
    """
    with suppress(OSError):
        write_at(fd, memoryview(old)[start:end], start)
        os.ftruncate(fd, len(old))
        os.fsync(fd)
