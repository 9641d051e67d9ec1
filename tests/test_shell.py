"""What a shell command shows: commands are run for real, outputs are cut and altered, and no credit is false."""

from __future__ import annotations

import random
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from langchain_filestate._shell import Shown, attribute, named_files, shown_lines

if TYPE_CHECKING:
    from pathlib import Path

WHOLE = ((1, -1),)
TEN = [f"line {n}" for n in range(1, 11)]


def run(command: str, cwd: Path, shell: str = "bash") -> str:
    env = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
    done = subprocess.run([shell, "-c", command], cwd=cwd, env=env, capture_output=True, check=False)
    return done.stdout.decode("utf-8", "replace")


def lines_of(data: bytes) -> list[str]:
    text = data.decode("utf-8", "surrogateescape").removeprefix("\ufeff")
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


PARSED: list[tuple[str, list[tuple[str, str, tuple[tuple[int, int], ...]]]]] = [
    ("cat a.txt", [("a.txt", "cat", WHOLE)]),
    ("cat 'my file' \"it's\" a\\ b", [("my file", "cat", WHOLE), ("it's", "cat", WHOLE), ("a b", "cat", WHOLE)]),
    ('cat "a\\"b\\\nc\\d"', [('a"bc\\d', "cat", WHOLE)]),
    ("cat a\\\n  b", [("a", "cat", WHOLE), ("b", "cat", WHOLE)]),
    ("/bin/cat a; /usr/bin/head b", [("a", "cat", WHOLE), ("b", "head", ((1, 10),))]),
    ("cat -- -n", [("-n", "cat", WHOLE)]),
    ("cat a -n", [("a", "cat", WHOLE)]),
    ("cat a  # look at it\n\n# and\nless b", [("a", "cat", WHOLE), ("b", "less", WHOLE)]),
    ("cat a # the end", [("a", "cat", WHOLE)]),
    ("cat a~ b#c x&&more d", [("a~", "cat", WHOLE), ("b#c", "cat", WHOLE), ("x", "cat", WHOLE), ("d", "more", WHOLE)]),
    ("head -n 5 a", [("a", "head", ((1, 5),))]),
    ("head -5 a", [("a", "head", ((1, 5),))]),
    ("head -n -5 a", [("a", "head", ((1, -6),))]),
    ("head --lines=5 a", [("a", "head", ((1, 5),))]),
    ("head -n 0 a", [("a", "head", ())]),
    ("tail a", [("a", "tail", ((-10, -1),))]),
    ("tail -n +3 a", [("a", "tail", ((3, -1),))]),
    ("tail -n -3 a", [("a", "tail", ((-3, -1),))]),
    ("tail -n +0 a", [("a", "tail", ((1, -1),))]),
    ("sed -n '3,7p' a", [("a", "sed", ((3, 7),))]),
    ("sed -n 3,7p a", [("a", "sed", ((3, 7),))]),
    ("sed -n '3p;5,$p' a", [("a", "sed", ((3, 3), (5, -1)))]),
    ("sed -ne 3p -e '$p' a", [("a", "sed", ((3, 3), (-1, -1)))]),
    ("sed -n '3,+2p' a", [("a", "sed", ((3, 5),))]),
    ("sed -n '7,3p' a", [("a", "sed", ((7, 7),))]),
    ("sed -n '$,3p' a", [("a", "sed", ((-1, -1),))]),
    ("sed -n '10,$p;20q' a", [("a", "sed", ((10, 20),))]),
    ("sed -n '10,30p;20q' a", [("a", "sed", ((10, 20),))]),
    ("sed 20q a", [("a", "sed", ((1, 20),))]),
    ("sed -n p a", [("a", "sed", WHOLE)]),
    ("cd sub && cat a", [("sub/a", "cat", WHOLE)]),
    ("cd sub && cd more; cat a /b", [("sub/more/a", "cat", WHOLE), ("/b", "cat", WHOLE)]),
    ("cd .. && cat a", [("../a", "cat", WHOLE)]),
    ("bash -lc 'cd sub && cat a'", [("sub/a", "cat", WHOLE)]),
    ("grep -n 'a|b' f", [("f", "grep", WHOLE)]),
    ("grep -e x -e y f", [("f", "grep", WHOLE)]),
    ("rg -n --no-heading x f g", [("f", "grep", WHOLE), ("g", "grep", WHOLE)]),
]


