"""The record: captures onto disk, as WARC files and an index that points into them.

    capture, seed -> revisit.decide -> warc.exchange_records, gzip_member -> WarcWriter
                  -> captures.row_of -> CapturesJournal -> table.take_in_journals

`Archive` ties these together for one crawl and keeps the order in which they reach the disk; `repair`
repairs what a killed one has left; `CrawlJson` says what a crawl was and which files it left. What is
written is exactly what came over the wire: nothing here rebuilds a message from its parsed fields.
The modules that compute (digests, revisit, warc, captures) are apart from those that
touch the disk. Nothing here knows of Scrapy, threads or event loops: all of it is for one thread.
"""

from typing import TYPE_CHECKING

from amicrawl.disk import Disk
from amicrawl.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from amicrawl.record.archive import Archive, WarcStage
    from amicrawl.record.captures import CaptureItem, validators_of
    from amicrawl.record.crawl_json import CrawlJson
    from amicrawl.record.files import TABLE_NAME, SealedFile
    from amicrawl.record.journal import CapturesJournal
    from amicrawl.record.repair import Repaired
    from amicrawl.record.table import CAPTURES
    from amicrawl.record.warc import unix_ms
    from amicrawl.record.writer import RecordLocation
else:
    __getattr__ = lazy_exports(
        __name__,
        Archive="archive",
        CAPTURES="table",
        CaptureItem="captures",
        CapturesJournal="journal",
        CrawlJson="crawl_json",
        RecordLocation="writer",
        Repaired="repair",
        SealedFile="files",
        TABLE_NAME="files",
        WarcStage="archive",
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
