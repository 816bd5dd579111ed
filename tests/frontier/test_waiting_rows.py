"""Waiting rows are bytes: nothing is lost, and they sort as they come up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amicrawl.frontier import Offer, Source, Status
from amicrawl.frontier.packing import WaitingRow, order_of, pack, unpack
from amicrawl.seed import Seed
from amicrawl.urls import UrlKey

U64 = st.integers(0, 2**64 - 1)
TEXT = st.text(st.characters(codec=None), max_size=40)
SEEDS = st.one_of(
    st.builds(Seed, TEXT),
    st.builds(
        Seed,
        url=TEXT,
        digest=TEXT,
        etag=TEXT,
        last_modified=TEXT,
        captured_at=st.integers(),
        meta_json=TEXT,
    ),
)
OFFERS = st.builds(
    Offer,
    seed=SEEDS,
    key=st.builds(UrlKey, U64, U64),
    source=st.sampled_from(Source),
    priority=st.integers(-(2**63) + 1, 2**63),
    hops=st.integers(0, 2**32 - 1),
)
ROWS = st.builds(
    WaitingRow,
    offer=OFFERS,
    number=st.integers(1, 2**63),
    status=st.sampled_from(Status),
    attempt=st.integers(1, 2**32 - 1),
)


@given(row=ROWS)
def test_a_row_reads_back_as_it_was(row: WaitingRow) -> None:
    packed = pack(row)
    assert unpack(packed, host=row.offer.key.host) == row
    assert order_of(packed) == -row.offer.priority


def test_a_row_reads_back_with_the_types_it_had() -> None:
    offer = Offer(Seed("http://a.test/"), UrlKey(1, 2), Source.SITEMAP)
    read = unpack(pack(WaitingRow(offer, 1, Status.SCHEDULED, 2)), host=1)
    assert isinstance(read.offer.key, UrlKey)
    assert read.offer.source is Source.SITEMAP
    assert read.status is Status.SCHEDULED


@given(rows=st.lists(ROWS, min_size=2, max_size=20, unique_by=lambda row: row.number))
def test_rows_sort_by_priority_and_then_by_number(rows: list[WaitingRow]) -> None:
    by_bytes = sorted(rows, key=pack)
    by_meaning = sorted(rows, key=lambda row: (-row.offer.priority, row.number))
    assert [row.number for row in by_bytes] == [row.number for row in by_meaning]


@pytest.mark.parametrize(
    ("priority", "kept"),
    [(2**200, 2**63), (2**63, 2**63), (-(2**63), 1 - 2**63), (-(2**200), 1 - 2**63)],
)
def test_a_priority_out_of_all_proportion_is_taken_as_the_nearest(priority: int, kept: int) -> None:
    offer = Offer(Seed("http://a.test/"), UrlKey(1, 2), Source.LINK, priority)
    packed = pack(WaitingRow(offer, 1, Status.DISCOVERED, 1))
    assert unpack(packed, host=1).offer.priority == kept


def test_a_plain_row_takes_little_more_than_its_url() -> None:
    url = "http://a.test/" + "x" * 60
    row = WaitingRow(Offer(Seed(url), UrlKey(1, 2), Source.LINK), 1, Status.DISCOVERED, 1)
    assert len(pack(row)) == len(url) + 34
