"""The figures of cdx-summary, as it has them and as they ought to be; each difference is a test."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from datetime import date
from typing import TYPE_CHECKING

import pytest
from report.national_labs import (
    CAPTURES,
    HOSTS,
    MIME_STATUS,
    MONTHS,
    PATH_QUERY,
    TOP_HOSTS,
    URLS,
    national_labs,
)
from report.summary_lines import DIGEST, cdx11, counts_of

from amicrawl.archive.report.counts import CDX_SUMMARY, CORRECTED
from amicrawl.archive.report.counts_json import counts_to_json, report_to_json, summary_to_json
from amicrawl.archive.report.figures import (
    MIME_GROUPS,
    PATH_GROUPS,
    STATUS_GROUPS,
    mime_group,
    mime_status_grid,
    path_query_grid,
    status_group,
    top_hosts,
    year_month_grid,
)
from amicrawl.archive.report.text import decimal_size, shown_date, text_lines

if TYPE_CHECKING:
    from pathlib import Path

    from amicrawl.archive.report.counts import Counts

TODAY = date(2026, 11, 21)
BOTH = pytest.mark.parametrize("rules", [CORRECTED, CDX_SUMMARY])


def text_of(counts: Counts) -> list[str]:
    return list(text_lines(counts, today=TODAY, harmless=str))


def cells(lines: list[str], title: str) -> list[list[str]]:
    """Return the rows of the table under *title*, each as its words."""
    begin = next(index for index, line in enumerate(lines) if line.strip() == title)
    rows: list[list[str]] = []
    for line in lines[begin + 1 :]:
        if not line:
            break
        if "─" not in line:
            rows.append(line.split())
    return rows


@BOTH
def test_the_overview_of_the_national_laboratories_is_that_which_was_published(rules: str) -> None:
    assert [line.rstrip() for line in text_of(national_labs(rules))][3:9] == [
        " Total Captures in CDX      3,924,946",
        " Consecutive Unique URLs    3,410,554",
        " Consecutive Unique Hosts       2,004",
        " Total WARC Records Size       1.1 TB",
        " First Memento Date       Sep 13 2012",
        " Last Memento Date        Mar 31 2013",
    ]


@BOTH
def test_the_media_types_of_the_national_laboratories_add_up(rules: str) -> None:
    rows = cells(text_of(national_labs(rules)), "MIME Type and Status Code Distribution")

    names = [
        "HTML",
        "Image",
        "CSS",
        "JavaScript",
        "JSON",
        "XML",
        "Text",
        "PDF",
        "Audio",
        "Video",
        "Revisit",
        "Other",
    ]
    assert rows[0] == ["MIME", "2XX", "3XX", "4XX", "5XX", "Other", "TOTAL"]
    assert rows[1:-1] == [
        [name, *(f"{value:,}" for value in row), f"{sum(row):,}"]
        for name, row in zip(names, MIME_STATUS.values(), strict=True)
    ]
    assert rows[-1] == ["TOTAL", "3,502,728", "161,037", "207,951", "9,472", "43,758", "3,924,946"]


@BOTH
def test_the_paths_of_the_national_laboratories_add_up(rules: str) -> None:
    rows = cells(text_of(national_labs(rules)), "Path and Query Segments")

    assert rows[0] == ["Path", "Q0", "Q1", "Q2", "Q3", "Q4", "Other", "TOTAL"]
    assert rows[1:-1] == [
        [name, *(f"{value:,}" for value in row), f"{sum(row):,}"]
        for name, row in zip(PATH_GROUPS, PATH_QUERY, strict=True)
    ]
    assert rows[-1] == [
        "TOTAL",
        "2,676,863",
        "421,329",
        "245,270",
        "279,544",
        "122,783",
        "179,157",
        "3,924,946",
    ]


@BOTH
def test_the_months_of_the_national_laboratories_add_up(rules: str) -> None:
    rows = cells(text_of(national_labs(rules)), "Year and Month Distribution")

    assert rows == [
        ["Year", *(f"{month:02d}" for month in range(1, 13)), "TOTAL"],
        ["2012", *["0"] * 8, "433,574", "239,888", "1,106", "1,985", "676,553"],
        ["2013", "1,781", "1,555,616", "1,690,996", *["0"] * 9, "3,248,393"],
        [
            "TOTAL",
            "1,781",
            "1,555,616",
            "1,690,996",
            *["0"] * 5,
            "433,574",
            "239,888",
            "1,106",
            "1,985",
            "3,924,946",
        ],
    ]


@BOTH
def test_the_top_hosts_of_the_national_laboratories_are_those_which_were_published(rules: str) -> None:
    rows = cells(text_of(national_labs(rules)), "Top 10 Out of 2,004 Hosts")

    assert rows == [
        ["Host", "Captures"],
        ["usaxs.xray.aps.anl.gov", "178,298"],
        ["nrel.gov", "81,544"],
        ["sandia.gov", "80,985"],
        ["fnal.gov", "79,431"],
        ["ornl.gov", "71,190"],
        ["inlportal.inl.gov", "70,136"],
        ["bnl.gov", "62,693"],
        ["lanl.gov", "50,292"],
        ["jlab.org", "47,624"],
        ["llnl.gov", "46,094"],
        ["OTHERS", "(1,994", "Hosts)", "3,156,659"],
    ]


def test_the_json_of_the_national_laboratories_has_the_keys_of_cdx_summary_in_their_order() -> None:
    summary = json.loads(summary_to_json(national_labs(CDX_SUMMARY)))

    assert list(summary) == [
        "captures",
        "urls",
        "hosts",
        "bytes",
        "first",
        "last",
        "tophosts",
        "mimestatus",
        "pathquery",
        "yearmonth",
        "samples",
    ]
    assert (summary["captures"], summary["urls"], summary["hosts"]) == (CAPTURES, URLS, HOSTS)
    assert list(summary["tophosts"].values()) == list(TOP_HOSTS.values())
    assert list(summary["mimestatus"]) == list(MIME_GROUPS)
    assert all(list(row) == list(STATUS_GROUPS) for row in summary["mimestatus"].values())
    assert {
        f"{y}{m}": n for y, row in summary["yearmonth"].items() for m, n in row.items() if n
    } == MONTHS
    assert list(json.loads(counts_to_json(national_labs(CORRECTED)))) == [*summary, "amicrawl"]


@pytest.mark.parametrize(
    ("mime", "group"),
    [
        ("text/html", "HTML"),
        ("application/xhtml+xml", "HTML"),
        ("html", "HTML"),
        ("text/xml", "XML"),
        ("image/svg+xml", "Image"),
        ("application/rss+xml", "XML"),
        ("text/csv", "Other"),
        ("text/calendar", "Other"),
        ("application/x-javascript", "Other"),
        ("application/ld+json", "Other"),
        ("font/woff2", "Font"),
        ("application/font-woff", "Other"),
        ("text/html;charset=x", "Other"),
        ("unk", "Other"),
        ("-", "Other"),
        ("warc/revisit", "Revisit"),
        ("TEXT/Plain", "Text"),
        ("application/javascript", "JavaScript"),
    ],
)
def test_media_types_fall_to_their_groups(mime: str, group: str) -> None:
    assert mime_group(mime) == group


@pytest.mark.parametrize(
    ("status", "group"),
    [("200", "2XX"), ("599", "5XX"), ("100", "Other"), ("600", "Other"), ("-", "Other")],
)
def test_statuses_fall_to_their_groups(status: str, group: str) -> None:
    assert status_group(status) == group


def test_sizes_have_one_decimal_in_steps_of_a_thousand() -> None:
    sizes = [0, 1, 999, 1_234, 10_200_000_000, 289_158_184_502_345]
    assert [decimal_size(size) for size in sizes] == [
        "0 Bytes",
        "1 Byte",
        "999 Bytes",
        "1.2 kB",
        "10.2 GB",
        "289.2 TB",
    ]


@BOTH
@pytest.mark.parametrize(
    ("key", "path", "query"),
    [
        ("a)", "P0", "Q0"),
        ("a)/", "P0", "Q0"),
        ("a)/x", "P1", "Q0"),
        ("a)/x/y/", "P2", "Q0"),
        ("a)//x//y/", "P3", "Q0"),
        ("a)/1/2/3/4", "P4", "Q0"),
        ("a)/1/2/3/4/5", "Other", "Q0"),
        ("a)/?", "P0", "Q0"),
        ("a)/?&&", "P0", "Q0"),
        ("a)/?b", "P0", "Q1"),
        ("a)/?&b&&c&", "P0", "Q3"),
        ("a)/?b=/x/&c", "P0", "Q2"),
        ("a)/?1&2&3&4&5", "P0", "Other"),
    ],
)
def test_segments_and_parameters_are_counted_from_the_key(
    rules: str, key: str, path: str, query: str
) -> None:
    grid = path_query_grid(counts_of(cdx11(key=key), rules=rules))

    assert [(p, q) for p, row in grid.items() for q, n in row.items() if n] == [(path, query)]


def test_ports_stand_behind_the_host_and_for_cdx_summary_at_its_wrong_end() -> None:
    line = cdx11(key="com,example:8080)/a")

    assert top_hosts(counts_of(line), 1) == [("example.com:8080", 1)]
    assert top_hosts(counts_of(line, rules=CDX_SUMMARY), 1) == [("example:8080.com", 1)]


@pytest.mark.parametrize(
    ("url", "corrected", "compatible"),
    [
        ("http://h:80/a", "http://h/a", "http://ha"),
        ("http://h/x:80/y", "http://h/x:80/y", "http://h/xy"),
        ("https://h:80/a", "https://h:80/a", "https://ha"),
        ("http://h:8080/a", "http://h:8080/a", "http://h:8080/a"),
    ],
)
def test_samples_keep_the_slash_behind_port_80(url: str, corrected: str, compatible: str) -> None:
    assert counts_of(cdx11(url=url)).samples[0].url == corrected
    assert counts_of(cdx11(url=url), rules=CDX_SUMMARY).samples[0].url == compatible


def test_a_cdx_of_nine_columns_has_no_sizes_and_for_cdx_summary_its_offsets_are_some() -> None:
    line = f"com,example)/ 20121026215942 http://example.com/ text/html 200 {DIGEST} - 771 a.warc.gz"

    corrected, compatible = counts_of(line), counts_of(line, rules=CDX_SUMMARY)

    assert (corrected.bytes, corrected.unsized) == (0, 1)
    assert (compatible.bytes, compatible.unsized) == (771, 0)
    assert any("Total WARC Records Size      Unknown" in text for text in text_of(corrected))


def test_a_redirect_with_digits_hides_the_size_from_cdx_summary_only() -> None:
    line = cdx11(redirect="http://b1.org/", size="1219")

    assert counts_of(line).bytes == 1219
    assert (counts_of(line, rules=CDX_SUMMARY).captures, counts_of(line, rules=CDX_SUMMARY).bytes) == (
        1,
        0,
    )


def test_dates_have_their_year_and_for_cdx_summary_only_if_they_are_old() -> None:
    assert shown_date("20261026215942") == "Oct 26 2026"
    assert shown_date("20261026215942", today=TODAY) == "Oct 26"
    assert shown_date("20260401000000", today=TODAY) == "Apr 01 2026"
    assert [shown_date(f"202611{day}000000", today=TODAY) for day in (20, 21, 22)] == [
        "yesterday",
        "today",
        "tomorrow",
    ]
    assert shown_date("20121399000000", today=TODAY) == shown_date("") == "UNKNOWN"


def test_a_month_that_is_none_is_skipped_with_its_reason_and_vanishes_from_the_grid_of_cdx_summary() -> (
    None
):
    line = cdx11(time="20121326215942")

    assert counts_of(line).skipped == {"a time that is not a date": 1}
    compatible = counts_of(line, rules=CDX_SUMMARY)
    assert (compatible.captures, sum(year_month_grid(compatible)["2012"].values())) == (1, 0)


def test_captures_without_host_count_and_for_cdx_summary_they_do_not() -> None:
    line = cdx11(key="dns:example.com", url="dns:example.com", mime="text/dns")

    assert top_hosts(counts_of(line), 1) == [("dns:", 1)]
    assert counts_of(line, rules=CDX_SUMMARY).skipped.total() == 1


def test_hosts_that_come_back_are_counted_once_and_for_cdx_summary_each_time() -> None:
    lines = [cdx11(key=key) for key in ("com,a)/", "com,b)/", "com,a)/")]

    assert any("Top 2 Out of 2 Hosts" in text for text in text_of(counts_of(*lines)))
    assert "OTHERS (1 Hosts)" in "\n".join(text_of(counts_of(*lines, rules=CDX_SUMMARY)))


def test_the_layout_is_pinned() -> None:
    lines = [
        cdx11(),
        cdx11(mime="warc/revisit", status="-", size="400"),
        cdx11(key="com,example)/a?b&c", mime="text/html", status="404", time="20130103000000"),
    ]

    assert text_of(counts_of(*lines))[:20] == [
        "",
        "             CDX Overview",
        " ──────────────────────────────────── ",
        " Total Captures in CDX              3 ",
        " Consecutive Unique URLs            2 ",
        " Consecutive Unique Hosts           1 ",
        " Total WARC Records Size       2.8 kB ",
        " First Memento Date       Oct 26 2012 ",
        " Last Memento Date        Jan 03 2013 ",
        " ──────────────────────────────────── ",
        "",
        "MIME Type and Status Code Distribution",
        " ─────────────────────────────────── ",
        " MIME    2XX 3XX 4XX 5XX Other TOTAL ",
        " ─────────────────────────────────── ",
        " HTML      1   0   1   0     0     2 ",
        " Revisit   0   0   0   0     1     1 ",
        " ─────────────────────────────────── ",
        " TOTAL     1   0   1   0     1     3 ",
        " ─────────────────────────────────── ",
    ]


def test_a_grid_with_one_row_has_no_totals_below() -> None:
    assert cells(text_of(counts_of(cdx11())), "Path and Query Segments")[1:] == [
        ["P0", "1", "0", "0", "0", "0", "0", "1"]
    ]
    assert mime_status_grid(counts_of(cdx11()))["Font"] == dict.fromkeys(STATUS_GROUPS, 0)


def test_totals_that_are_not_shown_widen_a_table_of_cdx_summary_as_they_do_there() -> None:
    """The figures are of 1,188 captures in one year, as the real tool prints them."""
    lines = [cdx11(time=f"2012{month:02}01000000") for month in range(1, 13) for _ in range(99)]

    text = text_of(counts_of(*lines, rules=CDX_SUMMARY))

    for title, table in {
        "Year and Month Distribution": [
            " ─────────────────────────────────────────────── ",
            " Year  01 02 03 04 05 06 07 08 09 10 11 12 TOTAL ",
            " ─────────────────────────────────────────────── ",
            " 2012  99 99 99 99 99 99 99 99 99 99 99 99 1,188 ",
            " ─────────────────────────────────────────────── ",
        ],
        "Top 1 Out of 1 Hosts": [
            " ───────────────────────── ",
            " Host             Captures ",
            " ───────────────────────── ",
            " example.com         1,188 ",
            " ───────────────────────── ",
        ],
    }.items():
        place = text.index(title) + 1
        assert text[place : place + 6] == [*table, ""]


PEER = os.environ.get("AMICRAWL_TEST_CDXSUMMARY") or shutil.which("cdxsummary")

FOR_THE_PEER = [
    " CDX N b a m s k r M S V g",
    cdx11(),
    cdx11(time="20121126215942", mime="warc/revisit", status="-", size="400"),
    cdx11(key="com,example)/a?b&c", url="http://example.com:80/a?b&c", status="404"),
    cdx11(key="com,example:8080)/a/b/c/d/e/f", url="http://example.com:8080/a", mime="image/svg+xml"),
    cdx11(key="dns:example.com", mime="text/dns", status="-"),
    cdx11(key="org,example)//x//y/", redirect="http://b1/", status="301", mime="text/plain"),
    cdx11(key="org,example)/robots.txt", time="20150101000000"),
    cdx11(key="com,example)/?1&2&3&4&5&6", mime="application/x-javascript", status="600"),
    "a line of another kind",
]


INPUTS_FOR_THE_PEER = {
    "all kinds": FOR_THE_PEER,
    "one line": [cdx11()],
    "one year": [cdx11(time=f"2012{month:02}01000000") for month in range(1, 13) for _ in range(99)],
    "one year, one group": [cdx11(time=f"201203{day:02}000000") for day in range(1, 29)] * 40,
    "few hosts": [cdx11(key=f"a,b{number})/", status="200") for number in range(3)] * 500,
    "hosts of one letter": ["a)/ 20121026215942 http://a/ text/html 200 - - - 1 1 x.warc.gz"] * 1200,
    "no page": [cdx11(status="404")],
    "many hosts": [cdx11(key=f"a,host{number})/") for number in range(1500)],
}


def without_samples(text: str) -> str:
    """Return *text* without which pages were drawn, which is chance there."""
    return re.sub(r"(?m)^ \* .*\n", "", text)


@pytest.mark.skipif(
    PEER is None, reason="cdxsummary is not installed; AMICRAWL_TEST_CDXSUMMARY can name it"
)
@pytest.mark.parametrize("name", INPUTS_FOR_THE_PEER)
def test_text_json_and_report_are_those_of_the_real_tool(tmp_path: Path, name: str) -> None:
    lines = INPUTS_FOR_THE_PEER[name]
    path = tmp_path / "peer.cdx"
    path.write_text("\n".join(lines) + "\n")

    def peer(*options: str) -> str:
        command = [str(PEER), *options, str(path)]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout

    counts = counts_of(*lines, rules=CDX_SUMMARY)
    today = date.today()  # noqa: DTZ011  # as the tool does
    ours = "\n".join(text_lines(counts, today=today, harmless=str))
    assert without_samples(f"{ours}\n") == without_samples(peer())
    figures, peers_figures = json.loads(summary_to_json(counts)), json.loads(peer("-j"))
    report, peers_report = json.loads(report_to_json(counts)), json.loads(peer("-r"))
    for its, theirs in ((figures, peers_figures), (report, peers_report)):
        assert len(its.pop("samples")) == len(theirs.pop("samples"))
    assert list(figures.items()) == list(peers_figures.items())
    assert report == peers_report
