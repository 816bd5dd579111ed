"""Counting a batch of captures. Pure; columns at a time, a Python step only for each different value."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np
import xxhash

from amicrawl.report.coding import Coded, coded
from amicrawl.report.counts import CDX_SUMMARY, CORRECTED, SAMPLES_KEPT, Counts, Sample, Tally, least
from amicrawl.report.keys import dissected, have_hosts
from amicrawl.report.rows import NOT_OF_CDX_SUMMARY
from amicrawl.report.sketch import hashes_of
from amicrawl.report.texts import Texts

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping

    from amicrawl.report.batch import Batch
    from amicrawl.report.keys import Keys
    from amicrawl.report.words import Numbers

_K = TypeVar("_K", bound="Hashable")

_STATUS_CODES = 1001
_LABEL = b"sha1:"
_HTML = b"text/html"
_ROBOTS = b"/robots.txt"
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
    mimes = coded(batch.mime)
    _count_mime_status(counts, mimes, batch.status, sizes)
    for month, captures, size in _by_number(batch.time // 10**8, sizes):
        counts.by_month.add(f"{month:06d}", captures, size)
    _count_digests(counts, batch.digest)
    for name, values in batch.facets.items():
        if tally := _facet(name, values, sizes):
            counts.facets[name] = tally
    counts.samples = _samples(batch, mimes, rules=rules)
    return counts


def _with_hosts(batch: Batch, counts: Counts) -> Batch:
    """Return *batch* without the keys that cdx-summary cannot see: those that have no host."""
    fit = have_hosts(batch.key)
    if fit.all():
        return batch
    kept = batch.at(fit)
    counts.skipped[NOT_OF_CDX_SUMMARY] += len(batch) - len(kept)
    return kept


def _count_keys(counts: Counts, keys: Keys, batch: Batch, sizes: Numbers) -> None:
    codes = keys.hosts.codes
    counts.urls = int(np.count_nonzero(keys.url_begins))
    counts.hosts = 1 + int(np.count_nonzero(codes[1:] != codes[:-1]))
    counts.ordered = keys.ordered
    counts.first_key = batch.key[0]
    counts.last_key = batch.key[len(batch) - 1]
    lengths = np.diff(keys.runs, append=len(batch))
    names = [text_of(host) for host in keys.hosts.names]
    counts.by_host = _tally(names, codes, np.add.reduceat(sizes, keys.runs), captures=lengths)
    width = int(keys.parameters.max()) + 1
    for pair, captures, size in _by_number(keys.segments * width + keys.parameters, sizes):
        counts.by_path_query.add((pair // width, pair % width), captures, size)
    # It takes longer to take out keys that come again than to hash them with the others.
    counts.different_urls.add_hashes(hashes_of(batch.key.listed())[keys.url_begins])


def _count_mime_status(counts: Counts, mimes: Coded, status: Numbers, sizes: Numbers) -> None:
    names = [text_of(name) for name in mimes.names]
    for pair, captures, size in _by_number(mimes.codes * _STATUS_CODES + status + 1, sizes):
        code = pair % _STATUS_CODES - 1
        shown = "-" if code < 0 else f"{code:03d}"
        counts.by_mime_status.add((names[pair // _STATUS_CODES], shown), captures, size)


def _count_digests(counts: Counts, digest: Texts | None) -> None:
    if digest is None:
        return
    known = digest.lengths > 1
    present = digest if known.all() else digest.at(known)
    counts.digested = len(present)
    labelled = present.begin_with(_LABEL)
    if labelled.any():
        # Some indexers write the algorithm before the digest, some do not; it is the same payload.
        present = Texts(present.octets, present.begins + labelled * len(_LABEL), present.ends)
    counts.different_digests.add(present.listed())


def _facet(name: str, values: Texts | Coded, sizes: Numbers) -> Tally[str]:
    codes, names = coded(values)
    tally: Tally[str] = Tally()
    for value, (captures, size) in _tally([text_of(one) for one in names], codes, sizes).items():
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


def _samples(batch: Batch, mimes: Coded, *, rules: str) -> list[Sample]:
    fit = batch.status == 200
    fit &= mimes.codes == (mimes.names.index(_HTML) if _HTML in mimes.names else -1)
    rows = np.flatnonzero(fit)
    rows = rows[~batch.key.at(rows).end_with(_ROBOTS)]
    times, urls = batch.time[rows].tolist(), batch.url.at(rows).listed()
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


def _tally(
    names: list[_K], codes: Numbers, sizes: Numbers, *, captures: Numbers | None = None
) -> Tally[_K]:
    """Return what each of *names* has; a row stands for so many *captures*, else for one."""
    whole, size = _sums(codes, sizes, len(names))
    if captures is not None:
        _, whole = _sums(codes, captures, len(names))
    tally: Tally[_K] = Tally()
    for name, count, total in zip(names, whole.tolist(), size.tolist(), strict=True):
        if count:
            tally.add(name, count, total)
    return tally


def _sums(codes: Numbers, sizes: Numbers, width: int) -> tuple[Numbers, Numbers]:
    size = np.zeros(width, np.int64)
    np.add.at(size, codes, sizes)
    return np.bincount(codes, minlength=width), size
