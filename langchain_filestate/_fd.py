"""What is done with one open file: stamp it, read it, compare it, write it, hold it.

Files are opened by a directory's descriptor and a name, never following a link at the end, never waiting for the other
end of a pipe, and only when they are regular files; a device is not even opened. Everything that the kernel refuses
becomes a `Refused` with a plain sentence here, so that the modules above do not meet errno numbers.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from langchain_filestate import _syscalls
from langchain_filestate.errors import Refused

if TYPE_CHECKING:
    from langchain_filestate._syscalls import LeaseKind, LeaseState
    from langchain_filestate._workspace import Target
    from langchain_filestate.errors import Code

PIECE: Final = 1 << 20
"""Bytes read at once where a file is gone through."""

OPEN_WAIT: Final = 2.0
"""Seconds to wait for a file that another process holds by a lease while it saves."""

LEASE_WAIT: Final = 0.1
"""Seconds to wait for writers to close a file before it is leased."""

_KINDS: Final = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a character device"),
    (stat.S_ISBLK, "a block device"),
)

_REASONS: Final[dict[int, tuple[Code, str]]] = {
    errno.ENOSPC: ("io_error", "there is no space left on the disk"),
    errno.EDQUOT: ("io_error", "the disk quota is used up"),
    errno.EFBIG: ("io_error", "it would become larger than files may be here (a limit of the process or file system)"),
    errno.EROFS: ("io_error", "the file system is mounted read-only"),
    errno.EIO: ("io_error", "the disk reports an input/output error"),
    errno.EACCES: ("read_only", "permission is denied"),
    errno.EPERM: ("read_only", "the operation is not permitted (the file may be marked immutable or append-only)"),
    errno.ETXTBSY: ("busy", "it is a program that is running"),
}


_not_for_children: set[int] = set()


def keep_from_children(fd: int) -> None:
    """Have a descriptor closed in children that are forked before `close`.

    A child that kept a file open for writing would keep it from being leased as long as the child lives.
    """
    _not_for_children.add(fd)


def close(fd: int) -> None:
    """Close a descriptor, whether it was kept from children or not."""
    _not_for_children.discard(fd)
    os.close(fd)


def _in_child() -> None:
    while _not_for_children:
        with suppress(OSError):
            os.close(_not_for_children.pop())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


class Changed(Exception):  # noqa: N818  the answer to "is it still the same?", caught by the caller, who starts again
    """The bytes on disk are not the expected ones; nothing of ours is left there. Never leaves the package."""


class Stamp(NamedTuple):
    """What `stat` says of a file's content: equal stamps may save a read, they never authorise a write."""

    ino: int
    """Inode number."""
    size: int
    """Bytes."""
    mtime_ns: int
    """Last change of the content, nanoseconds since the epoch; programs may set it at will."""
    ctime_ns: int
    """Last change of content or attributes, nanoseconds since the epoch, by the file system's clock."""


