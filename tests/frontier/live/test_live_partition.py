"""A live partition: what was flushed is there again, whatever happened to the directory since."""

from __future__ import annotations

import os
import random
import shutil
import struct
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from frontier.live.crawls import (
    HOUR,
    META,
    TracedPartition,
    as_killed,
    contents_by,
    contents_in,
    contents_of,
    fetched,
    frontier_on,
    offer_of,
    opened,
    statuses_in,
    taken,
)
from frontier.live.disks import CountingDisk, FailingDisk
from meguri.store.partitions import host_frame, intern_frame, names_in, tombstone_frame, url_frame

from amicrawl.disk import Disk
from amicrawl.errors import AmicrawlError, DamagedFileError, InputError, OutputError, UsageError
from amicrawl.frontier import Found, Outcome
from amicrawl.meguri import LivePartition, Status, find_damage
from amicrawl.meguri.arena import entry_of
from amicrawl.meguri.format.reader import FrontierFile
from amicrawl.meguri.format.verification import read_partition, verify
from amicrawl.meguri.opening import load
from amicrawl.meguri.rows import HostRow, UrlRow
from amicrawl.meguri.store.journal import frame_at, read_frames

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from frontier.live.crawls import Contents

OK = Outcome(200, found=Found("ab" * 20, '"tag"', "Mon", 1_700_000_000_123))


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "frontier"


def add(partition: LivePartition, host: int, path: int, *, priority: float = 0.0) -> int:
    """Add a row whose URL says its key; return its number."""
    number = partition.claim(host, path)
    assert number is not None
    row = (host, path, Status.SCHEDULED, priority, 0, 0)
    partition.fill(number, row, entry_of(f"http://{host}.test/{path}".encode()), first_seen=HOUR)
    return number


def change(partition: LivePartition, host: int, path: int, **fields: int) -> None:
    number = partition.find(host, path)
    assert number is not None
    partition.put(number, partition.get(number)._replace(**fields))


def reopened(directory: Path) -> tuple[Contents, tuple[str, ...]]:
    """Return what is in *directory*, opened twice since the first time mends it, and the notes."""
    first = opened(directory)
    notes, contents = first.opened.notes, contents_of(first)
    first.abandon()
    second = opened(directory)
    assert contents_of(second) == contents
    second.abandon()
    assert not [name for name in names_in(directory) if name.endswith(".open")]
    return contents, notes


def three_generations(directory: Path) -> tuple[TracedPartition, Contents]:
    """Return a partition, abandoned, of three snapshots, and what it says."""
    partition = TracedPartition(directory, [], disk=CountingDisk())
    for first in (0, 10, 20):
        for path in range(first, first + 6):
            add(partition, path % 3, path)
        partition.put_host(HostRow(first, url_count=first))
        change(partition, 0, 0, crawl_count=first)
        partition.flush()
        partition.snapshot(HOUR + first)
        change(partition, 0, first + 3 - first % 3, error_count=first + 1)
        add(partition, 9, first)
        partition.flush()
        partition._end_snapshot()
    contents = contents_of(partition)
    partition.abandon()
    return partition, contents


def newest(directory: Path, pattern: str = "snap-*.meguri") -> Path:
    return max(directory.glob(pattern), key=lambda path: int("".join(filter(str.isdigit, path.name))))


def flip(path: Path, at: int) -> None:
    block = bytearray(path.read_bytes())
    block[at] ^= 0x10
    path.write_bytes(block)


def test_a_new_partition_is_empty_and_says_so(directory: Path) -> None:
    partition = opened(directory)
    assert partition.opened.is_new
    assert len(partition) == 0
    assert partition.find(1, 2) is None
    assert partition.host(1) is None
    assert {"super", "snap-1.meguri"} <= set(names_in(directory))
    partition.close(HOUR)


def test_a_row_is_found_read_and_changed(directory: Path) -> None:
    partition = opened(directory)
    number = add(partition, 2**64 - 1, 7, priority=2.5)
    row = partition.get(number)
    assert (row.host, row.path, row.priority) == (2**64 - 1, 7, 2.5)
    assert partition.texts_at(row.url_ref) == (b"http://18446744073709551615.test/7", b"")
    partition.put(number, row._replace(etag_ref=partition.intern(entry_of(b'"e"'))))
    assert partition.texts_at(partition.get(number).etag_ref)[0] == b'"e"'
    assert partition.find(2**64 - 1, 7) == number
    assert partition.claim(2**64 - 1, 7) is None
    assert len(partition) == 1
    partition.close(HOUR)


