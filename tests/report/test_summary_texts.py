"""Columns that were not copied out of their block answer what Python answers text by text."""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amicrawl.report.arrow_columns import coded_of, known_of, numbers_of, seconds_of, texts_of
from amicrawl.report.coding import coded
from amicrawl.report.counts import host_part
from amicrawl.report.forms import form_of
from amicrawl.report.keys import dissected
from amicrawl.report.rows import time_of
from amicrawl.report.texts import PADDING, Texts
from amicrawl.report.times import are_dates, times_of, times_of_seconds

if TYPE_CHECKING:
    from collections.abc import Callable

LONG = b"com,example)/" + b"a/" * 300
TEXT = st.one_of(
    st.binary(max_size=20),
    st.sampled_from(
        [b"", b"-", b"text/html", b"application/x-javascript", b"sha1:ABC", b"x\0", LONG, LONG + b"b"]
    ),
    st.text(alphabet="ab,)/?&", max_size=12).map(str.encode),
)
TEXTS = st.lists(TEXT, max_size=12)


def scattered(values: list[bytes]) -> Texts:
    """Return *values* as they might lie in a block: apart, and in another order."""
    octets, begins = b"|", {}
    for row in reversed(range(len(values))):
        begins[row] = len(octets)
        octets += values[row] + b"|x"
    starts = np.array([begins[row] for row in range(len(values))], np.int64)
    return Texts(octets + PADDING, starts, starts + np.array([len(v) for v in values], np.int64))


@settings(deadline=None)
@given(TEXTS, st.data())
def test_texts_come_out_as_they_went_in(values: list[bytes], data: st.DataObject) -> None:
    chosen = data.draw(
        st.lists(st.sampled_from(range(len(values))), max_size=5) if values else st.just([])
    )
    flags = np.array([len(value) % 2 == 0 for value in values], np.bool_)
    for texts in (Texts.of(values), scattered(values), scattered(values).compact()):
        assert texts.listed() == [texts[row] for row in range(len(texts))] == values
        assert texts.at(flags).listed() == [
            value for value, flag in zip(values, flags, strict=True) if flag
        ]
        assert texts.at(np.array(chosen, np.int64)).listed() == [values[row] for row in chosen]
        assert texts.followed_by(scattered([b"z"])).listed() == [*values, b"z"]
        assert texts.hyphened().listed() == [value or b"-" for value in values]


def _shared(one: bytes, other: bytes) -> int:
    places = range(min(len(one), len(other)))
    return next((at for at in places if one[at] != other[at]), len(places))


@settings(deadline=None)
@given(TEXTS, TEXT)
def test_texts_are_compared_as_python_compares_them(values: list[bytes], other: bytes) -> None:
    texts = scattered(values)
    assert texts.are(other).tolist() == [value == other for value in values]
    assert texts.end_with(other).tolist() == [value.endswith(other) for value in values]
    assert texts.begin_with(b"sha1:").tolist() == [value.startswith(b"sha1:") for value in values]
    assert texts.shared().tolist() == [_shared(*pair) for pair in pairwise(values)]
    places = [value.find(b")") for value in values]
    expected = [len(value) if at < 0 else at for value, at in zip(values, places, strict=True)]
    assert (texts.places_of(b")") - texts.begins).tolist() == expected


@settings(deadline=None)
@given(TEXTS)
def test_codes_stand_for_texts_in_the_order_in_which_they_are_met(values: list[bytes]) -> None:
    codes, names = coded(scattered(values))
    assert names == list(dict.fromkeys(values))
    assert [names[code] for code in codes.tolist()] == values


def test_codes_are_right_where_all_texts_fall_to_few_slots() -> None:
    """More different texts than slots, some alike as far as words look."""
    values = [b"x" * 200 + b"%d" % (n % 900) for n in range(2000)]
    values += [b"%d" % (n % 40_000) for n in range(50_000)]
    codes, names = coded(Texts.of(values))
    assert names == list(dict.fromkeys(values))
    assert [names[code] for code in codes.tolist()] == values


@settings(deadline=None)
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
    numbers, fit = scattered(values).numbers(longest=longest)
    for value, number, is_one in zip(values, numbers.tolist(), fit.tolist(), strict=True):
        digits = value.isdigit() and len(value) <= longest
        assert is_one == (digits or value in {b"", b"-"})
        if is_one:
            assert number == (int(value) if digits else -1)


