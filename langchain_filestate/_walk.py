"""To a directory below a root, one descriptor after the other, following no link.

Each component is opened relative to the descriptor before it with `O_NOFOLLOW | O_DIRECTORY` (openat(2)), so that a
directory swapped for a link, at any moment, is found out and not followed. Where the system has no such calls the same
is checked by name, with a moment left for a swap, and the "descriptor" is `NO_DESCRIPTOR`.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, NoReturn

from langchain_filestate._rules import brief, plain
from langchain_filestate.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

NO_DESCRIPTOR = -1

_RELATIVE = {os.open, os.mkdir, os.stat, os.rmdir} <= os.supports_dir_fd and os.scandir in os.supports_fd
_HELD = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_PASSED = _HELD | getattr(os, "O_PATH", 0)  # needs no permission to list it, but can be neither listed nor synced


@dataclass(slots=True)
class Root:
    """A root's real path, and which directory was there when it was last looked at."""

    path: str
    identity: tuple[int, int] = field(default=(0, 0))
    """`(st_dev, st_ino)`. Another directory at the path is taken only while the path still leads there by itself."""

    def open(self, flags: int) -> int:
        """Open the directory, or refuse if it went away or a link stands in its place."""
        try:
            try:
                fd = os.open(self.path, flags)
            except PermissionError:
                fd = os.open(self.path, _PASSED)
        except OSError as why:
            self._refuse_gone(why)
        status = os.fstat(fd)
        if (status.st_dev, status.st_ino) != self.identity:
            try:
                self.check()
            except Refused:
                os.close(fd)
                raise
            self.identity = status.st_dev, status.st_ino
        return fd

    def check(self) -> None:
        """Refuse if the path is no directory any more, or leads there only through a link."""
        try:
            real = os.path.realpath(self.path, strict=True)
        except OSError as why:
            self._refuse_gone(why)
        if real != self.path:
            raise Refused(
                f"A link took the place of the workspace {plain(self.path)}. Tell the user.", code="outside_root"
            )

    def _refuse_gone(self, why: OSError) -> NoReturn:
        raise Refused(
            f"The workspace {plain(self.path)} cannot be opened ({why.strerror}). Tell the user.", code="io_error"
        ) from None


def refuse_error(why: OSError, shown: str) -> NoReturn:
    """Turn what the system says about a path into a refusal."""
    if why.errno == errno.ENAMETOOLONG:
        raise Refused(f"{shown} is too long for this file system. Give a shorter name.", code="bad_path") from None
    if why.errno == errno.ELOOP:
        raise Refused(
            f"{shown} goes through symbolic links that lead in a circle. Give a path without them.", code="symlink"
        ) from None
    raise Refused(
        f"{shown} cannot be reached: {why.strerror}. Use another path, or ask the user.", code="io_error"
    ) from None


def refuse_parent(component: str, shown: str) -> NoReturn:
    """Say which component is in the way."""
    raise Refused(
        f"{shown} cannot exist: {plain(component)} is not a directory. Check the path, or use another one.",
        code="parent_not_directory",
    )


def enter(root: Root, names: Sequence[str], given: str, made: list[str] | None = None) -> int:
    """Open a directory below a root.

    Args:
        root: Where the walk begins.
        names: Components below it, none of them a link when they were judged.
        given: The path that the caller asked for, for messages.
        made: Where directories that had to be made are noted, outermost first; None to make none.

    Returns:
        A descriptor that the caller closes; `NO_DESCRIPTOR` where the system has no calls relative to a directory.

    Raises:
        Refused: `not_found`, `symlink`, `parent_not_directory`, `outside_root`, `read_only`, `bad_path`, `io_error`.
    """
    if not _RELATIVE:
        _enter_by_name(root, names, given, made)
        return NO_DESCRIPTOR
    fd = root.open(_PASSED if names else _HELD)
    path = root.path.rstrip(os.sep)
    for i, name in enumerate(names):
        path += os.sep + name
        above = fd
        try:
            fd = _step(above, name, path, given, made, final=i == len(names) - 1)
        finally:
            os.close(above)
    return fd


def _step(fd: int, name: str, path: str, given: str, made: list[str] | None, *, final: bool) -> int:
    flags = _HELD if final else _PASSED
    try:
        try:
            return os.open(name, flags, dir_fd=fd)
        except FileNotFoundError:
            _make(path, given, made, lambda: os.mkdir(name, dir_fd=fd))
            return os.open(name, flags, dir_fd=fd)
        except PermissionError:
            return os.open(name, _PASSED, dir_fd=fd)
    except OSError as why:
        try:
            mode = os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode
        except OSError:
            mode = stat.S_IFDIR
        _refuse_step(mode, why, path, given)


def _enter_by_name(root: Root, names: Sequence[str], given: str, made: list[str] | None) -> None:
    root.check()
    path = root.path
    for name in names:
        path = os.path.join(path, name)
        try:
            if not os.path.lexists(path):
                _make(path, given, made, lambda: os.mkdir(path))  # noqa: B023  called at once
            mode = os.lstat(path).st_mode
        except OSError as why:
            refuse_error(why, brief(given))
        if not stat.S_ISDIR(mode):
            _refuse_step(mode, OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)), path, given)


def _make(path: str, given: str, made: list[str] | None, mkdir: Callable[[], None]) -> None:
    if made is None:
        raise Refused(
            f"{brief(given)} does not exist: there is no directory {plain(path)}. Check the path, or list what is "
            "there.",
            code="not_found",
        )
    try:
        mkdir()
    except FileExistsError:
        return  # somebody else made it meanwhile
    except OSError as why:
        if why.errno not in {errno.EACCES, errno.EPERM, errno.EROFS}:
            raise
        raise Refused(
            f"The directory {plain(path)} cannot be made: {why.strerror}. Write elsewhere, or ask the user.",
            code="read_only",
        ) from None
    made.append(path)


def _refuse_step(mode: int, why: OSError, path: str, given: str) -> NoReturn:
    if stat.S_ISLNK(mode):
        raise Refused(
            f"{plain(path)} became a symbolic link just now, so {brief(given)} was not opened. Try again.",
            code="symlink",
        ) from None
    if not stat.S_ISDIR(mode):
        refuse_parent(path, brief(given))
    if why.errno in {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}:  # it comes and goes
        raise Refused(f"{plain(path)} is being changed by somebody else. Try again.", code="busy") from None
    refuse_error(why, brief(given))


def unmake(root: Root, made: Sequence[str]) -> None:
    """Remove directories that were made for a write that did not happen, as far as they are still empty."""
    for path in reversed(made):
        *names, name = os.path.relpath(path, root.path).split(os.sep)
        with suppress(Refused, OSError):
            fd = enter(root, names, path)
            if fd == NO_DESCRIPTOR:
                os.rmdir(path)
                continue
            try:
                os.rmdir(name, dir_fd=fd)
            finally:
                os.close(fd)


def entries(root: Root, names: Sequence[str], most: int) -> list[tuple[str, bool]] | None:
    """List a directory below a root: names, and whether each is a directory itself (not a link to one).

    Args:
        root: Where the walk begins.
        names: Components below it.
        most: How many entries are looked at.

    Returns:
        None if there is no such directory, or it may not be listed.
    """
    with suppress(Refused, OSError), ExitStack() as held:
        fd = enter(root, names, "")
        if fd != NO_DESCRIPTOR:
            held.callback(os.close, fd)
        where = os.path.join(root.path, *names) if fd == NO_DESCRIPTOR else fd
        with os.scandir(where) as found:
            return [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in islice(found, most)]
    return None
