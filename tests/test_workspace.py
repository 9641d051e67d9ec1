"""Which paths lead where, which are refused, and that nothing outside is reached while somebody swaps directories."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import stat
import subprocess
import sys
import textwrap
import threading
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from langchain_filestate import _walk, _workspace
from langchain_filestate._resolve import below, inside, of_the_kernel
from langchain_filestate._rules import Rules, alike, brief, escaped, fold, plain
from langchain_filestate._workspace import Location, Workspace
from langchain_filestate.errors import Refused, WiringError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NARROW = "\u202f"
LINUX = sys.platform == "linux"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root with one of everything, and things outside it."""
    root = tmp_path / "root"
    (root / "secret").mkdir(parents=True)
    (root / "secret/key").write_text("k\n")
    (root / "secret/away").symlink_to("../real.txt")
    (root / "real.txt").write_text("r\n")
    (root / "dir/sub").mkdir(parents=True)
    (root / "dir/sub/a.py").write_text("a\n")
    (tmp_path / "outside.txt").write_text("o\n")
    (tmp_path / "rootx").mkdir()
    (tmp_path / "rootx/a").write_text("x\n")
    for name, target in {
        "link.txt": "real.txt",
        "chain.txt": "link.txt",
        "into": "dir/sub",
        "door": "..",
        "out.txt": "../outside.txt",
        "cycle": "cycle",
        "dangling": "nowhere",
        "dangling_out": "../nowhere",
        "note": "secret/key",
        "hidden": "secret",
        "through": "secret/away",
        "by_fd": "/proc/self/fd/0",
        "null": "/dev/null",
        "to_pipe": "pipe",
    }.items():
        (root / name).symlink_to(target)
    os.mkfifo(root / "pipe")
    return root


def code(workspace: Workspace, path: str, *, write: bool) -> str:
    try:
        return "/".join(workspace.locate(path, write=write).parts)
    except Refused as refused:
        text, result = str(refused), refused.code
    assert 20 < len(text) < 900, text
    assert text.isprintable()
    return result


def open_below(place: Path) -> list[str]:
    """Name what this process holds open below a directory."""
    held = []
    for fd in os.listdir("/proc/self/fd") if LINUX else ():
        with contextlib.suppress(FileNotFoundError):
            held.append(os.readlink(f"/proc/self/fd/{fd}"))
    return [path for path in held if path.startswith(str(place))]


@pytest.fixture(autouse=True)
def _no_descriptor_is_left(tmp_path: Path) -> Iterator[None]:
    yield
    assert open_below(tmp_path) == []


# ---- where a path leads ---------------------------------------------------------------------------------------------

PATHS = [  # path, what reading gives, what writing gives: a code, or the path below the root
    ("real.txt", "real.txt", "real.txt"),
    ("./real.txt", "real.txt", "real.txt"),
    ("dir/../real.txt", "real.txt", "real.txt"),
    ("dir//sub/./a.py", "dir/sub/a.py", "dir/sub/a.py"),
    ("absent/../real.txt", "real.txt", "real.txt"),
    ("../root/real.txt", "real.txt", "real.txt"),
    ("into/a.py", "dir/sub/a.py", "dir/sub/a.py"),
    ("into/../sub/a.py", "dir/sub/a.py", "dir/sub/a.py"),
    ("into/new/b.py", "dir/sub/new/b.py", "dir/sub/new/b.py"),
    ("door/root/real.txt", "real.txt", "real.txt"),
    ("new.txt", "new.txt", "new.txt"),
    ("a/b/new.txt", "a/b/new.txt", "a/b/new.txt"),
    ("~lock.txt", "~lock.txt", "~lock.txt"),
    ("link.txt", "real.txt", "symlink"),
    ("chain.txt", "real.txt", "symlink"),
    ("dangling", "nowhere", "symlink"),
    ("dangling/x", "nowhere/x", "symlink"),
    ("dangling/../real.txt", "real.txt", "real.txt"),
    ("cycle", "symlink", "symlink"),
    ("cycle/x", "symlink", "symlink"),
    ("cycle/../real.txt", "real.txt", "real.txt"),
    ("secret/key", "denied", "denied"),
    ("secret/new", "denied", "denied"),
    ("secret/no/such/file", "denied", "denied"),
    ("secret", "denied", "denied"),
    ("secret/", "denied", "denied"),
    ("./dir/../secret/key", "denied", "denied"),
    ("Secret/KEY", "denied", "denied"),
    ("sec\u200bret/key", "denied", "denied"),
    ("secret/../real.txt", "denied", "denied"),
    ("secret/away", "denied", "denied"),
    ("note", "denied", "denied"),
    ("hidden", "denied", "denied"),
    ("hidden/key", "denied", "denied"),
    ("hidden/../real.txt", "denied", "denied"),
    ("through", "denied", "denied"),
    ("dir/secret/x", "denied", "denied"),
    ("pinned.lock", "pinned.lock", "read_only"),
    ("vendor/x.py", "vendor/x.py", "read_only"),
    ("vendor/../real.txt", "real.txt", "real.txt"),
    ("../outside.txt", "outside_root", "outside_root"),
    ("../nothing.txt", "outside_root", "outside_root"),
    ("../rootx/a", "outside_root", "outside_root"),
    ("door/outside.txt", "outside_root", "outside_root"),
    ("door/new/deep.txt", "outside_root", "outside_root"),
    ("out.txt", "outside_root", "outside_root"),
    ("dangling_out", "outside_root", "outside_root"),
    ("/etc/passwd", "outside_root", "outside_root"),
    ("/etc/passwd/x", "outside_root", "outside_root"),
    ("/no/such/place", "outside_root", "outside_root"),
    ("/", "outside_root", "outside_root"),
    ("/c/tmp/x", "outside_root", "outside_root"),
    ("/dev/zero", "outside_root", "outside_root"),
    ("/proc/self/mem", "outside_root", "outside_root"),
    ("/proc/self/cwd/real.txt", "outside_root", "outside_root"),
    ("/proc/self/fd/0", "outside_root", "outside_root"),
    ("by_fd", "outside_root", "outside_root"),
    ("null", "outside_root", "outside_root"),
    ("~/x", "outside_root", "outside_root"),
    ("real.txt/", "parent_not_directory", "parent_not_directory"),
    ("real.txt/.", "parent_not_directory", "parent_not_directory"),
    ("real.txt/x", "parent_not_directory", "parent_not_directory"),
    ("real.txt/x/..", "parent_not_directory", "parent_not_directory"),
    ("real.txt/x/y", "parent_not_directory", "parent_not_directory"),
    ("link.txt/x", "parent_not_directory", "parent_not_directory"),
    ("real.txt/../dir/sub/a.py", "dir/sub/a.py", "dir/sub/a.py"),
    ("real.txt/x/../../dir/sub/a.py", "dir/sub/a.py", "dir/sub/a.py"),
    ("pipe/x", "parent_not_directory", "parent_not_directory"),
    (".", "is_directory", "is_directory"),
    ("dir", "is_directory", "is_directory"),
    ("dir/", "is_directory", "is_directory"),
    ("dir/..", "is_directory", "is_directory"),
    ("into", "is_directory", "symlink"),
    ("absent/", "is_directory", "is_directory"),
    ("pipe", "not_a_file", "not_a_file"),
    ("to_pipe", "not_a_file", "symlink"),
    ("", "bad_path", "bad_path"),
    (" ", "bad_path", "bad_path"),
    ("a\0b", "bad_path", "bad_path"),
    ("a\ud800", "bad_path", "bad_path"),
    ("x" * 300, "bad_path", "bad_path"),
    ("\u00e9" * 128, "bad_path", "bad_path"),
    ("x/" * 3000 + "y", "bad_path", "bad_path"),
    ("C:\\x", "bad_path", "bad_path"),
    ("C:/tmp/x", "bad_path", "bad_path"),
    ("file:///etc/passwd", "bad_path", "bad_path"),
    ("dir\\sub\\a.py", "bad_path", "bad_path"),
    ("~no_such_user_here/x", "bad_path", "bad_path"),
]