@pytest.mark.parametrize(("command", "expected"), PARSED, ids=[command for command, _ in PARSED])
def test_commands_that_show_files(command: str, expected: list[tuple[str, str, tuple[tuple[int, int], ...]]]) -> None:
    assert [(shown.file_path, shown.how, shown.ranges) for shown in named_files(command)] == expected


UNCLEAR = [
    "", ";", "cat", "cat -", "cat ''", "cat a -", "cat a | wc -l", "cat a > b", "cat < a", "cat a 2>err", "cat a2>&1", "cat a 2>&1 | wc",
    "cat *.py", "cat a?", "cat [ab]", "cat {a,b}", "cat $F", 'cat "$F"', "cat `ls`", 'cat "`ls`"', "cat $(ls)", "(cat a)",
    "{ cat a; }", "cat a &", "cat a || cat b", "cat <<E\nx\nE", "cat ~/a", "F=a cat a", "cat 'a", 'cat "a', "cat a\\",
    "cat -A a", "cat -E a", "cat -s a", "cat a; ls", "if true; then cat a; fi", "for f in a; do cat a; done", "sudo cat a",
    "alias cat=head; cat a", "cat a\0b", "! cat a", "eval 'cat a'", "bash -c 'cat a | wc'", "bash -c 'cat a' x", "xargs cat",
    "head -c 5 a", "head -n 1k a", "head -n +5 a", "head -n x a", "tail -f a", "tail -c 5 a", "tail -q",
    "sed -i 1p a", "sed 1p a", "sed p a", "sed -n 1,5p a b", "sed -n '/x/p' a", "sed -n 0,5p a", "sed -n 's/a/b/p' a", "sed -n 5q a",
    "sed -n '5q;1p' a", "sed 0q a", "sed -n 1~2p a", "sed s/a/b/ a", "sed -n 1p",
    "nl -w 3 a", "nl -b n a", "nl -b pX a", "less a b", "less -N a", "less",
    "grep x", "grep -c x f", "grep -o x f", "grep -l x f", "grep -r x .", "grep -A 2 x f", "grep -m 1 x f", "grep -h x f g",
    "grep -nH -A 1 x f", "grep -n x a:b c", "grep --color=always x f", "grep x f; cat f", "grep x f; grep y f", "grep -b x f",
    "rg x -r y f", "rg --json x f", "rg x", "cd; cat a", "cd - && cat a", "cd ~ && cat a", "cd a b && cat c", "cd '' && cat a",
    "cd a && cd .. && cat b", "cd -P a && cat b", "echo -n x; cat a", "echo -e x; cat a", "echo 'a\\n'; cat b", "pushd a && cat b",
    "cat " + "a " * 20_000,
]  # fmt: skip


@pytest.mark.parametrize("command", UNCLEAR, ids=[command[:30] for command in UNCLEAR])
def test_commands_whose_output_is_not_worked_out(command: str) -> None:
    assert named_files(command) == ()
    assert attribute(command, "line 1\n", {"a": ["line 1"], "f": ["line 1"]}) == {}


