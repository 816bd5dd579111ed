"""Partitions that travel: what arrives is what was sent, or nothing is changed."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any

import pytest
from faulty_disks import FaultyDisk, KilledError

from amicrawl.config import Identity
from amicrawl.disk import Disk
from amicrawl.errors import AmicrawlError, InputError, OutputError
from amicrawl.frontier import DurableFrontier, LivePartition, Offer, Outcome, Source
from amicrawl.frontier.state import IDENTITY
from amicrawl.jobs.sharing.shipping import MANIFEST, Shipper
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
    """A place with a partition that was shipped there."""
    written(tmp_path / "a", STATE)
    written(tmp_path / "a", {"ami-00000.warc.gz": b"captures", "captures.parquet": b"rows"})
    shipper(tmp_path / "place").ship(7, tmp_path / "a")
    return tmp_path / "place"


def shipper(place: Path, disk: Disk | None = None) -> Shipper:
    return Shipper(f"file://{place}", "crawl", disk=disk or Disk(), machine="a")


def manifest(place: Path) -> dict[str, Any]:
    said: dict[str, Any] = json.loads((place / "crawl-part-007" / MANIFEST).read_bytes())
    return said


def test_what_was_shipped_arrives_and_captures_stay(place: Path, tmp_path: Path) -> None:
    shipper(place).fetch(7, tmp_path / "b")
    assert state_of(tmp_path / "b") == STATE
    said = manifest(place)
    assert said["machine"] == "a"
    assert said["directory"] == str(tmp_path / "a")
    assert {each["name"] for each in said["captures"]} == {"ami-00000.warc.gz", "captures.parquet"}


def test_what_was_there_before_makes_place(place: Path, tmp_path: Path) -> None:
    written(
        tmp_path / "b",
        {"frontier/snap-1.meguri": b"old", "outbox": b"old", "ami-00003.warc.gz": b"mine"},
    )
    shipper(place).fetch(7, tmp_path / "b")
    assert state_of(tmp_path / "b") == STATE | {"ami-00003.warc.gz": b"mine"}


def test_an_older_version_is_not_mixed_with_a_newer_one(place: Path, tmp_path: Path) -> None:
    (tmp_path / "a" / "frontier" / "log-3").unlink()
    written(tmp_path / "a", {"frontier/snap-4.meguri": b"newer"})
    shipper(place).ship(7, tmp_path / "a")
    shipper(place).fetch(7, tmp_path / "b")
    found = state_of(tmp_path / "b")
    assert found["frontier/snap-4.meguri"] == b"newer"
    assert "frontier/log-3" not in found


def test_a_damaged_object_changes_nothing_here(place: Path, tmp_path: Path) -> None:
    written(tmp_path / "b", {"frontier/snap-1.meguri": b"mine"})
    for said in manifest(place)["files"]:
        path = place / said["key"]
        whole = path.read_bytes()
        for damaged in (whole[:-1] if whole else b"x", whole + b"x", b"x" * len(whole) + b"y"):
            path.write_bytes(damaged)
            with pytest.raises(InputError, match="not what was shipped"):
                shipper(place).fetch(7, tmp_path / "b")
            assert state_of(tmp_path / "b" / "frontier") == {"snap-1.meguri": b"mine"}
        path.write_bytes(whole)


def test_every_cut_of_the_manifest_is_refused(place: Path, tmp_path: Path) -> None:
    path = place / "crawl-part-007" / MANIFEST
    whole = path.read_bytes()
    for cut in range(0, len(whole), 7):
        path.write_bytes(whole[:cut])
        with pytest.raises(InputError):
            shipper(place).fetch(7, tmp_path / "b")


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
        {"key": "../../../etc/passwd"},
        {"key": "/etc/hostname"},
        {"key": None},
        {"size": "7"},
        {"sha256": "short"},
    ],
)
def test_names_that_lead_elsewhere_are_refused(
    place: Path, tmp_path: Path, said: dict[str, Any]
) -> None:
    whole = manifest(place)
    whole["files"][0] |= said
    (place / "crawl-part-007" / MANIFEST).write_text(json.dumps(whole))
    with pytest.raises(InputError):
        shipper(place).fetch(7, tmp_path / "b")
    assert not (tmp_path / "evil").exists()


def test_a_partition_that_was_never_shipped_cannot_be_fetched(place: Path, tmp_path: Path) -> None:
    with pytest.raises(OutputError):
        shipper(place).fetch(8, tmp_path / "b")


def test_a_real_frontier_goes_on_where_it_was(tmp_path: Path) -> None:
    offers = [offer_of(f"http://example.org/{number}") for number in range(500)]
    (tmp_path / "a").mkdir()
    with opened(tmp_path / "a") as frontier:
        assert all(map(frontier.offer, offers))
        for _ in range(200):
            dispatch = frontier.next(0.0)
            assert dispatch is not None
            frontier.settle(dispatch.key, Outcome(status=200), 0.0)
    (tmp_path / "place").mkdir()
    shipper(tmp_path / "place").ship(7, tmp_path / "a")
    shipper(tmp_path / "place").fetch(7, tmp_path / "b")
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
        shipper(place, FaultyDisk(fatal, killed=True)).fetch(7, tmp_path / "b")
    # The fetch is done again by whoever takes the partition next.
    shipper(place).fetch(7, tmp_path / "b")
    assert state_of(tmp_path / "b") == STATE


@pytest.mark.parametrize("fatal", range(1, 40, 3))
def test_wherever_shipping_fails_the_version_before_can_be_fetched(
    place: Path, tmp_path: Path, fatal: int
) -> None:
    written(tmp_path / "a", {"outbox": b"newer\n"})
    try:
        shipper(place, FaultyDisk(fatal)).ship(7, tmp_path / "a")
    except AmicrawlError:
        expected = STATE
    else:
        expected = STATE | {"outbox": b"newer\n"}
    shipper(place).fetch(7, tmp_path / "b")
    assert state_of(tmp_path / "b") in (expected, STATE | {"outbox": b"newer\n"})
