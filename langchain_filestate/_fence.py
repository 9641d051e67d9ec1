"""What is inside, and what the rules say: the roots of a workspace and its deny and read-only rules.

Both are tried on the path as it is spelled and on the path where it really leads; deny rules also on every link that is
crossed and every directory that is left by `..`, so that no harmless name opens a closed file and no answer tells what
a closed directory holds. Rules hold in each root on its own, also where one root lies in another.
"""

from __future__ import annotations

import os
import re
import stat
from typing import TYPE_CHECKING

from langchain_filestate._resolve import Resolved, below, of_the_kernel, resolve
from langchain_filestate._rules import Rules, brief, plain
from langchain_filestate._walk import Root
from langchain_filestate.errors import Refused, WiringError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


_NAMED = 4  # roots that a refusal names at most


class Fence:
    """The roots and the rules of a workspace.

    Args:
        roots: Directories, as the developer spelled them.
        deny: Gitignore rules: no reading, no writing.
        read_only: Gitignore rules: no writing.

    Attributes:
        roots: Each root's real path to the root, the first one first.
        spellings: Each spelling of a root to its real path, the shortest first.

    Raises:
        WiringError: A root is no directory, or a rule can never match.
    """

    def __init__(
        self, roots: Iterable[str | os.PathLike[str]], *, deny: Sequence[str], read_only: Sequence[str]
    ) -> None:
        self.roots: dict[str, Root] = {}
        self.spellings: dict[str, str] = {}
        for root in roots:
            self._add_root(os.fspath(root))
        self._deny = Rules("deny", deny)
        self._read_only = Rules("read_only", read_only)
        for option, rules in (("deny", deny), ("read_only", read_only)):
            for rule in rules:
                self._check_anchor(option, rule)
        self._ruled = bool(deny or read_only)
        self._innermost = sorted(self.roots.values(), key=lambda root: len(root.path), reverse=True)
        self.spellings = {spelled: self.spellings[spelled] for spelled in sorted(self.spellings, key=len)}

    def _add_root(self, spelled: str) -> None:
        if not spelled:
            raise WiringError("The root is an empty path. Write '.' if the current directory is meant.")
        try:
            absolute = os.path.abspath(os.path.expanduser(spelled))
            real = os.path.realpath(absolute, strict=True)
            (absolute + real).encode()
            status = os.stat(real)
        except (OSError, ValueError) as why:
            raise WiringError(f"The root {spelled!r} cannot be used ({why}). Make it first, or name another.") from None
        if not stat.S_ISDIR(status.st_mode) or of_the_kernel(real):
            raise WiringError(f"The root {spelled!r} is not a directory of files. Name the one that holds them.")
        self.spellings |= {real: real, absolute: real}
        self.roots[real] = Root(real, (status.st_dev, status.st_ino))

    def _check_anchor(self, option: str, rule: str) -> None:
        """Refuse a rule that was meant as a path of the machine: in gitignore a leading slash means the root."""
        if not rule.startswith("/") or os.sep in self.roots:
            return
        for spelled in self.spellings:
            rest = below(os.path.normpath(rule), spelled)
            if rest is not None:
                hint = f"write {rest!r}" if rest else "to close a whole root, do not give it"
                raise WiringError(f"The {option} rule {rule!r} is an absolute path; rules start at each root: {hint}.")
        first, *more = rule.strip().strip("/").split("/")
        if re.search(r"[*?\[\\]", first) or any(os.path.lexists(os.path.join(root, first)) for root in self.roots):
            return
        if more or os.path.lexists(f"/{first}"):
            raise WiringError(
                f"The {option} rule {rule!r} looks like an absolute path, but rules start at each root, and no root "
                f"has a {first!r}. If that is meant, write {rule.strip().lstrip('/')!r}."
            )

    def outside(self, given: str) -> Refused:
        """Make the refusal of a path that is in no root."""
        roots = ", ".join(plain(root) for root in list(self.roots)[:_NAMED])
        return Refused(f"{brief(given)} is outside the workspace. Use a path below {roots}.", code="outside_root")

    def judge(self, given: str, path: str, *, write: bool) -> Resolved:
        """Apply roots and rules: to the path as spelled, to where it leads, and to all that lies on the way."""
        found = resolve(path, self.spellings)
        if found is None:
            raise self.outside(given)
        if not self._ruled:
            return found
        directory = found.mode is None or stat.S_ISDIR(found.mode)
        ends = {os.path.normpath(path): directory, found.path: directory}
        if self._covered(self._deny, ends | dict.fromkeys(found.crossed, True)):
            raise Refused(
                f"{brief(given)} is closed to these tools by a rule of the workspace. Do without it, or ask the user.",
                code="denied",
            )
        if write and self._covered(self._read_only, ends):
            raise Refused(
                f"{brief(given)} may be read but not written, by a rule of the workspace. Write elsewhere, or ask the "
                "user.",
                code="read_only",
            )
        return found

    def _covered(self, rules: Rules, paths: dict[str, bool]) -> bool:
        return bool(rules) and any(
            rules.cover(rest.replace(os.sep, "/"), directory=directory)
            for path, directory in paths.items()
            for spelled in self.spellings
            if (rest := below(path, spelled))
        )

    def closed(self, path: str) -> bool:
        """Tell whether a deny rule covers a real path, which may be a directory."""
        return self._covered(self._deny, {path: True})

    def shows(self, path: str) -> bool:
        """Tell whether a path exists and may be named to the model."""
        try:
            found = self.judge(path, path, write=False)
            found.path.encode()
        except (Refused, UnicodeEncodeError):
            return False
        return found.mode is not None

    def split(self, path: str) -> tuple[Root, tuple[str, ...]]:
        """Give the innermost root of a real path, and the components below it."""
        for root in self._innermost:
            if (rest := below(path, root.path)) is not None:
                return root, tuple(rest.split(os.sep)) if rest else ()
        raise ValueError(path)