RUNS: list[tuple[str, dict[str, tuple[tuple[int, int], ...]]]] = [
    ("cat a", {"a": ((1, 10),)}),
    ("cat a b", {"a": ((1, 10),), "b": ((1, 3),)}),
    ("cat a 2>&1", {"a": ((1, 10),)}),
    ("cat a 2> /dev/null || true", {"a": ((1, 10),)}),
    ("2>&1 cat a ||:; cat b 2>/dev/null&& echo end", {"a": ((1, 10),), "b": ((1, 3),)}),
    ("cat -n a b", {"a": ((1, 10),), "b": ((1, 3),)}),
    ("cat -b a b", {"a": ((1, 10),), "b": ((1, 3),)}),
    ("nl a", {"a": ((1, 10),)}),
    ("nl a b", {"a": ((1, 10),), "b": ((1, 3),)}),
    ("nl -ba a b", {"a": ((1, 10),), "b": ((1, 3),)}),
    ("cat b a", {"a": ((1, 10),), "b": ((1, 3),)}),
    ("cat a a", {"a": ((1, 10),)}),
    ("head -n 3 a; tail -n 2 a", {"a": ((1, 3), (9, 10))}),
    ("head -n 6 a; tail -n 6 a", {"a": ((1, 10),)}),
    ("head -n 3 a b", {"a": ((1, 3),), "b": ((1, 3),)}),
    ("head -q -n 3 a b", {"a": ((1, 3),), "b": ((1, 3),)}),
    ("head -v -n 3 a", {"a": ((1, 3),)}),
    ("tail -n 2 a b", {"a": ((9, 10),), "b": ((2, 3),)}),
    ("head -n -8 a", {"a": ((1, 2),)}),
    ("head -n -20 a", {}),
    ("head -n 0 a", {}),
    ("tail -n 0 a", {}),
    ("tail -n 99 a", {"a": ((1, 10),)}),
    ("tail -n +99 a", {}),
    ("sed -n '2,4p;9,$p' a", {"a": ((2, 4), (9, 10))}),
    ("sed -n '2,4p;3,5p' a", {}),  # some lines twice
    ("sed -n '9,99p' a", {"a": ((9, 10),)}),
    ("sed 4q a", {"a": ((1, 4),)}),
    ("sed 99q a", {"a": ((1, 10),)}),
    ("sed -n '2,$p;4q' a", {"a": ((2, 4),)}),
    ("sed -n '$p' b", {"b": ((3, 3),)}),
    ("grep -n e a", {"a": ((1, 10),)}),
    ("grep -n 1 a", {"a": ((1, 1), (10, 10))}),
    ("grep -n -C1 5 a", {"a": ((4, 6),)}),
    ("grep -1 -n 5 a", {"a": ((4, 6),)}),
    ("grep -n -A1 -e 2 -e 7 a", {"a": ((2, 3), (7, 8))}),
    ("grep 1 a", {"a": ((1, 1), (10, 10))}),
    ("grep -v 1 a", {"a": ((2, 9),)}),
    ("grep -H 7 a", {"a": ((7, 7),)}),
    ("grep -n . a b", {"a": ((1, 10),), "b": ((1, 1), (3, 3))}),
    ("grep . a b", {"a": ((1, 10),), "b": ((1, 1), (3, 3))}),
    ("grep -n -m 2 e a", {"a": ((1, 2),)}),
    ("grep -n nothing a", {}),
    ("egrep '1|2' a", {"a": ((1, 2), (10, 10))}),
    ("cat a; grep -n x b", {"a": ((1, 10),), "b": ((1, 1),)}),
    ("cat a && echo --- && cat b", {"a": ((1, 10),), "b": ((1, 3),)}),
    ("echo 'two\nlines'; cat b", {"b": ((1, 3),)}),
    ("cd sub && cat c", {"sub/c": ((1, 1),)}),
    ("cd sub && cat c ../b; echo end", {"sub/c": ((1, 1),), "sub/../b": ((1, 3),)}),
    ("cd sub && grep -n c c ../b", {"sub/c": ((1, 1),)}),
    ("sh -c 'cat b'", {"b": ((1, 3),)}),
    ("cat empty", {"empty": ()}),
    ("cat a empty b", {"a": ((1, 10),), "b": ((1, 3),), "empty": ()}),
    ("grep -n x empty", {}),
    ("cat missing a", {"a": ((1, 10),)}),
    ("cat missing", {}),
    ("cat a joined", {"a": ((1, 10),), "joined": ((1, 2),)}),
    ("cat joined a", {}),  # two lines run together
    ("cat crlf", {"crlf": ((1, 4),)}),
    ("cat -n crlf", {"crlf": ((1, 4),)}),
    ("cat -b crlf", {"crlf": ((1, 4),)}),
    ("nl crlf", {"crlf": ((1, 4),)}),
    ("grep -n y crlf", {"crlf": ((2, 2),)}),
    ("grep y crlf", {"crlf": ((2, 2),)}),
    ("cat bom", {"bom": ((1, 2),)}),
    ("cat -n bom", {"bom": ((1, 2),)}),
    ("cat latin", {}),
    ("head -n 1 latin", {"latin": ((1, 1),)}),
    ("cat genuine", {"genuine": ((1, 1),)}),
    ("less b", {"b": ((1, 3),)}),
    ("cat blanks", {"blanks": ((1, 3),)}),
    ("cat -b blanks", {"blanks": ((1, 3),)}),
    ("nl blanks", {"blanks": ((1, 3),)}),
]
FILES = {
    "a": "".join(line + "\n" for line in TEN).encode(),
    "b": b"x\n\nz\n",
    "sub/c": b"c\n",
    "empty": b"",
    "joined": b"one\ntwo",
    "crlf": b"x\r\ny\r\n\r\nz\r\n",
    "bom": b"\xef\xbb\xbfx\ny\n",
    "latin": b"plain\ncaf\xe9\n",
    "genuine": "\ufffd\n".encode(),
    "blanks": b"\n\n\n",
}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tree")
    (root / "sub").mkdir()
    for name, data in FILES.items():
        (root / name).write_bytes(data)
    return root


