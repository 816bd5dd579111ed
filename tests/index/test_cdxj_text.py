"""CDXJ lines as text."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from amicrawl.archive.lines.cdxj import CdxjLine

KEYS = st.text(st.characters(exclude_characters=" \r\n", exclude_categories=["Cs"]), min_size=1)
TIMES = st.integers(0, 10**14 - 1).map("{:014d}".format)
FIELDS = st.dictionaries(st.text(), st.text())


@given(KEYS, TIMES, FIELDS)
def test_a_line_reads_back_as_it_was(key: str, timestamp: str, fields: dict[str, str]) -> None:
    line = CdxjLine(key, timestamp, fields)
    assert line.text().count("\n") == 1
    assert line.encoded().decode().split(" ", 2)[:2] == [key, timestamp]
    assert json.loads(line.text().split(" ", 2)[2]) == fields
