"""The products that are made of one file, and what they share of a record.

What several of them need of a record (its page, its line in the index, what the detectors find) is
worked out once, when the first of them asks. What makes pages and findings is loaded when a product
needs it: an index is made in less time than that takes.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple, Protocol

from amicrawl.index.derivatives.file import NOT_NAMED, Publisher
from amicrawl.index.lines.cdx_text import Layout, cdx_line
from amicrawl.index.lines.cdxj import (
    DEFAULT_OPTIONS,
    IndexOptions,
    line_of_wanted,
    timestamp_of,
    wanted_by,
)
from amicrawl.index.lines.sorting import LineFile
from amicrawl.index.reading.container import Container

if TYPE_CHECKING:
    from pathlib import Path

    from amicrawl.index.collection.file import FileJob
    from amicrawl.index.derivatives.file import Maker
    from amicrawl.index.lines.cdxj import CdxjLine
    from amicrawl.index.pages.page import Page
    from amicrawl.index.reading.records import Record
    from amicrawl.index.sidecar.findings import Findings


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
    without: tuple[str, ...] = ()
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


class LeftOutError(Exception):
    """A record, or something of it, that should be in a product and cannot be; its text says why."""


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


class Seen:
    """A record, and what is found in it when a product asks."""

    def __init__(self, record: Record, partner: Record | None, line_maker: LineMaker) -> None:
        self.record = record
        self._partner = partner
        self._line_maker = line_maker

    @cached_property
    def line(self) -> CdxjLine | None:
        """Its line in the index."""
        return self._line_maker.line_of(self.record, self._partner)

    @cached_property
    def findings(self) -> Findings | None:
        """What the detectors find in its payload; None where they do not look."""
        from amicrawl.index.collection.detecting import findings_of  # noqa: PLC0415  # see above

        return findings_of(self.record, self._line_maker.options.without)

    @cached_property
    def page(self) -> Page | None:
        """The page in it; None where there is none."""
        from amicrawl.index.pages.page import page_of  # noqa: PLC0415  # see above

        return page_of(self.record)


class _File(Protocol):
    """What a product writes to."""

    def seal(self) -> tuple[int, int]:
        """Give it its name; return its lines or records, and its size in bytes."""

    def close(self) -> None:
        """Leave it as it is."""


class Product(ABC):
    """A file that is made of the records of one source."""

    def __init__(self, file: _File) -> None:
        self._sealed = file

    @abstractmethod
    def add(self, seen: Seen) -> None:
        """Take in a record."""

    def seal(self) -> tuple[int, int]:
        """Give the file its name; return its lines or records, and its size in bytes."""
        return self._sealed.seal()

    def close(self) -> None:
        """Leave the file as it is; without `seal`, its name says that it is not whole."""
        self._sealed.close()


class Cdxj(Product):
    """The index: a line a capture, in byte order."""

    def __init__(self, path: Path, job: FileJob, maker: Maker) -> None:
        layout = job.options.layout
        self._layout = layout if layout.letters else None
        file = LineFile(path, disk=maker.disk, legend=layout.legend, packed=job.options.packed)
        self._add = file.add
        super().__init__(file)

    def add(self, seen: Seen) -> None:
        """Add the line of a record."""
        if (line := seen.line) is not None:
            self._add(line.encoded() if self._layout is None else cdx_line(line, self._layout))


class _DerivativeFile(_File, Protocol):
    def add(self, record: Record, page: Page | None) -> None: ...


class Derivative(Product):
    """WAT or WET, made of records and the pages in them."""

    def __init__(self, file: _DerivativeFile) -> None:
        self._add = file.add
        super().__init__(file)

    def add(self, seen: Seen) -> None:
        """Add what the file says of a record and the page in it."""
        self._add(seen.record, seen.page)


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
        make = getattr(import_module(f"amicrawl.index.{self.module}"), self.name)
        if self.module.startswith("derivatives."):
            return Derivative(make(self.path(job), source=job.source, maker=maker))
        product: Product = make(self.path(job), job, maker)
        return product


PRODUCTS = {
    "cdxj": _ProductKind("cdxj", "", "collection.products", "Cdxj"),
    "sidecar": _ProductKind("meta", ".meta.gz", "collection.detecting", "Sidecar"),
    "merged": _ProductKind("merged", ".cdxj", "collection.detecting", "Merged"),
    "wat": _ProductKind("wat", ".wat.gz", "derivatives.wat", "WatFile"),
    "wet": _ProductKind("wet", ".wet.gz", "derivatives.wet", "WetFile"),
}
"""The products of a file, by the name that they are asked for by."""


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