def known(command: str) -> dict[str, list[str]]:
    names = {shown.file_path: shown.file_path.replace("sub/../", "") for shown in named_files(command)}
    return {path: lines_of(FILES[name]) for path, name in names.items() if name in FILES}


def langchain_note(output: str, code: int) -> str:
    return f"{(output or '<no output>').rstrip()}\n\nExit code: {code}" if code else output or "<no output>"


@pytest.mark.parametrize(("command", "expected"), RUNS, ids=[command for command, _ in RUNS])
def test_commands_that_are_run(command: str, expected: dict[str, tuple[tuple[int, int], ...]], tree: Path) -> None:
    output = run(command, tree)
    files = known(command)
    assert attribute(command, output, files) == expected
    assert attribute(command, output.removesuffix("\n"), files) == (
        {} if "blanks" in command and output.endswith("\n\n") and output.strip(" \n") == "" else expected
    )
    assert attribute(command, f"{output}\n[Command succeeded with exit code 0]", files) == expected
    assert attribute(command, langchain_note(output, 0), files) == expected
    for note in (
        "\n[Output was truncated due to size limits]",
        "\n\n... Output truncated at 9 lines (observed 12).",
        "more",
    ):
        assert attribute(command, output + note, files) == {}
        assert attribute(command, f"{output}{note}\n[Command succeeded with exit code 0]", files) == {}


def test_the_notes_of_a_failed_command() -> None:
    command, files = "cat a gone", {"a": ["x", "y"]}
    shown = {"a": ((1, 2),)}
    assert (
        attribute(
            command,
            "x\ny\n\n[stderr] cat: gone: No such file\n\nExit code: 1\n[Command failed with exit code 1]",
            files,
        )
        == shown
    )
    assert attribute(command, "x\ny\n[stderr] cat: gone: No such file\n\nExit code: 1", files) == shown
    assert attribute(command, "[stderr] cat: gone: No such file\nx\ny\n\nExit code: 1", files) == shown
    assert attribute(command, "x\ny\n\nExit code: 1", files) == shown
    assert attribute(command, "x\ncat: gone: No such file\ny\n", files) == {}
    assert attribute("cat a", "[stderr] x\ny\n", {"a": ["[stderr] x", "y"]}) == shown
    # The directory may be what is missing: nothing was shown of an empty file then.
    assert attribute("cd d && cat a", "[stderr] cd: d: No such file\n\nExit code: 1", {"d/a": []}) == {}
    assert attribute("cat a", "<no output>\n\nExit code: 1", {"a": []}) == {}
    assert attribute("cat a", "<no output>", {"a": []}) == {"a": ()}
    assert attribute("cat a", "<no output>", {"a": ["<no output>"]}) == {"a": ((1, 1),)}
    assert attribute("cat a", "Error: Command timed out after 3.0 seconds.", files) == {}


