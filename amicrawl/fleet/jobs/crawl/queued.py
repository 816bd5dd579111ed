"""A crawl of the seeds in a Redis queue: taken as there is room, acknowledged once they are stored.

A seed is acknowledged when its row is in the index, as durably as the crawl keeps rows. Until then it
belongs to this crawl, by the name of its directory: one that dies and is started again there resumes
what it had taken, and if it is not, another crawl takes that over. While Redis is away, the crawl
fetches what it has, and polls again.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import re
import socket
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from scrapy import signals
from scrapy_redis.defaults import START_URLS_KEY

from amicrawl.config import Durability
from amicrawl.crawl import Run, known_arguments, offer_seed, run_of, whole_number
from amicrawl.errors import AmicrawlError, UsageError
from amicrawl.fleet.database import RedisUnavailable
from amicrawl.fleet.jobs.crawl.opening import store_of_crawl
from amicrawl.fleet.jobs.seedqueue import MOST_TAKEN, SeedQueue
from amicrawl.meguri import WAITING, Status
from amicrawl.threads import on_a_thread
from amicrawl.urls import Refused

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from scrapy.crawler import Crawler

    from amicrawl.fleet.jobs.seedqueue import TakenSeed
    from amicrawl.record import CaptureItem
    from amicrawl.urls import UrlKey

logger = logging.getLogger(__name__)

_LOOK_AGAIN = 0.5
_BEAT = 10.0
_RECLAIM = 30.0
_LONGEST_WAIT = 10.0
# A group of rows is forced to disk at most a second after it was written.
_FORCED_AFTER = {Durability.NONE: 0.0, Durability.NORMAL: 2.0, Durability.FULL: 0.0}
_STILL_TO_FETCH = frozenset({*WAITING, Status.IN_FLIGHT})


_LARGEST_BATCH = 5_000
_CONSUMER = re.compile(r"[A-Za-z0-9_.-]{1,100}")


@dataclass(frozen=True, slots=True)
class QueueArguments:
    """The arguments of the spider `queue`."""

    redis_key: str
    """The list, set, sorted set or stream that holds the seeds."""
    idle: float | None = None
    """Seconds without anything to do after which the crawl ends; None: it stays."""
    batch: int = 1000
    """Seeds that are taken and not fetched, at most; 5000 are possible."""
    consumer: str = ""
    """By which name seeds are taken; empty for that of the directory."""
    takeover: int = 300
    """Seconds of silence after which another crawl's seeds are taken over."""
    out: str | None = None
    """Directory for the output."""
    run_id: str | None = None
    """Sub-directory of `out` for this run."""
    config: str | None = None
    """The crawl file that settings were taken from, where they were."""

    @classmethod
    def parse(cls, given: Mapping[str, object], *, name: str, default_key: str = "") -> Self:
        """Check *given* for the spider *name*. Raises UsageError, naming what cannot be followed."""
        values = known_arguments(given, cls.__dataclass_fields__, spider=name)
        key = (values.get("redis_key") or default_key or START_URLS_KEY).replace("%(name)s", name)
        if not key.isprintable() or len(key) > 500:
            raise UsageError(f"Argument redis_key={key[:60]!r} is not the name of a key in Redis.")
        consumer = values.get("consumer", "")
        if consumer and not _CONSUMER.fullmatch(consumer):
            raise UsageError(
                f"Argument consumer={consumer!r} has others than letters, digits, `.`, `_`, `-`."
            )
        return cls(
            redis_key=key,
            idle=float(whole_number(values, "idle", 0)) if values.get("idle") else None,
            batch=min(max(whole_number(values, "batch", 1000), 1), _LARGEST_BATCH),
            consumer=consumer,
            takeover=max(whole_number(values, "takeover", 300), 1),
            out=values.get("out") or None,
            run_id=values.get("run_id") or None,
            config=values.get("config") or None,
        )


def open_queue(
    crawler: Crawler, given: Mapping[str, object], *, name: str
) -> tuple[QueueArguments, QueueFeed]:
    """Return the arguments *given* to the spider *name*, checked, and the feed from Redis by them.

    Raises UsageError where they, or the settings of Redis, cannot be followed.
    """
    default_key = str(crawler.settings.get("REDIS_START_URLS_KEY") or "")
    arguments = QueueArguments.parse(given, name=name, default_key=default_key)
    return arguments, QueueFeed(crawler, arguments)


