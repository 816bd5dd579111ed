"""Claims: which owner crawls which unit, so that no two ever do, and a dead owner's unit is taken over.

    amicrawl:claim:UNIT    hash, as long as the job lives: owner, token, attempt, state, queue, since,
                           queued_at; directory, store, run_id, resumed; failures, why
    amicrawl:lease:UNIT    string, the token; gone when its owner has not renewed it in time
    amicrawl:token         string, the last token given to any owner

Every step is one script in Redis, so it has happened or it has not. Time is that of Redis: the clocks
of the machines do not matter. A token grows with every claim and never comes back, not even after the
database was emptied. A claim whose lease ran out is still its owner's until another takes it over:
an owner that was cut off for a while regains its lease, unless it is too late. A claim belongs to the
`queued_at` of the record under which it was taken: where ArchiveBot's bot has expired a job and queued
its URL again, the claim, the crawl file and the list of the earlier job are removed.

A unit is an ident, or one partition of a shared crawl. Idents in `working` that have no claim are those
of ArchiveBot's own pipelines, and are left alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Self

from amicrawl.fleet.database import pairs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from amicrawl.fleet.database import JobStore

LEASE = timedelta(seconds=30)
"""How long a lease is good for, unless another duration is given."""
GRACE = 15.0
"""Seconds for which a lease must have been expired before its unit is given to another owner: after an
outage of Redis, a crawl needs a pause, a new connection and a round trip to regain its lease."""
MAX_FAILURES = 5
"""Failures in a row that end a job."""
UNABLE_BORNE = 200
"""Owners in a row that were not able to crawl it, which end a job, too."""
GOES_WELL = timedelta(hours=1)
"""An attempt that lasted so long begins the count of failures anew."""
COMPLETED_KEPT = timedelta(hours=48)
"""How long the record of a completed job is kept; that of a failed one, too."""
ABORTED_KEPT = timedelta(seconds=5)
"""How long the record of an aborted job is kept."""
NOTIFICATIONS_KEPT = 10_000
"""Announcements that wait for a bot; older ones are dropped."""
ENTRIES_LOOKED_AT = 1000
"""Entries of queues that one call of the script looks at: others wait while it runs."""
LOOKS = 10
"""Calls of it in one reservation; the next one goes on behind what these have passed over."""

_WHY_LENGTH = 500
_CLAIM_BOUNDS = (100, 8192, 65_536)
"""Fields of a claim, bytes of each and of all that are read."""
_LOOKED_AT_ONCE = 500
"""Claims that one call of the script looks at: others wait while it runs."""
_TEXTS = (
    *("owner", "queue", "since", "state", "run_id", "directory", "store", "resumed", "why"),
    *("first_started_at", "shipped", "checkpoint", "begun"),
)


class Renewal(StrEnum):
    """The result of renewing a lease."""

    RENEWED = "RENEWED"
    REGAINED = "REGAINED"
    """It had run out, and no other owner had taken the job over."""
    LOST = "LOST"
    """The job is another owner's: this one may write nothing of it any more."""
    GONE = "GONE"
    """Redis has no claim, or an older one: it was emptied or put back in time, or the job was ended by
    hand."""


class GivenBack(StrEnum):
    """The result of giving a job back."""

    QUEUED = "QUEUED"
    """It is the next of its queue."""
    DEAD = "DEAD"
    """It has failed too often, and counts as failed."""
    FAILED = "FAILED"
    """Another program, ArchiveBot's console perhaps, has marked it as failed; it is not queued again."""
    LOST = "LOST"
    HELD = "HELD"
    """Its lease is good: its owner lives."""
    GONE = "GONE"


class Finished(StrEnum):
    """The result of finishing a job."""

    COMPLETED = "COMPLETED"
    ABORTED = "ABORTED"
    LOST = "LOST"
    GONE = "GONE"


class Happened(StrEnum):
    """Why a job is given back."""

    DRAINED = "drained"
    """Its pipeline stops: no failure."""
    CRASHED = "crashed"
    LAPSED = "lapsed"
    """Its owner is dead, or cut off."""
    UNABLE = "unable"
    """Its owner has no room, or no Redis; another may have. The job has not failed."""


