"""The record of a pipeline: what runs where, and how much room it has, said once a second.

The fields and the three commands are ArchiveBot's, so that its pages list our pipelines. The name is the
MD5 of `hostname:fqdn:pid`: it is the same as long as the process lives. A clean stop takes the record
away; that of a pipeline that died is removed a day later by any pipeline (`ending.py`).

Fields of ours: `slots`, `running`, `store`, and `amicrawl_drain`, by which a pipeline is asked to
take no more jobs.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import socket
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psutil

from amicrawl import __version__
from amicrawl.errors import InputError, UsageError
from amicrawl.fleet.database import hashes_at, names_of_keys

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from amicrawl.fleet.database import JobStore

RUNNING = "Running"
STOPPING = "Stopping"
DRAIN_FIELD = "amicrawl_drain"
DRAINS = ("release", "finish")
"""How a pipeline may drain: it gives its jobs back, or runs them to their end."""
SILENT_AFTER = 15.0
"""Seconds without a report, by the clock of Redis, after which a pipeline counts as gone."""
STALE_AFTER = 86_400
"""Seconds after its last report, by the clock of Redis, that a dead pipeline's record is removed."""

MOST_PIPELINES = 1000
"""Records that are read."""
_HASH = re.compile(r"[0-9a-f]{32}")
_MOMENT = re.compile(r"[0-9]{1,12}(\.[0-9]{0,9})?")


@dataclass(frozen=True, slots=True)
class PipelineIdentity:
    """Which process a pipeline is."""

    hostname: str
    fqdn: str
    pid: int
    nickname: str

    @classmethod
    def of_this_process(cls, nickname: str) -> PipelineIdentity:
        """Return that of this process."""
        # The name service may be slow, so it is queried once.
        return cls(socket.gethostname(), socket.getfqdn(), os.getpid(), nickname)

    @property
    def hash(self) -> str:
        """What its record is called after."""
        text = f"{self.hostname}:{self.fqdn}:{self.pid}"
        return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def figures(data: Path) -> dict[str, str]:
    """Return how full memory and the file system of *data* are, and the load, as texts."""
    memory = psutil.virtual_memory()
    place = data
    while not place.exists() and place != place.parent:
        place = place.parent
    disk = psutil.disk_usage(str(place))
    one, five, fifteen = psutil.getloadavg()
    return {
        "mem_usage": str(memory.percent),
        "mem_available": str(memory.available),
        "disk_usage": str(disk.percent),
        "disk_available": str(disk.free),
        "load_average_1m": str(one),
        "load_average_5m": str(five),
        "load_average_15m": str(fifteen),
    }


