"""What a crawl does between the first seed and the last row, each against a real server."""

from __future__ import annotations

import gzip
import hashlib
import json
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from archive_reading import check_sealed, record, records, rows
from loopback import RawServer, crawl, page, write_jsonl, write_lines

from amicrawl import __version__
from amicrawl.errors import ExitCode

if TYPE_CHECKING:
    from pathlib import Path


def index(out: Path) -> dict[str, dict[str, Any]]:
    """Return the rows of *out* by the path of their URL."""
    return {"/" + row["url"].split("/", 3)[3]: row for row in rows(out)}


def path_of(head: bytes) -> str:
    return head.split(b" ")[1].decode("latin-1")


def test_urls_are_requested_as_written_and_every_distinct_line_is_fetched(tmp_path: Path) -> None:
    paths = [
        "/A?b=2&a=1&utm_source=x",
        "/a?a=1&b=2",
        "/a/../b",
        "/a//c",
        "/%7Euser",
        "/~user",
        "/index.html",
        "/",
        "/caf%c3%a9",
    ]
    with RawServer(lambda _: page(b"ok")) as server:
        urls = [server.url + path for path in paths]
        done = crawl(write_lines(tmp_path / "s.txt", [*urls, urls[0]]), tmp_path / "out")
        requested = sorted(path_of(head) for head in server.requests)
    assert done.returncode == 0, done.stderr
    assert requested == sorted(paths)
    assert sorted(row["url"] for row in rows(tmp_path / "out")) == sorted(urls)


def test_what_cannot_stand_in_a_request_is_encoded_and_nothing_is_dropped(tmp_path: Path) -> None:
    with RawServer(lambda _: page(b"ok")) as server:
        urls = [
            f"{server.url}/a b",
            f"{server.url}/é",
            f'{server.url}/<x>"',
            f"http://under_score.invalid:{server.port}/",
        ]
        done = crawl(write_lines(tmp_path / "s.txt", urls), tmp_path / "out")
        requested = {path_of(head) for head in server.requests}
    assert done.returncode == 0, done.stderr
    assert requested == {"/a%20b", "/%C3%A9", "/%3Cx%3E%22"}
    assert len(rows(tmp_path / "out")) == 4


def test_canonical_identity_makes_variants_of_a_page_one_row(tmp_path: Path) -> None:
    with RawServer(lambda _: page(b"ok")) as server:
        urls = [f"{server.url}/a?x=1&y=2", f"{server.url}/a?y=2&x=1&utm_source=z"]
        crawl(
            write_lines(tmp_path / "s.txt", urls),
            tmp_path / "out",
            settings={"AMICRAWL_IDENTITY": "canonical"},
        )
        requested = [path_of(head) for head in server.requests]
    assert requested == ["/a?x=1&y=2"]


def test_a_host_is_contacted_no_faster_than_its_delay(tmp_path: Path) -> None:
    with RawServer(lambda _: page(b"ok"), keep_open=True) as server:
        seeds = write_lines(tmp_path / "s.txt", [f"{server.url}/{n}" for n in range(5)])
        crawl(seeds, tmp_path / "out", settings={"AMICRAWL_DELAY": "0.3", "AMICRAWL_PER_HOST": "1"})
    gaps = [after - before for (before, _), (after, _) in pairwise(server.arrivals)]
    assert len(gaps) == 4
    assert min(gaps) > 0.25, gaps


def test_one_request_at_a_time_is_in_flight_to_a_host(tmp_path: Path) -> None:
    with RawServer(lambda _: page(b"ok"), pause=0.1) as server:
        seeds = write_lines(tmp_path / "s.txt", [f"{server.url}/{n}" for n in range(6)])
        crawl(seeds, tmp_path / "out", settings={"AMICRAWL_PER_HOST": "1"})
    spans = sorted(
        (row["fetched_at"] - row["duration_ms"], row["fetched_at"]) for row in rows(tmp_path / "out")
    )
    assert len(spans) == 6
    assert all(end <= start for (_, end), (start, _) in pairwise(spans)), spans


