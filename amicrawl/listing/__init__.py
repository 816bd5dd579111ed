"""The listing of a crawl's directory: which files it has, whose they are, and what crawl it was.

    crawl.json       what a crawl was to do, what came of it, and the sealed files it left
    uploaded.json    which of them lie in a bucket
    history.jsonl    how it went, a line a moment
    ami-00000.warc.gz    what WARC files are called, and what is known of a finished file

It is read and written without the archive: a bucket, a job and a summary need no record of it.
"""

from typing import TYPE_CHECKING

from amicrawl.lazy_exports import lazy_exports

# mypy: implicit-reexport
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
    __getattr__, __all__ = lazy_exports(__spec__)
