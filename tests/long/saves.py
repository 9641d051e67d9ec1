"""Other programs save a file as fast as they can while several agents, in threads and processes, edit it.

    python -m tests.long saves [--seconds 20] [--processes 1] [--threads 1] [--folder DIR] [--how append,truncate,rename,none]

Each save adds a line; one that is missing at the end was lost. Each agent counts up in a line of its own, by
`edit_file`; what it was told is done must stand there, unless the saving program overwrote it from an older copy of its
own (truncate, rename), which is that program's doing. Readers must never see half a file, and nothing may stay behind.
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

from langchain_filestate import FileToolkit
from tests.scripted import edit, read
from tests.test_commit import _look, _save


def agent(path: Path, name: str, until: float) -> tuple[str, int, Counter[str]]:
    """Count up until the time is over: the name, how far it was told to have come, and what came of the calls."""
    tools = {tool.name: tool for tool in FileToolkit(path.parent, agent=name).get_tools()}
    outcome: Counter[str] = Counter()
    done = 0
    tools["read_file"].invoke(read(path))
    while time.monotonic() < until:
        old, new = f"agent {name} {done}\n", f"agent {name} {done + 1}\n"
        message = tools["edit_file"].invoke(edit(path, old, new))
        if message.status == "success":
            done += 1
            outcome["done"] += 1
            continue
        outcome[message.artifact["code"]] += 1
        tools["read_file"].invoke(read(path))
        for line in path.read_bytes().split(b"\n"):
            parts = line.split()
            if parts[:2] == [b"agent", name.encode()] and len(parts) == 3:
                done = int(parts[2])  # somebody put an older copy there
    return name, done, outcome


def agents(path: Path, names: list[str], until: float, out: Any) -> None:
    """Several agents of one process."""
    threads = [threading.Thread(target=lambda name=name: out.put(agent(path, name, until))) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def run(how: str, seconds: float, processes: int, threads: int, folder: str | None) -> int:
    """One way of saving; how much went wrong."""
    fork = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory(dir=folder) as place:
        path = Path(place) / "shared.txt"
        names = [f"{chr(97 + p)}{t}" for p in range(processes) for t in range(threads)]
        path.write_text("agent .\n" + "".join(f"agent {name} 0\n" for name in names))
        stop, saved, torn, out = fork.Event(), fork.Value("q", 0), fork.Value("q", 0), fork.Queue()
        others = [fork.Process(target=_save, args=(path, how, stop, saved))] if how != "none" else []
        if how != "truncate":  # it tears the file itself
            others.append(fork.Process(target=_look, args=(path, stop, torn)))
        until = time.monotonic() + seconds
        workers = [
            fork.Process(target=agents, args=(path, names[p * threads : (p + 1) * threads], until, out))
            for p in range(processes)
        ]
        for each in (*others, *workers):
            each.start()
        results = [out.get(timeout=seconds + 60) for _ in names]
        stop.set()
        for each in (*others, *workers):
            each.join()
        lines = path.read_bytes().splitlines()
        have = Counter(lines)
        lost = sum(1 for n in range(saved.value) if not have[b"user %d" % n])
        missing = 0
        if how in {"append", "none"}:
            missing = sum(1 for name, done, _ in results if not have[f"agent {name} {done}".encode()])
        litter = sorted(p.name for p in path.parent.iterdir() if p.name not in {"shared.txt", "saving"})
        outcome: Counter[str] = sum((found for _, _, found in results), Counter())
        busy = outcome["busy"] / max(1, outcome.total())
        print(
            f"{how:9s} saves {saved.value:6d}  lost {lost}  torn {torn.value}  litter {len(litter)}  "
            f"edits {outcome['done']:6d}  missing {missing}  busy {busy:.2%}  {dict(outcome)}",
            flush=True,
        )
        return lost + int(torn.value) + len(litter) + missing


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.long saves")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--folder")
    parser.add_argument("--how", default="append,truncate,rename,none")
    given = parser.parse_args(argv)
    ways = given.how.split(",")
    return 1 if sum(run(way, given.seconds, given.processes, given.threads, given.folder) for way in ways) else 0
