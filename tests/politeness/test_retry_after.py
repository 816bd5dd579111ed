"""Retry-After is read as a number of seconds or as a date, and anything else is ignored."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amicrawl.politeness.pace import retry_after_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

NOW = datetime(1994, 11, 6, 8, 49, 0, tzinfo=UTC).timestamp()
"""37 seconds before the date that the standard has as its example."""
CAP = 3600.0


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (b"0", 0.0),
        (b"120", 120.0),
        (b"  120\t", 120.0),
        ("120", 120.0),
        (b"0000000120", 120.0),
        (b"3600", 3600.0),
        (b"3601", CAP),
        (b"9" * 64, CAP),
        (b"Sun, 06 Nov 1994 08:49:37 GMT", 37.0),
        (b"Sunday, 06-Nov-94 08:49:37 GMT", 37.0),
        (b"Sun Nov  6 08:49:37 1994", 37.0),
        ("Sun, 06 Nov 1994 08:49:37 UTC", 37.0),
        (b"Mon, 06 Nov 1994 08:49:37 GMT", 37.0),  # the date counts, not the day of the week
        (b"Sat, 31 Dec 2044 00:00:00 GMT", CAP),
        (b"Sunday, 06-Nov-44 08:49:37 GMT", CAP),
        (b"Sun, 06 Nov 1994 08:49:37", 37.0),
        (b"Sun, 06 Nov 1994 09:49:37 +0100", 37.0),
        (b"Sun, 06 Nov 1994 00:49:37 PST", 37.0),
        (b"sun, 6 nov 1994 08:49:37 gmt", 37.0),
        (b"06 Nov 1994 08:49:37 GMT", 37.0),
        (b"Sun, 06 Nov 1994 08:48:59 GMT", 0.0),
        (b"Thu, 01 Jan 1970 00:00:00 GMT", 0.0),
        (b"Fri, 31 Dec 9999 23:59:59 GMT", CAP),
    ],
)
def test_a_value_is_read(value: bytes | str, seconds: float) -> None:
    assert retry_after_seconds(value, now=NOW, cap=CAP) == seconds


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b" ",
        b"-1",
        b"+1",
        b"1.5",
        b"1e9",
        b"0x10",
        b"1_000",
        b"120 s",
        b"120, 60",
        b"inf",
        b"nan",
        "١٢٠",
        "¹²",
        "\ud800",
        b"\x00120",
        b"120\n",
        b"9" * 65,
        b"9" * 1_000_000,
        b"Sun, 31 Feb 1999 08:49:37 GMT",
        b"Sun, 06 Nov 1994 24:00:00 GMT",
        b"Sun, 06 Nov 1994 08:60:00 GMT",
        b"Sun, 06 Nov 1994 08:49:37 +9999999999999999",
        b"Sun, 06 Abc 2994 08:49:37 GMT",
        b"Sun Nov  0 08:49:37 2994",
        b"2994-11-06T08:49:37Z",
    ],
)
def test_what_names_no_moment_is_no_wait(value: bytes | str) -> None:
    assert retry_after_seconds(value, now=NOW, cap=CAP) == 0.0


def test_a_moment_is_measured_with_its_fraction() -> None:
    assert retry_after_seconds(b"Sun, 06 Nov 1994 08:49:37 GMT", now=NOW + 0.25, cap=CAP) == 36.75


@given(st.one_of(st.binary(max_size=80), st.text(max_size=80)), st.floats(0, 4e9))
def test_whatever_is_sent_leads_to_a_wait_within_bounds(value: bytes | str, now: float) -> None:
    assert 0.0 <= retry_after_seconds(value, now=now, cap=CAP) <= CAP


@given(st.datetimes(datetime(2000, 1, 1), datetime(2040, 1, 1)), st.integers(0, 4000))  # noqa: DTZ001
def test_the_three_forms_of_a_date_agree(day: datetime, wait: int) -> None:
    day = day.replace(microsecond=0, tzinfo=UTC)
    now = day.timestamp() - wait
    forms = ("%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y")
    for form in forms:
        assert retry_after_seconds(day.strftime(form), now=now, cap=CAP) == min(wait, CAP)


@pytest.fixture
def in_auckland() -> Iterator[None]:
    before = os.environ.get("TZ")
    os.environ["TZ"] = "NZST-12NZDT-13,M9.5.0,M4.1.0/3"
    time.tzset()
    yield
    if before is None:
        del os.environ["TZ"]
    else:
        os.environ["TZ"] = before
    time.tzset()


@pytest.mark.usefixtures("in_auckland")
def test_a_date_is_that_of_greenwich_wherever_the_machine_is() -> None:
    for form in (
        b"Sun, 06 Nov 1994 08:49:37 GMT",
        b"Sunday, 06-Nov-94 08:49:37 GMT",
        b"Sun Nov  6 08:49:37 1994",
    ):
        assert retry_after_seconds(form, now=NOW, cap=CAP) == 37.0
