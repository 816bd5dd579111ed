"""Host names are looked up as the project has it: by the resolver that Scrapy put on its reactor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy.utils.reactor import is_reactor_installed
from twisted.internet.interfaces import IResolutionReceiver
from zope.interface import implementer

from amicrawl.capture import Failure
from amicrawl.crawl.wiring import make_resolver
from amicrawl.fetch.name_servers import SYSTEM
from amicrawl.fetch.resolver import Resolver, Unresolved

if TYPE_CHECKING:
    from amicrawl.config import CrawlConfig
    from amicrawl.fetch.resolver import Done

# Twisted's resolvers give no reason.
_NOTHING = Unresolved(Failure.NAME_LOOKUP_FAILED, "The look-up of the name found no address.")


def guest_resolver(config: CrawlConfig) -> Resolver:
    """Return what looks names up for a guest: name servers only where *config* names them."""
    if config.dns_servers:
        return make_resolver(config)
    if is_reactor_installed():
        return Resolver(ReactorNames())
    return make_resolver(config.model_copy(update={"dns_servers": (SYSTEM,)}))


class ReactorNames:
    """A source of addresses: the reactor's, which follows `TWISTED_DNS_RESOLVER` and `DNS_TIMEOUT`."""

    def look_up(self, host: str, done: Done) -> None:
        """Have the reactor look *host* up."""
        from twisted.internet import reactor  # noqa: PLC0415  # importing it installs one

        receiver = _Receiver(done)
        reactor.nameResolver.resolveHostName(receiver, host)

    def close(self) -> None:
        """Leave the reactor as it is."""


@implementer(IResolutionReceiver)
class _Receiver:
    """Collects the addresses of one name. Nothing is kept of them here: Scrapy has a cache."""

    def __init__(self, done: Done) -> None:
        self._done = done
        self._found: list[str] = []

    def resolutionBegan(self, resolution: Any) -> None:  # noqa: N802  # Twisted's interface
        """Take no interest in cancelling."""

    def addressResolved(self, address: Any) -> None:  # noqa: N802
        """Take one more address."""
        self._found.append(str(address.host))

    def resolutionComplete(self) -> None:  # noqa: N802
        """Hand on what was found."""
        self._done(tuple(dict.fromkeys(self._found)) or _NOTHING, 0.0)
