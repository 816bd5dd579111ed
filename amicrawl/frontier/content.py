"""Content signals: whether the payload of a page is the same, nearly the same, or another.

    fingerprint   XXH64 of the payload, runs of white space being one space: the same or not
    simhash       64 bits of which few differ where few words differ (Charikar, 2002): nearly the same

Words are runs of ASCII letters and digits, so the simhash of a page is mostly that of its markup, and a
payload without such words has simhash 0. Memory stays within a few times the payload's size, however it
is made up. 0 stands for no fingerprint and no simhash.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np
from xxhash import xxh64_digest, xxh64_intdigest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

NEAR = 3
"""Bits in which the simhashes of two versions of a page differ at most."""

_WHITE_SPACE = b" \t\n\r\f\v"
_TO_SPACES = bytes.maketrans(_WHITE_SPACE, b" " * len(_WHITE_SPACE))
_RUN = re.compile(rb"  +")
# What separates words becomes a space, and capitals become small.
_TO_WORDS = bytes(
    octet if chr(octet).isalnum() and octet < 128 else 32 for octet in bytes(range(256)).lower()
)
_PIECE = 65_536
"""Octets looked at in one go, and a word more."""
_BITS = 64
# What each octet says of its eight bits, the highest first: 1 for set, -1 for not set.
_VOTES = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1) * 2.0 - 1.0


class Change(Enum):
    """How a payload compares with the one before."""

    NONE = "none"
    COSMETIC = "cosmetic"
    """Other octets, nearly the same words."""
    REAL = "real"


def normalised_body(body: bytes) -> bytes:
    """Return *body* with every run of white space as one space, and none at either end."""
    return b" ".join(_normal_pieces(body))


def content_fingerprint(body: bytes) -> int:
    """Return the fingerprint of *body*: two that differ in runs of white space have the same."""
    return int(xxh64_intdigest(normalised_body(body)))


def simhash(body: bytes) -> int:
    """Return the simhash of *body*, each of its words counting as often as it stands there."""
    votes = np.zeros(_BITS)
    for piece in _pieces(body.translate(_TO_WORDS)):
        votes += _votes(piece.split())
    return _majority(votes)


def simhash_of(features: Collection[tuple[str, int]]) -> int:
    """Return the simhash of words with weights, which may be negative; 0 where there are none."""
    words = [word.encode() for word, _ in features]
    weights = np.array([weight for _, weight in features], np.float64)
    return _majority(_votes(words, weights))


def hamming(one: int, other: int) -> int:
    """Return the number of bits in which two simhashes differ."""
    return (one ^ other).bit_count()


def is_near(one: int, other: int) -> bool:
    """Tell whether two simhashes are those of nearly the same words."""
    return (one ^ other).bit_count() <= NEAR


def change_between(old: int, new: int, *, old_simhash: int, new_simhash: int) -> Change:
    """Compare two payloads by their fingerprints *old* and *new*, then by their simhashes.

    Simhashes that are missing on both sides count as near, so that they never make a change real.
    """
    if old == new:
        return Change.NONE
    return Change.COSMETIC if is_near(old_simhash, new_simhash) else Change.REAL


def _normal_pieces(body: bytes) -> Iterator[bytes]:
    """Yield what stands between the spaces at which `_pieces` cuts, normalised and not empty."""
    for piece in _pieces(body.translate(_TO_SPACES)):
        normal = _RUN.sub(b" ", piece).strip(b" ")
        if normal:
            yield normal


def _pieces(text: bytes) -> Iterator[bytes]:
    """Cut *text* at spaces into pieces of bounded size, unless a single word is longer."""
    if len(text) <= _PIECE:
        yield text
        return
    start = 0
    while start < len(text):
        end = text.find(b" ", start + _PIECE)
        end = len(text) if end < 0 else end
        yield text[start:end]
        start = end


def _votes(words: Collection[bytes], weights: np.ndarray | None = None) -> np.ndarray:
    """Return for each bit the weights of the words whose hash has it, minus those of the others.

    A weight is 1 where none are given.
    """
    digests = np.frombuffer(b"".join(map(xxh64_digest, words)), np.uint8).reshape(-1, 8)
    # Octets are counted and the counts spread over their bits: 64 numbers for each word would be slower.
    votes = np.empty((8, 8))
    for place in range(8):
        votes[place] = np.bincount(digests[:, place], weights, minlength=256) @ _VOTES
    return votes.ravel()


def _majority(votes: np.ndarray) -> int:
    # Digests begin with the highest bit, and so do packed bits.
    return int.from_bytes(np.packbits(votes > 0).tobytes(), "big")
