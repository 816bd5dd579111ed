"""`amicrawl index`: WARC and ARC files in, sorted CDXJ or CDX out."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from amicrawl.cli.archive_files import archive_files, make_directory
from amicrawl.cli.index_screen import Screen, size_of
from amicrawl.cli.terminal import harmless
from amicrawl.disk import Disk
from amicrawl.errors import ExitCode, InputError, OutputError, UsageError
from amicrawl.index.derivatives.naming import stem_of
from amicrawl.index.indexing import MARKS, IndexJob, finished, index_file, write_lines
from amicrawl.index.lines.cdx_text import Layout
from amicrawl.index.lines.cdxj import Compat, IndexOptions
from amicrawl.index.lines.sorting import merged_files, without_repeats
from amicrawl.index.reading.records import RECORD_TYPES
from amicrawl.index.workers import Done, Lost, run_jobs
from amicrawl.index.zipnum.cluster import BLOCK_LINES
from amicrawl.index.zipnum.writer import write_blocks, write_zipnum

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from amicrawl.index.collection.marks import Outcome

_STDIN = Path("-")


class Engine(StrEnum):
    """What indexes the files."""

    LOCAL = "local"
    SPARK = "spark"


def index(
    files: Annotated[
        list[Path],
        typer.Argument(help="WARC or ARC files, directories of them, or - for one on standard input."),
    ],
    *,
    out: Annotated[
        Path | None,
        typer.Option(
            "-o", "--out", help="Directory for one index a file; - for all on standard output."
        ),
    ] = None,
    merge: Annotated[
        Path | None,
        typer.Option(help="One sorted index of all files; - for standard output.", metavar="FILE"),
    ] = None,
    zipnum: Annotated[
        Path | None, typer.Option(help="Directory for a ZipNum cluster of all files.", metavar="DIR")
    ] = None,
    blocks: Annotated[
        Path | None,
        typer.Option(
            "-c",
            "--blocks",
            help="One index of all files in packed blocks, and their places.",
            metavar="FILE",
        ),
    ] = None,
    block_lines: Annotated[
        int, typer.Option("-l", "--block-lines", min=1, help="Lines of a block of -c and --zipnum.")
    ] = BLOCK_LINES,
    compat: Annotated[
        Compat, typer.Option(help="Whose lines are written, to the byte.")
    ] = Compat.CDXJ_INDEXER,
    layout: Annotated[Layout, typer.Option("--format", help="What a line looks like.")] = Layout.CDXJ,
    post: Annotated[
        bool, typer.Option("--post", "-p", help="Make method and body of a POST or PUT part of its key.")
    ] = False,
    every: Annotated[
        bool, typer.Option("--all", help="Index requests, warcinfo and all other records too.")
    ] = False,
    records: Annotated[
        str,
        typer.Option(help="Types of records that have lines, by commas, or all.", metavar="TYPES"),
    ] = "",
    fields: Annotated[
        str,
        typer.Option(
            "-f", "--fields", help="More fields, by commas: recordid, http:NAME, a WARC field."
        ),
    ] = "",
    only: Annotated[
        str,
        typer.Option("-rf", "--only-fields", help="All fields that a line is to have, by commas."),
    ] = "",
    digests: Annotated[
        bool,
        typer.Option("-d", "--record-digests", help="Add SHA-256 of each record's bytes as stored."),
    ] = False,
    root: Annotated[
        Path | None, typer.Option("--dir-root", help="Name files by their path below this directory.")
    ] = None,
    packed: Annotated[bool, typer.Option("--gzip", help="Compress the index with gzip.")] = False,
    jobs: Annotated[
        int, typer.Option("-j", "--jobs", min=0, help="Processes; 0 for one a processor.")
    ] = 0,
    again: Annotated[bool, typer.Option("--again", help="Do again what is done.")] = False,
    engine: Annotated[Engine, typer.Option(help="This machine, or a Spark cluster.")] = Engine.LOCAL,
    master: Annotated[
        str,
        typer.Option(help="Spark's master; where none is given, what spark-submit says.", metavar="URL"),
    ] = "",
) -> None:
    """Index FILES: a sorted CDXJ file for each, in the current directory or that of -o.

    What is done and whose file has not changed is not done again. Exit code 5 where something of a file
    is lost; the rest of it is indexed. Example: amicrawl index crawl/*.warc.gz -o cdxj/
    """
    if out == _STDIN:
        out, merge = None, merge or _STDIN
    if only and (fields or layout is not Layout.CDXJ):
        raise UsageError("--only-fields says all that a line has. Leave -f and --format out.")
    types = _listed(records)
    if unknown := sorted(set(types) - {*RECORD_TYPES, "all"}):
        raise UsageError(
            f"There are no records of type {', '.join(unknown)}. "
            f"Choose from {', '.join(RECORD_TYPES)}, all."
        )
    options = IndexOptions(
        compat=compat,
        post=post,
        all_records=every or "all" in types,
        fields=_listed(only or fields),
        only_fields=bool(only),
        records=types,
        stored_digests=digests,
    )
    whole = _Whole(merge=merge, zipnum=zipnum, blocks=blocks, block_lines=block_lines, packed=packed)
    if (zipnum or blocks) is not None and layout is not Layout.CDXJ:
        raise UsageError(
            "A ZipNum cluster, or one of blocks, is made of CDXJ lines. Leave --format out."
        )
    together = whole.is_asked_for
    work = _Work(options, layout, packed=packed and not together, again=again, processes=jobs)
    if engine is Engine.SPARK:
        if _STDIN in files or (together and out is None and whole.parts is None):
            raise UsageError("Workers read and write files. Name files, and a directory with -o.")
        work = replace(work, master=master)
    with tempfile.TemporaryDirectory(prefix="amicrawl-index-") as scratch:
        sources = list(_sources(files, Path(scratch)))
        parts = whole.parts or Path(scratch) / "parts"
        directory = out or (parts if together else Path())
        make_directory(directory / MARKS)
        told = work.do(work.jobs_for(sources, directory, root=root))
        if together:
            whole.write([job.path for job in told.sound], directory)
            if out is None:
                shutil.rmtree(directory)
    told.end()


def _listed(names: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in names.split(",") if name.strip())


@dataclass(frozen=True, kw_only=True)
class _Whole:
    """What is made of the indexes of all files together."""

    merge: Path | None
    zipnum: Path | None
    blocks: Path | None
    block_lines: int
    packed: bool

    @property
    def is_asked_for(self) -> bool:
        """Whether anything is."""
        return any(out is not None for out in (self.merge, self.zipnum, self.blocks))

    @property
    def parts(self) -> Path | None:
        """Where the indexes of single files wait to be merged, and a broken run is gone on with."""
        beside = next(
            (out for out in (self.merge, self.zipnum, self.blocks) if out not in (None, _STDIN)), None
        )
        return beside.with_name(f"{beside.name}.parts") if beside is not None else None

    def write(self, parts: Sequence[Path], scratch: Path) -> None:
        """Write it from *parts*, each in byte order."""
        if self.merge is not None:
            with merged_files(parts, scratch=scratch) as lines:
                if self.merge == _STDIN:
                    _print(without_repeats(lines))
                else:
                    # The legends of the parts come first, and are one.
                    write_lines(without_repeats(lines), self.merge, packed=self.packed, disk=Disk())
        if self.zipnum is not None:
            make_directory(self.zipnum)
            with merged_files(parts, scratch=scratch) as lines:
                write_zipnum(lines, self.zipnum, disk=Disk(), block_lines=self.block_lines, replace=True)
        if self.blocks is not None:
            with merged_files(parts, scratch=scratch) as lines:
                write_blocks(lines, self.blocks, disk=Disk(), block_lines=self.block_lines)


@dataclass
class _Told:
    """What came of the files."""

    sound: list[IndexJob] = field(default_factory=list)
    """Jobs whose index is there, in the order of the files."""
    lines: int = 0
    records: int = 0
    lost: int = 0
    before: int = 0
    unreadable: int = 0
    failed: int = 0

    def add(self, job: IndexJob, outcome: Outcome, *, before: bool) -> None:
        self.sound.append(job)
        self.records += outcome.records
        self.lines += sum(made.entries for made in outcome.products.values())
        self.lost += outcome.lost
        self.before += before
        for loss in outcome.losses:
            _complain(f"{outcome.source}, byte {loss.offset}: {loss.reason}")
        if outcome.lost > len(outcome.losses):
            _complain(f"{outcome.source}: and {outcome.lost - len(outcome.losses):,} more")

    def lose(self, job: IndexJob, lost: Lost[IndexJob]) -> None:
        if lost.error == OutputError.__name__:
            raise OutputError(lost.reason)
        self.unreadable += lost.error == InputError.__name__
        self.failed += 1
        offset = lost.last.offset if lost.last is not None else 0
        _complain(
            lost.reason
            if lost.error == InputError.__name__
            else f"{job.source}, byte {offset} or behind: {lost.reason}"
        )

    def end(self) -> None:
        """Say what was done, and end with the exit code that says what was not."""
        before = f", {self.before:,} of them before" if self.before else ""
        lost = f", {self.lost:,} losses" if self.lost else ""
        failed = f", {self.failed:,} files failed" if self.failed else ""
        _complain(
            f"{len(self.sound):,} files{before}: {self.lines:,} lines of {self.records:,} records"
            f"{lost}{failed}"
        )
        if self.unreadable:
            raise typer.Exit(ExitCode.INPUT)
        if self.lost or self.failed:
            raise typer.Exit(ExitCode.DAMAGED)


@dataclass
class _Work:
    """How the files are indexed."""

    options: IndexOptions
    layout: Layout
    packed: bool
    again: bool
    processes: int
    master: str | None = None
    """Of Spark, which does the work then; None where this machine does it."""

    def jobs_for(
        self, sources: Sequence[tuple[Path, str]], out: Path, *, root: Path | None
    ) -> list[IndexJob]:
        """Return a job for each of *sources*; UsageError where two would have one output."""
        jobs: dict[str, IndexJob] = {}
        for source, given in sources:
            name = stem_of(Path(given)) + self.layout.ending + (".gz" if self.packed else "")
            if name in jobs:
                raise UsageError(
                    f"{jobs[name].source} and {source} would both become {out / name}. "
                    "Index them into two directories."
                )
            filename = _below(source, root) if root is not None and given == source.name else given
            jobs[name] = IndexJob(
                source, out, name, filename, self.options, self.layout, packed=self.packed
            )
        return list(jobs.values())

    def do(self, jobs: Sequence[IndexJob]) -> _Told:
        """Index what is not done, and say what is lost as it is found."""
        told = _Told()
        waiting = []
        for job in jobs:
            known = None if self.again else finished(job)
            if known is None:
                waiting.append(job)
            else:
                told.add(job, known, before=True)
        screen = Screen(len(jobs), len(told.sound), sum(size_of(job.source) for job in waiting))
        try:
            for job, came in self._outcomes(waiting, screen):
                screen.clear()
                if isinstance(came, Lost):
                    told.lose(job, came)
                else:
                    told.add(job, came, before=False)
        except KeyboardInterrupt:
            screen.clear()
            _complain("Stopped. Start it again to go on: what is done is not done again.")
            raise typer.Exit(ExitCode.STOPPED) from None
        screen.clear()
        order = {job.name: number for number, job in enumerate(jobs)}
        told.sound.sort(key=lambda job: order[job.name])
        return told

    def _outcomes(
        self, jobs: Sequence[IndexJob], screen: Screen
    ) -> Iterator[tuple[IndexJob, Outcome | Lost[IndexJob]]]:
        if self.master is not None:
            # Both need an extra.
            from amicrawl.index.spark import index_on_spark  # noqa: PLC0415
            from amicrawl.table.spark import session  # noqa: PLC0415

            with session(self.master) as spark:
                yield from index_on_spark(spark, jobs)
            return
        processes = self.processes or len(os.sched_getaffinity(0))
        if len(jobs) == 1 or processes == 1:
            for job in jobs:
                try:
                    yield job, index_file(job, screen.teller(job))
                except InputError as error:
                    yield job, Lost(job, str(error), None, InputError.__name__)
                screen.done(job)
            return
        for said in run_jobs(jobs, index_file, processes=processes):
            if isinstance(said, Done):
                screen.done(said.job)
                yield said.job, said.answer
            elif isinstance(said, Lost):
                screen.done(said.job)
                yield said.job, said
            else:
                screen.tell(said.job, said.message)


def _sources(files: Sequence[Path], scratch: Path) -> Iterator[tuple[Path, str]]:
    """Yield each file and what it is called; what comes on standard input is put into *scratch*."""
    named = [path for path in files if path != _STDIN]
    if len(named) < len(files):
        spooled = scratch / "stdin"
        try:
            with spooled.open("wb") as spool:
                while block := sys.stdin.buffer.read(1 << 20):
                    spool.write(block)
        except OSError as error:
            raise OutputError(
                f"Standard input cannot be kept in {scratch}: {error.strerror}. "
                "Set TMPDIR to where there is room."
            ) from error
        yield spooled, "-"
    if named:
        for path in archive_files(named):
            yield path, path.name


def _below(source: Path, root: Path) -> str:
    return os.path.relpath(source, root)


def _print(lines: Iterable[bytes]) -> None:
    stream = sys.stdout.buffer
    for line in lines:
        stream.write(line)
    stream.flush()


def _complain(sentence: str) -> None:
    typer.echo(harmless(sentence, limit=2000), err=True)
