"""Every golden file reads as its dump says, and without compression is written again byte for byte."""

from __future__ import annotations

import base64
import hashlib
import itertools
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from meguri.format.frontier_files import (
    FILES,
    dump_of,
    empty_columns,
    encode_partition,
    number,
    records,
    same_partition,
    same_values,
    stored,
)
from urls.vectors import VECTOR_FILES

from amicrawl.errors import InputError
from amicrawl.meguri.format.checksum import crc32c
from amicrawl.meguri.format.page import HEADER_SIZE, PageHeader
from amicrawl.meguri.format.reader import FrontierFile
from amicrawl.meguri.format.schema import (
    HOST_COLUMNS,
    HOST_ROW,
    ROW,
    URL_COLUMNS,
    Codec,
    Column,
    Partition,
    columns_of,
)
from amicrawl.meguri.format.verification import (
    inspect,
    inspection_text,
    partition_in,
    read_partition,
    verify,
)
from amicrawl.meguri.format.writer import WriteOptions

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from amicrawl.meguri.format.footer import ColumnEntry

GOLDEN = [(FILES, line) for line in stored(FILES)]
LARGE = [FILES / name for name in ("large-none.json", "large-none-sched-split.json")]


@pytest.fixture(params=GOLDEN, ids=lambda given: given[1]["file"])
def golden(request: pytest.FixtureRequest) -> tuple[Path, dict[str, Any]]:
    """A stored file and its dump."""
    directory, line = request.param
    return directory / line["file"], dump_of(directory, line["dump"])


def test_rows_and_strings_are_those_of_the_dump(golden: tuple[Path, dict[str, Any]]) -> None:
    path, dump = golden
    partition = read_partition(path)
    header = dump["header"]
    assert (partition.partition_id, partition.created) == (
        header["partition_id"],
        header["created_hours"],
    )
    assert partition.host_key_lo == number(header["host_key_lo"])
    assert partition.host_key_hi == number(header["host_key_hi"])
    assert partition.meta == tuple((key.encode(), value.encode()) for key, value in dump["meta"] or ())
    arena = dump.get("arena")
    assert (len(partition.arena), crc32c(partition.arena)) == (
        (arena["length"], number(arena["crc32c"])) if arena else (0, 0)
    )
    if dump.get("arena_hex") is not None:
        assert partition.arena == bytes.fromhex(dump["arena_hex"])
    if "blob" in dump.get("seen_filter", ()):
        assert partition.seen_filter == bytes.fromhex(dump["seen_filter"]["blob"])
    for kind, schema, columns in (
        ("url", URL_COLUMNS, partition.urls),
        ("host", HOST_COLUMNS, partition.hosts),
    ):
        check_rows(dump, kind, schema, columns)


def check_rows(dump: dict[str, Any], kind: str, schema: Sequence[Column], columns: Any) -> None:
    """Compare a table with all rows of a dump, or with the first, the last and checksums of columns."""
    whole = f"{kind}s" in dump
    rows = dump[f"{kind}s"] if whole else dump[f"first_{kind}s"] + dump[f"last_{kind}s"]
    expected = records(rows, schema)
    assert dump[f"{kind}_fields"] == [column.name for column in schema]
    for column, entry in zip(schema, dump[f"{kind}_columns"], strict=True):
        found = columns[column.name]
        part = found if whole else np.concatenate((found[:50], found[-50:]))
        assert same_values(part, np.ascontiguousarray(expected[column.name])), column.name
        if "values_sha256" in entry:
            assert hashlib.sha256(found.tobytes()).hexdigest() == entry["values_sha256"]


def test_header_regions_and_statistics_are_those_of_the_dump(
    golden: tuple[Path, dict[str, Any]],
) -> None:
    path, dump = golden
    octets = path.read_bytes()
    with FrontierFile.open(path) as file:
        header, stats = file.header, file.stats
        assert header.pack().hex() == dump["header"]["bytes"] == octets[:64].hex()
        assert (header.flags, header.codec) == (dump["header"]["flags"], dump["header"]["default_codec"])
        assert [
            (region.id, region.name, region.offset, region.length, region.crc32c)
            for region in file.regions
        ] == [
            (
                region["id"],
                region["name"],
                *(number(region[name]) for name in ("offset", "length", "crc32c")),
            )
            for region in dump["regions"]
        ]
        for name, value in dump["stats"].items():
            if name == "bytes_per_url":
                assert np.float32(stats.bytes_per_url).view(np.uint32) == number(value)
            elif name != "bytes_per_url_value":
                assert getattr(stats, {"scheduled_count": "scheduled"}.get(name, name)) == number(
                    value
                ), name


