"""One edit in a file of 100 MB."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from tests.benchmarks._measure import Row, Side, at_most, place, ratio
from tests.benchmarks._peak import run

OURS = """
from langchain_filestate import FileToolkit
path = Path(sys.argv[1])
tools = {tool.name: tool for tool in FileToolkit(path.parent).get_tools()}
def call(name, **args):
    message = tools[name].invoke({"name": name, "args": {"file_path": str(path), **args}, "id": "1", "type": "tool_call"})
    assert message.status == "success", message.content
call("read_file", offset=-100)
print(json.dumps(measure(lambda: call("edit_file", old_string=sys.argv[2], new_string=sys.argv[3]))))
"""
FLOOR = """
import hashlib, os
path = Path(sys.argv[1])
def work():
    data = path.read_bytes()
    hashlib.sha256(data).hexdigest()
    fd = os.open(f"{path}.tmp", os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o644)
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view):]
    os.fsync(fd)
    os.close(fd)
    os.replace(f"{path}.tmp", path)
print(json.dumps(measure(work)))
"""


def rows(*, quick: bool) -> Iterator[Row]:
    size = (20 if quick else 100) * 10**6
    with place("disk") as root:
        path, other = root / "large.txt", root / "other.txt"
        line = "some text in a line of a large file\n"
        for file in (path, other):
            with file.open("w") as out:
                out.writelines(line * 1000 for _ in range(size // len(line) // 1000))
                out.write("value = 0\n")
        ours, floor = [], []
        for n in range(3 if quick else 5):
            floor.append(run(FLOOR, other))
            ours.append(run(OURS, path, f"value = {n}\n", f"value = {n + 1}\n"))
        sides = [
            Side(*(statistics.median(each[key] for each in took) for key in ("wall", "cpu"))) for took in (ours, floor)
        ]
        peak = statistics.median(each["peak"] for each in ours) / path.stat().st_size
    name = f"{size // 10**6} MB"
    yield ratio(f"edit in {name} against read, SHA-256, write, sync", sides[0], sides[1], 1.5)
    yield at_most(f"  peak memory of an edit in {name}", peak, 3.5, "x file")
