"""How a crawl comes to a job: by what a pipeline says, or by hand."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from job_crawling import store_of, submitted
from scrapy.settings import Settings

from amicrawl.config import CrawlConfig
from amicrawl.disk import Disk
from amicrawl.errors import InputError, UsageError
from amicrawl.fleet.checkpoints.data_directory import JobCopy
from amicrawl.fleet.jobs.crawl.opening import HeldJob, open_job, redis_of
from amicrawl.fleet.jobs.crawl.specification import arguments_of, take_settings
from amicrawl.fleet.jobs.restoring import begin_epoch, fetched_copy
from amicrawl.fleet.leases.lease import Claims, Happened
from amicrawl.fleet.leases.lease_time import TOKEN_VARIABLE
from amicrawl.fleet.leases.leased import LeaseLost

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from redis_server import RedisServer

URL = "http://a.example/"


def opened(
    server: RedisServer, ident: str, directory: Path, variables: Mapping[str, str] | None = None
) -> HeldJob:
    environment = {"REDIS_URL": server.url, **(variables or {})}
    return open_job(ident, Settings(), directory=directory, environment=environment)


def test_by_hand_a_job_is_taken_out_of_its_queue(redis_server: RedisServer, tmp_path: Path) -> None:
    ident = submitted(redis_server, URL)
    job = opened(redis_server, ident, tmp_path)
    client = redis_server.client()
    assert job.by_hand
    assert job.copy.record["url"] == URL
    assert not client.exists("pending")
    assert client.lrange("working", 0, -1) == [ident]
    assert client.get(f"amicrawl:lease:{ident}") == str(job.copy.token)
    assert client.hget(ident, "started_at")
    with pytest.raises(UsageError, match="is being crawled"):
        opened(redis_server, ident, tmp_path)


@pytest.mark.parametrize(
    ("wishes", "queue"),
    [({"large": True}, "pending-large"), ({"pipeline": "anna"}, "pending:anna")],
)
def test_a_job_that_is_given_back_by_hand_is_in_its_queue_again(
    redis_server: RedisServer, tmp_path: Path, wishes: dict[str, Any], queue: str
) -> None:
    """Also one that waits where no queue should be read."""
    ident, client = submitted(redis_server, URL, **wishes), redis_server.client()
    client.set("pending-ao", "no list")
    job = opened(redis_server, ident, tmp_path)
    assert not client.exists(queue)
    Claims(job.store).give_back(ident, job.copy.token, Happened.DRAINED)
    assert client.lrange(queue, 0, -1) == [ident]
    assert not client.exists("pending")


def test_a_job_that_is_not_there_or_has_ended_is_a_sentence(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="There is no job"):
        opened(redis_server, "abcdefghijklmnopqrstuvwx1", tmp_path)
    with pytest.raises(UsageError):
        opened(redis_server, "../../etc", tmp_path)
    ident = submitted(redis_server, URL)
    redis_server.client().hset(ident, "finished_at", "1")
    with pytest.raises(UsageError, match="has completed"):
        opened(redis_server, ident, tmp_path)


def test_a_job_that_has_failed_is_refused_and_stays_out_of_its_queue(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    ident, client = submitted(redis_server, URL), redis_server.client()
    client.delete("pending")
    client.hset(ident, "failed", "true")
    with pytest.raises(UsageError, match=f"{ident} has failed"):
        opened(redis_server, ident, tmp_path)
    assert not client.exists("pending", "working", f"amicrawl:lease:{ident}")


def test_what_a_pipeline_has_claimed_is_crawled_by_its_token_only(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    ident = submitted(redis_server, URL)
    claim = Claims(store_of(redis_server)).reserve(["pending"], "pipeline:x", timedelta(seconds=9))
    assert claim is not None
    variables = {"AMICRAWL_JOB_UNIT": ident, "AMICRAWL_JOB_TOKEN": str(claim.token)}
    job = opened(redis_server, "ignored", tmp_path, {**variables, "AMICRAWL_JOB_LEASE": "9"})
    assert not job.by_hand
    assert job.ttl == timedelta(seconds=9)
    with pytest.raises(LeaseLost, match="is not ours any more"):
        opened(redis_server, ident, tmp_path, {**variables, "AMICRAWL_JOB_TOKEN": "17"})
    with pytest.raises(UsageError):
        opened(redis_server, ident, tmp_path, {**variables, "AMICRAWL_JOB_TOKEN": "x"})


def test_a_job_that_redis_loses_between_its_claim_and_its_crawl_is_written_back(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    ident, client = submitted(redis_server, URL, settings={"note": "kept"}), redis_server.client()
    store = store_of(redis_server)
    begin_epoch(store)
    claim = Claims(store).reserve(["pending"], "pipeline:x", timedelta(seconds=9))
    assert claim is not None
    fetched_copy(store, ident, token=claim.token).write(tmp_path, disk=Disk())
    variables = {"AMICRAWL_JOB_UNIT": ident, "AMICRAWL_JOB_TOKEN": str(claim.token)}
    client.delete(f"amicrawl:claim:{ident}")
    with pytest.raises(LeaseLost, match="GONE"):
        opened(redis_server, ident, tmp_path, variables)
    # An older one: Redis was put back to an earlier attempt.
    client.hset(f"amicrawl:claim:{ident}", mapping={"token": "17", "state": "queued"})
    client.set("amicrawl:token", "17")
    assert opened(redis_server, ident, tmp_path, variables).copy.token == claim.token
    client.flushall()
    job = opened(redis_server, ident, tmp_path, variables)
    assert (job.copy.token, job.copy.record["note"]) == (claim.token, "kept")
    assert client.lrange("working", 0, -1) == [ident]


def test_a_job_that_only_its_directory_remembers_is_written_down_again(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    ident = submitted(redis_server, URL, settings={"note": "kept"})
    begin_epoch(store_of(redis_server))
    first = opened(redis_server, ident, tmp_path)
    first.copy.write(tmp_path, disk=Disk())
    client = redis_server.client()
    gone = list(client.scan_iter(match=f"*{ident}*"))
    client.delete(*gone)
    with pytest.raises(InputError, match="There is no job"):
        # As 48 hours after its end: it would be counted and announced once more.
        opened(redis_server, ident, tmp_path)
    client.flushall()
    again = opened(redis_server, ident, tmp_path)
    assert client.hget(ident, "note") == "kept"
    assert client.lrange("working", 0, -1) == [ident]
    assert again.copy.token > first.copy.token
    assert client.hget(f"amicrawl:claim:{ident}", "token") == str(again.copy.token)
    client.flushall()
    with pytest.raises(InputError, match="There is no job"):
        opened(redis_server, ident, tmp_path / "elsewhere")


def test_a_crawl_that_a_pipeline_started_uses_the_redis_of_the_pipeline() -> None:
    """The project in which it runs may name another one."""
    project = Settings({"REDIS_URL": "redis://project", "AMICRAWL_REDIS_PREFIX": "project:"})
    environment = {"REDIS_URL": "redis://pipeline", "AMICRAWL_REDIS_PREFIX": ""}
    by_hand = redis_of(project, environment)
    assert (by_hand["REDIS_URL"], by_hand["AMICRAWL_REDIS_PREFIX"]) == ("redis://project", "project:")
    started = redis_of(project, {**environment, TOKEN_VARIABLE: "7"})
    assert (started["REDIS_URL"], started["AMICRAWL_REDIS_PREFIX"]) == ("redis://pipeline", "")


@pytest.mark.parametrize(
    ("content", "why"),
    [(b"# caf\xe9\n[politeness]\ndelay = 60\n", "not UTF-8"), (b"#" * (2 << 20), "bytes, ")],
)
def test_a_job_whose_crawl_file_cannot_be_read_is_not_crawled_without_it(
    redis_server: RedisServer, tmp_path: Path, content: bytes, why: str
) -> None:
    """Its delay and its scope are in that file: a site would be crawled as it must not be."""
    ident, client = submitted(redis_server, URL), redis_server.client()
    client.set(f"amicrawl:config:{ident}", content)
    job = opened(redis_server, ident, tmp_path)
    with pytest.raises(InputError, match=f"crawl file of {ident} in Redis cannot be read: .*{why}"):
        take_settings(job, Settings())
    job.copy.write(tmp_path, disk=Disk())
    again = JobCopy.read(tmp_path)
    assert again is not None
    assert again.config_fault == job.copy.config_fault


def test_a_job_whose_list_cannot_be_read_is_no_job_of_one_url(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    ident, client = submitted(redis_server, URL), redis_server.client()
    client.set(f"amicrawl:list:{ident}", b"http://a.example/\xff\n")
    job = opened(redis_server, ident, tmp_path)
    with pytest.raises(InputError, match=f"list of {ident} in Redis cannot be read: it is not UTF-8"):
        arguments_of(job, CrawlConfig(out=str(tmp_path)))
