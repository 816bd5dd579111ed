"""Archive files indexed: a sorted file of lines for each, in several processes, and not twice.

    OUT/X.warc.cdxj      the lines of X.warc or X.warc.gz, in byte order
    OUT/done/X.warc.json what it was made of: size and time of change of the source, options, losses

A file that is done is left alone while its source has the size and time of change, and the options are
the ones, that its mark names. Nothing that is half made has the name of something whole.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from amicrawl.disk import Disk, OutputFile
from amicrawl.errors import InputError
from amicrawl.index.collection.marks import MOST_LOSSES, Loss, Made, Outcome, read_mark, write_mark
from amicrawl.index.lines.cdx_text import Layout, cdx_line
from amicrawl.index.lines.cdxj import IndexOptions, line_of_wanted, timestamp_of, wanted_by
from amicrawl.index.lines.sorting import MEMORY, external_sort
from amicrawl.index.reading.container import Container
from amicrawl.index.reading.pairs import paired
from amicrawl.index.reading.records import Broken, read_records

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from amicrawl.index.reading.records import Record

MARKS = "done"
"""The directory of the marks."""
_PRODUCT = "index"
_TOLD_EVERY = 500
_PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class IndexJob:
    """An archive file, and the index that is to be made of it."""

    source: Path
    out: Path
    """The directory that the index goes to."""
    name: str
    """The name of the index."""
    filename: str
    """What the lines call the source."""
    options: IndexOptions = field(default_factory=IndexOptions)
    layout: Layout = Layout.CDXJ
    packed: bool = False
    """Whether the index is compressed with gzip."""
    memory: int = MEMORY
    """Bytes of lines that are held at a time."""

    @property
    def path(self) -> Path:
        """Where the index lies."""
        return self.out / self.name

    @property
    def mark(self) -> Path:
        """Where it is written that it is done."""
        return self.out / MARKS / f"{self.name}.json"

    @property
    def settings(self) -> dict[str, str]:
        """Everything that the lines depend on besides the source."""
        options = {name: json.dumps(value) for name, value in asdict(self.options).items()}
        return {
            **options,
            "layout": self.layout.value,
            "filename": self.filename,
            "packed": str(self.packed),
        }


class Progress(NamedTuple):
    """How far the reading of a file is."""

    offset: int
    records: int


def finished(job: IndexJob) -> Outcome | None:
    """Return what came of *job* when it was done; None where it is to be done (again)."""
    outcome = read_mark(job.mark, source=job.source, settings=job.settings, out=job.out)
    return outcome if outcome is not None and _PRODUCT in outcome.products else None


def index_file(job: IndexJob, tell: Callable[[Progress], None], *, disk: Disk | None = None) -> Outcome:
    """Index one file and return what came of it; *tell* is told now and then how far it is.

    Raises InputError where the source cannot be read, OutputError where the index cannot be written.
    """
    disk = disk or Disk()
    try:
        facts = job.source.stat()
    except OSError as error:
        raise InputError(
            f"{job.source} cannot be read: {error.strerror}. Check path and permissions."
        ) from error
    losses = Losses()
    counted = _Counted(read_records(job.source, on_broken=losses.add), tell)
    with Container(job.source) as container:
        lines = index_lines(
            counted,
            job.filename,
            options=job.options,
            layout=job.layout,
            container=container,
            on_broken=losses.add,
        )
        ordered = external_sort(lines, memory=job.memory, scratch=job.out, disk=disk)
        written = write_lines(ordered, job.path, legend=job.layout.legend, packed=job.packed, disk=disk)
    outcome = Outcome(
        source=str(job.source),
        size=facts.st_size,
        changed=facts.st_mtime_ns,
        records=counted.records,
        lost=losses.count,
        losses=losses.first,
        products={_PRODUCT: Made(job.name, written.size, written.lines)},
    )
    write_mark(job.mark, outcome, settings=job.settings, disk=disk)
    return outcome


def index_lines(
    records: Iterable[Record],
    filename: str,
    *,
    options: IndexOptions,
    layout: Layout = Layout.CDXJ,
    container: Container | None = None,
    on_broken: Callable[[Broken], None],
) -> Iterator[bytes]:
    """Yield the lines of *records*, in order; *on_broken* is told of those that cannot have one.

    From *container*, the file that they are of, digests of their stored bytes are made where *options*
    ask for them; without it there are none.
    """
    in_pairs = options.post or any(
        name.startswith("req.") or name in _OF_REQUESTS for name in options.fields
    )
    is_wanted, plain = wanted_by(options), not layout.letters
    with_partners = paired(records) if in_pairs else ((record, None) for record in records)
    for record, partner in with_partners:
        if not is_wanted(record):
            continue
        digest = container.sha256(record) if container is not None and options.stored_digests else ""
        line = line_of_wanted(
            record, filename=filename, options=options, partner=partner, stored_digest=digest
        )
        if line is not None:
            yield line.encoded() if plain else cdx_line(line, layout)
        elif not timestamp_of(record.date):
            on_broken(Broken(record.path, record.offset, "a record has no date, so it has no line"))


_OF_REQUESTS = ("referrer", "method")


class Losses:
    """What was told as broken: the first of it, and how much it was."""

    def __init__(self) -> None:
        self.count = 0
        self.first: list[Loss] = []

    def add(self, broken: Broken) -> None:
        """Take in one more."""
        self.count += 1
        if self.count <= MOST_LOSSES:
            self.first.append(Loss(broken.offset, broken.reason))


class Written(NamedTuple):
    """A file of lines."""

    lines: int
    size: int
    """In bytes."""


def write_lines(
    lines: Iterable[bytes], path: Path, *, legend: bytes = b"", packed: bool = False, disk: Disk
) -> Written:
    """Write *lines* behind *legend* to *path*, which has its name only once it is whole."""
    file = OutputFile.replacing(path, disk=disk)
    packer = zlib.compressobj(wbits=31) if packed else None
    count = 0
    batch = [legend]
    size = 0
    try:
        for line in lines:
            batch.append(line)
            count += 1
            size += len(line)
            if size >= _PIECE:
                _write(file, batch, packer)
                batch, size = [], 0
        _write(file, batch, packer)
        if packer is not None:
            file.write(packer.flush())
        written = file.tell()
        file.seal()
    finally:
        file.close()
    return Written(count, written)


def _write(file: OutputFile, batch: list[bytes], packer: zlib._Compress | None) -> None:
    data = b"".join(batch)
    file.write(packer.compress(data) if packer is not None else data)


class _Counted:
    """Hands records on, counts them, and says now and then how far the reading is."""

    def __init__(self, records: Iterable[Record], tell: Callable[[Progress], None]) -> None:
        self.records = 0
        self._source = records
        self._tell = tell

    def __iter__(self) -> Iterator[Record]:
        for record in self._source:
            self.records += 1
            if not self.records % _TOLD_EVERY:
                self._tell(Progress(record.offset, self.records))
            yield record
