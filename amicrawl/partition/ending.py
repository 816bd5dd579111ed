"""When a crawl of several partitions has ended: nothing is left in any, nor on its way to one.

Whatever carries the batches applies it to what it knows: the parent of several processes, the parent of
one child over Spark, and the scripts of Redis, which have the same rule in `_settled.lua`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable


class PartitionRest(NamedTuple):
    """What is left of one partition."""

    is_idle: bool
    """Whether nothing is left to do there, nor being done, and its outbox is empty.

    A link leaves the outbox when its batch is in the journal of the other partition, or known to be on
    its way there."""
    on_their_way: int = 0
    """Batches for it that are not known to be in its journal."""
    is_out: bool = False
    """Whether it has failed, or come to its limit: the others do not wait for it."""

    @property
    def is_settled(self) -> bool:
        """Whether the others need not wait for it."""
        return self.is_out or (self.is_idle and not self.on_their_way)


def has_ended(partitions: Iterable[PartitionRest], *, is_seeding: bool = False) -> bool:
    """Return whether a crawl of *partitions* has ended; *is_seeding*: more seeds are still to come."""
    return not is_seeding and all(each.is_settled for each in partitions)
