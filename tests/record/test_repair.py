"""Repair: whatever a killed crawl leaves becomes sealed files whose rows and records agree."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from faulty_disks import QuickDisk
from record.exchanges import (
    CONDITIONAL_REQUEST,
    HEAD,
    NOT_MODIFIED,
    capture,
    check_agreement,
    failed,
    foreign_verdicts,
    item,
    names_in,
    open_archive,
    pages,
    table_rows,
    urls_of,
)

from amicrawl.capture import BytesBody, Truncation, final_url
from amicrawl.errors import DamagedFileError, OutputError, UsageError
from amicrawl.reading import Members
from amicrawl.record.deduplication import labelled
from amicrawl.record.repair import repair
from amicrawl.record.warc import Record, RecordType, gzip_member, target_uri
from amicrawl.seed import Seed

if TYPE_CHECKING:
    from pathlib import Path

    from amicrawl.record import CaptureItem

WARC, JOURNAL = "ami-00000.warc.gz.open", "captures-00000.open"


def leave(directory: Path, *entries: CaptureItem, **settings: Any) -> Path:
    """Store *entries* as a crawl that is killed right after, and return the directory."""
    directory.mkdir(exist_ok=True)
    archive = open_archive(directory, **({"warc_size": 10**6} | settings))
    archive.store(entries)
    archive.close()
    return directory


def mend(directory: Path, *, thorough: bool = True) -> Any:
    """Repair *directory*, check that all agrees, and that a second repair finds nothing to do."""
    repaired = repair(directory, disk=QuickDisk())
    if not thorough:
        return repaired
    before = {path.name: path.read_bytes() for path in directory.iterdir()}
    assert not any(name.endswith(".open") for name in before)
    for path in directory.glob("*.warc.gz"):
        _, by_warcio, by_fastwarc = foreign_verdicts(path)
        assert False not in by_warcio
        assert all(block for block, _ in by_fastwarc)
    if (directory / "captures.parquet").exists():
        check_agreement(directory)
    assert not repair(directory, disk=QuickDisk()).found_anything
    assert {path.name: path.read_bytes() for path in directory.iterdir()} == before
    return repaired


def table_urls(directory: Path) -> list[str]:
    return [row["url"] for row in table_rows(directory)]


def test_a_killed_crawl_loses_nothing_that_was_written(tmp_path: Path) -> None:
    entries = pages(10)
    repaired = mend(leave(tmp_path, *entries))
    assert names_in(tmp_path) == ["ami-00000.warc.gz", "captures.parquet"]
    assert table_urls(tmp_path) == urls_of(entries)
    assert (repaired.rows_kept, repaired.rows_dropped, repaired.rows_rebuilt) == (10, 0, 0)
    [file] = repaired.sealed
    assert (file.name, file.records) == ("ami-00000.warc.gz", 17)
    assert file.size == (tmp_path / file.name).stat().st_size


def test_an_untouched_directory_stays_untouched(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "foreign-00000.warc.gz.open").write_bytes(b"another tool's")
    repaired = repair(tmp_path, disk=QuickDisk())
    assert not repaired.found_anything
    assert names_in(tmp_path) == ["foreign-00000.warc.gz.open", "notes.txt"]


@pytest.mark.parametrize(
    ("warcinfo", "is_ours"), [("software: amicrawl/0.1", True), ("software: other/0.1", False)]
)
def test_a_file_of_another_prefix_is_ours_if_its_first_record_says_so(
    tmp_path: Path, warcinfo: str, is_ours: bool
) -> None:
    """The `crawl.json` that names the prefix is written last, and a kill may come before."""
    leave(tmp_path, *pages(2), prefix="mine")
    path = tmp_path / "mine-00000.warc.gz.open"
    with path.open("rb") as stream:
        first = next(iter(Members(stream)))
    content = path.read_bytes()
    said = gzip.decompress(content[: first.length])
    changed = re.sub(rb"(?m)^software: [^\r]*", warcinfo.encode(), said)
    length = len(changed) - len(said) + first.block_length
    changed = re.sub(rb"(?m)^Content-Length: \d+", b"Content-Length: %d" % length, changed, count=1)
    path.write_bytes(gzip.compress(changed) + content[first.length :])
    assert bool(repair(tmp_path, disk=QuickDisk()).sealed) is is_ours
    assert path.exists() is not is_ours


def test_a_foreign_file_whose_first_page_quotes_our_warcinfo_is_not_ours(tmp_path: Path) -> None:
    page = BytesBody(b"WARC/1.1\r\nsoftware: amicrawl/0.1\r\n")
    quoting = Record(RecordType.RESPONSE, "<urn:uuid:1>", "2026-01-01T00:00:00Z", "", b"", page)
    path = tmp_path / "foreign-00000.warc.gz.open"
    path.write_bytes(gzip_member(quoting))
    assert not repair(tmp_path, disk=QuickDisk()).found_anything
    assert path.exists()


def test_wherever_the_warc_file_is_cut_it_is_repaired(tmp_path: Path) -> None:
    """What is whole stays with its row; what is not is set aside byte for byte, and its URL named."""
    entries = [
        item(capture("http://h/1", body=b"x", request=b"")),
        item(capture("http://h/2", body=b"")),
    ]
    left = leave(tmp_path / "left", *entries)
    whole = (left / WARC).read_bytes()
    with (left / WARC).open("rb") as file:
        members = [
            (member.offset + member.length, member.fields["warc-type"]) for member in Members(file)
        ]
    assert [kind for _, kind in members] == ["warcinfo", "response", "request", "response"]
    ends = [end for end, _ in members]
    # Cuts in the middle of what is compressed are alike: a few of them will do.
    near = {end + distance for end in ends for distance in range(-20, 30)}
    cuts = sorted({*range(0, len(whole), 13), *near} & set(range(len(whole) + 1)))
    for cut in cuts:
        directory = tmp_path / "cut"
        shutil.copytree(left, directory)
        (directory / WARC).write_bytes(whole[:cut])
        kept = sum(end <= cut for end, kind in members if kind == "response")
        repaired = mend(directory, thorough=cut % 20 == 0 or any(abs(cut - end) < 2 for end in ends))
        assert (repaired.rows_kept, repaired.lost_urls) == (kept, urls_of(entries)[kept:])
        assert table_urls(directory) == urls_of(entries)[:kept]
        stored = whole[: max(end for end in ends if end <= cut)] if kept else b""
        # A warcinfo record alone tells nothing and is not kept; a request that was sent is.
        rest = b"" if cut in {0, ends[0]} else whole[len(stored) : cut]
        found = {path.name: path.read_bytes() for path in directory.glob("*.warc.gz*")}
        expected = {"ami-00000.warc.gz": stored, "ami-00000.warc.gz.tail": rest}
        assert found == {name: content for name, content in expected.items() if content}
        assert repaired.tails == ({"ami-00000.warc.gz.tail": len(rest)} if rest else {})
        shutil.rmtree(directory)


def test_every_truncation_of_the_journal_is_repaired_from_the_records(tmp_path: Path) -> None:
    left = leave(tmp_path / "left", *pages(3, size=20))
    whole = (left / JOURNAL).read_bytes()
    for cut in [*range(0, len(whole), 13), len(whole) - 1, len(whole)]:
        directory = tmp_path / "cut"
        shutil.copytree(left, directory)
        (directory / JOURNAL).write_bytes(whole[:cut])
        repaired = mend(directory, thorough=cut % 5 == 0)
        assert repaired.rows_kept + repaired.rows_rebuilt == 3
        assert table_urls(directory) == urls_of(pages(3))
        assert repaired.damaged_lines == []
        shutil.rmtree(directory)


@pytest.mark.parametrize("tail", [b"\0" * 9000, b"garbage", gzip.compress(b"no record")])
def test_what_follows_the_records_is_set_aside(tmp_path: Path, tail: bytes) -> None:
    leave(tmp_path, *pages(3))
    with (tmp_path / WARC).open("ab") as file:
        file.write(tail)
    with (tmp_path / JOURNAL).open("ab") as file:
        file.write(b"\0" * 5000)
    repaired = mend(tmp_path)
    assert (tmp_path / "ami-00000.warc.gz.tail").read_bytes() == tail
    assert repaired.tails == {"ami-00000.warc.gz.tail": len(tail)}
    assert table_urls(tmp_path) == urls_of(pages(3))


@pytest.mark.parametrize("content", [b"", b"\0" * 100, b"x"])
def test_a_file_in_which_nothing_is_whole_is_removed(tmp_path: Path, content: bytes) -> None:
    (tmp_path / WARC).write_bytes(content)
    repaired = mend(tmp_path)
    assert repaired.removed == [WARC]
    assert names_in(tmp_path) == (["ami-00000.warc.gz.tail"] if content else [])


def test_a_file_with_nothing_but_its_warcinfo_is_removed_and_nothing_of_it_set_aside(
    tmp_path: Path,
) -> None:
    leave(tmp_path, item())
    path = tmp_path / WARC
    with path.open("rb") as stream:
        first = next(iter(Members(stream)))
    (tmp_path / JOURNAL).unlink()
    path.write_bytes(path.read_bytes()[: first.length])
    assert mend(tmp_path).removed == [WARC]
    assert names_in(tmp_path) == []


def test_a_request_whose_response_never_arrived_is_set_aside_and_not_thrown_away(tmp_path: Path) -> None:
    only = item()
    leave(tmp_path, only)
    assert only.location is not None
    path = tmp_path / "ami-00000.warc.gz.open"
    sent = path.read_bytes()[: only.location.offset]
    path.write_bytes(sent)
    repaired = mend(tmp_path)
    assert repaired.tails == {"ami-00000.warc.gz.tail": len(sent)}
    assert (tmp_path / "ami-00000.warc.gz.tail").read_bytes() == sent
    assert repaired.lost_urls == urls_of([only])


def test_the_number_of_a_removed_file_with_a_tail_is_not_used_again(tmp_path: Path) -> None:
    (tmp_path / WARC).write_bytes(b"torn")
    archive = open_archive(tmp_path)
    archive.store([item()])
    archive.seal()
    assert names_in(tmp_path) == ["ami-00000.warc.gz.tail", "ami-00001.warc.gz", "captures.parquet"]


def test_rows_of_failures_need_no_record(tmp_path: Path) -> None:
    leave(tmp_path, item(failed("http://a/")), item(failed("http://b/")))
    repaired = mend(tmp_path)
    assert table_urls(tmp_path) == ["http://a/", "http://b/"]
    assert repaired.rows_kept == 2
    assert names_in(tmp_path) == ["captures.parquet"]


def test_the_rows_of_earlier_crawls_stay_first(tmp_path: Path) -> None:
    archive = open_archive(tmp_path)
    archive.store(pages(6))
    archive.seal()
    sealed = {path.name: path.read_bytes() for path in tmp_path.glob("*.warc.gz")}
    leave(tmp_path, *pages(5, first=6))
    mend(tmp_path)
    assert table_urls(tmp_path) == urls_of(pages(11))
    for name, content in sealed.items():
        assert (tmp_path / name).read_bytes() == content


def test_a_crawl_killed_after_files_were_sealed(tmp_path: Path) -> None:
    leave(tmp_path, *pages(31), warc_size=2000)
    assert len(list(tmp_path.glob("*.warc.gz"))) > 3
    assert len(list(tmp_path.glob("*.warc.gz.open"))) == 1
    repaired = mend(tmp_path)
    assert len(repaired.sealed) == 1
    assert table_urls(tmp_path) == urls_of(pages(31))


def test_a_repair_killed_between_the_table_and_the_sealing_gives_no_row_twice(tmp_path: Path) -> None:
    killed, done = leave(tmp_path / "killed", *pages(10)), tmp_path / "done"
    shutil.copytree(killed, done)
    mend(done)
    shutil.copyfile(done / "captures.parquet", killed / "captures.parquet")
    (killed / JOURNAL).unlink()
    repaired = mend(killed)
    assert (repaired.rows_kept, repaired.rows_rebuilt, len(repaired.sealed)) == (0, 0, 1)
    assert table_urls(killed) == urls_of(pages(10))


def rows_but(rows: list[dict[str, Any]], *names: str) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name not in names} for row in rows]


@pytest.mark.parametrize(
    ("status", "location", "target"),
    [
        (301, "/caf\xe9?q=\xfc", "http://h/caf%C3%A9?q=%C3%BC"),
        (302, "http://user:secret@h/there#part", "http://h/there"),
        (304, "/there", "http://h/"),
    ],
)
def test_a_row_that_is_made_again_names_the_target_that_the_crawl_follows(
    tmp_path: Path, status: int, location: str, target: str
) -> None:
    head = f"HTTP/1.1 {status} Moved\r\nLocation: {location}\r\n\r\n".encode()
    redirect = capture("http://h/", head=head, body=b"", status=status)
    leave(tmp_path, item(redirect, final_url=final_url(redirect)))
    (tmp_path / JOURNAL).unlink()
    assert mend(tmp_path).rows_rebuilt == 1
    [row] = table_rows(tmp_path)
    assert target_uri(row["final_url"]) == target
    assert "secret" not in row["final_url"]


def test_a_lost_row_is_made_again_from_its_record(tmp_path: Path) -> None:
    body = b"<p>hello</p>"
    digest = "2ac5ae42cc2a4d0f4a6ce4c3e2b1c5d1a1f2b3c4"
    redirect = b"HTTP/1.1 301 Moved\r\nLocation: ../there?x\r\nLast-Modified: then\r\n\r\n"
    entries = [
        item(capture("http://h/1", body=body)),
        item(capture("http://h/a/b", head=redirect, body=b"", status=301), final_url="http://h/there?x"),
        item(capture("http://h/3", head=b"HTTP/1.1 100 C\r\n\r\n" + HEAD, status=200)),
        item(capture("http://h/4", head=b"HTTP/1.1 200 OK\nA: b\n\n", body=b"\n\nx")),
        item(capture("http://h/5", head=b"", body=b"<p>old</p>\r\n\r\nx", protocol="http/0.9")),
        item(capture("http://h/6", truncated=Truncation.TIME, protocol=None, ip_address=None)),
        item(capture("http://h/7", head=b"HTTP/1.1 500 Oops\r\nA: b", body=b"", status=500)),
        item(capture("http://h/8", head=b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
                     body=b"1\r\nx\r\n0\r\n\r\n")),
        item(capture("http://h/9", head=NOT_MODIFIED, body=b"", status=304, request=CONDITIONAL_REQUEST),
             Seed("http://h/9", digest=digest)),
        item(capture("http://h/10", request=b"", body=b"x" * 3_000_000)),
    ]  # fmt: skip
    made, lost = tmp_path / "made", tmp_path / "lost"
    leave(made, *entries)
    shutil.copytree(made, lost)
    (lost / JOURNAL).unlink()
    assert mend(made).rows_kept == 10
    assert mend(lost).rows_rebuilt == 10
    unknown = ("fetched_at", "duration_ms", "ttfb_ms", "link")
    assert rows_but(table_rows(lost), *unknown) == rows_but(table_rows(made), *unknown)
    for row in table_rows(lost):
        assert (row["fetched_at"], row["duration_ms"], row["ttfb_ms"]) == (1767268800123, 0, None)


def test_of_a_lost_revisit_it_is_told_whether_the_seed_knew_the_payload(tmp_path: Path) -> None:
    body = b"<p>same</p>"
    digest = "3f1aa34c62f7eb8b8c0cbd4f9b1a0e3f0d3a9c11"
    entries = [
        item(capture("http://h/1", body=body)),
        item(capture("http://h/2", body=body)),
        item(capture("http://h/3", head=NOT_MODIFIED, body=b"", status=304, request=CONDITIONAL_REQUEST),
             Seed("http://h/3", digest=digest)),
    ]  # fmt: skip
    leave(tmp_path, *entries, dedup="crawl")
    (tmp_path / JOURNAL).unlink()
    mend(tmp_path)
    stored, again, unchanged = table_rows(tmp_path)
    assert (stored["unchanged"], stored["body_length"]) == (False, 11)
    # The label may be that of a chunked body: then it is not the digest of the payload.
    assert (again["unchanged"], again["digest"]) == (False, "")
    assert again["payload_digest"] == labelled(hashlib.sha1(body, usedforsecurity=False).digest())
    assert (unchanged["unchanged"], unchanged["digest"], unchanged["payload_digest"]) == (
        True,
        digest,
        "",
    )


def test_a_damaged_line_is_told_and_its_row_made_from_the_record(tmp_path: Path) -> None:
    leave(tmp_path, *pages(20), warc_size=2000)
    assert len(list(tmp_path.glob("*.warc.gz"))) > 2
    path = tmp_path / JOURNAL
    lines = path.read_bytes().splitlines(keepends=True)
    sizes = [len(line) for line in lines]
    for number in (1, 17):
        lines[number] = b"\xff" * (len(lines[number]) - 1) + b"\n"
    path.write_bytes(b"".join(lines))
    repaired = mend(tmp_path)
    assert [line.offset for line in repaired.damaged_lines] == [sum(sizes[:1]), sum(sizes[:17])]
    assert (repaired.damaged_line_count, repaired.rows_kept, repaired.rows_rebuilt) == (2, 18, 2)
    assert sorted(table_urls(tmp_path)) == sorted(urls_of(pages(20)))
    assert f"{path}, byte {sizes[0]}" in repaired.sentence()
    damaged = (tmp_path / "captures-00000.damaged").read_bytes()
    assert damaged == b"".join(lines)


def test_a_row_of_a_sealed_file_is_made_again_although_the_open_file_has_all_of_its_rows(
    tmp_path: Path,
) -> None:
    leave(tmp_path, *pages(20), warc_size=7000)
    assert "ami-00002.warc.gz.open" in names_in(tmp_path)
    path = tmp_path / JOURNAL
    path.write_bytes(b"\xff" + path.read_bytes()[1:])
    repaired = mend(tmp_path)
    assert (repaired.rows_kept, repaired.rows_rebuilt) == (19, 1)
    assert sorted(table_urls(tmp_path)) == sorted(urls_of(pages(20)))


@pytest.mark.parametrize("warc_size", [1024, 2000, 10**6])
def test_a_journal_without_a_sound_line_is_made_again_from_all_files_that_no_table_knows(
    tmp_path: Path, warc_size: int
) -> None:
    """Files of one exchange and of several, sealed and open; those of the crawl before stay."""
    archive = open_archive(tmp_path, warc_size=2000)
    archive.store(pages(5))
    archive.seal()
    leave(tmp_path, *pages(20, first=5), warc_size=warc_size)
    path = next(tmp_path.glob("captures-*.open"))
    path.write_bytes(
        b"".join(b"\xff" + line[1:] for line in path.read_bytes().splitlines(keepends=True))
    )
    repaired = mend(tmp_path)
    assert (repaired.rows_kept, repaired.rows_rebuilt, repaired.damaged_line_count) == (0, 16, 20)
    lost = {entry.capture.url for entry in pages(20, first=5) if not entry.capture.status}
    assert sorted(table_urls(tmp_path)) == sorted(set(urls_of(pages(25))) - lost)


def test_rows_that_point_beyond_a_sealed_file_are_dropped(tmp_path: Path) -> None:
    entries = pages(20)
    leave(tmp_path, *entries, warc_size=7000)
    first = tmp_path / "ami-00000.warc.gz"
    inside = [entry for entry in entries if entry.location and entry.location.warc_file == first.name]
    place = inside[1].location
    assert place is not None
    first.write_bytes(first.read_bytes()[: place.offset + place.length])
    repaired = mend(tmp_path)
    assert repaired.lost_urls == urls_of(inside[2:])
    assert len(repaired.lost_urls) > 1
    assert table_urls(tmp_path) == [url for url in urls_of(entries) if url not in repaired.lost_urls]


@pytest.mark.parametrize("listed", [True, False])
def test_rows_of_a_file_that_was_moved_away_stay_if_the_list_has_it(
    tmp_path: Path, listed: bool
) -> None:
    entries = pages(20)
    leave(tmp_path, *entries, warc_size=4000)
    moved = tmp_path / "ami-00000.warc.gz"
    inside = [entry for entry in entries if entry.location and entry.location.warc_file == moved.name]
    files = [{"name": moved.name, "size": moved.stat().st_size, "records": 9, "sha256": ""}]
    if listed:
        (tmp_path / "crawl.json").write_text(json.dumps({"files": files}))
    moved.unlink()
    repaired = repair(tmp_path, disk=QuickDisk())
    assert repaired.lost_urls == ([] if listed else urls_of(inside))
    assert len(inside) > 1
    assert repaired.rows_kept == len(table_rows(tmp_path)) == 20 - len(repaired.lost_urls)


@pytest.mark.parametrize("name", ["../ami-00000.warc.gz", "/etc/passwd", "no-such.warc.gz", "."])
def test_a_row_that_points_out_of_the_directory_is_dropped(tmp_path: Path, name: str) -> None:
    directory = leave(tmp_path / "crawl", item(capture("http://h/")))
    shutil.copy(directory / WARC, tmp_path / "ami-00000.warc.gz")
    path = directory / JOURNAL
    path.write_bytes(path.read_bytes().replace(b'"ami-00000.warc.gz"', f'"{name}"'.encode()))
    repaired = mend(directory)
    assert (repaired.rows_dropped, repaired.rows_rebuilt) == (1, 1)


def test_half_written_tables_and_lists_are_removed(tmp_path: Path) -> None:
    leave(tmp_path, *pages(2))
    for name in ("captures.parquet.open", "crawl.json.open", "ami-00000.warc.gz.tail.open"):
        (tmp_path / name).write_bytes(b"half")
    mend(tmp_path)
    assert names_in(tmp_path) == ["ami-00000.warc.gz", "captures.parquet"]


def test_a_table_that_cannot_be_read_stops_the_repair_before_anything_is_lost(tmp_path: Path) -> None:
    leave(tmp_path, *pages(2))
    (tmp_path / "captures.parquet").write_bytes(b"PAR1 but no table")
    with pytest.raises(DamagedFileError, match="move it away"):
        repair(tmp_path, disk=QuickDisk())
    (tmp_path / "captures.parquet").unlink()
    assert mend(tmp_path).rows_kept == 2


def test_two_files_of_one_name_are_not_judged(tmp_path: Path) -> None:
    leave(tmp_path, *pages(2))
    (tmp_path / "ami-00000.warc.gz").write_bytes(b"somebody's")
    with pytest.raises(OutputError, match="both there"):
        repair(tmp_path, disk=QuickDisk())
    assert (tmp_path / "ami-00000.warc.gz").read_bytes() == b"somebody's"


def test_a_directory_in_use_is_not_repaired(tmp_path: Path) -> None:
    archive = open_archive(tmp_path, warc_size=10**6)
    archive.store(pages(2))
    with pytest.raises(UsageError, match="Another crawl"):
        repair(tmp_path, disk=QuickDisk())
    archive.seal()
    check_agreement(tmp_path)


def test_the_next_crawl_repairs_by_itself_and_says_so(tmp_path: Path) -> None:
    leave(tmp_path, *pages(4))
    with (tmp_path / WARC).open("r+b") as file:
        file.truncate((tmp_path / WARC).stat().st_size - 3)
    archive = open_archive(tmp_path)
    assert archive.repaired.found_anything
    assert archive.repaired.lost_urls == ["http://h0.example/3"]
    assert str(archive.repaired).startswith("1 WARC file sealed, ")
    archive.store(pages(1, first=3))
    archive.seal()
    assert table_urls(tmp_path) == urls_of(pages(4))
    check_agreement(tmp_path)
