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


def in_child(call: Callable[[], object], *, uid: int | None = None) -> Any:
    """Run a function in a forked child, as another user if wanted; what it returns or raises comes back."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            if uid is not None:
                os.setgroups([])
                os.setgid(uid)
                os.setuid(uid)
            answer: object = call()
        except Refused as refused:
            answer = (refused.code, refused.message)
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
