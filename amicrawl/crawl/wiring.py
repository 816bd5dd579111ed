"""Builds what a crawl fetches with from its configuration."""

from __future__ import annotations

import resource
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from amicrawl.fetch import Guard, Limits, Wire
from amicrawl.fetch.resolver import Resolver
from amicrawl.fetch.second_opinion import SecondOpinion, servers_of

if TYPE_CHECKING:
    from amicrawl.config import CrawlConfig, TlsPolicy
    from amicrawl.fetch.tls import TlsSettings
    from amicrawl.politeness.timeouts import AdaptiveTimeout

_OTHER_FILES = 256


def make_resolver(config: CrawlConfig) -> Resolver:
    """Return what looks names up, and asks twice before it says that one is missing.

    Raises UsageError where *config* names name servers that are no addresses.
    """
    return Resolver(second=SecondOpinion(servers_of(config.dns_servers)))


def make_wire(
    config: CrawlConfig, *, resolver: Resolver, patience: AdaptiveTimeout | None = None
) -> Wire:
    """Return a fetcher with the caps and the address guard that *config* asks for.

    *patience* says how soon an answer has to begin; None: at any time before the exchange must end.
    """
    _allow_open_files(2 * config.inflight_max + _OTHER_FILES)
    limits = Limits(
        connect_timeout=config.connect_timeout,
        timeout=config.timeout,
        min_rate=config.min_rate,
        min_rate_time=config.min_rate_time,
        max_header=config.max_header,
        max_body=config.max_body,
        spool_above=config.spool_above,
        spool_dir=_spool_directory(config),
    )
    return Wire(
        limits,
        guard=Guard(config.allow_private),
        tls=config.tls,
        resolver=resolver,
        patience=patience,
    )


def make_guest_wire(
    config: CrawlConfig, *, at_once: int, tls: TlsPolicy, tls_settings: TlsSettings, resolver: Resolver
) -> Wire:
    """Return a fetcher for a guest with *at_once* requests in flight: guarded, without our caps."""
    _allow_open_files(2 * at_once + _OTHER_FILES)
    limits = Limits(
        connect_timeout=config.connect_timeout,
        min_rate=0,
        max_header=config.max_header,
        spool_above=config.spool_above,
        spool_dir=_spool_directory(config),
    )
    return Wire(
        limits,
        guard=Guard(config.allow_private),
        tls=tls,
        tls_settings=tls_settings,
        resolver=resolver,
    )


def _spool_directory(config: CrawlConfig) -> Path:
    # Beside the output where that exists: the same disk has to hold the record anyway.
    return config.directory if config.directory.is_dir() else Path(tempfile.gettempdir())


def _allow_open_files(count: int) -> None:
    """Let the process hold *count* files and connections, as far as the system permits it.

    1,024 is what a shell gives, and fewer than the connections that a broad crawl has open.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count if hard == resource.RLIM_INFINITY else min(count, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
