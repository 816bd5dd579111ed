"""Discovery: what a page leads to, and which of it a crawl takes. Pure: bytes and URLs in, verdicts out.

* `extract(payload, url=...)`: the links and requisites of a page, resolved (`links.py`).
* `Scope.decide(url, ...)`: whether a URL lies within the bounds of the crawl.
* `IgnoreSet.match(url)`: the ignore expression that keeps it out, of shipped sets and an operator's own.
* `verdict(url)`: whether its shape gives it away as a trap.
* `Selection.judge(url, ...)`: the last three one after the other.

Each of these names the rule that decided. A URL that passes is canonicalised and offered to the
frontier by the caller; what only the frontier can know (counts of a host, payloads met
before, calendars and shops without end) is asked there. To read on, begin with `links.py`.
"""

from amicrawl.discovery.ignores import Ignored, IgnoreSet, set_names
from amicrawl.discovery.kinds import Kind, Link
from amicrawl.discovery.links import Limits, extract, is_read
from amicrawl.discovery.scope import Decision, Scope
from amicrawl.discovery.selection import Selected, Selection
from amicrawl.discovery.shape import Shape, ShapeLimits, verdict

__all__ = [
    "Decision",
    "IgnoreSet",
    "Ignored",
    "Kind",
    "Limits",
    "Link",
    "Scope",
    "Selected",
    "Selection",
    "Shape",
    "ShapeLimits",
    "extract",
    "is_read",
    "set_names",
    "verdict",
]
