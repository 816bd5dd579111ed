"""The counters of a job, from the rows of its index."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from amicrawl.capture import Capture, Failure, Truncation
from amicrawl.clock import unix_ms
from amicrawl.fleet.jobs.accounting import Figures, figures_in
from amicrawl.record import CaptureItem
from amicrawl.record.captures import row_of
from amicrawl.record.table import CAPTURES
from amicrawl.seed import Seed

if TYPE_CHECKING:
    from collections.abc import Mapping

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)


def item(
    status: int = 0,
    *,
    failure: Failure | None = None,
    truncated: Truncation | None = None,
    size: int = 10,
) -> CaptureItem:
    url = "http://a.example/"
    capture = Capture(
        url=url, started_ms=unix_ms(NOON), duration_ms=1, status=status, failure=failure,
        failure_detail="for: some reason", truncated=truncated,
    )  # fmt: skip
    return CaptureItem(capture, Seed(url), body_length=size if status else 0)


CASES: list[tuple[CaptureItem, Mapping[str, int]]] = [
    (item(200), {"r2xx": 1, "bytes_downloaded": 10}),
    (item(101), {"r1xx": 1, "bytes_downloaded": 10}),
    (item(301), {"r3xx": 1, "bytes_downloaded": 10}),
    (item(404), {"r4xx": 1, "bytes_downloaded": 10}),
    (item(503), {"r5xx": 1, "error_count": 1, "bytes_downloaded": 10}),
    (item(999), {"runk": 1, "error_count": 1, "bytes_downloaded": 10}),
    (item(failure=Failure.CONNECTION_REFUSED), {"runk": 1, "error_count": 1}),
    (item(failure=Failure.ROBOTS_DENIED), {}),
    (item(failure=Failure.REFUSED_BY_CRAWL), {}),
    (item(200, truncated=Truncation.DISCONNECT), {"r2xx": 1, "error_count": 1, "bytes_downloaded": 10}),
    (item(200, truncated=Truncation.LENGTH), {"r2xx": 1, "bytes_downloaded": 10}),
]


@pytest.mark.parametrize(("given", "moved"), CASES)
def test_each_row_moves_its_counters(given: CaptureItem, moved: Mapping[str, int]) -> None:
    figures = Figures()
    figures.count(given)
    assert figures == Figures(items_downloaded=1, **moved)


def test_the_rows_of_an_index_give_what_counting_them_gave() -> None:
    counted = Figures()
    rows = []
    for given, _ in CASES * 3:
        counted.count(given)
        rows.append(row_of(given))
    file = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, CAPTURES), file, row_group_size=7)
    assert figures_in(io.BytesIO(file.getvalue())) == counted


def test_what_waits_is_queued_and_what_is_in_flight_is_in_neither() -> None:
    figures = Figures(r2xx=3, items_downloaded=4)
    told = figures.plus(Figures(r2xx=1, items_downloaded=1)).as_fields(waiting=7)
    assert told["items_downloaded"] == 5
    assert told["items_queued"] == 12
    assert told["r2xx"] == 4
