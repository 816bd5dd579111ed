"""The table: a collection's index as Parquet files, for queries that a row at a time cannot answer.

`make_table` turns CDXJ files into the 31 columns of the End of Term table, or into Common Crawl's.
Columns about URLs are derived here (`url_columns.py`), all others are what the lines say. Indexing,
detection and merging are the index room's; queries are asked through `queries/`.
"""

from __future__ import annotations

from amicrawl.table.builder import TableOptions, TableReport, make_table
from amicrawl.table.schema import CCINDEX, EOT, SCHEMAS, Place, TableSchema

__all__ = [
    "CCINDEX",
    "EOT",
    "SCHEMAS",
    "Place",
    "TableOptions",
    "TableReport",
    "TableSchema",
    "make_table",
]
