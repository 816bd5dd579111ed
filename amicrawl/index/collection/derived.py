"""The products that are made of pages: WAT and WET."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amicrawl.index.collection.products import Product
from amicrawl.index.derivatives.wat import WatFile
from amicrawl.index.derivatives.wet import WetFile

if TYPE_CHECKING:
    from pathlib import Path

    from amicrawl.index.collection.file import FileJob
    from amicrawl.index.collection.products import Seen
    from amicrawl.index.derivatives.file import Maker


class Wat(Product):
    """The WAT file."""

    def __init__(self, path: Path, job: FileJob, maker: Maker) -> None:
        self._file = WatFile(path, source=job.source, maker=maker)
        super().__init__(self._file)

    def add(self, seen: Seen) -> None:
        """Add what a record says of itself, and the page in it."""
        self._file.add(seen.record, seen.page)


class Wet(Product):
    """The WET file."""

    def __init__(self, path: Path, _: FileJob, maker: Maker) -> None:
        self._file = WetFile(path, maker=maker)
        super().__init__(self._file)

    def add(self, seen: Seen) -> None:
        """Add the text of the page in a record."""
        self._file.add(seen.record, seen.page)
