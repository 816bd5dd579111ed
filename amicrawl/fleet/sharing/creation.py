"""Beginning: a shared crawl is written down, with all that its workers have to know of it."""

from __future__ import annotations

import time
import uuid
import zlib
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import orjson

from amicrawl.errors import InputError, UsageError
from amicrawl.fleet.database import ShareKeys
from amicrawl.fleet.sharing.share import Share
from amicrawl.frontier import Source
from amicrawl.jsontext import parsed
from amicrawl.partition import MOST_LINKS, PartitionLink, batches_of, encoded_link
from amicrawl.terminal import counted
from amicrawl.urls import Refused, octets, shard_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from amicrawl.fleet.database import JobStore
    from amicrawl.fleet.sharing.record import ShareRecord
    from amicrawl.seed import Seed
    from amicrawl.urls import UrlKey

_HELD_BACK = 20_000
"""Seeds in memory for full inboxes beyond which no more are read."""
_AT_ONCE = 16
_PAUSE = 0.2


class SeedGiver:
    """Gives seeds to the crawl *share*, for which *token* says that its seeds are still being given."""

    def __init__(
        self,
        share: Share,
        token: str,
        *,
        key_of: Callable[[str], UrlKey | Refused],
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._share = share
        self._token = token
        self._key_of = key_of
        self._sleep = sleep
        self._waiting: dict[int, list[str]] = {}
        self._held = 0
        self.given = 0
        """Seeds that are in inboxes."""

    def give(self, seeds: Iterable[Seed]) -> None:
        """Send all of *seeds*.

        Raises UsageError where another process gives seeds to this crawl now, or only partitions that
        take none are left.
        """
        for seed in seeds:
            number = self.partition_of(seed.url)
            waiting = self._waiting.setdefault(number, [])
            waiting.append(encoded_link(PartitionLink(seed, Source.SEED)))
            self._held += 1
            if len(waiting) % MOST_LINKS == 0 or self._held >= _HELD_BACK:
                self._send(all_of_it=False)
                while self._held >= _HELD_BACK:
                    self._sleep(_PAUSE)
                    self._send(all_of_it=True)
        while self._held:
            if not self._send(all_of_it=True):
                self._sleep(_PAUSE)

    def partition_of(self, url: str) -> int:
        """Return the partition of *url*; one that cannot be fetched gets its row in any."""
        key = self._key_of(url)
        partitions = self._share.record.partitions
        if isinstance(key, Refused):
            return zlib.crc32(octets(url)) % partitions
        return shard_of(key.host, partitions)

    def _send(self, *, all_of_it: bool) -> bool:
        """Send what makes whole batches, or *all_of_it*; tell whether an inbox took something."""
        said: set[str] = set()
        batches: list[tuple[int, str, int]] = []
        for number, links in self._waiting.items():
            if links and (all_of_it or len(links) >= MOST_LINKS):
                batches.append((number, *next(batches_of(links))))
        moved = False
        for start in range(0, len(batches), _AT_ONCE):
            some = batches[start : start + _AT_ONCE]
            replies = self._share.send(-1, self._token, [(number, batch) for number, batch, _ in some])
            if replies is None:
                raise UsageError(
                    f"Another process gives seeds to the shared crawl {self._share.record.name!r} now, "
                    "or it was removed. See `amicrawl share status`."
                )
            for (number, _, count), reply in zip(some, replies, strict=True):
                said.add(reply)
                if reply == "taken":
                    del self._waiting[number][:count]
                    self._held -= count
                    self.given += count
                    moved = True
        if all_of_it and said == {"out"}:
            name, numbers = self._share.record.name, sorted(number for number, *_ in batches)
            raise UsageError(
                f"{counted(self._held, 'seed')} cannot be added: partitions {numbers} of {name!r} "
                f"failed or reached a limit. Run `amicrawl share retry {name}`, then `amicrawl share "
                f"create {name} --add` with the same seeds."
            )
        return moved


MOST_STARTS = 100_000
"""Start URLs that may make the scope of a shared crawl: every worker holds them."""
_PACKED = 5000
_LARGEST = 64 << 20
_LARGEST_IN_ALL = 256 << 20


def begin(store: JobStore, record: ShareRecord, *, again: bool = False) -> tuple[Share, str]:
    """Write *record* down; return the crawl, and the token with which seeds are given to it.

    Where it is there already, raises UsageError, unless *again*: further seeds are given to it then, and
    it must have the same options. A crawl that had ended is resumed.
    """
    keys = ShareKeys(store.keys, record.name)
    token = uuid.uuid4().hex
    created = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    fields = {
        **record.fields(),
        "created": created,
        "seeding": token,
        "epoch": str(uuid.uuid4().int >> 80),
    }
    with store.responding():
        flat = [text for pair in fields.items() for text in pair]
        names = [keys.record, keys.all, *map(keys.claim, range(record.partitions))]
        if store.scripts("share_begin", keys=names, args=[record.name, *flat]):
            return Share(store, record), token
    known = Share.open(store, record.name)
    if not again:
        raise UsageError(
            f"There is a shared crawl {record.name!r} already. Give it more seeds with --add, choose "
            "another name, or remove it with `amicrawl share remove`."
        )
    theirs = known.record
    same = (theirs.partitions, theirs.is_list, theirs.depth, theirs.config) == (
        record.partitions,
        record.is_list,
        record.depth,
        record.config,
    )
    if not same:
        raise UsageError(
            f"The shared crawl {record.name!r} was made with other partitions ({theirs.partitions}), "
            "another depth, another crawl file, or with --list or without: give the same."
        )
    with store.responding():
        store.client.hset(keys.record, mapping={"seeding": token, "state": "open"})
    return known, token


def seeds_given(share: Share) -> None:
    """Note that all seeds of *share* are in its inboxes."""
    with share.store.responding():
        share.store.client.hdel(share.keys.record, "seeding")


def keep_starts(share: Share, urls: Iterable[str]) -> None:
    """Keep the start *urls*, which make the scope of *share*, for its workers: all of them at once."""
    packed = [
        zlib.compress(orjson.dumps(some)).decode("utf-8", "surrogateescape")
        for some in _by(_PACKED, urls)
    ]
    with share.store.responding():
        share.store.client.rpush(share.keys.starts, *packed)


def starts_of(share: Share) -> list[str]:
    """Return the start URLs that make the scope, each once; InputError where what is there is none."""
    with share.store.responding():
        most = MOST_STARTS // _PACKED + 1000
        args: list[str | int | float] = ["list", most, _LARGEST, 2 * _LARGEST]
        _, count, packed = share.store.scripts("read", keys=[share.keys.starts], args=args)
    if len(packed) < min(count, most):
        raise InputError(f"{share.keys.starts} in Redis has more bytes than start URLs can have.")
    found: list[str] = []
    left = _LARGEST_IN_ALL
    for text in packed:
        try:
            inflate = zlib.decompressobj()
            content = inflate.decompress(text.encode("utf-8", "surrogateescape"), left + 1)
            said = parsed(content, most=2 * _PACKED) if len(content) <= left else None
        except (zlib.error, ValueError) as error:
            raise InputError(f"{share.keys.starts} in Redis holds no start URLs: {error}.") from error
        if not isinstance(said, list) or not all(isinstance(url, str) for url in said):
            raise InputError(f"{share.keys.starts} in Redis holds no start URLs.")
        found += said
        left -= len(content)
    return list(dict.fromkeys(found))


def _by(count: int, urls: Iterable[str]) -> Iterator[list[str]]:
    some: list[str] = []
    for url in urls:
        some.append(url)
        if len(some) == count:
            yield some
            some = []
    if some:
        yield some
