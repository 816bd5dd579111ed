"""Soft 404s: error pages that a server sends with status 200.

A host that returns the same payload for many URLs returns its template for missing pages. The first few
count as captures; from then on the payload is known, whatever the URL.

What is gathered lives in memory only and is bounded: of the payloads of which fewer have been seen, and
of the templates, those met longest ago are forgotten first, and would have to be learned again.
"""

from __future__ import annotations

from collections import OrderedDict
from struct import Struct
from typing import TYPE_CHECKING

from amicrawl.frontier.revisits import fingerprint_of
from amicrawl.frontier.states import Event
from amicrawl.frontier.tally import DistinctTally

if TYPE_CHECKING:
    from amicrawl.frontier.row import Outcome
    from amicrawl.frontier.url_row import UrlRow

_pack = Struct("<QQ").pack


class Soft404Detector:
    """Payloads by host, and which of them are templates.

    *limit* bounds either kind; with both full it takes some 370 bytes for each: 24 MB by default.
    """

    THRESHOLD = 8
    """URLs of one host that show one payload before it counts as a template."""
    LIMIT = 65_536

    __slots__ = ("_limit", "_tally", "_templates")

    def __init__(self, *, threshold: int = THRESHOLD, limit: int = LIMIT) -> None:
        self._tally = DistinctTally(threshold, limit=limit)
        self._templates: OrderedDict[bytes, None] = OrderedDict()
        self._limit = limit

    def observe(self, host: int, content_fp: int, *, path: int) -> bool:
        """Note that the URL keyed (*host*, *path*) shows *content_fp*; return whether it is a template.

        A fingerprint of 0 stands for no payload, which is not a template.
        """
        if not content_fp:
            return False
        subject = _pack(host, content_fp)
        if subject in self._templates:
            self._templates.move_to_end(subject)
            return True
        if not self._tally.add(subject, path):
            return False
        self._templates[subject] = None
        if len(self._templates) > self._limit:
            self._templates.popitem(last=False)
        return True

    def is_error_page(self, row: UrlRow, event: Event, outcome: Outcome) -> bool:
        """Return whether *outcome*, which *event* says was a capture of *row*, in flight, is a soft 404.

        A row that was one stays one while its payload is the same, even if the template is forgotten. A
        redirect is never one, whatever its body.
        """
        if event is not Event.CAPTURED and event is not Event.UNCHANGED:
            return False
        content_fp = fingerprint_of(outcome.found.digest if outcome.found is not None else "")
        if not content_fp and event is Event.UNCHANGED:
            content_fp = row.content_fp
        # Nothing else leaves a row with an answer that is fine and with visits that came to nothing.
        was = row.retry_count > 0 and (200 <= row.http_status <= 299 or row.http_status == 304)
        is_same = was and content_fp == row.content_fp
        return self.observe(row.host, content_fp, path=row.path) or is_same
