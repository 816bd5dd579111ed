"""Timestamps of index lines become the moments that Python's own calendar has for them."""

from __future__ import annotations

from datetime import datetime, timedelta

import numpy as np
import pytest

from amicrawl.archive.arrow_texts import Spans, texts_from
from amicrawl.archive.table.convert import moments


def moments_of(*timestamps: str) -> list[object]:
    found: list[object] = moments(Spans.of(texts_from(timestamps))).to_pylist()
    return found


def test_every_day_of_a_leap_year_and_of_the_year_after_is_itself() -> None:
    days = [datetime(2023, 12, 31, 23, 59, 58) + timedelta(days=n) for n in range(733)]  # noqa: DTZ001
    assert moments_of(*(f"{day:%Y%m%d%H%M%S}" for day in days)) == days


def test_the_ends_of_each_unit_are_those_of_the_calendar() -> None:
    texts = ["19691231235959", "19700101000000", "20000229120000", "21000228235959", "99991231235959"]
    expected = [datetime.strptime(text, "%Y%m%d%H%M%S") for text in texts]  # noqa: DTZ007
    assert moments_of(*texts) == expected


@pytest.mark.parametrize(
    "text",
    [
        "20130229000000", "19000229000000", "20130431000000", "20130100000000", "20130132000000",
        "20130001000000", "20131301000000", "20130101240000", "20130101006000", "20130101000060",
        "00000101000000", "2013010100000x",
    ],
)  # fmt: skip
def test_what_the_calendar_does_not_have_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"timestamp|month"):
        moments(Spans.of(texts_from(["20130101000000", text])))


def test_no_timestamps_are_no_moments() -> None:
    assert moments_of() == []
    assert np.array(moments_of("20130101000000")).shape == (1,)
