"""Calls beside each other: every one is there in the end, and several edits are all or none."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cases.steps import Desk, Make, code, digest_of_tree, edit, many, read, write

SEQ = "".join(f"{n}\n" for n in range(1, 101))


def test_cc_01_two_edits_of_one_message_are_both_there(session: Make, tmp_path: Path) -> None:
    s = session()
    rounds = 15
    for n in range(rounds):
        (tmp_path / f"f{n}").write_text(SEQ)
    s.say([read(f"f{n}") for n in range(rounds)])
    calls = []
    for n in range(rounds):
        calls += [edit(f"f{n}", "\n50\n", "\nFIFTY\n"), edit(f"f{n}", "\n75\n", "\nSEVENTY-FIVE\n")]
    out = s.say(calls)
    assert {m.status for m in out} == {"success"}
    for n in range(rounds):
        assert (tmp_path / f"f{n}").read_text() == SEQ.replace("\n50\n", "\nFIFTY\n").replace(
            "\n75\n", "\nSEVENTY-FIVE\n"
        )


async def test_cc_01_and_asynchronously(session: Make, tmp_path: Path) -> None:
    s = session()
    rounds = 15
    for n in range(rounds):
        (tmp_path / f"f{n}").write_text(SEQ)
    await s.asay([read(f"f{n}") for n in range(rounds)])
    calls = []
    for n in range(rounds):
        calls += [
            edit(f"f{n}", "\n75\n", "\nSEVENTY-FIVE\n"),
            many(f"f{n}", ("\n50\n", "\nFIFTY\n"), ("\n1\n2\n", "\nx\n") if n < 0 else ("100", "HUNDRED")),
        ]
    out = await s.asay(calls)
    assert {m.status for m in out} == {"success"}
    want = SEQ.replace("\n50\n", "\nFIFTY\n").replace("\n75\n", "\nSEVENTY-FIVE\n").replace("100", "HUNDRED")
    assert {(tmp_path / f"f{n}").read_text() for n in range(rounds)} == {want}


def test_cc_01_edits_of_one_line_build_on_each_other(session: Make, tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("n = 0\n")
    s = session()
    s.say(read(path))
    out = s.say([edit(path, f"n = {n}\n", f"n = {n + 1}\n") for n in range(12)])
    assert [m.status for m in out] == ["success"] * 12
    assert path.read_text() == "n = 12\n"


def test_cc_01_a_refused_one_does_not_stop_the_others(session: Make, tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text(SEQ)
    s = session()
    s.say(read(path))
    out = s.say(
        [edit(path, "\n10\n", "\nTEN\n"), edit(path, "nope", "x"), edit(path, "\n30\n", "\nTHIRTY\n"), write("g", "g")]
    )
    assert [code(m) for m in out] == [None, "no_match", None, None]
    assert path.read_text() == SEQ.replace("\n10\n", "\nTEN\n").replace("\n30\n", "\nTHIRTY\n")


def test_cc_01_by_two_names_of_one_file(session: Make, tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("a\nb\nc\n")
    (tmp_path / "d").mkdir()
    (tmp_path / "here").symlink_to(".")
    s = session()
    s.say(read(path))
    out = s.say(
        [edit("f", "a", "A"), edit("./d/../f", "A\nb", "A\nB"), edit("here/f", "B\nc", "B\nC"), edit(path, "C", "CC")]
    )
    assert [m.status for m in out] == ["success"] * 4
    assert path.read_text() == "A\nB\nCC\n"


def test_cc_01_hands_without_a_graph(desk: Callable[..., Desk]) -> None:
    """Threads of a program that calls the tools itself."""
    d = desk()
    path = d.put("f", SEQ.encode())
    d.read(path)
    answers: list[Any] = []
    threads = [
        threading.Thread(target=lambda n=n: answers.append(d.edit(path, f"\n{n}\n", f"\n<{n}>\n")))
        for n in range(10, 26)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert [m.status for m in answers] == ["success"] * 16, [m.content for m in answers if m.status == "error"]
    text = path.read_text()
    assert all(f"\n<{n}>\n" in text for n in range(10, 26))
    assert text.count("\n") == 100


async def test_cc_01_two_agents_at_once(session: Make, tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text(SEQ)
    agents = [session(thread=f"t{n}", agent=f"a{n}") for n in range(4)]
    for agent in agents:
        await agent.asay(read(path))
    out = await asyncio.gather(*(a.asay(edit(path, f"\n{20 + n}\n", f"\n<{n}>\n")) for n, a in enumerate(agents)))
    assert [[m.status for m in each] for each in out] == [["success"]] * 4
    assert all(f"\n<{n}>\n" in path.read_text() for n in range(4))


OTHER = """
import sys
from langchain_filestate import FileToolkit
tools = {tool.name: tool for tool in FileToolkit(sys.argv[1]).get_tools()}
for n in range(15):
    said = ""
    while "successfully" not in said:
        tools["read_file"].invoke({"file_path": "f"})
        edit = {"file_path": "f", "old_string": f"\\nb{n}\\n", "new_string": f"\\n<b{n}>\\n"}
        said = tools["edit_file"].invoke(edit)
    print(n, flush=True)
