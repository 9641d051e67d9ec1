"""A temporary file beside the target, under a name of its own, that never stays behind.

The name is made from the target's name, so that what a killed process left is found again without listing the
directory. There are two such names per target: the first is also what makes our own processes take turns, the second
is for when one of them hangs; beyond that names are made up, and found when one of the two is. Proof of life is a
shared `flock(2)` on the directory, held by every process as long as it has a temporary file there: who gets the
exclusive lock knows that all leftovers in it are dead. (A lock on the file itself would not do, since after an
exchange the name stands for another inode.)

Where locks on directories are not to be had (NFS), or the directory may not be read, the names are made up and never
swept: there a kill leaves a file behind.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import stat
import time
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from langchain_filestate import _syscalls
from langchain_filestate._fd import close, failure, keep_from_children, same_file, write_at
from langchain_filestate.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Self

    from langchain_filestate._workspace import Target

SLOT_WAIT: Final = 0.25
"""Seconds to wait for another process that saves the same file, before going on beside it."""

_STEM: Final = len(".fs-0123456789abcdef-")

ACL: Final = "system.posix_acl_access"
# Not to be had on another file, and lost or made anew by any write to the file: no reason to write in place.
_OWN_LABELS: Final = frozenset({"security.capability", "security.ima", "security.evm"})


class NotBeside(Exception):  # noqa: N818  not an error: the way to save is another one
    """No replacement can be made beside the target; it must be written in place. The text says why."""


@lru_cache(maxsize=1024)
def temp_names(name: str) -> tuple[str, str]:
    """The names of the temporary files for a target's name; short whatever its length."""
    key = hashlib.sha256(os.fsencode(name)).hexdigest()[:16]
    return f".fs-{key}-0.tmp", f".fs-{key}-1.tmp"


def sweep(target: Target) -> None:
    """Delete what killed processes left beside a target; nothing where the living cannot be told from the dead."""
    if any(os.access(name, os.F_OK, dir_fd=target.dir_fd, follow_symlinks=False) for name in temp_names(target.name)):
        with suppress(NotBeside, Refused), Temp(target, 0o600):
            pass