def test_column_directories_are_those_of_the_dump(golden: tuple[Path, dict[str, Any]]) -> None:
    path, dump = golden
    octets = path.read_bytes()
    with FrontierFile.open(path) as file:
        for listed, entries in (
            (dump["url_columns"], file.url_columns),
            (dump["host_columns"], file.host_columns),
        ):
            for expected, (name, entry) in zip(listed, entries.items(), strict=True):
                assert expected["name"] == name
                check_entry(expected, entry)
                for row in expected.get("page_list", ()):
                    check_page(dict(zip(dump["page_fields"], row, strict=True)), octets)


def check_entry(expected: dict[str, Any], entry: ColumnEntry) -> None:
    """Compare a column's line in the directory."""
    for name in (
        "id",
        "first_page_offset",
        "total_compressed",
        "total_uncompressed",
        "rows",
        "width",
        "encoding",
        "codec",
    ):
        assert getattr(entry, name) == number(expected[name]), name
    assert entry.crc32c == number(expected["column_crc32c"])
    zone = (number(expected["zone_min"]), number(expected["zone_max"]))
    assert entry.zone == (zone if expected["zone_valid"] else None)
    assert len(entry.pages) == expected["pages"]
    if "skip_list" in expected:
        assert [tuple(page) for page in entry.pages.tolist()] == [
            tuple(map(number, page)) for page in expected["skip_list"]
        ]


def check_page(expected: dict[str, Any], octets: bytes) -> None:
    """Compare a page's header."""
    header = PageHeader.unpack(octets[expected["offset"] :])
    assert HEADER_SIZE + header.compressed_size == expected["length"]
    for name in (
        "kind",
        "encoding",
        "codec",
        "flags",
        "values",
        "uncompressed_size",
        "compressed_size",
        "first_row",
    ):
        assert getattr(header, name) == number(expected[name]), name
    assert (header.base, header.payload_crc32c) == (
        number(expected["base"]),
        number(expected["payload_crc32c"]),
    )


def test_schedules_are_those_of_the_dump(golden: tuple[Path, dict[str, Any]]) -> None:
    path, dump = golden
    with FrontierFile.open(path) as file:
        schedule = file.schedule()
    expected = dump.get("schedule")
    if expected is None:
        assert schedule is None
        return
    assert schedule is not None
    base, covered, buckets = schedule
    assert (base, covered, len(buckets)) == (expected["base"], expected["covered"], 283)
    filled = [(number, rows) for number, rows in enumerate(buckets) if len(rows)]
    if "buckets" in expected:
        assert [[number, rows.tolist()] for number, rows in filled] == expected["buckets"]
    else:
        assert [
            [bucket, len(rows), f"{crc32c(rows.astype('<u4').tobytes()):#010x}"]
            for bucket, rows in filled
        ] == expected["bucket_digests"]


def test_queries_return_what_the_dump_has(golden: tuple[Path, dict[str, Any]]) -> None:
    path, dump = golden
    reads = dump["reads"]
    with FrontierFile.open(path) as file:
        keys = np.empty(file.url_rows, [("host", "<u8"), ("path", "<u8")])
        keys["host"], keys["path"] = file.url_column("host_key"), file.url_column("path_key")
        assert keys_crc32c(keys, np.arange(len(keys))) == number(reads["all_keys_crc32c"])
        for query in reads["due"]:
            assert file.may_be_due(query["at"]) == query["maybe_due"]
            scanned = file.due(query["at"])
            assert len(scanned) == query["count"]
            assert keys_crc32c(keys, scanned) == number(query["scan_keys_crc32c"])


def keys_crc32c(keys: np.ndarray, rows: np.ndarray) -> int:
    """Return the checksum of the keys of *rows* as they lie in memory, the host half first."""
    return crc32c(keys[rows].tobytes())


def test_the_summary_is_the_text_of_the_dump(golden: tuple[Path, dict[str, Any]]) -> None:
    path, dump = golden
    assert inspection_text(inspect(path)) == dump["inspect"]


