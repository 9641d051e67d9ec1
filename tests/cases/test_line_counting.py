"""Line N is line N in every tool, and notes are never lines."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable

import pytest

from langchain_filestate import Limits, parse_result
from tests.cases.steps import Desk, code

ODD = {
    "form feed": "\x0c", "vertical tab": "\x0b", "FS": "\x1c", "GS": "\x1d", "RS": "\x1e", "US": "\x1f", "NEL": "\x85",
    "line separator": "\u2028", "paragraph separator": "\u2029", "lone CR": "\r", "backspace": "\x08", "escape": "\x1b",
}  # fmt: skip


def numbers(text: str) -> dict[str, int]:
    """The number of each line that is shown."""
    return {match[2]: int(match[1]) for match in re.finditer(r"(?m)^ *(\d+)\t(.*)$", text)}


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_ln_01_one_way_to_count(desk: Callable[..., Desk], odd: str, end: str) -> None:
    d = desk()
    text = f"line0{end}{odd}line1{end}li{odd}ne2{end}LAST{end}"
    path = d.put("f", text.encode())
    grep = subprocess.run(
        ["grep", "-n", "LAST", str(path)], capture_output=True, check=False, text=True, encoding="utf-8"
    )
    line = int(grep.stdout.split(":")[0])
    assert line == 4
    shown = d.read(path)
    assert "     4\tLAST" in str(shown.content)
    assert shown.artifact["total_lines"] == 4
    assert "     1\tLAST" not in str(shown.content)
    assert str(d.read(path, offset=4).content).startswith("     4\tLAST")
    assert str(d.read(path, offset=-1).content).startswith("     4\tLAST")
    message = d.edit(path, "LAST", "last")
    assert path.read_bytes() == text.replace("LAST", "last").encode()
    hunk = parse_result(message).patch.hunks[0]  # type: ignore[union-attr]
    entries = [entry for entry in hunk.lines if entry[0] in " -"]
    assert hunk.source_start + [e.rstrip("\r") for e in entries].index("-LAST") == 4
    d.put("g", f"x{odd}x{end}y{end}x{end}".encode())
    d.read("g")
    refused = d.edit("g", "x", "z")
    assert list(refused.artifact["lines"]) == [1, 3]
    missed = d.edit("g", "y y", "z")
    assert code(missed) == "no_match"
    whole = d.write("g", "one line\n")
    assert (whole.artifact["lines_before"], whole.artifact["lines_after"]) == (3, 1)


def test_ln_01_text_with_an_odd_character_is_text_that_is_found(desk: Callable[..., Desk]) -> None:
    d = desk()
    for n, odd in enumerate(ODD.values()):
        path = d.put(f"{n}", f"a{odd}b\nc\n".encode())
        line = str(d.read(path).content).split("\n\n(")[0].split("\t", 1)[1]
        line = line.removesuffix("\n     2\tc")
        assert d.edit(path, line, "x").status == "success", repr(odd)
        assert path.read_bytes() == b"x\nc\n"


# ---- LN-04 ----------------------------------------------------------------------------------------------------------


def test_ln_04_a_window_of_blank_lines_is_no_empty_file(desk: Callable[..., Desk]) -> None:
    d = desk()
    path = d.put("f", b"\n\n\nx\n")
    shown = d.read(path, offset=1, limit=3)
    assert str(shown.content).split("\n\n(")[0] == "     1\t\n     2\t\n     3\t"
    assert "empty" not in str(shown.content)
    assert (shown.artifact["first_line"], shown.artifact["last_line"], shown.artifact["total_lines"]) == (1, 3, 4)
    for blank, count in ((b"\n", 1), (b" ", 1), (b"\t\n \n", 2), (b"\r\n", 1), (b"\x0c", 1)):
        shown = d.read(d.put("g", blank))
        assert shown.artifact["total_lines"] == count, blank
        assert "empty" not in str(shown.content)


def test_ln_04_an_empty_file_has_no_line(desk: Callable[..., Desk]) -> None:
    d = desk()
    shown = d.read(d.put("f", b""))
    assert "\t" not in str(shown.content)
    assert "empty" in str(shown.content)
    artifact = shown.artifact
    assert (artifact["first_line"], artifact["last_line"], artifact["total_lines"], artifact["complete"]) == (
        0,
        0,
        0,
        True,
    )
    again = d.read("f")
    assert again.status == "success"
    for args in ({"offset": 2}, {"offset": 1, "column": 2}):
        assert code(d.read("f", **args)) == "out_of_range"


@pytest.mark.parametrize(
    ("data", "count"),
    [
        (b"a\nb\n", 2), (b"a\nb", 2), (b"a\r\nb\r\n", 2), (b"a\n\n", 2), (b"\n", 1), (b"a", 1), (b"a\r\n\r\n", 2),
        (b"a\r\rb", 1), (b"\xef\xbb\xbfa\n", 1), (b"\xef\xbb\xbf", 0), ("\ufeffa\nb\n".encode("utf-16-le"), 2),
    ],
)  # fmt: skip
def test_ln_04_there_is_no_line_after_the_last_newline(desk: Callable[..., Desk], data: bytes, count: int) -> None:
    d = desk()
    shown = d.read(d.put("f", data))
    assert shown.artifact["total_lines"] == count
    assert len(re.findall(r"(?m)^ *\d+\t", str(shown.content))) == count
    assert code(d.read("f", offset=count + 1 if count else 2)) == "out_of_range"


def follow(d: Desk, name: str, most: int = 200, **start: int) -> str:
    """Read a file as a model does that does what the notes say; the text that it has then."""
    parts: dict[tuple[int, int], str] = {}
    todo, done = [start], 0
    while todo:
        args = todo.pop(0)
        done += 1
        assert done < most, "the notes lead in a circle"
        shown = d.read(name, **args)
        assert shown.status == "success", (args, shown.content)
        body, *notes = re.split(r"\n\n(?=\((?:Cut|Shown|Line|No newline|Carriage))", str(shown.content))
        column = args.get("column", 1)
        cut: list[int] = []
        for note in re.findall(r"\((Cut after (\d+) characters: lines? ([\d, -]+)\.)", "\n".join(notes)):
            for part in note[2].split(", "):
                a, _, b = part.partition("-")
                cut += range(int(a), int(b or a) + 1)
            todo += [{"offset": n, "column": int(note[1]) + 1, "limit": 1} for n in cut]
        for number, line in re.findall(r"(?m)^ *(\d+)\t(.*)$", body):
            key = (int(number), column if int(number) == args.get("offset", 1) else 1)
            assert key not in parts, f"{key} came twice"
            parts[key] = line
        for note in re.findall(r"ead on with (offset=\d+(?:, column=\d+)?(?:, limit=1)?)", "\n".join(notes)):
            onward = {key: int(value) for key, value in (item.split("=") for item in note.split(", "))}
            if "limit" not in args or "column" in onward:  # the rest of one line leads nowhere else
                todo.append(onward)
    lines: dict[int, str] = {}
    for (number, _), line in sorted(parts.items()):
        lines[number] = lines.get(number, "") + line
    assert sorted(lines) == list(range(1, len(lines) + 1))
    return "\n".join(lines[number] for number in sorted(lines))


PAGES = {
    "a long line": "short\n" + "x" * 15_000 + "\nKEY\nshort",
    "two long lines": "short\n" + "x" * 5_000 + "\n" + "y" * 2_001 + "\nKEY",
    "exactly at the bound": "x" * 2_000 + "\n" + "y" * 2_001 + "\nz",
    "many lines": "\n".join(f"line {n}" for n in range(5_000)),
    "one line": "x" * 250_000,
    "long at the end": "a\nb\n" + "\u4e2d" * 120_000,
    "astral": "\U0001f600" * 5_000 + "\nKEY",
    "combining": "e\u0301" * 3_000 + "\nKEY",
    "blank lines": "\n" * 4_001 + "KEY",
}


@pytest.mark.parametrize("text", PAGES.values(), ids=PAGES)
@pytest.mark.parametrize(
    "limits", [Limits(), Limits(max_lines=700, max_chars=30_000, max_line_chars=500)], ids=["usual", "small"]
)
def test_ln_04_following_the_notes_gives_every_character_once(
    desk: Callable[..., Desk], text: str, limits: Limits
) -> None:
    d = desk(limits=limits)
    d.put("f", text.encode())
    assert follow(d, "f") == text


def test_ln_04_windows_of_three_with_a_long_line(desk: Callable[..., Desk]) -> None:
    d = desk()
    d.put("f", ("short\n" + "x" * 15_000 + "\nKEY\nshort\n").encode())
    shown = d.read("f", offset=1, limit=3)
    assert "     3\tKEY" in str(shown.content)
    assert "offset=4" in str(shown.content)


@pytest.mark.parametrize(
    ("offset", "first"),
    [(0, 1), (1, 1), (2, 2), (10, 10), (-1, 10), (-2, 9), (-10, 1), (-11, 1), (-1000, 1)],
)
def test_ln_04_offsets(desk: Callable[..., Desk], offset: int, first: int) -> None:
    d = desk()
    d.put("f", b"".join(b"line %d\n" % n for n in range(1, 11)))
    shown = d.read("f", offset=offset, limit=1)
    assert str(shown.content).startswith(f"{first:>6}\tline {first}")
    assert shown.artifact["first_line"] == first


def test_ln_04_past_the_end_says_how_many_there_are(desk: Callable[..., Desk]) -> None:
    d = desk()
    d.put("f", b"a\nb\n")
    for offset in (3, 4, 10**9, 2**70):
        message = d.read("f", offset=offset)
        assert code(message) == "out_of_range", offset
        assert "2 line" in str(message.content)
    assert d.read("f", limit=2**70).status == "success"
    assert code(d.read("f", column=2**70)) == "out_of_range"
    assert d.read("f", offset=-(2**70)).status == "success"


def test_ln_04_wide_numbers_keep_the_gutter(desk: Callable[..., Desk]) -> None:
    d = desk()
    d.put("f", b"x\n" * 1_000_001)
    assert str(d.read("f", offset=999_999, limit=3).content).startswith("999999\tx\n1000000\tx\n1000001\tx")