@dataclass(frozen=True, slots=True)
class Claim:
    """One unit, held by one owner. Everything but unit and token may be anything that Redis held."""

    unit: str
    token: int
    owner: str = ""
    attempt: int = 1
    queue: str = ""
    since: str = ""
    """When it was taken: seconds since 1970, by the clock of Redis."""
    state: str = "held"
    run_id: str = ""
    directory: str = ""
    """The name of its crawl directory below the data directory; empty where there was none yet."""
    store: str = ""
    """The data directory that holds it, by the UUID kept there."""
    resumed: str = ""
    """`resumed` or `restarted`; empty for a first attempt."""
    shipped: str = ""
    """Whether the bucket holds what another machine needs to resume it."""
    checkpoint: str = ""
    """The slot of its last checkpoint there, if that is newer."""
    why: str = ""
    """What ended the attempt before."""
    begun: str = ""
    """The token of the last attempt whose crawl has renewed its lease itself."""
    first_started_at: str = ""
    record: Mapping[str, str] = field(default_factory=dict)
    """The job record as it was when the unit was taken."""

    @property
    def has_begun(self) -> bool:
        """Whether the crawl of this attempt renews its lease itself."""
        return self.begun == str(self.token)

    @property
    def whereabouts(self) -> str:
        """Where what was archived is, for a sentence; empty where no attempt had a directory."""
        if not self.directory:
            return ""
        slot = f", and in the bucket with checkpoint {self.checkpoint}" if self.checkpoint else ""
        said = f"in {self.directory} of the data directory with the ID {self.store}{slot}"
        return said.encode("utf-8", "replace").decode()

    @classmethod
    def read(
        cls, unit: str, fields: Mapping[str, str], *, record: Mapping[str, str] | None = None
    ) -> Self:
        """Return the claim that a hash of Redis holds; invalid numbers become 0."""
        return cls(
            unit=unit,
            token=_number(fields.get("token", "")),
            attempt=_number(fields.get("attempt", "")),
            record=dict(record or {}),
            **{name: fields.get(name, "") for name in _TEXTS},
        )


@dataclass(frozen=True, slots=True)
class RefusedEntry:
    """An entry of a queue that cannot be run, and was taken out of it."""

    entry: str
    queue: str
    reason: str


