"""Where something happened lately: only a hint how to go about the next commit to the same path."""

from __future__ import annotations

import math
import time


class Lately:
    """Paths at which something happened a moment ago.

    Args:
        seconds: How long a moment is.
        most: Of how many paths it is remembered; one more, and all are forgotten.
    """

    def __init__(self, seconds: float = 2.0, most: int = 256) -> None:
        self._seconds, self._most = seconds, most
        self._when: dict[str, float] = {}

    def note(self, path: str) -> None:
        """It happens there now."""
        self._when[path] = time.monotonic()
        if len(self._when) > self._most:
            self._when.clear()

    def forget(self, path: str) -> None:
        """It no longer does."""
        self._when.pop(path, None)

    def at(self, path: str) -> bool:
        """Whether it happened there lately."""
        return time.monotonic() - self._when.get(path, -math.inf) < self._seconds
