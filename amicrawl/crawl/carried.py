"""Words in `Offer.extra` and `Request.meta`: what a URL carries of the pages that led to it."""

from __future__ import annotations

REQUISITE = "amicrawl_requisite"
"""That a page needs this to be shown; as the which in a row."""
SITEMAP = "amicrawl_sitemap"
"""That this is read as a sitemap, whatever its type says; as the which in a row."""
PRIMARY = "amicrawl_primary"
"""The start URL that this comes from, where there is more than one and a pattern asks for it."""
REFERER = "amicrawl_referer"
"""What its request says as `Referer`, where a spider follows links by itself."""
CALLBACK = "amicrawl_callback"
"""By its name, which method of the spider reads the answer; absent for `parse`."""
ERRBACK = "amicrawl_errback"
"""By its name, which method of the spider hears of what goes wrong."""
CB_KWARGS = "amicrawl_cb_kwargs"
"""The arguments of that method besides the answer."""
GROWTH = "amicrawl_growth"
"""How often in a row the query has grown by further arguments from page to page."""
CHAIN = "redirect_times"
"""How many redirects in a row have led here; the word is Scrapy's."""
CARRIED_NUMBERS = frozenset({REQUISITE, SITEMAP, GROWTH, CHAIN})
"""What else of `Offer.extra` a page gives to what it leads to: numbers."""
