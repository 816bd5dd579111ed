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
    __getattr__ = lazy_exports(
        __name__,
        Archive="archive",
        CaptureItem="captures",
        OF_SEED="captures",
        Provenance="captures",
        row_of="captures",
        description_of="captures",
        block_digest="deduplication",
        labelled="deduplication",
        NAMES="journal",
        index_files="journal",
        opened_index_files="journal",
        row_in="journal",
        rows_in="journal",
        rebuilt="read_back",
        request_before="read_back",
        stored="read_back",
        Repaired="repair",
        repair_locked="repair",
        CAPTURES="table",
        CaptureIndex="table",
        OutputSink="table",
        capture_batches="table",
        join_tables="table",
        opened_index="table",
        warc_files_in_table="table",
        Unkept="unkept",
        joined_unkept="unkept",
        unkept_sentences="unkept",
        Record="warc",
        RecordType="warc",
        Resource="warc",
        field_lines="warc",
        gzip_member="warc",
        record_ids="warc",
        target_uri="warc",
    )

__all__ = [
    "CAPTURES",
    "NAMES",
    "OF_SEED",
    "Archive",
    "CaptureIndex",
    "CaptureItem",
    "OutputSink",
    "Provenance",
    "Record",
    "RecordType",
    "Repaired",
    "Resource",
    "Unkept",
    "block_digest",
    "capture_batches",
    "description_of",
    "field_lines",
    "gzip_member",
    "index_files",
    "join_tables",
    "joined_unkept",
    "labelled",
    "opened_index",
    "opened_index_files",
    "rebuilt",
    "record_ids",
    "repair_locked",
    "request_before",
    "row_in",
    "row_of",
    "rows_in",
    "stored",
    "target_uri",
    "unkept_sentences",
    "warc_files_in_table",
]
