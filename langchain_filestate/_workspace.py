"""From a path that the model writes to a place where bytes may be read or put.

`Workspace.locate` judges a path by its name: it gives the one spelling (real and absolute) that records, locks, rules
and the history use, or refuses. In this order, so that a refusal tells nothing about what is denied or outside, not
even whether it exists: `bad_path`, `outside_root`, `denied`, `read_only`, `symlink`, `parent_not_directory`,
`is_directory`, `not_a_file`. Absent files are left to the caller, except where a name beside it looks the same.

`Workspace.open` walks that real path from its root, one directory descriptor after the other, following no link
(openat(2), `O_NOFOLLOW`). A directory that was swapped for a link after `locate` is refused there, and what is done
through the `Target`'s descriptor happens in the directory that was judged, whatever becomes of its name.

Limits. A hard link or a bind mount inside a root shows what it shows: the file system keeps no record of another name.
A directory that somebody moves out of the root while a call holds it takes the call's file along. The root is opened by
its path at each call and compared with what it was; if it is another directory by then, it is taken only if its path
still leads there without a link. On a file system that takes `A.txt` and `a.txt` for one file, rules cover both, but
records keep them apart. Where the system has no calls relative to a directory (Windows), directories are checked by
name just before they are used, `Target.dir_fd` is -1, and a moment for a swap remains.
"""

from __future__ import annotations

import difflib
import os
import re
import stat
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from langchain_filestate._fence import Fence
from langchain_filestate._resolve import below, of_the_kernel
from langchain_filestate._rules import alike, brief, escaped, fold, plain, similar
from langchain_filestate._walk import NO_DESCRIPTOR, enter, entries, refuse_error, refuse_parent, unmake
from langchain_filestate.errors import Refused, WiringError, check_bool

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager

    from langchain_filestate._resolve import Resolved
    from langchain_filestate._walk import Root

_MAX_NAME = 255  # bytes of one component, and
_MAX_PATH = 4095  # of a path, on Linux (limits.h); where less is allowed the system says so
_MAX_ENTRIES = 10_000  # names of one directory that are looked at for one that looks the same
_MAX_SEARCH = 2_000  # names, and
_MAX_SEARCHED = 100  # directories, that are looked at for suggestions
_SUGGESTIONS = 3

_IMPOSSIBLE = re.compile("[\0\ud800-\udfff]")  # in no name that this process could pass on and write down
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")
_ADDRESS = re.compile(r"[A-Za-z][\w+.-]+://")
# The ends of a path that asks for a directory, whatever is there.
_AS_DIRECTORY = tuple(sep + name for sep in {os.sep, os.altsep or os.sep} for name in ("", ".", ".."))


class Location(NamedTuple):
    """A path inside the workspace that the rules allow."""

    path: str
    """Real and absolute: the one spelling of this file."""
    given: str
    """As the caller spelled it."""
    root: str
    """The real path of the innermost root that holds it."""
    parts: tuple[str, ...]
    """Its components below that root, the file's name last."""
    note: str | None = None
    """What the model should be told: that a file with another name, which looks the same, was taken."""


class Target(NamedTuple):
    """A name in an open directory; valid inside `Workspace.open` only."""

    dir_fd: int
    """The parent directory. It can be listed and synced, unless this process may not read it (then it is `O_PATH`).
    -1 where the system has no calls relative to a directory: use `path`."""
    name: str
    """The name in that directory. Open it without following a link."""
    path: str
    """Real and absolute, for messages."""
    made: tuple[str, ...]
    """Parents that were made for it, outermost first, real and absolute."""