class PipelineRecord:
    """The record of one pipeline in Redis. Every method raises RedisUnavailable."""

    def __init__(self, store: JobStore, identity: PipelineIdentity, *, store_id: str = "") -> None:
        self._store = store
        self.key = store.keys.pipeline(identity.hash)
        self._is_begun = False
        self._clock_is_off = 0.0
        """By how many seconds the clock of Redis was ahead when it last responded."""
        self._fields = {
            "id": self.key,
            "hostname": identity.hostname,
            "fqdn": identity.fqdn,
            "pid": str(identity.pid),
            "nickname": identity.nickname,
            "version": f"amicrawl-{__version__}",
            "python": f"{platform.python_implementation()} {sys.version}",
            "store": store_id,
        }

    def report(
        self, status: str, now: float, measured: dict[str, str], *, slots: int, running: int
    ) -> str:
        """Say that the pipeline lives; return how it is asked to drain: not at all, or one of `DRAINS`.

        *now* is in Unix seconds, and corrected by the clock of Redis from the second report on, since
        clocks may differ by more than `SILENT_AFTER`. *measured* comes from `figures`.
        """
        fields: dict[Any, str] = {
            **self._fields,
            **measured,
            "ts": str(int(now + self._clock_is_off)),
            "status": status,
            "slots": str(slots),
            "running": str(running),
        }
        keys = self._store.keys
        with self._store.responding(), self._store.client.pipeline(transaction=False) as pipe:
            if not self._is_begun:
                # In a container, one that was killed while it drained had this name, too.
                pipe.hdel(self.key, DRAIN_FIELD)
            pipe.hset(self.key, mapping=fields)
            pipe.sadd(keys.pipelines, self.key)
            pipe.publish(keys.pipeline_updates, self.key)
            pipe.hget(self.key, DRAIN_FIELD)
            pipe.time()
            # A key of a wrong type, `pipelines` as a list for one, must not keep us from work.
            *_, drain, moment = pipe.execute(raise_on_error=False)
        self._is_begun = True
        if isinstance(moment, tuple):
            self._clock_is_off = moment[0] + moment[1] / 1e6 - now
        return drain if drain in DRAINS else ""

    def unregister(self) -> None:
        """Take the record away: the pipeline has stopped."""
        keys = self._store.keys
        with self._store.responding(), self._store.client.pipeline(transaction=False) as pipe:
            pipe.delete(self.key)
            pipe.srem(keys.pipelines, self.key)
            pipe.publish(keys.pipeline_updates, self.key)
            pipe.execute(raise_on_error=False)


def is_silent(fields: Mapping[str, str], now: float) -> bool:
    """Tell whether the pipeline with the record *fields* is silent; *now* is by the clock of Redis."""
    ts = fields.get("ts", "")
    return not _MOMENT.fullmatch(ts) or now - float(ts) > SILENT_AFTER


def remove_stale(store: JobStore) -> list[str]:
    """Remove the records of pipelines that have not reported for a day; return their keys."""
    client, keys = store.client, store.keys
    removed = []
    found = _keys_of(store)
    with store.responding():
        now = int(client.time()[0])
        for key, fields in zip(found, hashes_at(store, found), strict=True):
            ts = fields.get("ts", "")
            if ts.isascii() and ts.isdigit() and int(ts[:15]) < now - STALE_AFTER:
                with client.pipeline() as pipe:
                    pipe.delete(key)
                    pipe.srem(keys.pipelines, key)
                    pipe.publish(keys.pipeline_updates, key)
                    pipe.execute(raise_on_error=False)
                removed.append(key)
    return removed


def pipelines(store: JobStore) -> list[dict[str, str]]:
    """Return the records of all pipelines, nothing of them believed, by nickname."""
    found = [fields for fields in hashes_at(store, _keys_of(store)) if fields]
    return sorted(found, key=lambda fields: (fields.get("nickname", ""), fields.get("id", "")))


def tell_to_drain(store: JobStore, name: str, *, how: str = "release") -> list[str]:
    """Ask the pipelines called *name*, by nickname or key, to take no more jobs; return their keys.

    *how* is one of `DRAINS`. Raises InputError where there is no such pipeline.
    """
    if how not in DRAINS:
        raise UsageError(f"{how!r} is not a way to drain: {' or '.join(DRAINS)}.")
    asked = []
    found = _keys_of(store)
    with store.responding():
        for key, fields in zip(found, hashes_at(store, found), strict=True):
            if fields and name in {
                key,
                key.removeprefix(store.keys.pipeline("")),
                fields.get("nickname"),
            }:
                store.client.hset(key, DRAIN_FIELD, how)
                asked.append(key)
    if not asked:
        raise InputError(f"No pipeline is called {name!r}. `amicrawl pipeline ls` lists those that run.")
    return asked


def _keys_of(store: JobStore) -> list[str]:
    """Return the keys of the records of all pipelines, ArchiveBot's included."""
    start = store.keys.pipeline("")
    with store.responding():
        keys = dict.fromkeys(names_of_keys(store, start))
        return [key for key in keys if _HASH.fullmatch(key.removeprefix(start))][:MOST_PIPELINES]
