"""Numbers as they are written, many at a time: what they are, without a text made of each. Pure.

Eight octets are looked at in one step, as a number of 64 bits whose lowest octet is the first. What
takes more than a few such steps to tell is left open, for others to read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from amicrawl.index.lines.arrow_texts import Spans

_MOST = 16
"""Octets of what is looked at here."""
_MOST_FRACTION = 19
"""The same of what begins with `0.`."""
_EXACT = 17
"""Octets of a fraction with 15 digits, which a double tells apart from all others like it."""


def _word(octets: bytes) -> np.uint64:
    return np.uint64(int.from_bytes(octets, "little"))


_TOPS, _REST = _word(b"\x80" * 8), _word(b"\x7f" * 8)
_ZEROS, _POINTS, _HALVES = _word(b"0" * 8), _word(b"." * 8), _word(b"\x0f" * 8)
_BEYOND_NINE = _word(bytes([0x80 - 10]) * 8)
_ZERO, _POINT = b"0."
_FRACTION, _SMALL = _word(b"0."), _word(b"0.0000")
# Masks of the first octets, and words that make digits of what is behind them, where zeros are.
_FIRST = np.array([_word(b"\xff" * octets) for octets in range(9)], np.uint64)
_BEHIND = _ZEROS & ~_FIRST
_OCTET = np.uint64(8)
_PAIRS, _FOURS = np.uint64(0x00FF_00FF_00FF_00FF), np.uint64(0x0000_FFFF_0000_FFFF)


def have_other_than_digits(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return for each of *words*, eight octets, the highest bit of each octet that is not a digit."""
    digits = words ^ _ZEROS
    # Octets from 0x80 on have the bit already; lower ones reach 0x80 from 10 on, without a carry.
    return (((digits & _REST) + _BEYOND_NINE) | digits) & _TOPS


def pairs_of_digits(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the numbers that each two digits of *words* are: 16 bits each, the first lowest."""
    return (((words & _HALVES) * np.uint64(10 * 256 + 1)) >> _OCTET) & _PAIRS


def are_plain(spans: Spans) -> NDArray[np.bool_]:
    """Return for each of *spans* whether it is a plain number: digits, and maybe a point between them.

    Where that is so it is a number in JSON. Long ones, negative ones and those with exponents are not
    looked at: they are not plain.
    """
    lengths, head = spans.lengths, spans.words(0)
    first = head & _FIRST[1]
    is_fraction = head & _FIRST[2] == _FRACTION
    most = np.where(is_fraction, _MOST_FRACTION, _MOST)
    plain: NDArray[np.bool_] = (lengths > 0) & (lengths <= most)
    # No zero leads but the one before a point.
    plain &= (first != _ZERO) | (lengths == 1) | is_fraction
    plain &= (first != _POINT) & (_last_octets(spans) != _POINT)
    points = np.zeros(len(spans), np.uint8)
    for at in range(0, int(lengths[plain].max(initial=0)), 8):
        word = spans.words(at) if at else head
        # Zeros stand behind the end.
        others = have_other_than_digits(word | _BEHIND[np.minimum(np.maximum(lengths - at, 0), 8)])
        pointed = word ^ _POINTS
        are_points = ~(((pointed & _REST) + _REST) | pointed) & _TOPS
        plain &= others == are_points
        points += np.bitwise_count(are_points)
    plain &= points <= 1
    return plain


def are_as_python_writes(spans: Spans) -> NDArray[np.bool_]:
    """Return for each of *spans*, numbers in JSON, whether it is what Python writes for it.

    False for all numbers beyond 0 and 1.
    """
    lengths, head = spans.lengths, spans.words(0)
    # Fractions of 15 digits, none of which is a needless zero, are written as they stand down to 0.0001.
    are: NDArray[np.bool_] = (head & _FIRST[2] == _FRACTION) & (head & _FIRST[6] != _SMALL)
    are &= (lengths <= _EXACT) & (_last_octets(spans) != _ZERO)
    for written in (b"0", b"1", b"0.0", b"1.0"):
        are |= (head == _word(written)) & (lengths == len(written))
    others = np.flatnonzero(~are)
    if len(others):
        texts = spans.some(others).texts().to_pylist()
        are[others] = [text.startswith("0.") and repr(float(text)) == text for text in texts]
    return are


def are_zero(spans: Spans) -> NDArray[np.bool_]:
    """Return for each of *spans* whether it is zero as Python writes it."""
    head, lengths = spans.words(0), spans.lengths
    are: NDArray[np.bool_] = (head == _word(b"0")) & (lengths == len("0"))
    are |= (head == _word(b"0.0")) & (lengths == len("0.0"))
    return are


def whole_numbers(spans: Spans) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return what *spans* come to, and of which that is so: those that are one to 16 digits."""
    lengths = spans.lengths
    are = (lengths > 0) & (lengths <= _MOST)
    found = np.zeros(len(spans), np.uint64)
    for behind in range(0, min(spans.most, _MOST), 8):
        # The last eight octets are read, and those before; what is before the number is made zeros.
        begins = spans.ends - behind - 8
        words = spans.octets.words(np.maximum(begins, 0))
        if begins.min() < 0:
            words = words << (_OCTET * np.minimum(np.maximum(-begins, 0), 8).astype(np.uint64))
        before = _FIRST[8 - np.minimum(np.maximum(lengths - behind, 0), 8)]
        words = (words & ~before) | (_ZEROS & before)
        are &= have_other_than_digits(words) == 0
        found += _eight_digits(words) * np.uint64(10**behind)
    return found.astype(np.int64), are


def _eight_digits(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the numbers that *words* are as they are written, each of them eight digits."""
    fours = ((pairs_of_digits(words) * np.uint64(100 * 2**16 + 1)) >> np.uint64(16)) & _FOURS
    return (fours * np.uint64(10_000 * 2**32 + 1)) >> np.uint64(32)


def _last_octets(spans: Spans) -> NDArray[np.uint8]:
    """Return the last octet of each of *spans*; of one that is empty, any."""
    return spans.octets.words(np.maximum(spans.ends - 1, 0)).astype(np.uint8)
