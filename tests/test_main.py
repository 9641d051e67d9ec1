"""The command line, mostly in this process: what it prints, what it returns, and what is on disk afterwards."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import langchain_filestate
from langchain_filestate import _cli_agent, _cli_show
from langchain_filestate.__main__ import INSTALL, INTERRUPTED, PIPE_CLOSED, main
from langchain_filestate._cli_home import VARIABLE, Thread, home, opened

COMMAND = [sys.executable, "-m", "langchain_filestate"]
PROJECT = Path(langchain_filestate.__file__).parent.parent

READ = {"name": "read_file", "args": {"file_path": "app.py"}}
NEW = {"name": "write_file", "args": {"file_path": "pkg/new.py", "content": "a = 1\n"}}


def edit(old: str, new: str) -> dict[str, Any]:
    return {"name": "edit_file", "args": {"file_path": "app.py", "old_string": old, "new_string": new}}


@dataclass
class Desk:
    """A folder to work on, a state directory, and the command line."""

    root: Path
    state: Path
    capsys: pytest.CaptureFixture[str]

    @property
    def app(self) -> Path:
        return self.root / "app.py"

    def script(self, *lines: Any) -> str:
        path = self.state.parent / "script.json"
        path.write_text(json.dumps(lines))
        return f"scripted:{path}"

    def __call__(self, *args: str, code: int = 0) -> str:
        """What a command prints, on both streams."""
        got = main(list(args))
        out, err = self.capsys.readouterr()
        assert got == code, out + err
        assert "Traceback" not in err
        assert "\x1b" not in out + err
        return out + err

    def json(self, *args: str, code: int = 0) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self(*args, "--json", code=code).splitlines()]

    def run(self, *lines: Any, options: tuple[str, ...] = (), code: int = 0) -> str:
        """Start a thread; its id."""
        out = self("run", "go", "--model", self.script(*lines), "--root", str(self.root), *options, code=code)
        found = re.match(r"Thread (\S+) in ", out)
        assert found, out
        return found[1]


@pytest.fixture
def desk(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Desk:
    root, state = tmp_path / "work", tmp_path / "state"
    root.mkdir()
    (root / "app.py").write_text("x = 1\nprint(x)\n")
    monkeypatch.setenv(VARIABLE, str(state))
    monkeypatch.chdir(root)
    return Desk(root, state, capsys)


def outside(*args: str, **env: str) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(PROJECT), "PYTHONWARNINGS": "error", **env}
    return subprocess.run([*COMMAND, *args], capture_output=True, text=True, check=False, env=environment, timeout=120)


# ---- demo


CODES = ["not_read", None, "ambiguous", None, "stale", None, None, None]


def changed_lines(file: Path) -> list[bytes]:
    """Lines of the demo's file that the agent changed; every other one is as it was, but for the person's."""
    import unidiff

    before = Path(unidiff.__file__).with_name("patch.py").read_bytes().splitlines(keepends=True)
    after = file.read_bytes().splitlines(keepends=True)
    assert after.pop() == b"# A person was here while the agent worked.\n"
    changed = [(a, b) for a, b in zip(before, after, strict=True) if a != b]
    assert [re.sub(rb" \(edit \d, by the agent\)", b"", b) for _, b in changed] == [a for a, _ in changed]
    return [b for _, b in changed]


def test_demo_piped(tmp_path: Path) -> None:
    done = outside("demo", "--keep", TMPDIR=str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    assert re.findall(r"the model is told \((\w+)\)", done.stdout) == [code or "ok" for code in CODES]
    assert "File has not been read yet. Read it first before writing to it." in done.stdout
    assert "the model is told beforehand:" not in done.stdout  # the refusal has shown the change already
    assert "+# A person was here while the agent worked." in done.stdout
    assert "its record of the file: none" in done.stdout
    assert "seen 1-" in done.stdout
    processes = re.findall(r"\(process (\d+)\)", done.stdout)
    assert len(set(processes[:-1])) == 1
    assert processes[-1] not in processes[:-1]  # and it did not read
    folder = Path(done.stdout.rsplit(" ", 1)[1].strip())
    assert folder.parent == tmp_path
    assert len(changed_lines(folder / "unidiff" / "patch.py")) == 3


@pytest.fixture
def one_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The demo in this process, in a folder of the test's."""
    import tempfile

    from langchain_filestate import _cli_demo

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(_cli_demo, "_other_process", _cli_demo.second)


