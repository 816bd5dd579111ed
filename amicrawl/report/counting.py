"""Counting a batch of captures. Pure; columns at a time, a Python step only for each different value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute
import xxhash

from amicrawl.report.counts import CDX_SUMMARY, CORRECTED, SAMPLES_KEPT, Counts, Sample, Tally, least
from amicrawl.report.keys import dissected
from amicrawl.report.rows import NOT_OF_CDX_SUMMARY

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping

    from amicrawl.report.batch import Array, Batch, Numbers
    from amicrawl.report.keys import Keys

pc: Any = pyarrow.compute  # its stubs know neither binary columns nor plain numbers

_K = TypeVar("_K", bound="Hashable")

_STATUS_CODES = 1001
_LABEL = b"sha1:"
_WIDEST_RANGE = 1 << 18
_SOFT_404_BINS = 10


def counted(batch: Batch, *, rules: str = CORRECTED, skipped: Mapping[str, int] | None = None) -> Counts:
    """Return the counts of *batch*, and of the lines beside it that were *skipped*."""
    counts = Counts(rules=rules)
    counts.skipped.update(skipped or {})
    if rules == CDX_SUMMARY:
        batch = _with_hosts(batch, counts)
    if not len(batch):
        return counts
    keys = dissected(batch.key)
    sizes = np.maximum(batch.size, 0)
    counts.captures = len(batch)
    counts.bytes = int(sizes.sum())
    counts.unsized = 0 if rules == CDX_SUMMARY else int(np.count_nonzero(batch.size < 0))
    counts.first = f"{int(batch.time.min()):014d}"
    counts.last = f"{int(batch.time.max()):014d}"
    _count_keys(counts, keys, batch, sizes)
    _count_mime_status(counts, batch, sizes)
    for month, captures, size in _by_number(batch.time // 10**8, sizes):
        counts.by_month.add(f"{month:06d}", captures, size)
    _count_digests(counts, batch)
    for name, values in batch.facets.items():
        counts.facets[name] = _facet(name, values, sizes)
    counts.samples = _samples(batch, rules=rules)
    return counts


def _with_hosts(batch: Batch, counts: Counts) -> Batch:
    """Return *batch* without the keys that cdx-summary cannot see: those that have no host."""
    fit = pc.greater_equal(pc.find_substring(batch.key, b")"), 1)
    if pc.all(fit).as_py() is not False:
        return batch
    kept = batch.where(fit.to_numpy(zero_copy_only=False))
    counts.skipped[NOT_OF_CDX_SUMMARY] += len(batch) - len(kept)
    return kept


def _count_keys(counts: Counts, keys: Keys, batch: Batch, sizes: Numbers) -> None:
    counts.urls = int(np.count_nonzero(keys.url_begins))
    counts.hosts = int(np.count_nonzero(keys.host_begins))
    counts.ordered = keys.ordered
    counts.first_key = batch.key[0].as_py()
    counts.last_key = batch.key[-1].as_py()
    counts.by_host = _tally([text_of(host) for host in keys.hosts], keys.host_codes, sizes)
    width = int(keys.parameters.max()) + 1
    for pair, captures, size in _by_number(keys.segments * width + keys.parameters, sizes):
        counts.by_path_query.add((pair // width, pair % width), captures, size)
    counts.different_urls.add(batch.key.filter(pa.array(keys.url_begins)).to_pylist())


def _count_mime_status(counts: Counts, batch: Batch, sizes: Numbers) -> None:
    mimes = _encoded(batch.mime)
    codes = mimes.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    names = [text_of(name) for name in mimes.dictionary.to_pylist()]
    for pair, captures, size in _by_number(codes * _STATUS_CODES + batch.status + 1, sizes):
        status = pair % _STATUS_CODES - 1
        shown = "-" if status < 0 else f"{status:03d}"
        counts.by_mime_status.add((names[pair // _STATUS_CODES], shown), captures, size)


def _count_digests(counts: Counts, batch: Batch) -> None:
    if batch.digest is None:
        return
    present = batch.digest.drop_null()
    known = present.filter(pc.greater(pc.binary_length(present), 1))
    counts.digested = len(known)
    digests = known.to_pylist()
    if pc.any(pc.starts_with(known, _LABEL)).as_py():
        # Some indexers write the algorithm before the digest, some do not; it is the same payload.
        digests = [digest.removeprefix(_LABEL) for digest in digests]
    counts.different_digests.add(digests)


def _facet(name: str, values: Array, sizes: Numbers) -> Tally[str]:
    encoded = _encoded(values.fill_null(b"") if values.null_count else values)
    codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    whole = _tally([text_of(value) for value in encoded.dictionary.to_pylist()], codes, sizes)
    tally: Tally[str] = Tally()
    for value, (captures, size) in whole.items():
        for one in _values(name, value):
            tally.add(one, captures, size)
    return tally


def _values(name: str, value: str) -> list[str]:
    """Return what *value* counts for: each of several languages, the tenth of a probability."""
    if value in {"", "-"}:
        return []
    if name == "languages":
        return [language for language in value.split(",") if language]
    if name == "soft-404":
        return [soft_404_bin(value)]
    return [value]


def soft_404_bin(value: str) -> str:
    """Return the tenth of [0, 1] in which the probability *value* lies, `0.2-0.3`."""
    try:
        probability = float(value)
    except ValueError:
        return "unreadable"
    if not 0 <= probability <= 1:
        return "unreadable"
    tenth = min(int(probability * _SOFT_404_BINS), _SOFT_404_BINS - 1)
    return f"{tenth / 10:.1f}-{(tenth + 1) / 10:.1f}"


def _samples(batch: Batch, *, rules: str) -> list[Sample]:
    html = pc.equal(_plain(batch.mime), b"text/html")
    fit = pc.and_(html, pa.array(batch.status == 200)).fill_null(False)  # noqa: FBT003  # Arrow's own call
    no_robots = pc.invert(pc.ends_with(batch.key, b"/robots.txt"))
    fit = pc.and_(fit, no_robots)
    times = batch.time[fit.to_numpy(zero_copy_only=False)].tolist()
    urls = batch.url.filter(fit).fill_null(b"").to_pylist()
    ranks = np.fromiter(map(xxhash.xxh3_64_intdigest, urls, times), np.uint64, len(urls))
    return [
        Sample(f"{times[at]:014d}", shown_url(text_of(urls[at]), rules=rules), int(ranks[at]))
        for at in least(ranks, SAMPLES_KEPT)
    ]


def shown_url(url: str, *, rules: str) -> str:
    """Return *url* as samples show it: without the port 80 of its authority.

    By the rules of cdx-summary the first `:80/` goes, wherever it stands, and its slash with it.
    """
    if rules == CDX_SUMMARY:
        return url.replace(":80/", "", 1)
    scheme, mark, rest = url.partition("://")
    authority, slash, path = rest.partition("/")
    if scheme.lower() != "http" or not mark:
        return url
    return f"{scheme}://{authority.removesuffix(':80')}{slash}{path}"


def text_of(octets: bytes) -> str:
    """Return *octets* as text from which they can be had again."""
    return octets.decode("utf-8", "surrogateescape")


def _encoded(values: Array) -> Any:
    return values if isinstance(values, pa.DictionaryArray) else values.dictionary_encode()


def _plain(values: Array) -> Array:
    return values.dictionary_decode() if isinstance(values, pa.DictionaryArray) else values


def _by_number(numbers: Numbers, sizes: Numbers) -> Iterator[tuple[int, int, int]]:
    """Yield each different number, and how many captures and bytes it has."""
    least_one = int(numbers.min())
    if int(numbers.max()) - least_one > _WIDEST_RANGE:
        different, codes = np.unique(numbers, return_inverse=True)
    else:
        codes = numbers - least_one
        different = np.arange(least_one, least_one + int(codes.max()) + 1)
    captures, size = _sums(codes, sizes, len(different))
    for index in np.flatnonzero(captures).tolist():
        yield int(different[index]), int(captures[index]), int(size[index])


def _tally(names: list[_K], codes: Numbers, sizes: Numbers) -> Tally[_K]:
    captures, size = _sums(codes, sizes, len(names))
    tally: Tally[_K] = Tally()
    for name, count, total in zip(names, captures.tolist(), size.tolist(), strict=True):
        tally.add(name, count, total)
    return tally


def _sums(codes: Numbers, sizes: Numbers, width: int) -> tuple[Numbers, Numbers]:
    size = np.zeros(width, np.int64)
    np.add.at(size, codes, sizes)
    return np.bincount(codes, minlength=width), size
