"""Directories that the reference left, some of them damaged: ours opens them in the state they tell.

Two are kept beside this module with what the reference makes of them; the others are looked at where the
full set is at hand.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from faulty_disks import QuickDisk
from meguri.store.partitions import host_frame, intern_frame, url_frame
from urls.vectors import VECTOR_FILES, lines

from amicrawl.meguri.format.schema import EMPTY_ARENA, HOST_ROW, ROW
from amicrawl.meguri.format.verification import read_partition
from amicrawl.meguri.store.generations import Generations
from amicrawl.meguri.store.journal import Journal, read_frames
from amicrawl.meguri.store.logs import replay_logs
from amicrawl.meguri.store.superblock import decode_superblock, encode_slot

if TYPE_CHECKING:
    from pathlib import Path

    from amicrawl.meguri.format.schema import Columns
    from amicrawl.meguri.store.directory import Candidate

LINES = list(lines(VECTOR_FILES, "store.jsonl"))
DIRECTORIES = {line["name"]: line for line in LINES if "directory" in line}
VALUES = [line for line in LINES if line["name"].endswith("-value")]

each_directory = pytest.mark.parametrize("line", DIRECTORIES.values(), ids=DIRECTORIES.keys())


def place_of(line: dict[str, Any]) -> Path:
    return VECTOR_FILES / str(line["directory"])


def copy_of(name: str, directory: Path) -> Path:
    """Return a copy of the reference's directory *name*."""
    copy = directory / name
    copy.mkdir()
    for path in place_of(DIRECTORIES[name]).iterdir():
        shutil.copyfile(path, copy / path.name)
    return copy


class Opened:
    """A partition as its snapshot and logs tell it, in the plainest way."""

    def __init__(self, directory: Path) -> None:
        self.generations = Generations(directory, disk=QuickDisk())
        found = self.generations.choose(read_partition)
        self.candidate: Candidate = found[0]
        self.partition = found[1]
        self.urls: dict[bytes, bytes] = {}
        self.hosts: dict[bytes, bytes] = {}
        self.arena = bytearray(EMPTY_ARENA)
        if self.partition is not None:
            self.urls = rows_of(self.partition.urls, ROW, key_length=16)
            self.hosts = rows_of(self.partition.hosts, HOST_ROW, key_length=8)
            self.arena = bytearray(self.partition.arena)
            assert self.candidate.arena_length in {None, len(self.arena)}
        self.replayed = replay_logs(
            self.candidate.logs,
            first_lsn=self.candidate.lsn,
            on_url=lambda row: self.urls.__setitem__(row[:16], row),
            on_host=lambda row: self.hosts.__setitem__(row[:8], row),
            on_intern=self.arena.extend,
            on_tombstone=lambda key: (self.urls if len(key) == 16 else self.hosts).pop(key, None),
        )

    @property
    def notes(self) -> tuple[str, ...]:
        return (*self.candidate.notes, *self.replayed.notes)

    def told(self) -> dict[str, object]:
        """Return the state in the words of the vectors."""
        return {
            "arena": self.arena.hex(),
            "urls": sorted_rows(self.urls, ROW),
            "hosts": sorted_rows(self.hosts, HOST_ROW),
            "next_lsn": str(self.replayed.next_lsn),
        }


def rows_of(columns: Columns, kind: np.dtype, *, key_length: int) -> dict[bytes, bytes]:
    records = np.empty(len(columns["host_key"]), kind)
    for name in kind.names or ():
        records[name] = columns[name]
    rows = [record.tobytes() for record in records]
    return {row[:key_length]: row for row in rows}


def sorted_rows(rows: dict[bytes, bytes], kind: np.dtype) -> list[list[object]]:
    records = np.frombuffer(b"".join(rows.values()), kind)
    order = [name for name in ("host_key", "path_key") if name in (kind.names or ())]
    return [fields_of(record, kind) for record in np.sort(records, order=order)]


def fields_of(record: np.void, kind: np.dtype) -> list[object]:
    """Return the fields of a row as the vectors write them."""
    fields: list[object] = []
    for name in kind.names or ():
        octets = record[name].tobytes()
        value = int.from_bytes(octets, "little")
        if name in {"host_key", "path_key", "content_fp", "simhash"}:
            fields.append(f"{value:#018x}")
        elif kind[name].kind == "f":
            fields.append(f"{value:#010x}")
        elif kind[name].kind == "V":
            fields.append(octets.hex())
        else:
            fields.append(str(value) if len(octets) == 8 else value)
    return fields


def wanted_of(line: dict[str, Any]) -> dict[str, Any]:
    return {name: line["recovered"][name] for name in ("arena", "urls", "hosts", "next_lsn")}


# Where the reference opens an empty partition although a snapshot and a log are there, ours reads them.
# They are those of the directory named here, which has its superblock.
SAME_AS = {"superblock-missing": "three-generations"}


