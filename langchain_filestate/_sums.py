"""SHA-256 of large content, kept such that the digest after an edit need not begin at the beginning."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

STEP = 1 << 20
"""Bytes from one kept state to the next, and size of content for which that pays: copying a state takes as long as
hashing some kilobytes."""
_STATES = 256


class Sum:
    """SHA-256 of some bytes, and what it was on the way.

    Args:
        data: The bytes.
    """

    def __init__(self, data: bytes) -> None:
        self._step = max(STEP, len(data) // _STATES)
        sha, view = hashlib.sha256(), memoryview(data)
        self._states = [sha.copy()]
        for at in range(0, len(data), self._step):
            sha.update(view[at : at + self._step])
            self._states.append(sha.copy())
        self.digest = sha.hexdigest()
        """In hex."""

    def spliced(self, pieces: Iterable[bytes | memoryview]) -> str:
        """The digest, in hex, of content that begins as the bytes do.

        Args:
            pieces: What it is made of; the first is a beginning of the bytes themselves, however short.
        """
        first, *rest = pieces
        at = min(len(first) // self._step, len(self._states) - 2) if self._states[1:] else 0
        sha = self._states[at].copy()
        sha.update(memoryview(first)[at * self._step :])
        for piece in rest:
            sha.update(piece)
        return sha.hexdigest()
