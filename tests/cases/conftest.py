from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cases.steps import Desk


@pytest.fixture(autouse=True, scope="package")
def no_waiting_for_the_disk() -> Iterator[None]:
    """No test here pulls the plug, and a busy disk takes longer for a sync than all the rest."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


@pytest.fixture
def desk(tmp_path: Path) -> Callable[..., Desk]:
    """make(**policy) -> the tools, outside of any graph."""

    def make(root: Path = tmp_path, **policy: Any) -> Desk:
        return Desk(root, **policy)

    return make
