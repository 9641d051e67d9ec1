"""Every patch of the tools parses, means what was done, and gives the exact bytes when it is applied."""

from __future__ import annotations

import io
import random
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from unidiff.patch import PatchSet

from langchain_filestate import StructuredPatch, parse_result
from tests.cases.steps import Desk, code


def apply(patch: StructuredPatch, before: bytes) -> bytes:
    """As the format says, from the model's own hunks: lines end at LF, the marker takes the LF of the line before it."""
    old = before.decode("utf-8", "surrogateescape").split("\n")
    old = [line + "\n" for line in old[:-1]] + ([old[-1]] if old[-1] else [])
    out: list[str] = []
    at = 0
    for hunk in patch.hunks:
        start = hunk.source_start - 1 if hunk.source_length else hunk.source_start
        out += old[at:start]
        at = start
        for n, entry in enumerate(hunk.lines):
            if entry.startswith("\\"):
                continue
            bare = n + 1 < len(hunk.lines) and hunk.lines[n + 1].startswith("\\")
            line = entry[1:] + ("" if bare else "\n")
            if entry[0] in " -":
                assert old[at] == line, (old[at], line)
                at += 1
            if entry[0] in " +":
                out.append(line)
    return "".join(out + old[at:]).encode("utf-8", "surrogateescape")


def by_patch(patch: StructuredPatch, before: bytes, where: Path, tool: str) -> bytes:
    """What `patch` or `git apply` makes of the text."""
    where.mkdir()
    name = patch.target.removeprefix("b/") if patch.target != "/dev/null" else patch.source.removeprefix("a/")
    path = where / name
    path.parent.mkdir(parents=True)
    if patch.source != "/dev/null":
        path.write_bytes(before)
    text = str(patch).encode()
    run = (
        ["git", "apply", "-p1", "-"] if tool == "git" else ["patch", "-p1", "--binary", "--no-backup-if-mismatch", "-s"]
    )
    done = subprocess.run(run, cwd=where, input=text, capture_output=True, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr, text)
    return path.read_bytes()


PAIRS: dict[str, tuple[bytes, bytes]] = {
    "no newline": (b"a\nb", b"a\nc"),
    "a newline is added": (b"a\nb", b"a\nb\n"),
    "a newline is taken": (b"a\nb\n", b"a\nb"),
    "form feed": (b"a\n\x0cb\nc\n", b"a\n\x0cB\nc\n"),
    "form feed alone": (b"a\n\x0c\nc\n", b"a\n\x0c\nC\n"),
    "lone CR": (b"x\rY\nz\n", b"x\ry\nz\n"),
    "CR at the end": (b"a\nb\r", b"a\nB\r"),
    "CRLF": (b"a\r\nb\r\nc\r\n", b"a\r\nB\r\nc\r\n"),
    "CRLF to LF": (b"a\r\nb\r\n", b"a\nb\n"),
    "separators": ("a\u2028b\n\u0085c\n".encode(), "a\u2028B\n\u0085c\n".encode()),
    "FS to US": (b"a\x1cb\n\x1d\n\x1ee\n", b"a\x1cB\n\x1d\n\x1ee\n"),
    "a removed line of dashes": (b"a\n-- x\nb\n", b"a\nb\n"),
    "an added line of plusses": (b"a\nb\n", b"a\n++ x\nb\n"),
    "a line like a hunk": (b"@@ -1,1 +1,1 @@\nx\n", b"@@ -1,1 +1,1 @@\ny\n"),
    "a line like a header": (b"--- a/x\n+++ b/x\nz\n", b"--- a/x\n+++ b/y\nz\n"),
    "the marker as text": (b"\\ No newline at end of file\na\n", b"\\ No newline at end of file\nb\n"),
    "the marker as the last line": (b"a\n\\ No newline at end of file", b"b\n\\ No newline at end of file"),
    "the marker is removed": (b"a\n\\ No newline at end of file\n", b"a\n"),
    "diff --git as text": (b"diff --git a/x b/x\n1\n", b"diff --git a/x b/x\n2\n"),
    "a byte order mark": (b"\xef\xbb\xbfa\nb\n", b"\xef\xbb\xbfa\nc\n"),
    "emptied": (b"a\nb\n", b""),
    "filled": (b"", b"a\nb\n"),
    "filled without newline": (b"", b"a"),
    "blank lines": (b"\n\n\n\n", b"\n\nx\n\n"),
    "trailing blanks": (b"a  \nb\t\n", b"a  \nb\n"),
    "all other": (b"1\n2\n3\n", b"4\n5\n"),
    "first line": (b"1\n2\n3\n4\n5\n", b"one\n2\n3\n4\n5\n"),
    "last line": (b"1\n2\n3\n4\n5\n", b"1\n2\n3\n4\nfive\n"),
    "two places": (
        b"".join(b"%d\n" % n for n in range(50)),
        b"".join(b"%d\n" % (n if n not in {3, 40} else -n) for n in range(50)),
    ),
    "a long line": (b"x" * 3000 + b"\na\n", b"x" * 3000 + b"\nb\n"),
    "Chinese": ("\u4e2d\n\u6587\n".encode(), "\u4e2d\n\u6587\u4ef6\n".encode()),
}


