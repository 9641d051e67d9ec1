"""What large files turned out to be, so that the same bytes are not gone through again.

As a rule a file is read before it is edited, and edited again after that. Judging how it is encoded and counting its
line ends takes longer than hashing it, and its digest is known anyway: what it was, bytes with the same digest are. For
small files this is not worth a look.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from langchain_filestate._codec import Format

_MOST = 256

Judgement = tuple["Format", tuple[int, ...]]
"""How the bytes are text, and the `marks` of their profile."""

_known: dict[tuple[str, tuple[str, ...]], Judgement] = {}


def known(digest: str, encodings: tuple[str, ...]) -> Judgement | None:
    """What bytes with this digest are, where these legacy encodings are looked for; None if that is not known."""
    return _known.get((digest, encodings))


def note(digest: str, encodings: tuple[str, ...], judgement: Judgement) -> None:
    """Remember what a large file is; the oldest go first."""
    _known.pop((digest, encodings), None)
    _known[digest, encodings] = judgement
    while len(_known) > _MOST:
        with suppress(StopIteration, RuntimeError, KeyError):  # another thread does the same
            del _known[next(iter(_known))]
