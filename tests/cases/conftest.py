from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cases.steps import Desk


@pytest.fixture
def desk(tmp_path: Path) -> Callable[..., Desk]:
    """make(**policy) -> the tools, outside of any graph."""

    def make(root: Path = tmp_path, **policy: Any) -> Desk:
        return Desk(root, **policy)

    return make
