"""The work of `amicrawl index`: which files, how each is indexed, what is made of all together."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from amicrawl.cli.archive_files import archive_files, check_root, make_directory
from amicrawl.cli.index_screen import Screen, size_of
from amicrawl.cli.processes import as_many, to_be_continued
from amicrawl.cli.terminal import counted, harmless
from amicrawl.disk import Disk
from amicrawl.errors import ExitCode, InputError, OutputError, UsageError
from amicrawl.index.derivatives.naming import named_apart
from amicrawl.index.indexing import MARKS, IndexJob, finished, index_file, write_lines
from amicrawl.index.lines.cdx_text import Layout
from amicrawl.index.lines.sorting import merged_files, without_repeats
from amicrawl.index.workers import Done, Lost, run_jobs
from amicrawl.index.zipnum.writer import write_blocks, write_zipnum

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from amicrawl.index.collection.marks import Outcome
    from amicrawl.index.lines.cdxj import IndexOptions

STANDARD = Path("-")
"""Standard input or output."""


def index_files(
    files: Sequence[Path], out: Path | None, *, work: Work, whole: Whole, root: Path | None
) -> None:
    """Index *files* into the directory *out*, and make of it what *whole* asks for.

    Ends with the exit code that says what was lost. The names in the index are those below *root*.
    """
    whole.check()
    check_root(root)
    with tempfile.TemporaryDirectory(prefix="amicrawl-index-") as scratch:
        sources = list(_sources(files, Path(scratch)))
        parts = whole.parts or Path(scratch) / "parts"
        directory = out or (parts if whole.is_asked_for else Path())
        make_directory(directory / MARKS)
        told = work.do(work.jobs_for(sources, directory, root=root))
        if whole.is_asked_for:
            whole.write([job.path for job in told.sound], directory)
            if out is None:
                shutil.rmtree(directory)
    told.end()


@dataclass(frozen=True, kw_only=True)
class Whole:
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

    def check(self) -> None:
        """Raise OutputError where a file is asked for in place of a directory."""
        for path, option in ((self.merge, "--merge"), (self.blocks, "--blocks")):
            if path is not None and path.is_dir():
                raise OutputError(f"{path} is a directory. Name a file with {option}.")

    @property
    def parts(self) -> Path | None:
        """Where the indexes of single files wait to be merged, and a broken run is gone on with."""
        beside = next(
            (
                out
                for out in (self.merge, self.zipnum, self.blocks)
                if out not in (None, STANDARD) and (not out.exists() or out.is_file() or out.is_dir())
            ),
            None,
        )
        return beside.with_name(f"{beside.name}.parts") if beside is not None else None

    def write(self, parts: Sequence[Path], scratch: Path) -> None:
        """Write it from *parts*, each in byte order."""
        if self.merge is not None:
            with merged_files(parts, scratch=scratch) as lines:
                if self.merge == STANDARD:
                    _write_out(without_repeats(lines))
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
class Told:
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
        """Count what came of *job*, and say what is lost; *before* tells that an earlier run did it."""
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
        """Count *job* as failed and say why; raises OutputError, which all the others would meet too."""
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
        lost = f", lost in {counted(self.lost, 'place')}" if self.lost else ""
        failed = f", {counted(self.failed, 'file')} failed" if self.failed else ""
        _complain(
            f"{counted(len(self.sound), 'file')}{before}: {counted(self.lines, 'line')} "
            f"of {counted(self.records, 'record')}{lost}{failed}"
        )
        if self.unreadable:
            raise typer.Exit(ExitCode.INPUT)
        if self.lost or self.failed:
            raise typer.Exit(ExitCode.DAMAGED)


@dataclass(frozen=True)
class Work:
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
        """Return a job for each of *sources*; UsageError where an index could not tell two apart."""
        named: dict[str, Path] = {}
        for source, given in sources:
            name = _below(source, root) if root is not None and given == source.name else given
            if name in named:
                raise UsageError(_alike(named[name], source, name, root=root))
            named[name] = source
        ending = self.layout.ending + (".gz" if self.packed else "")
        given_paths = [source if given == source.name else Path(given) for source, given in sources]
        stems = named_apart(given_paths)
        return [
            IndexJob(
                source, out, stems[path] + ending, name, self.options, self.layout, packed=self.packed
            )
            for (name, source), path in zip(named.items(), given_paths, strict=True)
        ]

    def do(self, jobs: Sequence[IndexJob]) -> Told:
        """Index what is not done, and say what is lost as it is found."""
        told = Told()
        waiting = []
        for job in jobs:
            known = None if self.again else finished(job)
            if known is None:
                waiting.append(job)
            else:
                told.add(job, known, before=True)
        screen = Screen(len(jobs), len(told.sound), sum(size_of(job.source) for job in waiting))
        with to_be_continued(screen.clear):
            for job, came in self._outcomes(waiting, screen):
                screen.clear()
                if isinstance(came, Lost):
                    told.lose(job, came)
                else:
                    told.add(job, came, before=False)
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
        processes = as_many(self.processes)
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
    named = [path for path in files if path != STANDARD]
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


def _alike(one: Path, other: Path, name: str, *, root: Path | None) -> str:
    """Return the sentence for two files that the lines of an index would call the same *name*."""
    if root is not None or one.absolute() == other.absolute():
        return f"{one} and {other} would both be {name} in the index. Name each file once."
    shared = Path(os.path.commonpath([one.absolute().parent, other.absolute().parent]))
    above = os.path.relpath(shared) if shared.is_relative_to(Path.cwd()) else shared
    return (
        f"{one} and {other} would both be {name} in the index, and whoever looks a capture up could not "
        f"tell which. Give --dir-root {above}, and it names them by their paths below that directory."
    )


def _write_out(lines: Iterable[bytes]) -> None:
    stream = sys.stdout.buffer
    for line in lines:
        stream.write(line)
    stream.flush()


def _complain(sentence: str) -> None:
    typer.echo(harmless(sentence, limit=2000), err=True)
