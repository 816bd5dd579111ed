"""What can be done to whole partitions: compact, merge, deal.

Each returns new partitions with an arena of their own, in which every content lies once: first the
strings of the URL rows (URL, ETag and redirect of each row in turn), then those of the host rows (host,
registrable domain, robots.txt). The same input gives the same octets, on every machine. Seen-set filters
are not carried over: each was made for other rows. How a result is written is decided by the caller.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from amicrawl.meguri.format.faults import FileFault, Malformed
from amicrawl.meguri.format.schema import (
    HOST_COLUMNS,
    HOST_REFERENCES,
    URL_COLUMNS,
    URL_REFERENCES,
    Partition,
)
from amicrawl.meguri.format.strings import (
    MOST_OVERLAP,
    SMALL,
    ArenaBuilder,
    raw_robots,
    string_at,
)
from amicrawl.meguri.format.varints import write_uvarint
from amicrawl.meguri.states import Status
from amicrawl.urls import shard_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from amicrawl.meguri.format.schema import Column, Columns


def compact(
    partition: Partition, *, drop_gone: bool = True, spared: np.ndarray | None = None
) -> Partition:
    """Return *partition* without the strings that nothing refers to, and without its gone rows.

    Those that are *spared*, a mask of all URL rows, stay. So do all hosts.
    """
    if not drop_gone:
        return _gathered(partition, [partition.arena], [partition.urls], [partition.hosts])
    gone = partition.urls["status"] == Status.GONE
    if spared is not None:
        gone &= ~spared
    urls = _selected(partition.urls, URL_COLUMNS, ~gone)
    return _gathered(partition, [partition.arena], [urls], [partition.hosts])


def merge(*partitions: Partition) -> Partition:
    """Return the rows of *partitions*, one or more of distinct hosts, in any order, as one partition.

    Raises Malformed where their rows do not follow upon each other. What is said of the whole is said by
    the one that begins lowest.
    """
    parts = sorted(partitions, key=lambda part: part.host_key_lo)
    last = -1
    for part in parts:
        keys = np.concatenate([part.urls["host_key"], part.hosts["host_key"]])
        if len(keys) and int(keys.min()) <= last:
            raise Malformed(
                "the partitions share a range of host keys, so their rows cannot follow upon each other",
                fault=FileFault.NOT_SORTED,
            )
        last = int(keys.max()) if len(keys) else last
    merged = _gathered(
        parts[0],
        [part.arena for part in parts],
        [part.urls for part in parts],
        [part.hosts for part in parts],
    )
    merged.host_key_hi = max(part.host_key_hi for part in parts)
    return merged


def deal(partition: Partition, shards: int, *, salt: int = 0) -> list[Partition]:
    """Return the rows of *partition* dealt to *shards* partitions by their hosts, as `shard_of` says.

    The order in which URLs were offered, which the arena keeps, is kept in each.
    """
    hosts = np.unique(np.concatenate([partition.urls["host_key"], partition.hosts["host_key"]]))
    dealt = (shard_of(host, shards, salt) for host in hosts.tolist())
    shard = np.fromiter(dealt, np.int64, len(hosts))
    of_urls = shard[np.searchsorted(hosts, partition.urls["host_key"])]
    of_hosts = shard[np.searchsorted(hosts, partition.hosts["host_key"])]
    return [
        _ranged(
            _gathered(
                partition,
                [partition.arena],
                [_selected(partition.urls, URL_COLUMNS, of_urls == number)],
                [_selected(partition.hosts, HOST_COLUMNS, of_hosts == number)],
                keeps_order=True,
            )
        )
        for number in range(shards)
    ]


def with_raw_robots(partition: Partition) -> Partition:
    """Return *partition* for a file without compression, in which no robots.txt body may be compressed.

    The bodies come behind the other strings; an entry that cannot be unpacked stays. Raises Malformed
    where they are large beyond reason.
    """
    arena, hosts = bytearray(partition.arena), dict(partition.hosts)
    refs, places = np.unique(hosts["robots_ref"], return_inverse=True)
    for number, ref in enumerate(refs.tolist()):
        raw = raw_robots(string_at(partition.arena, ref) or b"")
        if raw is not None:
            refs[number] = len(arena)
            arena += write_uvarint(len(raw)) + raw
        if len(arena) > MOST_OVERLAP * len(partition.arena) + SMALL:
            raise Malformed("its robots.txt bodies unpack to far more than all of its strings")
    hosts["robots_ref"] = refs[places]
    return replace(partition, arena=bytes(arena), hosts=hosts)


def _ranged(partition: Partition) -> Partition:
    """Return *partition*, which has the range of the hosts that are in it."""
    keys = partition.hosts["host_key"]
    partition.host_key_lo = int(keys.min()) if len(keys) else 0
    partition.host_key_hi = int(keys.max()) if len(keys) else 0xFFFF_FFFF_FFFF_FFFF
    return partition


def _selected(table: Columns, columns: Sequence[Column], rows: np.ndarray) -> Columns:
    return {column.name: table[column.name][rows] for column in columns}


def _gathered(
    like: Partition,
    arenas: Sequence[bytes | memoryview],
    urls: Sequence[Columns],
    hosts: Sequence[Columns],
    *,
    keeps_order: bool = False,
) -> Partition:
    """Return the rows of tables one behind the other, with a new arena; the rest is as in *like*.

    The strings lie there in the order of the rows, or with *keeps_order* in the one they had.
    """
    builder = ArenaBuilder()
    url_refs = [
        _carried(builder, arena, table, URL_REFERENCES, keeps_order=keeps_order)
        for arena, table in zip(arenas, urls, strict=True)
    ]
    host_refs = [_carried(builder, *given, HOST_REFERENCES) for given in zip(arenas, hosts, strict=True)]
    return Partition(
        urls=_joined(urls, URL_COLUMNS, url_refs),
        hosts=_joined(hosts, HOST_COLUMNS, host_refs),
        arena=builder.arena(),
        partition_id=like.partition_id,
        created=like.created,
        host_key_lo=like.host_key_lo,
        host_key_hi=like.host_key_hi,
        meta=like.meta,
    )


def _carried(
    builder: ArenaBuilder,
    arena: bytes | memoryview,
    table: Columns,
    names: Sequence[str],
    *,
    keeps_order: bool = False,
) -> dict[str, np.ndarray]:
    refs = np.stack([table[name] for name in names], axis=1)
    if keeps_order:
        order = np.argsort(refs[:, 0], kind="stable")
        carried = np.empty_like(refs)
        carried[order] = builder.carry(arena, refs[order].ravel()).reshape(refs.shape)
    else:
        carried = builder.carry(arena, refs.ravel()).reshape(refs.shape)
    return {name: np.ascontiguousarray(carried[:, at]) for at, name in enumerate(names)}


def _joined(
    tables: Sequence[Columns], columns: Sequence[Column], refs: Sequence[Columns]
) -> dict[str, np.ndarray]:
    return {
        column.name: np.concatenate(
            [new.get(column.name, table[column.name]) for table, new in zip(tables, refs, strict=True)]
        )
        for column in columns
    }
