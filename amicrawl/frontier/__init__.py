"""The frontier: every URL of a crawl, where it stands, and which one comes next; and how it is kept.

    crawl -> DurableFrontier -> LivePartition -> store (journal, snapshots) -> format (files)
                   |-> queue           |-> state: tables, strings, seen-set

The crawl offers the URLs that it finds, takes the next row whose host may be asked now, and settles it
with the outcome of the fetch; `DurableFrontier` says what is promised. Rules that only compute have
modules of their own: `states` and `outcomes` (transitions), `revisits` (when a page is due again),
`admission` (what is kept out). Nothing here reads a clock or sends a request:
moments are parameters, and all changes to the disk go through the `Disk` that is passed in.
"""

from typing import TYPE_CHECKING

from amicrawl.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from amicrawl.frontier.durable import DurableFrontier
    from amicrawl.frontier.live import LivePartition
    from amicrawl.frontier.opening import Opened
    from amicrawl.frontier.outcomes import judge
    from amicrawl.frontier.row import Dispatch, Found, Offer, Outcome, Settled, Source
    from amicrawl.frontier.shard import belongs, shard_of
    from amicrawl.frontier.states import Cause, Event, Status
else:
    __getattr__ = lazy_exports(
        __name__,
        Cause="states",
        Dispatch="row",
        DurableFrontier="durable",
        Event="states",
        Found="row",
        LivePartition="live",
        Offer="row",
        Opened="opening",
        Outcome="row",
        Settled="row",
        Source="row",
        Status="states",
        belongs="shard",
        judge="outcomes",
        shard_of="shard",
    )

__all__ = [
    "Cause",
    "Dispatch",
    "DurableFrontier",
    "Event",
    "Found",
    "LivePartition",
    "Offer",
    "Opened",
    "Outcome",
    "Settled",
    "Source",
    "Status",
    "belongs",
    "judge",
    "shard_of",
]
