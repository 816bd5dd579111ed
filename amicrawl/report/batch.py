"""A batch: some thousand captures of an index as columns, in which everything is counted. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from amicrawl.report.rows import Row

    Numbers = npt.NDArray[np.int64]
    Array = Any


class Batch(NamedTuple):
    """Columns of equal length; text is binary, or a dictionary of binary."""

    key: Array
    time: Numbers
    """Fourteen digits as a number."""
    mime: Array
    status: Numbers
    """-1 where there is none."""
    size: Numbers
    """Bytes of the record; -1 where the input does not tell."""
    url: Array
    digest: Array | None
    """A hyphen, empty or null where there is none."""
    facets: dict[str, Array]

    def __len__(self) -> int:
        return len(self.key)

    def where(self, wanted: npt.NDArray[np.bool_]) -> Batch:
        """Return the rows where *wanted* is true."""
        mask = pa.array(wanted)
        return Batch(
            key=self.key.filter(mask),
            time=self.time[wanted],
            mime=self.mime.filter(mask),
            status=self.status[wanted],
            size=self.size[wanted],
            url=self.url.filter(mask),
            digest=None if self.digest is None else self.digest.filter(mask),
            facets={name: values.filter(mask) for name, values in self.facets.items()},
        )


def batch_of_rows(rows: Sequence[Row]) -> Batch:
    """Return *rows* as a batch."""
    names = sorted({name for row in rows for name in row.facets})
    return Batch(
        key=pa.array([row.key for row in rows], pa.binary()),
        time=np.array([row.time for row in rows], np.int64),
        mime=pa.array([row.mime for row in rows], pa.binary()),
        status=np.array([row.status for row in rows], np.int64),
        size=np.array([row.size for row in rows], np.int64),
        url=pa.array([row.url for row in rows], pa.binary()),
        digest=pa.array([row.digest for row in rows], pa.binary()),
        facets={name: _facet(rows, name) for name in names},
    )


def interleaved(batch: Batch, where: npt.NDArray[np.bool_], others: Batch, at: Sequence[int]) -> Batch:
    """Return *batch* with only its rows *where* true, and *others* at the row numbers *at* of *batch*.

    Neither has facets: the fast path that needs this reads none.
    """
    kept = batch.where(where)
    positions = np.concatenate([np.flatnonzero(where), np.array(at, np.int64)])
    order = np.argsort(positions, kind="stable")

    def joined(mine: Array, theirs: Array) -> Array:
        return pa.concat_arrays([mine, theirs]).take(pa.array(order))

    def joined_numbers(mine: Numbers, theirs: Numbers) -> Numbers:
        return np.concatenate([mine, theirs])[order]

    digest = None
    if kept.digest is not None and others.digest is not None:
        digest = joined(kept.digest, others.digest)
    return Batch(
        key=joined(kept.key, others.key),
        time=joined_numbers(kept.time, others.time),
        mime=joined(kept.mime, others.mime),
        status=joined_numbers(kept.status, others.status),
        size=joined_numbers(kept.size, others.size),
        url=joined(kept.url, others.url),
        digest=digest,
        facets={},
    )


def _facet(rows: Sequence[Row], name: str) -> Array:
    values = [row.facets.get(name, "").encode("utf-8", "surrogatepass") for row in rows]
    return pa.array(values, pa.binary())
