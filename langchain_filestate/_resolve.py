"""Where a path really leads: links followed by name, one component at a time, without opening anything.

The kernel's way of reading a path is followed below the roots: `..` after a link is the parent of the link's target.
It differs in what it keeps: every link on the way and every place left by `..`, since a rule has to hold there too; and
in going on by name past a component that does not exist, so that a verdict about roots and rules does not depend on it.

Above the roots nothing is looked at: components are taken as they are spelled until a root is reached. Only if none
is, a last attempt asks whether a directory of the path is another spelling of one inside a root (`/tmp/x` for
`/private/tmp/x`). `/proc`, `/sys` and `/dev` get no such attempt: their links name open files and processes.

All of this is by name and may be out of date a moment later. It decides what to open; it does not protect the opening,
which `_workspace` does by walking the real path again without following links.
"""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_MAX_LINKS = 40
"""As many as the kernel follows in one path (path_resolution(7))."""

_KERNEL = ("/proc", "/sys", "/dev")
_NOWHERE = frozenset({"", "."})


@dataclass(frozen=True, slots=True)
class Resolved:
    """A path inside a root, and what was found on the way."""

    path: str
    """Real and absolute, as far as it exists; the rest as it was spelled."""
    mode: int | None
    """`st_mode` of what is there, None if nothing is."""
    link: str | None
    """The last component as given, if it is a link: its own path, with a real directory part."""
    missing: str | None
    """The first component that does not exist."""
    blocked: str | None
    """A component that is no directory although more follows."""
    dangling: bool
    """Whether what does not exist is where a link in the directory part leads."""
    error: OSError | None
    """Why it is not known what is there: too many links, a name too long, no permission."""
    crossed: tuple[str, ...]
    """Links that were followed and places that were left by `..`, by their own paths."""


def below(path: str, root: str) -> str | None:
    """Give the part of a path below a root: empty for the root itself, None if it is not inside."""
    if path == root:
        return ""
    prefix = root if root.endswith(os.sep) else root + os.sep
    return path[len(prefix) :] if path.startswith(prefix) else None


def inside(path: str, roots: Iterable[str]) -> bool:
    """Tell whether a path is a root or below one, by its components (`/rootx` is not in `/root`)."""
    for root in roots:  # noqa: SIM110  a third of the time of any() over a generator, and called for each component
        if below(path, root) is not None:
            return True
    return False


def of_the_kernel(path: str) -> bool:
    """Tell whether a path leads into a file system that shows the kernel's own objects as files."""
    return inside(path, _KERNEL) and not inside(path, ("/dev/shm",))  # noqa: S108  compared, not used


def resolve(path: str, spellings: Mapping[str, str]) -> Resolved | None:
    """Follow a path's links.

    Args:
        path: Absolute.
        spellings: Each spelling of a root to its real path; the real paths are among the keys.

    Returns:
        None if it does not lead into a root.
    """
    return _Way(path, spellings).end()


class _Way:
    """A path on its way: `at` is real as far as it is inside a root, `todo` a stack of what follows."""

    def __init__(self, path: str, spellings: Mapping[str, str]) -> None:
        self._spellings = spellings
        self._roots = frozenset(spellings.values())
        self._todo: list[str] = []
        self._mode: int | None = stat.S_IFDIR
        self._link: str | None = None
        self._missing: str | None = None
        self._blocked: str | None = None
        self._error: OSError | None = None
        self._dangling = False
        self._crossed: list[str] = []
        self._links = 0
        self._expanding: int | None = None  # the size of the stack below which it holds nothing of a link's target
        self._at = self._start(path)

    def _start(self, path: str) -> str:
        """Put a path's components on the stack, the first on top; those above a root are not needed."""
        head = min((spelled for spelled in self._spellings if below(path, spelled) is not None), key=len, default="")
        if head:
            self._todo += path[len(head) :].split(os.sep)[::-1]
            return self._spellings[head]
        drive, rest = os.path.splitdrive(path)
        self._todo += (rest.replace(os.altsep, os.sep) if os.altsep else rest).split(os.sep)[::-1]
        return self._spellings.get(drive + os.sep, drive + os.sep)

    def end(self) -> Resolved | None:
        self._go()
        if not inside(self._at, self._roots):
            if of_the_kernel(self._at) or not self._enter_by_another_spelling():
                return None
            self._go()
            if not inside(self._at, self._roots):
                return None
        return Resolved(
            self._at,
            self._mode,
            self._link,
            self._missing,
            self._blocked,
            self._dangling,
            self._error,
            tuple(self._crossed),
        )

    def _go(self) -> None:
        while self._todo:
            name = self._todo.pop()
            if self._expanding is not None and len(self._todo) < self._expanding:
                self._expanding = None
            if name == "..":
                self._up()
            elif name not in _NOWHERE:
                self._down(name)

    def _up(self) -> None:
        if inside(self._at, self._roots):
            self._crossed.append(self._at)
        self._at = os.path.dirname(self._at)
        if self._missing and below(self._at, self._missing) is None:
            self._missing, self._error, self._dangling = None, None, False
        if self._blocked and below(self._at, self._blocked) is None:
            self._blocked = None
        self._mode = None if self._missing else stat.S_IFDIR

    def _down(self, name: str) -> None:
        deeper = self._at + name if self._at.endswith(os.sep) else self._at + os.sep + name
        if not inside(self._at, self._roots):
            self._at = self._spellings.get(deeper, deeper)
            return
        if self._mode is not None and not stat.S_ISDIR(self._mode):
            self._blocked, self._mode = self._blocked or self._at, None
        if self._missing or self._blocked:
            self._at = deeper
            return
        try:
            self._mode = os.lstat(deeper).st_mode
            if stat.S_ISLNK(self._mode):
                self._follow(deeper)
            else:
                self._at = deeper
        except OSError as why:
            if why.errno == errno.EINVAL and self._links < _MAX_LINKS:  # readlink(2): no link any more; look again
                self._links += 1
                self._todo.append(name)
                self._mode = stat.S_IFDIR
                return
            self._at, self._mode, self._missing = deeper, None, deeper
            self._dangling = self._expanding is not None
            self._error = None if isinstance(why, FileNotFoundError | NotADirectoryError) else why

    def _follow(self, link: str) -> None:
        if self._links >= _MAX_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        target = os.readlink(link)
        self._links += 1
        self._crossed.append(link)
        if all(name in _NOWHERE for name in self._todo):
            self._link = self._link or link
        elif self._expanding is None:
            self._expanding = len(self._todo)
        self._mode = stat.S_IFDIR
        absolute = os.path.isabs(target)
        start = self._start(target)
        self._at = start if absolute else self._at

    def _enter_by_another_spelling(self) -> bool:
        """Find the shortest directory of the path that really is inside a root, and go on from there."""
        names = self._at.split(os.sep)
        for i in range(1, len(names)):
            real = os.path.realpath(os.sep.join(names[:i]) or os.sep)
            if inside(real, self._roots):
                self._at, self._todo = real, names[: i - 1 : -1]
                return True
        return False
