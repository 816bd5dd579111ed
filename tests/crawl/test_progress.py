"""Reports of a crawl: in which format, when, and what they say of what is left to do."""

from __future__ import annotations

import asyncio
import io
import itertools
import json
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from amicrawl.capture import Failure
from amicrawl.config import CrawlConfig, LogFormat
from amicrawl.crawl.decision import Tally
from amicrawl.crawl.resumed import CAPTURED, WITHHELD_ADDRESS, Resumed
from amicrawl.crawl.spec import CrawlSpec
from amicrawl.crawl.watching.busy_hosts import BusyHost
from amicrawl.crawl.watching.progress import Progress, Reports
from amicrawl.crawl.watching.screen import Moment

if TYPE_CHECKING:
    from collections.abc import Callable


class Screen:
    """A `Progress` over a crawl of which only what it looks at is there."""

    def __init__(
        self,
        *,
        settings: dict[str, str] | None = None,
        log_format: LogFormat = LogFormat.TEXT,
        **run: Any,
    ) -> None:
        self._heard: list[Callable[..., None]] = []
        self._at_shutdown: list[Callable[[], None]] = []
        self.stream = io.StringIO()
        self.counts: dict[str, int] = {}
        self.run = SimpleNamespace(
            **{
                "config": CrawlConfig(progress_every=60.0, out="out", log_format=log_format),
                "clock": lambda: 5.0,
                "tally": Tally(seeds_ended=True),
                "resumed": Resumed(),
                "spec": CrawlSpec(asked={"file": "seeds.txt"}),
                "limit": SimpleNamespace(limit=64),
                "waiting": 0,
                "later": 0,
                "paused": frozenset(),
                "stopping": False,
                "frontier": SimpleNamespace(next_moment=lambda now: now + 60, in_flight=0),
                "has_frontier": True,
                "following": None,
                "unkept": None,
                **run,
            }
        )
        crawler: Any = SimpleNamespace(
            settings=settings or {},
            spider=SimpleNamespace(arguments=object()),
            stats=SimpleNamespace(get_value=self.counts.get),
            signals=SimpleNamespace(connect=lambda heard, _: self._heard.append(heard)),
            engine=SimpleNamespace(downloader=SimpleNamespace(active=set())),
        )
        as_run: Any = self.run
        Progress(crawler, as_run, stream=self.stream, at_shutdown=self._at_shutdown.append)

    def fail(self, why: Failure) -> None:
        self.run.tally.add(0, why, unchanged=False)

    def close(self, reason: str, *, was_opened: bool = True) -> list[str]:
        """Return the lines that stand there once the crawl has closed, or, without *reason*, cannot."""
        opened, closed = self._heard

        async def whole_crawl() -> None:
            if was_opened:
                opened()
            if reason:
                closed(reason)
            for act in self._at_shutdown:
                act()

        asyncio.run(whole_crawl())
        return self.stream.getvalue().splitlines()


def test_a_crawl_that_never_opened_leaves_the_word_to_its_error() -> None:
    assert Screen().close("shutdown", was_opened=False) == []


def test_a_finished_crawl_ends_with_its_summary_and_its_place() -> None:
    begin, summary, place = Screen(tally=Tally(seeds_read=1, seeds_known=1, seeds_ended=True)).close(
        "finished"
    )
    assert begin == "crawling seeds.txt: a request every 1 s to a host, robots.txt is obeyed, into out"
    assert summary == "done in 0s | nothing fetched"
    assert place == "output in out"


def test_a_process_that_ends_before_its_crawl_has_closed_says_what_was_left() -> None:
    """So it is after a second signal."""
    said = Screen(waiting=2).close("")
    assert said[1] == "stopped (shutdown) after 0s | nothing fetched"
    assert said[2] == "2 URLs not fetched"


def test_every_line_is_json_where_the_log_is() -> None:
    (line,) = Screen(log_format=LogFormat.JSON, waiting=2).close("shutdown")
    ended = json.loads(line)
    assert (ended["event"], ended["reason"], ended["directory"]) == ("finished", "shutdown", "out")
    assert ended["notes"] == ["2 URLs not fetched"]


def test_the_rates_of_the_last_report_are_those_of_the_whole_crawl() -> None:
    clock = itertools.count(0, 10)
    screen = Screen(log_format=LogFormat.JSON, tally=Tally(ok=30), clock=lambda: next(clock))
    (line,) = screen.close("finished")
    said = json.loads(line)
    assert said["pages_per_second"] == 30 / said["elapsed"]


def test_a_resumed_crawl_says_so_in_the_format_of_the_log() -> None:
    found = Resumed(found=True, done=3, pending=1)
    first, last = Screen(log_format=LogFormat.JSON, resumed=found).close("finished")
    assert (json.loads(first)["event"], json.loads(first)["done"]) == ("resumed", 3)
    assert json.loads(last)["event"] == "finished"
    assert Screen(resumed=found).close("finished")[1].startswith("resuming: 3 URLs done")


def test_a_stopped_crawl_counts_what_waits_in_the_frontier_and_beside_it() -> None:
    screen = Screen(waiting=3)
    screen.counts.update({"scheduler/enqueued": 10, "scheduler/dequeued": 6})
    said = screen.close("closespider_pagecount")
    assert said[2] == "7 URLs not fetched"
    assert said[3] == "of them 4 in Scrapy's queue alone, which lasts only with JOBDIR"


def test_where_the_queue_beside_is_kept_nothing_is_said_to_be_lost() -> None:
    screen = Screen(settings={"JOBDIR": "job"})
    screen.counts.update({"scheduler/enqueued": 10, "scheduler/dequeued": 9})
    said = screen.close("shutdown")
    assert said[2] == "1 URL not fetched"
    assert "JOBDIR" not in "\n".join(said)


