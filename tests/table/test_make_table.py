"""The table of a collection: its columns, its reference row, and what happens to lines that are none."""

from __future__ import annotations

import gzip
import json
import os
import zlib
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import duckdb
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import amicrawl
from amicrawl.archive.table import CCINDEX, EOT, CapturePlace, TableOptions, TableReport, make_table
from amicrawl.archive.table.builder import REJECTS_SUFFIX, REPORT_SUFFIX, beside
from amicrawl.archive.table.convert import converted, fault_of
from amicrawl.archive.table.schema import place_of
from amicrawl.archive.table.url_columns import list_version
from amicrawl.cli import app
from amicrawl.disk import Disk
from amicrawl.errors import ExitCode, InputError, OutputError, UsageError

DESCRIBED = """
url_surtkey VARCHAR
url VARCHAR
url_host_name VARCHAR
url_host_tld VARCHAR
url_host_2nd_last_part VARCHAR
url_host_3rd_last_part VARCHAR
url_host_4th_last_part VARCHAR
url_host_5th_last_part VARCHAR
url_host_registry_suffix VARCHAR
url_host_registered_domain VARCHAR
url_host_private_suffix VARCHAR
url_host_private_domain VARCHAR
url_host_name_reversed VARCHAR
url_protocol VARCHAR
url_port INTEGER
url_path VARCHAR
url_query VARCHAR
fetch_time TIMESTAMP
fetch_status SMALLINT
content_digest VARCHAR
content_mime_type VARCHAR
content_mime_detected VARCHAR
content_charset VARCHAR
content_languages VARCHAR
content_puid VARCHAR
warc_filename VARCHAR
warc_record_offset BIGINT
warc_record_length BIGINT
warc_segment VARCHAR
crawl VARCHAR
subset VARCHAR
"""

REFERENCE_FILE = (
    "crawl-data/EOT-2012/segments/IA-001/warc/"
    "EOT-2012-20130225012855292-05948-10476~wbgrp-crawl013.us.archive.org~8443.warc.gz"
)
REFERENCE = {
    "url": "http://www.esp.alcf.anl.gov/blog/",
    "mime": "text/html",
    "status": "200",
    "digest": "5JDQ4KZFAGOXSVHBVHDLV77VFOBVJ5QS",
    "length": "12724",
    "offset": "39276133",
    "filename": REFERENCE_FILE,
    "mime-detected": "text/html",
    "puid": "fmt/96",
    "charset": "utf-8",
    "languages": "eng,ile",
}
REFERENCE_ROW = {
    "url_surtkey": "gov,anl,alcf,esp)/blog",
    "url": "http://www.esp.alcf.anl.gov/blog/",
    "url_host_name": "www.esp.alcf.anl.gov",
    "url_host_tld": "gov",
    "url_host_2nd_last_part": "anl",
    "url_host_3rd_last_part": "alcf",
    "url_host_4th_last_part": "esp",
    "url_host_5th_last_part": "www",
    "url_host_registry_suffix": "gov",
    "url_host_registered_domain": "anl.gov",
    "url_host_private_suffix": "gov",
    "url_host_private_domain": "anl.gov",
    "url_host_name_reversed": "gov.anl.alcf.esp.www",
    "url_protocol": "http",
    "url_port": None,
    "url_path": "/blog/",
    "url_query": None,
    "fetch_time": datetime(2013, 2, 25, 1, 29, 36),  # noqa: DTZ001  # as the column has it
    "fetch_status": 200,
    "content_digest": "5JDQ4KZFAGOXSVHBVHDLV77VFOBVJ5QS",
    "content_mime_type": "text/html",
    "content_mime_detected": "text/html",
    "content_charset": "utf-8",
    "content_languages": "eng,ile",
    "content_puid": "fmt/96",
    "warc_filename": REFERENCE_FILE,
    "warc_record_offset": 39276133,
    "warc_record_length": 12724,
    "warc_segment": "IA-001",
    "crawl": "EOT-2012",
    "subset": "warc",
}


def run_sql(sql: str) -> Any:
    """Return what DuckDB returns."""
    return duckdb.sql(sql)


