"""Journal and table: rows go in, come out unchanged, and are never there twice."""

from __future__ import annotations

import json
import shutil
import tracemalloc
from typing import TYPE_CHECKING, Any, BinaryIO

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from faulty_disks import QuickDisk
from hypothesis import example, given, settings
from hypothesis import strategies as st
from record.exchanges import capture, failed, item, names_in, pages, table_rows, urls_of

from amicrawl.errors import DamagedFileError, InputError
from amicrawl.record import CAPTURES, capture_batches, index_files, opened_index_files, rows_in
from amicrawl.record import table as table_module
from amicrawl.record.captures import row_of
from amicrawl.record.journal import CapturesJournal, DamagedLine, encode_row, read_rows
from amicrawl.record.table import take_in_journals, write_table
from amicrawl.record.writer import RecordLocation
from amicrawl.seed import Seed

if TYPE_CHECKING:
    from pathlib import Path

    from amicrawl.record import CaptureIndex, CaptureItem
    from amicrawl.record.journal import IndexFiles


def keep(directory: Path, *items: CaptureItem) -> None:
    """Write the rows of *items* to the journal of a run that ends well."""
    journal = CapturesJournal(directory, disk=QuickDisk())
    for entry in items:
        journal.add(entry)
    journal.seal()


def leave(directory: Path, *items: CaptureItem) -> Path:
    """Write the rows of *items* to the journal of a run that is killed."""
    journal = CapturesJournal(directory, disk=QuickDisk())
    for entry in items:
        journal.add(entry)
    journal.commit(sync=False)
    journal.close()
    return max(directory.glob("captures-*.open"))


def test_rows_are_readable_json_while_the_crawl_runs(tmp_path: Path) -> None:
    journal = CapturesJournal(tmp_path, disk=QuickDisk())
    entries = pages(7)
    for entry in entries:
        journal.add(entry)
    assert names_in(tmp_path) == []
    assert journal.pending_bytes > 7 * 300
    journal.commit(sync=True)
    assert journal.pending_bytes == 0
    lines = (tmp_path / "captures-00000.open").read_text().splitlines()
    assert [json.loads(line) for line in lines] == [row_of(entry) for entry in entries]
    journal.close()


def test_a_sealed_run_leaves_the_table_alone(tmp_path: Path) -> None:
    entries = pages(7)
    keep(tmp_path, *entries)
    assert names_in(tmp_path) == ["captures.parquet"]
    assert table_rows(tmp_path) == [row_of(entry) for entry in entries]


def test_a_run_without_rows_leaves_an_empty_table(tmp_path: Path) -> None:
    keep(tmp_path)
    assert pq.read_table(tmp_path / "captures.parquet").schema.names == CAPTURES.names
    assert table_rows(tmp_path) == []


def test_the_rows_of_earlier_runs_come_first(tmp_path: Path) -> None:
    first, second, third = pages(3), pages(4, first=3), pages(2, first=7)
    for run in (first, second, third):
        keep(tmp_path, *run)
    assert table_rows(tmp_path) == [row_of(entry) for entry in (*first, *second, *third)]


def test_the_table_says_who_wrote_it_and_is_compressed(tmp_path: Path) -> None:
    keep(tmp_path, *pages(3))
    metadata = pq.read_metadata(tmp_path / "captures.parquet")
    keys = metadata.metadata or {}
    assert keys[b"amicrawl.schema_version"] == b"1"
    assert keys[b"amicrawl.software"].startswith(b"amicrawl/")
    group = metadata.row_group(0)
    assert {group.column(index).compression for index in range(len(CAPTURES))} == {"ZSTD"}


def test_what_is_said_of_the_sealed_table_is_true(tmp_path: Path) -> None:
    journal = CapturesJournal(tmp_path, disk=QuickDisk())
    for entry in pages(4):
        journal.add(entry)
    file = journal.seal()
    content = (tmp_path / "captures.parquet").read_bytes()
    assert (file.name, file.size, file.records) == ("captures.parquet", len(content), 4)
    assert file == CapturesJournal(tmp_path, disk=QuickDisk()).seal()