class Temp:
    """An open temporary file in the target's directory; gone when the `with` block is left.

    Args:
        target: What it is to become.
        permissions: Of the new file, under the umask.

    Raises:
        NotBeside: The directory may not be written.
        Refused: `io_error`: disk full and the like.
    """

    def __init__(self, target: Target, permissions: int) -> None:
        self.target = target
        self.dir_fd = target.dir_fd
        self._own_dir = False
        self.name = ""
        self.fd = -1
        self.waited = False
        """Whether another process was saving the same file first."""
        self._permissions = permissions
        self._restore: Callable[[], None] | None = None
        self._gone = False

    def __enter__(self) -> Self:
        try:
            self._open_directory()
            self._create()
            self.status = os.fstat(self.fd)
        except OSError as error:
            self._close()
            if error.errno in {errno.EACCES, errno.EPERM}:
                why = "its directory may not be written"
                raise NotBeside(why) from None
            raise failure(error, self.target.path, "write") from None
        self._owner = (self.status.st_uid, self.status.st_gid)
        self._mode: int | None = stat.S_IMODE(self.status.st_mode)
        return self

    def __exit__(self, *_: object) -> None:
        try:
            if self._restore is not None:
                self._restore()
            if not self._gone:
                self.discard()
        finally:
            self._close()

    # -- making it

    def _open_directory(self) -> None:
        # Not the target's own descriptor: locks belong to what a descriptor was opened as, and that may be shared.
        try:
            self.dir_fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self.target.dir_fd)
        except PermissionError:
            return
        keep_from_children(self.dir_fd)
        self._own_dir = True

    def _alone(self) -> bool:
        """Whether no other process has a temporary file in this directory; none can make one until we share it."""
        try:
            fcntl.flock(self.dir_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def _share(self) -> bool:
        """Show that we live; False where that is not to be had."""
        if not self._own_dir:
            return False
        deadline = time.monotonic() + SLOT_WAIT
        while True:
            try:
                fcntl.flock(self.dir_fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:  # somebody sweeps, or another program uses such locks for purposes of its own
                if time.monotonic() > deadline:
                    return False
                time.sleep(0.0001)
            except OSError:  # EBADF: the directory may be passed but not read (O_PATH); no such locks here
                return False
            else:
                return True

    def _unlock(self) -> None:
        with suppress(OSError):
            fcntl.flock(self.dir_fd, fcntl.LOCK_UN)

    def _create(self) -> None:
        first, second = temp_names(self.target.name)
        if not self._share():
            self._make(self._made_up(first[: _STEM - 1] + "."))
        # A leftover under the second name alone is rare, but nothing else would ever find it.
        elif self._present(second) or not self._make(first):
            self._take_turn(first, second)

    def _make(self, name: str) -> bool:
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            self.fd = os.open(name, flags, self._permissions, dir_fd=self.dir_fd)
        except FileExistsError:
            return False
        keep_from_children(self.fd)
        self.name = name
        return True

    def _present(self, name: str) -> bool:
        return os.access(name, os.F_OK, dir_fd=self.dir_fd, follow_symlinks=False)

    def _made_up(self, stem: str) -> str:
        return f"{stem}{os.getpid()}-{time.monotonic_ns():x}.tmp"

    def _take_turn(self, first: str, second: str) -> None:
        """Sweep what the dead left; wait for the living, but not for ever."""
        deadline = time.monotonic() + SLOT_WAIT
        while True:
            if self._alone():
                self._sweep(first)
            if not self._share():  # also after a failed try to be alone, which gives up the lock that was held
                self._make(self._made_up(first[: _STEM - 1] + "."))
                return
            if self._make(first):
                return
            if time.monotonic() > deadline:
                break
            self.waited = True
            self._unlock()  # while asleep, so that two who wait do not keep each other from sweeping
            time.sleep(0.0003 + (os.getpid() % 7) * 0.0001)
        if not self._make(second):
            self._make(self._made_up(first[:_STEM]))

    def _sweep(self, name: str) -> None:
        """Delete all leftovers for this target. They are dead, since no other process has a lock on the directory."""
        with os.scandir(self.dir_fd) as entries:
            dead = [e.name for e in entries if e.name.startswith(name[:_STEM]) and e.name.endswith(".tmp")]
        for entry in dead:
            with suppress(FileNotFoundError):
                os.unlink(entry, dir_fd=self.dir_fd)

    def own(self, source: os.stat_result) -> None:
        """Give it owner and group of the file that it replaces.

        Raises:
            NotBeside: That is not permitted.
        """
        if self._owner == (source.st_uid, source.st_gid):
            return
        try:
            os.fchown(self.fd, source.st_uid, source.st_gid)
        except OSError:
            why = "its owner cannot be given to another file"
            raise NotBeside(why) from None
        self._owner = (source.st_uid, source.st_gid)

    def dress(self, fd: int, source: os.stat_result, mode: int | None = None) -> None:
        """Give it extended attributes, access list and mode of the open file that it replaces.

        After the bytes: writing clears set-user-id bits and capabilities.

        Raises:
            NotBeside: An attribute cannot be set.
        """
        if copy_attributes(fd, self.fd):
            self._mode = None  # an access list changes it
        want = stat.S_IMODE(source.st_mode) if mode is None else mode
        if self._mode != want:
            os.fchmod(self.fd, want)
            self._mode = want

    def fill(self, pieces: Sequence[bytes | memoryview]) -> None:
        """Write the bytes, piece after piece."""
        at = 0
        for piece in pieces:
            write_at(self.fd, piece, at)
            at += len(piece)

    # -- putting it in place

    def exchange(self) -> bool:
        """Swap it with the target in one step; False where that cannot be had."""
        self._restore = self.give_back  # before the call: interrupted right after it, leaving looks what is there
        try:
            done = _syscalls.exchange(self.dir_fd, self.name, self.target.name)
        except OSError:
            self._restore = None
            raise
        if not done:
            self._restore = None
        return done

    def replace(self) -> None:
        """Put it at the target's name, over what is there."""
        os.replace(self.name, self.target.name, src_dir_fd=self.dir_fd, dst_dir_fd=self.dir_fd)
        self._gone = True

    def put_new(self) -> None:
        """Put it at the target's name if that is free.

        Raises:
            FileExistsError: It is not.
        """
        if not _syscalls.rename_new(self.dir_fd, self.name, self.target.name):
            os.link(self.name, self.target.name, src_dir_fd=self.dir_fd, dst_dir_fd=self.dir_fd, follow_symlinks=False)
            os.unlink(self.name, dir_fd=self.dir_fd)
        self._gone = True

    def inside(self) -> os.stat_result:
        """What stands at the temporary name now."""
        return os.stat(self.name, dir_fd=self.dir_fd, follow_symlinks=False)

    def give_back(self) -> None:
        """Undo an exchange by name, for when what came out must stay the very file that it is.

        If somebody has put another file at the name since, theirs stays.
        """
        for _ in range(2):
            try:
                if same_file(self.inside(), self.status):
                    break
                _syscalls.exchange(self.dir_fd, self.name, self.target.name)
            except FileNotFoundError:  # the target was deleted or moved by somebody: that stands
                break
        self._restore = None

    def take_away(self) -> None:
        """Move what is at the target's name here, over the empty temporary file."""
        self._restore = self.bring_back
        os.replace(self.target.name, self.name, src_dir_fd=self.dir_fd, dst_dir_fd=self.dir_fd)

    def bring_back(self) -> None:
        """Undo `take_away`. If somebody has put another file at the name since, theirs stays."""
        if not same_file(self.inside(), self.status):
            with suppress(FileExistsError):
                self.put_new()
        self._restore = None

    def discard(self) -> None:
        """Delete what stands at the temporary name."""
        with suppress(FileNotFoundError):
            os.unlink(self.name, dir_fd=self.dir_fd)
        self._restore = None
        self._gone = True

    def sync_directory(self) -> None:
        """Make the names durable, where the file system has such a thing."""
        try:
            os.fsync(self.dir_fd)
        except OSError as error:
            if error.errno not in {errno.EINVAL, errno.EBADF, errno.EOPNOTSUPP}:
                raise

    def _close(self) -> None:
        if self.fd >= 0:
            close(self.fd)
            self.fd = -1
        if self._own_dir:
            self._own_dir = False
            self._unlock()
            close(self.dir_fd)


def _attributes(fd: int) -> list[str]:
    try:
        return os.listxattr(fd)
    except (OSError, AttributeError):  # no attributes on this file system, or on this system at all
        return []


def copy_attributes(source: int, target: int) -> bool:
    """Make the target's extended attributes, access list included, those of the source; False if there are none.

    Raises:
        NotBeside: One cannot be set.
    """
    wanted = _attributes(source)
    present = _attributes(target)
    for name in set(present).difference(wanted) if present else ():
        if name == ACL or name.startswith("user."):  # a default access list of the directory
            os.removexattr(target, name)
    for name in wanted:
        try:
            os.setxattr(target, name, os.getxattr(source, name))
        except OSError:
            if name not in _OWN_LABELS:
                why = f"its attribute {name} cannot be given to another file"
                raise NotBeside(why) from None
    return bool(present or wanted)
