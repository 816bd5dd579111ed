"""What a partition and its carrier say to each other; over a socket, as lines that are JSON objects.

    the partition    Standing, several times a second; Batch, with links for another partition
    the carrier      Batch, with links of another partition; Arrived, Again; Pause, End

`Standing.idle` is decided before `kept` is said: so whatever is known to be delivered is known to be at
work. Whatever carries the batches applies `has_ended` to what it knows: the parent of several processes,
the parent of one child over Spark, and the scripts of Redis, which have the same rule in `_settled.lua`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

EVERY = 0.2
"""Seconds from one word of a partition on how it stands to the next."""
BATCHES_AT_ONCE = 16
"""Batches that are sent or taken together, at most."""
LARGEST_MESSAGE = 16 << 20
"""Bytes of one line."""


class PartitionMessage:
    """What one of the two says to the other."""

    __slots__ = ()

    def line(self) -> bytes:
        """Return it as a line; ASCII: batches are text with surrogates for octets that are not UTF-8."""
        said = {each.name: getattr(self, each.name) for each in fields(self)}  # type: ignore[arg-type]
        text = json.dumps({"is": type(self).__name__, **said}, separators=(",", ":"))
        return text.encode("ascii") + b"\n"

    @staticmethod
    def of(line: bytes) -> PartitionMessage:
        """Return the message that is in *line*. Raises ValueError where it holds none."""
        try:
            said = json.loads(line)
            kind = _KINDS[said.pop("is")]
            return kind(**{name: tuple(v) if isinstance(v, list) else v for name, v in said.items()})
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{line[:100]!r} is not a message") from error


@dataclass(frozen=True, slots=True)
class Standing(PartitionMessage):
    """How a partition stands, and what it has done with batches since it said so last."""

    idle: bool
    """Whether nothing is left to do there, nor being done."""
    has_room: bool = True
    """Whether it takes more batches now."""
    quiet: bool = False
    """Whether nothing is being done there; more may be left."""
    kept: tuple[Any, ...] = ()
    """Names of the batches whose links are in its journal since."""
    facts: dict[str, Any] = field(default_factory=dict)
    """Figures for those who watch."""


@dataclass(frozen=True, slots=True)
class Batch(PartitionMessage):
    """A batch on its way."""

    partition: int
    """Its recipient, where a partition says it; its sender, where one hears it."""
    number: int
    """The sender's number for it."""
    content: str
    """See `encoded_batch`."""


@dataclass(frozen=True, slots=True)
class Arrived(PartitionMessage):
    """Batches of this partition are in the journals of others: the outbox need not keep them."""

    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Again(PartitionMessage):
    """A partition was begun anew: what was on its way to it is to be sent once more."""

    partition: int


@dataclass(frozen=True, slots=True)
class Pause(PartitionMessage):
    """Nothing more is to be fetched."""


@dataclass(frozen=True, slots=True)
class End(PartitionMessage):
    """The crawl of this partition is to end."""

    reason: str


_KINDS: dict[str, Callable[..., PartitionMessage]] = {
    kind.__name__: kind for kind in (Standing, Batch, Arrived, Again, Pause, End)
}


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
