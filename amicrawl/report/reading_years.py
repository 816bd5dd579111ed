"""Files into counters by domain and year: CDX and CDXJ, or what was counted of others before."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from amicrawl.errors import DamagedFileError, InputError
from amicrawl.index.lines.line_reader import octet_blocks
from amicrawl.report.years import Years, count_years, format_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


@dataclass(slots=True)
class YearsRead:
    """What was counted, and what was not."""

    years: Years = field(default_factory=Years)
    skipped: Counter[str] = field(default_factory=Counter)
    damage: list[str] = field(default_factory=list)
    """A sentence for each input that is truncated."""


def read_years(
    paths: Sequence[str],
    *,
    monthly: bool = False,
    full_host: bool = False,
    fold: Callable[[str], str] = str,
) -> YearsRead:
    """Count *paths*, each an index or the lines of an earlier summary, whose hosts *fold* folds.

    InputError where a file cannot be opened, or is in a format that cdx-summarize refuses.
    """
    read = YearsRead()
    for path in paths:
        try:
            for lines in _line_lists(path):
                _count(lines, read, path, monthly=monthly, full_host=full_host, fold=fold)
        except DamagedFileError as error:
            read.damage.append(str(error))
    return read


def _line_lists(path: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the lines of *path* block by block, each time with the first line of the file."""
    first = ""
    for block in octet_blocks(Path(path)):
        lines = block.decode("utf-8", "replace").split("\n")
        first = first or lines[0]
        yield first, lines


def _count(
    lines: tuple[str, list[str]],
    read: YearsRead,
    path: str,
    *,
    monthly: bool,
    full_host: bool,
    fold: Callable[[str], str],
) -> None:
    first, block = lines
    if first.partition(" ")[2].startswith("{"):
        for line in filter(None, block):
            try:
                read.years.absorb_line(line, fold=fold, yearly=not monthly)
            except ValueError as error:
                read.skipped[str(error)] += 1
        return
    form = format_of(first)
    if form is None:
        raise InputError(
            f"{path} is in no format that cdx-summarize reads (CDXJ, 7 columns, N b a m s, or CDX-11 "
            "with its legend). Leave out --compat to summarise it."
        )
    read.skipped.update(count_years(block, read.years, form=form, monthly=monthly, full_host=full_host))
