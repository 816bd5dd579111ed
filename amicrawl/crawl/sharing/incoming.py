"""From a link of another partition to an offer of this one: what in it is taken at its word.

A letter comes out of Redis, which anything may have written to. The key of a URL is worked out here, its
host must be one of this partition, and of what else a link says only that passes which a page could have
said: `extra` ends up in the `meta` of a request, where a proxy or a time limit would be followed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from amicrawl.crawl.carried import CARRIED_NUMBERS, PRIMARY
from amicrawl.crawl.feeding import offer_seed
from amicrawl.frontier import Offer, Source
from amicrawl.urls import Refused, fetchable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from amicrawl.crawl.run import Run
    from amicrawl.jobs.sharing.letter import Link
    from amicrawl.urls import UrlKey

_GREATEST = 1000


async def take_links(run: Run, links: Iterable[Link]) -> list[tuple[Link, str]]:
    """Offer *links* to the frontier of *run*, and return those that cannot be, each with the reason."""
    offers, refused = [], []
    for link in links:
        if link.source is Source.SEED and not _is_elsewhere(run, link):
            await offer_seed(run, link.seed)
            continue
        offer = offer_of(link, key_of=run.key_of, ours=run.is_ours)
        if isinstance(offer, str):
            refused.append((link, offer))
        else:
            offers.append(offer)
    if run.following is not None:
        run.following.hand_over(run.frontier, offers, ours=run.is_ours)
    else:
        for offer in offers:
            run.frontier.offer(offer)
    return refused


def _is_elsewhere(run: Run, link: Link) -> bool:
    key = run.key_of(link.seed.url)
    return not isinstance(key, Refused) and not run.is_ours(key.host)


def offer_of(
    link: Link, *, key_of: Callable[[str], UrlKey | Refused], ours: Callable[[int], bool]
) -> Offer | str:
    """Return the offer of *link*, or a sentence that says why there is none."""
    key = key_of(link.seed.url)
    if isinstance(key, Refused):
        return f"it cannot be fetched: {key.reason}"
    if not ours(key.host):
        return "its host belongs to another partition"
    extra = {}
    for name, value in (link.extra or {}).items():
        if not _is_carried(name, value):
            return f"a page says nothing of {name[:50]!r} with that value"
        extra[name] = value
    return Offer(link.seed, key, link.source, link.priority, link.hops, extra or None)


def _is_carried(name: str, value: object) -> bool:
    if name == PRIMARY:
        return isinstance(value, str) and not isinstance(fetchable(value), Refused)
    return name in CARRIED_NUMBERS and isinstance(value, int) and 0 <= value <= _GREATEST