def line(key: str = "gov,anl,alcf,esp)/blog", timestamp: str = "20130225012936", **fields: Any) -> bytes:
    """Return a sound line; a field that is `...` is left out."""
    merged = {name: value for name, value in {**REFERENCE, **fields}.items() if value is not ...}
    return f"{key} {timestamp} {json.dumps(merged)}".encode()


def row_of(written: bytes, schema: Any = EOT) -> dict[str, Any]:
    """Return the row of one line."""
    rows, rejects, _ = converted([written], schema)
    assert not rejects
    [row] = rows.to_pylist()
    return row


def make(tmp_path: Path, *lines: bytes, **options: Any) -> tuple[TableReport, Path]:
    """Make the table of *lines*, in one file, and return the report and the table's directory."""
    source = tmp_path / "index.cdxj"
    source.write_bytes(b"".join(each + b"\n" for each in lines))
    out = tmp_path / "table"
    return make_table([source], out, disk=Disk(), options=TableOptions(**options)), out


def described(glob: str) -> str:
    rows = run_sql(f"DESCRIBE SELECT * FROM read_parquet('{glob}')").fetchall()
    assert all(row[2:] == ("YES", None, None, None) for row in rows)
    return "\n".join(f"{name} {kind}" for name, kind, *_ in rows)


@pytest.mark.parametrize("flat", [False, True])
def test_describe_lists_the_31_columns(tmp_path: Path, flat: bool) -> None:
    _, out = make(tmp_path, line(), flat=flat)
    glob = f"{out}/*.parquet" if flat else f"{out}/**/*.parquet"
    assert described(glob) == DESCRIBED.strip()
    assert len(DESCRIBED.split()) == 2 * 31


@pytest.mark.parametrize("flat", [False, True])
def test_the_reference_row_is_reproduced_value_by_value(tmp_path: Path, flat: bool) -> None:
    report, out = make(tmp_path, line(), flat=flat)
    assert (report.lines, report.rows, report.rejects, report.rows_without_crawl) == (1, 1, 0, 0)
    found = run_sql(f"SELECT * FROM read_parquet('{out}/**/*.parquet')")
    [values] = found.fetchall()
    assert dict(zip(found.columns, values, strict=True)) == REFERENCE_ROW


def test_shares_of_languages_are_a_column_behind_the_others(tmp_path: Path) -> None:
    schema = EOT.with_language_shares()
    assert [each for each in schema.columns.names if each not in EOT.columns.names] == [
        "content_language_shares"
    ]
    written = line(languages="rus,eng", **{"language-shares": "83,12"})
    assert row_of(written, schema)["content_language_shares"] == "83,12"
    assert row_of(line(languages="rus"), schema)["content_language_shares"] is None
    assert "content_language_shares" not in row_of(written)


@pytest.mark.parametrize("in_order", [True, False])
def test_progress_goes_up_to_all_bytes_read(tmp_path: Path, in_order: bool) -> None:
    lines = sorted([line("gov,a)/"), line("gov,b)/")], reverse=not in_order)
    (tmp_path / "one.cdxj").write_bytes(b"\n".join([*lines, b""]))
    seen: list[tuple[int, int, int]] = []
    make_table(
        [tmp_path / "one.cdxj"],
        tmp_path / "table",
        disk=Disk(),
        progress=lambda done, total, report: seen.append((done, total, report.lines)),
    )
    size = (tmp_path / "one.cdxj").stat().st_size
    # Lines that are not in order are sorted, and how many are left of them is not known.
    assert seen == ([(size, size, 0)] if in_order else [(size, size, 0), (size, size, 0), (0, 0, 2)])


def test_pandas_reads_the_same_values(tmp_path: Path) -> None:
    _, out = make(tmp_path, line(), flat=True)
    frame = pd.read_parquet(out)
    assert list(frame.columns) == list(REFERENCE_ROW)
    read = {name: None if pd.isna(value) else value for name, value in frame.iloc[0].items()}
    assert read == REFERENCE_ROW


