"""JobLog: what a crawl says in the log of its job.

One `download` for every row that was asked for, redirects among them, each under its own URL; one
`ignore` for every URL that a rule kept out, unless such reports are off; lines of text for what matters
to people. A line about a URL has what the index has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from amicrawl.capture import Failure, Truncation

if TYPE_CHECKING:
    from amicrawl.crawl.job.facts import Facts
    from amicrawl.crawl.job.opening import Job
    from amicrawl.crawl.job.orders import Orders
    from amicrawl.crawl.opening import Resumed
    from amicrawl.crawl.run import Run
    from amicrawl.jobs.log_entries import Inbox
    from amicrawl.record import CaptureItem

_BROKEN_OFF = frozenset({Truncation.DISCONNECT, Truncation.TIME, Truncation.UNSPECIFIED})
_RULES = {
    Failure.ROBOTS_DENIED: "[robots.txt]",
    Failure.HOST_SKIPPED: "[host given up]",
    Failure.REFUSED_BY_CRAWL: "[crawl]",
}
_IGNORED = "ignored by "
_DROPS_TOLD_EVERY = 10


class JobLog:
    """Turns what happens in one crawl into log entries."""

    def __init__(self, run: Run, inbox: Inbox, orders: Orders, facts: Facts) -> None:
        self._inbox = inbox
        self._orders = orders
        self._facts = facts
        self._dropped_told = 0
        self._seconds = 0
        if run.following is not None:
            run.following.on_ignored = self._kept_out

    def tell(self, line: str) -> None:
        """Say *line*."""
        self._inbox.tell(line)

    def ended(self, job: Job, *, is_done: bool) -> None:
        """Say that the job is done, where no pipeline will."""
        if job.by_hand and is_done:
            # By these words ArchiveBot's page knows a job that has finished.
            self.tell(f"Finished RsyncUpload for Item {job.ident}")

    def started(self, job: Job, resumed: Resumed, settings: list[str]) -> None:
        """Say how the crawl begins."""
        if job.by_hand:
            # By these words ArchiveBot's page knows a job that runs.
            self.tell(f"Received item {job.ident}, crawled by hand, attempt {job.claim.attempt}")
        if resumed.found:
            self.tell(resumed.sentence())
        if settings:
            self.tell("Settings: " + ", ".join(settings))

    def counted(self, item: CaptureItem) -> None:
        """Tell of a row of the index."""
        capture = item.capture
        if capture.failure is not None and capture.failure.never_asked:
            self._left_out(capture.url, capture.failure, capture.failure_detail)
        elif capture.failure is not None:
            word = f"{capture.failure.value}: {capture.failure_detail}"[:300]
            self._inbox.download(capture.url, 0, word)
        elif capture.truncated in _BROKEN_OFF:
            self._inbox.download(capture.url, capture.status, f"truncated: {capture.truncated}")
        else:
            self._inbox.download(capture.url, capture.status, "OK")

    def every_second(self) -> None:
        """Say now and then how many rows that waited were dropped."""
        self._seconds += 1
        dropped = self._facts.ignored_dropped
        if dropped > self._dropped_told and self._seconds >= _DROPS_TOLD_EVERY:
            self.tell(f"{dropped - self._dropped_told} queued URLs were dropped: ignored by now")
            self._dropped_told, self._seconds = dropped, 0

    def _left_out(self, url: str, failure: Failure, detail: str) -> None:
        pattern = _RULES[failure]
        if failure is Failure.REFUSED_BY_CRAWL and detail.startswith(_IGNORED):
            self._facts.ignored_dropped += 1
            pattern = detail.removeprefix(_IGNORED)
        self._ignored(url, pattern)

    def _kept_out(self, url: str, rule: str) -> None:
        self._ignored(url, rule)

    def _ignored(self, url: str, pattern: str) -> None:
        if not self._orders.suppress_ignore_reports:
            self._inbox.ignore(url, pattern, "accept_url")
