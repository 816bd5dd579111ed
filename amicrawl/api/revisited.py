"""Where the payloads are stored that revisits refer to."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow.compute as pc
import xxhash

from amicrawl.record import capture_batches, opened_index_files

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

_COLUMNS = (
    *("url", "fetched_at", "duration_ms", "original_url", "original_at"),
    *("warc_file", "warc_offset", "record_id"),
)
_IS_ORIGINAL: Any = (
    (pc.field("original_url") == "") & (pc.field("original_at") == 0) & (pc.field("warc_file") != "")
)
_ROW = np.dtype([("key", "u8"), ("record", "u8"), ("offset", "i8"), ("file", "i4")])


class RecordPlace(NamedTuple):
    """Where a record is."""

    file: str
    offset: int
    is_of: Callable[[str], bool]
    """Whether this is its ID, without brackets."""


class RevisitedRecords:
    """The records that revisits of an archive can refer to, by URL and moment.

    Each takes 28 bytes of memory. The index is read when the first is looked for, and again when one is
    missing in it that a crawl may have added since.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        # URLs are made by strangers: with a seed of its own, none is made to be taken for another.
        self._seed = secrets.randbits(64)
        self._state: list[tuple[Path, int, int]] = []
        self._rows: NDArray[Any] = np.empty(0, _ROW)
        """Sorted by key."""
        self._files: list[str] = []

    def find(self, url: str, began_at: int) -> RecordPlace | None:
        """Return where the record of *url* is that *began_at* then, in Unix milliseconds."""
        key = np.uint64(self._key(url, began_at))
        found = self._at(key)
        if found is None and (state := self._now()) != self._state:
            self._read()
            self._state = state
            found = self._at(key)
        return found

    def _hash(self, text: str) -> int:
        return xxhash.xxh3_64_intdigest(text.encode(errors="surrogatepass"), seed=self._seed)

    def _key(self, url: str, began_at: int) -> int:
        return self._hash(f"{began_at} {url}")

    def _at(self, key: np.uint64) -> RecordPlace | None:
        place = int(np.searchsorted(self._rows["key"], key))
        if place == len(self._rows) or self._rows["key"][place] != key:
            return None
        _, record, offset, file = self._rows[place].tolist()
        return RecordPlace(self._files[file], offset, lambda name: self._hash(name) == record)

    def _now(self) -> list[tuple[Path, int, int]]:
        """Return what the index is made of, and since when."""
        with opened_index_files(self._directory) as (tables, journals):
            named = [(Path(table.name), table.stat()) for table in tables]
            named += [(Path(each.name), os.fstat(each.fileno())) for each in journals]
        return [(path, facts.st_size, facts.st_mtime_ns) for path, facts in named]

    def _read(self) -> None:
        files: dict[str, int] = {}
        parts = [np.empty(0, _ROW)]
        for batch in capture_batches(self._directory, columns=_COLUMNS):
            rows: Any = batch.filter(_IS_ORIGINAL)
            part = np.empty(rows.num_rows, _ROW)
            columns = {name: rows[name].to_pylist() for name in _COLUMNS}
            began = [
                at - (took or 0)
                for at, took in zip(columns["fetched_at"], columns["duration_ms"], strict=True)
            ]
            part["key"] = list(map(self._key, columns["url"], began))
            part["record"] = [self._hash(name.strip("<>")) for name in columns["record_id"]]
            part["offset"] = columns["warc_offset"]
            part["file"] = [files.setdefault(name, len(files)) for name in columns["warc_file"]]
            parts.append(part)
        self._files = list(files)
        self._rows = np.concatenate(parts)
        self._rows.sort(order="key", kind="stable")
