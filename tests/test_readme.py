"""The README's Python runs as it stands there, with a scripted model in place of a real one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.scripted import Scripted, edit, read

README = Path(__file__).parent.parent / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


def model(*_: Any, **__: Any) -> Scripted:
    return Scripted(script=[read("app.py"), edit("app.py", "def old()", "def new()"), "Done."], requests=[])


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_blocks_run(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from langchain import chat_models
    from langchain.agents import factory

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(factory, "init_chat_model", model)
    monkeypatch.setattr(chat_models, "init_chat_model", model)
    project = tmp_path / "my_project"
    project.mkdir()
    (project / "app.py").write_text("def old():\n    return 1\n")
    names: dict[str, Any] = {"__name__": "readme"}
    exec(compile(BLOCKS[number], f"README block {number}", "exec", dont_inherit=True), names)
    changed = "new()" in (project / "app.py").read_text()
    assert changed == ("old()" in BLOCKS[number] and ".rewind(" not in BLOCKS[number])
    shown = capsys.readouterr().out
    assert ("+def new():" in shown) == ("print(result.patch)" in BLOCKS[number])
    assert ("-def new():" in shown) == (".plan_rewind(" in BLOCKS[number])


def test_every_link_leads_somewhere() -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", README.read_text(encoding="utf-8")):
        assert (README.parent / target).exists(), target


def test_the_commands_do_their_own_set_up() -> None:
    commands = re.findall(r"```sh\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert commands[0].startswith("python3 -m venv .venv && ")
    assert commands[0].rstrip().endswith("python -m langchain_filestate demo")
    assert commands[1].rstrip().endswith("python -m pytest -q")
    assert commands[2].startswith("python3 -m venv .venv && ")
