"""The fast way through a block gives the rows and reasons that the slow way, line by line, gives."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report.summary_lines import CDX_LINES, DIGEST, batch_like, cdx11, counts_of, rows_of

from amicrawl.archive.report.batch import batch_of_rows
from amicrawl.archive.report.counting import counted
from amicrawl.archive.report.counts import CDX_SUMMARY, CORRECTED
from amicrawl.archive.report.line_batches import LinePiece, cdx_lines, cdxj_lines
from amicrawl.archive.report.rows import (
    Row,
    layout_of_count,
    row_like_cdx_summary,
    row_of_cdx,
    row_of_cdxj,
)


@given(
    lines=CDX_LINES,
    rules=st.sampled_from([CORRECTED, CDX_SUMMARY]),
    columns=st.sampled_from([None, 11, 9]),
)
def test_a_block_of_cdx_reads_like_its_lines(lines: list[str], rules: str, columns: int | None) -> None:
    layout = layout_of_count(columns) if columns else None
    rows: list[Row] = []
    reasons: Counter[str] = Counter()
    for line in lines:
        for octets in line.encode().split(b"\n"):
            if octets.strip():
                try:
                    row = (
                        row_like_cdx_summary(octets)
                        if rules == CDX_SUMMARY
                        else row_of_cdx(octets, layout)
                    )
                    rows.append(row)
                except ValueError as error:
                    reasons[str(error)] += 1

    read = cdx_lines(LinePiece("".join(f"{line}\n" for line in lines).encode(), layout), rules=rules)

    assert rows_of(read.batch) == batch_like(rows)
    assert read.skipped == reasons
    assert counted(read.batch, rules=rules) == counted(batch_of_rows(rows), rules=rules)


VALUES = st.one_of(
    st.sampled_from(
        ["200", "404", "-", "", "20", "0200", "text/html", "1219", "+1", "0x1F", "é", "\ud800"]
    ),
    st.none(),
    st.integers(-5, 10**15),
    st.booleans(),
    st.floats(),
    st.just([1]),
)
FIELDS = st.dictionaries(
    st.sampled_from(["url", "mime", "status", "digest", "length", "languages", "puid", "other"]), VALUES
)
GOOD_FIELDS = st.fixed_dictionaries(
    {
        "url": st.just("http://a.org/"),
        "mime": st.sampled_from(["text/html", ""]),
        "digest": st.just(DIGEST),
    },
    optional={"status": st.sampled_from(["200", "404", "-"]), "length": st.sampled_from(["12", "-"])},
)
CDXJ = st.builds(
    lambda key, time, fields: f"{key} {time} {fields}",
    st.sampled_from(["org,a)/", "dns:a.org", "a.org/x", ""]),
    st.sampled_from(["20121026215942", "20120229000000", "20130229000000", "20121026215942000", "2012"]),
    st.one_of(
        GOOD_FIELDS.map(json.dumps),
        FIELDS.map(json.dumps),
        st.sampled_from(["{", "{}{}", "[]", "null", '{"url": "\\ud800"}']),
    ),
)


@given(
    lines=st.one_of(
        st.lists(CDXJ, max_size=6),
        st.lists(st.builds(lambda f: f"org,a)/ 20121026215942 {json.dumps(f)}", GOOD_FIELDS)),
    )
)
def test_a_block_of_cdxj_reads_like_its_lines(lines: list[str]) -> None:
    rows: list[Row] = []
    reasons: Counter[str] = Counter()
    for line in lines:
        try:
            rows.append(row_of_cdxj(line.encode()))
        except ValueError as error:
            reasons[str(error)] += 1

    read = cdxj_lines("".join(f"{line}\n" for line in lines).encode())

    assert rows_of(read.batch) == batch_like([row._replace(facets={}) for row in rows])
    assert read.skipped == reasons


FORMS = (
    '{{"url": "{url}", "mime": "{mime}", "status": "{status}", "digest": "D", "length": "{size}"}}',
    '{{"url": "{url}", "mime": "{mime}", "digest": "{url}", "length": "{size}", "languages": "{mime}"}}',
    '{{"mime":"{mime}","url":"{url}","status":"{status}","puid":"{url}","length":"{size}","x":""}} ',
    '{{"url": "{url}", "status": {status}, "length": {size}, "mime": "{mime}"}}',
    '{{"url": "{url}"}}',
)
LINES_OF_FORMS = st.builds(
    lambda key, time, form, values: f"{key} {time} {form.format(**values)}",
    st.sampled_from(["org,a)/", "org,a)/b?c&d", "dns:a.org", "a.org/x", "org,a )/", "", "x)y", ")"]),
    st.sampled_from(
        ["20121026215942", "20120131000000", "20120230000000", "2012102621594200", "20121026 2159421"]
    ),
    st.sampled_from(FORMS),
    st.fixed_dictionaries(
        {
            "url": st.sampled_from(
                ["http://a.org/", "", r"http:\/\/a", r"\"", '"', "é", "\udcff", "\x7f", "\t", "a\rb"]
            ),
            "mime": st.sampled_from(["text/html", "", "-", "eng,deu"]),
            "status": st.sampled_from(["200", "404", "-", "", "2000", "099"]),
            "size": st.sampled_from(["1", "-", "", "30000", "9999999999999", "99999999999999", "1.5"]),
        }
    ),
)


@given(st.lists(st.one_of(LINES_OF_FORMS, st.just('!meta 0 {"a": "b"}'), st.just("")), max_size=30))
def test_lines_of_several_forms_count_like_each_by_itself(lines: list[str]) -> None:
    rows: list[Row] = []
    reasons: Counter[str] = Counter()
    block = "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")
    for octets in block.splitlines():
        if octets.strip() and not octets.startswith(b"!meta"):
            try:
                rows.append(row_of_cdxj(octets))
            except ValueError as error:
                reasons[str(error)] += 1

    read = cdxj_lines(block)

    assert rows_of(read.batch) == batch_like([row._replace(facets={}) for row in rows])
    assert read.skipped == reasons
    for rules in (CORRECTED, CDX_SUMMARY):
        assert counted(read.batch, rules=rules) == counted(batch_of_rows(rows), rules=rules)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (
            "com,example)/ 2012 http://example.com/ text/html 200 A - - 1 2 f",
            "a time that is not 14 digits",
        ),
        (cdx11(time="20121301000000"), "a time that is not a date"),
        (cdx11(status="OK"), "a status that is neither three digits nor a hyphen"),
        (cdx11(size="large"), "a size that is not a number"),
        ("one two three", "a number of columns that no layout has"),
        (
            "com,example)/ 20121026215942 u m 200 K - - 1 name.warc.gz id",
            "an offset that is not a number: other columns than those of the layout",
        ),
    ],
)
def test_a_line_that_is_none_is_skipped_with_its_reason(line: str, reason: str) -> None:
    counts = counts_of(line)

    assert counts.captures == 0
    assert counts.skipped == {reason: 1}


def test_the_columns_of_wget_are_read_by_its_legend_and_refused_without() -> None:
    url = "http://example.com/A"
    line = f"{url} 20121026215942 {url} text/html 200 K - - 771 a.warc.gz <urn:uuid:1>"

    with_legend = counts_of(" CDX a b a m s k r M V g u", line)

    assert with_legend.first_key == b"com,example)/a"
    assert (with_legend.captures, with_legend.unsized) == (1, 1)
    assert counts_of(line).skipped.total() == 1


def test_a_legend_counts_wherever_it_stands() -> None:
    """Files are concatenated, some have lost the blank before their legend."""
    nine = "com,example)/b 20121026215942 http://example.com/b text/html 200 K - 5 a.warc.gz"

    counts = counts_of(" CDX N b a m s k r M S V g", cdx11(), "CDX N b a m s k r V g", nine)

    assert (counts.captures, counts.bytes, counts.unsized, counts.skipped) == (2, 1219, 1, Counter())
