"""Reaper: gives the jobs of dead pipelines back to their queues, and clears away what they left.

A job is one of ours if it has a claim; it is left behind if its lease ran out and stayed so for a while.
The while is counted here and begins anew when Redis did not answer, so that owners that were cut off by
the same outage can regain their leases first. Jobs of ArchiveBot's own pipelines have no claim, and are
never touched. Every pipeline reaps; that several do at once does no harm.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from amicrawl.jobs import dead_letters
from amicrawl.jobs.ident import is_ident
from amicrawl.jobs.lease import Claim, Claims, GivenBack, Happened
from amicrawl.jobs.pipeline_record import remove_stale
from amicrawl.jobs.redis_values import list_at, names_of_keys

if TYPE_CHECKING:
    from collections.abc import Collection

    from amicrawl.jobs.connection import JobStore

logger = logging.getLogger(__name__)

EVERY = 2.0
"""Seconds between two looks."""
GRACE = 15.0
"""Seconds that a lease has to have been out before its job is given to another pipeline: after an outage
of Redis, a crawl needs a pause, a new connection and a round trip to have its lease again."""
CLEARS_EVERY = 600.0
"""Seconds between two searches for records of dead pipelines and claims of no job."""


class Reaper:
    """Looks after the jobs of others. For one thread; its methods raise RedisUnavailable."""

    def __init__(
        self,
        store: JobStore,
        claims: Claims,
        *,
        grace: float = GRACE,
    ) -> None:
        self._store = store
        self._claims = claims
        self._grace = grace
        self._lapsed: dict[tuple[str, int], float] = {}
        """Claims whose lease is out, and since when that is known."""
        self._looked = float("-inf")
        self._cleared = float("-inf")

    def forget(self) -> None:
        """Begin to count anew: Redis did not answer."""
        self._lapsed.clear()

    def reap(self, *, ours: Collection[str] = ()) -> dict[str, GivenBack]:
        """Give back what its owner has left behind, if it is time to look; return what became of it.

        *ours* are units whose crawls run here, and are watched by their pulse.
        """
        now = time.monotonic()
        if now - self._looked < EVERY:
            return {}
        self._looked = now
        if now - self._cleared >= CLEARS_EVERY:
            self._cleared = now
            self._clear()
        found = {}
        for claim in self._left_behind(now, ours):
            answer = self._claims.give_back(
                claim.unit, claim.token, Happened.LAPSED, why=f"its owner {claim.owner[:100]} was gone"
            )
            if answer is GivenBack.DEAD:
                dead_letters.put(
                    self._store,
                    where=self._store.keys.job(claim.unit),
                    why="the job has failed too often: its pipelines were gone",
                )
            logger.warning("Job %s was left behind by %r: %s", claim.unit, claim.owner[:100], answer)
            found[claim.unit] = answer
        return found

    def _left_behind(self, now: float, ours: Collection[str]) -> list[Claim]:
        units = [
            unit
            for unit in dict.fromkeys(list_at(self._store, self._store.keys.working))
            if is_ident(unit) and unit not in ours
        ]
        lapsed: dict[tuple[str, int], float] = {}
        over = []
        for claim, left in self._claims.look(units):
            if claim is None or claim.state != "held" or left:
                continue
            key = (claim.unit, claim.token)
            lapsed[key] = self._lapsed.get(key, now)
            if now - lapsed[key] >= self._grace:
                over.append(claim)
        self._lapsed = lapsed
        return over

    def _clear(self) -> None:
        for key in remove_stale(self._store):
            logger.info("%s has not reported for a day; its record is gone", key)
        keys, client = self._store.keys, self._store.client
        start = keys.claim("")
        with self._store.answering():
            units = [key.removeprefix(start) for key in names_of_keys(self._store, start)]
        for claim, left in self._claims.look([unit for unit in units if is_ident(unit)]):
            if claim is None or left:
                continue
            with self._store.answering():
                # One that is not held can be forgotten by the same script, which looks again.
                if client.type(keys.job(claim.unit)) == "none":
                    client.expire(keys.claim(claim.unit), 60)
