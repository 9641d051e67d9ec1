"""Content decides what a file is; only sound media go into a conversation, and only so many."""

from __future__ import annotations

import base64
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pypdf
import pytest
from langchain_core.messages import HumanMessage, ToolMessage
from PIL import Image

from tests.cases.steps import Desk, Make, code, edit, read
from tests.scripted import graph_session, tool_messages


def picture(form: str = "PNG", size: tuple[int, int] = (40, 30), mode: str = "RGB", **options: Any) -> bytes:
    target = io.BytesIO()
    Image.new(mode, size, 1 if mode == "1" else "red").save(target, form, **options)
    return target.getvalue()


def pdf(*, pages: int = 1, password: str | None = None) -> bytes:
    writer = pypdf.PdfWriter()
    for _ in range(pages):
        writer.add_blank_page(200, 200)
    if password is not None:
        writer.encrypt(password, algorithm="RC4-128")
    target = io.BytesIO()
    writer.write(target)
    return target.getvalue()


def blocks(message: ToolMessage) -> list[dict[str, Any]]:
    content = message.content
    return [b for b in content if isinstance(b, dict) and b["type"] != "text"] if isinstance(content, list) else []


def words(message: ToolMessage) -> str:
    content = message.content
    if isinstance(content, str):
        return content
    return "\n".join(b["text"] for b in content if isinstance(b, dict) and b["type"] == "text")


# ---- ME-01 ----------------------------------------------------------------------------------------------------------