def test_an_item_that_no_warc_stage_saw_is_measured(tmp_path: Path) -> None:
    digest = "f572d396fae9206628714fb2ce00f72e94f2258f"
    keep(tmp_path, item(capture(body=b"hello\n"), Seed("http://example.org/", digest=digest)))
    [row] = table_rows(tmp_path)
    assert (row["digest"], row["body_length"], row["unchanged"]) == (digest, 6, True)
    assert row["warc_file"] == ""


def test_an_item_that_failed_or_was_stored_is_not_measured(tmp_path: Path) -> None:
    """The digest of a 304 is that of the seed, not that of the empty body."""
    stored = item(capture(body=b""), digest="ab" * 20, body_length=7, unchanged=True)
    stored.location = RecordLocation("ami-00000.warc.gz", 0, 1)
    keep(tmp_path, stored, item(failed()))
    found = [(row["digest"], row["body_length"], row["unchanged"]) for row in table_rows(tmp_path)]
    assert found == [("ab" * 20, 7, True), ("", 0, False)]


TEXT = st.text(st.characters(), max_size=30)


@given(
    url=TEXT,
    meta=TEXT,
    etag=st.binary(max_size=30),
    ttfb=st.integers(min_value=0, max_value=2**31 - 1),
)
@example(url="\x00\x85\u2028\ufffe\U0010ffff", meta="\n\r\x00", etag=b"\x00\n\xff", ttfb=0)
@settings(max_examples=60)
def test_any_text_comes_back_as_it_went_in(
    url: str, meta: str, etag: bytes, ttfb: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = tmp_path_factory.mktemp("t")
    head = b"HTTP/1.1 200 OK\r\nETag: " + etag.replace(b"\n", b"") + b"\r\n\r\n"
    made = item(capture(url, head=head, ttfb_ms=ttfb), Seed(url, meta_json=meta), final_url=url)
    keep(directory, made)
    [row] = table_rows(directory)
    assert row == json.loads(encode_row(row_of(made)))
    if not any(0xD800 <= ord(character) < 0xE000 for character in url + meta):
        assert row == row_of(made)


def test_lone_surrogates_become_replacement_characters_and_pairs_are_joined(tmp_path: Path) -> None:
    odd = item(capture("http://h/\ud800x\ud83d\ude00"), Seed("", meta_json="\udfff"))
    keep(tmp_path, odd, item(capture("http://h/next")))
    row, following = table_rows(tmp_path)
    assert (row["url"], row["meta_json"]) == ("http://h/\ufffdx\U0001f600", "\ufffd")
    assert following["url"] == "http://h/next"


def test_every_truncation_of_a_journal_keeps_the_rows_before_it(tmp_path: Path) -> None:
    entries = pages(2)
    path = leave(tmp_path, *entries)
    whole = path.read_bytes()
    ends = [index + 1 for index, byte in enumerate(whole) if byte == ord("\n")]
    tuples = [tuple(row_of(entry).values()) for entry in entries]
    for cut in range(len(whole)):
        path.write_bytes(whole[:cut])
        damage: list[DamagedLine] = []
        rows = list(read_rows(path, on_damage=damage.append))
        # A line that lacks its newline alone is whole.
        expected = sum(end - 1 <= cut for end in ends)
        assert rows == tuples[:expected]
        assert damage == []


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"\0" * 500, "not JSON"),
        (b"{}", "columns of the index"),
        (b"[]", "columns of the index"),
        (b"null", "columns of the index"),
        (b'{"url": "x"}', "columns of the index"),
        (b'"' + b"x" * 50 + b'"', "columns of the index"),
        (b"\xff\xfe", "not JSON"),
        (orjson.dumps(row_of(item()) | {"status": "200"}), "wrong type"),
        (orjson.dumps(row_of(item()) | {"status": None}), "wrong type"),
        (orjson.dumps(row_of(item()) | {"unchanged": 1}), "wrong type"),
        (orjson.dumps(row_of(item()) | {"status": 2**31}), "out of range"),
        (orjson.dumps(row_of(item()) | {"fetched_at": 2**63}), "out of range"),
        (orjson.dumps(row_of(item()) | {"ttfb_ms": 2**40}), "out of range"),
        (orjson.dumps(row_of(item()) | {"status": -(2**31) - 1}), "out of range"),
        (orjson.dumps(row_of(item()) | {"ttfb_ms": -(2**31) - 1}), "out of range"),
        (b"[" * 2000, "not JSON"),
    ],
)
def test_a_damaged_line_is_reported_with_its_offset_and_passed_over(
    tmp_path: Path, line: bytes, reason: str
) -> None:
    first, second = (encode_row(row_of(entry)) for entry in pages(2))
    path = tmp_path / "captures-00000.open"
    path.write_bytes(first + line + b"\n" + second)
    damage: list[DamagedLine] = []
    rows = [row[0] for row in read_rows(path, on_damage=damage.append)]
    assert rows == ["http://h0.example/0", "http://h1.example/1"]
    [fault] = damage
    assert (fault.path, fault.offset) == (path, len(first))
    assert reason in str(fault)


