"""A list of URLs that lies on the web, fetched before the crawl of what it names begins."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

from amicrawl.capture import REDIRECTS, Truncation, final_url
from amicrawl.crawl.wiring import make_resolver, make_wire
from amicrawl.errors import AmicrawlError, InputError
from amicrawl.fetch import WireRequest
from amicrawl.urls import Refused, fetchable

if TYPE_CHECKING:
    from amicrawl.capture import Capture
    from amicrawl.config import CrawlConfig

LARGEST_LIST = 64 * 1024**2
"""Bytes of a list that is fetched."""
_LONGEST_CHAIN = 5


def fetched_list(url: str, config: CrawlConfig) -> bytes:
    """Return what lies at *url*, redirects followed, over the guarded wire of a crawl by *config*.

    Raises InputError for any response but a whole one with status 200, and for one that is too large.
    """
    outcome: list[bytes | Exception] = []

    def work() -> None:
        try:
            outcome.append(asyncio.run(_fetch(url, config)))
        except Exception as error:  # noqa: BLE001  # it is raised where it is waited for
            outcome.append(error)

    # On a thread, since the loop of this one may be running.
    thread = threading.Thread(target=work, name="amicrawl-list")
    thread.start()
    thread.join()
    found = outcome[0]
    if isinstance(found, bytes):
        return found
    if isinstance(found, AmicrawlError):
        raise found
    raise InputError(f"The list {url} cannot be fetched: {found!r}.") from found


async def _fetch(url: str, config: CrawlConfig) -> bytes:
    bounded = config.model_copy(update={"max_body": LARGEST_LIST})
    async with make_wire(bounded, resolver=make_resolver(config)) as wire:
        for _ in range(_LONGEST_CHAIN):
            target = fetchable(url)
            if isinstance(target, Refused):
                raise InputError(f"The list {url!r} cannot be fetched: {target.reason}.")
            fields = [
                (b"User-Agent", b"amicrawl"),
                (b"Accept", b"*/*"),
                (b"Accept-Encoding", b"identity"),
            ]
            capture = await wire.fetch(
                WireRequest(url=target.url, wire_url=target.wire_url, fields=fields, proxy=config.proxy)
            )
            try:
                leads_on = final_url(capture)
                if capture.status not in REDIRECTS or leads_on == url:
                    return _whole(url, capture)
            finally:
                capture.body.close()
            url = leads_on
    raise InputError(f"The list {url} cannot be fetched: more than {_LONGEST_CHAIN} redirects.")


def _whole(url: str, capture: Capture) -> bytes:
    if capture.failure is not None:
        raise InputError(
            f"The list {url} cannot be fetched: {capture.failure}, {capture.failure_detail}."
        )
    if capture.status != 200:
        raise InputError(f"The list {url} cannot be fetched: status {capture.status}.")
    if capture.truncated is Truncation.LENGTH:
        raise InputError(f"The list {url} has more than {LARGEST_LIST} bytes.")
    if capture.truncated is not None:
        raise InputError(f"The list {url} broke off: {capture.truncated}.")
    return b"".join(capture.payload())
