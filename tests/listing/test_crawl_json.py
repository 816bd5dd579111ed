"""`crawl.json`: what a crawl was, through its beginning, its end, and its successors."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from record.exchanges import BEGAN, capture, item, names_in, open_archive, pages

from amicrawl.disk import Disk
from amicrawl.errors import DamagedFileError
from amicrawl.listing import CrawlJson, SealedFile
from amicrawl.listing.crawl_json import known_files

if TYPE_CHECKING:
    from pathlib import Path


def begin(directory: Path, **changes: Any) -> CrawlJson:
    values: dict[str, Any] = {
        "started": BEGAN,
        "asked": {"file": "seeds.txt"},
        "settings": {"AMICRAWL_DELAY": 1.0},
        "versions": {"python": "3.11"},
        "disk": Disk(),
    }
    return CrawlJson(directory, **(values | changes))


def read(directory: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((directory / "crawl.json").read_bytes())
    return found


def test_a_crawl_that_runs_says_what_it_was_given(tmp_path: Path) -> None:
    begin(tmp_path)
    found = read(tmp_path)
    assert found.pop("software").startswith("amicrawl/")
    assert found == {
        "format": 1,
        "state": "running",
        "started": "2026-01-01T12:00:00.123Z",
        "finished": None,
        "finish_reason": None,
        "unfinished": None,
        "asked": {"file": "seeds.txt"},
        "settings": {"AMICRAWL_DELAY": 1.0},
        "versions": {"python": "3.11"},
        "warc_prefix": "ami",
        "counts": {},
        "links": {},
        "ignored": {},
        "unkept": {},
        "files": [],
        "earlier": [],
    }
    assert names_in(tmp_path) == ["crawl.json"]


def test_a_crawl_that_ended_says_why_and_what_came_of_it(tmp_path: Path) -> None:
    crawl = begin(tmp_path)
    crawl.finish("finished", finished=BEGAN + timedelta(hours=1), counts={"rows": 3})
    found = read(tmp_path)
    assert (found["state"], found["finish_reason"]) == ("finished", "finished")
    assert (found["finished"], found["counts"]) == ("2026-01-01T13:00:00.123Z", {"rows": 3})


def test_sealed_files_are_listed_as_soon_as_they_are(tmp_path: Path) -> None:
    crawl = begin(tmp_path)
    archive = open_archive(tmp_path, on_sealed=crawl.add_file)
    archive.store(pages(20))
    listed = read(tmp_path)["files"]
    assert [entry["name"] for entry in listed] == names_in(tmp_path)[: len(listed)]
    assert len(listed) > 2
    archive.seal()
    assert read(tmp_path)["files"][-1]["name"] == "captures.parquet"
    assert read(tmp_path)["files"][-1]["records"] == 20
    assert crawl.files[-1].name == "captures.parquet"


def test_a_file_listed_again_takes_its_old_place(tmp_path: Path) -> None:
    crawl = begin(tmp_path)
    for size in (1, 2):
        crawl.add_file(SealedFile("captures.parquet", size, size, "x"))
    assert [entry["size"] for entry in read(tmp_path)["files"]] == [2]


def test_the_next_crawl_keeps_the_files_and_remembers_the_last(tmp_path: Path) -> None:
    crawl = begin(tmp_path)
    crawl.add_file(SealedFile("ami-00000.warc.gz", 1, 1, "x"))
    crawl.finish("finished", finished=BEGAN, counts={"rows": 1})
    begin(tmp_path)
    begin(tmp_path, started=datetime(2026, 2, 1, tzinfo=UTC))
    found = read(tmp_path)
    assert [entry["name"] for entry in found["files"]] == ["ami-00000.warc.gz"]
    assert [(crawl["state"], crawl["counts"]) for crawl in found["earlier"]] == [
        ("finished", {"rows": 1}),
        ("killed", {}),
    ]
    assert known_files(tmp_path) == {"ami-00000.warc.gz": 1}


def test_a_sealed_file_that_no_list_has_is_read_and_listed(tmp_path: Path) -> None:
    """This is how a kill between the renaming of a file and the next `crawl.json` looks."""
    told: list[SealedFile] = []
    archive = open_archive(tmp_path, on_sealed=told.append, warc_size=10**6)
    archive.store([item(capture()), item(capture())])
    archive.seal()
    assert begin(tmp_path).files == told[:1]


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"3", b'{"files": 3}', b'{"files": [3]}', b'{"files": [{"name": "x"}]}',
     b'{"files": [{"name": 1, "size": 1, "records": 1, "sha256": ""}]}', b'{"earlier": 3}',
     b'{"asked": "x"}', b'{"asked": 3}',
     b'{"files": [{"name": "x", "size": 1, "records": 1, "sha256": "", "more": 1}]}'],
)  # fmt: skip
def test_a_crawl_json_that_is_none_is_an_error_and_left_alone(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "crawl.json").write_bytes(content)
    with pytest.raises(DamagedFileError, match="move it away"):
        begin(tmp_path)
    with pytest.raises(DamagedFileError, match="move it away"):
        known_files(tmp_path)
    assert (tmp_path / "crawl.json").read_bytes() == content


def test_what_json_cannot_say_is_said_as_text(tmp_path: Path) -> None:
    begin(tmp_path, asked={"out": tmp_path})
    assert read(tmp_path)["asked"] == {"out": str(tmp_path)}


def test_a_half_written_one_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "crawl.json.open").write_bytes(b"{")
    begin(tmp_path)
    assert names_in(tmp_path) == ["crawl.json"]
