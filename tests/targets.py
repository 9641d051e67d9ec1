"""What the tests of reading and committing share: targets, and children that run a function."""

from __future__ import annotations

import os
import pickle
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from langchain_filestate._disk import Target
from langchain_filestate.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

ROOT = os.geteuid() == 0
as_root = pytest.mark.skipif(not ROOT, reason="only root can make such a case")

NOBODY = 65534


@contextmanager
def target(path: Path) -> Iterator[Target]:
    """A name in its open directory."""
    fd = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield Target(fd, path.name, str(path), ())
    finally:
        os.close(fd)


def refusal(call: Callable[[], object]) -> Refused:
    """What a call is refused with."""
    with pytest.raises(Refused) as caught:
        call()
    return caught.value


def in_child(call: Callable[[], object]) -> Any:
    """Run a function in a forked child; what it returns, or what it is refused with, comes back."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            answer = _answer(call)
        except Exception as error:
            answer = repr(error)
        with os.fdopen(write, "wb") as f:
            pickle.dump(answer, f)
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as f:
        data = f.read()
    os.waitpid(pid, 0)
    return pickle.loads(data)


def as_nobody(call: Callable[[], object]) -> Any:
    """Run a function as a user without rights; what it returns, or what it is refused with, comes back."""
    groups, group = os.getgroups(), os.getegid()
    os.setgroups([])
    os.setegid(NOBODY)
    os.seteuid(NOBODY)
    try:
        return _answer(call)
    finally:
        os.seteuid(0)
        os.setegid(group)
        os.setgroups(groups)


def _answer(call: Callable[[], object]) -> object:
    try:
        return call()
    except Refused as refused:
        return refused.code, refused.message
