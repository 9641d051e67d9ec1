"""Bytes to a name, only over the expected bytes: so that nothing that somebody else wrote is lost.

The new bytes are made ready in a file beside the target (`_temp`), which takes the target's place in one step, so that
a reader, a crash or a kill finds the old file or the new one. That alone would lose a save that falls between the
comparison and this step. So, on Linux:

1. A read lease on the old file: it is granted while nobody has it open for writing; whoever opens it for writing from
   then on waits, readers are not disturbed. A write lease on the new file, whose first reader waits too.
2. Compare the old file's bytes with the expected ones, and that the name still stands for it.
3. `renameat2(RENAME_EXCHANGE)`, and look at what came out: the same file with its lease whole is how it should be.
   Another file was renamed over the name in between. A lease that is being broken, or that would not be granted again,
   means that somebody had found the old file and waits to open it: let them, wait until they have closed it, compare.
4. Make the directory durable, look once more at the old file, delete it, let the leases go.

Where somebody else wrote, their bytes are the truth. They are undone *by content*: copied into the new file, which is
at the name and leased, so that whoever waits there finds them. Exchanging back would leave those who wait on the new
file with one that has no name. Only where that cannot be done (they keep it open, the disk is full, it is no regular
file) the name is given back to their file as it is.

While others keep changing the file, waiting for the disk before the exchange would leave no gap to get through. Then
the bytes are only pushed to the disk before it (`sync_file_range`), and made durable under the leases right after it.

Without leases (another owner's file, some network file systems) the old file is compared after the exchange as well;
without the exchange it is replaced (`os.replace`). Files that cannot be replaced are written in place (`_inplace`).

Limits. What remains with leases: a program that has looked the name up before the exchange, but counts as a writer of
the file only after the last look at it, both in one open call, which takes an interrupt at the wrong moment; a kill
while the bytes of another are being copied back. With exchange alone: one that opens the old file before and writes to
it after that. With `os.replace`, also any save in the microseconds between comparison and replacement. Those who open
the file while leases are held wait for some milliseconds; a process stopped in the middle makes them wait for up to
`/proc/sys/fs/lease-break-time` seconds.
"""

from __future__ import annotations

import errno
import logging
import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from langchain_filestate import _syscalls
from langchain_filestate._fd import (
    LEASE_WAIT,
    Changed,
    Stamp,
    check_writable,
    copy_bytes,
    failure,
    holds,
    lease,
    names,
    open_regular,
    same_file,
    stamp_of,
)
from langchain_filestate._inplace import write_in_place
from langchain_filestate._lately import Lately
from langchain_filestate._temp import NotBeside, Temp
from langchain_filestate.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_filestate._syscalls import LeaseState
    from langchain_filestate._workspace import Target

_contended = Lately()
"""A commit found other bytes there."""
_kept_open = Lately()
"""The file was open for writing all the time, as a log is."""

_log = logging.getLogger("langchain_filestate.commit")

TEMP_WAIT: Final = 0.01
"""Seconds to wait for a file watcher to close the new file that it looked into."""

LOOK_AFTER: Final = 0.0003
"""Seconds from the exchange to the last look at least, where others keep saving the file.

Whoever had found the old file, and was stopped inside the open call by an interrupt or the hypervisor, is past it then.
"""

LEASE_AGE: Final = 0.5
"""Seconds for which a lease is trusted. The kernel takes it away after more, from a process that was stopped."""

CLOSE_WAIT: Final = 1.0
"""Seconds to wait for others to close a file that they are saving, while readers of the name wait."""

# A mount point (rename(2)); a file marked append-only, or a directory whose sticky bit protects another's file.
_NO_RENAME: Final = frozenset({errno.EBUSY, errno.EXDEV, errno.EPERM, errno.EACCES})


