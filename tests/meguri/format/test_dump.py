"""Dumps: what a file holds as JSON and back, bit by bit, and everything else refused."""

from __future__ import annotations

import json
import tracemalloc
from hashlib import sha256
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from meguri.format.frontier_files import empty_partition, encode_partition, same_partition
from meguri.format.golden_dumps import golden_files, options_of, partition_of, selected

from amicrawl.disk import Disk
from amicrawl.errors import InputError
from amicrawl.meguri.dump import FIELDS, dump_pieces, read_dump
from amicrawl.meguri.format.schema import ROW, Partition, columns_of
from amicrawl.meguri.format.verification import read_partition
from amicrawl.meguri.format.writer import WriteOptions
from amicrawl.meguri.snapshot import Copies

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SELECTED = ("one-none.meguri", "golden-none-sched.meguri", "floats-none.meguri", "ops/input.meguri")


def dumped(partition: Partition) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(b"".join(dump_pieces(partition)))
    return found


@pytest.mark.parametrize("name", SELECTED)
def test_a_selected_dump_gives_the_golden_bytes_and_comes_back(name: str) -> None:
    said = selected(name)
    partition = partition_of(json.dumps(said["dump"]))
    assert dumped(partition) == said["dump"]
    assert sha256(encode_partition(partition, options_of(said))).hexdigest() == said["sha256"]


def test_every_golden_file_exports_as_its_dump_and_imports_as_its_bytes() -> None:
    for path, said, dump in golden_files():
        assert dumped(read_partition(path)) == dump, path.name
        if said["write_options"]["codec"] == 0:
            octets = encode_partition(partition_of(json.dumps(dump)), options_of(said))
            assert octets == path.read_bytes(), path.name


def test_the_fields_stand_in_their_order() -> None:
    text = b"".join(dump_pieces(empty_partition()))
    assert tuple(json.loads(text)) == FIELDS
    assert text.isascii()


def test_many_rows_are_written_in_portions() -> None:
    records = np.zeros(20_000, ROW)
    records["path_key"] = np.arange(20_000)
    partition = empty_partition()
    partition.urls = columns_of(records)
    pieces = list(dump_pieces(partition))
    assert max(map(len, pieces)) < 3_000_000
    again = partition_of(b"".join(pieces))
    assert all((again.urls[name] == records[name]).all() for name in ROW.names or ())


def test_metadata_that_is_not_utf8_survives() -> None:
    partition = empty_partition()
    partition.meta = ((b"a", b"\xff\0\x7f"), (b"b\x80", "é".encode()))
    assert partition_of(b"".join(dump_pieces(partition))).meta == partition.meta


@pytest.mark.parametrize("indent", [None, 1])
def test_the_fields_of_a_dump_may_come_in_any_order_with_any_white_space(indent: int | None) -> None:
    said = selected("ops/input.meguri")
    turned = dict(reversed(said["dump"].items()))
    text = json.dumps(turned, indent=indent, separators=None if indent else (",", ":"))
    assert dumped(partition_of(text)) == said["dump"]


class _Trickle(BytesIO):
    """A source that gives few bytes at a time, as a pipe may."""

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(min(7, size or 0))


def test_a_dump_from_a_pipe_may_break_off_anywhere_between_two_reads(tmp_path: Path) -> None:
    said = selected("one-none.meguri")
    text = json.dumps(said["dump"] | {"meta": [["é", "日"]]}, ensure_ascii=False)
    with Copies(tmp_path, Disk()) as copies:
        partition = read_dump(_Trickle(text.encode()), copies)
    assert dumped(partition) == said["dump"] | {"meta": [["é", "日"]]}


def test_every_cut_of_a_dump_is_refused() -> None:
    text = json.dumps(selected("one-none.meguri")["dump"])
    for cut in range(len(text)):
        with pytest.raises(InputError):
            partition_of(text[:cut])


