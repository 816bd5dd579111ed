"""A summary of parts is the summary of the whole."""

from __future__ import annotations

import json
import re
from datetime import date
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from report.summary_lines import CDX_LINES, GOOD_LINES, cdx11, counts_of

from amicrawl.archive.report.counts import CDX_SUMMARY, CORRECTED, Counts, added
from amicrawl.archive.report.counts_json import (
    counts_from_json,
    counts_to_json,
    report_to_json,
    summary_to_json,
)
from amicrawl.archive.report.page import page_of
from amicrawl.archive.report.sketch import EXACT, Sketch
from amicrawl.archive.report.text import text_lines
from amicrawl.errors import UsageError

TODAY = date(2026, 1, 1)
RULES = st.sampled_from([CORRECTED, CDX_SUMMARY])


@given(
    lines=st.one_of(GOOD_LINES, CDX_LINES), cuts=st.lists(st.integers(0, 30), max_size=4), rules=RULES
)
def test_parts_add_up_to_the_whole(lines: list[str], cuts: list[int], rules: str) -> None:
    edges = [0, *sorted(cuts), len(lines)]
    parts = [counts_of(*lines[a:b], rules=rules) for a, b in pairwise(edges)]

    assert added(parts) == counts_of(*lines, rules=rules)


@given(lines=GOOD_LINES, rules=RULES)
def test_counts_come_back_from_json(lines: list[str], rules: str) -> None:
    counts = counts_of(*lines, rules=rules)

    assert counts_from_json(counts_to_json(counts).encode(), rules=CORRECTED) == counts


def test_octets_that_are_no_text_come_back_from_json() -> None:
    counts = Counts(captures=1, first_key=b"a\xff)/", last_key=b"a\xff)/")

    assert counts_from_json(counts_to_json(counts).encode(), rules=CORRECTED).first_key == b"a\xff)/"


def test_samples_of_many_parts_are_those_of_the_whole() -> None:
    lines = [cdx11(key=f"com,example)/{n:04d}", url=f"http://example.com/{n:04d}") for n in range(1000)]

    whole = counts_of(*lines)

    assert len(whole.samples) == 100
    assert [s.url for s in whole.samples] == sorted(s.url for s in whole.samples)
    assert added(counts_of(*lines[n : n + 70]) for n in range(0, 1000, 70)) == whole


def test_the_samples_shown_are_drawn_from_the_whole_collection() -> None:
    lines = [cdx11(key=f"com,h{n:03d})/", url=f"http://h{n:03d}.com/") for n in range(1000)]
    counts = counts_of(*lines)
    hosts = r"https?://h(\d{3})\.com"

    in_json = re.findall(hosts, str(json.loads(summary_to_json(counts))["samples"]))
    in_report = re.findall(hosts, str(json.loads(report_to_json(counts))["samples"]))
    page = page_of(counts, title="t")
    in_page = re.findall(hosts, page[page.index("Sample of HTML pages") :])
    text = "\n".join(text_lines(counts, today=TODAY, harmless=str))
    in_text = re.findall(hosts, text[text.index("Random Sample of 10") :])

    assert in_json == in_report == in_text == list(dict.fromkeys(in_page))
    least = sorted(counts.samples, key=lambda sample: sample.rank)[:10]
    assert in_json == sorted(sample.url[8:11] for sample in least)
    # Ten numbers below 1,000 that are chance: some in each half.
    assert in_json[0] < "500" < in_json[-1]


def test_counts_by_different_rules_do_not_add_up() -> None:
    with pytest.raises(UsageError, match="by the same rules"):
        counts_of(cdx11()).absorb(counts_of(cdx11(), rules=CDX_SUMMARY))


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "{",
        "{}",
        "[" * 100_000,
        '{"amicrawl": {}}',
        '{"amicrawl": {"version": 2}}',
        '{"amicrawl": 1}',
        json.dumps({"captures": -1, "bytes": 0, "urls": 0, "hosts": 0}),
    ],
)
def test_json_that_carries_no_counts_is_refused_with_a_reason(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        counts_from_json(text.encode(), rules=CORRECTED)


@given(
    key=st.sampled_from(["captures", "by_host", "samples", "facets", "different_urls", "first"]),
    value=st.one_of(st.none(), st.text(), st.integers(), st.lists(st.integers())),
)
def test_json_with_something_else_in_it_is_refused_or_read_but_nothing_else(
    key: str, value: Any
) -> None:
    whole = json.loads(counts_to_json(counts_of(cdx11())))
    whole["amicrawl"][key] = value

    try:
        counts_from_json(json.dumps(whole).encode(), rules=CORRECTED)
    except ValueError as error:
        assert str(error)  # noqa: PT017  # any other exception fails the test


@pytest.mark.parametrize("month", ["abcd01", "", "20120", "\u0661\u0662\u0661\u066201"])
def test_a_month_that_is_not_one_is_refused(month: str) -> None:
    whole = json.loads(counts_to_json(counts_of(cdx11())))
    whole["amicrawl"]["by_month"] = [[month, 1, 1]]
    with pytest.raises(ValueError, match="month"):
        counts_from_json(json.dumps(whole).encode(), rules=CORRECTED)
    del whole["amicrawl"]
    whole["yearmonth"] = {month[:4]: {month[4:]: 1}}
    with pytest.raises(ValueError, match="month"):
        counts_from_json(json.dumps(whole).encode(), rules=CORRECTED)


def test_a_rank_that_is_too_large_is_refused() -> None:
    whole = json.loads(counts_to_json(counts_of(cdx11())))
    whole["amicrawl"]["samples"][0][2] = 1 << 64
    with pytest.raises(ValueError, match="rank"):
        counts_from_json(json.dumps(whole).encode(), rules=CORRECTED)


def test_a_host_with_a_port_comes_back_from_a_report() -> None:
    counts = counts_of(cdx11(key="com,example:8080)/"), cdx11(key="1,0,0,127:80)/"))
    read = counts_from_json(report_to_json(counts).encode(), rules=CORRECTED)
    assert read.by_host.keys() == counts.by_host.keys()


def test_few_values_are_counted_exactly_and_many_within_the_error_that_is_told() -> None:
    few, many = Sketch(), Sketch()
    few.add(b"%d" % (n % EXACT) for n in range(3 * EXACT))
    for begin in range(0, 300_000, 50_000):
        many.add(b"%d" % n for n in range(begin, begin + 50_000))

    assert (few.is_exact, few.count()) == (True, EXACT)
    assert not many.is_exact
    assert many.count() == pytest.approx(300_000, rel=3 * 0.0081)


def test_the_bits_of_a_sketch_are_pinned() -> None:
    """Counts written last year must add up to those of today."""
    sketch = Sketch()
    sketch.add([b"com,example)/"])

    assert Sketch.from_json({"hashes": "eJxLaWNdIROZ6goADMICtw=="}) == sketch


@given(
    st.lists(st.integers(0, 2**64 - 1), max_size=50), st.lists(st.integers(0, 2**64 - 1), max_size=50)
)
def test_sketches_add_up(first: list[int], second: list[int]) -> None:
    def of(*lists: list[int]) -> Sketch:
        sketch = Sketch()
        for values in lists:
            sketch.add_hashes(np.array(values, np.uint64))
        return sketch

    joined = of(first)
    joined.absorb(of(second))
    assert joined == of(first, second) == of(second + first)
