"""An HTML file that shows figures: heading, tiles, sections, tables. Reads its style sheet.

The file stands alone: styles within, no scripts, no fonts, no pictures, and a policy that forbids the
browser to request anything. Text of an index is escaped on its way into markup (`element`).
"""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

from amicrawl.archive.report.charts import Bar, Markup, element, timeline

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from amicrawl.archive.report.figures import Grid

_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
)


def document(
    title: str,
    *,
    lead: Markup,
    figures: Sequence[tuple[str, str]],
    sections: Sequence[Markup | None],
    made_by: str,
) -> str:
    """Return the HTML document *title*: the *lead*, *figures* as tiles, and the *sections* there are."""
    body = [
        element("a", {"class": "skip", "href": "#main"}, "Skip to the figures"),
        element("header", None, element("h1", None, title), lead),
        element(
            "main",
            {"id": "main"},
            tiles(figures),
            element("div", {"class": "cards"}, [section for section in sections if section]),
        ),
        element("footer", None, element("p", None, made_by)),
    ]
    head = [
        Markup('<meta charset="utf-8">'),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'),
        Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        Markup('<meta name="referrer" content="no-referrer">'),
        Markup('<link rel="icon" href="data:,">'),
        element("title", None, title),
        element("style", None, Markup(_styles("page.css") + chart_styles())),
    ]
    html = element("html", {"lang": "en"}, element("head", None, head), element("body", None, body))
    return f"<!DOCTYPE html>\n{html}\n"


def chart_styles() -> str:
    """Return the style sheet of charts, legends and tables, for a page that has a few of its own."""
    return _styles("charts.css")


def _styles(name: str) -> str:
    return files(__package__).joinpath(name).read_text("utf-8")


def tiles(figures: Sequence[tuple[str, str]]) -> Markup:
    """Return *figures*, names and values, as a list of tiles."""
    each = [
        element("div", None, element("dt", None, name), element("dd", None, value))
        for name, value in figures
    ]
    return element("dl", {"class": "tiles"}, each)


def section(title: str, content: Markup, *, wide: bool = False) -> Markup:
    """Return a section with its heading."""
    return element("section", {"class": "wide" if wide else None}, element("h2", None, title), content)


def chart(
    title: str,
    drawing: Markup,
    *,
    unit: str,
    behind: Markup,
    classes: Mapping[str, str] | None = None,
    note: str = "",
) -> Markup:
    """Return *drawing* with what a chart has: *unit*, legend, its numbers in a table *behind* it.

    *classes* are names and the classes of style that they are drawn with. *title* names the table; the
    chart itself stands below that heading.
    """
    return element(
        "figure",
        {"class": "figure"},
        element("figcaption", None, f"{unit}. {note}" if note else unit),
        _legend(classes) if classes else "",
        drawing,
        element("details", None, element("summary", None, f"Table: {title}"), behind),
    )


class TimedValue(NamedTuple):
    """What a series has at one moment."""

    tick: str
    """The moment, as it stands below its bar."""
    moment: str
    value: int
    written: str
    """The value in words."""


def series_chart(name: str, title: str, label: str, values: Sequence[TimedValue]) -> Markup:
    """Return the chart of a series of *values*, oldest first; a page finds it by its *name*."""
    bars = [Bar(each.tick, f"{each.moment}: {each.written}", each.value) for each in values]
    rows = [[each.moment, each.written] for each in values]
    behind = table(label, ["Until, UTC", title], rows)
    drawn = chart(title, timeline(bars, label), unit=title, behind=behind)
    return element("div", {"data-series": name}, drawn)


def _legend(classes: Mapping[str, str]) -> Markup:
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
        for name, css in classes.items()
    ]
    return element("ul", {"class": "legend"}, swatches)


def grid_table(caption: str, corner: str, grid: Grid) -> Markup:
    """Return *grid* as a table with sums; *corner* names its rows."""
    columns = list(next(iter(grid.values()), {}))
    rows = [
        [name, *(f"{row[column]:,}" for column in columns), f"{sum(row.values()):,}"]
        for name, row in grid.items()
        if any(row.values())
    ]
    sums = [sum(row[column] for row in grid.values()) for column in columns]
    footer = ["Total", *(f"{value:,}" for value in sums), f"{sum(sums):,}"]
    return table(caption, [corner, *columns, "Total"], rows, footer=footer)


def table(
    caption: str,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    footer: Sequence[str] | None = None,
    names: bool = False,
) -> Markup:
    """Return a table that scrolls within itself and can be reached by keyboard for it."""
    whole = element(
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
        "div", {"class": "scroll", "tabindex": 0, "role": "region", "aria-label": caption}, whole
    )


def _row(cells: Sequence[str]) -> Markup:
    first, *rest = cells
    return element(
        "tr", None, element("th", {"scope": "row"}, first), [element("td", None, c) for c in rest]
    )
