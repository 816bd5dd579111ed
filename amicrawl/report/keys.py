"""What the keys of a batch say: hosts, depth of paths, parameters of queries; column by column. Pure.

A path counts one segment for each slash between its ends and one more, slashes at its ends stripped;
an empty one counts none. So does a query with `&`. A key without host (`dns:`, `urn:`) has its scheme
for a host, and neither path nor query.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute

from amicrawl.report.counts import host_part

if TYPE_CHECKING:
    import numpy.typing as npt

    from amicrawl.report.batch import Array, Numbers

    Flags = npt.NDArray[np.bool_]

pc: Any = pyarrow.compute  # its stubs know neither binary columns nor plain numbers


class Keys(NamedTuple):
    """The parts of the keys of a batch."""

    host_codes: Numbers
    """Which of `hosts` each has."""
    hosts: list[bytes]
    segments: Numbers
    parameters: Numbers
    url_begins: Flags
    """Where a key differs from the one before."""
    host_begins: Flags
    ordered: bool


def dissected(key: Array) -> Keys:
    """Take the keys apart; there is at least one."""
    begins, ordered = _changes(key)
    parts = pc.split_pattern(_with_host(key), b")", max_splits=1)
    hosts = pc.list_element(parts, 0).dictionary_encode()
    codes = _numbers(hosts.indices)
    host_begins = np.ones(len(codes), np.bool_)
    np.not_equal(codes[1:], codes[:-1], out=host_begins[1:])
    pieces = pc.split_pattern(pc.list_element(parts, 1), b"?", max_splits=1)
    return Keys(
        host_codes=codes,
        hosts=hosts.dictionary.to_pylist(),
        segments=_pieces(pc.list_element(pieces, 0), "/"),
        parameters=_parameters(pieces),
        url_begins=begins,
        host_begins=host_begins,
        ordered=ordered,
    )


def _changes(key: Array) -> tuple[Flags, bool]:
    begins = np.ones(len(key), np.bool_)
    earlier, later = key.slice(0, len(key) - 1), key.slice(1)
    begins[1:] = pc.not_equal(earlier, later).to_numpy(zero_copy_only=False)
    descends = pc.any(pc.greater(earlier, later)).as_py()
    return begins, not descends


def _with_host(key: Array) -> Array:
    """Return *key* with `scheme:)` in place of keys that have no host."""
    hostless = pc.equal(pc.find_substring(key, b")"), -1)
    if not pc.any(hostless).as_py():
        return key
    schemes = [host_part(one) + b")" for one in key.filter(hostless).to_pylist()]
    return pc.replace_with_mask(key, hostless, pa.array(schemes, key.type))


def _parameters(pieces: Any) -> Numbers:
    lengths = _numbers(pc.list_value_length(pieces))
    counted = np.zeros(len(lengths), np.int64)
    asked = lengths == 2
    if asked.any():
        queries = pc.list_element(pieces.filter(pa.array(asked)), 1)
        counted[asked] = _pieces(queries, "&")
    return counted


def _pieces(text: Array, mark: str) -> Numbers:
    """Return how many pieces each *text* has between *mark*, those at its ends stripped."""
    # The trimming of text looks at octets only, so octets that are no UTF-8 may pass for text.
    trimmed = pc.ascii_trim(_as_text(text), characters=mark)
    marks = _numbers(pc.count_substring(trimmed, mark))
    filled = _numbers(pc.binary_length(trimmed)) > 0
    return np.where(filled, marks + 1, 0)


def _as_text(array: Array) -> Array:
    return array.view(pa.large_string() if pa.types.is_large_binary(array.type) else pa.string())


def _numbers(array: Array) -> Numbers:
    numbers: Numbers = array.to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers
