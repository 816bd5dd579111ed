"""The table: a collection's index as Parquet files, for queries that are too slow row by row.

`make_table` turns CDXJ files into the 31 columns of the End of Term table, or into Common Crawl's.
Columns about URLs are derived here (`url_columns.py`), all others are what the lines say. Indexing,
detection and merging are the index room's; queries are run through `queries/`.
"""

from typing import TYPE_CHECKING

from amicrawl.lazy_exports import lazy_exports

# mypy: implicit-reexport
if TYPE_CHECKING:
    from amicrawl.archive.table.builder import (
        REJECTS_SUFFIX,
        REPORT_SUFFIX,
        NoRowsError,
        TableOptions,
        TableReport,
        beside,
        make_table,
    )
    from amicrawl.archive.table.export import RECORDS_PER_FILE, ExportOptions, export_records
    from amicrawl.archive.table.named_queries import NamedQuery, named_query
    from amicrawl.archive.table.query import QueryResult, QueryTable
    from amicrawl.archive.table.schema import (
        CCINDEX,
        EOT,
        MONTH_PREFIX,
        SCHEMAS,
        CapturePlace,
    )
    from amicrawl.archive.table.spark import make_table_on_spark
else:
    __getattr__, __all__ = lazy_exports(__spec__)
