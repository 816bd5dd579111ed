"""The frontier: every URL of a crawl, where it stands, and which one comes next.

The crawl offers what it finds, asks for the next row whose host may be asked now, and settles it with
what came of the fetch. What is promised is in `Frontier`; `ResidentFrontier` keeps it in memory.
Nothing here reads a clock or sends anything: moments are handed in.
"""

from amicrawl.frontier.frontier import Frontier
from amicrawl.frontier.judgement import judge
from amicrawl.frontier.resident import ResidentFrontier
from amicrawl.frontier.row import Dispatch, Offer, Outcome, Settled, Source
from amicrawl.frontier.shard import belongs, shard_of
from amicrawl.frontier.states import Event, Status

__all__ = [
    "Dispatch",
    "Event",
    "Frontier",
    "Offer",
    "Outcome",
    "ResidentFrontier",
    "Settled",
    "Source",
    "Status",
    "belongs",
    "judge",
    "shard_of",
]
