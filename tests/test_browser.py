from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from langchain_filestate import FileHistory, StructuredPatch, display
from langchain_filestate._html import COLOURS
from langchain_filestate._patch import patch_bytes
from tests import browser, notebooks
from tests.scripted import agent_session, edit, read, tool_messages, write
from tests.test_display import Page, contrast

pytestmark = [pytest.mark.browser, pytest.mark.skipif(browser.CHROMIUM is None, reason="Chromium is not installed")]

RUNS = "<script>document.title='ran'</script><img src=x onerror=\"document.title='ran'\">"


def colours(image: Path) -> dict[str, int]:
    """How many pixels have each colour."""
    with Image.open(image) as picture:
        counted: Any = picture.convert("RGB").getcolors(1 << 24)
    return {f"#{r:02x}{g:02x}{b:02x}": count for count, (r, g, b) in counted}


def keep(image: Path) -> Path:
    """Screenshots can be looked at: they go where FILESTATE_SCREENSHOTS says."""
    folder = os.environ.get("FILESTATE_SCREENSHOTS")
    if folder:
        Path(folder, image.name).write_bytes(image.read_bytes())
    return image


def page_of(folder: Path, *shown: display.Shown) -> Path:
    page = folder / "page.html"
    body = "\n".join(one.html for one in shown)
    page.write_text(f"<!DOCTYPE html><meta charset=utf-8><title>still</title><body>{body}</body>", encoding="utf-8")
    return page


def patch() -> StructuredPatch:
    before = b'def greet(name):\n    """Say hello."""\n    print("Hello", name)\n'
    return patch_bytes("/w/greet.py", before, before.replace(b'"Hello", name', b'f"Hello, {name}!"'))


