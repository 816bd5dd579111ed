"""Link: the way between one crawl and Redis, on a thread of its own.

    event loop --- feed, once a second --> link --- one script --> figures, log, facts, heartbeat, lease
    event loop <-- at news --------------- link <-- its response --- settings, abort, pause, or: LOST

The crawl never waits for it. What it is fed is kept until Redis has taken it: figures as they stand,
log entries up to the room of the inbox. A crawl whose event loop hangs feeds nothing, so nothing is
renewed, and its lease runs out like that of a dead one.

Between two flushes the link listens to the job's channel, and reads the settings at once when they have
changed; every 30 s it reads all of them in any case.

A Redis that was emptied gets the job again, from the copy that its crawl has (`restore`).
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import redis

from amicrawl.errors import AmicrawlError
from amicrawl.fleet.jobs.live_settings import FIELDS, FlushReply
from amicrawl.fleet.jobs.restoring import restore
from amicrawl.fleet.leases import HeldLease
from amicrawl.fleet.logs import MOST_ENTRIES, Inbox, trim_log

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import timedelta

    from redis.client import PubSub

    from amicrawl.fleet.checkpoints import JobCopy
    from amicrawl.fleet.database import JobStore

logger = logging.getLogger(__name__)

EVERY = 1.0
"""Seconds between two flushes."""

_LISTEN = 0.2
_RE_READ = 30.0
_LONGEST_WAIT = 2.0
"""Seconds between two tries while Redis does not respond: well below the reaper's `GRACE`."""
_MOST_ENTRIES = 2000
_MOST_TEXT = 4 * 1024**2
_MOST_MESSAGES = 100
_TOO_EARLY = 0.1


