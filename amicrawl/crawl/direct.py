"""The direct road: whether rows may be visited without Scrapy's engine, and by which rules.

They may where all that is on Scrapy's road is ours, in its own form: the downloader, its middlewares and
handlers, the item pipelines. Then the middlewares' rules and the pipelines' stages do the same on both
roads. With anything else in between, rows take Scrapy's whole road.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from scrapy import Request, signals
from scrapy.utils.misc import load_object

from amicrawl.config import Direct
from amicrawl.crawl.decision import DONE, NO_TURN, Disposition, Ticket
from amicrawl.crawl.downloader import ArchiveDownloader
from amicrawl.crawl.handler import WireHandler
from amicrawl.crawl.internals import Signaller, is_closing
from amicrawl.crawl.links import MAX_BODY, PROVENANCE, RedirectLinks
from amicrawl.crawl.middlewares import AsFoundRedirectMiddleware, PolitenessMiddleware
from amicrawl.crawl.pipelines import CapturePipeline
from amicrawl.crawl.requests import conditions_of, default_fields
from amicrawl.crawl.responses import Fetched, bare_response, exception_of
from amicrawl.crawl.robots import RobotsMiddleware
from amicrawl.crawl.spec import reads_responses
from amicrawl.fetch import WireRequest
from amicrawl.seed import Seed
from amicrawl.urls import Refused, fetchable, text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from amicrawl.capture import Capture, Failure
    from amicrawl.crawl.credentials import Credentials
    from amicrawl.crawl.decision import Decision
    from amicrawl.crawl.run import Run
    from amicrawl.crawl.visit import Exchanger, Fetch, Links, Rule, Visit

logger = logging.getLogger(__name__)

_OURS = frozenset({RobotsMiddleware, PolitenessMiddleware, AsFoundRedirectMiddleware})


def obstacle(crawler: Crawler, run: Run) -> str:
    """Return what keeps the rows of *crawler* from being visited directly; empty for nothing.

    To be read when the engine is there.
    """
    return next(_obstacles(crawler, run), "")


def _obstacles(crawler: Crawler, run: Run) -> Iterator[str]:
    if run.config.direct is Direct.NEVER:
        yield "AMICRAWL_DIRECT is never"
    if reads_responses(crawler):
        yield "the spider reads responses"
    if hasattr(crawler.spider, "handle_httpstatus_list"):
        yield "the spider has a handle_httpstatus_list"
    downloader: object = crawler.engine.downloader
    if type(downloader) is not ArchiveDownloader:
        yield f"the downloader is {_name(downloader)}"
        return
    handlers = crawler.settings.getwithbase("DOWNLOAD_HANDLERS")
    for scheme in ("http", "https"):
        if load_object(handlers[scheme]) is not WireHandler:
            yield f"the download handler for {scheme} is {handlers[scheme]}"
    for middleware in downloader.middleware.middlewares:
        if type(middleware) not in _OURS:
            yield f"{_name(middleware)} is among the downloader middlewares"
    for pipeline in crawler.engine.scraper.itemproc.middlewares:
        if not isinstance(pipeline, CapturePipeline):
            yield f"{_name(pipeline)} is among the item pipelines"


def direct_visit(crawler: Crawler, run: Run, engine_side: EngineSide) -> Visit:
    """Return what visits rows directly, by the rules of the middlewares in their order."""
    downloader: Any = crawler.engine.downloader
    middlewares = downloader.middleware.middlewares
    rules: list[Rule] = [
        each
        for each in middlewares
        if type(each) is RobotsMiddleware
        # Rows come through the gate of their host already: what is left is the turn at an address.
        or (type(each) is PolitenessMiddleware and run.pacing.addresses is not None)
    ]
    links: Links | None = run.following
    redirects = next((each for each in middlewares if type(each) is AsFoundRedirectMiddleware), None)
    if links is None and redirects is not None:
        links = RedirectLinks(
            run.frontier,
            key_of=run.key_of,
            ours=run.is_ours,
            count=crawler.stats.inc_value,
            most=redirects.max_redirect_times,
            priority=redirects.priority_adjust,
            elsewhere=run.elsewhere,
        )
    fields = default_fields(crawler.settings)
    visit = run.make_visit(
        links=links,
        rules=rules,
        request_of=RowRequests(fields, run.credentials),
        wire=engine_side,
    )
    politeness = next((each for each in middlewares if type(each) is PolitenessMiddleware), None)
    for each in middlewares:
        if type(each) is RobotsMiddleware and politeness is not None:
            # What is not a row is read here, and not decoded before: no coding is requested.
            each.direct = DirectRequests(
                visit,
                politeness,
                RowRequests(fields[:-1], run.credentials),
                most_redirects=0 if redirects is None else redirects.max_redirect_times,
                on_visited=engine_side.visited,
            )
    return visit if run.visits_by is None else run.visits_by(visit)


class DirectRequests:
    """What is fetched without a row, visited as rows are: robots.txt, and where it redirects to."""

    def __init__(
        self,
        visit: Visit,
        politeness: PolitenessMiddleware,
        request_of: RowRequests,
        *,
        most_redirects: int,
        on_visited: Callable[[Ticket, Decision], None],
    ) -> None:
        self._visit = visit
        self._politeness = politeness
        self._request_of = request_of
        self._most_redirects = most_redirects
        self._on_visited = on_visited

    async def fetch(self, url: str, meta: Mapping[str, Any]) -> Fetched | Failure:
        """Fetch and archive *url*, and each hop of its redirects; *meta* is that of its request.

        The result is the last response, or why there is none. Raises NotYet where its address has
        another host's turn, Stopped where the crawl ends, and IgnoreRequest where it is not fetched.
        """
        for hop in range(self._most_redirects + 1):
            words = {**meta, "redirect_times": hop} if hop else meta
            ticket = await self._politeness.enter(url, words) or Ticket(None)
            try:
                decision = await self._visited(url, ticket, words)
                if (capture := ticket.capture) is None or decision.disposition is Disposition.AGAIN_NOW:
                    raise exception_of(decision)
                if capture.failure is not None:
                    return capture.failure
                fetched = Fetched(
                    capture.status,
                    b"".join(capture.payload()),
                    text_of(capture.header(b"cache-control") or b""),
                )
            finally:
                if ticket.capture is not None:
                    ticket.capture.body.close()
                self._visit.leave(ticket)
            target = ticket.redirect_to
            if target in ("", url) or isinstance(fetchable(target), Refused):
                break
            url = target
        return fetched

    async def _visited(self, url: str, ticket: Ticket, meta: Mapping[str, Any]) -> Decision:
        request = self._request_of(seed := Seed(url))
        if not isinstance(request, Refused):
            request = request._replace(max_body=meta[MAX_BODY])
        ticket.wire_request, ticket.seed, ticket.provenance = request, seed, meta[PROVENANCE]
        decision = await self._visit.visit(ticket)
        self._on_visited(ticket, decision)
        return decision


class RowRequests:
    """What goes over the wire for what is visited without Scrapy."""

    def __init__(self, defaults: Sequence[tuple[bytes, bytes]], credentials: Credentials) -> None:
        """*defaults* and *credentials* are those of `wire_request`."""
        self._defaults = tuple(defaults)
        self._credentials = credentials
        self._usual = WireRequest("", fields=self._defaults, proxy=credentials.proxy)[2:]
        self._is_secretive = bool(credentials.auth or credentials.cookies)

    def __call__(self, seed: Seed) -> WireRequest | Refused:
        """Return what is sent for the row of *seed*, or why nothing can be."""
        target = fetchable(seed.url)
        if isinstance(target, Refused):
            return target
        # Nearly all rows request the same but for the URL.
        request = WireRequest(target.url, target.wire_url, *self._usual)
        if seed.etag or seed.last_modified:
            request = request._replace(fields=[*self._defaults, *conditions_of(seed)])
        if self._is_secretive:
            fields, hidden = self._credentials.added_to(request.fields, target)
            request = request._replace(fields=fields, hidden=hidden)
        return request


class EngineSide:
    """What Scrapy says of rows that are visited directly, and learns of them.

    Its engine lets them begin or not; its components learn figures, signals and log lines.
    To the visits it is *wire*, and sends the signals that Scrapy sends around a download.
    """

    fetch: Fetch
    """Carries a request out, as any wire does."""

    def __init__(self, crawler: Crawler, run: Run, wire: Exchanger) -> None:
        """Begin nothing while *run* is paused or ending."""
        self._crawler = crawler
        self._run = run
        self._wire = wire
        self._signals = Signaller(crawler)
        self.is_heard = False
        self.fetch = wire.fetch

    def may_start(self) -> bool:
        """Tell whether something may be started now, by the crawl's word and by that of the engine.

        Whether a component listens to the signals of a download is found out with that.
        """
        run, crawler = self._run, self._crawler
        if run.stopping or run.paused or crawler.engine.paused or is_closing(crawler):
            return False
        self.is_heard = self._signals.is_heard(_OF_A_DOWNLOAD)
        self.fetch = self._observed if self.is_heard else self._wire.fetch
        return run.may_write()

    @property
    def is_closing(self) -> bool:
        """Whether the wire is."""
        return self._wire.is_closing

    async def _observed(self, request: WireRequest, *, departs: Callable[[], None]) -> Capture:
        send, spider, shown = self._signals.send, self._crawler.spider, _request(request.url)
        send(signals.request_reached_downloader, request=shown, spider=spider)
        try:
            capture = await self._wire.fetch(request, departs=departs)
            if capture.failure is None:
                response = _response(shown, capture)
                send(signals.response_downloaded, response=response, request=shown, spider=spider)
            return capture
        finally:
            send(signals.request_left_downloader, request=shown, spider=spider)

    def visited(self, ticket: Ticket, decision: Decision) -> None:
        """Announce that the row of *ticket* was visited, with *decision*."""
        if decision is NO_TURN:
            self._crawler.stats.inc_value("amicrawl/addresses/waits")
        elif decision is DONE and ticket.capture is not None:
            if self.is_heard:
                request = _request(ticket.capture.url)
                response = _response(request, ticket.capture)
                self._signals.send(
                    signals.response_received,
                    response=response,
                    request=request,
                    spider=self._crawler.spider,
                )
        elif decision.disposition is Disposition.GIVEN_UP and ticket.dispatch is not None:
            url = ticket.dispatch.offer.seed.url
            # A line that no handler takes costs as much as the rest of a refused connection.
            if _is_handled(logger, logging.DEBUG):
                logger.debug("Error downloading <GET %s>: %s", url, decision.reason)


_OF_A_DOWNLOAD = frozenset(
    {
        signals.request_reached_downloader,
        signals.response_downloaded,
        signals.request_left_downloader,
        signals.response_received,
    }
)


def _is_handled(origin: logging.Logger, level: int) -> bool:
    """Return whether a handler takes what *origin* says at *level*; Scrapy sets levels on handlers."""
    each: logging.Logger | None = origin
    while each is not None:
        if any(handler.level <= level for handler in each.handlers):
            return True
        each = each.parent if each.propagate else None
    return False


def _request(url: str) -> Request:
    return Request(url, meta={"verbatim_url": True})


def _response(request: Request, capture: Capture) -> Response:
    """Return a response that only says its status, as a spider that reads none gets on Scrapy's road."""
    response = bare_response(request, capture)
    response.request = request
    return response


def _name(component: Any) -> str:
    return f"{type(component).__module__}.{type(component).__qualname__}"
