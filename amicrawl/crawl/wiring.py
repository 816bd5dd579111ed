"""Builds what a crawl fetches with from its configuration."""

from __future__ import annotations

import resource
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amicrawl.fetch import Guard, Limits, Wire

if TYPE_CHECKING:
    from collections.abc import Callable

    from amicrawl.config import CrawlConfig, TlsPolicy
    from amicrawl.fetch import Resolver, TlsSettings
    from amicrawl.politeness import AdaptiveTimeout

_OTHER_FILES = 256
_OWN_FILES, _LEAST_AT_ONCE = 40, 4
_KEPT = 8192
"""Idle connections that are kept at most; on wide lists a host's next page is due seconds later."""


def most_at_once(wanted: int) -> int:
    """Return how many of the *wanted* requests can be in flight with the descriptors of this process.

    The soft limit is raised to the hard one where needed (`_kept_connections`). Files of the crawl and
    idle connections have their part of what there is.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY:
        return wanted
    return min(wanted, max(_LEAST_AT_ONCE, hard - hard // 4 - _OWN_FILES))


def make_resolver(config: CrawlConfig) -> Resolver:
    """Return what looks names up."""
    # c-ares is loaded by what fetches, and not by each command that knows the configuration.
    from amicrawl.fetch import name_servers  # noqa: PLC0415

    return name_servers.make_resolver(config.dns_servers)


def make_wire(
    config: CrawlConfig,
    *,
    resolver: Resolver,
    patience: AdaptiveTimeout | None = None,
    on_lag: Callable[[float], None] | None = None,
) -> Wire:
    """Return a fetcher with the caps and the address guard that *config* requests.

    *patience* gives the seconds within which the first byte must arrive; None: at any time until the
    exchange must end.
    *on_lag* is called with the seconds by which the event loop is late.
    """
    limits = _limits(
        config,
        timeout=config.timeout,
        min_rate=config.min_rate,
        min_rate_time=config.min_rate_time,
        max_body=config.max_body,
    )
    return Wire(
        limits,
        guard=Guard(config.allow_private),
        tls=config.tls,
        resolver=resolver,
        patience=patience,
        keep=_kept_connections(config.inflight_max),
        on_lag=on_lag,
    )


def make_guest_wire(
    config: CrawlConfig, *, at_once: int, tls: TlsPolicy, tls_settings: TlsSettings, resolver: Resolver
) -> Wire:
    """Return a fetcher for a guest with *at_once* requests in flight: guarded, without our caps."""
    return Wire(
        _limits(config, min_rate=0),
        guard=Guard(config.allow_private),
        tls=tls,
        tls_settings=tls_settings,
        resolver=resolver,
        keep=_kept_connections(at_once),
    )


def _limits(config: CrawlConfig, **more: Any) -> Limits:
    """Return the limits of every crawl, and *more*."""
    # Bodies are spooled beside the output where that exists: its disk has to hold the record anyway.
    directory = config.directory
    return Limits(
        connect_timeout=config.connect_timeout,
        max_header=config.max_header,
        spool_above=config.spool_above,
        spool_dir=directory if directory.is_dir() else Path(tempfile.gettempdir()),
        **more,
    )


def _kept_connections(at_once: int) -> int:
    """Return how many idle connections can be kept beside *at_once* exchanges.

    The process is let hold as many files and connections as that takes, as far as the system permits it:
    1,024 is what a shell gives, and fewer than the connections that a broad crawl has open.
    """
    in_use = 2 * at_once + _OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = in_use + _KEPT if hard == resource.RLIM_INFINITY else min(in_use + _KEPT, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    if soft == resource.RLIM_INFINITY:
        return _KEPT
    return max(1, min(_KEPT, soft - in_use), min(_KEPT, soft // 8))
