"""Reading a seed list in a test: content in, seeds and faults out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from amicrawl.seed import Seed, SeedFault, open_seed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Read = Callable[..., tuple[list[Seed], list[SeedFault]]]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Return a function that writes *content* to a file called *name* and reads it as a seed list."""

    def read_content(
        content: bytes, name: str = "seeds.txt", **options: object
    ) -> tuple[list[Seed], list[SeedFault]]:
        path = tmp_path / name
        path.write_bytes(content)
        faults: list[SeedFault] = []
        with open_seed(str(path), on_fault=faults.append, **options) as reader:  # type: ignore[arg-type]
            seeds = list(reader)
            assert reader.read == len(seeds)
            assert reader.bad == sum(not fault.kept for fault in faults)
            assert reader.flawed == sum(fault.kept for fault in faults)
        return seeds, faults

    return read_content
