"""The products that are made of one file, and what they share of a record.

What several of them need of a record (its page, its line in the index, what the detectors find) is
worked out once, when the first of them needs it. What makes pages and findings is loaded when a product
needs it: an index is made in less time than that takes.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple, Protocol

from amicrawl.archive.index.derivatives.file import NOT_NAMED, LeftOutError, Publisher
from amicrawl.archive.index.sidecar.findings import OFF_BY_DEFAULT
from amicrawl.archive.lines import (
    IndexOptions,
    Layout,
    LineFile,
    cdx_line,
    line_of_wanted,
    timestamp_of,
    wanted_by,
)
from amicrawl.archive.lines.record_lines import DEFAULT_OPTIONS
from amicrawl.disk import refuse_undecodable
from amicrawl.errors import UsageError
from amicrawl.reading import Container

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from amicrawl.archive.index.collection.file import FileOutcome
    from amicrawl.archive.index.derivatives.file import Maker
    from amicrawl.archive.index.derivatives.page import ExtractedPage
    from amicrawl.archive.index.sidecar.findings import Findings
    from amicrawl.archive.lines import CdxjLine
    from amicrawl.reading import Record


MARKS = "done"
"""The directory of the marks."""


@dataclass(frozen=True)
class ProductOptions:
    """How products are made, whatever they are made of."""

    index: IndexOptions = DEFAULT_OPTIONS
    layout: Layout = Layout.CDXJ
    """What a line of the index looks like; a merged index is CDXJ always."""
    packed: bool = False
    """Whether the index is compressed with gzip."""
    publisher: Publisher = NOT_NAMED
    """Whose the sidecars are."""
    hostname: str = ""
    """Which machine makes them, for the warcinfo records."""
    without: tuple[str, ...] = OFF_BY_DEFAULT
    """Kinds of detectors that are left out."""
    detectors: tuple[str, ...] = ()
    """Those that are not, with their versions, where a change of them is to make sidecars again."""

    @property
    def index_ending(self) -> str:
        """How the name of an index ends."""
        return self.layout.ending + (".gz" if self.packed else "")

    def settings(self) -> dict[str, str]:
        """Return what the products depend on: names of options and their values."""
        index = {name: json.dumps(value) for name, value in asdict(self.index).items()}
        return {
            **index,
            "layout": self.layout.value,
            "packed": str(self.packed),
            "without": ", ".join(self.without),
            "detectors": "; ".join(self.detectors),
            "operator": self.publisher.operator,
            "publisher": self.publisher.publisher,
        }


@dataclass(frozen=True)
class FileJob:
    """A source file, and what is to be made of it."""

    source: Path
    stem: str
    """What its products are called after."""
    out: Path
    """The collection's directory."""
    products: tuple[str, ...]
    filename: str
    """What the index calls the file."""
    options: ProductOptions = field(default_factory=ProductOptions)
    in_directories: bool = True
    """Whether each product has a directory of its own below `out`, as in a collection."""
    before: FileOutcome | None = None
    """What came of it before under the same settings, where products of that are there already."""

    @property
    def source_bytes(self) -> int:
        """How large its source is; 0 where that cannot be seen."""
        try:
            return self.source.stat().st_size
        except OSError:
            return 0

    @property
    def mark(self) -> Path:
        """Where it is written that the file is done."""
        # Where products share a directory, so do their marks.
        name = self.stem if self.in_directories else self.path.name
        return self.out / MARKS / f"{name}.json"

    @property
    def path(self) -> Path:
        """Where the first of its products lies."""
        return PRODUCTS[self.products[0]].path(self)

    @property
    def settings(self) -> dict[str, str]:
        """What the products depend on besides the source, as the mark has it."""
        return {**self.options.settings(), "filename": self.filename}


class LineMaker:
    """Makes the index lines of the records of one file."""

    def __init__(self, job: FileJob) -> None:
        """Have the options of *job*; InputError where its source is needed and cannot be read."""
        self.options = job.options
        self._index = job.options.index
        self._filename = job.filename
        self._is_wanted = wanted_by(self._index)
        self._container = Container(job.source) if self._index.stored_digests else None

    def line_of(self, record: Record, partner: Record | None) -> CdxjLine | None:
        """Return the line of *record*, whose *partner* is known or not; None where it has none."""
        if not self._is_wanted(record):
            return None
        digest = self._container.sha256(record) if self._container is not None else ""
        line = line_of_wanted(
            record,
            filename=self._filename,
            options=self._index,
            partner=partner,
            stored_digest=digest,
        )
        if line is None and not timestamp_of(record.date):
            raise LeftOutError("a record has no date, so it has no line")
        return line

    def close(self) -> None:
        """Close what is open."""
        if self._container is not None:
            self._container.close()