@pytest.mark.usefixtures("one_process")
def test_demo_as_json(desk: Desk) -> None:
    begin, *steps = desk.json("demo", "--keep")
    assert [step["step"] for step in (begin, *steps)] == list(range(9))
    assert [step["code"] for step in steps] == CODES
    assert [bool(step["patch"]) for step in steps] == [False, False, False, True, False, False, True, True]
    assert all(len(step["told"].splitlines()) < 30 for step in steps)
    assert [step["record"] is None for step in steps] == [True] + [False] * 7
    file = Path(begin["folder"], begin["file"])
    assert len(changed_lines(file)) == 3
    (step,) = [json.loads(line) for line in desk("demo", "--go-on", begin["folder"]).splitlines()]
    assert step["status"] == "success"
    assert len(changed_lines(file)) == 4


@pytest.mark.usefixtures("one_process")
def test_demo_leaves_nothing(desk: Desk, tmp_path: Path) -> None:
    before = sorted(tmp_path.iterdir())
    desk("demo")
    assert sorted(tmp_path.iterdir()) == before


def test_demo_reports_a_second_process_that_fails(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    from langchain_filestate import _cli_demo

    failed = subprocess.CompletedProcess([], 3, "", "no luck\n")
    monkeypatch.setattr(_cli_demo, "first", lambda _: iter(()))
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: failed)
    assert "The second process failed: no luck" in desk("demo", code=1)


# ---- run


def test_run_prints_what_happens_and_the_answer(desk: Desk) -> None:
    script = desk.script("hello", READ)
    out = desk("run", "say hello", "--model", script)
    assert out.startswith("Thread ")
    assert out.endswith("\nhello\n")
    (desk.root / ".git").mkdir()
    (desk.root / ".git" / "config").write_text("")
    (desk.root / "key.pem").write_text("k\n")
    lines = [
        {"name": "list_files", "args": {}},
        [READ, {"name": "read_file", "args": {"file_path": "key.pem"}}],
        READ,
        edit("x = 1", "x = 2"),
        "I changed x.",
    ]
    out = desk("run", "go", "--model", desk.script(*lines), "--deny", "*.pem")
    assert "list_files \n    ok: app.py\n" in out
    assert "    ok: line 1-2 of 2\n" in out
    assert "    ok: unchanged since it was read\n" in out
    assert "    denied: key.pem is closed" in out
    assert "  edit_file app.py old_string='x = 1' new_string='x = 2'\n    app.py +1 -1\n    ok: The file " in out
    assert out.endswith("\nI changed x.\n")
    assert desk.app.read_text() == "x = 2\nprint(x)\n"
    assert not (desk.state.stat().st_mode & 0o077)