def made(d: Desk, before: bytes, after: bytes, how: str) -> Any:
    path = d.put("f", before)
    d.read(path)
    d.read(path, limit=1)  # a long line whole
    if how == "write":
        message = d.write(path, after.decode("utf-8-sig"))
    else:
        message = d.edit(path, before.decode("utf-8-sig"), after.decode("utf-8-sig"))
    assert message.status == "success", message.content
    return message


@pytest.mark.parametrize(("before", "after"), PAIRS.values(), ids=PAIRS)
def test_df_01_a_patch_round_trips(desk: Callable[..., Desk], before: bytes, after: bytes, tmp_path: Path) -> None:
    for how in ("write", "edit"):
        if how == "edit" and (not before or before.replace(b"\r\n", b"\n") == after.replace(b"\r\n", b"\n")):
            continue
        root = tmp_path / how
        root.mkdir()
        message = made(desk(root), before, after, how)
        assert (root / "f").read_bytes() == after
        result: Any = parse_result(message)
        patch = result.patch
        assert not patch.truncated
        assert apply(patch, before) == after
        text = str(patch)
        parsed = PatchSet(text)
        assert len(parsed) == 1
        built = patch.to_unidiff()
        if not built.is_binary_file:
            assert (built.added, built.removed) == (patch.added, patch.removed)
        assert (parsed[0].added, parsed[0].removed) == (patch.added, patch.removed)
        marker = "\\ No newline at end of file"
        ends = [entry for hunk in patch.hunks for entry in hunk.lines if entry == marker]
        at_end = [b"\n" not in data[-1:] and bool(data) for data in (before, after)]
        assert len(ends) <= sum(at_end)
        assert StructuredPatch.model_validate(patch.model_dump(mode="json")) == patch


@pytest.mark.parametrize("tool", ["git", "patch"])
def test_df_01_other_programs_take_them(desk: Callable[..., Desk], tmp_path: Path, tool: str) -> None:
    d = desk(tmp_path)
    for n, (name, (before, after)) in enumerate(PAIRS.items()):
        path = d.put(f"{n}/f", before)
        d.read(path)
        d.read(path, limit=1)
        result: Any = parse_result(d.write(path, after.decode("utf-8-sig")))
        if result.patch.exact:
            assert by_patch(result.patch, before, tmp_path / f"{tool}{n}", tool) == after, name


def test_df_01_from_a_file_object(desk: Callable[..., Desk]) -> None:
    message = made(desk(), b"x\rY\nz\n", b"x\ry\nz\n", "edit")
    text = str(parse_result(message).patch)  # type: ignore[union-attr]
    parsed = PatchSet(io.StringIO(text, newline="\n"))
    assert (parsed[0].added, parsed[0].removed) == (1, 1)
    assert [line.value for line in parsed[0][0] if line.is_added] == ["x\ry\n"]


@pytest.mark.parametrize(
    "name",
    ["a b", "a\tb", "caf\u00e9", 'a"b', "a\\b", "-x", "a\nb", "\u4e2d", "a'b", "@@", "b/a", "dev/null", "a\u2028b"],
)
def test_df_01_names_of_every_kind(desk: Callable[..., Desk], tmp_path: Path, name: str) -> None:
    if name == "a\\b":
        return
    d = desk(tmp_path)
    path = d.put(name, b"one\n")
    assert d.read(path).status == "success"
    result: Any = parse_result(d.edit(path, "one", "two"))
    patch = result.patch
    assert patch.source == f"a/{str(path).lstrip('/')}"
    assert by_patch(patch, b"one\n", tmp_path / "there", "git") == b"two\n"
    built = patch.to_unidiff()
    assert (built.added, built.removed) == (1, 1)


def test_df_01_created_and_deleted(desk: Callable[..., Desk], tmp_path: Path) -> None:
    d = desk(tmp_path)
    for name, text in (("a", "x\n"), ("b", "x"), ("c", "")):
        result: Any = parse_result(d.write(name, text))
        assert result.patch.source == "/dev/null"
        assert by_patch(result.patch, b"", tmp_path / f"there {name}", "git") == text.encode()
        assert "new file" in str(result.patch) or "--- /dev/null" in str(result.patch)


