"""`captures.parquet` read: its schema, its columns checked, and the records that its rows name.

`captures.py` says what the columns mean.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from amicrawl import __version__
from amicrawl.errors import DamagedFileError
from amicrawl.parquet import NotWholeError, ParquetTable
from amicrawl.record.captures import COLUMNS, NULLABLE
from amicrawl.record.sealed import TABLE_NAME

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path


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


def opened_index(path: Path, *, is_ours: bool = True) -> ParquetTable:
    """Open the capture index at *path*; if it *is_ours*, its columns are of their types.

    Raises DamagedFileError where it cannot be read or is another table, InputError where it is absurd.
    """
    with blamed_on(path):
        table = ParquetTable(path, str(path))
    for known in table.schema if is_ours else ():
        if known.name in CAPTURES.names and known.type != CAPTURES.field(known.name).type:
            table.close()
            wanted = CAPTURES.field(known.name).type
            reason = f"no capture index, as its column {known.name} is {known.type} and not {wanted}"
            raise DamagedFileError(path, 0, f"{reason}; move it away and start again")
    return table


@contextmanager
def blamed_on(path: Path) -> Iterator[None]:
    """Turn an error of pyarrow into one that says that the table *path* cannot be read."""
    try:
        yield
    except (pa.ArrowException, OSError, NotWholeError) as error:
        reason = f"not a readable capture index ({error}); move it away and start again"
        raise DamagedFileError(path, 0, reason) from error


def offsets_in_table(directory: Path, warc_files: Collection[str]) -> dict[str, set[int]]:
    """Return the offsets that the rows of `captures.parquet` have in each of *warc_files*."""
    offsets = {name: set[int]() for name in warc_files}
    path = directory / TABLE_NAME
    if not offsets or not path.exists():
        return offsets
    with opened_index(path) as table, blamed_on(path):
        for batch in table.batches(["warc_file", "warc_offset"]):
            # Nearly all rows are of other files, mostly of one: its name is looked at once.
            rows: Any = batch
            names = rows["warc_file"].dictionary_encode()
            for code, name in enumerate(names.dictionary.to_pylist()):
                if name in offsets:
                    same = np.flatnonzero(names.indices.to_numpy(zero_copy_only=False) == code)
                    offsets[name].update(rows["warc_offset"].take(pa.array(same)).to_pylist())
    return offsets


def warc_files_in_table(directory: Path) -> Iterator[str]:
    """Yield the WARC files that rows of `captures.parquet` name, some of them more than once.

    Raises as `opened_index`.
    """
    path = directory / TABLE_NAME
    with opened_index(path) as table, blamed_on(path):
        for batch in table.batches(["warc_file"]):
            column: Any = batch.column(0)
            yield from filter(None, column.dictionary_encode().dictionary.to_pylist())