def test_a_crawl_whose_hosts_all_have_to_wait_says_for_how_long() -> None:
    def next_in(**run: Any) -> object:
        (line,) = Screen(log_format=LogFormat.JSON, **run).close("shutdown")
        return json.loads(line)["next_in"]

    assert next_in(waiting=1) == 60.0
    soon = SimpleNamespace(next_moment=lambda now: now + 1, in_flight=0)
    assert next_in(waiting=1, frontier=soon) is None
    under_way = SimpleNamespace(next_moment=lambda now: now + 60, in_flight=1)
    assert next_in(waiting=1, frontier=under_way) is None
    assert next_in() is None


def test_a_report_names_why_the_host_that_is_next_has_to_wait() -> None:
    stream = io.StringIO()
    reports = Reports(stream, log_format=LogFormat.TEXT, every=10)
    waits = Moment(
        elapsed=9.0,
        total=3,
        in_flight=0,
        inflight_limit=64,
        pages_per_second=0.0,
        bytes_per_second=0.0,
        next_in=7.0,
    )
    hosts = [
        BusyHost("late.example", 0, 1, 9, 1.0, "back-off", 30.0),
        BusyHost("next.example", 0, 1, 9, 1.0, "Crawl-delay", 7.0),
        BusyHost("busy.example", 1, 1, 9, 1.0),
    ]
    reports.show(Tally(), waits, hosts)
    reports.show(Tally(), replace(waits, next_in=None), hosts)
    waiting, fetching = stream.getvalue().splitlines()
    assert waiting.startswith("next in 7s (Crawl-delay) | ")
    assert "Crawl-delay" not in fetching


def test_of_a_list_that_was_not_read_to_its_end_the_rest_is_told() -> None:
    said = Screen(tally=Tally()).close("shutdown")
    assert said[2] == "0 URLs not fetched and the rest of the seed list not read"


def test_a_stopped_crawl_that_resumes_says_how_after_what_it_did() -> None:
    spec = CrawlSpec(resumes=True)
    assert Screen(spec=spec, waiting=2).close("limit-pages")[1:] == [
        "stopped (limit-pages) after 0s | nothing fetched",
        "2 URLs not fetched; to resume, run the same command again",
        "output in out",
    ]


def test_what_was_done_comes_first_then_why_then_what_to_do() -> None:
    screen = Screen(later=2)
    for _ in range(4):
        screen.fail(Failure.CONNECTION_REFUSED)
    said = screen.close("finished")[1:]
    assert said[0].startswith("done in 0s | 4 failed | ")
    assert said[1:3] == [
        "without a response: 4 connection-refused",
        "nothing was reached: no response to 4 fetches (exit code 10)",
    ]
    assert said[3].startswith("2 URLs will be retried by the same command when due ")
    assert said[4] == "output in out"


def test_an_empty_seed_list_is_said_to_be_empty() -> None:
    assert Screen().close("finished")[2] == "seeds.txt has no URLs"
    assert "has no URLs" not in " ".join(Screen(tally=Tally(seeds_bad=1)).close("finished"))


def test_what_comes_back_later_is_told_with_the_command_that_says_when() -> None:
    said = Screen(later=1, tally=Tally(server_error=1)).close("finished")
    assert said[2] == (
        "1 URL will be retried by the same command when due (`amicrawl frontier stats out` shows "
        "when), or now after `amicrawl frontier retry out`"
    )


def test_a_job_has_no_command_that_could_be_the_same() -> None:
    spec = CrawlSpec(resumes=True, asked={"ident": "abc", "url": "http://a.example/"})
    said = "\n".join(Screen(spec=spec, later=2, tally=Tally(server_error=1)).close("finished"))
    said += "\n".join(Screen(spec=spec, waiting=2).close("shutdown"))
    assert "same command" not in said
    assert "`amicrawl frontier retry out`" in said
    assert "`amicrawl crawl URL -o out`" in said


def test_a_crawl_with_nothing_due_says_why_and_what_to_type() -> None:
    found = Resumed(found=True, standing={CAPTURED: 2, WITHHELD_ADDRESS: 1}, next_due=480_000)
    said = Screen(resumed=found).close("finished")[3:]
    assert said[0] == (
        "nothing to fetch now, the next URL is due at 2024-10-04 00:00 UTC; 3 URLs known: "
        "2 captured, 1 withheld for the address"
    )
    assert said[1].startswith("address-refused: permit a private network with -s ")
    assert said[2:4] == [
        "to fetch again what is captured: `amicrawl recrawl out --all`",
        "to queue the others now: `amicrawl frontier retry out`",
    ]
    done = Screen(resumed=found, tally=Tally(ok=1)).close("finished")
    assert "nothing" not in "\n".join(done)


def test_why_no_responses_came_is_told_to_people_and_programs() -> None:
    def closed(log_format: LogFormat) -> list[str]:
        screen = Screen(log_format=log_format)
        for why in (Failure.ROBOTS_DENIED, Failure.ADDRESS_REFUSED, Failure.ADDRESS_REFUSED):
            screen.fail(why)
        return screen.close("finished")

    (line,) = closed(LogFormat.JSON)
    assert json.loads(line)["failures"] == {"address-refused": 2, "robots-denied": 1}
    said = closed(LogFormat.TEXT)
    assert said[2] == "without a response: 2 address-refused, 1 robots-denied"
    assert "AMICRAWL_ALLOW_PRIVATE" in said[3]
