"""Partitions that travel: what arrives is what was sent, or nothing is changed."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any

import pytest
from faulty_disks import FaultyDisk, KilledError

from amicrawl.config import Identity
from amicrawl.disk import Disk
from amicrawl.errors import AmicrawlError, OutputError
from amicrawl.fleet.checkpoints.checkpoint import LIST_NAME, ship_state
from amicrawl.fleet.sharing.worker import fetch_state, shipped_to
from amicrawl.frontier import DurableFrontier, Offer, Outcome, Source
from amicrawl.meguri import LivePartition
from amicrawl.meguri.state import IDENTITY
from amicrawl.politeness import Gates, HostBreaker, InflightLimit
from amicrawl.seed import Seed
from amicrawl.urls import UrlKey, url_key

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

STATE = {
    "frontier/super": b"super block",
    "frontier/snap-3.meguri": b"MGR" * 1000,
    "frontier/log-3": b"",
    "outbox": b"0000 links\n",
    "outbox.mark": b"{}",
}


def written(directory: Path, state: dict[str, bytes]) -> None:
    for name, content in state.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_bytes(content)


def state_of(directory: Path) -> dict[str, bytes]:
    found = [path for path in directory.rglob("*") if path.is_file()]
    return {str(path.relative_to(directory)): path.read_bytes() for path in found}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory to which a partition was shipped."""
    written(tmp_path / "a", STATE)
    written(tmp_path / "a", {"ami-00000.warc.gz": b"captures", "captures.parquet": b"rows"})
    ship_state(tmp_path / "a", (tmp_path / "place").as_uri(), disk=Disk())
    return tmp_path / "place"


def fetched(place: Path, directory: Path, disk: Disk | None = None) -> None:
    directory.mkdir(exist_ok=True)
    fetch_state(directory, place.as_uri(), disk=disk or Disk())


def listed(place: Path) -> dict[str, Any]:
    said: dict[str, Any] = json.loads((place / LIST_NAME).read_bytes())
    return said


def test_what_was_shipped_arrives_and_captures_stay(place: Path, tmp_path: Path) -> None:
    fetched(place, tmp_path / "b")
    assert state_of(tmp_path / "b") == STATE


def test_what_was_there_before_makes_place(place: Path, tmp_path: Path) -> None:
    written(
        tmp_path / "b",
        {"frontier/snap-1.meguri": b"old", "outbox": b"old", "ami-00003.warc.gz": b"mine"},
    )
    fetched(place, tmp_path / "b")
    assert state_of(tmp_path / "b") == STATE | {"ami-00003.warc.gz": b"mine"}


def test_each_owner_ships_to_a_path_of_its_own(tmp_path: Path) -> None:
    """One that was frozen, and ships when it wakes, spoils nothing that its successor has shipped."""
    (tmp_path / "place").mkdir()
    urls = [shipped_to((tmp_path / "place").as_uri(), "crawl", 7, token) for token in ("5", "6")]
    written(tmp_path / "a", STATE)
    written(tmp_path / "c", {"frontier/super": b"newer", "outbox": b"newer\n"})
    for name, url in (("c", urls[1]), ("a", urls[0])):
        ship_state(tmp_path / name, url, disk=Disk())
    (tmp_path / "b").mkdir()
    fetch_state(tmp_path / "b", urls[1], disk=Disk())
    assert state_of(tmp_path / "b") == {"frontier/super": b"newer", "outbox": b"newer\n"}


def test_what_does_not_arrive_as_it_was_sent_is_not_shipped(tmp_path: Path) -> None:
    written(tmp_path / "a", STATE)

    class LyingDisk(Disk):
        """A store that loses the end of what it is given, and says it has it."""

        def write(self, descriptor: int, block: bytes | memoryview) -> int:
            super().write(descriptor, bytes(block)[:-1])
            return len(block)

    with pytest.raises(OutputError, match="did not arrive"):
        ship_state(tmp_path / "a", (tmp_path / "place").as_uri(), disk=LyingDisk())


def test_a_damaged_object_changes_nothing_here(place: Path, tmp_path: Path) -> None:
    written(tmp_path / "b", {"frontier/snap-1.meguri": b"mine"})
    for said in listed(place)["files"]:
        path = place / said["part"]
        whole = path.read_bytes()
        for damaged in (whole[:-1] if whole else b"x", whole + b"x", b"x" * len(whole) + b"y"):
            path.write_bytes(damaged)
            with pytest.raises(OutputError, match="not what was copied"):
                fetched(place, tmp_path / "b")
            assert state_of(tmp_path / "b" / "frontier") == {"snap-1.meguri": b"mine"}
        path.write_bytes(whole)


