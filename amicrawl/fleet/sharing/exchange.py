"""The exchange of one partition with the others, on a thread of its own: the event loop never waits.

    event loop --- feed, a few times a second ---> thread   how the partition stands, which batches are
                                                            in the frontier
    thread: force the frontier to disk, acknowledge batches, send what the outbox has, read the inbox,
            and last of all renew the lease, in the same step in which idle is said
    event loop <--- news ------------------------ thread    batches, and what the others want

A batch is acknowledged when its links are in the frontier, and that is on disk; so a crash at any point
brings it again. Redis away: the thread tries again, and everything stays where it is. A crawl whose
event loop hangs feeds nothing, so nothing is renewed and its lease runs out like that of a dead one.

While the crawl opens its output and while it closes it, the loop does not turn: for so long, and within
bounds, the thread keeps the lease by itself.
"""

from __future__ import annotations

import json
import logging
import threading
from concurrent.futures import wait
from dataclasses import dataclass
from typing import TYPE_CHECKING

from amicrawl.clock import steady_clock
from amicrawl.errors import AmicrawlError, OutputError
from amicrawl.fleet.database import put_dead_letter, unit_of
from amicrawl.fleet.leases import Claims, HeldLease, Renewal
from amicrawl.fleet.sharing.share import NEXT, Reply
from amicrawl.partition import BATCHES_AT_ONCE, EVERY, OpenedBatch, links_in

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future
    from datetime import timedelta

    from amicrawl.fleet.sharing.share import Share
    from amicrawl.partition import Outbox, Standing

logger = logging.getLogger(__name__)

_ACKNOWLEDGED_AT_ONCE = 500
_LONGEST_PAUSE = 5.0
_LINGER = 1.5
"""Seconds without anything to do after which a partition may be given up: a beginning takes as long."""
_LONGEST_GRACE = 600.0
"""Seconds that a crawl may take to open its output, or to close it."""


@dataclass(frozen=True, slots=True)
class News:
    """News for the event loop."""

    reply: Reply
    batches: tuple[OpenedBatch, ...] = ()


