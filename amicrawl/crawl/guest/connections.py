"""Connections of guests: host names by the resolver that Scrapy put on its reactor, TLS by its settings.

A setting that our handler cannot follow is refused.
"""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy.utils.reactor import is_reactor_installed
from twisted.internet.interfaces import IResolutionReceiver
from zope.interface import implementer

from amicrawl.capture import Failure
from amicrawl.config import SYSTEM, TlsPolicy
from amicrawl.crawl.wiring import make_resolver
from amicrawl.errors import UsageError
from amicrawl.fetch import Resolver, Unresolved

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from amicrawl.capture import Tls
    from amicrawl.config import CrawlConfig
    from amicrawl.fetch import TlsSettings
    from amicrawl.fetch.resolver import Done

logger = logging.getLogger(__name__)

_VERSIONS = ("TLSv1.0", "TLSv1.1", "TLSv1.2", "TLSv1.3")
_FACTORY = "DOWNLOADER_CLIENTCONTEXTFACTORY"
_VERIFYING = "scrapy.core.downloader.contextfactory.BrowserLikeContextFactory"
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

        receiver = _AddressCollector(done)
        reactor.nameResolver.resolveHostName(receiver, host)

    def close(self) -> None:
        """Leave the reactor as it is."""


@implementer(IResolutionReceiver)
class _AddressCollector:
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


def policy_of(settings: BaseSettings) -> TlsPolicy:
    """Return what becomes of an untrusted certificate; raises UsageError for a foreign factory."""
    factory = settings.get(_FACTORY)
    if settings.getbool("DOWNLOAD_VERIFY_CERTIFICATES") or factory == _VERIFYING:
        return TlsPolicy.VERIFY
    if factory and (settings.getpriority(_FACTORY) or 0) > 0:
        raise UsageError(
            f"{_FACTORY} is {factory!r}, which makes connections of Twisted's, and the add-on makes its "
            "own. Leave it out; DOWNLOAD_VERIFY_CERTIFICATES, DOWNLOAD_TLS_MIN_VERSION, _MAX_VERSION "
            "and DOWNLOADER_CLIENT_TLS_CIPHERS are followed."
        )
    return TlsPolicy.RECORD


def tls_settings_of(settings: BaseSettings) -> TlsSettings:
    """Return what is offered to servers; raises ValueError for an unknown version, as Scrapy does."""
    from amicrawl.fetch import TlsSettings  # noqa: PLC0415  # OpenSSL takes long to load

    minimum = _version(settings, "DOWNLOAD_TLS_MIN_VERSION")
    maximum = _version(settings, "DOWNLOAD_TLS_MAX_VERSION")
    method = settings["DOWNLOADER_CLIENT_TLS_METHOD"]
    if minimum is None and maximum is None and method in _VERSIONS:
        minimum = maximum = method
    ciphers = settings["DOWNLOADER_CLIENT_TLS_CIPHERS"] or "DEFAULT"
    return TlsSettings(ciphers=ciphers, minimum=minimum, maximum=maximum, key_log=_key_log())


def _key_log() -> Path | None:
    """Return the file that the environment names for session keys, if it can be written."""
    name = "" if sys.flags.ignore_environment else os.environ.get("SSLKEYLOGFILE", "")
    if not name:
        return None
    try:
        with Path(name).open("ab"):
            return Path(name)
    except OSError as error:
        logger.warning("Cannot write TLS session keys to %s: %s", name, error)
        return None


def say_how(host: str, tls: Tls) -> None:
    """Log how the connection to *host* is secured."""
    version = tls.version.replace("tls/", "TLSv")
    logger.debug("SSL connection to %s using protocol %s, cipher %s", host, version, tls.cipher)


def _version(settings: BaseSettings, name: str) -> str | None:
    version: str | None = settings[name]
    if version is not None and version not in _VERSIONS:
        raise ValueError(f"Unknown {name} value: {version}")
    return version
