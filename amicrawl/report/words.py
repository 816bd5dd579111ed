"""Words: eight octets of text at a time as one number, first octet lowest. Pure.

What holds of eight digits, or of the difference of two texts, is so worked out in a few operations for
all rows of a block, without a loop over octets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Numbers = npt.NDArray[np.int64]
    Flags = npt.NDArray[np.bool_]
    Words = npt.NDArray[np.uint64]

KEPT = np.array([(1 << 8 * octets) - 1 for octets in range(9)], "<u8")
"""By how many octets of a word count: the bits that are kept of it."""

ZEROS = np.uint64(int.from_bytes(b"00000000", "little"))
"""Eight digits 0."""

_HIGH_HALVES = np.uint64(0xF0F0F0F0F0F0F0F0)
_SIXES = np.uint64(0x0606060606060606)
_THREES = np.uint64(0x3333333333333333)


def words_of(octets: bytes) -> Words:
    """Return the words that begin at each of *octets*, but for the last seven; nothing is copied."""
    return np.ndarray((max(len(octets) - 7, 0),), "<u8", octets, strides=(1,))


def word(octets: bytes) -> np.uint64:
    """Return at most eight *octets* as a word."""
    return np.uint64(int.from_bytes(octets, "little"))


def numbers_of_eight(words: Words) -> Numbers:
    """Return the number that eight decimal digits in each of *words* stand for."""
    # Neighbours are joined in all places at once: digits to pairs, pairs to fours, these to the number.
    pairs = (words & np.uint64(0x0F0F0F0F0F0F0F0F)) * np.uint64((10 << 8) + 1) >> np.uint64(8)
    fours = (pairs & np.uint64(0x00FF00FF00FF00FF)) * np.uint64((100 << 16) + 1) >> np.uint64(16)
    whole = (fours & np.uint64(0x0000FFFF0000FFFF)) * np.uint64((10_000 << 32) + 1) >> np.uint64(32)
    return whole.astype(np.int64)


def are_digits(words: Words) -> Flags:
    """Return which of *words* are eight decimal digits."""
    high = (words & _HIGH_HALVES) | (((words + _SIXES) & _HIGH_HALVES) >> np.uint64(4))
    digits: Flags = high == _THREES
    return digits


def octets_shared(differences: Words) -> Numbers:
    """Return how many octets two words begin with in common, by their *differences*, which are not 0."""
    # All bits below the lowest that is set.
    below = (differences & -differences) - np.uint64(1)
    octets: Numbers = np.bitwise_count(below).astype(np.int64) >> 3
    return octets