def test_df_01_encodings_and_bad_bytes(desk: Callable[..., Desk]) -> None:
    d = desk()
    for n, (data, exact) in enumerate(
        [
            ("\ufeffone\r\ntwo\r\n".encode("utf-16-le"), True),
            (b"alpha \xff beta gamma delta\none\n", False),
            ("d\u00e9j\u00e0 vu, na\u00efve fa\u00e7ade \u2013 caf\u00e9\none\n".encode("cp1252") * 20, True),
        ]
    ):
        path = d.put(f"{n}", data)
        d.read(path)
        result: Any = parse_result(d.edit(path, "one", "1", replace_all=True))
        assert any(entry.replace("\ufeff", "").startswith("+1") for hunk in result.patch.hunks for entry in hunk.lines)
        str(result.patch).encode()
        assert "\ufffd" not in str(result.patch)
        assert len(PatchSet(str(result.patch))) == 1
        assert result.patch.exact is exact


def test_df_01_any_edit_round_trips(desk: Callable[..., Desk]) -> None:
    chance = random.Random(20)
    d = desk()
    pieces = [
        "a",
        "b",
        "\n",
        "\r\n",
        "\r",
        "\n\n",
        "\x0c",
        "\u2028",
        "- x\n",
        "\\ No newline at end of file\n",
        "+",
        " ",
        "@@ -1 +1 @@\n",
    ]
    for n in range(80):
        before = "".join(chance.choices(pieces, k=chance.randrange(1, 25)))
        after = (
            "".join(chance.choices(pieces, k=chance.randrange(0, 25)))
            if n % 2
            else before.replace(chance.choice(pieces), chance.choice(pieces), 1)
        )
        path = d.put("f", before.encode())
        d.read(path)
        message = d.write(path, after)
        assert message.status == "success", message.content
        result: Any = parse_result(message)
        assert apply(result.patch, before.encode()) == after.encode()
        assert len(PatchSet(str(result.patch))) <= 1


# ---- DF-03 ----------------------------------------------------------------------------------------------------------


def size_of(message: Any) -> int:
    return sum(len(hunk["lines"]) for hunk in message.artifact["patch"]["hunks"])


def test_df_03_one_line_among_popular_ones(desk: Callable[..., Desk]) -> None:
    d = desk()
    lines = [f"line {n % 4}" for n in range(2000)]
    before = "\n".join(lines) + "\n"
    lines.insert(1000, "new")
    after = "\n".join(lines) + "\n"
    path = d.put("f", before.encode())
    d.read(path)
    message = d.write(path, after)
    assert size_of(message) <= 10
    assert (message.artifact["added"], message.artifact["removed"]) == (1, 0)
    path = d.put("g", before.encode())
    d.read(path)
    message = d.edit(path, "line 3\n" * 1 + "line 0\nline 1\n", "x\n", replace_all=True)
    assert message.artifact["patch"]["removed"] == 3 * message.artifact["replacements"]


def test_df_03_a_shuffled_file_does_not_keep_anybody_waiting(desk: Callable[..., Desk]) -> None:
    """Not by the clock: the steps of comparing are counted, and past the bound the patch says that it is cut."""
    d = desk()
    chance = random.Random(3)
    lines = [f"line {n % 120}" for n in range(40_000)]
    path = d.put("f", ("\n".join(lines) + "\n").encode())
    for offset in range(1, 40_000, 2000):
        d.read(path, offset=offset)
    chance.shuffle(lines)
    after = "\n".join(lines) + "\n"
    message = d.write(path, after)
    assert message.status == "success", message.content
    assert path.read_text() == after
    assert message.artifact["patch"]["truncated"] is True
    assert "\u2248" in str(message.content)  # the counts are no more than about right
    assert size_of(message) <= 10_000
    assert len(str(message.content)) < 500
    assert len(PatchSet(str(parse_result(message).patch))) == 1  # type: ignore[union-attr]


def test_df_03_long_lines(desk: Callable[..., Desk]) -> None:
    d = desk()
    path = d.put("f", (b"x" * 200_000 + b"\n") * 3)
    d.read(path)
    message = d.edit(path, "x" * 200_000 + "\n" + "x" * 200_000 + "\n" + "x" * 200_000, "y" * 200_000)
    assert message.status == "success"
    assert path.read_bytes() == b"y" * 200_000 + b"\n"
    patch: Any = parse_result(message).patch  # type: ignore[union-attr]
    assert len(str(patch)) < 1_010_000  # and no more, whatever the lines
    message = d.edit(path, "nope" * 50_000, "z" * 200_000)
    assert code(message) == "no_match"
    assert len(str(message.content)) < 1500


def test_df_03_a_refusal_with_a_diff_is_bounded(desk: Callable[..., Desk]) -> None:
    d = desk(recover_stale=False)
    path = d.put("f", b"".join(b"line %d\n" % n for n in range(5000)))
    d.read(path)
    path.write_bytes(b"".join(b"other %d\n" % n for n in range(5000)))
    message = d.edit(path, "line 1\n", "x\n")
    assert code(message) == "stale"
    assert len(str(message.content).split("\n")) < 70
    path.write_bytes(b"x" * 1_000_000)
    message = d.edit(path, "line 1\n", "x\n")
    assert len(str(message.content)) < 12_000