def test_what_was_read_is_written_again(golden: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    """Without compression byte for byte; with it, the compressed bytes are those of our library."""
    path, dump = golden
    with FrontierFile.open(path) as file:
        partition, options = partition_in(file), file.options()
    octets = encode_partition(partition, options)
    if dump["header"]["default_codec"] == Codec.NONE:
        assert octets == path.read_bytes()
    assert octets == encode_partition(partition, options)
    again = tmp_path / "again.meguri"
    again.write_bytes(octets)
    assert same_partition(read_partition(again), partition)


def test_compressed_and_plain_files_say_the_same(golden: tuple[Path, dict[str, Any]]) -> None:
    """Written plain, what a compressed file says has the bytes of the reference's plain file."""
    path, dump = golden
    partition = read_partition(path)
    if dump["case"] == "robots":
        pytest.skip(
            "the reference packs robots.txt bodies by codec, so that the strings of the two differ"
        )
    for line in stored(path.parent):
        if (line["case"], line["codec"]) != (dump["case"], Codec.NONE):
            continue
        given = dump_of(path.parent, line["dump"])
        alike = ("meta", "seen_filter", "arena", "rows_in")
        if any((name in given) != (name in dump) for name in alike) or given["meta"] != dump["meta"]:
            continue
        if given.get("seen_filter", {}).get("blob") != dump.get("seen_filter", {}).get("blob"):
            continue
        options = WriteOptions(Codec.NONE, line["schedule"], line["max_page_rows"], equal_keys=True)
        assert crc32c(encode_partition(partition, options)) == number(line["crc32c"]), line["file"]


@pytest.mark.parametrize("path", LARGE, ids=lambda path: path.stem)
def test_large_files_that_are_not_stored_are_made_from_the_one_that_is(path: Path) -> None:
    dump = dump_of(FILES, path.name)
    options = dump["write_options"]
    partition = read_partition(FILES / "large-zstd-sched-split.meguri")
    octets = encode_partition(
        partition, WriteOptions(Codec(options["codec"]), options["schedule"], options["max_page_rows"])
    )
    assert (len(octets), crc32c(octets)) == (dump["size"], number(dump["crc32c"]))
    assert hashlib.sha256(octets).hexdigest() == dump["sha256"]


SMALL_WITH_SCHEDULE = """
eNrNWF1IVEEUnjNz7911NV3dNcEKxJ8yKEPCCsQIVFYr+7Ggp8pgRZCoSNTIMvBBJBCMNAmLSLGwIn0JohCCUOnnIVPUh4ikohcr
pB8kovJyZ+bO3na2pZHywOz47T33m3POnHNm1rLiQC4ghMxB5j89yBI/nTU6Yzo/cCEuDV16lalg6vjoEOVp3ppGzAixnzMZ1iuE
DkSXN+XoYN1rAJ2trAkWMIl/1L8WtHkdsJ4ZdIhyPiX1LqUklhYIizDZved0OWI0ojVMtNysIbCcl6mc7AlWoP+gInodpHPLwLHh
EfhMOmChYqOusDBO0zRIo0OUGxvOnUVRiNL7IE/HM9PpHUAXMJ956BBldHniR7ANUY+qYRUkFgqTrdm9qnflfPVi64mcAv1OweR5
/aFZ6+uoKP46qn9c4B8oUB/C7ezXueT7HjOu6qsQZYUIdo5sqyphWYqjKvpFYKxOqz0brCH2sbH9O9qC9N0uDGjBZHFSKQjBUEjQ
FopqafucqZ2sQHCHooe0vDu3Z/sQPkEzo4Q6UJ5Z+Qbh5rgUzsJOcVbSGrg1Dvp2tX0B5x2Bx6QG8RRzUhgc6KUvAgCOawVvCRcc
9w4+AwjJtPPyak6hO2Nyj/7BasDLKTTgIK/nyrD8rHjl2GU3p8CEg5mslgJpGugAobEQHAEObo4XvJNSGJkgDSfmgFzd6JFSuAIO
CiEWmIOIFO5qZYqYVmUKzwBIN9WmmLr9qYlTfHNQxE6Aal7EfYfQvBAoCAcR82LJCqxKEb8Zq2ZnwkGsmlreJqy6qYm9OHR1wQob
7DOm+6UUSW+VKXxZJLRChXACB9W3jrikFP5SEnoJC9s7cw6vm5BSJNeQ0E0V+gXhIOKmLm0nqnlBBj1+xA4O7NhYbHZxBi7mjP6Q
HwSTJHySYzO9GFjWnZMvtQTPOazgM4ANxtI2PZY7k6qpWqHla+HTC4PXBqf62julPUNv0MLvCjbrxB2NFcYlZQrXoDKF+6VyOGN+
auFPdwzYBh9QRitPLedPKU+GrupIbJEyRVylnMIutWfHWwz5QdCsTBF/XY8inA3XtgbkB8ETPfRQFKywm1/6+5IhaYJ7Z5UdSUwy
VCmS1hvh+yc2m58WDYVvr6EaTleR8/9lshYZpDeUKYoP8JvwXOF4LEKNdQn1ZcWB3F+Z0s+1
"""


def small() -> Partition:
    """Four rows on two hosts."""
    urls, hosts = np.zeros(4, ROW), np.zeros(2, HOST_ROW)
    urls["host_key"], urls["path_key"] = (10, 10, 20, 20), (1, 2, 1, 2)
    urls["status"], urls["next_due"] = (1, 4, 1, 5), (100, 0, 250, 175)
    hosts["host_key"], hosts["crawl_delay"] = (10, 20), 10
    return Partition(
        urls=columns_of(urls),
        hosts=columns_of(hosts),
        arena=b"",
        partition_id=1,
        host_key_lo=10,
        host_key_hi=20,
    )


def test_bytes_without_compression_are_pinned(tmp_path: Path) -> None:
    """A frontier written by any version of the format opens in every other one."""
    octets = zlib.decompress(base64.b64decode(SMALL_WITH_SCHEDULE))
    assert encode_partition(small(), WriteOptions(Codec.NONE, schedule=True)) == octets
    assert crc32c(octets) == 0xCEF15BD1
    path = tmp_path / "small.meguri"
    path.write_bytes(octets)
    assert same_partition(read_partition(path), small())
    plain = encode_partition(small(), WriteOptions(Codec.NONE))
    assert (len(plain), crc32c(plain)) == (4674, 0x3721E4DA)


def test_an_empty_partition_is_pinned() -> None:
    empty = Partition(
        urls=empty_columns(URL_COLUMNS),
        hosts=empty_columns(HOST_COLUMNS),
        arena=b"",
        partition_id=1,
        host_key_hi=0,
    )
    for codec, checksum in ((Codec.NONE, 0x93FA8C60), (Codec.ZSTD, 0xAE7143F3)):
        octets = encode_partition(empty, WriteOptions(codec))
        assert (len(octets), crc32c(octets)) == (4458, checksum)


def test_a_filter_is_kept_whatever_it_holds(tmp_path: Path) -> None:
    urls, hosts = np.zeros(1, ROW), np.zeros(1, HOST_ROW)
    for name in ("host_key", "path_key", "status"):
        urls[name] = 1
    hosts["host_key"], hosts["crawl_delay"] = 1, 10
    blob = bytes((7 * i + 3) % 256 for i in range(777))
    partition = Partition(
        urls=columns_of(urls), hosts=columns_of(hosts), arena=b"", partition_id=1, seen_filter=blob
    )
    octets = encode_partition(partition, WriteOptions(Codec.NONE))
    assert (len(octets), crc32c(octets)) == (5375, 0x6992B199)
    path = tmp_path / "filter.meguri"
    path.write_bytes(octets)
    assert read_partition(path).seen_filter == blob


def test_pages_that_hold_everything_are_no_split() -> None:
    plain, split = (encode_partition(small(), WriteOptions(max_page_rows=rows)) for rows in (0, 4))
    assert plain == split


def test_every_combination_of_options_reads_back(tmp_path: Path) -> None:
    path = tmp_path / "file.meguri"
    for codec, schedule, rows in itertools.product(Codec, (False, True), (0, 1, 3)):
        path.write_bytes(encode_partition(small(), WriteOptions(codec, schedule, rows)))
        with FrontierFile.open(path) as file:
            verify(file)
            assert same_partition(partition_in(file), small())


def test_only_a_file_without_rows_may_have_a_range_that_ends_before_it_begins(tmp_path: Path) -> None:
    """So are the halves of a partition that was divided at its end."""
    partition = small()
    partition.host_key_lo, partition.host_key_hi = 5, 4
    with pytest.raises(InputError, match="end before they begin"):
        encode_partition(partition, WriteOptions())
    partition.urls, partition.hosts = empty_columns(URL_COLUMNS), empty_columns(HOST_COLUMNS)
    path = tmp_path / "empty.meguri"
    path.write_bytes(encode_partition(partition, WriteOptions()))
    assert read_partition(path).host_key_lo == 5


@pytest.mark.parametrize(
    "path", sorted(VECTOR_FILES.glob("[os][pt]*/**/*.meguri")), ids=lambda path: path.stem
)
def test_files_that_operations_and_stores_leave_behind_are_read(path: Path) -> None:
    with FrontierFile.open(path) as file:
        partition, options = partition_in(file), file.options()
        assert (
            options.codec is not Codec.NONE or encode_partition(partition, options) == path.read_bytes()
        )
