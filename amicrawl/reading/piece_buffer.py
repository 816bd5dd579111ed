"""The pieces of an archive file in a row, as far as they are needed at a time.

Positions count the bytes of the flow from its beginning, whatever has been forgotten since. Which unit
of a packed file they are of, and where in the file it lies, is known of every position that is at hand.
"""

from __future__ import annotations

import re
from collections import deque
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amicrawl.reading.unpacking import Piece

LINE_ENDS = b"\r\n"
MOST_LINE_ENDS = 1 << 20
"""Bytes of line ends that are passed at a time: a small member may stand for gigabytes of them."""
MOST_UNITS = 200_000
"""Units that may be at hand: each takes more memory than the byte that it may stand for."""
_LINE_ENDS = re.compile(rb"[\r\n]*")
_MOST_ENDS = 64
"""Ends of units that are remembered before those are forgotten that have been passed."""


class Unit(NamedTuple):
    """A gzip member or zstd frame in the flow."""

    start: int
    """Position in the flow of its first byte."""
    offset: int
    """Offset in the file."""


class PieceBuffer:
    """What of a flow is at hand. Meant to be built upon: its methods are for the reader that is."""

    def __init__(self, pieces: Iterator[Piece], *, packed: bool) -> None:
        self._pieces = pieces
        self._packed = packed
        self._data = bytearray()
        self._base = 0
        """Position of the first byte of the data."""
        self._at = 0
        """Position up to which the flow has been read."""
        self._units: deque[Unit] = deque()
        self._unit_ended = True
        self._ends: dict[int, int] = {}
        """Position behind a unit's last byte -> offset in the file behind it."""
        self._fault: Piece | None = None
        """The news that cut the flow."""

    def _take(self, piece: Piece) -> bool:
        """Append *piece*; False where it is the news of a fault."""
        if piece.fault:
            self._fault = piece
            return False
        if self._packed and self._unit_ended:
            # Of several that begin at one position all but the last are empty, however many they are.
            if self._units and self._units[-1].start == self._end():
                self._units.pop()
            self._units.append(Unit(self._end(), piece.offset))
        self._data += piece.data
        self._unit_ended = piece.end >= 0
        if self._unit_ended:
            self._ends[self._end()] = piece.end
        return True

    def _end(self) -> int:
        return self._base + len(self._data)

    def _more(self) -> bool:
        """Append the next piece; False at the end of the file, and where a fault cuts the flow.

        So do too many units: what is behind them is read on its own.
        """
        if self._fault is not None or len(self._units) > MOST_UNITS:
            return False
        piece = next(self._pieces, None)
        return piece is not None and self._take(piece)

    def _have(self, position: int) -> bool:
        """See to it that the flow is at hand up to *position*."""
        while self._end() < position:
            if not self._more():
                return False
        return True

    def _index(self, position: int) -> int:
        return position - self._base

    def _bytes(self, start: int, end: int) -> bytes:
        return bytes(self._data[start - self._base : end - self._base])

    def _drop(self, position: int) -> None:
        """Forget what lies before *position*."""
        del self._data[: position - self._base]
        self._base = position
        while len(self._units) > 1 and self._units[1].start <= position:
            self._units.popleft()
        if len(self._ends) > _MOST_ENDS:
            self._ends = {end: offset for end, offset in self._ends.items() if end >= position}

    def _clear(self) -> None:
        """Forget the whole flow, and a fault that cut it."""
        if self._fault is not None:
            self._fault = None
            self._unit_ended = True
        self._base = self._at = self._end()
        self._data.clear()
        self._units.clear()
        self._ends.clear()

    def _offset(self, position: int) -> int:
        """Return where in the file *position* is: of packed ones, where the unit begins."""
        if not self._packed:
            return position
        offset = 0
        for unit in self._units:
            if unit.start > position:
                break
            offset = unit.offset
        return offset

    def _pass_line_ends(self) -> bool:
        """Go to the next byte that is not a line end; False where a new unit, or nothing, follows.

        Of very many line ends, no more than `MOST_LINE_ENDS` are passed.
        """
        begin = self._at
        while True:
            match = _LINE_ENDS.match(self._data, self._index(self._at))
            assert match is not None
            self._at = self._base + match.end()
            if match.end() < len(self._data) or self._at - begin > MOST_LINE_ENDS:
                return True
            if (self._packed and self._unit_ended) or not self._more():
                return False

    def _units_from(self, position: int) -> list[int]:
        """Return where the units at hand begin that do so at *position* or behind, in order."""
        starts = takewhile(position.__le__, (unit.start for unit in reversed(self._units)))
        return [*starts][::-1]

    def _unit_begins(self, position: int) -> bool:
        return any(unit.start == position for unit in self._units)
