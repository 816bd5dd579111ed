"""WET: the text of every page, as `conversion` records that refer to the responses.

HTML and plain text are converted (`page.py`); a page without text gives no record. The
warcinfo of the source, where it is the first record, says who crawled: that is carried over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from amicrawl.index.derivatives.file import (
    DerivativeFile,
    Maker,
    date_of,
    reference_to,
    sha1,
    uri_of,
)
from amicrawl.record.warc import warc_date

if TYPE_CHECKING:
    from pathlib import Path

    from amicrawl.index.collection.products import FileJob, Seen
    from amicrawl.index.reading.records import Record

_CARRIED_OVER = ("robots", "isPartOf", "operator", "description", "publisher")


class WetFile:
    """The WET file of one source, being written."""

    def __init__(self, path: Path, _: FileJob, maker: Maker) -> None:
        """Name the file *path*; it is begun with the first record, whose warcinfo it quotes."""
        self._path = path
        self._maker = maker
        self._file: DerivativeFile | None = None

    def add(self, seen: Seen) -> None:
        """Add the text of the page in a record, if there is one."""
        record, page = seen.record, seen.page
        file = self._begun(record)
        if page is None or not page.text:
            return
        block = page.text.encode("utf-8", "replace")
        fields = [
            ("WARC-Target-URI", uri_of(record)),
            ("WARC-Refers-To", reference_to(record)),
            ("WARC-Block-Digest", sha1(block)),
            (
                "WARC-Identified-Content-Language",
                record.fields.get("warc-identified-content-language", ""),
            ),
            ("Content-Type", "text/plain"),
        ]
        file.add("conversion", block, date=date_of(record) or warc_date(file.began), fields=fields)

    def seal(self) -> tuple[int, int]:
        """Give the file its name; return its records, the warcinfo aside, and its size in bytes."""
        file = self._begun(None)
        return file.records, file.seal()

    def close(self) -> None:
        """Leave the file as it is."""
        if self._file is not None:
            self._file.close()

    def _begun(self, first: Record | None) -> DerivativeFile:
        if self._file is None:
            about = _about(first) if first is not None and first.type == "warcinfo" else []
            self._file = DerivativeFile(self._path, maker=self._maker, about=about)
        return self._file


def _about(warcinfo: Record) -> list[tuple[str, str]]:
    said: dict[str, str] = {}
    for line in warcinfo.block[:65_536].decode("utf-8", "replace").splitlines():
        name, colon, value = line.partition(":")
        if colon:
            said.setdefault(name.strip(), value.strip())
    return [(name, said[name]) for name in _CARRIED_OVER if said.get(name)]
