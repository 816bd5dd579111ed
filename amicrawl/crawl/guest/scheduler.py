"""Scrapy's scheduler with a `JOBDIR` that survives a kill.

Scrapy writes its queues to disk and names them in a file when the crawl ends; one that is killed leaves
that file unwritten, and what was in flight is in no queue. So each request that Scrapy can write to disk
is also in a journal, from the moment it is enqueued until the callback of its response is through, and
what that yielded is in the journal, too. The next crawl takes the queues as they are where the last one
ended in order, and else makes them anew from the journal. A directory that cannot be written to ends the
crawl, with the journal as it was when it could: a request that was lost since was yielded by one that is
still in it.
"""

from __future__ import annotations

import asyncio
import logging
import pickle
import shutil
import sqlite3
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy.core.scheduler import Scheduler
from scrapy.dupefilters import RFPDupeFilter
from scrapy.utils.job import job_dir
from scrapy.utils.request import request_from_dict

from amicrawl.crawl.internals import requests_in_progress
from amicrawl.crawl.run import run_of
from amicrawl.errors import InputError, OutputError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

    from scrapy import Request
    from scrapy.spiders import Spider
    from twisted.internet.defer import Deferred

logger = logging.getLogger(__name__)

_JOURNAL = "requests.sqlite"
_NUMBER = "_amicrawl_number"
"""The key in `meta` under which a request in a queue on disk knows its place in the journal."""
_WRITE_EVERY = 0.05


class KeptScheduler(Scheduler):
    """Keeps Scrapy's queues, order, duplicate filter and statistics; adds the journal."""

    def open(self, spider: Spider) -> Deferred[None] | None:
        """Open the queues, or make them anew from the journal where the last crawl was killed."""
        directory = job_dir(self._crawler.settings)
        assert directory is not None
        assert self.dqdir is not None
        self._has_failed = False
        """Whether the directory could not be read or written to; it is left as it is from then on."""
        self._journal = self._journal_at(Path(directory) / _JOURNAL)
        self._taken: dict[Request, int] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._held_back: _HeldBack | None = None
        """The file of the duplicate filter, where that has one."""
        if self._journal.state is JournalState.OPEN:
            shutil.rmtree(self.dqdir)
            Path(self.dqdir).mkdir()
        opened = super().open(spider)
        if isinstance(self.df, RFPDupeFilter) and self.df.file is not None:
            self._held_back = _HeldBack(self.df.file)
            self.df.file = self._held_back  # type: ignore[assignment]
        if self._journal.state is JournalState.OPEN:
            self._restore()
        elif self._journal.state is JournalState.NEW and not self._has_failed:
            self._take_over()
        self._write()
        return opened

    def close(self, reason: str) -> Deferred[None] | None:
        """Close the queues; the journal then says the same."""
        if self._timer is not None:
            self._timer.cancel()
        self._forget_what_is_through()
        try:
            # Before the fingerprints of what is in it.
            if not self._has_failed:
                self._journal.write()
            closed = super().close(reason)
        except (OSError, sqlite3.Error) as error:
            self._fail(error)
            closed = None
        self._journal.close(in_order=not self._has_failed)
        return closed

    def enqueue_request(self, request: Request) -> bool:
        """Enqueue as Scrapy does."""
        # One that a spider made of the meta of another has that one's number.
        request.meta.pop(_NUMBER, None)
        return super().enqueue_request(request)

    def next_request(self) -> Request | None:
        """Return the next request as Scrapy does."""
        self._forget_what_is_through()
        try:
            request = None if self._has_failed else super().next_request()
        except OSError as error:
            self._fail(error)
            return None
        if request is not None and (number := request.meta.pop(_NUMBER, None)) is not None:
            self._taken[request] = number
        return request

    def _dqpush(self, request: Request) -> bool:
        """Write *request* to its queue and to the journal; False where it cannot be written."""
        request.meta[_NUMBER] = self._journal.next_number
        try:
            is_written = not self._has_failed and super()._dqpush(request)
        except OSError as error:
            self._fail(error)
            is_written = False
        finally:
            del request.meta[_NUMBER]
        if is_written:
            self._journal.add(request, self.spider)
        return is_written

    def _journal_at(self, path: Path) -> RequestJournal:
        """Open the journal *path*; where it is none, end the crawl before its first request."""
        try:
            return RequestJournal(path)
        except (sqlite3.Error, ValueError) as error:
            self._has_failed = True
            run_of(self._crawler).fail(
                InputError(
                    f"{path} cannot be read: {error}. Move it away to go on from Scrapy's own queues, "
                    "of which a kill leaves nothing, or start with another JOBDIR."
                )
            )
            return RequestJournal(":memory:")

    def _restore(self) -> None:
        """Put what is in the journal back into the queues, under its number there."""
        assert self.dqs is not None
        for number, written in self._journal:
            try:
                # As Scrapy does: who can write into a `JOBDIR` can have its crawls run any code.
                request = request_from_dict(pickle.loads(written), spider=self.spider)  # noqa: S301
            except Exception as error:  # noqa: BLE001  # what is in `meta` is made by code of the project
                logger.warning("A request of the crawl before cannot be made again: %r", error)
                self._journal.remove(number)
                continue
            if not request.dont_filter:
                self.df.request_seen(request)
            request.meta[_NUMBER] = number
            self.dqs.push(request)
        if len(self.dqs):
            logger.info("Resuming a crawl that was killed: %d requests were left.", len(self.dqs))

    def _take_over(self) -> None:
        """Write what Scrapy's queues hold of a crawl without the add-on into the journal."""
        assert self.dqs is not None
        for request in reversed(list(iter(self.dqs.pop, None))):
            self._dqpush(request)

    def _forget_what_is_through(self) -> None:
        """Take out of the journal what is not in progress any more.

        Scrapy does not say when a callback is through. It takes the next request right after.
        """
        if self._taken:
            progress = requests_in_progress(self._crawler)
            for request in [each for each in self._taken if each not in progress]:
                self._journal.remove(self._taken.pop(request))

    def _write(self) -> None:
        """Have the journal on disk, and then the fingerprints of what is in it."""
        if self._has_failed:
            return
        self._timer = asyncio.get_running_loop().call_later(_WRITE_EVERY, self._write)
        try:
            self._journal.write()
            if self._held_back is not None:
                self._held_back.flush()
        except (OSError, sqlite3.Error) as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        """End the crawl for *error*, with which something could not be written to the directory."""
        self._has_failed = True
        if self._held_back is not None:
            self._held_back.give_up()
        run_of(self._crawler).fail(
            OutputError(
                f"{job_dir(self._crawler.settings)} (JOBDIR) cannot be written to: {error}. Free disk "
                "space, or repair the disk, then run the same command again: it resumes."
            )
        )

    @property
    def _crawler(self) -> Any:
        assert self.crawler is not None
        return self.crawler


