"""Partitions that other software made: recognised, keyed anew, and crawled on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from frontier.live.crawls import frontier_on
from urls.vectors import VECTOR_FILES

from amicrawl.config import Identity
from amicrawl.disk import Disk
from amicrawl.errors import InputError
from amicrawl.frontier import Offer, Source
from amicrawl.meguri import LivePartition, Status
from amicrawl.meguri.arena import entry_of
from amicrawl.meguri.format.schema import HOST_ROW, ROW, Partition, columns_of
from amicrawl.meguri.format.verification import read_partition
from amicrawl.meguri.format.writer import WriteOptions, write_partition
from amicrawl.meguri.rows import HostRow, UrlRow
from amicrawl.meguri.store.generations import begin_with
from amicrawl.seed import Seed
from amicrawl.urls import UrlKey, host_key, seed_key, url_key

if TYPE_CHECKING:
    from pathlib import Path

HOUR = 490_000
SEEDED = ["http://www.a.test/x?b=2&a=1", "http://A.test/y#z"]
LINKED = ["http://www.a.test/x?a=1&b=2", "http://b.test/"]


def foreign(
    directory: Path, urls: list[tuple[UrlKey, str]], *, behind: bytes = b"", **fields: int
) -> None:
    """Write a partition file with *urls* as other software would, as a first snapshot in *directory*.

    Octets that are *behind* all strings may be no whole one.
    """
    arena, rows = bytearray(b"\0"), []
    for key, url in urls:
        row = UrlRow(*key, 1, 0.5, url_ref=len(arena))._replace(**fields)
        arena += entry_of(url.encode())
        rows.append(row.packed())
    hosts = []
    for name in ("www.a.test", "A.test", "a.test", "b.test"):
        hosts.append(HostRow(host_key(name), host_ref=len(arena), crawl_delay=len(name)).packed())
        arena += entry_of(name.encode())
    records = np.sort(np.frombuffer(b"".join(rows), ROW), order=["host_key", "path_key"])
    host_records = np.sort(np.frombuffer(b"".join(hosts), HOST_ROW), order="host_key")
    partition = Partition(
        columns_of(records), columns_of(host_records), bytes(arena) + behind, created=HOUR - 100
    )
    directory.mkdir()
    write_partition(partition, directory / "snap-1.meguri", options=WriteOptions(), disk=Disk())


@pytest.mark.parametrize("identity", Identity)
def test_rows_of_both_conventions_are_keyed_anew_and_fall_together(
    tmp_path: Path, identity: Identity
) -> None:
    urls = [(seed_key(url), url) for url in SEEDED]
    urls += [(url_key(url, Identity.CANONICAL), url) for url in LINKED]
    foreign(tmp_path / "p", urls)
    meta = {b"amicrawl.identity": identity.value.encode()}
    partition = LivePartition(tmp_path / "p", disk=Disk(), hour=HOUR, meta=meta)
    note = partition.opened.notes[-1]
    assert "2 URLs keyed as it keys seeds, 2 by their canonical form" in note
    wanted = {url_key(url, identity) for url in SEEDED + LINKED}
    assert {UrlKey(*partition.get(number)[:2]) for number in range(len(partition))} == wanted
    assert len(wanted) == (4 if identity is Identity.EXACT else 3)
    host = partition.host(host_key("a.test"))
    assert host is not None
    assert host.crawl_delay == len("www.a.test")
    assert host.url_count == len(wanted) - 1
    partition.close(HOUR)
    again = LivePartition(tmp_path / "p", disk=Disk(), hour=HOUR, meta=meta)
    assert len(again) == len(wanted)
    assert not again.opened.notes
    again.abandon()


def test_of_two_rows_for_one_page_the_one_that_was_crawled_stays(tmp_path: Path) -> None:
    url = "http://www.a.test/x"
    foreign(tmp_path / "p", [(seed_key(url), url)], crawl_count=3, last_crawled=HOUR - 1)
    partition = LivePartition(tmp_path / "p", disk=Disk(), hour=HOUR, meta={})
    number = partition.find(*url_key(url, Identity.CANONICAL))
    assert number is not None
    assert partition.get(number).crawl_count == 3
    assert partition.state.meta == {b"amicrawl.identity": b"canonical"}
    partition.abandon()


@pytest.mark.parametrize(
    ("field", "rows"), [("first_seen", 1), ("etag_ref", 1), ("redirect_ref", 1), ("url_ref", 0)]
)
def test_a_string_that_overruns_the_arena_is_none(tmp_path: Path, field: str, rows: int) -> None:
    url = LINKED[0]
    texts = [url, "www.a.test", "A.test", "a.test", "b.test"]
    end = 1 + sum(len(entry_of(text.encode())) for text in texts)
    key = url_key(url, Identity.CANONICAL)
    foreign(tmp_path / "p", [(key, url)], behind=b"\x7fshort", **{field: end})
    partition = LivePartition(tmp_path / "p", disk=Disk(), hour=HOUR, meta={})
    assert len(partition) == rows
    assert f"{1 - rows} nameless" in partition.opened.notes[-1]
    partition.abandon()


def test_a_string_that_many_rows_share_is_carried_over_once(tmp_path: Path) -> None:
    urls = [f"http://b.test/{number}" for number in range(100)]
    keyed = [(url_key(url, Identity.CANONICAL), url) for url in urls]
    target = "http://b.test/" + "x" * 100_000
    # It is the first of the strings: behind the zero of none.
    keyed.insert(0, (url_key(target, Identity.CANONICAL), target))
    foreign(tmp_path / "p", keyed, redirect_ref=1)
    partition = LivePartition(tmp_path / "p", disk=Disk(), hour=HOUR, meta={})
    rows = [partition.get(number) for number in range(len(partition))]
    assert {partition.texts_at(row.redirect_ref)[0] for row in rows} == {target.encode()}
    assert partition.ends[1] < 3 * len(target)
    partition.abandon()


def test_one_huge_string_that_is_the_url_of_many_rows_is_refused(tmp_path: Path) -> None:
    """Each of them would be keyed anew, which takes a tenth of a second for a megabyte."""
    url = "http://b.test/" + "x" * 100_000
    keyed = [(UrlKey(1, number), url if not number else "") for number in range(1_000)]
    foreign(tmp_path / "p", keyed, url_ref=1)
    with pytest.raises(InputError, match="strings overlap"):
        LivePartition(tmp_path / "p", disk=Disk(), hour=HOUR, meta={})
    assert {path.name for path in (tmp_path / "p").iterdir()} == {"snap-1.meguri"}


def test_a_string_that_begins_as_an_annex_is_not_that_of_the_url_before_it(tmp_path: Path) -> None:
    urls = [LINKED[1], '\0a{"x":{"proxy":"http://evil.test/"}}']
    foreign(tmp_path / "p", [(url_key(url, Identity.CANONICAL), url) for url in urls])
    meta = {b"amicrawl.identity": b"canonical"}
    partition = LivePartition(tmp_path / "p", disk=Disk(), hour=HOUR, meta=meta)
    number = partition.find(*url_key(LINKED[1], Identity.CANONICAL))
    assert number is not None
    assert partition.texts_at(partition.get(number).url_ref) == (LINKED[1].encode(), b"")
    partition.abandon()


def test_a_row_with_a_status_of_other_software_can_be_made_due(tmp_path: Path) -> None:
    url = LINKED[0]
    key = url_key(url, Identity.CANONICAL)
    foreign(tmp_path / "p", [(key, url)], status=200)
    partition = LivePartition(tmp_path / "p", disk=Disk(), hour=HOUR, meta={})
    frontier = frontier_on(partition)
    assert not frontier.has_pending()
    assert frontier.due_again(key, is_lost=False)
    assert frontier.counts[Status.SCHEDULED] == 1
    frontier.close()


def test_what_follows_an_adoption_is_never_replayed_onto_what_was_there_before(tmp_path: Path) -> None:
    """The journals name rows by the new keys: applied to the old rows, they would make pages twice."""
    directory = tmp_path / "p"
    foreign(directory, [(seed_key(url), url) for url in SEEDED])
    arena_length = len(read_partition(directory / "snap-1.meguri").arena)
    begin_with(directory, arena_length=arena_length, disk=Disk())
    partition = LivePartition(directory, disk=Disk(), hour=HOUR, meta={})
    number = partition.find(*url_key(SEEDED[0], Identity.CANONICAL))
    assert number is not None
    partition.put(number, partition.get(number)._replace(crawl_count=7))
    partition.flush()
    partition.abandon()
    tail = max(directory.glob("log-*")).read_bytes()
    (newest,) = (path for path in directory.glob("snap-*") if path.name != "snap-1.meguri")
    newest.write_bytes(b"damaged")
    last = LivePartition(directory, disk=Disk(), hour=HOUR, meta={})
    assert last.opened.frames == 0
    assert [last.get(row).crawl_count for row in range(len(last))] == [0, 0]
    last.abandon()
    assert (tail,) == tuple(path.read_bytes() for path in directory.glob("log-*.tail"))


def test_the_directories_of_the_reference_become_ours(tmp_path: Path) -> None:
    source = VECTOR_FILES / "store" / "snapshot-and-tail"
    directory = tmp_path / "p"
    directory.mkdir()
    for path in source.iterdir():
        (directory / path.name).write_bytes(path.read_bytes())
    partition = LivePartition(directory, disk=Disk(), hour=HOUR, meta={})
    assert len(partition) > 0
    assert "made by other software" in partition.opened.notes[-1]
    rows = len(partition)
    partition.close(HOUR)
    again = LivePartition(directory, disk=Disk(), hour=HOUR, meta={})
    assert len(again) == rows
    again.abandon()


def test_a_row_with_what_is_not_known_here_is_crawled_like_others(tmp_path: Path) -> None:
    """A source of other software's own, and a date that no calendar has."""
    url = "http://b.test/"
    key = url_key(url, Identity.CANONICAL)
    foreign(tmp_path / "p", [(key, url)], source=200, last_modified=2**32 - 1, last_crawled=HOUR - 9)
    meta = {b"amicrawl.identity": b"canonical"}
    frontier = frontier_on(LivePartition(tmp_path / "p", disk=Disk(), hour=HOUR, meta=meta))
    dispatch = frontier.next(0.0)
    assert dispatch is not None
    seed = dispatch.offer.seed
    assert (seed.url, seed.last_modified, dispatch.offer.source) == (url, "", Source.LINK)
    frontier.close()


