"""A password in a URL is not archived: it is left out of seeds, and refused on a command line."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import warm_processes
from archive_reading import read_block, record, records, rows
from loopback import RawServer, crawl, crawl_site, page
from scrapy import Request
from scrapy.http import Response

from amicrawl.capture import Capture, final_url
from amicrawl.crawl.reconstruct import reconstruct, reconstructed_hop
from amicrawl.crawl.requests import provenance_of_request
from amicrawl.errors import ExitCode, UsageError
from amicrawl.fleet.jobs.seedqueue import seed_in
from amicrawl.fleet.jobs.submission import Submission, submit
from amicrawl.frontier import Offer, Source
from amicrawl.frontier.row_strings import offered_entries
from amicrawl.partition.batch import PartitionLink, encoded_batch, encoded_link, links_in
from amicrawl.seed import Seed, SeedFault, open_seed
from amicrawl.urls import UrlKey, without_userinfo

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
        ("\t http://user:pw@a.example/", "\t http://a.example/"),
        ("//user:pw@a.example/", "//a.example/"),
        ("/user:pw@a.example/", "/user:pw@a.example/"),
        ("mailto:user@a.example", "mailto:user@a.example"),
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


def _site(head: bytes) -> bytes:
    """Respond with links, a redirect, a sitemap and requisites that have passwords in their URLs."""
    host = head.lower().partition(b"\nhost:")[2].partition(b"\r")[0].strip()
    bare = b"http://user:hunter2@" + host
    match head.split(b" ")[1]:
        case b"/robots.txt":
            # It is kept as it was sent, by the frontier, too: a password of its own tells it from rows.
            return page(b"Sitemap: http://user:hunter3@%b/map.xml\n" % host, "Content-Type: text/plain")
        case b"/map.xml":
            urls = (
                b"<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'><url><loc>%b/mapped</loc></url></urlset>"
                % bare
            )
            return page(urls, "Content-Type: application/xml")
        case b"/":
            links = b"<a href='%b/linked'>1</a><a href=/moved>2</a>" % bare
            links += b"<img src='//user:hunter2@%b/shown.png'>" % host
            return page(links, "Content-Type: text/html")
        case b"/moved":
            return page(b"", f"Location: {bare.decode()}/target", status="302 Found")
        case b"/based":
            links = b"<base href='%b/dir/'><a href=relative>3</a>" % bare
            return page(links, "Content-Type: text/html")
        case b"/linked":
            return page(b"<a href=/based>4</a>", "Content-Type: text/html")
    return page(b"ok")


@pytest.mark.slow
@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_password_that_a_site_names_is_only_where_the_site_sent_it(
    processes: str, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with RawServer(_site) as server:
        settings = {"AMICRAWL_WARC_METADATA": "1", "AMICRAWL_SITEMAPS": "1", "AMICRAWL_ROBOTS": "obey"}
        arguments = [f"processes={processes}"]
        done = crawl_site(f"{server.url}/", out, arguments=arguments, settings=settings)
    assert done.returncode == 0, done.stderr
    paths = {row["url"].partition(server.url)[2] for row in rows(out)}
    assert paths >= {"/linked", "/moved", "/target", "/mapped", "/shown.png", "/dir/relative"}
    by_url = {row["url"]: row for row in rows(out)}
    assert by_url[f"{server.url}/moved"]["final_url"] == f"{server.url}/target"
    _, block = record(out, by_url[f"{server.url}/moved"])
    assert b"Location: http://user:hunter2@" in block, "what a server sent is kept as it is"
    assert "hunter" not in str([*by_url.values()]) + done.stderr + done.stdout
    for path in out.rglob("*"):
        if path.is_file() and ".warc" not in path.name:
            assert b"hunter2" not in path.read_bytes(), path
    for item in records(out):
        assert "hunter" not in str(item.rec_headers.headers)
        if item.rec_type in ("request", "metadata"):
            assert b"hunter" not in read_block(item)
    frontier = run_amicrawl("frontier", "ls", out)
    assert "/linked" in frontier
    assert "hunter" not in frontier
    assert "hunter2" not in run_amicrawl("frontier", "export", out)
    run_amicrawl("index", *out.glob("*.warc.gz"), "--merge", tmp_path / "all.cdxj")
    listed = (tmp_path / "all.cdxj").read_text()
    assert "/linked" in listed
    assert "hunter" not in listed


def run_amicrawl(*words: str | Path) -> str:
    done = warm_processes.run(
        [sys.executable, "-m", "amicrawl", *map(str, words)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return str(done.stdout)


def test_a_password_in_an_argument_is_refused_and_not_repeated(tmp_path: Path) -> None:
    for done in (
        crawl_site(URL, tmp_path / "out"),
        crawl_site(f"http://b.example/ {URL.removeprefix('http://')}", tmp_path / "out"),
        crawl(f"{URL}list.xml", tmp_path / "out"),
    ):
        assert done.returncode == ExitCode.USAGE, done.stderr
        assert "auth in a crawl file" in done.stderr
        assert "hunter2" not in done.stderr


def test_a_job_whose_url_has_a_password_is_refused_and_nothing_is_written() -> None:
    store: Any = None  # not requested anything
    with pytest.raises(UsageError, match="archived") as refused:
        submit(store, Submission(url=URL), now=0)
    assert "hunter2" not in str(refused.value)


def test_neither_a_record_nor_a_row_nor_a_batch_has_a_password_whoever_requested_it() -> None:
    now = datetime.now(UTC)
    bare = "http://a.example/"
    assert Capture(url=URL, started_ms=0, duration_ms=0).url == bare
    moved = Response(URL, status=302, headers={"Location": f"{URL}x"})
    seen = reconstruct(Request(URL), moved, by="x.Handler", now=now, max_size=9)
    assert (seen.url, final_url(seen)) == (bare, f"{bare}x")
    assert b"hunter2" not in reconstructed_hop(bare, 302, URL, by="x.Handler", now=now).head
    followed = Request(bare, headers={"Referer": URL}, meta={"depth": 1})
    assert provenance_of_request(followed).via == bare
    offer = Offer(Seed(URL), UrlKey(1, 2), Source.LINK, via=URL)
    assert b"hunter2" not in offered_entries(offer)
    links, faults = links_in(encoded_batch([encoded_link(PartitionLink.of(offer))]))
    assert ([link.seed.url for link in links], faults) == ([bare], [])
