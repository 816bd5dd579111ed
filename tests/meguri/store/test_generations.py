"""Generations: whatever happens to a directory, what was acknowledged is there when it is opened."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from faulty_disks import FaultyDisk, KilledError, QuickDisk
from meguri.store.partitions import (
    PowerCutDisk,
    SmallPartition,
    entry,
    host_frame,
    intern_frame,
    names_in,
    numbers_in,
    read_snapshot,
)

from amicrawl.errors import AmicrawlError, DamagedFileError, InputError, OutputError
from amicrawl.meguri.store.directory import candidates
from amicrawl.meguri.store.generations import Generations
from amicrawl.meguri.store.journal import read_frames
from amicrawl.meguri.store.superblock import Slot, decode_superblock, encode_superblock


def put(directory: Path, *numbers: int) -> None:
    """Open the partition, put URLs, and stop."""
    partition = SmallPartition(directory)
    partition.put(numbers)
    partition.journal.sync()
    partition.close()


def check(directory: Path, *numbers: int) -> SmallPartition:
    """Fail unless the partition has these URLs; it is opened twice, since the first time mends it."""
    first = SmallPartition(directory)
    first.close()
    partition = SmallPartition(directory)
    partition.close()
    assert numbers_in(first) == numbers_in(partition) == sorted(numbers)
    assert not [name for name in names_in(directory) if name.endswith(".open")]
    return first


def three_generations(directory: Path) -> Path:
    """Return a directory with URLs 0 to 9, of which each generation took in some."""
    directory.mkdir(exist_ok=True)
    partition = SmallPartition(directory)
    for first in (0, 3, 6):
        partition.put(range(first, first + 3))
        begun = partition.begin_snapshot()
        partition.put([first])
        partition.journal.sync()
        begun.write()
        begun.commit()
    partition.put([9])
    partition.journal.sync()
    partition.close()
    return directory


def flip(path: Path, at: int) -> None:
    block = bytearray(path.read_bytes())
    block[at] ^= 1
    path.write_bytes(block)


def test_a_new_directory_is_an_empty_partition(tmp_path: Path) -> None:
    partition = SmallPartition(tmp_path)
    assert (partition.candidate.generation, partition.candidate.snapshot) == (0, None)
    assert (partition.next_lsn, partition.notes) == (1, ())
    assert names_in(tmp_path) == ["log-1"]
    partition.close()


def test_a_change_is_there_after_a_stop(tmp_path: Path) -> None:
    put(tmp_path, 1, 2, 3)
    partition = SmallPartition(tmp_path)
    partition.put([2])
    partition.drop(1)
    partition.journal.flush()
    partition.close()
    assert check(tmp_path, 2, 3).notes == ()


def test_behind_a_torn_tail_writing_goes_on_correctly(tmp_path: Path) -> None:
    """Of three puts, five torn bytes and three more puts the reference has three."""
    put(tmp_path, 1, 2, 3)
    whole = (tmp_path / "log-1").read_bytes()
    (tmp_path / "log-1").write_bytes(whole + b"torn!")
    put(tmp_path, 4, 5, 6)
    assert (tmp_path / "log-1").read_bytes() == whole
    assert (tmp_path / "log-1.tail").read_bytes() == b"torn!"
    check(tmp_path, 1, 2, 3, 4, 5, 6)


def test_at_every_cut_of_a_log_the_whole_frames_count_and_writing_goes_on(tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    put(tmp_path / "whole", 1, 2)
    block = (tmp_path / "whole" / "log-1").read_bytes()
    ends = [0, *(frame.offset + frame.length for frame in read_frames(block))]
    for cut in range(len(block)):
        directory = tmp_path / "cut"
        directory.mkdir()
        (directory / "log-1").write_bytes(block[:cut])
        put(directory, 7)
        intact = max(end for end in ends if end <= cut)
        assert (directory / "log-1").stat().st_size == intact
        check(directory, 7, *[1, 2][: ends.index(intact) // 2])
        shutil.rmtree(directory)


def test_what_follows_a_hole_is_never_replayed_and_never_in_the_way(tmp_path: Path) -> None:
    put(tmp_path, 1)
    put(tmp_path, 2)
    flip(tmp_path / "log-1", 60)
    cut_off = (tmp_path / "log-2").read_bytes()
    partition = SmallPartition(tmp_path)
    assert numbers_in(partition) == []
    assert partition.notes[0] == (
        f"{tmp_path}/log-1 counts up to byte 39 of 160: there the frame's checksum is wrong. "
        "What follows is cut off and kept as log-1.tail."
    )
    assert "log-2 counts up to byte 0 of 160: there frame 3 stands where 2 should." in partition.notes[1]
    partition.put([3])
    partition.journal.sync()
    partition.close()
    assert (tmp_path / "log-2.tail").read_bytes() == cut_off
    check(tmp_path, 3)


def test_snapshots_take_the_place_of_what_is_two_generations_old(tmp_path: Path) -> None:
    three_generations(tmp_path)
    assert names_in(tmp_path) == ["log-3", "log-4", "snap-2.meguri", "snap-3.meguri", "super"]
    slots, faults = decode_superblock((tmp_path / "super").read_bytes())
    assert not faults
    assert [(slot.generation, slot.snapshot, slot.log) for slot in slots] == [
        (3, "snap-3.meguri", "log-4"),
        (2, "snap-2.meguri", "log-3"),
    ]
    assert check(tmp_path, *range(10)).notes == ()


def test_the_other_generation_stays_whole_however_often_the_partition_was_opened(tmp_path: Path) -> None:
    for turn in range(8):
        for _ in range(turn % 3):
            put(tmp_path, turn)
        partition = SmallPartition(tmp_path)
        partition.put([turn])
        partition.snapshot()
        partition.close()
        slots, _ = decode_superblock((tmp_path / "super").read_bytes())
        assert len(slots) == min(turn + 1, 2)
        for slot in slots:
            assert (tmp_path / slot.snapshot).exists()
            assert (tmp_path / slot.log).exists()
            assert slot.log == f"log-{slot.generation + 1}"
        flip(tmp_path / slots[0].snapshot, 20)
        check(tmp_path, *range(turn + 1))
        flip(tmp_path / slots[0].snapshot, 20)
    assert len(names_in(tmp_path)) < 12


@pytest.mark.parametrize(
    "ruined",
    [
        ["snap-3.meguri"],
        ["slot 3"],
        ["slot 2"],
        ["super"],
        ["super", "snap-3.meguri"],
        ["slot 3", "snap-3.meguri"],
        ["slot 2", "snap-3.meguri"],
        ["slot 2", "slot 3"],
        ["slot 2", "slot 3", "snap-3.meguri"],
        ["snap-2.meguri"],
        ["super", "snap-2.meguri"],
    ],
)
@pytest.mark.parametrize("by", ["removal", "a flipped bit", "truncation"])
def test_a_damaged_superblock_or_snapshot_loses_nothing_and_is_said(
    tmp_path: Path, ruined: list[str], by: str
) -> None:
    three_generations(tmp_path)
    for name in ruined:
        path = tmp_path / name
        if name.startswith("slot"):
            flip(tmp_path / "super", 100 if name == "slot 2" else 400)
        elif by == "removal":
            path.unlink()
        elif by == "truncation":
            path.write_bytes(path.read_bytes()[:20])
        else:
            flip(path, 10)
            if name == "super":
                flip(path, 300)
    partition = check(tmp_path, *range(10))
    if ruined == ["snap-2.meguri"]:
        assert partition.notes == ()
        return
    said = " ".join(partition.notes)
    assert {"slot 2", "slot 3"}.isdisjoint(ruined) or "a slot is damaged" in said
    assert "super" not in ruined or str(tmp_path / "super") in said
    older = "snap-3.meguri" in ruined or ruined == ["slot 3"]
    used = "snap-2.meguri + log-3 + log-4" if older else "snap-3.meguri + log-4"
    assert partition.notes[-1] == f"The partition was opened from {used}."
    # What comes next is as if nothing had been wrong.
    partition = SmallPartition(tmp_path)
    partition.put([10])
    partition.snapshot()
    partition.put([11])
    partition.snapshot()
    partition.close()
    assert check(tmp_path, *range(12)).notes == ()


def test_before_the_second_snapshot_the_first_can_be_lost(tmp_path: Path) -> None:
    partition = SmallPartition(tmp_path)
    partition.put([1, 2])
    partition.snapshot()
    partition.put([3])
    partition.journal.sync()
    partition.close()
    (tmp_path / "snap-1.meguri").unlink()
    again = check(tmp_path, 1, 2, 3)
    assert again.notes == (
        f"{tmp_path}/snap-1.meguri is missing though the superblock names it.",
        "The partition was opened from log-1 + log-2.",
    )


def test_logs_with_hosts_and_removed_urls_stand_in_for_the_first_snapshot(tmp_path: Path) -> None:
    partition = SmallPartition(tmp_path)
    partition.put([1, 2])
    partition.drop(2)
    partition.journal.append(host_frame(partition.next_lsn, bytes(97)))
    partition.next_lsn += 1
    partition.snapshot()
    partition.put([3])
    partition.journal.sync()
    partition.close()
    flip(tmp_path / "snap-1.meguri", 30)
    check(tmp_path, 1, 3)


@pytest.mark.parametrize(
    "left",
    [["super"], ["snap-3.meguri"], ["super", "snap-3.meguri"], ["log-4"], ["super", "log-3", "log-4"]],
)
def test_a_directory_of_which_nothing_can_be_read_is_never_empty(
    tmp_path: Path, left: list[str]
) -> None:
    three_generations(tmp_path)
    for path in tmp_path.iterdir():
        if path.name not in left:
            path.unlink()
        elif path.name.startswith("snap"):
            flip(path, 30)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(DamagedFileError, match=r"Restore"):
        SmallPartition(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("missing", ["log-4", "log-5", "log-6"])
def test_a_log_that_the_superblock_names_is_missed(tmp_path: Path, missing: str) -> None:
    three_generations(tmp_path)
    put(tmp_path, 10)
    put(tmp_path, 11)
    assert names_in(tmp_path)[:4] == ["log-3", "log-4", "log-5", "log-6"]
    (tmp_path / missing).unlink()
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(DamagedFileError, match=rf"{missing}.*log is missing.*frontier rebuild"):
        SmallPartition(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_log_with_a_number_that_nothing_reaches_is_missed_at_once(tmp_path: Path) -> None:
    three_generations(tmp_path)
    slots, _ = decode_superblock((tmp_path / "super").read_bytes())
    named = [replace(slots[0], newest_log=2**63 - 1), *slots[1:]]
    (tmp_path / "super").write_bytes(encode_superblock(named))
    with pytest.raises(DamagedFileError, match=r"log is missing.*frontier rebuild"):
        SmallPartition(tmp_path)


def test_a_log_is_missed_where_the_newer_slot_is_damaged_too(tmp_path: Path) -> None:
    three_generations(tmp_path)
    put(tmp_path, 10)
    flip(tmp_path / "super", 300)  # generation 3
    (tmp_path / "snap-3.meguri").unlink()
    (tmp_path / "log-3").unlink()
    with pytest.raises(DamagedFileError, match=r"log-3.*log is missing"):
        SmallPartition(tmp_path)


def test_the_newest_generation_of_other_software_counts_before_its_first_change(tmp_path: Path) -> None:
    """It begins the log with the first change, and names none in the superblock."""
    three_generations(tmp_path)
    slots, _ = decode_superblock((tmp_path / "super").read_bytes())
    unnamed = [replace(slot, newest_log=0) for slot in slots]
    (tmp_path / "super").write_bytes(encode_superblock(unnamed))
    (tmp_path / "log-4").unlink()
    best = next(candidates(tmp_path))
    assert (best.generation, best.logs) == (3, ())


def test_the_numbers_of_logs_have_no_gap_whatever_number_a_generation_gets(tmp_path: Path) -> None:
    for turn in range(7):
        for _ in range(turn % 3):
            put(tmp_path, turn)
        partition = SmallPartition(tmp_path)
        partition.put([turn])
        partition.snapshot()
        partition.close()
        numbers = sorted(int(name[4:]) for name in names_in(tmp_path) if name.startswith("log-"))
        assert numbers == list(range(numbers[0], numbers[-1] + 1))


def test_logs_that_do_not_tell_all_are_no_substitute_for_a_snapshot(tmp_path: Path) -> None:
    partition = SmallPartition(tmp_path)
    partition.put([1, 2])
    partition.snapshot()
    partition.close()
    (tmp_path / "snap-1.meguri").unlink()
    log = tmp_path / "log-1"
    log.write_bytes(log.read_bytes()[:-1])
    with pytest.raises(DamagedFileError, match=r"snap-1\.meguri is missing .* Nothing in"):
        SmallPartition(tmp_path)


def test_what_a_superblock_names_is_never_looked_for_elsewhere(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"secret")
    directory = tmp_path / "partition"
    three_generations(directory)
    slots = [
        Slot(3, 1, 1, "../secret", "log-4"),
        Slot(2, 1, 1, "snap-2.meguri", "../../log"),
    ]
    (directory / "super").write_bytes(encode_superblock(slots))
    requested: list[Path] = []
    candidate, _ = Generations(directory, disk=QuickDisk()).choose(requested.append)
    assert requested == [directory / "snap-3.meguri"]
    assert "generation 3 names the files of another" in candidate.notes[0]


def test_choosing_changes_nothing(tmp_path: Path) -> None:
    three_generations(tmp_path)
    with (tmp_path / "log-4").open("ab") as file:
        file.write(b"torn")
    (tmp_path / "snap-9.meguri.open").write_bytes(b"half")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    Generations(tmp_path, disk=FaultyDisk(1)).choose(read_snapshot)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_files_that_are_not_the_partitions_are_left_alone(tmp_path: Path) -> None:
    foreign = [
        "log-0",
        "log-01",
        "log-1.txt",
        "snap-1",
        "notes.open",
        "log-9999999999999999",
        "log-\u0661",
    ]
    for name in foreign:
        (tmp_path / name).write_bytes(b"foreign")
    for turn in range(3):
        partition = SmallPartition(tmp_path)
        partition.put([turn])
        partition.snapshot()
        partition.close()
    assert numbers_in(SmallPartition(tmp_path)) == [0, 1, 2]
    assert all((tmp_path / name).read_bytes() == b"foreign" for name in foreign)


def test_what_was_never_finished_is_removed_and_tails_go_with_their_logs(tmp_path: Path) -> None:
    put(tmp_path, 1)
    for name in ("super.open", "snap-4.meguri.open", "log-1.tail.open"):
        (tmp_path / name).write_bytes(b"half")
    with (tmp_path / "log-1").open("ab") as file:
        file.write(b"torn")
    partition = SmallPartition(tmp_path)
    assert names_in(tmp_path) == ["log-1", "log-1.tail", "log-2"]
    for number in (2, 3):
        partition.put([number])
        partition.snapshot()
    partition.close()
    assert not [name for name in names_in(tmp_path) if "tail" in name]


def test_a_snapshot_that_is_not_there_is_not_committed(tmp_path: Path) -> None:
    partition = SmallPartition(tmp_path)
    begun = partition.begin_snapshot()
    with pytest.raises(AmicrawlError, match="is not there"):
        begun.commit()
    partition.close()


def test_a_directory_that_is_not_there_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        SmallPartition(tmp_path / "nowhere")
    (tmp_path / "super").mkdir()
    with pytest.raises(InputError, match="super cannot be read"):
        next(candidates(tmp_path))


def test_a_snapshot_that_the_disk_will_not_give_is_not_passed_over(tmp_path: Path) -> None:
    """Passing it over would make the next commit remove what a mended disk could still give."""
    three_generations(tmp_path)
    (tmp_path / "snap-3.meguri").unlink()
    (tmp_path / "snap-3.meguri").mkdir()
    with pytest.raises(InputError, match=r"snap-3\.meguri cannot be read"):
        SmallPartition(tmp_path)


def test_a_failed_commit_can_be_followed_by_another(tmp_path: Path) -> None:
    for fatal in count(1):
        directory = tmp_path / str(fatal)
        directory.mkdir()
        three_generations(directory)
        partition = SmallPartition(directory)
        partition.put([10])
        begun = partition.begin_snapshot()
        partition.journal.sync()
        begun.write()
        disk = FaultyDisk(fatal)
        partition.generations._disk = disk
        try:
            begun.commit()
        except OutputError:
            assert disk.failed_at
        else:
            break
        partition.generations._disk = QuickDisk()
        partition.put([11])
        partition.snapshot()
        partition.close()
        check(directory, *range(12))
    assert fatal > 6
    partition.close()


def crawl(directory: Path, disk: FaultyDisk | PowerCutDisk, kept: list[int], *, power: bool) -> None:
    """Do a bit of everything; *kept* has the URLs that were acknowledged."""
    for turn in range(3):
        partition = SmallPartition(directory, disk=disk)
        try:
            for step in range(3):
                first = 100 * turn + 10 * step
                acknowledge(partition, range(first, first + 2), kept, power=power)
                begun = partition.begin_snapshot()
                acknowledge(partition, range(first + 2, first + 4), kept, power=power)
                if step == turn:
                    continue  # a snapshot that is given up
                begun.write()
                acknowledge(partition, range(first + 4, first + 6), kept, power=power)
                begun.commit()
                acknowledge(partition, [first, first + 6], kept, power=power)
            partition.put([999])
        finally:
            partition.close()


def acknowledge(
    partition: SmallPartition, numbers: list[int] | range, kept: list[int], *, power: bool
) -> None:
    partition.put(numbers)
    if power:
        partition.journal.sync()
    else:
        partition.journal.flush()
    kept += numbers


@pytest.mark.parametrize("killed", [False, True])
def test_whatever_call_fails_or_is_the_last_what_was_acknowledged_is_there(
    tmp_path: Path, killed: bool
) -> None:
    seen = set()
    for fatal in count(1):
        directory = tmp_path / "partition"
        directory.mkdir()
        kept: list[int] = []
        disk = FaultyDisk(fatal, killed=killed)
        try:
            crawl(directory, disk, kept, power=fatal % 2 == 0)
        except (OutputError, KilledError):
            assert disk.failed_at
        else:
            assert not disk.failed_at
            break
        best = next(candidates(directory))
        if best.snapshot is not None:
            read_snapshot(best.snapshot)
        # Before the first commit there is none, which looks as if it had been lost.
        assert best.notes == () or not (directory / "super").exists()
        partition = SmallPartition(directory)
        assert set(kept) <= set(numbers_in(partition)), disk.failed_at
        partition.put([1000])
        partition.snapshot()
        partition.put([1001])
        partition.journal.sync()
        partition.close()
        assert {*kept, 1000, 1001} <= set(numbers_in(check_whole(directory)))
        seen.add(disk.failed_at.split()[0])
        shutil.rmtree(directory)
    assert seen == {"create", "write", "sync", "truncate", "rename", "remove", "sync_directory"}


def check_whole(directory: Path) -> SmallPartition:
    partition = SmallPartition(directory)
    partition.close()
    assert not partition.notes
    return partition


def test_mending_that_dies_at_any_call_is_finished_by_the_next(tmp_path: Path) -> None:
    left = tmp_path / "left"
    three_generations(left)
    torn = (left / "log-4").read_bytes()[:-5]
    (left / "log-4").write_bytes(torn)
    (left / "log-5").write_bytes(intern_frame(99, entry(1)))
    (left / "super.open").write_bytes(b"half")
    seen = set()
    for fatal in count(1):
        directory = tmp_path / "partition"
        shutil.copytree(left, directory)
        disk = FaultyDisk(fatal, killed=True)
        try:
            SmallPartition(directory, disk=disk).close()
        except KilledError:
            seen.add(disk.failed_at.split()[0])
        else:
            break
        check(directory, *range(9))
        assert torn.endswith((directory / "log-4.tail").read_bytes())
        shutil.rmtree(directory)
    assert seen == {"create", "write", "sync", "rename", "sync_directory", "truncate", "remove"}


def test_what_was_synced_is_there_after_a_power_cut(tmp_path: Path) -> None:
    dice = random.Random(20261121)
    for turn in range(30):
        directory = tmp_path / str(turn)
        directory.mkdir()
        disk = PowerCutDisk()
        partition = SmallPartition(directory, disk=disk)
        kept: list[int] = []
        for number in range(dice.randint(1, 60)):
            partition.put([number])
            match dice.randrange(5):
                case 0:
                    partition.journal.flush()
                case 1:
                    partition.journal.sync()
                    kept = list(range(number + 1))
                case 2:
                    begun = partition.begin_snapshot()
                    if dice.random() < 0.7:
                        begun.write()
                        begun.commit()
                        kept = list(range(number + 1))
        disk.cut_power(dice)
        partition.close()
        found = numbers_in(SmallPartition(directory))
        assert found == list(range(len(found)))
        assert len(found) >= len(kept)


WRITER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from meguri.store.partitions import SmallPartition
partition = SmallPartition(Path(sys.argv[1]))
first = int(sys.argv[3])
while True:
    partition.put(range(first, first + 5))
    partition.journal.flush()
    first += 5
    print(first, flush=True)
    if first % 50 == 0:
        partition.snapshot()
"""


