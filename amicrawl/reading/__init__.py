"""Archive files read, record by record, whatever state they are in."""

from typing import TYPE_CHECKING

from amicrawl.lazy_exports import lazy_exports

# mypy: implicit-reexport
if TYPE_CHECKING:
    from amicrawl.reading.framing import header_text, warc_head
    from amicrawl.reading.members import Container, MemberBody, Members, RecordMember
    from amicrawl.reading.records import RECORD_TYPES, Broken, Record, paired, read_records, records_of
    from amicrawl.reading.unpacking import GZIP_MAGIC, ZSTD_BEGINS
else:
    __getattr__, __all__ = lazy_exports(__spec__)
