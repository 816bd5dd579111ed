"""Offers that are taken at once leave what the same ones leave that are taken one by one."""

from __future__ import annotations

import errno
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from frontier.live.crawls import (
    HOUR,
    Clock,
    TracedPartition,
    contents_by,
    contents_of,
    fetched,
    frontier_on,
    offer_of,
    opened,
    taken,
)
from frontier.live.disks import CountingDisk
from hypothesis import given
from hypothesis import strategies as st

from amicrawl.disk import Disk
from amicrawl.errors import AmicrawlError, OutputError
from amicrawl.frontier import DurableFrontier, Offer, Outcome
from amicrawl.frontier.admission import Admission
from amicrawl.meguri import Status
from amicrawl.politeness import Gates, HostBreaker, InflightLimit
from amicrawl.urls import UrlKey

if TYPE_CHECKING:
    from collections.abc import Sequence

OFFERS = st.lists(
    st.builds(
        offer_of,
        st.integers(1, 3),
        st.integers(0, 9),
        priority=st.sampled_from([0, 0, 0, 1, -1]),
        extra=st.sampled_from([None, None, {"method": "POST"}]),
    ).map(lambda offer: offer._replace(hops=offer.key.path // 3)),
    max_size=30,
)


def after(directory: Path, pieces: Sequence[Sequence[Offer]]) -> tuple[object, ...]:
    """Return all that is left of *pieces*, each offered at once; links beyond two hops are parked."""
    trace: list[bytes] = []
    partition = TracedPartition(directory, trace, disk=Disk(), hour=HOUR)
    rules = Gates(0.0, 100), HostBreaker(1000, max_retries=0), InflightLimit(100, 1, 1000)
    frontier = DurableFrontier(partition, *rules, wall=Clock(), admission=Admission(depth_cap=2))
    new = sum(map(frontier.offer_all, pieces))
    frontier.flush()
    contents, said = contents_of(partition), contents_by(trace)
    assert contents == said
    assert new == frontier.queued
    left = (new, contents, frontier.counts, fetched(frontier, Outcome(200)))
    frontier.abandon()
    return left


@pytest.mark.slow
@given(OFFERS, st.lists(st.integers(1, 9), max_size=9))
def test_a_piece_is_taken_like_each_of_its_offers(offers: list[Offer], lengths: list[int]) -> None:
    rest, pieces = [*offers], list[list[Offer]]()
    for length in lengths:
        pieces.append(rest[:length])
        del rest[:length]
    with tempfile.TemporaryDirectory() as place:
        one_by_one = after(Path(place) / "one", [[offer] for offer in offers])
        assert after(Path(place) / "pieces", [*pieces, rest]) == one_by_one


def test_urls_of_several_new_hosts_that_come_together_keep_their_names(tmp_path: Path) -> None:
    partition = opened(tmp_path)
    frontier = frontier_on(partition)
    offers = [offer_of(host, path) for host in (1, 2, 1, 3) for path in (host * 10, host)]
    assert frontier.offer_all(offers) == 6
    urls = {key: dispatch.offer.seed.url for key, dispatch in taken(frontier).items()}
    assert urls == {offer.key: offer.seed.url for offer in offers}
    partition.abandon()


def test_what_cannot_be_kept_takes_nothing_with_it(tmp_path: Path) -> None:
    trace: list[bytes] = []
    partition = TracedPartition(tmp_path / "frontier", trace, disk=Disk(), hour=HOUR)
    frontier = frontier_on(partition)
    bad = offer_of(1, 2, extra={"body": {1, 2}})
    with pytest.raises(AmicrawlError, match="cannot be kept"):
        frontier.offer_all([offer_of(1, 1), bad, offer_of(1, 3)])
    frontier.flush()
    assert contents_of(partition) == contents_by(trace)
    assert partition.find(1, 2) is None
    assert frontier.offer_all([offer_of(1, 1), offer_of(1, 2), offer_of(1, 3)]) == 2
    assert fetched(frontier, Outcome(200)) == [UrlKey(1, 1), UrlKey(1, 2), UrlKey(1, 3)]
    frontier.close()


class FullDisk(CountingDisk):
    """A disk on which no table can grow any more, once that is said."""

    is_full = False

    def reserve(self, descriptor: int, at: int, length: int) -> None:
        if self.is_full:
            raise OSError(errno.ENOSPC, "full")
        super().reserve(descriptor, at, length)


def test_no_row_is_handed_out_that_the_disk_did_not_take(tmp_path: Path) -> None:
    disk = FullDisk()
    frontier = frontier_on(opened(tmp_path / "frontier", disk=disk))
    assert frontier.offer_all([offer_of(1, path) for path in range(5)]) == 5
    disk.is_full = True
    with pytest.raises(OutputError):
        frontier.offer_all([offer_of(1, path) for path in range(3_000)])
    assert fetched(frontier, Outcome(200)) == [UrlKey(1, path) for path in range(5)]
    frontier.abandon()


def test_what_a_full_disk_did_not_take_leaves_no_row_without_its_url(tmp_path: Path) -> None:
    """The disk has room again; nothing that the frontier holds in memory is true any more."""
    disk = FullDisk()
    frontier = frontier_on(opened(tmp_path / "frontier", disk=disk))
    frontier.offer_all([offer_of(1, path) for path in range(5)])
    frontier.flush()
    disk.is_full = True
    with pytest.raises(OutputError):
        frontier.offer_all([offer_of(1, path) for path in range(3_000)])
    disk.is_full = False
    for go_on in (
        lambda: frontier.offer(offer_of(2, 1)),
        frontier.flush,
        frontier.snapshot,
        frontier.close,
    ):
        with pytest.raises(OutputError, match="full"):
            go_on()
    frontier.abandon()
    partition = opened(tmp_path / "frontier")
    found = [partition.texts_at(partition.get(number).url_ref)[0] for number in range(len(partition))]
    assert found == [offer_of(1, path).seed.url.encode() for path in range(5)]
    frontier = frontier_on(partition)
    assert frontier.offer_all([offer_of(1, path) for path in range(3_000)]) == 2_995
    frontier.close()


def test_a_closed_frontier_takes_none(tmp_path: Path) -> None:
    frontier = frontier_on(TracedPartition(tmp_path / "frontier", [], disk=Disk()))
    frontier.close()
    assert frontier.offer_all([offer_of(1, 1)]) == 0
    assert frontier.counts[Status.SCHEDULED] == 0
