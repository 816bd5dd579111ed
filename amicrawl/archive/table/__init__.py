"""The table: a collection's index as Parquet files, for queries that are too slow row by row.

`make_table` turns CDXJ files into the 31 columns of the End of Term table, or into Common Crawl's.
Columns about URLs are derived here (`url_columns.py`), all others are what the lines say. Indexing,
detection and merging are the index room's; queries are run through `queries/`.
"""

from typing import TYPE_CHECKING

from amicrawl.lazy_exports import lazy_exports

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
    __getattr__ = lazy_exports(
        __name__,
        QueryResult="query",
        CCINDEX="schema",
        EOT="schema",
        ExportOptions="export",
        MONTH_PREFIX="schema",
        NamedQuery="named_queries",
        NoRowsError="builder",
        CapturePlace="schema",
        QueryTable="query",
        RECORDS_PER_FILE="export",
        REJECTS_SUFFIX="builder",
        REPORT_SUFFIX="builder",
        SCHEMAS="schema",
        TableOptions="builder",
        TableReport="builder",
        beside="builder",
        export_records="export",
        make_table="builder",
        make_table_on_spark="spark",
        named_query="named_queries",
    )

__all__ = [
    "CCINDEX",
    "EOT",
    "MONTH_PREFIX",
    "RECORDS_PER_FILE",
    "REJECTS_SUFFIX",
    "REPORT_SUFFIX",
    "SCHEMAS",
    "CapturePlace",
    "ExportOptions",
    "NamedQuery",
    "NoRowsError",
    "QueryResult",
    "QueryTable",
    "TableOptions",
    "TableReport",
    "beside",
    "export_records",
    "make_table",
    "make_table_on_spark",
    "named_query",
]
