"""The browser: pages that scripts make, archived byte for byte over the crawl's own wire.

    row -> Visit.show -> document, fetched as ever -> Chromium, whose only way out is the proxy
                                                        |
           records, rows, gates, robots.txt  <-- PageExchanges <-- proxy

`visits` is the seam to the crawl. `pool` has the browser, `page` the life of one page in it, `devtools`
what Playwright has no calls for; these import Playwright, and no other module does. `proxy` and
`authority` are the browser's side of the way out, `archived_responses` what the archive can say in place
of a server, `records` what is kept of a page besides.
"""

from typing import TYPE_CHECKING

from amicrawl.lazy_exports import lazy_exports

# mypy: implicit-reexport
if TYPE_CHECKING:
    from amicrawl.browser.visits import Browsing
else:
    __getattr__, __all__ = lazy_exports(__spec__)
