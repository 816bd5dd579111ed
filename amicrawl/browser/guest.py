"""The browser of a guest: a project with scrapy-playwright, whose browser gets out by our proxy alone.

    Chromium of the project --HTTP proxy--> proxy --> wire of a guest --> record --> the server's bytes

The project drives its browser as before. What its pages request is archived as it came, in place of
what the download handler delivers.
"""

from __future__ import annotations

import asyncio
import socket
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from amicrawl.browser.authority import KeyOfProxy
from amicrawl.browser.exchanges import TOO_LONG, kind_of, reply_of
from amicrawl.browser.proxy import BrowserProxy, BrowserRequest, ProxyReply
from amicrawl.capture import Failure, final_url
from amicrawl.crawl import CrawlExtension, make_wire_of_guest
from amicrawl.errors import AmicrawlError, UsageError
from amicrawl.fetch import WireRequest
from amicrawl.record import OF_SEED, CaptureItem, Provenance
from amicrawl.seed import Seed
from amicrawl.urls import Refused, fetchable

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

    from amicrawl.crawl import Run
    from amicrawl.fetch import Wire

_LAUNCH = "PLAYWRIGHT_LAUNCH_OPTIONS"
_ELSEWHERE = ("PLAYWRIGHT_CDP_URL", "PLAYWRIGHT_CONNECT_URL")
_MOST_URLS = 10_000
_REQUISITE = Provenance(link="requisite")


class BrowserOfGuest(CrawlExtension):
    """Opens the proxy, and has scrapy-playwright launch its browser behind it."""

    def __init__(self, crawler: Crawler, run: Run) -> None:
        """Set the launch options. Raises UsageError for a browser that the proxy cannot serve."""
        super().__init__(crawler, run)
        settings = crawler.settings
        options = _launch_options(settings)
        self._wire: Wire | None = None
        self._seen: OrderedDict[str, None] = OrderedDict()
        key = KeyOfProxy()
        self._proxy = BrowserProxy(key)
        # It listens before the loop runs: the browser is launched when it likes.
        self._socket = socket.create_server(("127.0.0.1", 0))
        given = self._proxy.admit(self._respond)
        port = self._socket.getsockname()[1]
        options["proxy"] = {
            "server": f"http://127.0.0.1:{port}",
            "username": given.name,
            "password": given.password,
        }
        options["args"] = [
            *options.get("args", ()),
            f"--ignore-certificate-errors-spki-list={key.key_hash}",
            "--disable-quic",
        ]
        settings.set(_LAUNCH, options, max(settings.getpriority(_LAUNCH) or 0, 20))
        run.is_archived_by_browser = self._has_archived
        self._max_size = settings.getint("DOWNLOAD_MAXSIZE")
        self._timeout = settings.getfloat("DOWNLOAD_TIMEOUT")

    async def _opened(self) -> None:
        self._wire = make_wire_of_guest(self._crawler)
        await self._proxy.open(self._socket)

    async def _closed(self) -> None:
        await self._proxy.close()
        if self._wire is not None:
            await self._wire.close()

    def _has_archived(self, url: str) -> bool:
        """Return whether the browser has requested *url* by now, and the archive has it."""
        return url.partition("#")[0] in self._seen

    async def _respond(self, request: BrowserRequest) -> ProxyReply:
        """Carry *request* out and return what the browser gets."""
        target = fetchable(request.url)
        if isinstance(target, Refused) or self._wire is None or self._run.recorder.fault is not None:
            return ProxyReply(0)
        provenance = OF_SEED if kind_of(request) == "document" else _REQUISITE
        is_socket = request.field(b"upgrade").lower() == b"websocket"
        if is_socket or request.is_cut:
            reason = "a WebSocket, which no archive can replay" if is_socket else TOO_LONG
            await self._run.record_skipped(
                Seed(request.url), Failure.REFUSED_BY_CRAWL, reason,
                provenance, resource_type=kind_of(request),
            )  # fmt: skip
            return ProxyReply(403)
        fields, hidden = self._run.credentials.added_to_browsers(request.fields, target)
        try:
            capture = await self._wire.fetch(
                WireRequest(
                    url=target.url, wire_url=target.wire_url, method=request.method,
                    fields=fields, body=request.body, timeout=self._timeout, hidden=hidden,
                    proxy=self._run.credentials.proxy, max_body=self._max_size,
                )
            )  # fmt: skip
            try:
                item = CaptureItem(
                    capture=capture, seed=Seed(request.url), final_url=final_url(capture),
                    provenance=provenance, resource_type=kind_of(request),
                )  # fmt: skip
                await self._run.record(item)
                self._seen[request.url.partition("#")[0]] = None
                if len(self._seen) > _MOST_URLS:
                    self._seen.popitem(last=False)
                if capture.failure is not None:
                    # As a server that cannot be reached.
                    return ProxyReply(0)
                return await asyncio.to_thread(reply_of, capture)
            finally:
                capture.body.close()
        except AmicrawlError:
            return ProxyReply(0)


def _launch_options(settings: BaseSettings) -> dict[str, Any]:
    """Return the project's own launch options. Raises UsageError where the proxy cannot serve them."""
    for name in _ELSEWHERE:
        if settings.get(name):
            raise UsageError(
                f"{name} names a browser that runs already, and AMICRAWL_BROWSER_PROXY is for one "
                "that is launched here. Leave one of them out."
            )
    if settings.get("PLAYWRIGHT_BROWSER_TYPE", "chromium") != "chromium":
        raise UsageError(
            "AMICRAWL_BROWSER_PROXY needs Chromium: other browsers do not take the certificate of "
            "the proxy. Set PLAYWRIGHT_BROWSER_TYPE to chromium."
        )
    options: dict[str, Any] = settings.getdict(_LAUNCH)
    if options.get("proxy"):
        raise UsageError(
            f"{_LAUNCH} has a proxy, which AMICRAWL_BROWSER_PROXY would replace. Name it with "
            "AMICRAWL_PROXY."
        )
    return options
