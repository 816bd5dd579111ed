"""What is wrong with a crawl file: all of it, each with its place."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from amicrawl.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class Fault(NamedTuple):
    """One thing that is wrong."""

    path: Path
    line: int | None
    """From 1; None where something is missing."""
    sentence: str

    def __str__(self) -> str:
        place = f"{self.path}, line {self.line}" if self.line is not None else f"{self.path}"
        return f"{place}: {self.sentence}"


class CrawlFileError(UsageError):
    """A crawl file that cannot be followed; says everything that is wrong, a line for each fault."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__("\n".join(map(str, faults)))
        self.faults = tuple(faults)
