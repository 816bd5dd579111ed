"""A password in a URL is not archived: it is left out of seeds, and refused on a command line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from archive_reading import rows
from loopback import RawServer, crawl, crawl_site, page

from amicrawl.errors import ExitCode, UsageError
from amicrawl.fleet.jobs.seedqueue import seed_in
from amicrawl.fleet.jobs.submission import Submission, submit
from amicrawl.seed import SeedFault, open_seed
from amicrawl.urls import without_userinfo

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any


@pytest.mark.parametrize(
    ("url", "bare"),
    [
        ("http://user:pw@a.example/x", "http://a.example/x"),
        ("HTTPS://user@a.example:8443", "HTTPS://a.example:8443"),
        ("http://a@b@c.example/?q=@", "http://c.example/?q=@"),
        ("http://a.example/@user", "http://a.example/@user"),
        ("http://a.example?to=x@y", "http://a.example?to=x@y"),
        ("http://a.example#x@y", "http://a.example#x@y"),
        ("http:///user:pw@a.example/", "http:///a.example/"),
        ("http://a.example\\@b.example/", "http://a.example\\@b.example/"),
    ],
)
def test_what_stands_before_the_host_is_taken_off_and_nothing_else(url: str, bare: str) -> None:
    assert without_userinfo(url) == bare


URL = "http://user:hunter2@a.example/"
LISTS = {
    "s.txt": URL.encode(),
    "s.jsonl": b'{"url": "%s"}' % URL.encode(),
    "s.xml": b"<urlset><url><loc>%s</loc></url></urlset>" % URL.encode(),
}


@pytest.mark.parametrize("name", [*LISTS, "s.parquet"])
def test_no_format_of_seed_lists_hands_a_password_on(name: str, tmp_path: Path) -> None:
    if name in LISTS:
        (tmp_path / name).write_bytes(LISTS[name] + b"\n")
    else:
        pq.write_table(pa.table({"url": [URL]}), tmp_path / name)
    faults: list[SeedFault] = []
    with open_seed(str(tmp_path / name), on_fault=faults.append) as reader:
        assert [seed.url for seed in reader] == ["http://a.example/"]
    [fault] = faults
    assert fault.kept
    assert "auth in a crawl file" in fault.reason
    assert "hunter2" not in fault.reason


def test_no_queue_of_seeds_hands_a_password_on() -> None:
    assert seed_in([URL]).url == "http://a.example/"
    assert seed_in([json.dumps({"url": URL})]).url == "http://a.example/"


def test_a_password_in_a_seed_is_in_no_file_of_the_crawl(tmp_path: Path) -> None:
    with RawServer(lambda _: page(b"ok")) as server:
        seeds = tmp_path / "s.txt"
        seeds.write_text(f"{server.url.replace('//', '//user:hunter2@')}/x\n")
        done = crawl(seeds, tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert [row["url"] for row in rows(tmp_path / "out")] == [f"{server.url}/x"]
    assert "hunter2" not in done.stderr
    # Packed files would not show it; what they hold of a URL is what the rows hold.
    for path in (tmp_path / "out").rglob("*"):
        assert path.is_dir() or b"hunter2" not in path.read_bytes(), path


def test_a_password_in_an_argument_is_refused_and_not_repeated(tmp_path: Path) -> None:
    for done in (
        crawl_site(URL, tmp_path / "out"),
        crawl(f"{URL}list.xml", tmp_path / "out"),
    ):
        assert done.returncode == ExitCode.USAGE, done.stderr
        assert "auth in a crawl file" in done.stderr
        assert "hunter2" not in done.stderr


def test_a_job_whose_url_has_a_password_is_refused_and_nothing_is_written() -> None:
    store: Any = None  # not asked for anything
    with pytest.raises(UsageError, match="archived") as refused:
        submit(store, Submission(url=URL), now=0)
    assert "hunter2" not in str(refused.value)
