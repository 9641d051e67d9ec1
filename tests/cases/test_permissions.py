"""One check on the real path for every tool; what is denied is neither touched nor told."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from langchain_filestate import WiringError, shell_reads
from tests.cases.steps import Desk, Make, code, digest_of_tree, edit, many, read, write

SECRET = "t0ps3cret-content"


def fill(root: Path) -> None:
    for name in (
        "secret/key.txt",
        "secret/deep/er/key.txt",
        ".env",
        "sub/.env",
        "pub/a.txt",
        "secrets/open.txt",
        "n/secret.ipynb",
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"{SECRET}\n")
    (root / "pub/a.txt").write_text("open\n")


def all_tools(d: Desk, path: Any) -> list[Any]:
    return [
        d.read(path), d.read(path, offset=-1), d.edit(path, "t0p", "x"), d.edit(path, "", "x"), d.write(path, "x"),
        d.many(path, ("t0p", "x")), d.cell(path, "c0", "x"), d.cell(path, None, "x", "insert"), d.cell(path, "c0", mode="delete"),
    ]  # fmt: skip


def spellings(root: Path, name: str) -> list[str]:
    return [
        name, f"pub/.././{name}", f"{root}//{name}", f"../{root.name}/{name}",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("rules", "name"),
    [
        (["secret/**"], "secret/key.txt"), (["secret/"], "secret/key.txt"), (["secret"], "secret/key.txt"),
        (["/secret"], "secret/deep/er/key.txt"), (["**/key.txt"], "secret/deep/er/key.txt"), (["*.txt"], "secret/key.txt"),
        ([".env"], ".env"), ([".env"], "sub/.env"), (["sub/*"], "sub/.env"), (["n/*.ipynb"], "n/secret.ipynb"), (["*"], "pub/a.txt"),
        (["secret/new*"], "secret/new.txt"), (["secret/"], "secret/made/new.txt"), (["secret/"], "secret"),
    ],
)  # fmt: skip
def test_pe_01_one_rule_for_every_tool_and_spelling(desk: Callable[..., Desk], rules: list[str], name: str) -> None:
    d = desk(deny=rules)
    fill(d.root)
    before = digest_of_tree(d.root)
    for path in spellings(d.root, name):
        for message in all_tools(d, path):
            assert code(message) == "denied", (path, message.name, message.content)
            assert SECRET not in str(message.content)
            assert SECRET not in str(message.artifact)
        if path != name:
            continue
        for tool, args in (
            ("write_file", {"content": "x"}), ("edit_file", {"old_string": "t0p", "new_string": "x"}),
            ("multi_edit", {"edits": [{"old_string": "t0p", "new_string": "x"}]}),
        ):  # fmt: skip
            said = d.toolkit.describe_change({"name": tool, "args": {"file_path": path, **args}})
            assert "-" + SECRET not in said
            assert SECRET not in said
    assert digest_of_tree(d.root) == before


def test_pe_01_letter_case(desk: Callable[..., Desk]) -> None:
    """On a file system that folds case another letter case opens the same file, so the rule covers it."""
    d = desk(deny=["secret/", ".ENV"])
    fill(d.root)
    for name in ("SECRET/key.txt", "Secret/new", ".env", ".Env", "sub/.eNV"):
        for message in (d.read(name), d.write(name, "x")):
            assert code(message) == "denied", name


def test_pe_01_what_is_beside_it_is_open(desk: Callable[..., Desk]) -> None:
    d = desk(deny=["secret/**", ".env"])
    fill(d.root)
    for name in ("pub/a.txt", "secrets/open.txt"):
        assert d.read(name).status == "success"
        assert d.write(name, "x\n").status == "success"
    assert d.write(".envrc", "x\n").status == "success"


def test_pe_01_denied_names_are_never_told(desk: Callable[..., Desk]) -> None:
    d = desk(deny=["secret/", "*.pem"])
    d.put("secret/plan_of_attack.txt", b"x\n")
    d.put("keys/server.pem", b"x\n")
    d.put("keys/server.pub", b"x\n")
    d.put("a\u00a0b.pem", b"x\n")
    for given in (
        "plan_of_attack.txt",
        "plan_of_attak.txt",
        "secrt/plan_of_attack.txt",
        "keys/server.pen",
        "server.pem.bak",
        "a b.pe",
        "keys/serverpem",
    ):
        for message in (d.read(given), d.edit(given, "x", "y")):
            assert message.status == "error"
            text = str(message.content).replace(given, "")
            assert "plan_of_attack.txt" not in text, message.content
            assert "server.pem" not in text.replace("server.pem.bak", ""), message.content
            assert "\\u00a0" not in text
    # Whether a denied file exists is not told either.
    there, absent = d.read("secret/plan_of_attack.txt"), d.read("secret/nothing.txt")
    assert str(there.content).replace("plan_of_attack", "") == str(absent.content).replace("nothing", "")


def test_pe_01_notices_and_shells_tell_nothing_of_it(agent: Make, tmp_path: Path) -> None:
    fill(tmp_path)
    open_session = agent(thread="1")
    open_session.say(read("secret/key.txt"))  # before there was a rule
    s = agent(thread="1", deny=["secret/"], checkpointer=open_session.graph.checkpointer)
    (tmp_path / "secret/key.txt").write_text(f"other {SECRET}2\n")
    s.say(read("pub/a.txt"))
    told = [str(m.content) for m in s.state()["messages"] if isinstance(m, HumanMessage)]
    assert not any(SECRET in text or "key.txt" in text for text in told)
    assert shell_reads("cat secret/key.txt", f"other {SECRET}2\n", s.toolkit, evidence="e") == {}


def test_pe_01_read_only_is_for_all_that_write(desk: Callable[..., Desk]) -> None:
    d = desk(read_only=["vendor/", "*.lock"])
    fill(d.root)
    for name in ("vendor/a.txt", "x.lock", "sub/y.lock"):
        d.put(name, b"one\n")
        assert d.read(name).status == "success"
        for message in all_tools(d, name)[2:]:
            assert code(message) == "read_only", message.content
        assert (d.root / name).read_bytes() == b"one\n"
    assert code(d.write("vendor/new/x", "x")) == "read_only"
    assert not (d.root / "vendor/new").exists()


@pytest.mark.parametrize("rule", ["/etc/passwd/", "!keep", "", "  ", "#comment", "a//b", "../x", "./x", "a/../b", "~/x", "C:\\x", "[", "a\0b", "a\nb", 5, None])  # fmt: skip
def test_pe_01_a_rule_that_can_never_match_is_a_mistake(tmp_path: Path, rule: Any) -> None:
    for option in ("deny", "read_only"):
        with pytest.raises(WiringError, match=option):
            Desk(tmp_path, **{option: [rule]})


def test_pe_01_rules_as_one_text_are_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(WiringError, match="list"):
        Desk(tmp_path, deny="secret/")


def test_pe_01_rules_hold_below_extra_roots(desk: Callable[..., Desk], tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        fill(tmp_path / name)
    d = desk(tmp_path / "a", extra_roots=[tmp_path / "b"], deny=["secret/"])
    for root in ("a", "b"):
        for message in all_tools(d, tmp_path / root / "secret/key.txt"):
            assert code(message) == "denied"
        assert d.read(tmp_path / root / "pub/a.txt").status == "success"


def test_pe_01_a_root_in_a_root_is_under_both(desk: Callable[..., Desk], tmp_path: Path) -> None:
    fill(tmp_path)
    d = desk(tmp_path, extra_roots=[tmp_path / "secret"], deny=["secret/"])
    for message in all_tools(d, "secret/key.txt"):
        assert message.status == "error"
        assert SECRET not in str(message.content)


# ---- PE-02 ----------------------------------------------------------------------------------------------------------


def outside(tmp_path: Path) -> tuple[Path, Path]:
    root, out = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    out.mkdir()
    (out / "x").write_text(f"{SECRET}\n")
    fill(root)
    return root, out


def test_pe_02_links_out_of_the_root(desk: Callable[..., Desk], tmp_path: Path) -> None:
    root, out = outside(tmp_path)
    (root / "ok").symlink_to(out)
    (root / "relative").symlink_to("../outside")
    (root / "file").symlink_to(out / "x")
    (root / "chain").symlink_to("ok/x")
    (root / "deep").mkdir()
    (root / "deep/up").symlink_to("../..")
    (root / "new").symlink_to(out / "made")
    d = desk(root)
    before = digest_of_tree(out)
    for name in ("ok/x", "relative/x", "file", "chain", "deep/up/outside/x", "ok/new/deep.txt", "new", "ok/../outside/x", "ok/new.txt", f"{out}/x", "../outside/x", "deep/up/root/../outside/x"):  # fmt: skip
        for message in all_tools(d, name):
            assert code(message) in {"outside_root", "symlink"}, (name, message.content)
            assert SECRET not in str(message.content)
            assert SECRET not in str(message.artifact)
    assert digest_of_tree(out) == before
    assert d.read("deep/up/root/pub/a.txt").status == "success"  # out and in again


def test_pe_02_links_to_what_is_denied(desk: Callable[..., Desk], tmp_path: Path) -> None:
    root, _ = outside(tmp_path)
    (root / "note").symlink_to(".env")
    (root / "folder").symlink_to("secret")
    (root / "far").symlink_to("folder/deep")
    d = desk(root, deny=[".env", "secret/"])
    for name in ("note", "folder/key.txt", "folder/new.txt", "far/er/key.txt", "folder/new/deep.txt"):
        for message in all_tools(d, name):
            assert code(message) in {"denied", "symlink"}, (name, message.content)
            assert SECRET not in str(message.content)
    assert SECRET in (root / ".env").read_text()
    assert not (root / "secret/new.txt").exists()


def test_pe_02_a_denied_name_that_leads_to_what_is_open(desk: Callable[..., Desk], tmp_path: Path) -> None:
    """The lexical path must pass too."""
    root, _ = outside(tmp_path)
    (root / "secret/link").symlink_to("../pub/a.txt")
    (root / ".env").unlink()
    (root / ".env").symlink_to("pub/a.txt")
    d = desk(root, deny=["secret/", ".env"])
    assert code(d.read("secret/link")) == "denied"
    assert code(d.read(".env")) == "denied"


def test_pe_02_a_directory_that_becomes_a_link(desk: Callable[..., Desk], tmp_path: Path) -> None:
    root, out = outside(tmp_path)
    (root / "work").mkdir()
    (root / "work/x").write_text("mine\n")

    def swap(_: Any) -> None:  # between the check and the open
        (root / "work").rename(root / "moved")
        (root / "work").symlink_to(out)

    d = desk(root, before_write=swap)
    d.read("work/x")
    message = d.edit("work/x", "mine", "yours")
    assert message.status == "error"
    assert code(message) in {"symlink", "outside_root", "conflict", "busy"}
    assert (out / "x").read_text() == f"{SECRET}\n"
    assert (root / "moved/x").read_text() == "mine\n"


def test_pe_02_a_file_that_becomes_a_link(desk: Callable[..., Desk], tmp_path: Path) -> None:
    root, out = outside(tmp_path)

    def swap(_: Any) -> None:
        (root / "pub/a.txt").unlink()
        (root / "pub/a.txt").symlink_to(out / "x")

    d = desk(root, before_write=swap)
    d.read("pub/a.txt")
    for message in (d.edit("pub/a.txt", "open", "shut"), d.write("pub/a.txt", "shut\n")):
        assert message.status == "error"
        assert SECRET not in str(message.content)
    assert (out / "x").read_text() == f"{SECRET}\n"


def test_pe_02_in_a_graph_too(session: Make, tmp_path: Path) -> None:
    root, out = outside(tmp_path)
    (root / "ok").symlink_to(out)
    s = session(root, deny=["secret/"])
    out_of = s.say([read("ok/x"), write("ok/new", "x"), edit("secret/key.txt", "t", "x"), many("ok/x", ("t", "x"))])
    assert [code(m) for m in out_of] == ["outside_root", "outside_root", "denied", "outside_root"]
    assert s.records() in ({}, {"coder": {}}, {"main": {}})
    assert os.listdir(out) == ["x"]


def test_pe_02_virtual_roots_lead_nowhere_else(desk: Callable[..., Desk], tmp_path: Path) -> None:
    root, out = outside(tmp_path)
    (root / "ok").symlink_to(out)
    d = desk(root, virtual=True, deny=["secret/"])
    assert d.read("/pub/a.txt").status == "success"
    for name in ("/ok/x", "/../outside/x", "/secret/key.txt", "/pub/../secret/key.txt", "~/x", "/etc/passwd"):
        message = d.read(name)
        assert message.status == "error", name
        assert SECRET not in str(message.content)
        assert "root:x" not in str(message.content)