@pytest.mark.parametrize(("path", "read", "write"), PATHS)
def test_where_a_path_leads(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, read: str, write: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    workspace = Workspace(root, deny=["secret/"], read_only=["*.lock", "vendor/"])
    before = sorted(os.listdir(root))
    assert (code(workspace, path, write=False), code(workspace, path, write=True)) == (read, write)
    assert sorted(os.listdir(root)) == before
    if not path.startswith(("/", "~")) and path.strip() and "\0" not in path and len(path) < 5000 and ":" not in path:
        absolute = f"{root}/{path}"
        assert (code(workspace, absolute, write=False), code(workspace, absolute, write=True)) == (read, write)


def test_rs_01_one_spelling_for_all(root: Path, tmp_path: Path) -> None:
    workspace = Workspace(root)
    (tmp_path / "alias").symlink_to(root)
    (tmp_path / "up").symlink_to(tmp_path)
    (tmp_path / "alias_dir").symlink_to(root / "dir")
    spellings = [
        "dir/sub/a.py", "./dir/sub/a.py", "dir/sub/../sub/a.py", f"{root}//dir/sub/a.py", "into/a.py", "door/root/into/a.py",
        f"{tmp_path}/alias/dir/sub/a.py", f"{tmp_path}/up/root/into/a.py", f"{tmp_path}/alias_dir/sub/a.py", f"/{root}/into/a.py",
    ]  # fmt: skip
    assert {workspace.locate(s, write=False).path for s in spellings} == {str(root / "dir/sub/a.py")}
    assert {workspace.locate(s, write=True).path for s in spellings} == {str(root / "dir/sub/a.py")}
    with pytest.raises(Refused, match="symbolic link"):
        workspace.locate(f"{tmp_path}/alias/link.txt", write=True)
    (tmp_path / "to_real").symlink_to(root / "real.txt")  # a link outside is no place to write, nor to read
    assert code(workspace, f"{tmp_path}/to_real", write=False) == "outside_root"


def test_a_root_given_through_a_link(root: Path, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(root)
    workspace = Workspace(tmp_path / "alias", deny=["hidden/", "/dir/"])
    assert str(workspace.root) == str(root)
    assert workspace.locate(f"{tmp_path}/alias/real.txt", write=True).path == str(root / "real.txt")
    assert code(workspace, f"{tmp_path}/alias/into/a.py", write=False) == "denied"
    assert code(workspace, f"{tmp_path}/alias/hidden/key", write=False) == "denied"


def test_rs_07_relative_paths_stay_in_this_checkout(tmp_path: Path) -> None:
    inner = tmp_path / "repo/.wt/x"
    for base in (tmp_path / "repo", inner):
        (base / "src").mkdir(parents=True)
        (base / "src/a.py").write_text("")
    workspace = Workspace(inner)
    assert workspace.locate("src/a.py", write=True).path == str(inner / "src/a.py")
    with pytest.raises(Refused, match="outside the workspace") as refused:
        workspace.locate(str(tmp_path / "repo/src/a.py"), write=True)
    assert str(inner) in str(refused.value)


def test_home_is_expanded_and_then_judged(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(root))
    assert code(Workspace(root), "~/dir/sub/a.py", write=True) == "dir/sub/a.py"
    assert code(Workspace(root, virtual=True), "~/real.txt", write=True) == "bad_path"
    assert code(Workspace(root, virtual=True), "~", write=True) == "bad_path"


def test_extra_roots(root: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "b.txt").write_text("b\n")
    (root / "way").symlink_to(other)
    workspace = Workspace(root, extra_roots=[other, root / "dir"], deny=["/sub/", "/way/x"])
    location = workspace.locate(str(other / "b.txt"), write=True)
    assert (location.root, location.parts) == (str(other), ("b.txt",))
    assert workspace.locate("way/b.txt", write=True).path == str(other / "b.txt")
    assert code(workspace, "way/x", write=True) == "denied"  # the path as spelled counts too
    assert code(workspace, "dir/sub/a.py", write=True) == "denied"  # the rule holds in each root on its own
    assert workspace.locate("dir/new", write=True).root == str(root / "dir")
    assert workspace.roots == (str(root), str(other), str(root / "dir"))
    assert str(other) in repr(workspace)


VIRTUAL = [
    ("/real.txt", "real.txt"),
    ("real.txt", "real.txt"),
    ("//dir/sub/a.py", "dir/sub/a.py"),
    ("/", "is_directory"),
    ("/etc/passwd", "etc/passwd"),
    ("/into/a.py", "dir/sub/a.py"),
    ("/door/outside.txt", "outside_root"),
    ("/../outside.txt", "outside_root"),
    ("../outside.txt", "outside_root"),
    ("/dir/../real.txt", "bad_path"),
    ("/a..b", "a..b"),
    ("/secret/key", "denied"),
]


@pytest.mark.parametrize(("path", "result"), VIRTUAL)
def test_virtual_paths_start_at_the_root(root: Path, path: str, result: str) -> None:
    assert code(Workspace(root, virtual=True, deny=["secret/"]), path, write=True) == result


def test_virtual_takes_the_real_paths_of_results(root: Path, tmp_path: Path) -> None:
    workspace = Workspace(root, extra_roots=[tmp_path / "rootx"], virtual=True)
    assert code(workspace, f"{root}/real.txt", write=True) == "real.txt"
    assert workspace.locate(f"{tmp_path}/rootx/a", write=True).path == str(tmp_path / "rootx/a")
    assert code(workspace, f"{tmp_path}/outside.txt", write=True) == f"{tmp_path}/outside.txt"[1:]
    twice = root / str(root)[1:]  # unless the root holds the same names
    twice.mkdir(parents=True)
    assert workspace.locate(f"{root}/real.txt", write=True).path == str(twice / "real.txt")
    assert code(Workspace("/", virtual=True), f"{root}/real.txt", write=True) == f"{root}/real.txt"[1:]


def test_the_whole_machine_as_root_has_no_kernel_files(root: Path) -> None:
    workspace = Workspace("/", deny=[f"{root}/secret/"])
    assert code(workspace, f"{root}/real.txt", write=True) == f"{root}/real.txt"[1:]
    assert code(workspace, f"{root}/secret/key", write=True) == "denied"
    for path in ("/proc/self/mem", "/proc/self/status", "/dev/zero", "/dev/null", "/sys/no/such"):
        assert code(workspace, path, write=True) == "not_a_file"
    assert of_the_kernel("/dev/x")
    assert not of_the_kernel("/dev/shm/x")
    assert not of_the_kernel("/device")


@pytest.mark.skipif(not LINUX, reason="needs /proc")
def test_proc_leads_nowhere(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)
    workspace = Workspace(root, deny=["secret/"])
    (root / "cwd").symlink_to("/proc/self/cwd")
    with (root / "real.txt").open() as file:
        for path in (f"/proc/self/fd/{file.fileno()}", "/proc/self/cwd/secret/key", "cwd/secret/key", "cwd/real.txt"):
            assert code(workspace, path, write=False) == "outside_root"


def test_sockets_are_not_opened(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("sock")
        with pytest.raises(Refused, match="a socket") as refused:
            Workspace(root).locate("sock", write=False)
    assert refused.value.code == "not_a_file"


def test_many_links_and_long_ways(root: Path) -> None:
    for i in range(45):
        (root / f"l{i}").symlink_to(f"l{i + 1}")
    (root / "l45").write_text("end\n")
    workspace = Workspace(root)
    assert code(workspace, "l10", write=False) == "l45"
    assert code(workspace, "l0", write=False) == "symlink"
    assert code(workspace, "dir/../" * 200 + "real.txt", write=False) == "real.txt"
    (root / "self").symlink_to(root)
    assert code(workspace, "self/self/into/../../real.txt", write=False) == "real.txt"
    (root / "long").symlink_to("z" * 300)
    assert code(workspace, "long", write=False) == "bad_path"


def test_a_link_out_and_back_in(root: Path, tmp_path: Path) -> None:
    (tmp_path / "back").symlink_to(root / "dir")
    (root / "round").symlink_to("../back/sub")
    workspace = Workspace(root)
    assert code(workspace, "round/a.py", write=False) == "dir/sub/a.py"
    (root / "lost").symlink_to("../back/../nowhere")
    assert code(workspace, "lost/a.py", write=False) == "outside_root"
    (tmp_path / "alias").symlink_to(root)  # another spelling of the root, and out of it again
    assert code(workspace, f"{tmp_path}/alias/door/outside.txt", write=False) == "outside_root"


def test_what_the_system_says_is_passed_on(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = Workspace(root)
    lstat = os.lstat

    def fail(path: Any, *args: Any, **kwargs: Any) -> os.stat_result:
        if str(path).endswith("sub"):
            raise PermissionError(errno.EACCES, "Permission denied")
        return lstat(path, *args, **kwargs)

    monkeypatch.setattr(os, "lstat", fail)
    with pytest.raises(Refused, match="Permission denied") as refused:
        workspace.locate("dir/sub/a.py", write=False)
    assert refused.value.code == "io_error"


def test_a_link_that_is_replaced_while_it_is_looked_at(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    readlink = os.readlink

    def replaced(path: Any, *args: Any, **kwargs: Any) -> Any:
        if str(path).endswith("link.txt") and os.path.islink(path):
            os.unlink(path)
            (root / "link.txt").write_text("")
        return readlink(path, *args, **kwargs)

    monkeypatch.setattr(os, "readlink", replaced)
    assert code(Workspace(root), "link.txt", write=True) == "link.txt"
    monkeypatch.setattr(os, "readlink", failing(readlink, errno.EINVAL, lambda *_: True))
    with pytest.raises(Refused, match="in a circle"):  # for ever a link, and none
        Workspace(root).locate("chain.txt", write=True)


@pytest.mark.skipif(not LINUX, reason="names of any bytes")
def test_a_real_name_that_is_not_unicode(root: Path) -> None:
    os.mkdir(os.fsencode(root) + b"/\xff")
    os.symlink(b"\xff", os.fsencode(root) + b"/odd")
    with pytest.raises(Refused, match="not valid Unicode") as refused:
        Workspace(root).locate("odd/x", write=False)
    assert refused.value.code == "bad_path"
    with pytest.raises(WiringError, match="cannot be used"):
        Workspace(root / "odd")
    assert Workspace(root).suggest(Workspace(root).locate("od/x", write=True)) == ""


@pytest.mark.parametrize(
    "name", ["x" * 300, "a\0b", "\ud800" * 200, "../" * 400, "a\nb/" * 100 + "\0", "real.txt/" + "y" * 250]
)
def test_long_or_unprintable_input_is_not_echoed(root: Path, name: str) -> None:
    with pytest.raises(Refused) as refused:
        Workspace(root).locate(name, write=True)
    assert len(str(refused.value)) < 700 + len(str(root))
    assert str(refused.value).isprintable()


def test_a_refused_path_tells_nothing_about_what_is_there(root: Path, tmp_path: Path) -> None:
    workspace = Workspace(root, deny=["secret/", "*.key"])
    (root / "secret/sub").mkdir()
    (root / "is.key").symlink_to("secret/key")
    pairs = [
        ("secret/key", "secret/not"), ("secret/sub/x", "secret/key/x"), ("secret/away/x", "secret/none/x"), ("is.key", "no.key"),
        ("secret/sub/", "secret/nosub/"), ("../outside.txt", "../missing.txt"), ("../rootx/a/b", "../nothing/a/b"), ("/etc/../etc/passwd", "/etc/../etc/none"),
    ]  # fmt: skip
    for there, not_there in pairs:
        for write in (False, True):
            texts = []
            for path in (there, not_there):
                with pytest.raises(Refused) as refused:
                    workspace.locate(path, write=write)
                texts.append(f"{refused.value.code} {refused.value}".replace(path, "PATH"))
            assert texts[0] == texts[1]
            assert "key" not in texts[0] or "key" in there
    assert "away" not in str(_refusal(workspace, "hidden/x"))  # nor where a link leads
    assert "secret" not in str(_refusal(workspace, "hidden/x"))
    assert str(tmp_path / "outside.txt") not in str(_refusal(workspace, "out.txt"))


def _refusal(workspace: Workspace, path: str) -> Refused:
    with pytest.raises(Refused) as refused:
        workspace.locate(path, write=True)
    return refused.value


def test_mt_02_symlink_refusal_names_link_and_target(root: Path) -> None:
    text = f"Refusing to write {root}/link.txt: it is a symbolic link. Write to the link's target path instead: {root}/real.txt"
    assert str(_refusal(Workspace(root), "link.txt")) == text
    assert str(_refusal(Workspace(root), "into/../../chain.txt")) == text.replace("link.txt", "chain.txt")


def test_rd_04_the_file_in_the_way_is_named(root: Path) -> None:
    refusal = _refusal(Workspace(root), "into/a.py/deep/x")
    assert f"{root}/dir/sub/a.py is not a directory" in str(refusal)


def test_writable(root: Path) -> None:
    workspace = Workspace(root, deny=["secret/"], read_only=["*.lock"])
    yes = ["real.txt", "new.txt", "dir/sub/a.py", "no/such/dir/x"]
    no = [
        "link.txt",
        "into/a.py",
        "secret/key",
        "a.lock",
        "pipe",
        "dir",
        "../outside.txt",
        "real.txt/x",
        "dir/../real.txt",
        "cycle",
        "cycle/x",
        ".",
        "",
    ]
    assert [workspace.writable(f"{root}/{p}" if p else str(root)) for p in yes] == [True] * len(yes)
    assert [workspace.writable(f"{root}/{p}" if p else str(root)) for p in no] == [False] * len(no)
    assert not workspace.writable("real.txt")
    assert not workspace.writable(f"{root}/a\0b")


def test_a_path_that_was_located_before_is_taken_as_it_is(root: Path) -> None:
    (root / f"a{NARROW}b").write_text("")
    (root / str(root)[1:]).mkdir(parents=True)
    workspace = Workspace(root, virtual=True, deny=["secret/"])
    for write in (False, True):
        for path in (f"{root}/real.txt", f"{root}/a b", f"{root}/gone/x", f"{root}/back\\slash", f"{root}/~"):
            location = workspace.at(path, write=write)
            assert (location.path, location.note) == (path, None)
            assert workspace.writable(path)
        for path in ("real.txt", "", "~", f"{root}/secret/key", f"{root.parent}/outside.txt", f"{root}/a\ud800"):
            with pytest.raises(Refused):
                workspace.at(path, write=write)
    assert workspace.at(f"{root}/link.txt", write=False).path == f"{root}/real.txt"


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            ["dir", "sub", "a.py", "..", ".", "", "into", "door", "root", "link.txt", "real.txt", "self", "loop", "no"]
        ),
        max_size=8,
    )
)
def test_agrees_with_the_kernel(tmp_path_factory: pytest.TempPathFactory, names: list[str]) -> None:
    base = tmp_path_factory.getbasetemp() / "oracle"
    root = base / "root"
    if not root.exists():
        (root / "dir/sub").mkdir(parents=True)
        (root / "dir/sub/a.py").write_text("a")
        (root / "real.txt").write_text("r")
        (root / "into").symlink_to("dir/sub")
        (root / "dir/door").symlink_to("../..")
        (root / "dir/sub/self").symlink_to(root)
        (root / "link.txt").symlink_to("dir/../real.txt")
        (root / "loop").symlink_to("loop")
    path = "/".join(["x", *names])[2:]
    try:
        real = os.path.realpath(root / path if path else root, strict=True) if not path.startswith("/") else None
    except OSError:
        real = None
    if real is None or not path:
        return
    if path.endswith("/"):  # realpath drops the slash
        return
    want: str
    if below(real, str(root)) is None:
        want = "outside_root"
    elif os.path.isdir(real):
        want = "is_directory"
    elif path.split("/")[-1] in {".", ".."} or not os.path.isfile(f"{root}/{path}"):
        return
    else:
        want = real[len(str(root)) + 1 :]
    assert code(Workspace(root), path, write=False) == want


# ---- rules ----------------------------------------------------------------------------------------------------------

COVERED = [  # rule, path below the root, whether it is a directory, whether the rule covers it
    ("secret/", "secret", True, True),
    ("secret/", "secret", False, False),
    ("secret/", "secret/key", False, True),
    ("secret/", "a/secret/b/c", False, True),
    ("secret/**", "secret/a/b", False, True),
    ("/secret", "secret", False, True),
    ("/secret", "a/secret", False, False),
    (".env", "a/.env", False, True),
    (".env", ".envrc", False, False),
    (".env", ".ENV", False, True),
    (".env", ".e\u200cnv", False, True),
    (".env*", ".Env.local", False, True),
    ("*.pem", "deep/er/x.pem", False, True),
    ("*.pem", "x.pem/inner", False, True),
    ("doc/*.txt", "doc/a.txt", False, True),
    ("doc/*.txt", "x/doc/a.txt", False, False),
    ("**/doc/*.txt", "x/doc/a.txt", False, True),
    ("Stra\u00dfe", "STRASSE", False, True),
    ("caf\u00e9/", "cafe\u0301/menu", False, True),
    ("cafe\u0301", "CAF\u00c9", False, True),
    ("[a-c].txt", "B.txt", False, True),
    ("[[]x", "[x", False, True),
    (r"\#x", "#x", False, True),
    (r"\!x", "!x", False, True),
    ("secret", "new\nline/secret", False, True),
    ("a?b", "a\nb", False, True),
    ("*", "anything", False, True),
    ("~$*", "~$doc.docx", False, True),
    (" x", "x", False, False),
]


@pytest.mark.parametrize(("rule", "path", "directory", "covered"), COVERED)
def test_what_a_rule_covers(rule: Any, path: str, directory: bool, covered: bool) -> None:
    assert Rules("deny", [rule]).cover(path, directory=directory) is covered


def test_the_root_itself_is_covered_by_nothing() -> None:
    assert not Rules("deny", ["*", "**/"]).cover("", directory=True)
    assert not Rules("deny", []).cover("x", directory=True)


@pytest.mark.parametrize(
    "rule",
    [
        "", " ", "\u200b", "# a comment", "!keep", "/", "//", "./a", "../a", "a/../b", "a//b", "a/.", "a/..", "[abc", "[]", "[z-a]", "[Z-a]", "x\\",
        "a\nb", "a\0b", "~", "~/x", "~me/x", "C:\\x", "C:/x", "[[:alpha:]]x", "\u200b!x", 3, "/etc/passwd", "/etc", "/no/such/place", "/usr/",
    ],
)  # fmt: skip
def test_pe_01_a_rule_that_never_matches_raises_at_set_up(root: Path, rule: Any) -> None:
    for option in ("deny", "read_only"):
        with pytest.raises(WiringError) as wiring:
            Workspace(root, **{option: ["fine", rule]})  # type: ignore[arg-type]
        assert option in str(wiring.value)
        assert repr(rule) in str(wiring.value)


def test_absolute_paths_as_rules(root: Path) -> None:
    for rule in (f"{root}/secret", f"{root}", f"{root}/"):
        with pytest.raises(WiringError, match="absolute path"):
            Workspace(root, deny=[rule])
    assert code(Workspace(root, deny=["/dir/sub"]), "dir/sub/a.py", write=False) == "denied"
    assert code(Workspace(root, deny=["/fresh"]), "fresh", write=True) == "denied"
    assert code(Workspace(root, deny=["/*.txt"]), "real.txt", write=True) == "denied"
    assert code(Workspace(root, deny=["/**/a.py"]), "into/a.py", write=True) == "denied"
    (root / "etc").mkdir()
    assert code(Workspace(root, deny=["/etc/passwd"]), "etc/passwd", write=True) == "denied"


def test_a_string_for_a_list_raises(root: Path) -> None:
    with pytest.raises(WiringError, match=r"deny=\['secret/'\]"):
        Workspace(root, deny="secret/")
    with pytest.raises(WiringError, match="extra_roots="):
        Workspace(root, extra_roots=str(root))


@pytest.mark.parametrize("bad", ["", "/no/such/root", "a\0b", "\ud800", "/proc/self", "/dev"])
def test_a_root_that_is_none_raises(bad: str) -> None:
    with pytest.raises(WiringError, match="root"):
        Workspace(bad)


def test_a_file_as_root_raises(root: Path) -> None:
    with pytest.raises(WiringError, match="not a directory"):
        Workspace(root / "real.txt")


names = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="/\0"), min_size=1, max_size=12).filter(
    lambda n: n not in {".", ".."}
)


