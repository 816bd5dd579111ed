"""The frontier: every URL of a crawl, where it stands, and which one comes next; and how it is kept.

    crawl -> DurableFrontier -> LivePartition -> store (journal, snapshots) -> format (files)
                   |-> queue           |-> state: tables, strings, seen-set

The crawl offers what it finds, asks for the next row whose host may be asked now, and settles it with
what came of the fetch; what is promised is in `Frontier`. Rules that only compute stand by themselves:
`states` and `outcomes` (what leads where), `judgement` (who is to blame), `freshness` and `revisits`
(when again), `admission` and `traps` (what gets in). Nothing here reads a clock or sends anything:
moments are handed in. All changes to the disk go through the `Disk` that is handed in.
"""

from typing import TYPE_CHECKING

from amicrawl.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from amicrawl.frontier.durable import DurableFrontier
    from amicrawl.frontier.frontier import Frontier
    from amicrawl.frontier.judgement import judge
    from amicrawl.frontier.live import LivePartition, Opened
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
        Frontier="frontier",
        LivePartition="live",
        Offer="row",
        Opened="live",
        Outcome="row",
        Settled="row",
        Source="row",
        Status="states",
        belongs="shard",
        judge="judgement",
        shard_of="shard",
    )

__all__ = [
    "Cause",
    "Dispatch",
    "DurableFrontier",
    "Event",
    "Found",
    "Frontier",
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
