"""The users that docs/jobs.md sets up can do their work, and not that of others."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from job_changes import change
from redis.exceptions import NoPermissionError

from amicrawl.fleet.database import redis_values
from amicrawl.fleet.database.connection import JobStore, RedisRefused, connect
from amicrawl.fleet.database.ident import ident_of
from amicrawl.fleet.jobs import lookup, queues, verbs
from amicrawl.fleet.jobs.link import CrawlLink, Fed
from amicrawl.fleet.jobs.pipeline_record import PipelineIdentity, PipelineRecord, pipelines
from amicrawl.fleet.jobs.restoring import fetched_copy
from amicrawl.fleet.jobs.seedqueue import SeedQueue
from amicrawl.fleet.jobs.submission import Submission, submit
from amicrawl.fleet.leases.lease import Claims, Happened
from amicrawl.fleet.logs import job_log
from amicrawl.fleet.logs.job_log import Stdout, encoded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from redis_server import RedisServer

PAGE = Path(__file__).parents[2] / "docs" / "jobs.md"
NOW = 1_700_000_000.0
URLS = [f"http://{letter}.example/" for letter in "abcd"]
LONG = timedelta(minutes=5)


def user_lines() -> list[str]:
    return re.findall(r"(?m)^ACL SETUSER .*$", PAGE.read_text())


@pytest.fixture
def roles(redis_server: RedisServer) -> Iterator[dict[str, JobStore]]:
    """A store for each user of the page, all below the page's prefix; `admin` for the default one."""
    stores = {}
    with redis_server.client() as client:
        run: Any = client.execute_command
        for line in user_lines():
            run(*line.replace(">PASSWORD", ">secret").split(" ")[:3], *rules(line))
    for name in ("viewer", "worker", "controller"):
        url = redis_server.url.replace("//", f"//{name}:secret@")
        stores[name] = connect({"REDIS_URL": url, "AMICRAWL_REDIS_PREFIX": "crawl:"})
    stores["admin"] = connect({"REDIS_URL": redis_server.url, "AMICRAWL_REDIS_PREFIX": "crawl:"})
    yield stores
    with redis_server.client() as client:
        run = client.execute_command
        run("ACL", "DELUSER", "viewer", "worker", "controller")
    for store in stores.values():
        store.close()


def rules(line: str) -> list[str]:
    """Split what follows the name; a selector in brackets is one rule."""
    text = line.split(" ", 3)[3].replace(">PASSWORD", ">secret")
    return re.findall(r"\([^)]*\)|\S+", text)


def refused(store: JobStore, act: Callable[[JobStore], object]) -> bool:
    try:
        with store.responding():
            act(store)
    except RedisRefused:
        return True
    return False


def test_a_controller_submits_steers_and_tidies(roles: dict[str, JobStore]) -> None:
    store = roles["controller"]
    for url in URLS:
        submit(store, Submission(url=url, config="x", ignore_sets=("forums",), pipeline="blue"), now=NOW)
    first, second, third, _ = (ident_of(url) for url in URLS)
    queues.move(store, first, place=queues.LAST)
    queues.move(store, second, place=1, queue="pending")
    change(store, first, "delay", 1, 2)
    verbs.ignore(store, first, ["x$"])
    verbs.pause(store, first)
    assert verbs.abort(store, third, now=NOW).done is verbs.Aborted.REMOVED
    verbs.expire(store, third)
    job_log.trim_log(store, first)
    redis_values.put_dead_letter(store, where="x", why="y")
    assert redis_values.clear_dead_letters(store) == 1
    read_all(store, first)


def test_a_worker_takes_runs_and_ends_a_job(roles: dict[str, JobStore]) -> None:
    submit(roles["controller"], Submission(url=URLS[0]), now=NOW)
    submit(roles["controller"], Submission(url=URLS[1]), now=NOW)
    store = roles["worker"]
    pipeline = PipelineRecord(store, PipelineIdentity("h", "h", 1, "blue"))
    pipeline.report("Running", NOW, {}, slots=1, running=0)
    claims = Claims(store)
    claim = claims.reserve(["pending"], pipeline.key, LONG)
    assert claim is not None
    link = CrawlLink(
        store, fetched_copy(store, claim.unit, token=claim.token), ttl=LONG, on_reply=lambda _: None
    )
    link.inbox.tell("a line")
    link.start()
    assert link.finish(Fed(figures={"r2xx": 1}), patience=10)
    assert len(job_log.entries_after(store, claim.unit).entries) == 1
    assert str(claims.finish(claim.unit, claim.token, info="{}")).lower() == "completed"
    again = claims.reserve(["pending"], pipeline.key, LONG)
    assert again is not None
    claims.give_back(again.unit, again.token, Happened.CRASHED)
    assert [entry.ident for entry in queues.waiting(store)] == [again.unit]
    pipeline.unregister()
    read_all(store, claim.unit)