@settings(deadline=None)
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
    times, fit = times_of(scattered(values))
    dates = are_dates(times)
    for value, time, is_time, is_date in zip(
        values, times.tolist(), fit.tolist(), dates.tolist(), strict=True
    ):
        assert is_time == (len(value) == 14 and value.isdigit())
        if is_time:
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


@settings(deadline=None)
@given(st.lists(st.datetimes(), min_size=1))
def test_seconds_become_the_digits_that_the_calendar_says(times: list[object]) -> None:
    seconds = np.array(times, "datetime64[s]").astype(np.int64)
    expected = [int(str(time)[:19].translate({ord(mark): None for mark in "-: "})) for time in times]
    assert times_of_seconds(seconds).tolist() == expected


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


@settings(deadline=None)
@given(st.lists(KEY, min_size=1, max_size=20), st.booleans())
def test_keys_are_taken_apart_as_python_would(keys: list[bytes], in_order: bool) -> None:
    keys = sorted(keys) if in_order else keys
    found = dissected(scattered(keys))
    paths = [key.partition(b")")[2].partition(b"?") for key in keys]
    assert found.segments.tolist() == [_pieces(path, b"/") for path, _, _ in paths]
    assert found.parameters.tolist() == [_pieces(query, b"&") for _, _, query in paths]
    assert found.url_begins.tolist() == [True, *(one != other for one, other in pairwise(keys))]
    assert found.ordered == (keys == sorted(keys))
    lengths = np.diff(found.runs, append=len(keys)).tolist()
    names = [found.hosts.names[code] for code in found.hosts.codes.tolist()]
    hosts = [name for name, length in zip(names, lengths, strict=True) for _ in range(length)]
    assert hosts == [host_part(key) for key in keys]


@pytest.mark.parametrize(
    "text",
    [
        b"{}",
        b"[]",
        b"{",
        b'{"a": 1}',
        b'{"a": {"b": "c"}}',
        b'{"a": "b", "a": "c"}',
        rb'{"a": "\"b"}',
        b'{"a": null}',
    ],
)
def test_only_flat_objects_of_text_have_a_form(text: bytes) -> None:
    assert form_of(text) is None


def test_a_form_is_all_that_stands_around_values() -> None:
    form = form_of(b'{"url": "http://a.org/", "mime":"text/html" } ')
    assert form is not None
    assert form.names == ("url", "mime")
    assert form.around == (b'{"url": "', b'", "mime":"', b'" } ')


_array: Any = pa.array  # its stubs know no names of types
ARROW_TEXTS: list[Callable[[list[bytes | None]], Any]] = [
    lambda values: pa.array(values, pa.binary()),
    lambda values: pa.array(values, pa.large_binary()),
    lambda values: pa.array(values, pa.binary()).dictionary_encode(),
]


@settings(deadline=None)
@given(st.lists(st.none() | TEXT), st.sampled_from(ARROW_TEXTS), st.integers(0, 3))
def test_columns_of_arrow_become_texts_and_codes(
    values: list[bytes | None], array: Callable[[list[bytes | None]], Any], cut: int
) -> None:
    column = array(values).slice(cut)
    known = values[cut:]
    assert texts_of(column).listed() == [value or b"" for value in known]
    codes, names = coded_of(column, nothing=b"-")
    assert [names[code] for code in codes.tolist()] == [b"-" if v is None else v for v in known]
    assert known_of(column).tolist() == [value is not None for value in known]


@given(
    st.lists(st.none() | st.integers(0, 2**15 - 1)),
    st.sampled_from(["int16", "int64", "uint32", "float64"]),
)
def test_columns_of_arrow_become_numbers(values: list[int | None], kind: str) -> None:
    column = _array([0, *values], kind).slice(1)
    assert numbers_of(column, nothing=-1).tolist() == [-1 if v is None else v for v in values]


def test_columns_of_nulls_become_nothing() -> None:
    column = pa.nulls(3)
    assert texts_of(column).listed() == [b""] * 3
    codes, names = coded_of(column, nothing=b"-")
    assert (codes.tolist(), names) == ([0] * 3, [b"-"])
    assert numbers_of(column, nothing=-1).tolist() == [-1] * 3
    assert seconds_of(column).tolist() == [0] * 3
    assert not known_of(column).any()


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_of_any_unit_become_seconds(unit: str) -> None:
    column = _array([None, 1_351_288_782], "timestamp[s]").cast(f"timestamp[{unit}]")
    assert seconds_of(column).tolist() == [0, 1_351_288_782]