def test_a_host_is_kept_and_changed(directory: Path) -> None:
    partition = opened(directory)
    partition.put_host(HostRow(7, url_count=1))
    partition.put_host(HostRow(8, url_count=2, resolved_ip=bytes(range(16))))
    partition.put_host(HostRow(7, url_count=3, host_score=0.5))
    partition.close(HOUR)
    again = opened(directory)
    assert again.host(7) == HostRow(7, url_count=3, host_score=0.5)
    assert again.host(8) == HostRow(8, url_count=2, resolved_ip=bytes(range(16)))
    again.close(HOUR)


def test_after_a_clean_end_everything_is_in_the_snapshot(directory: Path) -> None:
    partition = opened(directory)
    for path in range(50):
        add(partition, 50 - path, path)
    partition.put_host(HostRow(7))
    contents = contents_of(partition)
    partition.close(HOUR + 5)
    again = opened(directory)
    assert (again.opened.is_new, again.opened.frames, len(again.opened.touched)) == (False, 0, 0)
    assert (again.state.created, again.opened.notes) == (HOUR + 5, ())
    assert contents_of(again) == contents
    assert contents_in(read_partition(newest(directory))) == contents
    again.close(HOUR + 6)


def test_where_nothing_changed_no_snapshot_is_written(directory: Path) -> None:
    opened(directory).close(HOUR)
    before = [path.name for path in directory.glob("snap-*")]
    opened(directory).close(HOUR + 1)
    assert [path.name for path in directory.glob("snap-*")] == before


def test_what_was_flushed_outlives_a_kill_and_the_rest_leaves_no_trace(directory: Path) -> None:
    partition = opened(directory)
    add(partition, 1, 1)
    partition.put_host(HostRow(1, url_count=1))
    partition.flush()
    contents = contents_of(partition)
    add(partition, 1, 2)
    change(partition, 1, 1, crawl_count=9)
    partition.abandon()
    again = opened(directory)
    assert contents_of(again) == contents
    assert (again.opened.frames, again.opened.touched.since_begin()) == (3, {0})
    assert again.opened.notes == ()
    assert again.claim(1, 2) == 1
    again.abandon()


def test_two_kills_in_a_row_lose_nothing(directory: Path) -> None:
    for path in range(4):
        partition = opened(directory)
        assert len(partition) == path
        add(partition, 1, path)
        change(partition, 1, 0, crawl_count=path)
        partition.flush()
        contents = contents_of(partition)
        partition.abandon()
    assert reopened(directory) == (contents, ())


def test_what_was_appended_before_a_snapshot_began_is_flushed_after(directory: Path) -> None:
    """It goes to the journal before, which the snapshot may never make superfluous."""
    disk = CountingDisk()
    opened(directory).abandon()
    partition = opened(directory, disk=disk)
    add(partition, 1, 1)
    disk.go_on.clear()
    partition.snapshot(HOUR)
    partition.flush()
    killed = as_killed(directory)
    disk.go_on.set()
    contents = contents_of(partition)
    partition.abandon()
    assert reopened(killed)[0] == contents


def test_a_snapshot_holds_the_moment_it_was_begun_and_the_journal_the_rest(directory: Path) -> None:
    opened(directory).abandon()
    disk = CountingDisk()
    partition = opened(directory, disk=disk)
    for path in range(40):
        add(partition, path % 7, path)
    partition.put_host(HostRow(3, url_count=1))
    then = contents_of(partition)
    disk.go_on.clear()
    partition.snapshot(HOUR + 1)
    for path in range(0, 40, 3):
        change(partition, path % 7, path, crawl_count=path + 1, status=Status.CRAWLED)
    for path in range(40, 60):
        add(partition, path % 7, path)
    partition.put_host(HostRow(3, url_count=2))
    partition.put_host(HostRow(4, url_count=3))
    now = contents_of(partition)
    partition.flush()
    killed = as_killed(directory)
    disk.go_on.set()
    partition._end_snapshot()
    assert contents_of(partition) == now
    partition.abandon()
    assert contents_in(read_partition(newest(directory))) == then
    assert reopened(directory) == (now, ())
    assert reopened(killed)[0] == now