def test_a_record_of_21_gigabytes_keeps_its_length(tmp_path: Path) -> None:
    _, out = make(tmp_path, line(length="20984044039", offset=str(2**63 - 1)))
    found = run_sql(
        f"SELECT warc_record_length, warc_record_offset FROM '{out}/**/*.parquet'"
    ).fetchall()
    assert found == [(20984044039, 2**63 - 1)]


@pytest.mark.parametrize(
    ("written", "status"),
    [
        ("200", 200),
        (404, 404),
        ("-", -1),
        ("", -1),
        (..., -1),
        (None, -1),
        ("99999", -1),
        ("2OO", -1),
        (-5, -1),
    ],
)
def test_a_status_that_is_none_is_minus_one(written: object, status: int) -> None:
    assert row_of(line(status=written))["fetch_status"] == status


def test_a_missing_offset_or_length_is_minus_one() -> None:
    row = row_of(line(offset=..., length="-"))
    assert (row["warc_record_offset"], row["warc_record_length"]) == (-1, -1)


@pytest.mark.parametrize("in_blocks", [True, False])
def test_a_digest_has_no_label_if_it_is_of_sha1(tmp_path: Path, in_blocks: bool) -> None:
    bare = str(REFERENCE["digest"])
    digests = [f"sha1:{bare}", bare, "sha256:00ff", None]
    lines = [line(digest=digest) for digest in digests]
    if in_blocks:
        _, out = make(tmp_path, *lines)
        found = run_sql(f"SELECT content_digest FROM '{out}/**/*.parquet'").fetchall()
        assert [digest for (digest,) in found] == [bare, bare, "sha256:00ff", None]
    else:
        assert [row_of(each)["content_digest"] for each in lines] == [bare, bare, "sha256:00ff", None]


def test_rows_that_no_file_name_places_are_filed_by_month_and_reported(tmp_path: Path) -> None:
    report, out = make(tmp_path, line(filename="my-crawl-00001.warc.gz"), line())
    assert (report.rows, report.rows_without_crawl) == (2, 1)
    assert report.example_without_crawl == "my-crawl-00001.warc.gz"
    assert [path.name for path in sorted(out.glob("crawl=*"))] == [
        "crawl=EOT-2012",
        "crawl=captures-2013-02",
    ]
    found = run_sql(f"SELECT crawl, subset, warc_segment FROM '{out}/**/*.parquet' ORDER BY crawl")
    assert found.fetchall() == [("EOT-2012", "warc", "IA-001"), ("captures-2013-02", "warc", None)]


def test_a_crawl_too_long_for_the_name_of_a_directory_is_none(tmp_path: Path) -> None:
    """One such file name in an index was the end of the whole table."""
    wide = "crawl-data/{}/segments/1/warc/x.warc.gz"
    names = [wide.format("é" * 41), wide.format("é" * 42), wide.format("\U0001f600" * 80)]
    report, out = make(tmp_path, *[line(filename=name) for name in names])
    assert (report.rows, report.rows_without_crawl) == (3, 2)
    assert run_sql(f"SELECT DISTINCT crawl FROM '{out}/**/*.parquet' ORDER BY 1").fetchall() == [
        ("captures-2013-02",),
        ("é" * 41,),
    ]


def test_a_crawl_that_is_named_as_months_are_is_named(tmp_path: Path) -> None:
    report, _ = make(tmp_path, line(filename="x.warc.gz"), place=CapturePlace("captures-2013-02"))
    assert report.rows_without_crawl == 0


def test_a_place_that_is_not_utf_8_is_refused() -> None:
    """It ended the command with a traceback."""
    with pytest.raises(UsageError, match="segment of a table is not UTF-8"):
        TableOptions(place=CapturePlace("a", "\udcff"))


def test_the_caller_can_say_where_rows_belong(tmp_path: Path) -> None:
    place = CapturePlace("my crawl=1", None, "all")
    report, out = make(tmp_path, line(filename="x.warc.gz"), line(), place=place)
    assert report.rows_without_crawl == 0
    found = run_sql(
        f"SELECT crawl, subset, warc_segment FROM '{out}/**/*.parquet' ORDER BY 3 NULLS FIRST"
    )
    assert found.fetchall() == [("my crawl=1", "all", None), ("my crawl=1", "all", "IA-001")]