def test_contents_do_not_run_and_are_seen(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    session = agent_session(folder, history=FileHistory(), name=RUNS)
    session.say(write("a.html", f"{RUNS}\n"), edit("a.html", "no such", RUNS), edit("a.html", "document", RUNS))
    state = session.graph.get_state(session.config)
    page = page_of(
        tmp_path,
        display.show_timeline(state, session.toolkit.history),
        display.show_records(state, session.toolkit),
        display.show_history(session.toolkit.history),
        *(display.show(message) for message in tool_messages(state.values)),
    )
    html = browser.dom(page)
    assert "<title>still</title>" in html
    body = html[html.index("<body>") + 6 : html.index("</body>")]
    assert "<script" not in body
    assert RUNS in Page(body.strip()).text


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("side_by_side", [False, True], ids=["one", "two"])
def test_a_diff_is_seen_in_the_colours_of_the_page(tmp_path: Path, dark: bool, side_by_side: bool) -> None:
    page = page_of(tmp_path, display.show_patch(patch(), side_by_side=side_by_side))
    name = f"diff-{'two' if side_by_side else 'one'}-{'dark' if dark else 'light'}.png"
    found = colours(keep(browser.shot(page, tmp_path / name, height=240, dark=dark)))
    theme = int(dark)
    for ground in ("bg", "head", "add", "addm", "del", "delm"):
        assert found.get(COLOURS[ground][theme], 0) > 50, ground
        assert found.get(COLOURS[ground][1 - theme], 0) < 5000 or ground == "bg"  # the page around it is white
    text = COLOURS["fg"][theme]
    assert found.get(text, 0) > 50
    assert min(contrast(text, COLOURS[ground][theme]) for ground in ("add", "addm", "del", "delm")) > 4.5


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_picture_for_the_readme(tmp_path: Path, dark: bool) -> None:
    page = tmp_path / "readme.html"  # as an image, as it stands in a README
    page.write_text(f'<!DOCTYPE html><body style="margin:0"><img src="{notebooks.PICTURE.as_uri()}">', encoding="utf-8")
    found = colours(
        keep(browser.shot(page, tmp_path / f"picture-{'dark' if dark else 'light'}.png", height=240, dark=dark))
    )
    for name in ("bg", "fg", "good", "bad", "warn", "info", "name", "line"):
        assert found.get(COLOURS[name][int(dark)], 0) > 20, name


@pytest.mark.parametrize("host", ['data-jp-theme-light="false"', 'class="vscode-dark"'])
def test_a_page_that_says_it_is_dark_is_followed(tmp_path: Path, host: str) -> None:
    page = page_of(tmp_path, display.show_patch(patch()))
    page.write_text(page.read_text().replace("<body>", f"<body {host}>"))
    found = colours(browser.shot(page, tmp_path / "host.png", height=240))
    assert found.get(COLOURS["add"][1], 0) > 50
    assert COLOURS["add"][0] not in found


@pytest.mark.parametrize("host", ['data-jp-theme-light="true"', 'class="vscode-light"'])
def test_a_page_that_says_it_is_light_is_followed(tmp_path: Path, host: str) -> None:
    page = page_of(tmp_path, display.show_patch(patch()))
    page.write_text(page.read_text().replace("<body>", f"<body {host}>"))
    found = colours(browser.shot(page, tmp_path / "host.png", height=240, dark=True))
    assert found.get(COLOURS["add"][0], 0) > 50
    assert COLOURS["add"][1] not in found


def rendered(path: Path, page: Path, theme: str) -> Path:
    """A notebook as a page, as `jupyter nbconvert --to html` makes it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the converter's own dependencies
        from nbconvert import HTMLExporter

        exporter: Any = HTMLExporter(theme=theme)  # type: ignore[no-untyped-call]
        body, _ = exporter.from_notebook_node(notebooks.load(path))
    page.write_text(body, encoding="utf-8")
    return page


SEEN = {
    "1": ["REFUSED", "File has not been read yet.", "fresh", "stale", "refused"],
    "2": ["Changed since the read:", "recovered", "was deleted"],
    "3": ["by agent &quot;cook&quot;", "French onion soup", "waiter"],
    "4": ["Plan of a rewind: 2 to do", "(undone)", "left alone", "rewind"],
    "5": ["We keep the tea.", "The user changed your call", "rejected"],
    "6": ["writer", "Cake is on the list.", "# Shopping"],
}


@pytest.mark.parametrize("path", notebooks.NOTEBOOKS, ids=lambda path: path.name[0])
def test_a_rendered_notebook_shows_its_story(path: Path, tmp_path: Path) -> None:
    pages = {theme: rendered(path, tmp_path / f"{path.stem}-{theme}.html", theme) for theme in ("light", "dark")}
    html = browser.dom(pages["light"])
    for text in SEEN[path.name[0]]:
        assert text in html or text.replace("&quot;", '"') in html, text
    assert 'role="img"' in html
    if path.name.startswith("1_"):
        assert '<pre>    <span class="fs-str">"""Say hello."""' in html  # the converter keeps the blanks in front
    for theme, page in pages.items():
        image = keep(browser.shot(page, tmp_path / f"{path.name[0]}-{theme}.png", height=4200))
        found = colours(image)
        at = ("light", "dark").index(theme)
        for name in ("head", "good", "info"):
            assert found.get(COLOURS[name][at], 0) > 20, name
            assert found.get(COLOURS[name][1 - at], 0) < 20, name


def test_a_records_table_and_a_timeline_look_as_they_should(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    for name in ("a.py", "b.py", "c.py"):
        (folder / name).write_text("".join(f"{n}\n" for n in range(40)))
    session = agent_session(folder, history=FileHistory(), thread="records")
    session.say([read("a.py"), read("b.py", offset=10, limit=12), read("c.py")], edit("c.py", "39\n", "40\n"))
    (folder / "a.py").write_text("other\n")
    state = session.graph.get_state(session.config)
    page = page_of(
        tmp_path,
        display.show_records(state, session.toolkit),
        display.show_timeline(state, session.toolkit.history),
    )
    found = colours(keep(browser.shot(page, tmp_path / "records.png", height=500)))
    for name in ("good", "info", "warn", "line"):
        assert found.get(COLOURS[name][0], 0) > 20, name