def commit(
    target: Target,
    new: bytes | Sequence[bytes | memoryview],
    expected: str | None,
    *,
    known: bytes | None = None,
    mode: int | None = None,
) -> Stamp:
    """Put new bytes at a name, only if the bytes there are the expected ones.

    Mode, owner, access list, extended attributes and hard links of an existing file are kept. A new file gets the
    mode that the umask leaves.

    Args:
        target: Where.
        new: All bytes that the file is to have, or the pieces of them in order.
        expected: SHA-256 of the bytes that must be there, in hex; None if there must be no file.
        known: Those bytes themselves, if at hand: comparing them is faster than hashing.
        mode: Permission bits to set; None keeps those of the file.

    Returns:
        The stamp of the file that was written.

    Raises:
        Changed: Something else is there. What it is stays, and nothing of ours remains.
        Refused: `read_only` (no write permission, for root too if there is no write bit at all), `io_error`, `busy`.
    """
    pieces: Sequence[bytes | memoryview] = [new] if isinstance(new, bytes) else new
    if expected is None:
        return _create(target, pieces, mode)
    opened = open_regular(target, os.O_RDONLY)
    if opened is None:
        raise Changed
    fd, status = opened
    try:
        check_writable(target, status)
        why, wait = "it has other names (hard links)", LEASE_WAIT
        if status.st_nlink == 1:
            try:
                return _replace(target, pieces, _Old(fd, status, expected, known), mode)
            except NotBeside as reason:
                why, wait = str(reason), 0.0 if isinstance(reason, _OpenElsewhere) else LEASE_WAIT
    finally:
        os.close(fd)
    stamp = write_in_place(target, b"".join(pieces), expected, known=known, mode=mode, wait=wait)
    _log.debug("%s: in place, because %s", target.path, why)
    return stamp


def remove(target: Target, expected: str) -> None:
    """Delete a file, only if its bytes are the expected ones.

    Raises:
        Changed: They are not, or it is gone; what is there stays.
        Refused: `read_only`, `io_error`; `busy` if another program has it open for writing.
    """
    opened = open_regular(target, os.O_RDONLY)
    if opened is None:
        raise Changed
    fd, status = opened
    try:
        check_writable(target, status)
        with Temp(target, 0o600) as temp:
            _take_away(temp, _Old(fd, status, expected, None))
    except NotBeside as reason:
        raise Refused(f"Could not remove {target.path}: {reason}.", code="read_only") from None
    except OSError as error:
        raise failure(error, target.path, "remove") from None
    finally:
        os.close(fd)


class _OpenElsewhere(NotBeside):
    """Somebody has the file open for writing all the time."""


class _StillOpen(Exception):  # noqa: N818  decides how to undo, leaves this module never
    """Those who save into a file have not closed it in time."""


class _Old:
    """The file that is to be replaced: open, and leased where that is to be had."""

    def __init__(self, fd: int, status: os.stat_result, expected: str, known: bytes | None) -> None:
        self.fd = fd
        self.status = status
        self.lease: LeaseState = "none"
        self._until = 0.0
        self._expected = expected
        self._known = known

    def take(self, wait: float) -> None:
        self.lease = lease(self.fd, "read", wait)
        self._until = time.monotonic() + LEASE_AGE

    def take_or_fail(self, wait: float) -> None:
        self.take(wait)
        if self.lease == "in_use":
            raise _StillOpen

    def drop(self) -> None:
        if self.lease == "held":
            _syscalls.drop_lease(self.fd)
            self.lease = "none"

    def undisturbed(self) -> bool:
        """Whether nobody has come to write since the lease was taken."""
        return self.lease == "held" and _syscalls.lease_whole(self.fd, "read")

    def unchanged(self) -> bool:
        return holds(self.fd, self._expected, self._known)

    def check(self, target: Target) -> None:
        """Raise `Changed` unless the name stands for it and it has the expected bytes."""
        if not names(target, self.status) or not self.unchanged():
            raise Changed

    def settle(self) -> None:
        """Let those who wait write to it, until they have closed it.

        Raises:
            _StillOpen: They have not done so in time.
        """
        if self.lease == "held":
            self.drop()
            self.take_or_fail(CLOSE_WAIT)

    def still_expected(self) -> bool:
        """Whether it holds the expected bytes now that it has lost its name, after any who were writing to it."""
        if self.undisturbed() and time.monotonic() < self._until:
            return True
        self.settle()
        return self.unchanged()


def _create(target: Target, new: Sequence[bytes | memoryview], mode: int | None) -> Stamp:
    try:
        with suppress(FileNotFoundError):
            os.stat(target.name, dir_fd=target.dir_fd, follow_symlinks=False)
            raise Changed
        with Temp(target, 0o666) as temp:
            temp.fill(new)
            if mode is not None:
                os.fchmod(temp.fd, mode)
            os.fsync(temp.fd)
            temp.put_new()
            temp.sync_directory()
            return stamp_of(os.fstat(temp.fd))
    except FileExistsError:
        raise Changed from None
    except NotBeside as reason:
        raise Refused(f"Could not create {target.path}: {reason}.", code="read_only") from None
    except OSError as error:
        raise failure(error, target.path, "write") from None


