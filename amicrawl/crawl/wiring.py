"""Builds the fetcher of a crawl from its configuration."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from amicrawl.fetch import Guard, Limits, Wire

if TYPE_CHECKING:
    from amicrawl.config import CrawlConfig


def make_wire(config: CrawlConfig) -> Wire:
    """Return a fetcher with the caps and the address guard that *config* asks for."""
    limits = Limits(
        connect_timeout=config.connect_timeout,
        timeout=config.timeout,
        min_rate=config.min_rate,
        min_rate_time=config.min_rate_time,
        max_header=config.max_header,
        max_body=config.max_body,
        spool_above=config.spool_above,
        # Beside the output where that exists: the same disk has to hold the record anyway.
        spool_dir=config.directory if config.directory.is_dir() else Path(tempfile.gettempdir()),
    )
    return Wire(limits, guard=Guard(config.allow_private), tls=config.tls)