PNG = picture()
BROKEN: dict[str, tuple[str, bytes, str]] = {
    "text": ("x.png", b"not a picture\n", "text"),
    "nothing": ("x.png", b"", "text"),
    "a cut PNG": ("x.png", picture(size=(400, 300), mode="RGBA")[:-200], "refused"),
    "only a header": ("x.png", PNG[:24], "refused"),
    "a signature and zeros": ("x.png", PNG[:8] + b"\0" * 500, "refused"),
    "a wrong checksum": ("x.png", PNG[:-20] + bytes([PNG[-20] ^ 1]) + PNG[-19:], "refused"),
    "a cut JPEG": ("x.jpg", picture("JPEG", (400, 300))[:-300], "refused"),
    "a cut GIF": ("x.gif", picture("GIF", (400, 300), "P")[:60], "refused"),
    "a cut WebP": ("x.webp", picture("WEBP", (400, 300))[:60], "refused"),
    "an HTML error page": ("x.jpg", b"<!doctype html><title>404</title>\n", "text"),
    "a JSON error": ("x.pdf", b'{"error": "not found"}\n', "text"),
    "a pointer of Git LFS": ("x.png", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n", "text"),
    "a locked PDF": ("x.pdf", pdf(password="secret"), "refused"),
    "a cut PDF": ("x.pdf", pdf()[:200], "refused"),
    "only a PDF header": ("x.pdf", b"%PDF-1.7\n", "refused"),
    "a bomb": ("x.png", picture(size=(9_000, 9_000), mode="1"), "refused"),
    "another kind": ("x.png", b"\x7fELF\x02\x01\x01\0\0\0", "refused"),
    "a BMP": ("x.png", picture("BMP"), "refused"),
    "a TIFF": ("x.png", picture("TIFF"), "refused"),
    "an icon": ("x.png", picture("ICO"), "refused"),
}


@pytest.mark.parametrize(("name", "data", "what"), BROKEN.values(), ids=BROKEN)
def test_me_01_nothing_that_a_provider_rejects(desk: Callable[..., Desk], name: str, data: bytes, what: str) -> None:
    d = desk()
    d.put(name, data)
    message = d.read(name)
    assert blocks(message) == []
    assert "\0" not in words(message)
    assert len(words(message)) < 1000
    if what == "text":
        assert message.status == "success", message.content
    else:
        assert code(message) == "binary", message.content


SOUND: dict[str, tuple[str, bytes, str]] = {
    "PNG": ("x.png", PNG, "image/png"),
    "without a name": ("x", PNG, "image/png"),
    "another name": ("x.jpg", PNG, "image/png"),
    "a name of text": ("x.txt", PNG, "image/png"),
    "JPEG": ("x.jpeg", picture("JPEG"), "image/jpeg"),
    "WebP": ("x.webp", picture("WEBP"), "image/webp"),
    "GIF": ("x.gif", picture("GIF", mode="P"), "image/png"),
    "large": ("x.png", picture(size=(5_000, 3_000)), "image/png"),
    "CMYK": ("x.jpg", picture("JPEG", mode="CMYK"), "image/"),
    "one pixel": ("x.png", picture(size=(1, 1)), "image/png"),
}


@pytest.mark.parametrize(("name", "data", "mime"), SOUND.values(), ids=SOUND)
def test_me_01_what_is_shown_can_be_decoded(desk: Callable[..., Desk], name: str, data: bytes, mime: str) -> None:
    d = desk()
    d.put(name, data)
    message = d.read(name)
    (block,) = blocks(message)
    assert block["mime_type"].startswith(mime)
    image = Image.open(io.BytesIO(base64.b64decode(block["base64"], validate=True)))
    image.load()
    assert max(image.size) <= 1568
    assert len(block["base64"]) < 5_000_000
    for refused in (d.edit(name, "a", "b"), d.write(name, "x"), d.many(name, ("a", "b"))):
        assert refused.status == "error"
        assert code(refused) in {"binary", "not_read"}
    assert (d.root / name).read_bytes() == data
    json.dumps(message.artifact)


def test_me_01_9600_by_7700_is_more_than_is_decoded(desk: Callable[..., Desk]) -> None:
    d = desk()
    d.put("x.png", picture(size=(9_600, 7_700), mode="1"))
    message = d.read("x.png")
    assert blocks(message) == []
    assert code(message) == "binary"
    assert "9600" in words(message).replace(",", "")


def media(messages: list[Any]) -> int:
    return sum(len(blocks(message)) for message in messages)


def test_me_01_no_request_holds_more_than_providers_take(session: Make, tmp_path: Path) -> None:
    for n in range(98):
        (tmp_path / f"{n}.png").write_bytes(picture(size=(8, 8)))
    (tmp_path / "f").write_text("one\n")
    s = session()
    out = s.say(
        [read(f"{n}.png") for n in range(40)],
        [read(f"{n}.png") for n in range(40, 98)],
        [read("97.png"), read("f")],
        edit("f", "one", "two"),
    )
    assert all(media(request) <= 90 for request in s.model.requests)
    assert max(media(request) for request in s.model.requests) >= 40
    for message in out[:99]:  # what is not shown says so
        assert blocks(message) or code(message) == "too_large" or "ead" in words(message)
    assert [m.status for m in out[99:]] == ["success", "success"]  # text goes on


def test_me_01_too_many_are_refused_and_a_note_in_place_of_one_makes_room(tmp_path: Path) -> None:
    """In a graph of one's own, where nobody gives way."""
    for n in range(95):
        (tmp_path / f"{n}.png").write_bytes(picture(size=(8, 8)))
    s = graph_session(tmp_path)
    out = s.say([read(f"{n}.png") for n in range(95)])
    assert [code(m) for m in out] == [None] * 90 + ["too_large"] * 5
    assert code(s.one(read("94.png"))) == "too_large"
    s.graph.update_state(s.config, {"messages": [out[0].model_copy(update={"content": "[left out]"})]}, as_node="tools")
    assert blocks(s.one(read("94.png")))


def test_me_01_and_only_so_many_bytes(tmp_path: Path) -> None:
    """Also those that somebody else put there, in whatever shape a provider has for them."""
    (tmp_path / "x.png").write_bytes(PNG)
    url = "data:image/png;base64," + "A" * 6_000_000
    there: list[Any] = [
        {"type": "image_url", "image_url": {"url": url}},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * 6_000_000}},
        {"type": "image", "base64": "A" * 6_000_000, "mime_type": "image/png"},
    ]
    s = graph_session(tmp_path)
    s.graph.update_state(s.config, {"messages": [HumanMessage(there, id="large")]}, as_node="__start__")
    assert code(s.one(read("x.png"))) == "too_large"
    s.graph.update_state(s.config, {"messages": [HumanMessage(there[:1], id="large")]}, as_node="tools")
    assert blocks(s.one(read("x.png")))


def test_me_01_a_picture_by_a_name_that_looks_the_same(desk: Callable[..., Desk]) -> None:
    d = desk()
    d.put("Shot 1.00\u202fPM.png", PNG)
    message = d.read("Shot 1.00 PM.png")
    assert blocks(message)
    assert json.dumps("Shot 1.00\u202fPM.png")[1:-1] in words(message)


# ---- ME-02 ----------------------------------------------------------------------------------------------------------


def archive(*names: str) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as file:
        for name in names:
            file.writestr(name, "<xml/>" * 50)
    return target.getvalue()