@pytest.mark.parametrize(
    ("name", "place"),
    [
        (REFERENCE_FILE, ("EOT-2012", "IA-001", "warc")),
        ("common-crawl/crawl-data/CC-MAIN-2022-05/segments/1642320299852.23/robotstxt/x.warc.gz",
         ("CC-MAIN-2022-05", "1642320299852.23", "robotstxt")),
        ("crawl-data/CC-MAIN-2022-05/segments/1.2/crawldiagnostics/x",
         ("CC-MAIN-2022-05", "1.2", "crawldiagnostics")),
        ("crawl-data/CC-NEWS/2016/08/CC-NEWS-20160826124520-00000.warc.gz",
         ("CC-NEWS-2016-08", "20160826124520-00000", "news-warc")),
        ("x/project/CC-SUPPLEMENTAL-2026-01/segments/17/warc/y.warc.gz",
         ("CC-SUPPLEMENTAL-2026-01", "17", "warc")),
        ("crawl-data/EOT-2012/segments/IA-001/other/x.warc.gz", (None, None, None)),
        ("crawl-data/../segments/IA-001/warc/x/y", (None, None, None)),
        ("x.warc.gz", (None, None, None)),
        (None, (None, None, None)),
    ],
)  # fmt: skip
def test_a_file_name_tells_crawl_segment_and_subset(
    name: str | None, place: tuple[str | None, ...]
) -> None:
    assert tuple(place_of(name)) == place


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        (b"no line", "not a key, a timestamp and an object with a space between each"),
        (b"\xff\xfe 20130225012936 {}", "the key is not text in UTF-8"),
        (b" 20130225012936 {}", "the key is empty"),
        (b"com,a)/ 2013022501293 {}", "the timestamp is not of 14 digits"),
        (b"com,a)/ 201302250129360 {}", "the timestamp is not of 14 digits"),
        (b"com,a)/ 20130230012936 {}", "the timestamp is not a moment of the calendar"),
        (b"com,a)/ 20130225012936 {", "what follows the timestamp is not one JSON value"),
        (b"com,a)/ 20130225012936 {}{}", "what follows the timestamp is not one JSON value"),
        (
            b'com,a)/ 20130225012936 {"url": "\\ud800"}',
            "what follows the timestamp is not one JSON value",
        ),
        (b"com,a)/ 20130225012936 []", "what follows the timestamp is not a JSON object"),
        (b"com,a)/ 20130225012936 {}", "the field url is missing"),
        (line(url=None), "the field url is missing"),
        (line(mime=5), "mime is not a text"),
        (line(filename=["x"]), "filename is not a text"),
        (line(offset="12x"), "offset is not a whole number"),
        (line(offset=1.5), "offset is not a whole number"),
        (line(length=str(2**63)), "length is negative, or does not fit in 64 bits"),
        (line(length="-7"), "length is negative, or does not fit in 64 bits"),
    ],
)
def test_a_line_that_gives_no_row_says_why(written: bytes, reason: str) -> None:
    rows, rejects, _ = converted([line(), written, line()], EOT)
    assert rows.num_rows == 2
    assert rejects == [(written, reason)]


def test_lines_of_other_producers_are_read() -> None:
    compact = json.dumps(
        {"url": "http://a.org/", "status": 301, "offset": 7, "length": 9}, separators=(",", ":")
    )
    row = row_of(f"org,a)/ 20220106150849300 {compact}\r".encode())
    assert row["fetch_time"] == datetime(2022, 1, 6, 15, 8, 49)  # noqa: DTZ001
    assert (row["fetch_status"], row["warc_record_offset"], row["warc_record_length"]) == (301, 7, 9)
    assert (row["content_mime_type"], row["warc_filename"]) == (None, None)


