"""Last-Modified as rows keep it: in hours."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from frontier.signal_vectors import VECTOR_FILES, lines
from hypothesis import given
from hypothesis import strategies as st

from amicrawl.frontier.row_strings import hours_of_http_date

SMALL_ERRORS = {"Sun, 6 Nov 1994 08:49:37 GMT": 217_808, " Sun, 06 Nov 1994 08:49:37 GMT": 217_808}


def test_golden_dates_agree() -> None:
    """Before 1970 the reference's hours wrap to the far end of time; ours are absent.

    Dates with small errors, which the reference drops, are read: so is Retry-After, by the same parser.
    """
    for line in lines(VECTOR_FILES, "content.jsonl", kind="last_modified"):
        expected = 0 if line["hours"] == 2**32 - 1 else line["hours"]
        assert hours_of_http_date(line["header"]) == SMALL_ERRORS.get(line["header"], expected), line


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECONDS = st.integers(0, (datetime(2069, 1, 1, tzinfo=UTC) - EPOCH) // timedelta(seconds=1) - 1)


@given(SECONDS)
def test_the_three_forms_of_a_date_name_one_hour(seconds: int) -> None:
    moment = EPOCH + timedelta(seconds=seconds)
    day, month = moment.strftime("%a"), moment.strftime("%b")
    clock = moment.strftime("%H:%M:%S")
    forms = (
        f"{day}, {moment:%d} {month} {moment:%Y} {clock} GMT",
        f"{moment:%A}, {moment:%d}-{month}-{moment:%y} {clock} GMT",
        f"{day} {month} {moment.day:2} {clock} {moment:%Y}",
    )
    assert [hours_of_http_date(form) for form in forms] == [seconds // 3600] * 3


@given(st.text(max_size=60))
def test_any_text_gives_hours(text: str) -> None:
    assert hours_of_http_date(text) >= 0


@pytest.mark.parametrize(
    ("text", "hours"),
    [
        ("Sun, 06 Nov 1994 08:49:60 GMT", 217_808),
        ("Sun, 06 Nov 1994 08:49:37 -0130", 217_810),
        ("Sun, 06 Nov 1994 24:00:00 GMT", 0),
        ("Sun, 31 Feb 1994 08:49:37 GMT", 0),
        ("Sun, 06 Nov 1994 08:49:37 PST", 217_816),
        ("yesterday", 0),
        ("Sun, 06 Nov 1994 08:49:37 +9900", 0),
        ("Sun, 06 Foo 1994 08:49:37 GMT", 0),
        ("Thu, 01 Jan 1970 00:30:00 +0200", 0),
        ("Sun, 0６ Nov 1994 08:49:37 GMT", 0),
    ],
)
def test_the_edges_of_a_date(text: str, hours: int) -> None:
    assert hours_of_http_date(text) == hours
