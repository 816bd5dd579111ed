"""Watching: many jobs read in one round trip, for displays that poll.

What is read is bounded whatever was written: texts are cut in Redis, queues and logs are read
so far and no further, and a key of a wrong type is an empty one that is named. Nothing is changed here
but one mark, `last_broadcasted_log_entry`, of which `Broadcasts` says when.
"""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import redis

from amicrawl.fleet.database import (
    LARGEST_READ,
    PENDING,
    PENDING_LARGE,
    PENDING_SHALLOW,
    TAGGED,
    hashes_at,
    is_ident,
    names_of_keys,
    number_of,
)
from amicrawl.fleet.jobs import lookup
from amicrawl.fleet.jobs.job_settings import SETTINGS, fields
from amicrawl.fleet.jobs.pipeline_record import MOST_PIPELINES, is_silent
from amicrawl.fleet.jobs.record import STORED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from amicrawl.fleet.database import JobStore

FIELDS = tuple(
    dict.fromkeys(
        (
            *STORED,
            *(field.name for field in fields(SETTINGS)),
            *("amicrawl_attempt", "amicrawl_failed_at", "amicrawl_step"),
        )
    )
)
"""The fields of a record that are read; there may be any others."""
LONGEST = 32 * 1024
"""Bytes that are read of a text."""
LONGEST_FACT = 256 * 1024
"""Bytes that are read of one where a single job is read."""
LONGEST_ENTRY = 128 * 1024
_HIGHEST = 1 << 53
"""The number of a log entry above which none is read: no counter of Redis gives one."""
MOST_JOBS = 20_000
"""Jobs of all states that are found by looking through the keys."""
MOST_WAITING = 1000
"""Jobs of a queue that are shown, the next ones first, and of those that run."""
_LONGEST_ELEMENT = 100
"""Bytes that are read of an element of a queue: more than an ident has."""
_MOST_QUEUES = 200
_AT_ONCE = 200
"""Jobs that one script reads: Redis serves no other client meanwhile."""
_KEEP = 1000
_SETTLED = 60.0


@dataclass(frozen=True, slots=True)
class SeenJob:
    """One job as Redis has it, unchecked."""

    record: dict[str, str]
    """Empty where there is none."""
    facts: dict[str, str] = field(default_factory=dict)
    """JSON texts by name."""
    attempt: str = ""
    resumed: str = ""
    ignores: int | None = None
    """How many ignore patterns it has."""
    is_leased: bool = False
    """Whether its crawl, one of ours, has renewed its lease in time."""


@dataclass(frozen=True, slots=True)
class JobNames:
    """What there is in the database, by name."""

    queues: list[str]
    pipelines: list[str]
    """Keys of their records."""
    jobs: list[str]
    """Idents that have a record."""


@dataclass(frozen=True, slots=True)
class Live:
    """Which jobs wait and run, and how many ended."""

    working: list[str]
    queues: dict[str, list[str]]
    """Idents by the name of their queue, the next first."""
    waiting: dict[str, int]
    """How many entries a queue has, those that were not read included."""
    completed: int
    aborted: int
    failed: int
    dead: int


