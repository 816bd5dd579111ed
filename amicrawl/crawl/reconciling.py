"""Reconciling: the frontier and the index made to agree after a crawl that was killed.

Each is written in its own time, so either may know of something that the other does not. The index is
right about what was captured, since a row counts only with its record:

    in the index, not settled in the frontier     settled, as the row of the index says
    settled in the frontier, not in the index     due again
    a redirect whose target was never offered     the target is offered

Where callbacks read the pages, none is settled by the index: what a callback had not yielded is in no
file. Such a page is fetched again, and read again.

Only the last rows of the index are looked up, and the rows of the frontier that changed since: its
journal notes how many rows the index had (`frontier.heard`). After a clean end there is nothing to look
at.
"""

from __future__ import annotations

import dataclasses
import logging
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from amicrawl.capture import REDIRECTS, Failure
from amicrawl.crawl.index_rows import index_rows, of_captures, rows_from
from amicrawl.frontier import (
    DurableFrontier,
    Found,
    Hop,
    Offer,
    Outcome,
    Revisits,
    Source,
    extended,
    is_settled_since,
    offer_of,
)
from amicrawl.meguri import WAITING, Status
from amicrawl.politeness import Gates, HostBreaker, InflightLimit, robots_url
from amicrawl.record import stored
from amicrawl.seed import Seed
from amicrawl.urls import Refused, UrlKey, text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from amicrawl.crawl.following import Following
    from amicrawl.meguri import LivePartition

    KeyOf = Callable[[str], UrlKey | Refused]
    Ours = Callable[[int], bool]

logger = logging.getLogger(__name__)

UNREAD_LINKS = b"amicrawl.unread_links"
"""The metadata key of a frontier made from the archive: no crawl has read the links of its pages yet."""
_MS_PER_HOUR = 3_600_000
_MANY = 10_000
"""Rows of the index from which on it is worth a line that they are looked up."""
_SAY_EVERY = 5.0
"""Seconds between two lines of progress."""
_SETTLED = frozenset({Status.CRAWLED, Status.GONE})


class Reconciled(NamedTuple):
    """What had to be done for the frontier and the index to agree."""

    in_flight: int = 0
    """URLs that had been handed out when the crawl before died; they are pending now."""
    settled: int = 0
    """URLs whose captures the frontier did not know."""
    lost: int = 0
    """URLs whose captures never arrived; they are pending again."""
    index_rows: int = 0
    """Rows of the index."""


def reconcile(
    partition: LivePartition,
    directory: Path,
    *,
    lost_urls: list[str],
    rows_added: int,
    key_of: KeyOf,
    ours: Ours,
    following: Following | None,
    reads: bool,
    requested_again: int,
) -> Reconciled:
    """Make *partition* agree with the index in *directory*, before a frontier is built on it.

    *lost_urls* are those whose rows were dropped from the index by its repair, which added *rows_added*
    to it, its last rows. *key_of* gives the key of a URL or a Refused, *ours* tells whether a host key
    belongs to this crawl. Where *following* links, the pages that the frontier does not know are read
    again for theirs. With *reads*, it is callbacks that find them, and such pages are fetched again.
    Failures before *requested_again*, Unix milliseconds, settle nothing: the frontier may have been made
    to request them again since.
    """
    opened = partition.opened
    for note in opened.notes:
        logger.warning("Frontier: %s", note)
    total = index_rows(directory)
    if opened.is_new:
        _say_what_is_unknown(directory, total)
        return Reconciled(index_rows=total)
    known, touched = opened.touched.since(total + len(lost_urls), opened.index_rows)
    # What was dropped stood among the rows that were added. Those before are of earlier crawls, whose
    # captures must not settle what this one was to request again.
    known = max(known - len(lost_urls), min(known, total - rows_added))
    if known >= total and not touched:
        return Reconciled(index_rows=total)
    look = Look(
        partition,
        directory,
        key_of=key_of,
        ours=ours,
        following=following,
        reads=reads,
        requested_again=requested_again,
    )
    look.at(rows_from(directory, known), total=total - known)
    look.follow_revisits()
    lost = look.bring_back_lost(touched, lost_urls)
    if not reads:
        look.offer_targets(touched)
    partition.note_index(total, all_known=True)
    look.frontier.flush()
    return Reconciled(look.frontier.lapsed, look.settled, lost, total)


def _say_what_is_unknown(directory: Path, rows: int) -> None:
    if rows:
        logger.warning(
            "%s holds %s captures and no frontier that knows of them: what is requested is fetched "
            "again. To have it settled by them: amicrawl frontier rebuild %s",
            directory,
            f"{rows:,}",
            directory,
        )


