"""Products made of what the detectors find: the sidecar, and the index with it in its lines."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from amicrawl.index.collection.products import LeftOutError, Product
from amicrawl.index.lines.sorting import LineFile
from amicrawl.index.merging.fields import added_fields, with_fields, written
from amicrawl.index.sidecar.detectors import Characteriser, installed_detectors
from amicrawl.index.sidecar.file import SidecarFile
from amicrawl.index.sidecar.findings import encode_block, parse_block
from amicrawl.index.sidecar.subject import subject_of

if TYPE_CHECKING:
    from pathlib import Path

    from amicrawl.index.collection.file import FileJob
    from amicrawl.index.collection.products import Seen
    from amicrawl.index.derivatives.file import Maker
    from amicrawl.index.reading.records import Record
    from amicrawl.index.sidecar.findings import Findings
    from amicrawl.index.sidecar.subject import Subject


class Remembering(Characteriser):
    """The detectors, and what they found last: a sidecar asks them, and others want to know too."""

    last: Findings | None = None

    def findings(self, subject: Subject) -> Findings:
        """Return what is found of *subject*."""
        self.last = super().findings(subject)
        return self.last


@lru_cache(maxsize=1)
def characteriser(without: tuple[str, ...]) -> Remembering:
    """Return the detectors of this process but for the kinds *without*: they take a while to load."""
    return Remembering(installed_detectors(without))


def findings_of(record: Record, without: tuple[str, ...]) -> Findings | None:
    """Return what the detectors find in the payload of *record*; None where they do not look."""
    subject = subject_of(record)
    return None if subject is None else characteriser(without).findings(subject)


class Sidecar(Product):
    """What the detectors find, as records."""

    def __init__(
        self, path: Path, job: FileJob, maker: Maker, *, detectors: Remembering | None = None
    ) -> None:
        self._detectors = detectors or characteriser(job.options.without)
        self._file = SidecarFile(
            path,
            source=job.source,
            maker=maker,
            characteriser=self._detectors,
            publisher=job.options.publisher,
        )
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
        """Add the line of a record, with what is found of it."""
        if (line := seen.line) is None:
            return
        # By way of the sidecar's own block, so that it is to the byte what merging the two files gives.
        found = parse_block(encode_block(seen.findings)) if seen.findings is not None else {}
        addition = written(added_fields(found))
        merged = with_fields(line.encoded().rstrip(b"\n"), line.fields, addition)
        self._file.add(merged + b"\n")
        _tell_failures(seen.findings)


def _tell_failures(found: Findings | None) -> None:
    """Raise LeftOutError where a detector failed: what the others found is written down by then."""
    if found is not None and found.errors:
        raise LeftOutError(f"a detector failed at this record: {', '.join(found.errors)}")
