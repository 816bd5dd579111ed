"""The index: archive files read, and what is made of them so that they can be looked up and counted."""

from typing import TYPE_CHECKING

from amicrawl.lazy_exports import lazy_exports

# mypy: implicit-reexport
if TYPE_CHECKING:
    from amicrawl.archive.index.collection.collecting import (
        Collected,
        Failed,
        RunState,
        collect,
        collect_by,
    )
    from amicrawl.archive.index.collection.file import FileOutcome, ReadProgress, collect_file
    from amicrawl.archive.index.collection.products import (
        MARKS,
        FileJob,
        ProductOptions,
        jobs_for,
        named_apart,
    )
    from amicrawl.archive.index.collection.remote import (
        PlacedJob,
        collect_placed,
    )
    from amicrawl.archive.index.derivatives.file import Publisher
    from amicrawl.archive.index.lookup.server import CdxServer
    from amicrawl.archive.index.lookup.source import looked_up, open_sources
    from amicrawl.archive.index.merging.merge import Merged, merge
    from amicrawl.archive.index.merging.spark import merge_on_spark
    from amicrawl.archive.index.sidecar.detectors import installed_detectors
    from amicrawl.archive.index.sidecar.findings import OFF_BY_DEFAULT
    from amicrawl.archive.index.wacz.package import WACZ_SUFFIXES, Description, Packed, write_wacz
    from amicrawl.archive.index.wacz.pages import pages_in_table
    from amicrawl.archive.index.zipnum.cluster import BLOCK_LINES, SHARD_LINES
    from amicrawl.archive.index.zipnum.spark import write_zipnum_on_spark
    from amicrawl.archive.index.zipnum.writer import WrittenCluster, write_blocks, write_zipnum
else:
    __getattr__, __all__ = lazy_exports(__spec__)