def test_a_line_without_end_does_not_fill_the_memory(tmp_path: Path) -> None:
    line = encode_row(row_of(item(failed("http://h/"))))
    path = tmp_path / "captures-00000.open"
    path.write_bytes(b"\0" * 5000 + b"\n" + line + b"\0" * 2500)
    damage: list[DamagedLine] = []
    rows = [row[0] for row in read_rows(path, on_damage=damage.append, limit=1000)]
    assert rows == ["http://h/"]
    assert [fault.offset for fault in damage] == [0, 5001 + len(line)]
    assert all("more than 1000 bytes" in str(fault) for fault in damage)


def test_behind_a_line_of_many_megabytes_offsets_are_right_and_memory_was_not_needed(
    tmp_path: Path,
) -> None:
    row = encode_row(row_of(item(failed("http://h/"))))
    path = tmp_path / "captures-00000.open"
    vast = 40 << 20
    with path.open("wb") as file:
        file.truncate(vast)
        file.seek(vast)
        file.write(b"\n" + row + b"{}\n" + row)
    damage: list[DamagedLine] = []
    tracemalloc.start()
    rows = [values[0] for values in read_rows(path, on_damage=damage.append, limit=1 << 20)]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert rows == ["http://h/", "http://h/"]
    assert [fault.offset for fault in damage] == [0, vast + 1 + len(row)]
    assert peak < 10 << 20


@pytest.mark.parametrize(("size", "is_reported"), [(999, False), (1000, True), (1001, True)])
def test_a_last_line_without_end_is_torn_unless_it_is_longer_than_any_row(
    tmp_path: Path, size: int, is_reported: bool
) -> None:
    path = tmp_path / "captures-00000.open"
    path.write_bytes(b"\0" * size)
    damage: list[DamagedLine] = []
    assert list(read_rows(path, on_damage=damage.append, limit=1000)) == []
    assert [fault.offset for fault in damage] == [0] * is_reported


def test_sealing_refuses_a_damaged_journal_and_changes_nothing(tmp_path: Path) -> None:
    keep(tmp_path, *pages(2))
    before = (tmp_path / "captures.parquet").read_bytes()
    path = leave(tmp_path, *pages(2, first=2))
    path.write_bytes(b"{broken\n" + path.read_bytes())
    with pytest.raises(DamagedFileError) as caught:
        CapturesJournal(tmp_path, disk=QuickDisk()).seal()
    assert (caught.value.path, caught.value.offset) == (path, 0)
    assert (tmp_path / "captures.parquet").read_bytes() == before
    assert path.exists()


