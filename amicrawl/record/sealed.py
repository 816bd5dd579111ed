"""SealedFile: what is known of a finished file, so that a missing record is noticed.

A file cut between two gzip members passes every validator; only its size, its count of records and its
SHA-256, kept elsewhere, say that something is gone.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

TABLE_NAME = "captures.parquet"
"""The index, among the files of a crawl."""


@dataclass(frozen=True, slots=True)
class SealedFile:
    """A finished file: its line in `crawl.json`."""

    name: str
    size: int
    """Bytes."""
    records: int
    """WARC records of any type, or rows of a table."""
    sha256: str
    """Lower-case hex."""


def described(path: Path, *, records: int) -> SealedFile:
    """Read the file *path*, which holds *records* records, and describe it."""
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256")
    return SealedFile(path.name, path.stat().st_size, records, digest.hexdigest())
