"""Counting a batch of captures. Pure; columns at a time, a Python step only for each different value.

A path counts one segment for each slash between its ends and one more, slashes at its ends stripped;
an empty one counts none. So does a query with `&`. A key without host (`dns:`, `urn:`) has its scheme
for a host, and neither path nor query.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from amicrawl.archive.arrow_texts import (
    lengths_of,
    numbers_from,
    numbers_of,
    octets_from,
    truths,
)
from amicrawl.archive.report.batch import chosen, have_hosts
from amicrawl.archive.report.counts import (
    CDX_SUMMARY,
    CORRECTED,
    FACETS,
    SAMPLES_KEPT,
    CaptureTally,
    Counts,
    Sample,
    least,
)
from amicrawl.archive.report.rows import NOT_OF_CDX_SUMMARY
from amicrawl.archive.report.sketch import hashes_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from amicrawl.archive.report.batch import Numbers

_LABEL = "sha1:"
# Values that Arrow makes of Python's own would have it load pandas, where that is installed.
_NOTHING, _COLON, _HTML = octets_from([b"", b":)", b"text/html"])
_ROBOTS = "/robots.txt"
_SOFT_404_BINS = 10


def counted(
    batch: pa.RecordBatch, *, rules: str = CORRECTED, skipped: Mapping[str, int] | None = None
) -> Counts:
    """Return the counts of *batch*, and of the lines beside it that were *skipped*."""
    counts = Counts(rules=rules)
    counts.skipped.update(skipped or {})
    if rules == CDX_SUMMARY:
        kept = chosen(batch, have_hosts(batch["key"]))
        if lost := len(batch) - len(kept):
            counts.skipped[NOT_OF_CDX_SUMMARY] += lost
        batch = kept
    if not len(batch):
        return counts
    time, size = numbers_of(batch["time"]), numbers_of(batch["size"])
    sizes = np.maximum(size, 0)
    counts.captures = len(batch)
    counts.bytes = int(sizes.sum())
    counts.unsized = 0 if rules == CDX_SUMMARY else int(np.count_nonzero(size < 0))
    counts.first = f"{int(time.min()):014d}"
    counts.last = f"{int(time.max()):014d}"
    _count_keys(counts, batch["key"], sizes)
    for (mime, status), *sums in _groups([batch["mime"], batch["status"]], sizes):
        shown = "-" if status < 0 else f"{status:03d}"
        counts.by_mime_status.add((text_of(mime or b"-"), shown), *sums)
    for (month,), *sums in _groups([numbers_from(time // 10**8)], sizes):
        counts.by_month.add(f"{month:06d}", *sums)
    _count_digests(counts, batch["digest"])
    for name in filter(batch.schema.names.__contains__, FACETS):
        tally: CaptureTally[str] = CaptureTally()
        for (value,), *sums in _groups([batch[name]], sizes):
            for one in _values(name, text_of(value or b"")):
                tally.add(one, *sums)
        if tally:
            counts.facets[name] = tally
    counts.samples = _samples(batch, time, rules=rules)
    return counts


def _groups(columns: list[Any], sizes: Numbers) -> Iterator[tuple[tuple[Any, ...], int, int]]:
    """Yield each combination of values in *columns*, as first met, with its rows and sum of *sizes*."""
    codes, values = np.zeros(len(sizes), np.int64), []
    for column in columns:
        encoded = column.dictionary_encode(null_encoding="encode")
        values.append(encoded.dictionary.to_pylist())
        codes = codes * len(values[-1]) + numbers_of(encoded.indices)
    groups = numbers_from(codes).dictionary_encode()
    codes = numbers_of(groups.indices)
    sums = np.zeros(len(groups.dictionary), np.int64)
    np.add.at(sums, codes, sizes)
    numbers = np.unravel_index(numbers_of(groups.dictionary), [len(known) for known in values])
    keys = ([known[at] for at in number.tolist()] for known, number in zip(values, numbers, strict=True))
    yield from zip(zip(*keys, strict=True), np.bincount(codes).tolist(), sums.tolist(), strict=True)


def _count_keys(counts: Counts, key: Any, sizes: Numbers) -> None:
    before, after = key.slice(0, len(key) - 1), key.slice(1)
    begins = np.concatenate([np.ones(1, np.bool_), truths(pc.not_equal(before, after))])
    host, path = _halves(_with_marks(key), ")")
    counts.urls = int(np.count_nonzero(begins))
    others = pc.not_equal(host.slice(0, len(host) - 1), host.slice(1))
    counts.hosts = 1 + int(np.count_nonzero(truths(others)))
    counts.ordered = bool(truths(pc.less_equal(before, after)).all())
    counts.first_key, counts.last_key = key[0].as_py(), key[-1].as_py()
    for (name,), *sums in _groups([host], sizes):
        counts.by_host.add(text_of(name), *sums)
    path, query = _halves(path, "?")
    pieces = [numbers_from(_pieces(path, "/")), numbers_from(_pieces(query, "&"))]
    for (segments, parameters), *sums in _groups(pieces, sizes):
        counts.by_path_query.add((segments, parameters), *sums)
    counts.different_urls.add_hashes(hashes_of(chosen(key, begins).to_pylist()))


def _with_marks(key: Any) -> Any:
    """Return *key* with `scheme:)` in place of keys that have no host."""
    marked = pc.match_substring(key, ")")
    if truths(marked).all():
        return key
    scheme, _ = _halves(key, ":")
    return pc.if_else(marked, key, pc.binary_join_element_wise(scheme, _COLON, _NOTHING))


def _halves(texts: Any, mark: str) -> tuple[Any, Any]:
    """Return what *texts* have before the first *mark* and behind it; nothing where they have none."""
    halves = pc.split_pattern(texts, mark, max_splits=1)
    places = numbers_of(halves.offsets)
    first, whole = places[:-1], np.diff(places) == 2
    second = halves.values.take(numbers_from(first + whole, missing=~whole))
    return halves.values.take(numbers_from(first)), pc.fill_null(second, _NOTHING)


def _pieces(texts: Any, mark: str) -> Numbers:
    """Return how many pieces each text has between *mark*, those at its ends stripped."""
    stripped = pc.ascii_trim(texts.view(pa.string()), mark)
    pieces: Numbers = numbers_of(pc.count_substring(stripped, mark)) + (lengths_of(stripped) > 0)
    return pieces.astype(np.int64)


def _count_digests(counts: Counts, digest: Any) -> None:
    # A hyphen says that there is none.
    present = chosen(digest, lengths_of(digest) > 1)
    counts.digested = len(present)
    labelled = pc.starts_with(present, _LABEL)
    if truths(labelled).any():
        # Some indexers write the algorithm before the digest, some do not; it is the same payload.
        bare = pc.replace_substring(present, _LABEL, "", max_replacements=1)
        present = pc.if_else(labelled, bare, present)
    counts.different_digests.add(present.to_pylist())


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


def _samples(batch: pa.RecordBatch, time: Numbers, *, rules: str) -> list[Sample]:
    fit = (numbers_of(batch["status"]) == 200) & truths(pc.equal(batch["mime"], _HTML))
    rows = np.flatnonzero(fit & ~truths(pc.ends_with(batch["key"], _ROBOTS)))
    found: list[bytes | None] = batch["url"].take(numbers_from(rows)).to_pylist()
    times, urls = time[rows].tolist(), [url or b"" for url in found]
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
