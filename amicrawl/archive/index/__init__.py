"""The index: archive files read, and what is made of them so that they can be looked up and counted."""

from typing import TYPE_CHECKING

from amicrawl.lazy_exports import lazy_exports

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
    from amicrawl.archive.index.lookup.once import looked_up
    from amicrawl.archive.index.lookup.server import CdxServer
    from amicrawl.archive.index.lookup.source import open_sources
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
    __getattr__ = lazy_exports(
        __name__,
        OFF_BY_DEFAULT="sidecar.findings",
        SHARD_LINES="zipnum.cluster",
        BLOCK_LINES="zipnum.cluster",
        CdxServer="lookup.server",
        looked_up="lookup.once",
        Collected="collection.collecting",
        Description="wacz.package",
        Failed="collection.collecting",
        FileJob="collection.products",
        MARKS="collection.products",
        Merged="merging.merge",
        FileOutcome="collection.file",
        PlacedJob="collection.remote",
        ProductOptions="collection.products",
        Publisher="derivatives.file",
        ReadProgress="collection.file",
        RunState="collection.collecting",
        WrittenCluster="zipnum.writer",
        collect="collection.collecting",
        collect_by="collection.collecting",
        collect_file="collection.file",
        collect_placed="collection.remote",
        installed_detectors="sidecar.detectors",
        jobs_for="collection.products",
        merge="merging.merge",
        merge_on_spark="merging.spark",
        named_apart="collection.products",
        open_sources="lookup.source",
        pages_in_table="wacz.pages",
        write_blocks="zipnum.writer",
        WACZ_SUFFIXES="wacz.package",
        Packed="wacz.package",
        write_wacz="wacz.package",
        write_zipnum="zipnum.writer",
        write_zipnum_on_spark="zipnum.spark",
    )

__all__ = [
    "BLOCK_LINES",
    "MARKS",
    "OFF_BY_DEFAULT",
    "SHARD_LINES",
    "WACZ_SUFFIXES",
    "CdxServer",
    "Collected",
    "Description",
    "Failed",
    "FileJob",
    "FileOutcome",
    "Merged",
    "Packed",
    "PlacedJob",
    "ProductOptions",
    "Publisher",
    "ReadProgress",
    "RunState",
    "WrittenCluster",
    "collect",
    "collect_by",
    "collect_file",
    "collect_placed",
    "installed_detectors",
    "jobs_for",
    "looked_up",
    "merge",
    "merge_on_spark",
    "named_apart",
    "open_sources",
    "pages_in_table",
    "write_blocks",
    "write_wacz",
    "write_zipnum",
    "write_zipnum_on_spark",
]
