"""Ribbon filter: kind 1 of the filters a frontier file may hold, to the bit as the format says.

    +---------+------+------------------+-----+--------+--------+--------+---------------------------+
    | version | kind | fingerprint bits | u8  | seed   | keys   | slots  | fingerprint bits a slot,  |
    | 1       | 1    | r: u8, 1 to 16   | 0   | u32 LE | u64 LE | u64 LE | least significant first   |
    +---------+------+------------------+-----+--------+--------+--------+---------------------------+

Every key names some of 64 neighbouring slots; their values are the solution of a system of equations
over GF(2), such that the chosen ones of each key XOR to its fingerprint (Dillinger and Walzer, 2021).
Smaller than a Bloom filter, 2^-r false positives, and built once for all keys: nothing can be added.
"""

from __future__ import annotations

from math import ceil
from struct import Struct
from typing import TYPE_CHECKING

import numpy as np

from amicrawl.frontier.format.faults import Malformed

if TYPE_CHECKING:
    from typing import Self

_HEADER = Struct("<BBBBIQQ")
_BAND = 64
"""Slots a key may name."""
_SEEDS = 64
_SIZES = 4
_PAGE = 4096
"""Keys, or eights of slots, that are worked on at a time."""
_U64 = 2**64 - 1
_WEYL = 0x9E37_79B9_7F4A_7C15
_SEED_OFFSET = 0x1656_67B1_9E37_79F9
_SEED_FACTOR = 0xC2B2_AE3D_27D4_EB4F
_PATH_FACTOR = 0xD6E8_FEB8_6659_FD93
_MIX_1 = 0xFF51_AFD7_ED55_8CCD
_MIX_2 = 0xC4CE_B9FE_1A85_EC53