def test_rows_may_change_while_they_are_copied(directory: Path) -> None:
    """Nothing holds the snapshot's thread back here: whatever it sees, it writes the moment."""
    partition = opened(directory)
    for path in range(3000):
        add(partition, path % 11, path)
    for version in range(1, 9):
        then = contents_of(partition)
        partition.snapshot(HOUR + version)
        for number in range(3000):
            row = partition.get(number)
            partition.put(number, row._replace(crawl_count=version, content_fp=version << 50))
        for path in range(20):
            add(partition, version, 10_000 * version + path)
        partition._end_snapshot()
        assert contents_in(read_partition(newest(directory))) == then
    now = contents_of(partition)
    partition.close(HOUR)
    assert reopened(directory) == (now, ())


def test_rows_that_came_in_any_order_are_sorted_among_those_of_the_snapshot(directory: Path) -> None:
    dice = random.Random(5)
    keys = [(dice.choice([0, 1, 2**64 - 1, 77]), dice.randrange(2**64)) for _ in range(500)]
    for part in range(0, 500, 100):
        partition = opened(directory)
        for key in keys[part : part + 100]:
            add(partition, *key)
        contents = contents_of(partition)
        partition.close(HOUR)
        with FrontierFile.open(newest(directory)) as file:
            verify(file)
            hosts, paths = file.url_column("host_key"), file.url_column("path_key")
            assert list(zip(hosts.tolist(), paths.tolist(), strict=True)) == sorted(keys[: part + 100])
    assert reopened(directory) == (contents, ())


def test_generations_follow_each_other_and_the_older_go(directory: Path) -> None:
    partition, contents = three_generations(directory)
    assert len(list(directory.glob("snap-*"))) == 2
    assert contents == contents_by(partition.trace)
    assert reopened(directory) == (contents, ())


def test_another_identity_is_refused_and_changes_nothing(directory: Path) -> None:
    partition = opened(directory)
    add(partition, 1, 1)
    partition.close(HOUR)
    before = names_in(directory)
    with pytest.raises(UsageError, match="exact"):
        LivePartition(directory, disk=Disk(), hour=HOUR, meta={b"amicrawl.identity": b"canonical"})
    assert names_in(directory) == before
    opened(directory).close(HOUR)


@pytest.mark.parametrize("fatal", range(1, 40))
def test_the_identity_is_on_disk_before_the_first_row_is(directory: Path, fatal: int) -> None:
    """Even where the first attempt to begin a partition came to nothing, wherever that was."""
    try:
        opened(directory, disk=FailingDisk(fatal)).abandon()
    except OutputError:
        partition = opened(directory)
        add(partition, 1, 1)
        partition.flush()
        partition.abandon()
        with pytest.raises(UsageError, match="exact"):
            LivePartition(directory, disk=Disk(), hour=HOUR, meta={b"amicrawl.identity": b"canonical"})
    again = opened(directory)
    assert again.state.created == HOUR
    again.abandon()


def test_an_identity_that_is_not_known_here_is_refused_by_its_name(directory: Path) -> None:
    made = LivePartition(
        directory, disk=CountingDisk(), hour=HOUR, meta={b"amicrawl.identity": b"odd\xff"}
    )
    made.close(HOUR)
    with pytest.raises(InputError, match=r"tells URLs apart by 'odd.*xff', which is not known"):
        opened(directory)


def test_a_directory_is_of_one_crawl_at_a_time(directory: Path) -> None:
    partition = opened(directory)
    with pytest.raises(UsageError, match="Another crawl"):
        opened(directory)
    partition.abandon()
    opened(directory).close(HOUR)


def test_a_partition_that_cannot_be_opened_is_not_locked(directory: Path) -> None:
    opened(directory).abandon()
    with pytest.raises(OutputError):
        opened(directory, disk=FailingDisk(2))
    opened(directory).abandon()


