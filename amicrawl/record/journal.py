"""CapturesJournal: index rows onto disk while a crawl runs, and into `captures.parquet` at its end.

A journal is `captures-00000.open`: one row a line, a JSON object with the columns of the index, so that
any tool can look at a running crawl. A Parquet file is worth nothing before its last byte; a journal
loses no more than the line that was being written. Its number is higher than that of every journal
which the table has taken in, and the table names the last of those: no row is taken in twice.

After the first OutputError every call raises it again. Synchronous, for one thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from amicrawl.disk import OutputFile, Trust
from amicrawl.record.captures import row_of
from amicrawl.record.digests import digests_of
from amicrawl.record.journals import JOURNAL_NAME, encode_row, next_journal

if TYPE_CHECKING:
    from pathlib import Path

    from amicrawl.disk import Disk
    from amicrawl.record.item import CaptureItem
    from amicrawl.record.sealed import SealedFile


class CapturesJournal:
    """Keeps the rows of one run in one directory."""

    def __init__(self, directory: Path, *, disk: Disk) -> None:
        self.pending_bytes = 0
        """Bytes of memory that what was added and not yet written takes."""
        self._directory = directory
        self._disk = disk
        self._pending: list[bytes] = []
        self._file: OutputFile | None = None
        self._trust = Trust(directory)

    def add(self, *items: CaptureItem) -> None:
        """Take the rows of *items*.

        An item that no WARC stage has seen is measured here; its row points nowhere.
        """
        self._trust.check()
        for item in items:
            if item.location is None and item.capture.status and not item.digest:
                digests = digests_of(item.capture)
                item.digest, item.body_length = digests.payload, digests.payload_length
                item.unchanged = digests.payload == item.seed.digest
        lines = [encode_row(row_of(item)) for item in items]
        self._pending += lines
        self.pending_bytes += sum(map(len, lines))

    def commit(self, *, sync: bool) -> None:
        """Write the rows that were added, and with *sync* force them to disk."""
        with self._trust.at_stake():
            if self._pending:
                self._open().write(b"".join(self._pending))
                self._pending.clear()
                self.pending_bytes = 0
            if sync and self._file is not None:
                self._file.sync()

    def seal(self) -> SealedFile:
        """Write what was added, and turn the journals of the directory into `captures.parquet`.

        Rows of an earlier `captures.parquet` come first. Raises DamagedFileError, and leaves the journal
        as it is, where a line does not read back.
        """
        # Arrow is loaded when the first table is written: a crawl asks its first server before.
        from amicrawl.record.table import take_in_journals  # noqa: PLC0415

        self.commit(sync=True)
        with self._trust.at_stake():
            if self._file is not None:
                self._file.close()
                self._file = None
            return take_in_journals(self._directory, disk=self._disk)

    def close(self) -> None:
        """Let go of everything as it is: for a crawl that cannot go on. The journal stays."""
        self._pending.clear()
        if self._file is not None:
            self._file.close()

    def _open(self) -> OutputFile:
        if self._file is None:
            name = JOURNAL_NAME.format(next_journal(self._directory))
            self._file = OutputFile(self._directory / name, disk=self._disk)
        return self._file
