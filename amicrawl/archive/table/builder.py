"""From the CDXJ files of a collection to its table, on this machine.

Every line becomes a row or a reject; which, and why, is counted, and rejects are kept in a file of their
own, `TABLE.rejects.txt`: the reason, a tab, the line as it was. Rows come by `url_surtkey` and
`fetch_time` within each crawl and subset. Files get their names when all are written; the report,
`TABLE.report.json`, comes last, so a table that has one is whole. Both are beside the table's directory:
some readers, polars among them, take whatever is in a directory for Parquet. Memory stays flat however
many lines there are.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import orjson
import pyarrow as pa

from amicrawl import __version__
from amicrawl.archive.arrow_texts import numbers_of
from amicrawl.archive.lines import LineSort, octet_blocks
from amicrawl.archive.steady_memory import collector_at_rest, steady_memory
from amicrawl.archive.table.block_rows import rows_of_block
from amicrawl.archive.table.ordering import (
    NotInOrderError,
    blocks_in_order,
    last_in_order,
    sort_lines,
    sorted_blocks,
)
from amicrawl.archive.table.schema import EOT, MONTH_PREFIX, NOWHERE, SCHEMA_VERSION, CapturePlace
from amicrawl.archive.table.url_columns import list_version
from amicrawl.archive.table.writer import FILE_ROWS, TableWriter, seal
from amicrawl.directory_lock import DirectoryLock
from amicrawl.disk import (
    OPEN_SUFFIX,
    OutputFile,
    explained,
    made_directory,
    remove_durably,
    replace_file,
)
from amicrawl.errors import InputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from concurrent.futures import Future
    from pathlib import Path

    from amicrawl.archive.table.block_rows import BlockRows
    from amicrawl.archive.table.convert import Reject
    from amicrawl.archive.table.schema import TableSchema
    from amicrawl.disk import Disk
    from amicrawl.errors import DamagedFileError

REJECTS_SUFFIX = ".rejects.txt"
REPORT_SUFFIX = ".report.json"
_MOST_SOURCES_NAMED = 200


@dataclass(frozen=True)
class TableOptions:
    """What kind of table is made."""

    schema: TableSchema = EOT
    place: CapturePlace = NOWHERE
    """Crawl, segment and subset of all rows; what it leaves open is derived from WARC file names."""
    flat: bool = False
    """Whether all files lie in one directory, with `crawl` and `subset` among their columns."""
    file_rows: int = FILE_ROWS

    def __post_init__(self) -> None:
        """Raise UsageError where a value of the place is none of a column of strings."""
        for what, value in self.place._asdict().items():
            try:
                (value or "").encode()
            except UnicodeEncodeError as error:
                raise UsageError(f"The {what} of a table is not UTF-8. Name another.") from error


@dataclass
class TableReport:
    """What became of the lines."""

    lines: int = 0
    """All of them: `rows` and `rejects` and `headers`."""
    rows: int = 0
    rejects: int = 0
    headers: int = 0
    """Blank lines, and those that begin with an exclamation mark, as compressed indexes have them."""
    files: int = 0
    """Parquet files that were written."""
    rows_without_crawl: int = 0
    """Rows whose crawl neither the caller nor the WARC file name says: they are filed by month."""
    example_without_crawl: str = ""
    """The WARC file name of the first of them."""
    rejects_by_reason: dict[str, int] = field(default_factory=dict)
    damaged: list[str] = field(default_factory=list)
    """Files that could be read up to a point only, and up to which."""
    suffix_list: str = field(default_factory=list_version)
    """Version of the list of public suffixes."""

    def add(self, found: BlockRows, *, place: CapturePlace = NOWHERE) -> None:
        """Count what a block of lines came to, whose rows belong to *place*."""
        self.lines += found.lines
        self.headers += found.headers
        self.rows += found.rows.num_rows
        if place.crawl is None:
            self.add_rows_without_crawl(found.rows)
        self.add_rejects(found.rejects)

    def add_report(self, other: TableReport) -> None:
        """Add what *other* says of other lines, but for its files."""
        for name in ("lines", "rows", "rejects", "headers", "rows_without_crawl"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.example_without_crawl = self.example_without_crawl or other.example_without_crawl
        for reason, count in other.rejects_by_reason.items():
            self.rejects_by_reason[reason] = self.rejects_by_reason.get(reason, 0) + count
        self.damaged += other.damaged

    def add_rejects(self, rejects: Sequence[Reject]) -> None:
        """Count *rejects*."""
        self.rejects += len(rejects)
        for reject in rejects:
            self.rejects_by_reason[reject.reason] = self.rejects_by_reason.get(reject.reason, 0) + 1

    def add_rows_without_crawl(self, rows: pa.RecordBatch) -> None:
        """Count those of *rows* that are filed by month."""
        crawls: Any = rows["crawl"]
        if not pa.types.is_dictionary(crawls.type):
            crawls = crawls.dictionary_encode()
        by_month = np.array([name.startswith(MONTH_PREFIX) for name in crawls.dictionary.to_pylist()])
        if by_month.any():
            numbers = np.flatnonzero(by_month[numbers_of(crawls.indices)])
            if len(numbers) and not self.rows_without_crawl:
                self.example_without_crawl = rows["warc_filename"][int(numbers[0])].as_py() or ""
            self.rows_without_crawl += len(numbers)


class NoRowsError(InputError):
    """No line of the inputs gave a row, so there is no table."""

    def __init__(self, report: TableReport, inputs: Sequence[object]) -> None:
        """Explain *report*; the files are *inputs*."""
        first = inputs[0] if inputs else "no file"
        others = f" and {len(inputs) - 1:,} more" if len(inputs) > 1 else ""
        reason = max(report.rejects_by_reason, key=report.rejects_by_reason.__getitem__, default="")
        if reason:
            why = f"lines rejected: {report.rejects:,} of {report.lines:,}, mostly because {reason}"
        else:
            why = report.damaged[0] if report.damaged else "there are no captures in it"
        super().__init__(
            f"No table was made of {first}{others}: {why.removesuffix('.')}. Name CDXJ files, as "
            "amicrawl index writes them."
        )
        self.report = report


def make_table(
    inputs: Sequence[Path],
    out: Path,
    *,
    disk: Disk,
    options: TableOptions | None = None,
    progress: Callable[[int, int, TableReport], None] = lambda *_: None,
) -> TableReport:
    """Make the table of the CDXJ files *inputs* in the directory *out* and return what became of them.

    *progress* receives how many bytes are read of how many, 0 where all are, and the report so far.
    Raises UsageError where *out* holds a table already, or another process makes one there, InputError
    where a file cannot be read, NoRowsError where no line gives a row, OutputError where the table
    cannot be written.
    """
    with made_directory(out), DirectoryLock(out, by="process", instead="output directory"):
        return _made_table(_TableJob(inputs, out, options or TableOptions(), disk, progress))


def _made_table(job: _TableJob) -> TableReport:
    prepare(job.out, disk=job.disk)
    report = TableReport()

    def damaged(error: DamagedFileError) -> None:
        report.damaged.append(str(error))

    total, read = sum(path.stat().st_size for path in job.inputs), 0

    def reading(size: int) -> None:
        nonlocal read
        read += size
        job.progress(read, total, report)

    read_blocks = partial(octet_blocks, on_read=reading)
    is_made = True
    try:
        blocks = blocks_in_order(job.inputs, damaged=damaged, read=read_blocks)
        job.do(blocks, report, in_order=True, is_sure=False)
    except NotInOrderError:
        is_made = False
    # Not where it is caught: as long as there is the error, so are the blocks that were being read.
    if not is_made:
        prepare(job.out, disk=job.disk)
        report, read = TableReport(), 0
        with collector_at_rest(), steady_memory(), LineSort(scratch=job.out, disk=job.disk) as sort:
            in_order = sort_lines(job.inputs, sort, damaged=damaged, read=read_blocks)
            job.do(sorted_blocks(sort), report, in_order=in_order, is_sure=True)
    if not report.rows:
        raise NoRowsError(report, job.inputs)
    write_report(job.out, report, disk=job.disk)
    return report


class _TableJob(NamedTuple):
    """A table that is made."""

    inputs: Sequence[Path]
    out: Path
    options: TableOptions
    disk: Disk
    progress: Callable[[int, int, TableReport], None]

    def do(self, blocks: Iterable[bytes], report: TableReport, *, in_order: bool, is_sure: bool) -> None:
        """Make all files of *blocks* of lines; NotInOrderError where it is not sure that they are.

        *in_order* is claimed of the rows in the files.
        """
        writer = TableWriter(
            self.out,
            self.options.schema,
            disk=self.disk,
            flat=self.options.flat,
            in_order=in_order,
            metadata=file_metadata(self.options.schema, self.inputs),
            file_rows=self.options.file_rows,
        )
        rejects = RejectsFile(beside(self.out, REJECTS_SUFFIX), disk=self.disk)
        try:
            with collector_at_rest(), steady_memory():
                self._fill(writer, blocks, rejects=rejects, report=report, is_sure=is_sure)
                paths = writer.finish()
            report.files = len(paths)
            rejects.seal()
            seal(paths, disk=self.disk)
        finally:
            writer.give_up()
            rejects.close()

    def _fill(
        self,
        writer: TableWriter,
        blocks: Iterable[bytes],
        *,
        rejects: RejectsFile,
        report: TableReport,
        is_sure: bool,
    ) -> None:
        last = None
        # Parquet is encoded without the interpreter's lock, so the next lines are parsed meanwhile.
        with ThreadPoolExecutor(1) as pool:
            pending: Future[None] | None = None
            for block in blocks:
                found = rows_of_block(block, self.options.schema, place=self.options.place)
                if not is_sure:
                    last = last_in_order(found.rows, last)
                report.add(found, place=self.options.place)
                rejects.add(found.rejects)
                if pending is not None:
                    pending.result()
                pending = pool.submit(writer.add, found.rows)
                if is_sure:
                    self.progress(0, 0, report)
            if pending is not None:
                pending.result()


def prepare(out: Path, *, disk: Disk) -> None:
    """Clear what a table that was given up left in *out*; UsageError where there is a table."""
    described = beside(out, REPORT_SUFFIX), beside(out, REJECTS_SUFFIX)
    with explained(out, "looked through"):
        begun = sorted(out.rglob("*.parquet" + OPEN_SUFFIX))
        present = next(out.rglob("*.parquet"), None)
    if present is not None:
        raise UsageError(
            f"{out} holds a table already ({present.name}). Remove it, or choose another directory."
        )
    for path in (*begun, *described):
        if path.exists():
            remove_durably(path, disk=disk)


def file_metadata(schema: TableSchema, inputs: Sequence[Path]) -> dict[str, str]:
    """Return what every file of a table says about how it was made."""
    names = [path.name for path in inputs[:_MOST_SOURCES_NAMED]]
    return {
        "amicrawl.table": schema.name,
        "amicrawl.schema_version": str(SCHEMA_VERSION),
        "amicrawl.version": __version__,
        "amicrawl.public_suffix_list": list_version(),
        "amicrawl.sources": orjson.dumps(
            [name.encode("utf-8", "replace").decode() for name in names]
        ).decode(),
        "amicrawl.source_count": str(len(inputs)),
    }


def write_report(out: Path, report: TableReport, *, disk: Disk) -> None:
    """Write `TABLE.report.json`, which says that the table is whole."""
    replace_file(beside(out, REPORT_SUFFIX), report_bytes(report), disk=disk)


def report_bytes(report: TableReport) -> bytes:
    """Return *report* as `TABLE.report.json` holds it."""
    return orjson.dumps(asdict(report), option=orjson.OPT_INDENT_2) + b"\n"


def beside(out: Path, suffix: str) -> Path:
    """Return the path of the file beside the table *out* that has its name with *suffix* behind it.

    A directory that is to lose its `.open` counts as the one that it becomes.
    """
    named = out if out.name not in ("", "..") else out.resolve()
    if not named.name:
        raise UsageError(f"{out} cannot be the directory of a table. Name one below it.")
    return named.with_name(named.name.removesuffix(OPEN_SUFFIX) + suffix)


class RejectsFile:
    """The lines that gave no row, each behind its reason and a tab; no file where there are none."""

    def __init__(self, path: Path, *, disk: Disk) -> None:
        self.path = path
        self._disk = disk
        self._file: OutputFile | None = None

    def add(self, rejects: Iterable[Reject]) -> None:
        """Take *rejects*."""
        block = b"".join([b"%s\t%s\n" % (reject.reason.encode(), reject.line) for reject in rejects])
        if block:
            self._file = self._file or OutputFile.replacing(self.path, disk=self._disk)
            self._file.write(block)

    def seal(self) -> None:
        """Give the file its name."""
        if self._file is not None:
            self._file.seal()

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()