def test_a_torn_tail_is_cut_and_writing_goes_on_behind_it(directory: Path) -> None:
    partition = opened(directory)
    add(partition, 1, 1)
    partition.flush()
    contents = contents_of(partition)
    partition.abandon()
    log = newest(directory, "log-*")
    whole = log.read_bytes()
    log.write_bytes(whole + b"torn!")
    again = opened(directory)
    assert contents_of(again) == contents
    assert again.opened.notes[0].startswith(f"{log} counts up to byte {len(whole)} of {len(whole) + 5}")
    assert log.with_name(log.name + ".tail").read_bytes() == b"torn!"
    add(again, 1, 2)
    again.flush()
    contents = contents_of(again)
    again.abandon()
    assert reopened(directory) == (contents, ())


def test_at_every_cut_of_the_journal_the_whole_frames_count(directory: Path) -> None:
    partition = TracedPartition(directory, [], disk=CountingDisk())
    add(partition, 1, 1)
    change(partition, 1, 1, crawl_count=1)
    partition.put_host(HostRow(1))
    add(partition, 2, 2)
    partition.flush()
    partition.abandon()
    name = newest(directory, "log-*").name
    block = (directory / name).read_bytes()
    ends = [0, *(frame.offset + frame.length for frame in read_frames(block))]
    assert len(ends) == 7
    for cut in range(0, len(block), 9):
        copy = as_killed(directory, "cut")
        (copy / name).write_bytes(block[:cut])
        frames = sum(end <= cut for end in ends) - 1
        again = TracedPartition(copy, partition.trace[:frames], disk=CountingDisk())
        assert contents_of(again) == contents_by(partition.trace[:frames])
        add(again, 5, 5)
        again.flush()
        again.abandon()
        assert reopened(copy) == (contents_by(again.trace), ())


def test_at_any_damage_to_the_newest_snapshot_the_previous_one_and_the_logs_say_the_same(
    directory: Path,
) -> None:
    """Bytes that nothing depends on may be damaged unnoticed; then the snapshot counts."""
    _, contents = three_generations(directory)
    name = newest(directory).name
    size = (directory / name).stat().st_size
    passed_over = 0
    for at in range(0, size, size // 40):
        copy = as_killed(directory, "damaged")
        flip(copy / name, at)
        found, notes = reopened(copy)
        assert found == contents
        passed_over += any(f"{name}" in note and "passed over" in note for note in notes)
    assert passed_over > 30


@pytest.mark.parametrize("left", [0, 1, 63, 500])
def test_a_snapshot_cut_short_is_made_up_for(directory: Path, left: int) -> None:
    _, contents = three_generations(directory)
    snapshot = newest(directory)
    snapshot.write_bytes(snapshot.read_bytes()[:left])
    found, notes = reopened(directory)
    assert found == contents
    assert any("passed over" in note for note in notes)


def test_a_snapshot_that_is_missing_is_made_up_for(directory: Path) -> None:
    _, contents = three_generations(directory)
    newest(directory).unlink()
    found, notes = reopened(directory)
    assert found == contents
    assert any("is missing though the superblock names it" in note for note in notes)


def test_behind_a_damaged_snapshot_the_partition_goes_on_for_generations(directory: Path) -> None:
    _, contents = three_generations(directory)
    flip(newest(directory), 100)
    for round_ in range(4):
        partition = opened(directory)
        assert contents_of(partition) == contents
        assert bool(partition.opened.notes) is (round_ == 0)
        add(partition, 30 + round_, 1)
        contents = contents_of(partition)
        partition.close(HOUR)
    assert reopened(directory) == (contents, ())


def test_with_every_snapshot_damaged_the_partition_is_refused_and_never_empty(directory: Path) -> None:
    three_generations(directory)
    for path in directory.glob("snap-*"):
        flip(path, 100)
    before = {path: path.read_bytes() for path in directory.iterdir()}
    with pytest.raises(DamagedFileError, match="Restore the files"):
        opened(directory)
    assert {path: path.read_bytes() for path in directory.iterdir()} == before


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.unlink(),
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(bytes(512)),
        lambda path: path.write_bytes(path.read_bytes()[:300]),
        lambda path: flip(path, 8),
        lambda path: flip(path, 264),
        lambda path: path.write_bytes(bytes([1] * 256) + path.read_bytes()[:256]),
        lambda path: path.write_bytes(b"\xff" * 512),
    ],
)
def test_a_superblock_damaged_or_missing_is_made_up_for(
    directory: Path, damage: Callable[[Path], object]
) -> None:
    _, contents = three_generations(directory)
    damage(directory / "super")
    partition = opened(directory)
    assert contents_of(partition) == contents
    notes = partition.opened.notes
    add(partition, 40, 1)
    contents = contents_of(partition)
    partition.close(HOUR)
    assert notes
    assert reopened(directory) == (contents, ())


