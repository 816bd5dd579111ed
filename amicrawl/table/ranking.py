"""Lists of ranked sites, as CSV: what is asked of them, as SQL. Reads one line of the file.

Either without a header, `rank,site` or only `site`, or with one that has a column called site or domain
and perhaps one called rank or globalrank. Where no rank is given, the order of the lines is the rank.
"""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

from amicrawl.errors import InputError
from amicrawl.table.named_queries import RANKING, TABLE, quoted

if TYPE_CHECKING:
    from pathlib import Path

_SITE_NAMES = ("site", "domain")
_RANK_NAMES = ("rank", "globalrank")
_MOST_COLUMNS = 64
_LONGEST_LINE = 65_536


def ranking_of_file(path: Path) -> str:
    """Return the statement that makes the ranking of the CSV file *path*; InputError if it is none."""
    cells, site, rank, header = _layout(path)
    columns = ", ".join(f"'c{number}': 'VARCHAR'" for number in range(cells))
    rows = (
        f"read_csv({quoted(str(path.absolute()))}, header = false, skip = {int(header)}, "
        f"delim = ',', quote = '\"', columns = {{{columns}}})"
    )
    place = "row_number() OVER ()" if rank is None else f"CAST(c{rank} AS BIGINT)"
    chosen = f"{place} AS rank, lower(trim(c{site})) AS site"
    return f"CREATE TABLE {RANKING} AS\nSELECT {chosen}\nFROM {rows}"  # quoted above


def ranking_of_table() -> str:
    """Return the statement that ranks the thousand most captured domains of the table itself."""
    return (
        f"CREATE TABLE {RANKING} AS\n"
        "SELECT row_number() OVER (ORDER BY count(*) DESC, url_host_registered_domain) AS rank,\n"
        "       url_host_registered_domain AS site\n"
        f"FROM {TABLE}\n"
        "WHERE url_host_registered_domain IS NOT NULL\n"
        "GROUP BY url_host_registered_domain\n"
        "ORDER BY rank\n"
        "LIMIT 1000"
    )


def _layout(path: Path) -> tuple[int, int, int | None, bool]:
    """Return the number of columns, those of site and rank, and whether the first line is a header."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as lines:
            first = next(csv.reader([lines.readline(_LONGEST_LINE)]), [])
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(
            f"The ranking {path} cannot be read as CSV: {reason}. Check path and file."
        ) from error
    names = [cell.strip().lower() for cell in first]
    site = next((names.index(name) for name in _SITE_NAMES if name in names), None)
    if site is not None:
        rank = next((names.index(name) for name in _RANK_NAMES if name in names), None)
        return len(names), site, rank, True
    if len(names) == 1 and names[0]:
        return 1, 0, None, False
    if 2 <= len(names) <= _MOST_COLUMNS and names[0].isascii() and names[0].isdigit():
        return len(names), 1, 0, False
    raise InputError(
        f"The ranking {path} begins with neither rank,site nor a header with a column called site or "
        "domain. Give it one of these."
    )
