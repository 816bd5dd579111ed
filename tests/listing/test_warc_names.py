"""Names of WARC files: what a prefix stands for, and what goes by names whatever their prefix is."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pytest
from faulty_disks import QuickDisk
from record.exchanges import BEGAN, member_at, open_archive, pages, table_rows, urls_of

from amicrawl.errors import UsageError
from amicrawl.listing import CrawlJson
from amicrawl.listing.files import LONGEST, expanded, number_in, unsealed_prefix, warc_name
from amicrawl.listing.uploaded import is_plain
from amicrawl.record.repair import repair
from amicrawl.uploads.bucket import open_bucket
from amicrawl.uploads.upload import Uploads

if TYPE_CHECKING:
    from pathlib import Path


def prefix_of(written: str, *, run: str = "run-1", host: str = "crawler7") -> str:
    return expanded(written, run=run, started=BEGAN, host=host)


def test_a_prefix_says_which_run_when_and_where() -> None:
    assert prefix_of("ami") == "ami"
    assert prefix_of("x-{run}_{time}.{host}") == "x-run-1_20260101120000.crawler7"


@pytest.mark.parametrize(
    ("run", "host", "prefix"),
    [
        ("../etc/passwd", "a b\n", "etc-passwd-a-b"),
        (".hidden", "ü.example", "hidden-example"),
        ("", "", "crawl-unnamed"),
        ("...", "{time}", "crawl-time"),
        ("{host}", "h", "host-h"),
    ],
)
def test_what_cannot_stand_in_a_name_is_not_in_it(run: str, host: str, prefix: str) -> None:
    assert prefix_of("{run}-{host}", run=run, host=host) == prefix


def test_all_of_a_jobs_directory_the_time_and_the_machine_fit_a_name_that_can_be_uploaded() -> None:
    base = f"{'s' * 99}e-20260101-120000-abcde"
    prefix = prefix_of("{run}-{time}-{host}", run=base, host="h" * 300)
    assert prefix.startswith(base)
    assert len(prefix) == LONGEST
    assert is_plain(warc_name(prefix, 999_999_999_999))


def test_a_prefix_that_becomes_too_long_is_a_sentence() -> None:
    with pytest.raises(UsageError, match=r"AMICRAWL_WARC_PREFIX is .* choose a shorter one"):
        prefix_of("x" * 90 + "{run}", run="r" * 100)


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("ami-00007.warc.gz", 7),
        ("a-2026-20260101120000-00012.warc.gz.open", 12),
        ("a-00001-100000.warc.gz.tail.open", 100_000),
        ("ami-00031.warc.gz.elsewhere", 31),
        ("ami-0007.warc.gz", None),
        ("ami-20260101120000.warc.gz", None),
        ("ami-00007.warc.wet.gz", None),
        ("captures-00000.open", None),
        ("ami-٠٠٠٠٧.warc.gz", None),
    ],
)
def test_a_number_is_found_behind_any_prefix(name: str, number: int | None) -> None:
    assert number_in(name) == number


def test_only_a_name_that_ends_as_ours_do_is_one_of_an_unfinished_file() -> None:
    assert unsealed_prefix("a-2026-00012.warc.gz.open") == "a-2026"
    for name in ("a-00012.warc.gz", "-00012.warc.gz.open", ".a-00012.warc.gz.open", "a.warc.gz.open"):
        assert unsealed_prefix(name) is None


def begin(directory: Path, prefix: str, *, first: int) -> None:
    """Store pages in files called *prefix*, and leave the last of them as a kill does, torn."""
    directory.mkdir(exist_ok=True)
    archive = open_archive(directory, prefix=prefix)
    CrawlJson(
        directory,
        started=BEGAN,
        asked={},
        settings={},
        versions={},
        disk=QuickDisk(),
        warc_prefix=prefix,
    )
    archive.store([*pages(12, first=first), *pages(1, first=first + 50)])
    archive.close()
    last = max(directory.glob("*.warc.gz.open"))
    with last.open("ab") as file:
        file.write(b"\x1f\x8b torn")


def test_a_killed_crawl_is_mended_by_one_of_another_prefix_and_no_number_comes_twice(
    tmp_path: Path,
) -> None:
    begin(tmp_path, "one-20260101120000", first=0)
    begin(tmp_path, "two", first=100)
    archive = open_archive(tmp_path)
    assert list(archive.repaired.tails.values()) == [7]
    assert archive.repaired.lost_urls == []
    archive.store(pages(12, first=200))
    archive.seal()
    names = sorted(path.name for path in tmp_path.glob("*.warc.gz"))
    numbers = [number_in(name) for name in names]
    assert len(set(numbers)) == len(names)
    assert {name.rpartition("-")[0] for name in names} == {"ami", "one-20260101120000", "two"}
    assert len(list(tmp_path.glob("*.tail"))) == 2
    assert not list(tmp_path.glob("*.open"))
    rows = table_rows(tmp_path)
    stored = [item for first in (0, 100, 200) for item in pages(12, first=first)]
    stored += [*pages(1, first=50), *pages(1, first=150)]
    assert sorted(row["url"] for row in rows) == sorted(urls_of(stored))
    for row in rows:
        if row["status"]:
            assert row["url"].encode() in member_at(tmp_path, row)


@pytest.mark.parametrize("keep", [0, 5, 200])
def test_a_file_torn_within_its_first_record_is_known_by_its_prefix(tmp_path: Path, keep: int) -> None:
    begin(tmp_path, "one", first=0)
    torn = max(tmp_path.glob("*.warc.gz.open"))
    with torn.open("r+b") as file:
        file.truncate(keep)
    repaired = repair(tmp_path, disk=QuickDisk())
    assert repaired.removed == [torn.name]
    assert not torn.exists()


def test_a_file_of_ours_is_known_by_what_it_says_where_crawl_json_is_gone(tmp_path: Path) -> None:
    begin(tmp_path, "one", first=0)
    (tmp_path / "crawl.json").unlink()
    strange = tmp_path / "one-00090.warc.gz.open"
    info = b"WARC/1.0\r\nWARC-Type: warcinfo\r\nContent-Length: 16\r\n\r\nsoftware: other\n\r\n\r\n"
    strange.write_bytes(gzip.compress(info))
    repaired = repair(tmp_path, disk=QuickDisk())
    assert repaired.lost_urls == []
    assert [path.name for path in tmp_path.glob("*.warc.gz.open")] == [strange.name]


def test_files_of_two_prefixes_are_uploaded_and_their_numbers_stay_taken(tmp_path: Path) -> None:
    out = tmp_path / "out"
    begin(out, "one", first=0)
    begin(out, "two-x", first=100)
    repair(out, disk=QuickDisk())
    names = {path.name for path in out.glob("*.warc.gz")}
    bucket = open_bucket((tmp_path / "bucket").as_uri(), disk=QuickDisk())
    sending = Uploads(out, bucket, disk=QuickDisk(), now=lambda: BEGAN, remove=True)
    for file in sending.warc_files():
        sending.upload(file)
    assert names <= {path.name for path in (tmp_path / "bucket").iterdir()}
    assert not list(out.glob("*.warc.gz"))
    archive = open_archive(out, prefix="three")
    archive.store(pages(2, first=300))
    archive.seal()
    [fresh] = out.glob("*.warc.gz")
    assert number_in(fresh.name) == max(number_in(name) or 0 for name in names) + 1