def test_rejects_are_kept_with_their_reason_and_counted(tmp_path: Path) -> None:
    bad = [b"org,b)/ 2013 {}", b"org,a)/ 20130225012936 {\xff"]
    report, out = make(tmp_path, bad[0], line(), b"", b'!meta 0 {"format": "x"}', bad[1])
    assert (report.lines, report.rows, report.rejects, report.headers) == (5, 1, 2, 2)
    kept = beside(out, REJECTS_SUFFIX).read_bytes().splitlines()
    assert sorted(entry.partition(b"\t")[2] for entry in kept) == sorted(bad)
    assert sum(report.rejects_by_reason.values()) == 2
    assert json.loads(beside(out, REPORT_SUFFIX).read_bytes())["rejects"] == 2


_pieces = st.one_of(
    st.binary(max_size=12),
    st.sampled_from([b"com,a)/", b"20130225012936", b"20130231012936", b"20220106150849300", b"\t"]),
    st.builds(
        lambda fields: json.dumps(fields).encode(),
        st.dictionaries(
            st.sampled_from(["url", "offset", "length", "status", "mime", "filename"]),
            st.one_of(
                st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=5),
                st.sampled_from(["12", "007", "-1", "-", "0x10", "1_0", "٣", "9223372036854775808"]),
                st.lists(st.none(), max_size=1),
            ),
        ),
    ),
)  # fmt: skip


@given(st.lists(st.builds(lambda *parts: b" ".join(parts), _pieces, _pieces, _pieces), max_size=5))
def test_a_line_has_the_same_fate_in_any_company(lines: list[bytes]) -> None:
    lines = [each for each in lines if b"\n" not in each]
    together = converted(lines, EOT)
    alone = [converted([each], EOT) for each in lines]
    assert [row for one in alone for row in one.rows.to_pylist()] == together.rows.to_pylist()
    assert [reject for one in alone for reject in one.rejects] == together.rejects
    assert [each for each in lines if fault_of(each, EOT.text_fields)] == [
        one.line for one in together.rejects
    ]


def test_rows_are_in_order_whatever_order_the_files_have(tmp_path: Path) -> None:
    lines = [
        line(f"org,a{number % 7})/{number}", f"2013022501{number % 60:02d}36") for number in range(300)
    ]
    sources = []
    for place, part in enumerate((lines[:100], sorted(lines[100:200]), sorted(lines[200:]))):
        source = tmp_path / f"{place}.cdxj.gz"
        source.write_bytes(
            gzip.compress(b"\n".join(part[:50]) + b"\n") + gzip.compress(b"\n".join(part[50:]))
        )
        sources.append(source)
    report = make_table(sources, tmp_path / "table", disk=Disk(), options=TableOptions(file_rows=120))
    assert (report.rows, report.files) == (300, 3)
    [*paths] = sorted((tmp_path / "table").rglob("*.parquet"))
    found = [row for path in paths for row in _keys_of(path)]
    assert found == sorted(found)
    assert [pq.ParquetFile(path).metadata.num_rows for path in paths] == [120, 120, 60]


def test_overlapping_files_that_are_in_order_are_merged(tmp_path: Path) -> None:
    lines = sorted(line(f"org,a)/{number:04d}") for number in range(500))
    sources = []
    for place in range(3):
        sources.append(tmp_path / f"{place}.cdxj")
        sources[-1].write_bytes(b"\n".join(lines[place::3]) + b"\n")
    make_table(sources, tmp_path / "table", disk=Disk())
    [path] = (tmp_path / "table").rglob("*.parquet")
    assert _keys_of(path) == sorted(_keys_of(path))
    assert len(_keys_of(path)) == 500


def test_files_are_made_for_pruning(tmp_path: Path) -> None:
    _, out = make(tmp_path, line())
    [path] = out.rglob("*.parquet")
    metadata: Any = pq.ParquetFile(path).metadata
    group = metadata.row_group(0)
    columns = {
        group.column(place).path_in_schema: group.column(place) for place in range(metadata.num_columns)
    }
    assert {column.compression for column in columns.values()} == {"ZSTD"}
    assert all(column.has_column_index and column.has_offset_index for column in columns.values())
    assert not columns["url"].has_dictionary_page
    assert columns["url_host_tld"].has_dictionary_page
    assert columns["url_surtkey"].statistics.min == "gov,anl,alcf,esp)/blog"
    assert [column.column_index for column in group.sorting_columns] == [0, 17]
    assert metadata.metadata[b"amicrawl.public_suffix_list"].decode() == list_version()
    assert json.loads(metadata.metadata[b"amicrawl.sources"]) == ["index.cdxj"]
    filters = run_sql(
        f"SELECT path_in_schema FROM parquet_metadata('{path}') WHERE bloom_filter_offset > 0"
    )
    assert filters.fetchall() == [("url_host_registered_domain",), ("content_digest",)]


