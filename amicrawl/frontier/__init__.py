"""The frontier: which URL of a crawl comes next, and what becomes of it.

    crawl -> DurableFrontier -> queue
                                    |-> LivePartition (room `meguri`: rows, strings, journal)

The crawl offers the URLs that it finds, takes the next row whose host may be contacted now, and settles
it with the outcome of the fetch; `DurableFrontier` says what is promised. Rules that only compute have
modules of their own: `outcomes` (transitions), `revisits` (when a page is due again) with `freshness`
(how often it changes), `admission` (what is kept out). Nothing here reads a clock or sends a request:
moments are parameters.
"""

from typing import TYPE_CHECKING

from amicrawl.lazy_exports import lazy_exports

# mypy: implicit-reexport
if TYPE_CHECKING:
    from amicrawl.frontier.admission import Admission, Trap, classify
    from amicrawl.frontier.corrections import failed, grown_old, kept_out, make_due, old_at
    from amicrawl.frontier.durable import DurableFrontier
    from amicrawl.frontier.inventory import is_settled_since
    from amicrawl.frontier.outcomes import (
        SETTLED_COLUMNS,
        Soft404Detector,
        fingerprint_of,
        judge,
        settled_at,
    )
    from amicrawl.frontier.revisits import AgeLimits, Revisits
    from amicrawl.frontier.row import (
        Dispatch,
        Found,
        Hop,
        Offer,
        Outcome,
        Settled,
        Source,
        extended,
        hops_of,
        is_route,
    )
    from amicrawl.frontier.row_strings import offer_of, offered
else:
    __getattr__, __all__ = lazy_exports(__spec__)