class Look:
    """A look at the rows of the index that the frontier may not know."""

    def __init__(
        self,
        partition: LivePartition,
        directory: Path,
        *,
        key_of: KeyOf,
        ours: Ours,
        following: Following | None = None,
        reads: bool = False,
        requested_again: int = 0,
        is_made_anew: bool = False,
    ) -> None:
        """Take the parameters of `reconcile`.

        *is_made_anew*: nothing of the partition counts before it is whole. What was found is written to
        its journal all along, and nothing can be brought back as lost: the memory is that of a batch.
        """
        self.frontier = DurableFrontier(
            partition, Gates(0, 1), HostBreaker(1, max_retries=0), InflightLimit(1, 1, 1), wall=time.time
        )
        """What takes what was found; nothing of it is requested here."""
        if following is not None:
            following.follow_in(self.frontier, ours=ours)
        self.captured: set[UrlKey] = set()
        """The keys of the rows that were looked at."""
        self.looked_at = 0
        self.settled = 0
        """How many rows the frontier did not know."""
        self._partition = partition
        self._directory = directory
        self._key_of = key_of
        self._ours = ours
        self._following = following
        self._reads = reads
        self._requested_again = requested_again
        self._is_made_anew = is_made_anew
        self._revisits: list[tuple[UrlKey, dict[str, Any]]] = []
        """Captures that stand for an earlier one, and that the frontier did not know."""

    def at(self, batches: Iterable[Any], *, total: int) -> None:
        """Look at the rows of *batches*, *total* in all."""
        hour, said_at = int(time.time() // 3600), time.monotonic()
        if total >= _MANY:
            logger.info("Resuming: %s rows of the index are looked up.", f"{total:,}")
        for whole in batches:
            batch = of_captures(whole)
            urls, moments = batch["url"].to_pylist(), batch["fetched_at"].to_pylist()
            for at, (url, moment) in enumerate(zip(urls, moments, strict=True)):
                key = self._key_of(url)
                if isinstance(key, Refused):
                    continue
                if not self._is_made_anew:
                    self.captured.add(key)
                # A clock may have been ahead: nothing was fetched later than now.
                row_hour = min(moment // _MS_PER_HOUR, hour)
                if not self._reads and not self._is_known(key, url, row_hour):
                    self._take(batch.slice(at, 1).to_pylist()[0], key, row_hour)
            self.looked_at += whole.num_rows
            if self._is_made_anew:
                self.frontier.flush()
            if time.monotonic() - said_at > _SAY_EVERY:
                said_at = time.monotonic()
                logger.info("Resuming: %s of %s rows looked up.", f"{self.looked_at:,}", f"{total:,}")

    def _is_known(self, key: UrlKey, url: str, hour: int) -> bool:
        """Tell cheaply whether the frontier knows the capture of *url* at *hour*."""
        number = self._partition.find(*key)
        if number is None:
            # It has a row in the index, and none in the frontier.
            return url.endswith("/robots.txt") and url == robots_url(url)
        row = self._partition.get(number)
        return row.status not in WAITING and is_settled_since(row, hour)

    def _take(self, row: dict[str, Any], key: UrlKey, hour: int) -> None:
        if row["fetched_at"] < self._requested_again and not 200 <= row["status"] < 400:
            return
        frontier, outcome = self.frontier, _outcome(row)
        if self._partition.find(*key) is None:
            seed = Seed(row["url"], meta_json=row["meta_json"] or "")
            frontier.offer(Offer(seed, key, Source.MANUAL, via=row["via"] or ""))
        if not frontier.settle_found(key, outcome, hour):
            return
        self.settled += 1
        if self._following is not None:
            self._follow_stored(key, self._following, row)
        elif outcome.redirect:
            number = self._partition.find(*key)
            assert number is not None
            self._offer_target(outcome.redirect, 1, number)

    def _follow_stored(self, key: UrlKey, following: Following, row: dict[str, Any]) -> None:
        """Offer what the page at *key* leads to, by its record, or have it fetched again without one."""
        number = self._partition.find(*key)
        assert number is not None
        if row["original_at"] and row["status"] not in REDIRECTS:
            self._revisits.append((key, row))
        elif row["status"] and not _offer_links(self.frontier, number, following, self._directory, row):
            self.frontier.due_again(key, is_lost=True)

    def follow_revisits(self) -> None:
        """Offer what pages lead to whose payload is that of an earlier capture, maybe of another URL.

        Where that is not in the archive any more, they are fetched again.
        """
        following = self._following
        if following is None:
            return
        places = _places(self._directory, {_original_of(row) for _, row in self._revisits})
        for key, row in self._revisits:
            number = self._partition.find(*key)
            assert number is not None
            place = places.get(_original_of(row))
            if place is None or not _offer_links(
                self.frontier, number, following, self._directory, row, place=place
            ):
                self.frontier.due_again(key, is_lost=True)
        self._revisits.clear()

    def bring_back_lost(self, touched: Iterable[int], lost_urls: Iterable[str]) -> int:
        """Have every URL fetched again whose capture is not there; return how many.

        Those are in the rows *touched* of the frontier, or among *lost_urls*.
        """
        frontier, lost = self.frontier, 0
        for number in touched:
            row = self._partition.get(number)
            key = UrlKey(row.host, row.path)
            if row.status in _SETTLED and key not in self.captured:
                lost += frontier.due_again(key, is_lost=True)
        for url in lost_urls:
            wanted = self._key_of(url)
            if isinstance(wanted, Refused) or wanted in self.captured:
                continue
            lost += frontier.due_again(wanted, is_lost=True) or frontier.offer(
                Offer(Seed(url), wanted, Source.MANUAL)
            )
        return lost

    def offer_targets(self, touched: Iterable[int]) -> None:
        """Offer the target of every redirect that was noted in the rows *touched*, unless known."""
        for number in touched:
            row = self._partition.get(number)
            if row.redirect_ref:
                target = text_of(self._partition.texts_at(row.redirect_ref)[0])
                # Where links are followed, a redirect does not count as one.
                self._offer_target(target, row.depth + (self._following is None), number)

    def _offer_target(self, target: str, hops: int, number: int) -> None:
        """Offer the *target* of the redirect that the frontier's row *number* is."""
        key = self._key_of(target)
        if not isinstance(key, Refused) and self._ours(key.host):
            page = offer_of(self._partition, self._partition.get(number), Revisits())
            extra = {"redirect_times": max(hops, 1)}
            route = extended(page.route, Hop.REDIRECT)
            self.frontier.offer(
                Offer(Seed(target), key, Source.REDIRECT, 0, hops, extra, page.seed.url, route)
            )


def read_again(frontier: DurableFrontier, directory: Path, following: Following) -> int:
    """Offer what the archived pages of *frontier* lead to by the rules that hold now; return how many.

    A page whose record is not in *directory* any more keeps the links that it had.
    """
    partition = frontier.partition
    pages = 0
    for batch in rows_from(directory, 0):
        for row in batch.to_pylist():
            if not row["warc_file"] or not following.looks_into(
                row["url"], row["content_type"], row["status"]
            ):
                continue
            key = following.key_of(row["url"])
            number = None if isinstance(key, Refused) else partition.find(*key)
            if number is not None:
                pages += _offer_links(frontier, number, following, directory, row)
        # Killed here, all of it is read again: the policy that requests it is written down behind it.
        frontier.flush()
    return pages


def _offer_links(
    frontier: DurableFrontier,
    number: int,
    following: Following,
    directory: Path,
    row: dict[str, Any],
    *,
    place: tuple[str, int] | None = None,
) -> bool:
    """Offer what the page in the frontier's row *number* leads to; False where its record is missing.

    *place* is where the record of its payload lies, where that is not its own.
    """
    item = stored(directory, *(place or (row["warc_file"], row["warc_offset"])))
    if item is None or (item.is_revisit and row["status"] not in REDIRECTS):
        return False
    item.digest = row["digest"]
    if place is not None:
        # The links of a payload are relative to the URL that it was fetched by.
        item.capture = dataclasses.replace(item.capture, url=row["url"])
    offer = offer_of(frontier.partition, frontier.partition.get(number), Revisits())
    following.hand_over(following.read_now(item, offer))
    return True


def _original_of(row: dict[str, Any]) -> tuple[str, int]:
    """Return the URL and the moment of the capture whose payload that of *row*, a revisit, is."""
    return row["original_url"] or row["url"], row["original_at"]


def _places(directory: Path, wanted: set[tuple[str, int]]) -> dict[tuple[str, int], tuple[str, int]]:
    """Return file and offset of the records of the captures *wanted*, as `_original_of` names them."""
    found: dict[tuple[str, int], tuple[str, int]] = {}
    columns = ("url", "fetched_at", "duration_ms", "original_at", "warc_file", "warc_offset")
    for batch in rows_from(directory, 0, columns) if wanted else ():
        for url, fetched, took, original, file, offset in zip(
            *(batch[name].to_pylist() for name in columns), strict=True
        ):
            capture = url, fetched - (took or 0)
            if capture in wanted and file and not original:
                found[capture] = file, offset
    return found


def _outcome(row: dict[str, Any]) -> Outcome:
    """Return what a row of the index says came of the fetch."""
    if not row["status"]:
        name = row["error"].split(":")[0]
        failure = Failure(name) if name in set(Failure) else Failure.OTHER
        return Outcome(failure=failure)
    leads_on = row["status"] in REDIRECTS and row["final_url"] != row["url"]
    return Outcome(
        status=row["status"],
        redirect=row["final_url"] if leads_on else "",
        found=Found(
            digest=row["digest"],
            etag=row["etag"],
            last_modified=row["last_modified"],
            # The next revisit must refer to the record with the payload, never to another revisit.
            captured_at=(
                row["original_at"] if row["original_url"] else row["fetched_at"] - row["duration_ms"]
            ),
            original_url=row["original_url"] if row["original_url"] != row["url"] else "",
            payload_digest=row["payload_digest"],
            unchanged=row["unchanged"],
        ),
    )
