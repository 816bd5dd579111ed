"""`amicrawl inspect`: finished, running and killed crawls, damaged files, harmless output."""

from __future__ import annotations

import gzip
import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from index.archive_files import ARC_HEADER, arc, gzip_member, http, warc
from record.exchanges import capture, failed, item, open_archive, pages
from typer.testing import CliRunner

from amicrawl.capture import Failure
from amicrawl.cli.inspect import inspect, list_records
from amicrawl.directory_lock import DirectoryLock
from amicrawl.disk import Disk
from amicrawl.errors import AmicrawlError, DamagedFileError, InputError
from amicrawl.listing import CrawlJson
from amicrawl.reading import Container
from amicrawl.seed import Seed
from amicrawl.terminal import aligned, harmless, human_size

if TYPE_CHECKING:
    from collections.abc import Callable

CORPORA = Path(__file__).parents[1] / "data" / "corpora"
TABLES = CORPORA / "parquet" / "bad_data"
WARCS = CORPORA / "warc" / "expectations.jsonl"

app = typer.Typer()
app.command()(inspect)


def shown(*arguments: object) -> str:
    """Return what the command prints; an error of ours is raised."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if isinstance(result.exception, AmicrawlError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def as_json(*arguments: object) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(shown(*arguments, "--json"))
    return found


def finished_crawl(directory: Path, *, count: int = 10) -> Path:
    """Write an archive of *count* pages, every fifth a failure, and a `crawl.json`."""
    directory.mkdir(exist_ok=True)
    sealed: list[Any] = []
    archive = open_archive(directory, on_sealed=sealed.append)
    crawl_json = CrawlJson(
        directory,
        started=capture().started,
        asked={"file": "s.txt"},
        settings={},
        versions={},
        disk=Disk(),
    )
    archive.store(pages(count))
    archive.seal()
    archive.close()
    for file in sealed:
        crawl_json.add_file(file)
    crawl_json.finish("finished", finished=capture().started, counts={"ok": count - count // 5})
    return directory


def killed_crawl(directory: Path, *, count: int = 10) -> Path:
    """Write an archive of *count* pages that nobody seals."""
    archive = open_archive(directory, warc_size=1_000_000)
    archive.store(pages(count))
    archive.commit()
    archive.close()
    return directory


def test_a_finished_crawl_is_shown_with_counts_files_and_first_rows(tmp_path: Path) -> None:
    lines = shown(finished_crawl(tmp_path), "-n", 5).splitlines()
    assert lines[0].endswith("0 unchanged, 2 failed")
    assert lines[0].startswith("10 rows, ")
    assert lines[1] == "status: 200 8, ERR 2"
    assert lines[2].startswith("crawl: state finished, started 2026-01-01T12:00:00.123Z, finished ")
    assert lines[3] == "counts: ok 8"
    table = lines[lines.index("") :]
    assert [line.split()[0] for line in table if ".warc.gz" in line] == [
        f"ami-0000{n}.warc.gz" for n in range(4)
    ]
    assert all(line.endswith("sealed") for line in table if ".warc.gz" in line)
    head = next(number for number, line in enumerate(lines) if line.startswith("STATUS"))
    assert lines[head].split() == ["STATUS", "BYTES", "HOST", "URL"]
    rows = [line.split() for line in lines[head + 1 :]]
    assert rows[0] == ["200", "308", "h0.example", "http://h0.example/0"]
    assert rows[4][:4] == ["ERR", "0", "h1.example", "http://h1.example/4"]
    assert rows[4][4] == "(connection-refused:"
    assert lines[-1] == "... and 5 more"


def test_an_index_by_itself_is_shown(tmp_path: Path) -> None:
    found = as_json(finished_crawl(tmp_path) / "captures.parquet", "-n", 1)
    assert found["rows"] == 10
    assert found["statuses"] == {"0": 2, "200": 8}
    assert found["failed"] == 2
    assert found["captures"] == [
        {
            "status": 200,
            "body_length": 308,
            "host": "h0.example",
            "url": "http://h0.example/0",
            "error": "",
        }
    ]
    assert (found["files"], found["crawl"]) == ([], None)


def test_numbers_agree_with_the_index(tmp_path: Path) -> None:
    directory = finished_crawl(tmp_path, count=60)
    rows = pq.read_table(directory / "captures.parquet").to_pylist()
    found = as_json(directory, "-n", 0)
    assert found["rows"] == len(rows) == 60
    assert found["bytes"] == sum(row["body_length"] for row in rows)
    assert found["captures"] == []
    assert as_json(directory, "-n", 1000)["captures"] == [
        {name: row[name] for name in ("status", "body_length", "host", "url", "error")} for row in rows
    ]


def test_files_are_listed_with_records_and_what_differs_from_the_list_is_said(tmp_path: Path) -> None:
    directory = finished_crawl(tmp_path)
    with (directory / "ami-00001.warc.gz").open("r+b") as file:
        file.truncate(100)
    (directory / "ami-00009.warc.gz.tail").write_bytes(b"torn")
    (directory / "frontier").mkdir()
    (directory / "frontier" / "super").write_bytes(b"x" * 512)
    files = {file["name"]: file for file in as_json(directory)["files"]}
    assert files["ami-00000.warc.gz"]["state"] == "sealed"
    first = as_json(directory / "ami-00000.warc.gz", "-n", 100)
    assert files["ami-00000.warc.gz"]["records"] == len(first["records"])
    assert files["captures.parquet"]["records"] == 10
    assert files["ami-00001.warc.gz"] == {
        "name": "ami-00001.warc.gz",
        "size": 100,
        "state": "not as listed",
        "records": files["ami-00001.warc.gz"]["records"],
    }
    assert files["ami-00009.warc.gz.tail"]["state"] == "set aside"
    assert files["frontier/super"] == {
        "name": "frontier/super",
        "size": 512,
        "state": "",
        "records": None,
    }


def test_a_killed_or_running_crawl_is_shown_from_its_journal(tmp_path: Path) -> None:
    directory = killed_crawl(tmp_path)
    found = as_json(directory, "-n", 3)
    assert (found["rows"], found["failed"], found["statuses"]) == (10, 2, {"0": 2, "200": 8})
    assert [row["url"] for row in found["captures"]] == [f"http://h{n}.example/{n}" for n in range(3)]
    assert {file["name"]: file["state"] for file in found["files"]} == {
        "ami-00000.warc.gz.open": "being written",
        "captures-00000.open": "being written",
    }
    assert "ami-00000.warc.gz.open" in shown(directory)


def test_a_journal_by_itself_is_shown_without_its_torn_last_line(tmp_path: Path) -> None:
    (journal,) = killed_crawl(tmp_path).glob("captures-*.open")
    content = journal.read_bytes()
    journal.write_bytes(content[:-20])
    found = as_json(journal)
    assert (found["rows"], found["notes"]) == (9, [])


def test_damaged_lines_of_a_journal_are_told_and_passed_over(tmp_path: Path) -> None:
    (journal,) = killed_crawl(tmp_path).glob("captures-*.open")
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join([lines[0], b"{}\n", *lines[1:4], b"\x00" * 50 + b"\n", *lines[5:]]))
    found = as_json(tmp_path)
    assert found["rows"] == 9
    assert len(found["notes"]) == 1
    assert found["notes"][0].startswith("captures-00000.open has 2 damaged lines, the first: ")


def test_rows_of_table_and_journal_are_counted_once_each(tmp_path: Path) -> None:
    directory = finished_crawl(tmp_path)
    archive = open_archive(directory, warc_size=1_000_000)
    archive.store(pages(5, first=10))
    archive.commit()
    archive.close()
    found = as_json(directory, "-n", 12)
    assert found["rows"] == 15
    assert [row["url"].rpartition("/")[2] for row in found["captures"]] == [str(n) for n in range(12)]


def test_a_journal_that_the_table_has_taken_in_is_not_counted_again(tmp_path: Path) -> None:
    directory = killed_crawl(tmp_path)
    (journal,) = directory.glob("captures-*.open")
    content = journal.read_bytes()
    archive = open_archive(directory)
    archive.seal()
    archive.close()
    assert not journal.exists()
    journal.write_bytes(content)
    assert as_json(directory)["rows"] == 10


def test_records_of_a_warc_file_are_listed_where_the_index_says_they_are(tmp_path: Path) -> None:
    directory = finished_crawl(tmp_path)
    found = as_json(directory / "ami-00000.warc.gz", "-n", 100)
    assert (found["more"], found["fault"], found["open"]) == (False, "", False)
    assert found["records"][0]["type"] == "warcinfo"
    assert sum(record["length"] for record in found["records"]) == found["size"]
    listed = {
        (record["offset"], record["length"], record["status"], record["uri"])
        for record in found["records"]
        if record["type"] == "response"
    }
    rows = pq.read_table(directory / "captures.parquet").to_pylist()
    assert listed == {
        (row["warc_offset"], row["warc_length"], row["status"], row["url"])
        for row in rows
        if row["warc_file"] == "ami-00000.warc.gz"
    }
    assert len(listed) > 1


def test_the_listing_ends_where_it_is_told_to(tmp_path: Path) -> None:
    path = finished_crawl(tmp_path) / "ami-00000.warc.gz"
    lines = shown(path, "-n", 3).splitlines()
    assert [line.split()[2] for line in lines[1:5]] == ["TYPE", "warcinfo", "request", "response"]
    assert lines[5] == "... and more; -n says how many are shown"
    everything = as_json(path, "-n", 100)["records"]
    assert as_json(path, "-n", 3)["records"] == everything[:3]


@pytest.mark.parametrize("cut", [1, 9, 40, 400])
def test_of_a_warc_file_that_is_being_written_the_whole_records_are_listed(
    tmp_path: Path, cut: int
) -> None:
    path = killed_crawl(tmp_path) / "ami-00000.warc.gz.open"
    whole = as_json(path, "-n", 100)
    assert (whole["open"], whole["fault"], len(whole["records"])) == (True, "", 17)
    with path.open("r+b") as file:
        file.truncate(whole["size"] - cut)
    found = as_json(path, "-n", 100)
    assert found["records"] == [
        record for record in whole["records"] if record["offset"] + record["length"] <= found["size"]
    ]
    assert found["fault"]
    assert "note: " in shown(path, "-n", 100)


def test_a_warc_file_with_nothing_in_it_yet_is_one(tmp_path: Path) -> None:
    path = tmp_path / "ami-00000.warc.gz.open"
    path.touch()
    assert as_json(path)["records"] == []


def test_damage_in_a_warc_file_ends_the_listing(tmp_path: Path) -> None:
    path = finished_crawl(tmp_path) / "ami-00000.warc.gz"
    whole = as_json(path, "-n", 100)["records"]
    content = bytearray(path.read_bytes())
    content[whole[4]["offset"] + 30] ^= 0xFF
    path.write_bytes(content)
    found = as_json(path, "-n", 100)
    assert found["records"] == whole[:4]
    assert found["fault"]


def test_a_last_record_whose_checksum_is_wrong_is_not_listed(tmp_path: Path) -> None:
    path = finished_crawl(tmp_path) / "ami-00000.warc.gz"
    whole = as_json(path, "-n", 100)["records"]
    content = bytearray(path.read_bytes())
    content[-6] ^= 1
    path.write_bytes(content)
    found = as_json(path, "-n", 100)
    assert found["records"] == whole[:-1]
    assert found["fault"]


@pytest.mark.parametrize(
    ("name", "content", "error"),
    [
        ("x.warc.gz", b"hello", InputError),
        ("x.warc.gz", gzip.compress(b"hello" * 100), DamagedFileError),
        ("x.warc", b"WARC/1.1\r\noops", DamagedFileError),
        ("captures.parquet", b"hello", InputError),
        ("captures.parquet", b"", InputError),
        ("captures.parquet", b"PAR1" + b"x" * 200, DamagedFileError),
        ("captures.parquet", b"PAR1", DamagedFileError),
    ],
)
def test_what_is_no_crawl_or_a_damaged_one_is_said_in_a_sentence(
    tmp_path: Path, name: str, content: bytes, error: type[AmicrawlError]
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(error, match=name):
        shown(path)


def test_a_column_name_that_is_no_utf_8_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "captures.parquet"
    pq.write_table(pa.table({"status": [200], "remarkable": ["x"]}), path, store_schema=False)
    path.write_bytes(path.read_bytes().replace(b"remarkable", b"remark\xffble"))
    with pytest.raises(DamagedFileError, match="not a whole Parquet file"):
        shown(path)


def test_a_table_that_is_no_index_is_said_to_lack_columns(tmp_path: Path) -> None:
    path = tmp_path / "seeds.parquet"
    pq.write_table(pa.table({"url": ["http://a.example/"], "status": [200]}), path)
    with pytest.raises(
        InputError, match=r"is not a capture index: it lacks body_length, error, host, unchanged\."
    ):
        shown(path)


def test_an_index_of_the_thirteen_columns_is_enough(tmp_path: Path) -> None:
    table = pq.read_table(finished_crawl(tmp_path) / "captures.parquet")
    assert table.column_names[12] == "meta_json"
    pq.write_table(table.select(range(13)), tmp_path / "theirs.parquet", row_group_size=3)
    found = as_json(tmp_path / "theirs.parquet", "-n", 7)
    assert (found["rows"], len(found["captures"])) == (10, 7)


def test_missing_paths_and_empty_directories_say_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none cannot be read: No such file or directory\. Check"):
        shown(tmp_path / "none")
    with pytest.raises(InputError, match=r"holds no crawl\. Give the output directory of one\."):
        shown(tmp_path)
    finished_crawl(tmp_path / "run-1")
    with pytest.raises(InputError, match=r"holds no crawl\. Give one of the runs in it: .*run-1\."):
        shown(tmp_path)


@pytest.mark.parametrize("content", [b"{", b"[1]", b"\xff", b'"x"', b'{"files": [{"name": 2}]}'])
def test_a_damaged_crawl_json_hides_nothing_else(tmp_path: Path, content: bytes) -> None:
    directory = finished_crawl(tmp_path)
    (directory / "crawl.json").write_bytes(content)
    found = as_json(directory)
    assert (found["rows"], found["crawl"]) == (10, None)
    assert found["notes"][0].startswith("crawl.json ")


def test_a_crawl_json_that_lists_no_files_is_no_reason_to_stop(tmp_path: Path) -> None:
    directory = finished_crawl(tmp_path)
    (directory / "crawl.json").write_text(json.dumps({"counts": [1], "state": 5}))
    assert as_json(directory)["crawl"] == {"counts": [1], "state": 5}
    assert "10 rows" in shown(directory)


def test_nothing_from_the_web_reaches_the_terminal_raw(tmp_path: Path) -> None:
    url = "http://evil.example/\x1b[2J\x1b]0;owned\x07\u202egpj.exe\u2066\x9b31m\x7f\u200b"
    archive = open_archive(tmp_path)
    archive.store(
        [
            item(capture(url), Seed(url)),
            item(failed(url, failure_detail="\u202eoops\x1b[31m\x9b"), Seed(url)),
        ]
    )
    archive.seal()
    archive.close()
    (tmp_path / "crawl.json").write_text(json.dumps({"state": "\x1b[31m", "counts": {"\x9b": "\u202e"}}))
    (tmp_path / "\u202etxt.\x1b[31m").write_text("x")
    for arguments in ((tmp_path,), (tmp_path / "captures.parquet",), (tmp_path / "ami-00000.warc.gz",)):
        text = shown(*arguments)
        assert "evil.example" in text
        assert all(line.isprintable() for line in text.split("\n"))
        told = shown(*arguments, "--json")
        assert told.isascii()
        assert told.rstrip("\n").isprintable()
    assert as_json(tmp_path)["captures"][0]["url"] == url
    assert r"http://evil.example/\x1b[2J\x1b]0;owned\x07\u202egpj.exe\u2066\x9b31m\x7f\u200b" in shown(
        tmp_path
    )


def test_a_url_without_end_is_cut_for_people_and_whole_for_programs(tmp_path: Path) -> None:
    url = "http://a.example/" + "x" * 10_000
    archive = open_archive(tmp_path)
    archive.store([item(capture(url), Seed(url))])
    archive.seal()
    archive.close()
    assert max(map(len, shown(tmp_path).splitlines())) < 600
    assert as_json(tmp_path)["captures"][0]["url"] == url


@pytest.mark.parametrize("count", ["-1", "x", "100001"])
def test_a_count_that_makes_no_sense_is_wrong_usage(tmp_path: Path, count: str) -> None:
    result = CliRunner().invoke(app, [str(tmp_path), "-n", count])
    assert result.exit_code == 2


def test_damaged_tables_of_the_corpus_raise_our_errors_only() -> None:
    paths = sorted(TABLES.glob("*.parquet"))
    assert len(paths) == 8
    for path in paths:
        with pytest.raises((InputError, DamagedFileError)):
            shown(path)


@pytest.mark.skipif(not WARCS.exists(), reason="the conformance data is not beside the project")
def test_files_of_the_corpus_are_listed_whole_or_refused() -> None:
    listed = 0
    for line in WARCS.read_text().splitlines():
        row = json.loads(line)
        path = WARCS.parent / row["file"]
        if row["valid"] is True and "records" in row and row.get("format") is None:
            found = list_records(path, limit=10_000)
            assert (len(found.records), found.fault) == (row["records"], ""), row["file"]
            listed += 1
            continue
        with suppress(InputError, DamagedFileError):
            assert list_records(path, limit=10_000).size == path.stat().st_size
    assert listed > 15


def test_what_is_behind_damage_is_listed_too(tmp_path: Path) -> None:
    path = tmp_path / "a.warc.gz"
    members = [gzip_member(warc("response", block=http(b"%d" % number))) for number in range(3)]
    damaged = bytearray(b"".join(members))
    damaged[len(members[0]) + 40] ^= 0xFF
    path.write_bytes(damaged)
    listing = list_records(path, limit=10)
    assert [record.offset for record in listing.records] == [0, len(members[0]) + len(members[1])]
    assert listing.fault.startswith(f"byte {len(members[0])}: ")


@pytest.mark.parametrize("pack", [bytes, gzip_member])
def test_the_records_of_an_arc_file_are_listed(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "a.arc"
    path.write_bytes(pack(ARC_HEADER) + pack(arc("http://a.example/", http())))
    listed = as_json(path)["records"]
    assert [(record["type"], record["status"], record["uri"]) for record in listed] == [
        ("warcinfo", None, "filedesc://test.arc"),
        ("response", 200, "http://a.example/"),
    ]


def test_the_records_of_a_file_with_a_dictionary_are_listed(tmp_path: Path) -> None:
    """As ArchiveTeam writes them; the dictionary is in a frame that others skip."""
    path = tmp_path / "a.warc.zst"
    records = [warc("response", block=http(b"%d" % number)) for number in range(300)]
    samples: list[bytes | bytearray | memoryview] = [*records]
    dictionary = zstandard.train_dictionary(4096, samples)
    packer = zstandard.ZstdCompressor(dict_data=dictionary)
    content = dictionary.as_bytes()
    head = b"\x5d\x2a\x4d\x18" + len(content).to_bytes(4, "little") + content
    path.write_bytes(head + b"".join(map(packer.compress, records[:3])))
    listing = list_records(path, limit=10)
    assert (len(listing.records), listing.records[0].offset) == (3, len(head))
    with Container(path) as container:
        assert container.is_compressed


def test_of_rows_that_are_not_shown_only_the_counted_columns_are_read(tmp_path: Path) -> None:
    path = tmp_path / "captures.parquet"
    table = pq.read_table(finished_crawl(tmp_path, count=200) / "captures.parquet")
    pq.write_table(table, path, row_group_size=50, use_dictionary=False)
    columns = pq.ParquetFile(path).metadata.row_group(3)
    place = next(c for c in map(columns.column, range(columns.num_columns)) if c.path_in_schema == "url")
    with path.open("r+b") as file:
        file.seek(place.data_page_offset)
        file.write(bytes(place.total_compressed_size))
    found = as_json(path, "-n", 150)
    assert (found["rows"], len(found["captures"]), sum(found["statuses"].values())) == (200, 150, 200)
    with pytest.raises(DamagedFileError, match="not a whole Parquet file"):
        shown(path, "-n", 151)


@given(st.text(max_size=50), st.integers(1, 60))
def test_harmless_text_is_printable_short_and_the_same_where_it_was(text: str, limit: int) -> None:
    made = harmless(text, limit=limit)
    assert made.isprintable()
    if text.isprintable() and len(text) <= limit:
        assert made == text


def test_columns_are_aligned_and_long_cells_stick_out_alone() -> None:
    rows = [("A", "N", "U"), ("x" * 50, "1", "u"), ("y", "1000", "u")]
    assert list(aligned(rows, right=(False, True, False))) == [
        "A" + " " * 39 + "     N  U",
        "x" * 50 + "     1  u",
        "y" + " " * 39 + "  1000  u",
    ]


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1_500_000, "1.4 MiB"),
        (2**30, "1.0 GiB"),
        (2**60, "1,048,576.0 TiB"),
    ],
)
def test_sizes_are_written_for_people(size: int, text: str) -> None:
    assert human_size(size) == text


def crawl_json_of(directory: Path, state: str) -> None:
    (directory / "crawl.json").write_text(json.dumps({"state": state, "started": "2026"}))


def test_what_was_not_requested_is_counted_apart_from_what_failed(tmp_path: Path) -> None:
    refused = Failure.ROBOTS_DENIED
    archive = open_archive(tmp_path)
    archive.store(
        [
            item(capture("http://a.example/0")),
            item(failed("http://a.example/1")),
            item(failed("http://a.example/2", failure=refused, failure_detail="disallowed")),
        ]
    )
    archive.commit()
    for written in ("in the journal", "in the table"):
        found = as_json(tmp_path)
        assert (found["failed"], found["skipped"]) == (1, 1), written
        assert shown(tmp_path).splitlines()[0].endswith("0 unchanged, 1 failed, 1 skipped")
        if written == "in the journal":
            archive.seal()
            archive.close()


def test_a_crawl_that_nobody_runs_any_more_is_not_said_to_run(tmp_path: Path) -> None:
    directory = killed_crawl(tmp_path)
    crawl_json_of(directory, "running")
    with DirectoryLock(directory):
        assert "crawl: state running, started" in shown(directory)
        assert as_json(directory)["is_held"] is True
    assert "state running, or killed (no process holds the directory), started" in shown(directory)
    assert as_json(directory)["is_held"] is False
    DirectoryLock(directory).release()
    crawl_json_of(directory, "finished")
    assert as_json(directory)["is_held"] is None
