"""The seed reader: all formats behind one function; and how many entries a list has.

    source -> packing undone -> format -> seeds, and faults beside them

Everything is read as it is requested: a list of ten million lines takes no more memory than one of ten.
Of a list that Spark reads, `BatchReader` takes Arrow batches, in any order and on any machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Self

from amicrawl.errors import InputError, UsageError
from amicrawl.seed.formats import SeedFormat, format_named, format_of, is_called_a_table, is_web
from amicrawl.seed.lines import MAX_LINE, read_lines, seed_of_cell, seed_of_json, seed_of_line
from amicrawl.seed.seed import FaultLog, NotASeedError, Seed, SeedFault
from amicrawl.seed.sitemap_tree import SitemapLimits, read_sitemap
from amicrawl.seed.source import STANDARD_INPUT, SeedSource, earlier_indexes, opened

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

    import pyarrow as pa

    from amicrawl.seed.fields import Flaw
    from amicrawl.seed.source import Fetch


class SeedReader(Iterator[Seed]):
    """An opened seed list: iterate for its seeds, once. `open_seed` makes it.

    Closes itself at the end of the list; where iteration stops before, close it or use `with`.
    """

    def __init__(
        self, seeds: Iterator[Seed], faults: FaultLog, *, kind: SeedFormat, resources: ExitStack
    ) -> None:
        self.format = kind
        """The format it is read in, given or inferred."""
        self._seeds = seeds
        self._faults = faults
        self._resources = resources

    @property
    def read(self) -> int:
        """Seeds read so far."""
        return self._faults.read

    @property
    def bad(self) -> int:
        """Faults so far that cost a line, an entry, a sitemap, or the rest of a source."""
        return self._faults.bad

    @property
    def flawed(self) -> int:
        """Faults so far that cost a field of a line whose URL was read."""
        return self._faults.flawed

    @property
    def cut(self) -> InputError | None:
        """Why the list could not be read to its end, as far as that is known; None where it was."""
        return self._faults.cut

    def __next__(self) -> Seed:
        try:
            seed = next(self._seeds)
        except BaseException:
            self.close()
            raise
        self._faults.read += 1
        return seed

    def close(self) -> None:
        """Give back the file; the next seed is then the end."""
        self._seeds = iter(())
        self._resources.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_seed(
    source: str,
    *,
    on_fault: Callable[[SeedFault], None],
    format: str | None = None,  # noqa: A002 - the word of the command line
    fetch: Fetch | None = None,
    limits: SitemapLimits | None = None,
    stdin: BinaryIO | None = None,
) -> SeedReader:
    """Open the seed list *source*: a path, an http(s) URL, or `-` for *stdin* (the process's own).

    The directory of a crawl by ami 0.2 or 0.3 stands for the capture indexes in it.
    Gzip and Zstandard are recognised by content and decompressed. Without *format*, one of `SeedFormat`,
    it is inferred from content and name. *fetch* opens what is on the web: *source* itself, and the
    sitemaps that an index names; *limits* bounds those. *on_fault* receives each part that cannot be
    read, while the seeds are iterated.

    Raises UsageError for an unknown format or a URL without *fetch*, and InputError for a source that
    cannot be opened. InputError comes from the iteration, too, where a source turns out to be unreadable
    before it gave a seed; where it gave some (a gzip file cut short, say), that is a fault at the end
    instead.
    """
    named = format_named(format) if format is not None else None
    faults = FaultLog(on_fault)
    indexes = [] if is_web(source) or source == STANDARD_INPUT else earlier_indexes(Path(source))
    if indexes and named in {None, SeedFormat.PARQUET}:
        seeds = _seeds_of(indexes, faults)
        return SeedReader(seeds, faults, kind=SeedFormat.PARQUET, resources=ExitStack())
    with ExitStack() as stack:
        begun = stack.enter_context(opened(source, fetch=fetch, stdin=stdin))
        chosen = named or format_of(source, begun.head)
        if named is None and chosen is SeedFormat.LINES and is_called_a_table(source):
            seeds = read_lines(begun, faults, parse=seed_of_cell)
        else:
            seeds = _seeds(chosen, begun, faults, fetch=fetch, limits=limits or SitemapLimits())
        stack.callback(seeds.close)
        return SeedReader(seeds, faults, kind=chosen, resources=stack.pop_all())


def _seeds_of(indexes: Iterable[Path], faults: FaultLog) -> Generator[Seed, None, None]:
    for path in indexes:
        with opened(str(path), fetch=None, stdin=None) as table:
            yield from _seeds(SeedFormat.PARQUET, table, faults, fetch=None, limits=SitemapLimits())


def _seeds(
    chosen: SeedFormat,
    source: SeedSource,
    faults: FaultLog,
    *,
    fetch: Fetch | None,
    limits: SitemapLimits,
) -> Generator[Seed, None, None]:
    match chosen:
        case SeedFormat.LINES:
            return read_lines(source, faults, parse=seed_of_line)
        case SeedFormat.JSONL:
            return read_lines(source, faults, parse=seed_of_json)
        case SeedFormat.PARQUET:
            # Dear to load, and most who import this room never need it.
            from amicrawl.seed.parquet import read_parquet  # noqa: PLC0415

            return read_parquet(source, faults)
        case SeedFormat.SITEMAP:
            return read_sitemap(source, faults, fetch=fetch, limits=limits)


def count_entries(source: str, seed_format: SeedFormat) -> int | None:
    """Return how many lines or rows the file *source* has, blank and bad ones included.

    None where counting would take the source away from its reader (standard input), take as long as
    reading it (sitemaps), or does not succeed: what is wrong with it is the reader's to say.
    """
    if source == STANDARD_INPUT or seed_format is SeedFormat.SITEMAP:
        return None
    indexes = earlier_indexes(Path(source))
    if indexes:
        counts = [count_entries(str(path), seed_format) for path in indexes]
        return None if None in counts else sum(filter(None, counts))
    try:
        with opened(source, fetch=None, stdin=None) as file:
            if seed_format is SeedFormat.PARQUET:
                from amicrawl.parquet import ParquetTable  # noqa: PLC0415  # dear to load, seldom needed

                if file.path is None:
                    return None
                with ParquetTable(file.path, source) as table:
                    return table.rows
            return _lines(file.blocks)
    except (InputError, OSError, ValueError):
        return None


def _lines(blocks: Iterable[bytes]) -> int:
    """Count lines; one that is cut at the end counts."""
    count, last = 0, b"\n"
    for block in blocks:
        count += block.count(b"\n")
        last = block[-1:] or last  # what unpacks may give an empty one
    return count + (last != b"\n")


_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class BatchReader:
    """Reads batches of the list *source*, in *format*; can be sent to another process."""

    source: str
    format: SeedFormat
    schema: pa.Schema | None = field(default=None, repr=False)
    """The columns of a table. Lines come in one column of binary values."""

    @classmethod
    def of(cls, source: str, head: bytes, format: str | None) -> BatchReader:  # noqa: A002 - as `open_seed`
        """Return the reader of the list that begins with *head*. Raises UsageError for a sitemap."""
        kind = format_named(format) if format is not None else format_of(source, head)
        if kind is SeedFormat.SITEMAP:
            raise UsageError(
                f"{source} is a sitemap, one document, which Spark does not deal. Crawl it without "
                "--engine spark, or write its URLs as lines."
            )
        return cls(source, kind)

    @property
    def columns(self) -> list[str]:
        """The columns of the table that are read. Raises InputError where none has URLs."""
        from amicrawl.seed.parquet import chosen  # noqa: PLC0415  # dear to load, see `reader.py`

        assert self.schema is not None
        return chosen(self.source, self.schema)[0]

    def seeds(self, batch: pa.RecordBatch, on_fault: Callable[[SeedFault], None]) -> Iterator[Seed]:
        """Yield the seeds of *batch*, and tell *on_fault* of what cannot be read."""
        faults = FaultLog(on_fault)

        def flaw(reason: str) -> None:
            faults.flaw(self.source, 0, reason)

        parse, pieces = self._parser(batch)
        for piece in pieces:
            try:
                seed = parse(piece, flaw)
            except NotASeedError as reason:
                faults.skip(self.source, 0, str(reason))
                continue
            if seed is not None:
                yield seed

    def _parser(
        self, batch: pa.RecordBatch
    ) -> tuple[Callable[[Any, Flaw], Seed | None], Iterable[object]]:
        """Return what makes a seed of a piece of *batch*, and the pieces."""
        if self.format is SeedFormat.PARQUET:
            from amicrawl.seed.parquet import check_size, chosen, rows_of  # noqa: PLC0415  # as above

            assert self.schema is not None
            seed_of = chosen(self.source, self.schema)[1]

            def of_row(row: dict[str, object], flaw: Flaw) -> Seed | None:
                check_size(row)
                return seed_of(row, flaw)

            return of_row, rows_of(batch)
        parse = seed_of_json if self.format is SeedFormat.JSONL else seed_of_line
        if self.format is SeedFormat.LINES and is_called_a_table(self.source):
            parse = seed_of_cell

        def of_line(line: bytes, flaw: Flaw) -> Seed | None:
            if len(line) > MAX_LINE:
                raise NotASeedError(f"the line is longer than {MAX_LINE} bytes")
            return parse(line.removeprefix(_BOM), flaw)

        return of_line, batch.column(0).to_pylist()