def test_a_thread_goes_on_with_what_it_was_started_with(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    thread = desk.run(READ, options=("--read-only", "docs/", "--deny", "*.pem"))
    monkeypatch.chdir(desk.root.parent)
    desk.script(edit("x = 1", "x = 2"))
    out = desk("run", "go on", "--thread", thread, "--deny", "*.key")  # no read in between, no root, no model
    assert desk.app.read_text() == "x = 2\nprint(x)\n"
    assert out.count("Thread ") == 1
    with opened(desk.state) as kept:
        known = kept.thread(thread)
    assert known is not None
    assert (known.deny, known.read_only, known.root) == (("*.pem", "*.key"), ("docs/",), str(desk.root))
    wrong = desk("run", "go on", "--thread", thread, "--root", "/", code=2)
    assert f"works in {desk.root}" in wrong


def test_threads_have_names_of_their_own(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = [1, 1, 2]
    monkeypatch.setattr("secrets.choice", lambda names: names[0])
    monkeypatch.setattr("secrets.randbelow", lambda _: numbers.pop(0))
    assert [desk.run("hi"), desk.run("hi")] == ["amber-badger-101", "amber-badger-102"]


def test_run_as_json(desk: Desk) -> None:
    events = desk.json("run", "go", "--model", desk.script(READ, edit("x = 1", "x = 2"), edit("nowhere", ""), "Done."))
    kinds = [event["event"] for event in events]
    assert kinds == ["thread", "call", "result", "call", "change", "result", "call", "result", "answer"]
    assert events[4]["path"] == str(desk.app)
    assert events[5]["tool_call_id"] == events[3]["tool_call_id"]
    assert events[7]["code"] == "no_match"
    assert events[-1]["text"] == "Done."


def test_the_model_is_told_what_changed_meanwhile(desk: Desk) -> None:
    thread = desk.run(READ)
    desk.app.write_text("x = 1\nprint(x + 1)\n")
    out = desk("run", "go on", "--thread", thread)
    assert "told of a change: " in out


class Line(io.StringIO):
    """A terminal's input, that ends."""


@pytest.fixture
def types(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def say(*lines: str) -> None:
        monkeypatch.setattr(sys, "stdin", Line("".join(f"{line}\n" for line in lines)))

    return say


def test_approval(desk: Desk, types: Callable[..., None]) -> None:
    types("", "not so, please", "y", "no")
    script = desk.script(READ, edit("x = 1", "x = 3"), edit("x = 1", "x = 2"), NEW)
    out = desk("run", "go", "--model", script, "--approve")
    assert out.count("Do it? y, n, or say why not:") == 4
    assert f"Change {desk.app} (+1 / -1)" in out
    assert "    -x = 1\n    +x = 3\n" in out
    assert "not so, please" in out.split("rejected: ", 1)[1]
    assert desk.app.read_text() == "x = 2\nprint(x)\n"
    assert not (desk.root / "pkg").exists()


def test_questions_that_nobody_answers_wait(desk: Desk, types: Callable[..., None]) -> None:
    types()
    both = [edit("x = 1", "x = 2"), NEW]
    thread = desk.run(READ, both, "Both.", options=("--approve",), code=1)
    types()
    assert "Nobody answered" in desk("run", "--thread", thread, code=1)
    assert desk.app.read_text() == "x = 1\nprint(x)\n"
    types("y", "y")
    desk.script("Both.", "And more.")
    events = desk.json("run", "and more", "--thread", thread)
    assert [event["event"] for event in events[:4]] == ["thread", "resumes", "asks", "asks"]
    assert events[-1]["text"] == "And more."
    assert desk.app.read_text() == "x = 2\nprint(x)\n"
    assert (desk.root / "pkg/new.py").read_text() == "a = 1\n"
    assert "nothing of this thread was broken off" in desk("run", "--thread", thread, code=2)


def test_questions_are_dropped_on_request(desk: Desk, types: Callable[..., None]) -> None:
    types()
    thread = desk.run(READ, edit("x = 1", "x = 2"), options=("--approve",), code=1)
    out = desk("run", "--thread", thread, "--no-approve")
    assert "Do it?" not in out
    assert desk.app.read_text() == "x = 2\nprint(x)\n"


def test_an_interrupt_from_the_keyboard(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stopped:
        def readline(self) -> str:
            raise KeyboardInterrupt

    monkeypatch.setattr(sys, "stdin", Stopped())
    desk.run(NEW, options=("--approve",), code=INTERRUPTED)
    assert not (desk.root / "pkg").exists()


def test_what_the_model_says_beside_its_calls(desk: Desk) -> None:
    from langchain_core.messages import AIMessage

    from langchain_filestate._cli_run import _Work

    graph: Any = None
    work = _Work(graph, _cli_show.Screen(), "t", asks=False, as_json=False)
    work.show(AIMessage("I look\nfirst.", tool_calls=[{**READ, "id": "1"}]))
    assert desk.capsys.readouterr().out == "I look first.\n  read_file app.py\n"


def fails() -> Any:
    raise OverflowError("too\nmuch")


def test_a_model_that_fails_can_be_asked_again(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    scripts: list[list[Any]] = [
        [
            READ,
            "I will.",
        ],
        [READ, fails],
        [edit("x = 1", "x = 2"), "Done."],
    ]
    models = [_cli_agent.Scripted(script=script) for script in scripts[1:]]
    monkeypatch.setattr("langchain.chat_models.init_chat_model", lambda _: models.pop(0))
    out = desk("run", "go", "--model", "some:model", code=1)
    assert "The model did not answer. OverflowError: too much\nGo on later with: run --thread " in out
    thread = out.split()[-1]
    out = desk("run", "--thread", thread)
    assert "Going on with what was broken off." in out
    assert out.endswith("Done.\n")
    assert desk.app.read_text() == "x = 2\nprint(x)\n"


def test_the_listing_is_bounded_and_keeps_to_the_rules(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    from langchain_filestate import FileToolkit

    monkeypatch.setattr(_cli_agent, "MOST_LISTED", 3)
    for name in ("a.txt", "b.txt", "secret.txt", "node_modules/c.txt", "d/e.txt"):
        (desk.root / name).parent.mkdir(exist_ok=True)
        (desk.root / name).write_text("")
    listing = _cli_agent.lister(FileToolkit(desk.root, deny=["secret.txt"]))
    assert listing.invoke({"pattern": "*.txt"}).splitlines() == ["a.txt", "b.txt", "d/e.txt"]
    assert listing.invoke({"pattern": "d/"}) == "d/e.txt"
    assert listing.invoke({"pattern": "*.md"}) == "No files match."
    assert listing.invoke({}).splitlines()[3:] == ["... (more files; give a narrower pattern)"]


# ---- history


def test_history(desk: Desk) -> None:
    assert "yet" in desk("history")
    assert desk.json("history") == []
    assert not desk.state.exists()
    quiet = desk.run("nothing")
    assert quiet in desk("history")
    thread = desk.run(READ, edit("x = 1", "x = 2"), NEW)
    rows = desk("history").splitlines()
    assert rows[0].split() == ["thread", "changes", "files", "started", "last", "change", "root"]
    assert rows[1].split()[:3] == [quiet, "0", "0"]
    assert rows[2].split()[:3] == [thread, "2", "2"]
    first, second = desk("history", "--thread", thread).splitlines()[1:]
    assert first.split()[0] == "1"
    assert first.split()[3:] == ["agent", "edit_file", "app.py", "+1", "-1"]
    assert second.split()[3:] == ["agent", "write_file", "pkg/new.py", "+1", "-0"]
    assert desk("history", "--thread", quiet) == "No changes.\n"
    patch = (
        f"Change 1: edit_file app.py\n--- a{desk.app}\n+++ b{desk.app}\n@@ -1,2 +1,2 @@\n-x = 1\n+x = 2\n print(x)\n"
    )
    assert patch in desk("history", "--thread", thread, "--patch")
    assert desk("history", "--path", "app.py").splitlines()[1].split()[0] == thread
    threads = desk.json("history")
    assert [(t["thread"], t["changes"], t["root"]) for t in threads] == [
        (quiet, 0, str(desk.root)), (thread, 2, str(desk.root)),
    ]  # fmt: skip
    changes = desk.json("history", "--thread", thread, "--path", "pkg/new.py", "--patch")
    assert [(c["number"], c["tool"], c["added"], c["before"]) for c in changes] == [(2, "write_file", 1, None)]
    assert "+a = 1\n" in changes[0]["patch"]


def test_history_admits_what_it_does_not_know(desk: Desk) -> None:
    thread = desk.run(READ, edit("x = 1", "x = 2"))
    desk.app.write_text("by hand\n")
    out = desk("history", "--thread", thread, "--patch")
    assert out.splitlines()[1].split()[-2:] == ["?", "?"]
    assert "(the bytes are not kept)" in out
    desk.app.rename(desk.root.parent / "app.py")
    desk.root.rename(desk.root.parent / "elsewhere")
    assert desk.json("history", "--thread", thread)[0]["added"] is None


def test_changes_outside_any_thread_are_listed_by_path(desk: Desk) -> None:
    from langchain_filestate import FileHistory, FileToolkit

    with opened(desk.state) as kept:
        toolkit = FileToolkit(desk.root, history=FileHistory(kept.store), require_read="never")
        {tool.name: tool for tool in toolkit.get_tools()}["edit_file"].invoke(edit("x = 1", "x = 2")["args"])
    row = desk("history", "--path", "app.py").splitlines()[1].split()
    assert row[2:] == ["main", "edit_file", "app.py", "+1", "-1"]
    assert desk("history") == "No threads yet.\n"
    assert desk.json("history", "--path", "app.py")[0]["number"] is None


def test_threads_of_other_programs_on_the_same_store(desk: Desk) -> None:
    from langchain_filestate import Change, FileHistory
    from langchain_filestate._history import next_seq

    with opened(desk.state) as kept:
        change = Change("id", str(desk.app), None, "f" * 64, None, next_seq(), None, "shell", "theirs", None, None)
        FileHistory(kept.store).record(change, None)
    assert "theirs" in desk("history")
    assert desk("history", "--thread", "theirs").splitlines()[1].split()[3:] == ["shell", "app.py", "?", "?"]


def test_no_file_steers_the_terminal(desk: Desk) -> None:
    desk.app.write_bytes(b"x = 1\n\x1b]0;title\x07\r\xff\xe2\x80\xae\n")
    name = os.fsencode(desk.root) + b"/odd\x1b[31m\xff.txt"
    desk.run(READ, edit("x = 1", "x = 2"))
    out = desk("history", "--path", "app.py", "--patch")
    assert r"\x1b]0;title\x07\r\xff\u202e" in out
    assert os.fsencode(_cli_show.clean(os.fsdecode(name))).endswith(rb"/odd\x1b[31m\xff.txt")


# ---- rewind


def test_there_and_back(desk: Desk) -> None:
    thread = desk.run(READ, edit("x = 1", "x = 2"), NEW, "Done.")
    rows = desk("rewind", "--thread", thread).splitlines()
    assert [int(row.split()[3]) for row in rows[1:4]] == [0, 1, 2]
    places = desk.json("rewind", "--thread", thread)
    assert [place["changes_since"] for place in places] == [0, 1, 2]
    out = desk("rewind", "--thread", thread, "--before", "1")
    assert "restore  app.py" in out
    assert "-x = 2\n+x = 1\n" in out
    assert "This is a preview" in out
    assert desk.app.read_text() == "x = 2\nprint(x)\n"
    out = desk("rewind", "--thread", thread, "--to", places[1]["checkpoint"], "--apply")
    assert "deleted  pkg/new.py" in out
    assert not (desk.root / "pkg").exists()
    assert desk.app.read_text() == "x = 2\nprint(x)\n"
    undo = re.search(r"Undo this: (.*)", out)
    assert undo
    desk(*undo[1].split())
    assert (desk.root / "pkg/new.py").read_text() == "a = 1\n"
    out = desk("rewind", "--thread", thread, "--before", "1", "--apply")
    assert desk.app.read_text() == "x = 1\nprint(x)\n"
    on = re.search(r"run TASK (.*)", out)
    assert on
    desk.script(edit("x = 1", "x = 5"), "Other.")
    out = desk("run", "another way", *on[1].split())  # no read: what was read then is on disk again
    assert "told of a change" not in out
    assert desk.app.read_text() == "x = 5\nprint(x)\n"
    assert "Nothing to do" in desk(
        "rewind", "--thread", thread, "--to", desk.json("rewind", "--thread", thread)[0]["checkpoint"]
    )


def test_what_others_changed_is_left_alone(desk: Desk) -> None:
    thread = desk.run(READ, edit("x = 1", "x = 2"), NEW)
    desk.app.write_text("by hand\n")
    (out,) = desk.json("rewind", "--thread", thread, "--before", "1", code=1)
    assert not out["applied"]
    assert [(e["file_path"], e["action"]) for e in out["conflicts"]] == [(str(desk.app), "restore")]
    assert [(e["file_path"], e["action"]) for e in out["restored"]] == [(str(desk.root / "pkg/new.py"), "delete")]
    text = desk("rewind", "--thread", thread, "--before", "1", code=1)
    assert "left alone  app.py" in text
    assert "--force" in text
    assert "left alone" not in desk("rewind", "--thread", thread, "--before", "1", "--force")
    desk("rewind", "--thread", thread, "--before", "1", "--apply", code=1)
    assert desk.app.read_text() == "by hand\n"
    assert not (desk.root / "pkg").exists()
    (out,) = desk.json("rewind", "--thread", thread, "--before", "1", "--apply", "--force")
    assert out["applied"]
    assert desk.app.read_text() == "x = 1\nprint(x)\n"


def test_what_is_not_kept_cannot_be_forced(desk: Desk) -> None:
    thread = desk.run(READ, edit("x = 1", "x = 2"))
    desk.app.unlink()
    desk.app.mkdir()
    (out,) = desk.json("rewind", "--thread", thread, "--before", "1", "--force", code=1)
    assert out["conflicts"][0]["patch"] is None
    assert "left alone  app.py" in desk("rewind", "--thread", thread, "--before", "1", code=1)


def test_checkpoints_that_are_gone(desk: Desk) -> None:
    thread = desk.run(READ, edit("x = 1", "x = 2"))
    with opened(desk.state) as kept:
        kept.saver.delete_thread(thread)
    assert "No checkpoint before change 1 is kept" in desk("rewind", "--thread", thread, "--before", "1", code=2)


# ---- mistakes


def test_mistakes_of_the_user(desk: Desk, tmp_path: Path) -> None:
    bad = tmp_path / "bad.json"
    thread = desk.run(READ, edit("x = 1", "x = 2"))
    good = desk.script("hi")
    cases: list[tuple[list[str], str]] = [
        ([], "usage"),
        (["nonsense"], "invalid choice"),
        (["run"], "Give a model"),
        (["run", "go"], "Give a model"),
        (["run", "--model", good], "Give a task"),
        (["run", "go", "--model", "nonsense"], "cannot be used: Unable to infer"),
        (["run", "go", "--model", "openai:gpt"], "pip install langchain-openai"),
        (["run", "go", "--model", f"scripted:{tmp_path}/none"], "cannot be read: No such file"),
        (["run", "go", "--model", good, "--root", str(tmp_path / "none")], "cannot be used"),
        (["run", "go", "--model", good, "--deny", "../x"], "can never match"),
        (["run", "go", "--model", good, "--from", "1f"], "give --thread, too"),
        (["run", "go", "--model", good, "--state", "/dev/null"], "state directory /dev/null cannot be used"),
        (["run", "go", "--thread", "none"], "There is no thread none"),
        (["run", "go", "--thread", thread, "--from", "none"], "has no checkpoint none"),
        (["history", "--thread", "none"], "There is no thread none"),
        (["history", "--thread", "none", "--state", str(tmp_path / "none")], "nothing is kept in"),
        (["rewind"], "--thread"),
        (["rewind", "--thread", "none"], "There is no thread none"),
        (["rewind", "--thread", "none", "--state", str(tmp_path / "none")], "nothing is kept in"),
        (["rewind", "--thread", thread, "--to", "zz"], "has no checkpoint zz"),
        (["rewind", "--thread", thread, "--to", "1"], "checkpoints begin with 1"),
        (["rewind", "--thread", thread, "--to", ""], "has no checkpoint"),
        (["rewind", "--thread", thread, "--before", "0"], "There is no change 0"),
        (["rewind", "--thread", thread, "--before", "x"], "invalid int"),
        (["rewind", "--thread", thread, "--before", "1", "--to", "1"], "not allowed with"),
    ]
    for args, said in cases:
        assert said in desk(*args, code=2), args
    for content in ("{", "{}", '["a", 1]', '[{"name": "x"}]', "[[]]"):
        bad.write_text(content)
        assert f"The script {bad}" in desk("run", "go", "--model", f"scripted:{bad}", code=2)
    (desk.state / "history.db").write_bytes(b"no database" * 100)
    assert "not a database" in desk("history", code=2)


def test_help(desk: Desk) -> None:
    assert "scripted:FILE.json" in desk("run", "--help")
    assert "--go-on" not in desk("demo", "--help")


@pytest.mark.parametrize("module", ["langgraph.store.sqlite", "langgraph.checkpoint.sqlite"])
def test_a_missing_extra(desk: Desk, module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    out = desk("run", "go", "--model", desk.script("hi"), code=2)
    assert out == f"This needs {module}, which is not installed: {INSTALL}\n"


def test_a_missing_module_that_is_no_extra_is_a_fault(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "langchain_filestate._cli_past", None)
    monkeypatch.delattr(langchain_filestate, "_cli_past", raising=False)
    with pytest.raises(ImportError):
        main(["history"])


def test_where_things_are_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "a"))
    assert home(None) == tmp_path / "a"
    assert home(str(tmp_path / "b")) == tmp_path / "b"
    monkeypatch.delenv(VARIABLE)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert home(None).name == "langchain-filestate"


def test_many_may_begin_at_once(tmp_path: Path) -> None:
    barrier = threading.Barrier(6)

    def begin(number: int) -> None:
        for place in "abcde":
            barrier.wait(timeout=60)
            with opened(tmp_path / place) as kept:
                kept.remember(Thread(str(number), "/", "some:model"))

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(begin, range(6)))
    for place in "abcde":
        with opened(tmp_path / place) as kept:
            assert sorted(thread.id for thread in kept.threads()) == list("012345")


def test_a_fault_of_the_system_is_one_line(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    from langchain_filestate import _cli_past

    def broken(*_: Any) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(_cli_past, "history", broken)
    assert desk("history", code=1) == "[Errno 28] No space left on device\n"


def test_a_reader_that_leaves_is_no_fault(desk: Desk) -> None:
    desk.run(READ, edit("x = 1", "x = 2"))
    env = {**os.environ, "PYTHONPATH": str(PROJECT)}
    reading, writing = os.pipe()
    os.close(reading)
    with subprocess.Popen([*COMMAND, "history"], stdout=writing, stderr=subprocess.PIPE, env=env) as process:
        os.close(writing)
        _, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (PIPE_CLOSED, b"")


# ---- on a terminal


def on_terminal(*args: str, **env: str) -> str:
    """What a command writes to a terminal."""
    main_fd, terminal = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": str(PROJECT), "TERM": "xterm-256color", "COLUMNS": "160", **env}
    with subprocess.Popen([*COMMAND, *args], stdout=terminal, stderr=subprocess.STDOUT, env=environment) as process:
        os.close(terminal)
        pieces = []
        while True:
            try:
                piece = os.read(main_fd, 65536)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            pieces.append(piece)
    os.close(main_fd)
    assert process.returncode == 0
    return b"".join(pieces).decode()


def test_colours_on_a_terminal(desk: Desk) -> None:
    thread = desk.run(READ, edit("x = 1", "x = 2"))
    out = on_terminal("history", "--thread", thread, "--patch", NO_COLOR="")
    assert "\x1b[32m+x = 2\x1b[0m" in out
    assert "\x1b[31m-x = 1\x1b[0m" in out
    assert "\u2500" in out  # a drawn table
    assert thread not in out


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_no_colour_on_request_and_no_need_of_rich(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")

    def drawn() -> str:
        out = Terminal()
        screen = _cli_show.Screen(out)
        screen.table(["name", "#number"], [["[bold]a", "+1"], ["b\nc", "-10"]])
        screen.diff("--- a/x\n+++ b/x\n@@ -1,1 +1,1 @@\n-[red]x\n+y\n\\ No newline at end of file\n")
        screen.line("plain ", ("bold", "bold"))
        return out.getvalue()

    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[" in drawn()
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in drawn()
    assert "[bold]a" in drawn()
    assert "-[red]x" in drawn()
    monkeypatch.setitem(sys.modules, "rich.console", None)
    assert drawn().splitlines()[:3] == ["name     number", "[bold]a      +1", "b\\nc        -10"]


def test_paths_are_short_below_the_working_directory(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert _cli_show.short(str(desk.app)) == "app.py"
    assert _cli_show.short(str(tmp_path / "x")) == str(tmp_path / "x")
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert _cli_show.short(str(desk.app)) == str(desk.app)
    monkeypatch.chdir(tmp_path)