class Watch:
    """Reads for one watcher. For one thread; every method raises RedisUnavailable."""

    def __init__(self, store: JobStore) -> None:
        self._store = store

    def jobs(
        self,
        idents: Sequence[str],
        *,
        facts: Sequence[str] = ("now", "hosts"),
        fields: Sequence[str] = FIELDS,
    ) -> list[SeenJob]:
        """Return what there is of *idents*, in their order: of each these *fields* and *facts*."""
        keys = self._store.keys
        longest = LONGEST_FACT if len(idents) == 1 else LONGEST
        found: list[SeenJob] = []
        with self._store.responding():
            for at in range(0, len(idents), _AT_ONCE):
                some = idents[at : at + _AT_ONCE]
                named = [
                    key
                    for ident in some
                    for key in (
                        keys.job(ident),
                        keys.facts(ident),
                        keys.claim(ident),
                        keys.lease(ident),
                        keys.ignores(ident),
                    )
                ]
                room = LARGEST_READ * len(some) // len(idents)
                args: list[str | int | float] = [longest, room, len(fields), *fields, *facts]
                found += [
                    _seen(one, fields, facts)
                    for one in self._store.scripts("watch", keys=named, args=args)
                ]
        return found

    def logs(self, after: Mapping[str, float], *, most: int) -> dict[str, list[tuple[float, str]]]:
        """Return the newest *most* entries of the logs in *after* behind that number, oldest first."""
        if not after:
            return {}
        with self._store.responding():
            reply = self._store.scripts(
                "watch_log",
                keys=[self._store.keys.log(ident) for ident in after],
                args=[LONGEST_ENTRY, LARGEST_READ, most, _HIGHEST, *map(repr, after.values())],
            )
        return {ident: _paired(flat) for ident, flat in zip(after, reply, strict=True)}

    def ignores(self, ident: str) -> list[str]:
        """Return the ignore patterns of *ident*, sorted."""
        with self._store.responding():
            return lookup.ignores(self._store, ident)

    def names(self) -> JobNames:
        """Return what there is by name; looks through all keys of the database, so not all the time."""
        keys = self._store.keys
        queues: set[str] = set()
        pipelines: set[str] = set()
        jobs: set[str] = set()
        pipeline = keys.pipeline("")
        with self._store.responding():
            for key in names_of_keys(self._store, keys.prefix):
                name = keys.queue_name(key)
                if key.startswith(pipeline) and len(pipelines) < MOST_PIPELINES:
                    pipelines.add(key)
                elif _is_queue(name) and len(queues) < _MOST_QUEUES:
                    queues.add(name)
                elif is_ident(name) and len(jobs) < MOST_JOBS:
                    jobs.add(name)
        return JobNames(sorted(queues), sorted(pipelines), sorted(jobs))

    def pipelines(self, pipeline_keys: Sequence[str]) -> dict[str, dict[str, str]]:
        """Return the records of pipelines by their key, those that are there and are records."""
        with self._store.responding():
            records = hashes_at(self._store, pipeline_keys)
        return {key: record for key, record in zip(pipeline_keys, records, strict=True) if record}

    def reporting(self, records: Iterable[Mapping[str, str]]) -> int:
        """Return how many of the *records* of pipelines have been written of late."""
        now = self._store.now()
        return sum(not is_silent(record, now) for record in records)

    def live(self, queues: Iterable[str], *, whole: bool = False) -> Live:
        """Return which jobs run, and which wait in *queues*: the next of each, or all if *whole*."""
        keys, names = self._store.keys, list(queues)
        with self._store.responding(), self._store.client.pipeline() as batch:
            # In one step, or a job that is taken from its queue meanwhile would be nowhere.
            # Not a plain LRANGE: elements may have any size. Not `redis_values`: all in one round trip.
            read = self._store.scripts.script("read")
            most = MOST_JOBS if whole else MOST_WAITING
            bounds: list[str | int] = ["list", most, _LONGEST_ELEMENT, LARGEST_READ]
            read([keys.working], bounds, client=batch)
            for count in (keys.completed, keys.aborted, keys.failed):
                batch.getrange(count, 0, 20)
            batch.zcard(keys.dead_letters)
            for name in names:
                read([keys.queue(name)], bounds, client=batch)
            working, completed, aborted, failed, dead, *lists = _replies(batch)
        return Live(
            working=_idents(working[2]),
            queues={name: _idents(read[2][::-1]) for name, read in zip(names, lists, strict=True)},
            waiting={name: read[1] for name, read in zip(names, lists, strict=True)},
            completed=_count(completed),
            aborted=_count(aborted),
            failed=_count(failed),
            dead=_count(dead),
        )

    def memory(self) -> int | None:
        """Return the bytes that Redis says it uses, None where it does not say."""
        with self._store.responding():
            try:
                said: Any = self._store.client.info("memory")
            except redis.ResponseError:
                return None
        used = said.get("used_memory")
        return used if isinstance(used, int) else None

    def updates(self) -> Updates:
        """Return a subscription to the idents of jobs that have news."""
        return Updates(self._store)


