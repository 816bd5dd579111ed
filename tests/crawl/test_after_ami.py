"""What ami 0.2 and 0.3 have crawled is shown, crawled again and compared: by their directories.

Their indexes are numbered (`captures-00000.parquet`), hold bodies or name WARC files, and have a digest
of the body as they request it: without content coding.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import sys
import time
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import warm_processes
from archive_reading import rows
from loopback import PROJECT, RawServer, crawl, environment, page, recrawl

from amicrawl.errors import ExitCode

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

FAR = "before=2100-01-01"
A_DAY_AGO = int(time.time() * 1000) - 24 * 3_600_000
INDEX: list[tuple[str, Any]] = [
    *((name, pa.string()) for name in ("url", "host")),
    ("status", pa.int32()),
    ("fetched_at", pa.int64()),
    ("content_type", pa.string()),
    ("body_length", pa.int64()),
    ("digest", pa.string()),
    ("unchanged", pa.bool_()),
    *((name, pa.string()) for name in ("warc_file",)),
    *((name, pa.int64()) for name in ("warc_offset", "warc_length")),
    *((name, pa.string()) for name in ("error", "meta_json")),
]
LATER: list[tuple[str, Any]] = [
    *((name, pa.string()) for name in ("etag", "last_modified", "markdown")),
    *((name, pa.int64()) for name in ("markdown_length", "ttfb_ms", "fetch_duration_ms")),
    *((name, pa.string()) for name in ("final_url", "ip_address", "resp_headers", "req_headers")),
    ("body", pa.binary()),
]
EMPTY: dict[Any, Any] = {pa.string(): "", pa.binary(): b"", pa.bool_(): False}


def text(path: str) -> bytes:
    return f"<html><p>the page {path} ".encode() + b"and some words " * 100


def respond(head: bytes) -> bytes:
    """Respond in gzip where that is requested, and a missing page with 404."""
    path = head.split(b" ")[1].decode()
    status = "404 Not Found" if path == "/missing" else "200 OK"
    if b"gzip" in head:
        return page(gzip.compress(text(path), mtime=0), "Content-Encoding: gzip", status=status)
    return page(text(path), status=status)


def ami_has_crawled(directory: Path, base: str, *, bodies: bool, version: str) -> None:
    """Write what ami leaves: two indexes, the first with two lines that it could not use."""
    columns = INDEX + (LATER if version == "0.3" else [])
    bad: list[dict[str, Any]] = [
        {"url": "ftp://x/", "error": "skipped"},
        {"url": "not a url", "error": "skipped"},
    ]
    found: list[dict[str, Any]] = []
    for path in ("/a", "/b", "/missing", "/changed"):
        body = text(path) if path != "/changed" else b"as it was"
        found.append(
            {
                "url": base + path,
                "host": "127.0.0.1",
                "status": 404 if path == "/missing" else 200,
                "fetched_at": A_DAY_AGO,
                "body_length": len(body),
                "digest": hashlib.sha1(body).hexdigest(),
                "warc_file": "" if bodies else "ami-00000.warc.gz",
                "meta_json": json.dumps({"path": path}),
                "body": body if bodies else b"",
            }
        )
    directory.mkdir()
    for number, part in enumerate((bad + found[:2], found[2:])):
        table = {
            name: pa.array([row.get(name, EMPTY.get(kind, 0)) for row in part], kind)
            for name, kind in columns
        }
        pq.write_table(pa.table(table), directory / f"captures-{number:05d}.parquet")


def amicrawl(*arguments: object) -> subprocess.CompletedProcess[str]:
    return warm_processes.run(
        [sys.executable, "-m", "amicrawl", *map(str, arguments)],
        cwd=PROJECT,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.mark.parametrize(("version", "bodies"), [("0.2", False), ("0.3", False), ("0.3", True)])
def test_inspect_counts_all_rows_of_its_directory(tmp_path: Path, version: str, bodies: bool) -> None:
    ami_has_crawled(tmp_path / "ami", "http://127.0.0.1:1", bodies=bodies, version=version)
    said = json.loads(amicrawl("inspect", tmp_path / "ami", "--json").stdout)
    assert (said["rows"], said["skipped"], said["failed"]) == (6, 2, 0)
    assert said["statuses"] == {"0": 2, "200": 3, "404": 1}
    assert "6 rows" in amicrawl("inspect", tmp_path / "ami").stdout


@pytest.mark.parametrize(("version", "bodies"), [("0.2", False), ("0.3", True)])
def test_as_a_seed_list_it_tells_what_has_not_changed(
    tmp_path: Path, version: str, bodies: bool
) -> None:
    """The first crawl stores what comes in another coding, and the next one points at that."""
    with RawServer(respond) as server:
        ami_has_crawled(tmp_path / "ami", server.url, bodies=bodies, version=version)
        first = crawl(tmp_path / "ami", tmp_path / "out")
        second = crawl(tmp_path / "out" / "captures.parquet", tmp_path / "again")
    assert (first.returncode, second.returncode) == (ExitCode.DONE, ExitCode.DONE), first.stderr
    for name, stored in (("out", "response"), ("again", "revisit")):
        found = {row["url"].removeprefix(server.url): row for row in rows(tmp_path / name)}
        unchanged = {path for path, row in found.items() if row["unchanged"]}
        assert unchanged == {"/a", "/b", "/missing"} | ({"/changed"} if name == "again" else set())
        assert found["/a"]["digest"] == hashlib.sha1(gzip.compress(text("/a"), mtime=0)).hexdigest()
        assert json.loads(found["/a"]["meta_json"]) == {"path": "/a"}
        listed = amicrawl("inspect", next((tmp_path / name).glob("*.warc.gz")), "-n", 100).stdout
        assert any(f"{server.url}/a" in line and stored in line for line in listed.splitlines()), listed
    assert [row["url"] for row in rows(tmp_path / "out") if not row["status"]] == [
        "ftp://x/",
        "not a url",
    ]


@pytest.mark.parametrize("version", ["0.2", "0.3"])
def test_a_recrawl_goes_on_in_its_directory(tmp_path: Path, version: str) -> None:
    out = tmp_path / "ami"
    with RawServer(respond) as server:
        ami_has_crawled(out, server.url, bodies=False, version=version)
        (out / "ami-00000.warc.gz").write_bytes(b"")
        early = recrawl(out)
        assert "nothing to fetch now" in early.stderr
        assert "4 URLs (0 read from the old one, 4 settled by 6 captures, 0 to fetch)" in early.stderr
        assert server.requests == []
        done = recrawl(out, arguments=[FAR])
    assert done.returncode == ExitCode.DONE, done.stderr
    found = {row["url"].removeprefix(server.url): row for row in rows(out)}
    assert {path for path, row in found.items() if row["unchanged"]} == {"/a", "/b"}
    assert set(found) == {"/a", "/b", "/missing", "/changed"}
    assert found["/a"]["warc_file"] == "ami-00001.warc.gz"
    said = json.loads(amicrawl("inspect", out, "--json").stdout)
    assert said["rows"] == 6 + 4


def test_a_directory_that_nobody_crawled_into_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert recrawl(tmp_path / "empty").returncode == ExitCode.INPUT
    assert "is a directory" in amicrawl("crawl", tmp_path / "empty").stderr
    assert crawl(tmp_path / "empty", tmp_path / "out").returncode == ExitCode.INPUT