@each_directory
def test_a_directory_of_the_reference_opens_in_the_state_it_tells(
    line: dict[str, Any], tmp_path: Path
) -> None:
    opened = Opened(copy_of(line["name"], tmp_path))
    wanted = DIRECTORIES[SAME_AS.get(line["name"], line["name"])]
    assert opened.told() == wanted_of(wanted)
    assert opened.candidate.generation == int(wanted["recovered"]["generation"])
    if opened.partition is not None:
        identity = (opened.partition.partition_id, opened.partition.created)
        assert identity == (wanted["recovered"]["partition_id"], wanted["recovered"]["created_hours"])
    damaged = {"torn-tail", "torn-crc", "flipped-early", "snapshot-and-torn-tail"}
    assert bool(opened.replayed.notes) == (line["name"] in damaged)
    assert bool(opened.candidate.notes) == (line["name"] in {"superblock-missing", "older-slot-bad"})


@each_directory
def test_writing_goes_on_behind_what_the_reference_left(line: dict[str, Any], tmp_path: Path) -> None:
    directory = copy_of(line["name"], tmp_path)
    opened = Opened(directory)
    opened.generations.repair(opened.replayed)
    journal = Journal(opened.generations.begin_log(), disk=QuickDisk())
    before, lsn = opened.told(), opened.replayed.next_lsn
    row = b"\xff" * 16 + bytes(87)
    journal.append(intern_frame(lsn, b"\1x") + url_frame(lsn + 1, row))
    journal.sync()
    journal.close()
    again = Opened(directory)
    assert again.replayed.notes == ()
    assert again.urls.pop(row[:16]) == row
    assert again.arena[-2:] == b"\1x"
    del again.arena[-2:]
    assert again.told() == {**before, "next_lsn": str(lsn + 2)}


@each_directory
def test_the_frames_of_a_log_are_those_that_the_reference_reads(
    line: dict[str, Any], tmp_path: Path
) -> None:
    for log in line["logs"] or []:
        block = (place_of(line) / log["file"]).read_bytes()
        found = list(read_frames(block))
        assert sum(frame.length for frame in found) == log["intact_bytes"]
        for frame, wanted in zip(found, log["frames"] or [], strict=True):
            assert (
                frame.offset,
                str(frame.lsn),
                frame.kind.name.lower(),
                frame.tombstone,
                frame.length,
            ) == (*(wanted[name] for name in ("offset", "lsn", "kind", "tombstone", "length")),)
            if "value" in wanted:
                assert frame.body.hex() == wanted["value"]
                assert intern_frame(frame.lsn, frame.body) == block[frame.offset :][: frame.length]
            if "record" in wanted:
                kind, encode = (ROW, url_frame) if wanted["kind"] == "url" else (HOST_ROW, host_frame)
                assert fields_of(np.frombuffer(frame.body, kind)[0], kind) == wanted["record"]
                assert encode(frame.lsn, frame.body) == block[frame.offset :][: frame.length]


@each_directory
def test_a_superblock_of_the_reference_reads_and_would_be_written_the_same(line: dict[str, Any]) -> None:
    if "superblock_slots" not in line:
        assert not (place_of(line) / "super").exists()
        return
    block = (place_of(line) / "super").read_bytes()
    slots, _ = decode_superblock(block)
    wanted = {slot["generation"]: slot for slot in line["superblock_slots"] if slot["valid"]}
    assert {str(slot.generation) for slot in slots} == set(wanted)
    for slot in slots:
        said = wanted[str(slot.generation)]
        assert [str(slot.lsn), str(slot.arena_length)] == [said["frontier_lsn"], said["arena_length"]]
        assert [slot.snapshot, slot.log] == [said["snapshot"], said["log"]]
        assert encode_slot(slot) == block[slot.generation % 2 * 256 :][:256]


@pytest.mark.parametrize("line", VALUES, ids=lambda line: line["record"][1])
def test_a_row_has_the_octets_of_the_references_value(line: dict[str, Any]) -> None:
    kind, key_length = (ROW, 16) if line["name"] == "url-value" else (HOST_ROW, 8)
    octets = b""
    for name, value in zip(kind.names or (), line["record"], strict=True):
        if kind[name].kind == "V":
            octets += bytes.fromhex(value)
        else:
            number = int(value, 0) if isinstance(value, str) else value
            octets += number.to_bytes(kind[name].itemsize, "little")
    assert octets[key_length:].hex() == line["value"]
    assert fields_of(np.frombuffer(octets, kind)[0], kind) == line["record"]


def test_the_newest_snapshot_is_read_where_the_newer_slot_is_damaged(tmp_path: Path) -> None:
    """The reference cannot open this: it has removed the snapshot that the older slot names."""
    directory = copy_of("three-generations", tmp_path)
    block = bytearray((directory / "super").read_bytes())
    block[300] ^= 1
    (directory / "super").write_bytes(block)
    opened = Opened(directory)
    assert opened.told() == wanted_of(DIRECTORIES["three-generations"])
    assert [note.removeprefix(f"{directory}/") for note in opened.notes] == [
        "super, byte 508: a slot is damaged, its checksum is wrong; it was passed over.",
        "snap-2.meguri is missing though the superblock names it.",
        "The partition was opened from snap-3.meguri + log-4.",
    ]
