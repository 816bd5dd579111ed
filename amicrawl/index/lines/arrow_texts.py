"""Arrow arrays of texts by what they are made of: octets, and the places where one text ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from numpy.typing import NDArray

Texts: TypeAlias = Any
"""An Arrow array of texts, or of what is computed of them; the stubs are narrower than Arrow is."""


def texts_of(octets: bytes, cuts: NDArray[np.int32], *, kind: Any = None) -> Texts:
    """Return *octets* as texts that follow each other, cut at *cuts*, where they begin and end included.

    Nothing is copied or looked at: only what is UTF-8 may be used as text. *kind* is Arrow's type.
    """
    buffers: Any = [None, pa.py_buffer(cuts.data), pa.py_buffer(octets)]
    return pa.Array.from_buffers(kind or pa.string(), max(0, len(cuts) - 1), buffers)


def octets_of(texts: Texts) -> tuple[bytes, NDArray[np.int64]]:
    """Return the octets that *texts* lie in, and where each begins, and where the last ends."""
    _, places, octets = texts.buffers()
    cuts = np.frombuffer(places, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return octets.to_pybytes() if octets is not None else b"", cuts.astype(np.int64)


def taken(
    texts: Texts, numbers: NDArray[np.integer[Any]], *, missing: NDArray[np.bool_] | None = None
) -> Texts:
    """Return the texts with these *numbers*; null where one is *missing*."""
    which: Any = pa.array(numbers, mask=missing)
    return texts.take(which)


def truths(found: Texts) -> NDArray[np.bool_]:
    """Return what Arrow says of each as numpy has it; null is false."""
    if found.null_count:
        found = found.fill_null(False)  # noqa: FBT003  # it is the value
    told: NDArray[np.bool_] = found.to_numpy(zero_copy_only=False)
    return told


def lengths_of(texts: Texts) -> NDArray[np.int64]:
    """Return how many octets each of *texts* has; none where it is null."""
    lengths: NDArray[np.int64] = np.diff(octets_of(texts)[1])
    return lengths
