"""The start URLs of a crawl that follows links: all read before it begins, since they make its scope."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from amicrawl.crawl.arguments import SiteArguments
from amicrawl.crawl.feeding import offer_seed
from amicrawl.crawl.run import run_of
from amicrawl.errors import DamagedFileError, InputError, UsageError
from amicrawl.record.crawl_json import read_crawl_json
from amicrawl.seed import Seed, open_seed
from amicrawl.urls import Refused, fetchable, without_userinfo

if TYPE_CHECKING:
    from pathlib import Path

    from scrapy.crawler import Crawler

    from amicrawl.seed import Fault

logger = logging.getLogger(__name__)

_MOST = 1_000_000
"""Start URLs that are held in memory with their scope; a list of pages is for the spider `seeds`."""


_OF_SITE = ("url", "file", "format", "depth", "share")


def read_starts(arguments: SiteArguments) -> tuple[Seed, ...]:
    """Return the start URLs. Raises UsageError or InputError, saying which one cannot be followed."""
    starts = [Seed(without_userinfo(_with_scheme(url))) for url in arguments.url]
    for start in starts:
        found = fetchable(start.url)
        if isinstance(found, Refused):
            raise UsageError(f"Start URL {start.url!r} cannot be fetched: {found.reason}.")
    if arguments.file is not None:
        starts += _listed(arguments.file, arguments.format)
    if not starts and not arguments.share:
        raise InputError(f"Not one line of {arguments.file} could be used as a start URL.")
    return tuple(starts)


def site_crawled_in(directory: Path) -> SiteArguments | None:
    """Return by which arguments the spider `site` crawled into *directory*; None where it did not."""
    try:
        asked = read_crawl_json(directory)["asked"]
        known = {name: str(asked[name]) for name in _OF_SITE if asked.get(name)}
    except (DamagedFileError, KeyError, TypeError, AttributeError):
        return None
    return SiteArguments.parse(known) if "depth" in known else None


async def offer_starts(crawler: Crawler, arguments: SiteArguments, starts: tuple[Seed, ...]) -> None:
    """Offer *starts* to the frontier of *crawler*."""
    run = run_of(crawler)
    if arguments.share is None:
        run.tally.seeds_announced = len(starts)
        for start in starts:
            await offer_seed(run, start)
    run.tally.seeds_ended = True
    run.wake()


def _with_scheme(url: str) -> str:
    """Return *url* with a scheme, as a person leaves it away who types `example.org`."""
    return url if "://" in url else f"http://{url}"


def _listed(file: str, file_format: str | None) -> list[Seed]:
    if file.lower().startswith(("http://", "https://")):
        raise UsageError(
            f"Argument file={file!r} is an address. Start at a site with -a url=, and have its sitemaps "
            "read with -s AMICRAWL_SITEMAPS=1."
        )

    def tell(fault: Fault) -> None:
        logger.warning("%s, line %d: %s", fault.source, fault.line, fault.reason)

    starts: list[Seed] = []
    for seed in open_seed(file, format=file_format, on_fault=tell):
        if isinstance(fetchable(seed.url), Refused):
            logger.warning("%s: start URL %r cannot be fetched", file, seed.url)
            continue
        starts.append(seed)
        if len(starts) > _MOST:
            raise InputError(
                f"{file} has more than {_MOST:,} start URLs. For a list of pages use the spider `seeds`."
            )
    return starts
