"""The page of a summary: whole in one file, nothing in it obeyed, tables behind the charts."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections import Counter
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report.national_labs import national_labs
from report.summary_lines import cdx11, counts_of

from amicrawl.archive.report.charts import element
from amicrawl.archive.report.counts import CORRECTED, CaptureTally, Counts, Sample
from amicrawl.archive.report.figures import overlap_of
from amicrawl.archive.report.page import page_of

if TYPE_CHECKING:
    from pathlib import Path

HOSTILE = (
    "\"'><script>alert(1)</script><img src=//evil.example/x onerror=alert(2)>&amp;"
    "\u202egpj.exe\x1b[2J\ud800"
)
VOID = {"meta", "link"}
BROWSER = os.environ.get("AMICRAWL_TEST_CHROMIUM") or next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)


class Page(HTMLParser):
    """The elements of a page, nested as they ought to be."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def charts_without(text: str) -> list[str]:
    """Return which charts of a page lack their unit, or their numbers in a table."""
    wanting = []
    for place in [found.start() for found in re.finditer(r'<svg [^>]*class="chart"', text)]:
        begin = text.rfind("<figure", 0, place)
        figure = text[begin : text.find("</figure>", place)] if begin >= 0 else ""
        cells = re.findall(r"<td>([^<]*)", figure)
        has_numbers = any(re.search("[0-9]", cell) for cell in cells)
        unit = re.search(r"<figcaption>[^<]*[a-z]", figure)
        if figure.count('class="chart"') != 1 or not (unit and has_numbers and "<summary>" in figure):
            wanting.append(text[place : place + 300])
    return wanting


def hostile_counts() -> Counts:
    counts = national_labs(CORRECTED)
    counts.by_host.add(HOSTILE, 10**7, 1)
    counts.by_host.add(f"{HOSTILE},{HOSTILE}", 10**6, 1)
    counts.by_mime_status.add((HOSTILE, "200"), 10**6, 1)
    counts.facets = {
        "languages": CaptureTally({HOSTILE: (5, 5)}),
        "soft-404": CaptureTally({"0.9-1.0": (5, 5)}),
    }
    counts.samples = [Sample("20121026215942", f"javascript:{HOSTILE}", 1)]
    counts.skipped = Counter({HOSTILE: 3})
    return counts


@pytest.fixture(scope="module")
def text() -> str:
    counts = hostile_counts()
    return page_of(
        counts, title=f"Summary of {HOSTILE}", overlap=overlap_of(counts, national_labs(CORRECTED))
    )


def test_nothing_of_an_index_becomes_an_element_or_attribute(text: str) -> None:
    page = Page(text)

    known = {
        "html",
        "head",
        "meta",
        "link",
        "title",
        "style",
        "body",
        "a",
        "header",
        "h1",
        "p",
        "main",
        "dl",
        "div",
        "dt",
        "dd",
        "section",
        "h2",
        "svg",
        "line",
        "text",
        "rect",
        "figure",
        "figcaption",
        "details",
        "summary",
        "table",
        "caption",
        "thead",
        "tbody",
        "tfoot",
        "tr",
        "th",
        "td",
        "ul",
        "li",
        "footer",
    }
    assert {tag for tag, _ in page.elements} <= known
    assert not [name for _, attributes in page.elements for name in attributes if name.startswith("on")]
    assert "".join(page.texts).count("<script>alert(1)</script>") > 5
    text.encode("utf-8")
    assert "\u202e" not in text
    assert "\x1b" not in text


def test_the_page_requests_nothing(text: str) -> None:
    page = Page(text)

    (policy,) = [one["content"] for one in page.all("meta") if "http-equiv" in one]
    assert str(policy).startswith("default-src 'none'; style-src 'unsafe-inline'")
    assert not page.all("script")
    assert not [one for _, one in page.elements if one.get("src")]
    assert [one["href"] for one in page.all("link")] == ["data:,"]
    assert not re.search(r"url\(|@import", text)
    links = [one["href"] for one in page.all("a") if one["href"] != "#main"]
    assert all(str(link).startswith("https://web.archive.org/web/2012") for link in links)