def test_every_cut_of_the_manifest_is_refused(place: Path, tmp_path: Path) -> None:
    path = place / LIST_NAME
    whole = path.read_bytes()
    for cut in range(0, len(whole), 7):
        path.write_bytes(whole[:cut])
        with pytest.raises(OutputError):
            fetched(place, tmp_path / "b")


@pytest.mark.parametrize(
    "said",
    [
        {"name": "../../evil"},
        {"name": "/etc/passwd"},
        {"name": "frontier/../../evil"},
        {"name": "frontier/a/b"},
        {"name": ".ssh"},
        {"name": "outbox\n"},
        {"name": 7},
        {"part": "../../../etc/passwd"},
        {"part": "/etc/hostname"},
        {"part": None},
        {"size": "7"},
        {"sha256": "short"},
    ],
)
def test_names_that_lead_elsewhere_are_refused(
    place: Path, tmp_path: Path, said: dict[str, Any]
) -> None:
    whole = listed(place)
    whole["files"][0] |= said
    (place / LIST_NAME).write_text(json.dumps(whole))
    with pytest.raises(OutputError):
        fetched(place, tmp_path / "b")
    assert not (tmp_path / "evil").exists()


def test_a_partition_that_was_never_shipped_cannot_be_fetched(place: Path, tmp_path: Path) -> None:
    with pytest.raises(OutputError):
        fetched(tmp_path / "elsewhere", tmp_path / "b")


def test_a_real_frontier_goes_on_where_it_was(tmp_path: Path) -> None:
    offers = [offer_of(f"http://example.org/{number}") for number in range(500)]
    (tmp_path / "a").mkdir()
    with opened(tmp_path / "a") as frontier:
        assert all(map(frontier.offer, offers))
        for _ in range(200):
            dispatch = frontier.next(0.0)
            assert dispatch is not None
            frontier.settle(dispatch.key, Outcome(status=200), 0.0)
    ship_state(tmp_path / "a", (tmp_path / "place").as_uri(), disk=Disk())
    fetched(tmp_path / "place", tmp_path / "b")
    with opened(tmp_path / "b") as frontier:
        assert len(frontier) == 500
        assert not any(map(frontier.offer, offers))
        left = [frontier.next(0.0) for _ in range(300)]
        assert [each.offer.seed.url for each in left if each] == [each.seed.url for each in offers[200:]]
        assert frontier.next(0.0) is None


def offer_of(url: str) -> Offer:
    key = url_key(url, Identity.CANONICAL)
    assert isinstance(key, UrlKey)
    return Offer(Seed(url), key, Source.SEED)


@contextlib.contextmanager
def opened(directory: Path) -> Iterator[DurableFrontier]:
    partition = LivePartition(
        directory / "frontier", disk=Disk(), hour=1, meta={IDENTITY: Identity.CANONICAL.value.encode()}
    )
    gates, limit = Gates(0, 1000), InflightLimit(1000, 1000, 1000)
    frontier = DurableFrontier(
        partition, gates, HostBreaker(1, max_retries=0), limit, wall=lambda: 3600.0
    )
    yield frontier
    frontier.close()


@pytest.mark.parametrize("fatal", range(1, 60))
def test_wherever_the_disk_fails_the_old_partition_or_the_new_one_is_whole(
    place: Path, tmp_path: Path, fatal: int
) -> None:
    old = {"frontier/snap-1.meguri": b"old"}
    written(tmp_path / "b", old)
    with contextlib.suppress(KilledError):
        fetched(place, tmp_path / "b", FaultyDisk(fatal, killed=True))
    # The fetch is done again by whoever takes the partition next.
    fetched(place, tmp_path / "b")
    assert state_of(tmp_path / "b") == STATE


@pytest.mark.parametrize("fatal", range(1, 40, 3))
def test_wherever_shipping_fails_nothing_half_shipped_is_fetched(tmp_path: Path, fatal: int) -> None:
    written(tmp_path / "a", STATE)
    with contextlib.suppress(AmicrawlError):
        ship_state(tmp_path / "a", (tmp_path / "place").as_uri(), disk=FaultyDisk(fatal))
    with contextlib.suppress(AmicrawlError):
        fetched(tmp_path / "place", tmp_path / "b")
    if (tmp_path / "b" / "frontier").exists():
        assert state_of(tmp_path / "b") == STATE
