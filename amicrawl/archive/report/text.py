"""A summary as text: six blocks in the layout of cdx-summary, then what lies beyond it. Pure.

Every row has one blank at each end; rules are drawn with `─`; numbers stand right, with commas. Titles
are centred over their table; by the rules of cdx-summary they stand left, as its present release prints
them. What comes from the index is made harmless for a terminal.
"""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, NamedTuple

from amicrawl.archive.report.counts import CDX_SUMMARY, FACETS, drawn
from amicrawl.archive.report.figures import (
    MONTHS,
    QUERY_GROUPS,
    STATUS_GROUPS,
    by_domain,
    by_tld,
    different_urls,
    duplicates,
    hosts_counted,
    largest_hosts,
    mime_status_grid,
    overlap_rows,
    path_query_grid,
    ranked,
    top_hosts,
    year_month_grid,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from amicrawl.archive.report.counts import Counts
    from amicrawl.archive.report.figures import Grid, Overlap

REPLAY = "https://web.archive.org/web"
"""Prefix of the links to samples by default."""

FACET_TITLES = dict(
    zip(
        FACETS,
        (
            "Detected Media Types",
            "Formats (PUID)",
            "Charsets",
            "Languages",
            "Soft 404 Probabilities",
            "Truncations",
            "Crawls",
            "Subsets",
            "Segments",
        ),
        strict=True,
    )
)

_UNITS = ("kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB", "RB", "QB")
_MONTH_NAMES = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_NEAR_DAYS = 5 * 365 / 12
_NEXT = {-1: "yesterday", 0: "today", 1: "tomorrow"}
_SAMPLES_WIDTH = 50
_ROWS_BEYOND = 10


def text_lines(
    counts: Counts,
    *,
    hosts: int = 10,
    samples: int = 10,
    today: date,
    harmless: Callable[[str], str],
    replay: str = REPLAY,
) -> Iterator[str]:
    """Yield the lines of the summary of *counts*; *today* is the date when it is made."""
    table = _Tables(left=counts.rules == CDX_SUMMARY)
    yield ""
    yield from table.lines("CDX Overview", None, _overview(counts, today))
    yield ""
    yield from _grids(counts, table, (_TYPES, _PATHS, _MONTHS))
    yield from _hosts(counts, table, hosts, harmless)
    yield ""
    shown = drawn(counts.samples, size=samples)
    if shown:
        yield f"Random Sample of {len(shown):,} OK HTML Mementos".center(_SAMPLES_WIDTH)
        yield " " + "─" * (_SAMPLES_WIDTH - 2)
        for sample in shown:
            yield f" * {replay}/{sample.time}/{harmless(sample.url)}"
    if shown or counts.rules == CDX_SUMMARY:
        yield ""
    if counts.rules != CDX_SUMMARY:
        yield from _beyond(counts, table, harmless)


def narrow_lines(counts: Counts, *, today: date) -> Iterator[str]:
    """Yield the blocks of a summary that need no keys."""
    table = _Tables(left=False)
    yield ""
    keyed = {"Consecutive Unique URLs", "Consecutive Unique Hosts"}
    overview = [row for row in _overview(counts, today) if row[0] not in keyed]
    yield from table.lines("Overview", None, overview)
    yield ""
    yield from _grids(counts, table, (_TYPES, _MONTHS))


class _Grid(NamedTuple):
    """A table of counts by two properties."""

    title: str
    corner: str
    columns: Sequence[str]
    of: Callable[[Counts], Grid]


_TYPES = _Grid("MIME Type and Status Code Distribution", "MIME", STATUS_GROUPS, mime_status_grid)
_PATHS = _Grid("Path and Query Segments", "Path", QUERY_GROUPS, path_query_grid)
_MONTHS = _Grid("Year and Month Distribution", "Year", MONTHS, year_month_grid)


def _grids(counts: Counts, table: _Tables, grids: Sequence[_Grid]) -> Iterator[str]:
    for grid in grids:
        yield from table.grid(grid.title, grid.corner, grid.columns, grid.of(counts), counts.captures)
        yield ""


def _overview(counts: Counts, today: date) -> list[list[str]]:
    size = decimal_size(counts.bytes)
    if counts.unsized:
        size = "Unknown" if counts.unsized == counts.captures else f"{size} or more"
    near = today if counts.rules == CDX_SUMMARY else None
    return [
        ["Total Captures in CDX", f"{counts.captures:,}"],
        ["Consecutive Unique URLs", f"{counts.urls:,}"],
        ["Consecutive Unique Hosts", f"{counts.hosts:,}"],
        ["Total WARC Records Size", size],
        ["First Memento Date", shown_date(counts.first, today=near)],
        ["Last Memento Date", shown_date(counts.last, today=near)],
    ]


def _hosts(counts: Counts, table: _Tables, most: int, harmless: Callable[[str], str]) -> Iterator[str]:
    top = top_hosts(counts, most)
    whole = hosts_counted(counts)
    rows = [[harmless(host), f"{captures:,}"] for host, captures in top]
    rest = whole - len(top)
    others = counts.captures - sum(captures for _, captures in top)
    footer = [f"OTHERS ({rest:,} Hosts)", f"{others:,}"]
    title = f"Top {len(top):,} Out of {whole:,} Hosts"
    yield from table.lines(title, ["Host", "Captures"], rows, footer, with_footer=rest > 0)


def _beyond(counts: Counts, table: _Tables, harmless: Callable[[str], str]) -> Iterator[str]:
    known = [
        ["Different URLs", str(different_urls(counts))],
        ["Captures with a Digest", f"{counts.digested:,}"],
        ["Duplicates by Digest", str(duplicates(counts))],
        ["Captures of Unknown Size", f"{counts.unsized:,}"],
        ["Skipped Lines", f"{counts.skipped.total():,}"],
    ]
    yield from table.lines("Beyond", None, known)
    yield ""
    if counts.skipped:
        rows = [[harmless(reason), f"{lines:,}"] for reason, lines in counts.skipped.most_common()]
        yield from table.lines("Skipped Lines by Reason", ["Reason", "Lines"], rows)
        yield ""
    lists = [
        ("Largest Hosts", "Host", largest_hosts(counts, _ROWS_BEYOND)),
        ("Registered Domains", "Domain", ranked(by_domain(counts), _ROWS_BEYOND)),
        ("Top-Level Domains", "TLD", ranked(by_tld(counts), _ROWS_BEYOND)),
        *(
            (FACET_TITLES[name], "Value", ranked(counts.facets[name], _ROWS_BEYOND))
            for name in FACETS
            if counts.facets.get(name)
        ),
    ]
    for title, header, entries in lists:
        cells = [
            [harmless(name), f"{captures:,}", decimal_size(size)] for name, captures, size in entries
        ]
        yield from table.lines(title, [header, "Captures", "Size"], cells)
        yield ""


def overlap_lines(overlap: Overlap) -> Iterator[str]:
    """Yield what two collections share as a table."""
    rows = overlap_rows(overlap)
    yield from _Tables(left=False).lines("Overlap", ["", "This", "Both", "Other"], rows)
    yield ""


class _Tables:
    """Tables with titles on the left, or centred."""

    def __init__(self, *, left: bool) -> None:
        self._left = left

    def grid(
        self, title: str, corner: str, columns: Sequence[str], grid: Grid, total: int
    ) -> Iterator[str]:
        """Yield a table of counts with totals; rows without any are left out."""
        rows = [
            [name, *(f"{row[column]:,}" for column in columns), f"{sum(row.values()):,}"]
            for name, row in grid.items()
            if any(row.values())
        ]
        sums = [f"{sum(row[column] for row in grid.values()):,}" for column in columns]
        footer = ["TOTAL", *sums, f"{total:,}"]
        header = [corner, *columns, "TOTAL"]
        yield from self.lines(title, header, rows, footer, with_footer=len(rows) > 1)

    def lines(
        self,
        title: str,
        header: Sequence[str] | None,
        rows: Sequence[Sequence[str]],
        footer: Sequence[str] | None = None,
        *,
        with_footer: bool = True,
    ) -> Iterator[str]:
        """Yield a table under its *title*; a *footer* that is not shown widens that of cdx-summary."""
        every = [row for row in (header, *rows, footer if with_footer else None) if row is not None]
        widths = _widths(every)
        if self._left and footer is not None and not with_footer:
            widths = _stretched(widths, sum(_widths([*every, footer])))
        rule = f" {'─' * (sum(widths) + len(widths) - 1)} "
        yield title if self._left else title.center(len(rule)).rstrip()
        yield rule
        if header is not None:
            yield _row(header, widths)
            yield rule
        for row in rows:
            yield _row(row, widths)
        yield rule
        if footer is not None and with_footer:
            yield _row(footer, widths)
            yield rule


def _widths(rows: Sequence[Sequence[str]]) -> list[int]:
    """Return how wide each column of *rows* is."""
    return [max(map(len, column)) for column in zip(*rows, strict=True)]


def _stretched(widths: Sequence[int], total: int) -> list[int]:
    """Return *widths* that add up to *total*, by shares, each rounded up, as rich does."""
    stretched = []
    shares, missing = sum(widths), total - sum(widths)
    for width in widths:
        more = -(-width * missing // shares) if shares else missing
        stretched.append(width + more)
        shares, missing = shares - width, missing - more
    return stretched


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *rest = (
        cell.rjust(width) if index else cell.ljust(width)
        for index, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return f" {' '.join([first, *rest])} "


def decimal_size(size: int) -> str:
    """Return *size* in bytes as `999 Bytes`, `1.2 kB`, `1.1 TB`: steps of a thousand, one decimal."""
    if size < 1000:
        return "1 Byte" if size == 1 else f"{size} Bytes"
    step = min((len(str(size)) - 1) // 3, len(_UNITS))
    return f"{size / 1000**step:.1f} {_UNITS[step - 1]}"


def shown_date(time: str, *, today: date | None = None) -> str:
    """Return the day of fourteen digits as `Oct 26 2012`; `UNKNOWN` where they are not a date.

    With *today*, words stand for the days next to it and the year is left out within about five months,
    as cdx-summary has it.
    """
    try:
        day = date(int(time[:4]), int(time[4:6]), int(time[6:8]))
    except ValueError:
        return "UNKNOWN"
    shown = f"{_MONTH_NAMES[day.month - 1]} {day.day:02d}"
    if today is None:
        return f"{shown} {day.year}"
    distance = (day - today).days
    if distance in _NEXT:
        return _NEXT[distance]
    return f"{shown} {day.year}" if abs(distance) >= _NEAR_DAYS else shown
