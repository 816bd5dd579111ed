"""The products that are made of one file, and what they share of a record.

What several of them need of a record (its page, its lines in the index, what the detectors find) is
worked out once, when the first of them asks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, NamedTuple, Protocol

from amicrawl.index.derivatives.wat import WatFile
from amicrawl.index.derivatives.wet import WetFile
from amicrawl.index.lines.cdxj import Compat, IndexOptions, cdxj_lines, is_wanted, timestamp_of
from amicrawl.index.lines.line_file import LineFile
from amicrawl.index.merging.fields import added_fields, with_fields, written
from amicrawl.index.pages.page import page_of
from amicrawl.index.sidecar.characterise import Characteriser
from amicrawl.index.sidecar.detectors import installed_detectors
from amicrawl.index.sidecar.file import SidecarFile
from amicrawl.index.sidecar.findings import encode_block, parse_block
from amicrawl.index.sidecar.subject import subject_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from amicrawl.index.collection.file import FileJob
    from amicrawl.index.derivatives.file import Maker
    from amicrawl.index.lines.cdxj import CdxjLine
    from amicrawl.index.pages.page import Page
    from amicrawl.index.reading.records import Record
    from amicrawl.index.sidecar.findings import Findings
    from amicrawl.index.sidecar.subject import Subject


COMPAT = "compat"
"""The setting that says whose lines the index has; see `cdxj.Compat`."""
POST = "post"
"""The setting that, with any value, makes the body of a POST part of its key."""


class LeftOutError(Exception):
    """A record, or something of it, that should be in a product and cannot be; its text says why."""


class Seen:
    """A record, and what is found in it when somebody asks."""

    def __init__(self, record: Record, partner: Record | None, job: FileJob) -> None:
        self.record = record
        self._partner = partner
        self._job = job

    @cached_property
    def lines(self) -> list[CdxjLine]:
        """Its lines in the index."""
        options = IndexOptions(
            compat=Compat(self._job.settings.get(COMPAT, Compat.CDXJ_INDEXER)),
            post=bool(self._job.settings.get(POST)),
        )
        if not timestamp_of(self.record.date) and is_wanted(self.record, options):
            raise LeftOutError("a record has no date, so it has no line")
        found = cdxj_lines(
            self.record, filename=self._job.filename, options=options, partner=self._partner
        )
        return list(found)

    @cached_property
    def findings(self) -> Findings | None:
        """What the detectors find in its payload; None where they do not look."""
        subject = subject_of(self.record)
        return None if subject is None else characteriser().findings(subject)

    @cached_property
    def page(self) -> Page | None:
        """The page in it; None where there is none."""
        return page_of(self.record)


class Remembering(Characteriser):
    """The detectors, and what they found last: a sidecar asks them, and others want to know too."""

    last: Findings | None = None

    def findings(self, subject: Subject) -> Findings:
        """Return what is found of *subject*."""
        self.last = super().findings(subject)
        return self.last


@lru_cache(maxsize=1)
def characteriser() -> Remembering:
    """Return the detectors of this process: they take a while to load."""
    return Remembering(installed_detectors())


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

    def __init__(self, path: Path, _: FileJob, maker: Maker) -> None:
        self._file = LineFile(path, disk=maker.disk)
        super().__init__(self._file)

    def add(self, seen: Seen) -> None:
        """Add the lines of a record."""
        for line in seen.lines:
            self._file.add(line.encoded())


class Sidecar(Product):
    """What the detectors find, as records."""

    def __init__(
        self, path: Path, job: FileJob, maker: Maker, *, detectors: Remembering | None = None
    ) -> None:
        self._detectors = detectors or characteriser()
        self._file = SidecarFile(path, source=job.source, maker=maker, characteriser=self._detectors)
        super().__init__(self._file)

    def add(self, seen: Seen) -> None:
        """Look at the payload of a record, and leave what is found where others find it."""
        self._detectors.last = None
        self._file.add(seen.record)
        seen.findings = self._detectors.last
        _tell_failures(seen.findings)


class Merged(Product):
    """The index with what the detectors find in its lines."""

    def __init__(self, path: Path, _: FileJob, maker: Maker) -> None:
        self._file = LineFile(path, disk=maker.disk)
        super().__init__(self._file)

    def add(self, seen: Seen) -> None:
        """Add the lines of a record, with what is found of it."""
        if not (lines := seen.lines):
            return
        # By way of the sidecar's own block, so that it is to the byte what merging the two files gives.
        found = parse_block(encode_block(seen.findings)) if seen.findings is not None else {}
        addition = written(added_fields(found))
        for line in lines:
            merged = with_fields(line.encoded().rstrip(b"\n"), line.fields, addition)
            self._file.add(merged + b"\n")
        _tell_failures(seen.findings)


def _tell_failures(found: Findings | None) -> None:
    """Raise LeftOutError where a detector failed: what the others found is written down by then."""
    if found is not None and found.errors:
        raise LeftOutError(f"a detector failed at this record: {', '.join(found.errors)}")


class Wat(Product):
    """The WAT file."""

    def __init__(self, path: Path, job: FileJob, maker: Maker) -> None:
        self._file = WatFile(path, source=job.source, maker=maker)
        super().__init__(self._file)

    def add(self, seen: Seen) -> None:
        """Add what a record says of itself, and the page in it."""
        self._file.add(seen.record, seen.page)


class Wet(Product):
    """The WET file."""

    def __init__(self, path: Path, _: FileJob, maker: Maker) -> None:
        self._file = WetFile(path, maker=maker)
        super().__init__(self._file)

    def add(self, seen: Seen) -> None:
        """Add the text of the page in a record."""
        self._file.add(seen.record, seen.page)


class _Kind(NamedTuple):
    """A kind of product."""

    directory: str
    ending: str
    begin: Callable[[Path, FileJob, Maker], Product]

    def path(self, job: FileJob) -> Path:
        """Return where the product of *job* lies."""
        directory = job.out / self.directory if job.in_directories else job.out
        return directory / f"{job.stem}{self.ending}"


PRODUCTS = {
    "cdxj": _Kind("cdxj", ".cdxj", Cdxj),
    "sidecar": _Kind("meta", ".meta.gz", Sidecar),
    "merged": _Kind("merged", ".cdxj", Merged),
    "wat": _Kind("wat", ".wat.gz", Wat),
    "wet": _Kind("wet", ".wet.gz", Wet),
}
"""The products of a file, by the name that they are asked for by."""


def begun(job: FileJob, maker: Maker) -> dict[str, Product]:
    """Begin the products of *job*."""
    products: dict[str, Product] = {}
    try:
        for name, kind in PRODUCTS.items():
            if name in job.products:
                products[name] = kind.begin(kind.path(job), job, maker)
    except BaseException:
        for product in products.values():
            product.close()
        raise
    return products
