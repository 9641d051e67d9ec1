"""Pictures and PDFs through agents and graphs: what gets into a conversation, and what stays in it."""

from __future__ import annotations

import base64
import builtins
import io
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pypdf
import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage, convert_to_openai_messages
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver
from PIL import Image

from langchain_filestate import (
    FileHistory,
    FileStateMiddleware,
    FileToolkit,
    Limits,
    ReadResult,
    WiringError,
    parse_result,
)
from langchain_filestate._giveway import without_old_media
from langchain_filestate.state import mark
from langchain_filestate.watch import shell_reads
from tests.scripted import Session, agent_session, code, edit, graph_session, many, read, tool_messages, write

Make = Callable[..., Session]


def picture(form: str = "PNG", size: tuple[int, int] = (40, 30), colour: str = "red") -> bytes:
    target = io.BytesIO()
    Image.new("RGB", size, colour).save(target, form)
    return target.getvalue()


def pdf(pages: int = 1, *, password: str | None = None) -> bytes:
    """A PDF that is made of ASCII characters alone, unless it is locked."""
    kids = " ".join(f"{3 + 2 * n} 0 R" for n in range(pages))
    look = "/Resources << /Font << /F << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >>"
    parts = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {pages} {look} /MediaBox [0 0 200 200] >>",
    ]
    for n in range(pages):
        text = f"BT /F 12 Tf 10 100 Td (page {n + 1}) Tj ET"
        parts += [
            f"<< /Type /Page /Parent 2 0 R /Contents {4 + 2 * n} 0 R >>",
            f"<< /Length {len(text)} >>\nstream\n{text}\nendstream",
        ]
    out, places = "%PDF-1.4\n", []
    for number, part in enumerate(parts, 1):
        places.append(len(out))
        out += f"{number} 0 obj\n{part}\nendobj\n"
    table = "".join(f"{at:010} 00000 n \n" for at in places)
    out += f"xref\n0 {len(parts) + 1}\n0000000000 65535 f \n{table}"
    out += f"trailer\n<< /Size {len(parts) + 1} /Root 1 0 R >>\nstartxref\n{out.index('xref')}\n%%EOF\n"
    if password is None:
        return out.encode()
    writer = pypdf.PdfWriter(pypdf.PdfReader(io.BytesIO(out.encode())))
    writer.encrypt(password)
    target = io.BytesIO()
    writer.write(target)
    return target.getvalue()


def blocks(message: Any) -> list[dict[str, Any]]:
    content = message.content
    return [b for b in content if isinstance(b, dict) and b["type"] != "text"] if isinstance(content, list) else []


def shown(session: Session) -> list[str]:
    """Names of the files that the conversation holds as media."""
    return [Path(m.artifact["file_path"]).name for m in tool_messages(session.state()) if blocks(m)]


def paired(messages: Any) -> bool:
    """Each call has its answer, right after it, and each answer its call."""
    open_calls: list[str] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            if message.tool_call_id not in open_calls:
                return False
            open_calls.remove(message.tool_call_id)
        elif open_calls:
            return False
        if isinstance(message, AIMessage):
            open_calls = [str(one["id"]) for one in message.tool_calls]
    return not open_calls


# ---- blocks ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "mime"), [("PNG", "image/png"), ("JPEG", "image/jpeg"), ("WEBP", "image/webp"), ("GIF", "image/png")]
)
def test_a_picture_is_a_standard_block(session: Make, tmp_path: Path, form: str, mime: str) -> None:
    (tmp_path / "x.bin").write_bytes(picture(form))  # the content decides
    message = session().one(read("x.bin"))
    assert message.status == "success"
    (block,) = blocks(message)
    assert (block["type"], block["mime_type"]) == ("image", mime)
    assert Image.open(io.BytesIO(base64.b64decode(block["base64"]))).size == (40, 30)
    assert [b["type"] for b in message.content_blocks] == ["text", "image"]
    assert "40 x 30 pixels" in message.text
    (sent,) = convert_to_openai_messages([HumanMessage(message.content)])
    assert sent["content"][1]["image_url"]["url"].startswith(f"data:{mime};base64,")


def test_the_artifact_is_small_and_says_what_it_is(session: Make, tmp_path: Path) -> None:
    data = picture("JPEG", (1200, 1000))
    (tmp_path / "x.jpg").write_bytes(data)
    (tmp_path / "x.pdf").write_bytes(pdf(3))
    image, text = session(pdf="text").say(read("x.jpg"), read("x.pdf", offset=2))
    result = parse_result(image)
    assert isinstance(result, ReadResult)
    assert (result.size, result.encoding, result.complete, result.total_lines) == (len(data), None, False, 0)
    assert len(json.dumps(image.artifact)) < 600
    assert (text.artifact["first_line"], text.artifact["last_line"], text.artifact["total_lines"]) == (2, 3, 3)


def test_blocks_survive_a_checkpoint(tmp_path: Path) -> None:
    data = picture()
    (tmp_path / "x.png").write_bytes(data)
    (tmp_path / "x.pdf").write_bytes(pdf())
    strict = JsonPlusSerializer(allowed_msgpack_modules=None)
    where = str(tmp_path / "saved.db")
    for _ in range(2):  # once more from the file
        connection = sqlite3.connect(where, check_same_thread=False)
        saver = SqliteSaver(connection, serde=strict)
        s = agent_session(tmp_path, checkpointer=saver, pdf="file", history=FileHistory())
        if not tool_messages(s.state()):
            s.say(read("x.png"), read("x.pdf"))
        image, file = tool_messages(s.state())
        assert base64.b64decode(blocks(image)[0]["base64"]) == data
        assert (blocks(file)[0]["type"], blocks(file)[0]["mime_type"]) == ("file", "application/pdf")
        assert isinstance(parse_result(image), ReadResult)
        assert s.model.script == []
        connection.close()


def test_a_large_picture_by_another_name(tmp_path: Path) -> None:
    noise = Image.effect_noise((2200, 2200), 90).convert("RGB")
    noise.save(tmp_path / "x.dat", "PNG", compress_level=0)
    assert (tmp_path / "x.dat").stat().st_size > 8 << 20
    message = graph_session(tmp_path).one(read("x.dat"))
    assert blocks(message)
    assert "Scaled down" in message.text
    (tmp_path / "large.log").write_bytes(b"line\n" * (2 << 20))
    lines = graph_session(tmp_path).one(read("large.log", limit=2))
    assert lines.text.startswith("     1\tline\n     2\tline")


# ---- what gets in, and what does not --------------------------------------------------------------------------------


BROKEN = {
    "text named as a picture": ("x.png", b"not a picture\n", "success"),
    "nothing": ("x.png", b"", "success"),
    "cut off": ("x.png", picture(size=(300, 300))[:-40], "error"),
    "only a header": ("x.jpg", picture("JPEG")[:12], "error"),
    "too many pixels": ("x.png", picture(size=(16_000, 5_000)), "error"),
    "a locked PDF": ("x.pdf", pdf(password="secret"), "error"),
    "a cut PDF": ("x.pdf", pdf()[:150], "error"),
    "another binary": ("x.gif", b"\x7fELF\x02\x01\x01" + bytes(90), "error"),
}


