from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.scripted import KINDS, Session


@pytest.fixture(params=sorted(KINDS))
def session(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Session]:
    """make(**policy) -> a session, once with `create_agent` and once with `ToolNode`."""

    def make(root: Path = tmp_path, **options: Any) -> Session:
        return KINDS[request.param](root, **options)

    return make


@pytest.fixture
def agent(tmp_path: Path) -> Callable[..., Session]:
    """make(**policy) -> a session of `create_agent`."""

    def make(root: Path = tmp_path, **options: Any) -> Session:
        return KINDS["agent"](root, **options)

    return make
