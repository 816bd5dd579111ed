"""Columns of a batch hold what Python reads value by value."""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from amicrawl.archive.arrow_texts import Octets, Spans, whole_numbers
from amicrawl.archive.report.batch import are_dates, batch_of_rows, digits_of, numbers_in
from amicrawl.archive.report.counting import counted
from amicrawl.archive.report.counts import Counts, host_part
from amicrawl.archive.report.rows import Row, time_of

LONG = b"com,example)/" + b"a/" * 300


def scattered(values: list[bytes]) -> Spans:
    """Return *values* as they might be in a block, with other octets between them."""
    octets, begins = b"|", []
    for value in values:
        begins.append(len(octets))
        octets += value + b"|x"
    starts = np.array(begins, np.int64)
    return Spans(Octets(octets), starts, starts + np.array([len(v) for v in values], np.int64))


@given(
    st.lists(
        st.one_of(
            st.integers(0, 10**17).map(lambda number: b"%d" % number),
            st.sampled_from(
                [b"-", b"", b"007", b"+1", b"1 ", b"0x1F", b"12345678-", b"--", b"1.5", b"\xb2"]
            ),
            st.binary(max_size=17),
        )
    ),
    st.sampled_from([3, 13, 16]),
)
def test_numbers_are_decimal_digits_and_nothing_else(values: list[bytes], longest: int) -> None:
    numbers, fit = numbers_in(scattered(values), longest=longest)
    for value, number, is_one in zip(values, numbers.tolist(), fit.tolist(), strict=True):
        digits = value.isdigit() and len(value) <= longest
        assert is_one == (digits or value in {b"", b"-"})
        if is_one:
            assert number == (int(value) if digits else -1)


@given(
    st.lists(
        st.one_of(
            st.integers(0, 10**14 - 1).map(lambda number: b"%014d" % number),
            st.datetimes().map(lambda time: time.strftime("%Y%m%d%H%M%S").zfill(14).encode()),
            st.builds(
                lambda day, hour: day + hour,
                st.sampled_from(
                    [b"20240229", b"20230229", b"19000229", b"20000229", b"20240101", b"00000101"]
                ),
                st.sampled_from([b"235959", b"235960", b"236000", b"240000", b"000000"]),
            ),
            st.binary(max_size=15),
        )
    )
)
def test_times_are_read_as_they_are_one_by_one(values: list[bytes]) -> None:
    times, fit = whole_numbers(scattered(values))
    dates = are_dates(times)
    for value, time, is_time, is_date in zip(
        values, times.tolist(), fit.tolist(), dates.tolist(), strict=True
    ):
        if is_time and len(value) == 14:
            assert time == int(value)
            assert is_date == _reads(value) == _is_of_the_calendar(value)


def _reads(value: bytes) -> bool:
    try:
        time_of(value)
    except ValueError:
        return False
    return True


def _is_of_the_calendar(value: bytes) -> bool:
    try:
        datetime.strptime(value.decode(), "%Y%m%d%H%M%S")  # noqa: DTZ007  # only whether it is one
    except ValueError:
        return False
    return True


@pytest.mark.slow
@given(st.lists(st.none() | st.datetimes(), min_size=1), st.sampled_from(["s", "us"]), st.booleans())
def test_moments_become_the_digits_that_the_calendar_says(
    moments: list[datetime | None], unit: Any, zoned: bool
) -> None:
    column: Any = pa.array(moments, pa.timestamp("us")).cast(pa.timestamp(unit), safe=False)
    column = column.cast(pa.timestamp(unit, "UTC")) if zoned else column
    for digits, moment in zip(digits_of(column.slice(1)).tolist(), moments[1:], strict=True):
        if moment is not None and (unit == "us" or moment.year >= 1970):
            assert f"{digits:014d}" == moment.strftime("%Y%m%d%H%M%S").zfill(14)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_moments_of_any_unit_become_digits(unit: Any) -> None:
    column = pa.array([1_351_288_782], pa.timestamp("s"))
    assert digits_of(column.cast(pa.timestamp(unit))).tolist() == [20121026215942]
    assert digits_of(column.cast(pa.int64())).tolist() == [20121026215942]


KEY = st.one_of(
    st.text(alphabet="ab,)/?&:", max_size=14).map(str.encode),
    st.sampled_from(
        [
            b"com,a)/",
            b"com,a)//x//?q=1&&r&",
            b"com,a,b)/x/y",
            b"dns:a",
            b"urn:b",
            b"com,a)",
            LONG,
            LONG + b"/",
            b"com,a)/?&&",
        ]
    ),
)


def _pieces(text: bytes, mark: bytes) -> int:
    stripped = text.strip(mark)
    return stripped.count(mark) + 1 if stripped else 0


def _counts_of(keys: list[bytes]) -> Counts:
    rows = [
        Row(key, 20121026215942, b"http://a.org/", b"text/html", 200, at + 1, b"-")
        for at, key in enumerate(keys)
    ]
    return counted(batch_of_rows(rows))


@pytest.mark.slow
@given(st.lists(KEY, min_size=1, max_size=20), st.booleans())
def test_keys_are_taken_apart_as_python_would(keys: list[bytes], in_order: bool) -> None:
    keys = sorted(keys) if in_order else keys
    counts = _counts_of(keys)
    hosts: dict[str, tuple[int, int]] = {}
    depths: dict[tuple[int, int], tuple[int, int]] = {}
    for size, key in enumerate(keys, 1):
        path, _, query = key.partition(b")")[2].partition(b"?")
        depth = _pieces(path, b"/"), _pieces(query, b"&")
        captures, sizes = depths.get(depth, (0, 0))
        depths[depth] = captures + 1, sizes + size
        captures, sizes = hosts.get(host := host_part(key).decode(), (0, 0))
        hosts[host] = captures + 1, sizes + size
    assert counts.by_path_query == depths
    # In the order in which they are met, which decides between equal ones.
    assert list(counts.by_host.items()) == list(hosts.items())
    assert counts.urls == 1 + sum(one != other for one, other in pairwise(keys))
    assert counts.hosts == 1 + sum(host_part(one) != host_part(other) for one, other in pairwise(keys))
    assert counts.ordered == (keys == sorted(keys))