def test_a_key_with_an_octet_below_space_takes_the_claim_of_order_away(tmp_path: Path) -> None:
    _, out = make(tmp_path, line("org,a"), line("org,a\tb"))
    [path] = out.rglob("*.parquet")
    assert not pq.ParquetFile(path).metadata.row_group(0).sorting_columns


def test_the_table_of_common_crawl_has_its_own_columns(tmp_path: Path) -> None:
    identifier = "da5927b0-4efb-469b-a885-04c7347a0dc6"
    _, out = make(
        tmp_path,
        line(redirect="http://x.org/", truncated="length", recordid=identifier),
        line(),
        schema=CCINDEX,
    )  # fmt: skip
    names = [kind.split()[0] for kind in described(f"{out}/**/*.parquet").splitlines()]
    eot = [kind.split()[0] for kind in DESCRIBED.strip().splitlines()]
    assert names[:19] == eot[:19]
    assert names[19:] == [
        "fetch_redirect", "content_digest", "content_mime_type", "content_mime_detected",
        "content_charset", "content_languages", "content_truncated", "warc_filename",
        "warc_record_offset", "warc_record_length", "warc_segment", "warc_record_id", "crawl", "subset",
    ]  # fmt: skip
    found = run_sql(
        f"SELECT fetch_redirect, content_truncated, warc_record_id FROM '{out}/**/*.parquet' "
        "WHERE fetch_redirect > ''"
    )
    assert found.fetchall() == [("http://x.org/", "length", UUID(identifier).bytes)]


def test_a_file_that_breaks_off_gives_what_it_has(tmp_path: Path) -> None:
    source = tmp_path / "cut.cdxj.gz"
    lines = b"".join(line(f"org,a)/{number:06d}") + b"\n" for number in range(20_000))
    source.write_bytes(gzip.compress(lines)[:-2000])
    report = make_table([source], tmp_path / "table", disk=Disk())
    assert 0 < report.rows < 20_000
    assert "cannot be unpacked" in report.damaged[0]


@pytest.mark.parametrize("count", [100, 3_000])
@pytest.mark.parametrize("cut", [8, 200, 600])
def test_every_line_that_is_whole_before_a_cut_gives_a_row(count: int, cut: int, tmp_path: Path) -> None:
    """Up to 64 KiB before the cut were lost: all of a small file."""
    lines = b"".join(
        line(f"org,a)/{number:06d}", digest=f"{number:x}") + b"\n" for number in range(count)
    )
    packed = gzip.compress(lines)[:-cut]
    source = tmp_path / "cut.cdxj.gz"
    source.write_bytes(packed)
    whole = zlib.decompressobj(31).decompress(packed).count(b"\n")
    assert 0 < whole <= count
    assert make_table([source], tmp_path / "table", disk=Disk()).rows == whole


def test_a_pipe_is_refused(tmp_path: Path) -> None:
    """As of `<(zcat ...)` in a shell: it ended the command with a traceback."""
    reading, writing = os.pipe()
    os.close(writing)
    with pytest.raises(InputError, match="is a pipe"):
        make_table([Path(f"/dev/fd/{reading}")], tmp_path / "table", disk=Disk())
    os.close(reading)


def test_a_table_is_not_written_over(tmp_path: Path) -> None:
    make(tmp_path, line())
    with pytest.raises(UsageError, match="holds a table already"):
        make(tmp_path, line())