class SeenRecord:
    """A record, and what is found in it when a product needs it."""

    def __init__(self, record: Record, partner: Record | None, line_maker: LineMaker) -> None:
        self.record = record
        self._partner = partner
        self._line_maker = line_maker
        self._line: tuple[CdxjLine | None] | None = None

    @property
    def line(self) -> CdxjLine | None:
        """Its line in the index."""
        # Every record comes here, and a cached property takes a lock each time (until Python 3.12).
        if self._line is None:
            self._line = (self._line_maker.line_of(self.record, self._partner),)
        return self._line[0]

    @cached_property
    def findings(self) -> Findings | None:
        """What the detectors find in its payload; None where they do not look."""
        from amicrawl.archive.index.sidecar.file import findings_of  # noqa: PLC0415  # see above

        return findings_of(self.record, self._line_maker.options.without)

    @cached_property
    def page(self) -> ExtractedPage | None:
        """The page in it; None where there is none."""
        from amicrawl.archive.index.derivatives.page import page_of  # noqa: PLC0415  # see above

        return page_of(self.record)


class Product(Protocol):
    """A file that is made of the records of one source."""

    def add(self, seen: SeenRecord) -> None:
        """Take in a record."""

    def seal(self) -> tuple[int, int]:
        """Give the file its name; return its lines or records, and its size in bytes."""

    def close(self) -> None:
        """Leave the file as it is; without `seal`, its name says that it is not whole."""


class Cdxj:
    """The index: a line a capture, in byte order."""

    def __init__(self, path: Path, job: FileJob, maker: Maker) -> None:
        layout = job.options.layout
        self._layout = layout if layout.columns else None
        if self._layout is None:
            refuse_undecodable(job.filename)
        file = LineFile(path, disk=maker.disk, legend=layout.legend, packed=job.options.packed)
        self._add, self.seal, self.close = file.add, file.seal, file.close

    def add(self, seen: SeenRecord) -> None:
        """Add the line of a record."""
        if (line := seen.line) is not None:
            self._add(line.encoded() if self._layout is None else cdx_line(line, self._layout))


class _ProductKind(NamedTuple):
    """A kind of product."""

    directory: str
    ending: str
    module: str
    name: str
    """Of its class."""

    def path(self, job: FileJob) -> Path:
        """Return where the product of *job* lies."""
        directory = job.out / self.directory if job.in_directories else job.out
        ending = self.ending or job.options.index_ending
        return directory / f"{job.stem}{ending}"

    def begin(self, job: FileJob, maker: Maker) -> Product:
        """Begin the product of *job*."""
        make = getattr(import_module(f"amicrawl.archive.index.{self.module}"), self.name)
        product: Product = make(self.path(job), job, maker)
        return product


PRODUCTS = {
    "cdxj": _ProductKind("cdxj", "", "collection.products", "Cdxj"),
    "sidecar": _ProductKind("meta", ".meta.gz", "sidecar.file", "Sidecar"),
    "merged": _ProductKind("merged", ".cdxj", "sidecar.file", "MergedIndex"),
    "wat": _ProductKind("wat", ".wat.gz", "derivatives.wat_wet", "WatFile"),
    "wet": _ProductKind("wet", ".wet.gz", "derivatives.wat_wet", "WetFile"),
}
"""The products of a file, by name."""


def begun(job: FileJob, maker: Maker) -> dict[str, Product]:
    """Begin the products of *job*."""
    products: dict[str, Product] = {}
    try:
        for name, kind in PRODUCTS.items():
            if name in job.products:
                products[name] = kind.begin(job, maker)
    except BaseException:
        for product in products.values():
            product.close()
        raise
    return products


def jobs_for(
    sources: Sequence[Path],
    out: Path,
    *,
    products: Sequence[str],
    options: ProductOptions | None = None,
    root: Path | None = None,
    in_directories: bool = True,
) -> list[FileJob]:
    """Return the jobs that make *products* of *sources*, each named so that no two share a file.

    The index names a file by its path below *root*; without one, or elsewhere, by its name alone.
    """
    options = options or ProductOptions()
    return [
        FileJob(source, stem, out, tuple(products), _filename(source, root), options, in_directories)
        for source, stem in named_apart(sources).items()
    ]


def _filename(source: Path, root: Path | None) -> str:
    if root is not None and source.absolute().is_relative_to(root.absolute()):
        return source.absolute().relative_to(root.absolute()).as_posix()
    return source.name


def stem_of(path: Path) -> str:
    """Return the name of an archive file without the ending of its compression: `X.warc`, `X.arc`."""
    name = path.name
    for ending in (".gz", ".zst"):
        name = name.removesuffix(ending)
    return name


def named_apart(sources: Iterable[Path]) -> dict[Path, str]:
    """Return a stem for each of *sources* that no other has.

    It is `stem_of` the source where that is its alone, then its name, then its path. UsageError where
    even those are the same.
    """
    found: dict[Path, str] = {}
    given = list(dict.fromkeys(sources))
    ways = [
        [way(source) for source in given] for way in (stem_of, lambda path: path.name, _path_as_name)
    ]
    counts = [Counter(names) for names in ways]
    for place, source in enumerate(given):
        free = (
            names[place] for names, count in zip(ways, counts, strict=True) if count[names[place]] == 1
        )
        found[source] = next(free, "")
    if len(set(found.values())) < len(given) or "" in found.values():
        raise UsageError(
            "Some of the files have names that cannot be distinguished. Give them in two runs."
        )
    return found


def _path_as_name(path: Path) -> str:
    return "~".join(part.replace("~", "~~") for part in path.absolute().parts[1:])[-200:]
