"""The hour of `Last-Modified` stands in the row, and is sent where nothing better is known."""

from __future__ import annotations

from email.utils import formatdate
from typing import TYPE_CHECKING

import pytest
from frontier.live.crawls import HOUR, fetched, frontier_on, offer_of, opened, taken

from amicrawl.frontier import Found, Outcome
from amicrawl.urls import UrlKey

if TYPE_CHECKING:
    from pathlib import Path

KEY = UrlKey(1, 1)


def test_what_a_response_says_stands_in_its_row(tmp_path: Path) -> None:
    frontier = frontier_on(opened(tmp_path / "f"))
    frontier.offer(offer_of(*KEY))
    found = Found("ab" * 20, last_modified="Sun, 06 Nov 1994 08:49:37 GMT")
    fetched(frontier, Outcome(200, found=found))
    number = frontier.partition.find(*KEY)
    assert number is not None
    assert frontier.partition.get(number).last_modified == 217_808
    frontier.close()


@pytest.mark.parametrize(("modified", "requested"), [(HOUR - 9, HOUR - 8), (HOUR - 1, HOUR - 1)])
def test_a_row_of_other_software_is_requested_by_the_hour_that_it_knows(
    tmp_path: Path, modified: int, requested: int
) -> None:
    """Rounded up, so that the same version does not count as a newer one; but never past its capture."""
    partition = opened(tmp_path / "f")
    frontier = frontier_on(partition)
    frontier.offer(offer_of(*KEY))
    fetched(frontier, Outcome(200))
    number = partition.find(*KEY)
    assert number is not None
    row = partition.get(number)
    assert not row.etag_ref
    partition.put(number, row._replace(last_modified=modified, last_crawled=HOUR - 1, next_due=HOUR))
    frontier.close()
    again = frontier_on(opened(tmp_path / "f"), recrawl_before=HOUR)
    seed = taken(again)[KEY].offer.seed
    assert seed.last_modified == formatdate(requested * 3600, usegmt=True)
    again.partition.abandon()
