"""Opening a file takes long, as where a virus scanner looks at each file first (`fanotify(7)`, for root)."""

from __future__ import annotations

import ctypes
import os
import select
import struct
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

# Numbers of <linux/fanotify.h>, <fcntl.h>.
_CLASS_CONTENT: Final = 4
_CLOSE_ON_EXEC: Final = 1
_MARK_ADD: Final = 1
_OPEN_PERM: Final = 0x10000
_HERE: Final = -100
_ALLOW: Final = 1
_EVENT: Final = struct.Struct("IBBHQii")
_ANSWER: Final = struct.Struct("iI")


def _answer(watch: int, end: int, go: threading.Event) -> None:
    waiting = {watch, end}
    held: list[int] = []
    while True:
        ready = select.select(waiting, [], [], 0.01)[0]
        if watch in ready:
            *_, fd, pid = _EVENT.unpack(os.read(watch, _EVENT.size))
            held.append(fd)
            if pid == os.getpid():
                _allow(watch, held.pop())
        if go.is_set() or end in ready:
            while held:
                _allow(watch, held.pop())
        if end in ready:
            return


def _allow(watch: int, fd: int) -> None:
    os.write(watch, _ANSWER.pack(fd, _ALLOW))
    os.close(fd)


def _watch(path: Path) -> int:
    """A descriptor that is asked about each opening of a file.

    Raises:
        OSError: That is not to be had here.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    fd = int(libc.fanotify_init(_CLASS_CONTENT | _CLOSE_ON_EXEC, os.O_RDONLY))
    if fd >= 0:
        if libc.fanotify_mark(fd, _MARK_ADD, ctypes.c_uint64(_OPEN_PERM), _HERE, os.fsencode(path)) == 0:
            return fd
        os.close(fd)
    number = ctypes.get_errno()
    raise OSError(number, os.strerror(number))


def _available() -> bool:
    if sys.platform != "linux":
        return False
    try:
        os.close(_watch(Path(__file__)))
    except OSError:
        return False
    return True


opens_can_be_held = pytest.mark.skipif(not _available(), reason="fanotify's questions are Linux's, and for root only")


@contextmanager
def other_opens_held(path: Path) -> Iterator[threading.Event]:
    """Other processes that open the file wait inside their open call, until the event is set; this one goes on."""
    watch = _watch(path)
    go, (end, ending) = threading.Event(), os.pipe()
    thread = threading.Thread(target=_answer, args=(watch, end, go))
    thread.start()
    try:
        yield go
    finally:
        os.close(ending)
        thread.join()
        os.close(end)
        os.close(watch)
