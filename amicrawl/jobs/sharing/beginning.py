"""Beginning: a shared crawl is written down, with all that its workers have to know of it."""

from __future__ import annotations

import uuid
import zlib
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import orjson

from amicrawl.errors import InputError, UsageError
from amicrawl.jobs.sharing.share import Share
from amicrawl.jobs.sharing.share_record import ShareKeys
from amicrawl.jsontext import parsed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from amicrawl.jobs.connection import JobStore
    from amicrawl.jobs.sharing.share_record import ShareRecord

MOST_STARTS = 100_000
"""Start URLs that may make the scope of a shared crawl: every worker holds them."""
_PACKED = 5000
_LARGEST = 64 << 20
_LARGEST_IN_ALL = 256 << 20


def begin(store: JobStore, record: ShareRecord, *, again: bool = False) -> tuple[Share, str]:
    """Write *record* down; return the crawl, and the token with which seeds are given to it.

    Where it is there already, raises UsageError, unless *again*: further seeds are given to it then, and
    it must have been made alike. A crawl that had ended goes on.
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
    with store.answering():
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
    with store.answering():
        store.client.hset(keys.record, mapping={"seeding": token, "state": "open"})
    return known, token


def seeds_given(share: Share) -> None:
    """Note that all seeds of *share* are in its inboxes."""
    with share.store.answering():
        share.store.client.hdel(share.keys.record, "seeding")


def keep_starts(share: Share, urls: Iterable[str]) -> None:
    """Keep the start *urls*, which make the scope of *share*, for its workers."""
    with share.store.answering():
        for some in _by(_PACKED, urls):
            text = orjson.dumps(some)
            share.store.client.rpush(
                share.keys.starts, zlib.compress(text).decode("utf-8", "surrogateescape")
            )


def starts_of(share: Share) -> list[str]:
    """Return the start URLs that make the scope; raises InputError where what is there is none."""
    with share.store.answering():
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
    return found


def _by(count: int, urls: Iterable[str]) -> Iterator[list[str]]:
    some: list[str] = []
    for url in urls:
        some.append(url)
        if len(some) == count:
            yield some
            some = []
    if some:
        yield some
