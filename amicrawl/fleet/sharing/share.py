"""A shared crawl in Redis: every step that workers take there, each in one script.

A partition has one of these states, and only the scripts change it:

    ready  --take-->  held  --release-->  parked   nothing left: frontier, outbox and inbox are empty
      ^                 |                 ready    given up for another worker, or broken off
      |                 |                 failed   its crawl crashed too often
      |                 |                 limit    it came to a limit of the crawl
      |                 +--lease runs out-->  ready, or failed
      +---a batch arrives----------------------  parked

`held` has a second form, idle: as parked, but with the worker waiting for batches. A batch ends that
too. The crawl has ended when every partition is parked or idle (or out: failed, at its limit), no inbox
of those holds a batch and the seeds have all been given. That is looked at in the same script that
says idle, so a batch under way is always seen: it is in an outbox, whose partition is not idle, or in
an inbox.

Times are those of Redis. A worker whose partition was taken over cannot send, receive or acknowledge.
One whose lease merely ran out, in an outage of Redis for example, can, and `tick` regains it.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import redis
from redis.exceptions import NoPermissionError

from amicrawl.errors import AmicrawlError, InputError
from amicrawl.fleet.database import ShareKeys, pairs
from amicrawl.fleet.leases import LEASE, milliseconds
from amicrawl.fleet.sharing.record import MOST_PARTITIONS, ShareRecord

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from amicrawl.fleet.database import JobStore

ATTEMPTS = 5
"""Crashes in a row after which a partition counts as failed."""
_CLAIM_BOUNDS = (100, 65_536, 1 << 20)
_RECORD_BOUNDS = (100, 4 << 20, 16 << 20)
"""Fields of a hash, bytes of each and of all that are read; a record has a whole crawl file."""
NEXT = ">"
"""Stands for the batches of an inbox that were not handed out yet."""


class DisturbedError(AmicrawlError):
    """Redis holds something else under our keys than was written there."""


class Ended(StrEnum):
    """How the crawl of a partition ended, as its worker says."""

    ENDED = "ended"
    """In order."""
    CRASHED = "crashed"
    LIMIT = "limit"
    BUSY = "busy"
    """It could not go on, for now: another process writes there, or a disk, bucket or Redis fails."""


@dataclass(frozen=True, slots=True)
class TakenPartition:
    """A partition, held with a token."""

    number: int
    token: int
    failures: int
    """Crashes of it in a row so far."""
    shipped: str
    """The token under which it was shipped, if it has to be fetched from there; or else empty."""
    lapsed: bool
    """Whether the worker before died with it."""


@dataclass(frozen=True, slots=True)
class NoPartition:
    """No partition to take, for now or for good."""

    why: str
    """`ended`, `stopped`, `gone` (there is no such crawl) or `none`."""
    held: int = 0
    away: int = 0
    """Partitions that only another machine can resume."""
    failed: int = 0


@dataclass(frozen=True, slots=True)
class Reply:
    """The response to a worker that reports how its partition is."""

    lease: str
    """`renewed`, `regained`, `lost`, or `gone` where Redis knows nothing of the crawl."""
    ended: bool = False
    stop: bool = False
    pause: bool = False
    batches: int = 0
    """Batches in the inbox."""
    give: bool = False
    """Whether the partition is to be given up for another worker, or for another partition."""
    epoch: str = ""
    """Changes when every outbox has to be sent from its beginning."""
    out: tuple[int, ...] = ()
    """Partitions that take no batches."""

    @property
    def is_ours(self) -> bool:
        """Whether the partition is still this worker's."""
        return self.lease in {"renewed", "regained"}


