"""A job crawled: what Redis is told of it, and what it does when Redis says something."""

from __future__ import annotations

import json
import re
import time
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
from job_changes import change
from job_crawling import JobCrawl, lines_of, path_of, site, store_of, submitted
from loopback import RawServer, page

from amicrawl.fleet.jobs import verbs

if TYPE_CHECKING:
    from pathlib import Path

    from redis_server import RedisServer


FIGURES = ("r2xx", "bytes_downloaded", "items_downloaded")


def rows_of(directory: Path) -> list[dict[str, object]]:
    return pq.read_table(directory / "captures.parquet", columns=["url", "status", "error"]).to_pylist()


def test_live_settings_are_followed_while_a_job_runs(redis_server: RedisServer, tmp_path: Path) -> None:
    """One crawl: paused, faster, with ignores that come and go, with nonsense, and aborted."""
    store = store_of(redis_server)
    with RawServer(site(400)) as server:
        ident = submitted(
            redis_server,
            server.url,
            settings={"delay_min": 100, "delay_max": 120, "concurrency": 1},
            ignore_sets=(),
        )
        with JobCrawl(redis_server, ident, tmp_path / "out") as crawl:
            crawl.wait_until(lambda: crawl.downloaded() > 3)
            assert crawl.facts()["delay"] == 0.1
            assert crawl.facts()["delay_max"] == 0.12
            assert crawl.facts()["concurrency"] == 1

            verbs.pause(store, ident)
            crawl.wait_until(lambda: crawl.facts()["paused_by"] == ["operator"])
            requested = len(server.requests)
            time.sleep(0.5)
            assert len(server.requests) <= requested + 1

            change(store, ident, "delay", 30, 30)
            change(store, ident, "concurrency", 4)
            verbs.ignore(store, ident, [r"/p/[3-9]\d$"])
            crawl.wait_until(lambda: crawl.facts()["concurrency"] == 4)
            change(store, ident, "reports", True)
            verbs.resume(store, ident)
            crawl.wait_until(lambda: not crawl.facts()["paused_by"])
            crawl.wait_until(lambda: crawl.facts()["ignored_dropped"] > 20)

            client = store.client
            client.hset(ident, mapping={"delay_min": "12x", "concurrency": "0"})
            client.sadd(f"{ident}_ignores", "(unclosed")
            client.publish(f"archivebot:job:{ident}", client.hincrby(ident, "settings_age", 1))
            crawl.wait_until(lambda: len(crawl.facts()["faults"]) == 3)
            assert crawl.facts()["delay"] == 0.03
            assert crawl.facts()["concurrency"] == 4
            client.srem(f"{ident}_ignores", "(unclosed")
            client.hset(ident, mapping={"delay_min": "30", "concurrency": "4"})
            verbs.unignore(store, ident, [r"/p/[3-9]\d$"])
            crawl.wait_until(lambda: not crawl.facts()["faults"])
            change(store, ident, "delay", 200, 200)
            verbs.abort(store, ident, now=time.time())
            code, record, entries = crawl.watched_to_its_end()
        assert code == 6
        said = lines_of(entries)
        dead = " ".join(str(text) for text in client.zrange("amicrawl:dead", 0, -1))
        [notice] = [json.loads(str(text)) for text in client.lrange("finish_notifications", 0, -1)]
    assert "Settings: concurrency 1, delay 100 to 120 ms" in said
    assert "concurrency 4, delay 30 to 30 ms" in said
    assert "(1 added, 0 removed)" in said
    assert "(0 added, 1 removed)" in said
    assert "paused" in said
    # One line says all that changed between two looks.
    assert re.search(r"^Settings: .*\bresumed", said, re.MULTILINE)
    assert "Invalid, the previous value stays in force: delay_min" in said
    assert "12x" in dead
    assert "unclosed" in dead
    assert "Script requested immediate stop" in said
    assert said.endswith("The crawl has ended: aborted\n")
    assert record["aborted"] == "true"
    assert notice["aborted"] is True
    assert [notice[name] for name in FIGURES] == [record[name] for name in FIGURES]
    rows = rows_of(tmp_path / "out")
    dropped = [row for row in rows if str(row["error"]).startswith("refused-by-crawl: ignored by /p/")]
    assert len(dropped) > 20
    ignored = [entry for entry in entries if entry["type"] == "ignore"]
    assert {entry["pattern"] for entry in ignored} == {r"/p/[3-9]\d$"}
    assert int(record["items_downloaded"]) == len(rows)
    assert int(record["items_queued"]) == 401, "what is left in the queue is still known"
    assert int(record["r2xx"]) == sum(row["status"] == 200 for row in rows)
    assert (tmp_path / "out" / "ami-00000.warc.gz").exists()
    assert client.get("jobs_aborted") == "1"
    assert client.ttl(ident) <= 5


