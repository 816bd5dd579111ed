"""The seed list of the demo site: its pages, and one seed for each of its oddities."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_FROM_SITEMAP = (
    "",
    "keepers/",
    "keepers/ingrid-aas.html",
    "keepers/tomas-veld.html",
    "keepers/the-cat.html",
    "logs/1879-visitor.html",
    "logs/1881-november.html",
    "logs/1882-march.html",
    "logs/1890-june.html",
    "lamp.html",
    "tides.html",
    "glossary.html",
)
_FROM_PAGES = (
    "style.css",
    "lamp.svg",
    "tides.png",
    "feed.xml",
    "almanac.html",
    "guest-book.html",
    "fog.html",
    "lamp-room",
    "lost-volume.html",
    "storm.html",
    "torn-page.html",
    "wreck.html",
    "private/letters.html",
)


def seed_lines(base: str) -> Iterator[str]:
    """Yield the seeds of the site at *base* as lines of a JSON Lines file."""
    yield _line(base, "sitemap.xml")
    for path in _FROM_SITEMAP:
        yield _line(base, path, source="sitemap", depth=path.count("/"))
    for path in _FROM_PAGES:
        yield _line(base, path, source="link", depth=path.count("/") + 1)


def _line(base: str, path: str, **meta: str | int) -> str:
    return json.dumps({"url": base + path, **meta}) + "\n"
