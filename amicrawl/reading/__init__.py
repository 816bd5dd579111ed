"""Archive files read, record by record, whatever state they are in."""

from typing import TYPE_CHECKING

from amicrawl.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from amicrawl.reading.records import RECORD_TYPES, Broken, Record, paired, read_records
    from amicrawl.reading.unpacking import GZIP_MAGIC, ZSTD_MAGIC, Container
else:
    __getattr__ = lazy_exports(
        __name__,
        Broken="records",
        Container="unpacking",
        GZIP_MAGIC="unpacking",
        RECORD_TYPES="records",
        Record="records",
        ZSTD_MAGIC="unpacking",
        paired="records",
        read_records="records",
    )

__all__ = [
    "GZIP_MAGIC",
    "RECORD_TYPES",
    "ZSTD_MAGIC",
    "Broken",
    "Container",
    "Record",
    "paired",
    "read_records",
]