def test_a_redis_that_was_killed_and_is_empty_is_told_everything_again(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    """The crawl goes on without it, and afterwards the record is as if nothing had happened."""
    store = store_of(redis_server)
    # All that happens shall happen before it is over: as slowly as it goes, that takes 20 s.
    with RawServer(site(400)) as server:
        ident = submitted(
            redis_server,
            server.url,
            settings={"delay_min": 50, "delay_max": 50, "concurrency": 2, "note": "kept"},
        )
        redis_server.client().sadd(f"{ident}_ignores", "never-there")
        with JobCrawl(redis_server, ident, tmp_path / "out") as crawl:
            crawl.wait_until(lambda: crawl.downloaded() > 3)
            before = crawl.record()
            claim = redis_server.client().hgetall(f"amicrawl:claim:{ident}")
            redis_server.kill()
            requested = len(server.requests)
            crawl.wait_until(lambda: len(server.requests) > requested + 20)
            redis_server.start()
            crawl.wait_until(lambda: crawl.downloaded() > requested + 20)
            client = redis_server.client()
            assert client.lrange("working", 0, -1) == [ident]
            assert client.sismember(f"{ident}_ignores", "never-there")
            back = client.hgetall(f"amicrawl:claim:{ident}")
            assert back == claim
            again = crawl.record()
            for name in (
                "url",
                "note",
                "slug",
                "queued_at",
                "started_at",
                "settings_age",
                "concurrency",
            ):
                assert again[name] == before[name]
            # Emptied while both run.
            client.flushall()
            crawl.wait_until(lambda: crawl.record().get("url") == before["url"])
            change(store, ident, "delay", 0, 0)
            assert crawl.ended() == 0
        said, record = crawl.said(), crawl.record()
    assert "Redis had lost this job" in said
    assert re.search(r"^one shape: 400 of 401 fetches are .*/p/\*;", said, re.MULTILINE)
    assert int(record["items_downloaded"]) == len(rows_of(tmp_path / "out")) == 401
    assert int(record["r2xx"]) == 401
    assert int(record["items_queued"]) == 401
    assert record["finished_at"]
    assert said.endswith(f"The crawl has ended: finished\nFinished RsyncUpload for Item {ident}\n")
    scored: list[Any] = redis_server.client().zrange(f"{ident}_log", 0, -1, withscores=True)
    scores = [score for _, score in scored]
    assert scores == sorted(set(scores))
    assert float(record["last_analyzed_log_entry"]) == scores[-1] == float(record["log_score"])


def test_a_killed_crawl_of_a_job_goes_on_with_the_right_figures(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    with RawServer(site(100)) as server:
        # What it has done is told once a second: it shall not be over by then.
        ident = submitted(
            redis_server, server.url, settings={"delay_min": 60, "delay_max": 60, "concurrency": 2}
        )
        lease = {"AMICRAWL_JOB_LEASE": "2"}
        with JobCrawl(redis_server, ident, tmp_path / "out", variables=lease) as crawl:
            crawl.wait_until(lambda: crawl.downloaded() > 10)
        client = redis_server.client()
        while client.exists(f"amicrawl:lease:{ident}"):
            time.sleep(0.1)
        with JobCrawl(redis_server, ident, tmp_path / "out") as crawl:
            assert crawl.ended() == 0, crawl.stderr
        record, said = crawl.record(), crawl.said()
    rows = rows_of(tmp_path / "out")
    assert len({row["url"] for row in rows}) == len(rows) == 101
    assert int(record["items_downloaded"]) == int(record["r2xx"]) == 101
    assert record["amicrawl_attempt"] == "2"
    assert record["amicrawl_resumed"] == "resumed"
    assert "resuming: " in said
    table = pq.read_table(tmp_path / "out" / "captures.parquet", columns=["body_length"])
    sizes: list[Any] = table["body_length"].to_pylist()
    assert int(record["bytes_downloaded"]) == sum(sizes)


def test_the_list_of_a_list_job_is_fetched_and_its_lines_are_crawled(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    def respond(request: bytes) -> bytes:
        path = path_of(request)
        if path == "/list":
            return page(b"", "Location: /moved", status="302 Found")
        if path == "/moved":
            return page(f"{server.url}/a\n{server.url}/b\n".encode())
        if path == "/gone":
            return page(b"no", status="404 Not Found")
        return page(b'<a href="/further">x</a><img src="/i.png">', "Content-Type: text/html")

    with RawServer(respond) as server:
        wishes: dict[str, Any] = {
            "is_list": True,
            "depth": "shallow",
            "settings": {"delay_min": 0, "delay_max": 0},
        }
        ident = submitted(redis_server, f"{server.url}/list", **wishes)
        gone = submitted(redis_server, f"{server.url}/gone", **wishes)
        with (
            JobCrawl(redis_server, ident, tmp_path / "out") as crawl,
            JobCrawl(redis_server, gone, tmp_path / "gone") as refused,
        ):
            assert crawl.ended() == 0, crawl.stderr
            assert refused.ended() == 3
    paths = sorted(str(row["url"]).removeprefix(server.url) for row in rows_of(tmp_path / "out"))
    assert paths == ["/a", "/b", "/i.png"]
    assert "status 404" in refused.stderr
    client = redis_server.client()
    assert client.lrange("pending-ao", 0, -1) == [gone], "nobody else would give it back"
    assert client.hget(f"amicrawl:claim:{gone}", "failures") == "1"
    assert json.loads((tmp_path / "out" / "job.json").read_text())["unit"] == ident
