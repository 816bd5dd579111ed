"""What a crawl shows while it runs and when it has ended. Pure: numbers in, text out."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from amicrawl.capture import Failure
from amicrawl.config import LogFormat, Robots
from amicrawl.crawl.resumed import CAPTURED, DENIED, WITHHELD_ADDRESS
from amicrawl.terminal import bar, counted, harmless, human_size

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from amicrawl.config import CrawlConfig
    from amicrawl.crawl.decision import Tally
    from amicrawl.crawl.watching.busy_hosts import BusyHost

_WORDS = {
    "ok": "ok",
    "unchanged": "unchanged",
    "redirect": "redirect",
    "client_error": "4xx",
    "server_error": "5xx",
    "failed": "failed",
    "skipped": "skipped",
}
"""What the classes of `Tally` are called here."""
_WIDEST_HOST = 40
_FEW = 5
"""Links that a shipped ignore set may keep out without a word."""
_HINT = "address-refused: permit a private network with -s AMICRAWL_ALLOW_PRIVATE=127.0.0.0/8\n"


@dataclass(frozen=True, slots=True)
class Moment:
    """A crawl as it is now."""

    elapsed: float
    """Seconds since the start."""
    total: int | None
    """Rows that there will be at least; None while the seed list is still being read."""
    in_flight: int
    inflight_limit: int
    pages_per_second: float
    """Over the time since the last report."""
    bytes_per_second: float
    paused_by: tuple[str, ...] = ()
    """Why nothing new is fetched; empty while it is."""
    next_in: float | None = None
    """Seconds until a host may be contacted again, where all have to wait; None where none has to."""
    next_reason: str = ""
    """Why that host may not be contacted now, as `BusyHost.reason`; empty where that is not known."""
    is_stopping: bool = False
    """Whether the crawl was asked to end, and waits for what is in flight."""


def start_line(
    config: CrawlConfig, *, asked: Mapping[str, str], directory: Path, processes: int = 1
) -> str:
    """Return what is about to be crawled, how politely, and into what."""
    what = asked.get("url") or asked.get("file") or asked.get("dir") or asked.get("ident") or "a spider"
    robots = {
        Robots.OBEY: "robots.txt is obeyed",
        Robots.REQUISITES: "robots.txt is obeyed but for requisites",
        Robots.IGNORE: "robots.txt is ignored",
    }[config.robots]
    pace = f"a request every {config.delay:g} s to a host" if config.delay else "no delay"
    if 0 < config.delay < config.address_delay:
        # Each request to a host is one to its address.
        pace = f"a request every {config.address_delay:g} s to a host (AMICRAWL_ADDRESS_DELAY)"
    if config.per_host > 1:
        pace += f", {config.per_host} at once"
    most = config.hops_within(asked.get("depth", "inf"))
    hops = "" if most is None else f" to depth {most}"
    with_several = f", {processes} processes" if processes > 1 else ""
    # The URL of a job comes from Redis, where other programs may write it.
    return f"crawling {harmless(what)}{hops}: {pace}, {robots}{with_several}, into {directory}"


def status_line(tally: Tally, moment: Moment) -> str:
    """Return the line that a terminal rewrites."""
    total = f"{moment.total:,}" if moment.total is not None else f"{tally.seeds_read:,}+"
    eta = remaining(tally, moment)
    # In front, for a narrow terminal to show it, too.
    stopping = ["STOPPING (Ctrl-C seals at once)"] if moment.is_stopping else []
    paused = [f"PAUSED by {' and '.join(moment.paused_by)}"] if moment.paused_by else []
    why = f" ({moment.next_reason})" if moment.next_reason else ""
    waits = [f"next in {duration(moment.next_in)}{why}"] if moment.next_in is not None else []
    return " | ".join(
        [
            *stopping,
            *paused,
            *waits,
            f"{tally.rows:,}/{total}",
            f"ETA {duration(eta) if eta is not None else '-'}",
            page_rate(moment.pages_per_second),
            f"{human_size(round(moment.bytes_per_second))}/s",
            f"in flight {moment.in_flight}/{moment.inflight_limit}",
            # Last, since it grows longest, and the line is cut to the width of the terminal.
            classes(tally),
        ]
    )


def live_lines(
    tally: Tally, moment: Moment, hosts: Sequence[BusyHost] = (), *, ascii_only: bool = False
) -> Iterator[str]:
    """Yield what a terminal shows: a bar, where the total is known, the figures, and a line a host."""
    if moment.total:
        yield f"{bar(tally.rows, moment.total, width=32, ascii_only=ascii_only)} of the URLs known"
    yield status_line(tally, moment)
    widest = max((len(harmless(host.name, limit=_WIDEST_HOST)) for host in hosts), default=0)
    for host in hosts:
        name = harmless(host.name, limit=_WIDEST_HOST)
        waits = "" if host.opens_in is None else f"next in {_wait(host.opens_in)}: "
        flying = f"{host.in_flight} in flight" if host.in_flight else "-"
        why = f"{waits}{host.reason}" if host.reason else flying
        queued = "" if host.waiting is None else f"{host.waiting:,} queued"
        yield f"  {name:<{widest}}  {queued:>16}  {why}"


def page_rate(rate: float) -> str:
    """Return *rate*, pages per second, for a line: below ten with one decimal, as 0.3 is not 0."""
    return f"{rate:,.1f} pages/s" if 0 < rate < 9.95 else f"{rate:,.0f} pages/s"


def classes(tally: Tally) -> str:
    """Return how many rows there are of each class that has any; they add up to all rows."""
    counts = tally.as_dict()
    shown = [f"{word} {counts[name]:,}" for name, word in _WORDS.items() if counts[name]]
    return " ".join(shown or ["ok 0"])


def report(tally: Tally, moment: Moment) -> dict[str, object]:
    """Return the same as an object for a JSON line; times in seconds, rates per second."""
    eta = remaining(tally, moment)
    return {
        "event": "progress",
        "elapsed": round(moment.elapsed, 1),
        "total": moment.total,
        "eta": round(eta, 1) if eta is not None else None,
        "pages_per_second": round(moment.pages_per_second, 1),
        "bytes_per_second": round(moment.bytes_per_second),
        "in_flight": moment.in_flight,
        "inflight_limit": moment.inflight_limit,
        "stopping": moment.is_stopping,
        "paused_by": list(moment.paused_by),
        "next_in": None if moment.next_in is None else round(moment.next_in, 1),
        "next_reason": moment.next_reason or None,
        **tally.as_dict(),
    }


def fault_line(fault: str, *, exit_code: int, log_format: object) -> str:
    """Return the line that a crawl that failed ends with, in the format of the others."""
    if log_format == LogFormat.JSON:
        return json.dumps({"event": "failed", "exit_code": exit_code, "message": fault}) + "\n"
    return f"amicrawl: {fault}\n"


def summary(tally: Tally, elapsed: float, *, reason: str = "finished") -> str:
    """Return the line that says what a crawl did that ended for *reason*, without empty classes."""
    counts, seconds = tally.as_dict(), max(elapsed, 0.001)
    ended = "done in" if reason == "finished" else f"stopped ({reason}) after"
    rows = ", ".join(f"{counts[name]:,} {word}" for name, word in _WORDS.items() if counts[name])
    parts = [f"{ended} {duration(elapsed)}", rows or "nothing fetched"]
    if rows:
        size = human_size(round(tally.bytes_received / seconds))
        parts.append(f"{page_rate(tally.rows / seconds)}, {size}/s")
    if tally.seeds_bad:
        parts.append(f"{counted(tally.seeds_bad, 'line')} of the seed list invalid")
    return " | ".join(parts)


def reasons(failures: Mapping[str, int], *, most: int = 5) -> str:
    """Return the line of fetches without a response, by reason, the commonest first; empty for none.

    *failures* are counts by the first word of the index's `error` column. Where our own guard was the
    reason, a second line says how to change that.
    """
    if not failures:
        return ""
    ordered = sorted(failures.items(), key=lambda one: (-one[1], one[0]))
    shown = [f"{number:,} {word}" for word, number in ordered[:most]]
    rest = [f"{sum(number for _, number in ordered[most:]):,} others"] if len(ordered) > most else []
    hint = _HINT if Failure.ADDRESS_REFUSED in failures else ""
    return f"without a response: {', '.join(shown + rest)}\n{hint}"


_LAST_HOUR = 70_389_527
"""The last hour since 1970 that has a date."""


def nothing_due(standing: Mapping[str, int], *, directory: str, next_due: int) -> str:
    """Return why a crawl had nothing to fetch and what to type, in lines.

    *standing* is that of `Resumed`; *next_due* is the hour since 1970 at which the first URL is due that
    this kind of crawl takes, 0 for none.
    """
    known = counted(sum(standing.values()), "URL")
    parts = ", ".join(f"{number:,} {words}" for words, number in standing.items())
    if next_due:
        moment = datetime.fromtimestamp(min(next_due, _LAST_HOUR) * 3600, UTC)
        # A file of other software may name an hour of any year.
        at = f"at {moment:%Y-%m-%d %H:%M} UTC" if next_due <= _LAST_HOUR else "after the year 9999"
        lines = [f"nothing to fetch now, the next URL is due {at}; {known} known: {parts}"]
    else:
        lines = [f"nothing to fetch: all {known} known are settled: {parts}"]
    if WITHHELD_ADDRESS in standing:
        lines.append(_HINT.rstrip())
    if DENIED in standing:
        lines.append("denied by robots.txt: with --robots ignore (AMICRAWL_ROBOTS) they are fetched")
    if CAPTURED in standing:
        lines.append(f"to fetch again what is captured: `amicrawl recrawl {directory} --all`")
    if standing.keys() - {CAPTURED}:
        others = "the others" if CAPTURED in standing else "them"
        lines.append(f"to queue {others} now: `amicrawl frontier retry {directory}`")
    return "\n".join(lines) + "\n"


def dropped(by_set: Mapping[str, int]) -> str:
    """Return the lines of the shipped ignore sets that kept out more than a few links, by set."""
    return "".join(
        f"ignored: {counted(number, 'link')} by the set `{name}`; crawl.json says by which patterns, "
        "AMICRAWL_IGNORE_SETS names the sets\n"
        for name, number in by_set.items()
        if number > _FEW
    )


def retried(urls: int, directory: str, *, is_job: bool = False) -> str:
    """Return the line for *urls* that are tried again when they are due; empty for none.

    *is_job*: no command is the same for a job that has ended, as no pipeline takes it again.
    """
    if not urls:
        return ""
    if is_job:
        return (
            f"{counted(urls, 'URL')} may be there later, and a job that has ended retries none: after "
            f"`amicrawl frontier retry {directory}`, `amicrawl crawl URL -o {directory}` with the URL "
            "of the job does\n"
        )
    return (
        f"{counted(urls, 'URL')} will be retried by the same command when due "
        f"(`amicrawl frontier stats {directory}` shows when), or now after "
        f"`amicrawl frontier retry {directory}`\n"
    )


def left(urls: int, *, is_list_unread: bool, resumes: bool = True) -> str:
    """Return the line of a crawl that was stopped with so many *urls* left.

    *resumes*: the same command resumes it, as it does not with jobs and with Scrapy's own spiders.
    """
    unread = " and the rest of the seed list not read" if is_list_unread else ""
    how = "; to resume, run the same command again" if resumes else ""
    return f"{counted(urls, 'URL')} not fetched{unread}{how}\n"


def unreached(tally: Tally) -> str:
    """Return the line of a crawl to which no server responded, or that had no seed of its own."""
    if tally.seeds_read and tally.seeds_elsewhere == tally.seeds_read:
        seeds = counted(tally.seeds_read, "seed")
        return f"nothing to fetch: {seeds} read, and none belongs to this shard (exit code 10)\n"
    return f"nothing was reached: no response to {counted(tally.failed, 'fetch')} (exit code 10)\n"


def remaining(tally: Tally, moment: Moment) -> float | None:
    """Return the seconds that the rest will take at the pace so far; None where that cannot be known.

    Not less than all hosts have to wait, nor than 0.
    """
    if moment.total is None or not tally.rows or moment.elapsed <= 0:
        return None
    return max(moment.next_in or 0.0, (moment.total - tally.rows) * moment.elapsed / tally.rows)


def _wait(seconds: float) -> str:
    """Return a time to wait, which for many hosts is less than a second."""
    return duration(seconds) if seconds >= 1 else f"{max(0.1, seconds):.1f}s"


def duration(seconds: float) -> str:
    """Return *seconds* as `12s`, `3m05s` or `2h07m`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    return f"{whole // 3600}h{whole % 3600 // 60:02d}m"
