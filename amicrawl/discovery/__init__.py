"""Discovery: what a page leads to, and which of it a crawl takes. Pure: bytes and URLs in, verdicts out.

* `extract(payload, url=...)`: the links and requisites of a page, resolved (`links.py`).
* `Scope.decide(url, ...)`: whether a URL lies within the bounds of the crawl.
* `IgnoreSet.match(url)`: the ignore expression that keeps it out, of shipped sets and an operator's own.
* `verdict(url)`: whether its shape gives it away as a trap.
* `Selection.judge(url, ...)`: the last three one after the other.

Each of these names the rule that decided. A URL that passes is canonicalised and offered to the
frontier by the caller; what only the frontier can know (counts of a host, payloads met
before, calendars and shops without end) is checked there. To read on, begin with `links.py`.
"""

from typing import TYPE_CHECKING

from amicrawl.lazy_exports import lazy_exports

# mypy: implicit-reexport
if TYPE_CHECKING:
    from amicrawl.discovery.coding import charset_of, decoded
    from amicrawl.discovery.dates import Calendars, DatedUrl, date_in
    from amicrawl.discovery.ignores import Ignored, IgnoreSet, ignore_set, set_names
    from amicrawl.discovery.kinds import Kind, Link
    from amicrawl.discovery.links import LinkLimits, extract, links_of, names_links
    from amicrawl.discovery.markup import in_attribute, in_text
    from amicrawl.discovery.scope import Scope, ScopeDecision
    from amicrawl.discovery.scripted import is_shell, is_shell_with, words_of
    from amicrawl.discovery.selection import (
        Selection,
        Shape,
        ShapeLimits,
        has_scope,
        make_selection,
        verdict,
    )
else:
    __getattr__, __all__ = lazy_exports(__spec__)