def _replace(target: Target, new: Sequence[bytes | memoryview], old: _Old, mode: int | None) -> Stamp:
    """Put a new file in the place of the old one.

    Raises:
        NotBeside: That cannot be done here; nothing has happened.
    """
    hurry = _contended.at(target.path)
    if _kept_open.at(target.path):  # waiting again would only see the next lines of a log come in
        _refuse_open(target, old, 0.0)
        old.drop()
    try:
        with Temp(target, 0o600) as temp:
            if temp.waited or hurry:  # no use in making ready what is out of date
                old.check(target)
            temp.own(old.status)
            temp.fill(new)
            temp.dress(old.fd, old.status, mode)
            (_syscalls.push_data if hurry else os.fsync)(temp.fd)
            guarded = False
            try:
                _refuse_open(target, old, LEASE_WAIT)
                guarded = lease(temp.fd, "write", TEMP_WAIT) == "held"
                old.check(target)
                _swap(temp, old, hurry=hurry)
                return stamp_of(os.fstat(temp.fd))
            finally:
                old.drop()
                if guarded:
                    _syscalls.drop_lease(temp.fd)
    except Changed:
        _contended.note(target.path)
        raise
    except FileNotFoundError:  # the name is gone, or the whole directory
        raise Changed from None
    except OSError as error:
        raise failure(error, target.path, "write") from None


def _refuse_open(target: Target, old: _Old, wait: float) -> None:
    old.take(wait)
    if old.lease == "in_use":
        _kept_open.note(target.path)
        raise _OpenElsewhere("another program has it open for writing")
    # Nobody keeps it open: only a save had taken long. Written in place, the next one could be overwritten under way.
    _kept_open.forget(target.path)


def _swap(temp: Temp, old: _Old, *, hurry: bool) -> None:
    """Exchange, and make sure that what came out is what was to be replaced; else undo, and raise `Changed`."""
    try:
        exchanged = temp.exchange()
        if not exchanged:
            if hurry:
                os.fsync(temp.fd)
                old.check(temp.target)
            temp.replace()
    except OSError as error:
        if error.errno in _NO_RENAME:
            why = f"it cannot be replaced ({(error.strerror or '').lower()})"
            raise NotBeside(why) from None
        raise
    since = time.monotonic()
    how = ("exchange" if exchanged else "replace") + (" with leases" if old.lease == "held" else "")
    if exchanged and not same_file(temp.inside(), old.status):
        old.drop()  # not the one to look after; others may wait for it
        _keep_other(temp)
        raise Changed
    try:
        if old.still_expected():
            if hurry:
                os.fsync(temp.fd)
            with suppress(*() if exchanged else (OSError,)):  # what has been replaced is gone: no use in failing
                temp.sync_directory()
            if hurry:
                time.sleep(max(0.0, since + LOOK_AFTER - time.monotonic()))
            if old.still_expected():
                temp.discard()
                _log.debug("%s: %s", temp.target.path, how)
                return
        _undo(temp, old)
    except _StillOpen:
        if not exchanged:  # there is no going back
            return
        _log.debug("%s: given back to a program that has it open", temp.target.path)
        temp.give_back()
    raise Changed


def _keep_other(temp: Temp) -> None:
    """Undo after an exchange that brought out a file that somebody had just put at the name."""
    try:
        opened = open_regular(temp.target, os.O_RDONLY, temp.name)
    except Refused:  # a link, a directory, held for ever
        temp.give_back()
        return
    if opened is None:
        return
    other = _Old(*opened, "", None)
    try:
        other.take_or_fail(CLOSE_WAIT)
        _undo(temp, other)
    except _StillOpen:
        temp.give_back()
    finally:
        other.drop()
        os.close(other.fd)


def _undo(temp: Temp, theirs: _Old) -> None:
    """Copy the bytes of somebody else into the new file, which is at the name.

    Raises:
        _StillOpen: They go on writing to theirs.
    """
    try:
        while True:
            copy_bytes(theirs.fd, temp.fd)
            temp.own(os.fstat(theirs.fd))
            temp.dress(theirs.fd, os.fstat(theirs.fd))
            os.fsync(temp.fd)
            if theirs.lease != "held" or theirs.undisturbed():
                break
            theirs.settle()
    except (OSError, NotBeside):  # no space, an owner that cannot be given: then theirs stays as it is
        temp.give_back()
        return
    temp.discard()


def _take_away(temp: Temp, old: _Old) -> None:
    target = temp.target
    try:
        old.take(LEASE_WAIT)
        if old.lease == "in_use":
            raise Refused(f"{target.path} is open in another program. Try again later.", code="busy")
        old.check(target)
        temp.take_away()
        right = False
        with suppress(_StillOpen):
            right = same_file(temp.inside(), old.status) and old.still_expected()
        if not right:
            temp.bring_back()
            raise Changed
        temp.sync_directory()
        temp.discard()
    except FileNotFoundError:
        raise Changed from None
    finally:
        old.drop()