@settings(max_examples=100, deadline=None)
@given(st.lists(names, min_size=1, max_size=3), names)
def test_what_is_below_a_denied_directory_is_denied_in_every_spelling(above: list[str], name: str) -> None:
    rule = Rules("deny", ["s\u00e9cret/"])
    path = "/".join([*above, "s\u00e9cret", name])
    for spelling in (
        path,
        path.upper(),
        unicodedata.normalize("NFD", path),
        path.casefold(),
        unicodedata.normalize("NFC", path),
    ):
        assert rule.cover(spelling, directory=False)


@settings(max_examples=100, deadline=None)
@given(names)
def test_folding_is_settled(name: str) -> None:
    assert fold(fold(name)) == fold(name)
    assert alike(alike(name)) == alike(name)
    assert fold(unicodedata.normalize("NFD", name)) == fold(unicodedata.normalize("NFC", name))
    assert escaped(name).isascii()
    assert plain(name).isprintable()
    assert brief(name * 90).isprintable()


# ---- names that look the same, names that are near ------------------------------------------------------------------

TWINS = [  # on disk, as written by the model
    (f"Shot 1.00{NARROW}PM.png", "Shot 1.00 PM.png"),
    ("a\u00a0b.txt", "a b.txt"),
    ("a b.txt", "a\u00a0b.txt"),
    ("cafe\u0301.txt", "caf\u00e9.txt"),
    ("caf\u00e9.txt", "cafe\u0301.txt"),
    ("don\u2019t.md", "don't.md"),
    ("\u201cq\u201d.md", '"q".md'),
    ("1\u20132.md", "1-2.md"),
    ("x\u200b.md", "x.md"),
    ("plain.md", "plain.md\n"),
]


