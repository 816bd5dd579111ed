"""The page of a summary: sections, each a chart with the table behind it. Reads its style sheet.

The file stands alone: styles within, no scripts, no fonts, no pictures, and a policy that forbids the
browser to ask anybody for anything. Text of the index is escaped on its way into markup (`element`).
"""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

from amicrawl.archive.report.charts import (
    Bar,
    Markup,
    element,
    heat_grid,
    joined,
    share_bar,
    stacked,
    timeline,
)
from amicrawl.archive.report.counts import FACETS, drawn
from amicrawl.archive.report.figures import (
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
from amicrawl.archive.report.text import FACET_TITLES, REPLAY, decimal_size, shown_date

if TYPE_CHECKING:
    from collections.abc import Sequence

    from amicrawl.archive.report.counts import CaptureTally, Counts
    from amicrawl.archive.report.figures import Grid, Overlap


_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
)
_STATUS_CLASSES = {"2XX": "s2", "3XX": "s3", "4XX": "s4", "5XX": "s5", "Other": "so"}
_ROWS = 15
_MOST_BARS = 120
_MONTHS_NAMED = 14


def page_of(
    counts: Counts,
    *,
    title: str,
    hosts: int = 10,
    samples: int = 10,
    replay: str = REPLAY,
    overlap: Overlap | None = None,
) -> str:
    """Return the page of *counts* as one HTML document."""
    sections = [
        _timeline(counts),
        _mime_status(counts),
        _hosts(counts, hosts),
        _path_query(counts),
        *_lists(counts),
        _overlap(overlap),
        _skipped(counts),
        _samples(counts, samples, replay),
    ]
    body = [
        element("a", {"class": "skip", "href": "#main"}, "Skip to the figures"),
        element("header", None, element("h1", None, title), _lead(counts)),
        element(
            "main",
            {"id": "main"},
            _tiles(counts),
            element("div", {"class": "cards"}, [section for section in sections if section]),
        ),
        element(
            "footer", None, element("p", None, "Made by amicrawl summary. Sizes are in decimal units.")
        ),
    ]
    head = [
        Markup('<meta charset="utf-8">'),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'),
        Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        Markup('<meta name="referrer" content="no-referrer">'),
        Markup('<link rel="icon" href="data:,">'),
        element("title", None, title),
        element("style", None, Markup(files(__package__).joinpath("page.css").read_text("utf-8"))),
    ]
    html = element("html", {"lang": "en"}, element("head", None, head), element("body", None, body))
    return f"<!DOCTYPE html>\n{html}\n"


def _lead(counts: Counts) -> Markup:
    if not counts.captures:
        return element("p", None, "There is not one capture in it.")
    span = f"{shown_date(counts.first)} to {shown_date(counts.last)}"
    return element("p", None, f"{counts.captures:,} captures, {span}")


def _tiles(counts: Counts) -> Markup:
    size = decimal_size(counts.bytes)
    if counts.unsized:
        size = "unknown" if counts.unsized == counts.captures else f"{size} or more"
    figures = [
        ("Captures", f"{counts.captures:,}"),
        ("Different URLs", str(different_urls(counts))),
        ("Hosts", f"{hosts_counted(counts):,}"),
        ("WARC records", size),
        ("Duplicates by digest", str(duplicates(counts)) if counts.digested else "unknown"),
        ("Skipped lines", f"{counts.skipped.total():,}"),
    ]
    tiles = [
        element("div", None, element("dt", None, name), element("dd", None, value))
        for name, value in figures
    ]
    return element("dl", {"class": "tiles"}, tiles)


def _timeline(counts: Counts) -> Markup | None:
    months = _months(counts)
    if not months:
        return None
    if len(months) > _MOST_BARS:
        bars = [
            Bar(year, f"{year}: {sum(row.values()):,} captures", sum(row.values()))
            for year, row in year_month_grid(counts).items()
        ]
        kind = "year"
    else:
        bars = [
            Bar(
                _month_label(month, index, len(months)),
                f"{month[:4]}-{month[4:]}: {captures:,} captures, {decimal_size(size)}",
                captures,
            )
            for index, (month, captures, size) in enumerate(months)
        ]
        kind = "month"
    table = _grid_table("Captures by year and month", "Year", year_month_grid(counts))
    return _section(f"Captures by {kind}", timeline(bars, f"Captures by {kind}"), table, wide=True)


def _month_label(month: str, index: int, months: int) -> str:
    """Return the month where there are few of them, else the year at its first."""
    if months <= _MONTHS_NAMED:
        return f"{month[:4]}-{month[4:]}"
    return month[:4] if month.endswith("01") or index == 0 else ""


def _months(counts: Counts) -> list[tuple[str, int, int]]:
    """Return every month from the first to the last, those without captures too."""
    known = {month: numbers for month, numbers in counts.by_month.items() if "01" <= month[4:] <= "12"}
    if not known:
        return []
    first, last = (int(month[:4]) * 12 + int(month[4:]) - 1 for month in (min(known), max(known)))
    names = (f"{index // 12:04d}{index % 12 + 1:02d}" for index in range(first, last + 1))
    return [(name, *known.get(name, (0, 0))) for name in names]