def test_a_journal_that_the_table_holds_is_not_taken_in_again(tmp_path: Path) -> None:
    """This is how a crash between the new table and the removal of its journals looks."""
    path = leave(tmp_path, *pages(3))
    shutil.copy(path, tmp_path / "copy")
    CapturesJournal(tmp_path, disk=QuickDisk()).seal()
    (tmp_path / "copy").rename(path)
    keep(tmp_path, *pages(2, first=3))
    assert [row["url"] for row in table_rows(tmp_path)] == [entry.capture.url for entry in pages(5)]
    keep(tmp_path)
    assert len(table_rows(tmp_path)) == 5
    assert names_in(tmp_path) == ["captures.parquet"]


@pytest.mark.parametrize("named", [None, b"", b"x", b"1.5", b"9" * 13])
def test_a_table_that_names_no_journal_has_taken_in_none(tmp_path: Path, named: bytes | None) -> None:
    """One that another tool has written; a number that is wrong would drop rows."""
    keep(tmp_path, *pages(2))
    path = tmp_path / "captures.parquet"
    metadata = {} if named is None else {b"amicrawl.last_journal": named}
    pq.write_table(pq.read_table(path).replace_schema_metadata(metadata), path)
    for number in range(2):
        leave(tmp_path, *pages(1, first=2 + number))
    assert names_in(tmp_path) == ["captures-00000.open", "captures-00001.open", "captures.parquet"]
    keep(tmp_path)
    assert [row["url"] for row in table_rows(tmp_path)] == urls_of(pages(4))