def test_a_snapshot_that_fails_is_told_and_costs_nothing(directory: Path) -> None:
    class FullForSnapshots(CountingDisk):
        full = False

        def create(self, path: Path) -> int:
            if self.full and path.name.startswith("snap-"):
                raise OSError(28, "No space left on device")
            return super().create(path)

    disk = FullForSnapshots()
    partition = opened(directory, disk=disk)
    add(partition, 1, 1)
    disk.full = True
    partition.snapshot(HOUR)
    add(partition, 1, 2)
    partition._snapshot.wait()  # type: ignore[union-attr]
    with pytest.raises(OutputError, match="No space left"):
        partition.poll()
    partition.poll()
    add(partition, 1, 3)
    partition.flush()
    contents = contents_of(partition)
    killed = as_killed(directory)
    disk.full = False
    partition.close(HOUR)
    assert reopened(killed) == (contents, ())
    assert reopened(directory) == (contents, ())
    assert contents_in(read_partition(newest(directory))) == contents


def test_a_snapshot_is_due_when_the_journal_is_long(directory: Path) -> None:
    partition = opened(directory)
    due = []
    for size in (0, 65_000_000, 3_000_000):
        partition.intern(entry_of(b"x" * size))
        partition.flush()
        due.append(partition.snapshot_is_due)
    partition.snapshot(HOUR)
    due.append(partition.snapshot_is_due)
    partition._end_snapshot()
    assert [*due, partition.snapshot_is_due] == [False, False, True, False, False]
    partition.abandon()


