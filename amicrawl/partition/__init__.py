"""What the partitions of a crawl send each other: the same, whatever carries it.

    batch      links for another partition, as they are sent
    outbox     links that leave: on disk before the page that gave them is settled
    messages   what a partition and its carrier say to each other, and when all has ended

A link for another partition is in the outbox, until its batch is known to be in the journal of the
other: the batch is `kept` there. So a crash at any point brings it once more, and a frontier knows a
URL that it has. The crawl has ended when every partition is `idle`, with an empty outbox, and no batch
is on its way to one.

    carrier                        batches lie in          who has a partition    says that all has ended
    `crawl/processes`, a socket    the parent's memory     the child of its name  the parent
    `fleet/sharing`, Redis         a stream each           a lease in Redis       a script
    `fleet/spark`, a bucket        an object a round       a lease of the driver  the driver

A task of Spark is the parent of one child, so that the child is the same process in both. The crawl of
one partition is `crawl/partition_member.py`.
"""

from typing import TYPE_CHECKING

from amicrawl.lazy_exports import lazy_exports

# mypy: implicit-reexport
if TYPE_CHECKING:
    from amicrawl.partition.batch import (
        LONGEST_URL,
        MOST_LINKS,
        OpenedBatch,
        PartitionLink,
        batches_of,
        encoded_link,
        links_in,
    )
    from amicrawl.partition.messages import (
        BATCHES_AT_ONCE,
        EVERY,
        LARGEST_MESSAGE,
        Again,
        Arrived,
        Batch,
        End,
        PartitionMessage,
        PartitionRest,
        Pause,
        Standing,
        has_ended,
    )
    from amicrawl.partition.outbox import Outbox, Parcel, is_delivered
else:
    __getattr__, __all__ = lazy_exports(__spec__)
