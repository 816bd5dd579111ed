"""What the keys of a batch say: hosts, depth of paths, parameters of queries; column by column. Pure.

A path counts one segment for each slash between its ends and one more, slashes at its ends stripped;
an empty one counts none. So does a query with `&`. A key without host (`dns:`, `urn:`) has its scheme
for a host, and neither path nor query.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from amicrawl.report.coding import coded
from amicrawl.report.counts import host_part
from amicrawl.report.texts import Texts

if TYPE_CHECKING:
    from amicrawl.report.coding import Coded
    from amicrawl.report.words import Flags, Numbers


class Keys(NamedTuple):
    """The parts of the keys of a batch."""

    runs: Numbers
    """Rows with which a host may begin that is another than the one before."""
    hosts: Coded
    """The host of each run."""
    segments: Numbers
    parameters: Numbers
    url_begins: Flags
    """Where a key differs from the one before."""
    ordered: bool


def have_hosts(key: Texts) -> Flags:
    """Return which keys have a host, as far as that can be told from a parenthesis behind something."""
    closings = key.places_of(b")")
    return (closings > key.begins) & (closings < key.ends)


def are_uniform(key: Texts) -> Flags:
    """Return which keys surely are as they shall be: those with a host, and of name servers' answers."""
    return have_hosts(key) | key.begin_with(b"dns:")


def dissected(key: Texts) -> Keys:
    """Take the keys apart; there is at least one."""
    closings = key.places_of(b")")
    shared = key.shared()
    lengths = key.lengths
    equal = (shared == lengths[1:]) & (shared == lengths[:-1])
    # A key that agrees with the one before beyond the end of its host has the same host.
    other_host = shared <= (closings - key.begins)[:-1]
    runs = np.concatenate([np.zeros(1, np.int64), np.flatnonzero(other_host & ~equal) + 1])
    paths = np.minimum(closings + 1, key.ends)
    queries = Texts(key.octets, paths, key.ends).places_of(b"?")
    return Keys(
        runs=runs,
        hosts=coded(_hosts(key.at(runs), closings[runs])),
        segments=_pieces(key.octets, paths, queries, b"/"),
        parameters=_pieces(key.octets, np.minimum(queries + 1, key.ends), key.ends, b"&"),
        url_begins=np.concatenate([np.ones(1, np.bool_), ~equal]),
        ordered=_is_ordered(key, shared, equal),
    )


def _hosts(key: Texts, closings: Numbers) -> Texts:
    if (closings < key.ends).all():
        return Texts(key.octets, key.begins, closings)
    return Texts.of([host_part(one) for one in key.listed()])


def _is_ordered(key: Texts, shared: Numbers, equal: Flags) -> bool:
    """Whether each key is at least as great as the one before, of which it shares so many octets."""
    octets = np.frombuffer(key.octets, np.uint8)
    ends_first = key.lengths[:-1] == shared
    beyond = len(octets) - 1
    greater = (
        octets[np.minimum(key.begins[1:] + shared, beyond)]
        > octets[np.minimum(key.begins[:-1] + shared, beyond)]
    )
    longer = key.lengths[1:] > shared
    return bool((equal | ends_first | (longer & greater)).all())


def _pieces(octets: bytes, begins: Numbers, ends: Numbers, mark: bytes) -> Numbers:
    """Return how many pieces each text has between *mark*, those at its ends stripped."""
    marked = np.frombuffer(octets, np.uint8) == ord(mark)
    pieces = np.zeros(len(begins), np.int64)
    filled = np.flatnonzero(begins < ends)
    if len(filled):
        begins, ends = _stripped(octets, begins[filled], ends[filled], mark=mark, marked=marked)
        marks = np.flatnonzero(marked)
        inner = np.searchsorted(marks, ends) - np.searchsorted(marks, begins)
        pieces[filled] = np.where(begins < ends, inner + 1, 0)
    return pieces


def _stripped(
    octets: bytes, begins: Numbers, ends: Numbers, *, mark: bytes, marked: Flags
) -> tuple[Numbers, Numbers]:
    """Return where texts, none of them empty, begin and end without the marks at both ends."""
    begins = begins + marked[begins]
    ends = np.maximum(ends - marked[ends - 1], begins)
    # More than one is rare.
    more = (begins < ends) & (marked[begins] | marked[ends - 1])
    for row in np.flatnonzero(more).tolist():
        text = octets[int(begins[row]) : int(ends[row])]
        ends[row] = begins[row] + len(text.rstrip(mark))
        begins[row] = min(begins[row] + len(text) - len(text.lstrip(mark)), ends[row])
    return begins, ends