def test_altered_outputs_count_for_nothing() -> None:
    lines = ["key = 1", "mail me@example.org", "end"]
    for output in (
        "key = 1\nmail [REDACTED_EMAIL]\nend\n",  # redacted
        "key = 1\nmail me@example.org\n",  # cut
        "mail me@example.org\nend\n",
        "key = 1\nend\n",
        "\x1b[1mkey = 1\x1b[0m\nmail me@example.org\nend\n",
        "key = 1\nmail me@example.org\nend\nend\n",
        "key = 1\n\nmail me@example.org\nend\n",
        "",
    ):
        assert attribute("cat f", output, {"f": lines}) == {}
    assert attribute("cat -n f", "     1\tkey = 1\n     3\tmail me@example.org\n", {"f": lines[:2]}) == {}
    assert attribute("cat -n f", "key = 1\n", {"f": lines[:1]}) == {}
    assert attribute("cat f", "\udcff\n", {"f": ["\udcff"]}) == {}
    assert attribute("cat f", "\ufffd\n", {"f": ["\udcff"]}) == {}
    assert attribute("grep -n e f", "9:end\n", {"f": lines}) == {}
    assert attribute("grep -n e f", "1:key\n", {"f": lines}) == {}
    assert attribute("grep -n e f", "3:end\n1:key = 1\n", {"f": lines}) == {}
    assert attribute("grep -n e f", "1:key = 1\n1:key = 1\n", {"f": lines}) == {}
    assert attribute("grep -n e f", "0:end\n", {"f": lines}) == {}
    assert attribute("grep e f", "end\n", {"f": ["end", "x", "end"]}) == {}
    assert attribute("grep e f", "end\nother\n", {"f": ["end"]}) == {}
    assert attribute("grep e f", "end\r\nend\n", {"f": ["end", "x", "end"]}) == {"f": ((1, 1), (3, 3))}
    assert attribute("echo x; cat f", "y\nend\n", {"f": ["end"]}) == {}


def test_one_file_at_a_time() -> None:
    (shown,) = named_files("sed -n '2,3p' f")
    assert shown == Shown("f", "sed", ((2, 3),))
    assert shown_lines(shown, "line 2\nline 3\n", TEN) == ((2, 3),)
    assert shown_lines(shown, "line 2\n", TEN) == ()
    assert shown_lines(named_files("cat f")[0], "", []) == ()


LINE = st.sampled_from(
    [
        "",
        "a",
        "b",
        " a",
        "a ",
        "\ta",
        "1\ta",
        "     1\ta",
        "1:a",
        "2-a",
        "--",
        "==> a <==",
        "[stderr] x",
        "é",
        "<no output>",
        "x:1:a",
        "\\:\\:",
    ]
)
DATA = st.builds(
    lambda lines, end, last: end.join(line.encode() for line in lines) + (end if last and lines else b""),
    st.lists(LINE, max_size=8),
    st.sampled_from([b"\n", b"\n", b"\r\n"]),
    st.booleans(),
)
COUNT = st.integers(0, 9).map(str)
NAMES = st.lists(st.sampled_from(["x", "y", "z"]), min_size=1, max_size=3).map(" ".join)
SHOWING = st.one_of(
    st.builds("cat {} {}".format, st.sampled_from(["", "-n", "-b", "-A", "-s"]), NAMES),
    st.builds("nl {} {}".format, st.sampled_from(["", "-ba", "-bn"]), NAMES),
    st.builds("{} {}{} {}".format, st.sampled_from(["head", "tail"]), st.sampled_from(["-n ", "-n -", "-", "-q -n ", "-n +"]), COUNT, NAMES),
    st.builds("sed -n '{},{}p{}' {}".format, COUNT, st.one_of(COUNT, st.just("$"), COUNT.map("+".__add__)), st.sampled_from(["", ";4q", ";6p", ";$p"]), NAMES),
    st.builds("sed {}q {}".format, COUNT, NAMES),
    st.builds("grep {} {} {}".format, st.sampled_from(["-n", "", "-v", "-nA1", "-n -m2", "-H", "-C1", "-c", "-nv"]), st.sampled_from(["a", "-e 1", "''", ":"]), NAMES),
    st.builds("echo {}".format, st.sampled_from(["a", "--", "'==> a <=='", ""])),
)  # fmt: skip
COMMAND = st.lists(SHOWING, min_size=1, max_size=3).map("; ".join)


