"""A hundred lines near the end of a file of 1 GB."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from tests.benchmarks._measure import Row, Side, at_most, place, ratio
from tests.benchmarks._peak import run

OURS = """
from langchain_filestate import FileToolkit
path = Path(sys.argv[1])
tool = next(tool for tool in FileToolkit(path.parent).get_tools() if tool.name == "read_file")
def read(name, **args):
    return tool.invoke({"name": "read_file", "args": {"file_path": name, **args}, "id": "1", "type": "tool_call"})
read("small.txt")
def work():
    message = read(str(path), offset=-200, limit=100)
    assert message.content.count("\\n") > 99, message.content
print(json.dumps(measure(work)))
"""
FLOOR = """
import hashlib
def work():
    sha, lines = hashlib.sha256(), 0
    with open(sys.argv[1], "rb", buffering=0) as file:
        while piece := file.read(1 << 20):
            sha.update(piece)
            lines += piece.count(b"\\n")
print(json.dumps(measure(work)))
"""


def rows(*, quick: bool) -> Iterator[Row]:
    size = (128 if quick else 1024) << 20
    with place("disk") as root:
        path = root / "large.txt"
        (root / "small.txt").write_text("a line\n")
        line = "some text in a line of a large file\n"
        with path.open("w") as out:
            out.writelines(line * 10_000 for _ in range(size // len(line) // 10_000 + 1))
        ours, floor = [], []
        for _ in range(3):
            floor.append(run(FLOOR, path))
            ours.append(run(OURS, path))
    sides = [
        Side(*(statistics.median(each[key] for each in took) for key in ("wall", "cpu"))) for took in (ours, floor)
    ]
    peak = max(each["peak"] for each in ours)
    name = f"{size >> 20} MB"
    yield at_most(f"window near the end of {name}: peak memory over idle", peak, 64, "MB", 1 / 2**20)
    yield ratio("  against SHA-256 and newline count in 1 MB pieces", sides[0], sides[1], 1.3)
