"""How many different values there were, in bounded memory: exactly while they are few, estimated after.

Up to `EXACT` values their 64-bit hashes are kept, and the count is exact (but for a hash collision, one
in 10^12 or so). Beyond, only a HyperLogLog sketch of 16,384 registers is (Flajolet et al. 2007), whose
standard error is 0.81 %. Both add up: the sketch of two parts is the sketch of the whole, bit by bit.
Hashes are XXH3-64, so sketches written today can be added to those of another version or machine.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from typing import TYPE_CHECKING

import numpy as np
import xxhash

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

EXACT = 8192
"""Different values up to which the count is exact."""

STANDARD_ERROR = 0.0081

_BITS = 14
_REGISTERS = 1 << _BITS
_ALPHA = 0.7213 / (1 + 1.079 / _REGISTERS)
_REST_BITS = 64 - _BITS


class Sketch:
    """A count of different values that can be added to another."""

    def __init__(self) -> None:
        self._hashes: npt.NDArray[np.uint64] | None = np.empty(0, np.uint64)
        self._registers: npt.NDArray[np.uint8] | None = None

    def add(self, values: Iterable[bytes]) -> None:
        """Count *values*."""
        self.add_hashes(hashes_of(values))

    def add_hashes(self, hashes: npt.NDArray[np.uint64]) -> None:
        """Count the values of these hashes."""
        while self._hashes is not None and len(hashes):
            known = _different(np.concatenate([self._hashes, hashes[: 2 * EXACT]]))
            if len(known) > EXACT:
                self._hashes, hashes = None, np.concatenate([self._hashes, hashes])
            else:
                self._hashes, hashes = known, hashes[2 * EXACT :]
        if len(hashes):
            _raise(self._full(), hashes)

    def absorb(self, other: Sketch) -> None:
        """Count what *other* has counted."""
        if other._hashes is not None:  # of the same class
            self.add_hashes(other._hashes)
            return
        if self._hashes is not None:
            hashes, self._hashes = self._hashes, None
            _raise(self._full(), hashes)
        registers = self._full()
        np.maximum(registers, other._full(), out=registers)

    def shared_with(self, other: Sketch) -> int:
        """Return how many values both have; ValueError where one of them is no longer exact."""
        if self._hashes is None or other._hashes is None:
            raise ValueError("only while both are exact")
        return len(np.intersect1d(self._hashes, other._hashes))

    def _full(self) -> npt.NDArray[np.uint8]:
        if self._registers is None:
            self._registers = np.zeros(_REGISTERS, np.uint8)
        return self._registers

    @property
    def is_exact(self) -> bool:
        """Whether `count` is exact."""
        return self._hashes is not None

    def count(self) -> int:
        """Return how many different values there were."""
        if self._hashes is not None:
            return len(self._hashes)
        registers = self._full()
        raw = _ALPHA * _REGISTERS**2 / float(np.sum(np.exp2(-registers.astype(np.float64))))
        empty = int(np.count_nonzero(registers == 0))
        if raw <= 2.5 * _REGISTERS and empty:
            raw = _REGISTERS * float(np.log(_REGISTERS / empty))
        return round(raw)

    def to_json(self) -> dict[str, str]:
        """Return what `from_json` reads."""
        if self._hashes is not None:
            return {"hashes": _packed(self._hashes.astype("<u8").tobytes())}
        return {"registers": _packed(self._full().tobytes())}

    @classmethod
    def from_json(cls, value: object) -> Sketch:
        """Read what `to_json` returned; ValueError where it is something else."""
        if not isinstance(value, dict) or len(value) != 1:
            raise ValueError("a sketch is an object with hashes or registers")
        sketch = cls()
        if "hashes" in value:
            block = _unpacked(value["hashes"], EXACT * 8)
            if len(block) % 8:
                raise ValueError("the hashes of a sketch are cut")
            sketch.add_hashes(np.frombuffer(block, "<u8").astype(np.uint64))
        else:
            block = _unpacked(value.get("registers"), _REGISTERS)
            if len(block) != _REGISTERS or max(block) > _REST_BITS + 1:
                raise ValueError("the registers of a sketch are not those of one")
            sketch._hashes, sketch._registers = None, np.frombuffer(block, np.uint8).copy()
        return sketch

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sketch) and self.to_json() == other.to_json()

    __hash__ = None  # type: ignore[assignment]  # it changes


def hashes_of(values: Iterable[bytes]) -> npt.NDArray[np.uint64]:
    """Return the hash of each of *values*."""
    return np.fromiter(map(xxhash.xxh3_64_intdigest, values), np.uint64)


def _different(hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    # Faster than numpy's `unique`, which makes a hash table of what is hashed already.
    hashes.sort()
    begins = np.ones(len(hashes), np.bool_)
    np.not_equal(hashes[1:], hashes[:-1], out=begins[1:])
    return hashes[begins]


def _raise(registers: npt.NDArray[np.uint8], hashes: npt.NDArray[np.uint64]) -> None:
    """Raise each register to the rank of the hashes that fall to it."""
    index = (hashes >> np.uint64(_REST_BITS)).astype(np.int64)
    rest = hashes & np.uint64((1 << _REST_BITS) - 1)
    # The exponent of a number below 2**50, held exactly by a float, is its bit length.
    length = np.frexp(rest.astype(np.float64))[1]
    rank = (_REST_BITS + 1 - length).astype(np.uint8)
    np.maximum.at(registers, index, rank)


def _packed(block: bytes) -> str:
    return base64.b64encode(zlib.compress(block)).decode("ascii")


def _unpacked(text: object, limit: int) -> bytes:
    if not isinstance(text, str):
        raise ValueError("a sketch holds text")  # noqa: TRY004  # the reader of a file catches this one
    try:
        inflater = zlib.decompressobj()
        block = inflater.decompress(base64.b64decode(text, validate=True), limit)
    except (binascii.Error, zlib.error) as error:
        raise ValueError("a sketch does not unpack") from error
    if not inflater.eof:
        raise ValueError("a sketch is cut, or larger than one can be")
    return block