def stamp_of(status: os.stat_result) -> Stamp:
    """The stamp in a stat result."""
    return Stamp(status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def failure(error: OSError, path: str, doing: str) -> Refused:
    """The refusal for what the kernel said. `doing` is "read", "write" or "remove"."""
    code, reason = _REASONS.get(error.errno or 0, ("io_error", (error.strerror or str(error)).lower()))
    if doing == "read":
        return Refused(f"Could not read {path}: {reason}.", code="io_error" if code == "read_only" else code)
    return Refused(f"Could not {doing} {path}: {reason}. Nothing was changed.", code=code)


def check_regular(status: os.stat_result, path: str) -> None:
    """Refuse what is no regular file.

    Raises:
        Refused: `is_directory`, `symlink` or `not_a_file`.
    """
    mode = status.st_mode
    if stat.S_ISREG(mode):
        return
    if stat.S_ISDIR(mode):
        raise Refused(f"{path} is a directory, not a file. Give the path of a file.", code="is_directory")
    if stat.S_ISLNK(mode):
        text = f"{path} is a symbolic link, which is not followed here. Use the path that it points to."
        raise Refused(text, code="symlink")
    kind = next((name for test, name in _KINDS if test(mode)), "a special file")
    raise Refused(f"{path} is {kind}, not a regular file. Only regular files can be used.", code="not_a_file")


def check_writable(target: Target, status: os.stat_result) -> None:
    """Refuse a file that may not be written; replacing it would need no permission on the file itself."""
    mode = stat.S_IMODE(status.st_mode)
    hint = "Change its permissions first if it really is to be changed."
    if not mode & 0o222:
        text = f"Refusing to change {target.path}: it is read-only (mode {mode:04o}). {hint}"
        raise Refused(text, code="read_only")
    effective = os.access in os.supports_effective_ids
    if os.access(target.name, os.W_OK, dir_fd=target.dir_fd, effective_ids=effective, follow_symlinks=False):
        return
    try:  # the kernel's own reason
        os.close(os.open(target.name, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=target.dir_fd))
    except FileNotFoundError:
        raise Changed from None
    except OSError as error:
        if error.errno == errno.EACCES:
            text = f"Refusing to change {target.path}: this user may not write it (mode {mode:04o}). {hint}"
            raise Refused(text, code="read_only") from None
        if error.errno not in {errno.EWOULDBLOCK, errno.ETXTBSY, errno.ELOOP}:
            raise failure(error, target.path, "write") from None


def open_regular(target: Target, flags: int, name: str | None = None) -> tuple[int, os.stat_result] | None:
    """Open a regular file of the target's directory, without following a link and without blocking.

    Args:
        target: Directory and name; its path is what texts name.
        flags: The access mode, as `os.O_RDONLY`.
        name: Another name in the same directory; None is the target's own.

    Returns:
        Descriptor and `fstat`, or None if there is no such name.

    Raises:
        Refused: `is_directory`, `symlink`, `not_a_file`, `read_only`, `io_error`; `busy` if another process holds it.
    """
    entry, path = name or target.name, target.path
    flags |= os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
    doing = "read" if flags & os.O_ACCMODE == os.O_RDONLY else "write"
    deadline = time.monotonic() + OPEN_WAIT
    while True:
        try:
            # Looked at before it is opened: opening a device can have effects of its own.
            check_regular(os.stat(entry, dir_fd=target.dir_fd, follow_symlinks=False), path)
            fd = os.open(entry, flags, dir_fd=target.dir_fd)
        except FileNotFoundError:
            return None
        except BlockingIOError:  # leased: another process is in the middle of a save
            if time.monotonic() > deadline:
                raise Refused(f"{path} is held by another program. Try again later.", code="busy") from None
            time.sleep(0.0005)
            continue
        except OSError as error:
            if error.errno in {errno.ELOOP, errno.ENXIO} and time.monotonic() < deadline:
                continue  # a link or a socket since the look: the next look says so
            raise failure(error, path, doing) from None
        status = os.fstat(fd)
        try:
            check_regular(status, path)
        except Refused:
            os.close(fd)
            raise
        return fd, status


def same_file(one: os.stat_result, other: os.stat_result) -> bool:
    """Whether two stat results are of one inode."""
    return one.st_ino == other.st_ino and one.st_dev == other.st_dev


def names(target: Target, status: os.stat_result) -> bool:
    """Whether the target's name still stands for this inode."""
    try:
        return same_file(os.stat(target.name, dir_fd=target.dir_fd, follow_symlinks=False), status)
    except FileNotFoundError:
        return False


def holds(fd: int, digest: str, known: bytes | None) -> bool:
    """Whether a file's bytes are the ones with this digest; `known` are those bytes, which spares the hashing."""
    size = os.fstat(fd).st_size
    if known is not None and size != len(known):
        return False
    sha, offset = hashlib.sha256() if known is None else None, 0
    while offset < size and (piece := os.pread(fd, min(PIECE, size - offset), offset)):
        end = offset + len(piece)
        if sha is not None:
            sha.update(piece)
        elif known is not None and piece != (known if len(piece) == len(known) else known[offset:end]):
            return False
        offset = end
    return offset == size and (sha is None or sha.hexdigest() == digest)


def write_at(fd: int, data: bytes | memoryview, offset: int = 0) -> None:
    """Write all bytes at an offset, however many calls that takes."""
    view = memoryview(data)
    while view.nbytes:
        done = os.pwrite(fd, view, offset)
        view, offset = view[done:], offset + done


def copy_bytes(source: int, target: int) -> None:
    """Make the target's content that of the source."""
    offset = 0
    while piece := os.pread(source, PIECE, offset):
        write_at(target, piece, offset)
        offset += len(piece)
    os.ftruncate(target, offset)


def lease(fd: int, kind: LeaseKind, wait: float = LEASE_WAIT) -> LeaseState:
    """Ask for a lease until those who have the file open have closed it, at most `wait` seconds."""
    state = _syscalls.take_lease(fd, kind)
    if state != "in_use":
        return state
    deadline, pause = time.monotonic() + wait, 0.00005
    while state == "in_use" and time.monotonic() < deadline:
        time.sleep(pause)
        pause = min(pause * 2, 0.001)
        state = _syscalls.take_lease(fd, kind)
    return state


def read_whole(fd: int, size: int) -> bytes:
    """The bytes of a file of this size; one more if it has more."""
    pieces: list[bytes] = []
    offset = 0
    while offset <= size and (piece := os.pread(fd, size - offset + 1, offset)):
        pieces.append(piece)
        offset += len(piece)
        if offset == size:  # all that a regular file has; whether it has grown since, the stamp says
            break
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)
