"""Runs of equal values: how many there are, then each one's value and its length as LEB128.

Where a run begins depends on the size of the length before it, so runs are found one after the other.
But a length of two bytes stands for 128 values at least: lengths of one byte, which are nearly all there
are in columns with many runs, are looked for in long strides, and only what lies between is walked.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from amicrawl.frontier.format.faults import Malformed
from amicrawl.frontier.format.varints import read_uvarint, write_uvarint, written_words

_BLOCK: Final = 1 << 14
"""Runs that are written at once."""

_CALM: Final = 48
"""Lengths of one byte in a row after which walking gives way to strides: where they cost the same."""


def encode_runs(words: np.ndarray) -> bytes:
    """Return unsigned *words* as their runs, each as long as it can be."""
    if not len(words):
        return b"\0"
    ends = np.append(np.flatnonzero(words[1:] != words[:-1]) + 1, len(words))
    values = words[ends - 1]
    lengths = np.diff(ends, prepend=0).view(np.uint64)
    blocks = (
        _encoded_block(values[first : first + _BLOCK], lengths[first : first + _BLOCK])
        for first in range(0, len(ends), _BLOCK)
    )
    return write_uvarint(len(ends)) + b"".join(blocks)


def _encoded_block(values: np.ndarray, lengths: np.ndarray) -> bytes:
    width = values.itemsize
    if int(lengths.max()) < 0x80:
        runs = np.empty((len(values), width + 1), np.uint8)
        runs[:, width] = lengths
        runs[:, :width] = values.view(np.uint8).reshape(-1, width)
        return runs.tobytes()
    written, used = written_words(lengths)
    runs = np.empty((len(values), width + 8), np.uint8)
    runs[:, :width] = values.view(np.uint8).reshape(-1, width)
    runs[:, width:] = written.view(np.uint8).reshape(-1, 8)
    kept = np.ones(runs.shape, np.bool)
    kept[:, width:] = used.view(np.uint8).reshape(-1, 8)
    return runs.reshape(-1).take(np.flatnonzero(kept)).tobytes()


def least_size(words: np.ndarray) -> int:
    """Return a number of bytes that `encode_runs` of *words*, one or more, will not go below."""
    runs = 1 + int(np.count_nonzero(words[1:] != words[:-1]))
    return len(write_uvarint(runs)) + runs * (words.itemsize + 1)


def decode_runs(payload: bytes | memoryview, count: int, dtype: np.dtype) -> np.ndarray:
    """Return the *count* values of *dtype*, unsigned, whose runs fill *payload*.

    Raises `Malformed` where they are more or fewer, a run is empty or cut short, or bytes are left over.
    All of that is known before room is made for the values.
    """
    runs, at = read_uvarint(payload, 0)
    if runs > count or runs * (dtype.itemsize + 1) > len(payload) - at:
        message = f"{runs} runs for {count} values in {len(payload)} bytes"
        raise Malformed(message)
    octets = np.frombuffer(payload, np.uint8)
    if runs * (dtype.itemsize + 1) == len(payload) - at:
        values, lengths = _short_runs(octets[at:].reshape(runs, dtype.itemsize + 1), dtype)
    else:
        values, lengths = _mixed_runs(octets, at, runs, count=count, dtype=dtype)
    if not lengths.all():
        raise Malformed("run without values", at=at)
    total = int(lengths.sum())
    if total != count:
        message = f"runs of {total} values in all, not {count}"
        raise Malformed(message, at=at)
    return values if total == runs else np.repeat(values, lengths)


def _short_runs(table: np.ndarray, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """Return the values and lengths of runs that leave no room for a length of two bytes."""
    lengths = table[:, -1].astype(np.int64)
    if len(lengths) and int(lengths.max()) >= 0x80:
        raise Malformed("run is cut short", at=table.size)
    return np.ascontiguousarray(table[:, :-1]).view(dtype).reshape(-1), lengths


def _mixed_runs(
    octets: np.ndarray, at: int, runs: int, *, count: int, dtype: np.dtype
) -> tuple[np.ndarray, np.ndarray]:
    """Return the values and lengths of the *runs* that begin at *at* and fill *octets*."""
    width, payload = dtype.itemsize, octets.data
    places, lengths = np.empty(runs, np.int64), np.empty(runs, np.int64)
    place_of, length_of = places.data, lengths.data
    done = calm = 0
    while done < runs:
        if calm >= _CALM:
            found = _one_byte_lengths(octets[at + width :: width + 1][: min(calm, runs - done)])
            stop = at + len(found) * (width + 1)
            places[done : done + len(found)] = np.arange(at, stop, width + 1)
            lengths[done : done + len(found)] = found
            done, at, calm = done + len(found), stop, 2 * calm if len(found) == calm else 0
            continue
        behind = at + width + 1
        if behind > len(octets):
            raise Malformed("run is cut short", at=at)
        length = payload[behind - 1]
        if length >= 0x80:
            length, behind = read_uvarint(payload, behind - 1)
        if length > count:
            message = f"run of {length} values among {count}"
            raise Malformed(message, at=at)
        place_of[done], length_of[done] = at, length
        calm = calm + 1 if behind == at + width + 1 else 0
        done, at = done + 1, behind
    if at != len(octets):
        message = f"{len(octets) - at} bytes behind the last run"
        raise Malformed(message, at=at)
    if not runs:
        return np.empty(0, dtype), lengths
    return np.ndarray((len(octets) - width + 1,), dtype, octets, 0, (1,))[places], lengths


def _one_byte_lengths(bytes_ahead: np.ndarray) -> np.ndarray:
    """Return the first of the bytes where lengths would stand, up to one that is not all of a length."""
    longer = bytes_ahead >= 0x80
    return bytes_ahead[: int(longer.argmax())] if longer.any() else bytes_ahead
