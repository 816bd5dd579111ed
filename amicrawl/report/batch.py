"""A batch: some thousand captures of an index as columns, in which everything is counted. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from amicrawl.report.coding import Coded
from amicrawl.report.texts import Texts

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from amicrawl.report.rows import Row
    from amicrawl.report.words import Flags, Numbers


class Batch(NamedTuple):
    """Columns of equal length."""

    key: Texts
    time: Numbers
    """Fourteen digits as a number."""
    mime: Texts | Coded
    status: Numbers
    """-1 where there is none."""
    size: Numbers
    """Bytes of the record; -1 where the input does not tell."""
    url: Texts
    digest: Texts | None
    """A hyphen or empty where there is none."""
    facets: dict[str, Texts | Coded]

    def __len__(self) -> int:
        return len(self.key)

    def at(self, chosen: Flags | npt.NDArray[np.int64]) -> Batch:
        """Return the rows that *chosen* names: flags, or row numbers."""
        return Batch(
            key=self.key.at(chosen),
            time=self.time[chosen],
            mime=self.mime.at(chosen),
            status=self.status[chosen],
            size=self.size[chosen],
            url=self.url.at(chosen),
            digest=None if self.digest is None else self.digest.at(chosen),
            facets={name: values.at(chosen) for name, values in self.facets.items()},
        )


def batch_of_rows(rows: Sequence[Row]) -> Batch:
    """Return *rows* as a batch."""
    names = sorted({name for row in rows for name in row.facets})
    return Batch(
        key=Texts.of([row.key for row in rows]),
        time=np.array([row.time for row in rows], np.int64),
        mime=Texts.of([row.mime for row in rows]),
        status=np.array([row.status for row in rows], np.int64),
        size=np.array([row.size for row in rows], np.int64),
        url=Texts.of([row.url for row in rows]),
        digest=Texts.of([row.digest for row in rows]),
        facets={name: _facet(rows, name) for name in names},
    )


def interleaved(batch: Batch, places: Numbers, others: Batch, at: Sequence[int]) -> Batch:
    """Return the rows of *batch* and *others* together, in the order of the line numbers of both."""
    order = np.argsort(np.concatenate([places, np.array(at, np.int64)]), kind="stable")

    def joined(mine: Texts | Coded, theirs: Texts | Coded) -> Texts:
        if isinstance(mine, Coded) or isinstance(theirs, Coded):
            raise TypeError("lines of text have no columns of codes")
        return mine.followed_by(theirs).at(order)

    def joined_numbers(mine: Numbers, theirs: Numbers) -> Numbers:
        return np.concatenate([mine, theirs])[order]

    digest = None
    if batch.digest is not None and others.digest is not None:
        digest = joined(batch.digest, others.digest)
    facets: dict[str, Texts | Coded] = {
        name: joined(
            batch.facets.get(name, _nothing(len(batch))), others.facets.get(name, _nothing(len(others)))
        )
        for name in sorted(batch.facets.keys() | others.facets.keys())
    }
    return Batch(
        key=joined(batch.key, others.key),
        time=joined_numbers(batch.time, others.time),
        mime=joined(batch.mime, others.mime),
        status=joined_numbers(batch.status, others.status),
        size=joined_numbers(batch.size, others.size),
        url=joined(batch.url, others.url),
        digest=digest,
        facets=facets,
    )


def _facet(rows: Sequence[Row], name: str) -> Texts:
    return Texts.of([row.facets.get(name, "").encode("utf-8", "surrogatepass") for row in rows])


def _nothing(rows: int) -> Texts:
    return Texts.of([b""] * rows)
