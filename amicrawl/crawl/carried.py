"""Words in `Offer.extra` and `Request.meta`: what a URL carries of the pages that led to it."""

from __future__ import annotations

META_JSON = "amicrawl_meta_json"
"""What goes into the `meta_json` column of a request's row; rows of the frontier have a place for it."""
MAX_BODY = "amicrawl_max_body"
"""Bytes of its response's body that are kept, where fewer than the limit are of use."""
REQUISITE = "amicrawl_requisite"
"""That a page needs this to be shown; as the which in a row."""
SITEMAP = "amicrawl_sitemap"
"""That this is read as a sitemap, whatever its type says; as the which in a row."""
PRIMARY = "amicrawl_primary"
"""The start URL that this comes from, where there is more than one and a pattern asks for it."""
GROWTH = "amicrawl_growth"
"""How often in a row the query has grown by further arguments from page to page."""
CHAIN = "redirect_times"
"""How many redirects in a row have led here; the word is Scrapy's."""
CARRIED_NUMBERS = frozenset({REQUISITE, SITEMAP, GROWTH, CHAIN})
"""What else of `Offer.extra` a page gives to what it leads to: numbers."""
