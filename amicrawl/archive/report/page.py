"""The page of a summary: sections, each a chart with the table behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from amicrawl.archive.report.charts import (
    Bar,
    Markup,
    element,
    heat_grid,
    share_bar,
    stacked,
    timeline,
)
from amicrawl.archive.report.counts import FACETS, drawn
from amicrawl.archive.report.document import chart, document, grid_table, section, table
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
from amicrawl.terminal import counted

if TYPE_CHECKING:
    from amicrawl.archive.report.counts import CaptureTally, Counts
    from amicrawl.archive.report.figures import Overlap


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
    there = [_mime_status(counts), _hosts(counts, hosts), _path_query(counts)]
    sections = [
        _timeline(counts),
        *(there if counts.captures else ()),
        *_lists(counts),
        _overlap(overlap),
        _skipped(counts),
        _samples(counts, samples, replay),
    ]
    return document(
        title,
        lead=_lead(counts),
        figures=_figures(counts),
        sections=sections,
        made_by="Made by amicrawl summary. Sizes are in decimal units.",
    )


def _lead(counts: Counts) -> Markup:
    if not counts.captures:
        return element("p", None, "There is not one capture in it.")
    span = " to ".join(dict.fromkeys((shown_date(counts.first), shown_date(counts.last))))
    return element("p", None, f"{counted(counts.captures, 'capture')}, {span}")


def _figures(counts: Counts) -> list[tuple[str, str]]:
    size = decimal_size(counts.bytes)
    if counts.unsized:
        size = "unknown" if counts.unsized == counts.captures else f"{size} or more"
    return [
        ("Captures", f"{counts.captures:,}"),
        ("Different URLs", str(different_urls(counts))),
        ("Hosts", f"{hosts_counted(counts):,}"),
        ("WARC records", size),
        ("Duplicates by digest", str(duplicates(counts)) if counts.digested else "unknown"),
        ("Skipped lines", f"{counts.skipped.total():,}"),
    ]


def _timeline(counts: Counts) -> Markup | None:
    months = _months(counts)
    if len(months) < 2:
        # The heading of the page says which one it is, and how many captures.
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
    title = f"Captures by {kind}"
    behind = grid_table("Captures by year and month", "Year", year_month_grid(counts))
    drawing = timeline(bars, title)
    return section(title, chart(title, drawing, unit="Captures", behind=behind), wide=True)


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
    title, label = "Media types by status", "Captures by media type and status"
    drawing, behind = stacked(grid, _STATUS_CLASSES, label), grid_table(label, "MIME", grid)
    return section(title, chart(title, drawing, unit="Captures", behind=behind, classes=_STATUS_CLASSES))


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
    return section("Hosts", table(caption, ["Host", "Captures", "Size", "Share"], rows, names=True))


def _path_query(counts: Counts) -> Markup:
    grid = path_query_grid(counts)
    title, note = "Paths and queries", "Rows: segments of the path. Columns: parameters of the query."
    drawing = heat_grid(grid, "Captures by path segments (P) and query parameters (Q)")
    behind = grid_table("Captures by path segments and query parameters", "Path", grid)
    return section(title, chart(title, drawing, unit="Captures", behind=behind, note=note))


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
    return section(title, table(more, ["Name", "Captures", "Size", "Share"], rows, names=True))


def _overlap(overlap: Overlap | None) -> Markup | None:
    if overlap is None:
        return None
    rows = overlap_rows(overlap)
    return section(
        "Overlap",
        table("What both collections hold", ["What", "This", "Both", "Other"], rows, names=True),
    )


def _skipped(counts: Counts) -> Markup | None:
    if not counts.skipped:
        return None
    rows = [[reason, f"{lines:,}"] for reason, lines in counts.skipped.most_common()]
    return section("Skipped lines", table("By reason", ["Reason", "Lines"], rows, names=True))


def _linked(url: str) -> str:
    """Return *url* with what does not print percent-encoded: octets that are not UTF-8, too."""
    return "".join(
        each if each.isprintable() else quote(each.encode("utf-8", _errors(each))) for each in url
    )


def _errors(character: str) -> str:
    return "surrogateescape" if "\udc80" <= character <= "\udcff" else "replace"


def _samples(counts: Counts, most: int, replay: str) -> Markup | None:
    items = [
        element(
            "li",
            None,
            element(
                "a",
                {"href": f"{replay}/{sample.time}/{_linked(sample.url)}", "rel": "noreferrer noopener"},
                sample.url,
            ),
            f" ({shown_date(sample.time)})",
        )
        for sample in drawn(counts.samples, size=most)
    ]
    if not items:
        return None
    return section("Sample of HTML pages", element("ul", {"class": "samples"}, items), wide=True)