def test_a_crawl_killed_at_any_moment_keeps_what_it_said_it_had(tmp_path: Path) -> None:
    dice = random.Random(7)
    directory = tmp_path / "partition"
    directory.mkdir()
    first = 0
    for _ in range(4):
        line = [sys.executable, "-c", WRITER, str(directory), str(Path(__file__).parents[2]), str(first)]
        with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            for _ in range(dice.randint(1, 80)):
                first = int(child.stdout.readline())
            child.send_signal(signal.SIGKILL)
            first = max([first, *map(int, child.stdout.read().split())])
        found = numbers_in(check_whole_or_torn(directory))
        assert found[:first] == list(range(first))
        first = len(found) + (-len(found)) % 5


def check_whole_or_torn(directory: Path) -> SmallPartition:
    partition = SmallPartition(directory)
    partition.close()
    assert partition.candidate.notes == ()
    return partition


def test_a_directory_that_the_reference_left_mid_way_keeps_what_its_logs_say(tmp_path: Path) -> None:
    """It writes snapshots in place and removes the older log before the older snapshot.

    So a snapshot may be half, and the superblock's newer slot may be the only one with its files.
    """
    three_generations(tmp_path)
    (tmp_path / "log-3").unlink()
    flip(tmp_path / "super", 400)
    (tmp_path / "snap-4.meguri").write_bytes(b"half")
    (tmp_path / "log-5").write_bytes(b"")
    partition = SmallPartition(tmp_path)
    assert numbers_in(partition) == list(range(10))
    assert "snap-4.meguri, byte 0: the checksum is wrong; the snapshot was passed over." in " ".join(
        partition.notes
    )
    partition.close()
