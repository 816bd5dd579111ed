"""Exchanges: what one page requests while it lives, over the crawl's wire and into its archive.

    BrowserRequest -> the page's own document, or a response of the archive
          -> budget of the page -> rules of the crawl -> gate of the host -> wire -> record -> ProxyReply

Each exchange has a row in the index that names the page. What a rule keeps from being requested has a
row, too, with the reason, and the browser gets 403; a server that cannot be reached is 502 to it.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from functools import partial
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from amicrawl.browser.archived_responses import LARGEST
from amicrawl.browser.proxy import BrowserRequest, ProxyReply
from amicrawl.browser.records import Excluded
from amicrawl.capture import Failure, final_url
from amicrawl.crawl import Ticket, outcome_of, provenance_of
from amicrawl.errors import AmicrawlError
from amicrawl.fetch import WireRequest
from amicrawl.frontier import Hop, extended, judge
from amicrawl.record import CaptureItem, Provenance
from amicrawl.seed import Seed
from amicrawl.urls import Refused, fetchable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from amicrawl.browser.archived_responses import ArchivedResponses
    from amicrawl.browser.proxy import Fields
    from amicrawl.capture import Capture
    from amicrawl.config import CrawlConfig
    from amicrawl.crawl import Run
    from amicrawl.frontier import Offer

_KINDS = {
    b"style": "stylesheet", b"script": "script", b"image": "image", b"font": "font", b"empty": "fetch",
    b"document": "document", b"iframe": "document", b"frame": "document", b"video": "media",
    b"audio": "media", b"track": "texttrack", b"manifest": "manifest", b"worker": "script",
    b"sharedworker": "script", b"serviceworker": "script",
}  # fmt: skip
"""Chromium's words for what a request is for, by the values of `Sec-Fetch-Dest`."""
_LONG = 10.0
"""Seconds after which an exchange does not hold a page any more: a long poll, or a stream."""
TOO_LONG = "its body is longer than a browser may send here"
"""Why a request with such a body is not sent."""
_OVER = Excluded(Failure.REFUSED_BY_CRAWL, "its page was over before")
_ENDLESS = b"text/event-stream"
_LOOK = 0.05
"""Seconds between two looks at a host that serves other requests."""
_LAST_WORD = 1.0
"""Seconds that what is under way has when its page is over."""


class Crawl(NamedTuple):
    """What all pages of a crawl share."""

    run: Run
    responses: ArchivedResponses
    excludes: Callable[[str, Offer], Awaitable[Excluded | None]]
    """Returns why the crawl does not request a URL that a page wants; None where it does."""
    note: Callable[[str], None]
    """Called with the name of a statistic."""
    as_sent: Callable[[Fields], Fields]
    """Returns the fields of a request, as Chromium wrote them, as they go to a server."""

    @property
    def config(self) -> CrawlConfig:
        """The configuration of the crawl."""
        return self.run.config