class QueueFeed:
    """The way from a queue in Redis into the frontier of *crawler*, and of acknowledgements back."""

    def __init__(self, crawler: Crawler, arguments: QueueArguments) -> None:
        """Find Redis, and send nothing yet. Raises UsageError where that cannot be followed."""
        self._crawler = crawler
        self._arguments = arguments
        self._store = store_of_crawl(crawler.settings, os.environ)
        self._queue: SeedQueue | None = None
        self._held: dict[UrlKey, list[str]] = {}
        """Numbers of seeds that are still to be fetched, by the key of their URL."""
        self._numbers: set[str] = set()
        """Numbers of all seeds that are not acknowledged."""
        self._kept: deque[tuple[float, str]] = deque()
        """Seeds that are in the index, with the moment from which that is durable."""
        self._forced_after = 0.0
        self._lost_reply = True
        """Whether Redis may have given us seeds that we do not know of."""
        self._is_away = False
        self._beat_at = self._reclaim_at = self._busy_at = float("-inf")
        crawler.signals.connect(self._closed, signals.spider_closed)

    async def feed(self) -> None:
        """Take seeds until the crawl is to end, or nothing came for as long as was requested."""
        run = run_of(self._crawler)
        consumer = self._arguments.consumer or _consumer_of(run)
        self._queue = SeedQueue(
            self._store, self._arguments.redis_key, consumer, takeover=self._arguments.takeover
        )
        self._forced_after = _FORCED_AFTER[run.config.durability]
        run.tally.on_count.append(self._counted)
        self._busy_at = run.clock()
        wait = _LOOK_AGAIN
        while not run.stopping and not run.finish_reason:
            try:
                came = await self._once(run)
                self._is_away = False
                wait = 0.0 if came else _LOOK_AGAIN
            except RedisUnavailable as error:
                if not self._is_away:
                    logger.warning("%s The crawl continues with what it has.", error)
                self._is_away = self._lost_reply = True
                wait = min(max(2 * wait, _LOOK_AGAIN), _LONGEST_WAIT)
            except AmicrawlError as error:
                run.seed_fault = error
                break
            if self._is_done(run):
                break
            await asyncio.sleep(wait)
        run.tally.seeds_ended = True

    async def _once(self, run: Run) -> bool:
        """Acknowledge what is due, take what there is room for; tell whether anything came."""
        queue = self._queue
        assert queue is not None
        await self._acknowledge(run.clock())
        if self._lost_reply:
            known = await on_a_thread(queue.taken)
            self._lost_reply = len(known) >= MOST_TAKEN
            await self._offer(run, known)
        if run.clock() - self._reclaim_at >= min(_RECLAIM, self._arguments.takeover):
            self._reclaim_at = run.clock()
            if await on_a_thread(queue.reclaim):
                self._lost_reply = True
        room = 0 if run.paused else self._arguments.batch - len(self._held)
        if room <= 0 and run.clock() - self._beat_at < min(_BEAT, self._arguments.takeover / 3):
            return False
        self._beat_at = run.clock()
        taken = await on_a_thread(lambda: queue.take(max(room, 0)))
        return await self._offer(run, taken)

    async def _offer(self, run: Run, taken: Iterable[TakenSeed]) -> bool:
        """Offer seeds to the frontier, and hold them by their keys; tell whether there were any."""
        came = False
        for number, seed in taken:
            if number in self._numbers:
                continue
            came = True
            self._numbers.add(number)
            key = run.key_of(seed.url)
            if isinstance(key, Refused):
                await offer_seed(run, seed)
                self._keep(number, run.clock())
                continue
            self._held.setdefault(key, []).append(number)
            await offer_seed(run, seed)
            if key in self._held and not _is_still_to_fetch(run, key):
                self._let_go(key, run.clock())
        if came:
            self._busy_at = run.clock()
            run.wake()
        return came

    def _counted(self, item: CaptureItem) -> None:
        """Note that a row is in the index."""
        run = run_of(self._crawler)
        key = run.key_of(item.seed.url)
        if not isinstance(key, Refused) and key in self._held:
            self._busy_at = run.clock()
            self._let_go(key, run.clock())

    def _let_go(self, key: UrlKey, now: float) -> None:
        for number in self._held.pop(key):
            self._keep(number, now)

    def _keep(self, number: str, now: float) -> None:
        self._kept.append((now + self._forced_after, number))

    async def _acknowledge(self, now: float) -> None:
        """Acknowledge what is durable by now; what cannot be sent now is sent later."""
        due = []
        for moment, number in self._kept:
            if moment > now:
                break
            due.append(number)
        if not due or self._queue is None:
            return
        queue = self._queue
        await on_a_thread(lambda: queue.acknowledge(due))
        for number in due:
            self._kept.popleft()
            self._numbers.discard(number)

    def _is_done(self, run: Run) -> bool:
        """Tell whether the crawl is to end, since nothing has come and nothing is left to do."""
        idle = self._arguments.idle
        if idle is None or self._held or self._kept or self._lost_reply:
            return False
        return not run.waiting and run.clock() - self._busy_at >= idle

    async def _closed(self) -> None:
        """Acknowledge the rest: all files are sealed by now."""
        run = run_of(self._crawler)
        if run.recorder.fault is None:
            try:
                await self._acknowledge(float("inf"))
            except AmicrawlError as error:
                logger.warning("%s What was fetched last will be fetched again.", error)
        self._store.close()


def _is_still_to_fetch(run: Run, key: UrlKey) -> bool:
    """Tell whether the row at *key* waits or is in flight; one that was settled is in the index."""
    partition = run.frontier.partition
    number = partition.find(key.host, key.path)
    return number is not None and partition.get(number).status in _STILL_TO_FETCH


def _consumer_of(run: Run) -> str:
    """Return the name of this crawl as a consumer: that of its directory on this machine."""
    place = f"{socket.gethostname()}:{run.config.directory.absolute()}"
    return hashlib.sha256(place.encode()).hexdigest()[:20]
