"""What the parent of several processes prints: progress, summary, and the log lines of its children."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from amicrawl.crawl.processes.specification import BY_PARENT
from amicrawl.crawl.watching.progress import BusyHost, Reports, if_long, longest_waiting
from amicrawl.crawl.watching.screen import Moment, left, retried, unreached

if TYPE_CHECKING:
    from collections.abc import Sequence

    from amicrawl.crawl.processes.specification import Order
    from amicrawl.crawl.state import Tally


class Screen:
    """The progress of all processes in one place, and their log lines above it."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._reports = Reports(sys.stderr, log_format=order.log_format, every=order.progress_every)
        self.every = self._reports.every
        self.shows_hosts = self._reports.on_terminal

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return self._reports.elapsed

    def begin(self) -> None:
        """Print what is crawled, how politely, into what; a report in JSON has no such line."""
        if self._order.start and not self._reports.as_json:
            self._reports.say(self._order.start)

    def say(self, sentence: str) -> None:
        """Print *sentence*, one of the parent's own."""
        self._reports.say({"event": "note", "message": sentence} if self._reports.as_json else sentence)

    def pass_on(self, line: str) -> None:
        """Print *line*, of a log, above the progress."""
        self._reports.say(line)

    def show(self, tally: Tally, facts: Sequence[dict[str, Any]], reason: str) -> None:
        """Show how things stand."""
        if any(facts):
            hosts = [BusyHost(*host) for each in facts for host in each.get("hosts", ())]
            moment = self._moment(tally, facts, reason)
            self._reports.show(tally, moment, longest_waiting(hosts), processes=len(facts))

    def _moment(self, tally: Tally, facts: Sequence[dict[str, Any]], reason: str) -> Moment:
        known = [each for each in facts if each]
        waiting = sum(each["waiting"] for each in known)
        pages_per_second, bytes_per_second = self._reports.rates(tally)
        in_flight = sum(each["in_flight"] for each in known)
        waits = [each["next_in"] for each in known if each["next_in"] is not None]
        return Moment(
            elapsed=self.elapsed,
            total=tally.rows + waiting if tally.seeds_ended else tally.seeds_announced,
            in_flight=in_flight,
            inflight_limit=sum(each["inflight_limit"] for each in known),
            pages_per_second=pages_per_second,
            bytes_per_second=bytes_per_second,
            next_in=None if in_flight else if_long(min(waits, default=None)),
            paused_by=tuple(sorted({name for each in known for name in each["paused"]} - {BY_PARENT})),
            is_stopping=bool(reason) and reason != "finished",
        )

    def end(self, tally: Tally, facts: Sequence[dict[str, Any]], reason: str) -> None:
        """Print the summary."""
        known, where = [each for each in facts if each], str(self._order.directory)
        notes = unreached(tally) if reason == "finished" and tally.reached_nothing else ""
        notes += retried(sum(each["later"] for each in known), where)
        if reason != "finished":
            waiting = sum(each["waiting"] for each in known)
            notes += left(waiting, is_list_unread=not tally.seeds_ended)
        moment = self._moment(tally, facts, reason)
        self._reports.end(tally, moment, reason=reason, notes=notes, directory=where)