class BatchExchange(HeldLease):
    """Exchanges batches for partition *number* of *share*, held with *token* for *ttl* at a time."""

    def __init__(
        self,
        share: Share,
        number: int,
        token: int,
        *,
        force: Callable[[], Future[None]],
        tell: Callable[[News], None],
        fence: Callable[[], str],
        ttl: timedelta,
        turn: timedelta,
        clock: Callable[[], float] = steady_clock,
    ) -> None:
        """*force* has the frontier forced to disk; *tell* is called with news, on the thread.

        *fence* says in a sentence who has been given the directory since, if anybody has. *turn* is how
        long the partition may be held while others wait.
        """
        super().__init__(ttl.total_seconds(), clock=clock)
        self._share = share
        self._number = number
        self._token = token
        self.outbox: Outbox | None = None
        """The links for other partitions; to be set before `feed`."""
        self._force = force
        self._tell = tell
        self._fence = fence
        self._lease = ttl
        self._turn = turn
        self.trouble = ""
        """Why the last round did not reach Redis; empty where it did."""
        self.sent = 0
        """Links that were put into inboxes."""
        self.received = 0
        """Links that were read from the inbox."""
        self._lock = threading.Lock()
        self._fed: Standing | None = None
        self._kept: list[str] = []
        self._being_forced: list[str] = []
        self._forcing: Future[None] | None = None
        self._wake = threading.Event()
        self._closing = False
        self._finished = threading.Event()
        self._after = "0"
        self._handed: set[str] = set()
        """Batches that the event loop was given, and that are not acknowledged yet."""
        self._busy_at = clock()
        self._out: tuple[int, ...] = ()
        self._failures = 0
        self._thread = threading.Thread(target=self._work, name="amicrawl-exchange", daemon=True)

    def lose(self, why: str) -> None:
        """Let nothing be written any more, because of *why*; once."""
        if not self.lost:
            super().lose(f"The partition is another worker's by now: {why}")
            self._tell(News(Reply("lost")))

    def begin(self) -> None:
        """Renew the lease at once, and continue to; raises AmicrawlError where it is lost."""
        self.grant(_LONGEST_GRACE)
        self._hold()
        if self.lost:
            raise AmicrawlError(f"{self.lost}. Nothing was written.")
        self._thread.start()

    def feed(self, standing: Standing) -> None:
        """Take the present state of the partition; never waits."""
        with self._lock:
            self._kept += standing.kept
            self._fed = standing
        self._wake.set()

    def finish(self, standing: Standing, patience: float) -> None:
        """Do a last round, for *patience* seconds at most. Blocks: not for a loop that is to go on.

        The lease is kept from then on until the process ends, within bounds.
        """
        self._closing = True
        self.grant(_LONGEST_GRACE)
        self.feed(standing)
        if self._thread.is_alive():
            self._finished.wait(patience)

    def _work(self) -> None:
        held_at = self._clock()
        try:
            while not self.lost:
                self._wake.wait(self._ttl / 10)
                with self._lock:
                    fed, self._fed = self._fed, None
                    self._wake.clear()
                if fed is not None and not self._finished.is_set():
                    if not self._closing:
                        self.grant(0)
                    self._round(fed)
                    if self._closing:
                        self._finished.set()
                elif self.in_grace and self._clock() - held_at > self._ttl / 4:
                    held_at = self._clock()
                    self._hold_on()
        except Exception as error:  # a thread that dies in silence would let the lease lapse
            logger.exception("The exchange with other partitions failed")
            self.lose(f"the exchange with other partitions failed: {error!r}")
        finally:
            self._finished.set()

    def _round(self, standing: Standing) -> None:
        self._check_fence()
        if self.lost:
            return
        try:
            self._acknowledge()
            if not self.lost:
                self._send()
            reply = None if self.lost else self._renew(standing)
            batches = () if reply is None or not reply.batches else self._receive(standing)
        except AmicrawlError as error:
            self._failed(error)
            return
        if self._failures:
            logger.info("Redis responds again")
        self._failures, self.trouble = 0, ""
        if reply is not None and not self.lost:
            self._tell(News(reply, batches))

    @property
    def _box(self) -> Outbox:
        assert self.outbox is not None
        return self.outbox

    def _acknowledge(self) -> None:
        """Take batches out of the inbox that the frontier has, once it is on disk with them.

        It is forced there by another thread: this one has to keep the lease, for which that one waits.
        """
        if self._forcing is None:
            with self._lock:
                self._being_forced = self._kept[:_ACKNOWLEDGED_AT_ONCE]
            if self._being_forced:
                self._forcing = self._force()
                # As a rule it takes less than a round, and another round is saved.
                wait([self._forcing], EVERY)
        if self._forcing is None or not self._forcing.done():
            return
        self._forcing.result()
        if self._share.acknowledge(self._number, self._token, self._being_forced):
            self._forcing = None
            self._handed.difference_update(self._being_forced)
            with self._lock:
                del self._kept[: len(self._being_forced)]
        else:
            self.lose("the lease was lost")

    def _mark(self, write: Callable[[], object]) -> None:
        """Write down how far the outbox was sent; without a mark that is only sent once more."""
        try:
            write()
        except OutputError as error:
            logger.debug("The mark of the outbox stays as it is: %s", error)

    def _send(self) -> None:
        """Send what the outbox has, to inboxes with room."""
        outbox = self._box
        shut: set[int] = set(self._out)
        sent_any = False
        for _ in range(BATCHES_AT_ONCE):
            parcels = outbox.parcels(most=BATCHES_AT_ONCE, shut=tuple(shut))
            if not parcels:
                break
            replies = self._share.send(
                self._number, self._token, [(parcel.recipient, parcel.batch) for parcel in parcels]
            )
            if replies is None:
                self.lose("the lease was lost")
                return
            for parcel, reply in zip(parcels, replies, strict=True):
                if reply == "taken":
                    outbox.sent(parcel)
                    self.sent += parcel.links
                    sent_any = True
                else:
                    shut.add(parcel.recipient)
        if sent_any:
            self._mark(outbox.write_mark)

    def _receive(self, standing: Standing) -> tuple[OpenedBatch, ...]:
        """Read batches of the inbox; those that cannot be read become dead letters."""
        if not standing.has_room or self._closing:
            return ()
        entries = self._share.receive(self._number, self._token, most=BATCHES_AT_ONCE, after=self._after)
        if entries is None:
            self.lose("the lease was lost")
            return ()
        if self._after != NEXT:
            # First what the owner before had read and not acknowledged, then the rest.
            self._after = entries[-1][0] if entries else NEXT
        new = [(name, fields) for name, fields in entries if name not in self._handed]
        self._handed.update(name for name, _ in new)
        batches = tuple(self._opened(name, fields) for name, fields in new)
        self.received += sum(len(batch.links) for batch in batches)
        return batches

    def _opened(self, name: str, fields: dict[str, str]) -> OpenedBatch:
        where = f"{self._share.keys.links(self._number)} {name}"
        try:
            links, faults = links_in(fields.get("b", ""))
        except AmicrawlError as fault:
            put_dead_letter(
                self._share.store, where=where, why=str(fault), value=fields.get("b", str(fields))
            )
            return OpenedBatch(name, ())
        for sentence in faults[:10]:
            put_dead_letter(self._share.store, where=where, why=sentence)
        return OpenedBatch(name, tuple(links))

    def _hold_on(self) -> None:
        try:
            self._hold()
        except AmicrawlError as error:
            self._failed(error)

    def _hold(self) -> None:
        """Renew the lease without a report on the partition."""
        started = self._clock()
        unit = unit_of(self._share.record.name, self._number)
        renewal = Claims(self._share.store).renew(unit, self._token, self._lease, by_crawl=True)
        if renewal in {Renewal.RENEWED, Renewal.REGAINED}:
            self._renewed(started)
        else:
            self.lose("the lease was lost")

    def _renew(self, standing: Standing) -> Reply | None:
        outbox = self._box
        started = self._clock()
        if not standing.idle:
            self._busy_at = started
        is_sent = outbox.is_empty or outbox.only_for(self._out)
        reply = self._share.tick(
            self._number,
            self._token,
            ttl=self._lease,
            idle=standing.idle and is_sent,
            spare=standing.idle and started - self._busy_at > _LINGER,
            turn=self._turn,
            facts=json.dumps(standing.facts),
        )
        if reply.lease == "gone":
            raise AmicrawlError("Redis knows nothing of this crawl any more; make it again, as it was")
        if not reply.is_ours:
            self.lose("the lease was lost")
            return None
        self._renewed(started)
        self._out = reply.out
        self._mark(lambda: outbox.begin_epoch(reply.epoch))
        return reply

    def _check_fence(self) -> None:
        newer = self._fence()
        if newer:
            self.lose(newer)

    def _failed(self, error: AmicrawlError) -> None:
        self._failures += 1
        # Batches may have been handed to us by a response that never came.
        self._after = "0"
        if not self.trouble:
            logger.warning("The crawl continues without Redis while its lease is valid: %s", error)
        self.trouble = str(error)[:500]
        self._wake.clear()
        # The loop goes on feeding; a server that is away is not tried each time.
        longest = min(_LONGEST_PAUSE, self._ttl / 4)
        self._finished.wait(min(EVERY * 2.0 ** min(self._failures, 6), longest))
