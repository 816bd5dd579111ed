"""What detectors find in one archive file: its sidecar, and its index with the findings in the lines.

A sidecar is a warcinfo record, then a metadata record for each payload looked at:

    X.warc.gz -> X.warc.meta.gz, X.arc.gz -> X.arc.meta.gz        WARC/1.0, a gzip member a record

Fields and their order are those of warc-metadata-sidecar, so that what reads its files reads these. It
ties a record to its source by `WARC-Concurrent-ID`, which is not in the standard; the standard's
`WARC-Refers-To` is written, too. Two more fields have file and offset, for sources without ids.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from isal import igzip_lib

from amicrawl.archive.index.derivatives.file import (
    NOT_NAMED,
    SOFTWARE,
    LeftOutError,
    date_of,
    uri_of,
)
from amicrawl.archive.index.sidecar.detectors import Characteriser, installed_detectors
from amicrawl.archive.index.sidecar.findings import (
    SOURCE_FILE,
    SOURCE_OFFSET,
    added_fields,
    encode_block,
    parse_block,
    with_fields,
    written,
)
from amicrawl.archive.index.sidecar.subject import subject_of
from amicrawl.archive.lines import LineFile
from amicrawl.clock import warc_date
from amicrawl.disk import OutputFile, refuse_undecodable
from amicrawl.errors import AmicrawlError
from amicrawl.record import block_digest, record_ids
from amicrawl.record.warc import LEVEL

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from amicrawl.archive.index.collection.products import FileJob, SeenRecord
    from amicrawl.archive.index.derivatives.file import Maker, Publisher
    from amicrawl.archive.index.sidecar.detectors import Detectors
    from amicrawl.archive.index.sidecar.findings import Findings
    from amicrawl.reading import Record

_CONFORMS_TO = "http://bibnum.bnf.fr/WARC/WARC_ISO_28500_version1_latestdraft.pdf"


class SidecarFile:
    """A sidecar, being written."""

    def __init__(
        self,
        path: Path,
        *,
        source: Path,
        maker: Maker,
        detectors: Detectors,
        publisher: Publisher = NOT_NAMED,
    ) -> None:
        """Begin *path*, the sidecar of *source*, of what *detectors* find."""
        self.records = 0
        """Metadata records in it."""
        self._source = source
        self._maker = maker
        self._publisher = publisher
        self._detectors = detectors
        self._ids = record_ids(maker.random, batch=64)
        self._file = OutputFile.replacing(path, disk=maker.disk)

    def add(self, record: Record, found: Findings) -> None:
        """Write down what was *found* in the payload of *record*, if that is anything."""
        if found.is_empty():
            return
        if not self.records:
            self._write_warcinfo("")
        self.records += 1
        block = encode_block(found)
        self._append(_fields(record, block, record_id=self._ids()), block)

    def seal(self) -> tuple[int, int]:
        """Give the file its name; return its metadata records and its size in bytes."""
        if not self.records:
            self._write_warcinfo("; 0 metadata sidecar records")
        size = self._file.tell()
        self._file.seal()
        return self.records, size

    def close(self) -> None:
        """Leave the file as it is; without `seal`, its name says that it is not whole."""
        self._file.close()

    def _write_warcinfo(self, addition: str) -> None:
        said = [
            ("software", SOFTWARE),
            ("hostname", self._maker.hostname),
            ("ip", self._publisher.address),
            ("conformsTo", _CONFORMS_TO),
            ("description", f"WARC metadata sidecar for {self._source.name}{addition}"),
            ("publisher", self._publisher.publisher),
            ("operator", self._publisher.operator),
            ("detectors", "; ".join(self._detectors.versions())),
        ]
        block = "".join(f"{name}: {_on_one_line(value)}\r\n" for name, value in said if value).encode()
        fields = [
            ("WARC-Type", "warcinfo"),
            ("WARC-Record-ID", self._ids()),
            ("WARC-Filename", _on_one_line(self._file.path.name)),
            ("WARC-Date", warc_date(self._maker.clock())),
            ("Content-Type", "application/warc-fields"),
        ]
        self._append(fields, block)

    def _append(self, fields: Iterable[tuple[str, str]], block: bytes) -> None:
        lines = "\r\n".join([f"{name}: {value}" for name, value in fields])
        head = f"WARC/1.0\r\n{lines}\r\nContent-Length: {len(block)}\r\n\r\n"
        if not head.replace("\r\n", "").isprintable():
            raise AmicrawlError(
                f"A field of {self._file.path} would hold a control character, which could forge a "
                "record; this is a fault in amicrawl, please report it."
            )
        self._file.write(
            igzip_lib.compress(head.encode() + block + b"\r\n\r\n", LEVEL, igzip_lib.COMP_GZIP)
        )


def _fields(record: Record, block: bytes, *, record_id: str) -> list[tuple[str, str]]:
    """Return the fields of the metadata record that says *block* of *record*."""
    source_id = _on_one_line(record.record_id)
    digest = block_digest(block)
    fields = [
        ("WARC-Date", date_of(record) or _on_one_line(record.date)),
        ("WARC-Concurrent-ID", source_id),
        ("WARC-Warcinfo-ID", _on_one_line(record.fields.get("warc-warcinfo-id", ""))),
        ("WARC-Type", "metadata"),
        ("WARC-Record-ID", record_id),
        ("WARC-Target-URI", uri_of(record)),
        ("WARC-Payload-Digest", digest),
        ("WARC-Block-Digest", digest),
        ("WARC-Refers-To", source_id),
        (SOURCE_FILE, _on_one_line(record.path.name)),
        (SOURCE_OFFSET, str(record.offset) if record.seekable else ""),
        ("Content-Type", "application/warc-fields"),
    ]
    return [(name, value) for name, value in fields if value]


def _on_one_line(value: str) -> str:
    """Return *value* without what is not printable, which could forge a field or a record."""
    value = value[:4096]
    return value if value.isprintable() else "".join(c for c in value if c.isprintable())


@lru_cache(maxsize=1)
def characteriser(without: tuple[str, ...]) -> Characteriser:
    """Return the detectors of this process but for the kinds *without*: they take a while to load."""
    return Characteriser(installed_detectors(without))


def findings_of(record: Record, without: tuple[str, ...]) -> Findings | None:
    """Return what the detectors find in the payload of *record*; None where they do not look."""
    subject = subject_of(record)
    return None if subject is None else characteriser(without).findings(subject)


class Sidecar:
    """The sidecar as a product of a file."""

    def __init__(self, path: Path, job: FileJob, maker: Maker) -> None:
        self._file = SidecarFile(
            path,
            source=job.source,
            maker=maker,
            detectors=characteriser(job.options.without).detectors,
            publisher=job.options.publisher,
        )
        self.seal, self.close = self._file.seal, self._file.close

    def add(self, seen: SeenRecord) -> None:
        """Add what is found in a record."""
        if seen.findings is not None:
            self._file.add(seen.record, seen.findings)
            _report_failures(seen.findings)


class MergedIndex:
    """The index with what the detectors find in its lines, as a product of a file."""

    def __init__(self, path: Path, job: FileJob, maker: Maker) -> None:
        refuse_undecodable(job.filename)
        file = LineFile(path, disk=maker.disk)
        self._add, self.seal, self.close = file.add, file.seal, file.close

    def add(self, seen: SeenRecord) -> None:
        """Add the line of a record, with what is found of it."""
        if (line := seen.line) is None:
            return
        # By way of the sidecar's own block, so that it is to the byte what merging the two files gives.
        found = parse_block(encode_block(seen.findings)) if seen.findings is not None else {}
        addition = written(added_fields(found))
        self._add(with_fields(line.encoded().rstrip(b"\n"), line.fields, addition) + b"\n")
        if seen.findings is not None:
            _report_failures(seen.findings)


def _report_failures(found: Findings) -> None:
    """Raise LeftOutError where a detector failed: what the others found is written down by then."""
    if found.errors:
        raise LeftOutError(f"a detector failed at this record: {', '.join(found.errors)}")
