"""What is made of archives: an index, a table, a summary, a package. The commands call these functions.

Paths may be `str` or `Path`. Nothing is printed; what was lost is in what is returned.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amicrawl.disk import Disk, explained
from amicrawl.errors import InputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from amicrawl.archive.index import (
        Collected,
        Failed,
        FileJob,
        FileOutcome,
        Packed,
        ProductOptions,
        RunState,
    )
    from amicrawl.archive.report import Counts, ReadingProgress
    from amicrawl.archive.table import TableOptions, TableReport
    from amicrawl.reading import Broken

    AnyPath = str | os.PathLike[str]
    Paths = AnyPath | Iterable[AnyPath]


def index(
    files: Paths,
    *,
    out: AnyPath,
    options: ProductOptions | None = None,
    root: AnyPath | None = None,
    processes: int = 1,
    again: bool = False,
) -> Collected:
    """Write a sorted CDXJ file to the directory *out* for each of *files*, WARC or ARC, or directories.

    Names in the lines are those below *root*, else names alone. *processes* work, 0 for one per core;
    more than one needs a script with `if __name__ == "__main__":`.
    Files that are indexed already are not read again, unless with *again*. Returns the outcome of each
    file; `is_sound` is False where a part could not be read. Raises InputError for what is not there,
    UsageError for two files of one name, OutputError where *out* cannot be written.
    """
    # Each of these functions imports what it needs: that of another takes longer than a small file.
    from amicrawl.archive.index import MARKS, ProductOptions  # noqa: PLC0415
    from amicrawl.archive.lines import archive_files  # noqa: PLC0415

    above = _path(root) if root else None
    check_root(above)
    sources = [(path, path.name) for path in archive_files(_listed(files))]
    place = _path(out)
    jobs = index_jobs(sources, place, options=options or ProductOptions(), root=above)
    with explained(place, "created"):
        (place / MARKS).mkdir(parents=True, exist_ok=True)
    return index_by(jobs, processes=processes, again=again)


def index_by(
    jobs: Sequence[FileJob],
    *,
    processes: int = 0,
    again: bool = False,
    show: Callable[[RunState], None] = lambda _: None,
    came: Callable[[FileJob, FileOutcome | Failed], None] = lambda _job, _came: None,
) -> Collected:
    """Do *jobs* with so many *processes*; *show* receives the progress, *came* what came of each."""
    from amicrawl.archive.index import collect_by, collect_file  # noqa: PLC0415
    from amicrawl.archive.workers import run_jobs  # noqa: PLC0415

    count = processes or len(os.sched_getaffinity(0))
    is_alone = count == 1 or len(jobs) <= 1
    run = None if is_alone else partial(run_jobs, work=collect_file, processes=count)
    return collect_by(run, jobs, show=show, came=came, again=again)


ROOT = "root={!r}"
"""How the argument is written that names the directory which names in an index are below."""


def check_root(root: Path | None, *, written: str = ROOT) -> None:
    """Raise UsageError where *root* is not a directory; the sentence has it as *written*."""
    if root is not None and not root.is_dir():
        raise UsageError(
            f"{written.format(str(root))} is not a directory. Name one that is above all files."
        )


def index_jobs(
    sources: Sequence[tuple[Path, str]],
    out: Path,
    *,
    options: ProductOptions,
    root: Path | None,
    written: str = ROOT,
) -> list[FileJob]:
    """Return a job for each of *sources*.

    UsageError where an index could not tell two apart; the sentence has *root* as *written*.
    """
    from amicrawl.archive.index import FileJob, named_apart  # noqa: PLC0415

    named: dict[str, Path] = {}
    for source, given in sources:
        name = os.path.relpath(source, root) if root is not None and given == source.name else given
        if name in named:
            raise UsageError(_alike(named[name], source, name, root=root, written=written))
        named[name] = source
    given_paths = [source if given == source.name else Path(given) for source, given in sources]
    stems = named_apart(given_paths)
    return [
        FileJob(source, stems[path], out, ("cdxj",), name, options, in_directories=False)
        for (name, source), path in zip(named.items(), given_paths, strict=True)
    ]


def summary(
    paths: Paths,
    *,
    kind: str | None = None,
    rules: str | None = None,
    progress: Callable[[int, int, Counts], None] = lambda *_: None,
) -> ReadingProgress:
    """Count what the indexes, tables or archive files at *paths*, or URIs of them, hold together.

    `counts` of what is returned has the figures, `damage` what could not be read. *kind* and *progress*
    are those of `read_counts`. Raises InputError for what is not there, UsageError for unknown kinds
    and *rules*.
    """
    from amicrawl.archive.report import CDX_SUMMARY, CORRECTED, KINDS, read_counts  # noqa: PLC0415

    if kind is not None and kind not in KINDS:
        raise UsageError(f"kind={kind!a} is not known. Choose one of {', '.join(KINDS)}.")
    if rules not in {None, CORRECTED, CDX_SUMMARY}:
        raise UsageError(f"rules={rules!a} is not known. Choose {CORRECTED} or {CDX_SUMMARY}.")
    names = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    for name in names:
        _path(name)
    return read_counts(names, rules=rules or CORRECTED, kind=kind, progress=progress)


def table(
    inputs: Paths,
    *,
    out: AnyPath,
    options: TableOptions | None = None,
    progress: Callable[[int, int, TableReport], None] = lambda *_: None,
) -> TableReport:
    """Convert the CDXJ files in *inputs*, files or directories, to a table of Parquet files in *out*.

    Raises as `make_table`: InputError for a file that is not there or no rows, UsageError where *out*
    has a table already, OutputError where it cannot be written.
    """
    from amicrawl.archive.lines import files_in  # noqa: PLC0415
    from amicrawl.archive.table import make_table  # noqa: PLC0415

    return make_table(
        files_in(_listed(inputs)), _path(out), disk=Disk(), options=options, progress=progress
    )


def wacz(
    warcs: Paths,
    *,
    out: AnyPath,
    title: str = "",
    description: str = "",
    main_page: str = "",
    pages: AnyPath | None = None,
    created: datetime | None = None,
    on_broken: Callable[[Broken], None] = lambda _: None,
    on_left_out: Callable[[Path], None] = lambda _: None,
) -> Packed:
    """Package *warcs*, WARC files or directories of them, with an index and a page list as *out*.

    With *pages*, the `captures.parquet` of the crawl, those pages are listed that it has whole.
    *on_broken* receives what could not be read, *on_left_out* files of a directory that cannot be in a
    package. Raises InputError where there is no WARC file, UsageError for a main page that is not in it.
    """
    from amicrawl.archive.index import Description, pages_in_table, write_wacz  # noqa: PLC0415

    moment = created or datetime.now(UTC).replace(microsecond=0)
    more: dict[str, Any] = {} if pages is None else {"is_page": pages_in_table(_path(pages))}
    return write_wacz(
        _packable(_listed(warcs), on_left_out),
        _path(out),
        description=Description(moment, title, description, main_page),
        disk=Disk(),
        on_broken=on_broken,
        **more,
    )


def _path(path: AnyPath) -> Path:
    """Return *path*; raises UsageError for one that the system could not be called with."""
    if "\0" in (name := os.fspath(path)):
        raise UsageError(f"{name!a} is not a path: it has a NUL.")
    return Path(path)


def _listed(paths: Paths) -> list[Path]:
    if isinstance(paths, str | os.PathLike):
        return [_path(paths)]
    listed = [_path(path) for path in paths]
    if not listed:
        raise InputError("There are no files. Give one, several, or a directory that has some.")
    return listed


def _packable(given: Sequence[Path], on_left_out: Callable[[Path], None]) -> list[Path]:
    """Return the files that are named, and of directories the WARC files in them, sorted."""
    from amicrawl.archive.index import WACZ_SUFFIXES  # noqa: PLC0415
    from amicrawl.archive.lines import archive_files  # noqa: PLC0415

    found, named = [], frozenset(given)
    for path in archive_files(given):
        if path in named or path.name.endswith(WACZ_SUFFIXES):
            found.append(path)
        else:
            on_left_out(path)
    if not found:
        names = ", ".join(map(str, given))
        raise InputError(f"There is no {' or '.join(WACZ_SUFFIXES)} file in {names}.")
    return found


def _alike(one: Path, other: Path, name: str, *, root: Path | None, written: str) -> str:
    """Return the sentence for two files that the lines of an index would call the same *name*."""
    if root is not None or one.absolute() == other.absolute():
        return f"{one} and {other} would both be {name} in the index. Name each file once."
    shared = Path(os.path.commonpath([one.absolute().parent, other.absolute().parent]))
    above = os.path.relpath(shared) if shared.is_relative_to(Path.cwd()) else shared
    return (
        f"{one} and {other} would both be {name} in the index, so a look-up could not distinguish them. "
        f"Give {written.format(str(above))}: it names them by their paths below that directory."
    )
