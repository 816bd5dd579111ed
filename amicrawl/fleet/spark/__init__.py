"""A seed list crawled by a Spark cluster: `amicrawl crawl LIST --engine spark -o s3://bucket/run`.

    seed_partitions  seeds of the list, each to the partition of its host
    leases           which attempt may crawl a partition: the driver says so, for some seconds at a time
    partition        one partition on an executor: a process of the ordinary crawl, in scratch space
    bucket_objects   what is where in the bucket
    driver           rounds of tasks until no link is left; one manifest, one dataset

    round 0     every partition crawls its seeds. A redirect to a host of another one becomes a batch
                in the bucket.
    round N     those for which batches came go on with their frontiers, until there are no more.

A partition is one process of several of a crawl (`crawl/processes/child.py`), whose parent is the task.
What it has is kept in the bucket: sealed WARC files at once, frontier and index as a checkpoint every
few minutes. A task that is tried again, on any machine, goes on from there, once the driver has given it
the lease: an attempt that is lost, copied (speculation) or frozen crawls no more by then.
"""

from typing import TYPE_CHECKING

from amicrawl.lazy_exports import lazy_exports

# mypy: implicit-reexport
if TYPE_CHECKING:
    from amicrawl.fleet.spark.driver import MOST_PARTITIONS, SparkCrawl, crawl_on_spark
else:
    __getattr__, __all__ = lazy_exports(__spec__)