@pytest.mark.parametrize(("name", "data", "status"), BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize("how", ["text", "file"])
def test_what_is_broken_is_a_text(tmp_path: Path, name: str, data: bytes, status: str, how: str) -> None:
    (tmp_path / name).write_bytes(data)
    s = agent_session(tmp_path, pdf=how)
    message = s.one(read(name))
    assert isinstance(message.content, str)
    assert message.status == status
    assert code(message) == (None if status == "success" else "binary")
    assert s.model.requests[-1][-1].content == message.content  # the conversation goes on


def test_media_never_count_as_seen_text(session: Make, tmp_path: Path) -> None:
    files = {"x.png": picture(), "x.pdf": pdf(2), "x.gif": picture("GIF")}
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    s = session()
    for name, data in files.items():
        out = s.say(read(name), edit(name, "page 1", "x"), many(name, ("page 1", "x")), write(name, "x"))
        assert [code(m) for m in out] == [None, "binary", "binary", "binary"]
        assert (tmp_path / name).read_bytes() == data
    assert s.records() == {}
    assert "PDF document" in s.one(edit("x.pdf", "page 1", "x")).content
    assert code(s.one(edit("x.pdf", "", "x"))) == "binary"
    # Neither after the shell has shown one that is made of characters.
    text = files["x.pdf"].decode()
    update = shell_reads("cat x.pdf", ToolMessage(text, tool_call_id="1", id="shown"), s.toolkit)
    s.graph.update_state(s.config, update, as_node="tools") if update else None
    assert code(s.one(write("x.pdf", "x"))) == "binary"


def test_without_the_extra_a_note_says_what_is_missing(
    session: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def blocked(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.partition(".")[0] in {"PIL", "pypdf"}:
            raise ImportError(name)
        return real(name, *args, **kwargs)

    (tmp_path / "x.png").write_bytes(picture())
    (tmp_path / "x.pdf").write_bytes(pdf())
    monkeypatch.setattr(builtins, "__import__", blocked)
    image, document = session().say(read("x.png"), read("x.pdf"))
    assert (code(image), code(document)) == ("binary", "binary")
    assert "Python package Pillow (the extra `media`)" in image.content
    assert "Python package pypdf (the extra `media`)" in document.content


# ---- PDFs -----------------------------------------------------------------------------------------------------------


def test_a_large_pdf_page_by_page(tmp_path: Path) -> None:
    (tmp_path / "x.pdf").write_bytes(pdf(500))
    s = graph_session(tmp_path)
    first, middle, last, gone = s.say(
        read("x.pdf"), read("x.pdf", offset=250, limit=2), read("x.pdf", offset=-1), read("x.pdf", offset=501)
    )
    assert isinstance(first.content, str)
    assert "Go on with offset=101." in first.content
    assert "--- page 250 of 500 ---\npage 250\n--- page 251 of 500 ---\npage 251" in middle.content
    assert (middle.artifact["first_line"], middle.artifact["last_line"]) == (250, 251)
    assert "page 500" in last.content
    assert code(gone) == "out_of_range"


def test_pdfs_as_file_blocks_where_asked(session: Make, tmp_path: Path) -> None:
    (tmp_path / "x.pdf").write_bytes(pdf(5))
    whole, part = session(pdf="file").say(read("x.pdf"), read("x.pdf", offset=2, limit=2))
    (block,) = blocks(whole)
    assert (block["type"], block["mime_type"]) == ("file", "application/pdf")
    assert len(pypdf.PdfReader(io.BytesIO(base64.b64decode(blocks(part)[0]["base64"]))).pages) == 2
    assert "pages 2 to 3 of 5" in part.text
    with pytest.raises(WiringError, match="pdf must be"):
        FileToolkit(tmp_path, pdf="picture")  # type: ignore[arg-type]


# ---- how much of it -------------------------------------------------------------------------------------------------


def put(root: Path, count: int) -> list[str]:
    names = [f"{n:02}.png" for n in range(count)]
    for n, name in enumerate(names):
        (root / name).write_bytes(picture(colour=f"#{n:02x}0000"))
    return names


def test_older_pictures_give_way_in_place(tmp_path: Path) -> None:
    names = put(tmp_path, 12)
    (tmp_path / "a.txt").write_text("one\n")
    s = agent_session(tmp_path, limits=Limits(max_thread_media=4))
    s.say(read("a.txt"), *(read(name) for name in names[:4]))
    before = s.state()["messages"]
    assert shown(s) == names[:4]
    s.say(read(names[4]))
    after = s.state()["messages"]
    assert shown(s) == names[3:5]  # half of what may be there
    assert [(m.id, type(m)) for m in after[: len(before)]] == [(m.id, type(m)) for m in before]
    for one, two in zip(before, after, strict=False):
        if blocks(one) and not blocks(two):
            assert (one.artifact, one.tool_call_id, one.status) == (two.artifact, two.tool_call_id, two.status)
            path = tmp_path / Path(one.artifact["file_path"]).name
            assert two.content == (
                f"{one.text}\n\n(Taken out of the conversation, which held too much. Read {path} again to see it.)"
            )
        else:
            assert one == two
    assert paired(after)
    for name in names[5:]:
        s.say(read(name))
    assert max(sum(len(blocks(m)) for m in request) for request in s.model.requests) <= 4
    assert all(paired(request) for request in s.model.requests)
    assert s.say(read(names[0]))[0].status == "success"  # and again
    assert shown(s)[-1] == names[0]
    assert s.one(write("a.txt", "two\n")).status == "success"  # what was read as text is known as before


def test_what_one_step_brings_is_bounded_too(tmp_path: Path) -> None:
    names = put(tmp_path, 10)
    s = agent_session(tmp_path, limits=Limits(max_thread_media=4))
    out = s.say([read(name) for name in names])
    assert [m.status for m in out] == ["success"] * 10
    assert [bool(blocks(m)) for m in out] == [False] * 6 + [True] * 4
    assert sum(len(blocks(m)) for m in s.model.requests[-1]) == 4


async def test_async_and_by_bytes(tmp_path: Path) -> None:
    names = put(tmp_path, 6)
    size = len(base64.b64encode(picture(colour="#000000")))
    s = agent_session(tmp_path, limits=Limits(max_thread_media_bytes=4 * size + 40))
    for name in names:
        await s.asay(read(name))
    assert shown(s) == names[3:]
    assert all(paired(request) for request in s.model.requests)


def test_one_that_is_too_large_by_itself_is_refused(session: Make, tmp_path: Path) -> None:
    (tmp_path / "x.png").write_bytes(picture())
    message = session(limits=Limits(max_thread_media_bytes=50)).one(read("x.png"))
    assert code(message) == "too_large"
    assert "make a smaller copy" in message.content


def test_without_the_middleware_more_are_refused(tmp_path: Path) -> None:
    names = put(tmp_path, 4)
    s = graph_session(tmp_path, limits=Limits(max_thread_media=3))
    out = s.say(*(read(name) for name in names))
    assert [code(m) for m in out] == [None, None, None, "too_large"]


def test_pictures_of_the_user_stay_and_count(tmp_path: Path) -> None:
    names = put(tmp_path, 3)
    s = agent_session(tmp_path, limits=Limits(max_thread_media=4))
    data = base64.b64encode(picture()).decode()
    given: list[Any] = [{"type": "image", "base64": data, "mime_type": "image/png"}] * 3
    s.graph.update_state(s.config, {"messages": [HumanMessage(content=given)]})
    s.say(*(read(name) for name in names))
    assert shown(s) == names[-1:]
    assert len(blocks(s.state()["messages"][0])) == 3


def test_the_middleware_shares_a_toolkit(tmp_path: Path) -> None:
    toolkit = FileToolkit(tmp_path)
    assert FileStateMiddleware(toolkit).toolkit is toolkit
    assert toolkit.editor.gives_way is True


def test_without_media_nothing_is_made_anew() -> None:
    messages = [HumanMessage("x"), AIMessage("y"), ToolMessage("z", tool_call_id="1", id="1")]
    assert without_old_media(messages, Limits()) == {}
    block = {"type": "image", "base64": "A" * 100, "mime_type": "image/png"}
    ours = ToolMessage([block], tool_call_id="1", id="1", additional_kwargs=mark([block]))  # without artifact and text
    ours.artifact = None
    theirs = ToolMessage([block], tool_call_id="2", id="2")
    gone = without_old_media([ours, theirs, AIMessage("")], Limits(max_thread_media_bytes=150))
    assert {name: message.content for name, message in gone.items()} == {
        "1": "(Taken out of the conversation, which held too much. Read the file again to see it.)"
    }
