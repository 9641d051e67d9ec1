"""The few system calls that Python does not offer: `renameat2`, file leases, `sync_file_range`.

`renameat2(2)` swaps two names in one step (`RENAME_EXCHANGE`) or moves a file to a name only if that name is free
(`RENAME_NOREPLACE`). A lease (`fcntl(2)`, "Leases") is granted on an open file while nobody else has it open in a
conflicting way; whoever opens it so later waits until the lease is let go, or for `/proc/sys/fs/lease-break-time`.

A call that the C library, the kernel or the file system lacks never raises here: it answers that it cannot be had, and
the caller takes the portable way. This is the only use of `ctypes` in the package.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import signal
from contextlib import suppress
from typing import Any, Final, Literal

_NOREPLACE: Final = 1
_EXCHANGE: Final = 2
_WAIT_WRITE_WAIT: Final = 7
# The values of Linux; named here because Python has them on Linux only.
_SETLEASE: Final = 1024
_GETLEASE: Final = 1025
_SETSIG: Final = 10

LeaseKind = Literal["read", "write"]
"""`read`: nobody may open the file for writing meanwhile. `write`: nobody may open it at all."""

LeaseState = Literal["held", "in_use", "none"]
"""Granted; refused because somebody has the file open; not to be had (system, file system, another owner)."""

_KINDS: Final[dict[LeaseKind, int]] = {"read": fcntl.F_RDLCK, "write": fcntl.F_WRLCK}


LEASES: Final = hasattr(fcntl, "F_SETLEASE")
"""Whether this system has leases at all: Linux."""


def _libc(name: str, *arguments: type) -> Any:
    """A function of the C library; None if it has no such thing."""
    call = getattr(ctypes.CDLL(None, use_errno=True), name, None) if LEASES else None
    if call is not None:
        call.argtypes, call.restype = arguments, ctypes.c_int
    return call


_renameat2 = _libc("renameat2", ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
_sync_file_range = _libc("sync_file_range", ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)


def _rename(dir_fd: int, old: str, new: str, flags: int) -> bool:
    if _renameat2 is None:
        return False
    if _renameat2(dir_fd, os.fsencode(old), dir_fd, os.fsencode(new), flags) == 0:
        return True
    number = ctypes.get_errno()
    # EINVAL: the file system does not know the flag; ENOSYS: the kernel does not know the call.
    if number in {errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP}:
        return False
    raise OSError(number, os.strerror(number), old, None, new)


def exchange(dir_fd: int, one: str, other: str) -> bool:
    """Swap what two names in a directory stand for, in one step.

    Returns:
        False if this system or file system cannot; then nothing has happened.

    Raises:
        OSError: As `renameat2(2)`: either name is gone, is a mount point, the directory may not be written.
    """
    return _rename(dir_fd, one, other, _EXCHANGE)


def rename_new(dir_fd: int, old: str, new: str) -> bool:
    """Rename within a directory, only if the new name is free.

    Returns:
        False if this system or file system cannot; then nothing has happened.

    Raises:
        FileExistsError: The new name is taken.
        OSError: As `renameat2(2)`.
    """
    return _rename(dir_fd, old, new, _NOREPLACE)


def push_data(fd: int) -> None:
    """Have a file's bytes written to the disk, without waiting for the file system's journal (`sync_file_range(2)`).

    Raises:
        OSError: As `fsync(2)`.
    """
    if _sync_file_range is None or _sync_file_range(fd, 0, 0, _WAIT_WRITE_WAIT) != 0:
        os.fsync(fd)


def take_lease(fd: int, kind: LeaseKind) -> LeaseState:
    """Ask once for a lease on an open file.

    Whoever breaks it is made to wait, and this process is told by SIGURG, which is ignored unless somebody wants it;
    the default, SIGIO, would end the process, and a library must not set handlers.
    """
    if not LEASES:
        return "none"
    try:
        fcntl.fcntl(fd, _SETSIG, signal.SIGURG)
        fcntl.fcntl(fd, _SETLEASE, _KINDS[kind])
    except BlockingIOError:
        return "in_use"
    except OSError:  # another owner's file (EACCES), a file system without leases (EINVAL), no memory for it (ENOLCK)
        return "none"
    return "held"


def drop_lease(fd: int) -> None:
    """Let a lease go. Closing alone would leave it with a child process that was forked meanwhile."""
    with suppress(OSError):  # the kernel has taken it away already, from a process that was stopped for long
        fcntl.fcntl(fd, _SETLEASE, fcntl.F_UNLCK)


def lease_whole(fd: int, kind: LeaseKind) -> bool:
    """Whether a lease is held and nobody is on the way to break it.

    A lease being broken reads as what it becomes. Who opens the file counts as a writer before the kernel asks security
    modules and watchers of opens (`fanotify(7)`: virus scanners), which can take long, and only then looks for leases:
    they are seen by asking for the lease once more. That also renews one which the kernel took away after
    `/proc/sys/fs/lease-break-time` seconds, so the answer is worth nothing for a lease as old as that.
    """
    return fcntl.fcntl(fd, _GETLEASE) == _KINDS[kind] and take_lease(fd, kind) == "held"