class Share:
    """The crawl *record*. Every method raises RedisUnavailable, RedisRefused or DisturbedError."""

    def __init__(self, store: JobStore, record: ShareRecord) -> None:
        self.store = store
        self.record = record
        self.keys = ShareKeys(store.keys, record.name)
        self._everything = self.keys.everything(record.partitions)

    @classmethod
    def open(cls, store: JobStore, name: str) -> Share:
        """Return the crawl *name*; raises InputError where there is none."""
        with _understood(store):
            kind, fields = _record_at(store, name)
            if kind != "hash":
                raise redis.ResponseError(f"{ShareKeys(store.keys, name).record} is a {kind}")
        return cls(store, ShareRecord.parse(name, fields))

    @classmethod
    def for_removal(cls, store: JobStore, name: str) -> Share:
        """Return the crawl *name* also where its record is invalid; raises InputError without one."""
        with _understood(store):
            _, fields = _record_at(store, name)
        try:
            return cls(store, ShareRecord.parse(name, fields))
        except InputError:
            # How many partitions it had is not known: at most so many.
            return cls(store, ShareRecord(name, MOST_PARTITIONS))

    def take(
        self,
        owner: str,
        *,
        ttl: timedelta = LEASE,
        data: str,
        place: str = "",
        grace: timedelta = timedelta(0),
    ) -> TakenPartition | NoPartition:
        """Take a partition for *owner*, which has the data directory with the UUID *data*.

        *place*: where this worker can fetch from what was shipped; empty for nowhere. *grace*: how long
        a partition whose lease ran out is left to its owner, from the first time that this is seen.
        """
        grace_ms = int(grace.total_seconds() * 1000)
        reply = self._run("share_take", owner, milliseconds(ttl), data, place, ATTEMPTS, grace_ms)
        if reply[0] != "taken":
            return NoPartition(reply[0], *map(int, reply[1:]))
        _, number, token, failures, shipped, lapsed = reply
        return TakenPartition(int(number), int(token), _number(failures), str(shipped), lapsed == "1")

    def tick(
        self,
        number: int,
        token: int,
        *,
        ttl: timedelta = LEASE,
        idle: bool,
        spare: bool = False,
        turn: timedelta = timedelta(0),
        facts: str = "{}",
    ) -> Reply:
        """Renew the lease of partition *number*, and report its state.

        *idle*: nothing is left to do in it and its outbox is empty. *spare*: nothing was done for a
        while, so a partition that waits may have its place. *turn*: how long it may be held while others
        wait; 0 for any time.
        """
        reply = self._run(
            "share_tick",
            number,
            token,
            milliseconds(ttl),
            int(idle),
            int(spare),
            int(turn.total_seconds() * 1000),
            facts,
        )
        if len(reply) == 1:
            return Reply(reply[0])
        lease, ended, stop, pause, batches, give, epoch, out = reply
        return Reply(
            lease,
            bool(ended),
            bool(stop),
            bool(pause),
            batches,
            bool(give),
            str(epoch),
            tuple(map(int, out)),
        )

    def send(
        self, sender: int, token: int | str, batches: Sequence[tuple[int, str]]
    ) -> list[str] | None:
        """Put *batches* into inboxes; return for each `taken`, `full` or `out`, or None if taken over.

        The *sender* -1 is the process that gives the seeds.
        """
        flat = [part for to, batch in batches for part in (to, batch)]
        reply = self._run("share_send", sender, token, self.record.inbox, *flat)
        return None if reply[0] == "lost" else reply[1:]

    def receive(
        self, number: int, token: int, *, most: int, after: str
    ) -> list[tuple[str, dict[str, str]]] | None:
        """Return batches of the inbox with their numbers, not acknowledged yet. None: it was taken over.

        *after*: NEXT for those that were not handed out yet; or else those that were, and
        that are not acknowledged, behind the batch of that name (`0` for all).
        """
        reply = self._script(
            "share_receive",
            [self.keys.claim(number), self.keys.links(number)],
            [token, most, after],
        )
        if reply[0] == "lost":
            return None
        # A batch that was deleted since it was handed out comes back without fields.
        return [(entry, pairs(fields or [])) for entry, fields in reply[1]]

    def acknowledge(self, number: int, token: int, batches: Sequence[str]) -> bool:
        """Take *batches* out of the inbox for good; False where the partition was taken over."""
        reply = self._script(
            "share_acknowledge", [self.keys.claim(number), self.keys.links(number)], [token, *batches]
        )
        return bool(reply[0] == "done")

    def release(self, number: int, token: int, ended: Ended, *, place: str = "") -> str:
        """Give partition *number* back; return its state: `parked`, `ready`, `failed`, or `lost`."""
        keys = self.keys
        reply = self._script(
            "share_release",
            [keys.record, keys.claim(number), keys.lease(number), keys.links(number)],
            [token, ended, place, ATTEMPTS],
        )
        return str(reply)

    def retry(self, *, resend: bool = False) -> int:
        """Make what failed ready again, and take `stop` back; return how many partitions that were.

        With *resend*, every outbox is sent once more even if none was.
        """
        again = int(self._run("share_retry", int(resend)))
        if again < 0:
            raise InputError(f"There is no shared crawl {self.record.name!r} any more.")
        return again

    def set_flag(self, name: str, *, on: bool) -> None:
        """Have the crawl stopped (`stop`) or paused (`pause`), or take that back."""
        with _understood(self.store):
            if on and self.store.client.exists(self.keys.record):
                self.store.client.hset(self.keys.record, name, "1")
            elif not on:
                self.store.client.hdel(self.keys.record, name)

    def standings(self) -> list[dict[str, str]]:
        """Return what is known of each partition: its claim, `lease` (ms left) and `batches`."""
        numbers, script = range(self.record.partitions), self.store.scripts.script("read")
        with _understood(self.store), self.store.client.pipeline(transaction=False) as pipe:
            for number in numbers:
                script(keys=[self.keys.claim(number)], args=["hash", *_CLAIM_BOUNDS], client=pipe)
                pipe.pttl(self.keys.lease(number))
                pipe.xlen(self.keys.links(number))
            replies = pipe.execute(raise_on_error=False)
        found = []
        for number in numbers:
            claim, lease, batches = replies[3 * number : 3 * number + 3]
            is_claim = isinstance(claim, list) and claim[0] in {"hash", "none"}
            known = pairs(claim[2]) if is_claim else {"state": "disturbed"}
            known["lease"] = str(lease) if isinstance(lease, int) and lease > 0 else ""
            known["batches"] = str(batches) if isinstance(batches, int) else ""
            found.append(known)
        return found

    def is_held(self) -> bool:
        """Tell whether a worker has a partition, by its lease."""
        return any(known["lease"] for known in self.standings())

    def remove(self) -> None:
        """Forget the crawl, with all that Redis holds of it."""
        with _understood(self.store):
            keys = self._everything
            self.store.client.delete(*keys[:2], *keys[3:], self.keys.starts)
            self.store.client.srem(self.keys.all, self.record.name)

    def _run(self, script: str, *args: str | int) -> Any:
        """Run a *script* over all partitions."""
        return self._script(script, self._everything, [self.record.partitions, *args])

    def _script(self, script: str, keys: Sequence[str], args: Sequence[str | int]) -> Any:
        with _understood(self.store):
            return self.store.scripts(script, keys=keys, args=args)


@contextmanager
def _understood(store: JobStore) -> Iterator[None]:
    """Turn a response that says our keys hold something else into a sentence."""
    with store.responding():
        try:
            yield
        except redis.ResponseError as error:
            if isinstance(error, NoPermissionError):
                raise
            raise DisturbedError(
                f"Redis at {store.where} cannot do what a shared crawl needs: {error}. If its keys were "
                "changed by hand, remove the crawl with `amicrawl share remove` and create it again."
            ) from error


def _record_at(store: JobStore, name: str) -> tuple[str, dict[str, str]]:
    """Return the type of the record of the crawl *name*, and its fields; InputError where none is."""
    key = ShareKeys(store.keys, name).record
    kind, _, flat = store.scripts("read", keys=[key], args=["hash", *_RECORD_BOUNDS])
    if kind == "none":
        raise InputError(f"There is no shared crawl {name!r} in Redis at {store.where}.")
    return str(kind), pairs(flat)


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