def test_a_worker_empties_a_queue_of_seeds_that_others_fill(roles: dict[str, JobStore]) -> None:
    admin = roles["admin"].client
    admin.rpush("crawl:list", URLS[0])
    admin.xadd("crawl:stream", {"url": URLS[0]})
    for kind in ("list", "stream"):
        dead, living = (SeedQueue(roles["worker"], kind, name) for name in ("dead", "living"))
        assert len(dead.take(5)) == 1
        admin.zincrby(f"crawl:amicrawl:consumers:{kind}", -1000, "dead")
        assert living.reclaim() == 1
        (seed,) = living.take(5) or living.taken()
        living.acknowledge([seed.number])
        assert living.taken() == []


def test_a_viewer_reads_and_listens(roles: dict[str, JobStore]) -> None:
    submit(roles["controller"], Submission(url=URLS[0]), now=NOW)
    ident = ident_of(URLS[0])
    roles["worker"].client.zadd(f"crawl:{ident}_log", {encoded(Stdout(1.0, "x")): 1})
    store = roles["viewer"]
    read_all(store, ident)
    heard: Any = store.client.pubsub(ignore_subscribe_messages=True)  # type: ignore[no-untyped-call]
    heard.subscribe(store.keys.updates)
    heard.get_message(timeout=1)
    roles["worker"].client.publish(store.keys.updates, ident)
    assert heard.get_message(timeout=5)["data"] == ident
    heard.close()


WORK = {
    "submit": lambda store: submit(store, Submission(url="http://new.example/"), now=NOW),
    "reserve": lambda store: Claims(store).reserve(["pending"], "crawl:pipeline:" + "a" * 32, LONG),
    "abort": lambda store: verbs.abort(store, ident_of(URLS[0]), now=NOW),
    "move": lambda store: queues.move(store, ident_of(URLS[0]), place=queues.LAST),
    "flush": lambda store: store.client.zadd("crawl:x_log", {"x": 1}),
    "publish": lambda store: store.client.publish("crawl:updates", "x"),
    "elsewhere": lambda store: store.client.get("other"),
    "write elsewhere": lambda store: store.client.set("other", "x"),
    "listen elsewhere": lambda store: store.client.publish("other", "x"),
    "flushall": lambda store: store.client.flushall(),
    "keys": lambda store: store.client.keys("*"),
    "config": lambda store: store.client.config_get("*"),
    "eval": lambda store: store.client.eval("return 1", 0),
    "users": lambda store: store.client.acl_list(),
    "debug": lambda store: store.client.execute_command("DEBUG", "SLEEP", "0"),
}
FOR_ALL = {"elsewhere", "write elsewhere", "listen elsewhere", "flushall", "keys", "config"}
FOR_ALL |= {"eval", "users", "debug"}


@pytest.mark.parametrize(
    ("name", "not_its_own"),
    [
        ("viewer", {"submit", "reserve", "abort", "move", "flush", "publish"}),
        ("worker", {"submit"}),
        ("controller", {"reserve"}),
    ],
)
def test_no_user_does_the_work_of_another(
    roles: dict[str, JobStore], name: str, not_its_own: set[str]
) -> None:
    submit(roles["admin"], Submission(url=URLS[0]), now=NOW)
    for work in not_its_own | FOR_ALL:
        assert refused(roles[name], WORK[work]), work


def test_the_lines_of_the_page_are_what_redis_makes_of_them(roles: dict[str, JobStore]) -> None:
    assert len(user_lines()) == 3
    for name in ("viewer", "worker", "controller"):
        with pytest.raises(NoPermissionError):
            roles[name].client.shutdown()


def read_all(store: JobStore, ident: str) -> None:
    lookup.job_or_none(store, ident)
    lookup.ignores(store, ident)
    lookup.desired(store, ident)
    lookup.config(store, ident)
    lookup.counts(store)
    lookup.working(store)
    lookup.finished(store)
    pipelines(store)
    queues.waiting(store)
    queues.lengths(store)
    job_log.newest_entries(store, ident)
    redis_values.dead_letters(store)