def _mime_status(counts: Counts) -> Markup:
    grid = mime_status_grid(counts)
    swatches = [
        element(
            "li",
            None,
            element(
                "svg",
                {"aria-hidden": "true", "focusable": "false"},
                element("rect", {"width": 12, "height": 12, "rx": 3, "class": css}),
            ),
            name,
        )
        for name, css in _STATUS_CLASSES.items()
    ]
    chart = joined(
        element("ul", {"class": "legend"}, swatches),
        stacked(grid, _STATUS_CLASSES, "Captures by media type and status"),
    )
    return _section(
        "Media types by status", chart, _grid_table("Captures by media type and status", "MIME", grid)
    )


def _hosts(counts: Counts, most: int) -> Markup:
    whole = hosts_counted(counts)
    top = top_hosts(counts, max(most, _ROWS))
    sizes = {host: size for host, _, size in largest_hosts(counts, len(counts.by_host))}
    rows = [
        [host, f"{captures:,}", decimal_size(sizes[host]), share_bar(captures / (counts.captures or 1))]
        for host, captures in top
    ]
    others = ""
    if (rest := whole - len(top)) > 0:
        of_them = counts.captures - sum(captures for _, captures in top)
        others = f"; {rest:,} others have {of_them:,} captures"
    caption = f"Top {len(rows):,} of {whole:,} hosts{others}"
    return _section("Hosts", _table(caption, ["Host", "Captures", "Size", "Share"], rows, names=True))


def _path_query(counts: Counts) -> Markup:
    grid = path_query_grid(counts)
    chart = heat_grid(grid, "Captures by path segments (P) and query parameters (Q)")
    note = element("p", None, "Rows: segments of the path. Columns: parameters of the query.")
    table = _grid_table("Captures by path segments and query parameters", "Path", grid)
    return _section("Paths and queries", joined(note, chart), table)


def _lists(counts: Counts) -> list[Markup | None]:
    named: list[tuple[str, CaptureTally[str]]] = [
        ("Registered domains", by_domain(counts)),
        ("Top-level domains", by_tld(counts)),
        *((FACET_TITLES[name], counts.facets[name]) for name in FACETS if counts.facets.get(name)),
    ]
    return [_list(title, tally, counts.captures) for title, tally in named]


def _list(title: str, tally: CaptureTally[str], captures: int) -> Markup | None:
    rows = [
        [name, f"{count:,}", decimal_size(size), share_bar(count / (captures or 1))]
        for name, count, size in ranked(tally, _ROWS)
    ]
    if not rows:
        return None
    more = f"{len(rows):,} of {len(tally):,}"
    table = _table(more, ["Name", "Captures", "Size", "Share"], rows, names=True)
    return _section(title, table)


def _overlap(overlap: Overlap | None) -> Markup | None:
    if overlap is None:
        return None
    rows = overlap_rows(overlap)
    table = _table("What both collections hold", ["", "This", "Both", "Other"], rows, names=True)
    return _section("Overlap", table)


def _skipped(counts: Counts) -> Markup | None:
    if not counts.skipped:
        return None
    rows = [[reason, f"{lines:,}"] for reason, lines in counts.skipped.most_common()]
    return _section("Skipped lines", _table("By reason", ["Reason", "Lines"], rows, names=True))


def _samples(counts: Counts, most: int, replay: str) -> Markup | None:
    items = [
        element(
            "li",
            None,
            element(
                "a",
                {"href": f"{replay}/{sample.time}/{sample.url}", "rel": "noreferrer noopener"},
                sample.url,
            ),
            f" ({shown_date(sample.time)})",
        )
        for sample in drawn(counts.samples, size=most)
    ]
    if not items:
        return None
    return _section("Sample of HTML pages", element("ul", {"class": "samples"}, items), wide=True)


def _section(title: str, content: Markup, table: Markup | None = None, *, wide: bool = False) -> Markup:
    behind = (
        joined()
        if table is None
        else element("details", None, element("summary", None, f"Table: {title}"), table)
    )
    return element(
        "section", {"class": "wide" if wide else None}, element("h2", None, title), content, behind
    )


def _grid_table(caption: str, corner: str, grid: Grid) -> Markup:
    columns = list(next(iter(grid.values()), {}))
    rows = [
        [name, *(f"{row[column]:,}" for column in columns), f"{sum(row.values()):,}"]
        for name, row in grid.items()
        if any(row.values())
    ]
    sums = [sum(row[column] for row in grid.values()) for column in columns]
    footer = ["Total", *(f"{value:,}" for value in sums), f"{sum(sums):,}"]
    return _table(caption, [corner, *columns, "Total"], rows, footer=footer)


def _table(
    caption: str,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    footer: Sequence[str] | None = None,
    names: bool = False,
) -> Markup:
    """Return a table that scrolls within itself and can be reached by keyboard for it."""
    table = element(
        "table",
        {"class": "names" if names else None},
        element("caption", None, caption),
        element(
            "thead",
            None,
            element("tr", None, [element("th", {"scope": "col"}, cell) for cell in header]),
        ),
        element("tbody", None, [_row(row) for row in rows]),
        element("tfoot", None, _row(footer)) if footer else "",
    )
    return element(
        "div", {"class": "scroll", "tabindex": 0, "role": "region", "aria-label": caption}, table
    )


def _row(cells: Sequence[str]) -> Markup:
    first, *rest = cells
    return element(
        "tr", None, element("th", {"scope": "row"}, first), [element("td", None, c) for c in rest]
    )
