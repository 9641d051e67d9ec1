"""A process that edits a 1 MB file is killed at a random moment: the file is exactly the old or the new bytes.

python -m tests.long kills [TIMES]
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.test_commit import kills


def main(argv: list[str]) -> int:
    times = int(argv[0]) if argv else 1000
    for folder in (None, "/dev/shm"):
        with tempfile.TemporaryDirectory(dir=folder) as place:
            print(folder or "disk", dict(kills(Path(place) / "f", times, seed=7)), flush=True)
    return 0