class Updates:
    """A subscription; to be closed. What is missed while it is not read is not repeated."""

    def __init__(self, store: JobStore) -> None:
        self._store = store
        self._pubsub: Any = store.client.pubsub(  # type: ignore[no-untyped-call]
            ignore_subscribe_messages=True
        )
        with store.responding():
            self._pubsub.subscribe(store.keys.updates)

    def until(self, moment: float, *, most: int = 100_000) -> set[str]:
        """Return the idents that had news until *moment*, by the monotonic clock. RedisUnavailable."""
        idents: set[str] = set()
        for _ in range(most):
            left = moment - time.monotonic()
            with self._store.responding():
                message: Any = self._pubsub.get_message(timeout=max(0.0, left))
            if message is not None and isinstance(message["data"], str) and is_ident(message["data"]):
                idents.add(message["data"])
            elif message is None and left <= 0:
                break
        return idents

    def close(self) -> None:
        """End the subscription."""
        with closing(self._pubsub):
            pass


class Broadcasts:
    """Moves the mark of what was broadcast, for jobs whose log no other program broadcasts.

    The trimmer of ArchiveBot and ours delete entries that were both analysed and broadcast, so with no
    broadcaster at all nothing would be. The mark is moved only where it is more than a thousand entries
    behind and no other program has moved it for a minute, and never closer to the newest entry.
    So a viewer that comes later still finds its last lines, and a firehose that works, or a second
    dashboard, never loses one to us.
    """

    def __init__(self, store: JobStore, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._clock = clock
        self._marks: dict[str, tuple[str, float, bool]] = {}
        """By ident: the mark as last seen, since when it has not moved, whether it was us."""

    def look(self, seen: Mapping[str, SeenJob], *, now: float) -> int:
        """Move the marks of *seen* that are due, at the time *now*; return of how many jobs."""
        for ident in self._marks.keys() - seen.keys():
            del self._marks[ident]
        return sum(self._moved(ident, job.record, now) for ident, job in seen.items())

    def _moved(self, ident: str, record: Mapping[str, str], now: float) -> bool:
        if "url" not in record:
            return False
        mark, moment = record.get("last_broadcasted_log_entry", ""), self._clock()
        known = self._marks.get(ident)
        if known is None or known[0] != mark:
            known = self._marks[ident] = (mark, moment, False)
        _, since, is_ours = known
        newest, broadcast = number_of(record.get("log_score")), number_of(mark)
        target = newest - _KEEP
        if target <= broadcast or (not is_ours and moment - since < _SETTLED):
            return False
        with self._store.responding():
            moved = self._store.scripts(
                "broadcast", keys=[self._store.keys.job(ident)], args=[mark, target, repr(now)]
            )
        if moved:
            self._marks[ident] = (str(target), moment, True)
        return bool(moved)


def _seen(values: Any, fields: Sequence[str], facts: Sequence[str]) -> SeenJob:
    if not isinstance(values, list):
        return SeenJob({})
    record = {name: text for name, text in zip(fields, values, strict=False) if text is not None}
    theirs = values[len(fields) : len(fields) + len(facts)]
    attempt, resumed, ignores, is_leased = values[-4:]
    return SeenJob(
        record,
        {name: text for name, text in zip(facts, theirs, strict=True) if text is not None},
        attempt or "",
        resumed or "",
        ignores,
        is_leased=bool(is_leased),
    )


def _paired(flat: Sequence[str]) -> list[tuple[float, str]]:
    return [(float(flat[i]), flat[i + 1]) for i in range(0, len(flat), 2)]


def _replies(batch: Any) -> Iterator[Any]:
    """Send *batch*; a command that met a wrong type replies None, anything else is raised."""
    for reply in batch.execute(raise_on_error=False):
        if isinstance(reply, redis.ResponseError) and not isinstance(
            reply, redis.exceptions.NoPermissionError | redis.AuthenticationError
        ):
            yield None
        elif isinstance(reply, Exception):
            raise reply
        else:
            yield reply


def _is_queue(name: str) -> bool:
    return name in {PENDING, PENDING_SHALLOW, PENDING_LARGE} or name.startswith(TAGGED)


def _idents(listed: Sequence[str]) -> list[str]:
    """Return the idents of a list, each once; other entries are not jobs."""
    return list(dict.fromkeys(filter(is_ident, listed)))


def _count(value: Any) -> int:
    if isinstance(value, int):
        return value
    return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else 0
