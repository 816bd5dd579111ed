"""What of a row stands in the string arena: what was offered, and what the last capture brought."""

from __future__ import annotations

from email.utils import formatdate
from typing import TYPE_CHECKING

from amicrawl.frontier.annex import found, found_entries, offered
from amicrawl.frontier.arena import entry_of
from amicrawl.frontier.row import Found, Offer, Source
from amicrawl.frontier.validators import hours_of_http_date
from amicrawl.urls import UrlKey, octets

if TYPE_CHECKING:
    from amicrawl.frontier.live import LivePartition
    from amicrawl.frontier.revisits import Revisits
    from amicrawl.frontier.row import Outcome
    from amicrawl.frontier.url_row import UrlRow
    from amicrawl.seed import Seed

_HOUR = 3600
_SOURCES = {int(source): source for source in Source}


def offer_of(partition: LivePartition, row: UrlRow, revisits: Revisits) -> Offer:
    """Return what was offered as *row*; by *revisits*, its seed knows of the last capture."""
    seed, extra = offered(*partition.texts_at(row.url_ref))
    if row.etag_ref:
        last = found(*partition.texts_at(row.etag_ref))
        seed = revisits.seed_with(seed, last if last.last_modified else _dated(row, last))
    elif row.last_modified and row.last_crawled and not seed.last_modified:
        seed = revisits.seed_with(seed, _dated(row, Found()))
    priority = int(row.priority) if row.priority.is_integer() else row.priority
    return Offer(seed, UrlKey(row.host, row.path), _SOURCES[row.source], priority, row.depth, extra)


def _dated(row: UrlRow, last: Found) -> Found:
    """Return *last* with the hour that other software noted in *row* as the date of its `Last-Modified`.

    Rounded up, unless the page may have been changed again within that hour and after its capture.
    """
    if not row.last_modified:
        return last
    hour = row.last_modified + (row.last_modified < row.last_crawled)
    return last._replace(last_modified=formatdate(hour * _HOUR, usegmt=True))


def keep_found(partition: LivePartition, row: UrlRow, known: Seed, outcome: Outcome) -> dict[str, float]:
    """Keep the validators and the redirect of *outcome*, if they are new; return the fields they change.

    *known* is the seed that *row* was handed out with.
    """
    changed: dict[str, float] = {}
    what = outcome.found
    if what is not None and (
        not row.etag_ref
        or (what.digest, what.etag, what.last_modified)
        != (known.digest, known.etag, known.last_modified)
    ):
        changed["etag_ref"] = partition.intern(found_entries(what))
        changed["last_modified"] = hours_of_http_date(what.last_modified)
    if outcome.redirect:
        target = octets(outcome.redirect)
        if not row.redirect_ref or partition.texts_at(row.redirect_ref)[0] != target:
            changed["redirect_ref"] = partition.intern(entry_of(target))
    elif row.redirect_ref:
        changed["redirect_ref"] = 0
    return changed
