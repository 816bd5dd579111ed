"""Signals of Scrapy, sent only where a component listens.

Finding out that nothing listens is most of what sending costs: four looks, each of which raises and
catches an exception, and a generator on top. In most crawls no component listens to several signals a
page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydispatch import dispatcher

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

_NOTHING: dict[object, list[object]] = {}


class Signaller:
    """Sends signals in the name of *crawler*."""

    def __init__(self, crawler: Crawler) -> None:
        self._send = crawler.signals.send_catch_log
        # The tables of the dispatcher go by the identity of the sender, and of `Any` for every sender.
        self._senders = (id(crawler.signals.sender), id(dispatcher.Any))

    def is_heard(self, signals: frozenset[object]) -> bool:
        """Tell whether any component listens to one of *signals*."""
        for sender in self._senders:
            listeners = dispatcher.connections.get(sender, _NOTHING)
            if dispatcher.Any in listeners or not signals.isdisjoint(listeners):
                return True
        return False

    def send(self, signal: object, **arguments: Any) -> None:
        """Send *signal* to its listeners, as `SignalManager.send_catch_log` does."""
        for sender in self._senders:
            listeners = dispatcher.connections.get(sender, _NOTHING)
            if signal in listeners or dispatcher.Any in listeners:
                self._send(signal, **arguments)
                return