def stands_in(lines: list[str], ranges: tuple[tuple[int, int], ...], output: str) -> bool:
    """Whether the lines stand in the output, each at the end of a line of its own (what precedes it is a number or a name)."""
    left: dict[str, int] = {}
    printed = [line.removesuffix("\r") for line in output.split("\n")]
    for first, last in ranges:
        for line in lines[first - 1 : last]:
            left[line] = left.get(line, 0) + 1
    return all(
        sum(got.removeprefix("\ufeff").endswith(line) for got in printed) >= count for line, count in left.items()
    )


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(command=COMMAND, data=st.tuples(DATA, DATA, DATA), seed=st.integers(0, 2**32))
def test_credit_is_never_false(command: str, data: tuple[bytes, ...], seed: int, tmp_path: Path) -> None:
    for name, content in zip("xyz", data, strict=True):
        (tmp_path / name).write_bytes(content)
    files = {name: lines_of(content) for name, content in zip("xyz", data, strict=True)}
    output = run(command, tmp_path)
    rng = random.Random(seed)
    outputs = [output, output.strip(), output.replace("\r\n", "\n"), output + "\n[Command succeeded with exit code 0]"]
    printed = output.split("\n")
    for _ in range(8):
        a, b = sorted(rng.choices(range(len(output) + 1), k=2))
        i = rng.randrange(len(printed))
        outputs += [output[:a], output[b:], output[:a] + output[b:], output[:a] + "~" + output[a:]]
        outputs += ["\n".join(printed[:i] + printed[i + 1 :]), "\n".join([*printed[:i], printed[0], *printed[i:]])]
    for got in outputs:
        for path, ranges in attribute(command, got, files).items():
            assert stands_in(files[path], ranges, got), (command, got, path, ranges)
            assert all(1 <= first <= last <= len(files[path]) for first, last in ranges)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=DATA, options=st.sampled_from(["", "-n"]), first=st.integers(1, 9), count=st.integers(0, 9))
def test_what_is_shown_is_credited(data: bytes, options: str, first: int, count: int, tmp_path: Path) -> None:
    """An oracle by slices; a cut output of these commands never counts."""
    (tmp_path / "x").write_bytes(data)
    lines = lines_of(data)
    every = list(range(1, len(lines) + 1))
    for command, wanted in (
        (f"cat {options} x", every),
        (f"head -n {count} x", every[:count]),
        (f"tail -n {count} x", every[-count:] if count else []),
        (f"tail -n +{first} x", every[first - 1 :]),
        (f"sed -n '{first},{first + count}p' x", every[first - 1 : first + count]),
        (f"sed -n '{first},$p' x", every[first - 1 :]),
    ):
        output = run(command, tmp_path)
        credit = attribute(command, output, {"x": lines}).get("x", ())
        assert [n for a, b in credit for n in range(a, b + 1)] == wanted, command
        if output.strip("\r\n"):
            assert attribute(command, output[: len(output.rstrip("\r\n")) - 1], {"x": lines}) == {}, command


@pytest.mark.usefixtures("tidy_shell")
def test_with_the_shell_of_langchain(tree: Path) -> None:
    shell_tool = pytest.importorskip("langchain.agents.middleware.shell_tool")
    middleware = shell_tool.ShellToolMiddleware(
        tree, execution_policy=shell_tool.HostExecutionPolicy(max_output_lines=5)
    )
    resources = middleware._create_resources()

    def shell(command: str) -> str:
        content: Any = middleware._run_shell_tool(resources, {"command": command}, tool_call_id="c").content
        assert isinstance(content, str)
        return content

    try:
        for command, expected in (
            ("cat b", {"b": ((1, 3),)}),
            ("cat crlf", {"crlf": ((1, 4),)}),
            ("cat empty", {"empty": ()}),
            ("cat b missing", {"b": ((1, 3),)}),
            ("grep -n nothing a", {}),
            ("cat a", {}),  # ten lines are cut to five
            ("head -n 5 a", {"a": ((1, 5),)}),
        ):
            assert attribute(command, shell(command), known(command)) == expected, command
    finally:
        resources.finalizer()


def test_with_the_shell_of_deepagents(tree: Path) -> None:
    local_shell = pytest.importorskip("deepagents.backends.local_shell")
    filesystem = pytest.importorskip("deepagents.middleware.filesystem")
    for limit, command, expected in (
        (1000, "cat b", {"b": ((1, 3),)}),
        (1000, "cat joined", {"joined": ((1, 2),)}),
        (1000, "cat b missing", {"b": ((1, 3),)}),
        (1000, "cat blanks", {"blanks": ((1, 3),)}),
        (1000, "cat empty", {"empty": ()}),
        (1000, "grep -n nothing a", {}),
        (20, "cat a", {}),
    ):
        backend = local_shell.LocalShellBackend(
            root_dir=tree, virtual_mode=False, inherit_env=True, max_output_bytes=limit
        )
        done = backend.execute(command)
        text = filesystem.FilesystemMiddleware._format_execute_output(
            done.output, done.exit_code, truncated=done.truncated
        )
        assert attribute(command, text, known(command)) == expected, (command, text)
