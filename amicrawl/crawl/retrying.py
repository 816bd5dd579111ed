"""Rows of an earlier crawl made due again, for the next one into the same directory."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from amicrawl.crawl.policy import read_policy, write_policy
from amicrawl.frontier import failed, make_due
from amicrawl.meguri import LivePartition
from amicrawl.urls import text_of

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from amicrawl.disk import Disk
    from amicrawl.meguri import Status


def request_again(
    frontier: Path,
    *,
    statuses: Collection[Status],
    http_statuses: Collection[int],
    host: str | None,
    hour: int,
    disk: Disk,
) -> int:
    """Have the rows of *frontier* in one of *statuses*, or with one of *http_statuses*, due at *hour*.

    With *host*, only those of this host and the hosts under it. Returns how many they are. Raises as
    `LivePartition` does; nothing is changed then.
    """
    partition = LivePartition(frontier, disk=disk, hour=hour, meta={})
    try:
        numbers = failed(partition, statuses=statuses, http_statuses=http_statuses)
        if host is not None:
            numbers = numbers[[_is_of(partition, number, host.lower()) for number in numbers.tolist()]]
        make_due(partition, numbers, hour=hour)
        partition.flush()
        write_policy(frontier, read_policy(frontier), requested_again=len(numbers) > 0, disk=disk)
    except BaseException:
        partition.abandon()
        raise
    partition.close(hour)
    return len(numbers)


def _is_of(partition: LivePartition, number: int, host: str) -> bool:
    url = text_of(partition.texts_at(partition.get(number).url_ref)[0])
    try:
        name = (urlsplit(url).hostname or "").lower()
    except ValueError:
        return False
    return name == host or name.endswith(f".{host}")
