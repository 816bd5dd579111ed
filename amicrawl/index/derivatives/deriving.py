"""A WAT or WET file made of a whole source: for those who want just that, one file after the other.

`collection.py` makes them beside everything else, from one reading, in several processes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from amicrawl.errors import AmicrawlError
from amicrawl.index.pages.page import page_of
from amicrawl.index.reading.records import Broken, read_records

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from amicrawl.index.pages.page import Page
    from amicrawl.index.reading.records import Record


class Derivative(Protocol):
    """A file that is made of the records of another, a `WatFile` or `WetFile`."""

    def add(self, record: Record, page: Page | None) -> None:
        """Take in a record, and the page in it."""

    def seal(self) -> tuple[int, int]:
        """Give the file its name; return its records and its size in bytes."""

    def close(self) -> None:
        """Leave the file as it is."""


class Derived(NamedTuple):
    """What came of a source."""

    read: int
    """Records of the source."""
    written: int
    """Records of the derivative, its warcinfo aside."""
    size: int
    """Bytes of the derivative."""


def derive(source: Path, file: Derivative, *, on_broken: Callable[[Broken], None]) -> Derived:
    """Give the records of *source* to *file* and seal it; what is lost of them is told to *on_broken*.

    Raises InputError where the source cannot be read, OutputError where the file cannot be written.
    """
    read = 0
    try:
        for record in read_records(source, on_broken=on_broken):
            read += 1
            try:
                file.add(record, page_of(record))
            except AmicrawlError:
                raise
            except Exception as error:  # noqa: BLE001  # whatever it is, it costs this record only
                reason = f"the record is left out, {type(error).__name__}: {error}"
                on_broken(Broken(source, record.offset, reason[:500]))
        written, size = file.seal()
    finally:
        file.close()
    return Derived(read, written, size)
