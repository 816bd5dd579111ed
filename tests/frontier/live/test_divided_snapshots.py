"""Snapshots in several files: a frontier with more strings than one file holds is as any other.

That holds for a kill between any two calls of the disk, too: see `test_partition_on_faulty_disks`.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from frontier.live.crawls import (
    HOUR,
    Contents,
    DividedPartition,
    TracedPartition,
    as_killed,
    contents_in,
    contents_of,
    fetched,
    frontier_on,
    offer_of,
    opened,
)
from frontier.live.disks import CountingDisk
from meguri.store.partitions import names_in

from amicrawl.errors import InputError
from amicrawl.fleet.checkpoints.checkpoint import state_files
from amicrawl.frontier import Found, Outcome
from amicrawl.meguri import deal_frontier, find_damage, frontier_directory, gather_frontiers, string_at
from amicrawl.meguri.damage import DamageFindings
from amicrawl.meguri.format.schema import URL_REFERENCES
from amicrawl.meguri.format.verification import read_partition
from amicrawl.meguri.opening import load

if TYPE_CHECKING:
    from pathlib import Path

    from amicrawl.urls import UrlKey

HOSTS, PATHS = 40, 50
OK = Outcome(200, found=Found("ab" * 20, '"tag"', "Mon", 1_700_000_000_123))


class FilesOfSomeKilobytes(DividedPartition):
    """One with less than twenty files in its last snapshot."""

    options = replace(DividedPartition.options, most_strings=6000)


def crawled(directory: Path, kind: type[TracedPartition]) -> list[list[UrlKey]]:
    """Offer two thousand URLs, settle some of them, twice with a kill behind it, and seal the rest.

    Returned is what each session was handed out, in its order.
    """
    handed_out: list[list[UrlKey]] = []
    for session in range(3):
        frontier = frontier_on(kind(directory, [], disk=CountingDisk()))
        frontier.offer_all(
            [offer_of(host, path) for host in range(HOSTS) for path in range(session, PATHS, 3)]
        )
        frontier.snapshot()
        keys: list[UrlKey] = []
        for _ in range(300):
            dispatch = frontier.next(0.0)
            assert dispatch is not None
            keys.append(dispatch.key)
            frontier.settle(dispatch.key, OK, 0.0)
        handed_out.append(keys)
        frontier.flush()
        if session < 2:
            frontier.partition.abandon()
    handed_out.append(fetched(frontier, OK))
    frontier.close()
    return handed_out


def newest(directory: Path) -> Path:
    """Return the first file of the newest snapshot."""
    firsts = [path for path in directory.glob("snap-*.meguri") if "strings" not in path.name]
    return max(firsts, key=lambda path: int(path.stem.removeprefix("snap-")))


@pytest.fixture(scope="module")
def divided(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("divided") / "frontier"
    crawled(directory, FilesOfSomeKilobytes)
    return directory


@pytest.fixture
def directory(divided: Path, tmp_path: Path) -> Path:
    return shutil.copytree(divided, tmp_path / "frontier")


def test_killed_opened_and_sealed_it_says_and_hands_out_what_one_file_does(tmp_path: Path) -> None:
    handed_out, contents = [], list[Contents]()
    for kind in (TracedPartition, FilesOfSomeKilobytes):
        path = tmp_path / kind.__name__
        handed_out.append(crawled(path, kind))
        assert find_damage(path) == DamageFindings()
        sealed, further = newest(path), list(path.glob("snap-*.strings-*.meguri"))
        assert (len(further) > 20) == (kind is FilesOfSomeKilobytes)
        contents += [contents_in(load(path)), contents_in(read_partition(sealed))]
        assert len(contents[-1].rows) == HOSTS * PATHS
    assert handed_out[0] == handed_out[1]
    assert sum(map(len, handed_out[0])) == HOSTS * PATHS
    assert contents == contents[:1] * 4


def test_of_two_generations_all_files_stay_and_of_older_ones_none(directory: Path) -> None:
    partition = opened(directory)
    for _ in range(3):
        frontier_on(partition).offer(offer_of(99, len(partition)))
        partition.snapshot(HOUR)
    partition.close(HOUR)
    assert not [name for name in names_in(directory) if "strings" in name]
    assert find_damage(directory).damage == []


@pytest.mark.parametrize("number", [1, 2, 12])
def test_a_further_file_that_is_missing_or_damaged_is_made_up_for(directory: Path, number: int) -> None:
    """By the generation before, and the logs since."""
    contents = contents_in(load(directory))
    first = newest(directory)
    further = first.with_name(f"{first.stem}.strings-{number}.meguri")
    whole = further.read_bytes()
    middle = len(whole) // 3
    flipped = whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]
    for harm in (None, b"", whole[:middle], flipped):
        copy = as_killed(directory)
        (copy / further.name).unlink()
        if harm is not None:
            (copy / further.name).write_bytes(harm)
        assert find_damage(copy).damage
        partition = opened(copy)
        assert any(first.stem in note and "passed over" in note for note in partition.opened.notes)
        assert contents_of(partition) == contents
        partition.abandon()


def test_further_files_without_their_first_are_no_snapshot_and_are_removed(directory: Path) -> None:
    """A process was killed before the first got its name, which it gets last."""
    contents, first = contents_in(load(directory)), newest(directory)
    left = [path.name for path in directory.glob(f"{first.stem}.strings-*")]
    first.unlink()
    partition = opened(directory)
    assert contents_of(partition) == contents
    partition.abandon()
    assert len(left) > 10
    assert not {*left} & {*names_in(directory)}


def test_a_checkpoint_has_all_files_of_a_snapshot(directory: Path) -> None:
    wanted = {path.name for path in directory.glob("snap-*")}
    copied = {name.removeprefix("frontier/") for name in state_files(directory.parent)}
    assert wanted <= copied
    assert frontier_directory(directory.parent) == directory


def strings_of(directory: Path) -> dict[int, list[tuple[bytes | None, ...]]]:
    """Return the strings of each row in *directory*, and the name of its host, by host in key order."""
    partition = load(directory)
    urls, hosts = partition.urls, partition.hosts
    found = {
        host: [tuple(string_at(partition.arena, ref) for ref in refs)]
        for host, *refs in zip(
            *(hosts[name].tolist() for name in ("host_key", "host_ref", "registrable_ref")), strict=True
        )
    }
    for host, *refs in zip(
        *(urls[name].tolist() for name in ("host_key", *URL_REFERENCES)), strict=True
    ):
        found[host].append(tuple(string_at(partition.arena, ref) for ref in refs))
    return found


def test_frontiers_in_several_files_are_joined_and_dealt(directory: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    frontier = frontier_on(DividedPartition(other, [], disk=CountingDisk()))
    frontier.offer_all([offer_of(host, path) for host in range(100, 120) for path in range(9)])
    frontier.close()
    strings = {**strings_of(directory), **strings_of(other)}
    assert strings[7][0] == (b"host-7.test", b"host-7.test")
    assert strings[7][1] == (b"http://host-7.test/0", b'"tag"', None)
    assert len(strings) == 60
    whole, dealt = tmp_path / "whole", [tmp_path / "0", tmp_path / "1"]
    whole.mkdir()
    gather_frontiers([directory, other], whole, index_rows=7, disk=CountingDisk())
    assert strings_of(whole) == strings
    assert find_damage(whole) == DamageFindings()
    partition = opened(whole)
    assert partition.opened.index_rows == 7
    # In the order in which they were offered.
    assert [key.path for key in fetched(frontier_on(partition), OK) if key.host == 107] == [*range(9)]
    partition.abandon()
    deal_frontier(whole, dealt, disk=CountingDisk())
    assert {**strings_of(dealt[0]), **strings_of(dealt[1])} == strings
    assert all(map(strings_of, dealt))


def test_a_url_that_two_frontiers_have_is_not_joined(directory: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="same key"):
        gather_frontiers([directory, directory], tmp_path, index_rows=0, disk=CountingDisk())
