"""What the tests of the Python API share."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

import greenbeat as gb

Make = Callable[..., gb.Instance]


@pytest.fixture
def make() -> Make:
    """Instantiate a module given as text: `make("(module ...)", {"env": {...}}, seconds=1.0)`."""

    def instantiate(text: str, imports: Mapping[str, Any] | None = None, **limits: Any) -> gb.Instance:
        return gb.Module.from_wat(text).instantiate(imports, limits=gb.Limits(**limits))

    return instantiate