@pytest.mark.parametrize("identity", [b"weird", b"\xff\xfe"])
def test_an_unknown_way_to_tell_urls_apart_is_refused_behind_damage_too(
    tmp_path: Path, identity: bytes
) -> None:
    meta = {b"amicrawl.identity": identity}
    frontier = frontier_on(LivePartition(tmp_path / "p", disk=Disk(), hour=HOUR, meta=meta))
    for url in LINKED:
        frontier.offer(Offer(Seed(url), url_key(url, Identity.CANONICAL), Source.LINK))
    frontier.flush()
    frontier.abandon()
    log = tmp_path / "p" / "log-2"
    block = bytearray(log.read_bytes())
    block[20] ^= 1
    log.write_bytes(block)
    with pytest.raises(InputError, match=r"not known here.*frontier rebuild"):
        LivePartition(tmp_path / "p", disk=Disk(), hour=HOUR, meta={})


@pytest.mark.parametrize("identity", [b"weird", b"\xff\xfe"])
def test_a_frontier_that_tells_urls_apart_in_an_unknown_way_is_refused(
    tmp_path: Path, identity: bytes
) -> None:
    LivePartition(tmp_path / "p", disk=Disk(), hour=HOUR, meta={b"amicrawl.identity": identity}).close(
        HOUR
    )
    with pytest.raises(InputError, match=r"not known here.*frontier rebuild"):
        LivePartition(tmp_path / "p", disk=Disk(), hour=HOUR, meta={})