def test_row_groups_are_bounded_by_rows_and_by_bytes(tmp_path: Path) -> None:
    small = row_of(item())
    large = small | {"meta_json": "x" * (table_module.ROW_GROUP_BYTES // 4)}
    rows = [tuple(small.values())] * (table_module.ROW_GROUP_ROWS + 5) + [tuple(large.values())] * 6
    write_table(tmp_path, iter(rows), disk=QuickDisk())
    metadata = pq.read_metadata(tmp_path / "captures.parquet")
    groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
    assert sum(group.num_rows for group in groups) == len(rows)
    assert max(group.num_rows for group in groups) < table_module.ROW_GROUP_ROWS * 1.2
    assert max(group.total_byte_size for group in groups) < table_module.ROW_GROUP_BYTES * 1.5
    assert len(groups) == 3


def test_a_table_with_the_thirteen_columns_alone_is_taken_over(tmp_path: Path) -> None:
    thirteen = pa.schema(list(CAPTURES)[:13])
    known: dict[str, Any] = {name: row_of(item())[name] for name in thirteen.names}
    foreign = pa.Table.from_pylist([known | {"error": None, "status": None}], schema=pa.schema(
        [pa.field(field.name, field.type) for field in thirteen]
    ))  # fmt: skip
    pq.write_table(foreign, tmp_path / "captures.parquet")
    keep(tmp_path, item(failed("http://new/")))
    old, new = table_rows(tmp_path)
    assert old == known | {"status": 0, "error": "", "ttfb_ms": None, "unchanged": False} | {
        "etag": "", "last_modified": "", "final_url": "", "ip_address": "", "protocol": "",
        "duration_ms": 0, "truncated": "", "record_id": "", "attempts": 0,
        "payload_digest": "", "original_url": "", "original_at": 0, "via": "", "link": "", "hops": 0,
        "page": "", "resource_type": "",
    }  # fmt: skip
    assert new["url"] == "http://new/"


def test_the_journal_of_an_earlier_version_is_taken_in(tmp_path: Path) -> None:
    earlier = dict(list(row_of(item(failed("http://old/"))).items())[:26])
    (tmp_path / "captures-00000.open").write_bytes(orjson.dumps(earlier) + b"\n")
    keep(tmp_path, item(failed("http://new/")))
    old, new = table_rows(tmp_path)
    assert old == earlier | {"via": "", "link": "", "hops": 0, "page": "", "resource_type": ""}
    assert (new["url"], new["link"]) == ("http://new/", "seed")


def test_a_table_with_unknown_columns_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "captures.parquet"
    pq.write_table(pa.table({"url": ["x"], "later": [1]}), path)
    before = path.read_bytes()
    with pytest.raises(InputError, match="later"):
        keep(tmp_path, item())
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" + b"\0" * 100 + b"PAR1", b"no table at all"])
def test_a_table_that_is_none_is_an_error_that_names_it(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "captures.parquet"
    path.write_bytes(content)
    with pytest.raises(DamagedFileError, match=r"captures\.parquet"):
        keep(tmp_path, item())
    assert path.read_bytes() == content


class Sealing:
    """Lists the files of an index as they were before its crawl sealed it: once, or *always*."""

    def __init__(self, *, always: bool = False) -> None:
        self._stale: list[IndexFiles] = []
        self._always = always

    def __call__(self, directory: Path) -> IndexFiles:
        """Return what there is in *directory*, and seal it behind the caller's back."""
        found = self._stale[0] if self._stale else index_files(directory)
        if not self._stale:
            self._stale.append(found)
            take_in_journals(directory, disk=QuickDisk())
        elif not self._always:
            return index_files(directory)
        return found


def urls_in(files: tuple[list[CaptureIndex], list[BinaryIO]]) -> list[str]:
    tables, unread = files
    urls = [url for table in tables for batch in table.batches(["url"]) for url in batch[0].to_pylist()]
    return urls + [row[0] for each in unread for row in rows_in(each, on_damage=lambda _: None)]


def test_a_crawl_that_seals_its_index_while_that_is_opened_hides_no_row(tmp_path: Path) -> None:
    keep(tmp_path, *pages(2))
    leave(tmp_path, *pages(3, first=2))
    with opened_index_files(tmp_path, listed=Sealing()) as files:
        assert urls_in(files) == [item.seed.url for item in pages(5)]


def test_files_that_are_gone_whenever_they_are_opened_are_an_error_that_says_so(tmp_path: Path) -> None:
    leave(tmp_path, *pages(3))
    with (
        pytest.raises(InputError, match="changed whenever it was read"),
        opened_index_files(tmp_path, listed=Sealing(always=True)),
    ):
        pass


def test_a_table_that_is_gone_when_it_is_opened_is_looked_for_once_more(tmp_path: Path) -> None:
    """As those of the processes of a crawl are, once it has joined them."""
    keep(tmp_path, *pages(2))
    listed = iter([([tmp_path / "processes" / "captures.parquet"], []), index_files(tmp_path)])
    now = index_files(tmp_path)
    with opened_index_files(tmp_path, listed=lambda _: next(listed, now)) as files:
        assert urls_in(files) == [item.seed.url for item in pages(2)]


def test_a_damaged_table_is_named_at_once_and_not_held_for_one_that_changes(tmp_path: Path) -> None:
    (tmp_path / "captures.parquet").write_bytes(b"no table at all")
    with (
        pytest.raises(DamagedFileError, match=r"captures\.parquet"),
        opened_index_files(tmp_path),
    ):
        pass


def test_an_index_that_is_sealed_while_it_is_read_is_read_to_its_end(tmp_path: Path) -> None:
    keep(tmp_path, *pages(2))
    leave(tmp_path, *pages(3, first=2))
    batches = capture_batches(tmp_path, columns=["url"])
    urls = next(batches)[0].to_pylist()
    take_in_journals(tmp_path, disk=QuickDisk())
    assert names_in(tmp_path) == ["captures.parquet"]
    urls += [url for batch in batches for url in batch[0].to_pylist()]
    assert urls == [item.seed.url for item in pages(5)]
