"""Another program swaps directories and files for links to outside as fast as it can: nothing outside is reached.

python -m tests.long swaps [TRIES]
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from tests.test_workspace import swapping


def main(argv: list[str]) -> int:
    with tempfile.TemporaryDirectory() as place:
        print(dict(swapping(Path(os.path.realpath(place)), int(argv[0]) if argv else 100_000)))
    return 0
