"""Whether lines are known by what records of other keys are known by: looked for when all were seen.

Of both, hashes are kept on disk, eight bytes each, so that memory stays flat.
"""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

import numpy as np

from amicrawl.disk import discard, explained

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path
    from typing import Self

    from numpy.typing import NDArray

    from amicrawl.disk import Disk

_AT_A_TIME = 1 << 18
_FILTER_BITS = 22
_FILTER_SHIFT = np.uint64(64 - _FILTER_BITS)


class Strays:
    """What lines sought in vain in their window, and what the records of all windows have."""

    def __init__(self, *, scratch: Path, disk: Disk) -> None:
        """Keep both in files in *scratch*, which have no name."""
        self._sought = _Hashes(scratch, disk=disk)
        self._there = _Hashes(scratch, disk=disk)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._sought.close()
        self._there.close()

    def add(self, sought: Iterable[NDArray[np.uint64]], ties: Iterable[NDArray[np.uint64]]) -> None:
        """Take what was *sought* in a window, and the *ties* that its records have."""
        for some in sought:
            self._sought.add(some)
        for some in ties:
            self._there.add(some)

    def are_there(self) -> bool:
        """Tell whether anything that was sought in one window is in another."""
        return any(
            _have_common(np.sort(sought), self._there.chunks()) for sought in self._sought.chunks()
        )


def _have_common(sought: NDArray[np.uint64], chunks: Iterable[NDArray[np.uint64]]) -> bool:
    """Tell whether any of *sought*, which ascend and are not none, is in *chunks*."""
    # Nearly all are told apart by their first bits, which is many times as fast as a search.
    may_be = np.zeros(1 << _FILTER_BITS, np.bool_)
    may_be[sought >> _FILTER_SHIFT] = True
    for chunk in chunks:
        likely = chunk[may_be[chunk >> _FILTER_SHIFT]]
        places = np.minimum(np.searchsorted(sought, likely), len(sought) - 1)
        if (sought[places] == likely).any():
            return True
    return False


class _Hashes:
    """Hashes, in a file from a number on."""

    def __init__(self, scratch: Path, *, disk: Disk) -> None:
        self._scratch = scratch
        self._disk = disk
        self._held: list[NDArray[np.uint64]] = []
        self._count = 0
        self._file: IO[bytes] | None = None

    def add(self, hashes: NDArray[np.uint64]) -> None:
        if len(hashes):
            self._held.append(hashes)
        self._count += len(hashes)
        if self._count < _AT_A_TIME:
            return
        with explained(self._scratch, "written to"):
            self._file = self._file or self._disk.temporary(self._scratch)
            self._file.seek(0, 2)
            for each in self._held:
                self._file.write(each.tobytes())
        self._held, self._count = [], 0

    def chunks(self) -> Iterator[NDArray[np.uint64]]:
        """Yield all that were added, some at a time."""
        at = 0
        while self._file is not None:
            with explained(self._scratch, "read from"):
                self._file.seek(at)
                octets = self._file.read(8 * _AT_A_TIME)
            if not octets:
                break
            at += len(octets)
            yield np.frombuffer(octets, np.uint64)
        if self._held:
            yield np.concatenate(self._held)

    def close(self) -> None:
        if self._file is not None:
            discard(self._file)
