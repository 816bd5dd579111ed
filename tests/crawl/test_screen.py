"""The screen: what a crawl says of itself, from numbers alone."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from amicrawl.config import CrawlConfig
from amicrawl.crawl.decision import Tally
from amicrawl.crawl.watching.busy_hosts import BusyHost
from amicrawl.crawl.watching.screen import (
    Moment,
    classes,
    duration,
    live_lines,
    page_rate,
    reasons,
    remaining,
    report,
    start_line,
    status_line,
    summary,
)

if TYPE_CHECKING:
    from pathlib import Path


def moment(*, elapsed: float = 10.0, total: int | None = 400, pages_per_second: float = 25.4) -> Moment:
    return Moment(
        elapsed=elapsed,
        total=total,
        in_flight=7,
        inflight_limit=64,
        pages_per_second=pages_per_second,
        bytes_per_second=3 * 1024**2,
    )


TALLY = Tally(ok=90, unchanged=3, redirect=2, client_error=1, failed=3, skipped=1, seeds_read=450)


def test_the_line_tells_done_and_total_pace_classes_limit_and_eta() -> None:
    line = status_line(TALLY, moment())
    assert line.startswith("100/400 | ETA 30s | 25 pages/s | 3.0 MiB/s | in flight 7/64 | ok 90 ")
    assert line.endswith("ok 90 unchanged 3 redirect 2 4xx 1 failed 3 skipped 1")


def test_a_terminal_shows_a_bar_and_the_hosts_that_are_waited_for_with_the_reason() -> None:
    hosts = [
        BusyHost("slow.example", 0, 1200, 9, 1.0, "Retry-After", 65.0),
        BusyHost("e\x1bvil.example", 1, None, 3, 1.0),
    ]
    shown_bar, figures, *below = live_lines(TALLY, moment(), hosts, ascii_only=True)
    assert shown_bar == f"[{'#' * 8}{'-' * 24}]  25 % of the URLs known"
    assert len(shown_bar) < 60, "it is whole on a terminal of 60 columns"
    assert figures == status_line(TALLY, moment())
    assert below == [
        "  slow.example          1,200 queued  next in 1m05s: Retry-After",
        "  e\\x1bvil.example                    1 in flight",
    ]
    assert list(live_lines(TALLY, moment(total=None))) == [status_line(TALLY, moment(total=None))]


@pytest.mark.parametrize(
    ("rate", "shown"),
    [(0.0, "0"), (0.3, "0.3"), (1.0, "1.0"), (9.94, "9.9"), (9.96, "10"), (1234.5, "1,234")],
)
def test_a_slow_crawl_has_a_rate_that_is_not_zero(rate: float, shown: str) -> None:
    assert f" | {shown} pages/s | " in status_line(TALLY, moment(pages_per_second=rate))
    assert page_rate(rate) == f"{shown} pages/s"


def test_without_a_known_total_there_is_no_eta() -> None:
    line = status_line(TALLY, moment(total=None))
    assert line.startswith("100/450+ | ETA - |")


def test_a_report_is_one_json_object_with_every_count() -> None:
    told = json.loads(json.dumps(report(TALLY, moment())))
    assert (told["event"], told["rows"], told["eta"], told["seeds_read"]) == ("progress", 100, 30.0, 450)


def test_the_summary_names_every_class_that_has_rows() -> None:
    tally = Tally(ok=3, skipped=1200, bytes_received=12 * 1024 * 205)
    assert summary(tally, 12.0) == "done in 12s | 3 ok, 1,200 skipped | 100 pages/s, 205.0 KiB/s"
    assert summary(Tally(), 0.1) == "done in 0s | nothing fetched"


def test_the_summary_of_a_stopped_crawl_does_not_say_done() -> None:
    line = summary(Tally(ok=3), 12.0, reason="limit-pages")
    assert line.startswith("stopped (limit-pages) after 12s | 3 ok | ")


def test_the_first_line_says_the_delay_that_is_in_force(tmp_path: Path) -> None:
    def first(**settings: float) -> str:
        return start_line(CrawlConfig(**settings), asked={"file": "s.txt"}, directory=tmp_path)

    assert "a request every 0.2 s to a host, " in first(delay=0.2)
    assert "a request every 0.05 s to a host (AMICRAWL_ADDRESS_DELAY), " in first(delay=0.01)
    assert "a request every 0.01 s to a host, " in first(delay=0.01, address_delay=0)
    assert ": no delay, " in first(delay=0)


def test_what_is_crawled_is_one_harmless_line_whatever_a_job_says(tmp_path: Path) -> None:
    asked = {"url": "http://a.example/\x1b]0;title\a\ncrawling nothing\u202e"}
    line = start_line(CrawlConfig(), asked=asked, directory=tmp_path)
    assert line.isprintable()
    assert line.startswith(r"crawling http://a.example/\x1b]0;title\x07\ncrawling nothing\u202e: ")


def test_a_host_that_is_waited_for_less_than_a_second_is_not_said_to_wait_a_second() -> None:
    host = BusyHost("fast.example", 0, 12, 9, 0.2, "delay", 0.15)
    *_, line = live_lines(TALLY, moment(), [host])
    assert line.endswith("next in 0.1s: delay")


def test_classes_add_up_and_those_without_a_row_are_left_out() -> None:
    assert (
        classes(Tally(ok=4, client_error=3, server_error=1, skipped=1)) == "ok 4 4xx 3 5xx 1 skipped 1"
    )
    assert classes(Tally()) == "ok 0"


def test_lines_of_the_seed_list_that_could_not_be_used_are_told_at_the_end() -> None:
    assert summary(Tally(seeds_bad=3), 1.0).endswith("| 3 lines of the seed list invalid")
    assert "seed list" not in summary(Tally(), 1.0)


def test_why_no_response_came_is_told_the_commonest_first_and_bounded() -> None:
    assert reasons({}) == ""
    assert (
        reasons({"proxy": 1, "robots-denied": 1200})
        == "without a response: 1,200 robots-denied, 1 proxy\n"
    )
    many = {f"reason-{number}": 9 - number for number in range(7)}
    assert reasons(many, most=2) == "without a response: 9 reason-0, 8 reason-1, 25 others\n"


def test_addresses_that_our_own_guard_refused_come_with_the_setting_that_permits_them() -> None:
    assert "AMICRAWL_ALLOW_PRIVATE" in reasons({"address-refused": 1})


def test_a_pause_and_its_reasons_are_shown_first() -> None:
    paused = replace(moment(), paused_by=("disk", "signal"))
    assert status_line(TALLY, paused).startswith("PAUSED by disk and signal | 100/400 | ")
    assert report(TALLY, paused)["paused_by"] == ["disk", "signal"]
    assert "PAUSED" not in status_line(TALLY, moment())


def test_a_crawl_that_waits_for_its_end_says_so_first_and_what_is_faster() -> None:
    stopping = replace(moment(), is_stopping=True)
    assert status_line(TALLY, stopping).startswith("STOPPING (Ctrl-C seals at once) | 100/400 | ")
    assert (report(TALLY, stopping)["stopping"], report(TALLY, moment())["stopping"]) == (True, False)


def test_where_all_hosts_have_to_wait_it_is_told_in_front_for_how_long() -> None:
    waiting = replace(moment(), next_in=63.4)
    assert status_line(TALLY, waiting).startswith("next in 1m03s | 100/400 | ")
    told = replace(waiting, next_reason="Crawl-delay")
    assert status_line(TALLY, told).startswith("next in 1m03s (Crawl-delay) | 100/400 | ")
    assert report(TALLY, told)["next_reason"] == "Crawl-delay"
    assert status_line(TALLY, waiting).split(" | ")[2] == "ETA 1m03s"
    assert (report(TALLY, waiting)["next_in"], report(TALLY, moment())["next_in"]) == (63.4, None)


def test_nothing_done_gives_no_estimate() -> None:
    assert remaining(Tally(), moment()) is None


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0s"), (59.4, "59s"), (185, "3m05s"), (7620, "2h07m")]
)
def test_durations_read_as_people_say_them(seconds: float, text: str) -> None:
    assert duration(seconds) == text