def test_a_dump_takes_the_same_memory_however_long_it_is(tmp_path: Path) -> None:
    """The parsed rows of the dump would be some 60 MiB, its text and its octets 40."""
    records = np.zeros(25_000, ROW)
    records["path_key"] = np.arange(1 << 63, (1 << 63) + 25_000, dtype=np.uint64)
    partition = empty_partition()
    partition.urls, partition.arena = columns_of(records), bytes(1 << 24)
    path = tmp_path / "dump.json"
    with path.open("wb") as file:
        file.writelines(dump_pieces(partition))
    tracemalloc.start()
    try:
        with Copies(tmp_path, Disk()) as copies, path.open("rb") as source:
            again = read_dump(source, copies)
            _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert same_partition(again, partition)
    assert peak < 20 << 20 < path.stat().st_size


def _with(change: Callable[[dict[str, Any]], object]) -> str:
    dump = selected("one-none.meguri")["dump"]
    change(dump)
    return json.dumps(dump)


def _cell(table: str, name: str, value: object) -> Callable[[dict[str, Any]], object]:
    def change(dump: dict[str, Any]) -> None:
        dump[table][0][dump[f"{table[:-1]}_fields"].index(name)] = value

    return change


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda dump: dump.pop("hosts"), "hosts is missing"),
        (lambda dump: dump.update(note="x"), "'note'"),
        (lambda dump: dump.update(partition_id="1"), "partition_id"),
        (lambda dump: dump.update(created_hours=True), "created_hours"),
        (lambda dump: dump.update(created_hours=2**32), "created_hours"),
        (lambda dump: dump.update(host_key_lo=5), "host_key_lo"),
        (lambda dump: dump.update(host_key_hi="0x1_0"), "host_key_hi"),
        (lambda dump: dump.update(meta={}), "meta"),
        (lambda dump: dump.update(meta=[["a"]]), "meta, pair 0"),
        (lambda dump: dump.update(meta=[["b", ""], ["a", ""]]), "not sorted"),
        (lambda dump: dump.update(meta=[["\ud800", ""]]), "surrogate"),
        (lambda dump: dump["url_fields"].pop(), "url_fields"),
        (lambda dump: dump["host_fields"].reverse(), "host_fields"),
        (lambda dump: dump.update(urls={}), "urls is not a list"),
        (lambda dump: dump["urls"][0].pop(), "urls, row 0"),
        (lambda dump: dump["urls"].append(None), "urls, row 1"),
        (lambda dump: dump.update(arena_hex="0"), "arena_hex"),
        (lambda dump: dump.update(arena_hex="00 00"), "arena_hex"),
        (lambda dump: dump.update(arena_hex=None), "arena_hex"),
        (lambda dump: dump.update(seen_filter_hex=7), "seen_filter_hex"),
        (_cell("urls", "status", 256), "urls, row 0, status is 256"),
        (_cell("urls", "status", -1), "status is -1"),
        (_cell("urls", "depth", 1.0), "depth is 1.0"),
        (_cell("urls", "next_due", True), "next_due is True"),
        (_cell("urls", "priority", 0.5), "priority is 0.5"),
        (_cell("urls", "priority", "0x3f"), "priority is '0x3f'"),
        (_cell("urls", "url_ref", 13), "url_ref is 13"),
        (_cell("urls", "url_ref", str(2**64)), "url_ref is"),
        (_cell("urls", "path_key", "0x" + "f" * 17), "path_key is"),
        (_cell("hosts", "resolved_ip", "00"), "hosts, row 0, resolved_ip"),
        (lambda dump: dump["urls"].append(["0x" + "0" * 16] * 2 + dump["urls"][0][2:]), "URL row 1 has"),
        (lambda dump: dump["hosts"].append(["0x" + "0" * 16, *dump["hosts"][0][1:]]), "host row 1 has"),
    ],
)
def test_a_dump_that_is_none_is_refused_with_row_and_field(
    change: Callable[[dict[str, Any]], object], says: str
) -> None:
    with pytest.raises(InputError) as raised:
        encode_partition(partition_of(_with(change)), WriteOptions())
    assert says in str(raised.value)


@pytest.mark.parametrize(
    "text", ["", "[]", "{", "null", b"\xff", "[" * 100_000, '{"meta": 1, "meta": 2}', "9" * 5000]
)
def test_what_is_no_dump_at_all_is_refused(text: str | bytes) -> None:
    with pytest.raises(InputError):
        partition_of(text)
