"""The record: captures onto disk, as WARC files and an index that points into them.

    capture, seed -> deduplication.decide -> warc.exchange_records, gzip_member -> WarcWriter
                  -> captures.row_of -> CapturesJournal -> table.take_in_journals

`Archive` ties these together for one crawl and keeps the order in which they reach the disk; `repair`
repairs what a killed one has left. Which files there are is for the room `listing`. What is
written is exactly what came over the wire: nothing here rebuilds a message from its parsed fields.
The modules that compute (deduplication, warc, captures) are apart from those that
touch the disk. Nothing here knows of Scrapy, threads or event loops: all of it is for one thread.
"""

from typing import TYPE_CHECKING

from amicrawl.lazy_exports import lazy_exports

# mypy: implicit-reexport
if TYPE_CHECKING:
    from amicrawl.record.archive import Archive
    from amicrawl.record.captures import OF_SEED, CaptureItem, Provenance, description_of, row_of
    from amicrawl.record.deduplication import block_digest, labelled
    from amicrawl.record.journal import NAMES, index_files, opened_index_files, row_in, rows_in
    from amicrawl.record.read_back import rebuilt, request_before, stored
    from amicrawl.record.repair import Repaired, repair_locked
    from amicrawl.record.table import (
        CAPTURES,
        CaptureIndex,
        OutputSink,
        capture_batches,
        join_tables,
        opened_index,
        warc_files_in_table,
    )
    from amicrawl.record.unkept import Unkept, joined_unkept, unkept_sentences
    from amicrawl.record.warc import (
        Record,
        RecordType,
        Resource,
        field_lines,
        gzip_member,
        record_ids,
        target_uri,
    )
else:
    __getattr__, __all__ = lazy_exports(__spec__)
