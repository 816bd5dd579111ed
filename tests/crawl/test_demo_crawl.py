"""A crawl of the demo site, from the command line to foreign readers of what it left."""

from __future__ import annotations

import hashlib
import json
import sys
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
import warm_processes
from archive_reading import check_sealed, member, record, rows, split
from demo_site.server import DemoSite
from loopback import PROJECT, crawl

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path

    Crawled = tuple[Path, subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    directory = tmp_path_factory.mktemp("demo")
    with DemoSite() as site:
        seeds = directory / "seeds.jsonl"
        site.seeds(seeds)
        done = crawl(seeds, directory / "ami-out", settings={"AMICRAWL_PER_HOST": "2"})
        yield directory, done


@pytest.fixture(scope="module")
def out(crawled: Crawled) -> Path:
    return crawled[0] / "ami-out"


@pytest.fixture(scope="module")
def index(out: Path) -> list[dict[str, Any]]:
    return rows(out)


def test_the_crawl_ends_well_and_says_what_came(crawled: Crawled) -> None:
    _, done = crawled
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert (lines[-1]["event"], lines[-1]["reason"]) == ("finished", "finished")
    assert lines[-1]["directory"].endswith("ami-out")
    assert "Traceback" not in done.stderr


def test_every_seed_has_its_row(crawled: Crawled, index: list[dict[str, Any]]) -> None:
    seeds = [json.loads(line)["url"] for line in (crawled[0] / "seeds.jsonl").read_text().splitlines()]
    urls = [row["url"] for row in index]
    assert set(seeds) <= set(urls)
    assert len(urls) == len(set(urls)), "one row a fetch"


def test_sealed_files_are_clean_for_gzip_warcio_and_fastwarc(out: Path) -> None:
    files = sorted(out.glob("ami-*.warc.gz"))
    assert files
    for path in files:
        check_sealed(path)
    assert not list(out.glob("*.open"))


def test_every_pointer_inflates_to_exactly_its_record(out: Path, index: list[dict[str, Any]]) -> None:
    pointed = [row for row in index if row["status"]]
    assert pointed
    for row in pointed:
        fields, _ = record(out, row)
        assert fields["WARC-Target-URI"] == row["url"]
        assert fields["WARC-Type"] in {"response", "revisit"}
        assert fields["WARC-Record-ID"].strip("<>") == row["record_id"].strip("<>")


def test_a_request_stands_before_its_response_and_names_it(
    out: Path, index: list[dict[str, Any]]
) -> None:
    row = next(row for row in index if row["status"] == 200)
    with (out / row["warc_file"]).open("rb") as file:
        before = file.read(row["warc_offset"])
    fields, block = split(_last_member(before))
    assert fields["WARC-Type"] == "request"
    assert row["record_id"].strip("<>") in fields["WARC-Concurrent-To"]
    assert block.startswith(b"GET /")


def test_digest_and_length_are_of_the_payload(out: Path, index: list[dict[str, Any]]) -> None:
    plain = [row for row in index if row["status"] == 200 and not row["unchanged"]]
    checked = 0
    for row in plain:
        _, block = record(out, row)
        head, _, body = block.partition(b"\r\n\r\n")
        if b"chunked" in head.lower():
            continue
        assert row["digest"] == hashlib.sha1(body, usedforsecurity=False).hexdigest()
        assert row["body_length"] == len(body)
        checked += 1
    assert checked >= 5


def test_redirect_hops_are_captures_of_their_own(index: list[dict[str, Any]]) -> None:
    hops = [row for row in index if row["status"] in {301, 302, 303, 307, 308}]
    urls = {row["url"] for row in index}
    assert len(hops) >= 2
    assert all(row["final_url"] != row["url"] and row["final_url"] in urls for row in hops)


def test_a_failed_fetch_is_a_row_without_a_pointer(index: list[dict[str, Any]]) -> None:
    failed = [row for row in index if row["error"]]
    assert failed
    assert {
        (row["status"], row["warc_file"], row["warc_offset"], row["warc_length"]) for row in failed
    } == {(0, "", 0, 0)}


def test_what_the_producer_knew_is_kept(index: list[dict[str, Any]]) -> None:
    known = [json.loads(row["meta_json"]) for row in index if row["meta_json"]]
    assert any(meta.get("source") for meta in known)
    assert all(isinstance(value, str) for meta in known for value in meta.values())


def test_crawl_json_says_what_was_requested_and_what_came(
    out: Path, index: list[dict[str, Any]]
) -> None:
    told = json.loads((out / "crawl.json").read_text())
    text = json.dumps(told)
    assert told["counts"]["rows"] == len(index)
    assert "AMICRAWL_DELAY" in text or "delay" in text
    for path in out.glob("ami-*.warc.gz"):
        assert path.name in text
        assert hashlib.sha256(path.read_bytes()).hexdigest() in text


QUERIES = [
    """SELECT status, count(*) AS n
    FROM 'ami-out/captures.parquet'
    GROUP BY status ORDER BY n DESC;""",
    """SELECT host, sum(body_length) AS bytes, count(*) AS pages
    FROM 'ami-out/captures.parquet'
    WHERE error = ''
    GROUP BY host ORDER BY bytes DESC LIMIT 25;""",
    """SELECT url, error FROM 'ami-out/captures.parquet' WHERE error <> '';""",
    """SELECT url, json_extract_string(meta_json, '$.source') AS source
    FROM 'ami-out/captures.parquet' WHERE meta_json <> '';""",
]


@pytest.mark.parametrize("query", QUERIES)
def test_the_documented_queries_run_unchanged(
    crawled: Crawled, query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(crawled[0])
    assert duckdb.execute(query).fetchall()


def test_the_documented_pandas_line_runs(crawled: Crawled) -> None:
    line = "import pandas; print(pandas.read_parquet('ami-out/captures.parquet').head())"
    done = warm_processes.run(
        [sys.executable, "-c", line],
        cwd=crawled[0],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert "url" in done.stdout


def test_indexes_of_several_runs_union_by_a_glob(
    crawled: Crawled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(crawled[0])
    (count,) = duckdb.execute("SELECT count(*) FROM '*/captures.parquet'").fetchall()
    assert count[0] > 0


def test_inspect_shows_the_rows_and_the_files(out: Path, index: list[dict[str, Any]]) -> None:
    line = [sys.executable, "-m", "amicrawl", "inspect", str(out), "-n", "5"]
    done = warm_processes.run(line, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{len(index)} rows")
    assert "ami-00000.warc.gz" in done.stdout
    assert done.stdout.count("http://127.0.0.1:") == 5


def test_the_project_lists_its_spider() -> None:
    done = warm_processes.run(
        [sys.executable, "-m", "scrapy", "list"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stdout.split() == ["job", "queue", "recrawl", "seeds", "site"], done.stderr


def test_inflated_members_are_one_record_each(out: Path, index: list[dict[str, Any]]) -> None:
    row = next(row for row in index if row["status"] == 200)
    assert member(out, row).startswith(b"WARC/1.1\r\n")


def _last_member(raw: bytes) -> bytes:
    """Return the last gzip member of *raw*, inflated."""
    import zlib  # noqa: PLC0415

    last = b""
    while raw:
        inflater = zlib.decompressobj(wbits=31)
        last = inflater.decompress(raw)
        raw = inflater.unused_data
    return last
