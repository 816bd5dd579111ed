"""Manifests: the golden ones, what covers the key space, and every cut and flip reported."""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING

import google_crc32c
import pytest
from meguri.format.golden_dumps import VECTOR_FILES

from amicrawl.disk import Disk
from amicrawl.errors import InputError
from amicrawl.meguri.format.faults import FileFault, FrontierFileError, Malformed
from amicrawl.meguri.format.manifest import (
    Flaw,
    Manifest,
    ManifestEntry,
    decode_manifest,
    encode_manifest,
    read_manifest,
    write_manifest,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any

LAST = 2**64 - 1


def _golden() -> Iterator[dict[str, Any]]:
    with (VECTOR_FILES / "map.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            said = json.loads(line)
            if said["kind"] == "manifest":
                yield said


def _entry(said: dict[str, Any]) -> ManifestEntry:
    (ratio,) = struct.unpack(">f", bytes.fromhex(said["bytes_per_url"][2:]))
    return ManifestEntry(
        said["partition_id"],
        said["file"].encode(),
        int(said["host_key_lo"], 0),
        int(said["host_key_hi"], 0),
        int(said["url_rows"]),
        int(said["host_rows"]),
        said["due_min"],
        ratio,
        int(said["footer_crc32c"], 0),
        said["created_hours"],
        said["epoch"],
    )


def three() -> bytes:
    return bytes.fromhex(next(s["bytes"] for s in _golden() if s["name"] == "three"))


def sealed(body: bytes) -> bytes:
    return body + struct.pack("<I", google_crc32c.value(body)) + b"MGM1"


def entry(lo: int, hi: int, number: int = 1) -> ManifestEntry:
    return ManifestEntry(number, b"p", lo, hi, 0, 0, 0, 0.0, 0, 0, 0)


def test_golden_manifests_read_and_write_as_given() -> None:
    for said in _golden():
        manifest = Manifest.of(map(_entry, said["entries_given"] or ()))
        assert list(manifest.entries) == list(map(_entry, said["entries"] or ()))
        assert encode_manifest(manifest).hex() == said["bytes"]
        assert decode_manifest(bytes.fromhex(said["bytes"])) == manifest


def test_golden_queries_give_the_golden_results() -> None:
    for said in _golden():
        manifest = decode_manifest(bytes.fromhex(said["bytes"]))
        for key, owner in said["routes"]:
            found = manifest.owner(int(key, 0))
            assert (None if found is None else found.partition_id) == owner
        for epoch, lo, hi in said["first_gap_by_epoch"]:
            flaw = next(manifest.flaws(epoch), None)
            expected = None if lo is None else (int(lo, 0), int(hi, 0))
            assert (flaw and flaw[:2]) == expected


def test_a_range_within_the_last_one_is_an_overlap_and_no_gap() -> None:
    """The reference counts in 64 bits, begins anew behind the last key, and reports a gap from 0."""
    manifest = Manifest.of([entry(0, LAST), entry(5, 9, 2)])
    assert list(manifest.flaws(0)) == [Flaw(5, LAST, overlap=True)]


def test_every_flaw_is_found_not_only_the_first() -> None:
    manifest = Manifest.of([entry(1, 9), entry(5, 3, 2), entry(8, 20, 3), entry(30, 40, 4)])
    assert list(manifest.flaws(0)) == [
        Flaw(0, 0, overlap=False),
        Flaw(8, 9, overlap=True),
        Flaw(21, 29, overlap=False),
        Flaw(41, LAST, overlap=False),
    ]
    assert list(Manifest(()).flaws(3)) == [Flaw(0, LAST, overlap=False)]


def test_every_cut_is_reported() -> None:
    whole = three()
    for length in range(len(whole)):
        with pytest.raises(Malformed) as raised:
            decode_manifest(whole[:length])
        assert raised.value.fault is FileFault.BAD_MAGIC


def test_every_flipped_bit_is_reported() -> None:
    whole = three()
    for bit in range(8 * len(whole)):
        octets = bytearray(whole)
        octets[bit // 8] ^= 1 << bit % 8
        with pytest.raises(Malformed):
            decode_manifest(bytes(octets))


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        (b"MGM1\1", FileFault.CORRUPT),
        (b"MGM1\0more", FileFault.CORRUPT),
        (b"MGM1\x80\0", FileFault.CORRUPT),
        (b"MGM1" + b"\xff" * 9 + b"\1", FileFault.CORRUPT),
        (b"MGM1" + b"\xff" * 11, FileFault.CORRUPT),
        (b"MGM1\1\0\0\0\0" + b"\xff" * 9 + b"\1", FileFault.CORRUPT),
        (encode_manifest(Manifest((entry(5, 9), entry(0, 4))))[:-8], FileFault.NOT_SORTED),
    ],
)
def test_a_body_that_nobody_writes_is_refused_although_its_checksum_holds(
    body: bytes, fault: FileFault
) -> None:
    with pytest.raises(Malformed) as raised:
        decode_manifest(sealed(body))
    assert raised.value.fault is fault


def test_golden_damage_is_of_the_same_class() -> None:
    for line in (VECTOR_FILES / "damaged" / "damaged.jsonl").read_text().splitlines():
        said = json.loads(line)
        if said["class"] != "manifest":
            continue
        path = VECTOR_FILES / "damaged" / said["file"]
        # The reference passes over entries behind the last that it counts; somebody meant them.
        expected = "corrupt" if "too small" in said["what"] else said["error_class"]
        with pytest.raises(FrontierFileError, match=f"{path.name}, byte [0-9]+: manifest: ") as raised:
            read_manifest(path)
        assert raised.value.fault == expected


def test_a_manifest_is_written_whole_over_the_one_before(tmp_path: Path) -> None:
    path = tmp_path / "manifest"
    for entries in ((), (entry(0, LAST),)):
        write_manifest(Manifest(entries), path, disk=Disk())
        assert read_manifest(path) == Manifest(entries)
    assert [found.name for found in tmp_path.iterdir()] == ["manifest"]


def test_a_missing_manifest_is_input_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_manifest(tmp_path / "none")
