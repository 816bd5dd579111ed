"""Reading: rows whose answers callbacks are reading, not settled before they are through.

    answered -> its host may be asked again, the row stays in flight  `begin`
    read     -> what the callback asked for is in the frontier; the row is settled  `end`

A crawl that dies in between finds the row in flight, and has its page read again: links that a callback
had not yielded yet would be lost with a row that is done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Container

    from scrapy import Request

    from amicrawl.crawl.visit import Ticket


class Reading:
    """The rows of one run that are being read. Nothing is written here: *settle* does that."""

    def __init__(self, settle: Callable[[Ticket], None]) -> None:
        self._settle = settle
        self._unread: dict[Request, Ticket] = {}

    def begin(self, request: Request, ticket: Ticket) -> None:
        """Note that somebody reads what came of *request*."""
        self._unread[request] = ticket

    def end(self, unfinished: Container[Request] = ()) -> None:
        """Settle the rows of all that were read: those whose requests are not *unfinished*."""
        if not self._unread:
            return
        for request in [each for each in self._unread if each not in unfinished]:
            self._settle(self._unread.pop(request))