class JournalState(IntEnum):
    """How a crawl left its journal."""

    NEW = 0
    OPEN = 1
    CLOSED = 2


class RequestJournal:
    """Requests that are not done, by number, in a database that a kill leaves whole."""

    def __init__(self, path: Path | str) -> None:
        """Open the database at *path*; raises sqlite3.Error or ValueError where it cannot be read."""
        self._database = sqlite3.connect(path, isolation_level=None)
        self._database.executescript(
            "PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF;"
            "CREATE TABLE IF NOT EXISTS requests (number INTEGER PRIMARY KEY, request BLOB NOT NULL)"
        )
        (state,) = self._database.execute("PRAGMA user_version").fetchone()
        if state == JournalState.OPEN:
            # Before anything is taken from it: what is damaged in the middle shows itself only there.
            (found,) = self._database.execute("PRAGMA quick_check(1)").fetchone()
            if found != "ok":
                raise ValueError("the database is damaged")
        self.state = JournalState(state)
        """How the crawl before left it."""
        self._database.execute(f"PRAGMA user_version={JournalState.OPEN:d}")
        (last,) = self._database.execute("SELECT max(number) FROM requests").fetchone()
        self.next_number = (last or 0) + 1
        self._added: dict[int, bytes] = {}
        self._removed: list[int] = []

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        """Yield the number and the pickled words of what is left of the crawl before, oldest first."""
        yield from self._database.execute("SELECT number, request FROM requests ORDER BY number")

    def add(self, request: Request, spider: Spider) -> None:
        """Add *request*, which Scrapy has found to be one that can be written."""
        self._added[self.next_number] = pickle.dumps(request.to_dict(spider=spider), protocol=4)
        self.next_number += 1

    def remove(self, number: int) -> None:
        """Remove the request of that *number*, which is done."""
        if self._added.pop(number, None) is None:
            self._removed.append(number)

    def write(self) -> None:
        """Hand what was added and removed to the system, in one transaction."""
        if not self._added and not self._removed:
            return
        self._database.execute("BEGIN")
        self._database.executemany("INSERT INTO requests VALUES (?, ?)", self._added.items())
        self._database.executemany(
            "DELETE FROM requests WHERE number = ?", ((number,) for number in self._removed)
        )
        self._database.execute("COMMIT")
        self._added.clear()
        self._removed.clear()

    def close(self, *, in_order: bool) -> None:
        """Write down that the crawl ended *in_order*, if it did."""
        if in_order:
            self._database.execute(f"PRAGMA user_version={JournalState.CLOSED:d}")
        self._database.close()


class _HeldBack:
    """The file of a duplicate filter, written when `flush` says so and not before.

    A fingerprint that is on disk before its request would keep that from ever being requested.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._held: list[bytes] = []
        self._is_given_up = False

    def write(self, data: bytes) -> None:
        """Hold *data* back."""
        if not self._is_given_up:
            self._held.append(data)

    def give_up(self) -> None:
        """Write nothing more: what was held back is of requests that are in no journal."""
        self._held = []
        self._is_given_up = True

    def flush(self) -> None:
        """Write what was held back."""
        if self._held:
            self._file.write(b"".join(self._held))
            self._held.clear()
            self._file.flush()

    def close(self) -> None:
        """Write what was held back, and close the file."""
        self.flush()
        self._file.close()
