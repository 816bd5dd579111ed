"""The record: captures onto disk, as WARC files and an index that points into them.

    capture, seed -> revisit.decide -> exchange.exchange_records -> warc.gzip_member -> WarcWriter
                  -> captures.row_of -> CapturesJournal -> table.take_in_journals

`Archive` ties these together for one crawl and keeps the order in which they reach the disk; `repair`
repairs what a killed one has left; `CrawlJson` says what a crawl was and which files it left. What is
written is exactly what came over the wire: nothing here rebuilds a message from its parsed fields.
The modules that compute (digests, revisit, warc, exchange, captures) are apart from those that
touch the disk. Nothing here knows of Scrapy, threads or event loops: all of it is for one thread.
"""

from typing import TYPE_CHECKING

from amicrawl.disk import Disk
from amicrawl.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from amicrawl.record.archive import Archive
    from amicrawl.record.captures import validators_of
    from amicrawl.record.crawl_json import CrawlJson
    from amicrawl.record.item import CaptureItem, RecordLocation
    from amicrawl.record.journal import CapturesJournal
    from amicrawl.record.repair import Repaired
    from amicrawl.record.sealed import TABLE_NAME, SealedFile
    from amicrawl.record.stage import WarcStage
    from amicrawl.record.table_reader import CAPTURES
    from amicrawl.record.warc import unix_ms
else:
    __getattr__ = lazy_exports(
        __name__,
        Archive="archive",
        CAPTURES="table_reader",
        CaptureItem="item",
        CapturesJournal="journal",
        CrawlJson="crawl_json",
        RecordLocation="item",
        Repaired="repair",
        SealedFile="sealed",
        TABLE_NAME="sealed",
        WarcStage="stage",
        unix_ms="warc",
        validators_of="captures",
    )

__all__ = [
    "CAPTURES",
    "TABLE_NAME",
    "Archive",
    "CaptureItem",
    "CapturesJournal",
    "CrawlJson",
    "Disk",
    "RecordLocation",
    "Repaired",
    "SealedFile",
    "WarcStage",
    "unix_ms",
    "validators_of",
]
