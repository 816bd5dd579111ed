"""Some of a sidecar's records, with what lines sought among them in vain.

All lines of the keys and seconds that the records have are asked for at once, and no others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from amicrawl.index.lines.arrow_texts import texts_from
from amicrawl.index.lines.spans import Spans
from amicrawl.index.merging.hashing import hashes_of
from amicrawl.index.merging.side_table import SECOND, SideTable
from amicrawl.index.merging.sides import ties_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from amicrawl.index.merging.side_table import Found, Known

_STRONG = 1


class SideWindow(SideTable):
    """The records of some keys and seconds."""

    def __init__(self, batches: Iterable[pa.RecordBatch], *, known: Known) -> None:
        """Have the rows of *batches*; *known* tells of all records that there are."""
        super().__init__(batches, known=known)
        self.sought: list[NDArray[np.uint64]] = []
        """Hashes of what lines are known by that no record of their own key has, as `ties` are."""

    def by_id(self, ids: Spans, *, seconds: Any, whens: Spans) -> Found:
        """Find records by identifiers, as `SideTable` does."""
        found = super().by_id(ids, seconds=seconds, whens=whens)
        self._note(found, ids.lengths > 0, whens)
        return found

    def by_place(
        self, filenames: Spans, offsets: Spans, ids: Spans | None, *, seconds: Any, whens: Spans
    ) -> Found:
        """Find records by files and offsets, as `SideTable` does."""
        found = super().by_place(filenames, offsets, ids, seconds=seconds, whens=whens)
        self._note(found, (offsets.lengths > 0) & (filenames.lengths > 0), whens)
        return found

    def seek(self, lines: Sequence[bytes]) -> None:
        """Note what *lines*, which were not looked at, are known by."""
        ties = [each for each in map(ties_in, lines) if each is not None]
        if not ties or not (self.known.ids or self.known.places):
            return
        whens, ids, names, offsets, _ = (Spans.of(texts_from(each)) for each in zip(*ties, strict=True))
        seconds = hashes_of(whens.last(SECOND))
        if self.known.ids:
            self.by_id(ids, seconds=seconds, whens=whens)
        if self.known.places:
            self.by_place(names, offsets, None, seconds=seconds, whens=whens)

    def _weak_rows(self) -> NDArray[np.int64]:
        # Strong ties come first, and all lines that these records could get are here.
        return np.flatnonzero(self.used & _STRONG == 0)

    def _note(self, found: Found, are_known: NDArray[np.bool_], whens: Spans) -> None:
        own = (found.sides >= 0) & self._are("when", found.sides, whens)
        if not own.all():
            self.sought.append(found.hashes[are_known & ~own])
