"""One line of every installed text file is edited there and back, by the tools: the file is byte for byte as before.

    python -m tests.long lines [MOST]

Takes `.py`, `.md`, `.json`, `.c`, `.h` and `.po` files of the installed packages, copied to a folder in memory.
"""

from __future__ import annotations

import sysconfig
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from langchain_filestate import FileToolkit
from tests.scripted import edit, read

ENDINGS = {".py", ".md", ".json", ".c", ".h", ".po"}


def there_and_back(tools: dict[str, Any], path: Path, before: bytes) -> str:
    """Edit the first line that stands there once, and put it back; what came of it."""
    message = tools["read_file"].invoke(read(path))
    if message.status == "error":
        return f"not read: {message.artifact['code']}"
    lines = [row.partition("\t")[2] for row in str(message.content).split("\n\n(")[0].split("\n")]
    counts = Counter(lines)
    line = next((line for line in lines if len(line) > 8 and counts[line] == 1 and "\\x" not in line), None)
    if line is None:
        return "no such line"
    for old, new in ((line, line + "\n+ new"), (line + "\n+ new", line)):
        message = tools["edit_file"].invoke(edit(path, old, new))
        if message.status == "error":
            return f"refused: {message.artifact['code']}"
    return "same" if path.read_bytes() == before else "different"


def main(argv: list[str]) -> int:
    most = int(argv[0]) if argv else 100_000
    outcome: Counter[str] = Counter()
    size = 0
    shm = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(dir=shm) as place:
        path = Path(place) / "file.txt"
        for source in sorted(Path(sysconfig.get_path("purelib")).rglob("*"))[: most * 10]:
            if source.suffix not in ENDINGS or not source.is_file() or outcome.total() >= most:
                continue
            before = source.read_bytes()
            path.write_bytes(before)
            tools: dict[str, Any] = {tool.name: tool for tool in FileToolkit(place).get_tools()}
            found = there_and_back(tools, path, before)
            outcome[found] += 1
            size += len(before)
            if found == "different":
                print(source)
    print(f"{outcome.total()} files, {size / 1e6:.0f} MB:", dict(outcome))
    return 1 if outcome["different"] else 0