@pytest.mark.parametrize(("there", "written"), TWINS)
def test_rs_08_a_name_that_looks_the_same(tmp_path: Path, there: str, written: str) -> None:
    (tmp_path / there).write_text("x")
    if (tmp_path / written).exists():
        pytest.skip("this file system takes both for one name")
    workspace = Workspace(tmp_path)
    location = workspace.locate(written, write=False)
    assert location.path == str(tmp_path / there)
    assert location.given == written
    assert location.note is not None
    assert escaped(there)[1:-1] in location.note
    assert location.note.isprintable()
    refusal = _refusal(workspace, written)
    assert refusal.code == "not_found"
    assert escaped(there) in str(refusal)
    (tmp_path / written).write_text("y")  # the exact name goes first
    location = workspace.locate(written, write=False)
    assert (location.path, location.note) == (str(tmp_path / written), None)
    assert workspace.locate(written, write=True).path == str(tmp_path / written)


def test_rs_08_also_in_a_directory_and_never_what_is_denied(root: Path) -> None:
    odd = root / f"my{NARROW}dir"
    odd.mkdir()
    (odd / "a\u00a0b").write_text("x")
    workspace = Workspace(root, deny=["secret/", "\u201cq\u201d"])
    location = workspace.locate("my dir/a b", write=False)
    assert location.path == str(odd / "a\u00a0b")
    assert "\\u202f" in (location.note or "")
    assert "\\u202f" in str(_refusal(workspace, "my dir/new"))
    (root / "a\u00a0x").write_text("")
    (root / f"a{NARROW}x").write_text("")
    assert code(workspace, "a x", write=False) == "a x"  # two of them: not for this module to choose
    assert code(workspace, "a x", write=True) == "not_found"
    (root / "\u201cq\u201d").write_text("")
    assert code(workspace, '"q"', write=True) == '"q"'
    (root / f"to{NARROW}it").symlink_to("secret/key")
    assert code(workspace, "to it", write=False) == "denied"
    assert code(workspace, "to\\it", write=False) == "bad_path"


