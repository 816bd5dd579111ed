"""The outbox of a partition: what was kept is sent, whatever a crash left of it."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest
from faulty_disks import FaultyDisk, KilledError, QuickDisk

from amicrawl.disk import Disk
from amicrawl.errors import OutputError
from amicrawl.frontier import Source
from amicrawl.partition.batch import MOST_LINKS, PartitionLink, encoded_link, links_in
from amicrawl.partition.outbox import FILE_NAME, MARK_NAME, Outbox
from amicrawl.seed import Seed

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ["a", "b\N{BULLET}", "c\ud800", "d\t\n"]


def link(name: str) -> str:
    return encoded_link(PartitionLink(Seed(f"http://example.org/{name}"), Source.LINK, hops=2))


def urls_of(outbox: Outbox, *, shut: tuple[int, ...] = ()) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for parcel in outbox.parcels(most=100, shut=shut):
        links, faults = links_in(parcel.batch)
        assert faults == []
        assert len(links) == parcel.links
        found.setdefault(parcel.recipient, []).extend(each.seed.url for each in links)
    return found


def filled(directory: Path) -> Outbox:
    outbox = Outbox(directory, disk=Disk())
    for number, name in enumerate(NAMES):
        outbox.append(number % 2, [link(name), link(name + "x")])
    outbox.sync()
    return outbox


def expected(lines: int) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for number, name in enumerate(NAMES[:lines]):
        urls = [f"http://example.org/{name}", f"http://example.org/{name}x"]
        found.setdefault(number % 2, []).extend(urls)
    return found


def test_what_was_kept_is_there_after_a_crash(tmp_path: Path) -> None:
    filled(tmp_path).abandon()
    again = Outbox(tmp_path, disk=Disk())
    assert urls_of(again) == expected(len(NAMES))
    assert not again.is_empty


def test_a_torn_outbox_keeps_its_whole_lines_at_every_cut(tmp_path: Path) -> None:
    filled(tmp_path).abandon()
    whole = (tmp_path / FILE_NAME).read_bytes()
    for cut in range(len(whole) + 1):
        (tmp_path / FILE_NAME).write_bytes(whole[:cut])
        again = Outbox(tmp_path, disk=QuickDisk())
        lines = whole[:cut].count(b"\n")
        assert urls_of(again) == expected(lines), cut
        again.append(5, [link("new")])
        again.sync()
        again.abandon()
        after = Outbox(tmp_path, disk=QuickDisk())
        assert urls_of(after) == expected(lines) | {5: ["http://example.org/new"]}, cut
        after.abandon()


def test_a_line_with_a_wrong_octet_ends_the_outbox_there(tmp_path: Path) -> None:
    filled(tmp_path).abandon()
    whole = bytearray((tmp_path / FILE_NAME).read_bytes())
    start = whole.index(b"\n") + 1
    for place in (start, start + 8, start + 12, whole.index(b"\n", start)):
        damaged = bytearray(whole)
        damaged[place] ^= 1
        (tmp_path / FILE_NAME).write_bytes(damaged)
        again = Outbox(tmp_path, disk=Disk())
        assert urls_of(again) == expected(1)
        again.abandon()


def test_what_was_sent_is_not_sent_again_once_it_is_marked(tmp_path: Path) -> None:
    outbox = filled(tmp_path)
    outbox.begin_epoch("7")
    for parcel in outbox.parcels(most=100, shut=(1,)):
        outbox.sent(parcel)
    outbox.write_mark()
    assert urls_of(outbox) == {1: expected(len(NAMES))[1]}
    outbox.abandon()
    # The mark cannot be behind the line that was not sent: what came after that one is sent twice.
    again = Outbox(tmp_path, disk=Disk())
    assert urls_of(again)[1] == expected(len(NAMES))[1]
    for parcel in again.parcels(most=100):
        again.sent(parcel)
    assert again.is_empty
    again.close()
    assert Outbox(tmp_path, disk=Disk()).is_empty


def test_every_cut_of_the_mark_has_all_sent_again(tmp_path: Path) -> None:
    outbox = filled(tmp_path)
    outbox.begin_epoch("7")
    for parcel in outbox.parcels(most=100):
        outbox.sent(parcel)
    outbox.close()
    mark = (tmp_path / MARK_NAME).read_bytes()
    for cut in range(len(mark)):
        (tmp_path / MARK_NAME).write_bytes(mark[:cut])
        again = Outbox(tmp_path, disk=Disk())
        assert urls_of(again) == expected(len(NAMES))
        again.abandon()


@pytest.mark.parametrize("said", ["[]", '{"epoch": 1, "at": 3}', '{"epoch": "1", "at": -3}', "null"])
def test_a_mark_that_says_nothing_counts_as_none(tmp_path: Path, said: str) -> None:
    filled(tmp_path).abandon()
    (tmp_path / MARK_NAME).write_text(said)
    assert urls_of(Outbox(tmp_path, disk=Disk())) == expected(len(NAMES))


def test_a_mark_that_cannot_be_read_counts_as_none(tmp_path: Path) -> None:
    filled(tmp_path).abandon()
    (tmp_path / MARK_NAME).mkdir()
    assert urls_of(Outbox(tmp_path, disk=Disk())) == expected(len(NAMES))


@pytest.mark.parametrize("at", [5, 10**9, 2**63, 2**64 - 1])
def test_a_mark_that_is_not_between_two_lines_loses_nothing_that_is_whole(
    tmp_path: Path, at: int
) -> None:
    filled(tmp_path).abandon()
    (tmp_path / MARK_NAME).write_text(f'{{"epoch": "7", "at": {at}}}')
    again = Outbox(tmp_path, disk=Disk())
    assert urls_of(again) == expected(len(NAMES))
    assert (tmp_path / FILE_NAME).read_bytes().count(b"\n") == len(NAMES)


def test_another_epoch_has_all_sent_again(tmp_path: Path) -> None:
    outbox = filled(tmp_path)
    assert outbox.begin_epoch("7")
    for parcel in outbox.parcels(most=100):
        outbox.sent(parcel)
    assert outbox.is_empty
    assert not outbox.begin_epoch("7")
    assert outbox.is_empty
    assert outbox.begin_epoch("8")
    assert urls_of(outbox) == expected(len(NAMES))
    outbox.close()
    again = Outbox(tmp_path, disk=Disk())
    assert not again.begin_epoch("8")
    assert urls_of(again) == expected(len(NAMES))


def test_batches_are_bounded_and_a_long_list_makes_several(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path, disk=Disk())
    outbox.append(3, [link(str(number)) for number in range(3 * MOST_LINKS + 1)])
    outbox.flush()
    parcels = outbox.parcels(most=100)
    assert [parcel.links for parcel in parcels] == [MOST_LINKS] * 3 + [1]
    assert len(outbox.parcels(most=2)) == 2


def test_only_what_partitions_that_are_out_do_not_take_may_be_left(tmp_path: Path) -> None:
    outbox = filled(tmp_path)
    assert urls_of(outbox, shut=(0,)).keys() == {1}
    assert not outbox.only_for([0])
    for parcel in outbox.parcels(most=100, shut=(0,)):
        outbox.sent(parcel)
    assert outbox.only_for([0])
    outbox.append(1, [link("late")])
    assert not outbox.only_for([0])


@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize("fatal", range(1, 14))
def test_what_was_told_to_be_kept_is_there_wherever_the_disk_fails(
    tmp_path: Path, fatal: int, killed: bool
) -> None:
    told: list[str] = []
    with contextlib.suppress(OutputError, KilledError):
        outbox = Outbox(tmp_path, disk=FaultyDisk(fatal, killed=killed))
        for name in "abcd":
            outbox.append(1, [link(name)])
            outbox.sync()
            told.append(f"http://example.org/{name}")
            outbox.write_mark()
    again = Outbox(tmp_path, disk=Disk())
    found = urls_of(again).get(1, [])
    assert found[: len(told)] == told
    again.append(1, [link("more")])
    again.sync()
    assert urls_of(again)[1][-1] == "http://example.org/more"


def test_after_a_failure_nothing_is_taken_any_more(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path, disk=FaultyDisk(3))
    outbox.append(1, [link("a")])
    with pytest.raises(OutputError):
        outbox.sync()
    with pytest.raises(OutputError):
        outbox.append(1, [link("b")])


def test_no_link_makes_the_batch_of_others_one_that_cannot_be_read(tmp_path: Path) -> None:
    """A batch of 500 links of the longest URLs would have 30 MB, and a recipient opens 8."""
    outbox = Outbox(tmp_path, disk=Disk())
    names = [f"{number}?" + "x" * 60_000 for number in range(300)]
    outbox.append(1, [link(name) for name in names])
    outbox.sync()
    found: list[str] = []
    while parcels := outbox.parcels(most=16):
        for parcel in parcels:
            links, faults = links_in(parcel.batch)
            assert faults == []
            found += [each.seed.url for each in links]
            outbox.sent(parcel)
    assert found == [f"http://example.org/{name}" for name in names]
