"""The listing of a crawl's directory: which files it has, whose they are, and what crawl it was.

    crawl.json       what a crawl was to do, what came of it, and the sealed files it left
    uploaded.json    which of them lie in a bucket
    history.jsonl    how it went, a line a moment
    ami-00000.warc.gz    what WARC files are called, and what is known of a finished file

It is read and written without the archive: a bucket, a job and a summary need no record of it.
"""

from typing import TYPE_CHECKING

from amicrawl.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from amicrawl.listing.crawl_json import (
        FILE_NAME,
        CrawlJson,
        known_files,
        last_prefix,
        listed_files,
        read_crawl_json,
    )
    from amicrawl.listing.files import (
        DEFAULT_PREFIX,
        EARLIER_TABLE,
        NO_EARLIER_TABLE,
        PLAN_NAME,
        PROCESSES,
        SUFFIX,
        TABLE_NAME,
        TAIL_SUFFIX,
        SealedFile,
        check_gathered,
        check_tables,
        described,
        described_warc,
        expanded,
        number_in,
        process_directories,
        unsealed_prefix,
        warc_name,
    )
    from amicrawl.listing.history import COUNTS, CrawlHistory, HistoryFile, read_history
    from amicrawl.listing.uploaded import (
        MANIFEST_NAME,
        SIZE_LIMIT,
        NotAManifestError,
        Uploaded,
        UploadManifest,
        decoded,
        is_plain,
        read_manifest,
    )
else:
    __getattr__ = lazy_exports(
        __name__,
        CrawlJson="crawl_json",
        FILE_NAME="crawl_json",
        SIZE_LIMIT="uploaded",
        known_files="crawl_json",
        last_prefix="crawl_json",
        listed_files="crawl_json",
        read_crawl_json="crawl_json",
        DEFAULT_PREFIX="files",
        EARLIER_TABLE="files",
        NO_EARLIER_TABLE="files",
        PLAN_NAME="files",
        PROCESSES="files",
        SUFFIX="files",
        SealedFile="files",
        TABLE_NAME="files",
        TAIL_SUFFIX="files",
        check_gathered="files",
        check_tables="files",
        described="files",
        described_warc="files",
        expanded="files",
        number_in="files",
        process_directories="files",
        unsealed_prefix="files",
        warc_name="files",
        COUNTS="history",
        CrawlHistory="history",
        HistoryFile="history",
        read_history="history",
        MANIFEST_NAME="uploaded",
        NotAManifestError="uploaded",
        UploadManifest="uploaded",
        Uploaded="uploaded",
        decoded="uploaded",
        is_plain="uploaded",
        read_manifest="uploaded",
    )

__all__ = [
    "COUNTS",
    "DEFAULT_PREFIX",
    "EARLIER_TABLE",
    "FILE_NAME",
    "MANIFEST_NAME",
    "NO_EARLIER_TABLE",
    "PLAN_NAME",
    "PROCESSES",
    "SIZE_LIMIT",
    "SUFFIX",
    "TABLE_NAME",
    "TAIL_SUFFIX",
    "CrawlHistory",
    "CrawlJson",
    "HistoryFile",
    "NotAManifestError",
    "SealedFile",
    "UploadManifest",
    "Uploaded",
    "check_gathered",
    "check_tables",
    "decoded",
    "described",
    "described_warc",
    "expanded",
    "is_plain",
    "known_files",
    "last_prefix",
    "listed_files",
    "number_in",
    "process_directories",
    "read_crawl_json",
    "read_history",
    "read_manifest",
    "unsealed_prefix",
    "warc_name",
]
