"""robots.txt: requested once per origin, archived like any page, and obeyed by RFC 9309.

    request -> cache of verdicts -> allowed, refused, or not yet
                  |-> robots.txt fetched the way that its page goes, if nothing is known

Where robots.txt can only be had later (5xx, a connection that breaks), the row goes back to the frontier
and its host's gate stays shut until it is requested again; after five times its URLs are refused. Where
no server is there at all (no such name, connection refused) and no rules are known from before, the page
itself is tried: it fails for the same reason, and its row in the index says which. That holds only until
it does respond, and robots.txt is requested next. What is known is kept in `frontier/robots.json`,
what is learnt meanwhile in `robots.jsonl` beside it, a line at once for each response, and what other
readers of the frontier need in the rows of its hosts.

What robots.txt decides is for the policy to say: the crawl's, or that of a host by its override. Under
`obey-but-fetch-requisites` it is requested and its delay kept all the same, but what a page needs to be
shown passes. Under `ignore` it is not requested.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import time
from collections import OrderedDict
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from scrapy import Request, signals
from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadConnectionRefusedError,
    IgnoreRequest,
    NotConfigured,
)
from scrapy.http.request import NO_CALLBACK
from scrapy.settings import SETTINGS_PRIORITIES

from amicrawl.capture import Failure
from amicrawl.config import Robots
from amicrawl.crawl.decision import Decision, Disposition, Ticket, provenance_of
from amicrawl.crawl.links import MAX_BODY, PROVENANCE, REQUISITE
from amicrawl.crawl.middlewares import TAKES_TURN
from amicrawl.crawl.output import frontier_directory
from amicrawl.crawl.requests import ticket_of
from amicrawl.crawl.responses import Fetched, NotYet, Stopped, exception_of
from amicrawl.crawl.robots_file import FILE, JOURNAL, read_robots, rows_text
from amicrawl.crawl.run import Run, run_of
from amicrawl.disk import replace_file
from amicrawl.errors import AmicrawlError
from amicrawl.frontier import Hop, extended
from amicrawl.politeness import (
    Access,
    RobotsCache,
    RobotsVerdict,
    honoured_delay,
    is_bound,
    judge_absence,
    judge_robots,
    max_age_of,
    robots_url,
    row_of_verdict,
)
from amicrawl.record import OF_SEED, Provenance
from amicrawl.urls import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from scrapy.crawler import Crawler

    from amicrawl.crawl.direct import DirectRequests
    from amicrawl.record import CaptureItem

logger = logging.getLogger(__name__)

_LARGEST = 512 * 1024
"""Bytes of a robots.txt that are fetched: 500 KiB count (RFC 9309, section 2.5), more for chunks."""
_MOST_NOTED = 500_000
"""Bytes of a robots.txt that the row of its host keeps."""
_NO_SERVER = (
    Failure.NAME_NOT_FOUND,
    Failure.NAME_LOOKUP_FAILED,
    Failure.CONNECTION_REFUSED,
    Failure.CONNECT_TIMEOUT,
    Failure.ADDRESS_REFUSED,
)
"""What shows that no server is there; `failure_of` begins the words of its exceptions with it."""
_A_REDIRECT = 302
_LARGE = 50_000
"""Bytes of a robots.txt from which on it is read on a thread."""
_MOST_MET = 100_000
"""Origins of which it is remembered that their robots.txt was heeded in this crawl."""
_ADDON_PRIORITY = SETTINGS_PRIORITIES["addon"]


class RobotsMiddleware:
    """Reads robots.txt before anything else of an origin is requested."""

    direct: DirectRequests | None = None
    """What fetches robots.txt as rows are fetched; None where it goes by Scrapy's engine."""

    def __init__(self, crawler: Crawler, run: Run) -> None:
        if not crawler.settings.getbool("ROBOTSTXT_OBEY"):
            raise NotConfigured
        self._crawler = crawler
        self._run = run
        self._agent: str = crawler.settings["ROBOTSTXT_USER_AGENT"] or crawler.settings["USER_AGENT"]
        self._asking: dict[str, asyncio.Task[RobotsVerdict]] = {}
        self._journal: int | None = None
        """The descriptor of what was learnt in this crawl; None until there is something."""
        self._has_closed = False
        self._has_passed = False
        """Whether an origin was passed, and may have to be requested once it responds."""
        # A plain dict looks for its first entry behind all that were removed: 15 us with so many.
        self._met: OrderedDict[str, float] = OrderedDict()
        """When what is known expires, by origins whose delay is kept and whose sitemaps were offered."""
        self._policy = run.config.robots
        # A project that says ROBOTSTXT_OBEY itself means all hosts, whatever our setting is.
        if (crawler.settings.getpriority("ROBOTSTXT_OBEY") or 0) > _ADDON_PRIORITY:
            self._policy = Robots.OBEY if self._policy is Robots.IGNORE else self._policy
        crawler.signals.connect(self._closed, signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Build it for *crawler*; NotConfigured where robots.txt does not count."""
        return cls(crawler, run_of(crawler))

    async def process_request(self, request: Request) -> None:
        """Let *request* pass. Raises RefusedByRobots, or NotYet for a row that comes back later."""
        decision = await self.admit(request.url, ticket_of(request), request.meta)
        if decision is not None:
            raise exception_of(decision)

    async def admit(
        self, url: str, ticket: Ticket | None, words: Mapping[str, object]
    ) -> Decision | None:
        """Return why *url* is not requested, or not now; None where it may be.

        *words* are the `meta` of a request, or those of a row.
        """
        origin = robots_url(url)
        if words.get("dont_obey_robotstxt") or isinstance(origin, Refused):
            return None
        policy, overrides = self._policy, self._run.overrides
        if overrides.robots:
            policy = overrides.robots_at(url, policy)
        if policy is Robots.IGNORE:
            return None
        verdict = self._known.find(origin, now=time.time())
        is_new = verdict is None
        if verdict is None:
            try:
                verdict = await self._request(origin, ticket, url)
            except (NotYet, Stopped) as early:
                return self._give_back(ticket, str(early))
        if self._met.get(origin) != verdict.expires:
            self._heed(origin, verdict, url)
        refused = None
        if policy is Robots.OBEY or is_bound(policy, is_requisite=bool(words.get(REQUISITE))):
            allowed = verdict.allows(url) if verdict.rules is None else verdict.rules.allows(url)
            refused = None if allowed else self._refusal(verdict, ticket, waits=allowed is None)
        if refused is None and is_new and _is_row(ticket) and self._spaces_requests(ticket):
            # robots.txt was a request to this host; the page is the next one, and waits for its turn.
            return Decision(Disposition.AGAIN_NOW, "robots.txt was requested first")
        return refused

    async def admit_requisite(self, url: str) -> Decision | None:
        """Return why *url*, which an open page needs, is not requested; None where it may be."""
        return await self.admit(url, Ticket(None), {REQUISITE: 1})

    def _refusal(self, verdict: RobotsVerdict, ticket: Ticket | None, *, waits: bool) -> Decision:
        """Return what follows from *verdict*, which allows no request, or not yet where it *waits*."""
        if waits:
            return self._wait(ticket, until=verdict.expires)
        self._crawler.stats.inc_value("amicrawl/robots/refused")
        return Decision(Disposition.GIVEN_UP, verdict.reason, Failure.ROBOTS_DENIED)

    def _heed(self, origin: str, verdict: RobotsVerdict, url: str) -> None:
        """Do what is done once for an origin, whether its robots.txt was requested now or known."""
        is_first = origin not in self._met
        self._met.pop(origin, None)
        self._met[origin] = verdict.expires
        if len(self._met) > _MOST_MET:
            self._met.popitem(last=False)
        self._slow_down(origin, verdict, url)
        if is_first and verdict.rules is not None and verdict.rules.sitemaps:
            for act in self._run.on_sitemaps:
                act(list(verdict.rules.sitemaps), origin)

    def _spaces_requests(self, ticket: Ticket | None) -> bool:
        host = None if ticket is None else ticket.host
        return host is not None and self._run.gates.delay_of(host) > 0

    @cached_property
    def _known(self) -> RobotsCache:
        """What is known, with what earlier crawls have kept; read when it is first needed."""
        cache = _read(frontier_directory(self._run.config), agent=self._agent)
        if self._write(FILE, rows_text(self._agent, cache.to_rows())):
            # What an earlier crawl that was killed had learnt is in the other file now.
            with contextlib.suppress(OSError):
                self._path(JOURNAL).unlink(missing_ok=True)
        return cache

    def _wait(self, ticket: Ticket | None, *, until: float) -> Decision:
        """Keep the host shut *until* then (Unix seconds), when robots.txt is requested again."""
        if ticket is not None:
            self._run.pacing.wait_for_robots(ticket, self._run.clock() + max(until - time.time(), 0.0))
        if _is_row(ticket):
            self._crawler.stats.inc_value("amicrawl/robots/waits")
            return Decision(Disposition.AGAIN_NOW, "robots.txt is unreachable, to be requested again")
        return Decision(Disposition.GIVEN_UP, "robots.txt is unreachable", Failure.ROBOTS_DENIED)

    async def _request(self, origin: str, ticket: Ticket | None, url: str) -> RobotsVerdict:
        """Return what the robots.txt at *origin* says, requesting it once however many want to know.

        It is *url* that needs it first.
        """
        task = self._asking.get(origin)
        if task is None:
            had_turn = ticket is not None and ticket.entered
            row = None if ticket is None or ticket.dispatch is None else ticket.dispatch.offer
            page = OF_SEED if row is None else provenance_of(row)
            route = extended(page.route, Hop.PREREQUISITE)
            found = Provenance(url, "robots", page.hops + 1, route)
            fetching = self._fetch(origin, had_turn=had_turn, found=found)
            task = self._asking[origin] = asyncio.ensure_future(fetching)
            task.add_done_callback(lambda _: self._asking.pop(origin, None))
        return await asyncio.shield(task)

    def _give_back(self, ticket: Ticket | None, reason: str) -> Decision:
        """Have a row, for which not even robots.txt was requested, go as if it had not been sent."""
        if ticket is None or ticket.dispatch is None:
            reason = "robots.txt could not be requested yet"
            return Decision(Disposition.GIVEN_UP, reason, Failure.ROBOTS_DENIED)
        self._run.pacing.withdraw(ticket)
        return Decision(Disposition.AGAIN_NOW, reason)

    async def _fetch(self, origin: str, *, had_turn: bool, found: Provenance) -> RobotsVerdict:
        """Request the robots.txt at *origin*; raises NotYet where its address has another host's turn.

        *had_turn*: who needs it has had its turn there, and robots.txt takes it.
        """
        meta = {
            "dont_obey_robotstxt": True,
            TAKES_TURN: not had_turn,
            MAX_BODY: _LARGEST,
            PROVENANCE: found,
        }
        try:
            fetch = self._by_scrapy if self.direct is None else self.direct.fetch
            fetched = await fetch(origin, meta)
        except (AmicrawlError, Stopped, NotYet):
            raise
        except IgnoreRequest:
            # A redirect too many, or one that leads nowhere.
            fetched = Fetched(_A_REDIRECT)
        except Exception:  # noqa: BLE001  # whatever it was, there is no robots.txt to go by
            fetched = Failure.OTHER
        if isinstance(fetched, Failure):
            is_absent = fetched in _NO_SERVER
            verdict = self._absent(origin) if is_absent else await self._judge(origin, None, b"", None)
            return self._keep(origin, verdict)
        status, body, cache_control = fetched
        verdict = await self._judge(origin, status, body, max_age_of(cache_control))
        return self._keep(origin, verdict, body=body)

    async def _by_scrapy(self, origin: str, meta: Mapping[str, Any]) -> Fetched | Failure:
        """Fetch *origin* as `DirectRequests.fetch` does, by way of the components of a project."""
        request = Request(origin, meta=dict(meta), callback=NO_CALLBACK)
        try:
            response = await self._crawler.engine.download_async(request)
        except CannotResolveHostError:
            return Failure.NAME_NOT_FOUND
        except DownloadConnectionRefusedError:
            return Failure.CONNECTION_REFUSED
        except Exception as error:
            failure = next((each for each in _NO_SERVER if str(error).startswith(each)), None)
            if failure is None:
                raise
            return failure
        cache_control = (response.headers.get("Cache-Control") or b"").decode("latin-1")
        return Fetched(response.status, response.body, cache_control)

    def _absent(self, origin: str) -> RobotsVerdict:
        """Return what counts at *origin*, where no server is there."""
        verdict = judge_absence(now=time.time(), previous=self._known.previous(origin))
        if verdict.is_pass and not self._has_passed:
            self._has_passed = True
            self._run.tally.on_count.append(self._heard)
        return verdict

    def _heard(self, item: CaptureItem) -> None:
        """Have the robots.txt of an origin that was passed requested, now that it does respond."""
        if item.capture.failure is None:
            origin = robots_url(item.capture.url)
            # Not where it is robots.txt itself that came.
            if isinstance(origin, str) and not item.capture.url.startswith(origin):
                self._known.heard_from(origin)

    async def _judge(
        self, origin: str, status: int | None, body: bytes, max_age: float | None
    ) -> RobotsVerdict:
        previous = self._known.previous(origin)

        def judge() -> RobotsVerdict:
            verdict = judge_robots(
                status, body, now=time.time(), agent=self._agent, max_age=max_age, previous=previous
            )
            verdict.allows(origin)  # the first question compiles the rules
            return verdict

        if len(body) < _LARGE:
            return judge()
        return await asyncio.to_thread(judge)

    def _keep(self, origin: str, verdict: RobotsVerdict, *, body: bytes = b"") -> RobotsVerdict:
        self._crawler.stats.inc_value("amicrawl/robots/asked")
        self._known.keep(origin, verdict)
        self._note(origin, verdict)
        key = self._run.key_of(origin)
        if verdict.responded_at and not isinstance(key, Refused) and self._run.has_frontier:
            has_rules = verdict.access is Access.RULES
            self._run.frontier.hosts.note_robots(
                key.host,
                body[:_MOST_NOTED] if has_rules else b"",
                fetched=verdict.responded_at,
                expires=verdict.expires,
                missing=not has_rules,
            )
        return verdict

    def _note(self, origin: str, verdict: RobotsVerdict) -> None:
        """Write down at once what was learnt of *origin*: a kill must not have it requested again."""
        if self._journal is None and not self._has_closed:
            with contextlib.suppress(OSError):
                self._journal = self._run.status_disk.create(self._path(JOURNAL))
        row = row_of_verdict(origin, verdict)
        if self._journal is None or row is None:
            return
        with contextlib.suppress(OSError):
            line = json.dumps(row, separators=(",", ":")).encode("ascii") + b"\n"
            self._run.status_disk.write(self._journal, line)

    def _path(self, name: str) -> Path:
        return frontier_directory(self._run.config) / name

    def _write(self, name: str, text: bytes) -> bool:
        """Replace the file *name*; False where that cannot be done."""
        if not frontier_directory(self._run.config).is_dir():
            return False
        with contextlib.suppress(AmicrawlError):
            replace_file(self._path(name), text, disk=self._run.status_disk)
            return True
        return False

    def _slow_down(self, origin: str, verdict: RobotsVerdict, url: str) -> None:
        """Have the host of *url* contacted as its robots.txt at *origin* wishes, up to the cap."""
        delay = honoured_delay(verdict.rules, cap=self._run.config.max_crawl_delay)
        key = self._run.key_of(url)
        if isinstance(key, Refused):
            return
        if delay.is_capped:
            logger.warning(
                "robots.txt of %s sets a longer delay than AMICRAWL_MAX_CRAWL_DELAY: %g s are kept.",
                ascii(origin),
                delay.seconds,
            )
        self._run.pacing.slow_down(key.host, delay.seconds, origin=origin)

    def _closed(self) -> None:
        """Keep what is known for the next crawl; what cannot be written is requested again."""
        # One that a page in a browser did not wait for may come after this, when the number of the
        # descriptor is that of another file.
        journal, self._journal, self._has_closed = self._journal, None, True
        if journal is not None:
            os.close(journal)
        was_used = "_known" in vars(self)
        if was_used and self._write(FILE, rows_text(self._agent, self._known.to_rows())):
            with contextlib.suppress(OSError):
                self._path(JOURNAL).unlink(missing_ok=True)


def _read(directory: Path, *, agent: str) -> RobotsCache:
    """Return what earlier crawls have kept in *directory*."""
    written_for, rows = read_robots(directory)
    return RobotsCache.from_rows(rows, agent=agent, written_for=written_for, now=time.time())


def _is_row(ticket: Ticket | None) -> bool:
    return ticket is not None and ticket.dispatch is not None
