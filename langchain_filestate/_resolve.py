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
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_MAX_LINKS = 40
"""As many as the kernel follows in one path (path_resolution(7))."""

_KERNEL = ("/proc/", "/sys/", "/dev/")
_NOWHERE = frozenset({"", "."})


def below(path: str, root: str) -> str | None:
    """Give the part of a path below a root: empty for the root itself, None if it is not inside."""
    if path == root:
        return ""
    prefix = root if root.endswith(os.sep) else root + os.sep
    return path[len(prefix) :] if path.startswith(prefix) else None


def inside(path: str, roots: Iterable[str]) -> bool:
    """Tell whether a path is a root or below one, by its components (`/rootx` is not in `/root`)."""
    return any(below(path, root) is not None for root in roots)


def of_the_kernel(path: str) -> bool:
    """Tell whether a path leads into a file system that shows the kernel's own objects as files."""
    whole = path + "/"
    return whole.startswith(_KERNEL) and not whole.startswith("/dev/shm/")  # noqa: S108  compared, not used


def resolve(path: str, spellings: Mapping[str, str]) -> Resolved | None:
    """Follow a path's links.

    Args:
        path: Absolute.
        spellings: Each spelling of a root to its real path, the shortest first; the real paths are among the keys.

    Returns:
        None if it does not lead into a root.
    """
    found = Resolved(path, spellings)
    return found if found.arrive() else None


class Resolved:
    """A path on its way through its links; after `arrive` where it leads, and what was found on the way."""

    path: str
    """Real and absolute, as far as it exists (above the roots: as far as it was asked); the rest as it was spelled."""
    mode: int | None = stat.S_IFDIR
    """`st_mode` of what is there, None if nothing is."""
    link: str | None = None
    """The last component as given, if it is a link: its own path, with a real directory part."""
    missing: str | None = None
    """The first component that does not exist."""
    blocked: str | None = None
    """A component that is no directory although more follows."""
    dangling: bool = False
    """Whether what does not exist is where a link in the directory part leads."""
    error: OSError | None = None
    """Why it is not known what is there: too many links, a name too long, no permission."""
    crossed: list[str]
    """Links that were followed and places that were left by `..`, by their own paths."""

    _inside = True  # whether `path` is a root or below one: only then it is looked at
    _links = 0
    _expanding = 0  # the size of the stack below which it holds nothing of a link's target

    def __init__(self, path: str, spellings: Mapping[str, str]) -> None:
        self._spellings = spellings
        self._todo: list[str] = []  # a stack of what follows
        self.crossed = []
        self._start(path)

    def _start(self, path: str) -> None:
        """Begin at a root that holds an absolute path, or at the top: what is above a root is not looked at."""
        for spelled, real in self._spellings.items():
            if (rest := below(path, spelled)) is not None:
                self.path, self._inside = real, True
                self._todo += rest.split(os.sep)[::-1]
                return
        top = os.path.splitdrive(path)[0] + os.sep
        self.path, self._inside = self._spellings.get(top, top), top in self._spellings
        self._push(path)

    def _push(self, path: str) -> None:
        """Put a path's components on the stack, the first on top."""
        _, rest = os.path.splitdrive(path)
        self._todo += (rest.replace(os.altsep, os.sep) if os.altsep else rest).split(os.sep)[::-1]

    def arrive(self) -> bool:
        """Go to the end of the path; tell whether that is inside a root."""
        self._go()
        if not self._inside and not of_the_kernel(self.path) and self._enter_by_another_spelling():
            self._go()
        return self._inside

    def _go(self) -> None:
        todo = self._todo
        while todo:
            name = todo.pop()
            if len(todo) < self._expanding:
                self._expanding = 0
            if name == "..":
                self._up()
            elif name not in _NOWHERE:
                self._down(name)

    def _up(self) -> None:
        if self._inside:
            self.crossed.append(self.path)
        self.path = os.path.dirname(self.path)
        self._inside = self._inside and inside(self.path, self._spellings.values())
        if self.missing and below(self.path, self.missing) is None:
            self.missing, self.error, self.dangling = None, None, False
        if self.blocked and below(self.path, self.blocked) is None:
            self.blocked = None
        self.mode = None if self.missing else stat.S_IFDIR

    def _down(self, name: str) -> None:
        above = self.path
        deeper = above + name if above.endswith(os.sep) else above + os.sep + name
        if not self._inside:
            self.path, self._inside = self._spellings.get(deeper, deeper), deeper in self._spellings
            return
        if self.mode is not None and not stat.S_ISDIR(self.mode):
            self.blocked, self.mode = self.blocked or above, None
        if self.missing or self.blocked:
            self.path = deeper
            return
        try:
            self.mode = os.lstat(deeper).st_mode
            if stat.S_ISLNK(self.mode):
                self._follow(deeper)
            else:
                self.path = deeper
        except OSError as why:
            if why.errno == errno.EINVAL and self._links < _MAX_LINKS:  # readlink(2): no link any more; look again
                self._links += 1
                self._todo.append(name)
                self.mode = stat.S_IFDIR
                return
            self.path, self.mode, self.missing = deeper, None, deeper
            self.dangling = self._expanding > 0
            self.error = None if isinstance(why, FileNotFoundError | NotADirectoryError) else why

    def _follow(self, link: str) -> None:
        if self._links >= _MAX_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        target = os.readlink(link)
        self._links += 1
        self.crossed.append(link)
        if all(name in _NOWHERE for name in self._todo):
            self.link = self.link or link
        elif not self._expanding:
            self._expanding = len(self._todo)
        self.mode = stat.S_IFDIR
        if os.path.isabs(target):
            self._start(target)
        else:
            self._push(target)

    def _enter_by_another_spelling(self) -> bool:
        """Find the shortest directory of the path that really is inside a root, and go on from there."""
        names = self.path.split(os.sep)
        for i in range(1, len(names)):
            real = os.path.realpath(os.sep.join(names[:i]) or os.sep)
            if inside(real, self._spellings.values()):
                self.path, self._inside = real, True
                self._todo += names[: i - 1 : -1]
                return True
        return False