def test_a_table_that_cannot_be_finished_leaves_nothing_that_looks_whole(tmp_path: Path) -> None:
    class FullDisk(Disk):
        def sync(self, descriptor: int) -> None:
            raise OSError(28, "No space left on device")

    source = tmp_path / "index.cdxj"
    source.write_bytes(line() + b"\n" + line(filename="x") + b"\n")
    with pytest.raises(OutputError):
        make_table([source], tmp_path / "table", disk=FullDisk())
    assert not list((tmp_path / "table").rglob("*.parquet"))
    assert not (tmp_path / "table.report.json").exists()
    assert make_table([source], tmp_path / "table", disk=Disk()).rows == 2
    assert not list((tmp_path / "table").rglob("*.open"))


def test_more_crawls_than_can_be_written_at_a_time_are_refused(tmp_path: Path) -> None:
    names = [f"crawl-data/C{number}/segments/S/warc/x" for number in range(401)]
    with pytest.raises(UsageError, match="more than 400"):
        make(tmp_path, *[line(filename=name) for name in names])


def test_the_command_makes_a_table_and_says_what_it_left_out(tmp_path: Path) -> None:
    (tmp_path / "merged").mkdir()
    (tmp_path / "merged" / "a.cdxj").write_bytes(line() + b"\nbroken\n")
    (tmp_path / "merged" / "b.cdxj").write_bytes(line(filename="own.warc.gz") + b"\n")
    result = CliRunner().invoke(app, ["table", str(tmp_path / "merged"), "-o", str(tmp_path / "table")])
    assert result.exit_code == ExitCode.DAMAGED
    assert "2 rows in 2 files" in result.output
    assert "Filed by month, as crawl=captures-YYYY-MM: 1 row." in result.output
    assert "table.rejects.txt" in result.output
    (tmp_path / "empty").mkdir()
    nothing = CliRunner().invoke(app, ["table", str(tmp_path / "empty"), "-o", str(tmp_path / "t2")])
    assert isinstance(nothing.exception, InputError)


def _keys_of(path: Path) -> list[tuple[str, datetime]]:
    table: Any = pq.ParquetFile(path).read(["url_surtkey", "fetch_time"])
    return list(zip(table["url_surtkey"].to_pylist(), table["fetch_time"].to_pylist(), strict=True))


def test_a_directory_without_an_index_is_refused_with_the_command_for_one(
    tmp_path: Path,
) -> None:
    result = CliRunner().invoke(app, ["table", str(tmp_path), "-o", str(tmp_path / "table")])
    assert isinstance(result.exception, InputError)
    assert "`amicrawl index FILES -o DIR` makes them" in str(result.exception)


@pytest.mark.parametrize("begin", [None, b"WARC/1.0\r\n", b"PAR1"])
def test_no_directory_is_left_of_an_input_that_is_none(tmp_path: Path, begin: bytes | None) -> None:
    source, out = tmp_path / "index.cdxj", tmp_path / "above" / "table"
    if begin is not None:
        source.write_bytes(begin)
    result = CliRunner().invoke(app, ["table", str(source), "-o", str(out)])
    assert isinstance(result.exception, InputError)
    assert not out.parent.exists()
    out.parent.mkdir()
    with pytest.raises(InputError):
        amicrawl.table(source, out=out)
    assert out.parent.exists(), "it was there before"
    assert not out.exists()


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "there are no captures in it"),
        (b"!meta 0 {}\n\n", "there are no captures in it"),
        (bytes(range(256)) * 40, ", mostly because"),
        (gzip.compress(line())[:-20], "cannot be unpacked any further"),
    ],
    ids=["empty", "headers", "garbage", "cut"],
)
def test_a_file_without_captures_gives_an_error_and_no_table(
    tmp_path: Path, content: bytes, why: str
) -> None:
    source, out = tmp_path / "index.cdxj", tmp_path / "table"
    source.write_bytes(content)
    result = CliRunner().invoke(app, ["table", str(source), "-o", str(out)])
    assert isinstance(result.exception, InputError)
    assert result.exception.exit_code == ExitCode.INPUT
    assert f"No table was made of {source}: " in str(result.exception)
    assert why in str(result.exception)
    assert not out.exists()
    assert not beside(out, REPORT_SUFFIX).exists()
    source.write_bytes(line() + b"\n")
    assert make_table([source], out, disk=Disk()).rows == 1, "the directory can be used"
