"""The queues: which there are, what waits in them, and moving it about.

Four kinds, distinguished by name: `pending`, `pending-ao` for single pages, `pending-large`, and
`pending:TAG` for pipelines whose nickname contains the tag. Each is a list, first in at the left, the
next to be crawled at the right. What is moved is moved in one step, so no job is ever in none.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from amicrawl.errors import UsageError
from amicrawl.fleet.database import (
    PENDING,
    PENDING_LARGE,
    PENDING_SHALLOW,
    TAGGED,
    checked_ident,
    keys_like,
    list_at,
    put_dead_letter,
)
from amicrawl.fleet.jobs import lookup

if TYPE_CHECKING:
    from collections.abc import Sequence

    from amicrawl.fleet.database import JobStore

_NICKNAME = re.compile(r"[A-Za-z0-9_-]{3,30}")


def queue_order(nickname: str, *, large: bool = False, shallow_only: bool = False) -> list[str]:
    """Return the names of the queues that the pipeline *nickname* looks into, first to last.

    Longer tags come first, equally long ones by alphabet. Raises UsageError for an invalid nickname.
    """
    check_nickname(nickname)
    if shallow_only:
        return [PENDING_SHALLOW, *([PENDING_LARGE] if large else [])]
    length = len(nickname)
    tags = {nickname[i:j] for i in range(length) for j in range(i, length + 1)}
    tagged = [TAGGED + tag for tag in sorted(tags, key=lambda tag: (-len(tag), tag))]
    return [*tagged, *([PENDING_LARGE] if large else []), PENDING, PENDING_SHALLOW]


def check_nickname(nickname: str) -> None:
    """Raise UsageError unless *nickname* can be a pipeline's."""
    if not _NICKNAME.fullmatch(nickname):
        raise UsageError(
            f"{nickname!r} is not a name for a pipeline, which has 3 to 30 letters, digits, _ and -. "
            "Give another with --name."
        )


NAMED = (PENDING, PENDING_SHALLOW, PENDING_LARGE)
"""Queues that need no tag."""
LAST = 1 << 31
"""A place behind any other."""
MOST_QUEUES = 500
"""Tagged queues that are looked at."""

_TAG = re.compile(r"[A-Za-z0-9_-]{1,30}")


class WaitingJob(NamedTuple):
    """One job that waits."""

    queue: str
    """The name of the queue."""
    place: int
    """1 for the next to be crawled."""
    ident: str


def checked_tag(tag: str) -> str:
    """Return *tag*; raises UsageError where it can be part of no pipeline's nickname."""
    if _TAG.fullmatch(tag) is None:
        raise UsageError(
            f"{tag!r} is not a tag, which is 1 to 30 letters, digits, `_` and `-` of a nickname."
        )
    return tag


def checked_queue(name: str) -> str:
    """Return *name*; raises UsageError where it is not the name of a queue."""
    if name not in NAMED:
        if not name.startswith(TAGGED):
            raise UsageError(f"{name!r} is not a queue; there are {', '.join(NAMED)} and {TAGGED}TAG.")
        checked_tag(name.removeprefix(TAGGED))
    return name


def queue_names(store: JobStore) -> list[str]:
    """Return the names of all queues: the three without a tag, then those with one that are there."""
    tagged = []
    for key in keys_like(store, f"{TAGGED}*", most=MOST_QUEUES):
        name = store.keys.queue_name(key)
        if _TAG.fullmatch(name.removeprefix(TAGGED)):
            tagged.append(name)
        else:
            put_dead_letter(store, where=key, why="it is named like a queue, and the tag is none")
    return [*NAMED, *sorted(tagged)]


def waiting(store: JobStore, names: Sequence[str] | None = None) -> list[WaitingJob]:
    """Return the jobs that wait in the queues *names*, or in all; of each queue, the next first."""
    found = []
    for name in queue_names(store) if names is None else names:
        key = store.keys.queue(checked_queue(name))
        idents = lookup.only_idents(store, key, list_at(store, key)[::-1])
        found += [WaitingJob(name, place, ident) for place, ident in enumerate(idents, start=1)]
    return found


def lengths(store: JobStore) -> dict[str, int]:
    """Return how many entries each queue has."""
    names = queue_names(store)
    pipe = store.client.pipeline(transaction=False)
    for name in names:
        pipe.llen(store.keys.queue(name))
    replies = pipe.execute(raise_on_error=False)
    return {name: n if isinstance(n, int) else 0 for name, n in zip(names, replies, strict=True)}


def move(store: JobStore, ident: str, *, place: int, queue: str | None = None) -> str:
    """Put a job that waits at *place* (1: the next) of *queue*, or of the one it is in; return its name.

    A place behind the last is the last. Raises WrongStateError where the job is not in a queue.
    """
    if place < 1:
        raise UsageError(f"{place} is not a place in a queue: the next job to be crawled has place 1.")
    to = checked_queue(queue) if queue is not None else _queue_of(store, ident)
    keys = [store.keys.queue(to), *(store.keys.queue(name) for name in queue_names(store))]
    if store.scripts("move", keys=keys, args=[checked_ident(ident), place]) == "absent":
        raise _not_waiting(store, ident)
    return to


def _queue_of(store: JobStore, ident: str) -> str:
    names = queue_names(store)
    pipe = store.client.pipeline(transaction=False)
    for name in names:
        # Not by reading the queue: of a long one no reader sees the end.
        pipe.lpos(store.keys.queue(name), ident)
    places = pipe.execute(raise_on_error=False)
    for name, place in zip(names, places, strict=True):
        if isinstance(place, int):
            return name
    raise _not_waiting(store, ident)


def _not_waiting(store: JobStore, ident: str) -> lookup.WrongStateError:
    record = lookup.job(store, ident)
    return lookup.WrongStateError(f"Job {ident} is not in a queue: it {record.state.phrase}.")