TEXTS: dict[str, tuple[str, bytes]] = {
    "TypeScript": ("a.ts", b"export const x: number = 1;\n"),
    "SVG": ("a.svg", b'<?xml version="1.0" encoding="UTF-8"?>\n<svg xmlns="http://www.w3.org/2000/svg"/>\n'),
    "SVG without": ("a.svg", b"<svg/>\n"),
    "text as PNG": ("a.png", b"hello\n"),
    "text as PDF": ("a.pdf", b"hello\n"),
    "text as ELF": ("a.exe", b"hello\n"),
    "text as ZIP": ("a.zip", b"hello\n"),
    "no name": ("Makefile", b"all:\n\techo\n"),
    "CSV with a mark": ("a.csv", b"\xef\xbb\xbfa;b\r\n"),
    "escapes": ("a.log", b"\x1b[31mred\x1b[0m\n"),
    "MPEG-like": ("a.ts", b"G\n" * 200),
    "begins like a PDF later": ("a.txt", b"the header is %PDF-1.7\n"),
    "begins like GIF": ("a.txt", b"GIF is a format\n"),
    "begins like BM": ("a.txt", b"BM is a prefix\n"),
    "PostScript": ("a.ps", b"%!PS-Adobe-3.0\n"),
    "RTF": ("a.rtf", b"{\\rtf1\\ansi}\n"),
    "PEM": ("a.pem", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
}


@pytest.mark.parametrize(("name", "data"), TEXTS.values(), ids=TEXTS)
def test_me_02_text_is_text_whatever_it_is_called(desk: Callable[..., Desk], name: str, data: bytes) -> None:
    d = desk()
    d.put(name, data)
    shown = d.read(name)
    assert shown.status == "success", shown.content
    assert str(shown.content).startswith("     1\t")
    assert shown.artifact["encoding"] is not None
    assert d.write(name, "new\n").status == "success"


BINARIES: dict[str, tuple[str, bytes]] = {
    "docx": ("a.docx", archive("[Content_Types].xml", "word/document.xml")),
    "ods": ("a.ods", archive("mimetype", "content.xml")),
    "zip as text": ("a.txt", archive("a")),
    "ELF": ("a", b"\x7fELF\x02\x01\x01\0" + b"\0" * 200),
    "class": ("A.class", b"\xca\xfe\xba\xbe\0\0\0\x34" + b"\0\1" * 50),
    "SQLite": ("a.db", b"SQLite format 3\0" + b"\0" * 100),
    "gzip": ("a.gz", b"\x1f\x8b\x08\0" + bytes(range(256))),
    "pickle": ("a.pkl", b"\x80\x05\x95" + b"\0" * 30),
    "noise": ("a.txt", bytes((n * 7919) % 256 for n in range(1, 5000))),
    "one NUL in text": ("a.txt", b"hello\0world\n"),
    "a NUL far behind": ("a.txt", b"x\n" * 100_000 + b"\0"),
    "MP3": ("a.mp3", b"ID3\x03\0\0\0\0\0\0" + b"\xff\xfb\x90" * 50),
    "wasm": ("a.wasm", b"\0asm\1\0\0\0"),
    "video": ("a.ts", (b"G@\0\x10" + b"\xff" * 184) * 3),
}


@pytest.mark.parametrize(("name", "data"), BINARIES.values(), ids=BINARIES)
def test_me_02_binary_is_a_short_note(desk: Callable[..., Desk], name: str, data: bytes) -> None:
    d = desk()
    d.put(name, data)
    for message in (d.read(name), d.edit(name, "hello", "x"), d.many(name, ("a", "b")), d.write(name, "x")):
        assert code(message) == "binary", message.content
        assert len(str(message.content)) < 400
        assert "bytes" in str(message.content) or "kB" in str(message.content) or "NUL" in str(message.content)
        json.dumps(message.artifact)
        assert "\0" not in json.dumps(message.artifact)
    assert (d.root / name).read_bytes() == data


def test_me_02_no_nul_in_messages_or_state(session: Make, tmp_path: Path) -> None:
    """Also not by ways round: UTF-16 with a NUL in it, a notebook with one, a name."""
    (tmp_path / "a.txt").write_bytes("\ufeffa\0b\n".encode("utf-16-le"))
    (tmp_path / "n.ipynb").write_text(json.dumps({
        "cells": [{"cell_type": "code", "id": "a", "metadata": {}, "execution_count": None, "source": "x = '\0'",
                   "outputs": [{"output_type": "stream", "name": "stdout", "text": "a\0b\n"}]}],
        "metadata": {}, "nbformat": 4, "nbformat_minor": 5,
    }))  # fmt: skip
    s = session()
    s.say([read("a.txt"), read("n.ipynb"), read("a\0b")], edit("a.txt", "b", "c"))
    answers = tool_messages(s.state())
    assert len(answers) == 4
    for message in answers:
        assert "\0" not in str(message.content)
        assert "\\u0000" not in json.dumps(message.artifact).replace("\\\\u0000", "")  # but for an escape of an escape
    assert "\\u0000" not in json.dumps(s.records())


def test_me_02_a_large_binary_is_not_held(desk: Callable[..., Desk]) -> None:
    d = desk()
    path = d.root / "big.bin"
    with path.open("wb") as file:
        file.write(b"\x7fELF\0")
        file.truncate(60_000_000)
    assert code(d.read("big.bin")) == "binary"
    assert code(d.write("big.bin", "x")) in {"too_large", "binary"}
    assert path.stat().st_size == 60_000_000
