"""Jobs that nobody crawls: what crawls and pipelines would tell, written into Redis by hand."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from amicrawl.fleet.database.connection import JobStore, RedisSettings, connect
from amicrawl.fleet.jobs.pipeline_record import PipelineIdentity, PipelineRecord
from amicrawl.fleet.jobs.submission import Submission, submit
from amicrawl.fleet.logs.job_log import Download, Entry, Ignore, encoded

if TYPE_CHECKING:
    from collections.abc import Sequence

MEASURED = {
    "mem_usage": "41.2",
    "mem_available": "9400000000",
    "disk_usage": "63.5",
    "disk_available": "412000000000",
    "load_average_1m": "1.42",
    "load_average_5m": "1.1",
    "load_average_15m": "0.87",
}
"""What a machine in good health measures."""


def store_of(redis_url: str) -> JobStore:
    """Return the way to that Redis; to be closed."""
    return connect(RedisSettings(url=redis_url))


@dataclass
class MadeUpJob:
    """One job, and what its crawl has told until now."""

    store: JobStore
    ident: str
    url: str
    figures: dict[str, int] = field(default_factory=dict)

    @classmethod
    def queued(cls, store: JobStore, url: str, **wishes: Any) -> MadeUpJob:
        """Submit a job that waits."""
        submitted = submit(store, Submission(url=url, **wishes), now=time.time())
        return cls(store, submitted.ident, submitted.url)

    def start(self, pipeline: str = "", *, ago: float = 0.0) -> MadeUpJob:
        """Take it from its queue, as the pipeline of that key would have done *ago* seconds ago."""
        # In one step, as there: a page that looks in between would show no such job.
        step, keys = self.store.client.pipeline(), self.store.keys
        for queue in ("pending", "pending-ao", "pending-large"):
            step.lrem(keys.queue(queue), 0, self.ident)
        step.lpush(keys.working, self.ident)
        fields: dict[Any, str] = {
            "started_at": repr(time.time() - ago),
            "queued_at": str(int(time.time() - ago - 90)),
        }
        step.hset(keys.job(self.ident), mapping=fields | {"pipeline_id": pipeline})
        step.execute()
        return self

    def count(self, **figures: int) -> None:
        """Tell absolute figures: `items_downloaded`, `r2xx` and so on."""
        self.figures.update(figures)
        told: dict[Any, int] = {**self.figures}
        self.store.client.hset(self.store.keys.job(self.ident), mapping=told)
        self.store.client.publish(self.store.keys.updates, self.ident)

    def tell(self, entries: Sequence[Entry]) -> None:
        """Append *entries* to the log."""
        client, keys = self.store.client, self.store.keys
        last = int(client.hincrby(keys.job(self.ident), "log_score", len(entries)))
        first = last - len(entries) + 1
        scored = {encoded(entry): first + index for index, entry in enumerate(entries)}
        with client.pipeline(transaction=False) as pipe:
            pipe.zadd(keys.log(self.ident), scored)
            pipe.zremrangebyrank(keys.log(self.ident), 0, -2001)
            pipe.publish(keys.updates, self.ident)
            pipe.execute()

    def facts(self, **facts: Any) -> None:
        """Tell facts beside the record: `now`, `hosts`, `ignores`, `files`, `history`."""
        texts: dict[Any, str] = {name: json.dumps(value) for name, value in facts.items()}
        self.store.client.hset(self.store.keys.facts(self.ident), mapping=texts)

    def end(self, *, aborted: bool = False, ago: float = 0.0) -> None:
        """End it, as the script of a pipeline would."""
        client, keys = self.store.client, self.store.keys
        fields: dict[Any, str] = {"finished_at": str(int(time.time() - ago))}
        if aborted:
            fields["aborted"] = "true"
        client.hset(keys.job(self.ident), mapping=fields)
        client.lrem(keys.working, 0, self.ident)
        client.incr(keys.aborted if aborted else keys.completed)
        client.publish(keys.updates, self.ident)


def made_up_pipeline(store: JobStore, nickname: str, *, ago: float = 0.0, **measured: str) -> str:
    """Register a pipeline that reported *ago* seconds ago; return its key."""
    identity = PipelineIdentity(nickname, f"{nickname}.example.org", 4000 + len(nickname), nickname)
    record = PipelineRecord(store, identity)
    record.report("Running", time.time() - ago, {**MEASURED, **measured}, slots=4, running=2)
    return record.key


def pages(job: MadeUpJob, first: int, count: int) -> list[Entry]:
    """Return entries of *count* pages of *job*: most there, some moved, gone, failing or ignored."""
    entries: list[Entry] = []
    for number in range(first, first + count):
        url = f"{job.url}article/{number}/some-title-of-middling-length?page={number % 7}"
        ts = time.time() + (number - first) / 1e5
        kind = number * 7919 % 100
        if kind < 6:
            entries.append(Ignore(ts, url, r"[?&](sort|order)="))
        elif kind < 9:
            entries.append(Download(ts, url, 0, "Name could not be resolved"))
        else:
            status = 404 if kind < 16 else 503 if kind < 18 else 301 if kind < 28 else 200
            entries.append(Download(ts, url, status))
    return entries


def running_job(store: JobStore, url: str = "https://example.org/", **wishes: Any) -> MadeUpJob:
    """Return a job that has run for ten minutes."""
    job = MadeUpJob.queued(store, url, **wishes).start(ago=600)
    job.count(items_downloaded=120, items_queued=200, r2xx=100, r4xx=20, bytes_downloaded=5_000_000)
    return job
