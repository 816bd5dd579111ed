"""`amicrawl index`: WARC and ARC files in, sorted CDXJ or CDX out."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from amicrawl.cli.archive_files import archive_files, is_watched, make_directory
from amicrawl.cli.terminal import harmless, human_size
from amicrawl.disk import Disk
from amicrawl.errors import ExitCode, InputError, OutputError, UsageError
from amicrawl.index.derivatives.file import stem_of
from amicrawl.index.indexing import MARKS, IndexJob, Progress, finished, index_file, write_lines
from amicrawl.index.lines.cdx_text import Layout
from amicrawl.index.lines.cdxj import Compat, IndexOptions
from amicrawl.index.lines.sorting import merged_files, without_repeats
from amicrawl.index.workers import Done, Lost, run_jobs
from amicrawl.index.zipnum.writer import write_zipnum

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from amicrawl.index.collection.marks import Outcome

_STDIN = Path("-")


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
    fields: Annotated[
        str,
        typer.Option(
            "-f", "--fields", help="More fields, by commas: recordid, http:NAME, a WARC field."
        ),
    ] = "",
    root: Annotated[
        Path | None, typer.Option("--dir-root", help="Name files by their path below this directory.")
    ] = None,
    packed: Annotated[bool, typer.Option("--gzip", help="Compress the index with gzip.")] = False,
    jobs: Annotated[
        int, typer.Option("-j", "--jobs", min=0, help="Processes; 0 for one a processor.")
    ] = 0,
    again: Annotated[bool, typer.Option("--again", help="Do again what is done.")] = False,
) -> None:
    """Index FILES: a sorted CDXJ file for each, in the current directory or that of -o.

    What is done and whose file has not changed is not done again. Exit code 5 where something of a file
    is lost; the rest of it is indexed. Example: amicrawl index crawl/*.warc.gz -o cdxj/
    """
    if out == _STDIN:
        out, merge = None, merge or _STDIN
    names = tuple(name.strip() for name in fields.split(",") if name.strip())
    options = IndexOptions(compat=compat, post=post, all_records=every, fields=names)
    if zipnum is not None and layout is not Layout.CDXJ:
        raise UsageError("A ZipNum cluster is made of CDXJ lines. Leave --format out.")
    together = merge is not None or zipnum is not None
    work = _Work(options, layout, packed=packed and not together, again=again, processes=jobs)
    with tempfile.TemporaryDirectory(prefix="amicrawl-index-") as scratch:
        sources = list(_sources(files, Path(scratch)))
        parts = _parts(merge, zipnum) or Path(scratch) / "parts"
        directory = out or (parts if together else Path())
        make_directory(directory / MARKS)
        told = work.do(work.jobs_for(sources, directory, root=root))
        if together:
            _bring_together(
                [job.path for job in told.sound], directory, merge=merge, zipnum=zipnum, packed=packed
            )
            if out is None:
                shutil.rmtree(directory)
    told.end()


def _parts(merge: Path | None, zipnum: Path | None) -> Path | None:
    """Return where the indexes of single files wait to be merged, and a broken run is gone on with."""
    beside = merge if merge not in (None, _STDIN) else zipnum
    return beside.with_name(f"{beside.name}.parts") if beside is not None else None


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
        screen = _Screen(len(jobs), len(told.sound), sum(_size(job.source) for job in waiting))
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
        self, jobs: Sequence[IndexJob], screen: _Screen
    ) -> Iterator[tuple[IndexJob, Outcome | Lost[IndexJob]]]:
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


def _bring_together(
    parts: Sequence[Path],
    scratch: Path,
    *,
    merge: Path | None,
    zipnum: Path | None,
    packed: bool,
) -> None:
    if merge is not None:
        with merged_files(parts, scratch=scratch) as lines:
            if merge == _STDIN:
                _print(without_repeats(lines))
            else:
                # The legends of the parts come first, and are one.
                write_lines(without_repeats(lines), merge, packed=packed, disk=Disk())
    if zipnum is not None:
        make_directory(zipnum)
        with merged_files(parts, scratch=scratch) as lines:
            write_zipnum(lines, zipnum, disk=Disk(), replace=True)


def _print(lines: Iterable[bytes]) -> None:
    stream = sys.stdout.buffer
    for line in lines:
        stream.write(line)
    stream.flush()


def _complain(sentence: str) -> None:
    typer.echo(harmless(sentence, limit=2000), err=True)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


class _Screen:
    """One line on a terminal that says how far it is; nothing where nobody looks."""

    def __init__(self, files: int, before: int, total: int) -> None:
        self._is_watched = is_watched()
        self._files = files
        self._done = before
        self._total = total
        self._at: dict[str, Progress] = {}
        self._began = self._shown = time.monotonic()
        self._width = 0

    def teller(self, job: IndexJob) -> Teller:
        """Return what is told how far *job* is."""
        return Teller(self, job)

    def tell(self, job: IndexJob, at: Progress) -> None:
        """Take in how far *job* is, and show it now and then."""
        self._at[job.name] = at
        now = time.monotonic()
        if self._is_watched and now - self._shown >= 0.2:
            self._shown = now
            self._show(now - self._began)

    def done(self, job: IndexJob) -> None:
        """Take in that *job* is done."""
        self._done += 1
        records = self._at[job.name].records if job.name in self._at else 0
        self.tell(job, Progress(_size(job.source), records))

    def _show(self, seconds: float) -> None:
        read = sum(at.offset for at in self._at.values())
        records = sum(at.records for at in self._at.values())
        line = (
            f"{self._done:,} of {self._files:,} files, {records:,} records, {human_size(read)} of "
            f"{human_size(self._total)}, {records / seconds:,.0f} records/s"
        )
        self._width = max(self._width, len(line))
        sys.stderr.write(f"\r{line:<{self._width}}")
        sys.stderr.flush()

    def clear(self) -> None:
        """Make room for other lines."""
        if self._width:
            sys.stderr.write(f"\r{'':<{self._width}}\r")
            sys.stderr.flush()
            self._width = 0


@dataclass(frozen=True)
class Teller:
    """What a file's reading tells its progress to."""

    screen: _Screen
    job: IndexJob

    def __call__(self, at: Progress) -> None:
        """Take in how far the reading is."""
        self.screen.tell(self.job, at)
