"""CDXJ lines as text: written and read back, and what is refused."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amicrawl.index.lines.cdxj import CdxjLine, parse_cdxj

KEYS = st.text(st.characters(exclude_characters=" \r\n", exclude_categories=["Cs"]), min_size=1)
TIMES = st.integers(0, 10**14 - 1).map("{:014d}".format)
FIELDS = st.dictionaries(st.text(), st.text())


@given(KEYS, TIMES, FIELDS)
def test_a_line_reads_back_as_it_was(key: str, timestamp: str, fields: dict[str, str]) -> None:
    line = CdxjLine(key, timestamp, fields)
    assert line.text().count("\n") == 1
    assert parse_cdxj(line.encoded()) == line
    assert json.loads(line.text().split(" ", 2)[2]) == fields


@pytest.mark.parametrize(
    "line",
    [
        b'com,a)/ 20220106150849300 {"url":"http://a.com/","offset":7,"status":200,"x":null,"l":["a"]}\r\n',
        b'com,a)/ 20220106150849 {"url": "http://a.com/", "offset": "7", "status": "200", "l": ["a"]}',
    ],
)
def test_lines_of_other_producers_become_text_and_seconds(line: bytes) -> None:
    assert parse_cdxj(line) == CdxjLine(
        "com,a)/",
        "20220106150849",
        {"url": "http://a.com/", "offset": "7", "status": "200", "l": '["a"]'},
    )


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"", "fewer than three"),
        (b"com,a)/ 20220106150849", "fewer than three"),
        (b" CDX N b a m s k r M S V g\n", "legend"),
        (b'!meta 0 {"format": "cdxj-gzip-1.0"}', "timestamp"),
        (b'com,a)/ 2022010615084 {"a": 1}', "timestamp"),
        (b"com,a)/ 20220106150849 http://a.com/ text/html 200 X - - 1 2 f", "not a JSON object"),
        (b'com,a)/ 20220106150849 {"a": }', "not JSON"),
        (b'com,a)/ 20220106150849 {"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "not JSON"),
        (b'com,a)/ 20220106150849 {"a": "\xff"}', "not JSON"),
    ],
)
def test_what_is_no_line_is_refused_with_a_reason(line: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_cdxj(line)


@given(st.binary())
def test_any_bytes_are_a_line_or_refused(data: bytes) -> None:
    try:
        parse_cdxj(data)
    except ValueError as error:
        assert str(error)  # noqa: PT017  # whether it raises depends on the bytes