def test_robots_txt_is_obeyed_archived_and_said_in_the_index(tmp_path: Path) -> None:
    def respond(head: bytes) -> bytes:
        if path_of(head) == "/robots.txt":
            return page(b"User-agent: *\nDisallow: /private\n", "Content-Type: text/plain")
        return page(b"ok")

    with RawServer(respond) as server:
        seeds = write_lines(tmp_path / "s.txt", [f"{server.url}/private/x", f"{server.url}/public"])
        crawl(seeds, tmp_path / "out", settings={"AMICRAWL_ROBOTS": "obey"})
        requested = {path_of(head) for head in server.requests}
    found = index(tmp_path / "out")
    assert requested == {"/robots.txt", "/public"}
    denied = found["/private/x"]
    assert (denied["status"], denied["error"]) == (0, "robots-denied: robots.txt disallows it")
    assert found["/robots.txt"]["status"] == found["/public"]["status"] == 200


def test_a_redirect_chain_is_followed_hop_by_hop_with_what_the_seed_said(tmp_path: Path) -> None:
    def respond(head: bytes) -> bytes:
        path = path_of(head)
        if path == "/1":
            return page(b"moved", "Location: /2?utm_source=keep#part", status="301 Moved Permanently")
        if path.startswith("/2"):
            return page(b"", "Location: /loop", status="302 Found")
        if path == "/loop":
            return page(b"", "Location: /loop", status="302 Found")
        return page(b"")

    with RawServer(respond) as server:
        seeds = write_jsonl(tmp_path / "s.jsonl", [{"url": f"{server.url}/1", "source": "list"}])
        done = crawl(seeds, tmp_path / "out")
        base = server.url
    found = index(tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert found.keys() == {"/1", "/2?utm_source=keep", "/loop"}
    assert found["/1"]["final_url"] == f"{base}/2?utm_source=keep"
    assert {row["meta_json"] for row in found.values()} == {'{"source":"list"}'}


def test_an_endless_chain_of_redirects_ends(tmp_path: Path) -> None:
    def respond(head: bytes) -> bytes:
        return page(b"", f"Location: {path_of(head)}x", status="302 Found")

    with RawServer(respond) as server:
        done = crawl(write_lines(tmp_path / "s.txt", [f"{server.url}/"]), tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert len(rows(tmp_path / "out")) == 21


def test_an_earlier_index_is_a_seed_and_unchanged_pages_become_revisits(tmp_path: Path) -> None:
    def respond(head: bytes) -> bytes:
        path = path_of(head)
        if path == "/etag" and b'If-None-Match: "v1"' in head:
            return b'HTTP/1.1 304 Not Modified\r\nETag: "v1"\r\n\r\n'
        if path == "/etag":
            return page(b"with a tag", 'ETag: "v1"')
        if path == "/changing":
            return page(str(len(server.requests)).encode())
        return page(b"always the same")

    with RawServer(respond) as server:
        first = write_lines(
            tmp_path / "s.txt", [f"{server.url}/{name}" for name in ("etag", "same", "changing")]
        )
        crawl(first, tmp_path / "one")
        done = crawl(tmp_path / "one" / "captures.parquet", tmp_path / "two")
        crawl(
            tmp_path / "one" / "captures.parquet",
            tmp_path / "whole",
            settings={"AMICRAWL_STORE_UNCHANGED": "1"},
        )
    before, after = index(tmp_path / "one"), index(tmp_path / "two")
    assert done.returncode == 0, done.stderr
    assert {path: row["unchanged"] for path, row in after.items()} == {
        "/etag": True,
        "/same": True,
        "/changing": False,
    }
    assert after["/etag"]["digest"] == before["/etag"]["digest"]
    profiles = {}
    for path in ("/etag", "/same"):
        fields, _ = record(tmp_path / "two", after[path])
        original, _ = record(tmp_path / "one", before[path])
        assert fields["WARC-Type"] == "revisit"
        assert fields["WARC-Refers-To-Target-URI"] == original["WARC-Target-URI"]
        assert fields["WARC-Refers-To-Date"] == original["WARC-Date"]
        profiles[path] = fields["WARC-Profile"].rpartition("/")[2]
    assert profiles == {"/etag": "server-not-modified", "/same": "identical-payload-digest"}
    whole = index(tmp_path / "whole")
    assert record(tmp_path / "whole", whole["/same"])[0]["WARC-Type"] == "response"
    assert whole["/same"]["unchanged"]


def test_a_jsonl_digest_makes_an_unchanged_page_a_revisit(tmp_path: Path) -> None:
    digest = hashlib.sha1(b"hello", usedforsecurity=False).hexdigest()
    with RawServer(lambda _: page(b"hello")) as server:
        crawl(
            write_jsonl(tmp_path / "s.jsonl", [{"url": f"{server.url}/", "digest": digest}]),
            tmp_path / "out",
        )
    (row,) = rows(tmp_path / "out")
    assert row["unchanged"]
    assert record(tmp_path / "out", row)[0]["WARC-Type"] == "revisit"


def test_what_a_cap_cuts_is_kept_and_marked(tmp_path: Path) -> None:
    with RawServer(lambda _: page(b"x" * 500_000)) as server:
        crawl(
            write_lines(tmp_path / "s.txt", [f"{server.url}/"]),
            tmp_path / "out",
            settings={"AMICRAWL_MAX_BODY": "100000", "AMICRAWL_SPOOL_ABOVE": "1000"},
        )
    (row,) = rows(tmp_path / "out")
    fields, block = record(tmp_path / "out", row)
    assert (row["truncated"], fields["WARC-Truncated"]) == ("length", "length")
    assert block.endswith(b"\r\n\r\n" + b"x" * 100_000)
    for path in (tmp_path / "out").glob("*.warc.gz"):
        check_sealed(path)


def test_seeds_come_from_standard_input_and_packed_files(tmp_path: Path) -> None:
    with RawServer(lambda _: page(b"ok")) as server:
        lines = f"# a list\n\n{server.url}/a\n{server.url}/b\n".encode()
        (tmp_path / "s.txt.gz").write_bytes(gzip.compress(lines))
        from_pipe = crawl("-", tmp_path / "pipe", stdin=lines)
        from_gzip = crawl(tmp_path / "s.txt.gz", tmp_path / "gzip")
    assert from_pipe.returncode == from_gzip.returncode == 0, from_pipe.stderr + from_gzip.stderr
    assert index(tmp_path / "pipe").keys() == index(tmp_path / "gzip").keys() == {"/a", "/b"}


def test_a_sitemap_is_fetched_by_the_crawl_itself_and_archived(tmp_path: Path) -> None:
    def respond(head: bytes) -> bytes:
        if path_of(head) == "/sitemap.xml":
            return page(
                f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>{server.url}/a</loc></url></urlset>'.encode(),
                "Content-Type: application/xml",
            )
        return page(b"ok")

    with RawServer(respond) as server:
        done = crawl(f"{server.url}/sitemap.xml", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert index(tmp_path / "out").keys() == {"/sitemap.xml", "/a"}


def test_shards_divide_the_hosts_among_them(tmp_path: Path) -> None:
    with RawServer(lambda _: page(b"ok")) as server:
        hosts = [f"127.0.0.{n}" for n in range(1, 13)]
        urls = [f"http://{host}:{server.port}/{n}" for host in hosts for n in range(2)]
        seeds = write_lines(tmp_path / "s.txt", urls)
        parts = []
        for shard in range(2):
            out = tmp_path / str(shard)
            assert crawl(seeds, out, arguments=[f"shard={shard}", "shards=2"]).returncode == 0
            parts.append(rows(out))
    first, second = ({row["host"] for row in part} for part in parts)
    assert first
    assert second
    assert not first & second
    assert sorted(row["url"] for part in parts for row in part) == sorted(urls)


def test_a_run_id_keeps_runs_apart_and_a_second_crawl_adds_to_a_directory(tmp_path: Path) -> None:
    with RawServer(lambda _: page(b"ok")) as server:
        for name, run_id in (("a", "monday"), ("b", "monday"), ("c", "tuesday")):
            seeds = write_lines(tmp_path / "s.txt", [f"{server.url}/{name}"])
            assert crawl(seeds, tmp_path / "out", arguments=[f"run_id={run_id}"]).returncode == 0
    assert index(tmp_path / "out" / "monday").keys() == {"/a", "/b"}
    assert index(tmp_path / "out" / "tuesday").keys() == {"/c"}
    assert len(list((tmp_path / "out" / "monday").glob("ami-*.warc.gz"))) == 2


def test_a_connection_that_breaks_is_tried_again_and_counted_once(tmp_path: Path) -> None:
    def respond(_: bytes) -> bytes:
        return page(b"at last") if len(server.requests) > 2 else b""

    with RawServer(respond) as server:
        crawl(write_lines(tmp_path / "s.txt", [f"{server.url}/"]), tmp_path / "out")
    (row,) = rows(tmp_path / "out")
    assert row["status"] == 200
    assert row["attempts"] >= 2


def test_a_host_that_never_responds_is_given_up(tmp_path: Path) -> None:
    urls = [f"http://127.0.0.1:9/{n}" for n in range(6)] + [
        f"http://no-such-host.invalid/{n}" for n in range(6)
    ]
    done = crawl(
        write_lines(tmp_path / "s.txt", urls), tmp_path / "out", settings={"AMICRAWL_PER_HOST": "1"}
    )
    errors = [
        row["error"].partition(":")[0] for row in rows(tmp_path / "out") if "invalid" in row["host"]
    ]
    assert done.returncode == ExitCode.UNREACHED, done.stderr
    assert len(errors) == 6
    assert errors.count("host-skipped") == 3, errors


def test_nothing_that_a_server_or_a_seed_says_forges_a_record_or_a_row(tmp_path: Path) -> None:
    forged = "\r\n\r\nWARC/1.1\r\nWARC-Type: response\r\nContent-Length: 0\r\n\r\n"
    with RawServer(lambda _: page(b"ok", "Content-Type: text/\x00html\x1b[2J", "X: \x0bv")) as server:
        nasty = [
            f"{server.url}/{forged}",
            f"{server.url}/\x01\x1b",
            f"{server.url}/\u2028\u202e\U0001f600",
        ]
        seeds = [{"url": url, "note": forged + "\x00\u2028\ud800", forged: "key"} for url in nasty]
        done = crawl(write_jsonl(tmp_path / "s.jsonl", seeds), tmp_path / "out")
    assert "Traceback" not in done.stderr
    found = rows(tmp_path / "out")
    assert len(found) == len(nasty)
    assert all(json.loads(row["meta_json"])["note"].startswith(forged) for row in found)
    assert all(
        not any(ord(c) < 32 or ord(c) == 127 for c in row["url"] + row["content_type"]) for row in found
    )
    kinds = [item.rec_type for item in records(tmp_path / "out")]
    assert sorted(kinds) == sorted(
        ["warcinfo"] + ["request", "response"] * sum(row["status"] == 200 for row in found)
    )
    for path in (tmp_path / "out").glob("*.warc.gz"):
        check_sealed(path)


def test_two_crawls_cannot_have_one_directory(tmp_path: Path) -> None:
    from amicrawl.directory_lock import DirectoryLock  # noqa: PLC0415

    (tmp_path / "out").mkdir()
    lock = DirectoryLock(tmp_path / "out")
    try:
        done = crawl(write_lines(tmp_path / "s.txt", ["http://127.0.0.1:9/"]), tmp_path / "out")
    finally:
        lock.release()
    assert done.returncode == ExitCode.USAGE
    assert str(tmp_path / "out") in done.stderr


@pytest.mark.parametrize("every", ["0.2"])
def test_in_json_every_line_is_an_object(tmp_path: Path, every: str) -> None:
    with RawServer(lambda _: page(b"ok"), pause=0.3) as server:
        seeds = write_lines(tmp_path / "s.txt", [f"{server.url}/{n}" for n in range(6)])
        done = crawl(
            seeds,
            tmp_path / "out",
            settings={"AMICRAWL_PROGRESS_EVERY": every, "AMICRAWL_PER_HOST": "1"},
        )
    told = [json.loads(line) for line in done.stderr.splitlines()]
    assert len(told) >= 3
    assert told[-1]["event"] == "finished"
    assert told[-1]["rows"] == 6
    totals = [report["total"] for report in told]
    assert totals[-1] == 6
    assert set(totals) <= {None, 6}, "nothing until the list was read to its end, and then the whole"


def test_requests_carry_few_fields_or_those_of_a_browser(tmp_path: Path) -> None:
    with RawServer(lambda _: page(b"ok")) as server:
        seeds = write_lines(tmp_path / "s.txt", [f"{server.url}/"])
        for headers in ("fast", "browser"):
            crawl(seeds, tmp_path / headers, settings={"AMICRAWL_HEADERS": headers})
        fast, browser = (head.decode().split("\r\n") for head in server.requests)
    assert fast == [
        "GET / HTTP/1.1",
        f"Host: 127.0.0.1:{server.port}",
        f"User-Agent: amicrawl/{__version__}",
        "Accept: */*",
        "Accept-Encoding: gzip, deflate, br",
        "",
        "",
    ]
    assert "Accept-Language: en-US,en;q=0.5" in browser
