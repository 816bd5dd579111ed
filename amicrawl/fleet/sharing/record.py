"""The record of a shared crawl: its name, and the fields of its hash in Redis. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from amicrawl.config import is_depth
from amicrawl.errors import InputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_PARTITIONS = 1024
INBOX = 256
"""Batches that wait in one inbox at most, unless the crawl was made with another number."""

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9_-]{0,62}[a-z0-9])?")
_FLAGS = ("is_list", "scoped")
_TEXTS = ("depth", "config", "place", "state", "created")


def checked_name(name: str) -> str:
    """Return *name* if it can be that of a shared crawl. Raises UsageError."""
    # It becomes part of keys and of paths.
    if _NAME.fullmatch(name) is None:
        raise UsageError(
            f"{name!r} cannot be the name of a shared crawl: use 1 to 64 of a-z, 0-9, - and _, "
            "with a letter or digit at both ends."
        )
    return name


def directory_of(number: int) -> str:
    """Return the name of the directory of partition *number*."""
    return f"part-{number:03d}"


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
        if partitions is None or inbox is None or not is_depth(depth):
            raise InputError(
                f"The record of the shared crawl {name!r} in Redis is invalid: partitions "
                f"{fields.get('partitions')!r}, inbox {fields.get('inbox')!r}, depth {depth!r}. "
                "Remove it with `amicrawl share remove` and create it again."
            )
        values: dict[str, Any] = {each: fields.get(each, "") for each in _TEXTS}
        values |= {each: fields.get(each) == "1" for each in _FLAGS}
        values |= {each: each in fields for each in ("seeding", "stop", "pause")}
        return cls(name, partitions, inbox, **{**values, "depth": depth})

    def fields(self) -> dict[str, str]:
        """Return what the hash holds at the beginning."""
        flags = {name: "1" if getattr(self, name) else "0" for name in _FLAGS}
        texts = {name: getattr(self, name) for name in _TEXTS}
        return {"partitions": str(self.partitions), "inbox": str(self.inbox), **flags, **texts}


def _count(text: str, *, most: int) -> int | None:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        return None
    return int(text) if 1 <= int(text) <= most else None