class Workspace:
    """The directories that the tools may reach, and the rules in them.

    Args:
        root: Where relative paths start.
        extra_roots: More directories, reached by absolute paths.
        deny: Gitignore rules, taken from each root: no reading, no writing.
        read_only: Gitignore rules: no writing.
        virtual: Whether a path that begins with `/` starts at the root. A path that begins with a root's own path is
            still that path (results name files so), unless the root holds directories of these names. `..` and `~`
            are refused then.

    Attributes:
        root: The real path of the first root.
        roots: The real paths of all roots, the first one first.

    Raises:
        WiringError: A root is no directory, or a rule can never match.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        extra_roots: Sequence[str | os.PathLike[str]] = (),
        deny: Sequence[str] = (),
        read_only: Sequence[str] = (),
        virtual: bool = False,
    ) -> None:
        if isinstance(extra_roots, str | os.PathLike):
            raise WiringError(f"extra_roots takes a list of directories: write extra_roots=[{str(extra_roots)!r}].")
        self._fence = Fence((root, *extra_roots), deny=deny, read_only=read_only)
        check_bool("virtual", virtual)
        self._virtual = virtual
        self.roots: tuple[str, ...] = tuple(self._fence.roots)
        self.root = Path(self.roots[0])
        self._room = _MAX_PATH - len(os.fsencode(self.roots[0]))

    def __repr__(self) -> str:
        return f"Workspace({', '.join(self.roots)})"

    # ---- judging by name --------------------------------------------------------------------------------------------

    def locate(self, file_path: str, *, write: bool) -> Location:
        """Find out which file a path means, and whether it may be read, or written.

        Nothing is opened. The file may be absent, and its directory, too.

        Args:
            file_path: Absolute, or relative to the root; `~` is the home directory.
            write: Whether it is to be changed. Reading follows a link at the end, writing does not.

        Raises:
            Refused: `bad_path`, `outside_root`, `denied`, `read_only`, `symlink`, `parent_not_directory`,
                `is_directory`, `not_a_file`; `not_found` if it is to be written, is absent, and another name looks
                the same; `io_error` if the system does not say what is there.
        """
        return self._locate(file_path, self._spelled(file_path), write=write)

    def at(self, path: str, *, write: bool) -> Location:
        """Like `locate`, for a path that `locate` gave before: no `~`, no virtual root, no look-alikes.

        Args:
            path: Real and absolute, from a record or the history. If a link stands on it now, the location's path is
                another one.
            write: Whether it is to be changed.
        """
        if not os.path.isabs(path) or _IMPOSSIBLE.search(path):
            raise _bad(f"{brief(path)} is not a real absolute path.")
        return self._locate(path, path, write=write, exact=True)

    def disguised(self, file_path: str, name: str) -> bool:
        """Tell whether a path with another last name may still mean a file of this name: a link, or a look-alike."""
        if alike(os.path.basename(file_path)) == alike(name):
            return True
        try:
            return os.path.islink(self._spelled(file_path).rstrip(os.sep))
        except Refused:
            return False

    def writable(self, path: str) -> bool:
        """Tell whether a real absolute path is one that these tools may write: a regular file, or nothing yet."""
        try:
            return self.at(path, write=True).path == path
        except Refused:
            return False

    def _spelled(self, given: str) -> str:
        """Make a path absolute; refuse what can be no path here."""
        first = self.roots[0]
        if not given.strip():
            raise _bad("file_path is empty. Give the path of a file, absolute or relative to the workspace.")
        if _IMPOSSIBLE.search(given):
            raise _bad(f"{brief(given)} holds a character that no file name can hold. Give the path without it.")
        if os.name == "posix" and _DRIVE.match(given):
            raise _bad(
                f"{brief(given)} is a path of another system. Give a path below {plain(first)}, with / between names."
            )
        if _ADDRESS.match(given):
            raise _bad(f"{brief(given)} is an address, not a path. Give a path below {plain(first)}.")
        encoded = os.fsencode(given)
        if len(encoded) >= self._room or max(map(len, encoded.split(b"/"))) > _MAX_NAME:
            raise _bad(f"{brief(given)} is too long: a name may have {_MAX_NAME} bytes. Give a shorter path.")
        path = given
        if path.startswith("~"):
            path = given if self._virtual else os.path.expanduser(given)
            if path == given and (path == "~" or "/" in path):
                raise _bad(f"{brief(given)} begins with ~, which means nothing here. Give a path below {plain(first)}.")
        return os.path.join(first, self._from_root(path) if self._virtual else path)

    def _from_root(self, given: str) -> str:
        """Read a virtual path: `/` at its beginning is the root."""
        path = given
        if path.startswith("/"):
            path = "/" + path.lstrip("/")
            rests = [s for s in self._fence.spellings if below(os.path.normpath(path), s) is not None]
            if not rests or any(os.path.lexists(os.path.join(self.roots[0], s.lstrip("/"))) for s in rests if s != "/"):
                path = path[1:] or "."
        if ".." in path.split("/"):
            if os.path.normpath(path).startswith(".."):
                raise self._fence.outside(given)
            raise _bad(f"{brief(given)} holds '..'. Give the path from the root, /, without it.")
        return path

    def _locate(self, given: str, path: str, *, write: bool, exact: bool = False) -> Location:
        found = self._fence.judge(given, path, write=write)
        mode = found.mode
        if found.error is not None:
            refuse_error(found.error, brief(given))
        if write and found.link is not None:
            raise Refused(
                f"Refusing to write {plain(found.link)}: it is a symbolic link. "
                f"Write to the link's target path instead: {plain(found.path)}",
                code="symlink",
            )
        if write and found.dangling:
            raise Refused(
                f"Refusing to write {brief(given)}: a symbolic link in it leads to nothing. "
                f"Write to the real path instead: {plain(found.path)}",
                code="symlink",
            )
        if found.blocked is not None:
            refuse_parent(found.blocked, brief(given))
        if path.endswith(_AS_DIRECTORY) or found.path in self._fence.roots:
            if mode is not None and not stat.S_ISDIR(mode):
                refuse_parent(found.path, brief(given))
            mode = stat.S_IFDIR
        if mode is not None and stat.S_ISDIR(mode):
            raise Refused(
                f"{brief(given)} names a directory, not a file. List it, and give the path of a file in it.",
                code="is_directory",
            )
        if (mode is not None and not stat.S_ISREG(mode)) or of_the_kernel(found.path):
            raise Refused(
                f"{brief(given)} is not a regular file but {_kind(mode)}, which these tools do not open. Use another "
                "path.",
                code="not_a_file",
            )
        if found.missing is None or exact:
            return self._placed(given, found)
        return self._absent(given, found, write=write)

    def _placed(self, given: str, found: Resolved, note: str | None = None) -> Location:
        try:
            found.path.encode()
        except UnicodeEncodeError:
            raise _bad(f"The real name behind {brief(given)} is not valid Unicode. Rename it first.") from None
        root, parts = self._fence.split(found.path)
        return Location(found.path, given, root.path, parts, note)

    # ---- names beside it --------------------------------------------------------------------------------------------

    def _absent(self, given: str, found: Resolved, *, write: bool) -> Location:
        """Look for another name that looks the same: taken for reading if there is one, never guessed for writing."""
        missing = found.missing or found.path
        above, name = os.path.split(missing)
        root, names = self._fence.split(above)
        twins = [
            other
            for other, _ in entries(root, names, _MAX_ENTRIES) or ()
            if other != name and alike(other) == alike(name) and not self._fence.closed(os.path.join(above, other))
        ]
        if twins and write:
            raise Refused(
                f"{brief(given)} does not exist, but {escaped(twins[0])} does, which looks the same. Write that name "
                "exactly so, escapes as in JSON, or choose one that looks different.",
                code="not_found",
            )
        rest = found.path[len(missing) :]
        if len(twins) == 1:
            other = self._locate(given, os.path.join(above, twins[0]) + rest, write=False)
            note = f"{brief(given)} does not exist. {escaped(other.path)}, which looks the same, was taken instead."
            return Location(other.path, given, other.root, other.parts, note)
        if os.name == "posix" and "\\" in name + rest:
            raise _bad(f"{brief(given)} does not exist. Write / instead of \\ between the names of a path.")
        return self._placed(given, found)

    def suggest(self, location: Location) -> str:
        """Name what may have been meant by a path that does not exist.

        Looks at names like the missing one beside it, then for the file's name in other directories of its root: at
        most 2,000 names. Nothing that a rule denies is named.

        Returns:
            One sentence with up to three paths, relative to the root where that is enough; empty if nothing is near.
        """
        root = self._fence.roots[location.root]
        likely = dict.fromkeys([*self._beside(root, location.parts), *self._elsewhere(root, location.parts)])
        meant = os.path.join(*location.parts)
        shown = []
        for parts in list(likely)[:_SUGGESTIONS]:
            below_root = os.path.join(*parts)
            show = escaped if similar(below_root, meant) else plain
            shown.append(show(below_root if root.path == self.roots[0] else os.path.join(root.path, below_root)))
        if not shown:
            return ""
        return f"Did you mean {' or '.join(filter(None, [', '.join(shown[:-1]), shown[-1]]))}?"

    def _beside(self, root: Root, parts: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        """Names like the first one that does not exist, in the deepest directory that does."""
        depth = len(parts) - 1
        while (found := entries(root, parts[:depth], _MAX_SEARCH)) is None and depth:
            depth -= 1
        wanted = parts[depth]
        same = [name for name, _ in found or () if name != wanted and similar(name, wanted)]
        names = {fold(name): name for name, _ in found or ()}
        close = difflib.get_close_matches(fold(wanted), names, n=2 * _SUGGESTIONS, cutoff=0.7)
        for name in [*sorted(same), *(names[near] for near in close)]:
            candidate = (*parts[:depth], name, *parts[depth + 1 :])
            if self._fence.shows(os.path.join(root.path, *candidate)):
                yield candidate

    def _elsewhere(self, root: Root, parts: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        """The same file name in other directories, nearest to the root first; hidden directories are left out."""
        wanted, left = fold(parts[-1]), _MAX_SEARCH
        queue: list[tuple[str, ...]] = [()]
        for names in queue:
            found = entries(root, names, left) or ()
            left -= len(found)
            for name, is_directory in found:
                path = os.path.join(root.path, *names, name)
                if (
                    is_directory
                    and not name.startswith(".")
                    and len(queue) < _MAX_SEARCHED
                    and not self._fence.closed(path)
                ):
                    queue.append((*names, name))
                if fold(name) == wanted and self._fence.shows(path):
                    yield (*names, name)
            if left <= 0:
                return

    # ---- opening ----------------------------------------------------------------------------------------------------

    def open(self, location: Location, *, make_parents: bool = False) -> AbstractContextManager[Target]:
        """Hold the file's directory open, reached from its root without following any link.

        Args:
            location: From `locate`.
            make_parents: Whether missing directories are made (mode 0777 under the umask). If the block raises, those
                that were made and are still empty are removed again.

        Raises:
            Refused: `not_found` (no such directory), `symlink` and `outside_root` (swapped for a link since it was
                located), `parent_not_directory`, `read_only` (a directory cannot be made), `busy`, `io_error`.
        """
        return _Held(self._fence.roots[location.root], location, make_parents=make_parents)


class _Held:
    """The directory of a file while it is open: what `Workspace.open` says."""

    def __init__(self, root: Root, location: Location, *, make_parents: bool) -> None:
        self._root = root
        self._location = location
        self._made: list[str] | None = [] if make_parents else None
        self._fd = NO_DESCRIPTOR

    def __enter__(self) -> Target:
        at = self._location
        try:
            self._fd = enter(self._root, at.parts[:-1], at.given, self._made)
            return Target(self._fd, at.parts[-1], at.path, tuple(self._made or ()))
        except BaseException:
            self._leave(done=False)
            raise

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._leave(done=kind is None)

    def _leave(self, *, done: bool) -> None:
        if self._fd != NO_DESCRIPTOR:
            os.close(self._fd)
        if self._made and not done:
            unmake(self._root, self._made)


def _bad(message: str) -> Refused:
    return Refused(message, code="bad_path")


def _kind(mode: int | None) -> str:
    kinds = {stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}
    return kinds.get(stat.S_IFMT(mode or 0), "a view of the kernel")