def test_suggestions(root: Path, tmp_path: Path) -> None:
    for name in (
        "src/app/main.py",
        "src/app/helpers.py",
        "docs/main.py",
        ".git/main.py",
        "secret/main.py",
        "node/x/other.py",
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("")
    workspace = Workspace(root, extra_roots=[tmp_path / "rootx"], deny=["secret/"])

    def suggest(path: str) -> str:
        return workspace.suggest(workspace.locate(path, write=False))

    assert suggest("src/app/helper.py") == "Did you mean src/app/helpers.py?"
    assert suggest("src/ap/main.py") == "Did you mean src/app/main.py or docs/main.py?"
    assert set(suggest("main.py")[13:-1].split(" or ")) == {"docs/main.py", "src/app/main.py"}
    assert suggest("src/APP/Helpers.py") == "Did you mean src/app/helpers.py?"
    assert suggest("Real.text") == "Did you mean real.txt?"
    assert not suggest("keyy")
    assert not suggest("key")
    assert suggest("no/such/thing.xyz") == ""
    assert suggest(str(tmp_path / "rootx/A")) == f"Did you mean {tmp_path}/rootx/a?"
    assert "out.txt" not in suggest("oot.txt")


def test_suggestions_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for i in range(30):
        (tmp_path / f"d{i}").mkdir()
        (tmp_path / f"d{i}/x.py").write_text("")
    workspace = Workspace(tmp_path)
    location = workspace.locate("x.py", write=False)
    assert workspace.suggest(location).count("x.py") == 3
    monkeypatch.setattr(_workspace, "_MAX_SEARCH", 31)
    assert workspace.suggest(location).count("x.py") <= 1
    (tmp_path / "z.py").write_text("")
    monkeypatch.setattr(_workspace, "_MAX_SEARCH", 0)
    assert workspace.suggest(location) == ""


# ---- opening --------------------------------------------------------------------------------------------------------


@pytest.fixture(params=["relative", "by name"])
def workspace(root: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    if request.param == "by name":
        monkeypatch.setattr(_walk, "_RELATIVE", False)
    return Workspace(root, deny=["secret/"])


def test_open_gives_the_parent_directory(root: Path, workspace: Workspace) -> None:
    for path in ("real.txt", "into/a.py", "dir/sub/new"):
        location = workspace.locate(path, write=True)
        with workspace.open(location) as target:
            assert target.path == location.path
            assert target.name == location.parts[-1]
            assert target.made == ()
            if _walk._RELATIVE:
                assert os.path.samestat(os.fstat(target.dir_fd), os.stat(os.path.dirname(location.path)))
                assert open_below(root) == [os.path.dirname(location.path)]
                assert not os.get_inheritable(target.dir_fd)
                assert isinstance(os.listdir(target.dir_fd), list)
                os.fsync(target.dir_fd)
            else:
                assert target.dir_fd == -1


def test_open_makes_parents_and_takes_them_back(root: Path, workspace: Workspace) -> None:
    location = workspace.locate("dir/x/y/new", write=True)
    with pytest.raises(Refused, match="there is no directory") as refused, workspace.open(location):
        pass
    assert refused.value.code == "not_found"
    mask = os.umask(0o027)
    try:
        with pytest.raises(KeyError), workspace.open(location, make_parents=True) as target:
            assert target.made == (f"{root}/dir/x", f"{root}/dir/x/y")
            raise KeyError
        assert not (root / "dir/x").exists()
        assert (root / "dir/sub").exists()
        with workspace.open(location, make_parents=True):
            pass
        assert stat.S_IMODE((root / "dir/x").stat().st_mode) == 0o750
        with pytest.raises(KeyError), workspace.open(workspace.locate("p/q/r", write=True), make_parents=True):
            (root / "p/q/somebody").write_text("")
            raise KeyError
        assert (root / "p/q/somebody").exists()  # what is not empty stays
    finally:
        os.umask(mask)


def swap(root: Path, name: str, put: str) -> None:
    """Put something in the place of a directory: a link, a file, nothing."""
    (root / name).rename(root / f"{name}.old")
    if put == "link":
        (root / name).symlink_to(root.parent)
    elif put == "link inside":
        (root / name).symlink_to(f"{name}.old")
    elif put == "file":
        (root / name).write_text("")


@pytest.mark.parametrize("make", [False, True])
@pytest.mark.parametrize(
    ("put", "codes"),
    [
        ("link", {"symlink"}),
        ("link inside", {"symlink"}),
        ("file", {"parent_not_directory"}),
        ("nothing", {"not_found"}),
    ],
)
def test_a_directory_swapped_after_locate(
    root: Path, workspace: Workspace, put: str, codes: set[str], make: bool
) -> None:
    location = workspace.locate("dir/sub/a.py", write=True)
    swap(root, "dir", put)
    with contextlib.ExitStack() as held:
        if put == "nothing" and make:
            assert held.enter_context(workspace.open(location, make_parents=True)).made == (
                f"{root}/dir",
                f"{root}/dir/sub",
            )
            return
        with pytest.raises(Refused) as refused:
            held.enter_context(workspace.open(location, make_parents=make))
    assert refused.value.code in codes
    assert sorted(os.listdir(root.parent)) == ["outside.txt", "root", "rootx"]


def test_the_last_directory_swapped(root: Path, workspace: Workspace) -> None:
    location = workspace.locate("dir/sub/a.py", write=True)
    swap(root / "dir", "sub", "link")
    with pytest.raises(Refused, match="became a symbolic link"), workspace.open(location, make_parents=True):
        pass


def test_the_root_replaced(root: Path, workspace: Workspace, tmp_path: Path) -> None:
    location = workspace.locate("new.txt", write=True)
    deep = workspace.locate("dir/sub/a.py", write=True)
    root.rename(tmp_path / "moved")
    with pytest.raises(Refused) as refused, workspace.open(location, make_parents=True):
        pass
    assert refused.value.code == "io_error"
    assert code(workspace, "new.txt", write=True) == "new.txt"
    assert workspace.suggest(location) == ""
    root.symlink_to(tmp_path / "rootx")
    for place in (location, deep):
        with pytest.raises(Refused) as refused, workspace.open(place, make_parents=True):
            pass
        assert refused.value.code in {"outside_root", "io_error"}
    root.unlink()
    root.mkdir()  # another directory, really there: it is the workspace now
    with workspace.open(location) as target:
        assert target.path == str(root / "new.txt")
    assert sorted(os.listdir(tmp_path / "rootx")) == ["a"]


def test_a_link_above_the_root(tmp_path: Path) -> None:
    (tmp_path / "a/root").mkdir(parents=True)
    (tmp_path / "b/root").mkdir(parents=True)
    workspace = Workspace(tmp_path / "a/root")
    location = workspace.locate("x", write=True)
    (tmp_path / "a").rename(tmp_path / "c")
    (tmp_path / "a").symlink_to("b")
    with pytest.raises(Refused, match="took the place") as refused, workspace.open(location):
        pass
    assert refused.value.code == "outside_root"


def failing(function: Callable[..., Any], error: int, when: Callable[..., bool]) -> Callable[..., Any]:
    def wrapped(*args: Any, **kwargs: Any) -> object:
        if when(*args, **kwargs):
            raise OSError(error, os.strerror(error))
        return function(*args, **kwargs)

    return wrapped


@pytest.mark.parametrize(
    ("error", "result"),
    [
        (errno.EACCES, "read_only"),
        (errno.EROFS, "read_only"),
        (errno.ENOSPC, "io_error"),
        (errno.ENAMETOOLONG, "bad_path"),
    ],
)
def test_directories_that_cannot_be_made(
    root: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch, error: int, result: str
) -> None:
    location = workspace.locate("m/n/o", write=True)
    monkeypatch.setattr(os, "mkdir", failing(os.mkdir, error, lambda name, *_, **__: str(name).endswith("n")))
    with pytest.raises(Refused) as refused, workspace.open(location, make_parents=True):
        pass
    assert refused.value.code == result
    assert not (root / "m").exists()


def test_somebody_else_makes_the_directory_first(
    root: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = workspace.locate("m/o", write=True)
    mkdir = os.mkdir

    def first(*args: Any, **kwargs: Any) -> None:
        mkdir(*args, **kwargs)
        mkdir(*args, **kwargs)

    monkeypatch.setattr(os, "mkdir", first)
    with workspace.open(location, make_parents=True) as target:
        assert target.made == ()


def test_directories_without_permission_to_list(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = Workspace(root)
    location = workspace.locate("dir/sub/a.py", write=True)
    path_only = getattr(os, "O_PATH", 0)
    monkeypatch.setattr(os, "open", failing(os.open, errno.EACCES, lambda _, flags, **__: not flags & path_only))
    with workspace.open(location) as target:  # it may be passed through, which is enough
        assert os.stat(target.name, dir_fd=target.dir_fd).st_size == 2
    with workspace.open(workspace.locate("real.txt", write=True)) as target:
        assert os.stat(target.name, dir_fd=target.dir_fd).st_size == 2
    assert workspace.suggest(workspace.locate("dir/sub/b.py", write=True)) == ""


@pytest.mark.parametrize("workspace", ["relative"], indirect=True)
def test_other_errors_on_the_way(root: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    location = workspace.locate("dir/sub/a.py", write=True)
    for error, result in ((errno.EIO, "io_error"), (errno.EMFILE, "io_error"), (errno.ENOTDIR, "busy")):
        with monkeypatch.context() as patch:
            patch.setattr(os, "open", failing(os.open, error, lambda name, *_, **__: name == "sub"))
            with pytest.raises(Refused) as refused, workspace.open(location):
                pass
            assert refused.value.code == result
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", failing(os.open, errno.EIO, lambda name, *_, **__: name == "sub"))
        patch.setattr(os, "stat", failing(os.stat, errno.ENOENT, lambda name, *_, **__: name == "sub"))
        with pytest.raises(Refused, match="Input/output error"), workspace.open(location):
            pass


def test_inside_is_by_components() -> None:
    assert below("/", "/") == ""
    assert below("/a", "/") == "a"
    assert below("/ab", "/a") is None
    assert inside("/a/b", ["/x", "/a"])
    assert not inside("/ab", ["/x", "/a"])


def test_locations_are_values(root: Path) -> None:
    location = Workspace(root).locate("real.txt", write=False)
    assert location == Location(str(root / "real.txt"), "real.txt", str(root), ("real.txt",))


# ---- somebody swaps directories for links to outside as fast as they can --------------------------------------------

SWAPPER = textwrap.dedent("""
    import contextlib, os, sys
    root, outside = sys.argv[1:]
    os.chdir(root)
    print("ready", flush=True)
    while True:
        for name, away in (("a", "away"), ("a/b", "away"), ("f", "f.old")):
            try:
                os.rename(name, away)
                os.symlink(os.path.join(outside, name.rpartition("/")[2] if name == "f" else ""), name)
                os.unlink(name)
            except (FileNotFoundError, FileExistsError, IsADirectoryError):
                pass  # the other side made a directory of this name meanwhile
            while os.path.lexists(away):
                try:
                    os.rename(away, name)
                except OSError:  # not empty
                    with contextlib.suppress(FileNotFoundError):
                        os.rename(name, f"../junk/{os.urandom(8).hex()}")
""")


def swapping(base: Path, tries: int, threads: int = 2) -> dict[str, int]:
    """Locate, open, read, create with and without parents under a program that swaps; count what came of it."""
    root, outside = base / "root", base / "outside"
    (base / "junk").mkdir()
    (root / "a/b").mkdir(parents=True)
    (outside / "b").mkdir(parents=True)
    for place in (root / "f", root / "a/f", root / "a/b/f"):
        place.write_text("inside")
    for place in (outside / "f", outside / "b/f"):
        place.write_text("OUTSIDE")
    before = sorted(str(p) for p in outside.rglob("*"))
    workspace = Workspace(root)
    outcome: dict[str, int] = {}
    lock = threading.Lock()

    def create(location: Location, parents: bool) -> str:
        with contextlib.suppress(KeyError), workspace.open(location, make_parents=parents) as target:
            fd = os.open(target.name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=target.dir_fd)
            where = os.readlink(f"/proc/self/fd/{fd}") if LINUX else ""
            os.close(fd)
            if where.startswith(str(outside)):
                return "OUTSIDE"  # and left there to be seen
            os.unlink(target.name, dir_fd=target.dir_fd)
            raise KeyError  # the directories that were made go, too
        return "made with parents" if parents else "made"

    def one(i: int) -> str:
        path = ("f", "a/f", "a/b/f")[i % 3]
        try:
            if i % 2:
                parents = i % 16 == 15
                new = f"{path}.{i}/{i}/new" if parents else f"{path}.{i}"
                return create(workspace.locate(new, write=True), parents)
            with workspace.open(workspace.locate(path, write=False)) as target:
                fd = os.open(target.name, os.O_NOFOLLOW, dir_fd=target.dir_fd)
                try:
                    return os.read(fd, 100).decode()
                finally:
                    os.close(fd)
        except Refused as refused:
            return refused.code
        except OSError as why:  # the final name is the business of the module that opens it
            return errno.errorcode[why.errno or 0]

    def work(start: int) -> None:
        for i in range(start, tries, threads):
            result = one(i)
            with lock:
                outcome[result] = outcome.get(result, 0) + 1

    with subprocess.Popen([sys.executable, "-c", SWAPPER, str(root), str(outside)], stdout=subprocess.PIPE) as swapper:
        try:
            assert swapper.stdout is not None
            swapper.stdout.readline()
            workers = [threading.Thread(target=work, args=(n,)) for n in range(threads)]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
            assert swapper.poll() is None
        finally:
            swapper.kill()
    assert sorted(str(p) for p in outside.rglob("*")) == before
    return outcome


@pytest.mark.skipif(not _walk._RELATIVE, reason="needs calls relative to a directory")
def test_nothing_outside_is_reached_while_directories_are_swapped(tmp_path: Path) -> None:
    outcome = swapping(tmp_path, 3000)
    assert sum(outcome.values()) == 3000
    done = {"inside", "made", "made with parents"}
    assert done <= set(outcome)
    assert set(outcome) <= done | {
        "symlink", "outside_root", "not_found", "busy", "parent_not_directory", "is_directory", "ENOENT", "ELOOP", "ENOTDIR"
    }  # fmt: skip
