"""Seeds from Redis: a list, set, sorted set or stream that others fill and several crawls may empty.

A seed is a URL, or a JSON object with a `url` as in a seed list; nothing else is read, and nothing is
ever unpickled. A list is taken from its left, a sorted set from its greatest score, as scrapy-redis does
it; a stream as a group of consumers.

    queue --- take --> taken by this consumer --- acknowledge --> gone
      ^---- reclaim, once the consumer was silent for too long

So a seed is lost in no crash: it is delivered at least once, and again only if it was not acknowledged.
What cannot be a seed is put among the dead letters, and is gone from the queue.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import orjson

from amicrawl.errors import UsageError
from amicrawl.fleet.database import is_utf8, octets, put_dead_letter
from amicrawl.seed import NotASeedError, Seed, checked_url, seed_of_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from amicrawl.fleet.database import JobStore

GROUP = "amicrawl"
"""The group of a stream's consumers."""
LONGEST_SEED = 65_536
"""Bytes of a seed."""
MOST_TAKEN = 10_000
"""Seeds that one consumer may have."""
TAKEOVER = 300
"""Seconds of silence after which what a consumer has taken is given to others."""

_ACKNOWLEDGED_AT_ONCE = 1000
_MOST_CONSUMERS = 1000


class TakenSeed(NamedTuple):
    """A seed that this consumer has until it acknowledges it."""

    number: str
    seed: Seed


class SeedQueue:
    """One consumer of one queue. Every method raises RedisUnavailable; one thread at a time."""

    def __init__(self, store: JobStore, name: str, consumer: str, *, takeover: int = TAKEOVER) -> None:
        """*name* is the key, without the prefix; *consumer* is the same as long as its crawl is."""
        keys = store.keys
        self._store = store
        self._name = name
        self._queue = keys.queue(name)
        self._consumer = consumer
        self._taken = keys.taken(name, consumer)
        self._consumers = keys.own("consumers", name)
        self._counter = keys.own("seeds", name)
        self._takeover = takeover
        if self._queue.startswith(keys.own("")):
            raise UsageError(f"Key {self._queue} is amicrawl's own, and no queue of seeds.")

    def take(self, most: int) -> list[TakenSeed]:
        """Take at most *most* seeds, and report that this consumer is alive; with 0, only that.

        Raises UsageError where the key holds something other than a queue.
        """
        keys = [self._queue, self._taken, self._consumers, self._counter]
        return self._read("seeds_take", keys, most)

    def taken(self) -> list[TakenSeed]:
        """Return the seeds that this consumer has taken and not acknowledged."""
        return self._read("seeds_taken", [self._queue, self._taken], MOST_TAKEN)

    def acknowledge(self, numbers: Sequence[str]) -> None:
        """Let seeds go that were taken: what they request is done, and kept."""
        with self._store.responding():
            for at in range(0, len(numbers), _ACKNOWLEDGED_AT_ONCE):
                batch = numbers[at : at + _ACKNOWLEDGED_AT_ONCE]
                # The numbers of a stream's entries have a hyphen.
                entries = [number for number in batch if "-" in number]
                counted = [number for number in batch if "-" not in number]
                pipe = self._store.client.pipeline(transaction=False)
                if entries:
                    pipe.xack(self._queue, GROUP, *entries)
                if counted:
                    pipe.hdel(self._taken, *counted)
                pipe.execute()

    def reclaim(self) -> int:
        """Take over what consumers have taken that were silent for too long; return how many seeds.

        Those of a stream are among `taken` then, the others back in the queue.
        """
        with self._store.responding():
            now = int(self._store.client.time()[0])
            silent = self._store.client.zrangebyscore(
                self._consumers, "-inf", now - self._takeover, start=0, num=_MOST_CONSUMERS
            )
            return sum(self._reclaimed(str(consumer)) for consumer in silent)

    def _reclaimed(self, consumer: str) -> int:
        if consumer == self._consumer:
            return 0
        keys = [self._queue, self._store.keys.taken(self._name, consumer), self._consumers]
        count = int(
            self._store.scripts(
                "seeds_reclaim", keys=keys, args=[consumer, self._takeover, self._consumer, GROUP]
            )
        )
        if count < 0:
            put_dead_letter(
                self._store, where=keys[1], why=f"its seeds cannot be put back into {self._queue}"
            )
        return max(count, 0)

    def _read(self, script: str, keys: list[str], most: int) -> list[TakenSeed]:
        with self._store.responding():
            kind, *found = self._store.scripts(
                script, keys=keys, args=[self._consumer, most, LONGEST_SEED + 1, GROUP]
            )
        if kind not in {"list", "set", "zset", "stream", "none"}:
            which = "a key beside it" if kind == "odd" else f"a {kind}"
            raise UsageError(
                f"Key {self._queue} in Redis is not a queue of seeds ({which} is of a wrong type), "
                "which is a list, set, sorted set or stream."
            )
        return self._readable(found)

    def _readable(self, found: Iterable[Sequence[str]]) -> list[TakenSeed]:
        """Return what can be seeds; the others are dead letters, and acknowledged."""
        good, bad = [], []
        for number, *texts in found:
            try:
                good.append(TakenSeed(number, seed_in(texts)))
            except NotASeedError as error:
                where = f"{self._queue} {number}"
                put_dead_letter(self._store, where=where, why=f"no seed: {error}", value=" ".join(texts))
                bad.append(number)
        if bad:
            self.acknowledge(bad)
        return good


def seed_in(texts: Sequence[str]) -> Seed:
    """Return the seed in what a queue held: one text, or the fields of a stream's entry.

    Such an entry has a field `url`, with others beside it, or one field alone that is a seed as in the
    other queues. Raises NotASeedError, saying why, for what is none.
    """
    if any(len(octets(text)) > LONGEST_SEED for text in texts):
        raise NotASeedError(f"it has more than {LONGEST_SEED} bytes")
    if not all(is_utf8(text) for text in texts):
        raise NotASeedError("it is not UTF-8")
    if len(texts) > 1:
        fields = dict(zip(texts[::2], texts[1::2], strict=False))
        if "url" in fields:
            return _of_object(orjson.dumps(fields))
        if len(fields) > 1:
            raise NotASeedError("there is no field url")
        texts = list(fields.values())
    text = texts[0].strip() if texts else ""
    return _of_object(text.encode()) if text.startswith("{") else Seed(checked_url(text, lambda _: None))


def _of_object(text: bytes) -> Seed:
    # A value that cannot be sent is left out, as it is of a seed list; the URL is fetched.
    seed = seed_of_json(text, lambda _: None)
    if seed is None:
        raise NotASeedError("it is empty")
    method = orjson.loads(text).get("method", "GET")
    if not isinstance(method, str) or method.upper() != "GET":
        raise NotASeedError("its method is not GET")
    return seed
