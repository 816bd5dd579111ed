"""Archive: the order in which things reach the disk, and how soon they are forced there."""

from __future__ import annotations

import hashlib
import random
from typing import IO, TYPE_CHECKING, Any

import pytest
from record.exchanges import (
    BEGAN,
    CONDITIONAL_REQUEST,
    HEAD,
    NOT_MODIFIED,
    capture,
    check_agreement,
    foreign_verdicts,
    item,
    member_at,
    names_in,
    open_archive,
    pages,
    table_rows,
)

from amicrawl.clock import unix_ms
from amicrawl.config import CrawlConfig
from amicrawl.disk import Disk
from amicrawl.errors import UsageError
from amicrawl.record.archive import SYNC_BYTES, warcinfo_fields
from amicrawl.record.warc import Resource
from amicrawl.seed import Seed, open_seed

if TYPE_CHECKING:
    from pathlib import Path

    from amicrawl.capture import Capture
    from amicrawl.listing import SealedFile


class NotingDisk(Disk):
    """A disk that notes the calls of it, by the name of the file."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []
        """Bytes of the largest block that was to be written."""
        self._names: dict[int, str] = {}

    def create(self, path: Path) -> int:
        descriptor = super().create(path)
        self._names[descriptor] = path.name
        self.calls.append(("create", path.name))
        return descriptor

    def write(self, descriptor: int, block: bytes | memoryview) -> int:
        self.calls.append(("write", self._names[descriptor]))
        return super().write(descriptor, block)

    def sync(self, descriptor: int) -> None:
        self.calls.append(("sync", self._names[descriptor]))
        super().sync(descriptor)

    def rename(self, source: Path, target: Path) -> None:
        self.calls.append(("rename", target.name))
        super().rename(source, target)

    def sync_directory(self, directory: Path) -> None:
        self.calls.append(("sync directory", directory.name))
        super().sync_directory(directory)

    def temporary(self, directory: Path) -> IO[bytes]:
        self.calls.append(("temporary", directory.name))
        return super().temporary(directory)

    def taken(self) -> list[tuple[str, str]]:
        """Return the calls since the last time, without those that create or are about directories."""
        calls, self.calls = self.calls, []
        return [call for call in calls if call[0] in {"write", "sync", "rename"}]


WARC, JOURNAL = "ami-00000.warc.gz.open", "captures-00000.open"


def test_a_row_is_written_before_its_record_and_each_batch_at_once(tmp_path: Path) -> None:
    disk = NotingDisk()
    archive = open_archive(tmp_path, disk=disk, warc_size=10**6, durability="none")
    archive.store(pages(10))
    archive.store(pages(10, first=10))
    assert disk.taken() == [("write", JOURNAL), ("write", WARC)] * 2
    archive.close()


def test_full_durability_forces_each_batch_rows_first(tmp_path: Path) -> None:
    disk = NotingDisk()
    archive = open_archive(tmp_path, disk=disk, warc_size=10**6, durability="full")
    for batch in (pages(3), pages(3, first=5)):
        archive.store(batch)
        assert disk.taken() == [("write", JOURNAL), ("sync", JOURNAL), ("write", WARC), ("sync", WARC)]
    archive.commit()
    assert disk.taken() == []
    archive.close()


def test_normal_durability_forces_at_most_once_a_second_and_by_size(tmp_path: Path) -> None:
    disk, times = NotingDisk(), [0.0]
    archive = open_archive(tmp_path, disk=disk, warc_size=10**9, monotonic=lambda: times[0])
    written = [("write", JOURNAL), ("write", WARC)]
    forced = [("write", JOURNAL), ("sync", JOURNAL), ("write", WARC), ("sync", WARC)]
    archive.store(pages(1))
    assert disk.taken() == written
    times[0] = 0.9
    archive.store(pages(1, first=1))
    assert disk.taken() == written
    times[0] = 1.0
    archive.store(pages(1, first=2))
    assert disk.taken() == forced
    times[0] = 1.5
    archive.store(pages(1, first=3))
    assert disk.taken() == written
    times[0] = 2.1
    archive.commit()
    assert disk.taken() == [("sync", JOURNAL), ("sync", WARC)]
    times[0] = 9.0
    archive.commit()
    assert disk.taken() == []
    archive.close()


@pytest.mark.slow
def test_normal_durability_forces_by_size_too(tmp_path: Path) -> None:
    disk = NotingDisk()
    archive = open_archive(tmp_path, disk=disk, warc_size=10**9)
    body = random.Random(1).randbytes(1024**2)
    forced = []
    for number in range(SYNC_BYTES // len(body) + 1):
        archive.store([item(capture(f"http://h/{number}", body=body))])
        forced.append(("sync", WARC) in disk.taken())
    assert forced.count(True) == 1
    assert forced.index(True) >= len(forced) - 3
    archive.close()


def test_before_a_file_is_sealed_its_rows_are_on_disk(tmp_path: Path) -> None:
    disk = NotingDisk()
    archive = open_archive(tmp_path, disk=disk, warc_size=2000, durability="none")
    archive.store(pages(8))
    calls = disk.taken()
    assert calls[:5] == [
        ("write", JOURNAL),
        ("sync", JOURNAL),
        ("write", WARC),
        ("sync", WARC),
        ("rename", "ami-00000.warc.gz"),
    ]
    archive.close()


def test_a_crawl_is_whole_when_it_is_sealed(tmp_path: Path) -> None:
    told: list[SealedFile] = []
    archive = open_archive(tmp_path, on_sealed=told.append)
    archive.store(pages(40))
    archive.seal()
    names = names_in(tmp_path)
    assert names[-1] == "captures.parquet"
    assert len(names) > 5
    assert [file.name for file in told] == names
    for file in told:
        content = (tmp_path / file.name).read_bytes()
        assert (file.size, file.sha256) == (len(content), hashlib.sha256(content).hexdigest())
    for name in names[:-1]:
        _, by_warcio, by_fastwarc = foreign_verdicts(tmp_path / name)
        assert set(by_warcio) == {True}
        assert all(False not in verdict for verdict in by_fastwarc)
    check_agreement(tmp_path)


def test_each_file_is_told_of_once_and_as_soon_as_it_is_sealed(tmp_path: Path) -> None:
    told: list[SealedFile] = []
    archive = open_archive(tmp_path, on_sealed=told.append)
    for entry in pages(40):
        archive.store([entry])
        assert [file.name for file in told] == sorted(path.name for path in tmp_path.glob("*.warc.gz"))
    assert len(told) > 3
    archive.seal()
    assert [file.name for file in told] == names_in(tmp_path)


def test_stages_can_be_driven_one_by_one(tmp_path: Path) -> None:
    archive = open_archive(tmp_path)
    entries = pages(12)
    for entry in entries:
        archive.warc.add(entry)
        archive.index.add(entry)
    archive.commit()
    archive.seal()
    assert [row["url"] for row in table_rows(tmp_path)] == [entry.capture.url for entry in entries]
    check_agreement(tmp_path)


def test_the_next_crawl_goes_on_in_the_same_directory(tmp_path: Path) -> None:
    for first in (0, 10, 20):
        archive = open_archive(tmp_path)
        assert not archive.repaired.found_anything
        archive.store(pages(10, first=first))
        archive.seal()
    assert len(table_rows(tmp_path)) == 30
    check_agreement(tmp_path)


def fields_of(directory: Path, row: dict[str, Any]) -> dict[str, str]:
    head = member_at(directory, row).partition(b"\r\n\r\n")[0].decode()
    return dict(line.split(": ", 1) for line in head.split("\r\n")[1:])


def test_a_payload_met_again_in_the_crawl_refers_to_its_record(tmp_path: Path) -> None:
    archive = open_archive(tmp_path, dedup="crawl")
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    archive.store(
        [
            item(capture("http://h/1", head=chunked, body=b"3\r\nabc\r\n0\r\n\r\n")),
            item(capture("http://h/2", body=b"abc")),
        ]
    )
    archive.seal()
    first, second = table_rows(tmp_path)
    original, revisit = fields_of(tmp_path, first), fields_of(tmp_path, second)
    assert revisit["WARC-Type"] == "revisit"
    assert revisit["WARC-Refers-To"] == original["WARC-Record-ID"] == first["record_id"]
    assert revisit["WARC-Refers-To-Target-URI"] == "http://h/1"
    assert revisit["WARC-Refers-To-Date"] == original["WARC-Date"]
    assert revisit["WARC-Payload-Digest"] == original["WARC-Payload-Digest"]
    assert first["digest"] == second["digest"]
    assert (first["unchanged"], second["unchanged"]) == (False, False)


@pytest.mark.parametrize("settings", [{"dedup": "seed"}, {"dedup": "crawl", "store_unchanged": True}])
def test_payloads_of_a_crawl_are_not_compared_unless_set(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    archive = open_archive(tmp_path, **settings)
    archive.store([item(capture("http://h/1")), item(capture("http://h/2"))])
    archive.seal()
    assert {fields_of(tmp_path, row)["WARC-Type"] for row in table_rows(tmp_path)} == {"response"}


def test_a_recrawl_by_the_index_of_the_last_refers_to_its_records(tmp_path: Path) -> None:
    first, second = tmp_path / "1", tmp_path / "2"
    first.mkdir()
    second.mkdir()
    archive = open_archive(first)
    archive.store([item(capture("http://h/same")), item(capture("http://h/304"))])
    archive.seal()
    rows = {row["url"]: row for row in table_rows(first)}
    seeds = {
        url: Seed(
            url, row["digest"], row["etag"], row["last_modified"], row["fetched_at"] - row["duration_ms"]
        )
        for url, row in rows.items()
    }
    archive = open_archive(second)
    not_modified = capture(
        "http://h/304", head=NOT_MODIFIED, status=304, body=b"", request=CONDITIONAL_REQUEST
    )
    archive.store(
        [
            item(capture("http://h/same"), seeds["http://h/same"]),
            item(not_modified, seeds["http://h/304"]),
        ]
    )
    archive.seal()
    for row in table_rows(second):
        before, now = fields_of(first, rows[row["url"]]), fields_of(second, row)
        assert now["WARC-Type"] == "revisit"
        assert now["WARC-Refers-To-Date"] == before["WARC-Date"]
        assert now["WARC-Refers-To-Target-URI"] == row["url"]
        assert now["WARC-Payload-Digest"] == before["WARC-Payload-Digest"]
        assert row["unchanged"]
        assert row["digest"] == rows[row["url"]]["digest"]
        assert row["etag"] == '"v1"'
    assert [row["body_length"] for row in table_rows(second)] == [12, 0]


def seeds_of(directory: Path) -> dict[str, Seed]:
    """Return what a recrawl by the index in *directory* begins with, by URL."""
    faults: list[object] = []
    with open_seed(str(directory / "captures.parquet"), on_fault=faults.append) as seeds:
        known = {seed.url: seed for seed in seeds}
    assert not faults
    return known


def chunked(url: str, *sizes: int) -> Capture:
    """Return a capture of *url* whose body, always the same, came in chunks of *sizes*."""
    rest, body = b"<p>a page</p>", b""
    for size in sizes:
        body += b"%x\r\n%b\r\n" % (len(rest[:size]), rest[:size])
        rest = rest[size:]
    head = b'HTTP/1.1 200 OK\r\nETag: "v1"\r\nTransfer-Encoding: chunked\r\n\r\n'
    return capture(url, head=head, body=body + b"0\r\n\r\n")


def test_however_often_an_unchanged_page_is_recrawled_the_record_with_its_payload_is_referred_to(
    tmp_path: Path,
) -> None:
    """By the three things that players look it up by: URL, date and payload digest."""
    original: dict[str, str] = {}
    seeds = {url: Seed(url) for url in ("http://h/first", "http://h/304", "http://h/again")}
    for number, sizes in enumerate([(13,), (5, 8), (6, 7)]):
        directory = tmp_path / str(number)
        directory.mkdir()
        made = {url: chunked(url, *sizes) for url in seeds}
        if number:
            made["http://h/304"] = capture(
                "http://h/304", head=NOT_MODIFIED, status=304, body=b"", request=CONDITIONAL_REQUEST
            )
        archive = open_archive(directory, dedup="crawl")
        archive.store([item(made[url], seeds[url]) for url in seeds])
        archive.seal()
        rows = table_rows(directory)
        revisits = [(row, fields_of(directory, row)) for row in rows]
        if not number:
            original = revisits.pop(0)[1]
            assert (rows[0]["original_url"], rows[0]["original_at"]) == ("", 0)
        for row, revisit in revisits:
            assert revisit["WARC-Type"] == "revisit"
            assert revisit["WARC-Refers-To-Target-URI"] == "http://h/first"
            assert revisit["WARC-Refers-To-Date"] == original["WARC-Date"]
            assert revisit["WARC-Payload-Digest"] == original["WARC-Payload-Digest"]
            assert (row["original_url"], row["original_at"]) == ("http://h/first", unix_ms(BEGAN))
        assert {row["payload_digest"] for row in rows} == {original["WARC-Payload-Digest"]}
        assert {row["unchanged"] for row in rows} == {number > 0}
        seeds = seeds_of(directory)


def test_a_payload_whose_record_has_no_payload_digest_is_stored_again(tmp_path: Path) -> None:
    """A revisit record must have that of the record that it refers to."""
    archive = open_archive(tmp_path, dedup="crawl")
    odd = b"HTTP/1.1 200 OK\n\n"
    archive.store([item(capture(f"http://h/{number}", head=odd)) for number in range(2)])
    archive.seal()
    for row in table_rows(tmp_path):
        assert "WARC-Payload-Digest" not in fields_of(tmp_path, row)
        assert fields_of(tmp_path, row)["WARC-Type"] == "response"


def test_what_was_made_of_a_page_lies_before_its_response_to_which_the_row_points(
    tmp_path: Path,
) -> None:
    archive = open_archive(tmp_path)
    archive.store([item(capture(), resources=[Resource("urn:text:", "text/plain", b"hello")])])
    archive.seal()
    [path] = tmp_path.glob("*.warc.gz")
    assert foreign_verdicts(path)[0] == ["warcinfo", "resource", "request", "response"]
    check_agreement(tmp_path)


def test_the_date_of_a_record_is_fetched_at_less_duration(tmp_path: Path) -> None:
    archive = open_archive(tmp_path)
    archive.store([item(capture(head=HEAD))])
    archive.seal()
    [row] = table_rows(tmp_path)
    made = capture()
    assert row["fetched_at"] == made.started_ms + made.duration_ms
    assert row["fetched_at"] - row["duration_ms"] == made.started_ms
    assert fields_of(tmp_path, row)["WARC-Date"] == "2026-01-01T12:00:00.123Z"


def test_one_crawl_at_a_time_has_a_directory(tmp_path: Path) -> None:
    archive = open_archive(tmp_path)
    with pytest.raises(UsageError, match="Another crawl"):
        open_archive(tmp_path)
    archive.seal()
    open_archive(tmp_path).close()
    open_archive(tmp_path).close()


def test_the_warcinfo_says_who_crawls_and_how() -> None:
    config = CrawlConfig(operator="A <a@b.example>", allow_private="10.0.0.0/8,::1", delay=2.5)
    fields = warcinfo_fields(config)
    assert fields["software"].startswith("amicrawl/")
    assert fields["operator"] == "A <a@b.example>"
    assert fields["robots"] == "obey"
    assert fields["AMICRAWL_DELAY"] == "2.5"
    assert fields["AMICRAWL_ALLOW_PRIVATE"] == "10.0.0.0/8,::1/128"
    assert "AMICRAWL_OUT" not in fields


def test_numbers_of_files_that_were_moved_away_are_not_used_again(tmp_path: Path) -> None:
    crawl_json = b'{"files": [{"name": "ami-00006.warc.gz", "size": 9, "records": 1, "sha256": ""}]}'
    (tmp_path / "crawl.json").write_bytes(crawl_json)
    archive = open_archive(tmp_path, warc_size=10**6)
    archive.store(pages(2))
    archive.seal()
    assert "ami-00007.warc.gz" in names_in(tmp_path)
