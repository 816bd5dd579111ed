"""Seeds of a list that another program reads: Arrow batches of its lines, or of the rows of a table.

Spark reads lists wherever they lie, and hands over batches in any order and on any machine. What a line
or a row means is said by the functions of the other readers; only its number is not known here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from amicrawl.errors import UsageError
from amicrawl.seed.fault import Fault, FaultLog, NotASeedError
from amicrawl.seed.formats import SeedFormat, format_named, format_of, is_called_a_table
from amicrawl.seed.jsonl import seed_of_json
from amicrawl.seed.lines import MAX_LINE, seed_of_cell, seed_of_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow as pa

    from amicrawl.seed.fields import Flaw
    from amicrawl.seed.seed import Seed

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

    def seeds(self, batch: pa.RecordBatch, on_fault: Callable[[Fault], None]) -> Iterator[Seed]:
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