def test_other_software_may_have_removed_rows(directory: Path) -> None:
    partition = TracedPartition(directory, [], disk=CountingDisk())
    for path in range(4):
        add(partition, 1, path)
    partition.flush()
    next_lsn = partition.frames + 1
    partition.abandon()
    with newest(directory, "log-*").open("ab") as log:
        for path in (0, 2):
            log.write(tombstone_frame(next_lsn + path // 2, struct.pack("<QQ", 1, path)))
    again = opened(directory)
    assert len(again) == 2
    assert [again.find(1, path) is None for path in range(4)] == [True, False, True, False]
    frontier = frontier_on(again)
    assert sum(frontier.counts.values()) == len(frontier) == 2
    assert set(taken(frontier)) == {(1, 1), (1, 3)}
    assert frontier.offer(offer_of(1, 2))
    assert set(taken(frontier)) == {(1, 2)}
    frontier.flush()
    contents = contents_of(again)
    killed = as_killed(directory)
    frontier.close()
    assert set(contents.rows) == {struct.pack("<QQ", 1, path) for path in (1, 2, 3)}
    for each in (killed, directory):
        assert reopened(each)[0].rows == contents.rows


def test_a_log_of_other_software_cannot_make_rows_lead_astray(directory: Path) -> None:
    """Whatever a row says, what comes is the row or an error of ours."""
    opened(directory).abandon()
    partition = TracedPartition(directory, [], disk=CountingDisk())
    lsn = partition.frames + 1
    partition.abandon()
    row = UrlRow(1, 1, Status.SCHEDULED, url_ref=10**6)
    newest(directory, "log-*").write_bytes(
        intern_frame(lsn, b"\xff\xff\xff\xff\xff\xff\xff\xff\x7f")
        + url_frame(lsn + 1, row.packed())
        + url_frame(lsn + 2, row._replace(path=2, url_ref=1).packed())
        + url_frame(lsn + 3, row._replace(path=3, status=200).packed())
        + host_frame(lsn + 4, HostRow(1, host_ref=10**9).packed())
    )
    again = opened(directory)
    assert len(again) == 3
    frontier = frontier_on(again)
    for _ in range(2):
        with pytest.raises(AmicrawlError, match="offset"):
            frontier.next(0.0)
    again.abandon()


def test_loading_reads_the_same_and_changes_nothing(directory: Path) -> None:
    _, contents = three_generations(directory)
    log = newest(directory, "log-*")
    log.write_bytes(log.read_bytes() + b"torn!")
    before = {path: path.read_bytes() for path in directory.iterdir()}
    assert contents_in(load(directory)) == contents
    assert {path: path.read_bytes() for path in directory.iterdir()} == before


def test_a_partition_that_is_open_can_be_loaded(directory: Path) -> None:
    partition = opened(directory)
    add(partition, 1, 1)
    partition.flush()
    contents = contents_of(partition)
    add(partition, 1, 2)
    assert contents_in(load(directory)) == contents
    partition.abandon()


def test_what_a_crawl_leaves_is_valid_to_the_last_byte(directory: Path) -> None:
    frontier = frontier_on(opened(directory))
    for path in range(30):
        frontier.offer(offer_of(path % 4, path, extra={"n": path} if path % 2 else None))
    fetched(frontier, OK)
    frontier.close()
    snapshot = newest(directory)
    with FrontierFile.open(snapshot) as file:
        verify(file)
        assert dict(file.meta) == META


def test_a_crawl_in_flight_is_found_in_flight_and_due_again(directory: Path) -> None:
    frontier = frontier_on(opened(directory))
    for path in range(3):
        frontier.offer(offer_of(1, path))
    frontier.settle(frontier.next(0.0).key, OK, 0.0)  # type: ignore[union-attr]
    assert frontier.next(0.0) is not None
    frontier.flush()
    frontier.partition.abandon()
    partition = opened(directory)
    assert sorted(statuses_in(partition).values()) == [
        Status.SCHEDULED,
        Status.IN_FLIGHT,
        Status.CRAWLED,
    ]
    again = frontier_on(partition)
    assert again.lapsed == 1
    assert set(taken(again)) == {(1, 1), (1, 2)}
    partition.abandon()


@pytest.mark.parametrize("orphan", ["snap-9.meguri.open", "super.open", "log-1.tail.open"])
def test_what_was_never_finished_is_removed(directory: Path, orphan: str) -> None:
    _, contents = three_generations(directory)
    (directory / orphan).write_bytes(b"half")
    assert reopened(directory) == (contents, ())


def test_a_snapshot_that_was_never_committed_does_not_count(directory: Path) -> None:
    _, contents = three_generations(directory)
    shutil.copy(newest(directory), directory / "snap-99.meguri")
    assert reopened(directory)[0] == contents


def test_a_row_in_flight_is_journaled_unless_it_is_settled_before_the_flush(
    directory: Path,
) -> None:
    trace: list[bytes] = []
    partition = TracedPartition(directory, trace, disk=CountingDisk())
    for path in range(3):
        add(partition, 1, path)
    partition.flush()
    before = len(trace)
    for path in range(3):
        partition.put_in_flight(path)
    assert partition.has_changed
    change(partition, 1, 1, status=Status.CRAWLED)
    partition.flush()
    frames = [frame_at(block, 0).body for block in trace[before:]]
    assert [(body[8], Status(body[16])) for body in frames] == [
        (1, Status.CRAWLED),
        (0, Status.IN_FLIGHT),
        (2, Status.IN_FLIGHT),
    ]
    contents = contents_of(partition)
    partition.abandon()
    assert reopened(directory) == (contents, ())


def test_a_directory_is_read_again_if_snapshots_took_the_place_of_what_was_listed(
    directory: Path, tmp_path: Path
) -> None:
    """A superblock that is a FIFO holds the reader up between the list of files and the first one."""
    partition = LivePartition(directory, disk=Disk(), hour=HOUR, meta=META)
    add(partition, 1, 1)
    partition.flush()
    watched, super_of_old = tmp_path / "watched", (directory / "super").read_bytes()
    shutil.copytree(directory, watched)
    for path in (2, 3):
        add(partition, 1, path)
        partition.snapshot(HOUR)
    partition.close(HOUR)
    assert set(names_in(directory)) & set(names_in(watched)) == {"super"}
    (watched / "super").unlink()
    os.mkfifo(watched / "super")
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(load, watched)
        with (watched / "super").open("wb") as fifo:
            for listed in watched.iterdir():
                listed.unlink()
            shutil.copytree(directory, watched, dirs_exist_ok=True)
            fifo.write(super_of_old)
        assert len(reading.result().urls["path_key"]) == 3
    assert find_damage(watched).damage == []