"""


def test_cc_01_two_processes(desk: Callable[..., Desk]) -> None:
    d = desk()
    path = d.put("f", ("\n" + "".join(f"a{n}\n\nb{n}\n\n" for n in range(15))).encode())
    other = subprocess.Popen([sys.executable, "-c", OTHER, str(d.root)], stdout=subprocess.PIPE, text=True)
    assert other.stdout is not None
    other.stdout.readline()  # it has begun
    for n in range(15):
        d.read(path)
        assert d.edit(path, f"\na{n}\n", f"\n<a{n}>\n").status == "success"
    other.stdout.read()
    assert other.wait(timeout=120) == 0
    other.stdout.close()
    text = path.read_text()
    assert all(f"\n<{name}{n}>\n" in text for name in "ab" for n in range(15))
    assert sorted(p.name for p in d.root.iterdir()) == ["f"]


# ---- CC-03 ----------------------------------------------------------------------------------------------------------

ALL_OR_NONE: dict[str, tuple[str, list[Any], str | None, str]] = {
    "the second is missing": ("A b\n", [("A", "AA"), ("missing", "x")], "no_match", "edit 2 of 2"),
    "the first is missing": ("A b\n", [("missing", "x"), ("A", "AA")], "no_match", "edit 1 of 2"),
    "the second is ambiguous": ("A b b\n", [("A", "AA"), ("b", "x")], "ambiguous", "edit 2 of 2"),
    "the second changes nothing": ("A b\n", [("A", "AA"), ("b", "b")], "no_change", "edit 2 of 2"),
    "the second is empty": ("A b\n", [("A", "AA"), ("", "x")], "empty_old_string", "edit 2 of 2"),
    "the second builds on the first": ("a\n", [("a", "b"), ("b", "c")], "no_match", "edit 1 puts in"),
    "they overlap": ("abc\n", [("ab", "x"), ("bc", "y")], "overlap", "Edits 1 and 2"),
    "one holds the other": ("abc\n", [("abc", "x"), ("b", "y")], "overlap", "Edits 1 and 2"),
    "twice the same": ("abc\n", [("b", "x"), ("b", "x")], "overlap", "Edits 1 and 2"),
    "all and one of them": ("b b\n", [("b", "x", True), ("b b", "y")], "overlap", "Edits 1 and 2"),
    "half a character": ("A b\n", [("A", "AA"), ("b", "\ud800")], "encoding", ""),
}


@pytest.mark.parametrize(("text", "edits", "wrong", "word"), ALL_OR_NONE.values(), ids=ALL_OR_NONE)
def test_cc_03_all_or_none(desk: Callable[..., Desk], text: str, edits: list[Any], wrong: str, word: str) -> None:
    d = desk()
    path = d.put("f", text.encode())
    d.read(path)
    stamp = path.stat().st_mtime_ns
    message = d.many(path, *edits)
    assert code(message) == wrong, message.content
    assert word in str(message.content)
    assert path.read_text() == text
    assert path.stat().st_mtime_ns == stamp


TOGETHER: dict[str, tuple[str, list[Any], str]] = {
    "as it is now": ("a b\n", [("a", "b"), ("b", "c")], "b c\n"),
    "swapped": ("a b\n", [("a", "b"), ("b", "a")], "b a\n"),
    "in any order": ("a b c\n", [("c", "3"), ("a", "1"), ("b", "2")], "1 2 3\n"),
    "side by side": ("abcd\n", [("ab", "1"), ("cd", "2")], "12\n"),
    "all of one": ("a b a\n", [("a", "xx", True), ("b", "")], "xx  xx\n"),
    "what another puts in is not matched": ("a\n", [("a", "z z z"), ("\n", "!\n")], "z z z!\n"),
    "adjacent lines": ("1\n2\n3\n", [("1\n", "one\n"), ("2\n", ""), ("3\n", "three\n")], "one\nthree\n"),
}


@pytest.mark.parametrize(("text", "edits", "after"), TOGETHER.values(), ids=TOGETHER)
def test_cc_03_all_are_matched_against_the_file_as_it_is(
    desk: Callable[..., Desk], text: str, edits: list[Any], after: str
) -> None:
    for end in ("\n", "\r\n"):
        d = desk()
        path = d.put("f", text.replace("\n", end).encode())
        d.read(path)
        message = d.many(path, *edits)
        assert message.status == "success", message.content
        assert path.read_bytes() == after.replace("\n", end).encode()


def test_cc_03_two_files_of_one_message_stand_alone(session: Make, tmp_path: Path) -> None:
    """There is no edit over several files: each call is all or none by itself, and says so by itself."""
    for name in ("a", "b"):
        (tmp_path / name).write_text("x\n")
    s = session()
    s.say([read("a"), read("b")])
    (tmp_path / "b").chmod(0o444)
    out = s.say([many("a", ("x", "y")), many("b", ("x", "y"))])
    assert [code(m) for m in out] == [None, "read_only"]
    assert [(tmp_path / name).read_text() for name in "ab"] == ["y\n", "x\n"]


@pytest.mark.parametrize("stop", ["before_write", "no"])
def test_cc_03_a_hook_that_refuses_leaves_everything(desk: Callable[..., Desk], stop: str) -> None:
    from langchain_filestate import Refused

    def no(_: Any) -> None:
        raise Refused("Not these.")

    d = desk(before_write=no)
    d.put("f", b"a b\n")
    d.read("f")
    before = digest_of_tree(d.root)
    assert code(d.many("f", ("a", "1"), ("b", "2"))) == "rejected"
    assert code(d.write("deep/down/new", "x")) == "rejected"
    assert digest_of_tree(d.root) == before
