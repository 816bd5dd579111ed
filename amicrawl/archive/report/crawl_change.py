"""The comparison of two crawls by the hashes of their URLs and payloads: 16 bytes a row of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Change(NamedTuple):
    """What a crawl has in comparison with an older one: numbers of URLs with a response."""

    both_same: int
    """In both, with the same payload."""
    changed: int
    new: int
    """Only in this crawl, moved ones included."""
    gone: int
    """Only in the older one."""
    moved: int
    """New URLs whose payload the older crawl has under a URL that is gone."""


class UrlHashes:
    """URLs with a response and their payloads, by hashes; of a URL the last row counts."""

    def __init__(self) -> None:
        self._urls: list[NDArray[np.uint64]] = []
        self._payloads: list[NDArray[np.uint64]] = []

    def add(self, batch: pa.RecordBatch) -> None:
        """Take in the rows of *batch*."""
        has_response: Any = pc.greater(batch.column("status"), pa.scalar(0))
        responded = batch.filter(has_response)
        for name, kept in (("url", self._urls), ("digest", self._payloads)):
            texts = responded.column(name).to_pylist()
            values = (xxhash.xxh3_64_intdigest(str(each or "").encode()) for each in texts)
            kept.append(np.fromiter(values, np.uint64, responded.num_rows))

    def sorted(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Return the URLs, each once and in order, and their payloads; what was taken in is given up."""
        if not self._urls:
            return np.empty(0, np.uint64), np.empty(0, np.uint64)
        urls = np.concatenate(self._urls)
        self._urls.clear()
        # Of equal URLs, the last row comes last, as the sort is stable.
        order = np.argsort(urls, kind="stable")
        urls = urls[order]
        is_last = np.ones(len(urls), np.bool_)
        is_last[:-1] = urls[1:] != urls[:-1]
        payloads = np.concatenate(self._payloads)
        self._payloads.clear()
        return urls[is_last], payloads[order[is_last]]


_NOTHING = np.array(
    [xxhash.xxh3_64_intdigest(each) for each in (b"", b"da39a3ee5e6b4b0d3255bfef95601890afd80709")],
    np.uint64,
)
"""Payloads that say nothing of where a URL went: an unknown one, and that without a byte."""

_Sorted = tuple["NDArray[np.uint64]", "NDArray[np.uint64]"]


def change_between(now: _Sorted, before: _Sorted) -> Change:
    """Return what *now* has in comparison with *before*, both as `UrlHashes.sorted` returns them."""
    (urls, payloads), (older_urls, older_payloads) = now, before
    if not len(older_urls):
        return Change(both_same=0, changed=0, new=len(urls), gone=0, moved=0)
    there = np.minimum(np.searchsorted(older_urls, urls), len(older_urls) - 1)
    is_new = older_urls[there] != urls
    same = int((payloads[~is_new] == older_payloads[there[~is_new]]).sum())
    is_gone = np.ones(len(older_urls), np.bool_)
    is_gone[there[~is_new]] = False
    del there
    moved = np.isin(payloads[is_new], older_payloads[is_gone]) & ~np.isin(payloads[is_new], _NOTHING)
    in_both = int((~is_new).sum())
    return Change(
        both_same=same,
        changed=in_both - same,
        new=int(is_new.sum()),
        gone=int(is_gone.sum()),
        moved=int(moved.sum()),
    )