class Claims:
    """The claims in one database. Every method raises RedisUnavailable where Redis does not respond."""

    def __init__(
        self,
        store: JobStore,
        *,
        refused: Callable[[RefusedEntry], None] = lambda _: None,
        failures_borne: int = MAX_FAILURES,
        kept_for: timedelta = timedelta(0),
        has_bucket: bool = False,
    ) -> None:
        """*refused* is called with entries of queues that are not jobs.

        *kept_for*: how long a job that is given back waits for a pipeline that has its directory; with
        *has_bucket* only one that has crashed, and of which nothing is in the bucket to resume it from.
        """
        self._store = store
        self._refused = refused
        self._failures_borne = failures_borne
        self._kept_for = kept_for
        self._has_bucket = has_bucket
        self._passed = 0

    def reserve(
        self, queues: Sequence[str], owner: str, ttl: timedelta = LEASE, *, store_id: str = ""
    ) -> Claim | None:
        """Take the next job of *queues*, polled in that order, for *owner*; None where nothing waits.

        *owner* is the key of a pipeline, *store_id* the UUID of its data directory. The job is in
        `working` and leased for *ttl* from then on.
        """
        keys = self._store.keys
        for _ in range(LOOKS):
            with self._store.responding():
                reply = self._store.scripts(
                    "reserve",
                    keys=[keys.working, keys.token_counter, *(keys.queue(name) for name in queues)],
                    args=[
                        *(keys.prefix, owner, milliseconds(ttl), ENTRIES_LOOKED_AT),
                        *(store_id, self._passed),
                    ],
                )
            refused, self._passed, *found = reply
            for refusal in _threes(refused):
                self._refused(RefusedEntry(*refusal))
            if found:
                unit, _, record, claim = found
                return Claim.read(unit, pairs(claim), record=pairs(record))
            if not self._passed:
                break
        return None

    def take(self, unit: str, owner: str, ttl: timedelta = LEASE) -> Claim | None:
        """Take *unit* out of any queue; None while it is held."""
        keys = self._store.keys
        with self._store.responding():
            reply = self._store.scripts(
                "take",
                keys=[
                    *(keys.claim(unit), keys.lease(unit), keys.token_counter),
                    keys.job(ident_of_unit(unit)),
                ],
                args=[keys.prefix, unit, owner, milliseconds(ttl)],
            )
        return None if reply is None else Claim.read(unit, pairs(reply[1]))

    def renew(
        self, unit: str, token: int, ttl: timedelta = LEASE, *, beats: int = 0, by_crawl: bool = False
    ) -> Renewal:
        """Make the lease last *ttl* from now; the heartbeat of the record grows by *beats*.

        *by_crawl*: it is not the process around the crawl that does; from then on its claim `has_begun`.
        """
        keys = self._store.keys
        with self._store.responding():
            reply = self._store.scripts(
                "renew",
                keys=[keys.claim(unit), keys.lease(unit), self._record_of(unit)],
                args=[token, milliseconds(ttl), beats, int(by_crawl)],
            )
        return Renewal(reply)

    def settle(self, unit: str, token: int, *, started_at: str = "", **fields: str) -> bool:
        """Write *fields* into the claim, empty ones removed; False where it is another owner's.

        The record of a job gets *started_at*, unless it is empty, `amicrawl_attempt` and
        `amicrawl_resumed`.
        """
        keys = self._store.keys
        with self._store.responding():
            return bool(
                self._store.scripts(
                    "settle",
                    keys=[keys.claim(unit), self._record_of(unit)],
                    args=[token, started_at, *(text for pair in fields.items() for text in pair)],
                )
            )

    def give_back(self, unit: str, token: int, happened: Happened, *, why: str = "") -> GivenBack:
        """Give a job back that is not done, because of what has *happened*; *why* is kept in the claim.

        After too many failures it is not queued again: it counts as failed, with all that this entails.
        """
        keys = self._store.keys
        with self._store.responding():
            reply = self._store.scripts(
                "give_back",
                keys=[*self._of(unit), keys.failed, keys.ended, *self._expiring(unit)],
                args=[
                    keys.prefix,
                    unit,
                    token,
                    happened,
                    (why or happened)[:_WHY_LENGTH],
                    UNABLE_BORNE if happened is Happened.UNABLE else self._failures_borne,
                    _seconds(COMPLETED_KEPT),
                    keys.updates,
                    _seconds(GOES_WELL),
                    _seconds(self._kept_for),
                    int(self._has_bucket),
                ],
            )
        return GivenBack(reply)

    def finish(self, unit: str, token: int, *, info: str) -> Finished:
        """End a job that is done, completed or aborted as its record says; *info* is announced."""
        keys = self._store.keys
        with self._store.responding():
            reply = self._store.scripts(
                "finish",
                keys=[
                    *self._of(unit),
                    *(keys.completed, keys.aborted, keys.finish_notifications, keys.ended),
                    *self._expiring(unit),
                ],
                args=[
                    unit,
                    token,
                    info,
                    _seconds(COMPLETED_KEPT),
                    _seconds(ABORTED_KEPT),
                    NOTIFICATIONS_KEPT,
                    keys.updates,
                ],
            )
        return Finished(reply)

    def mark_aborted(self, ident: str) -> bool:
        """Mark the job as aborted, before it is finished; False where there is no record."""
        keys = self._store.keys
        with self._store.responding():
            return bool(
                self._store.scripts("abort_mark", keys=[keys.job(ident)], args=[ident, keys.updates])
            )

    def look(self, units: Sequence[str]) -> list[tuple[Claim | None, timedelta]]:
        """Return the claim of each of *units*, and for how long its lease is good yet; no change.

        None stands for no claim, and a time of 0 for an expired lease.
        """
        keys, found = self._store.keys, []
        # One step for all: a pipeline of scripts looks first whether Redis has them, each time.
        for at in range(0, len(units), _LOOKED_AT_ONCE):
            some = units[at : at + _LOOKED_AT_ONCE]
            both = [key for unit in some for key in (keys.claim(unit), keys.lease(unit))]
            with self._store.responding():
                replies = self._store.scripts("look", keys=both, args=_CLAIM_BOUNDS)
            for unit, (texts, left) in zip(some, replies, strict=True):
                fields = pairs(texts)
                claim = Claim.read(unit, fields) if fields else None
                found.append((claim, timedelta(milliseconds=max(left, 0))))
        return found

    def _record_of(self, unit: str) -> str:
        """Return the key of the record that the unit is; a partition has none beside its claim."""
        keys = self._store.keys
        return keys.claim(unit) if "." in unit else keys.job(unit)

    def _of(self, ident: str) -> list[str]:
        """Return the keys that say who has a job, and what ends with it."""
        keys = self._store.keys
        return [
            *(keys.claim(ident), keys.lease(ident), keys.working, keys.job(ident)),
            keys.desired(ident),
        ]

    def _expiring(self, ident: str) -> list[str]:
        """Return the keys that expire with the record, itself apart."""
        keys = self._store.keys
        _, *theirs = keys.of_job(ident)
        return [*theirs, *(key for key in keys.ours_of_job(ident) if key != keys.desired(ident))]


def ident_of_unit(unit: str) -> str:
    """Return the ident of the job that *unit* is, or is a partition of."""
    return unit.partition(".")[0]


def _threes(flat: Sequence[Any]) -> Iterable[tuple[str, str, str]]:
    return zip(flat[::3], flat[1::3], flat[2::3], strict=True)


def milliseconds(span: timedelta) -> int:
    """Return *span* in milliseconds, at least 1."""
    return max(int(span.total_seconds() * 1000), 1)


def _seconds(span: timedelta) -> int:
    return int(span.total_seconds())


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else 0
