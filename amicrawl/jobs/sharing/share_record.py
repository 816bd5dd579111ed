"""What is known of a shared crawl, as its hash in Redis holds it: how it was made, how it stands."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from amicrawl.errors import InputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amicrawl.jobs.keys import Keys

MOST_PARTITIONS = 1024
INBOX = 256
"""Batches that wait in one inbox at most, unless the crawl was made with another number."""

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9_-]{0,62}[a-z0-9])?")
_DEPTHS = frozenset({"inf", "shallow"})


def checked_name(name: str) -> str:
    """Return *name* if it can be that of a shared crawl. Raises UsageError."""
    # It becomes part of keys and of paths.
    if _NAME.fullmatch(name) is None:
        raise UsageError(
            f"{name!r} cannot be the name of a shared crawl: use 1 to 64 of a-z, 0-9, - and _, "
            "with a letter or digit at both ends."
        )
    return name


def unit_of(name: str, number: int) -> str:
    """Return the unit under which partition *number* of the crawl *name* is claimed."""
    return f"{name}.p{number}"


def directory_of(number: int) -> str:
    """Return the name of the directory of partition *number*."""
    return f"part-{number:03d}"


@dataclass(frozen=True, slots=True)
class ShareKeys:
    """The names of a shared crawl's keys, beside the claims and leases of its units.

    | Key | Type | Holds |
    |---|---|---|
    | `amicrawl:shares` | set | names of all shared crawls |
    | `amicrawl:share:NAME` | hash | how it was made, and its state |
    | `amicrawl:share:NAME:waiting` | hash | workers that would like a partition, by owner |
    | `amicrawl:share:NAME:starts` | list | start URLs, where they make the scope: packed |
    | `amicrawl:links:NAME.pN` | stream | the inbox of partition N: batches |
    """

    keys: Keys
    name: str

    @property
    def all(self) -> str:
        """The names of all shared crawls: a set."""
        return self.keys.own("shares")

    @property
    def record(self) -> str:
        """How the crawl was made and how it stands: a hash."""
        return self.keys.own("share", self.name)

    @property
    def waiting(self) -> str:
        """Who would like a partition: a hash."""
        return self.keys.own("share", self.name, "waiting")

    @property
    def starts(self) -> str:
        """The start URLs that make the scope: a list."""
        return self.keys.own("share", self.name, "starts")

    def claim(self, number: int) -> str:
        """Who has partition *number*: a hash."""
        return self.keys.claim(unit_of(self.name, number))

    def lease(self, number: int) -> str:
        """For how long: a string that expires."""
        return self.keys.lease(unit_of(self.name, number))

    def links(self, number: int) -> str:
        """Return the name of the inbox of partition *number*: a stream."""
        return self.keys.own("links", unit_of(self.name, number))

    def everything(self, partitions: int) -> list[str]:
        """Return the keys that a script over all partitions is called with."""
        found = [self.record, self.waiting, self.keys.token_counter]
        for number in range(partitions):
            found += [self.claim(number), self.lease(number), self.links(number)]
        return found


@dataclass(frozen=True, slots=True)
class ShareRecord:
    """A shared crawl."""

    name: str
    partitions: int
    inbox: int = INBOX
    """Batches that one inbox holds at most."""
    is_list: bool = False
    """Whether the seeds are a list of pages whose links are not followed: the spider `seeds`."""
    depth: str = "inf"
    """How far links are followed: see the argument of that name of the spider `site`."""
    config: str = ""
    """The text of its crawl file; empty for none."""
    scoped: bool = False
    """Whether the crawl file says what is on site; if not, the start URLs do."""
    place: str = ""
    """Where partitions are shipped to between machines: a URL of a bucket; empty for nowhere."""
    state: str = "open"
    """`open` or `ended`."""
    seeding: bool = False
    """Whether its seeds are still being given."""
    stop: bool = False
    pause: bool = False
    created: str = ""

    @classmethod
    def parse(cls, name: str, fields: Mapping[str, str]) -> Self:
        """Read the hash of the crawl *name*; raises InputError for one that cannot be followed."""
        partitions = _count(fields.get("partitions", ""), most=MOST_PARTITIONS)
        inbox = _count(fields.get("inbox", ""), most=1_000_000)
        depth = fields.get("depth", "inf")
        if partitions is None or inbox is None or depth not in _DEPTHS:
            raise InputError(
                f"The record of the shared crawl {name!r} in Redis cannot be followed: partitions "
                f"{fields.get('partitions')!r}, inbox {fields.get('inbox')!r}, depth {depth!r}. "
                "Remove it with `amicrawl share remove` and make it anew."
            )
        return cls(
            name=name,
            partitions=partitions,
            inbox=inbox,
            is_list=fields.get("is_list") == "1",
            depth=depth,
            config=fields.get("config", ""),
            scoped=fields.get("scoped") == "1",
            place=fields.get("place", ""),
            state=fields.get("state", ""),
            seeding="seeding" in fields,
            stop="stop" in fields,
            pause="pause" in fields,
            created=fields.get("created", ""),
        )

    def fields(self) -> dict[str, str]:
        """Return what the hash holds at the beginning."""
        return {
            "partitions": str(self.partitions),
            "inbox": str(self.inbox),
            "is_list": "1" if self.is_list else "0",
            "depth": self.depth,
            "config": self.config,
            "scoped": "1" if self.scoped else "0",
            "place": self.place,
            "state": self.state,
            "created": self.created,
        }


def _count(text: str, *, most: int) -> int | None:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        return None
    return int(text) if 1 <= int(text) <= most else None