class PageExchanges:
    """The requests of one page. Times are monotonic seconds."""

    def __init__(self, crawl: Crawl, offer: Offer, document: Capture, *, until: float) -> None:
        """Respond first with *document*, which is recorded elsewhere; end all by *until*."""
        self._crawl, self._offer, self._until = crawl, offer, until
        self._document: Capture | None = document
        page = provenance_of(offer)
        route = extended(page.route, Hop.REQUISITE)
        self._found = Provenance(offer.seed.url, "requisite", page.hops + 1, route)
        self._kinds: dict[tuple[str, str], str] = {}
        self._requests = self._bytes = 0
        self._per_host: dict[int, asyncio.Semaphore] = {}
        self._tasks: set[asyncio.Task[ProxyReply]] = set()
        self._began: dict[asyncio.Task[ProxyReply], float] = {}
        self._whole: dict[str, tuple[ProxyReply, Capture]] = {}
        """Bodies that are requested in ranges, by URL; given back when the page is over."""
        self._closing = False
        self.requests = 0
        """Requests so far."""
        self.used: dict[str, int] = {}
        """The status of each URL that the page requested; 0 where no response came."""
        self.counts: Counter[str] = Counter()
        """Requests by what became of them."""

    def note_kind(self, method: str, url: str, kind: str) -> None:
        """Note that Chromium requests *url* as *kind*."""
        if len(self._kinds) < 10_000:
            self._kinds[method, url] = kind

    @property
    def is_busy(self) -> bool:
        """Whether something is under way that the page is held for."""
        now = time.monotonic()
        return any(now - began < _LONG for began in self._began.values())

    async def respond(self, request: BrowserRequest) -> ProxyReply:
        """Carry out *request* and return what the browser gets; nothing is raised."""
        if self._document is not None and request.method == "GET":
            document, self._document = self._document, None
            return reply_of(document)
        if self._closing or self._crawl.run.recorder.fault is not None:
            # What no archive can take any more is not requested.
            return ProxyReply(503)
        self.requests += 1
        request = request._replace(fields=self._crawl.as_sent(request.fields))
        # A request that Chromium gives up is archived all the same: the task is not its connection's.
        task = asyncio.ensure_future(self._reply_to(request))
        self._tasks.add(task)
        self._began[task] = time.monotonic()
        task.add_done_callback(self._ended)
        return await asyncio.shield(task)

    def _ended(self, task: asyncio.Task[ProxyReply]) -> None:
        self._tasks.discard(task)
        self._began.pop(task, None)

    async def close(self) -> None:
        """Take no more, wait a moment for what is under way, and give everything back."""
        self._closing = True
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_LAST_WORD)
        for task in tuple(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        for _, capture in self._whole.values():
            capture.body.close()
        self._whole.clear()

    async def _reply_to(self, request: BrowserRequest) -> ProxyReply:
        try:
            return await self._carried_out(request)
        except AmicrawlError as fault:
            self._crawl.run.fail(fault)
            return ProxyReply(503)
        except asyncio.CancelledError:
            if not self._closing:
                raise
            await self._exclude(request, _OVER)
            return ProxyReply(503)

    async def _carried_out(self, request: BrowserRequest) -> ProxyReply:
        if (held := self._whole.get(request.url)) is not None and request.field(b"range"):
            return _part(*held, request.field(b"range"))
        reply = await self._crawl.responses.find(request)
        if reply is not None:
            self.counts["archive"] += 1
            self._crawl.note("amicrawl/browser/from_archive")
            self.used.setdefault(request.url, reply.status)
            return reply
        try:
            if self._closing:
                return await self._exclude(request, _OVER)
            if (excluded := self._over_budget(request)) is not None:
                return await self._exclude(request, excluded)
            if (excluded := await self._crawl.excludes(request.url, self._offer)) is not None:
                return await self._exclude(request, excluded, sent=len(request.body))
            return await self._fetched(request)
        finally:
            self._crawl.responses.done(request)

    def _over_budget(self, request: BrowserRequest) -> Excluded | None:
        """Return which limit of the page keeps *request* out, or None."""
        config = self._crawl.config
        if request.is_cut:
            return Excluded(Failure.REFUSED_BY_CRAWL, TOO_LONG)
        if request.field(b"upgrade").lower() == b"websocket":
            return Excluded(Failure.REFUSED_BY_CRAWL, "a WebSocket, which no archive can replay")
        if self._requests >= config.browser_page_requests:
            return Excluded(
                Failure.REFUSED_BY_CRAWL, f"its page requested {config.browser_page_requests:,} before"
            )
        if self._bytes + len(request.body) >= config.browser_page_bytes:
            return Excluded(
                Failure.REFUSED_BY_CRAWL,
                f"its page sent and received {config.browser_page_bytes:,} bytes before",
            )
        # Counted before anything is waited for: others come meanwhile.
        self._requests += 1
        self._bytes += len(request.body)
        return None

    async def _exclude(self, request: BrowserRequest, why: Excluded, *, sent: int = 0) -> ProxyReply:
        """Give *request*, for which no server is contacted, its row; *sent* bytes do not count."""
        self._bytes -= sent
        self.counts["excluded"] += 1
        # Pages that request without end are not worth a row for each request.
        if self.counts["excluded"] <= self._crawl.config.browser_page_requests:
            self.used.setdefault(request.url, 0)
            await self._crawl.run.record_skipped(
                Seed(request.url), why.failure, why.reason, self._found,
                page=self._offer.seed.url, resource_type=self._kind(request),
            )  # fmt: skip
        return ProxyReply(403)

    async def _fetched(self, request: BrowserRequest) -> ProxyReply:
        target = fetchable(request.url)
        key = self._crawl.run.key_of(request.url)
        if isinstance(target, Refused) or isinstance(key, Refused):
            why = Excluded(Failure.UNFETCHABLE_URL, "no server has it")
            return await self._exclude(request, why, sent=len(request.body))
        places = self._per_host.setdefault(
            key.host, asyncio.Semaphore(self._crawl.config.browser_per_host)
        )
        async with places:
            if (held := await self._host_opens(key.host)) is not None:
                return await self._exclude(request, held, sent=len(request.body))
            fields, hidden = self._crawl.run.credentials.added_to_browsers(
                [field for field in request.fields if field[0].lower() not in _NOT_SENT], target
            )
            wire_request = WireRequest(
                url=target.url, wire_url=target.wire_url, method=request.method, fields=fields,
                body=request.body, timeout=min(self._left(), self._crawl.config.timeout),
                proxy=self._crawl.run.credentials.proxy, hidden=hidden,
                max_body=max(1, min(self._crawl.config.max_body,
                                    self._crawl.config.browser_page_bytes - self._bytes)),
            )  # fmt: skip
            capture, item = await self._over_the_wire(request, wire_request, key.host)
        return self._replied(request, capture, item)

    def _left(self) -> float:
        return max(1.0, self._until - time.monotonic())

    async def _host_opens(self, host: int) -> Excluded | None:
        """Wait until *host* may be contacted, as far as more than its delay is in the way."""
        run = self._crawl.run
        if host in run.breaker.given_up:
            return Excluded(Failure.HOST_SKIPPED, "the host had not responded before and was given up")
        while True:
            reason, wait = run.pacing.held_back(host, run.clock())
            is_own = host == self._offer.key.host
            is_strict = self._crawl.config.browser_strict_pace and not is_own
            if is_strict and not reason and run.pacing.gates.opens_at(host) == inf:
                # As many requests to it are in flight as may be, and nothing reports the end of one.
                reason, wait = "in flight", _LOOK
            if reason not in _BINDING and not (is_strict and reason):
                return None
            if is_own and reason not in _BINDING_OWN:
                return None
            if wait is None or wait > self._until - time.monotonic():
                return Excluded(Failure.REFUSED_BY_CRAWL, f"its host is left alone for now: {reason}")
            await asyncio.sleep(max(wait, 0.01))

    async def _over_the_wire(
        self, request: BrowserRequest, wire_request: WireRequest, host: int
    ) -> tuple[Capture, CaptureItem]:
        """Return what came of *wire_request*, recorded; the gate of *host* learns of it."""
        run, ticket = self._crawl.run, Ticket(host)
        pacing, clock = run.pacing, run.clock
        pacing.enter(ticket, clock())
        try:
            capture = await run.wire.fetch(
                wire_request,
                departs=partial(pacing.departs, ticket, wire_request.url, clock),
                watcher=_UntilPageEnds(self),
            )
            ticket.capture = capture
            try:
                if pacing.addresses is not None and not wire_request.proxy:
                    pacing.addresses.learn(wire_request.url, capture.ip_address)
                item = CaptureItem(
                    capture=capture, seed=Seed(request.url), final_url=final_url(capture),
                    provenance=self._found,
                    page=self._offer.seed.url, resource_type=self._kind(request),
                )  # fmt: skip
                await run.record(item)
            except BaseException:
                capture.body.close()
                raise
            ticket.outcome = outcome_of(item)
            judge(host, ticket.outcome, attempt=1, breaker=run.breaker, limit=run.limit)
        finally:
            now = clock()
            pacing.after_exchange(ticket, now)
            pacing.end(ticket, now)
        self._bytes += len(capture.head) + len(capture.body)
        self.counts["fetched"] += 1
        self.used[request.url] = capture.status
        self._crawl.note("amicrawl/browser/exchanges")
        return capture, item

    def _replied(self, request: BrowserRequest, capture: Capture, item: CaptureItem) -> ProxyReply:
        """Return what the browser gets of *capture*; the body is given back, or with the page."""
        if capture.failure is not None:
            capture.body.close()
            return ProxyReply(502)
        reply = reply_of(capture, length=item.body_length if capture.status != 304 else 0)
        wanted = request.field(b"range")
        if reply.length > LARGEST or (wanted and capture.status == 200):
            self._whole[request.url] = reply, capture
            return _part(reply, capture, wanted) if wanted and capture.status == 200 else reply
        content = b"".join(capture.payload())
        capture.body.close()
        reply = reply._replace(body=(content,), length=len(content))
        self._crawl.responses.keep(request, reply, content, kind=self._kind(request))
        return reply

    def _kind(self, request: BrowserRequest) -> str:
        return self._kinds.get((request.method, request.url)) or kind_of(request)


def kind_of(request: BrowserRequest) -> str:
    """Return Chromium's word for what *request* is for, by its fields; `other` where they do not say."""
    if request.field(b"upgrade").lower() == b"websocket":
        return "websocket"
    return _KINDS.get(request.field(b"sec-fetch-dest"), "other")


_BINDING_OWN = frozenset({"Retry-After", "robots.txt"})
"""Reasons for which a host is not contacted, not even by a page of its own that is open already ..."""
_BINDING = _BINDING_OWN | {"back-off", "bandwidth"}
"""... and by a page of another host."""
_NOT_SENT = frozenset({b"range", b"if-range"})
"""A body is fetched as a whole, and the browser gets its part of it."""


class _UntilPageEnds:
    """Ends an exchange when its page is over, and lets go of one that never ends by itself."""

    def __init__(self, exchanges: PageExchanges) -> None:
        self._exchanges = exchanges
        self._task = asyncio.current_task()

    def head(self, head: object) -> bool:
        fields = getattr(head, "fields", ())
        if any(name.lower() == b"content-type" and value.startswith(_ENDLESS) for name, value in fields):
            self._exchanges._began.pop(self._task, None)  # type: ignore[arg-type]  # noqa: SLF001
        return self._exchanges._closing  # noqa: SLF001

    def body(self, pieces: object) -> bool:  # noqa: ARG002
        return self._exchanges._closing  # noqa: SLF001


def reply_of(capture: Capture, *, length: int | None = None) -> ProxyReply:
    """Return *capture* as the browser gets it."""
    if length is None:
        content = b"".join(capture.payload())
        return ProxyReply(capture.status, capture.fields, (content,), len(content))
    return ProxyReply(capture.status, capture.fields, _Payload(capture), length)


class _Payload:
    """The payload of a capture, read when it is sent."""

    def __init__(self, capture: Capture) -> None:
        self._capture = capture

    def __iter__(self) -> Iterator[bytes]:
        return self._capture.payload()


def _part(whole: ProxyReply, capture: Capture, wanted: bytes) -> ProxyReply:
    """Return the part of *whole* that the field `Range: wanted` requests (RFC 9110, section 14)."""
    unit, _, span = wanted.partition(b"=")
    first_text, _, last_text = span.strip().partition(b"-")
    length = whole.length
    is_plain = unit.strip() == b"bytes" and b"," not in span
    texts = [text for text in (first_text, last_text) if text]
    if not is_plain or not texts or not all(text.isdigit() and len(text) < 19 for text in texts):
        return whole
    if first_text:
        first, last = int(first_text), min(int(last_text or length - 1), length - 1)
    else:
        first, last = max(0, length - int(last_text)), length - 1
    if first > last:
        return ProxyReply(416, [(b"Content-Range", b"bytes */%d" % length)])
    fields = [*whole.fields, (b"Content-Range", b"bytes %d-%d/%d" % (first, last, length))]
    return ProxyReply(206, fields, _slice(capture, first, last + 1), last + 1 - first)


def _slice(capture: Capture, start: int, end: int) -> Iterator[bytes]:
    position = 0
    for block in capture.payload():
        if position >= end:
            return
        piece = block[max(0, start - position) : end - position]
        position += len(block)
        if piece:
            yield piece
