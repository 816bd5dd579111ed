"""Every line of a seed list has its row in the index, also one without a request; and once."""

from __future__ import annotations

import json
import shutil
import sys
from collections import Counter
from typing import TYPE_CHECKING

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import warm_processes
from archive_reading import rows
from loopback import PROJECT, RawServer, crawl, environment, page, write_lines

from amicrawl.errors import ExitCode

if TYPE_CHECKING:
    from pathlib import Path


def pages_requested(server: RawServer) -> list[str]:
    paths = [head.split(b" ")[1].decode() for head in server.requests]
    return [path for path in paths if path != "/robots.txt"]


def left_out(directory: Path) -> Counter[tuple[str, str, str]]:
    """Return URL, word of the error and metadata of the rows of lines without a request."""
    return Counter(
        (row["url"], row["error"].partition(":")[0], row["meta_json"])
        for row in rows(directory)
        if row["attempts"] == 0
    )


@pytest.mark.parametrize("processes", [1, 2])
def test_each_line_has_its_row_however_often_the_list_is_crawled(tmp_path: Path, processes: int) -> None:
    with RawServer(lambda _: page(b"hello")) as server:
        seeds = write_lines(
            tmp_path / "seeds.jsonl",
            [
                json.dumps({"url": f"{server.url}/a", "n": 1}),
                json.dumps({"url": "ftp://me:secret@old.test/file", "n": 2}),
                json.dumps({"url": "not a url"}),
                json.dumps({"url": "//host/x", "n": 4}),
                "not json",
                json.dumps({"n": 6}),
                json.dumps({"url": "http://exa mple/", "n": 7}),
                json.dumps({"url": f"{server.url}/a", "n": 8}),
                json.dumps({"url": f"{server.url}/a", "n": 1}),
                json.dumps({"url": f"{server.url}/a"}),
                json.dumps({"url": "not a url\u001b[2J"}),
            ],
        )
        arguments = [f"processes={processes}"]
        first = crawl(seeds, tmp_path / "out", arguments=arguments)
        second = crawl(seeds, tmp_path / "out", arguments=arguments)
        fetched = pages_requested(server)
    assert (first.returncode, second.returncode) == (ExitCode.DONE, ExitCode.DONE), second.stderr
    assert fetched == ["/a"]
    bad = "unfetchable-url"
    assert left_out(tmp_path / "out") == {
        ("ftp://old.test/file", bad, '{"n":"2"}'): 1,
        ("not a url", bad, ""): 1,
        ("//host/x", bad, '{"n":"4"}'): 1,
        ("", bad, ""): 1,
        ("", bad, '{"n":"6"}'): 1,
        ("http://exa mple/", bad, '{"n":"7"}'): 1,
        (f"{server.url}/a", "repeated-seed", '{"n":"8"}'): 1,
        ("not a url\\x1b[2J", bad, ""): 1,
    }
    index = rows(tmp_path / "out")
    assert [row["meta_json"] for row in index if row["url"].endswith("/a") and row["status"]] == [
        '{"n":"1"}'
    ]
    errors = [row["error"] for row in index]
    assert f"unfetchable-url: line 3 of {seeds}: 'not a url' is not an HTTP or HTTPS URL" in errors
    assert '"failed": 0, "skipped": 8' in first.stderr
    assert "secret" not in first.stderr


def test_a_list_of_nothing_but_bad_lines_has_all_their_rows(tmp_path: Path) -> None:
    seeds = write_lines(tmp_path / "seeds.txt", [f"ftp://old.test/{n}" for n in range(1_203)])
    done = crawl(seeds, tmp_path / "out")
    assert done.returncode == ExitCode.INPUT
    assert "further faults are not logged; lines that are left out have rows" in done.stderr
    assert done.stderr.count("is not an HTTP or HTTPS URL") == 100
    urls = [row["url"] for row in rows(tmp_path / "out")]
    assert sorted(urls) == sorted(f"ftp://old.test/{n}" for n in range(1_203))


def test_of_several_machines_the_first_accounts_for_what_has_no_host(tmp_path: Path) -> None:
    with RawServer(lambda _: page(b"hello")) as server:
        seeds = write_lines(tmp_path / "seeds.txt", [f"{server.url}/a", "ftp://old.test/file"])
        for shard in range(2):
            crawl(seeds, tmp_path / f"{shard}", arguments=[f"shard={shard}", "shards=2"])
    assert sum(left_out(tmp_path / "0").values()) == 1
    index = tmp_path / "1" / "captures.parquet"
    assert not index.exists() or sum(left_out(tmp_path / "1").values()) == 0


def test_a_line_that_repeats_a_url_is_no_capture_of_it(tmp_path: Path) -> None:
    """A frontier that is made from the index requests what was never fetched."""
    out = tmp_path / "out"
    with RawServer(lambda _: page(b"hello")) as server:
        lines = [json.dumps({"url": f"{server.url}/a", "n": n}) for n in (1, 2)]
        seeds = write_lines(tmp_path / "seeds.jsonl", lines)
        crawl(seeds, out)
        index = pq.read_table(out / "captures.parquet")
        repeated = index.filter(pc.starts_with(index["error"], "repeated-seed"))
        assert repeated.num_rows == 1
        pq.write_table(repeated, out / "captures.parquet")
        shutil.rmtree(out / "frontier")
        for path in (*out.glob("*.warc.gz"), out / "crawl.json"):
            path.unlink()
        rebuilt = warm_processes.run(
            [
                sys.executable,
                "-m",
                "amicrawl",
                "frontier",
                "rebuild",
                str(out),
                "--seeds",
                str(seeds),
            ],
            cwd=PROJECT,
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert rebuilt.returncode == ExitCode.DONE, rebuilt.stderr
        before = len(pages_requested(server))
        crawl(seeds, out)
        assert pages_requested(server)[before:] == ["/a"]
