"""Archive files read, record by record, whatever state they are in."""

from typing import TYPE_CHECKING

from amicrawl.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from amicrawl.reading.container import Container
    from amicrawl.reading.framing import header_text, warc_head
    from amicrawl.reading.members import MemberBody, Members, RecordMember
    from amicrawl.reading.records import RECORD_TYPES, Broken, Record, paired, read_records, records_of
    from amicrawl.reading.unpacking import GZIP_MAGIC, ZSTD_MAGIC
else:
    __getattr__ = lazy_exports(
        __name__,
        Broken="records",
        Container="container",
        GZIP_MAGIC="unpacking",
        MemberBody="members",
        Members="members",
        RECORD_TYPES="records",
        Record="records",
        RecordMember="members",
        ZSTD_MAGIC="unpacking",
        header_text="framing",
        paired="records",
        read_records="records",
        records_of="records",
        warc_head="framing",
    )

__all__ = [
    "GZIP_MAGIC",
    "RECORD_TYPES",
    "ZSTD_MAGIC",
    "Broken",
    "Container",
    "MemberBody",
    "Members",
    "Record",
    "RecordMember",
    "header_text",
    "paired",
    "read_records",
    "records_of",
    "warc_head",
]
