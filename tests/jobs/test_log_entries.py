"""Log entries have ArchiveBot's three shapes to the letter, and nothing else is taken for one."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amicrawl.fleet.logs.job_log import (
    LONGEST_ENTRY,
    Download,
    Entry,
    Ignore,
    NotAnEntryError,
    Stdout,
    encoded,
    parsed,
)


def test_the_three_shapes_are_pinned() -> None:
    assert encoded(Download(1700000000.25, "http://example.org/a", 404)) == (
        '{"ts": 1700000000.25, "url": "http://example.org/a", "response_code": 404, "wget_code": "OK", '
        '"is_error": false, "is_warning": true, "type": "download"}'
    )
    assert encoded(Ignore(1.5, "http://example.org/a", "a$")) == (
        '{"ts": 1.5, "url": "http://example.org/a", "pattern": "a$", "source": "accept_url", '
        '"type": "ignore"}'
    )
    assert (
        encoded(Stdout(1.5, "two\nlines")) == '{"ts": 1.5, "message": "two\\nlines", "type": "stdout"}'
    )


@pytest.mark.parametrize(
    ("code", "said", "is_error", "is_warning"),
    [
        (200, "OK", False, False),
        (399, "OK", False, False),
        (400, "OK", False, True),
        (499, "OK", False, True),
        (500, "OK", True, False),
        (0, "timeout", True, False),
        (404, "timeout", True, True),
    ],
)
def test_errors_and_warnings_are_told_apart(
    code: int, said: str, is_error: bool, is_warning: bool
) -> None:
    entry = Download(1.0, "http://a.example/", code, said)
    assert (entry.is_error, entry.is_warning) == (is_error, is_warning)


texts = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=50)
times = st.floats(min_value=0, max_value=1e10, allow_nan=False)
entries = st.one_of(
    st.builds(Download, times, texts, st.integers(0, 999), texts),
    st.builds(Ignore, times, texts, texts, texts),
    st.builds(Stdout, times, texts),
)


@given(entries)
def test_an_entry_reads_back_as_written(entry: Entry) -> None:
    assert parsed(encoded(entry)) == entry


@given(st.sampled_from(["\U0001f600", "\x01", "x", "\udc80"]), st.integers(1, 9_000))
def test_no_entry_is_longer_than_it_may_be(character: str, times_: int) -> None:
    text = character * times_ * 3
    for entry in (Download(1.0, text, 200, text), Ignore(1.0, text, text, text), Stdout(1.0, text)):
        assert len(encoded(entry).encode()) <= LONGEST_ENTRY
        parsed(encoded(entry))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "[" * 100_000,
        '"x"',
        '{"type": "download"}',
        '{"ts": 1, "message": "x", "type": "stderr"}',
        '{"ts": true, "message": "x", "type": "stdout"}',
        '{"ts": NaN, "message": "x", "type": "stdout"}',
        '{"ts": 1e999, "message": "x", "type": "stdout"}',
        '{"ts": -1, "message": "x", "type": "stdout"}',
        '{"ts": 1, "message": 5, "type": "stdout"}',
        '{"ts": 1, "url": "u", "response_code": "200", "wget_code": "OK", "type": "download"}',
        '{"ts": 1, "url": "u", "response_code": true, "wget_code": "OK", "type": "download"}',
        '{"ts": 1, "url": "u", "response_code": 200, "type": "download"}',
        '{"ts": 1, "url": "u", "pattern": null, "source": "", "type": "ignore"}',
        '{"ts": 1, "message": "' + "x" * (1 << 20) + '", "type": "stdout"}',
        "\udcff",
    ],
)
def test_what_is_no_entry_is_refused_with_a_reason(text: str) -> None:
    with pytest.raises(NotAnEntryError):
        parsed(text)


@pytest.mark.slow
@given(
    st.text(max_size=60) | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(json.dumps)
)
def test_nothing_but_a_refusal_comes_of_any_text(text: str) -> None:
    with pytest.raises(NotAnEntryError):
        parsed(text)
