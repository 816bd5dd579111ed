"""Inputs of a summary: their formats are recognised, they are opened and counted block by block.

A file is known by its first bytes, not by its name: Parquet, gzip or bzip2 around something, JSON that a
summary was written as, CDXJ by the brace that begins the third word of a line, else CDX. A directory is
a ZipNum cluster if it has an `.idx` file, a table if it holds Parquet files, else the CDX files in it.
A file that is truncated is counted up to there, and named.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from amicrawl.errors import DamagedFileError, InputError, UsageError
from amicrawl.index.lines.line_reader import octet_blocks, refuse_collection
from amicrawl.report.cdx_batches import Legends, cdx_lines
from amicrawl.report.cdxj_batches import cdxj_lines
from amicrawl.report.counting import counted
from amicrawl.report.counts import CORRECTED, Counts
from amicrawl.report.counts_json import counts_from_json
from amicrawl.report.layout import layout_named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from concurrent.futures import Future

    from amicrawl.report.batch import Lines

KINDS = ("cdx7", "cdx9", "cdx10", "cdx11", "cdxj", "zipnum", "parquet", "captures")
"""Formats that `--from` can name."""

STDIN = "-"

_BLOCK = 2 * 1024**2
_KEPT = 31 * 1024**2
_PARQUET = b"PAR1"
_AHEAD = 2
_SNIFFED = 1 << 16
_LINES_SNIFFED = 20


@dataclass(slots=True)
class Reading:
    """What was read so far, and what could not be."""

    counts: Counts
    damage: list[str] = field(default_factory=list)
    """A sentence for each input that is truncated."""


def read_counts(
    paths: Sequence[str],
    *,
    rules: str = CORRECTED,
    kind: str | None = None,
    threads: int = 2,
    progress: Callable[[int, int, Counts], None] = lambda *_: None,
) -> Reading:
    """Count *paths* one after the other; InputError where one cannot be opened.

    *kind* is one of `KINDS`, else it is found out. `-` stands for standard input.
    *progress* receives how many bytes are read of how many, 0 where that is not known, and the counts.
    """
    if kind is not None and kind not in KINDS:
        raise UsageError(f"--from {kind!r} is not known; choose one of {', '.join(KINDS)}.")
    reading = Reading(Counts(rules=rules))
    _keep_what_is_freed()
    files = list(chain.from_iterable(map(files_of, paths)))
    total = 0 if STDIN in paths else sum(_size_of(path) for path in files)
    read = 0

    def reading_on(size: int) -> None:
        nonlocal read
        read += size

    with ThreadPoolExecutor(threads) as pool:
        for path in files:
            try:
                for part in _parts(path, pool, rules=rules, kind=kind, on_read=reading_on):
                    reading.counts.absorb(part)
                    progress(read, total, reading.counts)
            except DamagedFileError as error:
                reading.damage.append(str(error))
    return reading


def _keep_what_is_freed() -> None:
    """Have the allocator of glibc keep the memory of one block for the next.

    It keeps twice the largest piece that it ever got back, else it asks the system for the same pages
    again and again: a tenth of the processor time. This piece is given back untouched.
    """
    np.empty(_KEPT, np.uint8)


def files_of(name: str) -> list[Path]:
    """Return the files that make up the input *name*, in their order."""
    path = Path(name)
    if name == STDIN or not path.is_dir():
        return [path]
    cluster = _shards(path)
    tables = [file for file in sorted(path.rglob("*.parquet")) if file.is_file()]
    if not cluster and not tables:
        refuse_collection(path)
    files = cluster or tables or [file for file in sorted(path.rglob("*")) if _looks_like_index(file)]
    if not files:
        raise InputError(
            f"{path} holds no ZipNum cluster (.idx), no Parquet files and no .cdx or .cdxj files. "
            "Name the files, or another directory."
        )
    return files


def _shards(directory: Path) -> list[Path]:
    """Return the parts of the ZipNum cluster in *directory*, in the order of its index."""
    for index in sorted([*directory.glob("*.idx"), *directory.glob("*.summary")]):
        names: dict[str, None] = {}
        with _explained(index), index.open("rb") as lines:
            for line in lines:
                words = line.rstrip(b"\n").split(b"\t")
                if len(words) >= 4:
                    names.setdefault(Path(words[1].decode("utf-8", "replace")).name)
        found = [
            next((file for file in (directory / name, directory / f"{name}.gz") if file.is_file()), None)
            for name in names
        ]
        missing = [name for name, file in zip(names, found, strict=True) if file is None]
        if missing:
            raise InputError(
                f"{index} names parts that are not beside it: {', '.join(missing[:5])}. Fetch them, or "
                "name the parts that are there one by one."
            )
        if found:
            return [file for file in found if file is not None]
    return []


def _looks_like_index(file: Path) -> bool:
    name = file.name.removesuffix(".gz").removesuffix(".bz2")
    return name.endswith((".cdx", ".cdxj")) and file.is_file()


def _size_of(path: Path) -> int:
    with _explained(path):
        return path.stat().st_size


def _parts(
    path: Path,
    pool: ThreadPoolExecutor,
    *,
    rules: str,
    kind: str | None,
    on_read: Callable[[int], None],
) -> Iterator[Counts]:
    if kind in {"parquet", "captures"} or (kind is None and is_parquet(path)):
        # Readers of Parquet and keys of URLs take a tenth of a second to load, and text needs neither.
        from amicrawl.report.parquet import table_lines  # noqa: PLC0415

        yield from _in_order(
            pool, (partial(_itself, lines) for lines in table_lines(path, on_read)), rules=rules
        )
        return
    blocks = octet_blocks(path, block_bytes=_BLOCK, on_read=on_read)
    first = next(blocks, b"")
    if kind is None and first.lstrip()[:1] == b"{":
        yield _loaded(path, b"".join(chain([first], blocks)), rules=rules)
        return
    yield from _in_order(pool, _jobs(first, blocks, rules=rules, kind=kind), rules=rules)


def _jobs(
    first: bytes, blocks: Iterator[bytes], *, rules: str, kind: str | None
) -> Iterator[Callable[[], Lines]]:
    """Yield what turns each piece of a file that begins with *first* into a batch."""
    if kind in {"cdxj", "zipnum"} or (kind is None and _is_cdxj(first)):
        for block in chain([first], blocks):
            yield partial(cdxj_lines, block)
        return
    legends = Legends(layout_named(kind or ""))
    for block in chain([first], blocks):
        for piece in legends.pieces(block):
            yield partial(cdx_lines, piece, rules=rules)


def _itself(lines: Lines) -> Lines:
    return lines


def _in_order(
    pool: ThreadPoolExecutor, jobs: Iterator[Callable[[], Lines]], *, rules: str
) -> Iterator[Counts]:
    """Yield the counts of *jobs* in their order; a few are in work at a time."""

    def done(job: Callable[[], Lines]) -> Counts:
        lines = job()
        return counted(lines.batch, rules=rules, skipped=lines.skipped)

    waiting: deque[Future[Counts]] = deque()
    fault: DamagedFileError | None = None
    try:
        for job in jobs:
            waiting.append(pool.submit(done, job))
            if len(waiting) > _AHEAD:
                yield waiting.popleft().result()
    except DamagedFileError as error:
        # The rest of the file is lost; what was read before it broke off is not.
        fault = error
    while waiting:
        yield waiting.popleft().result()
    if fault is not None:
        raise fault


def is_parquet(path: Path) -> bool:
    """Tell whether *path* begins like a Parquet file; InputError where it cannot be read."""
    if str(path) == STDIN:
        return False
    with _explained(path), path.open("rb") as file:
        return file.read(len(_PARQUET)) == _PARQUET


def _is_cdxj(first: bytes) -> bool:
    """Whether the first lines of *first* are CDXJ."""
    for line in first[:_SNIFFED].splitlines()[:_LINES_SNIFFED]:
        words = line.split(b" ", 2)
        if len(words) == 3 and words[2].startswith(b"{"):
            return True
    return False


def _loaded(path: Path, text: bytes, *, rules: str) -> Counts:
    """Return the counts that a summary in JSON carries."""
    try:
        counts = counts_from_json(text, rules=rules)
    except ValueError as error:
        raise InputError(
            f"{path} begins like the JSON of a summary and is not one: {error}. Name an index, or what "
            "`amicrawl summary --json` wrote."
        ) from error
    return counts


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(
            f"{path} cannot be read: {error.strerror or error}. Check path and permissions."
        ) from error
