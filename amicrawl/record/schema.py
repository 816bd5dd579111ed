"""The capture index as an Arrow schema; `captures.py` says what its columns mean."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from amicrawl import __version__
from amicrawl.record.captures import COLUMNS, NULLABLE

SCHEMA_VERSION = 1
"""Raised when a column changes its name, type or meaning; adding one at the end does not count."""

_TYPES: dict[str, pa.DataType] = {
    "string": pa.string(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "bool": pa.bool_(),
}

CAPTURES: Final = pa.schema(
    [pa.field(name, _TYPES[kind], nullable=name in NULLABLE) for name, kind in COLUMNS],
    metadata={
        "amicrawl.schema_version": str(SCHEMA_VERSION),
        "amicrawl.software": f"amicrawl/{__version__}",
    },
)
