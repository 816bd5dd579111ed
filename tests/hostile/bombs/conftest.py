"""One confinement for all tests of a process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hostile.bombs.confined import Confinement

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def confined() -> Iterator[Confinement]:
    with Confinement() as confinement:
        yield confinement