@dataclass(frozen=True, slots=True)
class Fed:
    """What a crawl reports once a second."""

    figures: Mapping[str, str | int] = field(default_factory=dict)
    """Fields of the record; those that are left out stay as they are."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """JSON texts for the dashboard, those that have changed."""


class CrawlLink(HeldLease):
    """Carries what one crawl reports, keeps its lease, and hands it what it is to do."""

    def __init__(
        self,
        store: JobStore,
        copy: JobCopy,
        *,
        ttl: timedelta,
        on_reply: Callable[[FlushReply], None],
        inbox: Inbox | None = None,
        renewed: float | None = None,
    ) -> None:
        """*copy* names unit and token, and is kept up to date here.

        *on_reply* is called on the link's thread with each response that has news. *renewed* is when,
        by `steady_clock`, the lease was known to be good for *ttl*; None for not at all.
        """
        super().__init__(ttl.total_seconds(), renewed=renewed)
        self._store = store
        self.copy = copy
        self._on_reply = on_reply
        self.inbox = inbox or Inbox(clock=time.time)
        self.trouble = ""
        """Why Redis did not take the last flush; empty where it did."""
        self._lock = threading.Lock()
        self._fed: Fed | None = None
        self._facts: dict[str, str] = {}
        self._wake = threading.Event()
        self._closing = threading.Event()
        self._closed = threading.Event()
        self._give_up_at = float("inf")
        self._age = ""
        self._read_at = float("-inf")
        self._flushed_at = float("-inf")
        self._failures = 0
        self._pubsub: PubSub | None = None
        self._news = False
        self._abort_told = False
        self._keep_copy: Callable[[bytes], object] = lambda _: None
        self._thread = threading.Thread(target=self._work, name="amicrawl-link", daemon=True)

    def start(self) -> None:
        """Begin to carry."""
        self._thread.start()

    def read_again(self) -> None:
        """Have all settings reported again."""
        self._abort_told = False
        self._news = True

    def lose(self, why: str) -> None:
        """Let nothing be written any more, because of *why*, unless that is so already."""
        super().lose(why)
        self._wake.set()

    def feed(self, fed: Fed) -> None:
        """Take what is to be sent next, in place of what was not sent yet; never waits."""
        with self._lock:
            self._facts.update(fed.facts)
            self._fed = fed
        self._wake.set()

    def finish(
        self, fed: Fed, patience: float, *, keep: Callable[[bytes], object] = lambda _: None
    ) -> bool:
        """Send *fed* and all entries that wait, for *patience* seconds at most; return if that arrived.

        *keep* gets what `job.json` is to hold: with the entries that wait, and once all has arrived,
        without. It is called on the link's thread. Nothing is carried afterwards. Blocks: not for the
        event loop.
        """
        self._keep_copy = keep
        self.feed(fed)
        self._give_up_at = self._clock() + patience
        self._closing.set()
        self._wake.set()
        if self._thread.is_alive():
            self._closed.wait(patience + 1)
        return not len(self.inbox) and not self._fed

    def _work(self) -> None:
        try:
            while not self.lost:
                self._listen()
                if self._closing.is_set():
                    self._finish()
                    return
                if (self._fed is not None or self.in_grace) and self._clock() >= self._due():
                    self._flush(renew=True)
                elif self._news and self._failures == 0:
                    self._flush(renew=False)
        except Exception as error:  # a thread that dies in silence would let the lease lapse
            if self._clock() >= self._give_up_at:
                # The caller of `finish` has given up, and closed the connection.
                return
            logger.exception("The link to Redis failed")
            self.lost = f"the link to Redis failed: {error!r}"
            self._on_reply(FlushReply("LOST"))
        finally:
            self._closed.set()

    def _due(self) -> float:
        if not self._failures:
            return self._flushed_at + EVERY - _TOO_EARLY
        longest = min(_LONGEST_WAIT, self._ttl / 8)
        return self._flushed_at + min(0.25 * 2.0 ** min(self._failures, 10), longest)

    def _finish(self) -> None:
        """Flush until nothing is left, or it takes too long."""
        copy = self.copy
        copy.unsent = self.inbox.peek(MOST_ENTRIES, size=_MOST_TEXT)
        self._keep_copy(copy.encoded())
        while not self.lost and self._clock() < self._give_up_at:
            if self._flush(renew=True) and not len(self.inbox) and self._fed is None:
                copy.unsent, copy.reported = [], True
                self._keep_copy(copy.encoded())
                return
            if self._failures:
                time.sleep(_LISTEN)

    def _flush(self, *, renew: bool) -> bool:
        """Send what is there, and with *renew* renew the lease; False where Redis did not take it."""
        started = self._clock()
        is_due = started - self._read_at >= _RE_READ
        if renew:
            self._flushed_at = started
        with self._lock:
            fed, self._fed = (self._fed, None) if renew else (None, self._fed)
            facts, self._facts = (self._facts, {}) if renew else ({}, self._facts)
        entries = self.inbox.peek(_MOST_ENTRIES, size=_MOST_TEXT) if renew else []
        if is_due or self._news:
            self._age, self._news = "", False
        try:
            with self._store.responding():
                reply = FlushReply.read(self._run(fed, facts, entries, renew=renew))
                if is_due and reply.what == "OK":
                    # By the memory that it takes, too, which a flush does not look at.
                    trim_log(self._store, self.copy.ident)
        except (AmicrawlError, redis.RedisError, OSError) as error:
            self._keep(fed, facts)
            self._failed(error)
            return False
        if self.trouble:
            logger.info("Redis responds again")
        self._failures, self.trouble = 0, ""
        if reply.what != "OK":
            self._keep(fed, facts)
            return self._not_ours(reply, started)
        self._arrived(reply, started, renew=renew)
        return True

    def _run(self, fed: Fed | None, facts: Mapping[str, str], entries: list[str], *, renew: bool) -> Any:
        keys, copy = self._store.keys, self.copy
        ident, figures = copy.ident, fed.figures if fed is not None else {}
        pairs = [text for each in (figures, facts) for pair in each.items() for text in pair]
        return self._store.scripts(
            "flush",
            keys=[
                *(keys.job(ident), keys.ignores(ident), keys.log(ident), keys.claim(copy.unit)),
                *(keys.lease(copy.unit), keys.desired(ident), keys.facts(copy.unit), keys.own("epoch")),
                keys.token_counter,
            ],
            args=[
                *(copy.unit, copy.token, int(self._ttl * 1000) if renew else 0, self._age, copy.epoch),
                *(uuid.uuid4().hex, keys.updates, MOST_ENTRIES, int(fed is not None)),
                *(len(figures), len(facts), len(FIELDS), *FIELDS, *pairs, *entries),
            ],
        )

    def _arrived(self, reply: FlushReply, started: float, *, renew: bool) -> None:
        if renew:
            self._renewed(started)
            self.inbox.taken()
        copy = self.copy
        copy.epoch = reply.epoch
        copy.remember({"settings_age": reply.age, "log_score": reply.log_score})
        settings = reply.settings
        if settings is not None:
            # A record without an age would be taken for one that has never been read.
            self._age, self._read_at = reply.age or "0", started
            copy.remember(reply.raw)
            if settings.ignores is not None:
                copy.ignores = sorted(settings.ignores)
            if settings.paused is not None:
                copy.desired = {"paused": "1"} if settings.paused else {}
        stops = (reply.abort or reply.failed) and not self._abort_told
        if settings is not None or stops or reply.faults or reply.regained:
            self._abort_told = self._abort_told or stops
            self._on_reply(reply)

    def _not_ours(self, reply: FlushReply, started: float) -> bool:
        """Do what follows where the flush was not taken; False, since it was not."""
        if reply.what == "GONE":
            return self._restore(started)
        if reply.what == "ODD":
            self._failed(AmicrawlError(f"the claim of {self.copy.unit} in Redis is not a hash"))
            return False
        self.lost = _WHY[reply.what]
        self._on_reply(reply)
        return False

    def _restore(self, started: float) -> bool:
        try:
            done = restore(
                self._store, self.copy, lease_ms=int(self._ttl * 1000), epoch=uuid.uuid4().hex
            )
        except (AmicrawlError, redis.RedisError, OSError) as error:
            self._failed(error)
            return False
        if not done:
            self.lost = _WHY["LOST"]
            self._on_reply(FlushReply("LOST"))
            return False
        self._renewed(started)
        self._age, self._flushed_at = "", float("-inf")
        self.inbox.tell("Redis had lost this job; its crawl has written it again.")
        self._on_reply(FlushReply("RESTORED"))
        return False

    def _keep(self, fed: Fed | None, facts: dict[str, str]) -> None:
        """Take back what was not taken, unless there is something newer."""
        with self._lock:
            self._facts = facts | self._facts
            if self._fed is None:
                self._fed = fed

    def _failed(self, error: Exception) -> None:
        self._failures += 1
        self._flushed_at = self._clock()
        trouble = str(error)[:500]
        if not self.trouble:
            logger.warning("The crawl continues without Redis while its lease is valid: %s", trouble)
        self.trouble = trouble
        self._hang_up()

    def _listen(self) -> None:
        """Wait a moment, and note whether the settings are said to have changed meanwhile."""
        if self._failures:
            self._closing.wait(_LISTEN)
            return
        try:
            if self._pubsub is None:
                self._pubsub = self._store.client.pubsub(  # type: ignore[no-untyped-call]
                    ignore_subscribe_messages=True
                )
                self._pubsub.subscribe(self._store.keys.job_channel(self.copy.ident))
                # What was published before was not received.
                self._news = True
            for number in range(_MOST_MESSAGES):
                message = self._pubsub.get_message(timeout=0 if number else _LISTEN)
                if message is None:
                    break
                self._news = self._news or message.get("type") == "message"
        except (redis.RedisError, OSError, ValueError) as error:
            self._failed(error)

    def _hang_up(self) -> None:
        pubsub, self._pubsub = self._pubsub, None
        if pubsub is not None:
            try:
                pubsub.close()
            except (redis.RedisError, OSError):
                return


_WHY = {
    "LOST": "the job is another owner's now, or has ended",
    "ENDED": "the record of the job was taken away",
}
