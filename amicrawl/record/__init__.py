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

from amicrawl.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from amicrawl.record.archive import Archive
    from amicrawl.record.bucket import (
        Bucket,
        check_bucket_url,
        check_keeps_state,
        keeps_state,
        open_bucket,
        small_object,
    )
    from amicrawl.record.captures import OF_SEED, CaptureItem, Provenance, row_of, validators_of
    from amicrawl.record.crawl_json import FILE_NAME, CrawlJson, known_files, read_crawl_json
    from amicrawl.record.files import SUFFIX, TABLE_NAME, SealedFile, expanded, number_in, warc_name
    from amicrawl.record.history import (
        COUNTS,
        CrawlHistory,
        HistoryFile,
        read_history,
    )
    from amicrawl.record.internet_archive import with_metadata
    from amicrawl.record.journal import NAMES, journals, read_rows, row_in
    from amicrawl.record.read_back import rebuilt, request_before, stored
    from amicrawl.record.repair import Repaired, repair_locked
    from amicrawl.record.table import (
        CAPTURES,
        OutputSink,
        capture_batches,
        join_tables,
        opened_index,
        warc_files_in_table,
    )
    from amicrawl.record.unkept import Unkept, joined_unkept, unkept_sentences
    from amicrawl.record.upload import (
        ConflictError,
        NotAsSealedError,
        StoppedError,
        UploadProgress,
        Uploads,
    )
    from amicrawl.record.uploaded import (
        NotAManifestError,
        Uploaded,
        UploadManifest,
        decoded,
        read_manifest,
    )
    from amicrawl.record.warc import (
        Record,
        RecordIds,
        RecordType,
        Resource,
        field_lines,
        gzip_member,
        target_uri,
        unix_ms,
        warc_date,
    )
else:
    __getattr__ = lazy_exports(
        __name__,
        Archive="archive",
        Bucket="bucket",
        CAPTURES="table",
        COUNTS="history",
        CaptureItem="captures",
        OF_SEED="captures",
        Provenance="captures",
        ConflictError="upload",
        CrawlJson="crawl_json",
        FILE_NAME="crawl_json",
        CrawlHistory="history",
        HistoryFile="history",
        NAMES="journal",
        UploadManifest="uploaded",
        NotAManifestError="uploaded",
        NotAsSealedError="upload",
        Record="warc",
        RecordIds="warc",
        RecordType="warc",
        Resource="warc",
        Repaired="repair",
        SUFFIX="files",
        SealedFile="files",
        OutputSink="table",
        StoppedError="upload",
        TABLE_NAME="files",
        Uploaded="uploaded",
        UploadProgress="upload",
        Uploads="upload",
        check_bucket_url="bucket",
        check_keeps_state="bucket",
        decoded="uploaded",
        expanded="files",
        field_lines="warc",
        gzip_member="warc",
        Unkept="unkept",
        join_tables="table",
        keeps_state="bucket",
        joined_unkept="unkept",
        unkept_sentences="unkept",
        journals="journal",
        known_files="crawl_json",
        number_in="files",
        open_bucket="bucket",
        opened_index="table",
        read_crawl_json="crawl_json",
        read_history="history",
        read_manifest="uploaded",
        read_rows="journal",
        rebuilt="read_back",
        repair_locked="repair",
        capture_batches="table",
        request_before="read_back",
        row_in="journal",
        row_of="captures",
        small_object="bucket",
        stored="read_back",
        target_uri="warc",
        unix_ms="warc",
        validators_of="captures",
        warc_date="warc",
        warc_files_in_table="table",
        warc_name="files",
        with_metadata="internet_archive",
    )

__all__ = [
    "CAPTURES",
    "COUNTS",
    "FILE_NAME",
    "NAMES",
    "OF_SEED",
    "SUFFIX",
    "TABLE_NAME",
    "Archive",
    "Bucket",
    "CaptureItem",
    "ConflictError",
    "CrawlHistory",
    "CrawlJson",
    "HistoryFile",
    "NotAManifestError",
    "NotAsSealedError",
    "OutputSink",
    "Provenance",
    "Record",
    "RecordIds",
    "RecordType",
    "Repaired",
    "Resource",
    "SealedFile",
    "StoppedError",
    "Unkept",
    "UploadManifest",
    "UploadProgress",
    "Uploaded",
    "Uploads",
    "capture_batches",
    "check_bucket_url",
    "check_keeps_state",
    "decoded",
    "expanded",
    "field_lines",
    "gzip_member",
    "join_tables",
    "joined_unkept",
    "journals",
    "keeps_state",
    "known_files",
    "number_in",
    "open_bucket",
    "opened_index",
    "read_crawl_json",
    "read_history",
    "read_manifest",
    "read_rows",
    "rebuilt",
    "repair_locked",
    "request_before",
    "row_in",
    "row_of",
    "small_object",
    "stored",
    "target_uri",
    "unix_ms",
    "unkept_sentences",
    "validators_of",
    "warc_date",
    "warc_files_in_table",
    "warc_name",
    "with_metadata",
]
