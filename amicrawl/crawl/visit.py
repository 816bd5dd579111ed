"""Visit: the life of one URL, from the moment its host may be contacted to its settled row.

    admit      the turn of its address, then the crawl's rules in their order (robots.txt, politeness)
    exchange   the request goes over the wire, and comes back as a `Capture`
    judge      whether that is the last word on the URL, or it is tried again
    keep       record and row of the index, on disk
    follow     what it leads to, offered before it is done
    settle     the gate of its host opens, and the frontier learns the outcome

Scrapy has no part in it. A row that no callback reads takes the whole way in one call. A request of
Scrapy's engine was admitted by its middlewares and is settled when it has left the downloader; between
the two it takes the same way, and brings its `wire_request` along.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from amicrawl.capture import REDIRECTS, Failure, final_url
from amicrawl.crawl.decision import (
    DONE,
    NO_TURN,
    OUTPUT_FAILED,
    STOPPED,
    Decision,
    Disposition,
    NotBegun,
    evidence,
    outcome_of,
    provenance_of,
)
from amicrawl.errors import OUT_OF_MEMORY, AmicrawlError, OutputError
from amicrawl.frontier import Outcome, Settled, judge
from amicrawl.record import CaptureItem
from amicrawl.urls import Refused

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence

    from amicrawl.capture import Capture
    from amicrawl.crawl.decision import Ticket
    from amicrawl.crawl.pacing import Pacing
    from amicrawl.fetch import WireRequest
    from amicrawl.frontier import Dispatch, DurableFrontier, Offer
    from amicrawl.politeness import HostBreaker, InflightLimit
    from amicrawl.record import Provenance
    from amicrawl.seed import Seed

logger = logging.getLogger(__name__)

_EXHAUSTED = 0.1
"""Seconds that a URL waits for a descriptor that another exchange gives back."""

_NO_WORDS: Mapping[str, object] = {}


class Rule(Protocol):
    """What may keep a request from being sent: the part of a downloader middleware that decides."""

    async def admit(self, url: str, ticket: Ticket, words: Mapping[str, object]) -> Decision | None:
        """Return why *url* is not requested now; None where it is. *words* are those of its row."""

    async def admit_requisite(self, url: str) -> Decision | None:
        """Do so for what a page needs that is open in a browser: it has no row, and does not wait."""


class Fetch(Protocol):
    """Carries a request out."""

    def __call__(
        self, request: WireRequest, *, departs: Callable[[], None]
    ) -> Coroutine[Any, Any, Capture]:
        """Return what was sent and received; *departs* is called just before a server is contacted."""


class Show(Protocol):
    """What opens pages in a browser."""

    def __call__(
        self, ticket: Ticket, request: WireRequest, fetch: Callable[[WireRequest], Awaitable[Capture]]
    ) -> Awaitable[Capture]:
        """Return what *fetch* brings for *request*, opened in a browser if it is a page."""


class Exchanger(Protocol):
    """What carries requests out."""

    @property
    def fetch(self) -> Fetch:
        """What does."""

    @property
    def is_closing(self) -> bool:
        """Whether it is closed, or about to be: what fails then has failed here."""


class Links(Protocol):
    """What finds and takes what a page leads to."""

    @property
    def of_pages(self) -> bool:
        """Whether it reads pages; False: nothing but redirects."""

    async def read(self, item: CaptureItem, offer: Offer) -> list[Offer]:
        """Return what the capture of the row *offer* leads to, as far as this crawl takes it."""

    def hand_over(self, offers: Sequence[Offer]) -> None:
        """Offer what a row leads to, before that is settled."""


class Exchanges:
    """The exchanges that are under way, and the end of all of them."""

    def __init__(self) -> None:
        self.tasks: set[asyncio.Task[object]] = set()
        """The tasks that wait for an exchange."""
        self.aborted = False

    def abort(self) -> None:
        """End every exchange that is still under way; their rows go back to the frontier."""
        self.aborted = True
        for task in self.tasks:
            task.cancel()


@dataclass(frozen=True, eq=False)
class Visit:
    """Visits URLs, any number at a time; it keeps nothing of them."""

    frontier: DurableFrontier
    pacing: Pacing
    wire: Exchanger
    keep: Callable[[CaptureItem], Awaitable[None]]
    """Stores a capture and its row."""
    count: Callable[[CaptureItem], None]
    """Counts what was stored."""
    record_skipped: Callable[[Seed, Failure, str, Provenance], Awaitable[None]]
    """Stores the row of a URL that was not requested."""
    fail: Callable[[AmicrawlError], None]
    """Called with what makes the crawl fail."""
    breaker: HostBreaker
    limit: InflightLimit
    exchanges: Exchanges
    clock: Callable[[], float]
    rules: Sequence[Rule] = ()
    """For rows that are visited whole, as are the next two."""
    request_of: Callable[[Seed], WireRequest | Refused] | None = None
    """Returns what goes over the wire for a row."""
    refusal_of: Callable[[Offer], str] | None = None
    """Returns why the crawl does not take a row any more; None where it takes all."""
    links: Links | None = None
    """None where what pages lead to is not taken here."""
    show: Show | None = None
    """What opens pages in a browser; None where nothing does."""

    async def visit(self, ticket: Ticket) -> Decision:
        """Visit the URL of *ticket*, and return what becomes of it.

        A ticket without `wire_request` is a row, and takes the whole way: it is settled when this
        returns, and nothing is raised. Otherwise the caller gets its `capture`, closes the body, and
        calls `leave`.
        """
        if ticket.wire_request is not None:
            return await self._fetch(ticket, ticket.wire_request) or await self._keep(ticket)
        dispatch = ticket.dispatch
        assert dispatch is not None
        try:
            try:
                decision = self._admit(ticket, dispatch)
                for rule in self.rules if decision is None else ():
                    offer = dispatch.offer
                    decision = await rule.admit(offer.seed.url, ticket, offer.extra or _NO_WORDS)
                    if decision is not None:
                        break
                if decision is None:
                    assert self.request_of is not None
                    request = self.request_of(dispatch.offer.seed)
                    decision = await self._fetch(ticket, request) or await self._keep(ticket)
            except AmicrawlError as fault:
                self.fail(fault)
                return OUTPUT_FAILED
            except MemoryError:
                # This says nothing of the URL, which is fetched by the next crawl.
                self.fail(OutputError(f"No memory was left for a page. {OUT_OF_MEMORY}."))
                return OUTPUT_FAILED
            except Exception as error:
                logger.exception("A URL could not be visited: %s", ascii(dispatch.offer.seed.url))
                reason = f"{type(error).__name__}: {error}"
                decision = Decision(Disposition.NOT_OURS, reason, Failure.REFUSED_BY_CRAWL)
            if decision.failure is not None and ticket.outcome is None:
                await self._refuse(ticket, decision)
            return decision
        finally:
            if ticket.capture is not None:
                ticket.capture.body.close()
            self.leave(ticket)

    async def admit_requisite(self, url: str) -> Decision | None:
        """Return why *url*, which an open page needs, is not requested; None where it may be."""
        for rule in self.rules:
            decision = await rule.admit_requisite(url)
            if decision is not None:
                return decision
        return None

    def _admit(self, ticket: Ticket, dispatch: Dispatch) -> Decision | None:
        """Return why *dispatch* is not requested now, by what the crawl knows; None where it may be."""
        if dispatch.skip:
            reason = "the host had not responded before and was given up"
            return Decision(Disposition.GIVEN_UP, reason, Failure.HOST_SKIPPED)
        if self.refusal_of is not None and (reason := self.refusal_of(dispatch.offer)):
            # No server is contacted: the next row of the host need not wait on its account.
            self.pacing.withdraw(ticket)
            return Decision(Disposition.NOT_OURS, reason, Failure.REFUSED_BY_CRAWL)
        pacing = self.pacing
        if not pacing.has_turns or pacing.admit(ticket, dispatch.offer.seed.url, self.clock()):
            return None
        return NO_TURN

    async def _fetch(self, ticket: Ticket, request: WireRequest | Refused) -> Decision | None:
        """Exchange and judge; None where the capture of *ticket* is the last word, and is to be kept."""
        if isinstance(request, Refused):
            decision = Decision(Disposition.GIVEN_UP, request.reason, Failure.UNFETCHABLE_URL)
            await self._refuse(ticket, decision)
            return decision
        under_way, addresses = self.exchanges.tasks, self.pacing.addresses
        task = asyncio.current_task()
        assert task is not None
        under_way.add(task)
        try:
            departs = partial(self.pacing.departs, ticket, request.url, self.clock)
            fetch = partial(self.wire.fetch, departs=departs)
            capture = await (fetch(request) if self.show is None else self.show(ticket, request, fetch))
        except NotBegun:
            return STOPPED
        except asyncio.CancelledError:
            if self.exchanges.aborted:
                return STOPPED
            raise
        finally:
            under_way.discard(task)
        if capture.failure is Failure.ENDED_HERE and ticket.dispatch is not None:
            return await self._ended_here(capture)
        ticket.capture = capture
        if addresses is not None and not request.proxy:
            addresses.learn(request.url, capture.ip_address)
        if ticket.dispatch is not None and capture.failure is not None:
            outcome = evidence(capture)
            if self.frontier.decide(ticket.dispatch, outcome) is Settled.AGAIN:
                ticket.outcome = outcome
                return Decision(Disposition.AGAIN_LATER, str(capture.failure))
        return None

    async def _ended_here(self, capture: Capture) -> Decision:
        """Have a URL handed out again whose exchange this side has ended, which says nothing of the URL.

        The wire was closed, or no file descriptor or memory was left: then fewer are in flight from now
        on, after a pause.
        """
        if self.wire.is_closing:
            return STOPPED
        if self.limit.exhausted():
            logger.warning(
                "%s At most %d requests are in flight from now on; `ulimit -n` permits more.",
                capture.failure_detail,
                self.limit.limit,
            )
        await asyncio.sleep(_EXHAUSTED)
        return STOPPED

    async def _keep(self, ticket: Ticket) -> Decision:
        """Have the capture of *ticket* recorded, and note its outcome and what it leads to."""
        dispatch, capture = ticket.dispatch, ticket.capture
        assert capture is not None
        is_redirect = capture.status in REDIRECTS
        item = CaptureItem(
            capture=capture,
            seed=_seed_of(ticket) if dispatch is None else dispatch.offer.seed,
            attempts=ticket.attempt if dispatch is None else dispatch.attempt,
            final_url=final_url(capture) if is_redirect or capture.failure else capture.url,
            provenance=ticket.provenance if dispatch is None else provenance_of(dispatch.offer),
        )
        try:
            await self.keep(item)
            self.count(item)
            outcome = ticket.outcome = outcome_of(item)
            if is_redirect:
                ticket.redirect_to = item.final_url
            links = self.links
            if links is None or dispatch is None or capture.failure is not None:
                pass
            elif (is_redirect or links.of_pages) and (offers := await links.read(item, dispatch.offer)):
                # Before the page is settled: one that is done has given what it leads to.
                links.hand_over(offers)
                if item.leads_on:
                    ticket.outcome = outcome._replace(redirect=item.final_url)
        except AmicrawlError as fault:
            # A row whose page is not kept, or whose links are not, is as good as not fetched.
            self.fail(fault)
            ticket.outcome = None
            return OUTPUT_FAILED
        if capture.failure is not None:
            return Decision(Disposition.GIVEN_UP, f"{capture.failure}: {capture.failure_detail}")
        return DONE

    async def _refuse(self, ticket: Ticket, decision: Decision) -> None:
        """Give a URL for which no server was contacted its row in the index."""
        assert decision.failure is not None
        try:
            seed, found = _seed_of(ticket), _provenance_of(ticket)
            await self.record_skipped(seed, decision.failure, decision.reason, found)
        except AmicrawlError as fault:
            self.fail(fault)
            return
        ticket.outcome = Outcome(status=0, failure=decision.failure)

    def leave(self, ticket: Ticket) -> Settled | None:
        """Take *ticket* back, which is over: open the gate of its host, and settle its row.

        A row without an outcome goes back to be handed out again; then, and where there is no row, the
        result is None.
        """
        now, dispatch = self.clock(), ticket.dispatch
        if dispatch is None or not dispatch.skip:
            self.pacing.after_exchange(ticket, now)
        if dispatch is not None:
            if ticket.outcome is None:
                self.frontier.release(dispatch.key, now)
                return None
            settled = self.frontier.settle(dispatch.offer.key, ticket.outcome, now)
            if self.show is not None:
                # What a browser has found is in no record, so a crawl that is killed opens a page again
                # that was not settled. Writing takes some 100 microseconds, and a page takes seconds.
                self.frontier.flush()
            return settled
        if ticket.host is not None:
            if ticket.outcome is not None:
                judge(ticket.host, ticket.outcome, attempt=1, breaker=self.breaker, limit=self.limit)
            self.pacing.end(ticket, now)
        return None

    def response_received(self, ticket: Ticket) -> bool:
        """Open the gate for a row whose response a callback is to read, and which is settled afterwards.

        Where no further attempt follows, that is; else False, and nothing changes.
        """
        assert ticket.dispatch is not None
        dispatch, outcome = ticket.dispatch, ticket.outcome
        if outcome is None or self.frontier.decide(dispatch, outcome) is Settled.AGAIN:
            return False
        now = self.clock()
        self.pacing.after_exchange(ticket, now)
        self.frontier.response_received(dispatch.key, now)
        return True

    def response_read(self, ticket: Ticket) -> None:
        """Settle a row whose response a callback has read."""
        assert ticket.dispatch is not None
        assert ticket.outcome is not None
        self.frontier.settle(ticket.dispatch.key, ticket.outcome, self.clock())


def _provenance_of(ticket: Ticket) -> Provenance:
    return ticket.provenance if ticket.dispatch is None else provenance_of(ticket.dispatch.offer)


def _seed_of(ticket: Ticket) -> Seed:
    if ticket.dispatch is not None:
        return ticket.dispatch.offer.seed
    assert ticket.seed is not None
    return ticket.seed
