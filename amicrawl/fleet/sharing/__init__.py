"""One crawl over many machines: its partitions, who has them, and the links that travel between them.

The hosts of a shared crawl are dealt to partitions, as many as it was made with. A worker takes one
after the other, each with a lease and a fencing token, so a host is contacted by one process only. Links
to hosts of another partition go into an outbox on disk first, then through Redis into the inbox of that
partition, and leave it when they are on disk there. The crawl has ended when no partition has anything
left and no batch is under way.
"""

from typing import TYPE_CHECKING

from amicrawl.lazy_exports import lazy_exports

# mypy: implicit-reexport
if TYPE_CHECKING:
    from amicrawl.fleet.sharing.creation import SeedGiver, begin, keep_starts, seeds_given, starts_of
    from amicrawl.fleet.sharing.record import ShareRecord, checked_name
    from amicrawl.fleet.sharing.share import Share
    from amicrawl.fleet.sharing.worker import ShareWorker, child_command, written_once
else:
    __getattr__, __all__ = lazy_exports(__spec__)
