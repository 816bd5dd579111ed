"""One partition of a crawl, and what it says to the others: the same, whatever carries it.

    batch      links for another partition, as they are sent
    outbox     links that leave: on disk before the page that gave them is settled
    links      what is offered leaves by the outbox, or enters the frontier
    messages   what a partition and its carrier say to each other
    member     the crawl of a partition: says how it stands, takes batches, stays open for more

A link for another partition is in the outbox, until its batch is known to be in the journal of the
other: the batch is `kept` there. So a crash at any point brings it once more, and a frontier knows a
URL that it has. The crawl has ended when every partition is `idle`, with an empty outbox, and no batch
is on its way to one.

    carrier                        batches lie in          who has a partition    says that all has ended
    `crawl/processes`, a socket    the parent's memory     the child of its name  the parent
    `fleet/sharing`, Redis         a stream each           a lease in Redis       a script
    `fleet/spark`, a bucket        an object a round       a lease of the driver  the driver

A task of Spark is the parent of one child, so that the child is the same process in both.
"""