def test_every_chart_has_a_name_and_a_table_behind_it(text: str) -> None:
    page = Page(text)

    charts = [one for one in page.all("svg") if one.get("role") == "img"]
    assert [chart["aria-label"] for chart in charts] == [
        "Captures by month",
        "Captures by media type and status",
        "Captures by path segments (P) and query parameters (Q)",
    ]
    assert len(page.all("details")) == len(charts)
    scrolling = [one for one in page.all("div") if one.get("class") == "scroll"]
    assert len(scrolling) == len(page.all("table")) == len(page.all("caption"))
    assert all(one["tabindex"] == "0" and one["aria-label"] for one in scrolling)
    assert all(one["scope"] in {"row", "col"} for one in page.all("th"))
    assert {"width=device-width, initial-scale=1", "no-referrer"} <= {
        one.get("content") for one in page.all("meta")
    }


def test_the_figures_of_the_tables_are_those_of_the_text() -> None:
    page = Page(page_of(national_labs(CORRECTED), title="x"))

    for figure in ("3,924,946", "2,004", "1.1 TB", "2,201,403", "1,387,772", "3,248,393", "178,298"):
        assert figure in page.texts


@pytest.mark.parametrize(
    "lines", [[], [cdx11()], [cdx11(time=f"{1990 + n}0101000000") for n in range(20)]]
)
def test_collections_small_and_long_have_a_page(lines: list[str]) -> None:
    assert "<h1>x</h1>" in page_of(counts_of(*lines), title="x")


@given(st.text(), st.text())
def test_text_is_escaped_wherever_it_stands(value: str, text: str) -> None:
    (parsed,) = Page(element("p", {"class": value}, text)).elements

    assert parsed[0] == "p"
    assert list(parsed[1]) == ["class"]


@pytest.mark.skipif(BROWSER is None, reason="no Chromium; AMICRAWL_TEST_CHROMIUM can name one")
@pytest.mark.parametrize("width", [390, 1280])
def test_a_browser_shows_the_page_without_scripts_or_scrolling_sideways(
    tmp_path: Path, text: str, width: int
) -> None:
    """A frame of that width, since a window is never narrower than 500 pixels."""
    (tmp_path / "page.html").write_text(text, "utf-8")
    (tmp_path / "frame.html").write_text(
        f"<iframe id=f src=page.html style='width:{width}px;height:900px;border:0'></iframe><script>"
        "onload = () => { const d = f.contentDocument, w = d.documentElement;"
        " document.title = [w.scrollWidth <= w.clientWidth, d.querySelectorAll('script, img').length,"
        " d.querySelectorAll('svg[role=img]').length,"
        " d.querySelectorAll('.scroll').length > 5].join(); };"
        "</script>"
    )
    done = subprocess.run(
        [
            str(BROWSER),
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--allow-file-access-from-files",
            f"--user-data-dir={tmp_path / 'profile'}",
            "--window-size=1400,1000",
            "--dump-dom",
            (tmp_path / "frame.html").as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    assert "<title>true,0,3,true</title>" in done.stdout


def test_every_chart_has_its_unit_and_its_numbers_as_a_table(text: str) -> None:
    assert text.count('class="chart"') == 3
    assert charts_without(text) == []


@pytest.mark.parametrize(
    ("url", "linked"),
    [
        ("http://a.example/\udce9", "http://a.example/%E9"),
        ("http://a.example/\u202ex", "http://a.example/%E2%80%AEx"),
        ("http://a.example/\ud800é", "http://a.example/%3Fé"),
    ],
)
def test_a_sample_links_to_its_url_whatever_does_not_print_in_it(url: str, linked: str) -> None:
    counts = counts_of(cdx11())
    counts.samples = [counts.samples[0]._replace(url=url)]
    assert f'/{linked}"' in page_of(counts, title="x")


def test_a_collection_of_one_month_has_no_chart_of_months() -> None:
    lines = [cdx11(time=f"2026110{day}000000") for day in (1, 2)]
    assert "Captures by month" not in page_of(counts_of(*lines), title="x")
    assert "Captures by month" in page_of(counts_of(*lines, cdx11(time="20261201000000")), title="x")


def test_a_collection_without_a_capture_has_no_empty_charts() -> None:
    counts = counts_of("skipped")
    assert not counts.captures
    page = Page(page_of(counts, title="none"))
    assert page.all("figure") == []
    assert page.texts.count("Hosts") == 1, "a tile"
    assert page.texts.count("Skipped lines") == 2, "a tile, and their reasons"


def test_a_single_capture_has_one_day() -> None:
    page = page_of(counts_of(cdx11(time="20261128110000")), title="x")
    assert "<p>1 capture, Nov 28 2026</p>" in page
