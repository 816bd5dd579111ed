"""Counting a seed list ahead of reading it, so that a crawl can say how far it has come."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from amicrawl.errors import InputError
from amicrawl.seed.formats import SeedFormat
from amicrawl.seed.source import STANDARD_INPUT, earlier_indexes, opened

if TYPE_CHECKING:
    from collections.abc import Iterable


def count_entries(source: str, seed_format: SeedFormat) -> int | None:
    """Return how many lines or rows the file *source* has, blank and bad ones included.

    None where counting would take the source away from its reader (standard input), take as long as
    reading it (sitemaps), or does not succeed: what is wrong with it is the reader's to say.
    """
    if source == STANDARD_INPUT or seed_format is SeedFormat.SITEMAP:
        return None
    indexes = earlier_indexes(Path(source))
    if indexes:
        counts = [count_entries(str(path), seed_format) for path in indexes]
        return None if None in counts else sum(filter(None, counts))
    try:
        with opened(source, fetch=None, stdin=None) as file:
            if seed_format is SeedFormat.PARQUET:
                from amicrawl.parquet import ParquetTable  # noqa: PLC0415  # dear to load, seldom needed

                if file.path is None:
                    return None
                with ParquetTable(file.path, source) as table:
                    return table.rows
            return _lines(file.blocks)
    except (InputError, OSError, ValueError):
        return None


def _lines(blocks: Iterable[bytes]) -> int:
    """Count lines; one that is cut at the end counts."""
    count, last = 0, b"\n"
    for block in blocks:
        count += block.count(b"\n")
        last = block[-1:]
    return count + (last != b"\n")
