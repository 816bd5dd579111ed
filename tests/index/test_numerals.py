"""Numbers that are looked at many at a time are what Python and a parser say they are, one by one."""

from __future__ import annotations

import re

import numpy as np
import orjson
from hypothesis import example, given
from hypothesis import strategies as st

from amicrawl.archive.arrow_texts import (
    Octets,
    Spans,
    are_as_python_writes,
    are_plain,
    are_zero,
    texts_from,
    whole_numbers,
)

_PLAIN = re.compile(r"(?:0|[1-9][0-9]*)(?:\.[0-9]+)?")
_WRITTEN = st.one_of(
    st.from_regex(r"\A[0-9.eE+-]{0,20}\Z"),
    st.from_regex(r"\A(0|[1-9][0-9]{0,18})(\.[0-9]{1,18})?\Z"),
    st.floats(0, 1).map(repr),
    st.text(max_size=9),
)
_TEXTS = st.lists(_WRITTEN, max_size=12)


@given(_TEXTS)
@example(["0", "00", "01", "0.", ".0", "1.", "1.5", "1..5", "1.5.", "10", "", "-1", "1/2", "1:"])
def test_what_is_plain_is_a_number_and_most_numbers_are_plain(texts: list[str]) -> None:
    told = are_plain(Spans.of(texts_from(texts)))
    for text, is_plain in zip(texts, told.tolist(), strict=True):
        fits = _PLAIN.fullmatch(text) is not None and len(text) <= (19 if text[:2] == "0." else 16)
        assert is_plain == fits, text
        if is_plain:
            orjson.loads(text)


@given(st.lists(st.from_regex(r"\A(0|[1-9][0-9]{0,3})(\.[0-9]{1,18})?\Z") | st.floats(0, 1).map(repr)))
@example(["0", "1", "0.0", "1.0", "2", "0.10", "0.0001", "0.00001", "0.1000000000000000055", "1e-05"])
def test_what_python_writes_so_need_not_be_written_again(texts: list[str]) -> None:
    spans = Spans.of(texts_from(texts))
    told = zip(texts, are_as_python_writes(spans).tolist(), are_zero(spans).tolist(), strict=True)
    for text, is_so, is_zero in told:
        number = orjson.loads(text)
        if 0 <= number <= 1 and "e" not in text:
            assert is_so == (repr(number) == text), text
        assert not is_so or repr(number) == text
        if is_so:
            assert is_zero == (number == 0)


@given(_TEXTS)
@example(["1", "12345678", "123456789", "1234567890123456", "12345678901234567", "", "٣", "1 2"])
def test_whole_numbers_are_read_as_python_reads_them(texts: list[str]) -> None:
    found, are = whole_numbers(Spans.of(texts_from(texts)))
    for text, number, is_one in zip(texts, found.tolist(), are.tolist(), strict=True):
        assert is_one == (re.fullmatch("[0-9]{1,16}", text) is not None), text
        assert not is_one or number == int(text)


@given(st.binary(max_size=40), st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40))))
def test_spans_are_read_wherever_they_are(octets: bytes, places: list[tuple[int, int]]) -> None:
    starts, ends = (
        np.array([min(len(octets), edge(each)) for each in places], np.int64) for edge in (min, max)
    )
    spans = Spans(Octets(octets), starts, ends)
    held = [octets[start:end] for start, end in zip(starts, ends, strict=True)]
    for at in (0, 8, 16):
        words = [int.from_bytes(each[at : at + 8], "little") for each in held]
        assert spans.words(at).tolist() == words
    assert spans.last(3).words(0).tolist() == [int.from_bytes(each[-3:], "little") for each in held]
