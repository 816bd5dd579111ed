"""Batches of links for another partition, as they are sent. Pure.

A batch is a list of links, JSON, deflated. A link says what an offer does, and keeps silent about what
is usual: {"u": url, "s": source, "p": priority, "h": hops, "x": extra, "v": via, "r": route}, and of a
seed what its producer knew: {"d": digest, "e": etag, "m": last_modified, "t": captured_at,
"o": original_url, "w": payload_digest, "j": meta_json}.
Its key is not in it: the receiver works that out. Everything in a batch is hostile until parsed.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from amicrawl.errors import InputError
from amicrawl.frontier import Source, is_route
from amicrawl.seed import Seed
from amicrawl.urls import without_userinfo

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from amicrawl.frontier import Offer

MOST_LINKS = 500
"""Links in one batch."""
MOST_CHARACTERS = 256 << 10
"""Characters of one batch before it is deflated, unless a single link has more."""
LARGEST = 8 << 20
"""Octets that one batch may have, inflated; a larger one was not written by us."""

_SOURCES = {int(source): source for source in Source}
_FARTHEST = 0xFFFF
LONGEST_URL = 1 << 16
"""Characters of a URL."""
_GREATEST = 1 << 24
_TEXTS = {
    "d": "digest",
    "e": "etag",
    "m": "last_modified",
    "o": "original_url",
    "w": "payload_digest",
    "j": "meta_json",
}
_LATEST = 1 << 53


@dataclass(frozen=True, slots=True)
class PartitionLink:
    """A URL that another partition found, or that was given as a seed."""

    seed: Seed
    source: Source
    priority: float = 0
    hops: int = 0
    extra: Mapping[str, object] | None = None
    via: str = ""
    route: str = ""

    @classmethod
    def of(cls, offer: Offer) -> PartitionLink:
        """Return *offer* without its key, and without a page that is too long to be named."""
        link = cls(offer.seed, *offer[2:])
        return link if len(link.via) <= LONGEST_URL else replace(link, via="", route="")


def encoded_link(link: PartitionLink) -> str:
    """Return *link* as JSON, in ASCII."""
    seed = link.seed
    said: dict[str, Any] = {"u": seed.url, "s": int(link.source)}
    if link.priority:
        said["p"] = link.priority
    if link.hops:
        said["h"] = link.hops
    if link.extra:
        said["x"] = dict(link.extra)
    if link.via:
        said["v"], said["r"] = link.via, link.route
    for name, field in _TEXTS.items():
        if text := getattr(seed, field):
            said[name] = text
    if seed.captured_at:
        said["t"] = seed.captured_at
    # Not orjson: it refuses the half surrogate pairs that a URL as found may have.
    return json.dumps(said, separators=(",", ":"))


def encoded_batch(links: Iterable[str]) -> str:
    """Return the batch with *links*, as `encoded_link` gives them; its bytes as text."""
    packed = zlib.compress(("[" + ",".join(links) + "]").encode("ascii"), 6)
    # The clients of this room speak text; surrogates stand for bytes that are not UTF-8.
    return packed.decode("utf-8", "surrogateescape")


class GatheredLinks:
    """Links for one batch, as many as it may have."""

    def __init__(self) -> None:
        self.links: list[str] = []
        self._characters = 0

    def add(self, links: Sequence[str]) -> bool:
        """Take *links* as well; False, and nothing is taken, where the batch has too many with them.

        The first are taken in any case.
        """
        size = sum(map(len, links))
        is_full = len(self.links) + len(links) > MOST_LINKS or self._characters + size > MOST_CHARACTERS
        if self.links and is_full:
            return False
        self.links += links
        self._characters += size
        return True


def gathered(links: Iterable[str]) -> Iterator[list[str]]:
    """Yield *links*, in their order, as many together as one batch may have."""
    together = GatheredLinks()
    for link in links:
        if not together.add([link]):
            yield together.links
            together = GatheredLinks()
            together.add([link])
    if together.links:
        yield together.links


def batches_of(links: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Yield batches with *links*, in their order, and how many each has."""
    for together in gathered(links):
        yield encoded_batch(together), len(together)


@dataclass(frozen=True, slots=True)
class OpenedBatch:
    """A batch that came, parsed."""

    name: Any
    """What its carrier calls it: said again when it is kept."""
    links: tuple[PartitionLink, ...]


def links_in(batch: str) -> tuple[list[PartitionLink], list[str]]:
    """Return the links of *batch*, and a sentence for each invalid one.

    Raises InputError where the batch as a whole cannot be read.
    """
    said = _opened(batch)
    if not isinstance(said, list):
        raise InputError("a batch is a list of links, and this is not one")
    links, faults = [], []
    for entry in said:
        try:
            links.append(_link(entry))
        except (ValueError, TypeError) as fault:
            faults.append(f"{fault}: {ascii(entry)[:300]}")
    return links, faults


def _opened(batch: str) -> Any:
    try:
        inflate = zlib.decompressobj()
        text = inflate.decompress(batch.encode("utf-8", "surrogateescape"), LARGEST)
        if not inflate.eof or inflate.unused_data:
            raise InputError("the batch is cut short, or too long")
        return json.loads(text)
    except (zlib.error, ValueError, RecursionError) as fault:
        raise InputError(f"the batch cannot be read: {fault}") from fault


def _link(said: Any) -> PartitionLink:
    if not isinstance(said, dict):
        raise TypeError("a link is an object")
    url = said.get("u")
    if not isinstance(url, str) or not url or len(url) > LONGEST_URL:
        raise ValueError("a link has a URL of at most 65,536 characters")
    extra = said.get("x")
    if extra is not None and not isinstance(extra, dict):
        raise TypeError("what else a link says is an object")
    texts = {field: said.get(name, "") for name, field in _TEXTS.items()}
    if not all(isinstance(text, str) for text in texts.values()):
        raise TypeError("what a producer says of a seed is text")
    source = _SOURCES.get(_whole(said, "s", _FARTHEST))
    if source is None:
        raise ValueError("no such source")
    seed = Seed(without_userinfo(url), captured_at=_whole(said, "t", _LATEST), **texts)
    via, route = said.get("v", ""), said.get("r", "")
    if not isinstance(via, str) or len(via) > LONGEST_URL or not is_route(route):
        raise ValueError("where a link was found is a URL, and how it was reached a route")
    hops = _whole(said, "h", _FARTHEST)
    return PartitionLink(seed, source, _priority(said.get("p", 0)), hops, extra, via, route)


def _whole(said: dict[str, Any], name: str, most: int) -> int:
    value = said.get(name, 0)
    if type(value) is not int or not 0 <= value <= most:
        raise ValueError(f"{name!r} is a number from 0 to {most}")
    return value


def _priority(value: Any) -> float:
    if type(value) not in (int, float) or not -_GREATEST <= value <= _GREATEST:
        raise ValueError("a priority is a number")
    return value  # type: ignore[no-any-return]