class Ribbon:
    """A fixed set of keys that may say "perhaps" of a key that it does not hold."""

    __slots__ = ("_planes", "_words", "added", "fingerprint_bits", "seed", "slots")

    def __init__(self, slots: int, fingerprint_bits: int, *, seed: int, added: int) -> None:
        """Make one whose slots are all 0; `build` and `from_blob` are the ways to one of use."""
        self.slots = slots
        self.fingerprint_bits = fingerprint_bits
        self.seed = seed
        self.added = added
        """Keys it was built from, repeats counted again."""
        # Bit p of all slots is plane p, slot after slot, and 128 bits more so that a band can be read
        # from any slot as two words.
        size = (slots // _BAND + 2) * 8
        self._planes = tuple(bytearray(size) for _ in range(fingerprint_bits))
        self._words = tuple(np.frombuffer(plane, "<u8") for plane in self._planes)

    @property
    def nbytes(self) -> int:
        """Bytes of memory of its slots."""
        return sum(map(len, self._planes))

    @property
    def bits_per_key(self) -> float:
        """Bits in a file for each key; 0 without keys."""
        return self.slots * self.fingerprint_bits / self.added if self.added else 0.0

    @classmethod
    def build(cls, hosts: np.ndarray, paths: np.ndarray, *, fingerprint_bits: int = 7) -> Self:
        """Build one for the keys whose halves are given, in this order, which shows in its bytes.

        Takes some 3 us and 65 bytes a key. ValueError where 256 attempts to solve the
        equations fail, which keys have to be made for.
        """
        if not 1 <= fingerprint_bits <= 16:
            raise ValueError(f"A fingerprint has 1 to 16 bits, not {fingerprint_bits}")
        keys = len(hosts)
        slots = max(ceil(keys / 0.9), 2 * _BAND)
        for _ in range(_SIZES):
            for seed in range(_SEEDS):
                built = cls(slots, fingerprint_bits, seed=seed, added=keys)
                if built._solve(hosts, paths):
                    return built
            slots += slots // 20 + _BAND
        raise ValueError(f"No ribbon can be built for these {keys} keys")

    def maybe(self, host: int, path: int) -> bool:
        """Return False only if it was not built with the key."""
        start, coefficients, fingerprint = self.row(host, path)
        first, shift = start >> 3, start & 7
        for bit, plane in enumerate(self._planes):
            band = int.from_bytes(plane[first : first + 9], "little") >> shift
            if (band & coefficients).bit_count() + (fingerprint >> bit) & 1:
                return False
        return True

    def maybe_many(self, hosts: np.ndarray, paths: np.ndarray) -> np.ndarray:
        """Return `maybe` of each key, as an array of bool."""
        answers = np.empty(len(hosts), np.bool_)
        for begin in range(0, len(hosts), _PAGE):
            chosen = slice(begin, begin + _PAGE)
            start, coefficients, fingerprint = self.rows(hosts[chosen], paths[chosen])
            word = (start >> np.uint64(6)).view(np.int64)
            shift = start & np.uint64(63)
            # A shift by 64 is not defined: what would be shifted by 64 - 0 goes in two steps.
            back = np.uint64(63) - shift
            wrong = np.zeros(len(start), np.uint8)
            for bit, words in enumerate(self._words):
                band = words[word] >> shift | words[word + 1] << back << np.uint64(1)
                expected = (fingerprint >> np.uint64(bit)).astype(np.uint8)
                wrong |= np.bitwise_count(band & coefficients) ^ expected
            answers[chosen] = wrong & 1 == 0
        return answers

    def row(self, host: int, path: int) -> tuple[int, int, int]:
        """Return the equation of a key: its first slot, its coefficients as bits, its fingerprint."""
        seed = self.seed * _WEYL + _SEED_OFFSET & _U64
        a = _mix(host ^ seed ^ (path * _PATH_FACTOR & _U64))
        b = _mix(path ^ (seed * _SEED_FACTOR & _U64) ^ (host * _WEYL & _U64))
        fingerprint = _mix(a ^ (b << 1 & _U64)) >> 64 - self.fingerprint_bits
        return a % (self.slots - _BAND + 1), b | 1, fingerprint

    def rows(self, hosts: np.ndarray, paths: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return `row` of each key, as three arrays of `uint64`."""
        hosts, paths = hosts.astype(np.uint64), paths.astype(np.uint64)
        seed = self.seed * _WEYL + _SEED_OFFSET & _U64
        a = _mix_many(hosts ^ np.uint64(seed) ^ paths * np.uint64(_PATH_FACTOR))
        b = _mix_many(paths ^ np.uint64(seed * _SEED_FACTOR & _U64) ^ hosts * np.uint64(_WEYL))
        fingerprints = _mix_many(a ^ b << np.uint64(1)) >> np.uint64(64 - self.fingerprint_bits)
        return a % np.uint64(self.slots - _BAND + 1), b | np.uint64(1), fingerprints

    def to_blob(self) -> bytes:
        """Return it as it lies in a frontier file."""
        header = _HEADER.pack(1, 1, self.fingerprint_bits, 0, self.seed, self.added, self.slots)
        parts = [header]
        bits, octets = self.fingerprint_bits, -(-self.slots // 8)
        for start in range(0, octets, _PAGE):
            page = np.stack(
                [
                    np.unpackbits(
                        np.frombuffer(plane[start : start + _PAGE], np.uint8), bitorder="little"
                    )
                    for plane in self._planes
                ],
                axis=1,
            )
            parts.append(np.packbits(page[: self.slots - start * 8], bitorder="little").tobytes())
        return b"".join(parts)[: len(header) + -(-self.slots * bits // 8)]

    @classmethod
    def from_blob(cls, blob: bytes | memoryview) -> Self:
        """Read one; Malformed where *blob* is not exactly one. Takes as much memory as *blob* has."""
        if len(blob) < _HEADER.size:
            raise Malformed(f"a ribbon filter of {len(blob)} bytes is cut in its header", at=len(blob))
        version, kind, bits, _, seed, added, slots = _HEADER.unpack_from(blob)
        if (version, kind) != (1, 1):
            raise Malformed(f"version {version}, kind {kind} is not a ribbon filter of version 1")
        if not 1 <= bits <= 16:
            raise Malformed(f"a ribbon filter of {bits} bits a slot", at=2)
        body = memoryview(blob)[_HEADER.size :]
        if slots < _BAND or len(body) != -(-slots * bits // 8):
            raise Malformed(f"a ribbon filter of {slots} slots in {len(body)} bytes", at=16)
        read = cls(slots, bits, seed=seed, added=added)
        # Eight slots are as many bytes as a slot has bits: pages of whole bytes on both sides.
        for start in range(0, -(-slots // 8), _PAGE):
            octets = np.frombuffer(body[start * bits : (start + _PAGE) * bits], np.uint8)
            flat = np.unpackbits(octets, bitorder="little")
            page = flat[: min(_PAGE * 8, slots - start * 8) * bits].reshape(-1, bits)
            for plane, column in zip(read._planes, page.T, strict=True):
                packed = np.packbits(column, bitorder="little").tobytes()
                plane[start : start + len(packed)] = packed
        return read

    def _solve(self, hosts: np.ndarray, paths: np.ndarray) -> bool:
        """Set the slots so that every key's equation holds; return False where there is no way."""
        slots = self.slots
        coefficients, values = [0] * slots, [0] * slots
        for start in range(0, len(hosts), _PAGE):
            page = self.rows(hosts[start : start + _PAGE], paths[start : start + _PAGE])
            if not _eliminate(coefficients, values, *(column.tolist() for column in page)):
                return False
        self._substitute_back(coefficients, values)
        return True

    def _substitute_back(self, coefficients: list[int], values: list[int]) -> None:
        bits = range(self.fingerprint_bits)
        bands = [0 for _ in bits]
        for slot in range(self.slots - 1, -1, -1):
            row, value = coefficients[slot], values[slot]
            for bit in bits:
                band = bands[bit] << 1 & _U64
                if row:
                    band |= (band & row).bit_count() + (value >> bit) & 1
                bands[bit] = band
            if not slot & 63:
                for plane, band in zip(self._planes, bands, strict=True):
                    plane[slot >> 3 : (slot >> 3) + 8] = band.to_bytes(8, "little")


def _eliminate(
    coefficients: list[int], values: list[int], starts: list[int], rows: list[int], right: list[int]
) -> bool:
    """Bring equations to the echelon form, adding to what *coefficients* and *values* hold already."""
    slots = len(coefficients)
    for slot, row, value in zip(starts, rows, right, strict=True):
        while row:
            zeros = (row & -row).bit_length() - 1
            row >>= zeros  # noqa: PLW2901  # an equation is reduced until it finds its slot
            slot += zeros  # noqa: PLW2901
            if slot >= slots:
                return False
            taken = coefficients[slot]
            if not taken:
                coefficients[slot] = row
                values[slot] = value
                break
            row ^= taken  # noqa: PLW2901
            value ^= values[slot]  # noqa: PLW2901
        else:
            if value:
                return False
    return True


def _mix(x: int) -> int:
    x = (x ^ x >> 33) * _MIX_1 & _U64
    x = (x ^ x >> 33) * _MIX_2 & _U64
    return x ^ x >> 33


def _mix_many(x: np.ndarray) -> np.ndarray:
    x ^= x >> np.uint64(33)
    x *= np.uint64(_MIX_1)
    x ^= x >> np.uint64(33)
    x *= np.uint64(_MIX_2)
    x ^= x >> np.uint64(33)
    return x
