"""Figures from the narrow columns of a table, at many million rows a second. Reads only.

Captures, bytes, first and last, media types by status, months: everything of a summary that needs no
key. Reading the keys alone takes longer than all of this. The figures are those of the whole summary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import duckdb

from amicrawl.errors import DamagedFileError, InputError, UsageError
from amicrawl.index.location import is_uri
from amicrawl.report.counts import Counts
from amicrawl.report.figures import mime_status_grid, year_month_grid
from amicrawl.report.inputs import files_of, is_parquet
from amicrawl.report.parquet import NARROW_COLUMNS, opened_table
from amicrawl.report.rows import MOST_DIGITS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_SIZED = f"warc_record_length BETWEEN 0 AND {10**MOST_DIGITS - 1}"
_GROUPS = f"""
SELECT content_mime_type, fetch_status, year(time) * 100 + month(time), count(*),
       coalesce(sum(warc_record_length) FILTER ({_SIZED}), 0)::HUGEINT, count(*) FILTER ({_SIZED}),
       strftime(min(time), '%Y%m%d%H%M%S'), strftime(max(time), '%Y%m%d%H%M%S')
FROM (SELECT *, make_timestamp_ms(epoch_ms(fetch_time)) AS time FROM read_parquet($file))
GROUP BY ALL
"""  # noqa: S608  # numbers of ours


def count_narrow(paths: Sequence[str], *, threads: int = 2) -> Counts:
    """Return the counts of the tables *paths* that need no key; hosts, URLs and the like stay empty.

    Raises InputError for what is not a table, DamagedFileError for what cannot be read, UsageError for
    URIs.
    """
    counts = Counts()
    if any(map(is_uri, paths)):
        raise UsageError("--quick reads files of this machine only. Leave it out for URIs.")
    with duckdb.connect(config={"threads": threads}) as connection:
        for path in paths:
            for file in files_of(path):
                for group in _groups(connection, file.location.as_path):
                    _count(counts, group)
    return counts


def narrow_to_json(counts: Counts) -> dict[str, Any]:
    """Return *counts* under the names of cdx-summary's JSON, those left out that need keys."""
    return {
        "captures": counts.captures,
        "bytes": counts.bytes,
        "first": counts.first,
        "last": counts.last,
        "mimestatus": mime_status_grid(counts),
        "yearmonth": year_month_grid(counts),
    }


def _groups(connection: duckdb.DuckDBPyConnection, file: Path) -> list[tuple[Any, ...]]:
    if not is_parquet(file):
        raise InputError(f"--quick is for index tables, and {file} is not one. Leave it out for others.")
    with opened_table(file) as table:
        missing = [name for name in NARROW_COLUMNS if name not in table.schema.names]
        if not missing:
            table.check(NARROW_COLUMNS)
    if missing:
        raise InputError(
            f"{file} has no column {missing[0]}: --quick is for index tables. Leave it out for others."
        )
    try:
        return connection.execute(_GROUPS, {"file": str(file)}).fetchall()
    except duckdb.Error as error:
        raise DamagedFileError(file, 0, f"rows that cannot be read ({error})") from error


def _count(counts: Counts, group: tuple[Any, ...]) -> None:
    mime, status, month, captures, size, sized, first, last = group
    if month is None:
        counts.skipped["a row without time"] += captures
        return
    known = status is not None and 0 <= status <= 999
    counts.captures += captures
    counts.bytes += size
    counts.unsized += captures - sized
    counts.first = min(counts.first or first, first)
    counts.last = max(counts.last, last)
    shown = f"{status:03d}" if known else "-"
    counts.by_mime_status.add((mime or "-", shown), captures, size)
    counts.by_month.add(f"{month:06d}", captures, size)
