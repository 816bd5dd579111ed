"""Records that a result points at are cut out of their WARC files, and what is not there is told."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from warcio.archiveiterator import ArchiveIterator

from amicrawl.archive.table.export import Exported, ExportOptions, export_records
from amicrawl.archive.table.query import QueryTable
from amicrawl.disk import Disk
from amicrawl.errors import InputError, UsageError
from amicrawl.record.warc import Record, RecordType, gzip_member, pieces_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

NAME = "crawl-data/EOT-2012/segments/IA-001/warc/a.warc.gz"


def record(number: int) -> Record:
    return Record(
        RecordType.RESPONSE,
        f"<urn:uuid:00000000-0000-4000-8000-{number:012d}>",
        "2013-02-25T01:29:36Z",
        f"WARC-Target-URI: http://example.com/{number}\r\nContent-Type: application/http\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * number,
    )


@pytest.fixture
def archives(tmp_path: Path) -> Path:
    """Five records as gzip members, and the same five uncompressed in another file."""
    directory = tmp_path / "archives"
    (directory / NAME).parent.mkdir(parents=True)
    (directory / NAME).write_bytes(b"".join(gzip_member(record(number)) for number in range(5)))
    (directory / "plain.warc").write_bytes(
        b"".join(b"".join(pieces_of(record(number))) for number in range(5))
    )
    (directory / "torn.warc.gz").write_bytes(gzip_member(record(1))[:-9])
    (directory / "text.warc.gz").write_bytes(b"this is no archive")
    return directory


def places(*, packed: bool = True) -> list[tuple[str, int, int]]:
    found, offset = [], 0
    for number in range(5):
        length = len(gzip_member(record(number)) if packed else b"".join(pieces_of(record(number))))
        found.append((NAME if packed else "plain.warc", offset, length))
        offset += length
    return found


def exported(
    archives: Path, rows: Sequence[tuple[str | None, int | None, int]], **options: Any
) -> tuple[Exported, Path]:
    names = ("warc_filename", "warc_record_offset", "warc_record_length")
    columns = dict(zip(names, zip(*rows, strict=True), strict=True))
    table = archives.parent / "table.parquet"
    types = (pa.string(), pa.int64(), pa.int64())
    schema = pa.schema([pa.field(name, kind) for name, kind in zip(names, types, strict=True)])
    filled = pa.table({name: list(values) for name, values in columns.items()}, schema=schema)
    pq.write_table(filled.append_column("url_surtkey", pa.array(["x"] * len(rows))), table)
    out = archives.parent / "out"
    made = ExportOptions(clock=lambda: datetime(2024, 1, 1, tzinfo=UTC), **options)
    with QueryTable(table) as opened:
        result = opened.ask_sql("FROM ccindex")
        return export_records(result, archives, out, disk=Disk(), options=made), out


def read(path: Path) -> list[tuple[str, str]]:
    with path.open("rb") as stream:
        return [
            (each.rec_type, each.rec_headers.get_header("WARC-Target-URI") or "")
            for each in ArchiveIterator(stream, check_digests="raise")
        ]


def test_members_are_copied_byte_by_byte_in_the_order_of_the_result(archives: Path) -> None:
    told, out = exported(archives, [places()[3], places()[1]])
    assert (told.records, told.missed, told.files) == (2, 0, ["export-00000.warc.gz"])
    assert (
        (out / "export-00000.warc.gz")
        .read_bytes()
        .endswith(gzip_member(record(3)) + gzip_member(record(1)))
    )
    assert read(out / "export-00000.warc.gz") == [
        ("warcinfo", ""),
        ("response", "http://example.com/3"),
        ("response", "http://example.com/1"),
    ]


def test_uncompressed_records_are_compressed(archives: Path) -> None:
    told, out = exported(archives, places(packed=False))
    assert (told.records, told.missed) == (5, 0)
    assert [uri for _, uri in read(out / "export-00000.warc.gz")[1:]] == [
        f"http://example.com/{number}" for number in range(5)
    ]


def test_a_file_holds_so_many_records_and_no_more(archives: Path) -> None:
    told, out = exported(archives, places(), records_per_file=2, prefix="labs")
    assert told.files == ["labs-00000.warc.gz", "labs-00001.warc.gz", "labs-00002.warc.gz"]
    assert [len(read(out / name)) - 1 for name in told.files] == [2, 2, 1]
    assert sorted(each.name for each in out.iterdir()) == told.files


def test_a_file_is_found_by_the_last_part_of_its_name_too(archives: Path) -> None:
    (archives / "a.warc.gz").write_bytes((archives / NAME).read_bytes())
    (archives / NAME).unlink()
    assert exported(archives, places())[0].records == 5


def test_every_place_without_a_record_is_told(archives: Path) -> None:
    (archives.parent / "secret.warc.gz").write_bytes(gzip_member(record(1)))
    secret = archives.parent / "secret.warc.gz"
    whole = places()[1]
    told, out = exported(
        archives,
        [
            ("missing.warc.gz", 0, 10),
            ("../secret.warc.gz", 0, len(secret.read_bytes())),
            (str(secret), 0, len(secret.read_bytes())),
            ("a\0.warc.gz", 0, 10),
            (None, 0, 10),
            (NAME, -1, 10),
            (NAME, None, 10),
            (NAME, whole[1] + 1, whole[2]),
            (NAME, whole[1], whole[2] + 1),
            (NAME, 10**12, 10),
            (NAME, 2**63 - 1, 10),
            ("x" * 5000, 0, 10),
            ("torn.warc.gz", 0, 10),
            ("text.warc.gz", 0, 10),
            ("plain.warc", 3, 10),
            whole,
        ],
    )
    assert (told.records, told.missed) == (1, 15)
    assert [miss.reason.split(" below")[0] for miss in told.misses] == [
        *["there is no such file"] * 4,
        "the index does not say in which file",
        *["the index does not say where in the file"] * 2,
        "no record begins there",
        f"the record is {whole[2]} bytes long, not {whole[2] + 1}",
        *["no record begins there"] * 2,
        "File name too long",
        "the file ends inside a gzip member",
        "no record begins there",
        "no record begins there",
    ]
    assert len(read(out / "export-00000.warc.gz")) == 2


def test_where_every_record_is_missed_no_file_is_left(archives: Path) -> None:
    """A file of a warcinfo alone looks like an export that found something."""
    told, out = exported(archives, [("torn.warc.gz", 0, 10), (NAME, -1, 10)])
    assert (told.records, told.missed, told.files) == (0, 2, [])
    assert list(out.iterdir()) == []


@pytest.mark.parametrize("offset", ["'abc'", "1e300::DOUBLE", "[1]", "2::HUGEINT * 1e30::HUGEINT"])
def test_an_offset_that_is_no_whole_number_is_refused_before_anything_is_written(
    archives: Path, offset: str
) -> None:
    exported(archives, places())
    sql = f"SELECT warc_filename, {offset} AS warc_record_offset, warc_record_length FROM ccindex"
    with QueryTable(archives.parent / "table.parquet") as table:
        result = table.ask_sql(sql)
        with pytest.raises(UsageError, match="warc_record_offset of this result is"):
            export_records(result, archives, archives.parent / "other", disk=Disk())
    assert not (archives.parent / "other").exists()


def test_a_file_that_shrinks_before_its_record_is_copied_ends_the_export(archives: Path) -> None:
    """Half a record, and others behind it, would be an archive that readers give up in the middle."""

    class _Truncating(Disk):
        def create(self, path: Path) -> int:
            (archives / "plain.warc").write_bytes(b"WARC/1.1\r\n")
            return super().create(path)

    pq.write_table(pa.table({"url_surtkey": ["x"]}), archives.parent / "table.parquet")
    sql = "SELECT 'plain.warc' AS warc_file, 0 AS warc_offset, 0 AS warc_length FROM ccindex"
    out = archives.parent / "out"
    with (
        QueryTable(archives.parent / "table.parquet") as table,
        pytest.raises(InputError, match="became shorter"),
    ):
        export_records(table.ask_sql(sql), archives, out, disk=_Truncating())
    assert [path.name for path in out.iterdir()] == ["export-00000.warc.gz.open"]


def test_of_files_from_which_nothing_is_exported_that_is_what_is_told(archives: Path) -> None:
    """The index is right there; `no record begins there` would send its reader looking for a fault."""
    (archives / "x.warc.zst").write_bytes(b"\x28\xb5\x2f\xfd and more")
    (archives / "x.arc").write_bytes(b"http://example.com/ 192.0.2.1 20080430204825 text/html 1\nx\n")
    told, _ = exported(archives, [("x.warc.zst", 0, 10), ("x.arc", 0, 10)])
    assert [miss.reason for miss in told.misses] == [
        "it is packed with Zstandard or LZ4, of which no records are exported",
        "it is an ARC file, of which no records are exported",
    ]


def test_nothing_is_written_over_or_without_places(archives: Path) -> None:
    exported(archives, places())
    with pytest.raises(UsageError, match="holds an export already"):
        exported(archives, places())
    with QueryTable(archives.parent / "table.parquet") as table:
        result = table.ask_sql("SELECT count(*) AS n FROM ccindex")
        with pytest.raises(UsageError, match="does not say where records are: it has n"):
            export_records(result, archives, archives.parent / "other", disk=Disk())
